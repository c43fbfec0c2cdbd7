#!/bin/sh
# run_opencl_alone.sh LIBORT CC FLAGS: values on devices, two sessions on one device at once, lost devices, against one
# build of the library: for sanitizers. OpenCL answers from tests/providers/fake_opencl.c, so that no driver's
# threads are looked at, and from the system's where that is no ThreadSanitizer. EVERY=N: each N-th of the calls that
# can fail (3 of a library's provider, 7 of OpenCL, by default) does so in a run of its own; EVERY=1 takes all.
set -u
libort=$(realpath "$1") cc=$2 flags=$3
root=$(pwd)
work=build/opencl-alone
passed=0 failed=0 skipped=0
rm -rf $work
mkdir -p $work
python3 tests/tools/fixtures.py $work/fx || exit 1
cd $work || exit 1
ln -s "$libort" libort.so.0
case $flags in *thread*) tsan=1 ;; *) tsan= ;; esac
# shellcheck disable=SC2086
$cc $flags -I"$root/lib" "$root/tests/providers/on_device.c" "$libort" -Wl,-rpath,"$(pwd)" -lm -pthread -o on_device ||
    exit 1
# shellcheck disable=SC2086
$cc $flags -shared -fPIC -Wno-unused-parameter -I"$root/lib" "$root/tests/providers/faulty.c" -o faulty.so -lm || exit 1
# shellcheck disable=SC2086
$cc $flags -shared -fPIC "$root/tests/providers/fake_opencl.c" -o fake.so -l:libOpenCL.so.1 || {
    echo "skip opencl: no library of OpenCL to link with"
    skipped=1
}
export ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99:halt_on_error=1 TSAN_OPTIONS=exitcode=99:halt_on_error=1

. "$root/tests/providers/statuses.sh"
# A check that fails leaves the program's own values.
no_leaks=$ASAN_OPTIONS:detect_leaks=0

# run NAME EXPECTED ARGUMENT...: no sanitizer says anything, and the program ends with this status; "told" is what it is by
# its own words
run() {
    name=$1 expected=$2
    shift 2
    case $expected in
    0) "$@" >log 2>&1 ;;
    *) ASAN_OPTIONS=$no_leaks "$@" >log 2>&1 ;;
    esac
    status=$?
    [ "$expected" = told ] && expected=$(of_fault log)
    if [ "$status" = "$expected" ] && ! grep -q 'Sanitizer\|runtime error' log; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "not ok $name: status $status, it should be $expected"
        grep -A 25 'Sanitizer\|runtime error' log | head -n 40
        tail -n 3 log
    fi
}

run "a library's provider" 0 ./on_device faulty fx ./faulty.so
run "a library's provider, four sessions at once" 0 ./on_device -t faulty fx ./faulty.so
for n in $(seq 1 "${EVERY:-3}" 123); do
    run "a library's provider, lost at $n" "$(of_faulty FAULTY_FROM "$n")" env FAULTY_FROM="$n" ./on_device faulty fx \
        ./faulty.so
    run "a library's provider, failing at $n" "$(of_faulty FAULTY_AT "$n")" env FAULTY_AT="$n" ./on_device faulty fx \
        ./faulty.so
    run "a library's provider, failing at $n, four sessions" told env FAULTY_AT="$n" ./on_device -t faulty fx ./faulty.so
done
if [ -e fake.so ]; then
    export ORT_OPENCL_LIB="$PWD/fake.so"
    export FAKE_CL_COUNT="$PWD/count"
    run "OpenCL of the tests" 0 env FAKE_CL_OWN=1 ./on_device -n opencl fx
    all=$(sed 's/ calls.*//' count)
    unset FAKE_CL_COUNT
    run "OpenCL of the tests, four sessions at once" 0 env FAKE_CL_OWN=1 ./on_device -n -t opencl fx
    for n in $(seq 1 "${EVERY:-7}" "$all"); do
        run "OpenCL of the tests, lost at $n" told env FAKE_CL_OWN=1 FAKE_CL_FROM="$n" ./on_device -n opencl fx
        run "OpenCL of the tests, failing at $n" told env FAKE_CL_OWN=1 FAKE_CL_AT="$n" ./on_device -n opencl fx
        run "OpenCL of the tests, failing at $n, four sessions" told env FAKE_CL_OWN=1 FAKE_CL_AT="$n" ./on_device -n -t \
            opencl fx
    done
    if [ -z "$tsan" ] && ASAN_OPTIONS=detect_leaks=0 ./on_device opencl fx >/dev/null 2>&1; then
        ASAN_OPTIONS=$no_leaks # a driver's own
        run "OpenCL of the system" 0 ./on_device opencl fx
        run "OpenCL of the system, four sessions at once" 0 ./on_device -t opencl fx
    fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]

# Values on devices through the installed library: tests/providers/on_device.c is the program, OpenCL and a
# provider of a library (tests/providers/faulty.c) are the devices.
load helper
. "$BATS_TEST_DIRNAME/../providers/statuses.sh"

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    cd "$BATS_FILE_TMPDIR" || exit 1
    make -s -C "$ROOT" install DESTDIR= PREFIX="$PWD/prefix" >/dev/null
    PKG_CONFIG_PATH=$PWD/prefix/lib/pkgconfig
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046
    ${CC:-gcc} -O1 -g -Wall -Wextra -Werror "$ROOT/tests/providers/on_device.c" $(pkg-config --cflags --libs ort) \
        -Wl,-rpath,"$PWD/prefix/lib" -lm -pthread -o on_device
    ${CC:-gcc} -O1 -g -shared -fPIC -Wno-unused-parameter -I"$ROOT/lib" "$ROOT/tests/providers/faulty.c" -o faulty.so -lm
    ${CC:-gcc} -O1 -g -shared -fPIC "$ROOT/tests/providers/fake_opencl.c" -o fake.so -l:libOpenCL.so.1 || true
}

setup() {
    cd "$BATS_FILE_TMPDIR" || exit 1
    rm -f count
}

needs_device() {
    ort-run --provider opencl "$MODELS_DIR/digits.onnx" --random 1 -o y.npz || skip "no device of OpenCL here"
}

@test "OpenCL: nothing is copied between sessions, parts, errors; tiles of both kinds" {
    needs_device
    for device in opencl opencl:device=0 opencl:tiles=local; do
        works ./on_device "$device" "$FX"
        [[ $output =~ ^[0-9]+" checks, 0 failed"$ ]]
    done
    works ./on_device -t opencl "$FX"
}

@test "OpenCL: whatever is made goes, buffers of callers too" {
    needs_device
    [ -e fake.so ] || skip "no library of OpenCL to link with"
    export ORT_OPENCL_LIB=$PWD/fake.so FAKE_CL_COUNT=$PWD/count
    works ./on_device opencl "$FX"
    grep -q ", 0 open" count
    # A device that is lost gives a status and leaks nothing, whenever that is.
    local n all
    all=$(sed 's/ calls.*//' count)
    for ((n = 20; n < all - 80; n += all / 20)); do
        rm -f count
        run env FAKE_CL_FROM=$n ./on_device opencl "$FX"
        [[ $status -eq 1 || $status -eq 4 ]] || { echo "$n: $status $output"; return 1; }
        [[ $status -eq 4 || $output == *"CL_OUT_OF_RESOURCES"* || $output == *"OpenCL has no d"* ]] || { echo "$output"; return 1; }
        grep -q ", 0 open" count || { echo "$n: $(cat count)"; return 1; }
    done
}

@test "a provider of a library can do it, too; each of its calls fails in turn" {
    export FAULTY_COUNT=$PWD/count
    works ./on_device faulty "$FX" ./faulty.so
    [[ $output =~ " checks, 0 failed"$ ]]
    [ "$(cat count)" = "123 calls, 0 open" ] # of_faulty is of these calls
    works ./on_device -t faulty "$FX" ./faulty.so
    local n mode
    for ((n = 1; n <= 123; n++)); do
        for mode in FAULTY_AT FAULTY_FROM; do
            rm -f count
            run env $mode=$n FAULTY_QUIET=$((n % 3 == 0)) ./on_device faulty "$FX" ./faulty.so
            [ "$status" -eq "$(of_faulty $mode $n)" ] || { echo "$mode=$n: $status $output"; return 1; }
            if [ $n -eq 1 ]; then # the count is written when a device is closed
                [ ! -e count ]
            else
                grep -q ", 0 open" count || { echo "$mode=$n: $(cat count)"; return 1; }
            fi
        done
    done
}

@test "OpenCL of the tests: each of its calls fails in turn, and whoever called it says so" {
    [ -e fake.so ] || skip "no library of OpenCL to link with"
    export ORT_OPENCL_LIB=$PWD/fake.so FAKE_CL_OWN=1 FAKE_CL_COUNT=$PWD/count
    works ./on_device -n opencl "$FX"
    local n all mode
    all=$(sed 's/ calls.*//' count)
    for ((n = 1; n <= all; n++)); do
        for mode in FAKE_CL_AT FAKE_CL_FROM; do
            rm -f count
            run env $mode=$n ./on_device -n opencl "$FX"
            echo "$output" >log
            [ "$status" = "$(of_fault log)" ] || { echo "$mode=$n: $status $output"; return 1; }
            grep -q ", 0 open" count || { echo "$mode=$n: $(cat count)"; return 1; }
        done
    done
}

# OpenCL through a library of the tests (tests/providers/fake_opencl.c): every call fails in turn, the
# device is lost, says other limits.
load helper

net=$MODELS_DIR/digits.onnx

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    ${CC:-gcc} -O1 -g -shared -fPIC "$ROOT/tests/providers/fake_opencl.c" -o "$BATS_FILE_TMPDIR/fake.so" \
        -l:libOpenCL.so.1 || true
}

setup() {
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit 1
    ort-run --provider opencl --settings >/dev/null 2>&1 || skip "this build has no OpenCL"
    [ -e "$BATS_FILE_TMPDIR/fake.so" ] || skip "no library of OpenCL to link with"
    export ORT_OPENCL_LIB=$BATS_FILE_TMPDIR/fake.so FAKE_CL_COUNT=$PWD/count
}

# total: calls of a run that goes well
total() {
    ort-run --provider opencl:cost=off,cpu "$net" --random 1 -o y.npz
    sed 's/ calls.*//' count
}

@test "with a device of its own: every call fails in turn, nothing leaks, nothing is left" {
    export FAKE_CL_OWN=1
    local all n
    all=$(total)
    [ "$all" -ge 40 ]
    grep -q ", 0 open" count
    for n in $(seq "$all"); do
        for mode in FAKE_CL_AT FAKE_CL_FROM; do
            rm -f count y.npz
            run --separate-stderr env $mode="$n" ort-run --provider opencl:cost=off,cpu "$net" --random 1 -o y.npz
            [ "$status" -eq 0 ] || { echo "$mode=$n: $status $stderr"; return 1; }
            grep -q ", 0 open" count || { echo "$mode=$n leaks: $(cat count); $stderr"; return 1; }
        done
        rm -f y.npz
        run --separate-stderr env FAKE_CL_FROM="$n" ort-run --strict --provider opencl:cost=off,cpu "$net" \
            --random 1 -o y.npz
        # The last calls free what was made: the results are there.
        [ "$status" -eq 4 ] || [ "$n" -gt $((all - 5)) ] || { echo "strict, from $n: $status $stderr"; return 1; }
        [ "$status" -eq 0 ] || [ ! -e y.npz ]
    done
}

@test "with the device of the system: lost at some calls, the CPU gives its results" {
    ort-run --provider opencl "$net" --random 1 -o y.npz || skip "no device of OpenCL here"
    local all n
    ort-run "$net" --random 1 -o want.npz
    all=$(total)
    for n in $(seq 1 $((all / 12 + 1)) $((all - 5))); do
        rm -f y.npz
        run --separate-stderr env FAKE_CL_FROM="$n" ort-run --provider opencl:cost=off,cpu "$net" --random 1 -o y.npz
        [ "$status" -eq 0 ]
        [ "${#stderr_lines[@]}" -eq 1 ] || { echo "from $n: $stderr"; return 1; }
        [[ $stderr == *"is left out: "* || $stderr == *"; the session goes on on cpu"* ]] || { echo "$stderr"; return 1; }
        same y.npz want.npz
    done
}

@test "a device with less memory than the values take: the CPU, or exit 4" {
    export FAKE_CL_OWN=1 FAKE_CL_ALLOC=100
    run --separate-stderr ort-run --provider opencl:cost=off,cpu "$net" --random 1 -o y.npz
    [ "$status" -eq 0 ]
    [[ $stderr == *"; the session goes on on cpu"* ]]
    fails 4 "a buffer of tests has 100" ort-run --provider opencl:cost=off "$net" --random 1 -o z.npz
}

@test "extensions that the device of the tests says to have are listed" {
    export FAKE_CL_OWN=1 FAKE_CL_EXTRA="cl_khr_fp16 cl_khr_integer_dot_product"
    works ort-inspect --providers
    has "float16" "int8 dot products" "tests (gpu)"
    unset FAKE_CL_EXTRA
    works ort-inspect --providers
    [[ $output != *float16* ]]
}

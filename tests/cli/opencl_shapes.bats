# Shapes that change from run to run of one session on a device, and how much of its memory that takes.
load helper

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    ${CC:-gcc} -O1 -g -shared -fPIC "$ROOT/tests/providers/fake_opencl.c" -o "$BATS_FILE_TMPDIR/fake.so" \
        -l:libOpenCL.so.1 || true
    PYTHONPATH=$ROOT/tests/tools python3 - "$FX" <<'END'
import pathlib, sys
from fixtures import npy
for batch in (0, 1, 2, 3, 8, 40):
    count = batch * 4 * 32 * 32
    pathlib.Path(sys.argv[1], f"batch{batch}.npy").write_bytes(
        npy([(i * 37 % 101 - 50) / 16 for i in range(count)], (batch, 4, 32, 32)))
END
}

setup() {
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit 1
    ort-run --provider opencl --settings >/dev/null 2>&1 || skip "this build has no OpenCL"
}

# batches SIZE...: the files of one stream
batches() {
    files=()
    for size in "$@"; do
        files+=("$FX/batch$size.npy")
    done
}

@test "several shapes through one session, back and forth, an empty one and ever larger ones" {
    batches 1 8 2 8 1 0 3 0 40 1 40 8
    ort-run --stream --provider opencl "$FX/pools.onnx" "$FX/batch1.npy" -o y.npy || skip "no device of OpenCL here"
    run --separate-stderr ort-run --stream -v --provider opencl:cost=off,cpu "$FX/pools.onnx" "${files[@]}" -o there.json
    [ "$status" -eq 0 ]
    [[ $stderr == *"opencl: 10 nodes, cpu: 0, "* && $stderr != *"goes on on"* ]]
    ort-run --stream "$FX/pools.onnx" "${files[@]}" -o here.json
    [ -s here.json ]
    cmp here.json there.json # sums of a few sixteenths are exact
}

# most SIZE...: bytes of the device that the runs of one session took at most
most() {
    batches "$@"
    ort-run --stream --provider opencl:cost=off "$FX/pools.onnx" "${files[@]}" -o y.npy
    grep -q ", 0 open" count
    grep -q ", now 0" count
    sed 's/.*most \([0-9]*\) bytes.*/\1/' count
}

@test "values on the device share memory, plans are all that it takes, and it goes back" {
    [ -e "$BATS_FILE_TMPDIR/fake.so" ] || skip "no library of OpenCL to link with"
    export ORT_OPENCL_LIB=$BATS_FILE_TMPDIR/fake.so FAKE_CL_OWN=1 FAKE_CL_COUNT=$PWD/count
    local image=16384 room=8192 one eight
    one=$(most 1)
    eight=$(most 8)
    # Two values of the largest size live at a time, of ten in all; beside them stand results and small tables.
    [ "$one" -ge $((2 * image)) ] && [ "$one" -le $((2 * image + room)) ] || { echo "one: $one"; return 1; }
    [ "$eight" -ge $((16 * image)) ] && [ "$eight" -le $((16 * image + room)) ] || { echo "eight: $eight"; return 1; }
    # A session keeps the plan of each shape, and has each once.
    [ "$(most 1 1 1 1)" -eq "$one" ]
    local both
    both=$(most 1 8)
    [ "$both" -le $((one + eight)) ] || { echo "both: $both"; return 1; }
    [ "$(most 1 8 1 8 8 1)" -eq "$both" ]
}

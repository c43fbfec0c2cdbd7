# What ort-profile --tune-opencl measures of a device, and how sessions take it. Nothing here is timed: files of the
# tests say what was fastest. The device is that of PoCL, or that of tests/providers/fake_opencl.c.
load helper

net=$MODELS_DIR/digits.onnx

setup_file() {
    ${CC:-gcc} -O1 -g -shared -fPIC "$ROOT/tests/providers/fake_opencl.c" -o "$BATS_FILE_TMPDIR/fake.so" \
        -l:libOpenCL.so.1 || true
    if [ -x "$ROOT/build/venv/bin/python" ]; then
        "$ROOT/build/venv/bin/python" "$ROOT/tests/tools/make_divided.py" "$BATS_FILE_TMPDIR/nets"
    fi
}

setup() {
    mkdir -p "$BATS_TEST_TMPDIR/work/cache"
    cd "$BATS_TEST_TMPDIR/work" || exit 1
    ort-run --provider opencl --settings >/dev/null 2>&1 || skip "this build has no OpenCL"
    export ORT_CACHE=$PWD/cache
}

# The device of the tests, which computes nothing, but is fastest with tiles of 16 x 16, and its file with no shape in it.
fake() {
    [ -e "$BATS_FILE_TMPDIR/fake.so" ] || skip "no library of OpenCL to link with"
    large=$BATS_FILE_TMPDIR/nets/large.onnx
    [ -e "$large" ] || skip "no build/venv"
    export ORT_OPENCL_LIB=$BATS_FILE_TMPDIR/fake.so FAKE_CL_OWN=1 FAKE_CL_KIND=discrete FAKE_CL_FAST=16
    works ort-profile "$net" --tune-opencl --repeat 1
    file=$(ls cache/opencl-tuning-*.json)
    jq '.shapes = []' "$file" >good.json
}

# plant FILTER: the file, changed by jq
plant() {
    jq "$1" good.json >"$file"
}

# placed [OPTIONS]: how many nodes of a net that is worth moving the device gets
placed() {
    ort-inspect "$large" --partition --json --threads 2 --provider "opencl${1:-},cpu" | jq .providers[0].nodes
}

# ignored REASON: one line says so, and placement is that without a file
ignored() {
    run --separate-stderr ort-inspect "$large" --partition --json --threads 2 --provider opencl,cpu
    [ "$status" -eq 0 ]
    [ "${#stderr_lines[@]}" -eq 1 ] || { echo "$stderr"; return 1; }
    [[ $stderr == *"$file is ignored: $1"*"ort-profile --tune-opencl measures anew"* ]] || { echo "$stderr"; return 1; }
    [ "$(jq .providers[0].nodes <<<"$output")" -eq 12 ]
}

@test "no device: exit 4; no folder, no such provider: said at once, and nothing is written" {
    ORT_OPENCL_LIB=/nonexistent.so fails 4 "provider 'opencl': OpenCL" ort-profile "$net" --tune-opencl
    ORT_OPENCL_LIB=/nonexistent.so fails 4 "OpenCL" ort-profile "$net" --tune-opencl --provider opencl,cpu --json
    ORT_CACHE='' fails 2 "ORT_CACHE names" ort-profile "$net" --tune-opencl
    ORT_CACHE=$PWD/nowhere fails 5 "No such file" ort-profile "$net" --tune-opencl
    ORT_CACHE=$net fails 5 "Not a directory" ort-profile "$net" --tune-opencl
    fails 2 "doesn't name opencl" ort-profile "$net" --tune-opencl --provider cpu
    fails 2 "tuning=measure" ort-profile "$net" --tune-opencl --provider opencl:tiles=local
    fails 2 "tuning=fast" ort-run --provider opencl:tuning=fast "$net" --random 1 -o y.npz
    fails 2 "sweep" ort-profile "$net" --tune-opencl --sweep batch
    [ -z "$(ls cache)" ]
}

@test "tuning proves itself on the whole model: what is faster is kept, with by how much" {
    fake
    works ort-profile "$net" --tune-opencl --repeat 1 --json
    jq -e '.proof | .kept and .high < 1 and .low <= .ratio and .ratio <= .high and .pairs >= 12' <<<"$output"
    jq -e '.proof | .tuned_ms < .shipped_ms' <<<"$output"
    jq -e '(.shapes | length) > 0 and ([.shapes[].tiles == "local16"] | all)' "$file"
    works ort-profile "$net" --tune-opencl --repeat 1
    has "file      $PWD/$file" " tuned, " " as shipped: 0."
    [ "$(ls cache | grep -vc 'json$')" -eq 0 ]
}

@test "times of kernels that the whole model doesn't bear out are dropped: exit 1, the file of before stays" {
    fake
    cp good.json "$file"
    export FAKE_CL_LIES=1 FAKE_CL_FAST=32
    fails 1 "nothing is kept: tuned takes" ort-profile "$net" --tune-opencl --repeat 1
    cmp good.json "$file"
    rm "$file"
    run --separate-stderr ort-profile "$net" --tune-opencl --repeat 1 --json
    [ "$status" -eq 1 ]
    jq -e '.proof | (.kept | not) and .low > 1 and .tuned_ms > .shipped_ms' <<<"$output"
    [ -z "$(ls cache)" ]
}

@test "rates of the file decide on placement, the same in each session" {
    fake # what it measured depends on what else ran
    plant '.rates |= with_entries(.value = if .key == "launch" or .key == "copy" then 1e-6 else 1e12 end)'
    [ "$(placed)" -eq 12 ]
    plant '.rates.launch = 1 | .rates.copy = 1'
    [ "$(placed)" -eq 0 ]
    [ "$(placed)" -eq 0 ]
    [ "$(placed :tuning=off)" -eq 12 ]
    [ "$(placed :tiles=local)" -eq 12 ]
    run ort-inspect "$large" --partition -v --provider opencl,cpu
    [[ $output == *"opencl: tuned by $PWD/$file: 0 shapes, 0 of them not as usual"* ]]
    run ort-inspect "$large" --partition -v --provider opencl:tuning=off,cpu
    [[ $output != *tuned* ]]
}

@test "a file that is torn, or of another device, driver or kernels, is ignored with one line" {
    fake
    file=$PWD/$file
    for bytes in 1 100 $(($(wc -c <good.json) - 3)); do
        head -c "$bytes" good.json >"$file"
        ignored ""
    done
    : >"$file"
    ignored "it is empty"
    plant '.device = "another"'
    ignored "it is of another device"
    plant '.driver += " of before"'
    ignored "it is of another driver"
    plant '.kernels = "0123456789abcdef"'
    ignored "it is of other kernels"
    plant '.schema = "ort-opencl-tuning/2"'
    ignored "it isn't of the form ort-opencl-tuning/1"
    plant '.rates.copy = 0'
    ignored "it, line "
    local shape='.rates.launch = 1 | .shapes = [{shape: "gemm 1x1x1, batch 1", us: 1, usual_us: 1, macs: 1}
        + {tiles: "local", rows: 0}'
    for bad in '{tiles: "large"}' '{rows: 4}' '{tiles: "registers", rows: 1000}' '{tiles: "registers", rows: 5}' \
        '{shape: ""}' '{us: -1}' '{other: 1}'; do
        plant "$shape + $bad]"
        ignored "it, line " || { echo "$bad"; return 1; }
    done
    plant "$shape]"
    [ "$(placed)" -eq 0 ]
    # Measuring takes the place of what it can't use.
    echo torn >"$file"
    works ort-profile "$net" --tune-opencl --repeat 1
    jq -e '.schema == "ort-opencl-tuning/1"' "$file"
    [ -z "$(ls cache | grep -v 'json$\|bin$')" ]
}

@test "with the device of the system: the report is the file, and sessions run what it says" {
    ort-run --provider opencl:cost=off "$net" --random 1 -o y.npz || skip "no device of OpenCL here"
    # Whether it is kept, the machine decides; here files are what was measured.
    run --separate-stderr ort-profile "$net" --tune-opencl --repeat 2 --seconds 0.5 --json
    [ "$status" -le 1 ]
    [ "$(jq .proof.kept <<<"$output")" = "$([ "$status" -eq 0 ] && echo true || echo false)" ]
    jq -e '.schema == "ort-profile/1" and .tuning.schema == "ort-opencl-tuning/1"' <<<"$output"
    file=$(jq -r .tuning.file <<<"$output")
    [ "$status" -eq 1 ] || [ "$(jq -S .tuning <<<"$output" | jq -S 'del(.file)')" = "$(jq -S . "$file")" ]
    jq '.tuning | del(.file)' <<<"$output" >"$file"
    jq -e '(.shapes | length) == 3 and ([.shapes[] | .us > 0 and .us <= .usual_us] | all)' "$file"
    jq -e '.rates | .launch > 0 and .copy > 0 and .copy_bytes > 0 and .bytes > 0' "$file"
    cp "$file" copy.json
    run ort-profile "$net" --tune-opencl --repeat 1 --seconds 0.5
    [ "$status" -le 1 ]
    has "usual us" "gemm 1x512x48, batch 1, weight"
    mv copy.json "$file"
    ort-run --provider opencl:cost=off "$net" --random 1 -o first.npz
    ort-run --provider opencl:cost=off "$net" --random 1 -o second.npz
    cmp first.npz second.npz
    # Other forms: programs are built that sessions without the file don't have.
    mkdir plain
    ORT_CACHE=$PWD/plain ort-run --provider opencl:cost=off "$net" --random 1 -o plain.npz
    ls plain >a
    for form in local local16 local64; do
        mkdir planted
        jq ".shapes[] |= (.tiles = \"$form\" | .rows = 0)" "$file" >"planted/$(basename "$file")"
        for name in first second; do
            ORT_CACHE=$PWD/planted run ort-run -v --provider opencl:cost=off "$net" --random 1 -o $name.npz
            [ "$status" -eq 0 ]
            [[ $output == *"3 shapes, 3 of them not as usual"* ]] || [ $form = local ]
        done
        cmp first.npz second.npz
        ort-tensor first.npz --compare plain.npz --rtol 1e-4 --atol 1e-6
        ls planted >b
        comm -13 a b | grep -q '^opencl-gemm-' || [ $form = local ]
        comm -13 a b | grep -q '^opencl-conv-' || [ $form = local ]
        rm -r planted
    done
}

@test "a signal in the middle takes the folder of measurements along" {
    ort-profile "$net" --tune-opencl --seconds 100 >out 2>&1 &
    for _ in $(seq 400); do
        [ -z "$(ls cache)" ] || break
        sleep 0.05
    done
    [ -d cache/opencl-tuning-?????? ]
    kill -TERM $!
    wait $! || true # in this shell, whose child it is
    [ -z "$(ls cache)" ]
}

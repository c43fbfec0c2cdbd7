# Small files that ask for endless time or memory: every tool keeps to --timeout and --max-memory while
# it loads, checks, rewrites and runs, and to limits of its own without them.
load helper

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    export H=$BATS_FILE_TMPDIR/hostile
    python3 "$ROOT/tests/tools/hostile.py" "$H"
}

# held SECONDS MEGABYTES COMMAND...: it ends by itself within that time and peak memory. $status and
# $stderr are the command's.
held() {
    local seconds=$1 megabytes=$2
    shift 2
    run --separate-stderr python3 - "$seconds" "$megabytes" "$@" <<'END'
import os, resource, subprocess, sys, time
seconds, megabytes, command = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
begin = time.monotonic()
try:
    done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=seconds + 20)
except subprocess.TimeoutExpired:
    sys.exit("never ends")
took, peak = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
if took > seconds or peak > megabytes:
    sys.exit(f"took {took:.1f} s and {peak} MB")
sys.exit(done.returncode if done.returncode >= 0 else 99)
END
}

# ends STATUS PATTERN: of the command before.
ends() {
    if [ "$status" -ne "$1" ] || ! [[ $stderr =~ $2 ]]; then
        echo "status $status, wanted $1; stderr: $stderr"
        return 1
    fi
}

@test "--timeout stops a step that attributes make endless, with one thread and with four" {
    local threads
    for threads in 1 4; do
        held 4 100 ort-run "$H/roi.onnx" --random 1 -o y.npy --timeout 0.5 --threads $threads
        ends 4 "time limit of 0.5 s"
        [ ! -e y.npy ]
    done
}

@test "--timeout stops a long transform, an integer product and a sort from within" {
    local model
    for model in dft product unique; do
        held 3 700 ort-run "$H/$model.onnx" --random 1 -o y.npy --timeout 0.1 --threads 1
        ends 4 "time limit of 0.1 s"
        [ ! -e y.npy ]
    done
}

@test "--timeout stops what inference and folding compute ahead" {
    local model
    for model in roi_constant endless; do
        held 4 700 ort-run "$H/$model.onnx" --hash --timeout 0.5
        ends 4 "time limit of 0.5 s"
        held 6 700 ort-optimize "$H/$model.onnx" -o out.onnx --timeout 0.5
        ends 4 "time limit of 0.5 s"
        [ ! -e out.onnx ]
    done
    held 4 100 ort-inspect --check "$H/roi_constant.onnx" --timeout 0.5
    ends 4 "time limit of 0.5 s"
}

@test "without --timeout a check computes a bounded number of steps ahead" {
    held 20 100 ort-inspect --check "$H/roi_constant.onnx"
    ends 0 ""
}

@test "--max-memory holds for a constant Loop, folded or run" {
    held 10 164 ort-run "$H/doubling.onnx" --hash --max-memory 100M
    ends 4 "limit of a run is 104857600; raise the memory limit"
    held 10 228 ort-optimize "$H/doubling.onnx" -o out.onnx --max-memory 100M --no-verify
    ends 0 ""
}

@test "--max-memory counts what a Loop stacks" {
    held 10 164 ort-run "$H/scanned.onnx" --random 1 --hash --max-memory 100M
    ends 4 "limit of a run is 104857600"
    held 30 2000 ort-run "$H/scanned.onnx" --random 1 --hash --max-memory 1G
    ends 0 ""
}

@test "functions that call each other twice are expanded to a bounded number of nodes" {
    local tool
    for tool in "ort-run --random 1 --hash" "ort-inspect --check" "ort-optimize -o out.onnx"; do
        # shellcheck disable=SC2086
        held 10 300 $tool "$H/functions.onnx"
        ends 3 ""
    done
    held 10 164 ort-run "$H/functions.onnx" --random 1 --hash --max-memory 100M
    ends 4 "limit of loading a model is "
}

@test "loops within loops are inferred in a bounded number of steps" {
    held 30 1000 ort-inspect --check "$H/nested.onnx"
    held 10 164 ort-inspect --check "$H/nested.onnx" --max-memory 100M --timeout 3
    ends 4 "limit"
}

@test "200,000 attributes on one node are told in a few lines, at once" {
    held 10 300 ort-inspect --check "$H/many.onnx"
    ends 3 ""
    run ort-inspect --check "$H/many.onnx"
    has "and 199992 more attributes that Relu-14 doesn't have"
    [ "${#lines[@]}" -lt 20 ]
}

@test "60,000 nodes of a body that don't fit are told once each, in a second or two" {
    held 10 400 ort-inspect --check "$H/contradictions.onnx"
    ends 3 ""
    [ "$(ort-inspect --check "$H/contradictions.onnx" 2>&1 | grep -c 'inner dims differ')" -eq 60000 ]
}

@test "a table that a plan needs counts before it is made" {
    held 5 164 ort-run "$H/pool.onnx" --random 1 --hash --max-memory 100M
    ends 4 "needs 1342177[0-9]* bytes, .* limit of a run is 104857600"
}

@test "a --timeout that no clock reaches is none" {
    local seconds
    for seconds in 1e12 1e300; do
        works ort-run "$FX/add.onnx" "$FX/xy.npz" --hash --timeout $seconds
    done
}

# The first of its weights, 285 MB, is computed and packed ahead; then the second is left to the run.
@test "without --max-memory a small file whose nodes make large weights is loaded and run" {
    python3 -c 'print([[1.0] * 8448])' >row.json
    held 10 1000 ort-run "$H/made.onnx" row.json -o y.json
    ends 0 ""
    [ "$(tr -cs '0-9.' '\n' <y.json | grep -c '^8921088')" -eq 16 ]
    held 10 400 ort-run "$H/made.onnx" row.json --hash --max-memory 300M
    ends 4 "limit of loading a model is "
}

# Four of 12 MB; what a limit leaves no room for is left to the run.
@test "constants that folding makes count against --max-memory, each once" {
    held 10 140 ort-optimize "$H/constants.onnx" --max-growth 1G --no-verify --max-memory 20M -o three.onnx
    ends 0 ""
    [ "$(($(stat -c %s three.onnx) / 1000000))" -eq 36 ]
    held 10 140 ort-optimize "$H/constants.onnx" --max-growth 1G --no-verify --max-memory 40M -o four.onnx
    ends 0 ""
    [ "$(($(stat -c %s four.onnx) / 1000000))" -eq 48 ]
}

@test "--timeout holds while inputs are made up for a model that only runs tell the sizes of" {
    held 4 100 ort-run "$H/open_loop.onnx" --random 1 --hash --timeout 0.5
    ends 4 "time limit of 0.5 s"
    held 4 100 ort-profile "$H/open_loop.onnx" --timeout 0.5
    ends 4 "time limit of 0.5 s"
}

@test "--timeout stops a search for long runs of tokens" {
    held 3 100 ort-run "$H/needle.onnx" "$H/source.npy" "$H/tokens.npy" "$H/index.npy" --hash --timeout 0.3
    ends 4 "time limit of 0.3 s"
}

@test "--timeout and --max-memory leave a run alone that keeps to them" {
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 -o a.npy
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 -o b.npy --timeout 100 --max-memory 100M
    same a.npy b.npy
}

@test "ort-inspect --memory plans the session that --level and --disable make" {
    works ort-inspect --memory "$MODELS_DIR/digits.onnx" --level 0
    local plain=$output
    works ort-inspect --memory "$MODELS_DIR/digits.onnx"
    [ "$output" != "$plain" ]
    fails 2 "no pass is named 'nosuch'; ort-optimize --list-passes lists them" ort-inspect --memory \
        "$MODELS_DIR/digits.onnx" --disable nosuch
}

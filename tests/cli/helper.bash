# helper.bash - what the tests of the tools share. Each test runs in a scratch folder of its own; $FX
# holds the fixtures of tests/tools/fixtures.py, $ROOT the tree, $MODELS_DIR the bundled models.
bats_require_minimum_version 1.5.0

ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
MODELS_DIR=$ROOT/models
REAL=${MODELS:-$ROOT/../shared/models}
case $REAL in /*) ;; *) REAL=$ROOT/$REAL ;; esac
PATH=${ORT_BIN:-$ROOT/build/bin}:$PATH
export LC_ALL=C
unset ORT_THREADS ORT_PROVIDER ORT_PROVIDER_PATH ORT_ISA ORT_LOG ORT_CACHE

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
}

setup() {
    mkdir "$BATS_TEST_TMPDIR/work" # bats keeps files of its own beside it
    cd "$BATS_TEST_TMPDIR/work" || exit 1
}

# fails STATUS REGEX COMMAND...: the exit status, a first line of stderr that matches, which opens with
# the tool's name, nothing on stdout and no new file.
fails() {
    local want=$1 pattern=$2 before after
    shift 2
    before=$(ls -A)
    run --separate-stderr "$@"
    after=$(ls -A)
    local first=${stderr_lines[0]:-}
    if [ "$status" -ne "$want" ]; then
        echo "status $status, wanted $want; stderr: $stderr"
        return 1
    fi
    if ! [[ $first =~ $pattern ]]; then
        echo "first line '$first' does not match '$pattern'"
        return 1
    fi
    if [[ $first != ort-* ]] && [[ $1 == ort-* ]]; then
        echo "first line '$first' does not open with the tool's name"
        return 1
    fi
    if [ "$before" != "$after" ]; then
        echo "files after an error: $after"
        return 1
    fi
}

# works COMMAND...: exit status 0 and nothing on stderr.
works() {
    run --separate-stderr "$@"
    if [ "$status" -ne 0 ] || [ -n "$stderr" ]; then
        echo "status $status; stdout: $output; stderr: $stderr"
        return 1
    fi
}

# warns REGEX COMMAND...: exit status 0 and one line on stderr, which matches.
warns() {
    local pattern=$1
    shift
    run --separate-stderr "$@"
    if [ "$status" -ne 0 ] || [ "${#stderr_lines[@]}" -ne 1 ] || ! [[ $stderr =~ $pattern ]]; then
        echo "status $status; stdout: $output; stderr: $stderr"
        return 1
    fi
}

# has TEXT...: each occurs in $output.
has() {
    local text
    for text in "$@"; do
        if [[ $output != *"$text"* ]]; then
            echo "'$text' is not in: $output"
            return 1
        fi
    done
}

same() { # same A B: equal tensors, to the bit
    ort-tensor "$1" --compare "$2" --rtol 0 --atol 0
}

need_models() {
    if [ ! -d "$REAL" ]; then
        [ "${CI:-}" != true ] || return 1
        skip "no folder $REAL"
    fi
}

# Two models that ort-quantize wrote: equal in all but the metadata, whose stamp says how each was made.
alike() {
    python3 - "$1" "$2" <<'PY'
import sys
a, b = (open(p, "rb").read() for p in sys.argv[1:])
end = lambda d: d.index(b"ort.quantize.")
cut = lambda d: d[:d.rindex(b"r", 0, end(d))]
assert len(cut(a)) > 1000 and cut(a) == cut(b)
PY
}

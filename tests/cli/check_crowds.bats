# ort-inspect --check of models with a hundred thousand of one thing: its time grows with their number.
load helper

setup_file() {
    export CROWDS=$BATS_FILE_TMPDIR/crowds
    python3 "$ROOT/tests/tools/check_crowds.py" "$CROWDS"
}

checked() { # checked MODEL STATUS REGEX, before anybody gives up
    run --separate-stderr timeout 60 ort-inspect --check "$CROWDS/$1.onnx"
    [ "$status" -eq "$2" ] && [[ $output$stderr =~ $3 ]] && return
    echo "status $status, wanted $2 and '$3': ${output:0:400}$stderr"
    return 1
}

@test "a tensor with 100,000 keys of external data is checked" { checked keys 3 "has no location"; }

@test "a function with 100,000 inputs and outputs is checked" { checked slots 0 "no problems"; }

@test "100,000 references to 100,000 attributes are checked" { checked references 0 "no problems"; }

@test "a function that imports 100,000 opsets is refused" {
    checked imports 3 "function 'F': imports 100000 opsets, 1000 at most"
}

@test "100,000 functions are checked" { checked functions 0 "no problems"; }

@test "100,000 calls of the last of 100,000 overloads are checked" {
    checked overloads 0 "no problems"
}

@test "100,000 unknown operators are all named, the first with what is near" {
    checked unknown 3 "unknown operator Relu0 .*did you mean Relu of"
    [ "$(grep -c 'unknown operator' <<<"$output")" -eq 100000 ]
}

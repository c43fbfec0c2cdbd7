# Folders test_data_set_N: optional values and sequences in them, and sets that need no input.
load helper

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    python3 "$ROOT/tests/tools/optional_sets.py" "$BATS_FILE_TMPDIR/sets"
}

# passes NAME: the outputs of its set are compared, and another record of outputs fails.
passes() {
    local at=$BATS_FILE_TMPDIR/sets/$1
    works ort-run "$at/model.onnx" -i "$at/test_data_set_0" --expect "$at/test_data_set_0"
    [[ $output == "ok "*out* ]] || { echo "$1: $output"; return 1; }
}

# differs NAME OTHER: what OTHER expects is not what NAME gives.
differs() {
    local sets=$BATS_FILE_TMPDIR/sets
    run ort-run "$sets/$1/model.onnx" -i "$sets/$1/test_data_set_0" --expect "$sets/$2/test_data_set_0"
    [ "$status" -eq 1 ] || { echo "$1 beside $2: status $status: $output"; return 1; }
}

@test "an If that gives an optional sequence, with a value or without one, is checked by its set" {
    passes if_some
    passes if_none
    differs if_some if_none
    differs if_none if_some
}

@test "a Loop that is handed an absent sequence is fed and checked by its set" {
    passes loop_none
    differs loop_none get_sequence
}

@test "optional inputs of a set are tensors, sequences or absent, as the file says" {
    passes get_tensor
    passes get_sequence
    differs get_sequence get_tensor
    passes has_optional
    passes has_none
    passes has_tensor
    differs has_optional has_none
    differs has_none has_tensor
}

@test "expected bfloat16 may differ by its two last places, or by what --rtol says" {
    works ort-tensor "$FX/x.npy" "$FX/x.npy" --stack -o stacked.npy
    works ort-tensor stacked.npy --reshape 4x3 -o both.npy
    works ort-tensor both.npy --scale 1.0078125 --cast bfloat16 --name brief -o near.npz # one place
    works ort-tensor both.npy --scale 1.03 --cast bfloat16 --name brief -o far.npz
    works ort-run "$FX/list.onnx" "$FX/x.npy" --outputs brief --expect near.npz
    has "rtol 0.015625"
    run ort-run "$FX/list.onnx" "$FX/x.npy" --outputs brief --expect far.npz
    [ "$status" -eq 1 ]
    run ort-run "$FX/list.onnx" "$FX/x.npy" --outputs brief --expect near.npz --rtol 1e-3
    [ "$status" -eq 1 ]
    works ort-tensor both.npy --scale 1.0078125 --name out -o near.npz # of floats nothing changed
    run ort-run "$FX/list.onnx" "$FX/x.npy" --outputs out --expect near.npz
    [ "$status" -eq 1 ]
}

@test "a model without inputs has an honest set without input files" {
    passes no_inputs
    differs no_inputs get_tensor
    local set=$BATS_FILE_TMPDIR/sets/no_inputs/test_data_set_0
    mkdir hollow
    fails 5 "holds no expected output|no output" ort-run "$set/../model.onnx" -i "$set" --expect hollow
    # a model that wants one is not satisfied
    fails 5 "holds no tensor \(input_0.pb, ...\)" ort-run "$FX/chain.onnx" -i "$set" --expect "$set"
}

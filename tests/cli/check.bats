# ort-inspect --check says what onnx.checker or onnxruntime refuse, also of models that run here.
load helper

setup_file() {
    export CX=$BATS_FILE_TMPDIR/cx
    python3 "$ROOT/tests/tools/check_fixtures.py" "$CX"
}

invalid() { # invalid MODEL REGEX: an error of the check, with its place
    run --separate-stderr ort-inspect --check "$CX/$1.onnx"
    [ "$status" -eq 3 ] && [[ $output$stderr =~ error:.*$2|$1\.onnx:.*$2 ]] && return
    echo "status $status, wanted 3 and '$2': $output$stderr"
    return 1
}

warned() { # warned MODEL REGEX: it passes with a warning
    run --separate-stderr ort-inspect --check "$CX/$1.onnx"
    [ "$status" -eq 0 ] && [[ $output =~ warning:.*$2 ]] && return
    echo "status $status, wanted 0 and '$2': $output$stderr"
    return 1
}

@test "the models with one fault each are sound without it" {
    for name in good tree empty_text parts fill window holes ensemble labels kernel; do
        works ort-inspect --check "$CX/$name.onnx"
        has "no problems found"
    done
}

@test "external data that was deleted is an error of --check, from a file and from a pipe" {
    invalid absent "'w'.*gone\.bin.*can't be opened"
    run sh -c "ort-inspect --check - <$CX/absent.onnx"
    [ "$status" -eq 3 ]
}

@test "raw_data beside float_data is an error: which of them counts isn't said" {
    invalid two_fields "'w' holds float_data and raw_data"
}

@test "a graph without a name is a warning" { warned nameless "the graph has no name"; }

@test "a graph input of element type 0 is an error" {
    invalid untyped_input "graph input 'x': the element type is 0"
}

@test "an attribute without a type is an error that says what its value is" {
    invalid attribute_type "'soft' \(Softmax\): attribute 'axis' has no type.*int"
}

@test "an attribute of two values is an error" {
    invalid attribute_twofold "'soft' \(Softmax\): attribute 'axis' holds several values"
}

@test "a negative declared dimension is a warning that says how it is read" {
    warned negative_dim "graph input 'x': dimension 0 is declared -3: read as unknown"
}

@test "nodes out of order are a warning in the main graph, which every runtime sorts" {
    warned unsorted "1 stand too early, the first is 'late' \(Neg\), whose input 'v'"
}

@test "nodes out of order are an error in a body" {
    invalid body_order "in a body of node 'choice' \(If\): the nodes are not in the order"
}

@test "a node of a domain that isn't imported is a warning: it runs" {
    warned unimported "no opset of domain 'com.microsoft' but uses it"
}

@test "forests whose targets, children or modes don't fit are errors" {
    invalid tree_target "'forest'.*target 7 of 1"
    invalid tree_child "'forest'.*a child that isn't there"
    invalid tree_mode "'forest'.*nodes_modes holds 'BRANCH_SIDEWAYS'"
    invalid tree_cycle "'forest'.*no tree has a root|'forest'.*reached from no root"
}

@test "a newer IR or opset is an error, as a run refuses it" {
    invalid new_ir "IR version 99 is newer than 14"
    invalid new_opset "opset 99 of 'ai.onnx' is newer than"
}

@test "an initializer that IR 3 wants among the inputs is a warning, one that doesn't fit an error" {
    warned old_ir "1 initializers, the last of them 'w', are no graph inputs"
    invalid initializer_fit "initializer 'w'.*(another type or shape|doesn't fit)"
}

@test "a body that gives a value of the graph around it is an error" {
    invalid outer_output "in a body of node 'choice' \(If\): graph output 'x' is a value of the graph"
}

@test "functions are judged before they are called" {
    invalid function_imports "function 'Twice': the function imports no opset of domain 'ai.onnx'"
    invalid function_reference "function 'Twice'.*attribute 'axis' refers to 'missing'"
    invalid function_outputs "node 'call' \(Twice\).*1 outputs, its function 1 and 0"
}

@test "a declared shape that is contradicted is a warning, since runtimes go by what is computed" {
    warned wrong_rank "output 'y' is declared float\[1,2\] but computes to float\[2\]"
}

@test "published models pass --check" {
    need_models
    local model
    for model in "$REAL"/*/model.onnx; do
        run ort-inspect --check "$model"
        [ "$status" -eq 0 ] || { echo "$model: $output"; return 1; }
    done
}

@test "what a node needs and doesn't get is an error" {
    invalid no_parts "'Split' \(Split\): neither input split nor attribute num_outputs is given"
    invalid no_labels "neither classlabels_int64s nor classlabels_strings is given"
    invalid kernel_params "kernel_params has 1 elements"
    invalid empty_constant "in a body of node 'choice'|\(Constant\): exactly one readable value"
}

@test "a list where a number is wanted, and a number where a list is, are errors" {
    invalid fill_scalar "'ConstantOfShape'.*input 0 is .*needs rank 1"
    invalid window_list "'HannWindow'.*input 0 is .*needs rank 0"
    invalid reshape "'Reshape'.*input 1 is .*needs rank 1"
    invalid resize "'Resize'.*input 3 is .*needs rank 1"
    invalid dropout "'Dropout'.*input 1 is .*needs rank 0"
}

@test "inputs left out at the end count where there are too many, and in lists" {
    invalid too_many_holes "'Clip'.*has 4 inputs, Clip-13 takes at most 3"
    invalid list_hole "'Concat'.*input 1 .*is left out: a list has no holes"
}

@test "auto_pad with a NUL byte is an error: no other runtime takes it" {
    invalid auto_pad "attribute 'auto_pad' holds a NUL byte"
}

@test "what contradicts the shapes or the values that an operator lists is an error" {
    invalid spectrum "onesided wants a real signal"
    invalid cache "dim 3 of the update is 5, of the cache 3"
    invalid boxes "center_point_box is 7"
}

@test "a tree of TreeEnsemble that leads back to itself and a list of another length are errors" {
    invalid ensemble_loop "node 0 has two parents, or is reached from itself"
    invalid ensemble_tracks "nodes_missing_value_tracks_true has 2 elements for 1 nodes"
}

@test "operators that ONNX had on trial, has later or took back are warnings: they run" {
    warned early_norm "LayerNormalization is no operator of opset 16 of 'ai.onnx'"
    warned group_norm "GroupNormalization is no operator of opset 18 of 'ai.onnx'"
    warned affine "Affine is no operator of opset 9 of 'ai.onnx'"
}

@test "a function's opset twice is a warning, with two versions an error" {
    warned function_twice "function 'Twice': opset 'ai.onnx' is imported twice"
    invalid function_versions "function 'Twice': opset 'ai.onnx' is imported twice"
}

@test "external data without a location is an error" {
    invalid no_location "'w'.*(no location|location)"
}

@test "an operator whose trial is over, and normalizations in groups that don't fit, are errors" {
    invalid affine_late "Affine is no operator of opset 10 .*no other runtime runs it"
    invalid groups "num_groups is 3, which doesn't divide the channels"
    invalid group_scale "'GroupNormalization'.*input 1 has 2 elements, needs 1"
}

@test "lists of an operator that have another length than what they belong to are errors" {
    invalid fold "dilations has 3 numbers, needs 2 for images of 2 axes"
    invalid slice_axes "axes has 1 numbers, starts and ends have 2"
    invalid split_none "split is empty"
    invalid ensemble_no_tracks "nodes_missing_value_tracks_true has 0 elements for 1 nodes"
}

@test "an axis named twice, a negative size and past rows of other heads are errors" {
    invalid axis_twice "axis 3 occurs twice in axes"
    invalid rotary "rotary_embedding_dim is negative"
    invalid past "input 5 has 12 as its number of heads, what is appended to it 3"
}

@test "a regular expression that isn't UTF-8 is an error" { invalid pattern "isn't UTF-8 at byte 1"; }

@test "a value inside of the graph whose element type is 0 is a warning: peers run some such" {
    warned untyped_inside "value 'v': the element type is 0"
}

@test "a ceil_mode of 2 is a warning" { warned ceil "attribute 'ceil_mode' is 2: read as 1"; }

@test "a storage_order of 2 is a warning" {
    warned storage "attribute 'storage_order' is 2: read as 1"
}

@test "FeatureVectorizer takes all behind the first dim of a tensor for the features of a row" {
    works ort-inspect --check "$CX/features.onnx"
    echo '[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]' >"$BATS_TEST_TMPDIR/x.json"
    ort-tensor --dtype float32 "$BATS_TEST_TMPDIR/x.json" -o "$BATS_TEST_TMPDIR/x.npy"
    ort-run "$CX/features.onnx" "$BATS_TEST_TMPDIR/x.npy" -o "$BATS_TEST_TMPDIR/y.npy"
    run ort-tensor "$BATS_TEST_TMPDIR/y.npy" --plain --format json -o -
    [ "$(tr -d ' \n' <<<"$output")" = '[[1,2,3],[5,6,7]]' ]
}

@test "a Conv of constants of two types is an error, and nothing computes it ahead" {
    invalid two_types "input 1 \(W\) is int32.*Conv-11 takes f16"
    fails 3 "input 1 .W. is int32" ort-run "$CX/two_types.onnx" -o "$BATS_TEST_TMPDIR/y.npy"
}

@test "an output that an operator always has can't be left out before others" {
    invalid first_left_out "'TopK'.*output 0 \(Values\) is required, but left out"
}

@test "scales and sizes of a Resize together, and strides or dilations below 1, are errors" {
    invalid both_sizes "'Resize'.*exactly one of scales and sizes is needed"
    invalid stride "'Col2Im'.*strides\[1\] is -1, needs 1 or more"
    invalid dilation "'Col2Im'.*dilations\[0\] is 0, needs 1 or more"
}

@test "a list of more sizes than there are axes is an error, however long it is" {
    invalid crop "'CenterCropPad'.*shape has 1000 elements, 2 axes are named"
}

@test "an empty split that is constant is an error, also of no elements; one that a run gives is none" {
    invalid split_nothing "'cut'.*split is empty"
    works ort-inspect --check "$CX/split_of_run.onnx"
}

@test "a kernel_shape that isn't that of a ConvTranspose's weight is an error" {
    invalid window_of_weight "'ConvTranspose'.*kernel_shape says 5 along axis 2, the weight 3"
}

@test "integers divided by a constant 0 are a warning" {
    warned divisor "'Div'.*input 1 \(B\) holds 0"
    warned modulus "'Mod'.*input 1 \(B\) holds 0"
    works ort-inspect --check "$CX/divisible.onnx"
    has "no problems found"
}

@test "an axis of DequantizeLinear before opset 13, as onnxruntime's quantizer writes, is a warning" {
    warned early_axis "axis.* came with DequantizeLinear-13 \(opset 11 here\)"
}

@test "an axis of Unsqueeze counted from the end is a warning before opset 11" {
    warned axis_of_end "axes\[0\] is -1: counted from the end, which Unsqueeze-1 doesn't offer"
    works ort-inspect --check "$CX/axis_of_end_later.onnx"
    has "no problems found"
}

@test "a graph output that is listed twice, with two types, is an error that says so" {
    invalid twice_output "'y' is defined twice: two graph outputs of different types have this name"
    works ort-inspect --check "$CX/twice_output_shape.onnx"
}

@test "a list for the limit of a Range is an error among constants, a note where it is computed" {
    works ort-inspect --check "$CX/range_computed.onnx"
    has "note: node 'span' (Range): input 1 has rank 1, Range-11 takes scalars"
    works ort-inspect --check "$CX/range_given.onnx"
    has "no problems found"
    invalid range_stated "'span' \(Range\): input 1 has rank 1, Range-11 takes scalars"
}

@test "a LinearClassifier without intercepts is a warning" {
    warned no_intercepts "'LinearClassifier'.*there are no intercepts"
    works ort-inspect --check "$CX/intercepts.onnx"
    has "no problems found"
}

@test "a Constant of a function whose opset hasn't its type is an error" {
    invalid function_constant "\(Constant\): its element type came after Constant-1"
}

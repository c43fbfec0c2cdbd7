# Values and files that mean harm: no crash, no reading past an end, the right exit status, in words.
load helper

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx HX=$BATS_FILE_TMPDIR/hostile
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    python3 "$ROOT/tests/tools/hostile_models.py" "$HX"
}

prints() { # prints COMMAND...: it works, and what it writes is in $output as text
    "$@" -o out.npz
    works ort-tensor out.npz --print
}

@test "a perm that is no permutation is refused by every tool, whatever the rank" {
    local name
    for name in huge past doubled negative long; do
        fails 3 "transpose_$name\.onnx: node .*Transpose.*perm" \
            ort-run "$HX/transpose_$name.onnx" -i "x=$HX/x.npy" -o y.npy
        fails 3 "perm" ort-optimize "$HX/transpose_$name.onnx" -o o.onnx
        run ort-inspect "$HX/transpose_$name.onnx" --check
        [ "$status" -eq 3 ]
        has "perm"
    done
}

@test "a first input that is left out is no constant" {
    prints ort-run "$HX/loop_without_count.onnx"
    has 4
    prints ort-run "$HX/optional_of_nothing.onnx"
    ort-optimize -q "$HX/loop_without_count.onnx" -o o.onnx
    prints ort-run o.onnx
    has 4
}

@test "an input that is one number and has none is refused where its shape is known" {
    local file
    for file in "$HX"/none_*_known.onnx; do
        case $file in *if_known*) continue ;; esac # its condition is computed
        fails 3 "one number is needed|needs 1|no finite range" ort-run "$file" -o y.npz
        run ort-inspect "$file" --check
        [ "$status" -eq 3 ]
    done
}

@test "an input that is one number and has none is refused when a run gets it" {
    local file name options=(-i e="$HX/none.npy" -i e_f="$HX/none_f.npy" -i e_z="$HX/none_z.npy"
        -i five="$HX/five.npy" -i scale="$HX/one.npy")
    for file in "$HX"/none_*_run.onnx; do
        name=$(basename "$file")
        options=()
        case $name in
        none_mel*) options=(-i five="$HX/five.npy" -i scale="$HX/one.npy" -i e_f="$HX/none_f.npy") ;;
        none_range*) options=(-i five="$HX/five.npy" -i e="$HX/none.npy") ;;
        none_onehot*) options=(-i five="$HX/five.npy" -i e="$HX/none.npy") ;;
        none_qconv*) options=(-i scale="$HX/one.npy" -i e_z="$HX/none_z.npy") ;;
        none_clip* | none_dropout*) options=(-i e_f="$HX/none_f.npy") ;;
        *) options=(-i e="$HX/none.npy") ;;
        esac
        run --separate-stderr ort-run "$file" "${options[@]}" --hash
        echo "$name: $status $stderr"
        [ "$status" -eq 4 ] || [ "$status" -eq 5 ]
        [[ $stderr == *"one number is needed"* || $stderr == *"needs 1"* ]]
    done
}

@test "attributes at the end of their range are refused or used, never overflow" {
    local file name
    fails 3 "ngram_indexes" ort-run "$HX/tfidf_index.onnx" -i "x=$HX/tokens.npy" -o y.npy
    prints ort-run "$HX/tfidf_skips.onnx" -i "x=$HX/tokens.npy"
    for name in dense varlen; do
        fails 3 "max_ngram_size is -9223372036854775808, needs 2 to 64" \
            ort-run "$HX/ngram_$name.onnx" --random 1 --hash
        run ort-inspect "$HX/ngram_$name.onnx" --check
        [ "$status" -eq 3 ]
        has "max_ngram_size is -9223372036854775808"
    done
    works ort-run "$HX/shape_end.onnx" -i "x=$HX/x.npy" --hash
    ort-inspect "$HX/conv_group.onnx" --svg >picture.svg
    fails 4 "can't be determined" timeout 10 ort-run "$HX/conv_group_empty.onnx" -i "x=$HX/no_channels.npy"
    for name in beyond wrapped; do
        fails 3 "attribute axis is [0-9]+, the first input has rank 2" \
            ort-run "$HX/axis_$name.onnx" --random 1 --hash
    done
    works ort-run "$HX/pool_enough.onnx" --random 1 -o y.npy
    timeout 10 ort-run "$HX/pool_wide.onnx" --random 1 --max-memory 100M --expect y.npy
    prints ort-run "$HX/unfold_step.onnx" -i 'x=[[1,2,3],[4,5,6]]'
    fails 3 "num_heads is -9223372036854775808" ort-run "$HX/masked_heads.onnx" --random 1 --hash
    fails 3 "output_shape has -9223372036854775808" ort-run "$HX/conv_shape.onnx" --random 1 --hash
    fails 3 "channels" ort-run "$HX/reorder_channels.onnx" --random 1 --hash
    prints ort-run "$HX/dynamic_range.onnx" -i 'x=["-inf",1]'
    has 255
    fails 3 "qk_matmul_output_mode is 4294967296, needs 0 to 3" ort-run "$HX/attention_mode.onnx" --random 1 --hash
    works ort-run "$HX/attention_no_keys.onnx" --hash
    for file in "$HX"/unaligned*.onnx; do
        prints ort-run "$file"
        has 1
    done
}

@test "an initializer or external data that can't be is the model's fault" {
    local name
    for name in dims_negative dims_huge sparse_huge data_is_folder; do
        fails 3 "$name\.onnx" ort-run "$HX/$name.onnx" -o y.npy
    done
}

@test "values and shapes that don't fit an inner node aren't the model's fault" {
    fails 5 "input shapes don't fit.*MatMul" ort-run "$HX/inner_shape.onnx" -i "x=$HX/wide.npy" -o y.npy
    fails 4 "Reshape.*values don't fit" ort-run "$HX/inner_value.onnx" -i "x=$HX/four.npy" \
        -i "to=$HX/three.npy" -o y.npy
}

@test "what is wrong with a tensor file is neither a model's fault nor a lack of memory" {
    local name
    for name in record.npy version.npy claims.npy claims_more.npy method.wav depth.bmp \
        kind.safetensors shape_twice.npy; do
        fails 5 "$name" ort-tensor "$HX/$name" --print
    done
}

@test "a model may not be written over weights of the model that is read" {
    ort-optimize -q "$MODELS_DIR/digits.onnx" -o e.onnx --external-data
    ort-run e.onnx --random 1 --hash >before
    fails 2 "e\.onnx\.data.*holds weights" ort-optimize e.onnx -o e.onnx.data
    ort-run e.onnx --random 1 --hash >after
    cmp before after
    ort-optimize -q e.onnx -o e.onnx # the model itself may be replaced
    ort-run e.onnx --random 1 --hash >after
    cmp before after
}

@test "writing to a link whose target doesn't exist yet makes the target" {
    mkdir deep
    ln -s deep/there.npy link.npy
    ort-tensor "$HX/x.npy" -o link.npy
    [ -L link.npy ]
    same "$HX/x.npy" deep/there.npy
    ln -s b a
    ln -s a b
    fails 5 "a: can't write" ort-tensor "$HX/x.npy" --format npy -o a
}

@test "a fixed size that the model can't have is a wrong option" {
    fails 2 "other sizes than the model's were given: node 'hidden'" \
        ort-run "$MODELS_DIR/digits.onnx" --random 1 --shape image:1x1x20x20 -o y.npy
    fails 2 "other sizes than the model's" \
        ort-optimize "$MODELS_DIR/digits.onnx" --shape image:1x1x20x20 -o o.onnx
}

@test "what an operation of ort-tensor can't do is said of the tensor, not of a node" {
    fails 5 "^ort-tensor: --slice 9999: the value is float \[2x3\], needs an index that exists" \
        ort-tensor "$HX/x.npy" --slice 9999 -o y.npy
    fails 5 "^ort-tensor: --slice 0,0,9223372036854775807: " \
        ort-tensor "$HX/x.npy" --slice 0,0,9223372036854775807 -o y.npy
    fails 5 "^ort-tensor: --reshape 7: the value is float \[2x3\], needs a shape of as many" \
        ort-tensor "$HX/x.npy" --reshape 7 -o y.npy
    fails 5 "^ort-tensor: --reshape 2x-1x-1: the value is" ort-tensor "$HX/x.npy" --reshape 2x-1x-1 -o y.npy
    fails 5 "^ort-tensor: --transpose 0,1,2: the value is float \[2x3\], needs each of its axes once" \
        ort-tensor "$HX/x.npy" --transpose 0,1,2 -o y.npy
    fails 5 "^ort-tensor: --transpose 1,1: " ort-tensor "$HX/x.npy" --transpose 1,1 -o y.npy
    fails 5 "^ort-tensor: --unsqueeze 9: the value is float \[2x3\], needs axes of the result" \
        ort-tensor "$HX/x.npy" --unsqueeze 9 -o y.npy
    fails 5 "^ort-tensor: --unsqueeze 0,0: " ort-tensor "$HX/x.npy" --unsqueeze 0,0 -o y.npy
    works ort-tensor "$HX/x.npy" --transpose 1,0 --reshape 3x-1 --unsqueeze 0 --slice 0,-1 --print
    has "float 2 "
}

@test "an operator library that was cut off is refused, not loaded" {
    local bytes
    for bytes in 1 64 100 4096 9000; do
        head -c $bytes "$ROOT/build/lib/example_ops.so" >cut.so
        fails 5 "cut\.so" ort-run "$MODELS_DIR/digits.onnx" --random 1 --ops-lib ./cut.so -o y.npy
    done
}

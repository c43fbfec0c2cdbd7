# ort-optimize: what changes the form of a model: axes, documentation, where weights lie.
load helper

@test "--strip keeps results, inputs and outputs; names and docs are gone" {
    works ort-optimize "$MODELS_DIR/digits.onnx" -q --strip docs,names,unused -o bare.onnx
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --compare bare.onnx --rtol 0
    [ "$(stat -c %s bare.onnx)" -le "$(stat -c %s "$MODELS_DIR/digits.onnx")" ]
    works ort-optimize bare.onnx -q --strip docs,names,unused -o again.onnx
    cmp bare.onnx again.onnx
    fails 2 "none of docs, names, unused" ort-optimize bare.onnx --strip comments -o out.onnx
}

@test "--strip unused drops initializers that nothing reads" {
    works ort-optimize "$FX/unread.onnx" --level 0 -q -o kept.onnx
    works ort-optimize "$FX/unread.onnx" --level 0 --strip unused -q -o dropped.onnx
    run ort-inspect kept.onnx --initializers
    has lonely
    run ort-inspect dropped.onnx --initializers
    [[ $output != *lonely* ]]
    has w
}

@test "--external-data puts weights beside the model, --inline brings them back" {
    works ort-optimize "$MODELS_DIR/digits.onnx" -q --external-data -o out.onnx
    [ -s out.onnx.data ]
    works ort-optimize "$MODELS_DIR/digits.onnx" -q --external-data=w.bin -o named.onnx
    [ -s w.bin ] && cmp w.bin out.onnx.data
    works ort-optimize out.onnx -q --inline -o whole.onnx
    rm out.onnx.data
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --compare whole.onnx --rtol 0
    fails 2 "exclude each other" ort-optimize whole.onnx --inline --external-data -o x.onnx
    fails 2 "needs -o FILE" ort-optimize whole.onnx --external-data
    fails 2 "without folders" ort-optimize whole.onnx --external-data=a/b -o x.onnx
}

@test "--make-dynamic opens an axis and checks it at two sizes" {
    works ort-optimize "$MODELS_DIR/digits.onnx" -q --dim batch=3 -o fixed.onnx
    works ort-optimize fixed.onnx --make-dynamic image=N -o open.onnx
    has "verified: 3 runs agree, of 2 sizes"
    run ort-inspect open.onnx
    has "float[N,1,8,8]" "float[N,10]"
    works ort-run open.onnx --random 1 --dim N=7 -o seven.npy
    works ort-optimize "$FX/reshape.onnx" --make-dynamic x -o reshaped.onnx
    has "verified: 3 runs agree, of 2 sizes"
    works ort-run reshaped.onnx --random 1 --dim batch=5 -o five.npy
    works ort-optimize "$FX/batch.onnx" --make-dynamic x:1=columns # beside an open one
    has "verified: 4 runs agree, of 3 sizes"
    works ort-optimize "$FX/rows_of_8.onnx" --make-dynamic x:1=columns
    has "verified: 4 runs agree, of 3 sizes"
}

@test "--make-dynamic refuses what does not run at another size" {
    run --separate-stderr ort-optimize "$FX/weight.onnx" --make-dynamic x -o out.onnx
    [ "$status" -ne 0 ] && [ ! -e out.onnx ]
    fails 1 "at twice the size the model doesn't run" \
        ort-optimize "$FX/half_open.onnx" --make-dynamic x:1 -o out.onnx
    printf '\x93NUMPY\x01\x00\x46\x00%-69s\n%s' \
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }" 12345678 >x.npy
    fails 1 "at twice the size the model doesn't run" \
        ort-optimize "$FX/half_open.onnx" --make-dynamic x:1 -i x.npy -o out.onnx
    fails 2 "has no axis 5" ort-optimize "$FX/weight.onnx" --make-dynamic x:5 -o out.onnx
    fails 2 "has no input 'nope'" ort-optimize "$FX/weight.onnx" --make-dynamic nope -o out.onnx
}

@test "--fp16 halves the weights, keeps inputs and outputs, and is verified" {
    works ort-optimize "$MODELS_DIR/digits.onnx" --fp16 -o half.onnx
    has "verified: "
    [ $(($(stat -c %s half.onnx) * 10)) -lt $(($(stat -c %s "$MODELS_DIR/digits.onnx") * 6)) ]
    run ort-inspect half.onnx
    has "float[batch,1,8,8]" "float[batch,10]" "Cast 2"
    works ort-optimize half.onnx --fp16 -q -o again.onnx
    cmp half.onnx again.onnx
    run --separate-stderr ort-optimize "$MODELS_DIR/digits.onnx" --fp16 --keep-float Gemm -v
    [[ $stderr == *"(Gemm) stays float: kept in float"* ]]
    works ort-optimize "$MODELS_DIR/digits.onnx" --bf16 -q -o brain.onnx
    fails 2 "exclude each other" ort-optimize half.onnx --fp16 --bf16
    fails 2 "needs --fp16 or --bf16" ort-optimize half.onnx --keep-float Gemm
}

@test "--fp16 names what leaves the range and keeps it float" {
    run --separate-stderr ort-optimize "$FX/large.onnx" --fp16 -o out.onnx -v
    [ "$status" -eq 0 ]
    [[ $stderr == *"value 'big' reaches "*"beyond 65504"* ]]
    [[ $stderr == *"'div_out' (Div) stays float: constant 'huge' holds 100000, beyond 65504"* ]]
}

@test "--bf16 keeps the lowest float, which would be infinite" {
    run --separate-stderr ort-optimize "$FX/lowest.onnx" --bf16 --passes identity -o out.onnx -v
    [ "$status" -eq 0 ]
    [[ $stderr == *"(Mul) stays float: constant 'lowest' holds 3.40282e+38, beyond 3.38953e+38"* ]]
}

@test "what a body captures keeps its name in the file when nodes are merged" {
    works ort-optimize "$FX/captured.onnx" -q -o merged.onnx
    works ort-inspect merged.onnx --check
    run ort-inspect merged.onnx
    has "Neg 1"
    works ort-run "$FX/captured.onnx" --random 1 --compare merged.onnx --rtol 0
}

# onnx's inference takes a type that is missing there for another one.
@test "a body's result that folding makes a constant gets the type the file left out" {
    works ort-optimize "$FX/untyped.onnx" -q -o out.onnx
    PYTHONPATH="$ROOT/tests/tools" python3 - <<'PY'
from fixtures import field, value_info
bytes = open("out.onnx", "rb").read()
assert b"Neg" not in bytes and b"Abs" in bytes
assert field(12, value_info("known", [2, 3])) in bytes
assert field(12, field(1, "other")) in bytes
PY
}

@test "what a file says of an output that is a weight stays, whatever else is rewritten" {
    works ort-optimize "$FX/loose.onnx" --strip docs -q -o once.onnx
    works ort-optimize once.onnx --strip docs -q -o twice.onnx
    cmp once.onnx twice.onnx
    PYTHONPATH="$ROOT/tests/tools" python3 -c '
from fixtures import field, value_info
assert field(12, value_info("w", ["n"])) in open("once.onnx", "rb").read()'
}

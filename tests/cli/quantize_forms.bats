# ort-quantize static: types of codes, both forms, which nodes stay float.
load helper

@test "each type of codes is written, with the opset that has it" {
    for t in uint8 int8 uint16 int16 uint4 int4 uint2 int2 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz; do
        run --separate-stderr ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
            --activation-type $t --weight-type $t -o $t.onnx
        [ "$status" -eq 0 ]
        case $t in
        *8 | *16 | float8e4m3fn | float8e5m2) [ -z "$stderr" ] ;;
        *) [[ $stderr == *"--activation-type $t: OpenVINO has no such codes"* ]] ;;
        esac
        ort-inspect $t.onnx --initializers >weights.txt
        grep -q "${t}\[" weights.txt
    done
    warns "--weight-type int2: OpenVINO has no such codes" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --weight-type int2 -o w.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --weight-type float8e5m2 -o w.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --weight-type int4 -o w.onnx
    ort-inspect int4.onnx --json | grep -q '"version": 21'
    ort-inspect int2.onnx --json | grep -q '"version": 25'
}

sums() { # sums FILE: how many Sums of one value stand in it
    ort-inspect "$1" --nodes | grep -c "^#[0-9]* Sum" || true
}

linears() { # linears FILE: how many QuantizeLinear and DequantizeLinear stand in it
    ort-inspect "$1" --nodes | grep -c "^#[0-9]* \(Dequ\|Qu\)antizeLinear"
}

@test "codes that onnxruntime's optimizer misreads are kept apart from operators, in files alone" {
    local net=$MODELS_DIR/digits.onnx t
    for t in int8 int4 uint16; do
        ort-quantize static "$net" --random 1 --weight-type $t -q -o plain.onnx --force
        [ "$(sums plain.onnx)" -eq 0 ]
    done
    for t in int2 uint2 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz uint4; do
        ort-quantize static "$net" --random 1 --keep-sensitive 0 --activation-type $t -q -o a.onnx --force
        [ "$(sums a.onnx)" -ge "$(ort-inspect a.onnx --nodes | grep -c '^#[0-9]* QuantizeLinear')" ]
        ort-quantize static "$net" --random 1 --keep-sensitive 0 --weight-type $t -q -o w.onnx --force
        [ $t = uint4 ] || [ "$(sums w.onnx)" -eq "$(ort-inspect w.onnx --initializers | grep -c "_codes .*$t")" ]
        for f in a w; do
            # a run has none, another file keeps them, and so does one that is quantized again
            ort-profile $f.onnx --no-peak --seconds 0.01 >run.txt
            grep -q "Gemm" run.txt
            ! grep -q "^Sum " run.txt || false
            ort-optimize $f.onnx -q -o o.onnx --force
            [ "$(sums o.onnx)" -eq "$(sums $f.onnx)" ]
            ort-quantize static o.onnx --random 1 -q -o again.onnx --force
            [ "$(linears again.onnx)" -eq "$(linears o.onnx)" ]
            [ "$(sums again.onnx)" -eq "$(sums $f.onnx)" ]
        done
    done
    # rows of 30 codes of 2 bits are no whole bytes, those of 32 are
    PYTHONPATH=$ROOT/tests/tools python3 -c "
from fixtures import initializer, model, node, value_info
for n in (30, 32):
    open(f'{n}.onnx', 'wb').write(model([node('MatMul', ['x', 'w'], ['y'])], [value_info('x', ['n', 64])],
        [value_info('y', ['n', n])], [initializer('w', [64, n], [(k * 7 % 31 - 15) / 64 for k in range(64 * n)])]))"
    for t in 30 32; do
        ort-quantize weights $t.onnx --bits 2 --form qdq -q -o b$t.onnx
        ort-inspect b$t.onnx --initializers | grep -q "int2\[64,$t\]"
    done
    [ "$(sums b30.onnx)" -eq 1 ]
    [ "$(sums b32.onnx)" -eq 0 ]
}

@test "operators on codes, where there are" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --form qoperator -o q.onnx
    ort-inspect q.onnx --nodes >nodes.txt
    grep -q "QGemm\|QLinearConv\|QLinearMatMul" nodes.txt
    fails 2 "int8 activations with int8 weights alone" ort-quantize static "$MODELS_DIR/digits.onnx" \
        --random 1 --form qoperator --activation-type int8 --weight-type uint8
    fails 2 "operators on codes are of int8 and uint8" ort-quantize static "$MODELS_DIR/digits.onnx" \
        --random 1 --form qoperator --weight-type int4
    fails 2 "no zero point" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --weight-type float8e4m3fn --asymmetric-weights
    fails 2 "a reduced range is one of" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --weight-type int4 --activation-type uint16 --reduce-range
    fails 2 "a full range is one of int8" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --weight-type uint8 --full-range
}

@test "what is excluded stays float, and names that meet nothing are refused" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --exclude "*" -o float.onnx
    [ "$(ort-inspect float.onnx --nodes | grep -c QuantizeLinear)" -eq 0 ]
    printf '# a comment\nGemm\t12 dB\nConv\nMatMul\n' >names.txt
    fails 2 "exclude: no node or operator" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --exclude nothing_like_it
    fails 2 "include: no node or operator" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --include nothing_like_it
    fails 5 "no.txt: can't be read" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --overrides no.txt
    fails 5 "can't be opened" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --exclude-from no.txt
}

@test "names mean the same nodes to every verb, whether or not these could become codes" {
    local net=$MODELS_DIR/digits.onnx verb
    while read -r verb; do
        # shellcheck disable=SC2086
        works ort-quantize $verb "$net" --exclude "Softmax,relu?,pool" -q -o a.onnx --force
        # shellcheck disable=SC2086
        fails 2 "exclude: no node or operator of the model is called 'hiden' \(did you mean 'hidden'" \
            ort-quantize $verb "$net" --exclude hiden -o c.onnx
        # shellcheck disable=SC2086
        fails 2 "include: no node or operator of the model is called '\[Cc\]onv'" \
            ort-quantize $verb "$net" --include "[Cc]onv" -o c.onnx
        # what is included can't become codes: the file would be float, which nobody asked for
        # shellcheck disable=SC2086
        run --separate-stderr ort-quantize $verb "$net" --include Softmax -o d.onnx --force
        [ "$status" -eq 0 ] && [[ $stderr == *"nothing in it was quantized"* ]]
    done <<'EOF'
static --random 1
dynamic --small
weights
EOF
    works ort-quantize weights "$net" --exclude Conv -q -o w.onnx
    [ "$(ort-inspect w.onnx --nodes | grep -c MatMulNBits)" -eq 2 ]
}

@test "files of names are read like names" {
    printf '# what computes on codes\nconv1\t12 dB\nGem*\n' >names.txt
    while read -r verb how; do
        # shellcheck disable=SC2086
        works ort-quantize $verb "$MODELS_DIR/digits.onnx" $how -q --include "conv1,Gem*" -o a.onnx --force
        # shellcheck disable=SC2086
        works ort-quantize $verb "$MODELS_DIR/digits.onnx" $how -q --include-from names.txt -o b.onnx --force
        # shellcheck disable=SC2086
        works ort-quantize $verb "$MODELS_DIR/digits.onnx" $how -q --include conv1 --include-from names.txt \
            -o c.onnx --force
        # shellcheck disable=SC2086
        works ort-quantize $verb "$MODELS_DIR/digits.onnx" $how -q -o all.onnx --force
        cmp a.onnx b.onnx
        [ "$(ort-inspect c.onnx --initializers | sed 1d)" = "$(ort-inspect b.onnx --initializers | sed 1d)" ]
        ! cmp -s a.onnx all.onnx || false
    done <<'EOF'
static --random 1
dynamic --small --convolutions
EOF
    printf 'hidden\n' >hidden.txt
    works ort-quantize weights "$MODELS_DIR/digits.onnx" -q --include-from hidden.txt -o w.onnx
    [ "$(ort-inspect w.onnx --nodes | grep -c MatMulNBits)" -eq 1 ]
    fails 2 "no node or operator of the model is called 'nobody'" ort-quantize static "$MODELS_DIR/digits.onnx" \
        --random 1 --include-from <(echo nobody)
    : >none.txt
    fails 2 "none.txt: names nothing to include" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --include-from none.txt -o n.onnx
    [ ! -e n.onnx ]
}

same_from_stdin() { # same_from_stdin OPTION FILE ARGUMENT...: - and a pipe serve OPTION as FILE itself does
    local option=$1 file=$2
    shift 2
    works ort-quantize "$@" -q "$option" "$file" -o named.onnx --force
    works ort-quantize "$@" -q "$option" - -o dash.onnx --force <"$file"
    works ort-quantize "$@" -q "$option" <(cat "$file") -o piped.onnx --force
    cmp named.onnx dash.onnx
    cmp named.onnx piped.onnx
}

@test "files that options read come from standard input, and those that they write go to standard output" {
    local net=$MODELS_DIR/digits.onnx
    echo conv1 >names.txt
    same_from_stdin --include-from names.txt static "$net" --random 1
    same_from_stdin --exclude-from names.txt dynamic "$net" --small --convolutions
    echo hidden >hidden.txt
    same_from_stdin --include-from hidden.txt weights "$net"
    echo '{"schema": "ort-overrides/1", "overrides": [{"node": "*", "type": "uint16"}]}' >o.json
    same_from_stdin --overrides o.json static "$net" --random 1
    works ort-quantize calibrate "$net" --random 1 -o ranges.json
    same_from_stdin --ranges ranges.json static "$net"
    works ort-quantize static "$net" --random 1 -q --auto size --min-sqnr 20 --assignment a.json --plot a.svg
    works ort-quantize static "$net" --random 1 -q --auto size --min-sqnr 20 --assignment - -o q.onnx
    diff a.json <(echo "$output")
    works ort-quantize static "$net" --random 1 --auto size -q --min-sqnr 20 --plot -
    [[ $output == "<svg"*"</svg>" || $output == "<?xml"*"</svg>" ]]
    fails 2 "only one of .* comes from stdin" ort-quantize static - --random 1 --include-from - <"$net"
    fails 2 "only one of .* comes from stdin" ort-quantize static "$net" --random 1 --overrides - --exclude-from - <o.json
    fails 2 "only one of .* goes to stdout" ort-quantize static "$net" --random 1 --auto size --min-sqnr 20 --plot - -o -
    fails 2 "can't both go to stdout" ort-quantize static "$net" --random 1 --auto size --min-sqnr 20 --plot - --json
    fails 2 "standard input: names nothing to include" ort-quantize static "$net" --random 1 --include-from - </dev/null
}

@test "overrides change types, and say what they can't" {
    echo '{"schema": "ort-overrides/1", "overrides": [{"node": "*", "type": "uint16"}]}' >o.json
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --overrides o.json -o q.onnx
    ort-inspect q.onnx --initializers | grep -q uint16
    echo '{"schema": "ort-overrides/1", "overrides": [{"node": "*", "typ": "uint16"}]}' >bad.json
    fails 2 "bad.json: .*did you mean 'type'" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --overrides bad.json
    echo '{"schema": "ort-overrides/1", "overrides": [{"node": "zz", "type": "int8"}]}' >none.json
    fails 2 "ort-quantize: none.json: overrides\[0\]: no node of the model is called 'zz'" ort-quantize static \
        "$MODELS_DIR/digits.onnx" --random 1 --overrides none.json
    echo '{"schema": "ort-overrides/1", "overrides": [{"node": "*", "observer": "entropy"}]}' >seen.json
    fails 2 "ort-quantize: seen.json: rules with an observer of their own don't go with moving-average" ort-quantize static \
        "$MODELS_DIR/digits.onnx" --random 1 --overrides seen.json --observer moving-average
    # what isn't theirs is told of the model
    fails 2 "ort-quantize: .*digits.onnx: exclude: no node" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 \
        --overrides o.json --exclude overrides
}

@test "a weight that is an output, too, lies in the file once: what multiplies by it stays float, and says why" {
    PYTHONPATH=$ROOT/tests/tools python3 - <<'PY'
import fixtures as f
weights = [f.initializer(w, [80, 80], [(i * k) % 17 - 8.25 for i in range(6400)]) for w, k in (("v", 5), ("w", 7))]
open("given.onnx", "wb").write(f.model(
    [f.node("MatMul", ["x", "v"], ["a"], "first"), f.node("MatMul", ["a", "w"], ["y"], "second")],
    [f.value_info("x", [4, 80])], [f.value_info("y", [4, 80]), f.value_info("w", [80, 80])], weights))
PY
    works ort-run given.onnx --random 1 -o given.npz
    for verb in dynamic static weights; do
        ort-quantize $verb given.onnx --random 1 -v -o q.onnx >told.txt 2>&1
        grep -q "second.* output of the model and keeps its numbers" told.txt
        [ "$(stat -c %s q.onnx)" -lt 35000 ] # 51,200 of floats; 25,600 of it stay
        works ort-run q.onnx --random 1 -o q.npz
        PYTHONPATH=$ROOT/tests/tools python3 -c '
import zipfile
a, b = (zipfile.ZipFile(n).read("w.npy") for n in ("given.npz", "q.npz"))
assert a == b'
    done
}

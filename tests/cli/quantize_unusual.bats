# ort-quantize on models as exporters of old or of other kinds write them: nodes without names, weights
# that constants make, products inside of functions, doubles, codes that lie there already.
load helper

setup() {
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit 1
    python3 - "$ROOT/tests/tools" <<'PY'
import random
import struct
import sys
sys.path.insert(0, sys.argv[1])
from fixtures import *

random.seed(3)
X, OUT = [value_info("x", ["n", 64])], [value_info("out", ["n", 80])]
HALF, DOUBLE = 10, 11


def numbers(count):
    return [random.gauss(0, 0.2) for _ in range(count)]


def raw(name, dims, code, kind):
    data = struct.pack(f"<{dims[0] * dims[1]}{code}", *numbers(dims[0] * dims[1]))
    return b"".join(field(1, d) for d in dims) + field(2, kind) + field(8, name) + field(9, data)


def nameless(op, inputs, outputs, **attributes):
    return (b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) +
            b"".join(attribute(n, v) for n, v in attributes.items()) + field(4, op))


def write(name, data):
    open(name, "wb").write(data)


w, v = initializer("w", [64, 96], numbers(6144)), initializer("v", [96, 80], numbers(7680))
write("nameless.onnx", model([nameless("MatMul", ["x", "w"], ["h"]), nameless("Relu", ["h"], ["r"]),
                              nameless("MatMul", ["r", "v"], ["out"])], X, OUT, [w, v]))
# "h" is the name of a node and of what another one computes.
write("taken.onnx", model([nameless("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["r"], "h"),
                           nameless("MatMul", ["r", "v"], ["out"])], X, OUT, [w, v]))
halves = [raw("w16", [64, 96], "e", HALF), raw("v16", [96, 80], "e", HALF)]
write("halves.onnx", model([node("Cast", ["w16"], ["w"], attributes={"to": 1}),
                            node("Cast", ["v16"], ["v"], attributes={"to": 1}),
                            node("MatMul", ["x", "w"], ["h"], "first"), node("Relu", ["h"], ["r"]),
                            node("MatMul", ["r", "v"], ["out"], "last")], X, OUT, halves))
# A filter in 16 bits that dynamic leaves alone beside a matrix that it takes.
write("filters.onnx", model(
    [node("Cast", ["f16"], ["f"], attributes={"to": 1}), node("Conv", ["p", "f"], ["c"]),
     node("Cast", ["w16"], ["w"], attributes={"to": 1}), node("MatMul", ["c", "w"], ["h"], "first"),
     node("MatMul", ["h", "v"], ["out"], "last")],
    [value_info("p", [1, 128, 64])], [value_info("out", [1, 128, 80])],
    [halves[0], v, raw("f16", [128, 128], "e", HALF).replace(
        field(1, 128) + field(1, 128), field(1, 128) + field(1, 128) + field(1, 1), 1)]))
function = (field(1, "Layer") + field(4, "p") + field(4, "q") + field(5, "s") +
            field(7, node("MatMul", ["p", "q"], ["s"], "inner")) + field(10, "acme") +
            field(9, field(1, "") + field(2, 17)))
write("function.onnx", model([node("Layer", ["x", "w"], ["h"], "a", "acme"),
                              node("Layer", ["h", "v"], ["out"], "b", "acme")], X, OUT, [w, v],
                             domains=["acme"]) + field(25, function))
write("double.onnx", model([node("MatMul", ["x", "w"], ["out"])], [value_info("x", ["n", 512], DOUBLE)],
                           [value_info("out", ["n", 300], DOUBLE)], [raw("w", [512, 300], "d", DOUBLE)]))
write("half.onnx", model([node("MatMul", ["x", "w"], ["out"])], [value_info("x", ["n", 64], HALF)],
                         [value_info("out", ["n", 96], HALF)], [raw("w", [64, 96], "e", HALF)]))
PY
}

@test "nodes without a name are called by what they compute, wherever nodes are named" {
    works ort-quantize static nameless.onnx --random 1 --sensitivity
    echo "$output" | cut -f1 | grep -qx h
    echo "$output" | cut -f1 | grep -qx out
    [ "$(echo "$output" | cut -f1 | grep -cx '')" -eq 0 ]
    works ort-quantize static nameless.onnx --random 1 --keep-sensitive 0 --exclude out -o q.onnx
    has "1 of 2 on integers" "float: out ("
    works ort-quantize dynamic nameless.onnx --exclude h -o q.onnx
    has "1 of 2 on integers" "float: h ("
    run ort-quantize weights nameless.onnx --exclude h -o q.onnx -v
    has "'h'" "1 of 2 on integers"
    printf '{"schema": "ort-overrides/1", "overrides": [{"node": "out", "type": "float"}]}' >o.json
    works ort-quantize static nameless.onnx --random 1 --keep-sensitive 0 --overrides o.json -o q.onnx
    has "float: out ("
}

@test "the file has the names, also where nothing in it was quantized" {
    for verb in "static --random 1" dynamic weights; do
        run ort-quantize $verb nameless.onnx --exclude '*' -o q.onnx
        [ "$status" -eq 0 ]
        ort-inspect q.onnx --nodes >nodes.txt
        grep -q "MatMul 'h'" nodes.txt
        grep -q "MatMul 'out'" nodes.txt
    done
}

@test "a name that is taken gets a number" {
    works ort-quantize static taken.onnx --random 1 --keep-sensitive 0 --exclude h_1 -o q.onnx
    has "1 of 2 on integers" "float: h_1 ("
}

@test "weights that constants make become codes" {
    for verb in dynamic weights "static --random 1 --keep-sensitive 0"; do
        works ort-quantize $verb halves.onnx -o q.onnx --min-sqnr 12
        has "2 of 2 on integers"
        [ "$(stat -c %s q.onnx)" -lt 18000 ]
    done
    run ort-quantize static halves.onnx --random 1 --no-passes -v -o q.onnx
    has "'first' stays float: constants make its weight, which passes would compute beforehand"
}

@test "what stays float isn't computed beforehand where that makes the file grow" {
    for verb in dynamic weights; do
        works ort-quantize $verb filters.onnx -o q.onnx
        has "of 3 on integers"
        [ "$(stat -c %s q.onnx)" -lt "$(stat -c %s filters.onnx)" ]
    done
}

# Angles of a Fourier transform: 64 KB of codes, of 512 bytes.
@test "a weight that is much larger than what makes it stays computed" {
    python3 - "$ROOT/tests/tools" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from fixtures import *
open("fourier.onnx", "wb").write(model(
    [node("Mul", ["rows", "columns"], ["angles"], "outer"), node("Cos", ["angles"], ["w"], "cos"),
     node("MatMul", ["x", "w"], ["y"], "transform"), node("MatMul", ["y", "v"], ["out"], "last")],
    [value_info("x", ["n", 256])], [value_info("out", ["n", 64])],
    [initializer("rows", [256, 1], list(map(float, range(256)))),
     initializer("columns", [1, 256], [k / 256 for k in range(256)]), initializer("v", [256, 64], [(k * 37 % 101 - 50) / 200 for k in range(256 * 64)])]))
PY
    for how in "dynamic --small" "static --random 1" "weights --bits 8"; do
        run ort-quantize $how fourier.onnx -o q.onnx --force
        [ "$status" -eq 0 ]
        [ "$(stat -c %s q.onnx)" -lt $((256 * 64 * 2)) ] || { echo "$how: $(stat -c %s q.onnx)"; false; }
    done
}

@test "a model is given back as it was where nothing becomes codes" {
    for verb in dynamic weights "weights --form qdq --method gptq --random 1" "weights --method awq --random 1"; do
        run ort-quantize $verb --exclude first,last halves.onnx -o q.onnx --force
        echo "$output"
        [ "$status" -eq 0 ]
        [ "$(stat -c %s q.onnx)" -le $(($(stat -c %s halves.onnx) + 1024)) ]
    done
}

@test "diamonds of constants are left, and not looked at without end" {
    python3 -c "
import sys
sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import *
w = initializer('w0', [64, 64], [0.01 * (i % 7) for i in range(4096)])
sums = [node('Add', [f'w{i}', f'w{i}'], [f'w{i + 1}']) for i in range(40)]
open('diamonds.onnx', 'wb').write(model(sums + [node('MatMul', ['x', 'w40'], ['out'])], [value_info('x', [2, 64])],
                                        [value_info('out', [2, 64])], [w]))"
    for verb in dynamic weights "static --random 1"; do
        timeout 60 ort-quantize $verb diamonds.onnx -q -o q.onnx
    done
}

@test "weights of products inside of functions become codes in every form" {
    for form in nbits qdq; do
        works ort-quantize weights function.onnx --form $form -o q.onnx
        [ "$(stat -c %s q.onnx)" -lt 12000 ]
    done
}

@test "models in 16 and 64 bits are told why they stay" {
    works ort-quantize suggest double.onnx
    has "leave double.onnx as it is" "100 % of its weights are doubles" "export it in float"
    run ort-quantize static double.onnx --random 1 -v -o q.onnx
    has "stays float: its result is double: codes are made of float alone"
    run ort-quantize static half.onnx --random 1 -v -o q.onnx
    has "stays float: its result has 16 bits" "quantize the float model that this one was made of"
}

@test "how many steps sequences have can be made up, and what can't says what to do" {
    python3 -c "
import sys
sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import *
weights = [initializer('w', [1, 64, 24], [(k * 7 % 31 - 15) / 64 for k in range(64 * 24)]),
           initializer('r', [1, 64, 16], [(k * 5 % 29 - 14) / 64 for k in range(64 * 16)])]
lstm = node('LSTM', ['x', 'w', 'r', '', 'lengths'], ['y', '', ''], attributes={'hidden_size': 16})
for name, steps in (('open', 'steps'), ('fixed', 7)):
    open(name + '.onnx', 'wb').write(model([lstm], [value_info('x', [steps, 2, 24]), value_info('lengths', [2], 6)],
                                           [value_info('y', [steps, 1, 2, 16])], weights))
picky = [node('Reshape', ['x', 'shape'], ['y'])]
open('picky.onnx', 'wb').write(model(picky, [value_info('x', [2, 6]), value_info('shape', [2], 7)],
                                     [value_info('y', ['a', 'b'])]))"
    for verb in dynamic "static --random 1" "calibrate --random 1"; do
        # shellcheck disable=SC2086
        works ort-quantize $verb fixed.onnx -q -o q.onnx --force
        # shellcheck disable=SC2086
        works ort-quantize $verb open.onnx -q -o q.onnx --force
    done
    run -4 --separate-stderr ort-quantize static picky.onnx --random 1 -o none.onnx
    [[ $stderr == *"made-up values don't suit every model: -i gives samples"* ]]
    [ ! -e none.onnx ]
}

@test "nodes on codes that have no names are called by what they compute in reports, too" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 -o q.onnx
    [ -x "$ROOT/build/venv/bin/python" ] || skip "no package onnx"
    "$ROOT/build/venv/bin/python" -c "
import onnx
m = onnx.load('q.onnx')
for n in m.graph.node: n.name = ''
onnx.save(m, 'nameless_codes.onnx')"
    works ort-quantize evaluate "$MODELS_DIR/digits.onnx" nameless_codes.onnx --random 1
    [[ $output == *"Q/DQ: image_q, hr_q"* || $output == *"Q/DQ: hr_q, image_q"* ]] # by time
}

@test "no remedy is offered for codes that were there before" {
    python3 -c "
import sys
sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import *
w = initializer('w', [4, 3], [1, 1, 1, 1, 1, 1, 1, -1, 1, 1, 1, 1])
open('large.onnx', 'wb').write(model([node('MatMul', ['x', 'w'], ['out'])], [value_info('x', [2, 4])],
                                     [value_info('out', [2, 3])], [w]))"
    works ort-quantize static large.onnx --random 1 --full-range -o q.onnx
    has "--reduce-range avoids it"
    run ort-quantize static q.onnx --random 1 -o again.onnx
    [ "$status" -eq 0 ]
    has "1 product has sums" "the model had these codes before"
    [[ $output != *reduce-range* ]]
}

@test "what is no file of ranges is named with what stands there" {
    ort-quantize calibrate nameless.onnx --random 1 -o r.json
    printf '\010x' >q.bin
    fails 5 "q.bin, line 1: '\{' should be where byte 0x08 is" \
        ort-quantize calibrate --merge r.json q.bin -o all.json
    printf 'x' >q.txt
    fails 5 "q.txt, line 1: '\{' should be where 'x' is" \
        ort-quantize calibrate --merge r.json q.txt -o all.json
}

@test "a report that can't be written is an error, and no file is left" {
    [ -e /dev/full ] || skip "no /dev/full"
    for how in "--json" "-o q.onnx" "-o q.onnx --json"; do
        status=0
        ort-quantize static nameless.onnx --random 1 $how >/dev/full 2>err.txt || status=$?
        [ "$status" -eq 5 ]
        grep -q "standard output: No space left on device" err.txt
        [ ! -e q.onnx ]
    done
}

# Its node has no name, and the first convolution has that of its output.
@test "--effort finds filters of single channels by the name that they got" {
    python3 - "$ROOT" <<'PY'
import math, pathlib, random, sys
sys.path.insert(0, sys.argv[1] + "/tests/tools")
import fixtures as f
random.seed(1)
C = 16
def weight(name, *dims, spread=0):
    each, numbers = math.prod(dims[1:]), []
    for _ in range(dims[0]):
        factor = math.exp(spread * random.gauss(0, 1)) / math.sqrt(each)
        numbers += [factor * random.gauss(0, 1) for _ in range(each)]
    return f.initializer(name, list(dims), numbers)
for name in ("", "own"):
    pathlib.Path(f"net{name}.onnx").write_bytes(f.model(
        [f.node("Conv", ["x", "u"], ["a"], "c", attributes={"pads": [1, 1, 1, 1]}), f.node("Relu", ["a"], ["b"], "r"),
         f.node("Conv", ["b", "v"], ["c"], name, attributes={"pads": [1, 1, 1, 1], "group": C}),
         f.node("Conv", ["c", "w"], ["y"], "last")],
        [f.value_info("x", [1, 8, 16, 16])], [f.value_info("y", [1, 32, 16, 16])],
        [weight("u", C, 8, 3, 3), weight("v", C, 1, 3, 3, spread=1.5), weight("w", 32, C, 1, 1)]))
PY
    for net in net netown; do
        run ort-quantize static $net.onnx --random 1 --effort --per-tensor --plain-weights --weight-type int4 -v -o q.onnx --force
        [ "$status" -eq 0 ]
        has "filters of single channels in float: "
    done
}

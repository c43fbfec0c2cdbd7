# ort-quantize static --effort: codes of weights and biases by what samples show.
load helper

# What the report says of the first output, in dB.
sqnr_of() {
    ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --samples 16 \
        --isa avx2 --json --force -o "$@" | python3 -c "
import json, sys
print(json.load(sys.stdin)['outputs'][0]['sqnr_db'])"
}

# write_lstm FILE FACTOR: an LSTM with weights as large as that. Where they are large, what an error
# in them does grows from step to step.
write_lstm() {
    python3 - "$ROOT" "$@" <<'PY'
import random
import sys

sys.path.insert(0, sys.argv[1] + "/tests/tools")
from fixtures import initializer, model, node, value_info

rng = random.Random(5)
hidden, inputs, steps, factor = 32, 16, 64, float(sys.argv[3])


def weight(name, dims):
    count = 1
    for size in dims:
        count *= size
    return initializer(name, dims, [rng.gauss(0, factor) for _ in range(count)])


nodes = [node("LSTM", ["x", "w", "r"], ["y", "h"], attributes={"hidden_size": hidden}),
         node("MatMul", ["h", "m"], ["out"])]
open(sys.argv[2], "wb").write(model(
    nodes, [value_info("x", [steps, 1, inputs])], [value_info("out", [1, 1, 8])],
    [weight("w", [1, 4 * hidden, inputs]), weight("r", [1, 4 * hidden, hidden]),
     weight("m", [hidden, 8])]))
PY
}

@test "recurrent layers keep float weights where codes of them cost all that they say" {
    write_lstm tame.onnx 0.2
    write_lstm chaotic.onnx 2
    works ort-quantize static tame.onnx --random 1 -o tame8.onnx
    works ort-quantize static chaotic.onnx --random 1 -o chaotic8.onnx
    works ort-quantize static chaotic.onnx --random 1 --keep-sensitive 0 -o codes8.onnx
    [ "$(stat -c %s codes8.onnx)" -lt "$(($(stat -c %s chaotic8.onnx) / 2))" ]
    [ "$(stat -c %s tame8.onnx)" -lt "$(($(stat -c %s tame.onnx) / 2))" ]
    write_lstm near.onnx 0.8 # within 32 dB with codes, 5 dB nearer without
    works ort-quantize static near.onnx --random 1 -o near8.onnx
    works ort-quantize static near.onnx --random 1 --effort -o nearer8.onnx
    [ "$(stat -c %s near8.onnx)" -lt "$(($(stat -c %s nearer8.onnx) / 2))" ]
}

@test "--effort is never further from float on samples than the default" {
    local plain effort both
    plain=$(sqnr_of plain.onnx)
    effort=$(sqnr_of effort.onnx --effort)
    python3 -c "import sys; sys.exit(not float('$effort') >= float('$plain') > 10)"
    run ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --effort -v -o made.onnx
    [ "$status" -eq 0 ]
    [[ $output == *equalized* ]] # -v tells how near each came
}

@test "bias correction and adaptive rounding change codes alone" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --observer mse -o plain.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --observer mse \
        --bias-correction --adaround -o refined.onnx
    ! cmp -s plain.onnx refined.onnx || false
    ort-inspect plain.onnx --nodes | grep "^#" >a.txt # number, operator, name
    ort-inspect refined.onnx --nodes | grep "^#" >b.txt
    [ "$(wc -l <a.txt)" -gt 20 ]
    cmp a.txt b.txt
}

@test "rows of all samples count for rounding, where some give few and others many" {
    python3 -c "
import random, struct, sys; sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import archive, initializer, model, node, npy, value_info
draw = random.Random(5)
open('net.onnx', 'wb').write(model([node('MatMul', ['x', 'w'], ['y'])], [value_info('x', ['n', 8])],
    [value_info('y', ['n', 16])], [initializer('w', [8, 16], [draw.gauss(0, 1) for _ in range(128)])]))
for k in range(8): # 64 rows, and 7 times one: 16 are enough
    rows = 1 if k else 64
    values = [draw.gauss(1, 1) for _ in range(8 * rows)]
    open(f's{k}.npz', 'wb').write(archive({'x.npy': npy(values, (rows, 8))}))"
    local few="-i s1.npz -i s2.npz -i s3.npz -i s4.npz -i s5.npz -i s6.npz -i s7.npz"
    works ort-quantize static net.onnx $few -i s0.npz --observer mse -o plain.onnx
    works ort-quantize static net.onnx $few -i s0.npz --observer mse --adaround -o rounded.onnx
    ort-run plain.onnx -i s0.npz -q -o a.npy
    ort-run rounded.onnx -i s0.npz -q -o b.npy
    ! cmp -s a.npy b.npy || false
    works ort-quantize static net.onnx $few --observer mse -o plain.onnx --force
    works ort-quantize static net.onnx $few --observer mse --adaround -o rounded.onnx --force
    ort-run plain.onnx -i s0.npz -q --force -o a.npy
    ort-run rounded.onnx -i s0.npz -q --force -o b.npy
    cmp a.npy b.npy
}

@test "biases are corrected by default where samples are given, and not with --plain-biases" {
    python3 -c "
import random, struct
open('some.bin', 'wb').write(struct.pack('<1024f', *[random.Random(k).random() for k in range(1024)]))"
    works ort-tensor some.bin --from raw --dtype float32 --dims 16x1x8x8 -o some.npy
    works ort-quantize static "$MODELS_DIR/digits.onnx" -i some.npy -o corrected.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" -i some.npy --plain-biases -o plain.onnx
    ort-inspect corrected.onnx --metadata | grep -q -- --bias-correction
    ! ort-inspect plain.onnx --metadata | grep -q -- --bias-correction || false
    ! cmp -s corrected.onnx plain.onnx || false
    fails 2 "--plain-biases" ort-quantize static "$MODELS_DIR/digits.onnx" -i some.npy --plain-biases \
        --bias-correction -o q.onnx
}

@test "biases are corrected by default of models between 32 and 128 MB, too" {
    PYTHONPATH=$ROOT/tests/tools python3 - <<'PY'
from fixtures import *
wide, out = 3000, 40
def gemm(x, k, y): return node("Gemm", [x, f"w{k}", f"b{k}"], [y], f"fc{k}")
line = [((7 * i) % 31 - 15.25) / 900 for i in range(wide)]
weights = [initializer("w1", [wide, wide], (line[1:] + line[:1]) * wide), initializer("b1", [wide], line),
           initializer("w2", [wide, out], [line[i % 97] for i in range(wide * out)]), initializer("b2", [out], line[:out])]
open("wide.onnx", "wb").write(model([gemm("x", 1, "h"), node("Relu", ["h"], ["r"], "r"), gemm("r", 2, "y")],
                                    [value_info("x", ["n", wide])], [value_info("y", ["n", out])], weights))
import json
json.dump([[(i * k) % 13 / 4 - 1 for i in range(wide)] for k in (3, 5, 7, 9)], open("x.json", "w"))
PY
    works ort-tensor x.json --cast float -o x.npy
    works ort-quantize static wide.onnx -i x.npy --rows 1 -o corrected.onnx
    ort-inspect corrected.onnx --metadata | grep -q -- --bias-correction
    works ort-quantize static wide.onnx -i x.npy --rows 1 --plain-biases -o plain.onnx
    ! ort-inspect plain.onnx --metadata | grep -q -- --bias-correction || false
    ! cmp -s corrected.onnx plain.onnx || false
    for more in "--observer mse" "--random 1"; do # ranges alone make it, or say nothing of means
        local given="-i x.npy --rows 1"
        [ "$more" != "--random 1" ] || given=
        works ort-quantize static wide.onnx $given $more -o q.onnx
        ! ort-inspect q.onnx --metadata | grep -q -- --bias-correction || false
    done
}

@test "biases that are codes already stay as they are" {
    python3 -c "
import random, struct
open('some.bin', 'wb').write(struct.pack('<1024f', *[random.Random(k).random() for k in range(1024)]))"
    works ort-tensor some.bin --from raw --dtype float32 --dims 16x1x8x8 -o some.npy
    works ort-quantize static "$MODELS_DIR/digits.onnx" -i some.npy -o codes.onnx
    run -0 --separate-stderr ort-quantize static codes.onnx -i some.npy -o again.onnx
    [[ $stderr == *"nothing in it was quantized"* ]]
    run -0 ort-quantize static codes.onnx -i some.npy --effort -o effort.onnx
    ort-run codes.onnx -i some.npy -q -o a.npy
    ort-run again.onnx -i some.npy -q -o b.npy
    ort-run effort.onnx -i some.npy -q -o c.npy
    cmp a.npy b.npy
    cmp a.npy c.npy
}

@test "weights of a model far from float are rounded by samples without being asked for" {
    python3 -c "
import random, struct
open('some.bin', 'wb').write(struct.pack('<4096f', *[random.Random(k).random() for k in range(4096)]))"
    works ort-tensor some.bin --from raw --dtype float32 --dims 64x1x8x8 -o some.npy
    run ort-quantize static "$MODELS_DIR/digits.onnx" -i some.npy --weight-type int4 -v -o far.onnx
    [ "$status" -eq 0 ]
    [[ $output == *"codes of weights by samples: "* ]]
    ort-inspect far.onnx --metadata | grep -q -- --adaround
    run ort-quantize static "$MODELS_DIR/digits.onnx" -i some.npy -v -o near.onnx
    [[ $output != *"codes of weights by samples"* ]]
    ! ort-inspect near.onnx --metadata | grep -q -- --adaround || false
}

@test "what rounding by samples gains is judged on others: noise that it fits is no gain" {
    python3 -c "
import random, struct, sys; sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import initializer, model, node, value_info
draw = random.Random(5)
weights = [draw.gauss(0, 1) for _ in range(8 * 16)]
open('net.onnx', 'wb').write(model([node('MatMul', ['x', 'w'], ['y'])], [value_info('x', ['n', 8])],
    [value_info('y', ['n', 16])], [initializer('w', [8, 16], weights)]))
open('noise.bin', 'wb').write(struct.pack('<256f', *[draw.gauss(0, 1) for k in range(256)]))"
    works ort-tensor noise.bin --from raw --dtype float32 --dims 32x8 -o noise.npy
    run ort-quantize static net.onnx -i noise.npy --rows 1 --weight-type int4 -v -o q.onnx
    [ "$status" -eq 0 ]
    [ "$(grep -c "codes of weights by samples: .* dB, without .* dB" <<<"$output")" -eq 4 ]
    run -0 ort-inspect q.onnx --metadata
    [[ $output == *ort.quantize.static* && $output != *--adaround* ]]
}

@test "each part of many samples judges --effort" {
    run ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --samples 128 --effort -v -o q.onnx
    [ "$status" -eq 0 ]
    [[ $output == *"part 4 of samples: "* && $output != *"inf dB"* ]]
}

@test "a classifier whose clear answers change gets more than the default" {
    python3 -c "
import random, struct
r = random.Random(3)
open('some.bin', 'wb').write(struct.pack('<8192f', *[r.random() for k in range(8192)]))"
    works ort-tensor some.bin --from raw --dtype float32 --dims 128x1x8x8 -o some.npy
    local coarse="--weight-type int2 --per-tensor --plain-weights"
    run ort-quantize static "$MODELS_DIR/digits.onnx" -i some.npy $coarse -v -o more.onnx
    [ "$status" -eq 0 ]
    has "as chosen: " "codes of weights by samples: " "% of clear answers"
    ort-inspect more.onnx --metadata | grep -q -- --adaround
    run ort-quantize static "$MODELS_DIR/digits.onnx" -i some.npy -v -o fine.onnx
    [ "$status" -eq 0 ]
    [[ $output != *"of clear answers"* ]]
    ! ort-inspect fine.onnx --metadata | grep -q -- --adaround || false
    run ort-quantize static "$MODELS_DIR/digits.onnx" -i some.npy $coarse --keep-sensitive 4 -v \
        -o asked.onnx # what options say isn't changed
    [ "$status" -eq 0 ]
    [[ $output != *"of clear answers"* ]]
}

@test "where neither rounding nor filters keep clear answers, what harms them stays float" {
    # 'small' has a row of 500 that nothing reads: on one scale its other weights are 0. It takes 8 % of the products.
    python3 -c "
import random, struct, sys; sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import initializer, model, node, value_info
draw = random.Random(5)
def weight(name, rows, columns, size, first=None):
    numbers = [draw.gauss(0, size) for _ in range(rows * columns)]
    return initializer(name, [rows, columns], [first] * columns + numbers[columns:] if first else numbers)
nodes = [node('MatMul', ['x', 'w1'], ['a'], name='wide'), node('Relu', ['a'], ['b']),
         node('MatMul', ['b', 'w2'], ['c'], name='mix'),
         node('MatMul', ['x', 'w3'], ['d'], name='small'), node('Relu', ['d'], ['e']),
         node('MatMul', ['e', 'w4'], ['f'], name='last'), node('Add', ['c', 'f'], ['g']),
         node('Softmax', ['g'], ['p'])]
open('planted.onnx', 'wb').write(model(nodes, [value_info('x', ['n', 64])], [value_info('p', ['n', 8])],
    [weight('w1', 64, 256, 0.1), weight('w2', 256, 8, 0.02), weight('w3', 64, 24, 0.3, 500), weight('w4', 24, 8, 0.6)]))
open('some.bin', 'wb').write(struct.pack('<8192f', *[0 if k % 64 == 0 else draw.gauss(0, 1) for k in range(8192)]))"
    works ort-tensor some.bin --from raw --dtype float32 --dims 128x64 -o some.npy
    run --separate-stderr ort-quantize static planted.onnx -i some.npy --rows 1 --per-tensor --plain-weights -v --json \
        -o q.onnx
    [ "$status" -eq 0 ]
    [[ $stderr =~ "as chosen: "([0-9.]+)" % of clear answers" ]] && before=${BASH_REMATCH[1]}
    [[ $stderr =~ "both, and other nodes in float: "([0-9.]+)" % of clear answers" ]]
    python3 -c "
import json, sys
kept = json.load(sys.stdin)['kept_float']
assert kept['nodes'] == ['small'] and 0.04 < kept['share_of_products'] <= 0.16, kept
assert $before < 90 and ${BASH_REMATCH[1]} >= 99.5" <<<"$output"
    [[ $stderr == *"MatMul 'small': "*" dB with it alone on codes"* ]]
}

# Channels of what 'single' reads differ by 1,000, which its filters undo: codes of one scale are 0 in half of them. It takes
# 12 % of the products, more than is left in float by itself.
write_uneven() {
    python3 -c "
import random, struct, sys; sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import initializer, model, node, value_info
draw = random.Random(5)
reach = [10 ** -(c % 4) for c in range(16)]
def weight(name, dims, size):
    each = dims[1] * dims[2] * dims[3]
    return initializer(name, dims, [draw.gauss(0, 1) * size[c] for c in range(16) for _ in range(each)])
nodes = [node('Conv', ['x', 'w1'], ['a'], name='first'), node('Sigmoid', ['a'], ['s'], name='gate'),
         node('Mul', ['a', 's'], ['b'], name='swish'),
         node('Conv', ['b', 'w2'], ['c'], name='single', attributes={'group': 16, 'pads': [1, 1, 1, 1]}),
         node('Conv', ['c', 'w3'], ['y'], name='last')]
open('uneven.onnx', 'wb').write(model(nodes, [value_info('x', ['n', 48, 8, 8])], [value_info('y', ['n', 16, 8, 8])],
    [weight('w1', [16, 48, 1, 1], reach), weight('w2', [16, 1, 3, 3], [1 / r for r in reach]),
     weight('w3', [16, 16, 1, 1], [1] * 16)]))
open('some.bin', 'wb').write(struct.pack('<49152f', *[draw.gauss(0, 1) for k in range(49152)]))"
    works ort-tensor some.bin --from raw --dtype float32 --dims 16x48x8x8 -o some.npy
}

@test "--effort leaves filters of single channels in float where that brings a model nearer, and says so" {
    write_uneven
    ort-quantize static uneven.onnx -i some.npy --rows 1 --json -o plain.onnx >plain.json
    run --separate-stderr ort-quantize static uneven.onnx -i some.npy --rows 1 --effort -v --json -o effort.onnx
    [ "$status" -eq 0 ]
    [[ $stderr == *"filters of single channels in float: "* ]]
    python3 -c "
import json, sys
plain, effort = json.load(open('plain.json')), json.load(sys.stdin)
kept = effort['kept_float']
assert 'kept_float' not in plain, plain['kept_float']
assert 'single' in kept['nodes'] and 'first' not in kept['nodes'] and 0.1 < kept['share_of_products'] < 0.16, kept
before, after = plain['outputs'][0]['sqnr_db'], effort['outputs'][0]['sqnr_db']
assert before < 25 and after > before + 5, (before, after)" <<<"$output"
    works ort-quantize static uneven.onnx -i some.npy --rows 1 --effort --threads 1 --isa scalar -o other.onnx
    cmp effort.onnx other.onnx
    run ort-quantize static uneven.onnx -i some.npy --rows 1 --effort --keep-sensitive 4 -v -o asked.onnx
    [ "$status" -eq 0 ]
    [[ $output != *"filters of single channels in float"* && $output != *"kept "* ]]
}

# write_table FILE ROWS [LSTM]: an LSTM that reads rows of a table, and one more behind it.
write_table() {
    PYTHONPATH=$ROOT/tests/tools python3 - "$@" <<'PY'
import random, sys
from fixtures import initializer, model, node, value_info
draw, rows, width, hidden, steps = random.Random(5), int(sys.argv[2]), 64, 128, 24
def weight(name, dims, size):
    return initializer(name, dims, [draw.gauss(0, size) for _ in range(dims[0] * dims[1] * (dims + [1])[2])])
nodes = [node("Gather", ["table", "x"], ["rows"], "look"),
         node("LSTM", ["rows", "w", "r"], ["y"], "first", attributes={"hidden_size": hidden})]
weights = [weight("table", [rows, width], 1), weight("w", [1, 4 * hidden, width], 0.1),
           weight("r", [1, 4 * hidden, hidden], 0.02)]
if sys.argv[3:]:
    nodes += [node("ReduceMean", ["y"], ["z"], attributes={"axes": [1], "keepdims": 0}),
              node("LSTM", ["z", "w2", "r2"], ["y2"], "second", attributes={"hidden_size": hidden})]
    weights += [weight("w2", [1, 4 * hidden, hidden], 0.3), weight("r2", [1, 4 * hidden, hidden], 0.02)]
last = "y2" if sys.argv[3:] else "y"
open(sys.argv[1], "wb").write(model(nodes, [value_info("x", [steps, 1], 7)],
                                    [value_info(last, [steps, 1, 1, hidden])], weights))
PY
}

@test "--effort gives small tables float16 where their codes cost more than that takes, and says so" {
    write_table small.onnx 64 # 4,096 numbers
    write_table large.onnx 512
    for size in small large; do
        run --separate-stderr ort-quantize static $size.onnx --random 1 --effort -v --json -o $size.effort.onnx
        [ "$status" -eq 0 ]
        [[ $stderr == *"tables in float16: "* ]]
        echo "$output" >$size.json
        works ort-quantize static $size.onnx --random 1 -o $size.plain.onnx
    done
    python3 -c "
import json
small, large = (json.load(open(name + '.json'))['kept_float'] for name in ('small', 'large'))
assert small['tables_float16'] == ['look'] and 'look' not in small['nodes'], small
assert large['tables_float16'] == [], large"
    ort-inspect small.effort.onnx --nodes | grep -q "float16\[24,1,64\]"
    ! ort-inspect large.effort.onnx --nodes | grep -q float16 || false
    ! ort-inspect small.plain.onnx --nodes | grep -q float16 || false
    works ort-quantize static small.onnx --random 1 --effort --threads 1 --isa scalar -o other.onnx
    cmp small.effort.onnx other.onnx
    has "kept      1 table of rows in float16"
    works ort-quantize static small.onnx --random 1 --effort --keep-sensitive 4 --force -o other.onnx
    ! ort-inspect other.onnx --nodes | grep -q float16 || false
}

@test "--effort has recurrent layers on codes again where tables in float16 make up for them" {
    write_table two.onnx 1024 LSTM
    run --separate-stderr ort-quantize static two.onnx --random 1 --effort -v --json -o two.effort.onnx
    [ "$status" -eq 0 ]
    echo "$output" >two.json
    python3 - "$stderr" <<'PY'
import json, re, sys
kept = json.load(open("two.json"))["kept_float"]
assert kept["tables_float16"] == ["look"] and kept["nodes"] in (["first"], ["second"]), kept
before, after = (float(re.search(what + ": ([0-9.]+) dB", sys.argv[1])[1])
                 for what in ("weights of recurrent layers in float", "fewer recurrent layers in float"))
assert after >= before, (before, after)
PY
    works ort-quantize static two.onnx --random 1 --effort --threads 1 --isa scalar -o other.onnx
    cmp two.effort.onnx other.onnx
}

@test "--effort leaves small nodes that harm most in float however near the model is, and no large weight" {
    # 'last' reads one channel that reaches far, so that codes of the others are coarse.
    PYTHONPATH=$ROOT/tests/tools python3 - <<'PY'
import random, struct
from fixtures import initializer, model, node, value_info
draw = random.Random(5)
def weight(name, rows, columns, size, reach=lambda row, column: 1):
    return initializer(name, [rows, columns], [draw.gauss(0, size) * reach(k // columns, k % columns)
                                               for k in range(rows * columns)])
for name, out in (("few", 2), ("many", 256)): # of 64 numbers, and of more than all others have
    open(name + ".onnx", "wb").write(model(
        [node("MatMul", ["x", "w1"], ["a"], "wide"), node("Tanh", ["a"], ["b"]),
         node("MatMul", ["b", "w2"], ["c"], "narrow"),
         node("ReduceMean", ["c"], ["d"], attributes={"axes": [1], "keepdims": 0}), node("Exp", ["d"], ["e"]),
         node("MatMul", ["e", "w3"], ["y"], "last")],
        [value_info("x", ["n", 32, 48])], [value_info("y", ["n", out])],
        [weight("w1", 48, 128, 0.1), weight("w2", 128, 32, 0.2, lambda row, column: 1 if column else 8),
         weight("w3", 32, out, 1, lambda row, column: 1 if row else 1 / 8)]))
open("some.bin", "wb").write(struct.pack("<49152f", *[draw.gauss(0, 1) for _ in range(49152)]))
PY
    works ort-tensor some.bin --from raw --dtype float32 --dims 32x32x48 -o some.npy
    for size in few many; do
        run --separate-stderr ort-quantize static $size.onnx -i some.npy --rows 1 --effort -v --json -o $size.q.onnx
        [ "$status" -eq 0 ]
        [[ $stderr == *"harmful nodes in float: "* ]]
        echo "$output" >$size.json
        ort-quantize static $size.onnx -i some.npy --rows 1 --json -o $size.plain.onnx >$size.plain.json
    done
    python3 -c "
import json
def read(name): return json.load(open(name + '.json'))
def db(report): return report['outputs'][0]['sqnr_db']
few, many = read('few'), read('many')
assert few['kept_float']['nodes'] == ['last'] and few['kept_float']['share_of_products'] < 0.001, few['kept_float']
assert 'kept_float' not in many, many['kept_float']
assert db(read('few.plain')) > 32 and db(few) > db(read('few.plain')) + 5, db(few)"
}

@test "--effort doesn't try to make channels even where no two products share any" {
    python3 -c "
import random, struct, sys; sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import initializer, model, node, value_info
draw = random.Random(5)
open('net.onnx', 'wb').write(model([node('MatMul', ['x', 'w'], ['y'])], [value_info('x', ['n', 8])],
    [value_info('y', ['n', 16])], [initializer('w', [8, 16], [draw.gauss(0, 1) for _ in range(128)])]))
open('some.bin', 'wb').write(struct.pack('<256f', *[draw.gauss(0, 1) for k in range(256)]))"
    works ort-tensor some.bin --from raw --dtype float32 --dims 32x8 -o some.npy
    run -0 ort-quantize static net.onnx -i some.npy --rows 1 --effort -v -o q.onnx
    [[ $output == *"rounding and biases by samples, part 4"* && $output != *"equalized, part"* ]]
    run -0 ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --effort -v -o q8.onnx
    [[ $output == *"equalized, part 4"* ]]
}

@test "the same bytes for every number of threads and tier" {
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --effort --threads 1 -o a.onnx
    works ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 --effort --threads 3 \
        --isa scalar -o b.onnx
    cmp a.onnx b.onnx
}

@test "nodes whose codes cost most stay float, within --keep-sensitive, on every tier" {
    local coarse="--weight-type int2 --per-tensor --plain-weights" refused="OpenVINO has no such codes"
    warns "$refused" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 $coarse --keep-sensitive 99 \
        --threads 1 -o a.onnx
    has "kept " "--keep-sensitive 0: none"
    warns "$refused" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 $coarse --keep-sensitive 99 \
        --threads 3 --isa scalar -o b.onnx
    cmp a.onnx b.onnx
    warns "$refused" ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 $coarse --keep-sensitive 0 \
        -o c.onnx
    [[ $output != *"kept "* ]]
    run ort-quantize static "$MODELS_DIR/digits.onnx" --random 1 $coarse --keep-sensitive 4 \
        --json --force -o a.onnx
    python3 -c "
import json, sys
kept = json.loads(sys.argv[1]).get('kept_float', {'share_of_products': 0})
assert 0 <= kept['share_of_products'] <= 0.04, kept" "$(sed -n '/^{/,$p' <<<"$output")"
}

@test "what was 0 in all samples has no range: its readers stay float" {
    python3 - "$ROOT" <<'PY'
import sys

sys.path.insert(0, sys.argv[1] + "/tests/tools")
from fixtures import archive, initializer, model, node, npy, value_info

weights = [initializer("w", [4, 4], [k / 7 - 1 for k in range(16)]),
           initializer("b", [4], [0.001, -0.002, 0.003, 0.5])]
open("net.onnx", "wb").write(model(
    [node("Mul", ["x", "mask"], ["hidden"]), node("Gemm", ["hidden", "w", "b"], ["out"], "last")],
    [value_info("x", [1, 4]), value_info("mask", [1, 4])], [value_info("out", [1, 4])], weights))
for name, mask in (("hidden", 0), ("shown", 1)):
    open(name + ".npz", "wb").write(archive({
        "x.npy": npy([1, -2, 3, 4], (1, 4)), "mask.npy": npy([mask] * 4, (1, 4))}))
PY
    run -0 --separate-stderr ort-quantize static net.onnx -i hidden.npz -v -o q.onnx
    [[ $stderr == *"Gemm 'last' stays float: samples held nothing but 0"* ]]
    [[ $stderr == *"samples showed nothing, or zeros alone, at 1 node that"* ]]
    run -0 --separate-stderr ort-quantize static net.onnx -i hidden.npz -o q.onnx --force
    [ "$(grep -c "zeros alone" <<<"$stderr")" -eq 1 ] # not of each model that is tried
    run -0 --separate-stderr ort-quantize static net.onnx -i shown.npz -v -o q8.onnx
    [[ $stderr != *"zeros alone"* ]]
}

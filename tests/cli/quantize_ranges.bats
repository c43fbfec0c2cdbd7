# ort-quantize calibrate: files of ranges, merged, taken by static, and refused.
load helper

NET=$MODELS_DIR/digits.onnx

samples() { # eight of them, halves, and all in one batch
    mkdir all a b
    python3 - <<'PY'
import random, struct
random.seed(5)
def save(path, n, rows):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1, 8, 8), }" % n
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%df" % len(rows), *rows))
rows = [[random.gauss(0, 1 + i) for _ in range(64)] for i in range(8)]
for i, row in enumerate(rows):
    save("all/%d.npy" % i, 1, row)
    save("%s/%d.npy" % ("a" if i < 3 else "b", i), 1, row)
save("batch.npy", 8, sum(rows, []))
PY
}

@test "ranges of two runs merge to those of one, byte for byte, and give the same model" {
    samples
    for observer in mse min-max; do
        works ort-quantize calibrate "$NET" -i all/ --observer "$observer" -o all.json
        works ort-quantize calibrate "$NET" -i a/ --observer "$observer" -o a.json
        works ort-quantize calibrate "$NET" -i b/ --observer "$observer" -o b.json
        works ort-quantize calibrate --merge a.json b.json -o ab.json
        cmp all.json ab.json
        ort-quantize calibrate --merge b.json a.json | cmp - all.json
        works ort-quantize static "$NET" -i all/ --observer "$observer" -o q.onnx
        works ort-quantize static "$NET" --ranges all.json --observer "$observer" -i all/ -o r.onnx
        works ort-quantize static "$NET" --ranges a.json --ranges b.json --observer "$observer" -i all/ -o s.onnx
        alike q.onnx r.onnx
        alike q.onnx s.onnx
    done
}

@test "parts of the samples, a table's rows too, merge to one run's ranges" {
    samples
    works ort-quantize calibrate "$NET" -i all/ -o all.json
    for k in 1 2 3; do works ort-quantize calibrate "$NET" -i all/ --shard $k/3 -o $k.json; done
    ort-quantize calibrate --merge 2.json 3.json 1.json | cmp - all.json
    cat all/*.npy >all.npys
    for k in 1 2; do ort-quantize calibrate "$NET" -i - --stream --shard $k/2 -o $k.json <all.npys; done
    ort-quantize calibrate --merge 1.json 2.json | cmp - all.json
    fails 5 "holds no sample of this part of --shard" ort-quantize calibrate "$NET" -i all/ --shard 9999/9999 -o no.json
    fails 2 "--shard: '4/3'" ort-quantize calibrate "$NET" -i all/ --shard 4/3 -o no.json
    seq 1 60 | paste -d, - - - - >rows.csv
    python3 -c "
import sys; sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import initializer, model, node, value_info
open('m.onnx', 'wb').write(model([node('MatMul', ['x', 'w'], ['y'])], [value_info('x', ['n', 4])],
                                 [value_info('y', ['n', 2])], [initializer('w', [4, 2], range(8))]))"
    works ort-quantize calibrate m.onnx -i rows.csv -o all.json
    for k in 1 2 3 4; do works ort-quantize calibrate m.onnx -i rows.csv --shard $k/4 -o $k.json; done
    ort-quantize calibrate --merge 1.json 2.json 3.json 4.json | cmp - all.json
}

@test "samples of several shapes: parts on other threads and tiers merge to one run's ranges" {
    python3 -c "
import random, struct, sys; sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import initializer, model, node, value_info
draw = random.Random(3)
w = initializer('w', [6, 2, 3, 3], [draw.gauss(0, 1) for _ in range(108)])
v = initializer('v', [4, 6, 1, 1], [draw.gauss(0, 1) for _ in range(24)])
open('m.onnx', 'wb').write(model(
    [node('Conv', ['x', 'w'], ['y']), node('Relu', ['y'], ['z']), node('Conv', ['z', 'v'], ['u'])],
    [value_info('x', ['n', 2, 'h', 'w_'])], [value_info('u', ['n', 4, 'a', 'b'])], [w, v]))
for k, dims in enumerate([(1, 2, 9, 7), (3, 2, 5, 5), (1, 2, 33, 40), (2, 2, 4, 61), (1, 2, 3, 3), (5, 2, 17, 8)]):
    count = dims[0] * dims[1] * dims[2] * dims[3]
    numbers = [draw.gauss(k / 3, 1 + k) for _ in range(count)]
    head = repr({'descr': '<f4', 'fortran_order': False, 'shape': dims}).ljust(117) + chr(10)
    open(f'{k}.npy', 'wb').write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() +
                                 struct.pack(f'<{count}f', *numbers))"
    local observer
    for observer in mse entropy min-max; do
        works ort-quantize calibrate m.onnx -i 0.npy -i 1.npy -i 2.npy -i 3.npy -i 4.npy -i 5.npy --threads 1 \
            --observer $observer -o all.json --force
        works ort-quantize calibrate m.onnx -i 5.npy -i 2.npy --threads 3 --observer $observer -o a.json --force
        works ort-quantize calibrate m.onnx -i 4.npy --isa avx2 --observer $observer -o b.json --force
        works ort-quantize calibrate m.onnx -i 0.npy -i 3.npy -i 1.npy --threads 2 --isa scalar --observer $observer \
            -o c.json --force
        ort-quantize calibrate --merge c.json a.json b.json | cmp - all.json
        ort-quantize calibrate --merge a.json b.json >ab.json
        ort-quantize calibrate --merge ab.json c.json | cmp - all.json
    done
    works ort-quantize calibrate m.onnx -i 1.npy -o a.json --force # one less
    ! ort-quantize calibrate --merge a.json ab.json | cmp -s - all.json
}

@test "ranges are the same for every tier and number of threads, and as a stream" {
    samples
    works ort-quantize calibrate "$NET" -i all/ --threads 1 -o 1.json
    works ort-quantize calibrate "$NET" -i all/ --threads 2 -o 2.json
    works ort-quantize calibrate "$NET" -i all/ --isa scalar -o 3.json
    cat all/*.npy | ort-quantize calibrate "$NET" -i - >4.json
    for i in 2 3 4; do cmp 1.json $i.json; done
    ort-quantize calibrate --merge - <1.json | cmp - 1.json
    works ort-quantize static "$NET" --ranges 1.json --threads 1 --isa scalar -o a.onnx
    works ort-quantize static "$NET" --ranges 1.json --threads 2 -o b.onnx
    cmp a.onnx b.onnx
}

@test "what values held doesn't depend on how samples are batched" {
    samples
    works ort-quantize calibrate "$NET" -i all/ -o 1.json
    works ort-quantize calibrate "$NET" -i batch.npy -o 8.json
    works ort-quantize calibrate "$NET" -i batch.npy --rows 3 -o 3.json
    for i in 1 3 8; do grep '"name"' $i.json >$i.values; done
    cmp 1.values 3.values
    cmp 1.values 8.values
}

@test "made-up samples are told wherever their ranges go" {
    works ort-quantize calibrate "$NET" --random 1 -o a.json
    grep -q '"made_up": 8' a.json
    run --separate-stderr ort-quantize static "$NET" --ranges a.json -o q.onnx
    [ "$status" -eq 0 ]
    [[ $stderr == *"--ranges: 8 of 8 samples were made up"* ]]
    ort-inspect q.onnx --metadata | grep "ranges of 8, 8 of them made up"
}

@test "moving averages serve their observer alone, and don't merge" {
    samples
    works ort-quantize calibrate "$NET" -i all/ --observer moving-average -o m.json
    works ort-quantize static "$NET" --ranges m.json --observer moving-average -i a/ -o r.onnx
    works ort-quantize static "$NET" -i all/ --observer moving-average --keep-sensitive 0 -o q.onnx
    alike q.onnx r.onnx
    fails 2 "m.json: moving averages depend on the order" ort-quantize calibrate --merge m.json m.json
    fails 2 "m.json holds moving averages, bins are needed; the observer moving-average takes" ort-quantize static "$NET" --ranges m.json -o x.onnx
}

@test "ranges of another model are refused, with the first value that is missing" {
    samples
    works ort-quantize calibrate "$NET" -i all/ -o a.json
    works ort-quantize calibrate "$MODELS_DIR/upscale.onnx" --random 1 -o other.json
    fails 2 "other.json: ranges of another model: value '.*' isn't" ort-quantize static "$NET" --ranges other.json -o x.onnx
    fails 2 "other.json: ranges of another model" ort-quantize calibrate --merge a.json other.json
}

@test "damaged files of ranges are refused with their line" {
    works ort-quantize calibrate "$NET" --random 1 -o a.json
    sed 's/"count": [0-9]*/"count": 1/' a.json >count.json
    sed 's/ort-ranges\/1/ort-ranges\/9/' a.json >schema.json
    sed 's/"least": [^,]*/"least": 1e999/' a.json >huge.json
    sed 's/"bins": \[/&-2000000000, /' a.json >bins.json
    { head -n 9 a.json; sed -n 9p a.json; echo ']}'; } >twice.json
    head -c 300 a.json >short.json
    : >empty.json
    printf '[%.0s' {1..100000} >deep.json
    for file in count:9 schema:2 huge:9 bins:9 twice short empty deep:1; do
        name=${file%:*}.json line=${file#*:}
        [ "$line" = "$file" ] && line='[0-9]+'
        fails 5 "$name, line $line: " ort-quantize static "$NET" --ranges "$name" -o x.onnx
        fails 5 "$name, line $line: " ort-quantize calibrate --merge "$name"
    done
    fails 5 "can't be read" ort-quantize static "$NET" --ranges none.json -o x.onnx
}

@test "what calibrate refuses" {
    fails 2 "takes samples: -i FILE" ort-quantize calibrate "$NET"
    fails 2 "no file of ranges" ort-quantize calibrate --merge
    fails 2 "exclude each other" ort-quantize calibrate --merge a.json --random 1
    fails 2 "makes no model, on which a gate could be judged" ort-quantize calibrate "$NET" --random 1 --min-sqnr 20
    fails 2 "One MODEL|one MODEL" ort-quantize calibrate "$NET" a.json --random 1
    fails 2 "belongs to" ort-quantize calibrate "$NET" --ranges a.json
    fails 2 "none of min-max, percentile, entropy, mse, moving-average, l2.5, l3, l4" ort-quantize calibrate "$NET" --random 1 --observer mean
}

@test "the stamp tells which nodes were chosen, by what files hold and not by their names" {
    stamp() { ort-inspect "$1" --metadata | grep -o 'options:.*'; }
    printf 'Gemm\n' >a.txt
    printf '# the same\nGemm\tby hand\n' >b.txt
    works ort-quantize static "$NET" --random 1 --exclude-from a.txt -o a.onnx
    works ort-quantize static "$NET" --random 1 --exclude-from b.txt -o b.onnx
    works ort-quantize static "$NET" --random 1 --exclude Gemm -o c.onnx
    cmp a.onnx b.onnx
    cmp a.onnx c.onnx
    [[ $(stamp a.onnx) == *"--exclude Gemm; samples:"* ]]
    for i in {1..60}; do cat a.txt; done >many.txt
    works ort-quantize static "$NET" --random 1 --exclude-from many.txt -o many.onnx
    [[ $(stamp many.onnx) == *"--exclude (60 names, digest "????????????????");"* ]]
    run --separate-stderr ort-quantize dynamic "$NET" --small --include Gemm -o d.onnx
    [[ $(stamp d.onnx) == *"--small --include Gemm" ]]
    works ort-quantize weights "$NET" --exclude "hidden,hid*" -o w.onnx
    [[ $(stamp w.onnx) == *"--bits 4 --exclude hidden,hid*" ]]
}

@test "a large array is taken from its file row by row, and gives what a pipe of it gives" {
    python3 - <<'PY'
import random, struct
rows = 17000
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1, 8, 8), }" % rows
head += " " * (63 - (10 + len(head)) % 64) + "\n"
random.seed(3)
with open("large.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
    for _ in range(rows):
        f.write(struct.pack("<64f", *[random.random()] * 64))
PY
    works ort-quantize calibrate "$NET" -i large.npy --rows 1000 -o file.json
    cat large.npy | ort-quantize calibrate "$NET" -i - --rows 1000 | cmp - file.json
    head -c 4300000 large.npy >short.npy
    fails 5 "short.npy: .*claims" ort-quantize calibrate "$NET" -i short.npy -o x.json
}

# ort-quantize: what --auto has found is made again elsewhere, of its assignment and of ranges; weights that two
# operators share stay one.
load helper

NET=$MODELS_DIR/digits.onnx

samples() { # eight of them
    mkdir all
    python3 - <<'PY'
import random, struct
random.seed(5)
for i in range(8):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open("all/%d.npy" % i, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<64f", *[random.gauss(0, 1 + i) for _ in range(64)]))
PY
}

@test "an assignment and ranges make the model that --auto wrote, for every tier and number of threads" {
    samples
    for goal in size latency; do
        works ort-quantize static "$NET" -i all/ --auto $goal --min-sqnr 45 --assignment $goal.json -o $goal.onnx
        for how in "--isa scalar --threads 1" "--isa avx2 --threads 2" "--threads 3"; do
            # shellcheck disable=SC2086
            works ort-quantize calibrate "$NET" -i all/ $how -o ranges.json --force
            # shellcheck disable=SC2086
            works ort-quantize static "$NET" --ranges ranges.json --overrides $goal.json $how -o again.onnx --force
            cmp $goal.onnx again.onnx
            [ ! -e first.onnx ] || cmp first.onnx again.onnx
            cp again.onnx first.onnx
        done
        rm first.onnx
    done
}

# A table of 1,024 rows, which the last product turns (MatMul behind a Transpose, or Gemm; by a factor:
# "scaled"), or multiplies as it lies ("straight"); or which two products share ("two").
tied() {
    python3 - "$ROOT" "$1" <<'PY'
import pathlib, random, sys
sys.path.insert(0, sys.argv[1] + "/tests/tools")
import fixtures as f
random.seed(3)
ROWS, N = 1024, 256
def weight(name, *dims):
    count = dims[0] * dims[1]
    return f.initializer(name, list(dims), [random.gauss(0, 1) / 8 for _ in range(count)])
nodes = [f.node("Gather", ["table", "ids"], ["a"], "lookup"), f.node("MatMul", ["a", "w"], ["b"], "inner"),
         f.node("Tanh", ["b"], ["c"], "tanh")]
weights, outputs, inputs = [weight("table", ROWS, N), weight("w", N, N)], [8, ROWS], f.value_info("ids", [8], 7)
if sys.argv[2] == "gemm":
    nodes.append(f.node("Gemm", ["c", "table"], ["y"], "last", attributes={"transB": 1}))
elif sys.argv[2] == "scaled":
    nodes.append(f.node("Gemm", ["c", "table"], ["y"], "last", attributes={"transB": 1, "alpha": 0.0625}))
elif sys.argv[2] == "straight":
    nodes += [f.node("MatMul", ["c", "v"], ["s"], "wide"), f.node("MatMul", ["s", "table"], ["y"], "last")]
    weights, outputs = weights + [weight("v", N, ROWS)], [8, N]
elif sys.argv[2] == "two":
    nodes = [f.node("MatMul", ["x", "table"], ["c"], "first"), f.node("Relu", ["c"], ["r"], "relu"),
             f.node("Gemm", ["r", "table"], ["y"], "last", attributes={"transB": 1})]
    weights, inputs = weights[:1], f.value_info("x", [8, ROWS])
else:
    nodes += [f.node("Transpose", ["table"], ["t"], "turn"), f.node("MatMul", ["c", "t"], ["y"], "last")]
pathlib.Path("tied.onnx").write_bytes(
    f.model(nodes, [inputs], [f.value_info("y", outputs)], weights))
PY
}

@test "a table that the last product shares stays one copy, in codes, and the file has its size" {
    local size
    while read -r last percent how; do
        tied "$last"
        # shellcheck disable=SC2086
        run --separate-stderr ort-quantize $how tied.onnx -q -o q.onnx --force
        [ "$status" -eq 0 ] || { echo "$last, $how: $stderr"; false; }
        size=$(stat -c %s tied.onnx)
        [ "$(stat -c %s q.onnx)" -le $((size * percent / 100)) ] || {
            echo "$last, $how: $(stat -c %s q.onnx) bytes of $size"
            false
        }
        ort-inspect q.onnx --json --initializers >q.json
        python3 - "$last, $how" <<'PY'
import json, math, sys
told = json.load(open("q.json"))
large = [i for i in told["initializers"] if i["bytes"] >= 1024 * 256 / 3]
copies = 2 if sys.argv[1].startswith("straight") else 1 # of the same size, "v"
assert len(large) == copies and not any(i["type"].startswith("float") for i in large), (sys.argv[1], large)
PY
    done <<'EOF'
matmul 27 static --random 1
matmul 27 dynamic --small
gemm 27 static --random 1
gemm 27 dynamic --small
matmul 29 weights --bits 8
matmul 17 weights --bits 4
gemm 29 weights --bits 8
gemm 17 weights --bits 4
scaled 27 static --random 1
scaled 27 dynamic --small
scaled 29 weights --bits 8
scaled 17 weights --bits 4
straight 27 static --random 1
straight 27 static --random 1 --per-tensor
straight 27 static --random 1 --asymmetric-weights
straight 27 static --random 1 --weight-type uint8
straight 27 dynamic --small
two 27 static --random 1 --per-tensor
two 27 dynamic --small --per-tensor
EOF
}

@test "what lies in the file several times is said, and a table that others read as floats stays float" {
    local copies
    while read -r last copies floats how; do
        tied "$last"
        # shellcheck disable=SC2086
        run --separate-stderr ort-quantize $how tied.onnx --json -q -o q.onnx --force
        [ "$status" -eq 0 ] || { echo "$last, $how: $stderr"; false; }
        python3 - "$output" "$copies" "$floats" <<'PY'
import json, sys
told = json.loads(sys.argv[1])["copies"]
if sys.argv[2] == "0":
    assert told == [], told
else:
    assert [(c["name"], c["codes"], c["floats"]) for c in told] == \
        [("table", int(sys.argv[2]), sys.argv[3] == "yes")] and told[0]["bytes"] > 1024 * 256 / 2, told
PY
        [ "$(stat -c %s q.onnx)" -lt "$(stat -c %s tied.onnx)" ] || [ "$floats" = yes ]
    done <<'EOF'
gemm 0 no static --random 1
gemm 0 no static --random 1 --exclude last
gemm 0 no dynamic --small --exclude last
gemm 0 no weights --bits 4 --tables --exclude last
two 2 no static --random 1
two 2 no dynamic --small
two 2 no weights --bits 4
two 0 no static --random 1 --per-tensor
two 1 yes static --random 1 --exclude last
straight 2 no weights --bits 4
EOF
    run ort-quantize static --random 1 tied.onnx -o q.onnx --force
    [[ $output != *copies* ]]
    tied two
    run ort-quantize static --random 1 tied.onnx -o q.onnx --force
    [[ $output == *"copies    'table' lies there 2 times in codes, 524 kB: its readers have scales along other axes (--per-tensor"* ]]
    run ort-quantize dynamic --small tied.onnx -v --exclude last -o q.onnx --force
    [[ $output == *"'table' lies there in floats and in codes"* ]]
    tied gemm
    run ort-quantize static --random 1 tied.onnx -v --exclude last -o q.onnx --force
    [[ $output == *"'lookup' stays float: others read its table as floats"* ]]
}

@test "alpha and beta of a Gemm go into scales: it multiplies codes" {
    python3 - "$ROOT" <<'PY'
import pathlib, random, sys
sys.path.insert(0, sys.argv[1] + "/tests/tools")
import fixtures as f
random.seed(3)
def weight(name, *dims):
    count = dims[0] * (dims[1] if len(dims) > 1 else 1)
    return f.initializer(name, list(dims), [random.gauss(0, 1) / 8 for _ in range(count)])
pathlib.Path("scaled.onnx").write_bytes(f.model(
    [f.node("Gemm", ["x", "w", "b"], ["h"], "first", attributes={"transB": 1, "alpha": 0.3, "beta": 2.0}),
     f.node("Relu", ["h"], ["r"], "relu"),
     f.node("Gemm", ["r", "v", "c"], ["y"], "last", attributes={"alpha": 1.7, "beta": -0.5})],
    [f.value_info("x", [8, 128])], [f.value_info("y", [8, 64])],
    [weight("w", 96, 128), weight("b", 96), weight("v", 96, 64), weight("c", 64)]))
PY
    while read -r least how; do
        # shellcheck disable=SC2086
        run --separate-stderr ort-quantize $how scaled.onnx --json -q -o q.onnx --force
        [ "$status" -eq 0 ] || { echo "$how: $stderr"; false; }
        python3 - "$output" "$how" "$least" <<'PY'
import json, sys
told = json.loads(sys.argv[1])
products, sqnr = told["products"], told["outputs"][0]["sqnr_db"]
assert "weights" in sys.argv[2] or products["steps"] == products["integer_steps"] == 2, products
assert sqnr >= float(sys.argv[3]) and told["size"]["ratio"] < 0.4, told
PY
    done <<'EOF'
35 static --random 1
35 static --random 1 --form qoperator
35 static --random 1 --per-tensor
35 dynamic --small
35 weights --bits 8
15 weights --bits 4
EOF
}

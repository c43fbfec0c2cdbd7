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
            alike $goal.onnx again.onnx
            [ ! -e first.onnx ] || cmp first.onnx again.onnx
            cp again.onnx first.onnx
        done
        rm first.onnx
    done
}

# A table of 1,024 rows, which the last product turns (MatMul behind a Transpose, or Gemm).
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
if sys.argv[2] == "gemm":
    nodes.append(f.node("Gemm", ["c", "table"], ["y"], "last", attributes={"transB": 1}))
else:
    nodes += [f.node("Transpose", ["table"], ["t"], "turn"), f.node("MatMul", ["c", "t"], ["y"], "last")]
pathlib.Path("tied.onnx").write_bytes(
    f.model(nodes, [f.value_info("ids", [8], 7)], [f.value_info("y", [8, ROWS])],
            [weight("table", ROWS, N), weight("w", N, N)]))
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
assert len(large) == 1 and not large[0]["type"].startswith("float"), (sys.argv[1], large)
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
EOF
}

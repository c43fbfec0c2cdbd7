# What attacks with random files, options and models found (tests/fuzz/attack): refused in words, at once.
load helper

setup_file() {
    export HX=$BATS_FILE_TMPDIR/hostile
    python3 "$ROOT/tests/tools/hostile_models.py" "$HX"
}

@test "an optimizer's step with a left-out gradient is refused before it runs" {
    fails 3 "momentum_hole\.onnx: node .*Momentum.*input 3 is left out" \
        ort-run "$HX/momentum_hole.onnx" --random 1 --hash
    fails 3 "input 3 is left out" ort-optimize "$HX/momentum_hole.onnx" -o o.onnx
}

@test "a place that no image has is refused" {
    local place
    for place in +9223372036854775807+9223372036854775807 +-1+-1 +5 +5+; do
        fails 2 "--crop: .* is no size" ort-tensor "$HX/x.npy" --crop "1x1$place" -o y.npy
        fails 2 "--pad: .* is no size" ort-tensor "$HX/x.npy" --pad "9x9$place" -o y.npy
    done
    works ort-tensor "$HX/x.npy" --crop 1x1+1+2 --print
    has 6
}

@test "a window of more samples than can be counted is refused" {
    fails 2 "--context .* more samples than can be counted" ort-tensor "$HX/four.npy" --chunk 1 \
        --context 9223372036854775807 -o y.npy
}

@test "raw bytes are compared with the shape before memory is asked for" {
    fails 5 "has 8 bytes, .* needs 4611686018427387903" ort-tensor --from raw --dtype int4 \
        --dims 9223372036854775806 <(printf 12345678) -o y.npy
}

@test "a file of 100,000 tensors is read in seconds" {
    python3 -c '
import json, struct, sys
entries = {f"x{i}": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]} for i in range(100000)}
header = json.dumps(entries).encode()
sys.stdout.buffer.write(struct.pack("<Q", len(header)) + header + b"\\1\\2\\3\\4")' >many.safetensors
    run timeout 10 ort-tensor many.safetensors --select x99999 --print
    [ "$status" -eq 0 ]
    has "x99999"
}

@test "a quantized table of no bits is refused" {
    local name
    for name in rows_of_no_bits rows_of_many_bits; do
        fails 3 "GatherBlockQuantized.*bits must be 2, 4 or 8" \
            ort-run "$HX/$name.onnx" --random 1 --hash
    done
}

@test "inputs for 200,000 parts of a list are made up at once" {
    PYTHONPATH=$ROOT/tests/tools python3 -c '
from fixtures import model, node, value_info
m = model([node("Concat", ["x"] * 200000, ["y"], attributes={"axis": 0})],
          [value_info("x", [1])], [value_info("y", [200000])])
open("many.onnx", "wb").write(m)'
    run timeout 10 ort-run many.onnx --random 1 --hash --threads 1
    [ "$status" -eq 0 ]
}

@test "a model that takes no made-up sizes, or has many free axes, is verified in seconds" {
    run --separate-stderr timeout 10 ort-optimize "$HX/topk_all.onnx" -o o.onnx --threads 1
    [ "$status" -eq 0 ]
    [[ $stderr == *"not verified: the original doesn't run on made-up inputs"* ]]
    PYTHONPATH=$ROOT/tests/tools python3 -c '
from fixtures import model, node, value_info
axes = list("abcdefghijk")
open("axes.onnx", "wb").write(model([node("Neg", ["x"], ["y"])], [value_info("x", axes)],
                                    [value_info("y", axes)]))'
    run --separate-stderr timeout 10 ort-optimize axes.onnx -o o.onnx --threads 1
    [ "$status" -eq 0 ]
    [[ $output == *"verified: "*"2 sizes"* ]] && [ -z "$stderr" ]
    run timeout 10 ort-run axes.onnx --random 1 --hash --threads 1
    [ "$status" -eq 0 ]
}

@test "a kernel_shape that isn't the weight's is refused in the blocked layout too" {
    fails 3 "Conv.*kernel_shape says 3 along axis 2, the weight 1" \
        ort-run "$HX/blocked_kernel.onnx" --random 1 --hash
}

# peak MEGABYTES COMMAND...: its peak memory stays below that; $status is the command's.
peak() {
    run --separate-stderr python3 - "$@" <<'END'
import os, sys
pid = os.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(pid, 0)
if usage.ru_maxrss >> 10 > int(sys.argv[1]):
    sys.exit(f"took {usage.ru_maxrss >> 10} MB")
sys.exit(os.waitstatus_to_exitcode(status))
END
}

@test "a verification keeps with both models to one --max-memory" {
    ! grep -q __asan_init "$(command -v ort-optimize)" ||
        skip "AddressSanitizer holds on to what is freed: a peak says nothing"
    mkdir set
    PYTHONPATH=$ROOT/tests/tools python3 -c '
from fixtures import initializer, integers, model, node, value_info
m = model([node("Identity", ["n"], ["size"]), node("ConstantOfShape", ["size"], ["zeros"]),
           node("Add", ["zeros", "x"], ["y"])],
          [value_info("n", [1], 7), value_info("x", [1])], [value_info("y", ["k"])])
open("large.onnx", "wb").write(m)
open("set/input_0.pb", "wb").write(integers("n", [11000000]))
open("set/input_1.pb", "wb").write(initializer("x", [1], [1.0]))'
    peak 164 ort-optimize large.onnx -i set -o o.onnx --max-memory 100M
    [ "$status" -eq 0 ]
    [[ $stderr == *"not verified"*"limit of all that is held"* ]]
    peak 512 ort-optimize large.onnx -i set -o o.onnx --max-memory 300M
    [[ $output == *verified:* ]] && [ -z "$stderr" ]
}

@test "codes whose readers fork at every step are not followed along all paths" {
    PYTHONPATH=$ROOT/tests/tools python3 -c '
from fixtures import initializer, integers, model, node, value_info
nodes = [node("QuantizeLinear", ["x", "s"], ["q"]), node("DequantizeLinear", ["q", "s"], ["d"]),
         node("Reshape", ["d", "shape"], ["v0"])]
nodes += [node("Sum", [f"v{i}"] * 300, [f"v{i + 1}"]) for i in range(9)]
m = model(nodes, [value_info("x", [4])], [value_info("v9", [2, 2])],
          [initializer("s", [], [1.0]), integers("shape", [2, 2])])
open("forks.onnx", "wb").write(m)'
    works timeout 60 ort-run forks.onnx --random 1 --hash
}

# Providers from the shell: lists, devices that are missing, what runs where.
load helper

net=$MODELS_DIR/digits.onnx

has_opencl() {
    ort-run --provider opencl --settings > /dev/null || skip "this build has no OpenCL"
}

@test "names that this build lacks, and names that nobody has, are told apart" {
    run ort-run --provider tensorrt,cpu x.onnx
    [ "$status" -eq 2 ]
    [[ "$output" == *"provider 'tensorrt' is not in this build; this build has: cpu"* ]]
    run ort-run --provider tpu x.onnx
    [ "$status" -eq 2 ]
    [[ "$output" == *"provider 'tpu' is unknown (did you mean 'cpu'?); this build has: cpu"* ]]
    fails 2 "provider ' cpu' is unknown \(did you mean 'cpu'\?\)" ort-run --provider 'cpu, cpu' x.onnx
    fails 2 "provider 'accelerate' is unknown; this build has: cpu" ort-run --provider accelerate x.onnx
    fails 2 "provider 'CUDA' is not in this build" ort-run --provider CUDA x.onnx
    run env ORT_PROVIDER=cuda ort-run x.onnx
    [ "$status" -eq 2 ]
    run ort-run --provider cpu:fast=1 x.onnx
    [ "$status" -eq 2 ]
    [[ "$output" == *"provider 'cpu' has no options"* ]]
}

@test "without a library or a driver: exit 4 alone, a warning with cpu, exit 4 when strict" {
    has_opencl
    for missing in ORT_OPENCL_LIB=/nonexistent.so OCL_ICD_VENDORS=/nonexistent; do
        run env "$missing" ort-run --provider opencl "$net" --random 1 -o y.npz
        [ "$status" -eq 4 ]
        [[ "$output" == *"provider 'opencl': OpenCL"* ]]
        [ ! -e y.npz ]
        run env "$missing" ort-run --provider opencl,cpu "$net" --random 1 -o y.npz
        [ "$status" -eq 0 ]
        [[ "$output" == *"provider 'opencl' is left out: OpenCL"* ]]
        [ "${#lines[@]}" -eq 1 ]
        ort-run "$net" --random 1 -o want.npz
        cmp y.npz want.npz
        rm y.npz
        run env "$missing" ort-run --strict --provider opencl,cpu "$net" --random 1 -o y.npz
        [ "$status" -eq 4 ]
    done
}

@test "ORT_OPENCL_LIB that names no library of OpenCL: said as what it is" {
    has_opencl
    echo text > text.so
    fails 4 "OpenCL's library that ORT_OPENCL_LIB names can't be opened: .*text.so: " \
        env ORT_OPENCL_LIB="$PWD/text.so" ort-run --provider opencl "$net" --random 1
    fails 4 "OpenCL's library that ORT_OPENCL_LIB names can't be opened: .*none.so: " \
        env ORT_OPENCL_LIB="$PWD/none.so" ort-run --provider opencl "$net" --random 1
    fails 4 "OpenCL: libm.so.6 has no cl[A-Za-z]*, so it isn't a library of OpenCL 1.2" \
        env ORT_OPENCL_LIB=libm.so.6 ort-run --provider opencl "$net" --random 1
}

@test "a run on the CPU never opens the library" {
    LD_DEBUG=files ort-run "$net" --random 1 -o y.npz 2> files
    ! grep -q OpenCL files
}

@test "a device gives what the CPU gives, and -v says who ran what" {
    has_opencl
    ort-run --provider opencl "$net" --random 1 -o y.npz || skip "no device of OpenCL here"
    ort-run "$net" --random 1 -o want.npz
    ort-tensor y.npz --compare want.npz
    run ort-run -v --provider opencl:cost=off,cpu "$net" --random 1 -o y.npz
    [ "$status" -eq 0 ]
    [[ "$output" =~ "opencl: "[1-9][0-9]*" nodes, cpu: "[0-9]+", "[0-9]+" borders, " ]]
    fails 2 "device=x: a device is a number" ort-run --provider opencl:device=x "$net" --random 1
    fails 2 "tiles=big: tiles are made in local memory" ort-run --provider opencl:tiles=big "$net" --random 1
    fails 2 "option 'cost' comes twice" ort-run --provider opencl:cost=off:cost=on,cpu "$net" --random 1
    fails 2 "fp16=yes: values are floats" ort-run --provider opencl:fp16=yes "$net" --random 1
    if ! ort-inspect --providers --json | grep -q '"float16": true'; then
        fails 2 "has no cl_khr_fp16; fp16=1 keeps" ort-run --provider opencl:fp16=math "$net" --random 1
    fi
    run ort-run -v --provider opencl:cost=off:fp16=1,cpu "$net" --random 1 -o y.npz
    [ "$status" -eq 0 ]
    [[ "$output" =~ "opencl: "[1-9][0-9]*" of "[0-9]+" nodes on values of 16 bits" ]]
    [[ "$output" =~ "opencl: weights in 16 bits: "[0-9.]+" dB" ]]
    run ort-run "$net" --random 1 --compare-providers opencl:cost=off:fp16=1,cpu --rtol 1e-6
    [ "$status" -eq 1 ]
    [[ "$output" == *"first difference in"* ]]
    works ort-run "$net" --random 1 --compare-providers opencl:cost=off:fp16=1,cpu --rtol 0.01
    for tiles in local registers; do
        ort-run --provider opencl:tiles=$tiles "$net" --random 1 -o y.npz
        ort-tensor y.npz --compare want.npz
    done
    fails 4 "there is no device 63" ort-run --provider opencl:device=63 "$net" --random 1
}

@test "chains of elementwise operators give the bits of one operator after the other" {
    has_opencl
    ort-run --provider opencl "$net" --random 1 -o y.npz || skip "no device of OpenCL here"
    python3 "$ROOT/tests/tools/fixtures.py" fx
    echo '{"rows": [1, 0, -2, 1]}' > rows.json
    for tiles in local registers; do
        run ort-run -v --provider opencl:cost=off:tiles=$tiles,cpu fx/looked_up.onnx -i rows.json -o chains.npz
        [ "$status" -eq 0 ]
        [[ "$output" == *"opencl: 3 elementwise operators in 1 kernels"* ]]
        run ort-run -v --provider opencl:cost=off:chains=off:tiles=$tiles,cpu fx/looked_up.onnx -i rows.json -o one.npz
        [ "$status" -eq 0 ]
        [[ "$output" != *"elementwise"* ]]
        ort-tensor chains.npz --compare one.npz --rtol 0 --atol 0
        ort-run fx/looked_up.onnx -i rows.json -o want.npz
        ort-tensor chains.npz --compare want.npz
    done
    ort-profile --provider opencl:cost=off,cpu fx/looked_up.onnx -i rows.json --seconds 0.1 -o trace.json
    grep -q quick_gelu_add_tanh__0 trace.json
    fails 2 "chains=no: elementwise operators run as chains" \
        ort-run --provider opencl:chains=no "$net" --random 1
}

@test "an index that is out of range is the data's fault, on the device too" {
    has_opencl
    ort-run --provider opencl "$net" --random 1 -o y.npz || skip "no device of OpenCL here"
    python3 "$ROOT/tests/tools/fixtures.py" fx
    echo '{"rows": [1, 0, 7, 1]}' > bad.json
    echo '{"rows": [1, 0, 1, 1]}' > good.json
    for provider in cpu opencl:cost=off,cpu; do
        fails 4 "node 'gather_g' \(Gather\): indices\[2\] is 7, outside \[-2, 1\]" \
            ort-run --provider $provider fx/looked_up.onnx -i bad.json -o y.npz
    done
    [[ $stderr != *"goes on on cpu"* ]]
    ort-run --provider opencl:cost=off,cpu fx/looked_up.onnx -i good.json -o y.npz
}

@test "strings stay on the processor, whatever moves them" {
    has_opencl
    ort-run --provider opencl "$net" --random 1 -o y.npz || skip "no device of OpenCL here"
    "$ROOT/build/venv/bin/python" - <<'END'
from onnx import TensorProto, helper, save
S, I = TensorProto.STRING, TensorProto.INT64
MOVES = {"Reshape": [4], "Gather": [1, 0], "Squeeze": [0], "Unsqueeze": [0], "Identity": None, "Flatten": None}
for op, more in MOVES.items():
    weights = [helper.make_tensor("more", I, [len(more)], more)] if more else []
    node = helper.make_node(op, ["x", "more"] if more else ["x"], ["y"])
    rows = 1 if op == "Squeeze" else 2
    graph = helper.make_graph([node], op, [helper.make_tensor_value_info("x", S, [rows, 2])],
                              [helper.make_tensor_value_info("y", S, None)], weights)
    save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), f"{op}.onnx")
END
    echo '{"x": [["a", "a longer one, which lies elsewhere"], ["", "d"]]}' > two.json
    echo '{"x": [["a", "a longer one, which lies elsewhere"]]}' > one.json
    local op given
    for op in Reshape Gather Squeeze Unsqueeze Identity Flatten; do
        given=two.json
        [ $op != Squeeze ] || given=one.json
        run ort-inspect --partition --provider opencl:cost=off,cpu $op.onnx
        [ "$status" -eq 0 ]
        [[ "$output" == *"$op"*"the element type has no kernel"* ]] || { echo "$op: $output" >&2; return 1; }
        run --separate-stderr ort-run -v --provider opencl:cost=off,cpu $op.onnx -i $given -o there.json
        [ "$status" -eq 0 ]
        [[ $stderr != *"goes on on cpu"* && $stderr == *"opencl: 0 nodes"* ]] || { echo "$op: $stderr" >&2; return 1; }
        ort-run $op.onnx -i $given -o here.json
        cmp there.json here.json
        grep -q "a longer one" there.json
    done
}

@test "programs are kept where ORT_CACHE says, and only there" {
    has_opencl
    ort-run --provider opencl "$net" --random 1 -o y.npz || skip "no device of OpenCL here"
    mkdir cache
    ORT_CACHE=$PWD/cache ort-run --provider opencl "$net" --random 1 -o first.npz
    ls cache/opencl-*.bin
    ORT_CACHE=$PWD/cache ort-run --provider opencl "$net" --random 1 -o second.npz
    cmp first.npz second.npz
    for file in cache/*; do echo damaged > "$file"; done
    ORT_CACHE=$PWD/cache ort-run --provider opencl "$net" --random 1 -o third.npz
    cmp first.npz third.npz
    ORT_CACHE=$PWD/nowhere ort-run --provider opencl "$net" --random 1 -o fourth.npz
    cmp first.npz fourth.npz
}

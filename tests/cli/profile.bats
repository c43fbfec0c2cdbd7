# ort-profile: the structure of its reports; times are only held against each other.
load helper

# jq-free: a Python expression over the report `r` that must be true.
true_of() { # true_of FILE EXPRESSION
    python3 -c "
import json, sys
r = json.load(open(sys.argv[1]))
assert eval(sys.argv[2]), (sys.argv[2], r)" "$1" "$2"
}

@test "tables: machine, load, latency, operators, nodes" {
    works ort-profile "$MODELS_DIR/digits.onnx" --repeat 5
    has "model     $MODELS_DIR/digits.onnx" "GFLOP/s" "GB/s" "conv_activation" "runs      5:" \
        "overhead" "operator" "of peak" "fused from" "conv1+relu1" "Softmax"
}

@test "--by and --top choose rows" {
    works ort-profile "$MODELS_DIR/digits.onnx" --repeat 3 --no-peak --by op
    [[ $output != *"fused from"* ]]
    works ort-profile "$MODELS_DIR/digits.onnx" --repeat 3 --no-peak --by node --top 2
    has "more nodes: --top 0 shows all"
    works ort-profile "$MODELS_DIR/digits.onnx" --repeat 3 --no-peak --by node --top 0
    [[ $output != *"more nodes"* ]]
}

@test "--json: nodes and overhead are the wall time" {
    ort-profile "$MODELS_DIR/digits.onnx" --repeat 20 --warmup 3 --json >r.json
    true_of r.json 'r["schema"] == "ort-profile/1" and r["runs"] == 20 and r["warmup_runs"] == 4'
    true_of r.json 'abs(r["nodes_ms"] + r["overhead_ms"] - r["latency_ms"]["mean"]) < 1e-6'
    true_of r.json 'abs(sum(n["self_ms"] for n in r["nodes"]) - r["nodes_ms"]) < 1e-6'
    true_of r.json 'abs(sum(n["self_ms"] for n in r["operators"]) - r["nodes_ms"]) < 1e-6'
    true_of r.json 'all(n["calls"] == 20 and n["spread_ms"]["p50"] <= n["spread_ms"]["p99"] for n in r["nodes"])'
    true_of r.json 'r["machine"]["peak_gflops"] > 0 and len(r["machine"]["memory"]) >= 3'
    true_of r.json '{"load", "check", "plan"} <= {p["name"] for p in r["load"]["phases"]}'
    true_of r.json 'r["cycles"] is None and r["dropped_events"] == 0'
}

@test "nodes carry shapes, work and the names they were fused from" {
    ort-profile "$MODELS_DIR/digits.onnx" --repeat 2 --no-peak --json --isa scalar >r.json
    true_of r.json 'r["machine"] is None and all(n["of_peak"] is None for n in r["nodes"])'
    true_of r.json 'any(n.get("fused_from") == "conv1+relu1" and n["macs"] > 0 for n in r["nodes"])'
    true_of r.json 'all(n["tier"] == "scalar" for n in r["nodes"])'
    true_of r.json '[n for n in r["nodes"] if n["name"] == "scores"][0]["outputs"][0]["shape"] == [1, 10]'
    ort-profile "$MODELS_DIR/digits.onnx" --repeat 2 --no-peak --json --level 0 >r.json
    true_of r.json 'not any("fused_from" in n for n in r["nodes"])'
}

@test "the trace has the fields of onnxruntime's profiles" {
    works ort-profile "$MODELS_DIR/digits.onnx" --repeat 3 --no-peak -o trace.json
    has "operator"
    true_of trace.json '{e["name"] for e in r if e["cat"] == "Session"} >= {"model_loading_uri", "session_initialization", "model_run", "SequentialExecutor::Execute"}'
    true_of trace.json 'all(list(e)[:7] == ["cat", "pid", "tid", "dur", "ts", "ph", "name"] and e["ph"] == "X" for e in r)'
    true_of trace.json 'sum(e["name"] == "model_run" for e in r) == 6'
    true_of trace.json 'all(e["name"].endswith("_kernel_time") and isinstance(e["args"]["output_size"], str) and isinstance(e["args"]["input_type_shape"], list) for e in r if e["cat"] == "Node")'
    true_of trace.json '[e for e in r if e["name"] == "scores_kernel_time"][0]["args"]["output_type_shape"] == [{"float": [1, 10]}]'
    ort-profile "$MODELS_DIR/digits.onnx" --repeat 1 --no-peak -o - >again.json
    true_of again.json 'len(r) > 10'
}

@test "inputs as ort-run takes them" {
    works ort-profile "$FX/add.onnx" "$FX/x.npy" "$FX/y.npy" --repeat 2 --no-peak
    works ort-profile "$FX/add.onnx" -i "$FX/xy.npz" --repeat 2 --no-peak
    works ort-profile "$FX/add.onnx" -i x="$FX/x.npy" --random 3 --repeat 2 --no-peak
    run --separate-stderr sh -c "ort-profile - --repeat 2 --no-peak --json <$FX/add.onnx"
    [ "$status" -eq 0 ]
}

@test "--cycles counts, or says why not" {
    ort-profile "$FX/add.onnx" --repeat 2 --no-peak --cycles --json >r.json
    true_of r.json 'r["cycles"] is not None and r["cycles"] > 0 or "perf_event" in r["cycles_note"]'
}

@test "--kernels measures single operators" {
    ort-profile --kernels --repeat 1 --warmup 0 --no-peak --threads 1 --json >r.json
    true_of r.json 'r["schema"] == "ort-profile-kernels/1" and len(r["kernels"]) > 20'
    true_of r.json '{"MatMul", "Conv", "Softmax", "LayerNormalization", "Relu"} <= {k["op_type"] for k in r["kernels"]}'
    true_of r.json 'all(k["node"]["macs"] > 0 for k in r["kernels"] if k["op_type"] in ("MatMul", "Conv", "Gemm"))'
    fails 2 "takes no MODEL" ort-profile --kernels "$FX/add.onnx"
}

@test "usage errors" {
    fails 2 'no MODEL' ort-profile
    fails 2 "none of op, node" ort-profile "$FX/add.onnx" --by size
    fails 2 "not a whole number of 1 or more" ort-profile "$FX/add.onnx" --repeat -1
    fails 2 "no input 'nope'" ort-profile "$FX/add.onnx" -i nope="$FX/x.npy"
    fails 3 "add.onnx|none.onnx" ort-profile none.onnx
    fails 5 "can't create" ort-profile "$FX/add.onnx" --repeat 1 --no-peak -o no/such/trace.json
}

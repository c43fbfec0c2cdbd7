# The gates of `make bench-quant` over made-up rows: what they say no to, and to what not.
load helper

setup_file() {
    cat >"$BATS_FILE_TMPDIR/gates.py" <<'PY'
import argparse
import json
import sys

sys.path.insert(0, sys.argv[1])
import bench_quant

bench_quant.UNJUDGED = {"refused": "the peer takes no loops"}
bench_quant.UNJUDGED_BY_NNCF = {"refused": "the peer takes no loops"}
good = {"name": "good", "ours": {"ort": 33.0, "here": 33.1}, "peer": [30.0, "entropy"],
        "peer_here": [30.1, "percentile"], "effort": {"ort": 34.0, "here": 34.0},
        "nncf": [32.0, "nncf_mixed"]}
refused = {"name": "refused", "ours": {"ort": 30.0, "here": 30.0}, "peer": None,
           "why": "a loop", "effort": {"ort": 30.0}, "nncf": None}
rows = [dict(good, **json.loads(text)) for text in sys.argv[3:]] + [refused]
sys.exit(bench_quant.print_gates(rows, argparse.Namespace(effort=sys.argv[2] == "effort")))
PY
}

# gates plain|effort ROW...: a ROW is what differs from a good one.
gates() {
    run "$ROOT/build/venv/bin/python" "$BATS_FILE_TMPDIR/gates.py" "$ROOT/tests/tools" "$@"
}

@test "bench-quant passes where every model is judged and ahead" {
    gates effort '{}' '{"name": "other"}'
    [ "$status" -eq 0 ]
    [[ $output != *"not ok"* ]]
    [[ $output == *"without refused: the peer takes no loops"* ]]
}

@test "bench-quant takes NaN for the worst that an output can be" {
    run "$ROOT/build/venv/bin/python" - "$ROOT/tests/tools" <<'PY'
import sys

sys.path.insert(0, sys.argv[1])
import numpy as np
from bench_quant import Reference

reference = Reference.__new__(Reference)
reference.names, reference.wanted = ["y"], [[np.array([3.0, 4.0, np.inf])]]
for got in ([3, 4, 0], [3, 3.5, 0], [3, np.nan, 0], [np.inf, 4, 0]):
    print(reference.sqnr([[np.array(got, np.float32)]]))
PY
    [ "$output" = $'100.0\n20.0\n-100.0\n-100.0' ]
}

@test "bench-quant says no to a model that is behind, here or in onnxruntime" {
    gates plain '{}' '{"name": "late", "ours": {"ort": 29.99, "here": 33}}'
    [ "$status" -eq 1 ]
    [[ $output == *"late: 29.99 dB in onnxruntime, entropy has 30.0"* ]]
    gates plain '{}' '{"name": "late", "ours": {"ort": 33, "here": 30.0}}'
    [ "$status" -eq 1 ]
    [[ $output == *"late: 30.0 dB here, percentile has 30.1"* ]]
    gates plain '{"ours": {"ort": 30.9, "here": 30.9}}'
    [ "$status" -eq 1 ]
    [[ $output == *"not ok: 1 dB above it in the median: 0.90 dB"* ]]
}

@test "bench-quant says no to a model that nobody judged, and to a reason that isn't true" {
    gates plain '{}' '{"name": "new", "peer": null, "why": "its file did not load"}'
    [ "$status" -eq 1 ]
    [[ $output == *"judged: 2 of 3"*"new: its file did not load"* ]]
    gates plain '{}' '{"name": "refused"}'
    [ "$status" -eq 1 ]
    [[ $output == *"refused: judged, but said not to be"* ]]
    gates plain '{}' '{"name": "fails", "ours": {"why": "exit 3: broken"}}'
    [ "$status" -eq 1 ]
    [[ $output == *"fails: exit 3: broken"* ]]
    gates plain # nothing but what isn't judged
    [ "$status" -eq 1 ]
}

@test "bench-quant says no where --effort is behind NNCF, or wasn't compared" {
    gates effort '{}' '{"name": "late", "nncf": [34.01, "nncf_mixed"]}'
    [ "$status" -eq 1 ]
    [[ $output == *"late: 34.0 dB, nncf_mixed has 34.01"* ]]
    gates effort '{}' '{"name": "new", "nncf": null, "why_nncf": "no file"}'
    [ "$status" -eq 1 ]
    [[ $output == *"new: no file"* ]]
}

@test "bench-quant finds what a peer left in float, be it initializers or constant nodes" {
    run "$ROOT/build/venv/bin/python" - "$ROOT/tests/tools" <<'PY'
import sys

sys.path.insert(0, sys.argv[1])
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
from bench_quant import left_alone

w = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
nodes = [helper.make_node("Constant", [], ["c"], value=w),
         helper.make_node("MatMul", ["x", "c"], ["a"], name="of_a_node"),
         helper.make_node("MatMul", ["a", "w"], ["b"], name="of_an_initializer"),
         helper.make_node("DequantizeLinear", ["q", "s"], ["d"]),
         helper.make_node("MatMul", ["b", "d"], ["e"], name="on_codes"),
         helper.make_node("Gather", ["w", "i"], ["g"]),
         helper.make_node("Sigmoid", ["e"], ["f"]), helper.make_node("Mul", ["e", "f"], ["h"])]
save(helper.make_model(helper.make_graph(nodes, "g", [], [], [w])), "net.onnx")
print(left_alone("net.onnx"))
PY
    [ "$output" = "(['Gather', 'Mul', 'Sigmoid'], ['of_a_node', 'of_an_initializer'])" ]
}

@test "bench-quant goes on where it was stopped, and starts over where something changed" {
    run "$ROOT/build/venv/bin/python" - "$ROOT/tests/tools" "$BATS_TEST_TMPDIR" <<'PY'
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
from bench_quant import start_over

home = pathlib.Path(sys.argv[2])
made = home / "entropy.onnx"
for kept in (False, True, False):
    made.write_text("a peer's file")
    start_over(home, ["digest", "names", "other" if home.joinpath("again").exists() else "versions"])
    print(made.exists() == kept)
    if kept:
        home.joinpath("again").write_text("")
PY
    [ "$output" = $'True\nTrue\nTrue' ]
}

# Options that nothing would act on, and values that nothing would read: they are refused with what to
# do, never passed over.
load helper
PATH=$ROOT/build/venv/bin:$PATH # models and tensors are made with onnx and numpy

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    python3 - "$FX" <<'EOP'
import sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

row = lambda name: h.make_tensor_value_info(name, T.FLOAT, ["n", 2])
graph = h.make_graph([h.make_node("Add", ["a", "b"], ["s"]), h.make_node("Mul", ["s", "w"], ["y"])],
                     "sum", [row("a"), row("b")], [row("y")],
                     initializer=[numpy_helper.from_array(np.ones(2, np.float32), "w")])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
onnx.save(model, f"{sys.argv[1]}/sum.onnx")
full = lambda value: np.full((1, 2), value, np.float32)
np.save(f"{sys.argv[1]}/one.npy", full(1))
np.savez(f"{sys.argv[1]}/ab.npz", a=full(2), b=full(3))
np.savez(f"{sys.argv[1]}/b.npz", b=full(4))
EOP
}

@test "--json beside an action that makes no report says what does" {
    fails 2 "--tensor makes none: -o FILE.json" ort-inspect "$FX/sum.onnx" --tensor w --json
    fails 2 "--svg and --json exclude each other" ort-inspect "$FX/sum.onnx" --svg --json
    fails 2 "--dot and --json exclude each other" ort-inspect "$FX/sum.onnx" --dot --json
    fails 2 "--extract and --json exclude each other" ort-inspect "$FX/sum.onnx" --extract s:y -o part.onnx --json
    works ort-inspect "$FX/sum.onnx" --tensor w -o w.json
}

@test "a trace on stdout leaves no place for a report" {
    for option in --json "--by op" "--top 3"; do
        # shellcheck disable=SC2086
        fails 2 "-o - leaves stdout to the trace and ${option% *} is about the report: -o FILE" \
            ort-profile "$FX/sum.onnx" --repeat 1 --no-peak -o - $option
    done
    works ort-profile "$FX/sum.onnx" --repeat 1 --no-peak -o -
    works ort-profile "$FX/sum.onnx" --repeat 1 --no-peak -o trace.json --json
}

@test "a seed of what is not verified is refused" {
    fails 2 "--no-verify and --random exclude each other" ort-optimize "$FX/sum.onnx" --no-verify \
        --random 1 -o out.onnx
}

@test "an input that two would give is refused, and who is the second" {
    fails 2 "'a' is given twice, the second time by .*ab.npz: give it once" \
        ort-run "$FX/sum.onnx" -i a="$FX/one.npy" "$FX/ab.npz" --hash
    fails 2 "'a' is given twice, the second time by .*one.npy" \
        ort-run "$FX/sum.onnx" -i "$FX/ab.npz" -i a="$FX/one.npy" --hash
    fails 2 "'b' is given twice, the second time by .*b.npz" \
        ort-run "$FX/sum.onnx" -i "$FX/b.npz" -i "$FX/ab.npz" --hash
    fails 2 "'b' is given twice, the second time by standard input" \
        bash -c "exec ort-run '$FX/sum.onnx' -i b='$FX/one.npy' --stream -o out.npz <'$FX/ab.npz'"
    works ort-run "$FX/sum.onnx" -i a="$FX/one.npy" "$FX/b.npz" --hash
    works ort-run "$FX/sum.onnx" -i a="$FX/one.npy" -i a="$FX/one.npy" "$FX/b.npz" --hash
    ort-tensor "$FX/ab.npz" --select b -o rest.npz
    works ort-run "$FX/sum.onnx" -i a="$FX/one.npy" rest.npz --hash
}

@test "a shape or an element type is refused by formats that say their own" {
    works ort-tensor "$FX/one.npy" --name x -o one.npz -o one.pb -o one.safetensors -o one.json
    for ending in npz pb safetensors; do
        fails 2 "one\.$ending: is $ending, which says its own shape; --dims is for \.json and \.raw" \
            ort-tensor one.$ending --dims 2x1 --print
    done
    fails 2 "one\.npy: is npy, which says its own shape" ort-tensor "$FX/one.npy" --dims 2x1 --print
    fails 2 "is npy, which says its own shape" bash -c "ort-tensor - --dims 2x1 --print <'$FX/one.npy'"
    for ending in pb safetensors; do
        fails 2 "one\.$ending: is $ending, which says its own element type; --dtype is for \.npy" \
            ort-tensor one.$ending --dtype float --print
    done
    works ort-tensor one.json --dims 2x1 --print
    has "float 2x1"
}

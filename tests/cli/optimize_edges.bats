# ort-optimize: values at the edge of what options take, files that must not be lost, what
# verification can't tell, blame that lies outside of the passes.
load helper

digits=$MODELS_DIR/digits.onnx

@test "--max-growth takes factors and sizes, and refuses what is neither" {
    local growth
    for growth in 1 1.5x 5k 60k 10M 10MB 2G 1e400 100x 100X 2000x; do
        works ort-optimize "$FX/spread.onnx" --max-growth $growth -q -o out.onnx
        works ort-inspect out.onnx
        case $growth in
        1 | 1.5x | 5k | 100x | 100X) has Tile ConstantOfShape ;;
        *) [[ $output != *Tile* && $output != *ConstantOfShape* ]] ||
            { echo "$growth: $output"; return 1; } ;;
        esac
    done
    for growth in 0 0.5 -1 nan inf x '' 10q 10xx +2x; do
        fails 2 "--max-growth: '.*'" ort-optimize "$FX/tile.onnx" --max-growth "$growth" -o out.onnx
    done
}

@test "what Tile, Expand and ConstantOfShape make of constants stays out of the file" {
    local options
    for options in '' '--level 1' '--contrib' '--max-growth 1.5x'; do
        # shellcheck disable=SC2086
        works ort-optimize "$FX/spread.onnx" $options -q -o out.onnx
        [ "$(stat -c %s out.onnx)" -le "$(stat -c %s "$FX/spread.onnx")" ]
        works ort-run out.onnx --random 1 --compare "$FX/spread.onnx" --rtol 0 --atol 0
    done
}

@test "numbers, lists and names that say nothing are refused" {
    local value
    for value in nan inf -1 1x ''; do
        fails 2 "--tolerance: '.*' is not a number" \
            ort-optimize "$digits" --tolerance "$value" -o out.onnx
    done
    fails 2 "--timeout: '-1' is not a number above 0" ort-optimize "$digits" --timeout -1
    fails 2 "--passes: '' names nothing" ort-optimize "$digits" --passes "" -o out.onnx
    fails 2 "--strip: ',' names nothing" ort-optimize "$digits" --strip , -o out.onnx
    fails 2 "-o needs the name of a file" ort-optimize "$digits" -o ""
    fails 2 "--rtol: 'nan' is not a number of 0 or more" \
        ort-run "$FX/chain.onnx" "$FX/x.npy" --expect "$FX/x.npy" --rtol nan
}

@test "--keep-float refuses names that keep nothing, and follows nodes that were merged" {
    fails 2 "nothing to keep in float is called 'Nonsense'" \
        ort-optimize "$digits" --fp16 --keep-float Gemm,Nonsense -o out.onnx
    works ort-optimize "$digits" --fp16 --keep-float TopK -q -o out.onnx
    run --separate-stderr ort-optimize "$FX/chain.onnx" --fp16 --keep-float relu_a -q -o out.onnx
    [ "$status" -eq 0 ]
}

# Products with a bias, each in a file of its own, that become one Gemm: with names, without, in a
# function, in a body that is taken, beside an equal Gemm, behind a Transpose; scores as Attention.
dense_models() {
    "$ROOT/build/venv/bin/python" - <<'END'
import numpy as np, onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

rng = np.random.default_rng(3)
WEIGHTS = [nh.from_array(rng.standard_normal(s).astype(np.float32), n)
           for s, n in (((8, 8), "w"), ((8,), "b"))]

def dense(x, y, inner, product="product", plus="plus"):
    return [h.make_node("MatMul", [x, "w"], [inner], name=product),
            h.make_node("Add", [inner, "b"], [y], name=plus)]

def save(name, nodes, constants=(), functions=(), shape=(4, 8), outputs=1):
    values = [h.make_tensor_value_info(n, T.FLOAT, shape) for n in ("x", "y", "z")[:outputs + 1]]
    graph = h.make_graph(nodes, "g", values[:1], values[1:], WEIGHTS + list(constants))
    opsets = [h.make_opsetid("", 23)] + ([h.make_opsetid("own", 1)] if functions else [])
    model = h.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)
    onnx.save(model, name + ".onnx")

save("named", dense("x", "y", "i"))
save("bare", dense("x", "y", "i", "", ""))
inner = h.make_function("own", "Dense", ["x", "w", "b"], ["y"], dense("x", "y", "i"),
                        [h.make_opsetid("", 23)])
outer = h.make_function("own", "Layer", ["x", "w", "b"], ["y"],
                        [h.make_node("Dense", ["x", "w", "b"], ["y"], domain="own")],
                        [h.make_opsetid("", 23), h.make_opsetid("own", 1)])
save("function", [h.make_node("Layer", ["x", "w", "b"], ["y"], domain="own", name="call")],
     functions=[inner, outer])
branches = {k + "_branch": h.make_graph(dense("x", "r_" + k, "i_" + k), k, [],
                                        [h.make_tensor_value_info("r_" + k, T.FLOAT, (4, 8))])
            for k in ("then", "else")}
save("body", [h.make_node("If", ["yes"], ["y"], name="choice", **branches)],
     [nh.from_array(np.array(True), "yes")])
save("equal", [h.make_node("Gemm", ["x", "w", "b"], ["g"], name="first")] +
     dense("x", "d", "i") + [h.make_node("Add", ["g", "d"], ["y"], name="sum")])
save("turned", [h.make_node("Transpose", ["x"], ["t"], perm=[1, 0], name="turn")] +
     dense("t", "y", "i"), shape=(8, 8))
END
}

# halves FILE: is a weight of it float16?
halves() {
    "$ROOT/build/venv/bin/python" -c 'import onnx, sys
sys.exit(all(t.data_type != 10 for t in onnx.load(sys.argv[1]).graph.initializer))' "$1"
}

@test "--keep-float follows operators through the passes" {
    local model name
    [ -x "$ROOT/build/venv/bin/python" ] || skip "no build/venv"
    dense_models
    for model in named bare function body equal turned; do
        works ort-optimize $model.onnx --fp16 --keep-float TopK -q -o out.onnx
        halves out.onnx || { echo "$model: nothing is narrow"; return 1; }
        works ort-inspect out.onnx
        has Gemm
        [[ $output != *MatMul* ]] || { echo "$model: $output"; return 1; }
        for name in MatMul TopK,MatMul Add,Relu; do
            works ort-optimize $model.onnx --fp16 --keep-float $name -q -o out.onnx
            ! halves out.onnx || { echo "$model: $name was narrowed"; return 1; }
        done
    done
    for name in function:Layer function:Dense function:call body:product equal:product \
        equal:first turned:Transpose turned:turn; do
        works ort-optimize ${name%:*}.onnx --fp16 --keep-float ${name#*:} -q -o out.onnx
        ! halves out.onnx || { echo "$name was narrowed"; return 1; }
    done
    fails 2 "nothing to keep in float is called 'Tall'" \
        ort-optimize function.onnx --fp16 --keep-float Tall -o none.onnx
    works ort-optimize named.onnx --opset 11 --fp16 --keep-float MatMul -q -o out.onnx
    ! halves out.onnx || { echo "was narrowed in opset 11"; return 1; }
}

@test "--fp16 and --bf16 leave nothing for a second time: the passes run on their Casts" {
    local type
    for type in --fp16 --bf16; do
        works ort-optimize "$FX/sideways.onnx" $type -q -o one.onnx
        works ort-optimize one.onnx $type -q -o two.onnx
        cmp one.onnx two.onnx
    done
    works ort-optimize "$FX/sideways.onnx" --fp16 --json
    python3 - "$output" <<'END'
import json, sys
names = [p["name"] for p in json.loads(sys.argv[1])["passes"]]
assert len(names) == len(set(names)), names
END
}

# A function of NODES operators that is called CALLS times, in a chain.
many_calls() {
    "$ROOT/build/venv/bin/python" - "$@" <<'END'
import sys, onnx
from onnx import helper as h, TensorProto as T
count, nodes = int(sys.argv[1]), int(sys.argv[2])
imports = [h.make_opsetid("", 17), h.make_opsetid("own", 1)]
ops = ("Sin", "Cos", "Exp", "Tanh", "Sigmoid")
body = [h.make_node(ops[i % 5], [f"t{i}" if i else "x"], [f"t{i + 1}" if i < nodes - 1 else "y"])
        for i in range(nodes)]
f = h.make_function("own", "Chain", ["x"], ["y"], body, imports[:1])
calls = [h.make_node("Chain", [f"v{i}"], [f"v{i + 1}"], domain="own") for i in range(count)]
g = h.make_graph(calls, "g", [h.make_tensor_value_info("v0", T.FLOAT, [2, 3])],
                 [h.make_tensor_value_info(f"v{count}", T.FLOAT, [2, 3])])
onnx.save(h.make_model(g, functions=[f], opset_imports=imports, ir_version=8), sys.argv[3])
END
}

@test "functions are expanded unless the file grows by it; then calls stay, and a warning says so" {
    [ -x "$ROOT/build/venv/bin/python" ] || skip "no build/venv"
    many_calls 64 40 often.onnx
    run --separate-stderr ort-optimize often.onnx -o out.onnx
    [ "$status" -eq 0 ]
    [[ $stderr == *"functions stay: expanded, the file would have "*" bytes instead of "*inline* ]]
    [ "$(stat -c %s out.onnx)" -le "$(stat -c %s often.onnx)" ]
    has "verified"
    works ort-optimize out.onnx -q -o again.onnx
    cmp out.onnx again.onnx
    works ort-optimize often.onnx --functions inline -o inline.onnx
    [ "$(stat -c %s inline.onnx)" -gt "$(stat -c %s often.onnx)" ]
    works ort-optimize often.onnx --max-growth 64x -o room.onnx
    cmp inline.onnx room.onnx
    many_calls 1 40 once.onnx
    works ort-optimize once.onnx -o out.onnx
    run ort-inspect out.onnx
    has "nodes      40"
}

@test "the data file never replaces the model, its pack, or what another model needs" {
    fails 2 "has the name of the model" ort-optimize "$digits" --external-data=x.onnx -o x.onnx
    fails 2 "has the name of the pack" \
        ort-optimize "$digits" --external-data=x.onnx.pack --pack -o x.onnx
    cp "$digits" a.onnx
    fails 2 "would replace a file of the model" \
        ort-optimize a.onnx --external-data=a.onnx -o b.onnx
    works ort-optimize a.onnx --external-data=w.bin -q -o c.onnx
    fails 2 "would replace a file of the model" \
        ort-optimize c.onnx --external-data=w.bin -o d.onnx
    works ort-optimize c.onnx --external-data=w.bin -q -o c.onnx # both are replaced
    works ort-run a.onnx --random 1 --compare c.onnx --rtol 0
}

@test "a file that can't be finished leaves nothing, and is named" {
    limited() { (ulimit -f 20 && "$@"); }
    fails 5 "out.onnx: can't write: File too large" limited ort-optimize "$digits" -o out.onnx
    fails 5 "out.onnx.data: can't write: File too large" \
        limited ort-optimize "$digits" --external-data -o out.onnx
    fails 5 "/dev/full: can't write: No space left" ort-optimize "$digits" -o /dev/full
}

@test "what was not compared is not verified" {
    run --separate-stderr ort-optimize "$FX/half_nan.onnx" -q -o loose.onnx
    [ "$status" -eq 0 ] && [ -s loose.onnx ]
    fails 1 "not verified: output 'out' is NaN or infinite all over" \
        ort-optimize "$FX/half_nan.onnx" --strict -o out.onnx
    fails 1 "not verified: every output is empty" \
        ort-optimize "$FX/batch.onnx" -i "$FX/nothing.npy" --strict -o out.onnx
}

@test "a sample that the original refuses is an error" {
    fails 5 "doesn't run on a sample: input 'x' is float.*: axis 1 is 4, not " \
        ort-optimize "$FX/chain.onnx" -i "$FX/wide.npy" -o out.onnx
    fails 5 "doesn't run on a sample: input 'x' is int64" \
        ort-optimize "$FX/chain.onnx" -i "$FX/int.npy" -o out.onnx
}

@test "--bisect names what is no pass, too" {
    fails 1 "first wrong after pass make_dynamic" \
        ort-optimize "$FX/column.onnx" --make-dynamic x --bisect -o out.onnx -q
    fails 1 "first wrong after pass fp16" ort-optimize "$FX/faint.onnx" --fp16 --bisect -o out.onnx -q
}

@test "--make-dynamic runs another size beside samples of the original's" {
    works ort-optimize "$FX/chain.onnx" -i "$FX/x.npy" --make-dynamic x -o out.onnx
    has "verified: 2 runs agree"
    run --separate-stderr ort-optimize "$FX/weight.onnx" -i "$FX/x.npy" --make-dynamic x -o w.onnx
    [ "$status" -eq 1 ] && [ ! -e w.onnx ]
    [[ $stderr == *"at twice the size the model doesn't run"* ]]
}

@test "--list-passes --json has the schema of the tool's reports" {
    ort-optimize --list-passes --json >passes.json
    python3 -c 'import json; j = json.load(open("passes.json"))
assert j["schema"] == "ort-optimize/1" and j["passes"][0]["name"] == "gradient", j'
}

@test "--settings and -v say what this tool uses" {
    works ort-optimize "$FX/add.onnx" --settings
    [[ $output =~ level\ +2\ +default ]] || { echo "$output"; return 1; }
    works ort-run "$FX/add.onnx" --settings
    [[ $output =~ level\ +3\ +default ]]
    works ort-run "$FX/add.onnx" --compare "$FX/add.onnx" --settings
    [[ $output =~ level\ +0\ +default ]]
    run --separate-stderr ort-optimize "$FX/add.onnx" -v --threads 1 --isa scalar
    [[ $stderr == *"threads 1 (option), isa scalar (option), provider cpu (default)"* ]]
    run --separate-stderr ort-run "$FX/add.onnx" --random 1 -v --compare "$FX/add.onnx"
    [[ $stderr == *"isa "*"(default), provider cpu (default)"* ]]
}

@test "--passes at level 0 looks into functions; --functions inline alone there is refused" {
    works ort-optimize "$FX/function.onnx" --level 0 --passes dead_nodes -q -o out.onnx
    works ort-inspect out.onnx
    [[ $output != *acme.Slope* ]] || { echo "$output"; return 1; }
    works ort-optimize "$FX/function.onnx" --level 0 -q -o out.onnx
    works ort-inspect out.onnx
    has acme.Slope
    fails 2 "--functions inline needs a level above 0, or --passes" \
        ort-optimize "$FX/function.onnx" --level 0 --functions inline -o none.onnx
}

@test "--random and --timeout count for the run that looks for the range of --fp16, too" {
    local seed reached=()
    for seed in 1 2; do
        run --separate-stderr ort-optimize "$FX/large.onnx" --fp16 --random $seed
        [[ $stderr =~ "value 'big' reaches "([0-9.]+) ]]
        reached+=("${BASH_REMATCH[1]}")
    done
    [ "${reached[0]}" != "${reached[1]}" ]
    # Loading and rewriting it take milliseconds, a run would take years.
    python3 "$ROOT/tests/tools/hostile.py" hostile
    run --separate-stderr ort-optimize hostile/roi.onnx --fp16 --timeout 0.5 -o out.onnx
    [[ $stderr == *"ranges were not checked: it took longer than its time limit of 0.5 s"* ]]
}

@test "with --strict every warning is an error" {
    local quiet
    for quiet in '' -q; do
        # shellcheck disable=SC2086
        fails 1 "value 'big' reaches" ort-optimize "$FX/large.onnx" --fp16 --strict $quiet -o out.onnx
        # shellcheck disable=SC2086
        run --separate-stderr ort-run "$FX/add.onnx" --random 1 --strict --dump nothing $quiet
        [ "$status" -eq 1 ]
        [[ $stderr == *"--dump: no value has a name that matches"* ]]
    done
    works ort-optimize "$FX/large.onnx" --fp16 --strict --keep-float big -q -o out.onnx
    ort-optimize "$digits" -q --pack --isa scalar -o packed.onnx
    fails 1 "packed.onnx.pack: ignored: " \
        ort-run packed.onnx --isa avx2 --random 1 --strict -q -o y.npy
    works ort-run packed.onnx --isa scalar --random 1 --strict -o y.npy
}

@test "--json is reported with -q, too" {
    works ort-optimize "$FX/add.onnx" -q --json
    has '"before": {' '"verification": {'
}

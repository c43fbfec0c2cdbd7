# ort-optimize: rewriting, verification, reports, what it refuses.
load helper

@test "a model is rewritten, verified and computes the same" {
    run --separate-stderr ort-optimize "$MODELS_DIR/digits.onnx" -o fast.onnx
    [ "$status" -eq 0 ] && [ -z "$stderr" ]
    has "operator" "nodes" "verified: "
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --dim batch=2 -o a.npy
    works ort-run fast.onnx --random 1 --dim batch=2 -o b.npy
    ort-tensor a.npy --compare b.npy --rtol 1e-5 --atol 1e-6
}

@test "without -o nothing is written, with -q nothing is said" {
    works ort-optimize "$MODELS_DIR/digits.onnx"
    works ort-optimize "$MODELS_DIR/digits.onnx" -q -o fast.onnx
    [ -z "$output" ] && [ "$(ls)" = fast.onnx ]
}

@test "its own output again gives the same bytes" {
    for model in "$MODELS_DIR"/*.onnx; do
        works ort-optimize "$model" -q -o one.onnx
        works ort-optimize one.onnx -q -o two.onnx
        cmp one.onnx two.onnx
    done
}

@test "the report has nodes, bytes and MACs by operator, as text and as JSON" {
    works ort-optimize "$MODELS_DIR/digits.onnx" --dim batch=1
    [[ ${lines[0]} =~ ^operator\ +before\ +after\ +weights\ +after\ +MACs\ +after ]]
    has "all nodes"
    works ort-optimize "$MODELS_DIR/digits.onnx" --dim batch=1 --contrib --json
    python3 - "$output" <<'END'
import json, sys
report = json.loads(sys.argv[1])
before, after = report["before"], report["after"]
for side in before, after:
    rows = side["operators"].values()
    assert sum(r["count"] for r in rows) == side["nodes"]
    assert sum(r["weight_bytes"] for r in rows) == side["weight_bytes"]
    assert sum(r["macs"] for r in rows) == side["macs"] > 0
conv, fused = before["operators"]["Conv"], after["operators"]["com.microsoft.FusedConv"]
assert conv == fused and conv["count"] == 2, (conv, fused)
END
}

@test "the man page names every key of the JSON report" {
    works ort-optimize "$MODELS_DIR/digits.onnx" --json
    python3 - "$output" "$ROOT/man/ort-optimize.1" <<'END'
import json, re, sys
def keys(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if not key[0].isupper() and "." not in key:  # names of operators
                yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)
page = open(sys.argv[2]).read()
words = set(re.findall(r"\w+", page[page.index(".Sh REPORT"):page.index(".Sh ENVIRONMENT")]))
missing = sorted(set(keys(json.loads(sys.argv[1]))) - words)
assert not missing, missing
END
}

@test "com.microsoft operators only with --contrib" {
    works ort-optimize "$MODELS_DIR/digits.onnx" --json
    [[ $output != *com.microsoft.* ]]
    [[ $output == *'"pass": "conv_activation"'*'"condition": '*"--contrib allows it"* ]]
    works ort-optimize "$MODELS_DIR/digits.onnx" --json --contrib
    has "com.microsoft.FusedConv"
    works ort-optimize "$MODELS_DIR/digits.onnx"
    [[ $output != *"left alone"* ]]
    run --separate-stderr ort-optimize "$MODELS_DIR/digits.onnx" -v
    [ "$status" -eq 0 ] && has "left alone" "'conv1' (Conv): com.microsoft FusedConv would fit: \
--contrib allows it (2 times, first here)"
    [[ $output != *"'conv2'"* ]]
}

@test "--passes with a pass that needs --contrib says so" {
    works ort-optimize "$MODELS_DIR/digits.onnx" --passes conv_activation
    has "places left alone for want of operators of com.microsoft: 2 (--contrib allows them)"
    for options in "--passes conv_activation --contrib" "--passes dead_nodes" ""; do
        # shellcheck disable=SC2086 # several words
        works ort-optimize "$MODELS_DIR/digits.onnx" $options
        [[ $output != *"for want of"* ]]
    done
}

@test "through a pipe" {
    run --separate-stderr sh -c "ort-optimize - -o - <$MODELS_DIR/digits.onnx | ort-inspect -"
    [ "$status" -eq 0 ] && [ -z "$stderr" ]
    has "Conv"
}

@test "--list-passes, --passes and --disable" {
    works ort-optimize --list-passes
    has constant_fold linear_affine
    works ort-optimize "$MODELS_DIR/digits.onnx" --passes dead_nodes,identity --json
    has '"dead_nodes"'
    [[ $output != *'"constant_fold"'* ]]
    fails 2 "no pass is named 'nonsense'; ort-optimize --list-passes lists them" \
        ort-optimize "$MODELS_DIR/digits.onnx" --disable nonsense -o out.onnx
}

@test "--strict refuses what can't be verified" {
    run --separate-stderr ort-optimize "$FX/nan.onnx" -o loose.onnx
    [ "$status" -eq 0 ] && [ -s loose.onnx ]
    [[ $stderr == *"not verified: output 'out' is NaN or infinite"* ]]
    fails 1 "not verified: output 'out' is NaN or infinite" \
        ort-optimize "$FX/nan.onnx" --strict -o out.onnx
}

@test "exact passes are verified to the bit, others by a tolerance" {
    tolerance() {
        works ort-optimize "$@" --json
        python3 -c 'import json, sys; print(json.loads(sys.argv[1])["verification"]["tolerance"])' \
            "$output"
    }
    works ort-optimize "$FX/captured.onnx"
    has common_subexpressions "runs agree to the bit"
    [ "$(tolerance "$FX/captured.onnx")" = 0.0 ]
    [ "$(tolerance "$MODELS_DIR/digits.onnx" --contrib)" = 0.0001 ] # conv_activation
    [ "$(tolerance "$MODELS_DIR/digits.onnx" --contrib --level 0)" = 0.0 ]
    [ "$(tolerance "$FX/captured.onnx" --opset 18 --level 0)" = 0.0001 ]
    [ "$(tolerance "$MODELS_DIR/digits.onnx" --contrib --level 0 --passes conv_activation)" = 0.0001 ]
    [ "$(tolerance "$FX/captured.onnx" --tolerance 0.5)" = 0.5 ]
}

@test "the man page lists the exact passes" {
    ort-optimize --list-passes --json >passes.json
    python3 - "$ROOT/man/ort-optimize.1" <<'END'
import json, re, sys
listed = re.search(r"are exact:.*?\.Po\n(.*?)\n\.Pc", open(sys.argv[1]).read(), re.S).group(1)
exact = sorted(p["name"] for p in json.load(open("passes.json"))["passes"] if p["exact"])
assert re.split(r",\s+", listed) == exact, exact
END
}

@test "what it refuses" {
    fails 2 "no MODEL given" ort-optimize
    fails 2 "level 3 is for sessions" ort-optimize "$MODELS_DIR/digits.onnx" --level 3
    fails 2 "none of inline, keep" ort-optimize "$MODELS_DIR/digits.onnx" --functions never
    fails 2 "no factor of 1 or more" ort-optimize "$MODELS_DIR/digits.onnx" --max-growth 0.5
    fails 3 "missing.onnx" ort-optimize missing.onnx -o out.onnx
}

@test "made-up inputs of the usual sizes that a model refuses are replaced by others" {
    works ort-optimize "$FX/window.onnx"
    has "verified: 3 runs agree to the bit, of 2 sizes"
    works ort-run "$FX/window.onnx" --random 1 -o y.npy
    grep -aq "(1, 1, 257)" y.npy
}

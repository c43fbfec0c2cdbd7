# Operator libraries (--ops-lib) as their authors and users meet them, and the table of all operators.
load helper

LIB=$ROOT/build/lib/example_ops.so

bad() { # bad CASE: the library of tests/cli/bad_ops.c in bad.so
    ${CC:-gcc} -shared -fPIC -I"$ROOT/lib" -DCASE="$1" "$ROOT/tests/cli/bad_ops.c" -o bad.so
}

@test "the example needs the header alone and no symbol of libort" {
    ${CC:-gcc} -Wall -Wextra -Werror -O2 -shared -fPIC -I"$ROOT/lib" "$ROOT/examples/example_ops.c" \
        -o own.so
    if command -v nm >/dev/null; then
        run nm -D --undefined-only own.so
        [[ $output != *ort_* ]] || { echo "$output"; return 1; }
    fi
    works ort-run "$FX/clip.onnx" --ops-lib own.so -i "$FX/x.npy" -o y.npy
}

@test "the example runs under the address sanitizer and stack protectors" {
    gcc -g -fsanitize=address -fstack-protector-all -shared -fPIC -I"$ROOT/lib" \
        "$ROOT/examples/example_ops.c" -o safe.so
    echo '{"x": {"dtype": "int64", "shape": [3], "data": [1, 2, 3]}}' >x.json
    echo '{"a": ["x", "y"], "b": ["1", "2"], "c": ["", "z"]}' >abc.json
    # A tool without the sanitizer opens the library: what it calls is loaded first.
    export ASAN_OPTIONS=detect_leaks=0
    local safe="env LD_PRELOAD=$(gcc -print-file-name=libasan.so) ort-run"
    works $safe "$FX/clip.onnx" --ops-lib safe.so -i "$FX/x.npy" -o - --format json
    has '[[1, -2, 2.5], [-3, 3.5, -4]]'
    works $safe "$FX/above.onnx" --ops-lib safe.so -i "$FX/x.npy" -o - --format json
    works $safe "$FX/recode.onnx" --ops-lib safe.so -i x.json -o - --format json
    works $safe "$FX/mean.onnx" --ops-lib safe.so --stream "$FX/stream.npy" -o - --format json
    works $safe "$FX/join.onnx" --ops-lib safe.so -i abc.json -o - --format json
    run $safe "$FX/clip_wrong.onnx" --ops-lib safe.so -i "$FX/x.npy" -o y.npy
    [ "$status" -eq 4 ]
}

@test "an elementwise operator: attributes, shapes with symbols, the same for every number of threads" {
    works ort-run "$FX/clip.onnx" --ops-lib "$LIB" -i "$FX/x.npy" -o - --format json
    has '[[1, -2, 2.5], [-3, 3.5, -4]]'
    works ort-inspect "$FX/clip.onnx" --ops-lib "$LIB" --shapes
    has 'float[n,3]'
    works ort-run "$FX/clip.onnx" --ops-lib "$LIB" --random 1 --dim n=100000 --threads 1 -o a.npy
    works ort-run "$FX/clip.onnx" --ops-lib "$LIB" --random 1 --dim n=100000 --threads 3 -o b.npy
    same a.npy b.npy
    works ort-inspect "$FX/clip.onnx" --ops-lib "$LIB" --check
}

@test "output shapes that depend on data" {
    works ort-run "$FX/above.onnx" --ops-lib "$LIB" -i "$FX/x.npy" -o - --format json
    has '"values": {"dtype": "float", "shape": [3], "data": [1, 3, 5]}' '"data": [0, 2, 4]'
}

@test "a constant input is read when the session is made; any other is refused there" {
    echo '{"x": {"dtype": "int64", "shape": [3], "data": [1, 2, 3]}}' >x.json
    works ort-run "$FX/recode.onnx" --ops-lib "$LIB" -i x.json -o - --format json
    has '10, 2, 30'
    fails 3 "node 'recode_y' \(Recode\): table must be a constant" \
        ort-run "$FX/recode_open.onnx" --ops-lib "$LIB" --random 1 -o y.npy
}

@test "state lives as long as the session" {
    works ort-run "$FX/mean.onnx" --ops-lib "$LIB" --stream "$FX/stream.npy" -o - --format json
    [[ ${lines[0]} == *-0.5* && ${lines[1]} == *17.25* ]] || { echo "$output"; return 1; }
}

@test "strings, variadic inputs, no inference" {
    echo '{"a": ["x", "y"], "b": ["1", "2"], "c": ["", "z"]}' >abc.json
    works ort-run "$FX/join.onnx" --ops-lib "$LIB" -i abc.json -o - --format json
    has '["x-1-", "y-2-z"]'
}

@test "a kernel that fails: its words, the node's name, status 4, nothing written" {
    fails 4 "clip_wrong.onnx: node 'clip_y' \(Clip\): low is 3, above high, which is 1" \
        ort-run "$FX/clip_wrong.onnx" --ops-lib "$LIB" -i "$FX/x.npy" -o y.npy
}

@test "a model that doesn't fit the operator's row is invalid, status 3" {
    fails 3 "has no attribute 'lou' \(it has: low, high, leak\)" \
        ort-run "$FX/clip_typo.onnx" --ops-lib "$LIB" -i "$FX/x.npy" -o y.npy
    fails 3 "Clip-1 takes f32,f64,i32" \
        ort-run "$FX/clip_int64.onnx" --ops-lib "$LIB" -i "$FX/x.npy" -o y.npy
    run --separate-stderr ort-inspect "$FX/clip_typo.onnx" --ops-lib "$LIB" --check
    [ "$status" -eq 3 ]
}

@test "without the library: every tool says what is missing and how to add it" {
    fails 3 "operator example.Clip of opset 1 is unknown.*--ops-lib" \
        ort-run "$FX/clip.onnx" -i "$FX/x.npy" -o y.npy
    run --separate-stderr ort-inspect "$FX/clip.onnx" --ops
    [ "$status" -eq 1 ]
    has example.Clip "UNKNOWN DOMAIN" "--ops-lib LIB.so"
    works ort-inspect "$FX/clip.onnx" --ops --ops-lib "$LIB"
    [[ ${lines[1]} == example.Clip*example ]] || { echo "$output"; return 1; }
    run --separate-stderr ort-inspect "$FX/clip.onnx" --check
    [ "$status" -eq 3 ]
    has "unknown operator Clip" "--ops-lib"
    # An operator of a domain that is known is a spelling error or a newer model.
    run --separate-stderr ort-inspect "$FX/unknown.onnx" --check
    [[ ${lines[0]} == *Frobnicate* && ${lines[0]} != *ops-lib* ]] || { echo "$output"; return 1; }
}

@test "libraries that can't be taken" {
    fails 5 "nowhere.so: can't be opened: No such file" \
        ort-run "$FX/clip.onnx" --ops-lib nowhere.so -i "$FX/x.npy" -o y.npy
    echo "not an object" >text.so
    fails 5 "text.so: can't be loaded as a shared object: " \
        ort-run "$FX/clip.onnx" --ops-lib text.so -i "$FX/x.npy" -o y.npy
    bad 1
    fails 2 "bad.so: operator Relu of 'ai.onnx' is built in \(since 6, 13, 14\)" \
        ort-run "$FX/chain.onnx" --ops-lib bad.so -i "$FX/x.npy" -o y.npy
    bad 2
    fails 2 "bad.so: operator Whirl-1: signature 'X:float -> Y:float': 'X' has type 'float'" \
        ort-inspect --supports --ops-lib bad.so
    bad 3
    fails 2 "bad.so: operator Clip of 'example', version 1, is already added by operator library 'example'" \
        ort-run "$FX/clip.onnx" --ops-lib "$LIB" --ops-lib bad.so -i "$FX/x.npy" -o y.npy
    bad 4
    fails 2 "bad.so: is no operator library: it exports no 'ort_ops_entry'" \
        ort-run "$FX/clip.onnx" --ops-lib bad.so -i "$FX/x.npy" -o y.npy
    bad 5
    fails 2 "bad.so: the operator library was built for ABI 3, this runtime \(0.1.0\) has 2" \
        ort-inspect "$FX/clip.onnx" --ops --ops-lib bad.so
    bad 6
    fails 5 "bad.so: can't be loaded as a shared object: .*nobody_has_this" \
        ort-run "$FX/clip.onnx" --ops-lib bad.so -i "$FX/x.npy" -o y.npy
    fails 2 "example_ops.so: the operator library is already added" \
        ort-run "$FX/clip.onnx" --ops-lib "$LIB" --ops-lib "$LIB" -i "$FX/x.npy" -o y.npy
}

@test "two libraries at once; -v and --settings name them" {
    bad 0
    run --separate-stderr ort-run "$FX/clip.onnx" --ops-lib bad.so --ops-lib "$LIB" -v \
        -i "$FX/x.npy" -o y.npy
    [ "$status" -eq 0 ]
    [[ $stderr == *"operator library 'bad': 1 rows from bad.so"* &&
        $stderr == *"operator library 'example' 1.0: 5 rows"* ]] || { echo "$stderr"; return 1; }
    works ort-run --settings --ops-lib bad.so
    has "ops-lib            bad.so"
    works ort-run "$FX/clip.onnx" --ops-lib "$LIB" -i "$FX/x.npy" --json
    echo "$output" | python3 -c 'import json, sys; assert len(json.load(sys.stdin)["ops_libs"]) == 1'
}

@test "--supports and the page in Markdown list every row of the registry, libraries included" {
    works ort-inspect --supports --json --ops-lib "$LIB"
    echo "$output" >supports.json
    works ort-inspect --supports --markdown --ops-lib "$LIB" -o page.md
    works ort-inspect --supports --ops-lib "$LIB"
    echo "$output" >supports.txt
    python3 - <<'PY'
import json, re
report = json.load(open("supports.json"))
rows = [(o["domain"], o["op_type"], o["since"]) for o in report["operators"]]
assert len(rows) == len(set(rows)) > 600
assert {r for r in rows if r[0] == "example"} == {
    ("example", n, 1) for n in ("Clip", "Above", "Recode", "RunningMean", "Join")}
assert report["libraries"] == [{"name": "example", "version": "1.0", "rows": 5}]
domain, page, by_row = None, open("page.md").read(), {}
for line in page.splitlines():
    if line.startswith("## "):
        domain = line[3:]
    cells = [c.strip() for c in line.strip("|").split("|")]
    if len(cells) == 3 + len(report["providers"]) and cells[1].isdigit():
        by_row[domain, cells[0], int(cells[1])] = cells
assert list(by_row) == rows, set(rows) ^ set(by_row)
heads = re.findall(r"^\| operator \| since \| types \| (.*) \|$", page, re.M)
assert set(heads) == {" | ".join(report["providers"])}
for o in report["operators"]:
    cells = by_row[o["domain"], o["op_type"], o["since"]]
    for at, provider in enumerate(report["providers"]):
        runs = "yes" if provider in o["providers"] else "no"
        assert cells[3 + at] == ("removed" if o["deprecated"] else runs), cells
    for p in o["inputs"] + o["outputs"]:
        assert re.search(rf"(^|[ ,]){re.escape(p['name'])}(, [^:]*)?: {re.escape(p['types'])}( |$)",
                         cells[2]), (cells, p)
runs = "; ".join(f"{p} runs {sum(p in o['providers'] for o in report['operators'])}"
                 for p in report["providers"])
counts = f"{len({r[:2] for r in rows})} operators, {len(rows)} versions"
last = open("supports.txt").read().splitlines()[-1]
assert counts in page and last.startswith(counts) and last.endswith(runs), last
PY
}

@test "make coverage-table; the counts that README prints are its counts" {
    make -s -C "$ROOT" coverage-table OUT=- >page.md
    local counts printed
    counts=$(grep -oE '[0-9]+ operators, [0-9]+ versions' page.md | head -n 1)
    [ -n "$counts" ]
    for printed in $(grep -oE '[0-9]+ operators, [0-9]+ versions' "$ROOT/README.md" | tr ' ' _); do
        [ "$printed" = "${counts// /_}" ] || { echo "README.md: $printed, now $counts"; return 1; }
    done
    fails 2 "--markdown needs --supports" ort-inspect --markdown "$FX/clip.onnx"
}

@test "a LinearClassifier of one target gives two labels scores of both signs, then transforms them" {
    PYTHONPATH=$ROOT/tests/tools python3 -c '
import pathlib
import fixtures as f
for post in ("NONE", "LOGISTIC", "SOFTMAX"):
    node = f.node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
                  attributes={"coefficients": [0.25, 0.5], "intercepts": [0.5], "classlabels_ints": [3, 7],
                              "post_transform": post})
    pathlib.Path(post).write_bytes(f.model(
        [node], [f.value_info("x", ["n", 2])], [f.value_info("label", ["n"], f.INT64),
                                                f.value_info("scores", ["n", 2])], domains=["ai.onnx.ml"]))
pathlib.Path("x.npy").write_bytes(f.npy([1, 0.5, -4, 2], (2, 2)))'
    scores() { # scores POST: close to those that follow
        ort-run "$1" x.npy -o scores=s.npy -o label=l.npy
        echo "$2" >want.json
        ort-tensor s.npy --compare want.json --rtol 1e-5
    }
    scores NONE '[[-1, 1], [-0.5, 0.5]]'
    scores LOGISTIC '[[0.26894142, 0.73105858], [0.37754067, 0.62245933]]'
    scores SOFTMAX '[[0.11920292, 0.88079708], [0.26894142, 0.73105858]]'
}

# Libraries of providers: loaded, refused, found by name; the example as its authors and users meet it.
load helper

PROVIDERS=$ROOT/build/lib/providers
net=$MODELS_DIR/digits.onnx

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    make -s -C "$ROOT" plugins >/dev/null 2>&1
}

bad() { # bad CASE: the library of tests/cli/bad_provider.c in bad.so
    ${CC:-gcc} -shared -fPIC -I"$ROOT/lib" -DCASE="$1" "$ROOT/tests/cli/bad_provider.c" -o bad.so
}

# same_as_cpu NAME MODEL: all that NAME claims runs there; what the CPU gives, within rounding
same_as_cpu() {
    ort-run "$2" --random 1 -o want.npz
    run --separate-stderr ort-run -v --provider "$1:cost=off,cpu" "$2" --random 1 -o got.npz
    [[ $stderr =~ "$1: "[1-9][0-9]*" nodes" ]] || { echo "$stderr"; return 1; }
    works ort-tensor got.npz --compare want.npz --rtol 1e-4 --atol 1e-5
}

@test "the example needs the header alone and no symbol of libort, in C and in C++" {
    ${CC:-gcc} -Wall -Wextra -Wno-unused-parameter -Werror -O2 -shared -fPIC -I"$ROOT/lib" \
        "$ROOT/plugins/example/example.c" -o own.so -lm
    if command -v nm >/dev/null; then
        run nm -D --undefined-only own.so
        [[ $output != *ort_* ]] || { echo "$output"; return 1; }
    fi
    [ "$(wc -l <"$ROOT/plugins/example/example.c")" -lt 300 ]
    echo '#include <ort_provider.h>' >header.cpp
    g++ -Wall -Wextra -Werror -pedantic -std=c++17 -I"$ROOT/lib" -c header.cpp
    works ort-run --provider-lib own.so --provider example:cost=off,cpu "$FX/scaled.onnx" --random 1 -o y.npz
}

@test "the example runs what it claims, as the CPU does" {
    export ORT_PROVIDER_PATH=$PROVIDERS
    same_as_cpu example "$FX/scaled.onnx"
    run ort-run --provider example --strict "$net" --random 1 -o y.npz
    [ "$status" -eq 1 ]
    [[ $output == *"provider 'example' doesn't run 7 nodes"* ]]
    works ort-inspect --providers --provider example,cpu
    has "example: a provider to begin another with" "the example's loops (cpu)"
    grep -qx "  0  the example's loops (cpu)" <<<"$output" # what a device doesn't say is left out
    works ort-inspect --supports --provider example,cpu --grep Tanh
    has example
    works ort-inspect --partition --provider example:cost=off,cpu "$FX/scaled.onnx"
    has "example: "
}

@test "the example under the address sanitizer" {
    gcc -g -fsanitize=address,undefined -shared -fPIC -I"$ROOT/lib" "$ROOT/plugins/example/example.c" \
        -o safe.so -lm
    export ASAN_OPTIONS=detect_leaks=0
    works env LD_PRELOAD="$(gcc -print-file-name=libasan.so)" ort-run --provider-lib safe.so \
        --provider example:cost=off,cpu "$FX/scaled.onnx" --random 1 -o y.npz
}

@test "oneDNN and OpenVINO, where they were built, give what the CPU gives" {
    export ORT_PROVIDER_PATH=$PROVIDERS
    export ORT_OPENVINO_LIB=$(ls "$ROOT"/build/venv-bench/lib/python3*/site-packages/openvino/libs/libopenvino_c.so* | head -1)
    local some=
    for name in onednn openvino; do
        [ -e "$PROVIDERS/ort-provider-$name.so" ] || continue
        same_as_cpu $name "$net"
        some=1
    done
    [ "$some" ] || skip "neither oneDNN nor OpenVINO here"
}

@test "a library that doesn't fit is refused with its path and the reason" {
    local case says
    while IFS=: read -r case says; do
        bad "$case"
        fails 2 "^ort-run: --provider-lib: bad.so: $says" \
            ort-run --provider-lib bad.so "$net" --random 1 -o y.npz || { echo "case $case"; return 1; }
    done <<'CASES'
1:provider 'cpu' is there twice
3:provider 'a,b' isn't whole
4:provider 'absent' isn't whole
5:a provider of it has [0-9]+ bytes, where this version of the interface has [0-9]+ to [0-9]+
6:a provider of it has 8 bytes
7:its table names no provider
8:is no provider library: it exports no 'ort_provider_entry'
9:its providers need version 3 of the interface \(ort_provider.h\); this libort has 1 to 2
11:its table has 4 bytes
12:provider 'other' isn't whole
CASES
    bad 10
    fails 5 "bad.so: can't be loaded as a shared object: .*nobody_has_this" \
        ort-run --provider-lib bad.so "$net" --random 1 -o y.npz
    bad 2
    fails 2 "bad.so: provider 'example' is there twice" ort-run \
        --provider-lib "$PROVIDERS/ort-provider-example.so" --provider-lib bad.so "$net" --random 1 -o y.npz
    fails 2 "provider 'example' is there twice" ort-run --provider-lib "$PROVIDERS/ort-provider-example.so" \
        --provider-lib "$PROVIDERS/ort-provider-example.so" "$net" --random 1 -o y.npz
}

@test "what is no shared object, another machine's, or cut off" {
    echo nonsense >no.so
    fails 5 "no.so: can't be loaded as a shared object" ort-run --provider-lib no.so "$net" --random 1
    fails 5 "nowhere.so: can't be opened" ort-run --provider-lib nowhere.so "$net" --random 1
    head -c 5000 "$PROVIDERS/ort-provider-example.so" >cut.so
    fails 5 "cut.so: the file ends before" ort-run --provider-lib cut.so "$net" --random 1
    cp "$PROVIDERS/ort-provider-example.so" other.so
    printf '\267' | dd of=other.so bs=1 seek=18 conv=notrunc 2>/dev/null # e_machine: AArch64
    fails 5 "other.so: can't be loaded as a shared object" ort-run --provider-lib other.so "$net" --random 1
}

@test "folders of ORT_PROVIDER_PATH are looked through in order, for names that nobody has" {
    fails 2 "provider 'example' is unknown; this build has: cpu" ort-run --provider example,cpu "$net" --random 1
    mkdir a b
    echo nonsense >a/ort-provider-broken.so
    cp "$PROVIDERS/ort-provider-example.so" b/
    works env ORT_PROVIDER_PATH="nowhere:a::b" ort-run --provider example,cpu "$net" --random 1 -o y.npz
    fails 5 "ORT_PROVIDER_PATH: a/ort-provider-broken.so: can't be loaded" \
        env ORT_PROVIDER_PATH=a:b ort-run --provider broken,cpu "$net" --random 1
    fails 2 "provider 'tpu' is unknown \(did you mean 'cpu'\?\); this build has: cpu" \
        env ORT_PROVIDER_PATH=a:b ort-run --provider tpu,cpu "$net" --random 1
    works env ORT_PROVIDER_PATH=a:b ort-run --provider cpu "$net" --random 1 -o y.npz
}

@test "a device that isn't there: a warning and the CPU, or exit 4" {
    bad 0
    run --separate-stderr ort-run --provider-lib bad.so --provider absent,cpu "$net" --random 1 -o y.npz
    [ "$status" -eq 0 ]
    [[ $stderr == *"provider 'absent' is left out: nobody is at home"* ]]
    fails 4 "provider 'absent': nobody is at home" ort-run --provider-lib bad.so --provider absent "$net" --random 1
    fails 4 "provider 'absent': nobody is at home" \
        ort-run --provider-lib bad.so --strict --provider absent,cpu "$net" --random 1
}

faulty() { # the library of tests/providers/faulty.c
    ${CC:-gcc} -O1 -g -shared -fPIC -Wno-unused-parameter -I"$ROOT/lib" "$ROOT/tests/providers/faulty.c" \
        -o faulty.so -lm
}

# Every call that can fail does, in turn: the run ends on the CPU with its results; without the CPU in the
# list, or with --strict, it ends with 4 and writes nothing. Whatever was made is freed.
@test "a device that fails at any call: the CPU takes over where it may, and nothing leaks" {
    faulty
    ort-run "$FX/scaled.onnx" --random 1 -o want.npz
    export FAULTY_COUNT=$PWD/count
    run ort-run --provider-lib faulty.so --provider faulty:cost=off,cpu "$FX/scaled.onnx" --random 1 -o y.npz
    [ "$status" -eq 0 ]
    total=$(sed 's/ calls.*//' count)
    [ "$total" -ge 6 ]
    for mode in FAULTY_AT FAULTY_FROM; do
        for n in $(seq "$total"); do
            rm -f y.npz count
            run --separate-stderr env $mode="$n" FAULTY_QUIET=$((n % 3 == 0)) ort-run --provider-lib faulty.so \
                --provider faulty:cost=off,cpu "$FX/scaled.onnx" --random 1 -o y.npz
            [ "$status" -eq 0 ] || { echo "$mode=$n: $status $stderr"; return 1; }
            same y.npz want.npz
            [ "$n" = 1 ] || grep -q ", 0 open" count || { echo "$mode=$n: $(cat count)"; return 1; }
            for list in "faulty:cost=off" "--strict faulty:cost=off,cpu"; do
                rm -f y.npz
                run --separate-stderr env $mode="$n" ort-run --provider-lib faulty.so --provider ${list##* } \
                    $([ "$list" = "${list##* }" ] || echo --strict) "$FX/scaled.onnx" --random 1 -o y.npz
                # What is planned ahead is tried again: then a single failure costs nothing.
                [ "$status" -eq 4 ] || { [ $mode = FAULTY_AT ] && [ "$status" -eq 0 ]; } ||
                    { echo "$mode=$n $list: $status $stderr"; return 1; }
                [ "$status" -eq 0 ] || [ ! -e y.npz ]
            done
        done
    done
}

@test "a device that is lost in the middle of many runs: one warning, and the rest on the CPU" {
    faulty
    ort-run "$FX/scaled.onnx" --random 1 --repeat 5 -o want.npz
    run --separate-stderr env FAULTY_FROM=20 ort-run --provider-lib faulty.so --provider faulty:cost=off,cpu \
        "$FX/scaled.onnx" --random 1 --repeat 5 -o y.npz
    [ "$status" -eq 0 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == *"the device fell over at call "*"; the session goes on on cpu"* ]]
    same y.npz want.npz
}

@test "a device that tells impossible sizes and costs does no harm" {
    faulty
    ort-run "$FX/scaled.onnx" --random 1 -o want.npz
    works env FAULTY_SIZES=1 ort-run --provider-lib faulty.so --provider faulty,cpu "$FX/scaled.onnx" --random 1 \
        -o y.npz
    same y.npz want.npz
}

@test "a profile sums up each provider, and the trace has what the device did within the run" {
    export ORT_PROVIDER_PATH=$PROVIDERS
    works ort-profile "$FX/scaled.onnx" --provider example:cost=off,cpu --no-peak --repeat 3 --json -o t.json
    echo "$output" | python3 -c '
import json, sys
r = json.load(sys.stdin)
own, host = r["providers"]
assert own["name"] == "example" and own["nodes"] == 2 and own["self_ms"] > 0, own
assert own["kernel_ms"] > 0 and own["copy_in_ms"] >= 0 and own["copy_out_ms"] >= 0, own
assert host["name"] == "cpu" and host["nodes"] == 0, host
f = r["fallback"]
assert f["nodes"] == 0 and f["of_nodes"] == 2 and f["ms"] >= f["copies_ms"], f
events = json.load(open("t.json"))
runs = [e for e in events if e["name"] == "model_run"]
device = [e for e in events if e["cat"] == "Device"]
assert len(device) == 3 * len(runs), (len(device), len(runs))
for e in device:
    run = runs[int(e["args"]["run"])]
    assert run["ts"] <= e["ts"] and e["ts"] + e["dur"] <= run["ts"] + run["dur"] + 1, (e, run)
assert {e["args"]["provider"] for e in events if e["cat"] == "Node"} == {"example"}'
    works ort-profile "$net" --provider example,cpu --no-peak --repeat 3
    has "nodes fell back to cpu, costing"
}

@test "a partition as a picture: a colour for each provider, borders in red" {
    export ORT_PROVIDER_PATH=$PROVIDERS
    works ort-inspect "$FX/scaled.onnx" --partition --provider example:cost=off,cpu --svg -o p.svg
    python3 -c '
import xml.etree.ElementTree as tree
texts = [t.text for t in tree.parse("p.svg").getroot().iter("{http://www.w3.org/2000/svg}text")]
assert {"example", "cpu"} <= set(texts) and any(t.startswith("Mul") for t in texts), texts'
    works ort-inspect "$FX/scaled.onnx" --partition --provider example:cost=off,cpu --dot
    has "digraph partition {" "n0 -> n1;"
    fails 2 "" ort-inspect "$FX/scaled.onnx" --partition --shapes
}

@test "two lists of providers on the same inputs" {
    export ORT_PROVIDER_PATH=$PROVIDERS
    works ort-run "$FX/scaled.onnx" --random 1 --compare-providers example:cost=off,cpu
    has "values agree"
    fails 2 "provider 'nobody' is unknown" ort-run "$FX/scaled.onnx" --random 1 --compare-providers nobody
}

@test "a sweep is one table with the crossover" {
    works ort-profile "$net" --sweep provider --provider-lib "$PROVIDERS/ort-provider-example.so" --repeat 1 --warmup 0
    has "example is " "batch"
    works ort-profile "$net" --sweep level --repeat 1 --warmup 0
    has "crossover: level"
    works ort-profile "$net" --sweep batch --repeat 1 --warmup 0 --json
    echo "$output" | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert [c["batch"] for c in r["cells"]] == [1, 2, 4, 8, 16, 32] and all(c["p50_ms"] > 0 for c in r["cells"])'
    fails 2 "isn't open" ort-profile "$FX/scaled.onnx" --sweep batch
}

# known ROWS SAYS: the check of the example on a test whose value is 0.2 away, with these rows of exceptions
known() {
    printf '%s\n' "$1" >known.txt
    run "$ROOT/build/venv/bin/python" "$ROOT/tests/tools/check_plugin.py" --known known.txt example "$ROOT/build/bin" cases
    [[ $output == *"$2"* ]] || { echo "$output"; return 1; }
}

@test "an exception of a library is still needed, or is the bound of what depends on the machine" {
    "$ROOT/build/venv/bin/python" -c 'import onnx' 2>/dev/null || skip "no onnx here"
    export ORT_PROVIDER_PATH=$PROVIDERS
    "$ROOT/build/venv/bin/python" - <<'END'
import pathlib
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

data = pathlib.Path("cases/test_off/test_data_set_0")
data.mkdir(parents=True)
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
save(helper.make_model(helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "off", [x], [y]), ir_version=8,
                       opset_imports=[helper.make_opsetid("", 17)]), data.parent / "model.onnx")
for name, value in (("input", 1), ("output", 2.2)):
    (data / f"{name}_0.pb").write_bytes(numpy_helper.from_array(np.full(4, value, np.float32)).SerializeToString())
END
    known "" "1 failed"
    known "example test_off 0.2 where 2 is expected" "1 passed, 0 failed"
    known "example test_off up to 0.25" "1 passed, 0 failed"
    known "example test_off up to 0.1" "1 failed"
}

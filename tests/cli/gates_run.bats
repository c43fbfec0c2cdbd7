#!/usr/bin/env bats
# gates_run.bats - ort-run never passes what it did not compare: --expect over records, parts, NaN.

load helper

with_fixtures() { # PROGRAM: what it makes of the pieces of fixtures.py
    python3 -c "
import sys
sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import *
put = lambda name, data: pathlib.Path(name).write_bytes(data)
$1"
}

sample() { # FILE NUMBER
    with_fixtures "put('$1', npy([$2 + k for k in range(6)], (2, 3)))"
}

three_outputs() {
    with_fixtures 'put("many.onnx", model(
    [node("Relu", ["x"], ["a"]), node("Neg", ["x"], ["b"]), node("Exp", ["x"], ["c"])],
    [value_info("x", [2, 3])], [value_info(n, [2, 3]) for n in "abc"]))'
}

@test "--expect with nothing to compare is no success" {
    mkdir empty inputs
    with_fixtures 'put("nothing.npz", archive({})); put("nothing.json", b"{}"); put("void.npz", b"")'
    works ort-tensor "$FX/x.npy" -o inputs/input_0.pb
    for expected in empty inputs nothing.npz nothing.json void.npz; do
        for strict in "" --strict; do
            fails 5 "$expected: (holds no expected output|is empty)" \
                ort-run "$FX/add.onnx" "$FX/xy.npz" --expect $expected $strict
        done
    done
}

@test "--expect names the outputs that it compared with nothing, and --strict says no" {
    three_outputs
    works ort-run many.onnx --random 1 -o all.npz
    works ort-run many.onnx --random 1 --expect all.npz
    works ort-run many.onnx --random 1 -o b=part.npz
    run --separate-stderr ort-run many.onnx --random 1 --expect part.npz
    [ "$status" -eq 0 ]
    [[ $stderr == *"part.npz: expects 1 of 3 outputs; not compared: 'a', 'c'"* ]]
    run --separate-stderr ort-run many.onnx --random 1 --expect part.npz --strict
    [ "$status" -eq 1 ]
    works ort-run many.onnx --random 1 --outputs b --expect part.npz --strict
    run --separate-stderr ort-run many.onnx --random 1 --expect part.npz --json
    [ "$status" -eq 0 ]
    echo "$output" | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert [e["name"] for e in r["expect"]] == ["b"] and r["expect"][0]["equal"]
assert [e["name"] for e in r["not_compared"]] == ["a", "c"]'
}

@test "every one of several inputs is compared with its own expected outputs" {
    mkdir a b
    sample a.npy 1
    sample b.npy 2
    ort-run "$FX/chain.onnx" a.npy -o a/output_0.pb
    ort-run "$FX/chain.onnx" b.npy -o b/output_0.pb
    works ort-run "$FX/chain.onnx" a.npy b.npy --expect a --expect b
    has "a.npy: " "b.npy: "
    fails 5 "--expect holds 1 records, there are more inputs" \
        ort-run "$FX/chain.onnx" a.npy b.npy --expect a
    run --separate-stderr ort-run "$FX/chain.onnx" a.npy b.npy --expect b --expect b
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "FAIL  a.npy: "* && ${lines[1]} == "ok    b.npy: "* ]]
    run --separate-stderr ort-run "$FX/chain.onnx" a.npy --expect a --expect b
    [ "$status" -eq 5 ]
    [[ $stderr == *"b: more is expected than the 1 record that ran"* ]]
}

@test "a stream is compared record by record, and both must have as many" {
    for v in 1 2 3; do
        sample x$v.npy $v
    done
    cat x1.npy x2.npy x3.npy > in.npy
    ort-run "$FX/chain.onnx" --stream -o - < in.npy > out.npz
    works ort-run "$FX/chain.onnx" --stream --expect out.npz < in.npy
    has "record 1: " "record 3: "
    cat x2.npy x2.npy x3.npy > other.npy
    run --separate-stderr ort-run "$FX/chain.onnx" other.npy --stream --expect out.npz
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "FAIL  record 1: "* && ${lines[1]} == "ok    record 2: "* ]]
    cat x1.npy x2.npy > short.npy
    run --separate-stderr ort-run "$FX/chain.onnx" short.npy --stream --expect out.npz
    [ "$status" -eq 5 ]
    cat in.npy x1.npy > long.npy
    run --separate-stderr ort-run "$FX/chain.onnx" long.npy --stream --expect out.npz
    [ "$status" -eq 5 ]
    fails 5 "standard input: is empty: nothing was run" \
        ort-run "$FX/chain.onnx" --stream --hash < /dev/null
}

@test "digests and the JSON report tell of every record" {
    for v in 1 2; do
        sample x$v.npy $v
    done
    works ort-run "$FX/chain.onnx" x1.npy x2.npy --hash
    [ ${#lines[@]} -eq 2 ]
    [[ ${lines[0]} == *"  x1.npy" && ${lines[1]} == *"  x2.npy" ]]
    first=${lines[0]%% *}
    works ort-run "$FX/chain.onnx" x1.npy --hash
    [ "${output%% *}" = "$first" ]
    cat x1.npy x2.npy > both.npy
    works ort-run "$FX/chain.onnx" --stream both.npy --json
    echo "$output" | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert r["records"] == 2 and [o["record"] for o in r["outputs"]] == [1, 2]
assert r["outputs"][0]["digest"] == sys.argv[1]' "$first"
}

@test "--repeat times every record of a stream" {
    sample x.npy 1
    cat x.npy x.npy > both.npy
    works ort-run "$FX/chain.onnx" --stream both.npy --repeat 3 --json
    echo "$output" | python3 -c 'import json, sys; assert json.load(sys.stdin)["runs"] == 6'
}

@test "--random makes up what a stream lacks, the same for every record" {
    sample x.npy 1
    cat x.npy x.npy > both.npy
    with_fixtures 'put("x.npz", archive({"x.npy": npy([1, 2, 3, 4, 5, 6], (2, 3))}))'
    fails 2 "input .y. is missing" ort-run "$FX/add.onnx" --stream x.npz --hash
    works ort-run "$FX/add.onnx" --stream both.npy --random 1 --hash
    [ ${#lines[@]} -eq 2 ]
    [ "${lines[0]%% *}" = "${lines[1]%% *}" ]
    works ort-run "$FX/add.onnx" --stream x.npz --random 1 --repeat 2 --json
}

@test "a NaN where a number was expected is a difference, whichever side has it" {
    with_fixtures 'put("nan.npy", npy([float("nan"), 18, 33, 36, 55, 54], (2, 3)))'
    run --separate-stderr ort-run "$FX/add.onnx" "$FX/xy.npz" --expect nan.npy
    [ "$status" -eq 1 ]
    run --separate-stderr ort-run "$FX/add.onnx" "$FX/xy.npz" --expect nan.npy --rtol 1e30 --atol 1e30
    [ "$status" -eq 1 ]
}

@test "gates of latency and memory say no with measured and allowed, in the report too" {
    local timed=(ort-run "$FX/chain.onnx" "$FX/x.npy" --repeat 5)
    works "${timed[@]}" --max-p50 100s --max-p90 100s --max-p99 100000ms --max-rss 64GB
    for gate in p50 p90 p99; do
        run --separate-stderr "${timed[@]}" --max-$gate 0.001us --json
        [ "$status" -eq 1 ]
        [[ $stderr =~ ^ort-run:\ --max-$gate:\ measured\ [0-9.e-]+\ ms,\ allowed\ 1e-06\ ms$ ]]
        echo "$output" | python3 -c '
import json, sys
gates = json.load(sys.stdin)["gates"]
assert len(gates) == 1 and gates[0]["gate"] == "max-" + sys.argv[1] and not gates[0]["passed"]
assert gates[0]["measured_ms"] > gates[0]["allowed_ms"] > 0' $gate
    done
    run --separate-stderr ort-run "$FX/chain.onnx" "$FX/x.npy" --max-rss 100KB -o y.npy
    [ "$status" -eq 1 ]
    [[ $stderr =~ "--max-rss: measured "[0-9.]+" MiB, allowed 0.0976562 MiB" ]]
    run --separate-stderr ort-profile "$FX/add.onnx" --no-peak --repeat 3 --max-p90 0.001us --json
    [ "$status" -eq 1 ]
    echo "$output" | python3 -c 'import json, sys; assert not json.load(sys.stdin)["gates"][0]["passed"]'
    works ort-profile "$FX/add.onnx" --no-peak --repeat 3 --max-p90 100s --max-rss 64GB
}

@test "the report's gates agree with the exit status" {
    three_outputs
    ort-run many.onnx --random 1 -o all.npz
    ort-run many.onnx --random 1 -o b=b.npz
    ort-run many.onnx --random 2 -o other.npz
    for expected in all b other; do
        for more in "" --strict "--repeat 2 --max-p50 100s" "--repeat 2 --max-p50 0.001us"; do
            run --separate-stderr ort-run many.onnx --random 1 --expect $expected.npz --json $more
            echo "$output" | python3 -c '
import json, sys
gates = json.load(sys.stdin)["gates"]
passed = all(g["passed"] for g in gates)
assert gates and passed == (sys.argv[1] == "0"), (gates, sys.argv)' "$status"
        done
    done
}

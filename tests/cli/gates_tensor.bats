#!/usr/bin/env bats
# gates_tensor.bats - ort-tensor's gates never pass what they did not compare; its reports as JSON.

load helper

with_fixtures() { # PROGRAM: what it makes of the pieces of fixtures.py
    python3 -c "
import sys
sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import *
put = lambda name, data: pathlib.Path(name).write_bytes(data)
nan = float('nan')
$1"
}

says() { # STATUS TEXT COMMAND...: the exit status, and the text somewhere in what is said
    local want=$1 text=$2
    shift 2
    run --separate-stderr "$@"
    if [ "$status" -ne "$want" ] || [[ "$output$stderr" != *"$text"* ]]; then
        echo "status $status, wanted $want and '$text'; stdout: $output; stderr: $stderr"
        return 1
    fi
}

@test "--compare of nothing with nothing is no success" {
    with_fixtures 'put("nothing.npz", archive({})); put("void.npy", b""); put("nothing.json", b"{}")'
    fails 5 "nothing" ort-tensor nothing.npz --compare nothing.npz
    fails 5 "nothing" ort-tensor nothing.json --compare nothing.json
    fails 5 "void.npy" ort-tensor "$FX/x.npy" --compare void.npy
    fails 5 "nothing was compared" ort-tensor "$FX/x.npy" --compare nothing.npz
}

@test "--compare wants as many values, of the same names where the two share any" {
    with_fixtures '
a, b = npy([1, 2], (2,)), npy([3, 4], (2,))
put("ab.npz", archive({"a.npy": a, "b.npy": b})); put("ba.npz", archive({"b.npy": b, "a.npy": a}))
put("ac.npz", archive({"a.npy": a, "c.npy": b})); put("cd.npz", archive({"c.npy": a, "d.npy": b}))
put("a.npz", archive({"a.npy": a}))'
    works ort-tensor ab.npz --compare ba.npz
    works ort-tensor ab.npz --compare cd.npz
    fails 5 "ac.npz: has no value 'b' to compare with" ort-tensor ab.npz --compare ac.npz
    fails 5 "a.npz: holds 1 values, compared with 2" ort-tensor ab.npz --compare a.npz
    fails 5 "ab.npz: holds 2 values, compared with 1" ort-tensor a.npz --compare ab.npz
}

@test "--compare takes records one by one, and one record for all" {
    with_fixtures '
x, y = npy([1, 2], (2,)), npy([3, 4], (2,))
put("xy.npy", x + y); put("xx.npy", x + x); put("xyx.npy", x + y + x); put("x.npy", x)'
    says 0 "ok" ort-tensor --stream --compare xy.npy < xy.npy
    says 1 "FAIL" ort-tensor --stream --compare xx.npy < xy.npy
    says 0 "ok" ort-tensor --stream --compare x.npy < xx.npy
    says 1 "FAIL" ort-tensor --stream --compare x.npy < xy.npy
    says 5 "holds 2 records, compared with more" ort-tensor --stream --compare xy.npy < xyx.npy
    says 5 "holds more records than the 2" ort-tensor --stream --compare xyx.npy < xy.npy
    says 5 "holds more records than the 1" ort-tensor x.npy --compare xx.npy
}

@test "a NaN on one side differs at any tolerance" {
    with_fixtures 'put("x.npy", npy([1, 2], (2,))); put("nan.npy", npy([1, nan], (2,)))'
    says 1 "FAIL" ort-tensor x.npy --compare nan.npy --rtol 1e30 --atol 1e30
    says 1 "FAIL" ort-tensor nan.npy --compare x.npy --rtol 1e30 --atol 1e30
    says 0 "ok" ort-tensor nan.npy --compare nan.npy
}

@test "--accuracy judges every row and label, and NaN is no class" {
    with_fixtures '
put("p.npy", npy([9, 1, 1, 9, nan, 9, 9, nan], (4, 2))); put("l.npy", npy([0, 1, 0, 0], (4,), "<i8"))
put("long.npy", npy([0, 1, 0, 0, 1], (5,), "<i8")); put("short.npy", npy([0, 1], (2,), "<i8"))
put("half.npy", npy([0, 1, 0.5, nan], (4,))); put("none.npy", npy([], (0, 2)))
put("column.npy", npy([.1, .2, .3, .4], (4, 1))); put("classes.npy", npy([0, 1, 0, 1], (4, 1), "<i8"))
put("two.npz", archive({"a.npy": npy([0], (1,)), "b.npy": npy([0], (1,))}))'
    says 0 "accuracy 0.5000 (2 of 4)" ort-tensor p.npy --accuracy l.npy
    has "2 rows are NaN or no class: counted as wrong"
    says 1 "accuracy 0.5000 is below 0.9000" ort-tensor p.npy --accuracy l.npy --min-accuracy 0.9
    says 0 "accuracy 0.7500" ort-tensor classes.npy --accuracy l.npy --min-accuracy 0.75
    fails 5 "holds 5 labels, there are 4 rows" ort-tensor p.npy --accuracy long.npy
    fails 5 "holds 2 labels, there are more rows" ort-tensor p.npy --accuracy short.npy
    fails 5 "label 2 is 0.5, which is no class" ort-tensor p.npy --accuracy half.npy
    fails 5 "holds no labels" ort-tensor p.npy --accuracy none.npy
    fails 5 "nothing was judged" ort-tensor none.npy --accuracy l.npy --min-accuracy 0
    fails 5 "one column" ort-tensor column.npy --accuracy l.npy
    fails 2 "--select" ort-tensor two.npz --accuracy l.npy
    fails 2 "needs --accuracy" ort-tensor p.npy --min-accuracy 0.99 -o o.npy
    fails 2 "'95' is not a number from 0 to 1" ort-tensor p.npy --accuracy l.npy --min-accuracy 95
    fails 2 "needs --compare" ort-tensor p.npy --rtol 1e-3
    fails 2 "needs --top" ort-tensor p.npy --labels l.npy
    fails 2 "only one of values" ort-tensor - --top 1 --labels - <p.npy
}

@test "--json holds for --print, --top, --compare and --accuracy, and agrees with the exit status" {
    with_fixtures '
put("p.npy", npy([9, 1, 1, 9, nan, 2], (3, 2))); put("l.npy", npy([0, 1, 0], (3,), "<i8"))
put("names.txt", b"cat\ndog\n")'
    report() { # STATUS PROGRAM COMMAND...
        local want=$1 program=$2
        shift 2
        run --separate-stderr "$@"
        [ "$status" -eq "$want" ] || { echo "status $status: $stderr"; return 1; }
        echo "$output" | python3 -c "
import json, sys
r = json.load(sys.stdin)
assert r['schema'] == 'ort-tensor/1'
assert all(g['passed'] for g in r['gates']) == ($want == 0), r
assert $program, r"
    }
    report 0 'r["records"][0]["values"][0]["shape"] == [3, 2] and r["records"][0]["values"][0]["nan_count"] == 1' \
        ort-tensor p.npy --print --json
    report 0 'r["records"][0]["values"][0]["items"][4] is None' ort-tensor p.npy --json
    report 0 'r["records"][0]["values"][0]["max"] == 9' ort-tensor p.npy --json -o copy.npy
    same p.npy copy.npy
    report 0 '[c["class"] for c in r["records"][0]["top"]] == [0, 1, 1] and r["records"][0]["top"][1]["label"] == "dog"' \
        ort-tensor p.npy --top 1 --labels names.txt --json
    report 0 'r["records"][0]["top"][1]["label"] == "dog"' ort-tensor p.npy --top 1 --labels - --json <names.txt
    report 0 'r["records"][0]["compare"][0]["equal"]' ort-tensor p.npy --compare p.npy --json
    report 1 'not r["records"][0]["compare"][0]["equal"] and r["gates"][0]["differing"] == 1' \
        ort-tensor p.npy --scale 2 --compare p.npy --json
    report 0 'r["accuracy"] > 0.66 and r["correct"] == 2 and r["without_class"] == 1' \
        ort-tensor p.npy --accuracy l.npy --json
    report 1 'r["gates"][0]["gate"] == "min-accuracy"' \
        ort-tensor p.npy --accuracy l.npy --min-accuracy 0.9 --json
    report 0 'r["confusion"] == [[1, 0], [0, 1]]' ort-tensor p.npy --accuracy l.npy --confusion --json
    fails 2 "can't both go to stdout" ort-tensor p.npy --json -o -
    fails 2 "can't both go to stdout" ort-tensor p.npy --compare p.npy -o -
}

@test "--print prints beside -o, and NaN scores are no best class" {
    with_fixtures 'put("p.npy", npy([nan, 1, 3, 2], (1, 4)))'
    says 0 "float" ort-tensor p.npy --print -o copy.npy
    same p.npy copy.npy
    says 0 "" ort-tensor p.npy --top 4
    [ "$(cut -f1 <<< "$output" | tr '\n' ' ')" = "2 3 1 0 " ]
}

@test "--compare tells SQNR and cosine, in text and JSON, and limits of them stand in for tolerances" {
    with_fixtures 'put("near.npy", npy([1.01, -2, 3, -4, 5, -6], (2, 3)))'
    says 1 "SQNR 59.59 dB, cosine 0.999999" ort-tensor near.npy --compare "$FX/x.npy"
    says 0 "SQNR 59.59 dB" ort-tensor near.npy --compare "$FX/x.npy" --min-sqnr 59
    says 1 "(59.59) is below 60 dB" ort-tensor near.npy --compare "$FX/x.npy" --min-sqnr 60
    run --separate-stderr ort-tensor near.npy --compare "$FX/x.npy" --min-cosine 0.9 --json
    [ "$status" -eq 0 ]
    python3 -c "
import json, sys
d = json.loads(sys.argv[1]); c = d['records'][0]['compare'][0]; g = d['gates'][1]
assert abs(c['sqnr_db'] - 59.59) < 0.01 and not c['exact'] and c['equal'] and 0.99999 < c['cosine'] < 1, c
assert g['gate'] == 'min-cosine' and g['passed'] and g['allowed'] == 0.9 and g['measured'] == c['cosine'], g" "$output"
    run --separate-stderr ort-tensor "$FX/x.npy" --compare "$FX/x.npy" --json
    python3 -c "
import json, sys
c = json.loads(sys.argv[1])['records'][0]['compare'][0]
assert c['sqnr_db'] is None and c['exact'] and c['cosine'] == 1, c" "$output"
}

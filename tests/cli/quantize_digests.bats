# Files of ort-quantize beside those that another processor made: tests/tools/quantize_digests.json.
load helper

check() { # check TABLE
    run "$ROOT/build/venv/bin/python" "$ROOT/tests/tools/check_quantize_digests.py" "$1" \
        "$ROOT/build/bin" "$ROOT/models"
}

@test "files of ort-quantize are those of another machine, and what differs is named" {
    check "$ROOT/tests/tools/quantize_digests.json"
    [ "$status" -eq 0 ] || { echo "$output"; false; }
    [[ $output == *" passed, 0 failed"* ]]
    python3 - "$ROOT/tests/tools/quantize_digests.json" <<'PY'
import json, sys
table = json.load(open(sys.argv[1]))
row = table["digits.onnx ranged"]
row["file"], row["parts"]["conv2.weight_codes"] = "0" * 64, "0" * 12
json.dump(table, open("planted.json", "w"))
PY
    TMPDIR=$PWD check planted.json
    [ "$status" -eq 1 ]
    [[ $output == *"not ok digits.onnx ranged: differs from what another machine made, first in conv2.weight_codes"* ]]
    [[ $output == *" passed, 1 failed"* ]]
}

# Pipes: data on stdout, talk on stderr, whole files or none, readers that leave, disks that are full.
load helper

@test "three tools in a pipe read a digit" {
    run --separate-stderr sh -c "ort-tensor $MODELS_DIR/images/digit_7_008.png --gray --float |
        ort-run $MODELS_DIR/digits.onnx - | ort-tensor --top 3 --labels $MODELS_DIR/labels_digits.txt"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == 7* ]]
}

@test "three tools in a pipe enlarge a photograph" {
    run --separate-stderr sh -c "ort-tensor $MODELS_DIR/images/photo.png --float |
        ort-run $MODELS_DIR/upscale.onnx - | ort-tensor -o large.png"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    works ort-tensor large.png --print
    has "320x320x3"
}

@test "a reader that closes early ends the writer quietly" {
    run --separate-stderr bash -c "ort-tensor $MODELS_DIR/images/photo.png --resize 4000 |
        head -c 10 >/dev/null; echo \${PIPESTATUS[0]}"
    [ -z "$stderr" ]
    [ "$output" -eq 141 ] || [ "$output" -eq 0 ]
}

@test "a full disk is reported" {
    run --separate-stderr sh -c "ort-run $FX/add.onnx $FX/xy.npz >/dev/full"
    [ "$status" -eq 5 ]
    [ -n "$stderr" ]
    run --separate-stderr sh -c "ort-tensor $FX/x.npy >/dev/full"
    [ "$status" -eq 5 ]
    run --separate-stderr sh -c "ort-inspect $FX/add.onnx >/dev/full"
    [ "$status" -eq 5 ]
    run --separate-stderr sh -c "ort-run $FX/add.onnx $FX/xy.npz --repeat 2 --json >/dev/full"
    [ "$status" -eq 5 ]
}

@test "a failing reader in front leaves no output" {
    run --separate-stderr bash -c "set -o pipefail
        ort-tensor nothere.png --float | ort-run $MODELS_DIR/upscale.onnx - -o out.npy"
    [ "$status" -eq 5 ]
    [ ! -e out.npy ]
}

@test "an unwritable output is status 5" {
    fails 5 "nowhere" ort-run "$FX/add.onnx" "$FX/xy.npz" -o nowhere/out.npy
    fails 5 "nowhere" ort-tensor "$FX/x.npy" -o nowhere/out.npy
}

@test "binary is not written to a terminal" {
    command -v script >/dev/null || skip "no script(1)"
    run script -qec "ort-tensor $FX/x.npy -o -" /dev/null
    [ "$status" -eq 2 ]
    run script -qec "ort-run $FX/add.onnx $FX/xy.npz" /dev/null
    [ "$status" -eq 0 ]
    has out
    # -q keeps warnings back, and this is why nothing was written
    run script -qec "ort-optimize $FX/add.onnx -q -o -" /dev/null
    [ "$status" -eq 2 ]
    has "binary data is not written to a terminal"
}

@test "numbers do not follow the locale" {
    localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2>/dev/null || [ -d de_DE.UTF-8 ] ||
        skip "no German locale can be made (package locales)"
    export LOCPATH=$PWD
    LC_ALL=de_DE.UTF-8 works ort-tensor "$FX/x.npy" --scale 0.5 -o out.json
    run cat out.json
    has "0.5"
    LC_ALL=de_DE.UTF-8 works ort-run "$FX/add.onnx" "$FX/xy.npz" --repeat 2 --json
    python3 -c 'import json, sys; json.loads(sys.argv[1])' "$output"
}

@test "--json: what fails before its report says so in JSON, wrong options too" {
    local tool
    error() { # error STATUS CODE TEXT COMMAND...
        local want=$1 code=$2 text=$3
        shift 3
        run --separate-stderr "$@"
        [ "$status" -eq "$want" ] || { echo "$*: $status"; return 1; }
        python3 - "$output" "$1" "$want" "$code" "$text" <<'END'
import json, sys
d = json.loads(sys.argv[1])
e = d["error"]
assert d["schema"] == sys.argv[2] + "/1" and sorted(d) == ["error", "schema"], d
assert [e["exit_status"], e["code"]] == [int(sys.argv[3]), sys.argv[4]], d
assert sys.argv[5] in e["message"], d
END
        [ -n "$stderr" ]
    }
    for tool in ort-run ort-optimize ort-inspect ort-profile; do
        error 3 model "no\"such.onnx" $tool 'no"such.onnx' --json
        error 2 usage "unknown option '--bogus'" $tool --json x.onnx --bogus
    done
    error 2 usage "--level" ort-tensor --json --level 9
    error 5 io "nix.npy" ort-tensor nix.npy --json
    error 5 io "nix.npy" ort-run "$FX/chain.onnx" nix.npy -q --json
    error 5 io "nix.npy" ort-run "$FX/chain.onnx" "$FX/x.npy" --expect nix.npy --json
    error 2 usage "no input" ort-optimize "$FX/chain.onnx" --shape q:1x2 --json
    run --separate-stderr ort-run nix.onnx --json -o - # stdout is for tensors
    [ "$status" -eq 3 ] && [ -z "$output" ]
}

@test "--json is the whole of stdout: verdicts and digests are members of the report" {
    works ort-run "$FX/chain.onnx" "$FX/x.npy" -o y.npz
    works ort-run "$FX/chain.onnx" "$FX/x.npy" --expect y.npz --hash --json
    python3 -c 'import json, sys; assert all(e["equal"] for e in json.loads(sys.argv[1])["expect"])' \
        "$output"
    ort-run "$MODELS_DIR/digits.onnx" --random 1 -o y.npz
    run --separate-stderr ort-run "$MODELS_DIR/digits.onnx" --random 2 --expect y.npz --json
    [ "$status" -eq 1 ]
    python3 -c 'import json, sys; assert not json.loads(sys.argv[1])["expect"][0]["equal"]' "$output"
}

@test "-q keeps warnings back, not errors" {
    fails 5 "nix.npy" ort-run "$FX/chain.onnx" -q --stack nix.npy
    mkdir -p folder
    fails 5 "labels.txt" ort-tensor "$FX/x.npy" -q --top 1 --labels labels.txt
}

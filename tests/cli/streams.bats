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

# Bad models: exit status 3, a first line that names cause and place, no file.
load helper

rejects() { # rejects FILE REGEX: by both tools that load models
    fails 3 "$2" ort-run "$FX/$1" "$FX/x.npy" -o out.npy
    fails 3 "$2" ort-inspect "$FX/$1"
}

@test "missing model file" {
    fails 3 "nothere\.onnx" ort-run nothere.onnx -o out.npy
    fails 3 "nothere\.onnx" ort-inspect nothere.onnx
}

@test "a folder instead of a model" {
    mkdir folder
    fails 3 "folder" ort-run folder -o out.npy
}

@test "git-lfs pointer" { rejects lfs.onnx "lfs\.onnx.*git-lfs"; }
@test "HTML page" { rejects page.onnx "page\.onnx.*HTML"; }
@test "zip archive" { rejects zip.onnx "zip\.onnx.*zip"; }
@test "PyTorch archive" { rejects torch.onnx "torch\.onnx.*PyTorch"; }
@test "PyTorch pickle" { rejects pickle.onnx "pickle\.onnx.*pickle"; }
@test "empty file" { rejects empty.onnx "empty\.onnx.*empty"; }
@test "wrong magic" { rejects noise.onnx "noise\.onnx"; }

@test "truncated at several offsets" {
    local size offset
    size=$(wc -c <"$MODELS_DIR/digits.onnx")
    for offset in 1 10 100 1000 $((size / 2)) $((size - 1)); do
        mkdir -p cut
        head -c "$offset" "$MODELS_DIR/digits.onnx" >cut/cut.onnx
        fails 3 "cut\.onnx" ort-run cut/cut.onnx --random 1 -o out.npy
    done
}

@test "truncated on stdin" {
    head -c 5000 "$MODELS_DIR/digits.onnx" >cut.onnx
    run --separate-stderr sh -c 'ort-run - --random 1 -o out.npy <cut.onnx'
    [ "$status" -eq 3 ]
    [ ! -e out.npy ]
}

@test "20,000 nested messages" { rejects nested.onnx "nested\.onnx"; }

@test "unknown operators are all listed at once" {
    fails 3 "unknown\.onnx" ort-run "$FX/unknown.onnx" "$FX/x.npy" -o out.npy
    [[ $stderr == *Frobnicate* ]]
    [[ $stderr == *Whirl* ]]
    [[ $stderr == *Twirl* ]]
}

@test "a list of inputs with a hole" {
    fails 3 "hole\.onnx: .*'join'.* input 1 .*a list has no holes" ort-run "$FX/hole.onnx" "$FX/x.npy" -o out.npy
}

@test "cyclic graph" {
    fails 3 "cyclic\.onnx: .*(first|second)" ort-run "$FX/cyclic.onnx" "$FX/x.npy" -o out.npy
}

@test "dangling input names the node and the value" {
    fails 3 "dangling\.onnx: .*lonely.*nowhere" ort-run "$FX/dangling.onnx" "$FX/x.npy" -o out.npy
}

@test "a value made twice" {
    fails 3 "twice\.onnx: .*out" ort-run "$FX/twice.onnx" "$FX/x.npy" -o out.npy
}

@test "operand types that the operator refuses" {
    fails 3 "badtype\.onnx: .*mixed" ort-run "$FX/badtype.onnx" --random 1 -o out.npy
}

@test "external data outside the model's folder" {
    printf '0123456789012345678901234567' >"$BATS_TEST_TMPDIR/../x" || true
    fails 3 "escape\.onnx: .*\.\./\.\./x" ort-run "$FX/escape.onnx" "$FX/x.npy" -o out.npy
}

@test "external data that is missing" {
    run --separate-stderr ort-run "$FX/absent.onnx" "$FX/x.npy" -o out.npy
    [ "$status" -eq 3 ] || [ "$status" -eq 5 ]
    [[ ${stderr_lines[0]} == *absent.bin* ]]
    [ ! -e out.npy ]
}

@test "a newer opset or IR than known is refused with both versions; --allow-newer tries it" {
    local why="newer.onnx: IR version 60 is newer than 14 and opset 99 of 'ai.onnx' is newer than 28"
    fails 3 "$why" ort-run "$FX/newer.onnx" "$FX/xy.npz" -o out.npy
    fails 3 "$why" ort-run "$FX/newer.onnx" "$FX/xy.npz" --dim n=1 -o out.npy
    fails 3 "$why" ort-run "$FX/newer.onnx" "$FX/xy.npz" --compare-levels
    fails 3 "$why" ort-optimize "$FX/newer.onnx" -o out.onnx
    fails 3 "$why" ort-profile "$FX/newer.onnx"
    fails 3 "$why" ort-inspect "$FX/newer.onnx" --ops
    works ort-inspect "$FX/newer.onnx" --nodes
    works ort-inspect "$FX/newer.onnx" --ops --allow-newer
    works ort-run "$FX/newer.onnx" "$FX/xy.npz" --allow-newer -o out.npy
    same out.npy "$FX/sum.npy"
    works ort-run "$FX/newer.onnx" "$FX/xy.npz" --allow-newer --compare-levels
    works ort-optimize "$FX/newer.onnx" --allow-newer -o out.onnx
}

# Bad tensors, names and options: exit status 5 or 2, a first line that names cause and place, no file.
load helper

@test "wrong element type" {
    fails 5 "'x'.*int64" ort-run "$FX/add.onnx" -i x="$FX/int.npy" -i y="$FX/y.npy" -o out.npy
}

@test "wrong rank" {
    fails 5 "'x'" ort-run "$FX/add.onnx" -i x="$FX/flat.npy" -i y="$FX/y.npy" -o out.npy
}

@test "wrong dimension" {
    fails 5 "'x'" ort-run "$FX/add.onnx" -i x="$FX/wide.npy" -i y="$FX/y.npy" -o out.npy
}

@test "wrong input name lists the valid ones" {
    fails 2 "'q'" ort-run "$FX/add.onnx" -i q="$FX/x.npy" -o out.npy
    [[ $stderr == *x* ]] && [[ $stderr == *y* ]]
}

@test "wrong output name lists the valid ones" {
    fails 2 "'nope'" ort-run "$FX/add.onnx" "$FX/xy.npz" --outputs nope -o out.npy
    [[ $stderr == *out* ]]
}

@test "npz with a missing member" {
    run --separate-stderr ort-run "$FX/add.onnx" "$FX/half.npz" -o out.npy
    [ "$status" -eq 2 ] || [ "$status" -eq 5 ]
    [[ ${stderr_lines[0]} == *"y"* ]]
    [ ! -e out.npy ]
}

@test "npz with a member of another name" {
    run --separate-stderr ort-run "$FX/add.onnx" "$FX/stranger.npz" -o out.npy
    [ "$status" -eq 2 ] || [ "$status" -eq 5 ]
    [[ ${stderr_lines[0]} == *"y"* ]]
    [ ! -e out.npy ]
}

@test "truncated npy" {
    fails 5 "cut\.npy" ort-run "$FX/chain.onnx" "$FX/cut.npy" -o out.npy
    fails 5 "cut\.npy" ort-tensor "$FX/cut.npy" -o out.npy
}

@test "truncated npz" {
    fails 5 "cut\.npz" ort-run "$FX/add.onnx" "$FX/cut.npz" -o out.npy
}

@test "truncated tensors on stdin" {
    run --separate-stderr sh -c "ort-run $FX/chain.onnx - -o out.npy <$FX/cut.npy"
    [ "$status" -eq 5 ]
    [ ! -e out.npy ]
}

@test "missing tensor file" {
    fails 5 "nothere\.npy" ort-run "$FX/chain.onnx" nothere.npy -o out.npy
    fails 5 "nothere\.npy" ort-tensor nothere.npy -o out.npy
}

@test "no inputs at all" {
    run --separate-stderr ort-run "$FX/add.onnx" -o out.npy </dev/null
    [ "$status" -eq 2 ] || [ "$status" -eq 5 ]
    [ ! -e out.npy ]
}

@test "unknown option is refused, with the way to the known ones" {
    fails 2 "--frob" ort-run --frob "$FX/add.onnx"
    [[ $stderr == *"Try 'ort-run --help'"* ]]
    fails 2 "--frob" ort-tensor --frob "$FX/x.npy"
    fails 2 "--frob" ort-inspect --frob "$FX/add.onnx"
}

@test "unknown values are refused with those allowed" {
    fails 2 "--level" ort-run "$FX/add.onnx" "$FX/xy.npz" --level 9 -o out.npy
    fails 2 "opencl|vulkan" ort-run "$FX/add.onnx" "$FX/xy.npz" --provider vulkan -o out.npy
    fails 2 "--threads" ort-run "$FX/add.onnx" "$FX/xy.npz" --threads none -o out.npy
    fails 2 "mmx" ort-run "$FX/add.onnx" "$FX/xy.npz" --isa mmx -o out.npy
    [[ $stderr == *scalar* ]]
}

@test "model and tensors both from stdin" {
    run --separate-stderr sh -c "ort-run - - <$FX/add.onnx"
    [ "$status" -eq 2 ]
}

@test "no model given" {
    fails 2 "MODEL" ort-run
    fails 2 "MODEL" ort-inspect
}

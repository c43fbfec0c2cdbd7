# A build without OpenCL, and a machine without a driver for it.
load helper

net=$MODELS_DIR/digits.onnx

@test "a build without OpenCL has no trace of it, and says so when it is asked for" {
    without=$(make -s -C "$ROOT" without-opencl | tail -n 1)
    [ -x "$without/ort-run" ]
    PATH=$without:$PATH
    fails 2 "provider 'opencl' is not in this build; this build has: cpu" \
        ort-run --provider opencl,cpu "$net" --random 1 -o y.npz
    works ort-inspect --providers
    has "cpu: this processor"
    [[ $output != *opencl* ]]
    works ort-run "$net" --random 1 -o y.npz
    ! grep -q clGetPlatformIDs "$without/ort-run"
}

@test "nothing outside of its folder needs OpenCL's headers" {
    run grep -rlE '#include *<CL/' "$ROOT/lib" "$ROOT/cmd" "$ROOT/abi"
    [ "$output" = "$ROOT/lib/provider/opencl/cl_api.h" ]
    run grep -rlE '"provider/opencl/' "$ROOT/lib" "$ROOT/cmd" "$ROOT/abi"
    [[ $output != *"/exec/"* && $output != *"/cmd/"* && $output != *"/report/"* ]]
}

@test "a machine without a driver: one warning and the CPU's results, exit 4 without the CPU" {
    ort-run --provider opencl --settings >/dev/null 2>&1 || skip "this build has no OpenCL"
    mkdir vendors
    export OCL_ICD_VENDORS=$PWD/vendors
    ort-run "$net" --random 1 -o want.npz
    run --separate-stderr ort-run --provider opencl,cpu "$net" --random 1 -o y.npz
    [ "$status" -eq 0 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == *"provider 'opencl' is left out: OpenCL"* ]]
    same y.npz want.npz
    fails 4 "provider 'opencl': OpenCL" ort-run --provider opencl "$net" --random 1 -o z.npz
    works ort-inspect --providers
    has "none: OpenCL"
}

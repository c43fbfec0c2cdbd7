#!/bin/sh
# run_opencl.sh BIN PROGRAM: the part of the checks of OpenCL that make test runs: build/provider-cases with the kernels
# of the device's class, those of products with the other class, small models (MODELS), and the share of
# multiply-adds that the device takes of each. PROGRAM is tests/onnx/conformance.
set -u
bin=$1 program=$2
models=${MODELS:-../shared/models}
passed=0 failed=0 skipped=0

count() { # count FILE
    cat "$1"
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$1" | tail -n 1)
    set -- $(echo "${line:-0 passed, 1 failed, 0 skipped}" | tr -c '0-9\n' ' ')
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + ${3:-0}))
}

log=build/opencl.log

# says LINE SETTING ARGUMENT...: the check of what runs where, of a provider of tests, fails with this line alone; it
# passes where LINE is "".
says() {
    want=$1 setting=$2 expected=${1:+1}
    expected=${expected:-0}
    shift 2
    env "$setting" build/venv/bin/python tests/tools/check_provider.py --provider-lib build/faulty.so "$@" faulty "$bin" \
        "$program" build/conformance >$log 2>&1
    status=$?
    if [ "$(grep '^not ok' $log)" = "${want:+not ok $want}" ] && [ "$status" -eq "$expected" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "not ok the check of what runs where: status $status, it should say '${want:-nothing}'"
        tail -n 3 $log
    fi
}
if ${CC:-cc} -O1 -shared -fPIC -Wno-unused-parameter -Ilib tests/providers/faulty.c -o build/faulty.so -lm 2>$log; then
    printf 'ai.onnx %s float\n' Relu Neg Exp Tanh Add Sub Mul Div >build/faulty.types
    sed 's/Add.*/& int32/' build/faulty.types >build/faulty.more
    sed 's/Neg.*/Neg/' build/faulty.types >build/faulty.less
    says '' FAULTY_LISTS= --types build/faulty.types
    says 'ai.onnx.Gemm: claimed, and ran nowhere but on the host' FAULTY_LISTS=Gemm
    says 'ai.onnx.RandomNormal: claimed, and ran nowhere but on the host: no test is for it' FAULTY_LISTS=RandomNormal
    says 'ai.onnx.Add of int32: claimed, and ran nowhere but on the host' FAULTY_LISTS= --types build/faulty.more
    says 'ai.onnx.Neg of float: it ran there, and the list of types lacks it' FAULTY_LISTS= --types build/faulty.less
else
    failed=$((failed + 1))
    echo "not ok the provider of tests: $(head -n 1 $log)"
fi

if ! "$bin/ort-inspect" --providers | grep -A1 '^opencl:' | grep -q '^  0'; then
    echo "skip opencl: this build or this machine has no device of OpenCL"
    [ "${CI:-}" = true ] && { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
# check LOG OPTIONS NAMES OF_LARGEST ARGUMENT...
check() {
    to=build/opencl_$1.log options=$2 names=$3 of_largest=$4
    shift 4
    build/venv/bin/python tests/tools/check_provider.py --options "$options" --only "$names" --of-largest "$of_largest" \
        "$@" opencl "$bin" "$program" build/provider-cases >"$to" 2>&1
}

# codes MODEL...: codes of 8 bits, with the CPU's bits
codes() ( # of its own counts
    passed=0 failed=0 skipped=0 log=build/opencl_codes.tail
    for model in "$@"; do
        if [ ! -d "$models/$model/test_data_set_0" ]; then
            skipped=$((skipped + 1))
            echo "skip $model: it isn't in $models"
        elif "$bin/ort-run" -v --provider opencl:cost=off,cpu "$models/$model/model.onnx" \
            -i "$models/$model/test_data_set_0" --hash >build/opencl.there 2>$log &&
            "$bin/ort-run" "$models/$model/model.onnx" -i "$models/$model/test_data_set_0" --hash \
                >build/opencl.here 2>>$log &&
            cmp build/opencl.there build/opencl.here >>$log && grep -q 'opencl: [1-9][0-9]* nodes' $log &&
            ! grep -q 'goes on on cpu\|is left out' $log; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "not ok $model: other bits, or not on the device: $(tail -n 1 $log)"
        fi
    done
    echo "$passed passed, $failed failed, $skipped skipped"
)

# Most of the time a kernel is compiled, by one thread: two rows of checks side by side.
# Inputs, weights and results are rounded to 2^-11, and a test's nodes are few: 2^-8 of the largest of an output.
halves() {
    check halves ':fp16=1' '[!o]*' 0.00390625 --ignore tests/onnx/opencl_fp16.txt
    check halves_local ':fp16=1:tiles=local' '[fgjm]*' 0.00390625
    # What kernels use of extensions that the device lacks, computed by other means.
    if ${CC:-cc} -O1 -shared -fPIC tests/providers/fake_opencl.c -o build/fake_opencl.so -l:libOpenCL.so.1 2>$log; then
        export ORT_OPENCL_LIB="$PWD/build/fake_opencl.so" FAKE_CL_EXTRA='cl_khr_fp16 cl_khr_integer_dot_product'
        check dots ':tiles=local' 'q[cmg]*' 0
        check math ':fp16=math:tiles=local' '[fg][ue]*' 0.00390625
    else
        printf 'skip extensions: no library of OpenCL to link with\n0 passed, 0 failed, 1 skipped\n' >build/opencl_dots.log
        echo "0 passed, 0 failed, 0 skipped" >build/opencl_math.log
    fi
}
floats() {
    check floats '' '*' 0 --types tests/onnx/opencl.txt
    check floats_local ':tiles=local' '[acfgjlmpqr]*' 0
    codes mlperf_tiny_resnet8_int8 mlperf_tiny_kws_int8 efficientnet_lite0_int8_qop shufflenet_v2_12_int8 \
        >build/opencl_codes.log
    set --
    for model in mnist_8 mlperf_tiny_kws_fp32 mlperf_tiny_vww_fp32 magika_v3_3 silero_micro ort_tiny_gpt2_past \
        ppocrv2_cls llama_byte_2m_trained yunet_n_320 efficientnet_lite0_fp16; do
        set -- "$@" "$models/$model"
    done
    sh tests/tools/run_opencl_models.sh "$bin" "$@" >build/opencl_small.log 2>&1
    if [ -d "$models" ]; then
        build/venv/bin/python tests/tools/provider_share.py --why opencl "$bin" "$models" build/topologies \
            >build/opencl_share.log 2>&1
    else
        printf 'skip shares: %s is not there\n0 passed, 0 failed, 1 skipped\n' "$models" >build/opencl_share.log
    fi
}
halves &
floats
wait
for part in halves halves_local dots math floats floats_local codes small share; do
    count build/opencl_$part.log
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]

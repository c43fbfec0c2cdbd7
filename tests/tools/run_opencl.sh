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
if ! "$bin/ort-inspect" --providers | grep -A1 '^opencl:' | grep -q '^  0'; then
    echo "skip opencl: this build or this machine has no device of OpenCL"
    [ "${CI:-}" = true ] && { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
for options in '' ':tiles=local'; do
    build/venv/bin/python tests/tools/check_provider.py --options "$options" --only "${options:+[cfgm]}*" opencl \
        "$bin" "$program" build/provider-cases >$log 2>&1
    count $log
done
for model in mnist_8 mlperf_tiny_kws_fp32 mlperf_tiny_vww_fp32 magika_v3_3 silero_micro ort_tiny_gpt2_past ppocrv2_cls \
    llama_byte_2m_trained yunet_n_320 efficientnet_lite0_fp16; do
    folder=$models/$model
    if [ ! -d "$folder/test_data_set_0" ]; then
        skipped=$((skipped + 1))
        echo "skip $model: $folder isn't here"
        continue
    fi
    # The tolerances that the model's own reference needs.
    within=$(sed -n 's/^ *"\([ra]tol\)": \([0-9.e-]*\),*$/--\1 \2/p' "$folder/meta.json")
    # Its nodes on the device, to the end: a session that goes on on the CPU is right, too.
    # shellcheck disable=SC2086
    if "$bin/ort-run" -v --provider opencl:cost=off,cpu $within "$folder/model.onnx" -i "$folder/test_data_set_0" \
        --expect "$folder/test_data_set_0" >$log 2>&1 && grep -q 'opencl: [1-9][0-9]* nodes' $log &&
        ! grep -q 'goes on on cpu\|is left out' $log; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "not ok $model: $(tail -n 1 $log)"
    fi
done
if [ -d "$models" ]; then
    build/venv/bin/python tests/tools/provider_share.py --why opencl "$bin" "$models" build/topologies >$log 2>&1
    count $log
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]

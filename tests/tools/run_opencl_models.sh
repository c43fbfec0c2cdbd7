#!/bin/sh
# run_opencl_models.sh BIN FOLDER...: models with all that is claimed on a device of OpenCL (cost=off). Results are
# those that the folder's test data expects, within the bounds of its meta.json; where there are no such data they are
# the CPU's of made-up inputs: within the usual bounds those at level 0, or, bit for bit, those at level 2, whose graph a
# device's part is made of. The latter is what models of codes meet: from level 2 on their products are sums of whole
# numbers, and a sum of floats near the middle between two codes may fall on the other side. Data that the device doesn't
# meet are judged themselves (exact_values.py): recorded by floats, they may be further from the exact values than their
# bounds are wide, and then the device must be nearer. Part of the nodes must run there to the end: a session that goes
# on on the CPU gives right results, too. Skipped: folders that aren't there, data that the CPU doesn't meet either
# (recorded elsewhere, of codes), models of which no node is claimed.
set -u
bin=$1
shift
passed=0 failed=0 skipped=0 log=build/opencl_models.log there=build/opencl_models.there.npz here=build/opencl_models.here.npz

fail() { # fail MODEL WHY
    failed=$((failed + 1))
    echo "not ok $1: $2: $(tail -n 1 $log)"
}

skip() { # skip MODEL WHY
    skipped=$((skipped + 1))
    echo "skip $1: $2"
}

# Did part of the run before take place there, to the end?
ran_there() {
    grep -q 'opencl: [1-9][0-9]* nodes' $log && ! grep -q 'goes on on cpu\|is left out' $log
}

# is_cpus LEVEL BOUND...: is what was computed there what the CPU computes at this level?
is_cpus() {
    level=$1
    shift
    "$bin/ort-run" "$model" --level "$level" --random 1 -o $here >$log 2>&1 &&
        "$bin/ort-tensor" $there --compare $here "$@" >$log 2>&1
}

# Is it nearer to the exact values than the data are? These must be out of their own bounds.
is_nearer() {
    # shellcheck disable=SC2086
    build/venv/bin/python tests/tools/exact_values.py "$bin" "$folder" $within --provider opencl:cost=off,cpu
}

for folder in "$@"; do
    name=$(basename "$folder") model=$folder/model.onnx
    if [ ! -e "$model" ]; then
        skip "$name" "$folder isn't here"
        continue
    fi
    within=$(sed -n 's/^ *"\([ra]tol\)": \([0-9.e-]*\),*$/--\1 \2/p' "$folder/meta.json" 2>/dev/null)
    if [ -d "$folder/test_data_set_0" ]; then
        # shellcheck disable=SC2086
        set -- $within -i "$folder/test_data_set_0" --expect "$folder/test_data_set_0"
    else
        set -- --random 1 -o $there
    fi
    if "$bin/ort-run" -v --provider opencl:cost=off,cpu "$model" "$@" >$log 2>&1; then
        if grep -q 'opencl: 0 nodes' $log || ! grep -q 'opencl: [0-9]* nodes' $log; then
            skip "$name" "none of its nodes is claimed"
        elif ! ran_there; then
            fail "$name" "it didn't run there to the end"
        elif [ -d "$folder/test_data_set_0" ]; then
            passed=$((passed + 1))
        elif is_cpus 0 || is_cpus 2 --rtol 0 --atol 0; then
            passed=$((passed + 1))
        else
            fail "$name" "not what the CPU gives"
        fi
    elif [ -d "$folder/test_data_set_0" ] && ! "$bin/ort-run" "$model" "$@" >/dev/null 2>&1; then
        skip "$name" "the CPU doesn't meet its data either"
    elif ran_there && [ -d "$folder/test_data_set_0" ] && is_nearer; then
        passed=$((passed + 1))
    else
        fail "$name" "cost=off"
    fi
done
rm -f $log $there $here
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]

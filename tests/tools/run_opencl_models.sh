#!/bin/sh
# run_opencl_models.sh BIN FOLDER...: models with all that is claimed on a device of OpenCL (cost=off). Results are
# those that the folder's test data expects, within the bounds of its meta.json; where there are no such data they are
# the CPU's at level 0, of made-up inputs. Part of the nodes must run there to the end: a session that goes on on the CPU gives right
# results, too. Skipped: folders that aren't there, data that the CPU doesn't meet either (recorded elsewhere, of codes),
# models of which no node is claimed.
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
        elif "$bin/ort-run" "$model" --level 0 --random 1 -o $here >$log 2>&1 &&
            "$bin/ort-tensor" $there --compare $here >$log 2>&1; then
            passed=$((passed + 1))
        else
            fail "$name" "not what the CPU gives"
        fi
    elif [ -d "$folder/test_data_set_0" ] && ! "$bin/ort-run" "$model" "$@" >/dev/null 2>&1; then
        skip "$name" "the CPU doesn't meet its data either"
    else
        fail "$name" "cost=off"
    fi
done
rm -f $log $there $here
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]

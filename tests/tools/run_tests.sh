#!/bin/sh
# run_tests.sh: everything `make test` runs. Each suite ends with "N passed, N failed, N skipped"; the
# sums are the last line. With CI=true a suite that can't run counts as a failure.
set -u
logs=build/test
jobs=$(nproc 2>/dev/null || echo 2)
mkdir -p $logs
: >$logs/counts

add() { # add PASSED FAILED SKIPPED
    echo "$1 $2 $3" >>$logs/counts
}

suite() { # suite NAME COMMAND...
    name=$1
    shift
    start=$(date +%s)
    echo "== $name"
    "$@" >"$logs/$name.log" 2>&1
    status=$?
    line=$(grep -E '^([A-Za-z_]+: )?[0-9]+ passed, [0-9]+ failed' "$logs/$name.log" | tail -n 1)
    if [ -z "$line" ]; then
        tail -n 20 "$logs/$name.log"
        echo "$name: gave no result (exit $status), see $logs/$name.log"
        add 0 1 0
        return
    fi
    set -- $(echo "$line" | tr -c '0-9\n' ' ')
    add "$1" "$2" "${3:-0}"
    if [ "$2" -gt 0 ] || [ $status -ne 0 ]; then
        grep -E '^(not ok|FAIL|FAILED|fail)' "$logs/$name.log" | head -n 40
        [ "$2" -gt 0 ] || { echo "$name: exit $status"; add 0 1 0; }
    fi
    grep -E '^(skip|# skip|tier|tiers)' "$logs/$name.log" | head -n 10
    echo "   $line ($(($(date +%s) - start)) s)"
}

cannot() { # cannot NAME REASON: a skip, or a failure in CI
    echo "== $1"
    if [ "${CI:-}" = true ]; then
        echo "not ok $1: $2"
        add 0 1 0
    else
        echo "skip $1: $2"
        add 0 0 1
    fi
}

finish() {
    set -- $(awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' $logs/counts)
    passed=$1 failed=$2 skipped=$3
    echo
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ]
    exit
}

sh tests/tools/packages.sh build test || { echo "packages are missing"; [ "${CI:-}" = true ] && add 0 1 0; }
echo "== build"
make -j"$jobs" all >"$logs/build.log" 2>&1 || { tail -n 30 "$logs/build.log"; add 0 1 0; finish; }

sh tests/tools/setup_venv.sh >"$logs/venv.log" 2>&1
venv=$?
suite unit make -s -j"$jobs" unit
suite cli sh tests/tools/run_cli.sh
suite contrib make -s contrib

# Suites of one thread, in two rows side by side: where both call make, all that they share is built.
quantizer() {
    suite spellings make -s spellings
    suite quantize-matrix build/venv/bin/python tests/tools/check_quantize.py build/bin
    suite quantize-sizes make -s quantize-sizes
    suite quantize-failures make -s quantize-failures
    suite quantize-bytes make -s quantize-bytes
    suite quantize-more build/venv/bin/python tests/tools/check_quantize_more.py \
        --openvino build/venv-bench/bin/python build/bin
    suite bundled build/venv/bin/python tests/tools/check_bundled.py
}
others() {
    suite lint make -s lint
    suite plugins make -s plugin-conformance
    suite exact make -s exact
    suite schema make -s schema
    suite abi make -s abi
    suite opset make -s opset
    suite types make -s types
    suite shapes make -s shapes
    suite shape-versions make -s shape-versions
    suite check-models make -s check-models-sample
}

if [ $venv -eq 0 ]; then
    suite conformance make -s conformance
    suite opencl make -s opencl
    quantizer >$logs/quantizer.out 2>&1 &
    others
    wait
    cat $logs/quantizer.out
else
    suite lint make -s lint
    tail -n 3 "$logs/venv.log"
    cannot conformance "the pinned Python packages can't be installed (no network?)"
fi

if [ -d "${MODELS:-../shared/models}" ]; then
    suite models make -s models
else
    cannot models "${MODELS:-../shared/models} is not there"
fi
finish

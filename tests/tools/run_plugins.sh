#!/bin/sh
# run_plugins.sh PLUGINS MODELS ONLY: ONNX's node tests on each provider that isn't built in, then the
# real models. ORT_PROVIDER_PATH says where the plugins are.
set -u
passed=0 failed=0 skipped=0
for name in example onednn openvino; do
    case " $1 " in
    *" $name "*) ;;
    *) echo "skip $name: not built here"; skipped=$((skipped + 1)); continue ;;
    esac
    out=build/test/plugin-$name.log
    mkdir -p build/test
    build/venv/bin/python -u tests/tools/check_plugin.py ${3:+--only "$3"} --models "$2" \
        --known tests/onnx/plugins.txt "$name" build/bin build/conformance >"$out" 2>&1
    sed "s/^/$name: /" "$out"
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$out" | tail -n 1)
    # shellcheck disable=SC2046
    set -- "$1" "$2" "$3" $(echo "${line:-0 passed, 1 failed, 0 skipped}" | tr -c '0-9\n' ' ')
    passed=$((passed + ${4:-0})) failed=$((failed + ${5:-1})) skipped=$((skipped + ${6:-0}))
    set -- "$1" "$2" "$3"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]

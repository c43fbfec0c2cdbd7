# Bodies of control flow on a device: results, what the reports say, what is copied, failures.
load helper

setup_file() {
    export MODELS_OF_BODIES=$BATS_FILE_TMPDIR/models
    "$ROOT/build/venv/bin/python" "$ROOT/tests/tools/body_models.py" "$MODELS_OF_BODIES"
    ${CC:-gcc} -O1 -g -shared -fPIC "$ROOT/tests/providers/fake_opencl.c" -o "$BATS_FILE_TMPDIR/fake.so" \
        -l:libOpenCL.so.1 || true
}

needs_device() {
    ort-run --provider opencl "$MODELS_DIR/digits.onnx" --random 1 -o y.npz || skip "no device of OpenCL here"
}

@test "loops, scans and branches give on a device what they give on the CPU" {
    needs_device
    local name
    for name in loop while scan scan_back scan_odd scan_odd_rows scan_in_loop nested grow; do
        cp "$MODELS_OF_BODIES/$name".* .
        ort-run "$name.onnx" -i "$name.npz" -o want.npz
        run ort-run -v --provider opencl:cost=off,cpu "$name.onnx" -i "$name.npz" -o got.npz
        [[ $status -eq 0 && $output =~ "opencl: "[4-9]" nodes" && $output != *"goes on on"* ]] || { echo "$name: $output"; return 1; }
        ort-tensor got.npz --compare want.npz
        works ort-run --provider opencl:cost=on,cpu "$name.onnx" -i "$name.npz" -o chosen.npz
        ort-tensor chosen.npz --compare want.npz
        works ort-run --provider opencl:tiles=local:cost=off,cpu "$name.onnx" -i "$name.npz" -o tiles.npz
        ort-tensor tiles.npz --compare want.npz
    done
}

# copies NAME [N]: of one run, as "in, bytes, out, bytes"; N rounds.
copies() {
    "$ROOT/build/venv/bin/python" - "$1" "${2:-0}" <<'PY'
import numpy, sys
fed = dict(numpy.load(sys.argv[1] + ".npz"))
if int(sys.argv[2]):
    fed["n"] = numpy.int64(sys.argv[2])
numpy.savez("fed.npz", **fed)
PY
    ort-profile --provider opencl:cost=off,cpu "$1.onnx" -i fed.npz --repeat 1 --json --no-peak |
        python3 -c 'import json, sys
p = json.load(sys.stdin)["providers"][0]
print(p["copies_in"], p["copy_in_bytes"], p["copies_out"], p["copy_out_bytes"])'
}

@test "state and captured values stay on the device: copies don't grow with rounds" {
    needs_device
    cp "$MODELS_OF_BODIES"/* .
    # x for Relu and as the first state; each round's maximum of 4 bytes and the result of 1024.
    [ "$(copies loop 3)" = "2 2048 4 1036" ] || { copies loop 3; return 1; }
    [ "$(copies loop 40)" = "2 2048 41 1184" ] || { copies loop 40; return 1; }
    # The condition alone comes back.
    read -r in _ out bytes <<<"$(copies while)"
    [ "$in" -eq 1 ] && [ "$out" -gt 3 ] && [ "$bytes" -eq $((out - 1 + 1024)) ] || { echo "$in $out $bytes"; return 1; }
    # Slices are parts of one value on the device, and so are what they become.
    [ "$(copies scan)" = "3 9216 2 8192" ] || { copies scan; return 1; }
    # Of results whose size is known with the first slice, that one is brought there.
    [ "$(copies scan_back)" = "4 10240 5 17408" ] || { copies scan_back; return 1; }
    # Those that can't be parts go there one by one, and what they become comes back.
    [ "$(copies scan_odd_rows)" = "8 160 15 300" ] || { copies scan_odd_rows; return 1; }
}

@test "reports know the nodes of bodies, and --strict judges these" {
    needs_device
    cp "$MODELS_OF_BODIES"/* .
    run ort-inspect --partition --provider opencl:cost=off,cpu nested.onnx
    [[ $output == *"loop/body/if/then_branch"*"MatMul    opencl"* ]]
    [[ $output == *"loop/body/if "*"If "*"cpu "*"opencl: it has bodies, which are divided by themselves"* ]]
    [[ $output == *"opencl: 8 nodes, cpu: 3, "*" borders, at least "*" copied per run"* ]]
    ort-inspect --partition --json --provider opencl:cost=off,cpu nested.onnx | python3 -c 'import json, sys
r = json.load(sys.stdin)
assert {n.get("within", "") for n in r["nodes"]} == {"", "loop/body", "loop/body/if/then_branch", "loop/body/if/else_branch"}
assert sum(n["macs"] for n in r["nodes"]) == 4 * 64 * 64 == r["providers"][0]["macs"]'
    works ort-inspect --partition --dot --provider opencl:cost=off,cpu nested.onnx
    [[ $output == *"MatMul loop/body/if/then_branch"* ]]
    # The loop itself is nothing that a device could take; Mod is.
    works ort-run --strict --provider opencl:cost=off loop.onnx -i loop.npz -o y.npz
    fails 1 "provider 'opencl' doesn't run 1 nodes; first .*Mod.*: no kernel" ort-run --strict \
        --provider opencl:cost=off nested.onnx -i nested.npz
}

@test "each call fails in turn while bodies run: a status, or the CPU's result; nothing stays open" {
    needs_device
    [ -e "$BATS_FILE_TMPDIR/fake.so" ] || skip "no library of OpenCL to link with"
    export ORT_OPENCL_LIB=$BATS_FILE_TMPDIR/fake.so FAKE_CL_COUNT=$PWD/count
    cp "$MODELS_OF_BODIES"/nested.* .
    env -u ORT_OPENCL_LIB ort-run nested.onnx -i nested.npz -o want.npz
    local n all
    works ort-run --provider opencl:cost=off,cpu nested.onnx -i nested.npz -o y.npz
    grep -q ", 0 open" count
    all=$(sed 's/ calls.*//' count)
    for ((n = 20; n < all; n += all / 12)); do
        run env FAKE_CL_FROM=$n ort-run --provider opencl:cost=off,cpu nested.onnx -i nested.npz -o y.npz
        [ "$status" -eq 0 ] || { echo "$n: $status $output"; return 1; }
        grep -q ", 0 open" count || { echo "$n: $(cat count)"; return 1; }
        ort-tensor y.npz --compare want.npz >/dev/null || { echo "$n: other values"; return 1; }
        run env FAKE_CL_FROM=$n ort-run --provider opencl:cost=off nested.onnx -i nested.npz -o z.npz
        [ "$status" -eq 4 ] || [ "$status" -eq 0 ] || { echo "$n: $status $output"; return 1; }
    done
}

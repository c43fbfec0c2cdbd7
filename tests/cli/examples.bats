# Every example of README.md and of the manual pages is typed here as it is printed.
load helper

# In a folder of their own lie the files that the examples name.
stand_ins() {
    python3 "$ROOT/tests/tools/stand_ins.py" .
    ln -s "$MODELS_DIR" models
    cp "$MODELS_DIR/upscale.onnx" upscale.onnx
    cp "$MODELS_DIR/images/photo.png" small.png
    ort-tensor small.png --resize 320x400 -o photo.jpg
    cp photo.jpg page.jpg
    cp "${ORT_BIN:-$ROOT/build/bin}/../lib/example_ops.so" acme.so
    mkdir test_data_set_0
    ort-tensor x.npy --name x -o test_data_set_0/input_0.pb
    ort-run net.onnx x.npy -o scores.npz
    ort-tensor scores.npz -o test_data_set_0/output_0.pb
    ort-run net.onnx x.npy --save-optimized fast.onnx -o y.npy
    mkdir samples set
    cp x.npy samples/1.npy
    cp x.npy set/1.npy
    cp net.onnx bert.onnx
    ort-quantize static net.onnx -i x.npy -q -o theirs.onnx
    ort-tensor x.npy --name x -o test.npz
}

# type_all PAGE: each command ends with 0 and says something, or leaves a file.
type_all() {
    local command count=0 before after
    while IFS= read -r -d '' command; do
        before=$(ls -l --time-style=full-iso)
        run --separate-stderr bash -o pipefail -c "$command" </dev/null
        after=$(ls -l --time-style=full-iso)
        if [ "$status" -ne 0 ] || { [ -z "$output" ] && [ "$before" = "$after" ]; }; then
            echo "$command: status $status, stdout '$output', stderr '$stderr'"
            return 1
        fi
        count=$((count + 1))
    done < <(python3 "$ROOT/tests/tools/examples.py" "$1")
    [ "$count" -gt 0 ]
}

@test "the examples of README.md run as they are printed" {
    ln -s "$MODELS_DIR" models
    type_all "$ROOT/README.md"
}

@test "what README.md shows below a command is what the command prints" {
    ln -s "$MODELS_DIR" models
    python3 - "$ROOT/README.md" <<'PY'
import re, subprocess, sys
shown = re.findall(r"^    \$ (.*)\n((?:    (?!\$ ).*\n|\n(?=    (?!\$ )))*)", open(sys.argv[1]).read(), re.M)
compared = 0
for command, wanted in shown:
    said = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    # Of ort-profile, times: they differ each time. Of ort-quantize, what each line is about.
    if wanted.strip() and not command.startswith("ort-profile"):
        words = 1 if "ort-quantize" in command else None
        lines = [[line.split()[:words] for line in text.splitlines() if line.strip()] for text in (said, wanted)]
        assert lines[0] == lines[1], (command, *lines)
        compared += 1
assert compared >= 4, compared
PY
}

@test "the examples of the manual pages run as they are printed" {
    local page
    stand_ins
    for page in "$ROOT"/man/ort-*.1; do
        type_all "$page"
    done
}

@test "the demo prints the commands that it runs" {
    grep -o "^echo '   ort-.*'" "$ROOT/tests/tools/run_demo.sh" | sed "s/^echo '   //; s/'$//" >commands
    [ "$(wc -l <commands)" -ge 2 ]
    ln -s "$MODELS_DIR" models
    while read -r command; do
        works bash -o pipefail -c "$command"
    done <commands
}

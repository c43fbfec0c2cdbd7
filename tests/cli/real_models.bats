# Real models through the shell: a state carried through speech, text written by a language model.
load helper

@test "silero_vad hears the speech of its recording" {
    need_models
    local model=$REAL/silero_vad
    printf '16000' >sr.json
    run --separate-stderr sh -c "ort-tensor $model/speech.wav --chunk 512 --context 64 |
        ort-run $model/model.onnx --stream -i sr=$model/test_data_set_0/input_2.pb \
            --carry stateN=state --outputs output -o probabilities.npz"
    [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
    ort-tensor probabilities.npz --plain --format json -o - >all.json
    python3 - "$model/real_sequence.json" <<'PY'
import json, sys
want = json.load(open(sys.argv[1]))["probabilities"]
got = [chunk[0][0] for chunk in json.load(open("all.json"))["output"]]
assert len(got) == len(want), (len(got), len(want))
worst = max(abs(a - b) for a, b in zip(got, want))
assert worst < 1e-3, worst
PY
}

@test "a model for two sampling rates is optimized for the sizes of one of them" {
    need_models
    run ort-optimize "$REAL/silero_vad/model.onnx" --shape input:1x576 --shape state:2x1x128 -o fixed.onnx
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
    [[ "$output" == *"verified: 2 runs agree"* ]]
    run ort-run fixed.onnx --random 1 -i sr=16000
    [ "$status" -eq 0 ]
}

@test "llama_byte_2m_trained writes the expected text" {
    need_models
    local model=$REAL/llama_byte_2m_trained
    printf 'The import statement' >prompt.txt
    works ort-tensor --bytes prompt.txt --cast int64 --unsqueeze 0 --name input_ids -o prompt.npz
    run --separate-stderr ort-run "$model/model.onnx" -i prompt.npz \
        --carry 'argmax(logits)=input_ids' --carry 'present_*=past_*' --count position_ids \
        --steps 120 --outputs 'argmax(logits)' -o tokens.npz
    [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
    (cat prompt.txt; ort-tensor --stream --bytes -o - <tokens.npz) >text.txt
    python3 - "$model/greedy_expected.json" <<'PY'
import json, sys
want, got = json.load(open(sys.argv[1]))["output"], open("text.txt").read()
assert got == want, f"{got!r} is not {want!r}"
PY
}

@test "a cache that grew in place holds what one run of the whole text puts there" {
    need_models
    local model=$REAL/llama_byte_2m_trained/model.onnx
    local again=(--carry 'present_*=past_*' --count position_ids)
    printf 'The import statement' >prompt.txt
    works ort-tensor --bytes prompt.txt --cast int64 --unsqueeze 0 --name input_ids -o prompt.npz
    run --separate-stderr ort-run "$model" -i prompt.npz --carry 'argmax(logits)=input_ids' \
        "${again[@]}" --steps 80 --time --outputs 'argmax(logits)' -o tokens.npz
    [ "$status" -eq 0 ] || { echo "$stderr"; return 1; }
    [[ $stderr == *"states "*" 8 "*"8 grow in place"* ]]
    (cat prompt.txt; ort-tensor --stream --bytes -o - <tokens.npz | head -c 79) >text.txt
    works ort-tensor --bytes text.txt --cast int64 --unsqueeze 0 --name input_ids -o text.npz
    works ort-run "$model" -i text.npz "${again[@]}" --outputs present_k_3 -o whole.npz
    for level in 3 0; do
        run --separate-stderr ort-run "$model" -i prompt.npz --carry 'argmax(logits)=input_ids' \
            "${again[@]}" --steps 80 --time --level $level --outputs present_k_3 --expect whole.npz
        [ "$status" -eq 0 ] || { echo "$output$stderr"; return 1; }
        [[ $level == 3 || $stderr == *" 0 grow in place"* ]]
    done
}

@test "--repeat with --carry times further steps of the recurrence" {
    need_models
    printf 'A' >prompt.txt
    works ort-tensor --bytes prompt.txt --cast int64 --unsqueeze 0 --name input_ids -o prompt.npz
    works ort-run "$REAL/llama_byte_2m_trained/model.onnx" -i prompt.npz \
        --carry 'argmax(logits)=input_ids' --carry 'present_*=past_*' --count position_ids \
        --steps 3 --warmup 1 --repeat 10 --json
    echo "$output" | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert r["runs"] == 10, r
shapes = {o["name"]: o["shape"] for o in r["outputs"]}
assert shapes["present_k_0"] == [1, 2, 14, 48], shapes'
}

@test "a folder of test data as inputs and expectation" {
    need_models
    works ort-run "$REAL/mnist_8/model.onnx" -i "$REAL/mnist_8/test_data_set_0" \
        --expect "$REAL/mnist_8/test_data_set_0"
}

@test "--dump writes every tensor of the file at any level, with the values it has without passes" {
    need_models
    local model level
    for model in mlperf_tiny_resnet8_fp32 magika_v3_3 ppocrv2_cls; do
        for level in 0 3; do
            works ort-run "$REAL/$model/model.onnx" --random 1 --seed 1 --level $level \
                --dump '*' --dump-dir "$model.$level" -o "$model.$level.npz"
        done
        python3 - "$model" <<'PY'
import array, json, sys

def tensors(level):
    folder = f"{sys.argv[1]}.{level}"
    for value in json.load(open(f"{folder}/index.json"))["values"]:
        data = open(f"{folder}/{value['file']}", "rb").read()
        data = data[10 + int.from_bytes(data[8:10], "little"):]
        kind = {"float": "f", "int64": "q", "int32": "i", "bool": "B"}[value["dtype"]]
        yield value["name"], (value["shape"], array.array(kind, data))

plain, fused = dict(tensors(0)), dict(tensors(3))
assert plain.keys() <= fused.keys(), plain.keys() - fused.keys() # beside it what passes made
assert len(plain) > 20
for name, (shape, a) in plain.items():
    assert fused[name][0] == shape, name
    b = fused[name][1]
    largest = max(map(abs, a), default=0)
    worst = max((abs(x - y) for x, y in zip(a, b)), default=0)
    assert worst <= (1e-4 * largest if a.typecode == "f" else 0), (name, worst, largest)
PY
    done
}

@test "a file that was optimized with the widest kernels runs on plain C, with the same bytes" {
    need_models
    local model
    for model in mlperf_tiny_resnet8_fp32 magika_v3_3 mlperf_tiny_kws_int8; do
        works ort-optimize "$REAL/$model/model.onnx" -q -o wide.onnx
        works env ORT_ISA=scalar ort-optimize "$REAL/$model/model.onnx" -q -o plain.onnx
        cmp wide.onnx plain.onnx
        works ort-run wide.onnx --isa scalar --random 1 --compare "$REAL/$model/model.onnx"
    done
}

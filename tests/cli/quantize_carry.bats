# ort-quantize --carry: samples that are steps of a recurrence.
load helper

DECODER=$REAL/llama_byte_2m_trained/model.onnx
STATES=(--carry 'present_*=past_*')
GREEDY=(--carry 'argmax(logits)=input_ids' "${STATES[@]}" --count position_ids)

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    [ -f "$DECODER" ] || skip "$DECODER is not there"
    echo '[[84, 104, 101, 32, 109]]' | ort-tensor - --from json --cast int64 -o prompt.npy
}

# The states that step $1 left, as samples of step $2, by what follows.
states_of() {
    local k v i
    for i in 0 1 2 3; do
        for v in k v; do
            mkdir -p "past_${v}_$i"
            ort-tensor steps.npz --select "present_${v}_$i.000$1" "${@:3}" -o "past_${v}_$i/$2.npy"
        done
    done
}

@test "steps of --carry show what samples with the caches of ort-run's steps show" {
    local given=() i v
    mkdir ids positions
    cp prompt.npy ids/0.npy
    echo '[[0, 1, 2, 3, 4]]' | ort-tensor - --from json --cast int64 -o positions/0.npy
    ort-run "$DECODER" -i prompt.npy "${GREEDY[@]}" --steps 3 --isa common -q -o steps.npz
    ort-run "$DECODER" -i prompt.npy "${GREEDY[@]}" --steps 3 --isa common -q \
        --outputs 'argmax(logits)' -o best.npz
    states_of 0 0 --slice :,:,0:0
    for k in 1 2; do
        states_of $((k - 1)) $k
        ort-tensor best.npz --reshape -1 --slice "$((k - 1)):$k" --reshape 1x1 -o ids/$k.npy
        echo "[[$((4 + k))]]" | ort-tensor - --from json --cast int64 -o positions/$k.npy
    done
    for i in 0 1 2 3; do
        for v in k v; do given+=(-i "past_${v}_$i=past_${v}_$i"); done
    done
    works ort-quantize calibrate "$DECODER" -q -i input_ids=ids -i position_ids=positions "${given[@]}" -o by_hand.json
    works ort-quantize calibrate "$DECODER" -q -i prompt.npy "${GREEDY[@]}" --steps 3 -o carried.json
    cmp by_hand.json carried.json
    # records of a stream are steps of one sequence, files begin anew
    works ort-quantize calibrate "$DECODER" -q -i - "${STATES[@]}" --count position_ids -o stream.json \
        < <(cat ids/*.npy)
    cmp by_hand.json stream.json
    works ort-quantize calibrate "$DECODER" -q -i ids "${STATES[@]}" --count position_ids -o anew.json
    run cmp by_hand.json anew.json
    [ "$status" -eq 1 ]
}

@test "a carried decoder is made, and judged step by step, by every method" {
    for verb in "static" "weights --method gptq" "weights --method awq" dynamic; do
        run --separate-stderr ort-quantize $verb "$DECODER" -i prompt.npy "${GREEDY[@]}" --steps 4 \
            --min-cosine 0.9 --json -o made.onnx
        [ "$status" -eq 0 ] || { echo "$verb: $stderr"; return 1; }
        [[ $output == *'"count": 4'* || $output == *'"count":4'* ]] || { echo "$output"; return 1; }
    done
}

@test "what can't be carried is refused, with its names" {
    run --separate-stderr ort-quantize static "$DECODER" -i prompt.npy --carry nothing=past_k_0 -o x.onnx
    [ "$status" -eq 2 ] && [[ $stderr == *"no output 'nothing'"* ]]
    run --separate-stderr ort-quantize calibrate "$DECODER" -i prompt.npy "${STATES[@]}" --shard 1/2
    [ "$status" -eq 2 ] && [[ $stderr == *"--steps"* ]]
    run --separate-stderr ort-quantize static "$DECODER" -i prompt.npy "${STATES[@]}" -o x.onnx
    [ "$status" -ne 0 ] && [[ $stderr == *position_ids* ]]
    [ ! -e x.onnx ]
}

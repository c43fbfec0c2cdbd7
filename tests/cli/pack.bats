# Pack files: ort-optimize --pack, ort-run and ort-inspect beside one, and what makes one not fit.
load helper

tiers() { # the kernel tiers that this machine runs, one a line
    for tier in scalar avx2 avx512 vnni amx; do
        ort-run --isa "$tier" --settings >/dev/null 2>&1 && echo "$tier"
    done
}

pack() { # pack MODEL [OPTION...]: fast.onnx and its pack
    ort-optimize "$@" --pack -q -o fast.onnx
}

# flip FILE OFFSET: another byte there
flip() {
    python3 - "$1" "$2" <<'PY'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 1]))
PY
}

@test "with and without the pack, on every tier, the results have the same bits" {
    for model in "$MODELS_DIR"/*.onnx; do
        for tier in $(tiers); do
            pack "$model" --isa "$tier"
            run --separate-stderr ort-run fast.onnx --random 1 --isa "$tier" --hash -v
            [ "$status" -eq 0 ]
            [[ $stderr == *"fast.onnx.pack: mapped"* ]]
            with=$output
            works ort-run fast.onnx --random 1 --isa "$tier" --hash --no-pack
            [ "$with" = "$output" ]
        done
    done
}

@test "the same model gives the same pack" {
    pack "$MODELS_DIR/digits.onnx"
    cp fast.onnx.pack first.pack
    cp fast.onnx first.onnx
    pack "$MODELS_DIR/digits.onnx"
    cmp fast.onnx.pack first.pack
    cmp fast.onnx first.onnx
    works ort-optimize fast.onnx -q --pack -o again.onnx
    cmp fast.onnx again.onnx
}

@test "another tier: one line, and still right" {
    [ "$(tiers | wc -l)" -gt 1 ] || skip "one tier only"
    pack "$MODELS_DIR/digits.onnx" --isa avx2
    works ort-run fast.onnx --random 1 --isa scalar --hash --no-pack
    plain=$output
    run --separate-stderr ort-run fast.onnx --random 1 --isa scalar --hash
    [ "$status" -eq 0 ] && [ "$output" = "$plain" ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == *"fast.onnx.pack: ignored: made for kernel tier avx2, this is scalar"* ]]
    works ort-run fast.onnx --random 1 --isa scalar --hash -q
}

@test "other weights: one line, and still right" {
    pack "$MODELS_DIR/digits.onnx"
    mv fast.onnx.pack kept
    works ort-optimize "$MODELS_DIR/upscale.onnx" --pack -q -o fast.onnx
    mv kept fast.onnx.pack
    works ort-run fast.onnx --random 1 --hash --no-pack
    plain=$output
    run --separate-stderr ort-run fast.onnx --random 1 --hash
    [ "$status" -eq 0 ] && [ "$output" = "$plain" ]
    [[ $stderr == *"ignored: made for other weights"* ]]
}

@test "another library, or damage: one line, and still right" {
    pack "$MODELS_DIR/digits.onnx"
    works ort-run fast.onnx --random 1 --hash --no-pack
    plain=$output
    local size
    size=$(wc -c <fast.onnx.pack)
    for offset in 3 9 200 4100 $((size / 7)) $((size / 3)) $((size / 2)) $((size - 9)) 5000000; do
        cp fast.onnx.pack kept
        if [ "$offset" = 5000000 ]; then
            truncate -s 5000 fast.onnx.pack
        else
            flip fast.onnx.pack "$offset"
        fi
        run --separate-stderr ort-run fast.onnx --random 1 --hash
        [ "$status" -eq 0 ] && [ "$output" = "$plain" ] && [ "${#stderr_lines[@]}" -eq 1 ]
        [[ $stderr == *"fast.onnx.pack: ignored: "* ]]
        mv kept fast.onnx.pack
    done
}

@test "whatever byte of a pack flips, it is noticed and the model itself runs" {
    pack "$MODELS_DIR/digits.onnx"
    works ort-run fast.onnx --random 1 --hash --no-pack
    local plain=$output size offset
    size=$(wc -c <fast.onnx.pack)
    for offset in $(seq 0 $((size / 60)) $((size - 1))); do
        flip fast.onnx.pack "$offset"
        run --separate-stderr ort-run fast.onnx --random 1 --hash
        echo "$offset: $status $output $stderr"
        [ "$status" -eq 0 ] && [ "$output" = "$plain" ] && [[ $stderr == *ignored:* ]]
        flip fast.onnx.pack "$offset"
    done
    works ort-run fast.onnx --random 1 --hash -q
}

@test "--verify-pack finds a flipped byte of a block, and weights that were changed" {
    pack "$MODELS_DIR/digits.onnx"
    works ort-inspect fast.onnx --pack
    has "fast.onnx.pack: fits" "kernel tier" "blocks"
    works ort-inspect fast.onnx --verify-pack --json
    has '"fits": true' '"verified": true'
    flip fast.onnx.pack 4100
    for option in --pack --verify-pack; do
        run --separate-stderr ort-inspect fast.onnx "$option"
        [ "$status" -eq 1 ]
        has "the digest of block 0"
    done
    pack "$MODELS_DIR/digits.onnx"
    works ort-inspect fast.onnx --verify-pack
    flip fast.onnx 60000 # inside of a weight: the skeleton is the same
    works ort-inspect fast.onnx --pack
    run --separate-stderr ort-inspect fast.onnx --verify-pack
    [ "$status" -eq 1 ]
    has "the model's weights have digest"
}

@test "no pack, other settings, models from a pipe" {
    run --separate-stderr ort-inspect "$MODELS_DIR/digits.onnx" --pack
    [ "$status" -eq 1 ]
    has "there is none"
    pack "$MODELS_DIR/digits.onnx"
    works ort-run fast.onnx --random 1 --level 1 --hash
    works ort-run fast.onnx --random 1 --dim batch=2 --hash
    run --separate-stderr ort-run fast.onnx --random 1 --level 1 --hash -v
    [[ $stderr == *"these settings aren't those"* ]]
    run --separate-stderr ort-run fast.onnx --random 1 --dim batch=2 --hash
    [ "$status" -eq 0 ] && [ -z "$stderr" ]
    run --separate-stderr ort-run fast.onnx --random 1 --dim batch=2 --hash -v
    [[ $stderr == *"fast.onnx.pack: ignored: it holds the model as it is, without --dim"* ]]
    run --separate-stderr ort-run fast.onnx --random 1 --dim batch=2 --hash -v --no-pack
    [ "$status" -eq 0 ] && [[ $stderr != *ignored* ]]
    run --separate-stderr sh -c "ort-run - --random 1 --hash -v <fast.onnx"
    [ "$status" -eq 0 ] && [[ $stderr != *pack* ]]
    fails 2 "a model from stdin has none" ort-inspect - --pack
    fails 2 "--pack needs -o FILE" ort-optimize "$MODELS_DIR/digits.onnx" --pack
    fails 2 "--pack needs -o FILE" ort-optimize "$MODELS_DIR/digits.onnx" --pack -o -
}

@test "external data: its name and size are part of the stamp" {
    pack "$MODELS_DIR/digits.onnx" --external-data
    works ort-inspect fast.onnx --verify-pack
    run --separate-stderr ort-run fast.onnx --random 1 --hash -v
    [[ $stderr == *"pack: mapped"* ]]
    echo more >>fast.onnx.data
    run --separate-stderr ort-run fast.onnx --random 1 --hash
    [ "$status" -eq 0 ]
    [[ $stderr == *"this external data differs"* ]]
}

@test "nothing appears when the pack can't be written" {
    mkdir fast.onnx.pack
    run --separate-stderr ort-optimize "$MODELS_DIR/digits.onnx" --pack -q -o fast.onnx
    [ "$status" -eq 5 ]
    [ "$(ls)" = fast.onnx.pack ]
}

@test "asking for the model's own outputs by name uses the pack, for other values it isn't used" {
    pack "$MODELS_DIR/digits.onnx"
    run --separate-stderr ort-run fast.onnx --random 1 --outputs probabilities -v -o y.npy
    [ "$status" -eq 0 ]
    [[ $stderr == *"fast.onnx.pack: mapped"* ]]
    run --separate-stderr ort-run fast.onnx --random 1 -o probabilities=z.npy -v
    [ "$status" -eq 0 ]
    [[ $stderr == *"fast.onnx.pack: mapped"* ]]
    cmp y.npy z.npy
    local inner
    inner=$(ort-inspect fast.onnx --nodes | sed -n 's/.*-> \([^ ]*\) .*/\1/p' | head -n 1)
    run --separate-stderr ort-run fast.onnx --random 1 --outputs "$inner" -v -o inner.npy
    [ "$status" -eq 0 ] && [ -s inner.npy ]
    [[ $stderr == *"fast.onnx.pack: ignored: '$inner' is no output of the model"* ]]
    works ort-run fast.onnx --random 1 --outputs "$inner" --strict -o again.npy
    cmp inner.npy again.npy
}

@test "a pack made with --allow-newer is mapped with it only" {
    works ort-optimize -q "$FX/newer.onnx" --allow-newer --pack -o n.onnx
    fails 3 "n.onnx: IR version 60 is newer than 14 and opset 99" ort-run n.onnx "$FX/xy.npz" -o out.npy
    run --separate-stderr ort-run -v n.onnx "$FX/xy.npz" --allow-newer -o out.npy
    [ "$status" -eq 0 ] && [[ $stderr == *"n.onnx.pack: mapped"* ]]
    same out.npy "$FX/sum.npy"
    works ort-inspect n.onnx --verify-pack # to look is not to run
}

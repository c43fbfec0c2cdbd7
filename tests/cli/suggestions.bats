# Mistyped names are answered with the nearest that exist; help fits the screen.
load helper

@test "an option that doesn't exist names the nearest" {
    fails 2 "^ort-run: unknown option '--hlep' \(did you mean --help\?\)$" ort-run --hlep
    fails 2 "'--repaet' \(did you mean --repeat or" ort-run x.onnx --repaet 3
    fails 2 "'--laebls=x' \(did you mean --labels\?\)" ort-tensor x.npy --laebls=x
    fails 2 "^ort-run: unknown option '--qqqqqq'$" ort-run --qqqqqq
    fails 2 "^ort-run: unknown option '-Z'$" ort-run -Z
}

@test "a value that isn't among those allowed names the nearest" {
    fails 2 "'bilinaer' is none of .* \(did you mean 'bilinear'\?\)" \
        ort-tensor "$MODELS_DIR/images/photo.png" --resize 8 --filter bilinaer
    fails 2 "'yoloxx' is none of .* \(did you mean 'yolox'" ort-draw --detect yoloxx
}

@test "names of outputs, inputs, values and passes name the nearest" {
    fails 2 "no value 'probabilitis' \(did you mean 'probabilities'\?\); its outputs are probabilities" \
        ort-run "$MODELS_DIR/digits.onnx" --random 1 --outputs probabilitis
    fails 2 "no input 'imgae' \(did you mean 'image'\?\)" \
        ort-run "$MODELS_DIR/digits.onnx" --random 1 --shape imgae:1x1x8x8
    fails 2 "no pass is named 'conv_sun' \(did you mean 'conv_sum'\?\); ort-optimize --list-passes" \
        ort-run "$MODELS_DIR/digits.onnx" --random 1 --disable conv_sun
    fails 2 "no value 'imag' \(did you mean 'image'\?\)" \
        ort-inspect "$MODELS_DIR/digits.onnx" --extract imag:p2
}

@test "a model of many values puts its outputs first" {
    need_models
    fails 2 "no value 'logit' \(did you mean 'logits'\?\); its outputs are logits, " \
        ort-run "$REAL/llama_byte_2m_trained/model.onnx" --random 1 --outputs logit
}

@test "-h fits a screen of 24 lines, --help tells everything" {
    local tool
    for tool in run optimize inspect profile tensor draw; do
        works ort-$tool -h
        [ "${#lines[@]}" -le 24 ]
        has "usage: ort-$tool" "'ort-$tool --help' shows all"
        works ort-$tool --help
        [ "${#lines[@]}" -gt 24 ]
        has "Exit status"
        run python3 "$ROOT/tests/tools/on_terminal.py" 80 ort-$tool -h
        [ "$(wc -l <<<"$output")" -le 24 ]
        awk 'length($0) > 80 { exit 1 }' <<<"$output"
    done
}

@test "a mistyped verb is met by those that there are" {
    fails 2 "'staic' is no verb .did you mean 'static'.*there are .*dynamic" ort-quantize staic "$MODELS_DIR/digits.onnx"
}

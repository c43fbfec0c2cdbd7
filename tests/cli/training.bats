# Gradient and Adam in one model: a training loop is a recurrence.
load helper

# train STEPS [OPTION...]: the losses that the steps saw, one a line.
train() {
    local steps=$1
    shift
    ort-run "${MODEL:-$FX/training.onnx}" "$@" -i x="$FX/points.npy" -i labels="$FX/labels.npy" \
        --carry new_w=w --carry new_v=v --carry new_h=h --carry new_step=step --steps "$steps" \
        -o - --format json -q | sed 's/.*"loss": {[^}]*"data": \([^}]*\)}.*/\1/'
}

@test "the loss of a logistic regression falls with the steps" {
    train 60 >losses
    [ "$(wc -l <losses)" -eq 60 ]
    [[ $(head -n 1 losses) == 0.6931* ]] # log 2: nothing is known yet
    awk 'NR > 1 && $1 >= last { exit 1 } { last = $1 } END { exit !(last < 0.01) }' losses
}

@test "every level and the rewritten file train the same" {
    train 20 >want
    works ort-run "$FX/training.onnx" --random 1 --save-optimized plain.onnx -q
    works ort-optimize "$FX/training.onnx" -q -o fast.onnx
    train 20 --level 0 >level0
    train 20 --level 1 >level1
    MODEL=plain.onnx train 20 >plain
    MODEL=fast.onnx train 20 >fast
    for got in level0 level1 plain fast; do
        paste want $got | awk '{ d = $1 - $2; if (d * d > 1e-10) exit 1 } END { exit NR != 20 }'
    done
    for file in plain fast; do
        works ort-inspect --check $file.onnx
        works ort-inspect $file.onnx --nodes
        [[ $output != *Gradient* ]]
        has Adam
    done
}

@test "an operator without a rule is refused by name, and so is leaving the pass out" {
    fails 3 "node 'determinant' \(Det\) can't be differentiated: no rule is known for operator Det" \
        ort-run "$FX/undifferentiable.onnx" --random 1
    fails 2 "pass 'gradient' can't be left out" \
        ort-run "$FX/training.onnx" --random 1 --disable gradient
}

@test "a cut keeps what a Gradient names" {
    works ort-inspect "$FX/training.onnx" --extract :slope --output part.onnx
    works ort-inspect part.onnx --nodes
    has MatMul Gradient
    works ort-run part.onnx -i x="$FX/points.npy" -i labels="$FX/labels.npy" --random 1
}

@test "in a function, names are the function's" {
    works ort-run "$FX/function.onnx" -i "$FX/x.npy" -o out.npy -q
    same out.npy "$FX/twice.npy"
}

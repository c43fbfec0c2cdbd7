# Runs parted among machines (ort-run --shard), and their results in order again (ort-tensor --interleave): the
# bytes are those of one run.
load helper

# Inputs of digits.onnx: seven pictures, by the folder, and as a stream.
pictures() {
    mkdir pictures
    for i in 0 1 2 3 4 5 6; do
        ort-tensor "$MODELS_DIR/images/digit_7_008.png" --gray --float --scale "0.$((i + 1))" -o "pictures/p$i.npy"
    done
}

@test "every part of a folder, in order again, is one run's file" {
    pictures
    for format in npz jsonl; do
        works ort-run "$MODELS_DIR/digits.onnx" pictures -o "all.$format"
        for parts in 1 2 3 7; do
            rm -f part.*
            for k in $(seq "$parts"); do
                works ort-run "$MODELS_DIR/digits.onnx" pictures --shard "$k/$parts" -o "part.$k.$format"
            done
            # shellcheck disable=SC2046
            if [ $format = npz ]; then
                works ort-tensor --interleave rows $(seq -f part.%g.npz "$parts") -o again.npz
            else
                ort-tensor --interleave records $(seq -f part.%g.jsonl "$parts") --format json >again.jsonl
            fi
            cmp "all.$format" "again.$format"
        done
    done
}

@test "every part of a stream, in order again, is one run's stream" {
    pictures
    cat pictures/*.npy >pictures.npys
    ort-run "$MODELS_DIR/digits.onnx" --stream pictures.npys -o - >all
    for k in 1 2 3; do
        ort-run "$MODELS_DIR/digits.onnx" --stream --shard "$k/3" -o - <pictures.npys >"part.$k"
    done
    ort-tensor --interleave records part.1 part.2 part.3 -o - >again
    cmp all again
    ort-run "$MODELS_DIR/digits.onnx" --stream pictures.npys --format csv -o - >all.csv
    ort-tensor --interleave records part.1 part.2 part.3 --format csv -o - >again.csv
    cmp all.csv again.csv
}

@test "a part keeps the numbers and names of its runs" {
    pictures
    works ort-run "$MODELS_DIR/digits.onnx" pictures --hash
    for line in 1 4; do echo "${lines[$line]}"; done >want
    works ort-run "$MODELS_DIR/digits.onnx" pictures --shard 2/3 --hash
    [ "$output" = "$(cat want)" ]
    cat pictures/*.npy >pictures.npys
    works ort-run "$MODELS_DIR/digits.onnx" --stream pictures.npys --hash --shard 3/3
    [[ ${lines[0]} == *"  3" ]] && [[ ${lines[1]} == *"  6" ]]
}

@test "runs of several shapes keep their numbers in each part" {
    for i in 1 2 3 4; do
        python3 -c "
import sys; sys.path.insert(0, '$ROOT/tests/tools')
import struct
n = $i
head = str({'descr': '<f4', 'fortran_order': False, 'shape': (n,)}).encode()
head += b' ' * (63 - (10 + len(head)) % 64) + b'\n'
open('v$i.npy', 'wb').write(b'\x93NUMPY\x01\0' + struct.pack('<H', len(head)) + head + struct.pack('<%df' % n, *range(n)))"
    done
    python3 -c "
import sys; sys.path.insert(0, '$ROOT/tests/tools')
from fixtures import model, node, value_info
open('neg.onnx', 'wb').write(model([node('Neg', ['x'], ['y'])], [value_info('x', ['n'])], [value_info('y', ['n'])]))"
    works ort-run neg.onnx v1.npy v2.npy v3.npy v4.npy --shard 2/2 -o part.2.npz
    works ort-tensor part.2.npz --print
    has "y.0001" "y.0003"
    works ort-run neg.onnx v1.npy v2.npy v3.npy v4.npy --shard 1/2 -o part.1.npz
    fails 5 "part.2.npz doesn't hold the values of part.1.npz .'y.0000'" \
        ort-tensor --interleave rows part.1.npz part.2.npz -o again.npz
}

@test "parts that lack, were cut short or stand in the wrong place are refused" {
    pictures
    for k in 1 2 3; do
        works ort-run "$MODELS_DIR/digits.onnx" pictures --shard "$k/3" -o "part.$k.npz" -o "part.$k.jsonl"
    done
    fails 5 "part.2.npz ends behind 2, and part.1.npz goes on" \
        ort-tensor --interleave rows part.2.npz part.1.npz part.3.npz -o again.npz
    fails 5 "part.4.npz" ort-tensor --interleave rows part.1.npz part.4.npz part.3.npz -o again.npz
    head -n 1 part.2.jsonl >cut.jsonl
    run -5 --separate-stderr ort-tensor --interleave records part.1.jsonl cut.jsonl part.3.jsonl --format json
    [[ $stderr == *"cut.jsonl ends behind 1, and part.3.jsonl goes on"* ]]
    run -5 --separate-stderr ort-tensor --interleave records part.2.jsonl part.1.jsonl --format json
    [[ $stderr == *"part.2.jsonl ends behind 2, and part.1.jsonl goes on"* ]]
}

@test "parts that hold nothing, and a part from a pipe" {
    pictures
    : >empty
    fails 5 "empty: is empty" ort-tensor --interleave records empty empty -o again.npz
    fails 5 "empty: is empty" ort-tensor --interleave rows empty empty -o again.npz
    works ort-run "$MODELS_DIR/digits.onnx" pictures -o all.jsonl
    for k in 1 2; do works ort-run "$MODELS_DIR/digits.onnx" pictures --shard "$k/2" -o "part.$k.jsonl"; done
    ort-tensor --interleave records - part.2.jsonl --format json <part.1.jsonl | cmp - all.jsonl
}

@test "more parts than runs: a part without any says so and writes nothing" {
    pictures
    run -0 --separate-stderr ort-run "$MODELS_DIR/digits.onnx" pictures --shard 9/9 -o part.npz
    [[ $stderr == *"none of the 7 runs is in this part"* ]]
    [ ! -e part.npz ]
}

@test "GNU parallel's recipe: killed parts are run again, and the bytes are those of one run" {
    run python3 "$ROOT/tests/tools/check_recipes.py" "${ORT_BIN:-$ROOT/build/bin}" parallel
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
}

@test "what is no part, and a single run, are usage errors" {
    pictures
    for text in 0/3 4/3 3 /3 3/ 1/0 a/b 1/2/3 99999999999999999999/3; do
        fails 2 "--shard: '$text'" ort-run "$MODELS_DIR/digits.onnx" pictures --shard "$text" -o y.npz
    done
    fails 2 "--shard takes some of many runs" ort-run "$MODELS_DIR/digits.onnx" pictures/p0.npy --shard 1/2 -o y.npz
    fails 2 "needs the files of all parts" ort-tensor --interleave rows -o y.npz
}

@test "intermediate values of a part lie under the numbers that its runs have among all" {
    pictures
    works ort-run "$MODELS_DIR/digits.onnx" pictures --dump '*' --dump-dir all
    for k in 1 2 3; do
        works ort-run "$MODELS_DIR/digits.onnx" pictures --shard "$k/3" --dump '*' --dump-dir parts
    done
    diff -r all parts
    [ "$(ls parts | wc -l)" = 7 ]
    works ort-run "$MODELS_DIR/digits.onnx" pictures --shard 2/3 --dump '*' --dump-dir second
    [ "$(ls second | tr '\n' ' ')" = "run_1 run_4 " ]
}

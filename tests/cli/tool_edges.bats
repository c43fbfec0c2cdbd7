# Corners of the tools that once said yes, lost something or hung: gates that met nothing, outputs of
# one name, pipes as files, what a recurrence reports.
load helper
PATH=$ROOT/build/venv/bin:$PATH # models and tensors are made with onnx and numpy

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    python3 - "$FX" <<'EOF'
import sys
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h

def save(name, nodes, inputs, outputs, **more):
    info = lambda rows: [h.make_tensor_value_info(*row) for row in rows]
    graph = h.make_graph(nodes, "edges", info(inputs), info(outputs), **more)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, f"{sys.argv[1]}/{name}.onnx")

row = lambda name: (name, T.FLOAT, ["n", 2])
save("both", [h.make_node("Identity", ["x"], ["y"]), h.make_node("Neg", ["x"], ["z"])],
     [row("x")], [row("y"), row("z")])
save("sum", [h.make_node("Add", ["a", "b"], ["y"])], [row("a"), row("b")], [row("y")])
save("log", [h.make_node("Log", ["x"], ["y"])], [row("x")], [row("y")])
save("same", [h.make_node("Identity", ["x"], ["y"])], [row("x")], [row("y")])
save("next", [h.make_node("Add", ["s", "one"], ["t"])], [("s", T.FLOAT, [1])],
     [("t", T.FLOAT, [1])], initializer=[h.make_tensor("one", T.FLOAT, [1], [1.0])])
save("best", [h.make_node("Cast", ["x"], ["f"], to=T.FLOAT), h.make_node("Neg", ["f"], ["y"]),
              h.make_node("Identity", ["f"], ["z"])],
     [("x", T.INT64, ["n", 1])], [("y", T.FLOAT, ["n", 1]), ("z", T.FLOAT, ["n", 1])])
for i in range(3):
    np.save(f"{sys.argv[1]}/x{i}.npy", np.full((1, 2), i, np.float32))
np.save(f"{sys.argv[1]}/below.npy", np.full((1, 2), -1, np.float32))
np.save(f"{sys.argv[1]}/zero.npy", np.zeros(1, np.float32))
np.save(f"{sys.argv[1]}/token.npy", np.array([[3]], np.int64))
for name, a, b in (("ab", 1, 2), ("cd", 3, 4)):
    np.savez(f"{sys.argv[1]}/{name}.npz", a=np.full((1, 2), a, np.float32),
             b=np.full((1, 2), b, np.float32))
EOF
}

first_values() { # FILE: the first element of each record
    ort-tensor "$1" --stream --print | sed -n 's/^ *\([-0-9.]*\) .*/\1/p' | tr '\n' ' '
}

@test "models compared on an empty stream have not been compared" {
    fails 5 "standard input: is empty: nothing was compared" \
        ort-run "$FX/same.onnx" --compare "$FX/both.onnx" --stream </dev/null
}

@test "a model to compare with and tensors don't both come from stdin" {
    fails 2 "--compare and the tensors" ort-run "$FX/same.onnx" --compare - --stream \
        <"$FX/both.onnx"
    fails 2 "--compare and the tensors" ort-run "$FX/same.onnx" --compare - - <"$FX/both.onnx"
    fails 2 "only one of the models" ort-run - "$FX/x1.npy" --compare - <"$FX/both.onnx"
}

@test "a comparison whose difference is infinite is JSON all the same" {
    run ort-run "$FX/log.onnx" --compare "$FX/same.onnx" "$FX/below.npy" --json
    [ "$status" -eq 1 ]
    has '"max_abs": null'
    [[ $output != *Infinity* ]]
}

@test "--expect holds a timed recurrence to what its steps gave, not to the timed runs" {
    python3 -c "import numpy as np; np.save('three.npy', np.array([3], np.float32))"
    works ort-run "$FX/next.onnx" "$FX/zero.npy" --carry t=s --steps 3 --repeat 5 \
        --expect three.npy
    python3 -c "import numpy as np; np.save('ten.npy', np.array([10], np.float32))"
    run ort-run "$FX/next.onnx" "$FX/zero.npy" --carry t=s --steps 3 --repeat 5 --warmup 2 \
        --expect ten.npy
    [ "$status" -eq 1 ]
}

@test "two outputs don't share one file" {
    fails 2 "'out.npy' is named twice" ort-run "$FX/both.onnx" "$FX/x1.npy" -o y=out.npy \
        -o z=out.npy
    fails 2 "'-' is named twice" ort-run "$FX/both.onnx" "$FX/x1.npy" -o - -o -
    works ort-run "$FX/both.onnx" "$FX/x1.npy" -o y=/dev/null -o z=/dev/null
}

@test "an output file's name may begin with an equals sign" {
    works ort-run "$FX/both.onnx" "$FX/x1.npy" -o =out.npz
    [ -s =out.npz ]
}

@test "a named pipe gets all records, however long the next one takes" {
    mkfifo pipe
    cat pipe >got &
    (cat "$FX/x1.npy" && sleep 0.3 && cat "$FX/x2.npy" && sleep 0.3 && cat "$FX/x0.npy") |
        timeout 20 ort-run "$FX/same.onnx" --stream -o pipe
    wait
    [ "$(first_values got)" = "1 2 0 " ]
}

@test "who leaves a named pipe early ends the writer" {
    mkfifo pipe
    head -c 10 pipe >/dev/null &
    run bash -c "(cat '$FX/x1.npy'; sleep 0.3; cat '$FX/x2.npy'; sleep 0.3; cat '$FX/x0.npy') |
        timeout 20 ort-run '$FX/same.onnx' --stream -o pipe; echo \${PIPESTATUS[1]}"
    [ "$output" -eq 141 ]
}

@test "inputs that can be read once only, as of other commands, are read once" {
    run --separate-stderr bash -c "ort-run '$FX/sum.onnx' <(cat '$FX/x1.npy') <(cat '$FX/x2.npy') -o sum.npy"
    [ "$status" -eq 0 ]
    [ "$(first_values sum.npy)" = "3 " ]
    run --separate-stderr bash -c "ort-run '$FX/sum.onnx' <(cat '$FX/ab.npz') <(cat '$FX/cd.npz') -o sum.npz"
    [ "$status" -eq 0 ]
    works ort-tensor sum.npz --print
    has "2x1x2"
}

@test "a record file that isn't there says why" {
    fails 5 "nothere.npy: can't be opened: No such file" ort-run "$FX/same.onnx" --stream nothere.npy
}

@test "an input of a recurrence is fed once" {
    fails 2 "'x' is fed twice" ort-run "$FX/best.onnx" "$FX/token.npy" --steps 2 \
        --carry 'argmax(y)=x' --carry 'argmax(z)=x'
    fails 2 "'x' is fed by --carry" ort-run "$FX/best.onnx" "$FX/token.npy" --steps 2 \
        --carry 'argmax(y)=x' --count x
}

@test "each pattern of --dump that matches nothing is named" {
    run --separate-stderr ort-run "$FX/both.onnx" "$FX/x1.npy" --dump y --dump typo -o out.npz
    [ "$status" -eq 0 ]
    [[ $stderr == *"no value has a name that matches 'typo'"* ]]
    [[ $stderr != *"'y'"* ]]
}

@test "a picture is cropped, padded and turned of numbers only" {
    echo '[[["a", "b"], ["c", "d"]]]' >text.json
    fails 5 "--crop 1: the value is string \[1x2x2\]" ort-tensor text.json --crop 1
    fails 5 "--pad 4: the value is string \[1x2x2\]" ort-tensor text.json --pad 4
    fails 5 "--layout nchw: the value is string \[1x2x2\]" ort-tensor text.json --layout nchw
}

@test "channels that change place keep every bit of their numbers" {
    python3 -c "import numpy as np
x = np.arange(2**53 + 1, 2**53 + 13, dtype=np.int64).reshape(2, 2, 3)
np.save('wide.npy', x); np.save('want.npy', x.transpose(2, 0, 1)); np.save('bgr.npy', x[..., ::-1])"
    works ort-tensor wide.npy --layout chw -o turned.npy
    cmp <(tail -c 96 turned.npy) <(python3 -c "import numpy as np, sys
sys.stdout.buffer.write(np.ascontiguousarray(np.load('want.npy')).tobytes())")
    works ort-tensor wide.npy --bgr -o turned.npy
    cmp <(tail -c 96 turned.npy) <(python3 -c "import numpy as np, sys
sys.stdout.buffer.write(np.ascontiguousarray(np.load('bgr.npy')).tobytes())")
    works ort-tensor wide.npy --print --json
    has 9007199254740993
}

@test "a picture is padded whole, in a colour that its type has" {
    python3 -c "import numpy as np; np.save('small.npy', np.full((5, 5, 3), 9, np.uint8))"
    fails 5 "--pad 10\+8\+8: .* all of it inside" ort-tensor small.npy --pad 10+8+8
    works ort-tensor small.npy --pad 10+5+5 -o out.npy
    rm out.npy
    fails 2 "--fill: '300' is no uint8" ort-tensor small.npy --pad 7 --fill 300
    fails 2 "--fill: 'nan' is no uint8" ort-tensor small.npy --pad 7 --fill nan
}

@test "a batch takes values by name and leaves none out" {
    python3 -c "import numpy as np
one = lambda x: np.full((1, 2), x, np.float32)
np.savez('ab.npz', a=one(1), b=one(2)); np.savez('ba.npz', b=one(4), a=one(3))
np.savez('ac.npz', a=one(1), c=one(2)); np.savez('a.npz', a=one(5))"
    works ort-tensor ab.npz ba.npz --stack --select a --print
    has "1 1 3 3"
    fails 5 "record 2 has 2 values, the first 1" ort-tensor a.npz ab.npz --stack --print
    fails 5 "record 2 has no value 'b'" ort-tensor ab.npz ac.npz --stack --print
}

@test "every name that --select gives is there, and --name names one value" {
    fails 2 "ab.npz has no value 'typo'; it has 'a'" ort-tensor "$FX/ab.npz" --select a,typo --print
    fails 2 "--name names one value" ort-tensor "$FX/ab.npz" --name z --print
    works ort-tensor "$FX/ab.npz" --select b --name z --print
    has "z: float"
}

@test "plain bytes say why a disk can't take them" {
    head -c 300000 /dev/zero >zeros
    fails 5 "standard output: can't write: No space" bash -c 'exec ort-tensor zeros --bytes >/dev/full'
    fails 5 "/dev/full: can't write: No space" ort-tensor zeros --bytes -o /dev/full
}

@test "an empty number is no number" {
    fails 2 "--scale: '' is no list" ort-tensor "$FX/x1.npy" --scale ''
    fails 2 "--mean: '1,' is no list" ort-tensor "$FX/x1.npy" --mean 1,
}

@test "a table of who is taken for whom holds every class or says that it can't" {
    python3 -c "import numpy as np; np.save('far.npy', np.array([5000, 1]))"
    fails 5 "a table of 5001 classes" ort-tensor far.npy --accuracy far.npy --confusion
    works ort-tensor far.npy --accuracy far.npy
}

@test "ort-tensor's records reach a named pipe one after another" {
    mkfifo pipe
    cat pipe >got &
    (cat "$FX/x1.npy" && sleep 0.3 && cat "$FX/x2.npy") | timeout 20 ort-tensor -o pipe
    wait
    [ "$(first_values got)" = "1 2 " ]
}

@test "labels that can be read once serve all records" {
    run bash -c "cat '$FX/x1.npy' '$FX/x2.npy' |
        ort-tensor --stream --top 1 --labels <(echo cat; echo dog)"
    [ "${lines[1]}" = "0	2	cat" ]
}

@test "a sample's name that the model lacks is refused with those that it has" {
    fails 2 "no input 'ab' \(did you mean 'a' or 'b'\?\); its inputs are 'a', 'b'" \
        ort-optimize "$FX/sum.onnx" -i ab="$FX/x0.npy" -i b="$FX/x1.npy" -o out.onnx
    fails 2 "no input 'typo'" ort-optimize "$FX/same.onnx" -i typo="$FX/x0.npy" -o out.onnx
    fails 2 "there is no value for input 'b'" ort-optimize "$FX/sum.onnx" -i a="$FX/x0.npy"
    fails 2 "'a' is given twice" ort-optimize "$FX/sum.onnx" -i a="$FX/x0.npy" -i a="$FX/x1.npy"
}

@test "samples are read as the inputs of a run are" {
    works ort-optimize "$FX/sum.onnx" -i 'a=[[1, 2]]' -i 'b=[[3, 4]]' -i "$FX/ab.npz"
    has "verified: 2 runs"
    mkdir set
    python3 -c "import numpy as np
from onnx import numpy_helper
for i in range(2):
    open(f'set/input_{i}.pb', 'wb').write(
        numpy_helper.from_array(np.ones((1, 2), np.float32)).SerializeToString())"
    works ort-optimize "$FX/sum.onnx" -i set
    has "verified: 1 runs"
}

@test "stdin is one thing at a time, whatever the tool" {
    fails 2 "samples can't both come from stdin" ort-optimize - -i - <"$FX/same.onnx"
    fails 2 "tensors can't both come from stdin" ort-profile - -i x=- <"$FX/same.onnx"
    fails 2 "a picture can't both come from stdin" ort-draw - --detect corners --stretch 4 \
        <"$FX/x1.npy"
}

@test "what is wrong with an option is what is said of it" {
    fails 2 "^ort-run: unknown option '-x'" ort-run -xv "$FX/same.onnx"
    fails 2 "^ort-run: option '--json' takes no value" ort-run "$FX/same.onnx" --json=1
    fails 2 "^ort-run: option '--re' is the beginning of --repeat, --report" \
        ort-run "$FX/same.onnx" --re 3
}

@test "a shape is read to its end" {
    local shape
    for shape in '1x2x' '[1,2' '1x2]' '[1,2]x3' '99999999999999999999x2'; do
        fails 2 "--shape: '.*' is not a shape" ort-run "$FX/same.onnx" "$FX/x1.npy" \
            --shape "x:$shape"
    done
    works ort-run "$FX/same.onnx" "$FX/x1.npy" --shape 'x:[1,2]' --hash
}

@test "reports are UTF-8 whatever a model calls its values" {
    python3 -c "import sys
data = open(sys.argv[1], 'rb').read().replace(b'\x01y', b'\x01\xff')
open('odd.onnx', 'wb').write(data)" "$FX/same.onnx"
    ort-run odd.onnx "$FX/x1.npy" --json >report.json
    iconv -f utf8 -t utf8 report.json >/dev/null
}

@test "no name in a model steers a terminal" {
    command -v script >/dev/null || skip "no script(1)"
    python3 -c "import onnx, sys
model = onnx.load(sys.argv[1])
model.graph.node[0].name = 'a\x1b[31mred\x07'
onnx.save(model, 'red.onnx')" "$FX/same.onnx"
    run script -qec "ort-inspect red.onnx --nodes" /dev/null
    has "a?[31mred?"
    works ort-inspect red.onnx --nodes
    has $'a\x1b[31mred'
    run --separate-stderr ort-inspect $'a\x1b[31m.onnx'
    [ "$status" -eq 3 ]
    [[ $stderr == *"a?[31m.onnx"* ]]
}

@test "no name of a value steers a terminal, whoever prints it" {
    command -v script >/dev/null || skip "no script(1)"
    python3 -c "import sys, numpy as np, onnx
model = onnx.load(sys.argv[1])
red = 'y\x1b[31m\x07'
model.graph.node[0].output[0] = model.graph.output[0].name = red
onnx.save(model, 'red.onnx')
model.graph.node[0].op_type = 'Neg'
onnx.save(model, 'neg.onnx')
one = np.ones((1, 2), np.float32)
np.savez('red.npz', **{red: one})
open('labels', 'w').write(red + '\n' + red + '\n')" "$FX/same.onnx"
    local command
    for command in "ort-run red.onnx $FX/x1.npy" "ort-run red.onnx $FX/x1.npy --hash" \
        "ort-run red.onnx $FX/x1.npy --expect red.npz" \
        "ort-tensor red.npz" "ort-tensor $FX/x1.npy --top 1 --labels labels" \
        "ort-tensor red.npz --compare red.npz" "ort-optimize red.onnx"; do
        run script -qec "$command" /dev/null
        [ "$status" -eq 0 ]
        has "y?[31m?"
        [[ $output != *$'\x07'* ]]
    done
    run script -qec "ort-run red.onnx --compare neg.onnx $FX/x1.npy" /dev/null
    [ "$status" -eq 1 ]
    has "output 'y?[31m?'"
    works ort-tensor red.npz --print
    has $'y\x1b[31m\x07: float'
}

@test "ort-draw writes JSON whatever the numbers are" {
    python3 -c "import numpy as np
inf, nan = np.inf, np.nan
save = lambda name, x: np.save(name, np.array(x, np.float32))
save('boxes.npy', [[0, 0, 2, 2, inf, 1], [1, 1, 3, 3, .9, nan], [0, 0, 1, 1, .8, 1e30]])
save('nans.npy', [[nan, nan], [nan, nan]])
save('low.npy', [[1, -inf], [2, 3]])
save('curve.npy', [.1, .9, inf, .8, .2, .1, .1, .1, .1, .9])
np.save('flat.npy', np.zeros((10, 10, 0), np.uint8))"
    ort-draw --detect corners -i boxes.npy --stretch 4 --json >boxes.json
    ort-draw --map -i nans.npy --json >nans.json
    ort-draw --map -i low.npy --json >low.json
    ort-draw --curve -i curve.npy --json >curve.json
    works python3 -c "import json
def read(name):
    def refuse(text): raise ValueError(text)
    return json.load(open(name), parse_constant=refuse)
print([box['class'] for box in read('boxes.json')['boxes']], read('nans.json')['min'],
      read('low.json')['min'], read('curve.json')['stretches'][0]['mean'])"
    [ "$output" = "[-1, -1] None 1 None" ]
    fails 5 "flat.npy: is no picture" ort-draw flat.npy --detect corners -i boxes.npy --stretch 4
}

@test "a summary is as strict as the other reports" {
    run --separate-stderr ort-inspect "$FX/elder_calls.onnx" --strict
    [ "$status" -eq 1 ]
    [[ $stderr == *"not every runtime runs both"* ]]
    works ort-inspect "$FX/elder_calls.onnx"
}

@test "ort-draw writes pictures to names of pictures" {
    python3 -c "import numpy as np; np.save('box.npy', np.array([[0, 0, 2, 2, .9, 1]], np.float32))"
    fails 2 "'seen.txt' is the name of no picture" ort-draw --detect corners -i box.npy \
        --stretch 4 -o seen.txt
}

@test "a report and an output have files of their own" {
    fails 2 "'out.json' is named by -o and by --report" ort-run "$FX/same.onnx" "$FX/x1.npy" \
        -o out.json --report out.json
}

@test "an error is no JSON where stdout belongs to an output" {
    fails 2 "unknown option '--typo'" ort-run "$FX/same.onnx" "$FX/x1.npy" -o y=- --json --typo
    [ -z "$output" ]
}

@test "the line of progress goes away also behind timed runs" {
    command -v script >/dev/null || skip "no script(1)"
    run script -qec "ort-run $FX/same.onnx $FX/x0.npy $FX/x1.npy $FX/x2.npy --seconds 0.6 -o out.npz" \
        /dev/null
    [ "$status" -eq 0 ]
    has $'\rruns'
    [[ ${output##*$'\rruns'} == *$'\r\033[K'* ]]
}

@test "a comparison of models says what to do about an input, too" {
    fails 2 "'x' is missing.*-i x=FILE gives one" ort-run "$FX/same.onnx" --compare "$FX/both.onnx"
    fails 5 "ort-tensor --cast float" ort-run "$FX/same.onnx" "$FX/token.npy" \
        --compare "$FX/both.onnx"
}

@test "a record that fails takes the files of those before it along" {
    { cat "$FX/x1.npy" "$FX/x2.npy" && printf junkjunk; } >cut
    fails 5 "cut, record 3" ort-tensor cut --stream -o z.npy
    fails 5 "record 3" bash -c 'exec ort-tensor --stream -o z.json -o z.csv <cut'
    fails 5 "nothere.npy" ort-tensor "$FX/x1.npy" nothere.npy --bytes -o z.bin
    for name in z.npy z.npz z.csv z.json z.pb; do
        fails 5 "record 3|standard input" bash -c "exec ort-run '$FX/same.onnx' --stream -o $name <cut"
    done
    echo old >z.npy
    fails 5 "cut, record 3" ort-tensor cut --stream -o z.npy
    [ "$(cat z.npy)" = old ]
}

@test "with --keep-going a file stands whatever comes behind it" {
    { cat "$FX/x1.npy" "$FX/x2.npy" && printf junkjunk; } >cut
    run ort-tensor cut --stream --keep-going -o z.npy
    [ "$status" -eq 5 ]
    [ "$(first_values z.npy)$(first_values z_1.npy)" = "1 2 " ]
}

@test "more files than a process may open appear together" {
    for i in {1..100}; do cat "$FX/x1.npy" "$FX/x2.npy"; done >long
    works bash -c 'ulimit -n 40; exec ort-tensor long --stream -o z.npy'
    [ "$(ls z*.npy | wc -l)" -eq 200 ]
    [ "$(first_values z_199.npy)" = "2 " ]
    rm z*.npy
    mkfifo unended
    ort-tensor --stream -o z.npy <unended &
    local writer=$!
    exec 5>unended
    cat long >&5
    for i in {1..50}; do ls z_199.npy.*.tmp >/dev/null 2>&1 && break || sleep 0.1; done
    kill -TERM $writer
    wait $writer || true
    exec 5>&-
    [ "$(ls)" = $'long\nunended' ]
}

@test "pictures drawn of records appear together, and in one named pipe one after another" {
    python3 -c "import numpy as np
with open('maps.npy', 'wb') as out:
    for i in range(2):
        np.save(out, np.arange(4, dtype=np.float32).reshape(2, 2))"
    works ort-draw --map -i maps.npy -o map.ppm
    cat map.ppm map_1.ppm >both
    rm map.ppm map_1.ppm
    mkfifo pipe
    cat pipe >got &
    works timeout 20 ort-draw --map -i maps.npy -o pipe
    wait
    [ -s got ]
    printf junkjunk >>maps.npy
    fails 5 "maps.npy" ort-draw --map -i maps.npy -o map.ppm
}

@test "a sound of no samples gives no window, and is said to" {
    python3 -c "import struct
head = b'WAVEfmt ' + struct.pack('<IHHIIHH', 16, 1, 1, 8000, 16000, 2, 16)
def wav(samples):
    body = head + b'data' + struct.pack('<I', len(samples)) + samples
    return b'RIFF' + struct.pack('<I', len(body)) + body
open('none.wav', 'wb').write(wav(b''))
open('some.wav', 'wb').write(wav(bytes(8)))"
    fails 5 "none.wav: --chunk: the sound has no samples" ort-tensor none.wav --chunk 4 -o z.npy
    run --separate-stderr ort-tensor none.wav some.wav --chunk 4 --keep-going -o z.npy
    [ "$status" -eq 5 ]
    [ "$(first_values z.npy)" = "0 " ]
}

@test "progress of steps over several inputs ends at all of them" {
    command -v script >/dev/null || skip "no script(1)"
    mkfifo late.npy
    (sleep 1.3 && cat "$FX/zero.npy" >late.npy) &
    run script -qec "ort-run $FX/next.onnx $FX/zero.npy late.npy --carry t=s --steps 3 -o out.npz" \
        /dev/null
    [ "$status" -eq 0 ]
    has "(4 of 6)"
}

@test "a slice is numpy's" {
    python3 -c "import numpy as np; np.save('x.npy', np.arange(24, dtype=np.int32).reshape(2, 3, 4))"
    local spec
    for spec in 0 -1 ':,1' '1,:,2:4' '::-1' ':,2:0:-1,::2' '-1,-1,-1' '0:1,5:9' ':,:,-2:' '1,::-2,3::-1'; do
        works ort-tensor x.npy --slice "$spec" -o part.npy
        python3 -c "import numpy as np
got, want = np.load('part.npy'), np.load('x.npy')[$spec]
assert got.shape == want.shape and (got == want).all(), (got, want)"
        rm part.npy
    done
    fails 5 "an index that exists" ort-tensor x.npy --slice 2
    fails 5 "as many axes" ort-tensor x.npy --slice 0,0,0,:
    fails 2 "is no slice" ort-tensor x.npy --slice ::0
    fails 2 "is no slice" ort-tensor x.npy --slice 1x
}

@test "an index beyond every number in a table's header is no index that is due" {
    local column
    for column in 18446744073709551615 18446744073709551616 99999999999999999999999; do
        printf 'x[%s]\n1\n' $column >far.csv
        fails 5 "column 1: 'x\[$column\]' stands where 'x\[0\]' is due" \
            ort-run "$FX/best.onnx" far.csv --hash
    done
    printf 'x[0]\n1\n' >near.csv
    works ort-run "$FX/best.onnx" near.csv --hash
}

@test "a folder in the place of a set's file is said to be one" {
    mkdir -p set/input_0.json
    fails 5 "set/input_0.json: .*Is a directory" ort-run "$FX/same.onnx" -i set --hash
    rmdir set/input_0.json
    mkdir set/input_0.pb
    fails 5 "set/input_0.pb: .*Is a directory" ort-run "$FX/same.onnx" -i set --hash
}

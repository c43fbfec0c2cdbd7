# The benchmark's own behaviour beside peers that are scripts, and what installs peers one by one.
load helper

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx BENCH
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    BENCH=$ROOT/$(make -s -C "$ROOT" bench-program | tail -n 1)
}

# bench OPTION...: two models, one round, a peer "litert" that is ./peer.
bench() {
    for name in chain chain_too; do
        mkdir -p "models/$name"
        cp "$FX/chain.onnx" "models/$name/model.onnx"
        [ -e "models/$name/inputs.npz" ] ||
            ort-tensor "$FX/x.npy" --name x -o "models/$name/inputs.npz"
    done
    printf '%s convolutional\n' chain digits >families
    "$BENCH" --scratch . --families families --peer litert=1.2.3=./peer --threads 1 \
        --rounds 1 --launches 1 --patience 0 "$@" models
}

# peer COMMAND...: ./peer obeys as tests/bench/peers/worker.py does; "save" is done by COMMAND.
peer() {
    cat >peer <<END
#!/bin/sh
echo "ok 1"
while read -r word path; do
    case \$word in
    save) $* || exit ;;
    esac
    echo "ok 1000"
done
END
    chmod +x peer
}

@test "a peer with our outputs counts, and the head names versions, threads, and who is missing" {
    peer 'cp outputs_0.npz "$path"'
    run --separate-stderr bench
    [ "$status" -eq 0 ]
    has "peers: litert 1.2.3" "threads: 1;" "load before, threads 1: " "WITHOUT openvino" "WITHOUT llamacpp" "the host took"
    has "litert 1000 | 0.00 (" "Convolutional | 1 |"
}

@test "a peer with other outputs has a time and no say" {
    peer 'ort-tensor "$FX/y.npy" --name output_0 -o "$path"'
    run --separate-stderr bench
    [ "$status" -eq 0 ]
    has "litert 1000 wrong |" "chain, litert (wrong): output_0"
    [[ $output != *"Convolutional | 1 |"* ]]
}

@test "a peer that never answers is out of that model after the limit" {
    peer 'sleep 100'
    run --separate-stderr timeout 30 bash -c "$(declare -f bench); bench --limit 1"
    [ "$status" -eq 0 ]
    has "- chain, litert: no answer within 1 s" "- chain_too, litert: no answer within 1 s"
    [[ $stderr == *"1/2 chain "*"failed"*"2/2 chain_too "*"failed"* ]]
}

@test "a peer that dies, has no form, or fails is named with its reason" {
    for answer in "exit" "echo error out of order" "echo absent no such form"; do
        printf '#!/bin/sh\n%s\n' "$answer" >peer
        chmod +x peer
        run --separate-stderr bench --only chain
        [ "$status" -eq 0 ]
        case $answer in
        exit) has "- chain, litert: the process died" ;;
        *error*) has "- chain, litert: out of order" ;;
        *) [[ $output != *"- chain, litert"* ]] ;;
        esac
    done
}

@test "a peer that gives some of our outputs is compared by those" {
    peer 'ort-tensor outputs_0.npz --select output_0 -o "$path"'
    mkdir -p models/pair
    cp "$FX/pair.onnx" models/pair/model.onnx
    ort-tensor "$FX/x.npy" --name x -o models/pair/inputs.npz
    run --separate-stderr bench --only pair
    [ "$status" -eq 0 ]
    has "- pair, litert: 1 of 2 outputs, which are all that it gives" "litert 1000 |"
}

@test "products are held against what the machine can do" {
    peer 'cp outputs_0.npz "$path"'
    mkdir -p models/digits models/other
    ort-tensor "$MODELS_DIR/held_out.npz" --select digits_images --scale 1/255 \
        --unsqueeze 1 --name image -o models/digits/inputs.npz
    cp models/digits/inputs.npz models/other
    for name in digits other; do cp "$MODELS_DIR/digits.onnx" "models/$name/model.onnx"; done
    run --separate-stderr bench --only '@(chain|digits|other)'
    [ "$status" -eq 0 ]
    has "ours / best peer (95 %) | of peak |" "of peak: the least time of a run over ours"
    share=$(sed -n 's/^| digits |.*noisy | \([0-9]*\) % |$/\1/p' <<<"$output")
    [ "$share" -ge 1 ] && [ "$share" -le 200 ]
    has "| Convolutional | 2 | 0.00 | 0.70 | yes | 0.00 |"
    grep -Eq '^\| Other \| 1 \| [0-9.]+ \| \| \| \|$' <<<"$output"
    [[ $(grep -c ' |  *|$' <<<"$(grep '^| chain |\|^| other |' <<<"$output")") -eq 2 ]] # none there
}

@test "rounds go on while the interval is wide and patience lasts" {
    peer 'cp outputs_0.npz "$path"'
    sed -i 's/^while .*/: >asked; n=5\n&/; s/echo "ok 1000"/n=$((6 - n)); echo >>asked; echo "ok 0.000$n"/' peer
    run --separate-stderr bench --only chain --rounds 3
    [ "$status" -eq 0 ]
    has " noisy |" "interval wider than 0.1 after all rounds: chain"
    [ "$(wc -l <asked)" -eq 7 ] # first, a round before the peak of memory, that, save, three rounds
    run --separate-stderr bench --only chain --rounds 3 --patience 1
    [ "$status" -eq 0 ]
    [ "$(wc -l <asked)" -gt 8 ]
}

@test "the topologies are filled whose names a pattern takes" {
    mkdir -p tree/tests/tools shared/topologies
    cp "$ROOT/tests/tools/fill_topologies.sh" tree/tests/tools
    touch shared/fill_weights.py shared/topologies/{bert_base,gpt2_past,resnet50}.onnx
    printf '#!/bin/sh\nmkdir -p "$2"\necho "$3" >>filled\n' >python
    chmod +x python
    ONLY="bert* *_past" run --separate-stderr sh tree/tests/tools/fill_topologies.sh shared ./python
    [ "$status" -eq 0 ]
    [ "$(tr '\n' ' ' <filled)" = "bert_base gpt2_past " ]
    [ "$output" = "$PWD/tree/build/topologies" ]
}

@test "--only takes patterns of names" {
    peer 'cp outputs_0.npz "$path"'
    run --separate-stderr bench --only '@(chain_*|other)'
    [ "$status" -eq 0 ]
    [[ $stderr == *"1/1 chain_too "* && $stderr != *"chain "* ]]
    run --separate-stderr bench --only nobody
    [ "$status" -eq 1 ]
    [[ $stderr == *"none that fits --only"* ]]
}

@test "a terminal shows the model at hand and the time left" {
    peer 'cp outputs_0.npz "$path"'
    export -f bench
    run python3 "$ROOT/tests/tools/on_terminal.py" 100 bash -c bench
    [ "$status" -eq 0 ]
    has "[1 of 2] chain, threads 1" "[2 of 2, 1 min left] chain_too, threads 1"
}

@test "a peer's form of a model is written once, and anew when the model is another" {
    [ -x "$ROOT/build/venv/bin/python" ] || skip "no build/venv"
    mkdir -p net cache
    echo one >net/model.onnx
    cat >writer.py <<'END'
import pathlib, sys
print(pathlib.Path(sys.argv[1], "model.onnx").read_text(), end="", file=open("written", "a"))
pathlib.Path(sys.argv[2]).mkdir()
sys.exit(pathlib.Path("fails").exists())
END
    cat >open.py <<'END'
import pathlib, sys
sys.path[0] = sys.argv[1]
from peers import forms
with forms.written(pathlib.Path("net"), pathlib.Path("writer.py").resolve(), "kind") as form:
    print(form.is_dir(), form.parent)
END
    for content in one one two two; do
        echo $content >net/model.onnx
        BENCH_CACHE=cache run "$ROOT/build/venv/bin/python" open.py "$ROOT/tests/bench"
        [ "$output" = "True cache/net" ]
    done
    [ "$(tr '\n' ' ' <written)" = "one two " ]
    [ "$(ls cache/net | wc -l)" -eq 1 ]
    echo three >net/model.onnx
    touch fails
    ! BENCH_CACHE=cache "$ROOT/build/venv/bin/python" open.py "$ROOT/tests/bench" || false
    [ -z "$(ls cache/net)" ]
}

# tree: the scripts with two peers, over a Python whose pip can't have what ./missing names.
tree() {
    mkdir -p tree/tests/tools tree/tests/bench/peers fake
    cp "$ROOT/tests/tools/setup_venv.sh" tree/tests/tools
    for name in requirements bench/peers/one bench/peers/two; do
        echo "$(basename $name)==1 --hash=sha256:0" >"tree/tests/$name.txt"
    done
    cat >fake/python3.11 <<'END'
#!/bin/sh
[ "$1" = -c ] && exit
mkdir -p "$3/bin" && touch "$3/bin/python" && chmod +x "$3/bin/python"
cat >"$3/bin/pip" <<'PIP'
#!/bin/sh
for file; do :; done
echo "$(basename "$file" .txt)" >>installed
[ "$(basename "$file" .txt)" != "$(cat missing 2>/dev/null)" ] || { echo "No matching distribution"; exit 1; }
PIP
chmod +x "$3/bin/pip"
END
    chmod +x fake/python3.11
}

install_peers() {
    PATH=$PWD/fake:$PATH run --separate-stderr sh tree/tests/tools/setup_venv.sh --bench
}

@test "a peer that can't be had is left out loudly, and the others are there" {
    tree
    echo one >missing
    install_peers
    [ "$status" -eq 0 ]
    [[ $stderr == *"WITHOUT one"* && $stderr != *"WITHOUT two"* ]]
    [ -f tree/build/venv-bench/.stamp-two ] && [ ! -f tree/build/venv-bench/.stamp-one ]
    rm missing installed
    install_peers
    [ "$status" -eq 0 ]
    [[ $stderr != *WITHOUT* ]]
    [ "$(cat installed)" = one ]
    install_peers
    [ "$status" -eq 0 ] && [ -z "$stderr" ] && [ "$(cat installed)" = one ]
}

@test "without what all need there is no bench" {
    tree
    echo requirements >missing
    install_peers
    [ "$status" -eq 3 ]
    [[ $stderr == *"PyPI can't be reached"* ]]
}

@test "a peer whose build fails is left out" {
    tree
    echo 'echo "it does not build" >&2; exit 1' >tree/tests/bench/peers/two.sh
    install_peers
    [ "$status" -eq 0 ]
    [[ $stderr == *"it does not build"*"WITHOUT two"* ]]
    [ -f tree/build/venv-bench/.stamp-one ] && [ ! -f tree/build/venv-bench/.stamp-two ]
}

# ort-run: inputs and outputs in every form, recurrence, checks, reports.
load helper

@test "inputs by position, by name, and from one npz" {
    works ort-run "$FX/add.onnx" "$FX/x.npy" "$FX/y.npy" -o a.npy
    works ort-run "$FX/add.onnx" -i y="$FX/y.npy" -i x="$FX/x.npy" -o b.npy
    works ort-run "$FX/add.onnx" "$FX/xy.npz" -o c.npy
    works ort-run "$FX/add.onnx" -i "$FX/xy.npz" -o d.npy
    for f in a b c d; do same $f.npy "$FX/sum.npy"; done
}

@test "JSON in, every format out" {
    for format in npy npz pb safetensors json; do
        works ort-run "$FX/add.onnx" -i "$FX/x.json" -o "out.$format"
        same "out.$format" "$FX/sum.npy"
    done
}

@test "an intermediate value by name, at every level" {
    for level in 0 1 2 3; do
        works ort-run "$FX/chain.onnx" "$FX/x.npy" --level $level --outputs b -o b$level.npy
        same b0.npy b$level.npy
    done
    works ort-run "$FX/chain.onnx" "$FX/x.npy" -o out=o.npy -o a=a.npy --outputs out,a
    [ -s o.npy ] && [ -s a.npy ]
}

@test "--dump writes what is known without a run once, at any level" {
    local level
    for level in 0 1 2 3; do
        works ort-run "$FX/tile.onnx" --random 1 --level $level --dump '*' --dump-dir "l$level" \
            -o out.npz
        python3 -c "import json; v = json.load(open('l$level/index.json'))['values']
assert sorted(i['name'] for i in v) == ['a', 'out'], v"
    done
}

@test "--dump writes intermediates" {
    works ort-run "$FX/chain.onnx" "$FX/x.npy" --dump '*' --dump-dir seen -o out.npy
    [ "$(find seen -type f | wc -l)" -ge 2 ]
}

@test "--dump writes sequences, maps and types that .npy lacks as .pb" {
    local level
    for level in 0 3; do
        works ort-run "$FX/list.onnx" "$FX/x.npy" --level $level --dump '*' --dump-dir "l$level" \
            --hash
        python3 - "l$level/index.json" <<'END'
import json, sys
v = {i.pop("name"): i for i in json.load(open(sys.argv[1]))["values"]}
files = {n: i.pop("file")[5:] for n, i in v.items()}
assert files == {"list": "list.pb", "both": "both.npy", "brief": "brief.pb", "out": "out.npy",
                 "maps": "maps.pb"}, files
assert v["list"] == v["maps"] == {"kind": "sequence", "count": 2}, v
assert v["brief"] == {"dtype": "bfloat16", "shape": [4, 3]}, v
END
        works ort-tensor l$level/*_list.pb --print
        has "sequence of 2" "float 2x3"
        works ort-tensor l$level/*_maps.pb --print
        has "sequence of 2" "map of 3" '"a" "b" "c"'
        works ort-tensor l$level/*_brief.pb --print
        has "bfloat16 4x3"
    done
}

@test "options that need another one" {
    local add=("$FX/add.onnx" "$FX/xy.npz" -o out.npy)
    fails 2 "--dump-dir needs --dump GLOB" ort-run "${add[@]}" --dump-dir seen
    fails 2 "--warmup needs --repeat N or --seconds S" ort-run "${add[@]}" --warmup 3
    fails 2 "--warmup needs --repeat N or --seconds S" ort-run "${add[@]}" --warmup 0 --json
    fails 2 "--warmup: '-1' is not a whole number of 0 or more" ort-run "${add[@]}" --repeat 1 --warmup -1
    fails 2 "--steps needs --carry OUT=IN" ort-run "${add[@]}" --steps 3
    works ort-run "${add[@]}" --repeat 2 --warmup 0
    works ort-run "${add[@]}" --seconds 0.01 --warmup 3
}

@test "model from stdin, model through a pipe" {
    run --separate-stderr sh -c "ort-run - -i x=$FX/x.npy -i y=$FX/y.npy -o out.npy <$FX/add.onnx"
    [ "$status" -eq 0 ]
    same out.npy "$FX/sum.npy"
}

@test "extract a part and run it through a pipe" {
    run --separate-stderr sh -c \
        "ort-inspect $FX/chain.onnx --extract a:b -o - | ort-run - -i a=$FX/x.npy -o b.npy"
    [ "$status" -eq 0 ]
    works ort-tensor b.npy --scale -1 -o c.npy
    same c.npy "$FX/x.npy"
}

@test "--expect says yes with 0 and no with 1 and the worst element" {
    works ort-run "$FX/add.onnx" "$FX/xy.npz" --expect "$FX/sum.npy"
    run --separate-stderr ort-run "$FX/add.onnx" "$FX/xy.npz" --expect "$FX/y.npy"
    [ "$status" -eq 1 ]
    [[ $output$stderr == *out* ]]
}

@test "--stream writes one record per run" {
    run --separate-stderr sh -c "ort-run $FX/chain.onnx --stream <$FX/stream.npy >out.npz"
    [ "$status" -eq 0 ]
    run --separate-stderr sh -c "ort-tensor --stream --print <out.npz"
    [ "$status" -eq 0 ]
    [ "$(grep -c float <<<"$output")" -eq 3 ]
}

@test "--stream with a record that is cut fails with 5" {
    run --separate-stderr sh -c "cat $FX/x.npy $FX/cut.npy | ort-run $FX/chain.onnx --stream -o out.npz"
    [ "$status" -eq 5 ]
    [ ! -e out.npz ]
}

@test "--stack makes one batch of several files" {
    works ort-run "$FX/batch.onnx" "$FX/x.npy" "$FX/y.npy" --stack -o out.npy
    works ort-tensor out.npy --print
    has 4x3
}

@test "--carry feeds a state back" {
    works ort-run "$FX/counter.onnx" -i x="$FX/x.npy" --carry next=state --steps 5 --outputs out \
        -o out.npz
    works ort-tensor out.npz --print
    has 5x2x3
    works ort-tensor out.npz --slice 4,0,2 --print
    has 15
    run --separate-stderr sh -c "ort-run $FX/counter.onnx -i x=$FX/x.npy --carry next=state \
        --steps 5 --outputs out | ort-tensor --stream --slice 0,2 --print"
    [ "$status" -eq 0 ]
    [ "$(grep -c float <<<"$output")" -eq 5 ]
    has 15
}

@test "--hash is the same for any number of threads" {
    works ort-run "$MODELS_DIR/upscale.onnx" --random 7 --dim h=33 --dim w=29 --hash --threads 1
    local one=$output
    for threads in 2 3 8; do
        works ort-run "$MODELS_DIR/upscale.onnx" --random 7 --dim h=33 --dim w=29 --hash \
            --threads $threads
        [ "$output" = "$one" ]
    done
}

@test "--repeat --json reports what the manual says" {
    works ort-run "$FX/add.onnx" "$FX/xy.npz" --repeat 10 --json
    echo "$output" | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert r["schema"] == "ort-run/1", r
assert r["runs"] == 10
for key in ("model", "threads", "provider", "isa", "load_ms", "first_ms", "peak_rss_bytes"):
    assert key in r, key
assert set(r["latency_ms"]) == {"min", "p50", "p90", "p99", "mean", "cv"}
out = r["outputs"][0]
assert out["name"] == "out" and out["dtype"] == "float" and out["shape"] == [2, 3] and out["digest"]'
}

@test "--random is reproducible" {
    works ort-run "$FX/add.onnx" --random 3 -o a.npy
    works ort-run "$FX/add.onnx" --random 3 -o b.npy
    works ort-run "$FX/add.onnx" --random 4 -o c.npy
    same a.npy b.npy
    run same a.npy c.npy
    [ "$status" -eq 1 ]
}

@test "--save-optimized gives a model with the same outputs" {
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --dim batch=3 --save-optimized opt.onnx -o a.npy
    works ort-run opt.onnx --random 1 -o b.npy
    works ort-tensor a.npy --compare b.npy
}

@test "--time reports phases on stderr, --settings prints sources" {
    run --separate-stderr ort-run "$FX/add.onnx" "$FX/xy.npz" --time -o out.npy
    [ "$status" -eq 0 ] && [[ $stderr == *"session ready"* && $stderr == *"first run"* ]]
    ORT_THREADS=3 run --separate-stderr ort-run --settings "$FX/add.onnx"
    [ "$status" -eq 0 ]
    has threads ORT_THREADS 3
}

@test "--settings prints every setting of the tools that have it" {
    local tool
    for tool in ort-run ort-inspect ort-optimize ort-profile; do
        works $tool --settings --threads 2 --isa scalar
        diff <(echo "$output" | awk '$1 != "level" {print $1, $2, $3}') - <<END
threads 2 option
provider cpu default
isa scalar option
math normal default
denormals flush default
max-memory none default
timeout none default
spin-us 2000 default
pin no default
allow-newer no default
external-data-root none default
strict no default
END
        works $tool --settings --threads 2 --isa scalar --level 1 --disable gelu,swish \
            --disable softmax_form --dim batch=3 --dim n=4 --shape x:1x3 --math strict \
            --denormals keep --max-memory 512M --spin-us 0 --pin --strict
        diff <(echo "$output" | awk '{print $1, $2, $3}') - <<END
threads 2 option
provider cpu default
isa scalar option
level 1 option
disable gelu option
disable swish option
disable softmax_form option
dim batch=3 option
dim n=4 option
shape x:1x3 option
math strict option
denormals keep option
max-memory 536870912 option
timeout none default
spin-us 0 option
pin yes option
allow-newer no default
external-data-root none default
strict yes option
END
    done
}

@test "--time shows each pass of the level, load first" {
    # the phases before "plan" that count changes, against the table's passes up to the level
    for level in 0 1 2 3; do
        run --separate-stderr ort-run "$MODELS_DIR/digits.onnx" --random 1 --dim batch=1 \
            --level $level --time -o out.npy
        [ "$status" -eq 0 ] && [[ $stderr == load\ * ]]
        echo "$stderr" | awk '/ changes$/ {print $1}' >shown
        ort-optimize --list-passes | awk -v level=$level '$1 <= level {print $2}' >listed
        [ -s shown ] && diff listed shown
    done
    [[ $stderr =~ conv_activation\ +[0-9.]+\ ms\ \ 2\ changes ]]
    run --separate-stderr ort-run "$MODELS_DIR/digits.onnx" --random 1 --no-pack --time \
        --disable conv_activation,gelu -o out.npy
    [ "$status" -eq 0 ] && [[ $stderr == load\ *gemm_activation* ]]
    [[ $stderr != *conv_activation* && $stderr != *$'\n'gelu\ * ]]
}

@test "an option beats its variable, and a bad variable is refused" {
    export ORT_THREADS=3
    works ort-run "$FX/add.onnx" "$FX/xy.npz" --threads 2 --repeat 1 --json
    has '"threads": 2'
    export ORT_THREADS=many
    fails 2 "many" ort-run "$FX/add.onnx" "$FX/xy.npz" -o out.npy
}

@test "--timeout stops a run with 4" {
    fails 4 "tim" ort-run "$MODELS_DIR/upscale.onnx" --random 1 --dim h=900 --dim w=900 \
        --timeout 0.001 -o out.npy
}

@test "--max-memory is kept" {
    fails 4 "memory|limit" ort-run "$MODELS_DIR/upscale.onnx" --random 1 --dim h=900 --dim w=900 \
        --max-memory 1M -o out.npy
}

@test "every tier of this machine gives the same answer" {
    local isa
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --dim batch=5 --isa scalar -o scalar.npy
    for isa in avx2 avx512; do
        ort-run --settings --isa $isa "$FX/add.onnx" >/dev/null 2>&1 || continue
        works ort-run "$MODELS_DIR/digits.onnx" --random 1 --dim batch=5 --isa $isa -o $isa.npy
        works ort-tensor $isa.npy --compare scalar.npy
    done
}

@test "--save-optimized - has stdout to itself" {
    local beside
    for beside in '' '-o -' '-o out=-' '-o y.npy --hash' '-o y.npy --json' '-o y.npy --time'; do
        # shellcheck disable=SC2086
        fails 2 "--save-optimized - leaves stdout to the model" \
            ort-run "$FX/chain.onnx" "$FX/x.npy" --save-optimized - $beside
    done
    ort-run "$FX/chain.onnx" "$FX/x.npy" --save-optimized - -o y.npy >optimized.onnx
    works ort-run optimized.onnx "$FX/x.npy" --expect y.npy
}

@test "--settings with --json is one object" {
    for tool in ort-run ort-optimize ort-profile ort-inspect; do
        works $tool --settings --json --threads 1 --dim n=3
        echo "$output" | python3 -c '
import json, sys
r = json.load(sys.stdin)
s = [(x["name"], x["value"], x["source"]) for x in r["settings"]]
assert r["schema"] == sys.argv[1] + "/1" and ("threads", "1", "option") in s and ("dim", "n=3", "option") in s' $tool
    done
}

# Output files that a signal ends half-way: nothing of them stays, and what stood there before does.
load helper

digits=$MODELS_DIR/digits.onnx

setup_file() {
    export FX=$BATS_FILE_TMPDIR/fx EARLY=$BATS_FILE_TMPDIR/end_early.so
    python3 "$ROOT/tests/tools/fixtures.py" "$FX"
    ${CC:-cc} -std=c11 -O1 -shared -fPIC -o "$EARLY" "$BATS_TEST_DIRNAME/end_early.c" -ldl
}

# ends SIGNAL COMMAND...: ended by it when a file was complete, with nothing new in the folder and
# the old file as it was.
ends() {
    local number
    number=$(kill -l "$1")
    echo old > out.file
    shift
    run -$((128 + number)) --separate-stderr env --default-signal END_WITH="$number" LD_PRELOAD="$EARLY" \
        ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" "$@"
    [ "$(cat out.file)" = old ]
    [ "$(ls -A)" = out.file ] || { ls -A; return 1; }
}

writers() {
    local signal
    for signal in "$@"; do
        ends "$signal" ort-optimize "$digits" --no-verify -q -o out.file
        ends "$signal" ort-optimize "$digits" --no-verify -q -o out.file --external-data=w.data
        ends "$signal" ort-optimize "$digits" --no-verify -q -o out.file --pack
        ends "$signal" ort-run "$FX/chain.onnx" "$FX/x.npy" -o out.file --format npy
        ends "$signal" ort-run "$FX/chain.onnx" "$FX/x.npy" -o other.npy
        ends "$signal" ort-run "$FX/chain.onnx" "$FX/x.npy" --report out.file
        ends "$signal" ort-run "$FX/chain.onnx" -i x="$FX/x.npy" -i x="$FX/x.npy" -o out.file \
            --format npy
        ends "$signal" ort-tensor "$FX/x.npy" -o out.file --format npy
        ends "$signal" ort-profile "$FX/chain.onnx" "$FX/x.npy" -o out.file
        ends "$signal" ort-inspect "$FX/chain.onnx" --dot -o out.file
    done
}

@test "a signal leaves nothing of an unfinished file, not even KILL" { writers INT TERM HUP KILL; }

@test "where files need a name, a signal that a program can catch removes it" {
    export NO_TMPFILE=1
    writers INT TERM HUP QUIT
}

@test "files without a name take the place of others and get the mode of any new file" {
    local none
    for none in '' 1; do
        export NO_TMPFILE=$none
        [ -n "$none" ] || unset NO_TMPFILE
        echo old > kept && chmod 600 kept && ln -s kept link
        works env LD_PRELOAD="$EARLY" ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
            ort-tensor "$FX/x.npy" -o link --format npy
        [ -L link ] && [ "$(stat -c %a kept)" = 600 ]
        same kept "$FX/x.npy"
        (umask 027 && ort-tensor "$FX/x.npy" -o new.npy) && [ "$(stat -c %a new.npy)" = 640 ]
        [ "$(ls -A | tr '\n' ' ')" = "kept link new.npy " ]
        rm -f kept link new.npy
    done
}

@test "an ignored signal stays ignored" {
    run -0 sh -c 'trap "" HUP; exec "$@"' sh env END_WITH=1 LD_PRELOAD="$EARLY" \
        ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" \
        ort-tensor "$FX/x.npy" -o out.npy
    same out.npy "$FX/x.npy"
}

# What a terminal shows: tables that fit, colour where it tells something, progress of long work. Pipes
# get everything, plainly.
load helper

on_terminal() { # on_terminal COLUMNS COMMAND...
    python3 "$ROOT/tests/tools/on_terminal.py" "$@"
}

fits() { # fits COLUMNS: the lines of $output, without colours
    sed 's/\x1b\[[0-9;]*[mK]//g' <<<"$output" | awk -v most="$1" '
        length($0) > most && !/^(model|memory|runs|machine|\(not shown)/ { print "too wide: " $0; bad = 1 }
        END { exit bad }'
}

@test "tables fit the terminal and say what they leave out" {
    unset COLUMNS NO_COLOR
    for columns in 60 80 120; do
        run on_terminal $columns ort-profile "$MODELS_DIR/digits.onnx" --repeat 3 --no-peak
        [ "$status" -eq 0 ]
        fits $columns
    done
    run on_terminal 60 ort-profile "$MODELS_DIR/digits.onnx" --repeat 3 --no-peak
    has "(not shown: " "all: | cat)" "..."
    run on_terminal 70 ort-inspect "$MODELS_DIR/upscale.onnx" --initializers
    fits 70
    COLUMNS=200 run on_terminal 40 ort-inspect "$MODELS_DIR/upscale.onnx" --initializers
    [[ $output != *"not shown"* ]]
}

@test "a pipe gets whole names, every column and no colour" {
    works ort-profile "$MODELS_DIR/digits.onnx" --repeat 3 --no-peak
    has "fused from" "p99" "shapes"
    [[ $output != *$'\x1b'* && $output != *"| cat"* ]]
}

@test "verdicts are coloured on a terminal that allows it" {
    unset NO_COLOR
    run env TERM=xterm python3 "$ROOT/tests/tools/on_terminal.py" 80 ort-tensor "$FX/x.npy" --compare "$FX/x.npy"
    has $'\x1b[32mok'
    run env TERM=dumb python3 "$ROOT/tests/tools/on_terminal.py" 80 ort-tensor "$FX/x.npy" --compare "$FX/x.npy"
    [[ $output == "ok    "* ]]
    run env TERM=xterm NO_COLOR=1 python3 "$ROOT/tests/tools/on_terminal.py" 80 ort-tensor "$FX/x.npy" --compare "$FX/x.npy"
    [[ $output == "ok    "* ]]
    works ort-tensor "$FX/x.npy" --compare "$FX/x.npy"
    [[ $output == "ok    "* ]]
}

@test "work longer than a second shows progress on a terminal, unless told not to" {
    run env TERM=xterm python3 "$ROOT/tests/tools/on_terminal.py" 80 \
        ort-run "$MODELS_DIR/digits.onnx" --random 1 --seconds 1.3
    has "timed runs" " % ("
    run env TERM=xterm python3 "$ROOT/tests/tools/on_terminal.py" 80 \
        ort-run "$MODELS_DIR/digits.onnx" --random 1 --seconds 1.3 --no-progress
    [[ $output != *"timed runs"* ]]
    run env TERM=xterm python3 "$ROOT/tests/tools/on_terminal.py" 80 \
        ort-profile "$MODELS_DIR/digits.onnx" --seconds 1.3 --no-peak
    has "runs" " % ("
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --seconds 1.2
}

slowly() { # slowly FIFO FILE: records that come one by one
    (cat "$2"; sleep 1.5; cat "$2") >"$1" &
}

all_stages() { # $output shows calibration, with the time that is left, choosing with what it does, and the comparison
    [[ $output =~ calibrating\ +[0-9]+\ %\ \([0-9]+\),\ [0-9]+\ s\ left ]] || return 1
    [[ $output =~ choosing\ +[0-9]+\ %,\ up\ to\ [0-9]+\ (s|min)\ left:\ calibrating\ +[0-9]+\ % ]] || return 1
    [[ $output =~ comparing\ +[0-9]+\ % ]]
}

@test "ort-quantize shows what it waits for on a terminal, and nowhere else" {
    mkfifo slow.fifo
    seq -s, 1 64 >record.csv
    slowly slow.fifo record.csv
    run env TERM=xterm python3 "$ROOT/tests/tools/on_terminal.py" 80 \
        ort-quantize calibrate "$MODELS_DIR/digits.onnx" -i slow.fifo --from csv --reshape -1x1x8x8 -o seen.json
    [ "$status" -eq 0 ]
    has "reading samples 1 s"
    slowly slow.fifo record.csv
    run env TERM=xterm python3 "$ROOT/tests/tools/on_terminal.py" 80 ort-quantize calibrate \
        "$MODELS_DIR/digits.onnx" -i slow.fifo --from csv --reshape -1x1x8x8 -o seen.json --force --no-progress
    [ "$status" -eq 0 ]
    [[ $output != *"reading samples"* ]]
    slowly slow.fifo record.csv
    works ort-quantize calibrate "$MODELS_DIR/digits.onnx" -i slow.fifo --from csv --reshape -1x1x8x8 -o seen.json --force
    [ -z "$output$stderr" ]
    # As many samples as this machine needs to be at each stage for seconds.
    local samples
    for samples in 60000 240000 960000; do
        run env TERM=xterm python3 "$ROOT/tests/tools/on_terminal.py" 80 ort-quantize static \
            "$MODELS_DIR/digits.onnx" --random 1 --samples $samples -o q.onnx --force
        [ "$status" -eq 0 ]
        ! all_stages || break
    done
    all_stages
}

@test "times are said in the unit that fits" {
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --repeat 20
    [[ $output =~ min\ [0-9.]+\ (us|ms)\ \ p50\ [0-9.]+\ (us|ms) ]]
    [[ $output != *"min 0.00"* ]]
}

@test "a summary counts weights that are inputs, --io lists them" {
    need_models
    works ort-inspect "$REAL/ultraface_rfb_320/model.onnx"
    has "and 244 that have a default (--io lists them)"
    [ "${#lines[@]}" -lt 20 ]
    works ort-inspect "$REAL/ultraface_rfb_320/model.onnx" --io
    [ "${#lines[@]}" -gt 240 ]
}

@test "many files show how many are done, on a terminal after a second" {
    local files=() i
    mkfifo slow.json
    for i in {1..9}; do files+=("$FX/x.npy"); done
    ort-tensor "$FX/x.npy" -o x.json
    slowly() { # to a reader that waits already
        { sleep 1.3; cat x.json; } >slow.json
    }
    slowly &
    run env TERM=xterm python3 "$ROOT/tests/tools/on_terminal.py" 80 \
        ort-tensor slow.json "${files[@]}" --stack -o out.npy
    [ "$status" -eq 0 ]
    has "files" " % ("
    wait
    slowly &
    run env TERM=xterm python3 "$ROOT/tests/tools/on_terminal.py" 80 \
        ort-tensor slow.json "${files[@]}" --stack --no-progress -o out.npy
    [ "$status" -eq 0 ] && [[ $output != *"files"* ]]
}

#!/usr/bin/env bats
# options.bats - every option and every gate of every tool, held to tables.

load helper

@test "every option says what it does twice, out of range and with nothing to act on" {
    cd "$FX"
    run python3 "$ROOT/tests/tools/check_options.py" "${ORT_BIN:-$ROOT/build/bin}" "$BATS_TEST_DIRNAME/options.tsv"
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
}

@test "every gate says no to what it didn't compare, and its JSON agrees with the exit status" {
    cp -r "$FX" fx
    cd fx
    run python3 "$ROOT/tests/tools/check_gates.py" "${ORT_BIN:-$ROOT/build/bin}" "$BATS_TEST_DIRNAME/gates.tsv"
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
}

@test "an option without a row in the table is a finding" {
    grep -v '^ort-run	steps	' "$BATS_TEST_DIRNAME/options.tsv" > options.tsv
    grep -v '^ort-tensor	compare	nan	' "$BATS_TEST_DIRNAME/gates.tsv" > gates.tsv
    cp -r "$FX" fx
    cd fx
    run -1 python3 "$ROOT/tests/tools/check_options.py" "${ORT_BIN:-$ROOT/build/bin}" ../options.tsv
    has "ort-run --steps: no row in the table"
    run -1 python3 "$ROOT/tests/tools/check_gates.py" "${ORT_BIN:-$ROOT/build/bin}" ../gates.tsv
    has "ort-tensor compare : lacks {'nan'}"
}

@test "numbers that make no sense of an image are refused" {
    ort-tensor "$FX/x.npy" --reshape 2x3x1 --cast uint8 -o im.png
    fails 2 "--std: '0,1,1' would divide by 0" ort-tensor im.png --std 0,1,1 -o y.npy
    fails 2 "is for pixels of 0 to 255, here they are 0 to 1" \
        ort-tensor im.png --mean 123.675,116.28,103.53 --std 58.395,57.12,57.375 -o y.npy
    run --separate-stderr ort-tensor im.png --crop 9 -o y.npy
    [[ $stderr == *"--crop 9: the image is 2x3: zeros fill what it lacks"* ]]
    fails 2 "--quality is of JPEG and WebP" ort-tensor im.png --quality 80 -o y.png
    works ort-tensor im.png --quality 80 -o y.jpg
}

# Every format, in and out: by file, by standard input, by a pipe in pieces, one record and many. The
# tables below are held by lint: a new ending of lib/io/format.c must join them.
load helper

# ---- in: ending, whether a second file behind the first one is a second record, and options

INPUTS="
npy         many
npz         many
pb          one
safetensors many
json        many
jsonl       many
ndjson      many
csv         one     --from csv
tsv         one     --from csv
raw         many    --from raw --dtype float --dims 2x3
bin         many    --from raw --dtype float --dims 2x3
png         many
jpg         many
jpeg        many
bmp         many
ppm         many
pgm         many
pbm         many
pnm         many
webp        many
tif         one
tiff        one
jp2         many
j2k         many
j2c         many
wav         many
wave        many
"

# Two different files of each ending, a.ENDING and b.ENDING.
make_inputs() {
    local python=$ROOT/build/venv/bin/python image=$MODELS_DIR/images ending
    works ort-tensor "$FX/x.npy" --name x -o a.npz
    works ort-tensor "$FX/y.npy" --name x -o b.npz
    for ending in npy pb safetensors json csv raw; do
        works ort-tensor a.npz -o "a.$ending"
        works ort-tensor b.npz -o "b.$ending"
    done
    for ending in a b; do
        cp $ending.json $ending.jsonl
        cp $ending.json $ending.ndjson
        tr , '\t' <$ending.csv >$ending.tsv
        cp $ending.raw $ending.bin
    done
    for ending in png jpg bmp ppm webp; do
        works ort-tensor "$image/digit_0_009.png" --resize 9x7 -o "a.$ending"
        works ort-tensor "$image/digit_7_008.png" --resize 5x8 -o "b.$ending"
    done
    for ending in a b; do
        cp $ending.jpg $ending.jpeg
        cp $ending.ppm $ending.pnm
    done
    python3 - <<'PY'
import struct, wave
for name, shift in (("a", 0), ("b", 3)):
    open(name + ".pgm", "wb").write(b"P2\n# gray\n3 2\n9\n1 2 3\n4 %d 6\n" % shift)
    open(name + ".pbm", "wb").write(b"P1\n5 2\n01011\n1%d0 01\n" % (shift % 2))
    pixels = bytes(range(shift, shift + 18))
    entries = [(256, 3, 1, 3), (257, 3, 1, 2), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 2),
               (273, 4, 1, 8), (277, 3, 1, 3), (278, 3, 1, 2), (279, 4, 1, 18)]
    tiff = struct.pack("<2sHI", b"II", 42, 26) + pixels + struct.pack("<H", len(entries))
    tiff += b"".join(struct.pack("<HHII", *e) for e in entries) + bytes(4)
    for ending in (".tif", ".tiff"):
        open(name + ending, "wb").write(tiff)
    for ending in (".wav", ".wave"):
        with wave.open(name + ending, "wb") as w:
            w.setnchannels(1); w.setsampwidth(2); w.setframerate(8000)
            w.writeframes(struct.pack("<5h", *range(shift, shift + 5)))
PY
    if [ -x "$python" ]; then
        "$python" - <<'PY'
from PIL import Image
for name in "ab":
    image = Image.open(name + ".png").convert("RGB")
    for ending in ("jp2", "j2k", "j2c"):
        image.save(f"{name}.{ending}", "JPEG2000", no_jp2=ending != "jp2")
PY
    fi
}

# Standard input, so many bytes at a time.
pieces() { # pieces SIZE FILE...
    python3 - "$@" <<'PY'
import os, sys
data = b"".join(open(name, "rb").read() for name in sys.argv[2:])
size = int(sys.argv[1])
for at in range(0, len(data), size):
    os.write(1, data[at:at + size])
PY
}

digest() { # of standard input's records
    ort-tensor --stream --print --items 1000
}

# ---- out: ending, what one file holds of several runs (stack: one array, rows: they go on, lines: one each, no: it is
# refused; read: the format is never written), what it is made of, whether that comes back (exact, near: as lossy formats
# do), the name that --format has for it ("-": none of its own), and options to read it back

OUTPUTS="
npy         stack  array exact  npy
npz         stack  array exact  npz
pb          stack  array exact  pb
safetensors stack  array exact  safetensors
json        stack  array exact  json
jsonl       lines  array exact  -
ndjson      lines  array exact  -
csv         rows   array exact  csv    --from csv
tsv         rows   array exact  tsv    --from csv
raw         stack  array exact  raw    --from raw --dtype float --dims 2x3
bin         stack  array exact  -      --from raw --dtype float --dims 2x3
png         no     image exact  png
jpg         no     image near   -
jpeg        no     image near   jpeg
bmp         no     image exact  bmp
ppm         no     image exact  ppm
pgm         no     image exact  -
pbm         no     image exact  -
pnm         no     image exact  -
webp        no     image near   webp
tif         read
tiff        read
jp2         read
j2k         read
j2c         read
wav         no     sound near   wav
wave        no     sound near   -
"

# Two records of each kind: NAME and other_NAME.
make_records() {
    works ort-tensor "$FX/x.npy" -o array.npy
    works ort-tensor "$FX/y.npy" -o other_array.npy
    works ort-tensor "$MODELS_DIR/images/digit_0_009.png" --resize 9x7 -o image.npy
    works ort-tensor "$MODELS_DIR/images/digit_7_008.png" --resize 9x7 -o other_image.npy
    works ort-tensor "$FX/x.npy" --scale 0.125 --reshape 6 -o sound.npy
    works ort-tensor "$FX/x.npy" --scale -0.0625 --reshape 6 -o other_sound.npy
}

# back FROM FILE HOW OPTIONS...: FILE, read with OPTIONS, is what FROM was.
back() {
    local from=$1 file=$2 how=$3 tolerance=0
    shift 3
    works ort-tensor "$file" "$@" -o back.npy
    [ "$how" = exact ] || case $from in *image*) tolerance=90 ;; *) tolerance=1e-4 ;; esac
    works ort-tensor back.npy --compare "$from" --rtol 0 --atol $tolerance
}

@test "every output format holds one record that reads back, or is refused by name" {
    make_records
    local ending many kind how name options
    while read -r ending many kind how name options; do
        [ -n "$ending" ] || continue
        if [ "$many" = read ]; then
            fails 2 "$ending images are read, not written" ort-tensor image.npy -o "t.$ending"
            fails 2 "$ending images are read, not written" ort-run "$FX/chain.onnx" array.npy -o "t.$ending"
            continue
        fi
        works ort-tensor $kind.npy -o "t.$ending"
        # shellcheck disable=SC2086
        back $kind.npy "t.$ending" "$how" $options || { echo "$ending"; return 1; }
        if [ "$name" != - ]; then # the same by --format, whatever the name
            works ort-tensor $kind.npy --format "$name" -o named.dat
            cmp named.dat "t.$ending"
            works sh -c "ort-tensor $kind.npy --format $name -o - | cat >piped"
            cmp piped "t.$ending"
        fi
        [ "$kind" = array ] || continue
        works ort-run "$FX/chain.onnx" array.npy -o want.npy
        works ort-run "$FX/chain.onnx" array.npy -o "r.$ending"
        # shellcheck disable=SC2086
        back want.npy "r.$ending" "$how" $options || { echo "ort-run: $ending"; return 1; }
        [ "$name" = - ] || works ort-run "$FX/chain.onnx" array.npy --format "$name" -o named.dat
        [ "$name" = - ] || cmp named.dat "r.$ending"
    done <<<"$OUTPUTS"
}

@test "several records are files with numbers of ort-tensor, and of ort-run what the table says" {
    make_records
    local ending many kind how name options
    works ort-run "$FX/chain.onnx" array.npy -o one.npy
    works ort-run "$FX/chain.onnx" other_array.npy -o two.npy
    works ort-tensor one.npy two.npy --stack -o stack.npy
    works ort-run "$FX/chain.onnx" array.npy other_array.npy --concat 0 -o rows.npy
    while read -r ending many kind how name options; do
        [ -n "$ending" ] && [ "$many" != read ] || continue
        works ort-tensor $kind.npy other_$kind.npy -o "t.$ending"
        # shellcheck disable=SC2086
        back $kind.npy "t.$ending" "$how" $options || { echo "$ending"; return 1; }
        # shellcheck disable=SC2086
        back other_$kind.npy "t_1.$ending" "$how" $options || { echo "$ending, second"; return 1; }
        if [ "$many" = no ]; then
            fails 2 "can't hold the records of several runs; write .npz" \
                ort-run "$FX/chain.onnx" array.npy other_array.npy -o "r.$ending"
            continue
        fi
        works ort-run "$FX/chain.onnx" array.npy other_array.npy -o "r.$ending"
        case $many in
            # shellcheck disable=SC2086
            stack) back stack.npy "r.$ending" exact ${options/2x3/2x2x3} ;;
            # shellcheck disable=SC2086
            rows) back rows.npy "r.$ending" exact $options ;;
            lines)
                [ "$(wc -l <"r.$ending")" -eq 2 ]
                works ort-tensor --stream "r.$ending" -o back.npy
                works ort-tensor back_1.npy --compare two.npy --rtol 0 --atol 0
                works ort-tensor back.npy --compare one.npy --rtol 0 --atol 0
                ;;
        esac || { echo "ort-run: $ending"; return 1; }
    done <<<"$OUTPUTS"
}

@test "records through a pipe come back one by one, in every format that says where they end" {
    make_records
    local ending many kind how name options
    while read -r ending many kind how name options; do
        [ -n "$ending" ] && [ "$many" != read ] && [ "$name" != - ] || continue
        rm -f back*.npy
        if [ "$ending" = pb ]; then
            fails 5 "several messages|more data" sh -c \
                "ort-tensor $kind.npy other_$kind.npy --format pb -o - | ort-tensor --from pb --stream"
            continue
        fi
        works sh -c "ort-tensor $kind.npy other_$kind.npy --format $name -o - |
            ort-tensor --stream $options -o back.npy"
        if [ "$many" = rows ]; then # a table goes on
            works ort-tensor back.npy --print
            has 4x3
            continue
        fi
        [ -e back_1.npy ] || { echo "$ending: one record"; return 1; }
    done <<<"$OUTPUTS"
}

@test "every input format reads the same by file, by standard input and by a pipe in pieces" {
    make_inputs
    local ending many options size
    while read -r ending many options; do
        [ -n "$ending" ] || continue
        [ -e "a.$ending" ] || { echo "# no Pillow to write .$ending" >&3; continue; }
        # shellcheck disable=SC2086
        works ort-tensor "a.$ending" $options --print --items 1000
        local want=$output
        works sh -c "ort-tensor - $options --print --items 1000 <a.$ending"
        [ "$output" = "$want" ] || { echo "$ending by '-': $output, not $want"; return 1; }
        works sh -c "cat a.$ending | ort-tensor $options --print --items 1000"
        [ "$output" = "$want" ] || { echo "$ending by a pipe: $output, not $want"; return 1; }
        works sh -c "ort-tensor --stream a.$ending $options --print --items 1000"
        [ "$output" = "$want" ] || { echo "$ending with --stream: $output, not $want"; return 1; }
        for size in 1 7 65536; do
            # shellcheck disable=SC2086
            output=$(pieces $size "a.$ending" | ort-tensor --stream $options --print --items 1000)
            [ "$output" = "$want" ] || { echo "$ending by $size bytes: $output"; return 1; }
        done
    done <<<"$INPUTS"
}

@test "files one after another are records, or are refused: none is lost" {
    make_inputs
    local ending many options size a b
    while read -r ending many options; do
        [ -n "$ending" ] && [ -e "a.$ending" ] || continue
        # shellcheck disable=SC2086
        a=$(ort-tensor "a.$ending" $options --print --items 1000)
        # shellcheck disable=SC2086
        b=$(ort-tensor "b.$ending" $options --print --items 1000)
        [ "$a" != "$b" ]
        cat "a.$ending" "b.$ending" "a.$ending" >"three.$ending"
        if [ "$many" = one ]; then
            case $ending in
                csv) works ort-tensor three.csv --print && has 6x3 && continue ;; # a table goes on
                tsv) works ort-tensor three.tsv --print && has 6x3 && continue ;;
            esac
            fails 5 "one after another|more data follows|several messages" \
                ort-tensor "three.$ending" --print
            fails 5 "more data follows|several messages" sh -c \
                "cat three.$ending | ort-tensor --stream --print"
            continue
        fi
        for size in 1 7 65536; do
            # shellcheck disable=SC2086
            output=$(pieces $size "three.$ending" |
                ort-tensor --stream $options --print --items 1000)
            [ "$output" = "$a"$'\n'"$b"$'\n'"$a" ] || { echo "$ending by $size: $output"; return 1; }
        done
        # shellcheck disable=SC2086
        output=$(ort-tensor --stream "three.$ending" $options --print --items 1000)
        [ "$output" = "$a"$'\n'"$b"$'\n'"$a" ] || { echo "$ending as a file: $output"; return 1; }
        # shellcheck disable=SC2086
        run --separate-stderr ort-tensor "three.$ending" $options --print
        [ "$status" -eq 5 ] || { echo "$ending: three records of a file: $status"; return 1; }
    done <<<"$INPUTS"
}

@test "a picture of a camera keeps the previews behind it to itself" {
    local image=$MODELS_DIR/images/photo.png
    works ort-tensor "$image" --resize 20 -o main.jpg
    works ort-tensor "$image" --resize 8 -o preview.jpg
    python3 - <<'PY'
import struct
main, preview = open("main.jpg", "rb").read(), open("preview.jpg", "rb").read()
def index(offset):  # CIPA DC-007: version, number of images, list of entries
    entries = struct.pack("<IIIHH", 0x30000, 0, 0, 0, 0)
    entries += struct.pack("<IIIHH", 0x10001, len(preview), offset, 0, 0)
    ifd = struct.pack("<H", 3) + struct.pack("<HHI4s", 0xb000, 7, 4, b"0100")
    ifd += struct.pack("<HHII", 0xb001, 4, 1, 2) + struct.pack("<HHII", 0xb002, 7, 32, 50)
    return b"MPF\0" + struct.pack("<2sHI", b"II", 42, 8) + ifd + bytes(4) + entries
size = len(index(0)) + 2
offset = len(main) + size + 2 - (2 + 4 + 4)
segment = b"\xff\xe2" + struct.pack(">H", size) + index(offset)
open("camera.jpg", "wb").write(main[:2] + segment + main[2:] + preview)
PY
    works ort-tensor main.jpg --print
    local want=$output
    cat camera.jpg preview.jpg >both.jpg
    run --separate-stderr ort-tensor --stream both.jpg --print
    [ "$status" -eq 0 ]
    [ "$(grep -c uint8 <<<"$output")" -eq 2 ]
    [[ $output == "$want"* ]]
    cat main.jpg main.jpg >two.jpg
    fails 5 "two.jpg: more data follows the first record; --stream" ort-tensor two.jpg --print
}

@test "a model is read the same by file, by standard input and by a pipe in pieces" {
    local size
    works ort-run "$MODELS_DIR/digits.onnx" --random 1 --hash
    local want=$output
    works sh -c "ort-run - --random 1 --hash <$MODELS_DIR/digits.onnx"
    [ "$output" = "$want" ]
    for size in 7 65536; do
        output=$(pieces $size "$MODELS_DIR/digits.onnx" | ort-run - --random 1 --hash)
        [ "$output" = "$want" ]
    done
    output=$(pieces 1 "$FX/add.onnx" | ort-run - --random 1 --hash)
    [ "$output" = "$(ort-run "$FX/add.onnx" --random 1 --hash)" ]
}

@test "sound and plain bytes come through standard input as from a file" {
    make_inputs
    works ort-tensor a.wav --mono --rate 16000 -o want.npy
    works sh -c "cat a.wav | ort-tensor --mono --rate 16000 -o got.npy"
    same want.npy got.npy
    works sh -c "printf abc | ort-tensor --bytes --print"
    has uint8 "97 98 99"
    printf 'Paris [1, 2]' >text.txt
    works ort-tensor --bytes text.txt -o want.npy
    works sh -c "ort-tensor --bytes -o got.npy <text.txt"
    same want.npy got.npy
    works sh -c "ort-tensor want.npy | ort-tensor --bytes -o -"
    [ "$output" = 'Paris [1, 2]' ]
    : >empty
    works sh -c "ort-tensor --bytes --print <empty"
    has "uint8 0"
}

@test "--keep-going leaves out what can't be read, names it, and ends with 5" {
    make_inputs
    head -c 60 a.jpg >bad.jpg
    fails 5 bad.jpg ort-tensor a.jpg bad.jpg b.jpg --resize 4x4 --stack -o all.npy
    run --separate-stderr ort-tensor a.jpg bad.jpg b.jpg missing.png --keep-going --resize 4x4 \
        --stack -o all.npy
    [ "$status" -eq 5 ]
    [[ ${stderr_lines[-1]} == "ort-tensor: 2 left out, "*": bad.jpg; missing.png" ]]
    works ort-tensor all.npy --print
    has 2x4x4x3
    cat a.png bad.jpg >mixed
    head -c 50 a.png | cat a.png - b.png >cut
    run --separate-stderr sh -c "ort-tensor --stream --keep-going --print <cut"
    [ "$status" -eq 5 ]
    [[ $stderr == *"standard input, record 2"* ]]
    # what can't be written ends it all the same
    run --separate-stderr sh -c "ort-tensor a.jpg b.jpg --keep-going >/dev/full"
    [ "$status" -eq 5 ]
    [[ $stderr != *"left out"* ]]
}

@test "a record is printed as soon as it is there" {
    mkfifo slow
    (cat "$FX/x.npy"; sleep 3; cat "$FX/y.npy") >slow &
    ort-tensor --top 1 <slow >seen.txt &
    local reader=$! i
    for i in 1 2 3 4 5 6 7 8 9 10; do
        [ -s seen.txt ] && break
        sleep 0.2
    done
    [ -s seen.txt ]
    kill -0 $reader # it still waits for the second
    wait
    [ "$(wc -l <seen.txt)" -gt 1 ]
}

@test "windows of sound become one batch, and a second tool in a pipe waits for one record only" {
    make_inputs
    python3 - <<'PY'
import wave
with wave.open("long.wav", "wb") as w:
    w.setnchannels(1); w.setsampwidth(2); w.setframerate(8000)
    w.writeframes(bytes(2 * 40000))
PY
    works ort-tensor long.wav --chunk 100 --stack -o windows.npy
    works ort-tensor windows.npy --print
    has 400x100
    [ ! -e windows_1.npy ]
    mkfifo slow
    (ort-tensor "$FX/x.npy"; sleep 3; ort-tensor "$FX/y.npy") >slow &
    ort-tensor --scale 2 <slow | ort-tensor --print >seen.txt &
    local i
    for i in 1 2 3 4 5 6 7 8 9 10; do
        [ -s seen.txt ] && break
        sleep 0.2
    done
    [ -s seen.txt ]
    [ "$(grep -c float seen.txt)" -eq 1 ]
    wait
    [ "$(grep -c float seen.txt)" -eq 2 ]
}

@test "a bad -o is found before anything is read or run" {
    fails 2 "t\.gif: the name doesn't tell a format" ort-tensor "$FX/x.npy" -o t.gif
    fails 2 "t\.tif: tif images are read, not written" ort-tensor "$FX/x.npy" -o t.tif
    fails 5 "folder 'nowhere'" ort-tensor no_such_file.npy -o nowhere/t.npy
    fails 2 "bogus" ort-tensor "$FX/x.npy" --format bogus
    works ort-tensor "$FX/x.npy" -o /dev/null
    works ort-tensor "$FX/x.npy" "$FX/y.npy" -o /dev/null
    works ort-tensor "$FX/x.npy" --format npy -o x.dat
    same x.dat "$FX/x.npy"
    works ort-tensor "$MODELS_DIR/images/photo.png" --format jpeg -o - --force
    run sh -c "ort-tensor $MODELS_DIR/images/photo.png --format jpeg -o - | head -c 2 | od -An -tx1"
    [ "$output" = " ff d8" ]
}
@test "names of files go with their records through pipes and batches" {
    make_inputs
    cp a.png first.png
    cp b.png second.png
    works sh -c "ort-tensor first.png second.png --resize 8x8 --gray --float |
        ort-run $MODELS_DIR/digits.onnx --stream | ort-tensor --top 1"
    [[ ${lines[0]} == first.png$'\t'* ]]
    [[ ${lines[1]} == second.png$'\t'* ]]
    works sh -c "ort-tensor first.png second.png --resize 8x8 --gray --float --stack |
        ort-run $MODELS_DIR/digits.onnx - | ort-tensor --top 1"
    [[ ${lines[0]} == first.png$'\t'* ]]
    [[ ${lines[1]} == second.png$'\t'* ]]
    works sh -c "ort-tensor first.png second.png --resize 8x8 --gray --float --stack |
        ort-run $MODELS_DIR/digits.onnx - | ort-tensor --format csv --names -o -"
    [[ ${lines[0]} == file,* ]]
    [[ ${lines[2]} == second.png,* ]]
    works sh -c "ort-tensor first.png | ort-tensor --print"
    [[ $output != *first.png* ]]
}


@test "records of several runs make one file that every reader of its format understands" {
    local python=$ROOT/build/venv/bin/python format
    cat "$FX/x.npy" "$FX/y.npy" "$FX/x.npy" >s.npy
    for format in npy npz pb safetensors json csv raw; do
        works ort-run "$FX/chain.onnx" --stream s.npy -o "o.$format"
        works sh -c "ort-run $FX/chain.onnx --stream -o p.$format <s.npy"
        cmp "o.$format" "p.$format"
        works ort-run "$FX/chain.onnx" "$FX/x.npy" "$FX/y.npy" "$FX/x.npy" -o "q.$format"
        if [ $format = raw ]; then
            works ort-tensor o.raw --dtype float --dims 3x2x3 --print
        else
            works ort-tensor "o.$format" --print
        fi
        if [ $format = csv ]; then has 6x3; else has 3x2x3; fi
        same "o.$format" "q.$format" || [ $format = raw ]
    done
    ort-run "$FX/chain.onnx" "$FX/x.npy" -o one.npy
    works ort-run "$FX/chain.onnx" --stream s.npy --concat 1 -o wide.npy
    works ort-tensor wide.npy --print
    has 2x9
    works ort-tensor wide.npy --slice :,0:3 -o first.npy
    same first.npy one.npy
    fails 5 "no axis 7" ort-run "$FX/chain.onnx" --stream s.npy --concat 7 -o bad.npy
    if [ -x "$python" ]; then
        "$python" -c 'import numpy as n; a = n.load("o.npy"); b = n.load("o.npz")["out"]
assert a.shape == (3, 2, 3) and (a == b).all() and (a[0] == a[2]).all() and (a[0] != a[1]).any()'
    fi
}

@test "records of different shapes get numbers in their names, or are refused with the remedy" {
    works ort-tensor "$FX/batch5.npy" --slice 0:2 -o two.npy
    for format in npz safetensors json; do
        works ort-run "$FX/batch.onnx" "$FX/batch5.npy" two.npy -o "o.$format"
        works ort-tensor "o.$format" --print
        has out.0000 out.0001 5x3 2x3
    done
    for format in npy pb raw; do
        fails 5 "\.npz, \.safetensors and \.json hold them" \
            ort-run "$FX/batch.onnx" "$FX/batch5.npy" two.npy -o "o2.$format"
    done
    works ort-run "$FX/batch.onnx" "$FX/batch5.npy" two.npy --concat 0 -o all.npy
    works ort-tensor all.npy --print
    has 7x3
    works ort-run "$FX/batch.onnx" "$FX/batch5.npy" two.npy -o all.csv
    [ "$(wc -l <all.csv)" -eq 7 ]
    fails 2 "one image can't hold" ort-run "$FX/batch.onnx" "$FX/batch5.npy" two.npy -o o.png
}

@test "ort-run finds a bad -o before the run, and /dev/null takes anything" {
    fails 5 "folder 'nowhere'" ort-run "$FX/chain.onnx" "$FX/x.npy" -o nowhere/o.npy
    fails 2 "doesn't tell a format" ort-run "$FX/chain.onnx" "$FX/x.npy" -o o.gif
    works ort-run "$FX/chain.onnx" "$FX/x.npy" -o /dev/null
    works ort-run "$FX/chain.onnx" "$FX/x.npy" "$FX/y.npy" -o /dev/null
    works ort-run "$FX/chain.onnx" "$FX/x.npy" --format csv -o o.npy
    [ "$(wc -l <o.npy)" -eq 2 ]
}

@test "literal inputs take the model's type and rank" {
    works ort-run "$FX/chain.onnx" -i 'x=[[1,-2,3],[-4,5,-6]]' -o o.npy
    works ort-run "$FX/chain.onnx" "$FX/x.npy" -o want.npy
    same o.npy want.npy
    printf '{"x": [[1,-2,3],[-4,5,-6]]}' >x.json
    works ort-run "$FX/chain.onnx" x.json -o o.npy
    same o.npy want.npy
    fails 5 "nix" ort-run "$FX/chain.onnx" -i x=nix
}

@test "a set whose values carry no names, or others, is read by the numbers of its files" {
    mkdir set
    works ort-tensor "$FX/x.npy" --name nobody -o set/input_0.pb
    works ort-tensor "$FX/y.npy" -o set/input_1.pb
    works ort-run "$FX/add.onnx" "$FX/xy.npz" -o sum.npy
    works ort-tensor sum.npy -o set/output_0.pb
    works ort-run "$FX/add.onnx" -i set --expect set
    cp set/output_0.pb set/output_4.pb
    fails 5 "number 4 of 1 outputs" ort-run "$FX/add.onnx" -i set --expect set
    rm set/output_4.pb
    cp set/input_1.pb set/input_2.pb
    fails 5 "number 2 of 2 inputs" ort-run "$FX/add.onnx" -i set --expect set
}

@test "JSON has one form for each kind of value, and --plain the other" {
    local python=python3
    works ort-tensor "$FX/x.npy" --cast int64 -o i.json
    works ort-tensor "$FX/x.npy" -o f.json
    $python -c 'import json
for name, t in (("i", "int64"), ("f", "float")):
    d = json.load(open(name + ".json")); assert d["dtype"] == t and d["shape"] == [2, 3] and d["data"]'
    works ort-run "$FX/chain.onnx" "$FX/x.npy" --plain -o p.json
    works ort-tensor "$FX/x.npy" --cast int64 --plain -o i.json
    $python -c 'import json
assert json.load(open("i.json")) == [[1, -2, 3], [-4, 5, -6]]
assert isinstance(json.load(open("p.json"))["out"][0][0], float)'
    works ort-run "$FX/chain.onnx" --random 1 --compare "$FX/chain.onnx" --json
    [[ $output != *'\/'* ]]
}

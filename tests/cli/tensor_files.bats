# Files of tensors as hostile and careless programs write them: each number that the type can't hold is
# refused, no small file costs seconds or gigabytes, padding between records is passed over.
load helper

json() { printf '%s\n' "$1" >x.json; }

@test "a JSON number that its integer type can't hold is refused, however it is written" {
    for x in '"uint8" 300.0' '"uint8" "300"' '"int32" 1e30' '"uint64" -5' '"uint64" "-5"' \
        '"int64" 9.3e18' '"int4" 9.0' '"int8" "1.5"' '"int64" 9223372036854775808'; do
        json "{\"dtype\": ${x% *}, \"data\": [${x#* }]}"
        fails 5 "x\.json: element 0, .*, is no u?int" ort-tensor x.json -o y.npy
    done
    json '{"dtype": "uint64", "data": [18446744073709551615, 1e19, "7", -0]}'
    works ort-tensor x.json -o - --format json
    has '[18446744073709551615, 10000000000000000000, 7, 0]'
    json '{"dtype": "int4", "data": [7.0, -8, "3"]}'
    works ort-tensor x.json -o - --format json
    has '[7, -8, 3]'
}

@test "an integer of JSON beyond 64 bits is refused, where it would become another float" {
    json '[100000000000000000000]'
    fails 5 "beyond 64 bits.*1e20" ort-tensor x.json -o y.npy
    json '[-100000000000000000000]'
    fails 5 "beyond 64 bits" ort-tensor x.json -o y.npy
}

@test "a shape in JSON that claims more elements than there are is no lack of memory" {
    json '{"dtype": "float", "shape": [40000000000000], "data": []}'
    fails 5 "there are 0 elements, the shape has 40000000000000" ort-tensor x.json -o y.npy
}

@test "null in JSON is an absent value, alone and in a sequence" {
    for x in null '{"sequence": [null]}'; do
        json "$x"
        for f in pb npz json; do
            works ort-tensor x.json -o "y.$f"
            works ort-tensor "y.$f" -o - --format json
            [ "$output" = "$x" ]
        done
    done
    json null
    works ort-tensor x.json --print
    [ "$output" = absent ]
    fails 5 "absent, which \.csv can't say" ort-tensor x.json -o y.csv
    json '{"sequence": [[1], null]}'
    fails 5 "several kinds" ort-tensor x.json -o y.pb
}

# npy FILE DESCR SHAPE: a header without data.
npy() {
    python3 - "$@" <<'PY'
import struct, sys
head = f"{{'descr': '{sys.argv[2]}', 'fortran_order': False, 'shape': {sys.argv[3]}, }}".encode()
head += b' ' * (-(10 + len(head) + 1) % 64) + b'\n'
open(sys.argv[1], 'wb').write(b'\x93NUMPY\x01\0' + struct.pack('<H', len(head)) + head)
PY
}

@test "rows without elements aren't written one by one" {
    npy x.npy '<f4' '(1099511627776, 0)'
    fails 5 "1099511627776 rows without an element.*\.npy" timeout 10 ort-tensor x.npy -o y.json
    fails 5 "1099511627776x0: its rows have no columns" timeout 10 ort-tensor x.npy -o y.csv
    npy x.npy '<f4' '(3, 0)'
    works ort-tensor x.npy -o - --format json
    has '[[], [], []]'
}

@test "strings of no bytes are as many as a small file may claim" {
    npy x.npy '<U0' '(2000000000,)'
    fails 5 "claims 2000000000 strings of no bytes" timeout 10 ort-tensor x.npy -o y.npz
    npy x.npy '|S0' '(3,)'
    works ort-tensor x.npy -o y.npz
}

@test "maps with bytes that are no text are refused by .csv" {
    python3 - <<'PY'

tensor = b'\x08\x01\x10\x08\x32\x02\xff\xfe'                    # dims [1], string, string_data
sequence = b'\x10\x01\x1a' + bytes([len(tensor)]) + tensor
open('x.pb', 'wb').write(b'\x10\x08\x22\x01k\x2a' + bytes([len(sequence)]) + sequence)
PY
    works ort-tensor x.pb -o y.pb
    fails 5 "is not UTF-8 text, which \.csv needs" ort-tensor x.pb -o y.csv
}

@test "bytes that are no UTF-8 are refused by .npy: overlong forms, halves of pairs, too large codes" {
    for bytes in '\xff\xfe' '\xe0\x80\x80' '\xed\xa0\x80' '\xf4\x90\x80\x80'; do
        printf "\x08\x01\x10\x08\x32\x0$(printf "$bytes" | wc -c)$bytes" >x.pb # string[1]
        fails 5 "string 0 is not UTF-8, which \.npy needs" ort-tensor x.pb -o y.npy
    done
}

# A picture of 4x4 pixels, in the format that the name tells.
picture() { printf 'P6\n4 4\n255\n%048d' 0 >p.ppm && works ort-tensor p.ppm -o "$1"; }

@test "zeros and ones that fill up blocks behind pictures are passed over, in files and streams" {
    picture a.jpg
    for fill in 000 377; do
        for n in 1 4 64; do
            head -c "$n" /dev/zero | tr '\0' "\\$fill" >fill
            cat a.jpg fill a.jpg fill >two.jpg
            works sh -c "ort-tensor --stack - -o y.npy <two.jpg && ort-tensor y.npy --print"
            has 2x4x4x3
            fails 5 "more data follows the first" ort-tensor two.jpg -o z.npy
            cat a.jpg fill >one.jpg
            works ort-tensor one.jpg -o y.npy
        done
    done
    { cat a.jpg && printf '\0\0\0\030ftypmp42 a film'; } >film.jpg
    works ort-tensor film.jpg -o y.npy
    fails 5 "record 2: .*name tell its format" sh -c "exec ort-tensor --stack - -o z.npy <film.jpg"
}

@test "an index of previews that repeats itself doesn't hold a picture up" {
    picture a.jpg
    python3 - <<'PY'
import struct
n = 2500
list_at = 10 + 12 * n
body = b'MM\0*' + struct.pack('>IH', 8, n)
body += struct.pack('>HHII', 0xb002, 7, 65526 - list_at, list_at) * n
segment = b'MPF\0' + body.ljust(65526, b'\0')
picture = open('a.jpg', 'rb').read()
open('x.jpg', 'wb').write(picture[:2] + (b'\xff\xe2' + struct.pack('>H', len(segment) + 2) + segment) * 160
                          + picture[2:])
PY
    works timeout 5 ort-tensor x.jpg -o y.npy
}

@test "pages of a TIFF that lie on each other don't hold a reader up" {
    python3 - <<'PY'
import struct
strips = 500000
fields = [(256, 1, 1), (257, 1, 1), (258, 1, 8), (259, 1, 1), (262, 1, 1), (277, 1, 1), (278, 1, 1),
          (273, strips, 122), (279, strips, 122)]
with open('x.tif', 'wb') as f:
    f.write(b'II*\0' + struct.pack('<IH', 8, len(fields)))
    for tag, count, value in fields:
        f.write(struct.pack('<HHII', tag, 4, count, value))
    f.write(struct.pack('<I', 8) + struct.pack('<I', 8) * strips)
PY
    fails 5 "4095 pages|damaged" timeout 5 ort-tensor x.tif -o y.npz
    fails 5 "4095 pages|damaged" timeout 5 sh -c "exec ort-tensor - -o y.npz <x.tif"
}

@test "a table of many columns with long names is read at once" {
    python3 - <<'PY'
name = 'n' * 300
with open('x.csv', 'w') as f:
    f.write(','.join(name + str(i) for i in range(16000)) + '\n')
    f.write(','.join('x' if i % 2 else '1' for i in range(16000)) + '\n')
PY
    works timeout 5 ort-tensor x.csv -o y.npz
    printf 'a,b,a\n1,x,2\n' >x.csv
    fails 5 "column 3: 'a' is there twice" ort-tensor x.csv -o z.npz
    printf 'a,b,a\n1,x,2\n' >x.csv
    fails 5 "'a' is there twice" ort-tensor x.csv --id 1 -o z.npz
}

@test "a cell whose number opens with no digit, sign or space is refused" {
    printf 'a,b\n\v-5,6\n' >x.csv
    fails 5 "line 2, column 1 'a'" ort-tensor x.csv --dtype uint64 -o y.npy
}

@test "semicolons separate numbers with decimal commas, which are refused with a remedy" {
    printf '1,5;2,5\n3,5;4,5\n' >x.csv
    fails 5 "'3,5' is no float.*points are: tr , \." ort-run "$FX/chain.onnx" x.csv -o y.npy
    printf '1,5,2\n' >x.csv
    works ort-tensor x.csv --print
    has 1x3
}

@test "a folder in place of a file of a test set is told" {
    mkdir -p set/input_0.json
    fails 5 "set/input_0\.json: can't read: Is a directory" ort-run "$FX/chain.onnx" -i set -o y.npy
}

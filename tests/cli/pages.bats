# Files of several pages, as scanners and fax machines write them.
load helper

# tiff FILE PAGE...: a page of 3x2 pixels each, whose first byte is the number; "preview:N" is marked as one;
# the directories lie behind all pixels, "loop" leads back to the first.
tiff() {
    python3 - "$@" <<'PY'
import struct, sys
pages, loop = [p for p in sys.argv[2:] if p != "loop"], "loop" in sys.argv
pixels = b"".join(bytes(range(n, n + 18)) for n in (int(p.split(":")[-1]) for p in pages))
first, size = 8 + len(pixels), 2 + 10 * 12 + 4 + 2
data = struct.pack("<2sHI", b"II", 42, first) + pixels
for i, page in enumerate(pages):
    entries = [(254, 4, 1, int(page.startswith("preview"))), (256, 3, 1, 3), (257, 3, 1, 2), (258, 3, 1, 8),
               (259, 3, 1, 1), (262, 3, 1, 2), (273, 4, 1, 8 + 18 * i), (277, 3, 1, 3), (278, 3, 1, 2),
               (279, 4, 1, 18)]
    last = i + 1 == len(pages)
    data += struct.pack("<H", 10) + b"".join(struct.pack("<HHII", *e) for e in entries)
    data += struct.pack("<I", (first if loop else 0) if last else first + size * (i + 1)) + bytes(0 if last else 2)
open(sys.argv[1], "wb").write(data)
PY
}

@test "every page of a TIFF file is a value, previews left out" {
    tiff one.tif 5
    tiff three.tif 5 50 100
    tiff thumbs.tif 5 preview:9 50 preview:7
    works ort-tensor one.tif --print
    has "uint8 2x3x3"
    [[ $output != *page* ]]
    works ort-tensor three.tif --print
    has "page1: uint8 2x3x3" "page2: uint8 2x3x3" "page3: uint8 2x3x3"
    works sh -c "cat three.tif | ort-tensor --select page3 -o third.npy"
    works ort-tensor third.npy --slice 0,0,: --print
    has "100 101 102"
    works ort-tensor three.tif --select page1 -o first.npy
    works ort-tensor one.tif --compare first.npy
    works ort-tensor thumbs.tif --print
    has page1 page2
    [[ $output != *page3* ]]
    works ort-tensor three.tif --float -o all.npz
    works ort-tensor all.npz --print
    has "page2: float 1x3x2x3"
    fails 5 "there are 3" ort-tensor three.tif -o out.png
}

@test "pages without an end, or too many pixels of them, are refused" {
    tiff loop.tif 5 50 loop
    fails 5 "more than 4095 pages" ort-tensor loop.tif --print
    tiff one.tif 5
    tiff three.tif 5 50 100
    cat three.tif one.tif >both.tif
    fails 5 "more data follows" ort-tensor both.tif --print
    head -c 200 three.tif >cut.tif
    fails 5 "damaged or not complete" ort-tensor cut.tif --print
}

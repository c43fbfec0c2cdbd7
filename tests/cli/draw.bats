# ort-draw: boxes, masks, maps and curves; the way back from a network's input to the photograph.
load helper

# canvas NAME HEIGHT WIDTH TOP LEFT BOTTOM RIGHT: a black PPM with a white rectangle.
canvas() {
    python3 - "$@" <<'PY'
import sys
name, (h, w, t, l, b, r) = sys.argv[1], map(int, sys.argv[2:])
rows = bytes(255 if t <= y < b and l <= x < r else 0 for y in range(h) for x in range(w) for c in "rgb")
open(name, "wb").write(b"P6 %d %d 255\n" % (w, h) + rows)
PY
}

# boxes FILE: a record of corners, scores and classes: what the lines of stdin say.
boxes() {
    python3 -c '
import json, sys
rows = [list(map(float, line.split())) for line in sys.stdin if line.strip()]
print(json.dumps({"boxes": {"dtype": "float", "shape": [1, len(rows), 6], "data": rows}}))' >"$1"
}

# What lies where the white rectangle came to lie in the letterbox, as one box of corners.json.
find_white() {
    ort-tensor "$1" --format json -o - | python3 -c '
import json, sys
v = json.load(sys.stdin)
while isinstance(v, dict):
    v = v.get("data") or next(iter(v.values()))
def flat(v):
    return sum(v) / len(v) if not isinstance(v[0], list) else None
rows = v
ys = [y for y, row in enumerate(rows) if any(p[0] > 127 for p in row)]
xs = [x for x in range(len(rows[0])) if any(row[x][0] > 127 for row in rows)]
print(xs[0], ys[0], xs[-1] + 1, ys[-1] + 1, 0.9, 0)' | boxes corners.json
}

@test "a box found in a letterbox comes back to the photograph within a pixel" {
    local size place
    for size in "100 160 20 30 70 110" "211 97 40 11 160 83" "64 64 8 16 56 40"; do
        for place in 416 416x320 416+0+0 416x480+100+0; do
            [ "$place" != 416x480+100+0 ] || [ "${size%% *}" = 100 ] || continue
            # shellcheck disable=SC2086
            canvas photo.ppm $size
            works ort-tensor photo.ppm --letterbox "$place" --fill 0 -o boxed.npy
            find_white boxed.npy
            works ort-draw photo.ppm -i corners.json --detect corners --letterbox "$place"
            echo "$size $output" | python3 -c '
import sys
head, row = sys.stdin.read().splitlines()
h, w, t, l, b, r = map(int, head.split()[:6])
left, top, right, bottom = map(float, row.split(",")[4:8])
worst = max(abs(left - l), abs(top - t), abs(right - r), abs(bottom - b))
assert worst <= 1, (head, row, worst)'
        done
    done
}

@test "a letterbox has the size asked for, and its fill around the picture" {
    canvas wide.ppm 50 100 0 0 50 100
    works ort-tensor wide.ppm --letterbox 64 --fill 114 --slice '0,0' --print
    has "uint8 3" "114 114 114"
    works ort-tensor wide.ppm --letterbox 64 --fill 114 --slice '32,0' --print
    has "255 255 255"
    works ort-tensor wide.ppm --letterbox 64+0+0 --slice '0,0' --print
    has "255 255 255"
    fails 5 'place inside the canvas' ort-tensor wide.ppm --letterbox 64x100+40+0 -o x.npy
}

@test "of boxes that overlap the best of each class stays" {
    boxes five.json <<'TXT'
10 10 50 50 0.8 0
12 12 52 52 0.9 0
12 12 52 52 0.7 1
100 100 140 140 0.6 0
10 10 50 50 0.4 0
TXT
    works ort-draw -i five.json --detect corners --stretch 200
    [ "$(wc -l <<<"$output")" -eq 4 ]
    [[ ${lines[1]} == ",0,0,0.9000,12.0,12.0,52.0,52.0," ]]
    [[ ${lines[2]} == ",1,1,0.7000,"* ]]
    [[ ${lines[3]} == ",0,0,0.6000,100.0,"* ]]
    works ort-draw -i five.json --detect corners --stretch 200 --across-classes
    [ "$(wc -l <<<"$output")" -eq 3 ]
    works ort-draw -i five.json --detect corners --stretch 200 --iou 1 --score 0
    [ "$(wc -l <<<"$output")" -eq 6 ]
    works ort-draw -i five.json --detect corners --stretch 200 --most 1
    [ "$(wc -l <<<"$output")" -eq 2 ]
}

@test "boxes end with the picture, and what isn't a number is no box" {
    canvas photo.ppm 100 200 0 0 1 1
    boxes odd.json <<'TXT'
-50 -50 60 60 0.9 0
150 50 900 900 0.8 1
300 300 400 400 0.7 0
TXT
    works ort-draw photo.ppm -i odd.json --detect corners --stretch 100x200
    [[ ${lines[1]} == "photo.ppm,0,0,0.9000,0.0,0.0,60.0,60.0," ]]
    [[ ${lines[2]} == "photo.ppm,1,1,0.8000,150.0,50.0,200.0,100.0," ]]
    [ "${#lines[@]}" -eq 3 ]
    printf '%s' '{"b":{"dtype":"float","shape":[1,2,6],"data":[["NaN",0,9,9,0.9,0],[0,0,9,9,"NaN",0]]}}' >nan.json
    works ort-draw photo.ppm -i nan.json --detect corners --stretch 100x200
    [ "${#lines[@]}" -eq 1 ]
}

@test "boxes are drawn in their colours, with names, and listed as JSON" {
    canvas photo.ppm 100 200 0 0 1 1
    echo '20 30 120 90 0.9 1' | boxes one.json
    printf 'cat\n"dog", old\n' >names.txt
    works ort-draw photo.ppm -i one.json --detect corners --stretch 100x200 --labels names.txt -o out.png
    [[ ${lines[1]} == 'photo.ppm,1,"""dog"", old",0.9000,20.0,30.0,120.0,90.0,' ]]
    works ort-tensor out.png --print
    has "uint8 100x200x3"
    # the frame is 2 pixels wide, around the edge: one of them inside
    works ort-tensor out.png --slice '60,20' --print
    has "230 25 75"
    works ort-tensor out.png --slice '60,60' --print
    has "0 0 0"
    works ort-draw photo.ppm -i one.json --detect corners --stretch 100x200 --labels - -o dash.png <names.txt
    cmp out.png dash.png
    fails 2 "can't both come from stdin" ort-draw photo.ppm --detect corners --stretch 100x200 --labels - <names.txt
    works ort-draw photo.ppm -i one.json --detect corners --stretch 100x200 --labels names.txt --json
    echo "$output" | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert r["schema"] == "ort-draw/1" and r["width"] == 200 and r["height"] == 100, r
assert r["boxes"][0]["label"] == "\"dog\", old" and r["boxes"][0]["right"] == 120, r'
    ort-draw photo.ppm -i one.json --detect corners --stretch 100x200 -o - >piped.png
    works ort-tensor piped.png --print
    has "uint8 100x200x3"
}

@test "a picture for each record, and messages where their numbers differ" {
    canvas a.ppm 40 40 0 0 1 1
    canvas b.ppm 40 80 0 0 1 1
    echo '0 0 20 20 0.9 0' | boxes one.json
    ort-tensor one.json --format npz -o one.npz
    cat one.npz one.npz >two.npz
    works ort-draw a.ppm b.ppm --detect corners --stretch 40 -o out.png <two.npz
    [[ ${lines[1]} == "a.ppm,0,0,0.9000,0.0,0.0,20.0,20.0," ]]
    [[ ${lines[2]} == "b.ppm,0,0,0.9000,0.0,0.0,40.0,20.0," ]]
    [ -s out.png ] && [ -s out_1.png ]
    run --separate-stderr ort-draw a.ppm -i two.npz --detect corners --stretch 40
    [ "$status" -eq 5 ] && [[ $stderr == *"holds more records than the 1 pictures"* ]]
    run --separate-stderr ort-draw a.ppm b.ppm a.ppm -i two.npz --detect corners --stretch 40
    [ "$status" -eq 5 ] && [[ $stderr == *"ends before 'a.ppm', picture 3 of 3"* ]]
}

@test "a mask is laid over its picture, counted in pixels of the picture" {
    canvas photo.ppm 40 80 0 0 1 1
    echo '{"p":{"dtype":"float","shape":[1,1,2,2],"data":[0.9,0.1,0.2,0.8]}}' >mask.json
    works ort-draw photo.ppm -i mask.json --mask -o out.png
    [[ ${lines[1]} == "photo.ppm,0,0,1600,0.5000" ]]
    works ort-tensor out.png --slice '10,20' --print
    has "30 90 38" # half of 60, 180, 75
    works ort-tensor out.png --slice '10,60' --print
    has "0 0 0"
    echo '{"c":{"dtype":"float","shape":[3,1,2],"data":[1,0,2,0,0,5]}}' >scores.json
    works ort-draw photo.ppm -i scores.json --mask=c --json
    echo "$output" | python3 -c '
import json, sys
areas = json.load(sys.stdin)["areas"]
assert [(a["class"], a["pixels"]) for a in areas] == [(1, 1600), (2, 1600)], areas'
    echo '{"k":{"dtype":"int64","shape":[1,2],"data":[0,7]}}' >classes.json
    works ort-draw -i classes.json --mask
    [[ ${lines[1]} == ",7,7,1,0.5000" ]]
    fails 2 "no value is called 'x'; there are 'k'" ort-draw -i classes.json --mask=x
}

@test "a map of numbers runs from violet to yellow" {
    echo '{"m":{"dtype":"float","shape":[2,2],"data":[-1,0,1,3]}}' >map.json
    works ort-draw -i map.json --map -o map.png
    has "2,2,-1,3"
    works ort-tensor map.png --slice '0,0' --print
    has "68 1 84"
    works ort-tensor map.png --slice '31,31' --print
    has "253 231 37"
}

@test "a curve over sound lists the stretches above the score" {
    python3 -c '
import wave
with wave.open("a.wav", "wb") as w:
    w.setnchannels(1); w.setsampwidth(2); w.setframerate(8000)
    w.writeframes(bytes(16000))'
    for p in 0.1 0.9 0.7 0.2 0.6; do
        echo "[[$p]]" >p.json
        ort-tensor p.json --name speech --format npz -o -
    done >curve.npz
    works ort-draw a.wav -i curve.npz --curve -o wave.png
    [[ ${lines[0]} == "label,begin_s,end_s,mean" ]]
    [[ ${lines[1]} == "speech,0.200,0.600,0.8000" ]]
    [[ ${lines[2]} == "speech,0.800,1.000,0.6000" ]]
    works ort-tensor wave.png --print
    has "420x1200x3"
    works ort-draw a.wav -i curve.npz --curve --hop 800 --score 0.8
    [[ ${lines[1]} == "speech,0.100,0.200,0.9000" ]]
}

@test "without cairo boxes are listed, and a picture names the package" {
    : >libcairo.so.2 # found first, and no library
    echo '0 0 20 20 0.9 0' | boxes one.json
    works env LD_LIBRARY_PATH=. ort-draw -i one.json --detect corners --stretch 40
    [ "${#lines[@]}" -eq 2 ]
    fails 5 'libcairo\.so\.2, which can.t be opened; install the package libcairo2' \
        env LD_LIBRARY_PATH=. ort-draw -i one.json --detect corners --stretch 40 -o out.png
}

@test "a form that the tensors don't have is refused with what they are" {
    echo '{"a":{"dtype":"float","shape":[1,4,3],"data":[0,0,0,0,0,0,0,0,0,0,0,0]}}' >odd.json
    local form
    for form in yolox yolov5 yolov8 yunet ultraface ssd corners; do
        fails 5 "--detect $form: the tensors are a 1x4x3; wanted: " \
            ort-draw -i odd.json --detect "$form" --stretch 64
    done
    fails 2 'needs --letterbox N or --stretch HxW' ort-draw -i odd.json --detect yolox
    fails 2 "none of yolox" ort-draw -i odd.json --detect yolo9
    fails 2 'one of --detect, --mask, --map and --curve' ort-draw -i odd.json
    fails 5 'nosuch.json' ort-draw -i nosuch.json --map
    fails 5 'is no picture' ort-draw "$FX/x.npy" -i odd.json --mask
}

@test "real detectors see the officer, her face and her tie" {
    need_models
    local m=$REAL/yolox_nano
    works ort-run "$m/model.onnx" -i "$m/test_data_set_0" -o out.npz
    works ort-draw -i out.npz --detect yolox --stretch 416
    [[ ${lines[1]} == ",0,0,0.9336,0.4,25.2,414.1,402.5," ]] # a person
    [[ ${lines[2]} == ",27,27,0.77"* ]]                      # a tie
    [ "${#lines[@]}" -eq 3 ]
    m=$REAL/ultraface_rfb_320
    works ort-run "$m/model.onnx" -i "$m/test_data_set_0" -o out.npz
    works ort-draw -i out.npz --detect ultraface --stretch 240x320
    [[ ${lines[1]} == ",0,face,1.0000,107.5,48.4,224.4,133.4," ]]
    [ "${#lines[@]}" -eq 2 ]
    m=$REAL/yunet_n_320
    works ort-run "$m/model.onnx" -i "$m/test_data_set_0" -o out.npz
    works ort-draw -i out.npz --detect yunet --stretch 320
    [[ ${lines[1]} == ",0,face,0.9371,116.6,60.9,221.3,179.5,145.8 98.4 192.7 100.3 "* ]]
    m=$REAL/ppocrv4_det
    works ort-run "$m/model.onnx" -i "$m/test_data_set_0" -o out.npz
    works ort-draw -i out.npz --mask --score 0.3
    has ",0,0,17231,"
}

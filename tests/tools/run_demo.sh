#!/bin/sh
# run_demo.sh: installs what the build needs, builds, then runs the main job through pipes: handwritten
# digits are read, a tree ensemble reads the same digits, a photograph is enlarged.
set -eu
cd "$(dirname "$0")/../.."
sh tests/tools/packages.sh build demo
echo "building ..."
make -s -j"$(nproc 2>/dev/null || echo 2)" all
PATH=$PWD/build/bin:$PATH
out=build/demo
mkdir -p $out

echo
echo "== Reading 36 handwritten digits (8x8 pixels, none of them seen in training)"
echo '   ort-tensor models/images/digit_*.png --gray --float --stack | ort-run models/digits.onnx - | ort-tensor --top 1'
ort-tensor models/images/digit_*.png --gray --float --stack -o - |
    ort-run models/digits.onnx - -o - |
    ort-tensor - --top 1 >$out/digits.txt
set -- models/images/digit_*.png
right=0
while read -r row digit probability; do
    file=$1
    shift
    truth=$(basename "$file" | cut -d_ -f2)
    mark="  <- is a $truth"
    [ "$truth" = "$digit" ] && mark="" && right=$((right + 1))
    printf '   %-20s reads %s  p=%s%s\n' "$(basename "$file")" "$digit" "$probability" "$mark"
done <$out/digits.txt
echo "   $right of $(wc -l <$out/digits.txt) right"

echo
echo "== The same digits through a tree ensemble (ai.onnx.ml)"
ort-tensor models/images/digit_7_*.png --gray --scale 1/255 --reshape -1,64 --stack -o - |
    ort-run models/digits_trees.onnx - --outputs label -o - |
    ort-tensor - --print | sed 's/^/   /'

echo
echo "== Enlarging a photograph twofold"
echo '   ort-tensor models/images/photo.png --float | ort-run models/upscale.onnx - | ort-tensor -o photo_2x.png'
ort-tensor models/images/photo.png --float -o - |
    ort-run models/upscale.onnx - -o - |
    ort-tensor - -o $out/photo_2x.png
ort-tensor models/images/photo.png --resize 320x320 --filter bicubic -o $out/photo_bicubic.png
echo "   wrote $out/photo_2x.png (and $out/photo_bicubic.png to compare with)"

echo
echo "== Times of the enlarging, one input, on this machine"
ort-tensor models/images/photo.png --float -o $out/photo.npz
ort-run models/upscale.onnx $out/photo.npz --repeat 50 | sed 's/^/   /'

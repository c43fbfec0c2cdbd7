# The picture of a graph: arrows, a straight main chain, no empty sheet.
load helper

@test "the main chain of a picture stands straight, and its edges have arrowheads" {
    works ort-inspect "$MODELS_DIR/digits.onnx" --svg -o g.svg
    python3 - <<'PY'
import re
text = open("g.svg").read()
edges = re.findall(r'<path d="M([\d.]+) [\d.]+C[\d.]+ [\d.]+ [\d.]+ [\d.]+ ([\d.]+) [^"]*"([^>]*)/>', text)
assert len(edges) > 3, text
assert all("marker-end" in rest for _, _, rest in edges), edges
assert len({x for edge in edges for x in edge[:2]}) == 1, edges
PY
}

@test "a legend longer than its picture is wide goes on below" {
    works ort-inspect "$MODELS_DIR/digits.onnx" --svg -o g.svg
    python3 - <<'PY'
import re
text = open("g.svg").read()
width = float(re.search(r'width="(\d+)"', text).group(1))
boxes = [(float(x), float(w)) for x, w in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', text)]
assert max(x + w for x, w in boxes) <= width, (boxes, width)
assert width < 400, width
PY
}

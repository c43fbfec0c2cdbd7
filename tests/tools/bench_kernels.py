#!/usr/bin/env python3
"""bench_kernels.py BIN_DIR SCRATCH TOPOLOGIES MODELS: what kernels reach, one thread, as Markdown.

First the rows of ort-profile --kernels on each tier of this machine with vectors of 256 bits and more: kilocycles, flop per cycle, GB/s, percent of the peak that was measured in the same process. GEMM
and direct convolution are to reach 85 % of it, but on AVX2's tier, convolutions of bytes 70 % of the peak of bytes on
each, the others 1.3 times our AVX2 tier. Weights of bytes are those of ort-quantize, of which two fit in 16 bits with any
codes; rows of any weights have no goal. A product of the same size by OpenBLAS (out of numpy's wheel, one thread)
stands beside ours.

Then the goals: the figures that an AVX2 machine is to reach, each as the least of several runs. Cycles come from
perf_event where the system allows it; otherwise they are the time at the clock that was measured in the same
process, and the head of the table says so. Depthwise convolutions of bytes stand beside a copy of as many bytes, the
bandwidth of the cache that holds them, and beside what their instructions on vectors let them move. Last, integer models on the AVX2 tier over
two bounds, that of the products alone and that of all vector instructions, and over their float forms. Exit status 0
whatever was reached: a benchmark is no test.
"""
import ctypes
import glob
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

import numpy as np
from onnx import TensorProto, helper

from fixtures import field, node, value_info

BIN, SCRATCH, TOPOLOGIES, MODELS = (pathlib.Path(a) for a in sys.argv[1:5])
SECONDS = os.environ.get("SECONDS_EACH", "0.5")


def tool(name, *arguments, isa=None):
    environment = dict(os.environ, **({"ORT_ISA": isa} if isa else {}))
    done = subprocess.run([BIN / name, *map(str, arguments), "--threads", "1"], env=environment,
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} {' '.join(map(str, arguments))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


TIERS = ("avx2", "avxvnni", "avx512", "vnni", "amx")


def has(isa):
    path = SCRATCH / "one.onnx"
    chain(path, 1)
    done = subprocess.run([BIN / "ort-run", path, "--random", "1", "--isa", isa], capture_output=True)
    path.unlink()
    return done.returncode == 0


def profile(*arguments, isa=None):
    return json.loads(tool("ort-profile", *arguments, "--json", isa=isa))


# ---- single operators

def kernels(isa):
    """{(what, operator): row} with the rates of the shortest call."""
    report = profile("--kernels", "--seconds", SECONDS, isa=isa)
    rows = {}
    for kernel in report["kernels"]:
        n = kernel["node"]
        least = n["spread_ms"]["min"]
        ratio = n["self_ms"] / least
        flops = 2 * n["macs"] + n["flops"]
        out = 1
        for d in n["outputs"][0]["shape"]:
            out *= d
        rows[kernel["what"], kernel["op_type"]] = {
            "ms": least, "kcycles": least * report["ghz"] * 1e3, "elements": out,
            "flop_cycle": flops / (least * 1e6) / report["ghz"], "gb_s": ratio * n["gb_per_s"],
            "bytes_cycle": ratio * n["gb_per_s"] / report["ghz"],
            "of_peak": ratio * n["of_peak"] if n["of_peak"] else None,
            "inputs": n["inputs"], "out": n["outputs"][0]["shape"], "ghz": report["ghz"],
            "shapes": " ".join("x".join(map(str, v["shape"])) for v in n["inputs"] if "shape" in v),
            "bytes": kernel["op_type"] == "QLinearConv" and "depthwise" not in kernel["what"]
                     and "any weights" not in kernel["what"],
            "matrix": kernel["op_type"] in ("MatMul", "Gemm", "Conv", "MatMulInteger") and "done_macs" not in n
                      and "depthwise" not in kernel["what"]}
    return report, rows


def kernel_table(best, base):
    report, rows = best
    print(f"\n| kernel, {report['isa']} | operator | inputs | kcycles | flop/cycle | GB/s | of peak | "
          "over avx2 | within |\n| --- | --- | --- | --: | --: | --: | --: | --: | --- |")
    for key, row in rows.items():
        over = base[1][key]["ms"] / row["ms"] if base else None
        wide = row["matrix"] and row["flop_cycle"] > 0 and key[0] not in SKINNY
        within = (row["of_peak"] >= 0.85 if wide else over >= 1.3) if base else None
        if row["bytes"]:
            within = row["of_peak"] >= 0.70
        print(f"| {key[0]} | {key[1].split('.')[-1]} | {row['shapes']} | {row['kcycles']:.1f} | "
              f"{row['flop_cycle']:.1f} | {row['gb_s']:.1f} | "
              f"{'' if row['of_peak'] is None else format(row['of_peak'], '.0%')} | "
              f"{'' if over is None else format(over, '.2f')} | "
              f"{'' if within is None else 'yes' if within else 'no'} |", flush=True)


# One row or tiny matrices: memory or latency bounds them, not multiply-adds.
SKINNY = ("decoder, one token", "classifier", "batch of 8x8x8", "float weights, one token",
          "float16 weights, one token", "bfloat16 weights, one token", "bytes, one token",
          "bytes, attention scores")


# ---- OpenBLAS

def openblas():
    """sgemm of the library in numpy's wheel, on one thread; None where it isn't there."""
    found = glob.glob(str(pathlib.Path(np.__file__).parents[1] / "numpy.libs/libscipy_openblas64_*.so"))
    if not found:
        return None
    library = ctypes.CDLL(found[0])
    library.scipy_openblas_set_num_threads64_(1)
    sgemm = library.scipy_cblas_sgemm64_
    f, i, p = ctypes.c_float, ctypes.c_int64, ctypes.c_void_p
    sgemm.argtypes = [ctypes.c_int] * 3 + [i] * 3 + [f, p, i, p, i, f, p, i]
    return sgemm


def openblas_ms(sgemm, m, k, n):
    row_major, plain = 101, 111
    a, b = (np.random.default_rng(0).random(s, dtype=np.float32) for s in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    least, end = 1e9, time.perf_counter() + float(SECONDS)
    while time.perf_counter() < end or least == 1e9:
        begin = time.perf_counter()
        sgemm(row_major, plain, plain, m, n, k, 1, a.ctypes.data, k, b.ctypes.data, n, 0, c.ctypes.data, n)
        least = min(least, time.perf_counter() - begin)
    return least * 1e3


# ---- depthwise convolutions of bytes

def copy_rate(moved):
    """GB/s of reading half of so many bytes and writing the other half; the calls' own time is left out."""
    def least(count):
        a, b = np.ones(count, np.uint8), np.zeros(count, np.uint8)
        calls, best = max(1, (4 << 20) // count if count > 64 else 2000), 1e9
        for _ in range(40):
            begin = time.perf_counter()
            for _ in range(calls):
                np.copyto(b, a)
            best = min(best, (time.perf_counter() - begin) / calls)
        return best
    half = int(moved) // 2
    return 2 * (half - 64) / (least(half) - least(64)) / 1e9


# Instructions on vectors for 16 channels, by (taps of a row, stride): for an output pixel products (and sums, where those
# are instructions of their own) and codes; for each input row of such a column the words of several taps, where they are
# counted apart. Units: how many a cycle. Columns: outputs made at once, of which a row's last may be nobody's. Loads and
# stores are free here. vnni: with VBMI; twice the products and scales where these are more, one a cycle on a Zen 4 (5x5 of
# stride 2). That processor's pipes allow less still: products and scales take two of its four, what moves bytes one of
# these and a third, so that all of them together are three in two cycles. 5x5 of 14 columns has 16.9 of them a pixel, 11.3
# cycles of 13.2 that it takes; 3x3 has 4 products and scales, 4.6 to 4.8 cycles. One instruction that makes words down
# columns out of the last ones and a row's bytes (vpermt2b) takes the pipes of products and gained nothing. Of stride 2 each
# pixel reads words of its own, half of which cross cache lines: 6.4 cycles of 5, as long in the second-level cache as in
# the last. A copy's bandwidth is out of reach of all of them.
# lib/kernel/avx2/bytes_window.inc, lib/kernel/vnni/bytes_window.inc, lib/kernel/avxvnni/bytes_avxvnni.c.
WINDOWS_AVX2 = (3, 1, {(3, 1): (2 * 12 + 3 + 8.5, 0), (3, 2): (2 * 12 + 9 + 8.5, 0), (5, 1): (2 * 30 + 4.5 + 8.5, 0),
                       (5, 2): (2 * 30 + 12 + 8.5, 0)})
WINDOWS_VNNI = (2, 4, {(3, 1): (3 + 5, 0.5), (3, 2): (3 + 5, 1), (5, 1): (7 + 5, 4.5), (5, 2): (2 * (10 + 1), 0)})
WINDOWS_AVXVNNI = (3, 1, {(3, 1): (6 + 8 + 8.5, 0), (3, 2): (6 + 16 + 8.5, 0), (5, 1): (20 + 8 + 8.5, 0),
                          (5, 2): (20 + 16 + 8.5, 0)})
WINDOWS = {"avx2": WINDOWS_AVX2, "avxvnni": WINDOWS_AVXVNNI, "avx512": WINDOWS_AVX2, "vnni": WINDOWS_VNNI, "amx": WINDOWS_VNNI}


def windows_ms(row, isa):
    """What a depthwise window's instructions bound it to."""
    x, out = row["inputs"][0]["shape"], row["out"]
    n, channels, height = x[0], x[1] * (x[4] if len(x) > 4 else 1), x[2]  # in blocks of channels, or not
    taps = next(v["shape"][3] for v in row["inputs"][1:] if len(v.get("shape", ())) == 4)
    units, columns, instructions = WINDOWS[isa]
    stride = round(height / out[2])
    outputs, words = instructions[taps, stride]
    each = -(-out[3] // columns) * columns * (outputs * out[2] + words * ((out[2] - 1) * stride + taps))
    return n * -(-channels // 16) * each / units / row["ghz"] / 1e6


def depthwise_table(*tiers):
    print("\n| depthwise of bytes | tier | moved, KB | GB/s | a copy of as many, GB/s | of it | its instructions, GB/s | "
          "of them |\n| --- | --- | --: | --: | --: | --: | --: | --: |")
    for report, rows in tiers:
        for (what, op), row in rows.items():
            if op != "QLinearConv" or "depthwise" not in what:
                continue
            moved = row["gb_s"] * row["ms"] * 1e6
            copied, bound = copy_rate(moved), windows_ms(row, report["isa"])
            print(f"| {what} | {report['isa']} | {moved / 1e3:.0f} | {row['gb_s']:.1f} | {copied:.1f} | "
                  f"{row['gb_s'] / copied:.0%} | {moved / bound / 1e6:.1f} | {bound / row['ms']:.0%} |", flush=True)
    print(f"\nA copy reads and writes {copy_rate(16 << 10):.0f} GB/s of 16 KiB, {copy_rate(512 << 10):.0f} of 512 KiB.")


def openblas_table(best):
    sgemm = openblas()
    if sgemm is None:
        print("\nOpenBLAS isn't in this numpy wheel.")
        return
    print("\n| product | ours, ms | OpenBLAS, ms | ratio |\n| --- | --: | --: | --: |")
    for (what, op), row in best[1].items():
        sizes = [list(map(int, s.split("x"))) for s in row["shapes"].split()]
        if op == "MatMul" and len(sizes[0]) == 2:
            (m, k), (_, n) = sizes
            theirs = openblas_ms(sgemm, m, k, n)
            print(f"| {what}, {m}x{k}x{n} | {row['ms']:.3f} | {theirs:.3f} | {row['ms'] / theirs:.2f} |",
                  flush=True)


# ---- goals

def goal(what, figure, limit, unit):
    print(f"| {what} | {figure:.3g} {unit} | {limit:g} {unit} | {'yes' if figure <= limit else 'no'} |",
          flush=True)


def least_goal(what, figure, limit, unit):
    print(f"| {what} | {figure:.3g} {unit} | at least {limit:g} {unit} | "
          f"{'yes' if figure >= limit else 'no'} |", flush=True)


def kernel_goals(rows):
    def row(what, op="Conv"):
        return rows[what, op]
    goal("3x3, 64 to 64 at 56x56", row("3x3, 64 at 56")["kcycles"] / 1e3, 3.4, "Mcycles")
    goal("depthwise 3x3, 128 at 56x56", row("depthwise 3x3, 128 at 56")["kcycles"] / 1e3, 0.30, "Mcycles")
    goal("product 1024x1024x1024", row("square product", "MatMul")["kcycles"] / 1e3, 72, "Mcycles")
    for what, op, limit in (("attention softmax", "Softmax", 1.3), ("encoder norm", "LayerNormalization", 0.9),
                            ("feed-forward", "com.microsoft.Gelu", 1.6), ("feed-forward", "Exp", 0.75)):
        r = row(what, op)
        goal(f"{op.split('.')[-1]}, per element", r["kcycles"] * 1e3 / r["elements"], limit, "cycles")
    for what, limit in (("4-bit decoder, one token", 4), ("4-bit decoder, level 4", 10)):
        r = row(what, "com.microsoft.MatMulNBits")
        least_goal(f"MatMulNBits 4096x4096, {what.split(', ')[1]}", 4096 * 4096 / 2 / (r["kcycles"] * 1e3),
                   limit, "B/cycle of nibbles")


def model_goals(isa):
    """Whole networks with filled weights: Mcycles of the shortest run."""
    for name, limit, note in (("resnet50", 235, ""), ("mobilenet_v2", 22, ""),
                              ("bert_base", 3 * 268, " (12 layers: 3 times the goal of 4)")):
        folder = TOPOLOGIES / name
        if not (folder / "inputs.npz").exists():
            print(f"| {name} | not filled | {limit} Mcycles | |")
            continue
        r = profile(folder / "model.onnx", "-i", folder / "inputs.npz", "--seconds", 3, "--cycles", isa=isa)
        counted = r["cycles"] / 1e6 if r["cycles"] else r["latency_ms"]["min"] * r["machine"]["ghz"]
        goal(name + note, counted, limit, "Mcycles")


def chain(path, count):
    nodes = b"".join(field(1, node("Add", [f"v{i}" if i else "x", "x"],
                                   [f"v{i + 1}" if i + 1 < count else "out"])) for i in range(count))
    graph = nodes + field(2, "chain") + field(11, value_info("x", [1])) + field(12, value_info("out", [1]))
    path.write_bytes(field(1, 8) + field(8, field(1, "") + field(2, 17)) + field(7, graph))


def least_us(path, *arguments, isa):
    report = json.loads(tool("ort-run", path, "--random", 1, "--seconds", SECONDS, "--warmup", 100, "--json",
                             *arguments, isa=isa))
    return report["latency_ms"]["min"] * 1e3


def overhead_goals(isa):
    path = SCRATCH / "chain.onnx"
    chain(path, 500)
    goal("500 additions, no optimization", least_us(path, "--level", 0, isa=isa), 20, "us")
    goal("500 additions, fused", least_us(path, isa=isa), 3, "us")
    chain(path, 1)
    goal("a run of one node", least_us(path, isa=isa), 0.3, "us")
    path.unlink()


def forest(path, trees, depth, features):
    """A perfect ensemble of random thresholds, summed: nodes by breadth."""
    random, inner = np.random.default_rng(1), 2 ** depth - 1
    ids = {k: [] for k in ("tree", "node", "mode", "feature", "value", "true", "false")}
    leaves = {k: [] for k in ("tree", "node", "id", "weight")}
    for tree in range(trees):
        for at in range(2 * inner + 1):
            leaf = at >= inner
            ids["tree"].append(tree)
            ids["node"].append(at)
            ids["mode"].append("LEAF" if leaf else "BRANCH_LEQ")
            ids["feature"].append(0 if leaf else int(random.integers(features)))
            ids["value"].append(0.0 if leaf else float(random.random()))
            ids["true"].append(0 if leaf else 2 * at + 1)
            ids["false"].append(0 if leaf else 2 * at + 2)
            if leaf:
                leaves["tree"].append(tree)
                leaves["node"].append(at)
                leaves["id"].append(0)
                leaves["weight"].append(float(random.random()))
    ensemble = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, nodes_treeids=ids["tree"],
        nodes_nodeids=ids["node"], nodes_modes=ids["mode"], nodes_featureids=ids["feature"],
        nodes_values=ids["value"], nodes_truenodeids=ids["true"], nodes_falsenodeids=ids["false"],
        target_treeids=leaves["tree"], target_nodeids=leaves["node"], target_ids=leaves["id"],
        target_weights=leaves["weight"])
    graph = helper.make_graph([ensemble], "forest",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", features])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 1)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def tree_goals(isa):
    path, values = SCRATCH / "forest.onnx", SCRATCH / "forest.npy"
    forest(path, 100, 6, 20)
    for rows, limit, unit in ((1, 1.2, "us"), (1000, 0.75, "ms")):
        np.save(values, np.random.default_rng(2).random((rows, 20), dtype=np.float32))
        us = json.loads(tool("ort-run", path, values, "--seconds", SECONDS, "--warmup", 10, "--json",
                             isa=isa))["latency_ms"]["min"] * 1e3
        goal(f"100 trees of depth 6, {rows} row{'s' if rows > 1 else ''}", us if unit == "us" else us / 1e3,
             limit, unit)
    path.unlink()
    values.unlink()


def load_goals(isa):
    """Creation, cold and from a pack, and memory of a run, of ResNet-50 (102 MB)."""
    folder = TOPOLOGIES / "resnet50"
    if not (folder / "inputs.npz").exists():
        return
    model, packed = folder / "model.onnx", SCRATCH / "packed.onnx"
    ms = min(json.loads(tool("ort-profile", model, "-i", folder / "inputs.npz", "--repeat", 1, "--no-peak",
                             "--json", isa=isa))["load"]["total_ms"] for _ in range(5))
    goal("create ResNet-50", ms, 40, "ms")
    if "--pack" in subprocess.run([BIN / "ort-optimize", "--help"], capture_output=True, text=True).stdout:
        tool("ort-optimize", model, "--pack", "--no-verify", "-o", packed, isa=isa)
        # ort-profile leaves packs alone: it shows what loading takes.
        ms = min(json.loads(tool("ort-run", packed, "-i", folder / "inputs.npz", "--repeat", 1, "--warmup", 0,
                                 "--json", isa=isa))["load_ms"] for _ in range(5))
        goal("create ResNet-50 from its pack", ms, 5, "ms")
    environment = dict(os.environ, ORT_ISA=isa)
    child = subprocess.Popen([BIN / "ort-run", model, "-i", folder / "inputs.npz", "--repeat", "2", "--threads", "1"],
                             env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    goal("peak memory of a run over the file, ResNet-50 with Winograd", usage.ru_maxrss * 1024 /
         model.stat().st_size, 1.6, "times")


# ---- integer models on the AVX2 tier

FAMILIES = pathlib.Path(__file__).parents[1] / "bench/families.txt"


# What convolutions in the layout of bytes must do on AVX2 besides products, in vector instructions. The peak of bytes is
# that of multiplying pairs of int16 and adding, two instructions of 16 products, three of them a cycle: no instruction
# of vectors is faster. lib/kernel/avx2/bytes_store.h, lib/kernel/blocked_bytes_winograd.inc.
PRODUCTS = 32 / 2        # operations of the peak in the time of one instruction
CODES = 3 + 1.25         # eight sums: to float, scaled, rounded; packed twice, the zero point, of two and four vectors
BT = 18                  # six vectors of a tile's input, times Bt
SUM = 8 + 1.25           # eight codes of a residual: both widened, to float, two fused sums, the clamp, rounded; packed
AT = 13                  # six vectors of sums, times At
INPUT_TILE = 4 * BT + 6 * BT + 4 * 6     # 16 channels: four new columns, six rows, 24 vectors widened
OUTPUT_TILE = 6 * AT + 4 * AT + 16 + 1   # eight channels: columns, rows; 16 sums times 1/576, a bias of all


def vector_ms(node, peak):
    """What a convolution's codes and its transforms of 4x4 tiles bound it to."""
    if node["op_type"].split(".")[-1] != "BytesConv":
        return 0
    x, y = node["inputs"][0]["shape"], node["outputs"][0]["shape"]
    added = any(v.get("shape") == y for v in node["inputs"][1:])
    instructions = np.prod(y) / 8 * (CODES + (SUM if added else 0))
    if node.get("done_macs"):
        tiles = y[0] * -(-y[2] // 4) * -(-y[3] // 4)
        instructions += tiles * (x[1] * INPUT_TILE + y[1] * 2 * OUTPUT_TILE)
    return instructions * PRODUCTS / peak / 1e6


def least_and_bounds(model):
    """Milliseconds of the shortest call of each node on the AVX2 tier, which no other program stretched, and of what
    that tier's peak bounds them to: by their products, or the memory that they read; by all vector instructions."""
    report = profile(model, "--seconds", SECONDS, "--top", "0", isa="avx2")
    peak = report["machine"]["peak_int8_gops"]
    least = products = whole = 0
    for n in report["nodes"]:
        least += n["spread_ms"]["min"] * n["calls"] / report["runs"]
        bound = n["of_peak"] * n["self_ms"] if n["of_peak"] else 0
        vectors = vector_ms(n, peak)
        products += bound
        whole += max(bound, vectors + 2 * (n.get("done_macs") or n["macs"]) / peak / 1e6) if vectors else bound
    return least, products, whole


def mean(ratios):
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


def integer_models(folders):
    """A machine that has AVX-512 can't hold other runtimes down to AVX2: our own bound judges that tier there."""
    rows = [line.split() for line in FAMILIES.read_text().splitlines() if not line.startswith("#")]
    where = {path.parent.name: path for folder in folders for path in sorted(folder.glob("*/model.onnx"))}
    print("\nPeers on CPUs without AVX-512: not judged on this machine, whose AVX-512 they can't be kept from."
          "\n\nThe goal is 1.3 of the products. Transforms and codes are a part of the second bound, which is no goal: it"
          " tells how\nmuch of what is above the first one could be less."
          "\n\n| integer model, avx2 tier | ms | products, ms | over them | all vector instructions, ms | over them | "
          "over its float form, avx2 tier |\n| --- | --: | --: | --: | --: | --: | --: |")
    over_products, over_whole, over_float = [], [], []
    for name, family, *twin in rows:
        if family != "integer" or name not in where:
            continue
        ms, products, whole = least_and_bounds(where[name])
        known, beside = products > ms / 10, ""  # else most of its time goes into nodes whose work isn't known
        over_products += [ms / products] if known else []
        over_whole += [ms / whole] if known else []
        if twin and twin[0] in where:
            over_float.append(ms / least_and_bounds(where[twin[0]])[0])
            beside = f"{over_float[-1]:.2f}"
        print(f"| {name} | {ms:.3f} | {products:.3f} | {f'{ms / products:.2f}' if known else ''} | {whole:.3f} | "
              f"{f'{ms / whole:.2f}' if known else ''} | {beside} |", flush=True)
    print(f"| geometric mean | | | **{mean(over_products):.2f}** | | **{mean(over_whole):.2f}** | "
          f"**{mean(over_float):.2f}** |")


def main():
    base = kernels("avx2")
    best = kernels(None)
    noted = profile(TOPOLOGIES / "mobilenet_v2/model.onnx", "--repeat", 1, "--cycles", "--no-peak").get(
        "cycles_note", "") if (TOPOLOGIES / "mobilenet_v2/model.onnx").exists() else ""
    print(f"{platform.machine()}, load {os.getloadavg()[0]:.1f}; peak of bytes {best[0]['peak_int8_gops']:.0f} GOP/s, "
          f"{base[0]['peak_int8_gops']:.0f} (avx2); peak {best[0]['peak_gflops']:.0f} GFLOP/s at "
          f"{best[0]['ghz']:.2f} GHz ({best[0]['isa']}), {base[0]['peak_gflops']:.0f} at {base[0]['ghz']:.2f} (avx2)")
    print(f"Cycles are times at that clock ({noted})." if noted else "Cycles of networks are counted.")
    wider = best[0]["isa"] != "avx2"
    kernel_table(base, None)
    others = [kernels(isa) for isa in TIERS if isa not in ("avx2", best[0]["isa"]) and has(isa)]
    tiers = [base, *others] + ([best] if wider else [])  # each is judged by the peak of its own instruction
    for tier in tiers[1:]:
        kernel_table(tier, base)
    depthwise_table(*tiers)
    openblas_table(best)
    print("\n| goal, avx2 tier | reached | goal | within |\n| --- | --: | --: | --- |")
    kernel_goals(base[1])
    model_goals("avx2")
    overhead_goals("avx2")
    tree_goals("avx2")
    load_goals("avx2")
    integer_models((MODELS, TOPOLOGIES, SCRATCH / "int8"))


if __name__ == "__main__":
    main()

"""How much of each model a provider takes: multiply-adds on it, in percent of those that a run computes.

usage: provider_share.py [--why] PROVIDER BIN MODEL_FOLDER...

Printed for each model: the share with all that is claimed on the device (cost=off), and with the cost model on.
The gate: convolutional and transformer models, which have convolutions, attention or softmax and do at least half of
their multiply-adds in float convolutions, products (of weights of a few bits, too) and attention, give the device at
least 90 % of them with cost=off. --why: what is left out where a model has less, by reason. Models without
multiply-adds, or with most of them in other operators (recurrent nets, codes of quantized models, trees), are listed
with the reason for which they aren't judged.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

FLOAT = {"Conv", "FusedConv", "ConvTranspose", "Gemm", "FusedGemm", "MatMul", "FusedMatMul", "MatMulNBits", "Attention",
         "MultiHeadAttention", "GroupQueryAttention", "Einsum"}
NETS = {"Conv", "FusedConv", "ConvTranspose", "Attention", "MultiHeadAttention", "GroupQueryAttention", "Softmax"}


def division(args, path, options):
    done = subprocess.run([args.bin / "ort-inspect", path, "--partition", "--json", "--provider",
                           f"{args.provider}{options},cpu"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else None


def share(report, provider):
    by = {p["name"]: p["macs"] for p in report["providers"]}
    total = sum(by.values())
    return 100 * by.get(provider, 0) / total if total else 0.0


def left_out(report, provider):
    reasons = collections.Counter()
    total = sum(n["macs"] for n in report["nodes"])
    for node in report["nodes"]:
        if node["provider"] != provider and node["macs"]:
            why = "; ".join(r["reason"] for r in node["refused"]) or "?"
            reasons[node["op_type"], why] += node["macs"]
    return [f"    {100 * macs / total:.1f} % {op}: {why}" for (op, why), macs in reasons.most_common(4)]


def unjudged(report):
    """Why the gate isn't for this model; "" where it is."""
    macs = collections.Counter()
    for node in report["nodes"]:
        macs[node["op_type"]] += node["macs"]
    total = sum(macs.values())
    if not total:
        return "no multiply-adds in its main graph"
    if sum(macs[op] for op in FLOAT) < total / 2:
        return f"most multiply-adds in {macs.most_common(1)[0][0]}"
    return "" if NETS & macs.keys() else "no convolution, attention or softmax"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--why", action="store_true")
    parser.add_argument("provider")
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    passed = failed = skipped = 0
    print(f"| model | {args.provider}, cost=off | by cost | nodes | |\n| --- | --: | --: | --: | --- |")
    for path in sorted(p for f in args.folders for p in f.glob("*/model.onnx")):
        name = path.parent.name
        whole, chosen = division(args, path, ":cost=off"), division(args, path, "")
        if not whole or not chosen:
            failed += 1
            print(f"| {name} | not ok: no division | | | |")
            continue
        reason = unjudged(whole)
        judged = not reason
        own = share(whole, args.provider)
        bad = judged and own < 90
        passed, failed, skipped = passed + (judged and not bad), failed + bad, skipped + (not judged)
        nodes = {p["name"]: p["nodes"] for p in whole["providers"]}
        print(f"| {name} | {own:.1f} % | {share(chosen, args.provider):.1f} % | {nodes.get(args.provider, 0)} of "
              f"{sum(nodes.values())} | {'not ok: under 90 %' if bad else f'not judged: {reason}' if reason else ''} |")
        if args.why and judged and own < 99:
            print("\n".join(left_out(whole, args.provider)))
    print(f"not judged: {skipped:d}")
    print(f"{passed:d} passed, {failed:d} failed, 0 skipped")
    return failed != 0 or not passed


if __name__ == "__main__":
    sys.exit(main())

"""ms_llm.py - experts, gates, streams, n-grams and generation of com.microsoft."""
import pathlib
import sys

import numpy as np

from . import bounds
from .case import Redraw, Tolerance, op
from .ms_attention import feed, small
from .schemas import MS

F32 = np.dtype(np.float32)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))


def expert_bound(g, x, first, second, experts, hidden, inter, router):
    """Two products around an activation of slope at most about 1.1 (gated: |a b|, both off), mixed
    with weights that a softmax of the router's scores gives: sum of k experts."""
    x, b1, b2 = bounds.most(x), bounds.most(first[1]), bounds.most(second[1])
    w1, w2 = first[0], second[0]
    inner = hidden * x * w1 + b1
    off = (hidden + 2) * inner
    if "swiglu" in g.attrs.get("activation_type", ""):
        off, inner = 2.2 * off * (inner + 2) + 8 * inner * (inner + 2), inner * (inner + 2)
    out = inter * inner * w2 + b2
    total = 1.1 * inter * w2 * off + (inter + 10) * out
    mixed = g.attrs["k"] * (total + (4 + experts + bounds.most(router) * 4) * out)
    g.tolerance = Tolerance(ulps=8, scale=mixed)


@op("MoE", domain=MS)
def moe(g):
    dtype = g.dtype("T")
    experts, hidden, inter = g.int(1, 4), g.pick([4, 8, 7]), g.pick([4, 5, 12])
    act = g.pick(["relu", "gelu", "silu", "identity", "swiglu"])
    fused = 2 if act == "swiglu" else 1
    g.attrs |= {"activation_type": act, "k": g.int(1, experts)}
    g.attr("normalize_routing_weights", [0, 1])
    if act == "swiglu":
        g.attrs |= {"swiglu_fusion": 1, "activation_alpha": g.pick([1.0, 1.702]),
                    "activation_beta": g.pick([0.0, 1.0])}
        if g.chance(0.3):
            g.attrs["swiglu_limit"] = 1.5
    rows = g.pick([(g.int(1, 6),), (g.int(1, 2), g.int(1, 3))])
    x, router = small(g, dtype, *rows, hidden), distinct_rows(g, dtype, int(np.prod(rows)), experts)
    w1, w2 = small(g, dtype, experts, fused * inter, hidden), small(g, dtype, experts, hidden, inter)
    b1 = small(g, dtype, experts, fused * inter) if g.chance() else None
    b2 = small(g, dtype, experts, hidden) if g.chance() else None
    feed(g, x, router, w1, b1, w2, b2)
    expert_bound(g, x, (bounds.most(w1), b1), (bounds.most(w2), b2), experts, hidden, inter, router)


def distinct_rows(g, dtype, rows, columns):
    """Scores of which no two in a row are equal: which expert wins a draw is not documented."""
    order = np.stack([g.rng.permutation(columns) for _ in range(rows)]) if rows else \
        np.zeros((0, columns))
    return (order * 0.5 + g.rng.uniform(0, 0.3, order.shape)).astype(dtype)


@op("QMoE", domain=MS)
def qmoe(g):
    dtype = g.dtype("T", only=["float", "float16"])
    g.types["T1"], g.types["T2"], g.types["T4"] = "tensor(uint8)", g.types["T"], "tensor(float)"
    g.promote = False
    experts, hidden, inter, tokens = g.int(1, 3), g.pick([16, 32]), g.pick([16, 32]), g.int(1, 4)
    act = g.pick(["swiglu", "silu", "gelu", "relu", "identity"])
    bits = g.pick([4, 8])
    block = g.pick([0, 0, 16])
    g.attrs |= {"activation_type": act, "k": g.int(1, experts), "expert_weight_bits": bits}
    g.attr("normalize_routing_weights", [0, 1])
    if act == "swiglu":
        g.attrs |= {"swiglu_fusion": 1, "activation_alpha": g.pick([1.0, 1.702]),
                    "activation_beta": g.pick([0.0, 1.0]), "swiglu_limit": g.pick([1.5, 7.0])}
    if block:
        g.attrs["block_size"] = block
    zero = g.chance(0.4)
    sides, tops = [], []
    for n, k in (((2 if act == "swiglu" else 1) * inter, hidden), (hidden, inter)):
        blocks = k // block if block else 1
        shape = (experts, n, blocks) if block else (experts, n)
        w = g.rng.integers(0, 256, (experts, n, k * bits // 8)).astype(np.uint8)
        s = g.rng.uniform(0.2, 1, shape).astype(np.float64) / 2 ** bits
        z = None
        if zero:
            packed = (experts, n, -(-blocks * bits // 8)) if block else (experts, n * bits // 8)
            z = g.rng.integers(0, 256, packed).astype(np.uint8)
        b = small(g, dtype, experts, n) if g.chance() else None
        sides.append((w, s.astype(dtype), b, z))
        tops.append((float(s.max()) * 2 ** bits, b))
    x, router = small(g, dtype, tokens, hidden), distinct_rows(g, dtype, tokens, experts)
    weights = np.abs(small(g, dtype, tokens, experts)).astype(dtype) if g.chance(0.2) else None
    (w1, s1, b1, z1), (w2, s2, b2, z2) = sides
    feed(g, x, router, w1, s1, b1, w2, s2, b2, None, None, None, z1, z2, None, weights,
         fixed=(2, 3, 5, 6, 11, 12))
    expert_bound(g, x, tops[0], tops[1], experts, hidden, inter, router)
    if weights is not None:
        g.tolerance.scale *= max(bounds.most(weights), 1)
    if block and bits == 8:
        # The peer's kernel of 8-bit blocks rounds activations to 8 bits, too: half a step of
        # max / 127 in each, a relative 1/254 of the largest term of either product.
        g.tolerance.absolute = g.tolerance.scale / 254 / (hidden + inter)
    if dtype == np.float16:
        half_inside(g)


def half_inside(g):
    """Kernels of float16 whose steps between are float16, too: eps is that of the type, and the
    bound in units of float's becomes one in its units, by 2^-10 / 2^-23."""
    g.tolerance.scale *= 2 ** 13
    g.tolerance.ulps *= 2 ** 13


@op("GatedRMSNorm", domain=MS)
def gated_rms(g):
    dtype = g.dtype("T")
    width, parts = g.pick([1, 4, 9]), g.int(1, 3)
    rows = g.shape(low=1, high=2)
    g.attr("epsilon", [1e-3, 1e-5])
    g.attr("activation", ["silu", "sigmoid"])
    x, s = small(g, dtype, *rows, width * parts), small(g, dtype, width)
    gate = small(g, dtype, *rows, width * parts)
    feed(g, x, s, gate)
    off = bounds.norm(x, width, bounds.most(s), g.attrs.get("epsilon", 1e-5), mean=False)
    g.tolerance = Tolerance(ulps=16, scale=off * max(bounds.most(gate), 1))


@op("BranchwiseRMSNorm", domain=MS)
def branch_rms(g):
    dtype = g.dtype("T")
    g.types["M"] = g.types["T"]
    branches, width = g.int(1, 4), g.pick([1, 4, 9])
    rows = g.shape(low=1, high=2)
    g.attr("epsilon", [1e-3, 1e-5], 1)
    s = g.pick([None, (branches, width), (width,)])
    flat = g.chance()
    shape = (*rows, branches * width) if flat else (*rows, branches, width)
    if flat:
        g.attrs["num_branches"] = branches
    x = small(g, dtype, *shape)
    s = None if s is None else small(g, dtype, *s)
    feed(g, x, s)
    off = bounds.norm(x, width, max(bounds.most(s), 1), g.attrs["epsilon"], mean=False)
    g.tolerance = Tolerance(ulps=16, scale=off)


@op("GatedAdd", domain=MS)
def gated_add(g):
    dtype = g.dtype("T")
    shape = g.shape(low=1)
    feed(g, small(g, dtype, *shape), small(g, dtype, *shape), small(g, dtype, *shape[:-1], 1))
    # Two operations of the type, each rounded, here and in onnxruntime: nothing is left to differ.
    g.tolerance, g.promote = Tolerance(ulps=0), False
    g.formula = lambda x, y, gate: [x + y * gate]


@op("ScaledSiLU", domain=MS)
def scaled_silu(g):
    dtype = g.dtype("T")
    g.types["M"] = g.types["T"]
    g.attr("alpha", [1.5, 0.3])
    feed(g, g.values(dtype, g.shape(), special="finite"),
         small(g, dtype) if g.chance() else None)
    g.promote = False  # it rounds to the type between its steps
    # Stated for swish: 1.2e-7 |x|, here on both sides, times the factor. Where such a difference
    # meets a half of the small type, each of the two steps may round to the other neighbour.
    low = {2: 2 ** 13 if dtype == np.float16 else 2 ** 16}.get(dtype.itemsize, 0)
    g.tolerance = Tolerance(ulps=16 + 2 * low, scale=4)


@op("LinearAttentionGate", domain=MS)
def linear_attention_gate(g):
    dtype = g.dtype("T")
    g.types["TF"] = "tensor(float)"
    heads, rows = g.int(1, 5), g.shape(low=2, high=2)
    both = g.chance()
    a, dt, s = small(g, dtype, *rows, heads), small(g, F32, heads), small(g, F32, heads)
    feed(g, a, dt, s, small(g, dtype, *rows, heads) if both else None)
    g.outputs = 2 if both else 1
    g.formula = lambda a, dt, s, *b: [s * np.logaddexp(0, a + dt), *(1 / (1 + np.exp(-x)) for x in b)]
    # scale * softplus(a + dt), of which exp may be taken: an absolute error becomes a relative one.
    inner = bounds.most(s) * (bounds.most(a) + bounds.most(dt) + 1)
    g.tolerance = Tolerance(ulps=16 + 8 * inner, scale=8 * inner)
    if 8 * inner < 1:   # less than onnxruntime's sigmoid is off
        g.peers = ("formula",)


@op("EngramGate", domain=MS)
def engram_gate(g):
    dtype = g.dtype("T")
    rows, streams, width = g.shape(low=2, high=2), g.int(1, 3), g.pick([4, 8])
    g.attr("epsilon", [1e-4, 1e-5], 1)
    key, query = (small(g, dtype, *rows, streams, width) for _ in range(2))
    value = small(g, dtype, *rows, width)
    ks, qs = (small(g, dtype, streams, width) for _ in range(2))
    normed = g.chance()
    cs = small(g, dtype, streams, width) if normed else None
    feed(g, key, query, value, ks, qs, cs)
    g.outputs = 2 if normed else 1
    eps = g.attrs["epsilon"]
    off = bounds.norm(key, width, bounds.most(ks), eps, mean=False) * bounds.most(qs) * 3 + \
        bounds.norm(query, width, bounds.most(qs), eps, mean=False) * bounds.most(ks) * 3
    spread = float(np.sqrt((bounds.magnitude(value) ** 2).mean(-1) + eps).min(initial=1))
    # The gate is a sigmoid of the root of a product of norms: the root of a small number is off by
    # much more than the number. Values near zero are drawn anew.
    score = (bounds.magnitude(key) * bounds.magnitude(query)).mean()
    g.tolerance = Tolerance(ulps=64, scale=(off * width + 64) * (bounds.most(value) + 1) / spread *
                            max(bounds.most(cs), 1) * 8)
    if score < 1e-3:
        raise Redraw


@op("HyperConnectionPreMix", domain=MS)
def hyper_pre(g):
    dtype = g.dtype("T")
    g.types["M"] = g.types["T"]
    rows, streams, width = g.shape(low=1, high=2), g.int(1, 4), g.pick([1, 5, 8])
    flat = g.chance(0.4)
    g.attr("reduction_scale", [0.5])
    if flat:
        g.attrs["num_branches"] = streams
    mix = g.pick([(*rows, streams), (*rows, streams, width), (*rows, streams, 1)])
    x = small(g, dtype, *((*rows, streams * width) if flat else (*rows, streams, width)))
    m = small(g, dtype, *mix)
    feed(g, x, m)
    g.tolerance = Tolerance(ulps=4, scale=bounds.dot(streams + 1, x, m))


@op("HyperConnectionPostMix", domain=MS)
def hyper_post(g):
    dtype = g.dtype("T")
    g.types["M"] = g.types["T"]
    rows, streams, width = g.shape(low=1, high=2), g.int(1, 4), g.pick([1, 5, 8])
    flat = g.chance(0.4)
    if flat:
        g.attrs["num_branches"] = streams
    x = small(g, dtype, *((*rows, streams * width) if flat else (*rows, streams, width)))
    post = small(g, dtype, *g.pick([(*rows, streams), (*rows, streams, width)]))
    mix = small(g, dtype, *rows, streams, streams) if g.chance(0.6) else None
    block = small(g, dtype, *rows, width)
    feed(g, x, block, post, mix)
    top = max(bounds.most(mix), 1.0)
    g.tolerance = Tolerance(ulps=4, scale=bounds.dot(streams + 1, x, top) +
                            4 * bounds.most(post) * bounds.most(block))


# ---- n-grams

@op("NGramRepeatBlock", domain=MS)
def ngram_repeat_block(g):
    g.types |= {"Tid": "tensor(int64)", "T": "tensor(float)"}
    batch, new, vocabulary = g.int(1, 3), g.int(1, 9), g.int(2, 6)
    g.attrs["ngram_size"] = g.int(1, 4)
    feed(g, g.rng.integers(0, vocabulary, (batch, new)).astype(np.int64),
         g.values(F32, (batch, vocabulary)))


def hash_sizes(g, dtype, size, heads):
    multipliers = g.rng.integers(-2 ** 30, 2 ** 30, size).astype(dtype)
    vocabulary = g.rng.integers(2, 200, (size - 1) * heads).astype(dtype)
    return multipliers, vocabulary


@op("NGramHashMapping", "VarlenNGramHashMapping", domain=MS)
def ngram_hash(g):
    dtype = g.dtype("M")
    g.types["S"] = "tensor(int32)"
    size, heads = g.int(2, 4), g.int(1, 3)
    g.attrs |= {"max_ngram_size": size, "n_head_per_ngram": heads, "pad_id": g.int(0, 3)}
    batch, new = g.int(1, 3), g.int(1, 9)
    varlen = g.name[0] == "V"
    shape = (batch * new,) if varlen else (batch, new)
    ids = g.rng.integers(0, 5 if g.chance() else 90000, shape).astype(dtype)
    many = (size - 1) * heads
    past = g.rng.integers(0, 9, (batch, size - 1)).astype(dtype) if g.chance() else None
    offsets = np.cumsum(g.rng.integers(0, 99, many)).astype(dtype) if g.chance() else None
    eos = segments = None
    if g.chance(0.4):
        g.attrs["reset_on_eos"] = 1
        eos = np.array(2, dtype)
    elif g.chance(0.4) and not varlen:
        segments = np.sort(g.rng.integers(0, 3, shape), -1).astype(np.int32)
    values = [ids, *hash_sizes(g, dtype, size, heads)]
    if varlen:
        cuts = np.sort(g.rng.permutation(np.arange(1, batch * new))[:batch - 1])
        values.append(np.concatenate([[0], cuts, [batch * new]]).astype(np.int32))
    feed(g, *values, past, offsets, eos, segments)
    g.outputs = 2


# ---- generation: bodies of tests/tools, drawn anew for each case

def bodies(g):
    import contrib_case
    import contrib_generation
    contrib_case.rng = g.rng
    return contrib_generation


def one(value, dtype=np.int32):
    return np.array([value], dtype)


def generated(g, prompt_high=4):
    """What the search operators share: the prompt, the lengths, masks and penalties."""
    module = bodies(g)
    v = module.VOCAB
    g.types |= {"T": "tensor(float)", "F": "tensor(float)", "I": "tensor(int32)",
                "M": "tensor(int32)"}
    batch, prompt = g.int(1, 3), g.int(1, prompt_high)
    ids = g.rng.integers(1, v - 1, (batch, prompt)).astype(np.int32)
    g.attrs |= {"eos_token_id": g.pick([v - 1, 4, 7]), "pad_token_id": 0}
    if g.chance(0.3):
        g.attrs["no_repeat_ngram_size"] = g.int(1, 3)
    mask = None
    if g.chance(0.3):
        mask = np.ones((batch, prompt), np.int32)
        mask[g.rng.random(batch) < 0.5, :prompt - 1] = 0
    return dict(ids=ids, max=one(prompt + g.int(1, 8)),
                min=one(g.int(0, prompt + 1)) if g.chance(0.4) else None,
                penalty=one(g.pick([1.1, 1.4]), F32) if g.chance(0.4) else None,
                vocab=(g.rng.random(v) < 0.8).astype(np.int32) if g.chance(0.3) else None,
                prefix=(g.rng.random((batch, v)) < 0.8).astype(np.int32) if g.chance(0.3) else None,
                mask=mask), module


def allow_all_but_some(inputs, eos):
    for k in ("vocab", "prefix"):
        if inputs[k] is not None:
            inputs[k][..., :2] = 1
    del eos


@op("GreedySearch", domain=MS)
def greedy_search(g):
    inputs, module = generated(g)
    allow_all_but_some(inputs, g.attrs["eos_token_id"])
    g.attrs["decoder"] = module.decoder()
    feed(g, *inputs.values())
    plain_inputs(g)


def plain_inputs(g):
    g.default_opset = 13
    for i in g.inputs:
        i.view, i.constant = False, False


@op("Sampling", domain=MS)
def sampling(g):
    inputs, module = generated(g)
    allow_all_but_some(inputs, g.attrs["eos_token_id"])
    g.attrs |= {"decoder": module.decoder(), "top_p": g.pick([0.001, 0.3, 0.9]),
                "temperature": g.pick([0.7, 1.0, 1.5])}
    if g.chance(0.3):
        g.attrs["min_tokens_to_keep"] = g.int(1, 4)
    if g.chance(0.3):
        g.attrs["custom"] = 1
    inputs |= {"presence": None, "seed": one(g.int(1, 999))}
    feed(g, *inputs.values())
    plain_inputs(g)
    g.outputs = 1


@op("BeamSearch", domain=MS)
def beam_search(g):
    inputs, module = generated(g)
    allow_all_but_some(inputs, g.attrs["eos_token_id"])
    beams = g.int(1, 4)
    if g.chance(0.4):
        (encoder, decoder) = module.encoder_decoder()[g.int(0, 2)]
        g.attrs |= {"encoder": encoder, "decoder": decoder, "model_type": 1,
                    "decoder_start_token_id": 2}
        for k in ("vocab", "prefix"):
            inputs[k] = None
    else:
        g.attrs["decoder"] = module.decoder()
    g.attr("early_stopping", [0, 1])
    named = dict(ids=inputs["ids"], max=inputs["max"],
                  min=one(0) if inputs["min"] is None else inputs["min"],
                 beams=one(beams),
                 wanted=one(g.int(1, beams)), length_penalty=one(g.pick([0.3, 1.0, 2.0]), F32),
                 penalty=inputs["penalty"], vocab=inputs["vocab"], prefix=inputs["prefix"],
                 mask=inputs["mask"])
    feed(g, *named.values())
    plain_inputs(g)
    g.outputs = 2
    g.tolerance = Tolerance(ulps=16, scale=4096)


@op("WhisperBeamSearch", domain=MS)
def whisper_beam_search(g):
    inputs, module = generated(g, 2)
    g.attrs.pop("no_repeat_ngram_size", None)
    encoder, decoder = module.whisper_bodies()
    g.attrs |= {"encoder": encoder, "decoder": decoder, "decoder_start_token_id": 2}
    batch, beams = len(inputs["ids"]), g.int(1, 3)
    begin = np.full((batch, 2), 2, np.int32)
    begin[:, 1] = g.rng.integers(3, 9, batch)
    feed(g, (g.rng.standard_normal((batch, module.HEADS * module.SIZE, 5)) * 2).astype(F32),
         one(g.int(4, 12)), one(0), one(beams), one(g.int(1, beams)),
         one(g.pick([0.5, 1.0]), F32), one(1.2, F32) if g.chance(0.3) else None, None, None, None,
         begin if g.chance() else None)
    plain_inputs(g)
    g.outputs = 2
    g.tolerance = Tolerance(ulps=16, scale=4096)


assert Redraw

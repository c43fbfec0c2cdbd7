"""Operators of language models: experts, norms, states (see make_contrib.py)."""
import numpy as np
from contrib_case import BF16, F, F16, I32, I64, bfloat16, ints, real, scalar, write


def experts():
    def float_experts(name, activation, tokens=(5,), hidden=8, inter=12, experts=4, bias=True,
                      **attributes):
        fused = 2 if activation == "swiglu" else 1
        write(f"moe_{name}", "MoE",
              dict(x=real(*tokens, hidden), router=real(int(np.prod(tokens)), experts),
                   w1=real(experts, fused * inter, hidden) * 0.4,
                   b1=real(experts, fused * inter) if bias else None,
                   w2=real(experts, hidden, inter) * 0.4,
                   b2=real(experts, hidden) if bias else None),
              {"y": F}, {"activation_type": activation, "k": 2} | attributes, ("w1", "w2"))
    float_experts("relu", "relu", k=1)
    float_experts("gelu", "gelu", tokens=(2, 3), normalize_routing_weights=1)
    float_experts("silu", "silu", bias=False, k=4)
    float_experts("identity", "identity", inter=5, hidden=7)
    float_experts("swiglu", "swiglu", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0,
                  swiglu_limit=1.5)

    def bits_experts(name, bits, block=0, zeros=False, activation="swiglu", dtype=np.float32,
                     weights=False, rtol=1e-3, atol=1e-5, **attributes):
        hidden, inter, experts, tokens = 32, 32, 3, 4
        rows = (2 if activation == "swiglu" else 1) * inter
        inputs = dict(x=real(tokens, hidden, dtype=dtype),
                      router=real(tokens, experts, dtype=dtype))
        for i, (n, k) in enumerate(((rows, hidden), (hidden, inter)), 1):
            blocks = k // block if block else 1
            scales = (experts, n, blocks) if block else (experts, n)
            inputs |= {f"w{i}": ints(256, experts, n, k * bits // 8, dtype=np.uint8),
                       f"s{i}": (np.abs(real(*scales)) * 0.6 / 2 ** bits + 0.01).astype(dtype),
                       f"b{i}": real(experts, n, dtype=dtype)}
            inputs[f"z{i}"] = None
            if zeros:
                shape = (experts, n, -(-blocks * bits // 8)) if block else (experts, n * bits // 8)
                inputs[f"z{i}"] = ints(256, *shape, dtype=np.uint8)
        order = ["x", "router", "w1", "s1", "b1", "w2", "s2", "b2"]
        full = {k: inputs[k] for k in order} | {"w3": None, "s3": None, "b3": None} | {
            "z1": inputs["z1"], "z2": inputs["z2"], "z3": None,
            "rw": np.abs(real(tokens, experts, dtype=dtype)) if weights else None}
        while full[list(full)[-1]] is None:
            full.popitem()
        more = {"block_size": block} if block else {}
        write(f"qmoe_{name}", "QMoE", full, {"y": F16 if dtype == np.float16 else F},
              {"activation_type": activation, "k": 2, "expert_weight_bits": bits} | more |
              ({"swiglu_fusion": 1} if activation == "swiglu" else {}) | attributes,
              tuple(k for k in full if k[0] in "wsz" or k[0] == "b"), rtol=rtol, atol=atol)
    bits_experts("4", 4, activation_alpha=1.702, activation_beta=1.0, swiglu_limit=7.0)
    bits_experts("4_zeros", 4, zeros=True, activation="silu")
    bits_experts("4_block", 4, block=16, dtype=np.float16, rtol=4e-3, atol=4e-3)
    bits_experts("4_block_zeros", 4, block=16, zeros=True, activation="gelu")
    bits_experts("8", 8, zeros=True, activation="relu")
    bits_experts("8_half", 8, dtype=np.float16, rtol=4e-3, atol=4e-3)
    bits_experts("2_block", 2, block=32, activation="identity")
    bits_experts("router_weights", 4, weights=True, normalize_routing_weights=1)


def gates():
    half = dict(rtol=4e-3, atol=4e-3)
    write("gated_rms_silu", "GatedRMSNorm",
          dict(x=real(2, 3, 12), scale=real(4), gate=real(2, 3, 12)), {"y": F}, {"epsilon": 1e-3})
    write("gated_rms_sigmoid", "GatedRMSNorm",
          dict(x=real(2, 6, dtype=np.float16), scale=real(6, dtype=np.float16),
               gate=real(2, 6, dtype=np.float16)), {"y": F16}, {"activation": "sigmoid"}, **half)
    write("branch_rms_grouped", "BranchwiseRMSNorm",
          dict(x=real(2, 3, 5), scale=real(3, 5)), {"y": F}, {"epsilon": 1e-3})
    write("branch_rms_flat", "BranchwiseRMSNorm",
          dict(x=real(2, 12).astype(bfloat16), scale=real(4, dtype=np.float16)), {"y": BF16},
          {"num_branches": 3}, rtol=1e-2, atol=1e-2)
    write("branch_rms_plain", "BranchwiseRMSNorm",
          dict(x=real(2, 4, dtype=np.float16)), {"y": F16}, {}, **half)
    write("gated_add", "GatedAdd", dict(x=real(2, 3, 4), y=real(2, 3, 4), gate=real(2, 3, 1)),
          {"z": F}, {})
    write("gated_add_half", "GatedAdd",
          {k: real(3, n, dtype=np.float16) for k, n in (("x", 7), ("y", 7), ("gate", 1))},
          {"z": F16}, {}, rtol=0, atol=0)
    write("scaled_silu", "ScaledSiLU", dict(x=real(2, 3)), {"y": F}, {"alpha": 1.5})
    write("scaled_silu_input", "ScaledSiLU",
          dict(x=real(300, dtype=np.float16), scale=scalar(0.7)), {"y": F16}, {}, **half)
    write("scaled_silu_bf16", "ScaledSiLU", dict(x=real(9).astype(bfloat16)), {"y": BF16}, {},
          rtol=1e-2, atol=1e-2)
    write("linear_attention_gate", "LinearAttentionGate",
          dict(a=real(2, 3, 4), dt=real(4), scale=-np.abs(real(4)), b=real(2, 3, 4)),
          {"decay": F, "beta": F}, {})
    write("linear_attention_gate_half", "LinearAttentionGate",
          dict(a=real(1, 3, 4, dtype=np.float16) * 4, dt=real(4), scale=real(4)),
          {"decay": F16}, {}, **half)


def hyper_connections():
    half = dict(rtol=4e-3, atol=4e-3)
    for name, dtype, kind, tolerance in (("", np.float32, F, {}), ("_half", np.float16, F16, half)):
        write("engram_gate" + name, "EngramGate",
              dict(key=real(1, 3, 2, 8, dtype=dtype), query=real(1, 3, 2, 8, dtype=dtype),
                   value=real(1, 3, 8, dtype=dtype), ks=real(2, 8, dtype=dtype),
                   qs=real(2, 8, dtype=dtype), cs=None if name else real(2, 8, dtype=dtype)),
              {"y": kind} if name else {"y": kind, "normed": kind}, {"epsilon": 1e-4}, **tolerance)
    write("hyper_pre_branch", "HyperConnectionPreMix", dict(x=real(2, 3, 4, 5), mix=real(2, 3, 4)),
          {"y": F}, {"reduction_scale": 0.5})
    write("hyper_pre_feature", "HyperConnectionPreMix",
          dict(x=real(3, 4, 5, dtype=np.float16), mix=real(3, 4, 5)), {"y": F16}, {}, **half)
    write("hyper_pre_flat", "HyperConnectionPreMix",
          dict(x=real(3, 20), mix=real(3, 4, 1)), {"y": F}, {"num_branches": 4})
    write("hyper_post", "HyperConnectionPostMix",
          dict(x=real(2, 4, 5), block=real(2, 5), post=real(2, 4), mix=real(2, 4, 4)), {"y": F}, {})
    write("hyper_post_identity", "HyperConnectionPostMix",
          dict(x=real(2, 20, dtype=np.float16), block=real(2, 5, dtype=np.float16),
               post=real(2, 4, 5, dtype=np.float16)), {"y": F16}, {"num_branches": 4}, **half)


def ngrams():
    ids = ints(3, 2, 9, dtype=np.int64)
    for size in (1, 3):
        write(f"ngram_block_{size}", "NGramRepeatBlock", dict(ids=ids, scores=real(2, 4)), {"y": F},
              {"ngram_size": size})

    def sizes(dtype):
        return {"multipliers": np.array([1000003, 7919, -104729], dtype),
                "vocab": np.array([101, 103, 107, 109], dtype)}
    sizes_of = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 1}
    write("ngram_hash", "NGramHashMapping",
          dict(ids=ints(50000, 2, 5, dtype=np.int64)) | sizes(np.int64),
          {"hash": I64, "present": I64}, sizes_of)
    write("ngram_hash_past", "NGramHashMapping",
          dict(ids=ints(90000, 2, 1)) | sizes(np.int32) |
          dict(past=ints(90000, 2, 2), offsets=np.array([0, 101, 204, 311], np.int32)),
          {"hash": I32, "present": I32}, sizes_of)
    write("ngram_hash_eos", "NGramHashMapping",
          dict(ids=ints(4, 2, 12)) | sizes(np.int32) |
          dict(past=None, offsets=None, eos=scalar(2, np.int32)),
          {"hash": I32}, sizes_of | {"reset_on_eos": 1})
    write("ngram_hash_segments", "NGramHashMapping",
          dict(ids=ints(50, 1, 8, dtype=np.int64)) | sizes(np.int64) |
          dict(past=ints(50, 1, 2, dtype=np.int64), offsets=None, eos=None,
               segments=np.array([[0, 0, 0, 1, 1, 2, 2, 2]], np.int32)),
          {"hash": I64, "present": I64}, sizes_of)
    ends = dict(ends=np.array([0, 4, 5, 9], np.int32))
    write("ngram_hash_varlen", "VarlenNGramHashMapping",
          dict(ids=ints(50, 9, dtype=np.int64)) | sizes(np.int64) | ends,
          {"hash": I64, "present": I64}, sizes_of)
    write("ngram_hash_varlen_states", "VarlenNGramHashMapping",
          dict(ids=ints(4, 9)) | sizes(np.int32) | ends |
          dict(past=ints(4, 3, 2), offsets=ints(100, 4), eos=scalar(2, np.int32),
               segments=np.array([0, 0, 1, 1, 4, 5, 5, 5, 6], np.int32),
               past_segments=np.array([[0, 0], [3, 4], [4, 5]], np.int32),
               captures=np.array([2, 1, 5], np.int32)),
          {"hash": I32, "present": I32, "present_segments": I32, "states": I32},
          sizes_of | {"reset_on_eos": 1, "state_update_capacity": 3})


def rotation():
    def multi(name, shape, section, dtype=np.float32, kind=F, tokens=3, rtol=1e-3, **attributes):
        half = sum(section)
        write(f"mrotary_{name}", "MRotaryEmbedding",
              dict(x=real(*shape, dtype=dtype),
                   positions=ints(9, 3, shape[0], tokens, dtype=np.int64),
                   cos=real(9, half, dtype=dtype), sin=real(9, half, dtype=dtype)), {"y": kind},
              {"mrope_section": section} | attributes, rtol=rtol, atol=rtol / 10)
    multi("sections", (2, 3, 32), [2, 1, 1], num_heads=4)
    multi("interleaved_layout", (1, 2, 3, 12), [2, 2, 2], mrope_layout=1, interleaved=1)
    multi("partial", (1, 3, 40), [3, 2, 1], dtype=np.float16, kind=F16, num_heads=2,
          rotary_embedding_dim=12, mrope_layout=1, scale=0.5, rtol=4e-3)


def states():
    def linear(name, rule, q_heads=2, k_heads=2, heads=2, past=True, key_decay=False, tokens=3,
               **attributes):
        batch, size, width = 2, 4, 3
        gated, delta = rule.startswith("gated"), rule.endswith("delta")
        decays = heads * (size if key_decay else 1)
        write(f"linear_attention_{name}", "LinearAttention",
              dict(q=real(batch, tokens, q_heads * size),
                   k=real(batch, tokens, k_heads * size) * 0.5,
                   v=real(batch, tokens, heads * width),
                   past=real(batch, heads, size, width) if past else None,
                   decay=-np.abs(real(batch, tokens, decays)) if gated else None,
                   beta=np.abs(real(batch, tokens, heads)) * 0.3 if delta else None),
              {"y": F, "state": F},
              {"q_num_heads": q_heads, "kv_num_heads": heads, "update_rule": rule} | attributes)
    linear("plain", "linear", past=False)
    linear("gated", "gated", q_heads=4, key_decay=True, scale=0.3)
    linear("delta", "delta", tokens=1)
    linear("gated_delta", "gated_delta")
    linear("inverse", "gated_delta", q_heads=2, k_heads=2, heads=4)

    def conv(name, shape, taps=4, past=True, bias=True, last=False, **attributes):
        dilation = attributes.get("dilation", 1)
        channels = int(np.prod(shape[2:])) if last else shape[1]
        kept = (shape[0], (taps - 1) * dilation, *shape[2:]) if last else (
            *shape[:2], (taps - 1) * dilation)
        write(f"causal_conv_{name}", "CausalConvWithState",
              dict(x=real(*shape), w=real(channels, 1, taps), b=real(channels) if bias else None,
                   past=real(*kept) if past else None), {"y": F, "state": F},
              attributes | ({"channels_last": 1} if last else {}))
    conv("plain", (2, 3, 5), past=False, bias=False)
    conv("silu", (1, 3, 1), activation="silu")
    conv("dilated", (1, 2, 7), taps=3, dilation=2, activation="swish")
    conv("last", (2, 5, 3), last=True)
    conv("last_grouped", (1, 4, 2, 3), last=True, dilation=2, taps=2, past=False)


GROUPS = [experts, gates, hyper_connections, ngrams, rotation, states]

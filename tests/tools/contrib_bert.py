"""Attention, embeddings, quantization: the first com.microsoft cases (see make_contrib.py)."""
import numpy as np
from contrib_case import (F, F16, I8, I32, MS, U8, ints, onnx_model, real, save, scalar, write)
from onnx import helper


def attention():
    base = dict(input=real(2, 3, 8), weights=real(8, 24) * 0.3, bias=real(24), mask_index=None,
                past=None)
    write("attention_mask_2d", "Attention", base | {"mask_index": ints(2, 2, 3)}, {"y": F},
          {"num_heads": 2}, ("weights", "bias"))
    write("attention_mask_lengths", "Attention",
          base | {"mask_index": np.array([3, 2], np.int32)}, {"y": F}, {"num_heads": 2})
    write("attention_past_causal", "Attention", base | {"past": real(2, 2, 2, 4, 4)},
          {"y": F, "present": F}, {"num_heads": 2, "unidirectional": 1}, ("weights",))
    write("qattention", "QAttention",
          dict(input=ints(255, 2, 3, 8, dtype=np.uint8), weight=ints(255, 8, 24, dtype=np.uint8),
               bias=real(24), input_scale=scalar(0.02), weight_scale=scalar(0.01),
               mask_index=None, input_zero_point=scalar(128, np.uint8),
               weight_zero_point=scalar(120, np.uint8)), {"y": F}, {"num_heads": 2},
          ("weight", "weight_scale", "weight_zero_point", "bias"))


def multi_head():
    base = dict(query=real(2, 3, 8), key=real(2, 5, 8), value=real(2, 5, 12), bias=None,
                key_padding_mask=None, attention_bias=None)
    write("multihead_bias_mask", "MultiHeadAttention",
          base | {"bias": real(28), "key_padding_mask": ints(2, 2, 5)}, {"y": F}, {"num_heads": 2})
    write("multihead_cross", "MultiHeadAttention",
          base | {"key": real(2, 2, 5, 4), "value": real(2, 2, 5, 4)}, {"y": F}, {"num_heads": 2})
    write("multihead_past_added", "MultiHeadAttention",
          dict(query=real(1, 3, 8), key=real(1, 3, 8), value=real(1, 3, 8), bias=None,
               key_padding_mask=None, attention_bias=real(1, 2, 3, 7), past_key=real(1, 2, 4, 4),
               past_value=real(1, 2, 4, 4)), {"y": F, "pk": F, "pv": F}, {"num_heads": 2})


def multi_head_scores():
    base = dict(query=real(2, 3, 8), key=real(2, 3, 8), value=real(2, 3, 8), bias=None,
                key_padding_mask=None, attention_bias=None)
    scores = {"y": F, "pk": None, "pv": None, "qk": F}
    write("multihead_scores_causal", "MultiHeadAttention", base | {"bias": real(24)}, scores,
          {"num_heads": 2, "unidirectional": 1})
    write("multihead_scores_mask", "MultiHeadAttention",
          base | {"key_padding_mask": np.array([[1, 1, 0], [1, 1, 1]], np.int32),
                  "attention_bias": real(1, 2, 3, 3)}, scores, {"num_heads": 2})


def packed_step(packed, cache, outputs, attributes):
    """QKV in one input, which onnxruntime documents and can't run: it gets them apart."""
    name, op, given = "masked_multihead_packed", "DecoderMaskedMultiHeadAttention", {"qkv": packed}
    given |= cache
    model = onnx_model(name, op, given, ["qkv", "", "", "", "", *cache], list(given), outputs, {},
                       attributes, 17, MS)
    apart = onnx_model(name, op, given, ["q", "k", "v", "", "", *cache], list(given), outputs, {},
                       attributes, 17, MS)
    apart.graph.node.insert(0, helper.make_node("Split", ["qkv"], ["q", "k", "v"], axis=2))
    save(name, model, given, op, reference=apart)


def shared_buffer():
    """One new token for four rows, two beams of two sequences, and a cache of six tokens."""
    beams = np.array([[[0, 1, 0, 9, 9, 9], [1, 0, 1, 9, 9, 9]],
                      [[0, 0, 0, 9, 9, 9], [0, 1, 1, 9, 9, 9]]], np.int32)
    outputs = {"y": F, "pk": F, "pv": F}
    token = dict(query=real(4, 1, 8), key=real(4, 1, 8), value=real(4, 1, 8))
    past = dict(past_key=real(4, 2, 6, 4), past_value=real(4, 2, 6, 4))
    length = np.array([3], np.int32)
    add, mask = real(1, 2, 1, 4), np.array([[1, 0, 1, 1]] * 3 + [[1, 1, 1, 1]], np.int32)
    none = dict(bias=None, key_padding_mask=None, attention_bias=None)
    write("multihead_shared", "MultiHeadAttention",
          token | none | {"bias": real(24)} | past | {"length": length}, outputs, {"num_heads": 2})
    write("multihead_shared_beams", "MultiHeadAttention",
          token | none | past | {"length": length, "beams": beams}, outputs, {"num_heads": 2})
    write("multihead_shared_beams_masked", "MultiHeadAttention",
          token | none | {"key_padding_mask": mask, "attention_bias": add} | past |
          {"length": length, "beams": beams}, outputs, {"num_heads": 2})
    none = dict(mask_index=None, attention_bias=None)
    share = {"num_heads": 2, "past_present_share_buffer": 1}
    write("masked_multihead", "DecoderMaskedMultiHeadAttention",
          token | none | past | {"length": length}, outputs, share)
    write("masked_multihead_beams", "DecoderMaskedMultiHeadAttention",
          token | {"mask_index": mask, "attention_bias": add} | past |
          {"length": length, "width": np.array([2], np.int32), "beams": beams,
           "bias": real(24)}, outputs, share | {"scale": 0.4})
    packed_step(real(4, 1, 24), past | {"length": length}, outputs, share)
    write("masked_multihead_cross", "DecoderMaskedMultiHeadAttention",
          dict(query=real(2, 1, 8), key=real(2, 2, 5, 4), value=real(2, 2, 5, 4),
               mask_index=np.array([[1, 1, 1, 0, 0], [1] * 5], np.int32)),
          {"y": F, "pk": None, "pv": None, "qk": F}, {"num_heads": 2, "output_qk": 1})


def reordered():
    """Columns of MatMulNBits whose scales g_idx names."""
    def product(name, rows, bits, **more):
        inputs = dict(a=real(rows, 80), b=ints(256, 5, 3, 4 * bits, dtype=np.uint8),
                      scales=np.abs(real(5, 3)) + 0.1, zeros=None, groups=ints(3, 96)) | more
        write(f"nbits_reordered_{name}", "MatMulNBits", inputs, {"y": F},
              {"K": 80, "N": 5, "bits": bits, "block_size": 32},
              tuple(k for k in ("b", "scales", "zeros", "groups") if inputs[k] is not None))
    product("4", 1, 4)
    product("4_zeros", 3, 4, zeros=real(5, 3) + 7)
    product("4_bias", 20, 4, bias=real(5))


def group_query():
    def inputs(tokens, total, cache, lengths, packed=False, **more):
        batch = len(lengths)
        return dict(query=real(batch, tokens, 128 if packed else 64),
                    key=None if packed else real(batch, tokens, 32),
                    value=None if packed else real(batch, tokens, 32),
                    past_key=real(batch, 2, cache, 16), past_value=real(batch, 2, cache, 16),
                    seqlens_k=np.array(lengths, np.int32) - 1,
                    total_sequence_length=scalar(total, np.int32)) | more
    outputs, heads = {"y": F, "pk": F, "pv": F}, {"num_heads": 4, "kv_num_heads": 2}
    caches = dict(cos_cache=real(16, 8), sin_cache=real(16, 8))
    write("group_prompt_rotary", "GroupQueryAttention", inputs(4, 4, 0, [4], **caches), outputs,
          heads | {"do_rotary": 1})
    write("group_decode_shared_cache", "GroupQueryAttention",
          inputs(1, 9, 12, [9, 5], **caches), outputs, heads | {"do_rotary": 1,
                                                               "rotary_interleaved": 1})
    write("group_window_softcap", "GroupQueryAttention", inputs(1, 9, 12, [9, 7]), outputs,
          heads | {"local_window_size": 3, "softcap": 2.0})
    write("group_packed_smooth", "GroupQueryAttention", inputs(3, 3, 0, [3], packed=True), outputs,
          heads | {"smooth_softmax": 1})
    write("group_sink", "GroupQueryAttention",
          inputs(1, 6, 5, [6], cos_cache=None, sin_cache=None, position_ids=None,
                 attention_bias=None, head_sink=real(4)), outputs, heads)


def embeddings():
    write("embed_norm", "EmbedLayerNormalization",
          dict(ids=ints(10, 2, 4), segments=ints(2, 2, 4), words=real(10, 8), places=real(6, 8),
               segment=real(2, 8), gamma=real(8), beta=real(8),
               mask=np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)),
          {"y": F, "lengths": I32, "sum": F}, {"epsilon": 1e-6})
    codes = {k: ints(255, *s, dtype=np.uint8) for k, s in
             (("words", (10, 8)), ("places", (6, 8)), ("segment", (2, 8)), ("gamma", (8,)),
              ("beta", (8,)))}
    scales = {k + "_scale": scalar(s) for k, s in zip(codes, (0.02, 0.01, 0.03, 0.02, 0.01),
                                                      strict=True)}
    zeros = {k + "_zero": scalar(z, np.uint8) for k, z in zip(codes, (120, 128, 100, 10, 128),
                                                              strict=True)}
    write("embed_norm_quantized", "QEmbedLayerNormalization",
          dict(ids=ints(10, 2, 4), segments=ints(2, 2, 4)) | codes |
          {"mask": np.ones((2, 4), np.int32)} | scales | zeros, {"y": F, "lengths": I32},
          {"epsilon": 1e-6})
    caches = dict(cos=real(12, 4), sin=real(12, 4))
    write("rotary_offset", "RotaryEmbedding",
          dict(x=real(2, 3, 16), positions=np.array([2], np.int64)) | caches, {"y": F},
          {"num_heads": 2})
    write("rotary_interleaved", "RotaryEmbedding",
          dict(x=real(2, 2, 3, 8), positions=ints(12, 2, 3, dtype=np.int64)) | caches, {"y": F},
          {"interleaved": 1})


def quantization():
    write("quantize_axis", "QuantizeLinear",
          dict(x=real(2, 3, 4), scale=np.array([0.1, 0.02, 0.3], np.float32),
               zero=np.array([1, 128, 200], np.uint8)), {"y": U8}, {"axis": 1})
    write("dequantize_16", "DequantizeLinear",
          dict(x=ints(60000, 3, 5, dtype=np.uint16), scale=scalar(0.001),
               zero=scalar(30000, np.uint16)), {"y": F}, {})
    write("dynamic_quantize_lstm", "DynamicQuantizeLSTM",
          dict(x=real(3, 2, 4), w=ints(255, 2, 4, 32, dtype=np.uint8),
               r=ints(255, 2, 8, 32, dtype=np.uint8), b=real(2, 64), lens=None, h=None, c=None,
               p=None, ws=np.full(2, 0.004, np.float32), wz=np.full(2, 128, np.uint8),
               rs=np.full(2, 0.004, np.float32), rz=np.full(2, 128, np.uint8)),
          {"y": F, "yh": F, "yc": F}, {"hidden_size": 8, "direction": "bidirectional"},
          ("w", "r", "b", "ws", "wz", "rs", "rz"), rtol=0.01, atol=0.04)
    # One row: its state's range is the same however onnxruntime's threads divide the batch.
    write("dynamic_quantize_lstm_row", "DynamicQuantizeLSTM",
          dict(x=real(5, 1, 9), w=ints(255, 2, 9, 76, dtype=np.uint8).view(np.int8),
               r=ints(255, 2, 19, 76, dtype=np.uint8).view(np.int8), b=real(2, 152), lens=None,
               h=real(2, 1, 19), c=real(2, 1, 19), p=None, ws=np.abs(real(2, 76)) * 0.004 + 0.001,
               wz=np.zeros((2, 76), np.int8), rs=np.abs(real(2, 76)) * 0.004 + 0.001,
               rz=np.zeros((2, 76), np.int8)),
          {"y": F, "yh": F, "yc": F}, {"hidden_size": 19, "direction": "bidirectional"},
          ("w", "r", "b", "ws", "wz", "rs", "rz"), rtol=1e-5, atol=2e-6)


def quantized_rows():
    for opset, axis in ((12, 1), (13, 1)):
        write(f"qlinear_softmax_{opset}", "QLinearSoftmax",
              dict(x=ints(255, 2, 3, 4, dtype=np.uint8), xs=scalar(0.05), xz=scalar(120, np.uint8),
                   ys=scalar(1 / 256), yz=scalar(0, np.uint8)), {"y": U8},
              {"axis": axis, "opset": opset}, rtol=0, atol=1)
    write("qlinear_where", "QLinearWhere",
          dict(c=ints(2, 3, 1, dtype=bool), x=ints(255, 3, 4, dtype=np.uint8), xs=scalar(0.02),
               xz=scalar(100, np.uint8), y=ints(255, 4, dtype=np.uint8), ys=scalar(0.03),
               yz=scalar(128, np.uint8), zs=scalar(0.025), zz=scalar(110, np.uint8)), {"z": U8},
          {}, ("xs", "xz", "ys", "yz", "zs", "zz"))
    write("gather_blocks_4", "GatherBlockQuantized",
          dict(data=ints(255, 5, 24, dtype=np.uint8), index=ints(5, 2, 2, dtype=np.int64),
               scales=real(5, 3), zeros=ints(255, 5, 2, dtype=np.uint8)), {"y": F},
          {"bits": 4, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}, ("data",))
    write("gather_blocks_8", "GatherBlockQuantized",
          dict(data=ints(255, 5, 32, dtype=np.uint8), index=np.array([-1, 2], np.int32),
               scales=real(5, 2)), {"y": F},
          {"bits": 8, "block_size": 16, "gather_axis": 0, "quantize_axis": 1})


def stored_caches():
    def quantized(name, bits, channel, tokens=1, lengths=(4, 3), cache=6, dtype=np.float32, **more):
        batch = len(lengths)
        size, kind = (16, np.int8) if bits == 8 else (8, np.uint8)
        scales = (1, 2, 1, 16) if channel else (1,)
        scale = {k: np.abs(real(*scales)) * 0.02 + (0.01 if bits == 8 else 0.2)
                 for k in ("k_scale", "v_scale")}
        rows = dict(past_key=ints(256, batch, 2, cache, size, dtype=np.uint8).view(kind),
                    past_value=ints(256, batch, 2, cache, size, dtype=np.uint8).view(kind))
        for rows_of in rows.values(): # what lies behind the sequences is 0
            for b, length in enumerate(lengths):
                rows_of[b, :, length - tokens:] = 0 if bits == 8 else 0x88
        write(f"group_cache_{name}", "GroupQueryAttention",
              dict(query=real(batch, tokens, 64, dtype=dtype),
                   key=real(batch, tokens, 32, dtype=dtype),
                   value=real(batch, tokens, 32, dtype=dtype)) | rows |
              dict(seqlens=np.array(lengths, np.int32) - 1, total=scalar(max(lengths), np.int32),
                   cos=None, sin=None, positions=None, bias=None, sink=None) | scale,
              {"y": F if dtype == np.float32 else F16, "pk": I8 if bits == 8 else U8,
               "pv": I8 if bits == 8 else U8},
              {"num_heads": 4, "kv_num_heads": 2, "kv_cache_bit_width": bits,
               "k_quant_type": "PER_CHANNEL" if channel else "PER_TENSOR",
               "v_quant_type": "PER_CHANNEL" if channel else "PER_TENSOR"},
              shared={"pk": "past_key", "pv": "past_value"}, **more)
    quantized("8_tensor", 8, False)
    quantized("8_channel", 8, True, tokens=2, lengths=(5,))
    quantized("4_tensor", 4, False)
    quantized("4_channel", 4, True, dtype=np.float16, rtol=4e-3, atol=4e-3)


def scores_out():
    for stage in (1, 2):
        write(f"group_scores_{stage}", "GroupQueryAttention",
              dict(query=real(1, 3, 64), key=real(1, 3, 32), value=real(1, 3, 32),
                   past_key=real(1, 2, 0, 16), past_value=real(1, 2, 0, 16),
                   seqlens=np.array([2], np.int32), total=scalar(3, np.int32)),
              {"y": F, "pk": F, "pv": F, "qk": F},
              {"num_heads": 4, "kv_num_heads": 2, "qk_output": stage,
               "softcap": 3.0 * (stage == 1)})
    write("group_scores_bias", "GroupQueryAttention",
          dict(query=real(1, 1, 64), key=real(1, 1, 32), value=real(1, 1, 32),
               past_key=real(1, 2, 4, 16), past_value=real(1, 2, 4, 16),
               seqlens=np.array([4], np.int32), total=scalar(5, np.int32), cos=None, sin=None,
               positions=None, bias=real(1, 4, 1, 5)), {"y": F, "pk": F, "pv": F, "qk": F},
          {"num_heads": 4, "kv_num_heads": 2, "qk_output": 1, "local_window_size": 3})


def sparse():
    rows = np.array([[0, 1, 3, 5, 8], [0, 1, 3, 6, 9]], np.int32)
    columns = np.array([[0, 0, 1, 1, 2, 1, 2, 3, -1], [0, 0, 1, 0, 1, 2, 0, 2, 3]], np.int32)

    def attend(name, tokens, total, lengths, packed=False, dtype=np.float32, layouts=2, rtol=1e-3,
               **attributes):
        batch, cache = len(lengths), 64
        past = {k: real(batch, 2, cache, 16, dtype=dtype) for k in ("past_key", "past_value")}
        for rows_of in past.values(): # what lies behind the sequences is 0
            for b, length in enumerate(lengths):
                rows_of[b, :, length - tokens:] = 0
        turns = attributes.get("do_rotary")
        angles = real(64, 8, dtype=dtype)
        write(f"sparse_attention_{name}", "SparseAttention",
              dict(query=real(batch, tokens, 128 if packed else 64, dtype=dtype),
                   key=None if packed else real(batch, tokens, 32, dtype=dtype),
                   value=None if packed else real(batch, tokens, 32, dtype=dtype),
                   past_key=past["past_key"], past_value=past["past_value"], rows=rows[:layouts],
                   columns=columns[:layouts],
                   total=np.array([total], np.int32), lengths=np.array(lengths, np.int32),
                   cos=np.cos(angles) if turns else None, sin=np.sin(angles) if turns else None),
              {"y": F if dtype == np.float32 else F16,
               "pk": F if dtype == np.float32 else F16, "pv": F if dtype == np.float32 else F16},
              {"num_heads": 4, "kv_num_heads": 2, "sparse_block_size": 16} | attributes,
              shared={"pk": "past_key", "pv": "past_value"}, rtol=rtol,
              atol=rtol if dtype == np.float16 else 1e-5)
    attend("prompt", 20, 20, [20])
    attend("decode_rotary", 1, 50, [50, 50], do_rotary=1)
    attend("packed", 1, 33, [33], packed=True, layouts=1, scale=0.2)
    attend("half", 1, 40, [40], dtype=np.float16, do_rotary=1, rotary_interleaved=1, rtol=4e-3)


GROUPS = [stored_caches, scores_out, sparse, attention, multi_head, multi_head_scores,
          shared_buffer, reordered, group_query, embeddings, quantization, quantized_rows]

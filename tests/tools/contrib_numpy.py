"""Operators of com.microsoft that onnxruntime's CPU build refuses in some form (see make_contrib.py):
expected values are written out in numpy, or are onnxruntime's for an equal computation."""
import numpy as np
from contrib_case import F, F16, ints, real, write


def heads_of(x, heads):
    batch, steps, width = x.shape
    return x.reshape(batch, steps, heads, width // heads).transpose(0, 2, 1, 3)


def turned(x, start, dim):
    """Rotary embedding of the first `dim` elements, halves paired, base 10000."""
    half = dim // 2
    angle = (start + np.arange(x.shape[2]))[:, None] / 10000 ** (np.arange(half) / half)
    a, b = x[..., :half], x[..., half:dim]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle),
                           a * np.sin(angle) + b * np.cos(angle), x[..., dim:]], -1)


def attention(x, w, b, heads, past=None, filled=None, mask=None, rotary=None, causal=False,
              shared=False):
    """The output and the present state, in double; `filled` rows of past are read."""
    q, k, v = [heads_of(part, heads) for part in
               np.split(x.astype(np.float64) @ w.astype(np.float64) + b, 3, -1)]
    start = 0 if past is None else filled
    if rotary is not None:
        q, k = turned(q, start, rotary), turned(k, start, rotary)
    fresh = np.stack([k, v])
    if past is not None:
        fresh = np.concatenate([past[:, :, :, :filled].astype(np.float64), fresh], 3)
    k, v = fresh
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + np.where(mask[:, None, None] if mask.ndim == 2 else mask[:, None],
                                   0.0, -10000.0)
    if causal:
        at, key = start + np.arange(q.shape[2])[:, None], np.arange(k.shape[2])
        scores = np.where(key <= at, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    y = (weights @ v).transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1)
    if not shared:
        return y, fresh
    present = past.astype(np.float64)
    present[:, :, :, filled:filled + x.shape[1]] = fresh[:, :, :, filled:]
    return y, present


def attention_case(name, steps, attributes, kind=np.float32, rows=None, filled=None, mask=None,
                   **options):
    x, w, b = real(2, steps, 12), real(12, 48), real(48)
    past = None if rows is None else real(2, 2, 2, rows, 8)
    given = dict(x=x, w=w, b=b, mask=mask, past=past, add=None,
                 filled=None if "past_present_share_buffer" not in attributes else
                 np.array([filled], np.int32))
    given = {k: v.astype(kind) if v is not None and v.dtype == np.float32 else v
             for k, v in given.items()}
    y, present = attention(given["x"], given["w"], given["b"], 2, given["past"], filled, mask,
                           shared=given["filled"] is not None, **options)
    out = F if kind == np.float32 else F16
    while list(given.values())[-1] is None:
        given.popitem()
    write(f"attention_{name}", "Attention", given, {"y": out, "present": out},
          {"num_heads": 2} | attributes, ("w", "b"), rtol=1e-3 if out == F else 1e-2,
          atol=1e-5 if out == F else 1e-2,
          expected={"y": y.astype(kind), "present": present.astype(kind)})


def attention_positions():
    share, ones = {"past_present_share_buffer": 1}, np.ones((2, 5), np.int32)
    rotary, causal = {"do_rotary": 1}, {"unidirectional": 1}
    ones[1, :2] = 0
    attention_case("rotary", 4, rotary, rotary=8)
    attention_case("rotary_part", 4, rotary | causal | {"rotary_embedding_dim": 4}, rotary=4,
                   causal=True)
    attention_case("rotary_past", 2, rotary | causal, rows=3, filled=3, rotary=8, causal=True,
                   mask=ones)
    attention_case("rotary_half", 3, rotary, np.float16, rotary=8)
    attention_case("shared", 1, share | causal, rows=7, filled=4, causal=True)
    attention_case("shared_masked", 2, share | causal, rows=9, filled=3, causal=True, mask=ones)
    attention_case("shared_masked_3d", 2, share, rows=9, filled=3,
                   mask=np.where(ints(4, 2, 2, 5) > 0, 1, 0).astype(np.int32))
    attention_case("shared_rotary", 1, share | rotary | causal, rows=6, filled=5, rotary=8,
                   causal=True)
    attention_case("shared_full", 3, share, rows=3, filled=0)
    one = np.array([[1], [0]], np.int32)
    x, w, b = real(2, 3, 12), real(12, 48), real(48)
    write("attention_mask_of_one", "Attention", dict(x=x, w=w, b=b, mask=one),
          {"y": F, "present": F}, {"num_heads": 2}, ("w", "b"))


GROUPS = [attention_positions]

"""compare.py - what counts as equal: kind, element type and shape exactly; integers, strings and the
places of NaN and infinities exactly; floats within ulps * eps(type) * |expected| + scale * eps(type).

ulps and scale come from the generator of the operator: ulps bounds the relative error of its last
operations, scale the sums before it (terms * largest product, the bound of a dot product).
"""
import numpy as np

FLOATS = ("float8", "float6", "float4", "bfloat16", "float16", "float32", "float64")


def is_float(dtype):
    return dtype.name.startswith(FLOATS)


def low(dtype):
    return is_float(dtype) and dtype.name not in ("float32", "float64")


def eps(dtype):
    import ml_dtypes
    if dtype.name.startswith("float8_e8m0"):
        return 1.0
    return float((ml_dtypes.finfo if low(dtype) else np.finfo)(dtype).eps)


def largest(dtype):
    import ml_dtypes
    return float((ml_dtypes.finfo if low(dtype) else np.finfo)(dtype).max)


def _floats(actual, expected, tol):
    """Index of the first element out of tolerance, or None."""
    dtype = expected.dtype
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    unit = eps(np.dtype(np.float32)) if low(dtype) or tol.in_float else eps(dtype)
    with np.errstate(all="ignore"):
        scale = tol.scale if np.shape(tol.scale) in ((), b.shape) else np.max(tol.scale)
        bound = scale * unit + tol.absolute + tol.ulps * unit * np.abs(b)
        if low(dtype):
            bound = bound + eps(dtype) * np.abs(b)
        bound = bound + float(np.finfo(np.float32 if low(dtype) or tol.in_float
                                                    else dtype).smallest_normal)
        if low(dtype):
            import ml_dtypes
            bound = bound + float(ml_dtypes.finfo(dtype).smallest_subnormal)
        good = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= bound)
        # A result that rounds to infinity on one side only: both at the border of the type.
        edge = largest(dtype) * (1 - max(tol.ulps * unit, 2 * eps(dtype)))
        good |= (np.abs(a) >= edge) & (np.abs(b) >= edge) & (np.sign(a) == np.sign(b)) & \
            (np.isinf(a) != np.isinf(b))
    bad = np.flatnonzero(~good.reshape(-1))
    return int(bad[0]) if bad.size else None


def _arrays(actual, expected, tol):
    if actual.dtype != expected.dtype:
        return f"type {actual.dtype}, expected {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    if expected.dtype.kind == "c":
        return _arrays(actual.real, expected.real, tol) or _arrays(actual.imag, expected.imag, tol)
    if is_float(expected.dtype):
        at = _floats(actual, expected, tol)
    elif tol.steps and expected.dtype.name.startswith(("int", "uint")):
        wide = np.abs(actual.astype(np.int64) - expected.astype(np.int64)).reshape(-1) > tol.steps
        at = int(np.flatnonzero(wide)[0]) if wide.any() else None
    else:
        bad = np.flatnonzero((actual != expected).reshape(-1))
        at = int(bad[0]) if bad.size else None
    if at is None:
        return None
    where = tuple(int(i) for i in np.unravel_index(at, expected.shape))
    return f"{where}: {actual[where]!r}, expected {expected[where]!r}"


def kinds(*values):
    """Both values by kind and size only."""
    parts = [f"{type(v).__name__}" + (f" of {len(v)}" if isinstance(v, list | dict) else "")
             for v in values]
    return ", expected ".join(parts)


def difference(actual, expected, tol):
    """None, or what differs first."""
    if expected is None or actual is None:
        return None if expected is actual else kinds(actual, expected)
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return kinds(actual, expected)
        parts = (difference(a, b, tol) for a, b in zip(actual, expected, strict=True))
        return next((f"item {i}: {p}" for i, p in enumerate(parts) if p), None)
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or actual.keys() != expected.keys():
            return kinds(actual, expected)
        keys = list(expected)
        return _arrays(np.array([actual[k] for k in keys], np.float32),
                       np.array([expected[k] for k in keys], np.float32), tol)
    return _arrays(np.asarray(actual), np.asarray(expected), tol)

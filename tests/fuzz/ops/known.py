"""known.py - the differences that stay. A line of tests/fuzz/known.txt is

    RULE PEER OPERATOR,.. "the sentence that decides it" (where it stands)

and the rule of that name here recognises its cases: given the case, our result, the peer's, and
same(a, b, output), it says whether the sentence explains what differs. The peer is set aside then,
and the peers after it judge. A rule without a line, or a line without a rule, is an error. The
runner prints how many cases of a run needed each line.
"""
import dataclasses
import pathlib
import re

import numpy as np

FILE = pathlib.Path(__file__).resolve().parents[1] / "known.txt"
RULES = {}
MOST = 20  # lines
LINE = re.compile(r'(?P<rule>\S+)\s+(?P<peer>\S+)\s+(?P<operators>\S+)\s+"(?P<sentence>.+)"\s+\(.+\)')


@dataclasses.dataclass
class Line:
    rule: str
    peer: str
    operators: tuple
    sentence: str


def rule(name):
    def register(function):
        RULES[name] = function
        return function
    return register


def load():
    lines = []
    for text in FILE.read_text().splitlines():
        if not text.strip() or text.startswith("#"):
            continue
        match = LINE.fullmatch(text.strip())
        if not match:
            raise SystemExit(f"{FILE}: not RULE PEER OPERATORS \"sentence\" (where): {text[:60]}")
        lines.append(Line(match["rule"], match["peer"], tuple(match["operators"].split(",")),
                          match["sentence"]))
    names = {line.rule for line in lines}
    if names != set(RULES) or len(names) != len(lines):
        raise SystemExit(f"{FILE}: lines and rules differ: {sorted(names ^ set(RULES))}")
    if len(lines) > MOST:
        raise SystemExit(f"{FILE}: {len(lines)} lines, at most {MOST}")
    return lines


def explains(lines, case, peer, got, want, same):
    """The line that covers this difference from this peer, or None."""
    name = f"{case.domain}.{case.name}" if case.domain else case.name
    for line in lines:
        if line.peer == peer.replace("float", "onnxruntime") and name in line.operators and \
                RULES[line.rule](case, got, want, same):
            return line
    return None


def value(case, position):
    """An input's value, None where it is absent."""
    return case.inputs[position].value if position < len(case.inputs) else None


# ---- the rules

@rule("generation-tail")
def generation_tail(case, got, want, same):
    """The same tokens up to the first padding of the row that ends last; behind it the peer has
    written nothing."""
    ours, theirs = got[0], want[0]
    pad, prompt = case.attrs["pad_token_id"], value(case, 0).shape[1]
    tokens = np.flatnonzero((ours != pad).any(axis=0))
    last = max(int(tokens.max(initial=0)) + 1, prompt) + 1
    return ours.shape == theirs.shape and last < ours.shape[1] and \
        np.array_equal(ours[:, :last], theirs[:, :last])


@rule("single-step")
def single_step(case, got, want, same):
    """An encoder's search that ends with its first token: the peer takes tokens from memory that it
    hasn't written, other ones in each process, and at times refuses them as an index."""
    return "encoder" in case.attrs and int(value(case, 1)[0]) == 2


@rule("softmax-saturates")
def softmax_saturates(case, got, want, same):
    """A probability of 1 at a scale of 1/256 is 256: beyond the type, where the peer begins anew."""
    info = np.iinfo(got[0].dtype)
    moved = got[0] != want[0]
    return bool(np.all(got[0][moved] == info.max) and np.all(want[0][moved] == info.min))


@rule("zero-points-with-groups")
def zero_points_with_groups(case, got, want, same):
    """Packed zero points beside g_idx: the peer takes the default one."""
    zeros = value(case, 3)
    return zeros is not None and zeros.dtype == np.uint8 and value(case, 4) is not None


@rule("causal-last-row")
def causal_last_row(case, got, want, same):
    """The last query of a causal attention sees every key when there are more keys than queries."""
    return bool(case.attrs.get("unidirectional")) and same(got[0][:, :-1], want[0][:, :-1], 0)


@rule("largest-with-nan")
def largest_with_nan(case, got, want, same):
    """NaN is the largest and the smallest in numpy; the peer passes it over."""
    ours, theirs = (np.asarray(v[0]).astype(np.float64) for v in (got, want))
    return ours.shape == theirs.shape and same(
        np.where(np.isnan(ours), 0, ours).astype(got[0].dtype),
        np.where(np.isnan(ours), 0, theirs).astype(got[0].dtype), 0)


@rule("empty-axes-go")
def empty_axes_go(case, got, want, same):
    """A set without elements: the peer's output has the size of the input along its axes."""
    return value(case, 0).size == 0 and got[0].shape != want[0].shape


@rule("causal-offset")
def causal_offset(case, got, want, same):
    """A causal mask behind a cache of keys."""
    return bool(case.attrs.get("is_causal")) and value(case, 4) is not None


@rule("same-size-dilated")
def same_size_dilated(case, got, want, same):
    """SAME_UPPER or SAME_LOWER with dilations, which the peer leaves out of the padding: its output
    is smaller than the one that the sentence gives."""
    a = case.attrs
    if "SAME" not in a.get("auto_pad", "") or set(a.get("dilations", [1])) == {1}:
        return False
    last = case.name == "NhwcMaxPool"
    sizes, out = (v.shape[1:-1] if last else v.shape[2:] for v in (value(case, 0), got[0]))
    strides = a.get("strides", [1] * len(sizes))
    return list(out) == [-(-n // s) for n, s in zip(sizes, strides, strict=True)]


@rule("sums-of-nothing")
def sums_of_nothing(case, got, want, same):
    """No products to add up: the peer leaves what its memory held, or takes alpha for beta."""
    return value(case, 0).size == 0 and value(case, 1).size == 0


@rule("whole-sums")
def whole_sums(case, got, want, same):
    """Sums of integers come through a float type, which holds fewer digits and saturates."""
    return value(case, 0).dtype.kind in "iu"


@rule("whole-remainders")
def whole_remainders(case, got, want, same):
    """64-bit integers go through double."""
    return case.attrs.get("fmod") == 1 and value(case, 0).dtype.kind in "iu" and \
        value(case, 0).dtype.itemsize == 8


@rule("gathered-texts")
def gathered_texts(case, got, want, same):
    return value(case, 0).dtype == object


@rule("shrunk-in-float")
def shrunk_in_float(case, got, want, same):
    return value(case, 0).dtype == np.float64 or value(case, 0).dtype.kind in "iu"


@rule("split-keeps-dims")
def split_keeps_dims(case, got, want, same):
    """keepdims = 0 beside `split`."""
    return case.attrs.get("keepdims") == 0 and value(case, 1) is not None


@rule("split-at-blanks")
def split_at_blanks(case, got, want, same):
    return True


@rule("weights-by-gram")
def weights_by_gram(case, got, want, same):
    return "weights" in case.attrs


@rule("col2im-ranks")
def col2im_ranks(case, got, want, same):
    return len(value(case, 1)) != 2


@rule("binary-labels")
def binary_labels(case, got, want, same):
    """Two classes with a weight each: the peer takes them for one."""
    return len(case.attrs.get("classlabels_strings", case.attrs.get("classlabels_int64s"))) == 2


@rule("missing-tracks")
def missing_tracks(case, got, want, same):
    """NaN at a BRANCH_NEQ node."""
    return "BRANCH_NEQ" in case.attrs["nodes_modes"] and bool(np.isnan(value(case, 0)).any())

"""Medians of rounds with their intervals, for benches on machines that do other work."""
import math
import statistics


def interval(values):
    """Of the median, 95 %, by ranks: no assumption on how values are distributed. None: too few."""
    n, below, k = len(values), 0.0, 0
    while below + math.comb(n, k) / 2 ** n <= 0.025:
        below += math.comb(n, k) / 2 ** n
        k += 1
    return (sorted(values)[k - 1], sorted(values)[n - k]) if k else None


def decide(measure, limit, most):
    """Calls measure() until the interval of its values lies on one side of the limit, at most `most` times: the median,
    the interval, how many there were."""
    values = []
    while True:
        values.append(measure())
        range_ = interval(values)
        if range_ and (range_[1] <= limit or range_[0] > limit or len(values) >= most):
            return statistics.median(values), range_, len(values)

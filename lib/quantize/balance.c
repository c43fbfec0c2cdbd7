/* balance.c - codes that go the other way, the cheapest first. */
#include "quantize/balance.h"

#include <math.h>

/* One channel, gathered. */
typedef struct channel {
    const ort_codes_range *codes;
    const ort_pairs *pairs;
    float *error;  /* in steps: what the code stands for less the number */
    int *code;
    int64_t *heap; /* of those that may go the other way */
} channel;

static bool fits_in_pairs(const channel *c, int64_t i, int to)
{
    int64_t other[2];
    for (int k = c->pairs ? ort_pairs_of(c->pairs, i, other) : 0; k-- > 0;)
        if (!ort_pair_fits(to, c->code[other[k]]))
            return false;
    return true;
}

/* An error e becomes e + way: it must have been of the other sign, and a code must be there. What
 * was clipped, or went before, stays. */
static bool may_go(const channel *c, int64_t i, int way)
{
    float e = c->error[i];
    int to = c->code[i] + way;
    return e * (float)way < 0 && fabsf(e) <= 0.5f && to >= c->codes->least &&
           to <= c->codes->most && fits_in_pairs(c, i, to);
}

/* Does i cost less than k? The one whose error is larger; of equal ones the first. */
static bool before(const channel *c, int64_t i, int64_t k)
{
    float a = fabsf(c->error[i]), b = fabsf(c->error[k]);
    return a > b || (a == b && i < k);
}

static void sift(const channel *c, int64_t n, int64_t at)
{
    int64_t *heap = c->heap;
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && before(c, heap[child + 1], heap[child]))
            child++;
        if (!before(c, heap[child], heap[at]))
            return;
        int64_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

/* Of the numbers [from, to), as many as bring the sum of errors next to 0 go the other way. */
static void balance(const channel *c, int64_t from, int64_t to)
{
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = from; i < to; i++)
        sum += (double)c->error[i];
    const int way = sum > 0 ? -1 : 1;
    int64_t wanted = (int64_t)nearbyint(fabs(sum));
    for (int64_t i = from; i < to && wanted > 0; i++)
        if (may_go(c, i, way))
            c->heap[n++] = i;
    for (int64_t at = n / 2 - 1; at >= 0; at--)
        sift(c, n, at);
    while (wanted > 0 && n > 0) {
        int64_t i = c->heap[0];
        if (fits_in_pairs(c, i, c->code[i] + way)) {
            c->code[i] += way;
            c->error[i] += (float)way;
            wanted--;
        }
        c->heap[0] = c->heap[--n];
        sift(c, n, 0);
    }
}

void ort_balance_line(const ort_codes_range *codes, ort_grid grid, const float *numbers, int64_t n,
                      int64_t plane, const ort_pairs *pairs, int *code,
                      const ort_balance_room *room)
{
    const channel c = {codes, pairs, room->error, code, room->heap};
    const double scale = (double)grid.scale;
    for (int64_t i = 0; i < n; i++) {
        double error = code[i] - grid.zero_point - (double)numbers[i] / scale;
        c.error[i] = isfinite(numbers[i]) ? (float)error : 0;
    }
    for (int64_t i = 0; i < n && plane > 1; i += plane)
        balance(&c, i, i + plane);
    balance(&c, 0, n);
}

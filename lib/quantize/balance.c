/* balance.c - codes that go the other way, the cheapest first. */
#include "quantize/balance.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"

/* One channel, gathered. */
typedef struct channel {
    const ort_codes_range *codes;
    float *error;  /* in steps: what the code stands for less the number */
    int *code;
    int64_t *heap; /* of those that may go the other way */
} channel;

/* An error e becomes e + way: it must have been of the other sign, and a code must be there. What
 * was clipped, or went before, stays. */
static bool may_go(const channel *c, int64_t i, int way)
{
    float e = c->error[i];
    int to = c->code[i] + way;
    return e * (float)way < 0 && fabsf(e) <= 0.5f && to >= c->codes->least &&
           to <= c->codes->most;
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
    for (; wanted > 0 && n > 0; wanted--) {
        int64_t i = c->heap[0];
        c->code[i] += way;
        c->error[i] += (float)way;
        c->heap[0] = c->heap[--n];
        sift(c, n, 0);
    }
}

/* Where a tensor's numbers of one channel lie: [outer][channels][inner]. */
typedef struct layout {
    int64_t outer, channels, inner, plane;
} layout;

static layout layout_of(const ort_tensor *t, int axis)
{
    layout l = {1, 1, 1, 1};
    if (axis < 0 && t->shape.rank > 2)
        axis = 0; /* filters, in any case */
    for (int i = 0; i < t->shape.rank; i++) {
        *(i < axis ? &l.outer : i == axis ? &l.channels : &l.inner) *= t->shape.dim[i];
        l.plane *= i >= 2 ? t->shape.dim[i] : 1;
    }
    return l;
}

static void balance_channel(const ort_balance *b, const layout *l, const channel *c, int64_t k,
                            ort_tensor *codes)
{
    int64_t of = ort_tensor_count(b->scales) > 1 ? k : 0, n = l->outer * l->inner;
    const double scale = ort_tensor_get_f64(b->scales, of);
    const double zero = ort_tensor_get_f64(b->zeros, of);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (i / l->inner * l->channels + k) * l->inner + i % l->inner;
        float x = ((const float *)b->numbers->data)[at];
        double code = ort_tensor_get_f64(codes, at);
        c->code[i] = (int)code;
        c->error[i] = isfinite(x) ? (float)(code - zero - (double)x / scale) : 0;
    }
    for (int64_t i = 0; i < n && l->plane > 1; i += l->plane)
        balance(c, i, i + l->plane);
    balance(c, 0, n);
    for (int64_t i = 0; i < n; i++)
        ort_tensor_set_f64(codes, (i / l->inner * l->channels + k) * l->inner + i % l->inner,
                           c->code[i]);
}

ort_status ort_balance_codes(const ort_balance *b, ort_tensor *codes, ort_error *err)
{
    const layout l = layout_of(b->numbers, b->axis);
    size_t n = (size_t)(l.outer * l.inner);
    channel c = {b->codes, malloc((n + 1) * sizeof *c.error), malloc((n + 1) * sizeof *c.code),
                 malloc((n + 1) * sizeof *c.heap)};
    ort_status status = c.error && c.code && c.heap ? ORT_OK
                                                    : ort_error_memory(err, n * sizeof *c.heap);
    for (int64_t k = 0; k < l.channels && n > 0 && status == ORT_OK; k++)
        balance_channel(b, &l, &c, k, codes);
    free(c.error);
    free(c.code);
    free(c.heap);
    return status;
}

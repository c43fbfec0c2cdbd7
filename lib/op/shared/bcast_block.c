/* bcast_block.c - see bcast_block.h.
 *
 * Runs are laid out whole, also those that a block begins or ends in, and in stores of 16 bytes of
 * which the last may reach into the next run: so a run of four floats costs one store.
 */
#include "op/shared/bcast_block.h"

#pragma GCC optimize("O3")

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/move.h"

typedef uint8_t vec8 __attribute__((vector_size(16)));
typedef uint16_t vec16 __attribute__((vector_size(16)));
typedef uint32_t vec32 __attribute__((vector_size(16)));
typedef uint64_t vec64 __attribute__((vector_size(16)));

/* Measured: a call for each run is as fast from these lengths on, also where memory is slow. */
enum { FEW_LAID_OUT = 24, FEW_REPEATED = 48 };

/* Advances with the output, or has its runs over and over. */
static bool is_laid_out_once(const ort_bcast *alone)
{
    return alone->flat ||
           (alone->rank == 2 && alone->stride[0][0] == 0 && alone->dim[1] <= ORT_BCAST_SHORT);
}

/* The axes of `b` joined where operand k doesn't tell them apart. */
static void see_alone(ort_bcast *alone, const ort_bcast *b, int k)
{
    *alone = (ort_bcast){.inputs = 1, .total = b->total};
    for (int d = 0; d < b->rank; d++) {
        int at = alone->rank - 1;
        int64_t stride = b->stride[k][d];
        if (at < 0 || alone->stride[0][at] != stride * b->dim[d]) {
            alone->dim[++at] = b->dim[d];
            alone->rank++;
        } else {
            alone->dim[at] *= b->dim[d];
        }
        alone->stride[0][at] = stride;
    }
    alone->flat = alone->rank == 1 && alone->stride[0][0] == 1;
}

bool ort_bcast_has_short_runs(const ort_bcast *b)
{
    int64_t length = b->dim[b->rank - 1];
    if (b->rank < 2 || length >= FEW_REPEATED)
        return false;
    for (int k = 0; k < b->inputs && length >= FEW_LAID_OUT; k++) {
        ort_bcast alone;
        see_alone(&alone, b, k);
        if (!is_laid_out_once(&alone))
            return false;
    }
    return true;
}

/* ---- runs side by side */

#define REPEAT_EACH(type, vec)                                                                     \
    for (; runs > 0; runs--, from += step, to += length) {                                         \
        vec v_ = *(const type *)(const void *)from - (vec){0};                                     \
        for (int64_t i = 0; i < length; i += 16)                                                   \
            memcpy(to + i, &v_, sizeof v_);                                                        \
    }                                                                                              \
    break;

/* `runs` runs of `length` bytes, each one element over and over; the next begins `step` bytes
 * further. */
static void repeat_each(char *to, const char *from, int64_t step, int64_t runs, int64_t length,
                        size_t bytes)
{
    switch (bytes) {
    case 1: REPEAT_EACH(uint8_t, vec8)
    case 2: REPEAT_EACH(uint16_t, vec16)
    case 4: REPEAT_EACH(uint32_t, vec32)
    case 8: REPEAT_EACH(uint64_t, vec64)
    default:
        for (; runs > 0; runs--, from += step, to += length)
            for (int64_t i = 0; i < length; i += 16)
                memcpy(to + i, from, 16);
    }
}

/* The same of runs that lie side by side in memory. */
static void copy_each(char *to, const char *from, int64_t step, int64_t runs, int64_t length)
{
    for (; runs > 0; runs--, from += step, to += length)
        ort_move_bytes(to, from, (size_t)length);
}

/* One run, over and over. */
static void repeat_run(char *to, const char *from, size_t length, size_t total)
{
    memcpy(to, from, length);
    for (size_t have = length, more; have < total; have += more) {
        more = have < total - have ? have : total - have;
        memcpy(to + have, to, more);
    }
}

/* Runs [run, run + runs) of an operand with short ones. */
static void put_runs(const ort_bcast_operand *o, int64_t run, int64_t runs)
{
    const ort_bcast *b = &o->alone;
    int last = b->rank - 1, outer = last - 1;
    int64_t bytes = (int64_t)o->bytes, length = b->dim[last] * bytes;
    int64_t index[ORT_MAX_RANK], at = 0;
    char *to = o->space;
    for (int d = outer; d >= 0; d--) {
        index[d] = run % b->dim[d];
        run /= b->dim[d];
        at += index[d] * b->stride[0][d];
    }
    for (;;) {
        int64_t n = ort_min_i64(runs, b->dim[outer] - index[outer]);
        const char *from = o->data + at * bytes;
        if (b->stride[0][last] == 0)
            repeat_each(to, from, b->stride[0][outer] * bytes, n, length, o->bytes);
        else
            copy_each(to, from, b->stride[0][outer] * bytes, n, length);
        to += n * length;
        runs -= n;
        if (runs == 0)
            return;
        at -= index[outer] * b->stride[0][outer];
        index[outer] = 0;
        for (int d = outer - 1; d >= 0; d--) {
            at += b->stride[0][d];
            if (++index[d] < b->dim[d])
                break;
            at -= b->dim[d] * b->stride[0][d];
            index[d] = 0;
        }
    }
}

/* ---- longer runs, one after another */

typedef struct placing {
    const ort_bcast_operand *o;
    int64_t first;
} placing;

static void place_run(void *arg, int64_t out, const int64_t *in, int64_t n)
{
    const placing *p = arg;
    int64_t bytes = (int64_t)p->o->bytes;
    char *to = p->o->space + (out - p->first) * bytes;
    const char *from = p->o->data + in[0] * bytes;
    if (p->o->alone.stride[0][p->o->alone.rank - 1] == 0)
        repeat_each(to, from, 0, 1, n * bytes, p->o->bytes);
    else
        memcpy(to, from, (size_t)(n * bytes));
}

/* ---- operands */

void ort_bcast_operand_begin(ort_bcast_operand *o, const ort_bcast *b, int k, const void *data,
                             size_t bytes, void *space)
{
    assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16);
    o->data = data;
    o->bytes = bytes;
    o->space = space;
    see_alone(&o->alone, b, k);
    const ort_bcast *alone = &o->alone;
    int64_t length = alone->dim[alone->rank - 1];
    o->repeats = !alone->flat && is_laid_out_once(alone);
    if (o->repeats)
        repeat_run(o->space, o->data, (size_t)length * bytes,
                   (size_t)(ORT_BCAST_BLOCK + length) * bytes);
}

const void *ort_bcast_operand_block(ort_bcast_operand *o, int64_t first, int64_t n)
{
    const ort_bcast *b = &o->alone;
    int64_t bytes = (int64_t)o->bytes, length = b->dim[b->rank - 1], within = first % length;
    assert(n > 0 && n <= ORT_BCAST_BLOCK);
    if (b->flat)
        return o->data + first * bytes;
    if (!o->repeats && b->rank > 1 && length <= ORT_BCAST_SHORT)
        put_runs(o, first / length, (within + n - 1) / length + 1);
    else if (!o->repeats) {
        placing p = {o, first};
        ort_bcast_walk(b, first, n, place_run, &p);
        return o->space;
    }
    return o->space + within * bytes;
}

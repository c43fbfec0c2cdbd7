/* bytes_channels.c - BytesChannels: each channel of the result is some channel of one of the
 * inputs, all in the layout of bytes. So channels are put behind each other, divided, left out and
 * shuffled, whether they fill their blocks or not, in one pass. Codes of another scale go through a
 * table of their input, once all of a block that come from there are put together: looking up
 * takes ten times as long as picking.
 */
#include <string.h>

#include "base/checked.h"
#include "op/blocked/bytes_op.h"
#include "op/shared/unary_apply.h"

enum { PIXELS = 128 }; /* of a stretch: it stays in the nearest cache over all parts */

/* What an output block takes from one block of an input. */
typedef struct channels_part {
    int64_t input, block;
    int8_t lanes[ORT_BYTES_BLOCK]; /* of the input, by that of the output; -1: none */
    int8_t own[ORT_BYTES_BLOCK];   /* of the output, those that the parts up to this one of its
                                      input give; -1: another input's */
    bool whole;                    /* the block as it is */
    bool last;                     /* of its input */
} channels_part;

typedef struct channels_state {
    ort_ints channels, from;
    int64_t blocks;
    const channels_part *parts;
    const int64_t *first;       /* part of each block, and one behind the last */
    const uint8_t *tables;      /* [input][256], or NULL */
    const bool *same;           /* by input: its table changes nothing */
} channels_state;

static const ort_bind channels_bind[] = {
    ORT_BIND(channels_state, channels), ORT_BIND(channels_state, from), {0}};

static ort_status channels_infer(ort_infer *x, ort_error *err)
{
    size_t inputs = 0, count = 0;
    ort_dim out[ORT_MAX_RANK];
    ort_node_ints(x->node, "channels", &inputs);
    ort_node_ints(x->node, "from", &count);
    if (x->in_count < 2 || inputs != (size_t)x->in_count - 1)
        return ort_infer_fail(x, err, "%zu numbers of channels don't fit %d inputs", inputs,
                              x->in_count - 1);
    if (!ort_infer_in_ranked(x, 1))
        return ORT_OK;
    const ort_type *t = &x->in[1]->type;
    if (t->rank < 4)
        return ort_infer_fail(x, err, "the input's rank isn't one of the layout");
    for (int i = 0; i < t->rank; i++)
        out[i] = t->dim[i];
    out[1] = ort_dim_of((int64_t)ort_task_count((int64_t)count, ORT_BYTES_BLOCK));
    ort_infer_set_shape(x, 0, t->rank, out);
    return ORT_OK;
}

/* ---- prepare: the parts of each block */

/* The input of a channel of all of them, and its place there. False: there is none. */
static bool find_channel(const channels_state *s, int64_t channel, int64_t *input, int64_t *place)
{
    *place = channel;
    for (*input = 0; *input < (int64_t)s->channels.count; ++*input) {
        if (*place < s->channels.ptr[*input])
            return channel >= 0;
        *place -= s->channels.ptr[*input];
    }
    return false;
}

static channels_part *part_of(channels_part *first, channels_part **end, int64_t input,
                              int64_t block)
{
    for (channels_part *p = first; p < *end; p++)
        if (p->input == input && p->block == block)
            return p;
    channels_part *p = (*end)++;
    p->input = input;
    p->block = block;
    memset(p->lanes, -1, sizeof p->lanes);
    return p;
}

/* The parts of a block by their inputs. */
static void order_parts(channels_part *begin, const channels_part *end)
{
    for (channels_part *p = begin; p < end; p++)
        for (channels_part *q = p; q > begin && q[-1].input > q->input; q--) {
            channels_part other = q[-1];
            q[-1] = *q;
            *q = other;
        }
    for (channels_part *p = begin; p < end; p++) {
        p->last = p + 1 == end || p[1].input != p->input;
        for (int8_t i = 0; i < ORT_BYTES_BLOCK; i++)
            p->own[i] = p->lanes[i] >= 0 ? i
                        : p > begin && p[-1].input == p->input ? p[-1].own[i]
                                                               : -1;
    }
}

static ort_status list_parts(ort_prep *p, channels_state *s, ort_error *err)
{
    const int64_t count = (int64_t)s->from.count;
    channels_part *parts = ort_arena_array(p->arena, s->from.count + 1, sizeof *parts);
    channels_part *end = parts;
    int64_t *first = ort_arena_array(p->arena, (size_t)s->blocks + 1, sizeof *first);
    if (!parts || !first)
        return ort_error_memory(err, s->from.count * sizeof *parts);
    for (int64_t b = 0; b < s->blocks; b++) {
        channels_part *begin = end;
        first[b] = begin - parts;
        for (int64_t c = b * ORT_BYTES_BLOCK; c < count && c < (b + 1) * ORT_BYTES_BLOCK; c++) {
            int64_t input, place;
            if (s->from.ptr[c] == -1)
                continue;
            if (!find_channel(s, s->from.ptr[c], &input, &place))
                return ort_prep_fail(p, err, "no input has channel %lld",
                                     (long long)s->from.ptr[c]);
            part_of(begin, &end, input, place / ORT_BYTES_BLOCK)->lanes[c % ORT_BYTES_BLOCK] =
                (int8_t)(place % ORT_BYTES_BLOCK);
        }
        order_parts(begin, end);
        for (channels_part *at = begin; at < end; at++) {
            at->whole = end - begin == 1;
            for (int i = 0; i < ORT_BYTES_BLOCK; i++) /* behind the last one may be anything */
                at->whole = at->whole && (at->lanes[i] == i ||
                                          b * ORT_BYTES_BLOCK + i >= count);
        }
    }
    first[s->blocks] = end - parts;
    s->parts = parts;
    s->first = first;
    return ORT_OK;
}

static ort_status channels_prepare(ort_prep *p, ort_error *err)
{
    channels_state *s = p->state;
    const ort_tensor *tables = ort_prep_constant(p, 0);
    const size_t inputs = s->channels.count;
    bool *same = ort_arena_array(p->arena, inputs + 1, sizeof *same);
    if (!same)
        return ort_error_memory(err, inputs);
    for (size_t i = 0; i < inputs; i++)
        if (s->channels.ptr[i] < 1)
            return ort_prep_fail(p, err, "input %zu has no channels", i);
    if (ort_prep_dtype(p, 0) != ORT_DTYPE_UNDEFINED &&
        (!tables || ort_tensor_count(tables) != (int64_t)inputs * 256))
        return ort_prep_fail(p, err, "its tables aren't constant, or don't fit");
    s->tables = tables ? tables->data : NULL;
    for (size_t i = 0; i < inputs; i++) {
        same[i] = true;
        for (int c = 0; s->tables && c < 256; c++)
            same[i] = same[i] && s->tables[i * 256 + (size_t)c] == c;
    }
    s->same = same;
    s->blocks = (int64_t)ort_task_count((int64_t)s->from.count, ORT_BYTES_BLOCK);
    return list_parts(p, s, err);
}

static ort_status channels_shape(ort_shaping *sh, ort_error *err)
{
    const channels_state *s = sh->state;
    ort_blocked_dims *d = ort_arena_alloc(sh->arena, sizeof *d), in;
    if (!d)
        return ort_error_memory(err, sizeof *d);
    sh->plan_state = d;
    bool fits = ort_bytes_read(&sh->out[0]->shape, d) && d->blocks == s->blocks;
    for (int i = 1; fits && i < sh->in_count; i++)
        fits = sh->in[i] && ort_bytes_read(&sh->in[i]->shape, &in) && in.n == d->n &&
               in.in[0] == d->in[0] && in.in[1] == d->in[1] &&
               in.blocks == (int64_t)ort_task_count(s->channels.ptr[i - 1], ORT_BYTES_BLOCK);
    return fits ? ORT_OK : ort_error_set(err, ORT_ERROR_MODEL, "the inputs don't fit each other");
}

/* ---- run */

typedef struct channels_job {
    ort_call *call;
    const channels_state *s;
    const ort_blocked_dims *d;
    uint8_t *y;
} channels_job;

/* `count` pixels of one block of the output, from `pixel` on. */
static void fill_stretch(const channels_job *j, int64_t image, int64_t block, int64_t pixel,
                         int64_t count)
{
    const channels_state *s = j->s;
    const int64_t bytes = count * ORT_BYTES_BLOCK;
    uint8_t *y = j->y + ((image * s->blocks + block) * j->d->plane + pixel) * ORT_BYTES_BLOCK;
    uint8_t coded[PIXELS * ORT_BYTES_BLOCK];
    if (s->first[block] == s->first[block + 1])
        memset(y, 0, (size_t)bytes);
    bool fresh = true, begins = true; /* nothing is in y, in coded */
    for (int64_t i = s->first[block]; i < s->first[block + 1]; i++) {
        const channels_part *p = &s->parts[i];
        const uint8_t *table = s->same[p->input] ? NULL : s->tables + p->input * 256;
        int64_t blocks = (int64_t)ort_task_count(s->channels.ptr[p->input], ORT_BYTES_BLOCK);
        const uint8_t *x = (const uint8_t *)ort_call_in(j->call, (int)p->input + 1)->data +
                           ((image * blocks + p->block) * j->d->plane + pixel) * ORT_BYTES_BLOCK;
        if (p->whole && table)
            j->call->k->codes.look_up(x, y, (size_t)bytes, table);
        else if (p->whole)
            memcpy(y, x, (size_t)bytes);
        else if (table)
            j->call->k->bytes.pick(x, p->lanes, begins, count, coded);
        else
            j->call->k->bytes.pick(x, p->lanes, fresh, count, y);
        begins = p->last;
        if (!p->whole && table && p->last) {
            j->call->k->codes.look_up(coded, coded, (size_t)bytes, table);
            j->call->k->bytes.pick(coded, p->own, fresh, count, y);
        }
        fresh = fresh && table && !p->last;
    }
}

static void task_channels(void *arg, int64_t first, int64_t end, int thread)
{
    const channels_job *j = arg;
    const int64_t plane = j->d->plane;
    int64_t count;
    for (; first < end; first += count) {
        int64_t at = first / plane, pixel = first % plane;
        count = ort_min_i64(ort_min_i64(end - first, plane - pixel), PIXELS);
        fill_stretch(j, at / j->d->blocks, at % j->d->blocks, pixel, count);
    }
}

static ort_status channels_run(ort_call *call, ort_error *err)
{
    const ort_blocked_dims *d = call->plan_state;
    channels_job j = {call, call->state, d, ort_call_out(call, 0)->data};
    ort_call_range(call, d->n * d->blocks * d->plane, ORT_ELEMENTWISE_GRAIN / ORT_BYTES_BLOCK,
                   task_channels, &j);
    return ORT_OK;
}

static const ort_op_impl channels_impl = {
    .state = sizeof(channels_state), .bind = channels_bind, .infer = channels_infer,
    .prepare = channels_prepare, .shape = channels_shape, .run = channels_run,
};

const ort_op ort_ops_bytes_channels[] = {
    {ORT_INTERNAL, "BytesChannels", 1, "tables?:T,inputs*:T -> Y:T", "T:u8",
     "block:i! channels:is! from:is!", 0, &channels_impl},
    {0},
};

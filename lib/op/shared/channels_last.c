/* channels_last.c - moves the channels of input 0 to the front for an inner operator, and those of
 * its output 0 back to the end. Inner inputs and outputs are copies on the stack of what the caller
 * passed, so nothing of the node changes.
 */
#include <string.h>

#include "base/checked.h"
#include "op/shared/channels_last.h"
#include "op/shared/move.h"

enum { SLOTS_MAX = 16 }; /* inputs of any operator that has a channels-last form */

ort_status ort_channels_last_infer(ort_infer *x, ort_status (*inner)(ort_infer *, ort_error *),
                                   ort_error *err)
{
    const ort_fact *in[SLOTS_MAX] = {NULL};
    ort_fact first;
    ort_infer moved = *x;
    int count = x->in_count < SLOTS_MAX ? x->in_count : SLOTS_MAX;
    for (int i = 0; i < count; i++)
        in[i] = x->in[i];
    if (ort_infer_in_ranked(x, 0) && x->in[0]->type.rank >= 3) {
        int rank = x->in[0]->type.rank;
        first = *x->in[0];
        for (int d = 1; d < rank; d++)
            first.type.dim[d] = x->in[0]->type.dim[d == 1 ? rank - 1 : d - 1];
        first.value = NULL; /* its elements lie otherwise */
        in[0] = &first;
    }
    moved.in = in;
    moved.in_count = count;
    ORT_TRY(inner(&moved, err));
    ort_type *y = &x->out[0].type;
    if (y->rank >= 3) {
        ort_dim channels = y->dim[1];
        for (int d = 1; d < y->rank - 1; d++)
            y->dim[d] = y->dim[d + 1];
        y->dim[y->rank - 1] = channels;
    }
    return ORT_OK;
}

static ort_tensor channels_first(const ort_tensor *t, void *data)
{
    ort_tensor moved = {.dtype = t->dtype, .shape = t->shape, .data = data};
    for (int d = 1; d < t->shape.rank; d++)
        moved.shape.dim[d] = t->shape.dim[d == 1 ? t->shape.rank - 1 : d - 1];
    return moved;
}

static size_t moved_bytes(const ort_tensor *t)
{
    return t ? ort_round_up(ort_tensor_bytes(t), 64) : 0;
}

ort_status ort_channels_last_shape(ort_shaping *s, ort_status (*inner)(ort_shaping *, ort_error *),
                                   ort_error *err)
{
    const ort_tensor *in[SLOTS_MAX] = {NULL}, *out[1];
    int count = s->in_count < SLOTS_MAX ? s->in_count : SLOTS_MAX;
    ort_shaping moved = *s;
    for (int i = 0; i < count; i++)
        in[i] = s->in[i];
    ort_tensor x = channels_first(s->in[0], NULL), y;
    in[0] = &x;
    out[0] = s->out[0] ? &y : NULL;
    if (s->out[0])
        y = channels_first(s->out[0], NULL);
    moved.in = in;
    moved.in_count = count;
    moved.out = out;
    moved.out_count = 1;
    ORT_TRY(inner(&moved, err));
    s->plan_state = moved.plan_state;
    s->thread_bytes = moved.thread_bytes;
    size_t bytes = moved_bytes(s->in[0]) + moved_bytes(s->out[0]);
    if (!ort_add_size(bytes, moved.workspace_bytes, &s->workspace_bytes))
        return ort_error_memory(err, SIZE_MAX);
    return ORT_OK;
}

/* [n][a][b] to [n][b][a]. */
static void swap_axes(const ort_call *call, const ort_tensor *src, ort_tensor *dst, int64_t a,
                      int64_t b)
{
    ort_move move = ort_move_between(src, dst);
    ort_move_add(&move, src->shape.dim[0], a * b, a * b);
    ort_move_add(&move, b, 1, a);
    ort_move_add(&move, a, b, 1);
    ort_move_run(&move, call->pool);
}

ort_status ort_channels_last_run(ort_call *call, ort_status (*inner)(ort_call *, ort_error *),
                                 ort_error *err)
{
    const ort_tensor *from = ort_call_in(call, 0);
    ort_tensor *to = ort_call_out(call, 0);
    if (!to || ort_tensor_count(to) == 0)
        return ORT_OK;
    char *space = call->workspace;
    int count = call->in_count < SLOTS_MAX ? call->in_count : SLOTS_MAX;
    ort_value *in[SLOTS_MAX] = {NULL}, *out[1];
    ort_value x = {.kind = ORT_KIND_TENSOR, .tensor = channels_first(from, space)};
    ort_value y = {.kind = ORT_KIND_TENSOR};
    y.tensor = channels_first(to, space + moved_bytes(from));
    ort_call moved = *call;
    for (int i = 0; i < count; i++)
        in[i] = call->in[i];
    in[0] = &x;
    out[0] = &y;
    moved.in = in;
    moved.in_count = count;
    moved.out = out;
    moved.out_count = 1;
    moved.workspace = space + moved_bytes(from) + moved_bytes(to);
    moved.written = NULL;
    const ort_shape *first = &x.tensor.shape, *last = &y.tensor.shape;
    swap_axes(call, from, &x.tensor, ort_shape_count_range(first, 2, first->rank), first->dim[1]);
    ORT_TRY(inner(&moved, err));
    swap_axes(call, &y.tensor, to, last->dim[1], ort_shape_count_range(last, 2, last->rank));
    return ORT_OK;
}

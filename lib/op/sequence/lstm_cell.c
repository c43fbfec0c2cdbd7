/* lstm_cell.c - LstmCell of this library: what follows the products of one step of an LSTM that a
 * model spells out (provider/cpu/lstm_cells.c). Input 0 has the gates' sums side by side in its
 * last axis; `order` says in which of its quarters input, output, forget and candidate gate lie.
 */
#include "base/checked.h"
#include "op/op.h"

enum { GATES = 4, TASK_UNITS = 4096 };

typedef struct lstm_cell {
    ort_ints order;
    int64_t quarter[GATES];
} lstm_cell;

static const ort_bind lstm_cell_bind[] = {ORT_BIND(lstm_cell, order), {0}};

static ort_status lstm_cell_infer(ort_infer *x, ort_error *err)
{
    (void)err;
    for (int i = 0; i < x->out_count; i++)
        x->out[i].type = x->in[1]->type;
    return ORT_OK;
}

static ort_status lstm_cell_prepare(ort_prep *p, ort_error *err)
{
    lstm_cell *s = p->state;
    bool fits = s->order.count == GATES;
    for (int i = 0; fits && i < GATES; i++) {
        s->quarter[i] = s->order.ptr[i];
        fits = s->quarter[i] >= 0 && s->quarter[i] < GATES;
    }
    return fits ? ORT_OK : ort_prep_fail(p, err, "its order isn't one of four quarters");
}

static int64_t units_of(const ort_tensor *cell)
{
    return cell->shape.dim[cell->shape.rank - 1];
}

static ort_status lstm_cell_shape(ort_shaping *s, ort_error *err)
{
    const ort_tensor *gates = s->in[0], *cell = s->in[1];
    const int last = cell->shape.rank - 1;
    bool fits = last >= 0 && gates->shape.rank == last + 1;
    for (int i = 0; fits && i <= last; i++)
        fits = gates->shape.dim[i] == cell->shape.dim[i] * (i == last ? GATES : 1);
    return fits ? ORT_OK : ort_error_set(err, ORT_ERROR_RUN, "its gates aren't four of its cell");
}

static void task(void *arg, int64_t first, int64_t end, int thread)
{
    const ort_call *call = arg;
    const lstm_cell *s = call->state;
    const ort_tensor *cell = ort_call_in(call, 1);
    ort_tensor *h = ort_call_out(call, 0), *c = ort_call_out(call, 1);
    const int64_t n = units_of(cell);
    (void)thread;
    for (int64_t row = first; row < end; row++) {
        const float *gates = (const float *)ort_call_in(call, 0)->data + row * GATES * n;
        const float *each[GATES];
        for (int i = 0; i < GATES; i++)
            each[i] = gates + s->quarter[i] * n;
        call->k->math.lstm_gates((size_t)n, each, (const float *)cell->data + row * n,
                                 (float *)c->data + row * n, (float *)h->data + row * n);
    }
}

static ort_status lstm_cell_run(ort_call *call, ort_error *err)
{
    const ort_tensor *cell = ort_call_in(call, 1);
    const int64_t n = units_of(cell), rows = n ? ort_tensor_count(cell) / n : 0;
    (void)err;
    ort_call_range(call, rows, ort_max_i64(TASK_UNITS / ort_max_i64(n, 1), 1), task, call);
    return ORT_OK;
}

static const ort_op_impl lstm_cell_impl = {
    .state = sizeof(lstm_cell), .bind = lstm_cell_bind, .infer = lstm_cell_infer,
    .prepare = lstm_cell_prepare, .shape = lstm_cell_shape, .run = lstm_cell_run};

const ort_op ort_ops_lstm_cell[] = {
    {ORT_INTERNAL, "LstmCell", 1, "gates:f32,cell:f32 -> H:f32,C:f32", "", "order:is!", 0,
     &lstm_cell_impl},
    {0},
};

/* scan.c - Scan: a body run once per slice of its scan inputs.
 *
 * Version 8 has a batch axis before everything and an optional length per batch row; from version 9
 * each scan input and output has its own axis and direction. Both run the same steps: a "row" is
 * the whole of version 9, or one batch entry of version 8, and slices are cut from the row's views.
 * Scan outputs are allocated whole at their first slice, because the number of slices is known.
 */
#include <stdlib.h>
#include <string.h>

#include "op/control/loop_scan.h"
#include "op/eval.h"
#include "op/flow.h"

#define RUN_TRAITS (ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC)

/* An attribute with an entry for each scan input or output, the default 0 where it isn't given. */
typedef struct entries {
    const int64_t *list;
    size_t count;
} entries;

static entries entries_of(const ort_node *node, const char *name)
{
    entries e = {0};
    e.list = ort_node_ints(node, name, &e.count);
    return e;
}

static int64_t entry(entries e, int index)
{
    return e.list && (size_t)index < e.count ? e.list[index] : 0;
}

static bool batched(const ort_op *op)
{
    return op->since < 9;
}

/* ---- infer */

typedef struct scan_form {
    int body, first, states, inputs, outs; /* first: index of the first state among the inputs */
} scan_form;

static ort_status scan_form_of(const ort_infer *x, scan_form *f, ort_error *err)
{
    int64_t inputs = ort_node_attr_int(x->node, "num_scan_inputs");
    f->first = batched(x->op) ? 1 : 0;
    f->body = ort_node_body(x->node, "body");
    if (inputs < 1 || inputs > x->in_count - f->first)
        return ort_infer_fail(x, err, "num_scan_inputs is %lld, the node has %d inputs",
                              (long long)inputs, x->in_count - f->first);
    f->inputs = (int)inputs;
    f->states = x->in_count - f->first - f->inputs;
    f->outs = f->body < 0 ? 0 : (int)x->node->bodies[f->body]->outputs.count;
    if (f->body < 0 || f->outs < f->states || x->out_count > f->outs)
        return ort_infer_fail(x, err, "its body gives %d outputs for %d states and %d results",
                              f->outs, f->states, x->out_count);
    return ORT_OK;
}

/* Remove dim `axis` of a tensor type of known rank. */
static void drop_dim(ort_type *type, int axis)
{
    memmove(&type->dim[axis], &type->dim[axis + 1],
            (size_t)(type->rank - axis - 1) * sizeof *type->dim);
    type->rank--;
}

static void insert_front(ort_type *type, ort_dim dim)
{
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 0 || type->rank >= ORT_MAX_RANK)
        return;
    memmove(&type->dim[1], &type->dim[0], (size_t)type->rank * sizeof *type->dim);
    type->dim[0] = dim;
    type->rank++;
}

static ort_status slice_type(const ort_infer *x, const scan_form *f, int i, ort_type *type,
                             ort_dim *batch, ort_dim *length, ort_error *err)
{
    const ort_fact *in = ort_infer_in(x, f->first + i);
    *type = (ort_type){.rank = -1};
    if (!in)
        return ORT_OK;
    *type = in->type;
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 0)
        return ORT_OK;
    if (batched(x->op)) {
        if (type->rank < 1)
            return ort_infer_fail(x, err, "input %d has no batch axis", f->first + i);
        *batch = ort_dim_merge(*batch, type->dim[0]);
        drop_dim(type, 0);
    }
    if (i < f->states)
        return ORT_OK;
    int axis = 0;
    ORT_TRY(ort_infer_axis(x, entry(entries_of(x->node, "scan_input_axes"), i - f->states),
                           type->rank, &axis, err));
    *length = ort_dim_merge(*length, type->dim[axis]);
    drop_dim(type, axis);
    return ORT_OK;
}

static ort_status scan_infer(ort_infer *x, ort_error *err)
{
    scan_form f = {0};
    ort_dim batch = ort_dim_unknown(), length = ort_dim_unknown();
    ORT_TRY(scan_form_of(x, &f, err));
    int ins = f.states + f.inputs;
    ort_loop_form loop = {.body = f.body, .in_count = ins, .carried = f.states,
                          .out_count = f.outs, .fixed = true};
    ort_fact *in = ort_arena_array(x->arena, (size_t)ins, sizeof *in);
    ort_fact *out = ort_arena_array(x->arena, (size_t)f.outs + 1, sizeof *out);
    if (!in || !out)
        return ort_error_memory(err, (size_t)ins * sizeof *in);
    for (int i = 0; i < ins; i++)
        ORT_TRY(slice_type(x, &f, i, &in[i].type, &batch, &length, err));
    ORT_TRY(ort_loop_infer_carried(x, &loop, in, out, err));
    for (int i = 0; i < x->out_count; i++) {
        if (i < f.states) {
            x->out[i].type = in[i].type;
        } else {
            int64_t axis = entry(entries_of(x->node, "scan_output_axes"), i - f.states);
            ORT_TRY(ort_loop_infer_scan_output(x, i, &out[i], axis, length, err));
        }
        if (batched(x->op))
            insert_front(&x->out[i].type, batch);
    }
    return ORT_OK;
}

/* ---- run */

typedef struct scan {
    ort_call *call;
    int body, first, states, inputs, outs, scans;
    bool batched;
    int64_t batch, length;  /* rows; slices per row (the longest) */
    ort_value **row;        /* [states + inputs] of the present row */
    ort_value **in, **out;  /* formal inputs and outputs of the body */
    ort_value **result;     /* [outs]: state results of version 8, scan outputs */
    ort_value **away;       /* [inputs]: as the body's device has them; or NULL */
    ort_value **place;      /* [outs]: slices of results that lie there; or NULL */
    int *in_axis;
    entries in_axes, in_directions, out_axes, out_directions;
} scan;

static ort_status scan_check(scan *s, ort_error *err)
{
    ort_call *call = s->call;
    s->batch = 1;
    for (int i = 0; i < s->states + s->inputs; i++) {
        const ort_tensor *t = ort_call_in(call, s->first + i);
        if (!t || (call->in[s->first + i]->kind != ORT_KIND_TENSOR && i >= s->states))
            return ort_call_fail(call, err, "input %d must be a tensor", s->first + i);
        int lead = s->batched ? 1 : 0;
        if (s->batched) {
            if (t->shape.rank < 1 || (i > 0 && t->shape.dim[0] != s->batch))
                return ort_call_fail(call, err, "input %d has another batch size", s->first + i);
            s->batch = t->shape.dim[0];
        }
        if (i < s->states)
            continue;
        int rank = t->shape.rank - lead;
        int64_t axis = entry(s->in_axes, i - s->states);
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank)
            return ort_call_fail(call, err, "scan axis of input %d is out of range", s->first + i);
        s->in_axis[i - s->states] = (int)axis;
        int64_t length = t->shape.dim[axis + lead];
        if (i > s->states && length != s->length)
            return ort_call_fail(call, err, "scan inputs have %lld and %lld slices",
                                 (long long)s->length, (long long)length);
        s->length = length;
    }
    return ORT_OK;
}

/* Where slice t goes in result k. */
static int64_t out_index(const scan *s, int k, int64_t t)
{
    bool back = !s->batched && entry(s->out_directions, k - s->states);
    return back ? s->length - 1 - t : t;
}

/* The part of result `k` that belongs to row `b`. */
static ort_tensor result_row(const scan *s, int k, int64_t b)
{
    ort_tensor t = s->result[k]->tensor;
    if (!s->batched)
        return t;
    size_t bytes = ort_tensor_bytes(&t) / (size_t)(s->batch > 0 ? s->batch : 1);
    t.data = (char *)t.data + (size_t)b * bytes;
    memmove(&t.shape.dim[0], &t.shape.dim[1], (size_t)(t.shape.rank - 1) * sizeof t.shape.dim[0]);
    t.shape.rank--;
    return t;
}

static ort_status new_result(scan *s, int k, ort_dtype dtype, const ort_shape *part, ort_error *err)
{
    ort_shape shape = *part;
    if (shape.rank + 2 > ORT_MAX_RANK)
        return ort_call_fail(s->call, err, "output %d has too many dims", k);
    if (k >= s->states) {
        int64_t axis = entry(s->out_axes, k - s->states);
        axis += axis < 0 ? part->rank + 1 : 0;
        if (axis < 0 || axis > part->rank)
            return ort_call_fail(s->call, err, "scan axis of output %d is out of range", k);
        shape = ort_flow_insert_dim(part, (int)axis, s->length);
    }
    if (s->batched)
        shape = ort_flow_insert_dim(&shape, 0, s->batch);
    ORT_TRY(ort_shape_check(&shape, dtype, err));
    return ort_value_new_tensor_(dtype, &shape, &s->result[k], err);
}

/* ---- slices on the device of the body (ort_slice_services) */

static bool is_away(const ort_value *value)
{
    return value && value->kind == ORT_KIND_DEVICE;
}

static int64_t out_axis(const scan *s, int k, int rank)
{
    int64_t axis = entry(s->out_axes, k - s->states);
    return axis + (axis < 0 ? rank : 0);
}

/* Of version 9, along their first axis. */
static ort_status find_away(scan *s, ort_error *err)
{
    const ort_slice_services *slices = s->call->services->slices;
    for (int i = 0; slices && !s->batched && i < s->inputs; i++)
        if (s->in_axis[i] == 0 && !s->away[i])
            ORT_TRY(slices->input(s->call, s->body, s->states + i, s->first + s->states + i,
                                  &s->away[i], err));
    return ORT_OK;
}

/* Room for result k, whose slices are of this type; it stays NULL where the host has it. */
static ort_status make_room(scan *s, int k, const ort_tensor *slice, ort_error *err)
{
    const ort_slice_services *slices = s->call->services->slices;
    if (!slices || s->batched || s->result[k] || out_axis(s, k, slice->shape.rank + 1) != 0)
        return ORT_OK;
    return slices->room(s->call, s->body, k, slice, s->length, &s->result[k], err);
}

/* Of results whose slices are known before the first is there. */
static ort_status make_rooms(scan *s, ort_error *err)
{
    const ort_graph *body = s->call->node->bodies[s->body];
    for (int k = s->states; k < s->outs; k++) {
        const ort_type *type = &ort_graph_value_at(body, body->outputs.data[k])->fact.type;
        ort_tensor slice = {.dtype = type->dtype};
        if (type->kind == ORT_TYPE_TENSOR && ort_type_concrete(type, &slice.shape))
            ORT_TRY(make_room(s, k, &slice, err));
    }
    return ORT_OK;
}

static ort_status find_places(scan *s, int64_t t, ort_error *err)
{
    for (int k = s->states; k < s->outs; k++) {
        ort_value_free(s->place[k]);
        s->place[k] = NULL;
        if (is_away(s->result[k]))
            ORT_TRY(s->call->services->slices->part(s->result[k], out_index(s, k, t), &s->place[k],
                                                    err));
    }
    return ORT_OK;
}

/* A slice that isn't in its place yet. */
static ort_status put_away(scan *s, int k, int64_t at, ort_error *err)
{
    const ort_slice_services *slices = s->call->services->slices;
    ort_value *part = NULL;
    if (s->place[k] && s->place[k] == s->out[k])
        return ORT_OK;
    ORT_TRY(slices->part(s->result[k], at, &part, err));
    ort_status status = ort_shape_equal(&part->tensor.shape, &s->out[k]->tensor.shape) &&
                                part->tensor.dtype == s->out[k]->tensor.dtype
                            ? slices->fill(s->call, part, s->out[k], err)
                            : ort_call_fail(s->call, err, "output %d of its body changes its shape "
                                            "or type", k);
    ort_value_free(part);
    return status;
}

/* ---- results */

static ort_status put_strings(scan *s, ort_tensor *row, int axis, int64_t at,
                              const ort_tensor *part, ort_error *err)
{
    size_t bytes = ort_tensor_bytes(part) + 1;
    ort_tensor own = {.dtype = part->dtype, .shape = part->shape};
    own.data = malloc(bytes);
    if (!own.data)
        return ort_error_memory(err, bytes);
    ort_flow_copy(&own, 0, part, 0, ort_tensor_count(part));
    ort_status status = ort_flow_own_strings(s->call, &own, err);
    if (status == ORT_OK)
        ort_flow_put(row, axis, at, &own);
    free(own.data);
    return status;
}

static ort_status scan_collect(scan *s, int k, int64_t b, int64_t t, ort_error *err)
{
    const ort_value *v = s->out[k];
    if ((v->kind != ORT_KIND_TENSOR && !is_away(v)) || v->tensor.shape.rank + 2 > ORT_MAX_RANK)
        return ort_call_fail(s->call, err, "output %d of its body must be a tensor of at most %d "
                             "dims", k, ORT_MAX_RANK - 2);
    ORT_TRY(make_room(s, k, &v->tensor, err));
    if (is_away(s->result[k]))
        return put_away(s, k, t, err);
    if (!s->result[k])
        ORT_TRY(new_result(s, k, v->tensor.dtype, &v->tensor.shape, err));
    ort_tensor row = result_row(s, k, b);
    int64_t axis = out_axis(s, k, row.shape.rank);
    ort_shape want = ort_flow_insert_dim(&v->tensor.shape, (int)axis, s->length);
    if (row.dtype != v->tensor.dtype || !ort_shape_equal(&want, &row.shape))
        return ort_call_fail(s->call, err, "output %d of its body changes its shape or type", k);
    if (v->tensor.dtype == ORT_DTYPE_STRING)
        return put_strings(s, &row, (int)axis, t, &v->tensor, err);
    ort_flow_put(&row, (int)axis, t, &v->tensor);
    return ORT_OK;
}

static ort_status scan_step(scan *s, int64_t b, int64_t t, int64_t length, ort_error *err)
{
    ORT_TRY(ort_budget_check(err));
    for (int i = 0; i < s->inputs; i++) {
        int64_t at = entry(s->in_directions, i) ? length - 1 - t : t;
        ort_value **slot = &s->in[s->states + i];
        if (s->away[i]) {
            ort_value_free(*slot);
            *slot = NULL;
            ORT_TRY(s->call->services->slices->part(s->away[i], at, slot, err));
            continue;
        }
        ORT_TRY(ort_flow_slice(&s->row[s->states + i]->tensor, s->in_axis[i], at, slot, err));
    }
    ORT_TRY(find_places(s, t, err));
    const ort_handed states = {0, s->batched ? 0 : s->states, s->place};
    ORT_TRY(ort_call_body_handing(s->call, s->body, s->in, s->states + s->inputs, s->out, s->outs,
                                  states, err));
    for (int k = s->states; k < s->outs; k++)
        ORT_TRY(scan_collect(s, k, b, out_index(s, k, t), err));
    for (int k = 0; k < s->outs; k++) {
        if (k < s->states) {
            ort_value *kept = NULL;
            ORT_TRY(ort_flow_keep(s->out[k], &kept, err));
            ort_value_free(s->in[k]);
            s->in[k] = kept;
        }
        ort_value_free(s->out[k]);
        s->out[k] = NULL;
    }
    return ORT_OK;
}

static ort_status scan_row(scan *s, int64_t b, ort_error *err)
{
    int64_t length = s->length;
    const ort_tensor *lens = s->batched ? ort_call_in(s->call, 0) : NULL;
    if (lens) {
        if (ort_tensor_count(lens) != s->batch)
            return ort_call_fail(s->call, err, "sequence_lens must have one entry per batch row");
        length = ort_tensor_get_i64(lens, b);
        if (length < 0 || length > s->length)
            return ort_call_fail(s->call, err, "sequence_lens[%lld] is %lld, at most %lld is there",
                                 (long long)b, (long long)length, (long long)s->length);
    }
    for (int i = 0; i < s->states + s->inputs; i++) {
        ort_value *whole = s->call->in[s->first + i];
        if (s->batched)
            ORT_TRY(ort_flow_slice(&whole->tensor, 0, b, &s->row[i], err));
        else if (!s->row[i])
            s->row[i] = ort_value_retain(whole);
        if (i < s->states) {
            ort_value_free(s->in[i]);
            s->in[i] = ort_value_retain(s->row[i]);
        }
    }
    ORT_TRY(find_away(s, err));
    ORT_TRY(make_rooms(s, err));
    for (int64_t t = 0; t < length; t++)
        ORT_TRY(scan_step(s, b, t, length, err));
    for (int k = 0; s->batched && k < s->states; k++) {
        const ort_tensor *state = &s->in[k]->tensor;
        if (!s->result[k])
            ORT_TRY(new_result(s, k, state->dtype, &state->shape, err));
        ort_tensor row = result_row(s, k, b);
        if (row.dtype != state->dtype || !ort_shape_equal(&row.shape, &state->shape))
            return ort_call_fail(s->call, err, "state %d differs in shape between batch rows", k);
        ort_flow_copy(&row, 0, state, 0, ort_tensor_count(state));
        ORT_TRY(ort_flow_own_strings(s->call, &row, err));
    }
    return ORT_OK;
}

static ort_status scan_finish(scan *s, ort_error *err)
{
    ort_call *call = s->call;
    for (int k = 0; k < call->out_count; k++) {
        if (!call->out[k])
            continue;
        if (k < s->states && !s->batched) {
            ORT_TRY(ort_flow_set_output(call, k, s->in[k], err));
            continue;
        }
        if (!s->result[k]) { /* no slice: the shape comes from inference */
            ort_dtype dtype;
            ort_shape part;
            ort_flow_empty_form(call->node->bodies[s->body], k, &dtype, &part);
            if (dtype == ORT_DTYPE_UNDEFINED)
                return ort_call_fail(call, err, "output %d is of unknown type after no slice", k);
            ORT_TRY(new_result(s, k, dtype, &part, err));
        }
        ort_call_set_output(call, k, s->result[k]);
        s->result[k] = NULL;
    }
    return ORT_OK;
}

static ort_status scan_all(scan *s, ort_error *err)
{
    ORT_TRY(scan_check(s, err));
    for (int64_t b = 0; b < s->batch; b++)
        ORT_TRY(scan_row(s, b, err));
    return scan_finish(s, err);
}

static ort_status scan_run(ort_call *call, ort_error *err)
{
    scan s = {.call = call, .body = ort_node_body(call->node, "body")};
    s.batched = batched(call->node->op);
    s.first = s.batched ? 1 : 0;
    s.inputs = (int)ort_node_attr_int(call->node, "num_scan_inputs");
    s.states = call->in_count - s.first - s.inputs;
    s.outs = (int)call->node->bodies[s.body]->outputs.count;
    s.in_axes = entries_of(call->node, "scan_input_axes");
    s.in_directions = entries_of(call->node, s.batched ? "directions" : "scan_input_directions");
    s.out_axes = entries_of(call->node, "scan_output_axes");
    s.out_directions = entries_of(call->node, "scan_output_directions");
    size_t ins = (size_t)(s.states + s.inputs);
    size_t total = 2 * ins + 3 * (size_t)s.outs + (size_t)s.inputs;
    ort_value **all = calloc(total + 1, sizeof *all);
    s.in_axis = calloc((size_t)s.inputs + 1, sizeof *s.in_axis);
    ort_status status;
    if (all && s.in_axis) {
        s.row = all;
        s.in = all + ins;
        s.out = s.in + ins;
        s.result = s.out + s.outs;
        s.place = s.result + s.outs;
        s.away = s.place + s.outs;
        status = scan_all(&s, err);
    } else {
        status = ort_error_memory(err, total * sizeof *all);
    }
    for (size_t i = 0; all && i < total; i++)
        ort_value_free(all[i]);
    free(all);
    free(s.in_axis);
    return status;
}

static const ort_op_impl scan_impl = {.infer = scan_infer, .run = scan_run};

/* ---- rows */

const ort_op ort_ops_scan[] = {
    {ONNX, "Scan", 8,
     "sequence_lens?:I,initial_state_and_scan_inputs**:V -> final_state_and_scan_outputs**:V",
     "I:i64 V:F,I,U,C,str,bool",
     "body:g! directions:is num_scan_inputs:i!", RUN_TRAITS, &scan_impl},
    {ONNX, "Scan", 9, "initial_state_and_scan_inputs**:V -> final_state_and_scan_outputs**:V",
     "V:F,I,U,C,str,bool",
     "body:g! num_scan_inputs:i! scan_input_axes:is scan_input_directions:is "
     "scan_output_axes:is scan_output_directions:is", RUN_TRAITS, &scan_impl,
     .history = "11 16:V+bf16 19:V+F8 21:V+Q4 23:V+f4e2m1 24:V+f8e8m0 25:V+Q2"},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};

/* control.c - If, Loop and SequenceMap.
 *
 * The bodies run through ort_call_body: the executor finds captured values itself, so only formal
 * inputs are passed. Every value that leaves a body is a reference of ours; what becomes an output
 * or is carried into the next iteration is kept (flow.h), what a scan output collects is copied at
 * once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/control/loop_scan.h"
#include "op/flow.h"
#include "op/number.h"

#define RUN_TRAITS (ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC)

static void free_values(ort_value **values, int count)
{
    for (int i = 0; i < count; i++)
        ort_value_free(values[i]);
}

/* ---- If */

/* -1: there is none that gives what the node gives. */
static int if_body(const ort_infer *x, const char *name)
{
    int body = ort_node_body(x->node, name);
    return body >= 0 && (int)x->node->bodies[body]->outputs.count == x->out_count ? body : -1;
}

static ort_status if_branch(ort_infer *x, int body, ort_fact *facts, ort_error *err)
{
    if (body < 0)
        return ort_infer_fail(x, err, "its branches must give %d outputs each", x->out_count);
    memset(facts, 0, (size_t)x->out_count * sizeof *facts);
    return x->infer_body(x, body, NULL, 0, facts, x->out_count, err);
}

/* Both branches. One that contradicts the shapes at hand can't be the one that is taken (a model
 * for two sampling rates, say, given an input of one of them): it fails when it runs, not before.
 * That both do is an error. */
static ort_status if_branches(ort_infer *x, ort_fact *facts[2], bool can[2], ort_error *err)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    ort_error first = {0}, second = {0};
    for (int i = 0; i < 2; i++) {
        int body = if_body(x, names[i]);
        /* In a body that never runs itself, one pass for the facts is all. */
        ort_status status = if_branch(x, body, facts[i], !err ? NULL : i ? &second : &first);
        can[i] = status == ORT_OK;
        if (status != ORT_OK && (status != ORT_ERROR_MODEL || body < 0)) {
            if (err)
                *err = i ? second : first;
            return status;
        }
        if (!can[i]) /* once more, for the facts behind the contradiction */
            ORT_TRY(if_branch(x, body, facts[i], NULL));
    }
    if (can[0] || can[1])
        return ORT_OK;
    if (err)
        *err = first;
    return first.status;
}

/* The other branch is inferred for the facts in its body, but it is never run: that it contradicts
 * the shapes at hand is no error. */
static ort_status if_known(ort_infer *x, bool then, ort_fact *facts, ort_error *err)
{
    ort_status other = if_branch(x, if_body(x, then ? "else_branch" : "then_branch"), facts, NULL);
    (void)other;
    ORT_TRY(if_branch(x, if_body(x, then ? "then_branch" : "else_branch"), facts, err));
    for (int i = 0; i < x->out_count; i++)
        x->out[i] = facts[i];
    return ORT_OK;
}

static ort_status if_unknown(ort_infer *x, ort_fact *facts[2], ort_error *err)
{
    bool can[2];
    ORT_TRY(if_branches(x, facts, can, err));
    for (int i = 0; i < x->out_count; i++) {
        x->out[i].type = facts[can[0] ? 0 : 1][i].type;
        if (can[0] && can[1])
            ort_flow_join_type(x->arena, &x->out[i].type, &facts[1][i].type);
    }
    return ORT_OK;
}

static ort_status if_infer(ort_infer *x, ort_error *err)
{
    const ort_fact *cond = ort_infer_in(x, 0);
    ort_fact *facts = calloc(2 * (size_t)x->out_count + 1, sizeof *facts);
    if (!facts)
        return ort_error_memory(err, 2 * (size_t)x->out_count * sizeof *facts);
    ort_status status;
    int64_t known;
    if (cond && ort_tensor_one_i64(cond->value, &known))
        status = if_known(x, known, facts, err);
    else
        status = if_unknown(x, (ort_fact *[]){facts, facts + x->out_count}, err);
    free(facts);
    return status;
}

static ort_status if_run(ort_call *call, ort_error *err)
{
    int64_t cond = 0;
    ORT_TRY(ort_call_i64(call, 0, &cond, err));
    int body = ort_node_body(call->node, cond ? "then_branch" : "else_branch");
    int count = call->out_count;
    ort_value **outs = calloc((size_t)count + 1, sizeof *outs);
    if (!outs)
        return ort_error_memory(err, (size_t)count * sizeof *outs);
    ort_status status = ort_call_body_handing(call, body, NULL, 0, outs, count,
                                              (ort_handed){0, count, NULL}, err);
    for (int i = 0; status == ORT_OK && i < count; i++)
        if (call->out[i])
            status = ort_flow_set_output(call, i, outs[i], err);
    free_values(outs, count);
    free(outs);
    return status;
}

static const ort_op_impl if_impl = {.infer = if_infer, .run = if_run, .numbers = 1};

/* ---- Loop */

static ort_type carried_type(ort_infer *x, const ort_loop_form *form, const ort_type *enters,
                             const ort_type *returns)
{
    ort_type type = *enters;
    if (form->fixed && ort_type_merge(&type, returns))
        return type;
    if (returns->kind == ORT_TYPE_UNKNOWN)
        type.rank = -1; /* only that its element type is the same */
    else
        ort_flow_join_type(x->arena, &type, returns);
    return type;
}

/* What a loop body sees of its carried values: the join of what enters and what it returns itself,
 * found by repeated inference (each round forgets something, so it ends). */
ort_status ort_loop_infer_carried(ort_infer *x, const ort_loop_form *form, ort_fact *in,
                                  ort_fact *out, ort_error *err)
{
    for (int round = 0;; round++) {
        bool stable = true;
        memset(out, 0, (size_t)form->out_count * sizeof *out);
        ORT_TRY(x->infer_body(x, form->body, in, form->in_count, out, form->out_count, err));
        for (int i = 0; i < form->carried; i++) {
            ort_type *type = &in[form->first + i].type;
            ort_type joined = carried_type(x, form, type, &out[form->out_first + i].type);
            if (ort_flow_same_type(&joined, type))
                continue;
            if (round >= 4 && joined.kind == ORT_TYPE_TENSOR)
                joined.rank = -1;
            *type = joined;
            stable = false;
        }
        if (stable || round >= 12)
            return ORT_OK;
    }
}

static const ort_tensor *constant_true(ort_arena *arena)
{
    struct { ort_tensor tensor; bool value; } *c = ort_arena_alloc(arena, sizeof *c);
    if (!c)
        return NULL;
    c->value = true;
    c->tensor = (ort_tensor){.dtype = ORT_DTYPE_BOOL, .data = &c->value};
    return &c->tensor;
}

/* The trip count when nothing but M can end the loop, else unknown. */
static ort_dim loop_trips(const ort_infer *x, const ort_fact *body_cond)
{
    const ort_fact *cond = ort_infer_in(x, 1);
    ort_dim trips;
    int64_t enters = 1, again = 0;
    bool goes_on = body_cond->value && body_cond->value->dtype == ORT_DTYPE_BOOL &&
                   ort_tensor_one_i64(body_cond->value, &again) && again;
    if (cond && ort_tensor_one_i64(cond->value, &enters) && !enters)
        return ort_dim_of(0);
    if (!goes_on || (cond && !cond->value) ||
        !ort_infer_in(x, 0) || !ort_infer_int(x, 0, 0, &trips))
        return ort_dim_unknown();
    if (ort_dim_known(trips))
        return trips.size < 0 ? ort_dim_of(0)
               : trips.size == INT64_MAX ? ort_dim_unknown() : trips;
    return trips;
}

ort_status ort_loop_infer_scan_output(ort_infer *x, int output, const ort_fact *element,
                                      int64_t axis, ort_dim trips, ort_error *err)
{
    ort_type type = element->type;
    if (type.kind != ORT_TYPE_TENSOR && type.kind != ORT_TYPE_UNKNOWN)
        return ort_infer_fail(x, err, "output %d collects what its body gives, which is no tensor",
                              output);
    if (type.kind != ORT_TYPE_TENSOR)
        return ORT_OK;
    if (type.rank >= 0) {
        int at;
        if (type.rank >= ORT_MAX_RANK)
            return ort_infer_fail(x, err, "output %d has too many dims", output);
        ORT_TRY(ort_infer_axis(x, axis, type.rank + 1, &at, err));
        memmove(&type.dim[at + 1], &type.dim[at], (size_t)(type.rank - at) * sizeof *type.dim);
        type.dim[at] = trips;
        type.rank++;
    }
    x->out[output].type = type;
    return ORT_OK;
}

/* What a carried value is in the end. An optional that the body fills is what it is filled with. */
static ort_type loop_result(const ort_fact *initial, const ort_type *joined, const ort_type *made)
{
    bool filled = joined->kind == ORT_TYPE_UNKNOWN && initial &&
                  initial->type.kind == ORT_TYPE_OPTIONAL;
    return filled ? *made : *joined;
}

/* The condition is a tensor; a tensor stays one, and a sequence a sequence. */
static ort_status check_kinds(const ort_infer *x, const ort_fact *out, int carried,
                              ort_error *err)
{
    if (out[0].type.kind == ORT_TYPE_SEQUENCE || out[0].type.kind == ORT_TYPE_MAP)
        return ort_infer_fail(x, err, "the first output of its body, the condition, is no tensor");
    for (int i = 0; i < carried; i++) {
        const ort_fact *in = ort_infer_in(x, 2 + i);
        ort_type_kind enters = in ? in->type.kind : ORT_TYPE_UNKNOWN;
        ort_type_kind returns = out[1 + i].type.kind;
        if ((enters == ORT_TYPE_TENSOR && returns == ORT_TYPE_SEQUENCE) ||
            (enters == ORT_TYPE_SEQUENCE && returns == ORT_TYPE_TENSOR))
            return ort_infer_fail(x, err, "carried value %d is a tensor before its body and a "
                                  "sequence behind it, or the other way round", i);
    }
    return ORT_OK;
}

static ort_status loop_infer(ort_infer *x, ort_error *err)
{
    int body = ort_node_body(x->node, "body");
    int carried = x->in_count > 2 ? x->in_count - 2 : 0;
    int outs = body < 0 ? 0 : (int)x->node->bodies[body]->outputs.count;
    if (body < 0 || outs < carried + 1 || x->out_count > outs - 1)
        return ort_infer_fail(x, err,
                              "its body gives %d outputs, %d carried values and a condition "
                              "must be among them", outs, carried);
    ort_loop_form form = {.body = body, .in_count = carried + 2, .first = 2, .carried = carried,
                          .out_first = 1, .out_count = outs};
    ort_fact *in = ort_arena_array(x->arena, (size_t)carried + 2, sizeof *in);
    ort_fact *out = ort_arena_array(x->arena, (size_t)outs, sizeof *out);
    if (!in || !out)
        return ort_error_memory(err, (size_t)(outs + carried) * sizeof *in);
    in[0].type = ort_type_tensor(ORT_DTYPE_INT64, 0, NULL);
    in[1].type = ort_type_tensor(ORT_DTYPE_BOOL, 0, NULL);
    in[1].value = constant_true(x->arena); /* the body runs only while it holds */
    for (int i = 0; i < carried; i++) {
        in[2 + i].type.rank = -1;
        if (ort_infer_in(x, 2 + i))
            in[2 + i].type = x->in[2 + i]->type;
    }
    ORT_TRY(ort_loop_infer_carried(x, &form, in, out, err));
    ORT_TRY(check_kinds(x, out, carried, err));
    ort_dim trips = loop_trips(x, &out[0]);
    for (int i = 0; i < x->out_count; i++) {
        if (i < carried)
            x->out[i].type = loop_result(x->in[2 + i], &in[2 + i].type, &out[1 + i].type);
        else
            ORT_TRY(ort_loop_infer_scan_output(x, i, &out[1 + i], 0, trips, err));
    }
    return ORT_OK;
}

#define COLLECTED_AHEAD ((size_t)16 << 20) /* bytes: the count of rounds is only a number */

/* A growing stack of equal slices along axis 0; the first slice fixes type and shape. */
typedef struct collector {
    ort_value *value;
    int64_t count;
} collector;

static ort_status collect(ort_call *call, collector *c, const ort_value *part, int64_t expected,
                          ort_error *err)
{
    const ort_tensor *t = &part->tensor;
    if (part->kind != ORT_KIND_TENSOR || t->shape.rank >= ORT_MAX_RANK)
        return ort_call_fail(call, err, "a scan output must be a tensor of at most %d dims",
                             ORT_MAX_RANK - 1);
    if (c->value) {
        const ort_tensor *have = &c->value->tensor;
        ort_shape want = ort_flow_insert_dim(&t->shape, 0, have->shape.dim[0]);
        if (have->dtype != t->dtype || !ort_shape_equal(&want, &have->shape))
            return ort_call_fail(call, err, "a scan output changes its shape or type at iteration "
                                 "%lld; each iteration must give the same", (long long)c->count);
    }
    if (!c->value || c->count == c->value->tensor.shape.dim[0]) {
        size_t each = ort_tensor_bytes(t) + 1;
        int64_t room = c->value ? c->count * 2 : 4;
        if (!c->value && expected > 4 && (size_t)expected <= COLLECTED_AHEAD / each)
            room = expected;
        ort_value *grown = NULL;
        ort_shape shape = ort_flow_insert_dim(&t->shape, 0, room);
        ORT_TRY(ort_shape_check(&shape, t->dtype, err));
        ORT_TRY(ort_value_new_tensor_(t->dtype, &shape, &grown, err));
        if (c->value)
            ort_flow_copy(&grown->tensor, 0, &c->value->tensor, 0,
                          ort_tensor_count(&c->value->tensor));
        ort_value_free(c->value);
        c->value = grown;
    }
    int64_t each = ort_tensor_count(t);
    ort_flow_copy(&c->value->tensor, c->count * each, t, 0, each);
    if (t->dtype == ORT_DTYPE_STRING) {
        ort_tensor view = {.dtype = t->dtype, .shape = t->shape};
        view.data = (ort_string *)c->value->tensor.data + c->count * each;
        ORT_TRY(ort_flow_own_strings(call, &view, err));
    }
    c->count++;
    return ORT_OK;
}

typedef struct loop {
    ort_call *call;
    int body, carried, scans, outs;
    int64_t limit;
    bool bounded;
    ort_value **in;  /* iteration number, condition, carried */
    ort_value **out; /* condition, carried, scan slices */
    collector *scan;
} loop;

/* In the value of the step before, unless somebody keeps that. */
static ort_status set_scalar(ort_dtype dtype, int64_t number, ort_value **value, ort_error *err)
{
    ort_shape scalar = {0};
    if (*value && (*value)->references > 1) {
        ort_value_free(*value);
        *value = NULL;
    }
    if (!*value)
        ORT_TRY(ort_value_new_tensor_(dtype, &scalar, value, err));
    ort_tensor_set_i64(&(*value)->tensor, 0, number);
    return ORT_OK;
}

static ort_status loop_step(loop *l, int64_t iteration, bool *go_on, ort_error *err)
{
    ort_call *call = l->call;
    ORT_TRY(ort_budget_check(err));
    ORT_TRY(set_scalar(ORT_DTYPE_INT64, iteration, &l->in[0], err));
    ORT_TRY(set_scalar(ORT_DTYPE_BOOL, 1, &l->in[1], err));
    ORT_TRY(ort_call_body_handing(call, l->body, l->in, l->carried + 2, l->out, l->outs,
                                  (ort_handed){1, l->carried, NULL}, err));
    const ort_tensor *cond = &l->out[0]->tensor;
    int64_t again;
    if (l->out[0]->kind != ORT_KIND_TENSOR || cond->dtype != ORT_DTYPE_BOOL ||
        !ort_tensor_one_i64(cond, &again))
        return ort_call_fail(call, err, "the condition its body returns must be one bool");
    *go_on = again != 0;
    for (int i = 0; i < l->scans; i++)
        ORT_TRY(collect(call, &l->scan[i], l->out[1 + l->carried + i], l->bounded ? l->limit : 0,
                        err));
    for (int i = 0; i < l->carried; i++) {
        ort_value *kept = NULL;
        ORT_TRY(ort_flow_keep(l->out[1 + i], &kept, err));
        ort_value_free(l->in[2 + i]);
        l->in[2 + i] = kept;
    }
    free_values(l->out, l->outs);
    memset(l->out, 0, (size_t)l->outs * sizeof *l->out);
    return ORT_OK;
}

static ort_status loop_finish(loop *l, ort_error *err)
{
    ort_call *call = l->call;
    for (int i = 0; i < call->out_count; i++) {
        if (!call->out[i])
            continue;
        if (i < l->carried) {
            ORT_TRY(ort_flow_set_output(call, i, l->in[2 + i], err));
            continue;
        }
        collector *c = &l->scan[i - l->carried];
        if (!c->value) { /* no trip: the shape comes from inference */
            ort_dtype dtype;
            ort_shape part;
            ort_flow_empty_form(call->node->bodies[l->body], 1 + i, &dtype, &part);
            if (dtype == ORT_DTYPE_UNDEFINED || part.rank >= ORT_MAX_RANK)
                return ort_call_fail(call, err, "output %d is of unknown type after no iteration",
                                     i);
            ort_shape shape = ort_flow_insert_dim(&part, 0, 0);
            ORT_TRY(ort_value_new_tensor_(dtype, &shape, &c->value, err));
        }
        c->value->tensor.shape.dim[0] = c->count;
        ort_call_set_output(call, i, c->value);
        c->value = NULL;
    }
    return ORT_OK;
}

static ort_status loop_body(loop *l, ort_error *err)
{
    ort_call *call = l->call;
    int64_t cond = 1;
    l->limit = INT64_MAX;
    l->bounded = ort_call_in(call, 0) != NULL;
    ORT_TRY(ort_call_i64(call, 0, &l->limit, err));
    ORT_TRY(ort_call_i64(call, 1, &cond, err));
    for (int i = 0; i < l->carried; i++) {
        if (!call->in[2 + i])
            return ort_call_fail(call, err, "initial value %d of its body is missing", i);
        l->in[2 + i] = ort_value_retain(call->in[2 + i]);
    }
    bool go_on = cond != 0;
    for (int64_t t = 0; go_on && t < l->limit; t++)
        ORT_TRY(loop_step(l, t, &go_on, err));
    return loop_finish(l, err);
}

static ort_status loop_run(ort_call *call, ort_error *err)
{
    loop l = {.call = call, .body = ort_node_body(call->node, "body")};
    l.carried = call->in_count > 2 ? call->in_count - 2 : 0;
    l.outs = (int)call->node->bodies[l.body]->outputs.count;
    l.scans = l.outs - 1 - l.carried;
    if (l.scans < 0 || call->out_count > l.outs - 1)
        return ort_call_fail(call, err, "its body gives %d outputs, at least %d are needed", l.outs,
                             l.carried + 1);
    l.in = calloc((size_t)l.carried + 2, sizeof *l.in);
    l.out = calloc((size_t)l.outs, sizeof *l.out);
    l.scan = calloc((size_t)l.scans + 1, sizeof *l.scan);
    ort_status status = l.in && l.out && l.scan ? loop_body(&l, err) : ort_error_memory(err, 1024);
    if (l.in)
        free_values(l.in, l.carried + 2);
    if (l.out)
        free_values(l.out, l.outs);
    for (int i = 0; l.scan && i < l.scans; i++)
        ort_value_free(l.scan[i].value);
    free(l.in);
    free(l.out);
    free(l.scan);
    return status;
}

static const ort_op_impl loop_impl = {.infer = loop_infer, .run = loop_run, .numbers = 3};

/* ---- SequenceMap */

static ort_status map_infer(ort_infer *x, ort_error *err)
{
    int body = ort_node_body(x->node, "body");
    if (body < 0 || (int)x->node->bodies[body]->outputs.count != x->out_count)
        return ort_infer_fail(x, err, "its body must give %d outputs", x->out_count);
    ort_fact *in = ort_arena_array(x->arena, (size_t)x->in_count + 1, sizeof *in);
    ort_fact *out = ort_arena_array(x->arena, (size_t)x->out_count + 1, sizeof *out);
    if (!in || !out)
        return ort_error_memory(err, (size_t)x->in_count * sizeof *in);
    for (int i = 0; i < x->in_count; i++) {
        in[i].type.rank = -1;
        if (!x->in[i])
            continue;
        if (x->in[i]->type.kind != ORT_TYPE_SEQUENCE)
            in[i].type = x->in[i]->type;
        else if (x->in[i]->type.element)
            in[i].type = *x->in[i]->type.element;
    }
    ORT_TRY(x->infer_body(x, body, in, x->in_count, out, x->out_count, err));
    for (int i = 0; i < x->out_count; i++)
        x->out[i].type = ort_flow_type_of(x->arena, ORT_TYPE_SEQUENCE, &out[i].type);
    return ORT_OK;
}

static ort_status map_step(ort_call *call, int body, size_t item, ort_value **in, ort_value **out,
                           ort_value **sequences, ort_error *err)
{
    for (int i = 0; i < call->in_count; i++) {
        ort_value *v = call->in[i];
        if (v && v->kind == ORT_KIND_SEQUENCE && item >= v->count)
            return ort_call_fail(call, err, "input %d has %zu items, the first input has more", i,
                                 v->count);
        in[i] = v && v->kind == ORT_KIND_SEQUENCE ? v->items[item] : v;
    }
    ORT_TRY(ort_call_body(call, body, in, call->in_count, out, call->out_count, err));
    for (int i = 0; i < call->out_count; i++) {
        ort_value *kept = NULL;
        ORT_TRY(ort_flow_keep(out[i], &kept, err));
        ort_status status = ort_value_append_take(sequences[i], kept, err);
        if (status != ORT_OK)
            return status;
        ort_value_free(out[i]);
        out[i] = NULL;
    }
    return ORT_OK;
}

static ort_status map_body(ort_call *call, ort_value **in, ort_value **out, ort_value **sequences,
                           ort_error *err)
{
    int body = ort_node_body(call->node, "body");
    if (!call->in[0] || call->in[0]->kind != ORT_KIND_SEQUENCE)
        return ort_call_fail(call, err, "input 0 must be a sequence");
    for (int i = 0; i < call->out_count; i++) {
        ort_dtype dtype;
        ort_shape shape;
        ORT_TRY(ort_value_new_sequence_(&sequences[i], err));
        ort_flow_empty_form(call->node->bodies[body], i, &dtype, &shape);
        sequences[i]->item_dtype = dtype;
    }
    for (size_t item = 0; item < call->in[0]->count; item++)
        ORT_TRY(map_step(call, body, item, in, out, sequences, err));
    for (int i = 0; i < call->out_count; i++) {
        if (!call->out[i])
            continue;
        ort_call_set_output(call, i, sequences[i]);
        sequences[i] = NULL;
    }
    return ORT_OK;
}

static ort_status map_run(ort_call *call, ort_error *err)
{
    size_t outs = (size_t)call->out_count;
    ort_value **in = calloc((size_t)call->in_count + 1, sizeof *in);
    ort_value **out = calloc(outs * 2 + 1, sizeof *out);
    ort_status status = in && out ? map_body(call, in, out, out + outs, err)
                                  : ort_error_memory(err, outs * sizeof *out);
    if (out)
        free_values(out, call->out_count * 2);
    free(in);
    free(out);
    return status;
}

static const ort_op_impl map_impl = {.infer = map_infer, .run = map_run};

/* ---- rows */

/* Types of what goes into a body and comes out of it. */
#define LATER_TYPES                                                                                \
    "13:V+seq(F,I,U,C,str,bool) "                                                                  \
    "16:V+bf16,seq(bf16),opt(F,I,U,C,bf16,str,bool,seq(F,I,U,C,bf16,str,bool)) "                   \
    "19:V+F8,seq(F8),opt(F8) 21:V+Q4,seq(Q4),opt(Q4) 23:V+f4e2m1,seq(f4e2m1),opt(f4e2m1) "         \
    "24:V+f8e8m0,seq(f8e8m0),opt(f8e8m0) 25:V+Q2,seq(Q2),opt(Q2)"

const ort_op ort_ops_control[] = {
    {ONNX, "If", 1, "cond:B -> outputs**:V",
     "V:F,I,U,C,str,bool B:bool",
     "else_branch:g! then_branch:g!", RUN_TRAITS, &if_impl, .history = "11 " LATER_TYPES},
    {ONNX, "Loop", 1, "M?:I,cond?:B,v_initial**:V -> v_final_and_scan_outputs**:V",
     "V:F,I,U,C,str,bool I:i64 B:bool",
     "body:g!", RUN_TRAITS, &loop_impl},
    {ONNX, "Loop", 11, "M?:I,cond?:B,v_initial**0:V -> v_final_and_scan_outputs**:V",
     "V:F,I,U,C,str,bool I:i64 B:bool",
     "body:g!", RUN_TRAITS, &loop_impl, .history = LATER_TYPES},
    {ONNX, "SequenceMap", 17, "input_sequence:S,additional_inputs**0:V -> out_sequence**:S",
     "S:seq(F,I,U,C,str,bool) V:F,I,U,C,str,bool,seq(F,I,U,C,str,bool)",
     "body:g!", RUN_TRAITS, &map_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};

/* attention_flex.c - FlexAttention of ai.onnx.preview: attention whose scores and probabilities
 * pass through bodies of the node.
 *
 * Everything is computed in double and rounded to the type the bodies see (softmax_precision); this
 * preview operator is here for its meaning, not for speed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/flow.h"

#define PREVIEW "ai.onnx.preview"

typedef struct flex {
    ort_call *call;
    const ort_tensor *q, *k, *v;
    int64_t B, H, K, L, S, D, E; /* H query heads, K key heads, L queries, S keys */
    double scale;
    ort_dtype precision;
    ort_value *grid; /* scores, then probabilities: [B, H, L, S] */
} flex;

static ort_dtype precision_of(const ort_node *node, ort_dtype dtype)
{
    int64_t given = ort_node_attr_int(node, "softmax_precision");
    if (given)
        return (ort_dtype)given;
    return dtype == ORT_DTYPE_DOUBLE ? ORT_DTYPE_DOUBLE : ORT_DTYPE_FLOAT;
}

static ort_status infer_modifier(ort_infer *x, const char *name, const ort_fact *grid,
                                 ort_error *err)
{
    ort_fact out;
    int body = ort_node_body(x->node, name);
    if (body < 0)
        return ORT_OK;
    if (x->node->bodies[body]->inputs.count != 1 || x->node->bodies[body]->outputs.count != 1)
        return ort_infer_fail(x, err, "%s must have one input and one output", name);
    return x->infer_body(x, body, grid, 1, &out, 1, err);
}

static ort_status flex_infer(ort_infer *x, ort_error *err)
{
    ort_dtype dtype = x->out[0].type.dtype;
    ort_fact grid = {.type = {.rank = -1}};
    ort_dim dims[4] = {ort_infer_dim(x, 0, 0), ort_infer_dim(x, 0, 1), ort_infer_dim(x, 0, 2),
                       ort_infer_dim(x, 1, 2)};
    if (dtype)
        grid.type = ort_type_tensor(precision_of(x->node, dtype), 4, dims);
    ORT_TRY(infer_modifier(x, "score_mod", &grid, err));
    return infer_modifier(x, "prob_mod", &grid, err);
}

static ort_status flex_init(flex *f, ort_error *err)
{
    ort_call *call = f->call;
    f->q = ort_call_in(call, 0);
    f->k = ort_call_in(call, 1);
    f->v = ort_call_in(call, 2);
    const ort_shape *q = &f->q->shape, *k = &f->k->shape, *v = &f->v->shape;
    if (q->rank != 4 || k->rank != 4 || v->rank != 4 || k->dim[0] != q->dim[0] ||
        v->dim[0] != q->dim[0] || k->dim[1] != v->dim[1] || k->dim[1] < 1 ||
        q->dim[1] % k->dim[1] || k->dim[2] != v->dim[2] || k->dim[3] != q->dim[3])
        return ort_call_fail(call, err, "the shapes of Q, K and V don't fit together");
    f->B = q->dim[0];
    f->H = q->dim[1];
    f->K = k->dim[1];
    f->L = q->dim[2];
    f->S = k->dim[2];
    f->D = q->dim[3];
    f->E = v->dim[3];
    f->precision = precision_of(call->node, f->q->dtype);
    f->scale = ort_node_has(call->node, "scale") ? ort_node_attr_float(call->node, "scale")
                                                 : 1 / sqrt((double)ort_max_i64(f->D, 1));
    ort_shape grid = {4, {f->B, f->H, f->L, f->S}};
    ORT_TRY(ort_shape_check(&grid, f->precision, err));
    return ort_value_new_tensor_(f->precision, &grid, &f->grid, err);
}

static int64_t key_head(const flex *f, int64_t row)
{
    int64_t head = row / f->L, b = head / f->H, h = head % f->H;
    return b * f->K + h / (f->H / f->K);
}

static void score_task(void *arg, size_t task, int thread)
{
    flex *f = arg;
    int64_t row = (int64_t)task, keys = key_head(f, row) * f->S;
    for (int64_t s = 0; s < f->S; s++) {
        double sum = 0;
        for (int64_t d = 0; d < f->D; d++)
            sum += ort_tensor_get_f64(f->q, row * f->D + d) *
                   ort_tensor_get_f64(f->k, (keys + s) * f->D + d);
        ort_tensor_set_f64(&f->grid->tensor, row * f->S + s, sum * f->scale);
    }
}

static void softmax_task(void *arg, size_t task, int thread)
{
    flex *f = arg;
    ort_tensor *t = &f->grid->tensor;
    int64_t first = (int64_t)task * f->S;
    double top = -INFINITY, sum = 0;
    for (int64_t s = 0; s < f->S; s++)
        top = fmax(top, ort_tensor_get_f64(t, first + s));
    for (int64_t s = 0; s < f->S; s++)
        sum += exp(ort_tensor_get_f64(t, first + s) - top);
    for (int64_t s = 0; s < f->S; s++)
        ort_tensor_set_f64(t, first + s, exp(ort_tensor_get_f64(t, first + s) - top) / sum);
}

static void weigh_task(void *arg, size_t task, int thread)
{
    flex *f = arg;
    int64_t row = (int64_t)task, keys = key_head(f, row) * f->S;
    ort_tensor *y = ort_call_out(f->call, 0);
    for (int64_t e = 0; e < f->E; e++) {
        double sum = 0;
        for (int64_t s = 0; s < f->S; s++)
            sum += ort_tensor_get_f64(&f->grid->tensor, row * f->S + s) *
                   ort_tensor_get_f64(f->v, (keys + s) * f->E + e);
        ort_tensor_set_f64(y, row * f->E + e, sum);
    }
}

/* Replace the grid by what a body makes of it. */
static ort_status modify(flex *f, const char *name, ort_error *err)
{
    ort_value *changed = NULL, *own = NULL;
    int body = ort_node_body(f->call->node, name);
    if (body < 0)
        return ORT_OK;
    ORT_TRY(ort_call_body(f->call, body, &f->grid, 1, &changed, 1, err));
    bool same = changed->kind == ORT_KIND_TENSOR &&
                changed->tensor.dtype == f->grid->tensor.dtype &&
                ort_shape_equal(&changed->tensor.shape, &f->grid->tensor.shape);
    ort_status status = same ? ort_value_clone(changed, &own, err)
                             : ort_call_fail(f->call, err, "%s changes the type or shape of its "
                                             "input", name);
    ort_value_free(changed);
    if (status != ORT_OK)
        return status;
    ort_value_free(f->grid);
    f->grid = own;
    return ORT_OK;
}

static ort_status flex_steps(flex *f, ort_error *err)
{
    ORT_TRY(flex_init(f, err));
    size_t rows = (size_t)(f->B * f->H * f->L);
    ort_shape shape = {4, {f->B, f->H, f->L, f->E}};
    ORT_TRY(ort_call_output(f->call, 0, f->q->dtype, &shape, err));
    ort_call_parallel(f->call, rows, score_task, f);
    ORT_TRY(modify(f, "score_mod", err));
    ort_call_parallel(f->call, rows, softmax_task, f);
    ORT_TRY(modify(f, "prob_mod", err));
    if (ort_call_out(f->call, 0))
        ort_call_parallel(f->call, rows, weigh_task, f);
    return ORT_OK;
}

static ort_status flex_run(ort_call *call, ort_error *err)
{
    flex f = {.call = call};
    ort_status status = flex_steps(&f, err);
    ort_value_free(f.grid);
    return status;
}

static const ort_op_impl flex_impl = {
    .rule = "[B,H,S,_] [_,_,_,_] [_,_,_,E] -> [B,H,S,E]",
    .infer = flex_infer, .run = flex_run,
};

/* ---- rows */

const ort_op ort_ops_attention_flex[] = {
    {PREVIEW, "FlexAttention", 1, "Q:T1,K:T1,V:T1 -> Y:T1",
     "T1:F,bf16",
     "prob_mod:g scale:f score_mod:g softmax_precision:i", ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC,
     &flex_impl},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};

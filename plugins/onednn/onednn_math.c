/* onednn_math.c - elementwise operators, products, sums over axes, and what only moves elements. */
#include "onednn.h"

/* ---- one operand */

static void elementwise(task *t, dnnl_alg_kind_t algorithm, float alpha, float beta)
{
    dnnl_memory_desc_t md;
    dnnl_eltwise_desc_t desc;
    int from = onednn_read(t, 0, &md);
    if (!onednn_check(t->p, dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference,
                                                           algorithm, &md, alpha, beta)))
        return;
    operation *o = onednn_add(t->p, &desc, NULL, NULL);
    onednn_arg(o, DNNL_ARG_SRC, from, &md);
    onednn_arg(o, DNNL_ARG_DST, onednn_write(t, 0, &md), &md);
}

static void emit_unary(task *t)
{
    const ort_provider_api *api = t->p->r->api;
    const char *op = t->row->op;
    float alpha = !strcmp(op, "LeakyRelu")   ? api->attr_float(t->node, "alpha", 0.01f)
                  : !strcmp(op, "QuickGelu") ? api->attr_float(t->node, "alpha", 1.702f)
                  : !strcmp(op, "Elu")       ? api->attr_float(t->node, "alpha", 1)
                                             : 0;
    bool tanh = !strcmp(api->attr_string(t->node, "approximate", "none"), "tanh");
    dnnl_alg_kind_t algorithm = (dnnl_alg_kind_t)t->row->algorithm;
    elementwise(t, algorithm == dnnl_eltwise_gelu_erf && tanh ? dnnl_eltwise_gelu_tanh : algorithm,
                alpha, 0);
}

/* ---- two operands */

/* The common rank is that of the result. */
static dnnl_memory_desc_t widened(const dnnl_memory_desc_t *md, int rank)
{
    int64_t dims[MOST_AXES] = {1, 1, 1, 1, 1, 1};
    for (int d = 0; d < md->ndims; d++)
        dims[rank - md->ndims + d] = md->dims[d];
    return onednn_dims(rank, dims);
}

static bool same_sizes(const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b)
{
    return a->ndims == b->ndims && !memcmp(a->dims, b->dims, (size_t)a->ndims * sizeof *a->dims);
}

static void combine(plan *p, dnnl_alg_kind_t algorithm, int a, const dnnl_memory_desc_t *ad, int b,
                    const dnnl_memory_desc_t *bd, int y, const dnnl_memory_desc_t *yd)
{
    dnnl_binary_desc_t desc;
    if (!onednn_check(p, dnnl_binary_desc_init(&desc, algorithm, ad, bd, yd)))
        return;
    operation *o = onednn_add(p, &desc, NULL, NULL);
    onednn_arg(o, DNNL_ARG_SRC_0, a, ad);
    onednn_arg(o, DNNL_ARG_SRC_1, b, bd);
    onednn_arg(o, DNNL_ARG_DST, y, yd);
}

/* oneDNN spreads its second operand alone: the first is multiplied by ones where it must. */
static void emit_binary(task *t)
{
    dnnl_alg_kind_t algorithm = (dnnl_alg_kind_t)t->row->algorithm;
    ort_device_value y = onednn_out(t, 0);
    dnnl_memory_desc_t ad, bd, yd = onednn_plain(&y);
    int a = onednn_read(t, 0, &ad), b = onednn_read(t, 1, &bd);
    if (same_sizes(&ad, &bd) && dnnl_memory_desc_equal(&ad, &bd) && same_sizes(&ad, &yd)) {
        combine(t->p, algorithm, a, &ad, b, &bd, onednn_write(t, 0, &ad), &ad);
        return;
    }
    a = onednn_read_plain(t, 0, &ad);
    b = onednn_read_plain(t, 1, &bd);
    ad = widened(&ad, yd.ndims);
    bd = widened(&bd, yd.ndims);
    if (!same_sizes(&ad, &yd)) {
        int ones = onednn_filled(t->p, y.count, 1), spread = onednn_scratch(t->p, &yd);
        combine(t->p, dnnl_binary_mul, ones, &yd, a, &ad, spread, &yd);
        a = spread;
    }
    combine(t->p, algorithm, a, &yd, b, &bd, onednn_write(t, 0, &yd), &yd);
}

static bool claim_binary(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                         const char **why)
{
    ort_device_value b;
    api->value(graph, api->input(node, 1), &b);
    *why = "not two operands";
    return api->input_count(node) == 2 && b.dtype == ORT_DTYPE_FLOAT && b.rank >= 0 &&
           b.rank <= MOST_AXES && b.count != 0 && api->node_opset(node) >= 7;
}

/* ---- products */

static bool claim_matmul(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                         const char **why)
{
    ort_device_value a, b;
    api->value(graph, api->input(node, 0), &a);
    api->value(graph, api->input(node, 1), &b);
    *why = "a vector";
    return a.rank >= 2 && b.rank >= 2 && b.rank <= MOST_AXES && b.dtype == ORT_DTYPE_FLOAT &&
           b.count != 0;
}

static void multiply(task *t, int a, const dnnl_memory_desc_t *ad, int b,
                     const dnnl_memory_desc_t *bd, int c, const dnnl_memory_desc_t *cd,
                     const dnnl_memory_desc_t *yd)
{
    dnnl_matmul_desc_t desc;
    if (!onednn_check(t->p, dnnl_matmul_desc_init(&desc, ad, bd, cd, yd)))
        return;
    operation *o = onednn_add(t->p, &desc, NULL, NULL);
    onednn_arg(o, DNNL_ARG_SRC, a, ad);
    onednn_arg(o, DNNL_ARG_WEIGHTS, b, bd);
    if (cd)
        onednn_arg(o, DNNL_ARG_BIAS, c, cd);
    onednn_arg(o, DNNL_ARG_DST, onednn_write(t, 0, yd), yd);
}

static void emit_matmul(task *t)
{
    ort_device_value y = onednn_out(t, 0);
    dnnl_memory_desc_t ad, bd, yd = onednn_plain(&y);
    int a = onednn_read_plain(t, 0, &ad), b = onednn_read_plain(t, 1, &bd);
    ad = widened(&ad, yd.ndims);
    bd = widened(&bd, yd.ndims);
    multiply(t, a, &ad, b, &bd, -1, NULL, &yd);
}

static bool claim_gemm(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                       const char **why)
{
    ort_device_value b, c;
    bool has_c = api->input(node, 2) != ORT_ID_NONE;
    api->value(graph, api->input(node, 1), &b);
    api->value(graph, api->input(node, 2), &c);
    *why = "alpha or beta isn't 1";
    if (api->attr_float(node, "alpha", 1) != 1 || (has_c && api->attr_float(node, "beta", 1) != 1))
        return false;
    *why = "an element type, or an input without elements";
    return b.dtype == ORT_DTYPE_FLOAT && b.count != 0 && api->node_opset(node) >= 7 &&
           (!has_c || (c.dtype == ORT_DTYPE_FLOAT && c.count != 0));
}

static dnnl_memory_desc_t turned(const dnnl_memory_desc_t *md, bool turn)
{
    dnnl_memory_desc_t other;
    const dnnl_dims_t dims = {md->dims[1], md->dims[0]}, strides = {1, md->dims[1]};
    if (!turn)
        return *md;
    dnnl_memory_desc_init_by_strides(&other, 2, dims, dnnl_f32, strides);
    return other;
}

static void emit_gemm(task *t)
{
    const ort_provider_api *api = t->p->r->api;
    ort_device_value y = onednn_out(t, 0);
    dnnl_memory_desc_t ad, bd, cd, yd = onednn_plain(&y);
    int a = onednn_read_plain(t, 0, &ad), b = onednn_read_plain(t, 1, &bd), c = -1;
    if (onednn_has(t, 2)) {
        c = onednn_read_plain(t, 2, &cd);
        cd = widened(&cd, 2);
    }
    ad = turned(&ad, api->attr_int(t->node, "transA", 0));
    bd = turned(&bd, api->attr_int(t->node, "transB", 0));
    multiply(t, a, &ad, b, &bd, c, c >= 0 ? &cd : NULL, &yd);
}

/* ---- sums over axes: which ones, the sizes tell */

static bool claim_reduce(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                         const char **why)
{
    ort_device_value x, axes;
    size_t count = 0;
    api->value(graph, api->input(node, 0), &x);
    api->value(graph, api->input(node, 1), &axes);
    const int64_t *given = api->attr_ints(node, "axes", &count);
    bool has_input = api->input(node, 1) != ORT_ID_NONE;
    *why = "its axes aren't known";
    return x.rank > 0 && (given || (has_input && axes.constant && axes.count > 0 &&
                                    axes.count <= MOST_AXES));
}

static void emit_reduce(task *t)
{
    const ort_provider_api *api = t->p->r->api;
    ort_device_value x = onednn_in(t, 0), y = onednn_out(t, 0), list;
    int64_t axes[MOST_AXES], dims[MOST_AXES];
    size_t count = 0;
    const int64_t *given = api->attr_ints(t->node, "axes", &count);
    if (!given) {
        list = onednn_in(t, 1);
        count = (size_t)list.count;
        api->constant(t->p->r, api->input(t->node, 1), axes, count * sizeof *axes);
        given = axes;
    }
    memcpy(dims, x.dims, sizeof dims);
    for (size_t i = 0; i < count; i++)
        dims[given[i] < 0 ? given[i] + x.rank : given[i]] = 1;
    dnnl_memory_desc_t xd, kept = onednn_dims(x.rank, dims), yd = onednn_plain(&y);
    dnnl_reduction_desc_t desc;
    int from = onednn_read_plain(t, 0, &xd);
    if (same_sizes(&xd, &kept)) { /* oneDNN refuses to reduce nothing */
        onednn_set(t, 0, from, &yd);
        return;
    }
    if (!onednn_check(t->p, dnnl_reduction_desc_init(&desc, (dnnl_alg_kind_t)t->row->algorithm,
                                                     &xd, &kept, 0, 0)))
        return;
    operation *o = onednn_add(t->p, &desc, NULL, NULL);
    onednn_arg(o, DNNL_ARG_SRC, from, &xd);
    onednn_arg(o, DNNL_ARG_DST, onednn_write(t, 0, &yd), &kept);
}

/* ---- moves */

static void emit_alias(task *t)
{
    ort_device_value y = onednn_out(t, 0);
    dnnl_memory_desc_t xd, yd = onednn_plain(&y);
    int from = onednn_read_plain(t, 0, &xd);
    onednn_set(t, 0, from, &yd);
}

static void emit_transpose(task *t)
{
    ort_device_value x = onednn_in(t, 0), y = onednn_out(t, 0);
    size_t count = 0;
    const int64_t *perm = t->p->r->api->attr_ints(t->node, "perm", &count);
    dnnl_memory_desc_t xd, seen, yd = onednn_plain(&y);
    dnnl_dims_t strides, dims;
    dnnl_primitive_desc_t pd = NULL;
    int from = onednn_read_plain(t, 0, &xd);
    for (int d = 0; d < x.rank; d++) {
        int axis = perm ? (int)perm[d] : x.rank - 1 - d;
        dims[d] = x.dims[axis];
        strides[d] = 1;
        for (int e = axis + 1; e < x.rank; e++)
            strides[d] *= x.dims[e];
    }
    if (!onednn_check(t->p, dnnl_memory_desc_init_by_strides(&seen, x.rank, dims, dnnl_f32,
                                                             strides)) ||
        !onednn_check(t->p, dnnl_reorder_primitive_desc_create(&pd, &seen, t->p->d->engine, &yd,
                                                               t->p->d->engine, NULL)))
        return;
    operation *o = onednn_add_chosen(t->p, pd);
    dnnl_primitive_desc_destroy(pd);
    onednn_arg(o, DNNL_ARG_FROM, from, &seen);
    onednn_arg(o, DNNL_ARG_TO, onednn_write(t, 0, &yd), &yd);
}

static bool has_axes(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                     const char **why)
{
    ort_device_value x;
    api->value(graph, api->input(node, 0), &x);
    *why = "a scalar";
    return x.rank > 0;
}

enum { MOST_JOINED = 64 };

static bool claim_concat(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                         const char **why)
{
    ort_device_value v;
    *why = "one or more than 64 inputs";
    if (api->input_count(node) < 2 || api->input_count(node) > MOST_JOINED)
        return false;
    *why = "an input's element type, or one without elements";
    for (int i = 0; i < api->input_count(node); i++) {
        api->value(graph, api->input(node, i), &v);
        if (v.dtype != ORT_DTYPE_FLOAT || v.count == 0 || v.rank < 1)
            return false;
    }
    return true;
}

static void emit_concat(task *t)
{
    ort_device_value y = onednn_out(t, 0);
    dnnl_memory_desc_t list[MOST_JOINED], yd = onednn_plain(&y);
    dnnl_primitive_desc_t pd = NULL;
    int from[MOST_JOINED], count = t->p->r->api->input_count(t->node);
    int axis = (int)t->p->r->api->attr_int(t->node, "axis", 0);
    for (int i = 0; i < count; i++)
        from[i] = onednn_read_plain(t, i, &list[i]);
    if (!onednn_check(t->p, dnnl_concat_primitive_desc_create(&pd, &yd, count,
                                                              axis < 0 ? axis + y.rank : axis,
                                                              list, NULL, t->p->d->engine)))
        return;
    operation *o = onednn_add_chosen(t->p, pd);
    dnnl_primitive_desc_destroy(pd);
    for (int i = 0; i < count; i++)
        onednn_arg(o, DNNL_ARG_MULTIPLE_SRC + i, from[i], &list[i]);
    onednn_arg(o, DNNL_ARG_DST, onednn_write(t, 0, &yd), &yd);
}

const struct row onednn_math_rows[] = {
    {"", "Relu", NULL, emit_unary, dnnl_eltwise_relu},
    {"", "LeakyRelu", NULL, emit_unary, dnnl_eltwise_relu},
    {"", "Elu", NULL, emit_unary, dnnl_eltwise_elu},
    {"", "Sigmoid", NULL, emit_unary, dnnl_eltwise_logistic},
    {"", "Tanh", NULL, emit_unary, dnnl_eltwise_tanh},
    {"", "Exp", NULL, emit_unary, dnnl_eltwise_exp},
    {"", "Log", NULL, emit_unary, dnnl_eltwise_log},
    {"", "Sqrt", NULL, emit_unary, dnnl_eltwise_sqrt},
    {"", "Abs", NULL, emit_unary, dnnl_eltwise_abs},
    {"", "Softplus", NULL, emit_unary, dnnl_eltwise_soft_relu},
    {"", "HardSwish", NULL, emit_unary, dnnl_eltwise_hardswish},
    {"", "Mish", NULL, emit_unary, dnnl_eltwise_mish},
    {"", "Gelu", NULL, emit_unary, dnnl_eltwise_gelu_erf},
    {"com.microsoft", "Gelu", NULL, emit_unary, dnnl_eltwise_gelu_erf},
    {"com.microsoft", "QuickGelu", NULL, emit_unary, dnnl_eltwise_swish},
    {"", "Add", claim_binary, emit_binary, dnnl_binary_add},
    {"", "Sub", claim_binary, emit_binary, dnnl_binary_sub},
    {"", "Mul", claim_binary, emit_binary, dnnl_binary_mul},
    {"", "Div", claim_binary, emit_binary, dnnl_binary_div},
    {"", "MatMul", claim_matmul, emit_matmul, 0},
    {"", "Gemm", claim_gemm, emit_gemm, 0},
    {"", "ReduceMean", claim_reduce, emit_reduce, dnnl_reduction_mean},
    {"", "ReduceSum", claim_reduce, emit_reduce, dnnl_reduction_sum},
    {"", "ReduceMax", claim_reduce, emit_reduce, dnnl_reduction_max},
    {"", "ReduceMin", claim_reduce, emit_reduce, dnnl_reduction_min},
    {"", "Reshape", NULL, emit_alias, 0},
    {"", "Flatten", NULL, emit_alias, 0},
    {"", "Squeeze", NULL, emit_alias, 0},
    {"", "Unsqueeze", NULL, emit_alias, 0},
    {"", "Identity", NULL, emit_alias, 0},
    {"", "Transpose", has_axes, emit_transpose, 0},
    {"", "Concat", claim_concat, emit_concat, 0},
    {0},
};

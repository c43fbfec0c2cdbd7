/* onednn_net.c - layers of networks: convolutions, pools, norms, softmax. */
#include "onednn.h"

/* ---- windows */

typedef struct window {
    dnnl_dims_t kernel, strides, dilates, before, after; /* dilates: 0 where they touch */
    int axes;
} window;

static void fill(const task *t, const char *name, int64_t otherwise, int axes, int64_t *list)
{
    size_t count = 0;
    const int64_t *given = t->p->r->api->attr_ints(t->node, name, &count);
    for (int i = 0; i < axes; i++)
        list[i] = given && (size_t)i < count ? given[i] : otherwise;
}

/* Padding behind follows from the sizes: also of auto_pad and of sizes that are rounded up. */
static window window_of(const task *t, const ort_device_value *x, const ort_device_value *y,
                        const int64_t *kernel)
{
    const ort_provider_api *api = t->p->r->api;
    window w = {.axes = x->rank - 2};
    int64_t pads[2 * MOST_AXES];
    const char *how = api->attr_string(t->node, "auto_pad", "NOTSET");
    fill(t, "strides", 1, w.axes, w.strides);
    fill(t, "dilations", 1, w.axes, w.dilates);
    fill(t, "pads", 0, 2 * w.axes, pads);
    for (int i = 0; i < w.axes; i++) {
        int64_t reach = (kernel[i] - 1) * w.dilates[i] + 1;
        int64_t needed = (y->dims[i + 2] - 1) * w.strides[i] + reach - x->dims[i + 2];
        int64_t all = needed > 0 ? needed : 0;
        w.kernel[i] = kernel[i];
        w.dilates[i]--;
        w.before[i] = !strcmp(how, "NOTSET")       ? pads[i]
                      : !strcmp(how, "VALID")      ? 0
                      : !strcmp(how, "SAME_UPPER") ? all / 2
                                                   : (all + 1) / 2;
        w.after[i] = needed - w.before[i];
    }
    return w;
}

/* ---- convolutions */

/* What follows a product: a post-op. False: oneDNN has none. */
static bool activation(const char *name, dnnl_alg_kind_t *algorithm, float *alpha)
{
    static const struct {
        const char *name;
        dnnl_alg_kind_t algorithm;
        float alpha;
    } known[] = {{"Relu", dnnl_eltwise_relu, 0},
                 {"Sigmoid", dnnl_eltwise_logistic, 0},
                 {"Tanh", dnnl_eltwise_tanh, 0},
                 {"LeakyRelu", dnnl_eltwise_relu, 0.01f}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) {
            *algorithm = known[i].algorithm;
            *alpha = known[i].alpha;
            return true;
        }
    return false;
}

static bool claim_activation(const ort_provider_api *api, const ort_node *node)
{
    dnnl_alg_kind_t algorithm;
    float alpha;
    return activation(api->attr_string(node, "activation", ""), &algorithm, &alpha);
}

static void append_activation(task *t, dnnl_primitive_attr_t attr)
{
    const ort_provider_api *api = t->p->r->api;
    dnnl_post_ops_t ops = NULL;
    dnnl_alg_kind_t algorithm;
    float alpha;
    size_t count = 0;
    if (!activation(api->attr_string(t->node, "activation", ""), &algorithm, &alpha) ||
        !onednn_check(t->p, dnnl_post_ops_create(&ops)))
        return;
    const float *params = api->attr_floats(t->node, "activation_params", &count);
    if (algorithm == dnnl_eltwise_relu && alpha != 0)
        alpha = params && count ? params[0] : api->attr_float(t->node, "activation_alpha", alpha);
    onednn_check(t->p, dnnl_post_ops_append_eltwise(ops, 1, algorithm, alpha, 0));
    onednn_check(t->p, dnnl_primitive_attr_set_post_ops(attr, ops));
    dnnl_post_ops_destroy(ops);
}

static bool claim_conv(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                       const char **why)
{
    ort_device_value x, w, b;
    bool fused = *api->node_domain(node) != '\0';
    api->value(graph, api->input(node, 0), &x);
    api->value(graph, api->input(node, 1), &w);
    api->value(graph, api->input(node, 2), &b);
    *why = "weights that runs change";
    if (!w.constant || (api->input(node, 2) != ORT_ID_NONE && !b.constant))
        return false;
    *why = "not 1 to 3 axes of space";
    if (x.rank < 3 || x.rank > 5)
        return false;
    *why = "its activation";
    return !fused || (api->input(node, 3) == ORT_ID_NONE && claim_activation(api, node));
}

/* [M, C/g, ...] as oneDNN wants it: [g, M/g, C/g, ...]. */
static dnnl_memory_desc_t filters(const ort_device_value *w, int64_t groups)
{
    int64_t dims[MOST_AXES + 1] = {groups, w->dims[0] / groups};
    if (groups == 1)
        return onednn_plain(w);
    for (int d = 1; d < w->rank; d++)
        dims[d + 1] = w->dims[d];
    return onednn_dims(w->rank + 1, dims);
}

static dnnl_memory_desc_t any(const dnnl_memory_desc_t *md)
{
    dnnl_memory_desc_t free_choice;
    dnnl_memory_desc_init_by_tag(&free_choice, md->ndims, md->dims, dnnl_f32,
                                 dnnl_format_tag_any);
    return free_choice;
}

static void emit_conv(task *t)
{
    plan *p = t->p;
    ort_device_value x = onednn_in(t, 0), w = onednn_in(t, 1), y = onednn_out(t, 0);
    window win = window_of(t, &x, &y, w.dims + 2);
    dnnl_memory_desc_t xd, bd, plain_w, plain_y = onednn_plain(&y);
    dnnl_memory_desc_t filter = filters(&w, p->r->api->attr_int(t->node, "group", 1));
    int from = onednn_read(t, 0, &xd), weights = onednn_read_plain(t, 1, &plain_w);
    int bias = onednn_has(t, 2) ? onednn_read_plain(t, 2, &bd) : -1;
    dnnl_memory_desc_t any_x = any(&xd), any_w = any(&filter), any_y = any(&plain_y);
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    if (!onednn_check(p, dnnl_dilated_convolution_forward_desc_init(
                             &desc, dnnl_forward_inference, dnnl_convolution_direct, &any_x, &any_w,
                             bias >= 0 ? &bd : NULL, &any_y, win.strides, win.dilates, win.before,
                             win.after)) ||
        !onednn_check(p, dnnl_primitive_attr_create(&attr)))
        return;
    append_activation(t, attr);
    if (onednn_check(p, dnnl_primitive_desc_create(&pd, &desc, attr, p->d->engine, NULL))) {
        const dnnl_memory_desc_t *to = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
        const dnnl_memory_desc_t *of = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
        const dnnl_memory_desc_t *by = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
        int source = onednn_reorder(p, from, &xd, of);
        int packed = onednn_reorder(p, weights, &filter, by);
        operation *o = onednn_add_chosen(p, pd);
        onednn_arg(o, DNNL_ARG_SRC, source, of);
        onednn_arg(o, DNNL_ARG_WEIGHTS, packed, by);
        if (bias >= 0)
            onednn_arg(o, DNNL_ARG_BIAS, bias, &bd);
        onednn_arg(o, DNNL_ARG_DST, onednn_write(t, 0, to), to);
        dnnl_primitive_desc_destroy(pd);
    }
    dnnl_primitive_attr_destroy(attr);
}

/* ---- pools */

static bool claim_pool(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                       const char **why)
{
    ort_device_value x;
    bool mean = !strcmp(api->node_type(node), "AveragePool");
    api->value(graph, api->input(node, 0), &x);
    *why = "not 1 to 3 axes of space";
    if (x.rank < 3 || x.rank > 5)
        return false;
    *why = "a mean over windows that reach past the padding";
    return !mean || !api->attr_int(node, "ceil_mode", 0);
}

static void pool(task *t, dnnl_alg_kind_t algorithm, const window *w)
{
    ort_device_value y = onednn_out(t, 0);
    dnnl_memory_desc_t xd, plain_y = onednn_plain(&y), any_y = any(&plain_y);
    dnnl_pooling_v2_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    int from = onednn_read(t, 0, &xd);
    if (!onednn_check(t->p, dnnl_pooling_v2_forward_desc_init(
                                &desc, dnnl_forward_inference, algorithm, &xd, &any_y, w->strides,
                                w->kernel, w->dilates, w->before, w->after)))
        return;
    operation *o = onednn_add(t->p, &desc, NULL, &pd);
    if (!o)
        return;
    const dnnl_memory_desc_t *to = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
    onednn_arg(o, DNNL_ARG_SRC, from, &xd);
    onednn_arg(o, DNNL_ARG_DST, onednn_write(t, 0, to), to);
    dnnl_primitive_desc_destroy(pd);
}

static void emit_pool(task *t)
{
    ort_device_value x = onednn_in(t, 0), y = onednn_out(t, 0);
    bool mean = t->row->algorithm == dnnl_pooling_avg_exclude_padding;
    int64_t kernel[MOST_AXES];
    fill(t, "kernel_shape", 1, x.rank - 2, kernel);
    window w = window_of(t, &x, &y, kernel);
    bool padded = mean && t->p->r->api->attr_int(t->node, "count_include_pad", 0);
    pool(t, padded ? dnnl_pooling_avg_include_padding : (dnnl_alg_kind_t)t->row->algorithm, &w);
}

static void emit_global(task *t)
{
    ort_device_value x = onednn_in(t, 0);
    window w = {.axes = x.rank - 2};
    for (int i = 0; i < w.axes; i++) {
        w.kernel[i] = x.dims[i + 2];
        w.strides[i] = 1;
    }
    pool(t, (dnnl_alg_kind_t)t->row->algorithm, &w);
}

static bool claim_global(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                         const char **why)
{
    ort_device_value x;
    api->value(graph, api->input(node, 0), &x);
    *why = "not 1 to 3 axes of space";
    return x.rank >= 3 && x.rank <= 5;
}

/* ---- norms */

static bool are_constants(const ort_provider_api *api, const ort_graph *graph,
                          const ort_node *node, int first, int count)
{
    ort_device_value v;
    for (int i = first; i < first + count; i++) {
        api->value(graph, api->input(node, i), &v);
        if (api->input(node, i) != ORT_ID_NONE && (!v.constant || v.dtype != ORT_DTYPE_FLOAT))
            return false;
    }
    return true;
}

static bool claim_batch_norm(const ort_provider_api *api, const ort_graph *graph,
                             const ort_node *node, const char **why)
{
    *why = "statistics that runs change";
    return !api->attr_int(node, "training_mode", 0) && api->node_opset(node) >= 9 &&
           are_constants(api, graph, node, 1, 4);
}

/* Where the producer has put it: the same layout. */
static void same_layout(task *t, operation *o, int from, const dnnl_memory_desc_t *md)
{
    onednn_arg(o, DNNL_ARG_SRC, from, md);
    onednn_arg(o, DNNL_ARG_DST, onednn_write(t, 0, md), md);
}

static void emit_batch_norm(task *t)
{
    static const int names[] = {DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE};
    dnnl_memory_desc_t xd, md;
    dnnl_batch_normalization_desc_t desc;
    int from = onednn_read(t, 0, &xd);
    float epsilon = t->p->r->api->attr_float(t->node, "epsilon", 1e-5f);
    if (!onednn_check(t->p, dnnl_batch_normalization_forward_desc_init(
                                &desc, dnnl_forward_inference, &xd, epsilon,
                                dnnl_use_global_stats | dnnl_use_scale | dnnl_use_shift)))
        return;
    operation *o = onednn_add(t->p, &desc, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        int buffer = onednn_read_plain(t, i + 1, &md);
        onednn_arg(o, names[i], buffer, &md);
    }
    same_layout(t, o, from, &xd);
}

static bool claim_layer_norm(const ort_provider_api *api, const ort_graph *graph,
                             const ort_node *node, const char **why)
{
    ort_device_value x, scale;
    int64_t axis = api->attr_int(node, "axis", -1);
    api->value(graph, api->input(node, 0), &x);
    api->value(graph, api->input(node, 1), &scale);
    *why = "not over the last axis, by one number for each of its elements";
    return x.rank >= 2 && (axis == -1 || axis == x.rank - 1) && scale.rank == 1 &&
           x.dims[x.rank - 1] > 0 && scale.dims[0] == x.dims[x.rank - 1] &&
           scale.dtype == ORT_DTYPE_FLOAT;
}

static void emit_layer_norm(task *t)
{
    dnnl_memory_desc_t xd, sd, bd;
    dnnl_layer_normalization_desc_t desc;
    int from = onednn_read_plain(t, 0, &xd), scale = onednn_read_plain(t, 1, &sd), shift;
    float epsilon = t->p->r->api->attr_float(t->node, "epsilon", 1e-5f);
    if (onednn_has(t, 2)) {
        shift = onednn_read_plain(t, 2, &bd);
    } else {
        bd = sd;
        shift = onednn_filled(t->p, sd.dims[0], 0);
    }
    if (!onednn_check(t->p, dnnl_layer_normalization_forward_desc_init(
                                &desc, dnnl_forward_inference, &xd, NULL, epsilon,
                                dnnl_use_scale | dnnl_use_shift)))
        return;
    operation *o = onednn_add(t->p, &desc, NULL, NULL);
    onednn_arg(o, DNNL_ARG_SCALE, scale, &sd);
    onednn_arg(o, DNNL_ARG_SHIFT, shift, &bd);
    same_layout(t, o, from, &xd);
}

static bool claim_softmax(const ort_provider_api *api, const ort_graph *graph,
                          const ort_node *node, const char **why)
{
    ort_device_value x;
    api->value(graph, api->input(node, 0), &x);
    *why = "before opset 13 it flattens its input";
    return x.rank > 0 && api->node_opset(node) >= 13;
}

static void emit_softmax(task *t)
{
    dnnl_memory_desc_t xd;
    dnnl_softmax_v2_desc_t desc;
    ort_device_value x = onednn_in(t, 0);
    int from = onednn_read(t, 0, &xd), axis = (int)t->p->r->api->attr_int(t->node, "axis", -1);
    if (!onednn_check(t->p, dnnl_softmax_v2_forward_desc_init(
                                &desc, dnnl_forward_inference, (dnnl_alg_kind_t)t->row->algorithm,
                                &xd, &xd, axis < 0 ? axis + x.rank : axis)))
        return;
    same_layout(t, onednn_add(t->p, &desc, NULL, NULL), from, &xd);
}

static bool claim_lrn(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                      const char **why)
{
    ort_device_value x;
    api->value(graph, api->input(node, 0), &x);
    *why = "an even size, or not 4 axes";
    return x.rank == 4 && api->attr_int(node, "size", 0) % 2 == 1;
}

static void emit_lrn(task *t)
{
    const ort_provider_api *api = t->p->r->api;
    dnnl_memory_desc_t xd;
    dnnl_lrn_desc_t desc;
    int from = onednn_read(t, 0, &xd);
    if (!onednn_check(t->p, dnnl_lrn_forward_desc_init(&desc, dnnl_forward_inference,
                                                       dnnl_lrn_across_channels, &xd,
                                                       api->attr_int(t->node, "size", 1),
                                                       api->attr_float(t->node, "alpha", 1e-4f),
                                                       api->attr_float(t->node, "beta", 0.75f),
                                                       api->attr_float(t->node, "bias", 1))))
        return;
    same_layout(t, onednn_add(t->p, &desc, NULL, NULL), from, &xd);
}

const struct row onednn_net_rows[] = {
    {"", "Conv", claim_conv, emit_conv, 0},
    {"com.microsoft", "FusedConv", claim_conv, emit_conv, 0},
    {"", "MaxPool", claim_pool, emit_pool, dnnl_pooling_max},
    {"", "AveragePool", claim_pool, emit_pool, dnnl_pooling_avg_exclude_padding},
    {"", "GlobalMaxPool", claim_global, emit_global, dnnl_pooling_max},
    {"", "GlobalAveragePool", claim_global, emit_global, dnnl_pooling_avg_exclude_padding},
    {"", "BatchNormalization", claim_batch_norm, emit_batch_norm, 0},
    {"", "LayerNormalization", claim_layer_norm, emit_layer_norm, 0},
    {"", "Softmax", claim_softmax, emit_softmax, dnnl_softmax_accurate},
    {"", "LogSoftmax", claim_softmax, emit_softmax, dnnl_softmax_log},
    {"", "LRN", claim_lrn, emit_lrn, 0},
    {0},
};

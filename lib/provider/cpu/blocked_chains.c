/* blocked_chains.c - convolutions of the blocked layout that follow each other become one
 * BlockedConvChain, which runs them by rows. So do max pools behind them. It pays where each result
 * goes to the next one alone and is too large to stay in the second-level cache: a first layer with
 * the depthwise layer or the pool behind it, and the parts of an inverted residual.
 *
 * A chain ends at a 1x1 convolution that has fewer outputs than inputs, since little is handed over
 * there. The filters of its other 1x1 convolutions must be small, because they are read again for
 * every few rows.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include <string.h>

#include "op/blocked/chain/blocked_chain.h"
#include "op/edit.h"
#include "op/eval.h"
#include "op/shared/window.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

enum {
    HANDED_BYTES = 384 << 10, /* that one convolution gives the next, at least */
    FILTER_BYTES = 128 << 10, /* of a 1x1, at most */
};

typedef enum stage_kind { NO_STAGE, PLAIN, POINTWISE, DEPTHWISE, MAXIMUM } stage_kind;

typedef struct chain {
    int count;
    ort_node *stage[ORT_CHAIN_STAGES];
    int64_t windows[ORT_CHAIN_STAGES * ORT_CHAIN_WINDOW];
} chain;

static bool has_sum(const ort_node *conv)
{
    return ort_edit_input(conv, 3) != ORT_ID_NONE;
}

static bool all_ones(const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++)
        if (numbers[i] != 1)
            return false;
    return true;
}

static void list_window(int64_t group, const int64_t *kernel, const ort_window_spec *spec,
                        int64_t *window)
{
    const int64_t list[] = {group,           kernel[0],         kernel[1],
                            spec->stride[0], spec->stride[1],   spec->dilation[0],
                            spec->dilation[1], spec->begin[0], spec->begin[1],
                            spec->end[0],    spec->end[1]};
    memcpy(window, list, sizeof list);
}

/* Windows that need no rounding up: stages know floors alone. */
static stage_kind kind_of_pool(const ort_graph *graph, const ort_node *node, int64_t *window)
{
    const ort_type *t = ort_fact_type(graph, node->inputs[0]);
    ort_window_spec spec;
    if (t->rank != 5 || ort_window_read(node, &spec, NULL) || !spec.has_kernel ||
        spec.auto_pad != ORT_PAD_EXPLICIT || spec.kernel[1] > 16 || spec.dilation[1] > 2)
        return NO_STAGE;
    for (int i = 0; i < 2; i++) {
        int64_t room = t->dim[2 + i].size + spec.begin[i] + spec.end[i] -
                       (spec.kernel[i] - 1) * spec.dilation[i] - 1;
        if (!ort_dim_known(t->dim[2 + i]) || (spec.ceil_mode && room % spec.stride[i]))
            return NO_STAGE;
    }
    list_window(0, spec.kernel, &spec, window);
    return MAXIMUM;
}

/* What a node can be in a chain, its window in the order of ORT_CHAIN_WINDOW. */
static stage_kind kind_of(const ort_graph *graph, const ort_node *node, int64_t *window)
{
    ort_shape w;
    ort_window_spec spec;
    if (ort_edit_is(node, ORT_INTERNAL, "BlockedMaxPool"))
        return kind_of_pool(graph, node, window);
    if (!ort_edit_is(node, ORT_INTERNAL, "BlockedConv") || node->input_count < 3 ||
        node->inputs[2] == ORT_ID_NONE || !ort_edit_constant(graph, node, 1) ||
        !ort_type_concrete(ort_fact_type(graph, node->inputs[1]), &w) || w.rank != 4 ||
        ort_window_read(node, &spec, NULL) || spec.auto_pad != ORT_PAD_EXPLICIT)
        return NO_STAGE;
    int64_t group = ort_node_attr_int(node, "group"), *pads = window + 7;
    list_window(group, w.dim + 2, &spec, window);
    if (ort_fact_type(graph, node->inputs[0])->rank == 4)
        return has_sum(node) ? NO_STAGE : PLAIN;
    if (group > 1) {
        bool fits = w.dim[1] == 1 && w.dim[0] == group && ort_chain_reads_ring(w.dim + 2, &spec);
        return fits && !has_sum(node) ? DEPTHWISE : NO_STAGE;
    }
    bool small = w.dim[0] * w.dim[1] * (int64_t)sizeof(float) <= FILTER_BYTES && w.dim[1] <= 1024;
    bool one = all_ones(window + 1, 4) && !pads[0] && !pads[1] && !pads[2] && !pads[3];
    return one && small ? POINTWISE : NO_STAGE;
}

static bool narrows(const ort_graph *graph, const ort_node *node)
{
    const ort_type *w = ort_fact_type(graph, node->inputs[1]);
    return w->dim[0].size < w->dim[1].size;
}

/* Does one convolution hand more to the next than a cache would keep? */
static bool is_large(const ort_type *t)
{
    double bytes = sizeof(float);
    for (int d = 1; d < t->rank; d++) {
        if (!ort_dim_known(t->dim[d]))
            return false;
        bytes *= (double)t->dim[d].size;
    }
    return t->rank == 5 && bytes >= HANDED_BYTES;
}

/* The longest chain from `first` on. */
static bool match(const ort_graph *graph, ort_node *first, chain *c)
{
    stage_kind kind = kind_of(graph, first, c->windows), next_kind;
    c->count = 0;
    if (kind == NO_STAGE || kind == MAXIMUM)
        return false;
    c->stage[c->count++] = first;
    while (c->count < ORT_CHAIN_STAGES) {
        ort_node *last = c->stage[c->count - 1];
        ort_node *next = ort_edit_only_reader(graph, last->outputs[0]);
        if (has_sum(last) || !is_large(ort_fact_type(graph, last->outputs[0])) ||
            (kind == POINTWISE && c->count > 1 && narrows(graph, last)) || !next ||
            next->inputs[0] != last->outputs[0])
            break;
        next_kind = kind_of(graph, next, c->windows + c->count * ORT_CHAIN_WINDOW);
        if (next_kind == NO_STAGE || next_kind == PLAIN)
            break;
        c->stage[c->count++] = next;
        kind = next_kind;
    }
    return c->count > 1;
}

/* The lists of attributes, one entry per stage, in the model's arena. */
typedef struct lists {
    int64_t windows[ORT_CHAIN_STAGES * ORT_CHAIN_WINDOW], counts[ORT_CHAIN_STAGES];
    ort_string names[ORT_CHAIN_STAGES];
    float params[ORT_CHAIN_STAGES * ORT_CHAIN_PARAMS];
    float scales[ORT_CHAIN_STAGES], shifts[ORT_CHAIN_STAGES];
    int64_t slope_counts[ORT_CHAIN_STAGES];
    float *slopes; /* of all stages */
    int64_t slope_count;
    ort_attr attrs[9];
} lists;

static bool fill_lists(const chain *c, lists *l)
{
    memcpy(l->windows, c->windows, sizeof l->windows);
    for (int i = 0; i < c->count; i++) {
        const ort_node *node = c->stage[i];
        const ort_attr *activation = ort_node_attr_of(node, "activation", ORT_ATTR_STRING);
        size_t count = 0;
        const float *params = ort_node_floats(node, "activation_params", &count);
        if (count > ORT_CHAIN_PARAMS)
            return false;
        l->names[i] = activation ? activation->s : (ort_string){"", 0};
        l->counts[i] = (int64_t)count;
        for (size_t p = 0; p < count; p++)
            l->params[i * ORT_CHAIN_PARAMS + (int)p] = params[p];
        l->scales[i] = ort_op_has_attr(node->op, "scale") ? ort_node_attr_float(node, "scale") : 1;
        l->shifts[i] = ort_node_attr_float(node, "shift");
    }
    return true;
}

/* The slopes of all stages in a row. */
static bool fill_slopes(ort_arena *arena, const chain *c, lists *l)
{
    const float *slopes[ORT_CHAIN_STAGES];
    for (int i = 0; i < c->count; i++) {
        size_t count = 0;
        slopes[i] = ort_node_floats(c->stage[i], "slopes", &count);
        l->slope_counts[i] = (int64_t)count;
        l->slope_count += (int64_t)count;
    }
    l->slopes = ort_arena_array(arena, (size_t)l->slope_count + 1, sizeof *l->slopes);
    float *to = l->slopes;
    for (int i = 0; to && i < c->count; to += l->slope_counts[i++])
        if (l->slope_counts[i])
            memcpy(to, slopes[i], (size_t)l->slope_counts[i] * sizeof *to);
    return l->slopes;
}

static int make_attrs(const chain *c, lists *l)
{
    const size_t n = (size_t)c->count;
    const ort_attr attrs[] = {
        ort_attr_int("block", ort_node_attr_int(c->stage[0], "block")),
        ort_attr_ints("windows", l->windows, c->count * ORT_CHAIN_WINDOW),
        {.name = "activations", .type = ORT_ATTR_STRINGS, .strings = l->names, .count = n},
        {.name = "activation_params", .type = ORT_ATTR_FLOATS, .floats = l->params,
         .count = n * ORT_CHAIN_PARAMS},
        ort_attr_ints("param_counts", l->counts, c->count),
        {.name = "scales", .type = ORT_ATTR_FLOATS, .floats = l->scales, .count = n},
        {.name = "shifts", .type = ORT_ATTR_FLOATS, .floats = l->shifts, .count = n},
        ort_attr_ints("slope_counts", l->slope_counts, c->count),
        {.name = "slopes", .type = ORT_ATTR_FLOATS, .floats = l->slopes,
         .count = (size_t)l->slope_count},
    };
    memcpy(l->attrs, attrs, sizeof attrs);
    return (int)(sizeof attrs / sizeof *attrs);
}

static ort_status fuse(ort_graph *graph, const chain *c, lists *l, ort_error *err)
{
    ort_id inputs[2 + 2 * ORT_CHAIN_STAGES], output = c->stage[c->count - 1]->outputs[0];
    int count = 0;
    ort_node whole = *c->stage[0];
    inputs[count++] = whole.inputs[0];
    for (int i = 0; i < c->count; i++) {
        for (int k = 1; k < 3 && c->windows[i * ORT_CHAIN_WINDOW]; k++)
            inputs[count++] = c->stage[i]->inputs[k];
        if (i)
            whole.origin = ort_edit_origin(graph, &whole, c->stage[i]);
    }
    if (has_sum(c->stage[c->count - 1]))
        inputs[count++] = c->stage[c->count - 1]->inputs[3];
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "BlockedConvChain", .inputs = inputs,
                          .input_count = count, .outputs = &output, .output_count = 1,
                          .attrs = l->attrs, .attr_count = make_attrs(c, l),
                          .origin = whole.origin};
    for (int i = c->count - 1; i > 0; i--)
        ort_graph_remove_node(graph, c->stage[i]);
    return ort_edit_replace(graph, c->stage[0], NULL, &spec, err);
}

/* A stage in the middle of a chain starts none. */
static bool continues(const ort_graph *graph, const ort_node *node)
{
    chain c;
    ort_node *before = ort_edit_producer(graph, node->inputs[0]);
    if (before && ort_edit_is(before, ORT_INTERNAL, "BlockedMaxPool"))
        before = ort_edit_producer(graph, before->inputs[0]);
    if (!before || !ort_edit_is(before, ORT_INTERNAL, "BlockedConv") || !match(graph, before, &c))
        return false;
    return c.stage[1] == node || (c.count > 2 && c.stage[2] == node);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    chain found;
    if (!c->target || c->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (!ort_edit_is(node, ORT_INTERNAL, "BlockedConv") || continues(c->graph, node) ||
            !match(c->graph, node, &found))
            continue;
        lists *l = ort_arena_alloc(&c->graph->model->arena, sizeof *l);
        if (!l)
            return ort_error_memory(err, sizeof *l);
        memset(l, 0, sizeof *l);
        if (!fill_slopes(&c->graph->model->arena, &found, l))
            return ort_error_memory(err, sizeof *l);
        if (!fill_lists(&found, l))
            continue;
        ORT_TRY(fuse(c->graph, &found, l, err));
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_blocked_chains = {
    .name = "blocked_chains",
    .level = 3,
    .doc = "blocked convolutions that follow each other run by rows (cpu only)",
    .apply = apply,
};

/* blocked_strides.c - a 1x1 convolution with strides, in the blocked layout, gets its input without
 * the pixels that it would skip: a BlockedMaxPool of 1x1 with these strides copies the others out
 * first. The convolution then sees its plane as one long row, which fills the micro tiles and reads
 * each weight less often; rows of 7 pixels fill half of a tile.
 *
 * The copy pays where rows are short and there are enough output channels to read it.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "op/eval.h"
#include "op/shared/window.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

enum { ROW_PIXELS = 28, LEAST_MAPS = 64 };

static bool strides(const ort_graph *graph, const ort_node *node)
{
    const ort_type *x = ort_fact_type(graph, node->inputs[0]);
    const ort_type *y = ort_fact_type(graph, node->outputs[0]);
    ort_window_spec spec;
    ort_shape w;
    if (x->rank != 5 || y->rank != 5 || !ort_dim_known(y->dim[3]) || y->dim[3].size > ROW_PIXELS ||
        ort_node_attr_int(node, "group") != 1 || ort_window_read(node, &spec, NULL) ||
        spec.auto_pad != ORT_PAD_EXPLICIT || spec.stride[0] * spec.stride[1] == 1 ||
        !ort_type_concrete(ort_fact_type(graph, node->inputs[1]), &w) || w.rank != 4)
        return false;
    for (int i = 0; i < 2; i++)
        if (w.dim[2 + i] != 1 || spec.begin[i] != 0 || spec.end[i] != 0)
            return false;
    return w.dim[0] >= LEAST_MAPS;
}

/* The pixels that `conv` reads, as a value of their own. */
static ort_status take_out(ort_graph *graph, const ort_node *conv, ort_id *pixels, ort_error *err)
{
    static const int64_t ones[] = {1, 1};
    const ort_attr *stride = ort_node_attr(conv, "strides");
    const ort_attr attrs[] = {
        ort_attr_int("block", ort_node_attr_int(conv, "block")),
        ort_attr_ints("kernel_shape", ones, 2), *stride};
    ort_attr *kept = ort_arena_array(&graph->model->arena, 3, sizeof *kept);
    if (!kept)
        return ort_error_memory(err, sizeof attrs);
    memcpy(kept, attrs, sizeof attrs);
    char name[256];
    snprintf(name, sizeof name, "%.200s_pixels", graph->values.data[conv->outputs[0]]->name);
    *pixels = ort_graph_add_value(graph, name);
    if (*pixels == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *pixels);
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = "BlockedMaxPool", .name = "",
                          .inputs = conv->inputs, .input_count = 1, .outputs = pixels,
                          .output_count = 1, .attrs = kept, .attr_count = 3,
                          .origin = conv->origin};
    return ort_edit_add_node(graph, &spec, NULL, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    static const int64_t ones[] = {1, 1};
    ort_attr one = ort_attr_ints("strides", ones, 2);
    ort_node *node;
    if (!c->target || c->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        ort_id pixels;
        if (!ort_edit_is(node, ORT_INTERNAL, "BlockedConv") || !strides(c->graph, node))
            continue;
        ORT_TRY(take_out(c->graph, node, &pixels, err));
        ORT_TRY(ort_node_set_attr(c->graph, node, &one, err));
        ort_node_set_input(c->graph, node, 0, pixels);
        ++*changes;
    }
    return ORT_OK;
}

const ort_pass ort_pass_blocked_strides = {
    .name = "blocked_strides",
    .level = 3,
    .doc = "1x1 convolutions that stride read pixels that were put side by side (cpu only)",
    .apply = apply,
};

/* blocked_layout.c - whole regions around convolutions run in the blocked channel layout
 * (op/blocked/blocked_op.h). Conversions stand only where a region begins with many channels and
 * where somebody outside reads its values. Level 3: the operators are ours and the block is the
 * machine's, so nothing of this is saved.
 */
#pragma GCC optimize("Os") /* runs once for a model */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/uses.h"
#include "op/edit.h"
#include "pass/facts/facts.h"
#include "provider/cpu/blocked_choose.h"
#include "provider/cpu/layout_edit.h"

typedef struct layout {
    ort_layout edit;
    ort_blocked_choice choice;
} layout;

static ort_status add(layout *l, const ort_node *from, const char *domain, const char *op_type,
                      const ort_id *inputs, int input_count, ort_id output, ort_node **node,
                      ort_error *err)
{
    ort_node_spec spec = from ? ort_edit_again(from) : (ort_node_spec){.name = ""};
    if (!from || strcmp(domain, from->domain))
        spec.opset = 0;
    spec.domain = domain;
    spec.op_type = op_type;
    spec.inputs = inputs;
    spec.input_count = input_count;
    spec.outputs = &output;
    spec.output_count = 1;
    return ort_edit_add_node(l->edit.graph, &spec, node, err);
}

/* Squeeze-excite: the plane first, the numbers per channel second. */
static void order_scale(const layout *l, const ort_node *node, ort_id *inputs)
{
    const ort_type *first = ort_fact_type(l->edit.graph, node->inputs[0]);
    for (int d = 2; d < first->rank; d++)
        if (!ort_dim_known(first->dim[d]) || first->dim[d].size != 1)
            return;
    ort_id plane = inputs[1];
    inputs[1] = inputs[0];
    inputs[0] = plane;
}

/* What becomes of a node: its operator in our domain, NULL for its own, and attributes set anew. */
typedef struct form {
    char text[64];
    const char *internal;
    ort_attr extra[3];
    int extra_count, inputs; /* inputs that stay */
    bool bare;               /* none of the node's own attributes stay */
} form;

/* Of a BlockedUpsample: its scales, and what a linear one needs. */
static ort_status grow_attrs(ort_graph *graph, const ort_node *node, form *f, ort_error *err)
{
    int64_t *scales = ort_arena_array(&graph->model->arena, 4, sizeof *scales);
    const char *place;
    if (!scales)
        return ort_error_memory(err, 4 * sizeof *scales);
    scales[0] = scales[1] = 1;
    ort_blocked_grows(graph, node, scales + 2, &place);
    f->extra[f->extra_count++] = ort_attr_ints("scales", scales, 4);
    if (place) {
        f->extra[f->extra_count++] = ort_attr_string("mode", "linear");
        f->extra[f->extra_count++] = ort_attr_string("coordinate_transformation_mode", place);
    }
    return ORT_OK;
}

static ort_status join_attr(ort_graph *graph, const ort_node *node, ort_attr *attr,
                            ort_error *err)
{
    const int count = node->input_count;
    int64_t *channels = ort_arena_array(&graph->model->arena, (size_t)count, sizeof *channels);
    if (!channels)
        return ort_error_memory(err, (size_t)count * sizeof *channels);
    for (int i = 0; i < count; i++)
        channels[i] = ort_fact_type(graph, node->inputs[i])->dim[1].size;
    *attr = ort_attr_ints("channels", channels, count);
    return ORT_OK;
}

static ort_status form_of(layout *l, const ort_node *node, form *f, ort_error *err)
{
    ort_graph *graph = l->edit.graph;
    ort_blocked_role role = l->choice.role[node->id];
    *f = (form){.inputs = node->input_count};
    if (role == ORT_BLOCKED_SAME || role == ORT_BLOCKED_CONCAT || role == ORT_BLOCKED_GIVEN)
        return ORT_OK;
    if (role == ORT_BLOCKED_JOIN) {
        f->bare = true;
        f->internal = "BlockedConcat";
        f->extra_count = 1;
        return join_attr(graph, node, f->extra, err);
    }
    f->bare = role == ORT_BLOCKED_RESIZE || role == ORT_BLOCKED_AFFINE ||
              ort_blocked_is_mean(graph, node); /* the axes are all that a mean has */
    f->inputs = f->bare ? 1 : f->inputs;
    f->internal = role == ORT_BLOCKED_RESIZE   ? "BlockedUpsample"
                  : role == ORT_BLOCKED_AFFINE ? "BlockedAffine"
                                               : "BlockedGlobalAveragePool";
    if (role == ORT_BLOCKED_RESIZE)
        return grow_attrs(graph, node, f, err);
    if (role == ORT_BLOCKED_AFFINE) {
        f->extra_count = ort_blocked_affine_attrs(graph, node, f->extra);
        return f->extra_count ? ORT_OK : ort_error_memory(err, sizeof f->extra);
    }
    if (f->bare)
        return ORT_OK;
    snprintf(f->text, sizeof f->text, "Blocked%s",
             role == ORT_BLOCKED_CONV ? "Conv" : node->op_type);
    f->internal = f->text;
    return ORT_OK;
}

/* The node's inputs in the layout, the one that stays alone first. */
static ort_status convert_inputs(layout *l, const ort_node *node, ort_id *inputs, ort_error *err)
{
    ort_graph *graph = l->edit.graph;
    ort_blocked_role role = l->choice.role[node->id];
    for (int i = 0; i < node->input_count; i++) {
        ort_id in = inputs[i] = node->inputs[i];
        bool data = in != ORT_ID_NONE && ort_blocked_slot(role, i) &&
                    !graph->values.data[in]->fact.value;
        bool plain = role == ORT_BLOCKED_CONV && i == 0 &&
                     ort_blocked_from_plain(graph, &l->choice, node);
        if (data && !plain)
            ORT_TRY(ort_layout_input(&l->edit, in, "BlockChannels", &inputs[i], err));
        if (data && role == ORT_BLOCKED_AFFINE)
            inputs[0] = inputs[i];
    }
    if (role == ORT_BLOCKED_SCALE)
        order_scale(l, node, inputs);
    return ORT_OK;
}

/* Its codes lie in the layout of bytes at once, for all that would bring them there. */
static ort_status convert_codes(layout *l, ort_node *node, ort_error *err)
{
    ort_graph *graph = l->edit.graph;
    ort_id out = node->outputs[0], inputs[3];
    const ort_attr channels = ort_attr_int("channels", ort_fact_type(graph, out)->dim[1].size);
    const ort_id made = ort_layout_value(&l->edit, out);
    if (made == ORT_ID_NONE)
        return ort_error_memory(err, sizeof made);
    for (int i = 0; i < 3; i++)
        inputs[i] = ort_edit_input(node, i);
    ORT_TRY(ort_layout_input(&l->edit, inputs[0], "BlockChannels", &inputs[0], err));
    ort_readers readers = ort_readers_of(graph, out);
    for (ort_node *reader; (reader = ort_readers_next(&readers));) {
        const ort_id moved = reader->outputs[0];
        ort_graph_remove_node(graph, reader);
        ort_graph_replace_uses(graph, moved, made);
    }
    ort_graph_remove_node(graph, node);
    return ort_layout_node(&l->edit, node, "QuantizeBlocked", inputs,
                           inputs[2] == ORT_ID_NONE ? 2 : 3, made, &channels, 1, err);
}

static ort_status convert(layout *l, ort_node *node, ort_error *err)
{
    if (l->choice.role[node->id] == ORT_BLOCKED_CODES)
        return convert_codes(l, node, err);
    ort_graph *graph = l->edit.graph;
    ort_id inputs[ORT_LAYOUT_INPUTS], out = node->outputs[0];
    form f;
    ORT_TRY(convert_inputs(l, node, inputs, err));
    ORT_TRY(form_of(l, node, &f, err));
    ort_attr channels = ort_attr_int("channels", ort_fact_type(graph, out)->dim[1].size);
    ort_id made = ort_layout_value(&l->edit, out);
    if (made == ORT_ID_NONE)
        return ort_error_memory(err, sizeof made);
    if (f.bare)
        node->attr_count = 0;
    bool outside = graph->values.data[out]->use_count > l->choice.uses[out];
    const ort_blocked_role role = l->choice.role[node->id];
    ort_graph_remove_node(graph, node);
    if (f.internal)
        ORT_TRY(ort_layout_node(&l->edit, node, f.internal, inputs, f.inputs, made, f.extra,
                                f.extra_count, err));
    else
        ORT_TRY(add(l, node, node->domain, node->op_type, inputs, f.inputs, made, NULL, err));
    if (role == ORT_BLOCKED_CONCAT || role == ORT_BLOCKED_GIVEN) {
        const ort_attr attr = role == ORT_BLOCKED_GIVEN ? ort_attr_int("blocks", l->edit.block)
                                                        : ort_attr_int("axis", 1);
        ORT_TRY(ort_edit_set_attr(graph, ort_edit_producer(graph, made), &attr, err));
    }
    l->edit.blocked_of[out] = made;
    return outside ? ort_layout_node(&l->edit, NULL, "UnblockChannels", &made, 1, out, &channels, 1,
                                     err)
                   : ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    size_t nodes = c->graph->nodes.count, values = c->graph->values.count;
    ort_status status = ORT_OK;
    ort_arena scratch = {0};
    if (!c->target || c->portable)
        return ORT_OK;
    layout l = {.choice.block = c->target->block, .choice.narrows = c->target->narrows,
                .choice.any_order = c->any_order};
    status = ort_layout_begin(&l.edit, c->graph, c->target->block, &scratch, err);
    l.choice.role = ort_arena_array(&scratch, nodes + 1, sizeof *l.choice.role);
    l.choice.blocked = ort_arena_array(&scratch, values + 1, sizeof *l.choice.blocked);
    l.choice.uses = ort_arena_array(&scratch, values + 1, sizeof *l.choice.uses);
    l.choice.region = ort_arena_array(&scratch, nodes + 1, sizeof *l.choice.region);
    l.choice.gain = ort_arena_array(&scratch, nodes + 1, sizeof *l.choice.gain);
    if (status != ORT_OK || !l.choice.role || !l.choice.blocked || !l.choice.uses ||
        !l.choice.region || !l.choice.gain) {
        ort_arena_release(&scratch);
        return ort_error_memory(err, (nodes + values) * sizeof(ort_id));
    }
    ort_blocked_choose(c->graph, &l.choice);
    l.edit.block = l.choice.block;
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (status != ORT_OK || node->id >= nodes) /* made here */
            break;
        const char *why = c->near_misses ? ort_blocked_stays(c->graph, &l.choice, node) : NULL;
        if (why)
            ort_pass_note(c, node, "%s", why);
        if (!l.choice.role[node->id])
            continue;
        status = convert(&l, node, err);
        ++*changes;
    }
    ort_arena_release(&scratch);
    return status;
}

const ort_pass ort_pass_blocked_layout = {
    .name = "blocked_layout",
    .level = 3,
    .doc = "regions of convolutions run in a blocked channel layout (cpu only)",
    .apply = apply,
};

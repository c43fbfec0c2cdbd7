/* opset_edit.c - what rules of conversion edit nodes with (opset.h). A clone of the model shares
 * attribute lists and names, so lists are replaced as a whole, never written into. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "opset/opset.h"

void ort_opset_block(ort_opset_step *s, const char *format, ...)
{
    char label[256], text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ort_node_label(s->node, label, sizeof label);
    if (s->blocked < ORT_OPSET_REASONS) {
        ort_arena *arena = &s->g.graph->model->arena;
        s->reasons[s->blocked] =
            s->up ? ort_arena_printf(arena, "%s: %s", label, text)
                  : ort_arena_printf(arena, "%s: %s: needs opset %d", label, text, s->version);
        if (!s->reasons[s->blocked])
            ort_emit_fail_memory(&s->g);
    }
    s->blocked++;
}

/* ---- attributes */

void ort_opset_drop(ort_opset_step *s, const char *attr)
{
    ort_node *node = s->node;
    int kept = 0;
    if (!ort_node_has(node, attr) || s->g.status != ORT_OK)
        return;
    ort_attr *attrs = ort_arena_array(&s->g.graph->model->arena, (size_t)node->attr_count,
                                      sizeof *attrs);
    if (!attrs) {
        ort_emit_fail_memory(&s->g);
        return;
    }
    for (int i = 0; i < node->attr_count; i++)
        if (strcmp(node->attrs[i].name, attr))
            attrs[kept++] = node->attrs[i];
    node->attrs = attrs;
    node->attr_count = kept;
    ort_graph_touch(s->g.graph, node);
}

void ort_opset_set(ort_opset_step *s, const ort_attr *attr)
{
    if (s->g.status == ORT_OK)
        s->g.status = ort_node_set_attr(s->g.graph, s->node, attr, s->g.err);
}

void ort_opset_set_int(ort_opset_step *s, const char *attr, int64_t number)
{
    ort_attr a = ort_attr_int(attr, number);
    ort_opset_set(s, &a);
}

void ort_opset_set_ints(ort_opset_step *s, const char *attr, const int64_t *numbers, int count)
{
    ort_attr a = ort_attr_ints(attr, numbers, count);
    ort_opset_set(s, &a);
}

void ort_opset_set_string(ort_opset_step *s, const char *attr, const char *text)
{
    ort_attr a = ort_attr_string(attr, text);
    ort_opset_set(s, &a);
}

void ort_opset_rename(ort_opset_step *s, const char *op_type)
{
    s->node->op_type = op_type;
    ort_graph_touch(s->g.graph, s->node);
}

/* ---- inputs and outputs */

void ort_opset_set_input(ort_opset_step *s, int slot, ort_id value)
{
    ort_node *node = s->node;
    if (s->g.status != ORT_OK || (slot >= node->input_count && value == ORT_ID_NONE))
        return;
    if (slot >= node->input_count) {
        ort_id *inputs = ort_arena_array(&s->g.graph->model->arena, (size_t)slot + 1,
                                         sizeof *inputs);
        if (!inputs) {
            ort_emit_fail_memory(&s->g);
            return;
        }
        for (int i = 0; i <= slot; i++)
            inputs[i] = i < node->input_count ? node->inputs[i] : ORT_ID_NONE;
        node->inputs = inputs;
        node->input_count = slot + 1;
    }
    ort_node_set_input(s->g.graph, node, slot, value);
    while (node->input_count && node->inputs[node->input_count - 1] == ORT_ID_NONE)
        node->input_count--;
}

ort_id ort_opset_take_output(ort_opset_step *s, int slot, const ort_type *type)
{
    ort_graph *graph = s->g.graph;
    ort_node *node = s->node;
    ort_id old = node->outputs[slot];
    ort_id made = s->g.status != ORT_OK ? ORT_ID_NONE
                                        : ort_graph_add_value(graph, graph->values.data[old]->name);
    if (made == ORT_ID_NONE) {
        ort_emit_fail_memory(&s->g);
        return made;
    }
    ort_graph_value *value = graph->values.data[made];
    value->fact.type = *type;
    graph->producers.data[made] = node->id;
    value->producer_slot = slot;
    graph->producers.data[old] = ORT_ID_NONE;
    node->outputs[slot] = made;
    ort_graph_touch(graph, node);
    return made;
}

/* `value`, computed by an emitted node for this alone, takes the name `out`. */
static bool rename_value(ort_opset_step *s, ort_id value, ort_id out)
{
    ort_graph *graph = s->g.graph;
    ort_graph_value *from = graph->values.data[value], *to = graph->values.data[out];
    ort_node *producer = ort_edit_producer(graph, value);
    if (!producer || producer->id < s->first || from->is_output)
        return false;
    ort_graph_replace_uses(graph, value, out);
    producer->outputs[from->producer_slot] = out;
    graph->producers.data[out] = producer->id;
    to->producer_slot = from->producer_slot;
    graph->producers.data[value] = ORT_ID_NONE;
    ort_graph_touch(graph, producer);
    return true;
}

void ort_opset_give(ort_opset_step *s, ort_id out, ort_id value)
{
    if (s->g.status != ORT_OK || rename_value(s, value, out))
        return;
    ort_node_spec spec = {.domain = ONNX, .op_type = "Identity", .name = s->node->name,
                          .inputs = &value, .input_count = 1, .outputs = &out, .output_count = 1};
    s->g.status = ort_edit_add_node(s->g.graph, &spec, NULL, s->g.err);
}

void ort_opset_replace(ort_opset_step *s, const ort_id *values, int count)
{
    if (s->g.status != ORT_OK || s->blocked)
        return;
    ort_graph_remove_node(s->g.graph, s->node);
    for (int i = 0; i < s->node->output_count && i < count; i++)
        if (s->node->outputs[i] != ORT_ID_NONE && values[i] != ORT_ID_NONE)
            ort_opset_give(s, s->node->outputs[i], values[i]);
    s->replaced = true;
}

void ort_opset_replace_text(ort_opset_step *s, const char *text)
{
    ort_opset_replace_by(s, ort_emit_formula(&s->g, text, "a b c d", ort_opset_in(s, 0),
                                             ort_opset_in(s, 1), ort_opset_in(s, 2),
                                             ort_opset_in(s, 3)));
}

/* ---- what is known */

const ort_tensor *ort_opset_constant(const ort_opset_step *s, int slot)
{
    const ort_tensor *t = ort_edit_constant(s->g.graph, s->node, slot);
    return t && (t->data || ort_tensor_count(t) == 0) ? t : NULL;
}

bool ort_opset_ints(const ort_opset_step *s, int slot, int64_t *numbers, int capacity, int *count)
{
    const ort_tensor *t = ort_opset_constant(s, slot);
    if (!t || t->shape.rank > 1 || ort_tensor_count(t) > capacity)
        return false;
    *count = (int)ort_tensor_count(t);
    for (int i = 0; i < *count; i++)
        numbers[i] = ort_tensor_get_i64(t, i);
    return true;
}

int ort_opset_rank(const ort_opset_step *s, ort_id value)
{
    return ort_type_rank(ort_emit_type(&s->g, value));
}

ort_dtype ort_opset_dtype(const ort_opset_step *s, ort_id value)
{
    return ort_emit_type(&s->g, value)->dtype;
}

int64_t ort_opset_dim(const ort_opset_step *s, ort_id value, int axis)
{
    const ort_type *type = ort_emit_type(&s->g, value);
    bool known = type->kind == ORT_TYPE_TENSOR && axis >= 0 && axis < type->rank &&
                 ort_dim_known(type->dim[axis]);
    return known ? type->dim[axis].size : -1;
}

ort_id ort_opset_add_floats(ort_opset_step *s, const float *numbers, int count)
{
    int64_t dim = count;
    ort_tensor t = {.dtype = ORT_DTYPE_FLOAT, .shape = ort_shape_make(1, &dim),
                    .data = (void *)(uintptr_t)numbers};
    return ort_emit_tensor(&s->g, &t);
}

ort_id ort_opset_positions(ort_opset_step *s, ort_id x, int axis)
{
    enum { MOST = 1 << 16 };
    ort_emit *g = &s->g;
    int64_t count = ort_opset_dim(s, x, axis);
    int64_t *list = count < 0 || count > MOST || g->status
                        ? NULL
                        : ort_arena_array(&g->graph->model->arena, (size_t)count + 1, sizeof *list);
    if (!list) {
        return ort_emit_formula(g, "(Range @0 (Reshape (Dims x $axis $next) []) @1)",
                                "x $axis $next", x, (double)axis, (double)axis + 1);
    }
    for (int64_t i = 0; i < count; i++)
        list[i] = i;
    return ort_emit_ints(g, list, (int)count);
}

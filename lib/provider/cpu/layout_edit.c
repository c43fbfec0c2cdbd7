/* layout_edit.c - values and nodes of regions in a blocked layout. */
#include "provider/cpu/layout_edit.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"

ort_status ort_layout_begin(ort_layout *l, ort_graph *graph, int64_t block, ort_arena *space,
                            ort_error *err)
{
    const size_t values = graph->values.count;
    *l = (ort_layout){graph, block, ort_arena_array(space, values + 1, sizeof *l->blocked_of)};
    if (!l->blocked_of)
        return ort_error_memory(err, values * sizeof *l->blocked_of);
    memset(l->blocked_of, 0xff, (values + 1) * sizeof *l->blocked_of); /* ORT_ID_NONE */
    return ORT_OK;
}

ort_id ort_layout_value(ort_layout *l, ort_id like)
{
    char name[256];
    snprintf(name, sizeof name, "%.200s_blocked", l->graph->values.data[like]->name);
    return ort_graph_add_value(l->graph, name);
}

ort_status ort_layout_node(ort_layout *l, const ort_node *from, const char *op_type,
                           const ort_id *inputs, int input_count, ort_id output,
                           const ort_attr *extra, int extra_count, ort_error *err)
{
    const ort_op *op = ort_registry_find(l->graph->model->registry, ORT_INTERNAL, op_type, 1);
    ort_node *node = NULL;
    ort_attr attrs[64];
    int count = 0;
    ort_node_spec spec = {.domain = ORT_INTERNAL, .op_type = op_type,
                          .name = from ? from->name : "", .inputs = inputs,
                          .input_count = input_count, .outputs = &output, .output_count = 1,
                          .origin = from ? from->origin : NULL};
    for (int i = 0; op && from && i < from->attr_count && count < 60; i++)
        if (ort_op_has_attr(op, from->attrs[i].name))
            attrs[count++] = from->attrs[i];
    attrs[count++] = ort_attr_int("block", l->block);
    for (int i = 0; i < extra_count; i++)
        attrs[count++] = extra[i];
    ort_attr *kept = ort_arena_array(&l->graph->model->arena, (size_t)count, sizeof *kept);
    if (!kept)
        return ort_error_memory(err, sizeof attrs);
    memcpy(kept, attrs, (size_t)count * sizeof *kept);
    spec.attrs = kept;
    spec.attr_count = count;
    return ort_edit_add_node(l->graph, &spec, &node, err);
}

ort_status ort_layout_input(ort_layout *l, ort_id value, const char *convert, ort_id *blocked,
                            ort_error *err)
{
    if (l->blocked_of[value] == ORT_ID_NONE) {
        ort_id made = ort_layout_value(l, value);
        if (made == ORT_ID_NONE)
            return ort_error_memory(err, sizeof made);
        ORT_TRY(ort_layout_node(l, NULL, convert, &value, 1, made, NULL, 0, err));
        l->blocked_of[value] = made;
    }
    *blocked = l->blocked_of[value];
    return ORT_OK;
}

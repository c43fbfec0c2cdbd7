/* custom_names.c - how things are called, for an operator library that must know (ort_ops_api from
 * ABI 2 on): node, values, attributes, sizes; and types and values as the runtime has them. A
 * library that only passes on what others ask, as the drop-in does, needs them.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "op/custom.h"

const void *ort_custom_data(const ort_ops_node *node)
{
    return ort_custom_hidden(node)->row->row.data;
}

const char *ort_custom_node_name(const ort_ops_node *node)
{
    return ort_custom_hidden(node)->node->name;
}

static const ort_graph *graph_of(const custom_node *c)
{
    return c->phase == CUSTOM_INFER ? c->x->graph : c->phase == CUSTOM_CREATE ? c->p->graph : NULL;
}

static const char *value_name(const custom_node *c, ort_id id)
{
    const ort_graph *graph = graph_of(c);
    return graph && id != ORT_ID_NONE ? ort_graph_value_at(graph, id)->name : "";
}

const char *ort_custom_input_name(const ort_ops_node *node, int index)
{
    const custom_node *c = ort_custom_hidden(node);
    return index >= 0 && index < c->in_count ? value_name(c, c->node->inputs[index]) : "";
}

const char *ort_custom_output_name(const ort_ops_node *node, int index)
{
    const custom_node *c = ort_custom_hidden(node);
    return index >= 0 && index < c->out_count ? value_name(c, c->node->outputs[index]) : "";
}

const char *ort_custom_attr_name(const ort_ops_node *node, int index)
{
    const custom_node *c = ort_custom_hidden(node);
    return index >= 0 && index < c->node->attr_count ? c->node->attrs[index].name : NULL;
}

char ort_custom_attr_kind(const ort_ops_node *node, const char *name)
{
    static const char kinds[] = {
        [ORT_ATTR_INT] = 'i',     [ORT_ATTR_FLOAT] = 'f',  [ORT_ATTR_STRING] = 's',
        [ORT_ATTR_TENSOR] = 't',  [ORT_ATTR_INTS] = 'I',   [ORT_ATTR_FLOATS] = 'F',
        [ORT_ATTR_STRINGS] = 'S', [ORT_ATTR_TENSORS] = 'T'};
    const ort_attr *attr = ort_node_attr(ort_custom_hidden(node)->node, name);
    return attr && (size_t)attr->type < sizeof kinds ? kinds[attr->type] : 0;
}

/* ---- sizes */

int64_t ort_custom_size(custom_node *c, ort_dim dim)
{
    if (ort_dim_known(dim))
        return dim.size < 0 ? -1 : dim.size;
    if (dim.expr == ORT_DIM_UNKNOWN)
        return -1;
    for (size_t i = 0; i < c->sizes.count; i++)
        if (ort_dim_equal(c->sizes.data[i], dim))
            return -2 - (int64_t)i;
    return ort_vec_push(&c->sizes, dim) ? -1 - (int64_t)c->sizes.count : -1;
}

ort_dim ort_custom_dim(const custom_node *c, int64_t size)
{
    if (size >= 0)
        return ort_dim_of(size);
    if (size == -1 || (size_t)(-2 - size) >= c->sizes.count)
        return ort_dim_unknown();
    return c->sizes.data[-2 - size];
}

/* ---- types */

static int64_t count_of(const ort_ops_tensor *view)
{
    int64_t count = 1;
    if (view->rank < 0)
        return -1;
    for (int i = 0; i < view->rank; i++)
        if (view->dims[i] < 0 || !ort_mul_i64(count, view->dims[i], &count))
            return -1;
    return count;
}

ort_ops_tensor *ort_custom_view_type(custom_node *c, const ort_type *type)
{
    int rank = type->kind == ORT_TYPE_TENSOR ? type->rank : -1;
    ort_ops_tensor *view = ort_arena_alloc(&c->scratch, sizeof *view);
    int64_t *dims = ort_arena_array(&c->scratch, (size_t)(rank < 0 ? 0 : rank) + 1, sizeof *dims);
    if (!view || !dims)
        return NULL;
    for (int i = 0; i < rank; i++)
        dims[i] = ort_custom_size(c, type->dim[i]);
    *view = (ort_ops_tensor){.dtype = type->dtype, .rank = rank, .dims = rank < 0 ? NULL : dims};
    view->count = count_of(view);
    return view;
}

/* What the model declares, where inference has nothing to say yet. */
const ort_ops_tensor *ort_custom_output_type(ort_ops_node *node, int index)
{
    custom_node *c = ort_custom_hidden(node);
    const ort_graph *graph = graph_of(c);
    if (!graph || index < 0 || index >= c->out_count || c->node->outputs[index] == ORT_ID_NONE)
        return NULL;
    const ort_graph_value *value = ort_graph_value_at(graph, c->node->outputs[index]);
    const ort_type *type = c->phase == CUSTOM_INFER && c->x->out[index].type.dtype
                               ? &c->x->out[index].type
                               : &value->fact.type;
    return ort_custom_view_type(c, type);
}

const char *ort_custom_dim_name(ort_ops_node *node, int64_t size)
{
    custom_node *c = ort_custom_hidden(node);
    const ort_graph *graph = graph_of(c);
    char *text = ort_arena_alloc(&c->scratch, 256);
    ort_dim dim = ort_custom_dim(c, size);
    if (!graph || !text || ort_dim_known(dim) || dim.expr == ORT_DIM_UNKNOWN)
        return "";
    return ort_dim_format(graph->model->dims, dim, text, 256);
}

int64_t ort_custom_dim_named(ort_ops_node *node, const char *name)
{
    custom_node *c = ort_custom_hidden(node);
    if (c->phase != CUSTOM_INFER || !c->x->dims)
        return -1;
    return ort_custom_size(c, ort_dim_parse(c->x->dims, name));
}

const ort_value *ort_custom_input_value(const ort_ops_node *node, int index)
{
    const custom_node *c = ort_custom_hidden(node);
    if (c->phase != CUSTOM_RUN || index < 0 || index >= c->in_count || !c->present[index])
        return NULL;
    return c->call->in[index];
}

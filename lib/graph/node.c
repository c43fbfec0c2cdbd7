/* node.c - looking at a node: attributes and labels. */
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

char *ort_node_label(const ort_node *node, char *text, size_t size)
{
    if (node->name && *node->name)
        snprintf(text, size, "node '%s' (%s)", node->name, node->op_type);
    else
        snprintf(text, size, "node #%u (%s)", node->id, node->op_type);
    return text;
}

const ort_attr *ort_node_attr(const ort_node *node, const char *name)
{
    for (int i = 0; i < node->attr_count; i++) /* most names differ in their first letter */
        if (*node->attrs[i].name == *name && !strcmp(node->attrs[i].name, name))
            return &node->attrs[i];
    return NULL;
}

const ort_attr *ort_node_attr_of(const ort_node *node, const char *name, ort_attr_type type)
{
    const ort_attr *attr = ort_node_attr(node, name);
    return attr && attr->type == type && !attr->reference ? attr : NULL;
}

bool ort_node_has(const ort_node *node, const char *name)
{
    return ort_node_attr(node, name) != NULL;
}

int64_t ort_node_int(const ort_node *node, const char *name, int64_t default_value)
{
    const ort_attr *attr = ort_node_attr_of(node, name, ORT_ATTR_INT);
    return attr ? attr->i : default_value;
}

float ort_node_float(const ort_node *node, const char *name, float default_value)
{
    const ort_attr *attr = ort_node_attr_of(node, name, ORT_ATTR_FLOAT);
    return attr ? attr->f : default_value;
}

const char *ort_node_string(const ort_node *node, const char *name, const char *default_value)
{
    const ort_attr *attr = ort_node_attr_of(node, name, ORT_ATTR_STRING);
    return attr ? attr->s.ptr : default_value;
}

const int64_t *ort_node_ints(const ort_node *node, const char *name, size_t *count)
{
    const ort_attr *attr = ort_node_attr_of(node, name, ORT_ATTR_INTS);
    *count = attr ? attr->count : 0;
    return attr ? attr->ints : NULL;
}

const float *ort_node_floats(const ort_node *node, const char *name, size_t *count)
{
    const ort_attr *attr = ort_node_attr_of(node, name, ORT_ATTR_FLOATS);
    *count = attr ? attr->count : 0;
    return attr ? attr->floats : NULL;
}

const ort_string *ort_node_strings(const ort_node *node, const char *name, size_t *count)
{
    const ort_attr *attr = ort_node_attr_of(node, name, ORT_ATTR_STRINGS);
    *count = attr ? attr->count : 0;
    return attr ? attr->strings : NULL;
}

const ort_tensor *ort_node_tensor(const ort_node *node, const char *name)
{
    const ort_attr *attr = ort_node_attr(node, name);
    bool holds = attr && !attr->reference &&
                 (attr->type == ORT_ATTR_TENSOR || attr->type == ORT_ATTR_SPARSE_TENSOR);
    return holds ? attr->t : NULL;
}

bool ort_node_is_constant(const ort_node *node)
{
    return !strcmp(node->op_type, "Constant") && !*node->domain;
}

const ort_tensor *ort_node_constant(const ort_node *node)
{
    return ort_node_is_constant(node) ? ort_node_tensor(node, "value") : NULL;
}

const ort_tensor *ort_node_constant_input(const ort_graph *graph, const ort_node *node, int slot)
{
    if (slot >= node->input_count || node->inputs[slot] == ORT_ID_NONE)
        return NULL;
    ort_id from = ort_graph_producer(graph, node->inputs[slot]);
    return from == ORT_ID_NONE ? graph->values.data[node->inputs[slot]]->fact.value
                               : ort_node_constant(graph->nodes.data[from]);
}

int ort_node_body(const ort_node *node, const char *name)
{
    const ort_attr *attr = ort_node_attr_of(node, name, ORT_ATTR_GRAPH);
    for (int i = 0; attr && i < node->body_count; i++)
        if (node->bodies[i] == attr->g)
            return i;
    return -1;
}

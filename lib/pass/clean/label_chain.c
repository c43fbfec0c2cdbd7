/* label_chain.c - two LabelEncoders in a row become one: the second encodes what the first gives.
 *
 *     a b c -> 5 6 7, else -1        5 6 -> 50 60, else -9        a b c -> 50 60 -9, else -9
 *
 * Lists of strings, int64 and float (ai.onnx.ml 2 on); the second one itself is asked what it makes
 * of the first one's values.
 */
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "op/eval.h"
#include "pass/pass.h"

static const struct {
    const char *values, *fallback;
    ort_attr_type list, single;
    ort_dtype dtype;
} kinds[] = {
    {"values_strings", "default_string", ORT_ATTR_STRINGS, ORT_ATTR_STRING, ORT_DTYPE_STRING},
    {"values_int64s", "default_int64", ORT_ATTR_INTS, ORT_ATTR_INT, ORT_DTYPE_INT64},
    {"values_floats", "default_float", ORT_ATTR_FLOATS, ORT_ATTR_FLOAT, ORT_DTYPE_FLOAT},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* What an encoder gives: its values, then its default. */
typedef struct labels {
    int kind;
    int64_t count; /* the default included */
    ort_value *value;
} labels;

static int kind_of(const ort_node *node)
{
    for (int k = 0; k < KINDS; k++)
        if (ort_node_has(node, kinds[k].values))
            return k;
    return -1;
}

/* The list of keys, or NULL. */
static const ort_attr *keys_of(const ort_node *node)
{
    for (int i = 0; i < node->attr_count; i++)
        if (!strncmp(node->attrs[i].name, "keys_", 5) && node->attrs[i].type != ORT_ATTR_TENSOR)
            return &node->attrs[i];
    return NULL;
}

static bool is_encoder(const ort_node *node)
{
    return ort_edit_is(node, ML, "LabelEncoder") && node->opset >= 2 && kind_of(node) >= 0 &&
           keys_of(node) && !ort_node_has(node, "default_tensor");
}

static ort_status read_labels(const ort_node *node, labels *l, ort_error *err)
{
    l->kind = kind_of(node);
    const ort_attr *list = ort_node_attr(node, kinds[l->kind].values);
    const ort_attr *single = ort_node_attr(node, kinds[l->kind].fallback);
    ort_shape shape = {.rank = 1, .dim = {(int64_t)list->count + 1}};
    const ort_string unused = {(char *)(uintptr_t)"_Unused", 7};
    size_t count = list->count;
    ORT_TRY(ort_value_new_tensor_(kinds[l->kind].dtype, &shape, &l->value, err));
    l->count = shape.dim[0];
    void *data = l->value->tensor.data;
    switch (l->kind) { /* strings are borrowed from the node */
    case 0:
        memcpy(data, list->strings, count * sizeof *list->strings);
        ((ort_string *)data)[count] = single ? single->s : unused;
        break;
    case 1:
        memcpy(data, list->ints, count * sizeof *list->ints);
        ((int64_t *)data)[count] = single ? single->i : -1;
        break;
    default:
        memcpy(data, list->floats, count * sizeof *list->floats);
        ((float *)data)[count] = single ? single->f : -0.0f;
    }
    return ORT_OK;
}

/* What `node` makes of the labels before it. */
static ort_status encode(ort_pass_context *c, const ort_node *node, const labels *before,
                         labels *after, ort_error *err)
{
    const ort_type type = ort_type_of_tensor(&before->value->tensor);
    const ort_fact fact = {.type = type}, *in[1] = {&fact};
    after->kind = kind_of(node);
    after->count = before->count;
    return ort_node_eval(node, in, c->k, NULL, &before->value, 1, &after->value, 1, err);
}

static ort_status add_encoder(ort_pass_context *c, const ort_node *first, const ort_node *second,
                              const labels *l, ort_error *err)
{
    ort_graph *graph = c->graph;
    const void *data = l->value->tensor.data;
    size_t last = (size_t)l->count - 1;
    ort_attr set[3] = {*keys_of(first),
                       {.name = kinds[l->kind].values, .type = kinds[l->kind].list, .count = last},
                       {.name = kinds[l->kind].fallback, .type = kinds[l->kind].single}};
    set[1].strings = l->kind == 0 ? data : NULL;
    set[1].ints = l->kind == 1 ? data : NULL;
    set[1].floats = l->kind == 2 ? data : NULL;
    if (l->kind == 0)
        set[2].s = ((const ort_string *)data)[last];
    else if (l->kind == 1)
        set[2].i = ((const int64_t *)data)[last];
    else
        set[2].f = ((const float *)data)[last];
    ort_node_spec spec = {.domain = ML, .op_type = "LabelEncoder", .inputs = first->inputs,
                          .input_count = 1, .set = set, .set_count = 3, .opset = second->opset,
                          .origin = ort_edit_origin(graph, first, second)};
    return ort_edit_replace(graph, graph->nodes.data[second->id], NULL, &spec, err);
}

static ort_status join(ort_pass_context *c, const ort_node *first, const ort_node *second,
                       int *changes, ort_error *err)
{
    labels before = {.value = NULL}, after = {.value = NULL};
    ort_status status = read_labels(first, &before, err);
    if (status == ORT_OK)
        status = encode(c, second, &before, &after, err);
    if (status == ORT_OK)
        status = add_encoder(c, first, second, &after, err);
    *changes += status == ORT_OK;
    ort_value_free(before.value);
    ort_value_free(after.value);
    return status;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    size_t count = c->graph->order.count;
    for (size_t i = 0; i < count; i++) {
        ort_node *node = c->graph->nodes.data[c->graph->order.data[i]];
        if (!is_encoder(node))
            continue;
        const ort_node *first = ort_edit_producer(c->graph, node->inputs[0]);
        if (!is_encoder(first) || first->opset != node->opset)
            continue;
        if (ort_edit_only_reader(c->graph, first->outputs[0]) == node)
            ORT_TRY(join(c, first, node, changes, err));
        else
            ort_pass_note(c, node, "the labels before it have another reader");
    }
    return ORT_OK;
}

const ort_pass ort_pass_label_chain = {
    .name = "label_chain",
    .level = 1,
    .exact = true,
    .doc = "two LabelEncoders in a row become one",
    .apply = apply,
};

/* shape_vectors.c - the shapes that Reshape, Expand and ConstantOfShape read are joined from
 * dimensions of the graph's inputs, where facts know their elements and fewer nodes are needed.
 *
 *     Shape(f(x)), Gather, Max, ReduceProd, Cast, Concat      Concat(Shape(x)[0], [4, 8])
 *
 * Exporters compute each shape from the value at hand, so no two of these computations are alike.
 * All shapes of a graph change together or none does, because a computation can only be removed
 * when all its readers have changed. The pass runs for files alone, and after the fusions: a
 * session computes shapes when it plans.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/hashmap.h"
#include "pass/facts/constants.h"
#include "pass/facts/dim_source.h"
#include "pass/pass.h"

/* An element: of a number the number, of a dimension its expression, else -1 (what remains). */
typedef struct element {
    int64_t size, expr;
} element;

typedef struct vectors {
    ort_pass_context *c;
    ort_hashmap known; /* element lists to ids of values; ORT_ID_NONE while they are counted */
    ort_arena keys;
    int *uses;          /* by value: those that go */
    int made;           /* nodes */
    bool adds;
} vectors;

/* ---- reading */

static int shape_slot(const ort_node *node)
{
    if (ort_edit_is(node, ONNX, "ConstantOfShape"))
        return 0;
    return ort_edit_is_any(node, "Reshape|Expand") ? 1 : -1;
}

/* Only of a Reshape that takes 0 as a copy may one element remain, and only beside others that are
 * no zeros. */
static bool read_elements(const vectors *v, const ort_node *node, int slot, element *list,
                          int *count)
{
    const ort_graph_value *shape = ort_graph_value_at(v->c->graph, node->inputs[slot]);
    const ort_fact *fact = shape ? &shape->fact : NULL;
    int open = 0, zeros = 0;
    if (!fact || fact->value || shape->is_input || !fact->symbolic || fact->type.rank != 1 ||
        fact->symbolic_count < 1 || fact->symbolic_count > ORT_MAX_RANK)
        return false;
    *count = fact->symbolic_count;
    for (int i = 0; i < *count; i++) {
        ort_dim dim = fact->symbolic[i];
        ort_id from;
        int64_t axis;
        bool sourced = !ort_dim_known(dim) && ort_dim_source(v->c, dim, &from, &axis);
        list[i] = (element){.size = ort_dim_known(dim) ? dim.size : sourced ? 0 : -1,
                            .expr = sourced ? (int64_t)dim.expr : ORT_DIM_KNOWN};
        open += !ort_dim_known(dim) && !sourced;
        zeros += ort_dim_known(dim) && dim.size <= 0;
    }
    return !open || (open == 1 && !zeros && ort_edit_is(node, ONNX, "Reshape") &&
                     !ort_node_attr_int(node, "allowzero"));
}

static bool is_number(const element *e) { return e->expr == ORT_DIM_KNOWN; }

/* ---- making, or counting what would be made */

static ort_status add(vectors *v, const char *op_type, const ort_id *inputs, int count,
                      const ort_attr *set, int set_count, ort_id *id, ort_error *err)
{
    v->made++;
    *id = ORT_ID_NONE;
    return v->adds ? ort_edit_add_result(v->c->graph, op_type, inputs, count, set, set_count, id,
                                         err)
                   : ORT_OK;
}

static ort_status add_numbers(vectors *v, const int64_t *numbers, int count, ort_id *id,
                              ort_error *err)
{
    *id = ORT_ID_NONE;
    return v->adds ? ort_constant_list(v->c->graph, numbers, count, id, err) : ORT_OK;
}

static bool keep(vectors *v, const element *list, int count, ort_id id)
{
    element *key = ort_arena_array(&v->keys, (size_t)count, sizeof *key);
    if (!key)
        return false;
    memcpy(key, list, (size_t)count * sizeof *key);
    return ort_hashmap_put(&v->known, (const char *)key, (size_t)count * sizeof *key, id);
}

static bool find(const vectors *v, const element *list, int count, ort_id *id)
{
    uint64_t found;
    bool there = ort_hashmap_get(&v->known, (const char *)list, (size_t)count * sizeof *list,
                                 &found);
    *id = there ? (ort_id)found : ORT_ID_NONE;
    return there;
}

/* All of an input's dimensions; its key is that of no list. */
static ort_status whole_shape(vectors *v, ort_id input, ort_id *id, ort_error *err)
{
    element key = {.size = input, .expr = -1};
    if (find(v, &key, 1, id))
        return ORT_OK;
    ORT_TRY(add(v, "Shape", &input, 1, NULL, 0, id, err));
    return keep(v, &key, 1, *id) ? ORT_OK : ort_error_memory(err, sizeof key);
}

/* One dimension, as a vector of one element. */
static ort_status size_of(vectors *v, const element *e, ort_id *id, ort_error *err)
{
    ort_id input, inputs[2];
    int64_t axis = 0;
    ort_dim dim = {.expr = (uint32_t)e->expr};
    if (find(v, e, 1, id))
        return ORT_OK;
    ort_dim_source(v->c, dim, &input, &axis); /* found before */
    if (ort_model_opset(v->c->graph->model, ONNX) >= 15) {
        ort_attr cut[] = {ort_attr_int("start", axis), ort_attr_int("end", axis + 1)};
        ORT_TRY(add(v, "Shape", &input, 1, cut, 2, id, err));
    } else {
        ORT_TRY(whole_shape(v, input, &inputs[0], err));
        ORT_TRY(add_numbers(v, &axis, 1, &inputs[1], err));
        ORT_TRY(add(v, "Gather", inputs, 2, NULL, 0, id, err));
    }
    return keep(v, e, 1, *id) ? ORT_OK : ort_error_memory(err, sizeof *e);
}

static ort_status vector_of(vectors *v, const element *list, int count, ort_id *id, ort_error *err)
{
    ort_id parts[ORT_MAX_RANK];
    int part_count = 0;
    ort_attr axis = ort_attr_int("axis", 0);
    if (find(v, list, count, id))
        return ORT_OK;
    for (int i = 0; i < count;) {
        int64_t numbers[ORT_MAX_RANK];
        int n = 0;
        while (i + n < count && is_number(&list[i + n])) {
            numbers[n] = list[i + n].size;
            n++;
        }
        if (n)
            ORT_TRY(add_numbers(v, numbers, n, &parts[part_count], err));
        else
            ORT_TRY(size_of(v, &list[i], &parts[part_count], err));
        i += n ? n : 1;
        part_count++;
    }
    if (part_count > 1)
        ORT_TRY(add(v, "Concat", parts, part_count, &axis, 1, id, err));
    else
        *id = parts[0];
    return keep(v, list, count, *id) ? ORT_OK : ort_error_memory(err, sizeof *list);
}

/* ---- the graph */

static ort_status each_shape(vectors *v, int *changes, ort_error *err)
{
    ort_graph *graph = v->c->graph;
    size_t count = graph->order.count;
    for (size_t i = 0; i < count; i++) {
        ort_node *node = graph->nodes.data[graph->order.data[i]];
        element list[ORT_MAX_RANK];
        int slot = shape_slot(node), length;
        ort_id id;
        if (slot < 0 || node->input_count <= slot || !read_elements(v, node, slot, list, &length))
            continue;
        ORT_TRY(vector_of(v, list, length, &id, err));
        if (!v->adds) {
            v->uses[node->inputs[slot]]++;
            continue;
        }
        ort_node_set_input(graph, node, slot, id);
        ORT_TRY(ort_node_infer(graph, node, err));
        ++*changes;
    }
    return ORT_OK;
}

static bool is_unread(const vectors *v, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        const ort_graph_value *value = ort_graph_value_at(v->c->graph, node->outputs[i]);
        if (value && (value->is_output || value->use_count > v->uses[node->outputs[i]]))
            return false;
    }
    return true;
}

/* Nodes that nobody reads without `uses`. Backwards: what reads a value comes before what computes
 * it. */
static int count_unread(const vectors *v)
{
    const ort_graph *graph = v->c->graph;
    int count = 0;
    for (size_t i = graph->order.count; i-- > 0;) {
        const ort_node *node = graph->nodes.data[graph->order.data[i]];
        if (node->removed || node->body_count || !is_unread(v, node))
            continue;
        count++;
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k] != ORT_ID_NONE)
                v->uses[node->inputs[k]]++;
    }
    return count;
}

static ort_status rewrite(vectors *v, int *changes, ort_error *err)
{
    int gone = -count_unread(v);
    memset(v->uses, 0, v->c->graph->values.count * sizeof *v->uses);
    ORT_TRY(each_shape(v, changes, err));
    gone += count_unread(v);
    if (v->made >= gone)
        return ORT_OK;
    v->adds = true;
    ort_hashmap_release(&v->known);
    return each_shape(v, changes, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    if (c->graph->parent || !c->portable)
        return ORT_OK;
    vectors v = {.c = c, .uses = calloc(c->graph->values.count + 1, sizeof *v.uses)};
    ort_status status = v.uses ? rewrite(&v, changes, err) : ort_error_memory(err, sizeof v);
    ort_hashmap_release(&v.known);
    ort_arena_release(&v.keys);
    free(v.uses);
    return status;
}

const ort_pass ort_pass_shape_vectors = {
    .name = "shape_vectors",
    .level = 1,
    .exact = true,
    .doc = "shapes that are computed are joined from dimensions of inputs",
    .apply = apply,
};

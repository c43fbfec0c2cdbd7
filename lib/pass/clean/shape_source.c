/* shape_source.c - dimensions are read from the value where they can be read without computing
 * anything.
 *
 *     Shape(f(x)), Size(f(x))       of an elementwise f: of x, where nobody else reads the result
 *     Gather(Shape(x), i)           at the first graph input that has this dimension, as facts say
 *     Slice(Shape(x), i, i + 1)     the same
 *     Shape(x) from i to i + 1      the same
 *
 * So all layers read the same number, and no shape depends on a value that a fusion removes. A new
 * Shape is made only where it replaces one.
 */
#include "base/checked.h"
#include "base/error.h"
#include "graph/uses.h"
#include "pass/facts/dim_source.h"
#include "pass/facts/facts.h"
#include "pass/facts/slice_cut.h"
#include "pass/pass.h"
#include "tensor/scalar.h"

/* ---- elementwise */

static bool keeps_shape(const ort_node *node)
{
    return ort_node_has_trait(node, ORT_TRAIT_ELEMENTWISE) && node->input_count == 1 &&
           node->output_count == 1;
}

/* ---- one dimension */

/* The dimension of x that Slice takes from Shape(x), counted from the front if it isn't negative;
 * else some number beyond the rank. */
static int64_t sliced(const ort_pass_context *c, const ort_node *slice, int rank)
{
    ort_slice_cut cut;
    if (!ort_slice_cut_read(c->graph, slice, &cut) || cut.count != 1 || cut.axis[0] != 0 ||
        cut.step[0] != 1)
        return rank;
    int64_t start = cut.start[0] + (cut.start[0] < 0 ? rank : 0);
    int64_t end = ort_min_i64(cut.end[0] + (cut.end[0] < 0 ? rank : 0), rank);
    return start >= 0 && end == start + 1 ? start : rank;
}

/* The same of Gather. */
static int64_t gathered(const ort_pass_context *c, const ort_node *gather, int rank)
{
    const ort_tensor *at = ort_edit_constant(c->graph, gather, 1);
    int64_t axis;
    return ort_tensor_one_i64(at, &axis) && at->shape.rank <= 1 ? axis : rank;
}

/* The dimension of x that Gather or Slice takes from Shape(x), or -1. */
static int64_t taken(const ort_pass_context *c, const ort_node *node)
{
    const ort_node *shape = ort_edit_producer(c->graph, node->inputs[0]);
    const ort_type *type = ort_fact_type(c->graph, shape->inputs[0]);
    bool slice = ort_edit_is(node, ONNX, "Slice");
    if ((!slice && !ort_edit_is(node, ONNX, "Gather")) || ort_type_rank(type) < 1 ||
        ort_node_has(shape, "start") || ort_node_has(shape, "end"))
        return -1;
    int64_t i = (slice ? sliced : gathered)(c, node, type->rank);
    return i < 0 ? i + type->rank : i < type->rank ? i : -1;
}

/* Where what this takes of Shape(x) can be read instead; false: here. */
static bool is_elsewhere(const ort_pass_context *c, const ort_node *node, ort_id *from,
                         int64_t *axis)
{
    const ort_node *shape = ort_edit_producer(c->graph, node->inputs[0]);
    int64_t i = taken(c, node);
    return i >= 0 &&
           ort_dim_source(c, ort_fact_type(c->graph, shape->inputs[0])->dim[i], from,
                          axis) &&
           *from != shape->inputs[0];
}

/* The Shape of all dimensions of this value that is there, or NULL. */
static ort_node *whole_shape(const ort_pass_context *c, ort_id id)
{
    ort_readers readers = ort_readers_of(c->graph, id);
    ort_node *reader;
    while ((reader = ort_readers_next(&readers)))
        if (ort_edit_is(reader, ONNX, "Shape") && !ort_node_has(reader, "start") &&
            !ort_node_has(reader, "end"))
            return reader;
    return NULL;
}

/* Is the Shape that is made for this node one that goes? Others that read it go elsewhere too,
 * and to the same input. */
static bool replaces(const ort_pass_context *c, const ort_node *node, ort_id from)
{
    const ort_graph_value *shape = c->graph->values.data[node->inputs[0]];
    ort_readers readers = ort_readers_of(c->graph, node->inputs[0]);
    const ort_node *reader;
    int count = 0;
    while ((reader = ort_readers_next(&readers))) {
        ort_id other;
        int64_t axis;
        if (reader->inputs[0] != node->inputs[0] ||
            !is_elsewhere(c, reader, &other, &axis) || other != from)
            return false;
        count++;
    }
    return !shape->is_output && count == shape->use_count;
}

static ort_status shape_of(ort_pass_context *c, ort_id id, ort_id *shape, ort_error *err)
{
    const ort_node *have = whole_shape(c, id);
    if (have) {
        *shape = have->outputs[0];
        return ORT_OK;
    }
    return ort_edit_add_result(c->graph, "Shape", &id, 1, NULL, 0, shape, err);
}

/* Of these dims, one number. */
static ort_status number(ort_pass_context *c, const ort_shape *shape, int64_t value, ort_id *id,
                         ort_error *err)
{
    ort_tensor t = {.dtype = ORT_DTYPE_INT64, .shape = *shape, .data = &value};
    return ort_edit_add_constant(c->graph, "", &t, id, err);
}

static ort_status move_taken(ort_pass_context *c, ort_node *node, int *changes, ort_error *err)
{
    int64_t axis;
    ort_id from, shape, at, end = ORT_ID_NONE;
    if (!is_elsewhere(c, node, &from, &axis) ||
        (!whole_shape(c, from) && !replaces(c, node, from)))
        return ORT_OK;
    const ort_tensor *old = ort_edit_constant(c->graph, node, 1);
    ORT_TRY(number(c, &old->shape, axis, &at, err));
    if (ort_edit_is(node, ONNX, "Slice"))
        ORT_TRY(number(c, &old->shape, axis + 1, &end, err));
    ORT_TRY(shape_of(c, from, &shape, err));
    ort_node_set_input(c->graph, node, 0, shape);
    ort_node_set_input(c->graph, node, 1, at);
    if (end != ORT_ID_NONE)
        ort_node_set_input(c->graph, node, 2, end);
    ++*changes;
    return ORT_OK;
}

static ort_status move_part(ort_pass_context *c, ort_node *shape, int *changes, ort_error *err)
{
    const ort_type *type = ort_fact_tensor(c->graph, shape->inputs[0]);
    int64_t start = ort_node_attr_int(shape, "start"), axis, end = ort_node_attr_int(shape, "end");
    ort_id from;
    if (!ort_node_has(shape, "end") || !type)
        return ORT_OK;
    start += start < 0 ? type->rank : 0;
    end += end < 0 ? type->rank : 0;
    if (start < 0 || start >= type->rank || end != start + 1 || end > type->rank ||
        !ort_dim_source(c, type->dim[start], &from, &axis) || from == shape->inputs[0])
        return ORT_OK;
    ort_attr first = ort_attr_int("start", axis), last = ort_attr_int("end", axis + 1);
    ort_node_set_input(c->graph, shape, 0, from);
    ORT_TRY(ort_edit_set_attr(c->graph, shape, &first, err));
    ++*changes;
    return ort_edit_set_attr(c->graph, shape, &last, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        bool shape = ort_edit_is(node, ONNX, "Shape");
        if (ort_edit_is_any(node, "Gather|Slice") && !c->graph->parent &&
            ort_edit_is(ort_edit_producer(c->graph, node->inputs[0]), ONNX, "Shape"))
            ORT_TRY(move_taken(c, node, changes, err));
        if (!shape && !ort_edit_is(node, ONNX, "Size"))
            continue;
        const ort_node *source = ort_edit_producer(c->graph, node->inputs[0]);
        if (keeps_shape(source) && ort_edit_only_reader(c->graph, source->outputs[0]) == node) {
            ort_node_set_input(c->graph, node, 0, source->inputs[0]);
            ++*changes;
        }
        if (shape && !c->graph->parent)
            ORT_TRY(move_part(c, node, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_shape_source = {
    .name = "shape_source",
    .level = 1,
    .exact = true,
    .doc = "Shape of a computed value reads an input that has the same dimension",
    .apply = apply,
};

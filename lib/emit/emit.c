/* gradient_emit.c - the operators that rules of differentiation emit, in the form that the model's
 * opset has: axes were attributes of ReduceSum, Squeeze and Unsqueeze before opset 13, of the other
 * reductions before 18.
 *
 * What is known while the model is loaded becomes constants; what isn't is computed from Shape, so
 * that symbolic dimensions stay symbolic.
 */
#include "gradient/gradient.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* ---- nodes */

static bool copy_attrs(ort_grad *g, const ort_attr *attrs, int count, ort_attr **copy)
{
    ort_arena *arena = &g->graph->model->arena;
    *copy = ort_arena_array(arena, (size_t)count, sizeof **copy);
    for (int i = 0; *copy && i < count; i++) {
        (*copy)[i] = attrs[i];
        if (attrs[i].proto) /* of another node: lives as long as the model */
            continue;
        (*copy)[i].name = ort_arena_strdup(arena, attrs[i].name);
        if (!(*copy)[i].name)
            return false;
        if (attrs[i].type != ORT_ATTR_INTS || !attrs[i].count)
            continue;
        int64_t *list = ort_arena_array(arena, attrs[i].count, sizeof *list);
        if (!list)
            return false;
        memcpy(list, attrs[i].ints, attrs[i].count * sizeof *list);
        (*copy)[i].ints = list;
    }
    return *copy != NULL;
}

static const char *new_name(ort_grad *g, const char *op_type)
{
    const char *name = ort_arena_printf(&g->graph->model->arena, "%s/%s_%d", g->stem, op_type,
                                        g->made);
    if (!name)
        ort_grad_fail_memory(g);
    return name;
}

void ort_grad_ops(ort_grad *g, const char *op_type, const ort_id *inputs, int input_count,
                  const ort_attr *attrs, int attr_count, ort_id *outputs, int output_count)
{
    ort_attr *own = NULL;
    const char *name;
    for (int i = 0; i < output_count; i++)
        outputs[i] = ORT_ID_NONE;
    if (g->status || !(name = new_name(g, op_type)))
        return;
    if (!ort_registry_find(g->graph->model->registry, ONNX, op_type, g->opset)) {
        ort_grad_refuse(g, "its %s takes operator %s, which opset %d hasn't",
                        g->purpose ? g->purpose : "gradient", op_type, g->opset);
        return;
    }
    if (++g->made > g->limit) {
        g->status = ort_error_set(g->err, ORT_ERROR_UNSUPPORTED, "%s expand to more than %d nodes",
                                  g->purpose ? "nodes" : "Gradient nodes", g->limit);
        return;
    }
    bool ok = copy_attrs(g, attrs, attr_count, &own);
    for (int i = 0; ok && i < output_count; i++)
        ok = (outputs[i] = ort_graph_add_value(g->graph, name)) != ORT_ID_NONE;
    if (!ok) {
        ort_grad_fail_memory(g);
        return;
    }
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .name = name, .inputs = inputs,
                          .input_count = input_count, .outputs = outputs,
                          .output_count = output_count, .attrs = own, .attr_count = attr_count};
    g->status = ort_edit_add_node(g->graph, &spec, NULL, g->err);
}

ort_id ort_grad_op(ort_grad *g, const char *op_type, const ort_id *inputs, int input_count,
                   const ort_attr *attrs, int attr_count)
{
    ort_id output;
    ort_grad_ops(g, op_type, inputs, input_count, attrs, attr_count, &output, 1);
    return output;
}

bool ort_grad_need_opset(ort_grad *g, int opset, const char *what)
{
    if (!g->status && g->opset < opset)
        ort_grad_refuse(g, "its %s takes %s of opset %d; the model imports %d",
                        g->purpose ? g->purpose : "gradient", what, opset, g->opset);
    return !g->status;
}

/* ---- what is known of values */

const ort_type *ort_grad_type(const ort_grad *g, ort_id value)
{
    static const ort_type unknown = {.kind = ORT_TYPE_UNKNOWN, .rank = -1};
    return value == ORT_ID_NONE ? &unknown : &g->graph->values.data[value]->fact.type;
}

int ort_grad_rank(ort_grad *g, ort_id value)
{
    int rank = ort_grad_type(g, value)->rank;
    if (rank < 0 && !g->status)
        ort_grad_refuse(g, "the number of dimensions of '%s' isn't known",
                        g->graph->values.data[value]->name);
    return rank < 0 ? 0 : rank;
}

int ort_grad_axis(ort_grad *g, const ort_node *node, int64_t fallback, int rank)
{
    int64_t axis = ort_node_int(node, "axis", fallback), at = axis < 0 ? axis + rank : axis;
    if (at >= 0 && at < rank)
        return (int)at;
    if (!g->status)
        ort_grad_refuse(g, "axis %lld is outside of its %d dimensions", (long long)axis, rank);
    return 0;
}

static bool known_dims(const ort_type *type, int first, int last, int64_t *dims)
{
    if (type->rank < 0)
        return false;
    for (int i = first; i < last; i++) {
        if (!ort_dim_known(type->dim[i]))
            return false;
        dims[i - first] = type->dim[i].size;
    }
    return true;
}

static bool same_shape(const ort_type *a, const ort_type *b)
{
    bool same = a->rank >= 0 && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = ort_dim_equal(a->dim[i], b->dim[i]);
    return same;
}

/* ---- constants */

static ort_id constant(ort_grad *g, const ort_tensor *tensor)
{
    ort_id id = ORT_ID_NONE;
    const char *name = g->status ? NULL : ort_arena_printf(&g->graph->model->arena, "%s/c_%d",
                                                           g->stem, g->made++);
    if (g->status)
        return id;
    if (!name)
        ort_grad_fail_memory(g);
    else
        g->status = ort_edit_add_constant(g->graph, name, tensor, &id, g->err);
    return id;
}

ort_id ort_grad_number(ort_grad *g, ort_id like, double number)
{
    uint64_t storage[2] = {0};
    ort_tensor tensor = {.dtype = ort_grad_type(g, like)->dtype, .data = storage};
    if (g->status)
        return ORT_ID_NONE;
    ort_tensor_set_f64(&tensor, 0, number);
    return constant(g, &tensor);
}

ort_id ort_grad_int(ort_grad *g, int64_t number)
{
    ort_tensor tensor = {.dtype = ORT_DTYPE_INT64, .data = &number};
    return constant(g, &tensor);
}

ort_id ort_grad_ints(ort_grad *g, const int64_t *numbers, int count)
{
    int64_t dim = count;
    ort_tensor tensor = {.dtype = ORT_DTYPE_INT64,
                         .shape = ort_shape_make(1, &dim),
                         .data = (void *)(uintptr_t)numbers};
    return constant(g, &tensor);
}

/* ---- types and shapes */

ort_id ort_grad_cast(ort_grad *g, ort_id value, ort_dtype dtype)
{
    ort_attr to = ort_grad_int_attr("to", dtype);
    if (ort_grad_type(g, value)->dtype == dtype)
        return value;
    return ort_grad_op(g, "Cast", &value, 1, &to, 1);
}

ort_id ort_grad_shape(ort_grad *g, ort_id value)
{
    int64_t dims[ORT_MAX_RANK];
    const ort_type *type = ort_grad_type(g, value);
    if (known_dims(type, 0, type->rank, dims))
        return ort_grad_ints(g, dims, type->rank);
    return ort_grad_op1(g, "Shape", value);
}

ort_id ort_grad_dims(ort_grad *g, ort_id value, int first, int last)
{
    int64_t dims[ORT_MAX_RANK];
    if (known_dims(ort_grad_type(g, value), first, last, dims))
        return ort_grad_ints(g, dims, last - first);
    ort_id begin = ort_grad_ints(g, (const int64_t[]){first}, 1);
    ort_id end = ort_grad_ints(g, (const int64_t[]){last}, 1);
    return ort_grad_op3(g, "Slice", ort_grad_op1(g, "Shape", value), begin, end);
}

ort_id ort_grad_concat(ort_grad *g, const ort_id *lists, int count)
{
    ort_attr axis = ort_grad_int_attr("axis", 0);
    return ort_grad_op(g, "Concat", lists, count, &axis, 1);
}

ort_id ort_grad_count(ort_grad *g, ort_id value, ort_id like)
{
    int64_t dims[ORT_MAX_RANK];
    const ort_type *type = ort_grad_type(g, value);
    double count = 1;
    if (!known_dims(type, 0, type->rank, dims))
        return ort_grad_cast(g, ort_grad_op1(g, "Size", value), ort_grad_type(g, like)->dtype);
    for (int i = 0; i < type->rank; i++)
        count *= (double)dims[i];
    return ort_grad_number(g, like, count);
}

ort_id ort_grad_expand(ort_grad *g, ort_id value, ort_id like)
{
    if (same_shape(ort_grad_type(g, value), ort_grad_type(g, like)))
        return value;
    return ort_grad_op2(g, "Expand", value, ort_grad_shape(g, like));
}

ort_id ort_grad_zeros(ort_grad *g, ort_id like)
{
    return ort_grad_expand(g, ort_grad_number(g, like, 0), like);
}

ort_id ort_grad_reshape(ort_grad *g, ort_id value, ort_id shape)
{
    return ort_grad_op2(g, "Reshape", value, shape);
}

/* A dimension of zero would mean "copy" without allowzero, which Reshape has from opset 14 on. */
ort_id ort_grad_reshape_like(ort_grad *g, ort_id value, ort_id like)
{
    ort_attr allow = ort_grad_int_attr("allowzero", 1);
    if (same_shape(ort_grad_type(g, value), ort_grad_type(g, like)))
        return value;
    ort_id in[] = {value, ort_grad_shape(g, like)};
    return ort_grad_op(g, "Reshape", in, 2, &allow, g->opset >= 14);
}

ort_id ort_grad_unsqueeze(ort_grad *g, ort_id value, const int64_t *axes, int count)
{
    ort_attr attr = ort_grad_ints_attr("axes", axes, count);
    if (!count)
        return value;
    if (g->opset < 13)
        return ort_grad_op(g, "Unsqueeze", &value, 1, &attr, 1);
    return ort_grad_op2(g, "Unsqueeze", value, ort_grad_ints(g, axes, count));
}

ort_id ort_grad_transpose(ort_grad *g, ort_id value, const int64_t *perm, int count)
{
    ort_attr attr = ort_grad_ints_attr("perm", perm, count);
    return ort_grad_op(g, "Transpose", &value, 1, &attr, 1);
}

/* ---- reductions */

ort_id ort_grad_reduce_by(ort_grad *g, const char *op_type, ort_id value, ort_id axes,
                          bool keepdims)
{
    ort_attr keep = ort_grad_int_attr("keepdims", keepdims);
    ort_id in[] = {value, axes};
    return ort_grad_op(g, op_type, in, axes == ORT_ID_NONE ? 1 : 2, &keep, 1);
}

ort_id ort_grad_reduce(ort_grad *g, const char *op_type, ort_id value, const int64_t *axes,
                       int count, bool keepdims)
{
    ort_attr attrs[] = {ort_grad_int_attr("keepdims", keepdims),
                        ort_grad_ints_attr("axes", axes, count)};
    if (!count)
        return ort_grad_reduce_by(g, op_type, value, ORT_ID_NONE, keepdims);
    if (g->opset >= (strcmp(op_type, "ReduceSum") ? 18 : 13))
        return ort_grad_reduce_by(g, op_type, value, ort_grad_ints(g, axes, count), keepdims);
    return ort_grad_op(g, op_type, &value, 1, attrs, 2);
}

/* Which axes were repeated shows at run time only: those where the padded shape of `like` is 1. */
static ort_id sum_to_dynamic(ort_grad *g, ort_id value, ort_id like)
{
    ort_attr keep[] = {ort_grad_int_attr("keepdims", 1),
                       ort_grad_int_attr("noop_with_empty_axes", 1)};
    if (!ort_grad_need_opset(g, 13, "a sum over dimensions known at run time only"))
        return ORT_ID_NONE;
    ort_id one = ort_grad_int(g, 1), shape = ort_grad_op1(g, "Shape", like);
    ort_id more = ort_grad_op2(g, "Sub", ort_grad_op1(g, "Size", ort_grad_op1(g, "Shape", value)),
                               ort_grad_op1(g, "Size", shape));
    ort_id list = ort_grad_ints(g, (const int64_t[]){-1}, 1);
    ort_id ones = ort_grad_op2(g, "Expand", one, ort_grad_reshape(g, more, list));
    ort_id padded = ort_grad_concat(g, (const ort_id[]){ones, shape}, 2);
    ort_id found = ort_grad_op1(g, "NonZero", ort_grad_op2(g, "Equal", padded, one));
    ort_id in[] = {value, ort_grad_reshape(g, found, list)};
    return ort_grad_reshape_like(g, ort_grad_op(g, "ReduceSum", in, 2, keep, 2), like);
}

/* The axes over which broadcasting `from` to `to` repeats; -1 when that can't be told yet. */
static int repeated_axes(const ort_type *to, const ort_type *from, int64_t *axes)
{
    int count = 0, lead = to->rank - from->rank;
    if (to->rank < 0 || from->rank < 0 || lead < 0)
        return -1;
    for (int i = 0; i < to->rank; i++) {
        ort_dim wide = to->dim[i], narrow = i < lead ? ort_dim_of(1) : from->dim[i - lead];
        if (i >= lead && (ort_dim_equal(wide, narrow) ||
                          (ort_dim_known(narrow) && narrow.size != 1)))
            continue;
        if (!ort_dim_known(narrow))
            return -1;
        axes[count++] = i;
    }
    return count;
}

ort_id ort_grad_sum_to(ort_grad *g, ort_id value, ort_id like)
{
    int64_t axes[ORT_MAX_RANK];
    const ort_type *to = ort_grad_type(g, value), *from = ort_grad_type(g, like);
    if (g->status)
        return ORT_ID_NONE;
    int lead = to->rank - from->rank, count = repeated_axes(to, from, axes);
    if (count < 0)
        return sum_to_dynamic(g, value, like);
    if (!count)
        return value;
    bool keep = lead != count; /* else the leading axes only */
    ort_id sum = ort_grad_reduce(g, "ReduceSum", value, axes, count, keep);
    return keep && lead ? ort_grad_reshape_like(g, sum, like) : sum;
}

/* ---- positions */

ort_id ort_grad_iota(ort_grad *g, ort_id x)
{
    ort_id range = ort_grad_op3(g, "Range", ort_grad_int(g, 0), ort_grad_op1(g, "Size", x),
                                ort_grad_int(g, 1));
    return ort_grad_reshape_like(g, range, x);
}

ort_id ort_grad_scatter(ort_grad *g, ort_id x, ort_id indices, ort_id value, bool repeated)
{
    ort_attr attrs[] = {ort_grad_int_attr("axis", 0),
                        {.name = "reduction", .type = ORT_ATTR_STRING, .s = {"add", 3}}};
    ort_id flat = ort_grad_ints(g, (const int64_t[]){-1}, 1);
    if (repeated && !ort_grad_need_opset(g, 16, "ScatterElements with reduction"))
        return ORT_ID_NONE;
    ort_id size = ort_grad_reshape(g, ort_grad_op1(g, "Size", x), flat);
    ort_id in[] = {ort_grad_op2(g, "Expand", ort_grad_number(g, x, 0), size),
                   ort_grad_reshape(g, indices, flat), ort_grad_reshape(g, value, flat)};
    ort_id sums = ort_grad_op(g, "ScatterElements", in, 3, attrs, repeated ? 2 : 1);
    return ort_grad_reshape_like(g, sums, x);
}

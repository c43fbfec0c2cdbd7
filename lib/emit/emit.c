/* emit.c - the operators that rules emit, in the form that the model's opset has: axes were
 * attributes of ReduceSum, Squeeze and Unsqueeze before opset 13, of other reductions before 18.
 *
 * What is known while the model is loaded becomes constants; what isn't is computed from Shape, so
 * that symbolic dimensions stay symbolic.
 */
#include "emit/emit.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

ort_emit ort_emit_to(ort_graph *graph, ort_error *err)
{
    return (ort_emit){.graph = graph, .purpose = "rewrite", .limit = INT_MAX, .err = err,
                      .opset = (int)ort_model_opset(graph->model, ONNX)};
}

/* ---- what fails */

void ort_emit_fail_memory(ort_emit *e)
{
    if (e->status == ORT_OK)
        e->status = ort_error_memory(e->err, sizeof(ort_node));
}

void ort_emit_refuse(ort_emit *e, const char *format, ...)
{
    char label[256], text[512];
    va_list args;
    if (e->status != ORT_OK)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!e->refused)
        e->status = ort_error_set(e->err, ORT_ERROR_UNSUPPORTED, "%s", text);
    else
        e->status = ort_error_set(e->err, ORT_ERROR_UNSUPPORTED, "%s can't be %s: %s",
                                  ort_node_label(e->at, label, sizeof label), e->refused, text);
}

/* ---- nodes */

static bool copy_attrs(ort_emit *e, const ort_attr *attrs, int count, ort_attr **copy)
{
    ort_arena *arena = &e->graph->model->arena;
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

static const char *new_name(ort_emit *e, const char *op_type)
{
    if (!e->stem)
        return "";
    const char *name = ort_arena_printf(&e->graph->model->arena, "%s/%s_%d", e->stem, op_type,
                                        e->made);
    if (!name)
        ort_emit_fail_memory(e);
    return name;
}

int ort_emit_opset(ort_emit *e, const char *domain, const char *op_type, int since)
{
    int imported = domain[0] ? (int)ort_model_opset(e->graph->model, domain) : e->opset;
    return e->opset_of ? e->opset_of(e->opset_arg, domain, op_type, since)
                       : imported ? imported : 1;
}

/* New values for the outputs of a node. */
static bool add_outputs(ort_emit *e, const char *name, ort_id *outputs, int count)
{
    bool ok = true;
    for (int i = 0; ok && i < count; i++)
        ok = (outputs[i] = ort_graph_add_value(e->graph, name)) != ORT_ID_NONE;
    if (!ok)
        ort_emit_fail_memory(e);
    return ok;
}

void ort_emit_spec(ort_emit *e, ort_node_spec *spec, ort_id *outputs, int output_count)
{
    for (int i = 0; i < output_count; i++)
        outputs[i] = ORT_ID_NONE;
    int opset = spec->opset ? spec->opset : e->opset;
    if (e->status != ORT_OK || (!spec->name && !(spec->name = new_name(e, spec->op_type))))
        return;
    if (!ort_registry_find(e->graph->model->registry, spec->domain, spec->op_type, opset)) {
        ort_emit_refuse(e, "its %s takes operator %s, which opset %d hasn't", e->purpose,
                        spec->op_type, opset);
        return;
    }
    if (++e->made > e->limit) {
        e->status = ort_error_set(e->err, ORT_ERROR_UNSUPPORTED, "its %s takes more than %d nodes",
                                  e->purpose, e->limit);
        return;
    }
    if (!spec->outputs) {
        spec->outputs = outputs;
        spec->output_count = output_count;
        if (!add_outputs(e, spec->name, outputs, output_count))
            return;
    }
    if (!spec->origin)
        spec->origin = e->origin;
    e->status = ort_edit_add_node(e->graph, spec, NULL, e->err);
}

void ort_emit_ops(ort_emit *e, const char *op_type, const ort_id *inputs, int input_count,
                  const ort_attr *attrs, int attr_count, ort_id *outputs, int output_count)
{
    ort_attr *own = NULL;
    if (e->status == ORT_OK && !copy_attrs(e, attrs, attr_count, &own))
        ort_emit_fail_memory(e);
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .inputs = inputs,
                          .input_count = input_count, .attrs = own, .attr_count = attr_count};
    ort_emit_spec(e, &spec, outputs, output_count);
}

ort_id ort_emit_op(ort_emit *e, const char *op_type, const ort_id *inputs, int input_count,
                   const ort_attr *attrs, int attr_count)
{
    ort_id output;
    ort_emit_ops(e, op_type, inputs, input_count, attrs, attr_count, &output, 1);
    return output;
}

void ort_emit_op_as(ort_emit *e, const char *op_type, const ort_id *inputs, int input_count,
                    const ort_attr *attrs, int attr_count, ort_id output)
{
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .name = "", .inputs = inputs,
                          .input_count = input_count, .outputs = &output, .output_count = 1,
                          .set = attrs, .set_count = attr_count};
    if (e->status == ORT_OK)
        e->status = ort_edit_add_node(e->graph, &spec, NULL, e->err);
}

bool ort_emit_need_opset(ort_emit *e, int opset, const char *what)
{
    if (e->status == ORT_OK && e->opset < opset)
        ort_emit_refuse(e, "its %s takes %s of opset %d; the model imports %d",
                        e->purpose, what, opset, e->opset);
    return e->status == ORT_OK;
}

/* ---- what is known of values */

const ort_type *ort_emit_type(const ort_emit *e, ort_id value)
{
    static const ort_type unknown = {.kind = ORT_TYPE_UNKNOWN, .rank = -1};
    return value == ORT_ID_NONE ? &unknown : &e->graph->values.data[value]->fact.type;
}

int ort_emit_rank(ort_emit *e, ort_id value)
{
    int rank = ort_emit_type(e, value)->rank;
    if (rank < 0 && e->status == ORT_OK)
        ort_emit_refuse(e, "the number of dimensions of '%s' isn't known",
                        e->graph->values.data[value]->name);
    return rank < 0 ? 0 : rank;
}

int ort_emit_axis(ort_emit *e, const ort_node *node, int rank)
{
    int64_t axis = ort_node_attr_int(node, "axis"), at = axis < 0 ? axis + rank : axis;
    if (at >= 0 && at < rank)
        return (int)at;
    if (e->status == ORT_OK)
        ort_emit_refuse(e, "axis %lld is outside of its %d dimensions", (long long)axis, rank);
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

static ort_id constant(ort_emit *e, const ort_tensor *tensor)
{
    ort_id id = ORT_ID_NONE;
    if (e->status != ORT_OK)
        return id;
    const char *name = !e->stem ? "c" : ort_arena_printf(&e->graph->model->arena, "%s/c_%d",
                                                         e->stem, e->made++);
    if (!name)
        ort_emit_fail_memory(e);
    else
        e->status = ort_edit_add_constant(e->graph, name, tensor, &id, e->err);
    return id;
}

ort_id ort_emit_number_of(ort_emit *e, ort_dtype dtype, double number)
{
    uint64_t storage[2] = {0};
    ort_tensor tensor = {.dtype = dtype, .data = storage};
    if (e->status != ORT_OK)
        return ORT_ID_NONE;
    ort_tensor_set_f64(&tensor, 0, number);
    return constant(e, &tensor);
}

ort_id ort_emit_number(ort_emit *e, ort_id like, double number)
{
    return ort_emit_number_of(e, ort_emit_type(e, like)->dtype, number);
}

double ort_emit_attribute(ort_emit *e, const char *name, int length)
{
    char text[64];
    ort_schema schema;
    assert(e->at && length < (int)sizeof text);
    memcpy(text, name, (size_t)length);
    text[length] = '\0';
    const ort_attr *attr = ort_node_attr(e->at, text);
    if (attr && attr->type == ORT_ATTR_FLOAT)
        return (double)attr->f;
    if (ort_schema_parse(e->at->op, &schema, NULL) == ORT_OK)
        for (int i = 0; i < schema.attr_count; i++)
            if (!strcmp(schema.attrs[i].name, text))
                return (double)strtof(schema.attrs[i].fallback, NULL);
    assert(!"a formula names an attribute that the operator hasn't");
    return 0;
}

ort_id ort_emit_int(ort_emit *e, int64_t number)
{
    ort_tensor tensor = {.dtype = ORT_DTYPE_INT64, .data = &number};
    return constant(e, &tensor);
}

ort_id ort_emit_ints(ort_emit *e, const int64_t *numbers, int count)
{
    int64_t dim = count;
    ort_tensor tensor = {.dtype = ORT_DTYPE_INT64,
                         .shape = ort_shape_make(1, &dim),
                         .data = (void *)(uintptr_t)numbers};
    return constant(e, &tensor);
}

/* ---- types and shapes */

ort_id ort_emit_cast(ort_emit *e, ort_id value, ort_dtype dtype)
{
    ort_attr to = ort_emit_int_attr("to", dtype);
    if (ort_emit_type(e, value)->dtype == dtype)
        return value;
    return ort_emit_op(e, "Cast", &value, 1, &to, 1);
}

ort_id ort_emit_shape(ort_emit *e, ort_id value)
{
    int64_t dims[ORT_MAX_RANK];
    const ort_type *type = ort_emit_type(e, value);
    if (known_dims(type, 0, type->rank, dims))
        return ort_emit_ints(e, dims, type->rank);
    return ort_emit_op1(e, "Shape", value);
}

ort_id ort_emit_dims(ort_emit *e, ort_id value, int first, int last)
{
    int64_t dims[ORT_MAX_RANK];
    if (known_dims(ort_emit_type(e, value), first, last, dims))
        return ort_emit_ints(e, dims, last - first);
    ort_id begin = ort_emit_ints(e, (const int64_t[]){first}, 1);
    ort_id end = ort_emit_ints(e, (const int64_t[]){last}, 1);
    return ort_emit_op3(e, "Slice", ort_emit_op1(e, "Shape", value), begin, end);
}

ort_id ort_emit_dim(ort_emit *e, ort_id value, int axis)
{
    ort_attr ends[] = {ort_emit_int_attr("start", axis), ort_emit_int_attr("end", axis + 1)};
    ort_attr along = ort_emit_int_attr("axis", 0);
    if (e->opset >= 15)
        return ort_emit_op(e, "Shape", &value, 1, ends, 2);
    ort_id in[] = {ort_emit_op1(e, "Shape", value), ort_emit_ints(e, (const int64_t[]){axis}, 1)};
    return ort_emit_op(e, "Gather", in, 2, &along, 1);
}

ort_id ort_emit_concat(ort_emit *e, const ort_id *lists, int count)
{
    ort_attr axis = ort_emit_int_attr("axis", 0);
    return ort_emit_op(e, "Concat", lists, count, &axis, 1);
}

ort_id ort_emit_count(ort_emit *e, ort_id value, ort_id like)
{
    int64_t dims[ORT_MAX_RANK];
    const ort_type *type = ort_emit_type(e, value);
    double count = 1;
    if (!known_dims(type, 0, type->rank, dims))
        return ort_emit_cast(e, ort_emit_op1(e, "Size", value), ort_emit_type(e, like)->dtype);
    for (int i = 0; i < type->rank; i++)
        count *= (double)dims[i];
    return ort_emit_number(e, like, count);
}

ort_id ort_emit_expand(ort_emit *e, ort_id value, ort_id like)
{
    if (same_shape(ort_emit_type(e, value), ort_emit_type(e, like)))
        return value;
    return ort_emit_op2(e, "Expand", value, ort_emit_shape(e, like));
}

ort_id ort_emit_zeros(ort_emit *e, ort_id like)
{
    return ort_emit_expand(e, ort_emit_number(e, like, 0), like);
}

ort_id ort_emit_reshape(ort_emit *e, ort_id value, ort_id shape)
{
    return ort_emit_op2(e, "Reshape", value, shape);
}

ort_id ort_emit_reshape_to(ort_emit *e, ort_id value, const int64_t *dims, int count)
{
    return ort_emit_reshape(e, value, ort_emit_ints(e, dims, count));
}

/* A dimension of zero would mean "copy" without allowzero, which Reshape has from opset 14 on. */
ort_id ort_emit_reshape_like(ort_emit *e, ort_id value, ort_id like)
{
    ort_attr allow = ort_emit_int_attr("allowzero", 1);
    if (same_shape(ort_emit_type(e, value), ort_emit_type(e, like)))
        return value;
    ort_id in[] = {value, ort_emit_shape(e, like)};
    return ort_emit_op(e, "Reshape", in, 2, &allow, e->opset >= 14);
}

/* An operator whose axes were an attribute before opset 13. */
static ort_id by_axes(ort_emit *e, const char *op_type, ort_id value, const int64_t *axes,
                      int count)
{
    ort_attr attr = ort_emit_ints_attr("axes", axes, count);
    if (e->opset < 13)
        return ort_emit_op(e, op_type, &value, 1, &attr, 1);
    return ort_emit_op2(e, op_type, value, ort_emit_ints(e, axes, count));
}

ort_id ort_emit_unsqueeze(ort_emit *e, ort_id value, const int64_t *axes, int count)
{
    return count ? by_axes(e, "Unsqueeze", value, axes, count) : value;
}

ort_id ort_emit_squeeze(ort_emit *e, ort_id value, const int64_t *axes, int count)
{
    return by_axes(e, "Squeeze", value, axes, count);
}

ort_id ort_emit_transpose(ort_emit *e, ort_id value, const int64_t *perm, int count)
{
    ort_attr attr = ort_emit_ints_attr("perm", perm, count);
    return ort_emit_op(e, "Transpose", &value, 1, &attr, 1);
}

/* ---- reductions */

ort_id ort_emit_reduce_by(ort_emit *e, const char *op_type, ort_id value, ort_id axes,
                          bool keepdims)
{
    ort_attr keep = ort_emit_int_attr("keepdims", keepdims);
    ort_id in[] = {value, axes};
    return ort_emit_op(e, op_type, in, axes == ORT_ID_NONE ? 1 : 2, &keep, 1);
}

ort_id ort_emit_reduce(ort_emit *e, const char *op_type, ort_id value, const int64_t *axes,
                       int count, bool keepdims)
{
    ort_attr attrs[] = {ort_emit_int_attr("keepdims", keepdims),
                        ort_emit_ints_attr("axes", axes, count)};
    if (!count)
        return ort_emit_reduce_by(e, op_type, value, ORT_ID_NONE, keepdims);
    if (e->opset >= (strcmp(op_type, "ReduceSum") ? 18 : 13))
        return ort_emit_reduce_by(e, op_type, value, ort_emit_ints(e, axes, count), keepdims);
    return ort_emit_op(e, op_type, &value, 1, attrs, 2);
}

/* Which axes were repeated shows at run time only: those where the padded shape of `like` is 1. */
static ort_id sum_to_dynamic(ort_emit *e, ort_id value, ort_id like)
{
    ort_attr keep[] = {ort_emit_int_attr("keepdims", 1),
                       ort_emit_int_attr("noop_with_empty_axes", 1)};
    if (!ort_emit_need_opset(e, 13, "a sum over dimensions known at run time only"))
        return ORT_ID_NONE;
    ort_id one = ort_emit_int(e, 1), shape = ort_emit_op1(e, "Shape", like);
    ort_id more = ort_emit_op2(e, "Sub", ort_emit_op1(e, "Size", ort_emit_op1(e, "Shape", value)),
                               ort_emit_op1(e, "Size", shape));
    ort_id list = ort_emit_ints(e, (const int64_t[]){-1}, 1);
    ort_id ones = ort_emit_op2(e, "Expand", one, ort_emit_reshape(e, more, list));
    ort_id padded = ort_emit_concat(e, (const ort_id[]){ones, shape}, 2);
    ort_id found = ort_emit_op1(e, "NonZero", ort_emit_op2(e, "Equal", padded, one));
    ort_id in[] = {value, ort_emit_reshape(e, found, list)};
    return ort_emit_reshape_like(e, ort_emit_op(e, "ReduceSum", in, 2, keep, 2), like);
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

ort_id ort_emit_sum_to(ort_emit *e, ort_id value, ort_id like)
{
    int64_t axes[ORT_MAX_RANK];
    const ort_type *to = ort_emit_type(e, value), *from = ort_emit_type(e, like);
    if (e->status != ORT_OK)
        return ORT_ID_NONE;
    int lead = to->rank - from->rank, count = repeated_axes(to, from, axes);
    if (count < 0)
        return sum_to_dynamic(e, value, like);
    if (!count)
        return value;
    bool keep = lead != count; /* else the leading axes only */
    ort_id sum = ort_emit_reduce(e, "ReduceSum", value, axes, count, keep);
    return keep && lead ? ort_emit_reshape_like(e, sum, like) : sum;
}

/* ---- positions */

ort_id ort_emit_iota(ort_emit *e, ort_id x)
{
    ort_id range = ort_emit_op3(e, "Range", ort_emit_int(e, 0), ort_emit_op1(e, "Size", x),
                                ort_emit_int(e, 1));
    return ort_emit_reshape_like(e, range, x);
}

ort_id ort_emit_scatter(ort_emit *e, ort_id x, ort_id indices, ort_id value, bool repeated)
{
    ort_attr attrs[] = {ort_emit_int_attr("axis", 0),
                        {.name = "reduction", .type = ORT_ATTR_STRING, .s = {"add", 3}}};
    ort_id flat = ort_emit_ints(e, (const int64_t[]){-1}, 1);
    if (repeated && !ort_emit_need_opset(e, 16, "ScatterElements with reduction"))
        return ORT_ID_NONE;
    ort_id size = ort_emit_reshape(e, ort_emit_op1(e, "Size", x), flat);
    ort_id in[] = {ort_emit_op2(e, "Expand", ort_emit_number(e, x, 0), size),
                   ort_emit_reshape(e, indices, flat), ort_emit_reshape(e, value, flat)};
    ort_id sums = ort_emit_op(e, "ScatterElements", in, 3, attrs, repeated ? 2 : 1);
    return ort_emit_reshape_like(e, sums, x);
}

/* emit.c - the nodes and constants that rules emit, and what is known of values.
 *
 * What is known while the model is loaded becomes constants; what isn't is computed from Shape, so
 * that symbolic dimensions stay symbolic.
 */
#include "emit/write.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"

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
    int64_t axis = ort_node_attr_int(node, "axis");
    int at = ort_axis_in(axis, rank);
    if (at < 0)
        ort_emit_refuse(e, "axis %lld is outside of its %d dimensions", (long long)axis, rank);
    return at < 0 ? 0 : at;
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

ort_bound ort_emit_attribute(const ort_emit *e, const char *name, int length)
{
    static const int64_t empty[1];
    ort_bound b = {.value = ORT_ID_NONE};
    char text[64];
    ort_attr own;
    assert(e->at && length < (int)sizeof text);
    memcpy(text, name, (size_t)length);
    text[length] = '\0';
    const ort_attr *attr = ort_edit_attr(e->at, text, &own);
    if (attr && attr->type == ORT_ATTR_INTS) {
        b.list = attr->count ? attr->ints : empty;
        b.count = (int)attr->count;
    } else if (attr) {
        assert(attr->type == ORT_ATTR_FLOAT || attr->type == ORT_ATTR_INT);
        b.number = attr->type == ORT_ATTR_INT ? (double)attr->i : (double)attr->f;
        b.is_number = true;
    }
    return b;
}

/* ---- constants */

ort_id ort_emit_tensor(ort_emit *e, const ort_tensor *tensor)
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
    return ort_emit_tensor(e, &tensor);
}

ort_id ort_emit_number(ort_emit *e, ort_id like, double number)
{
    return ort_emit_number_of(e, ort_emit_type(e, like)->dtype, number);
}

ort_id ort_emit_int(ort_emit *e, int64_t number)
{
    ort_tensor tensor = {.dtype = ORT_DTYPE_INT64, .data = &number};
    return ort_emit_tensor(e, &tensor);
}

ort_id ort_emit_ints(ort_emit *e, const int64_t *numbers, int count)
{
    int64_t dim = count;
    ort_tensor tensor = {.dtype = ORT_DTYPE_INT64,
                         .shape = ort_shape_make(1, &dim),
                         .data = (void *)(uintptr_t)numbers};
    return ort_emit_tensor(e, &tensor);
}

/* ---- types and shapes */

ort_id ort_emit_cast(ort_emit *e, ort_id value, ort_dtype dtype)
{
    ort_attr to = ort_attr_int("to", dtype);
    if (ort_emit_type(e, value)->dtype == dtype)
        return value;
    return ort_emit_op(e, "Cast", &value, 1, &to, 1);
}

ort_id ort_emit_cast_like(ort_emit *e, ort_id value, ort_id like)
{
    return ort_emit_cast(e, value, ort_emit_type(e, like)->dtype);
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

ort_id ort_emit_concat(ort_emit *e, const ort_id *lists, int count)
{
    ort_attr axis = ort_attr_int("axis", 0);
    return ort_emit_op(e, "Concat", lists, count, &axis, 1);
}

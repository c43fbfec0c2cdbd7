/* rotary_write.c - tables of cosines and sines (rotary_table.h) as operators read them: one number
 * for each pair, [B,S,h], or rows [P,h] and positions.
 */
#include "base/error.h"
#include "pass/attention/rotary_table.h"
#include "pass/facts/constants.h"
#include "pass/facts/dim_source.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return &c->graph->values.data[id]->fact.type;
}

static bool is_one(ort_dim dim)
{
    return ort_dim_known(dim) && dim.size == 1;
}

/* opset: from which on it can be written so; 0: any. */
static ort_status add(ort_pass_context *c, const char *op_type, const ort_id *inputs, int count,
                      const ort_attr *set, int set_count, int opset, ort_id *result,
                      ort_error *err)
{
    int have = (int)ort_model_opset(c->graph->model, ONNX);
    *result = ort_graph_add_value(c->graph, "");
    if (*result == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *result);
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .name = "", .inputs = inputs,
                          .input_count = count, .outputs = result, .output_count = 1, .set = set,
                          .set_count = set_count, .opset = have < opset ? opset : 0};
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

/* One number of each pair of a constant's rows. */
static ort_status half_rows(ort_pass_context *c, const ort_rotary_table *t, int64_t half,
                            bool batched, ort_id *id, ort_error *err)
{
    ort_value *made = NULL;
    int64_t width = t->spread == ORT_ROTARY_ONCE ? half : 2 * half;
    int64_t step = t->spread == ORT_ROTARY_PAIRS ? 2 : 1;
    int64_t count = ort_tensor_count(t->rows) / width;
    ort_shape shape = batched ? ort_shape_make(3, (const int64_t[]){1, count, half})
                              : ort_shape_make(2, (const int64_t[]){count, half});
    ORT_TRY(ort_value_new_tensor_(t->rows->dtype, &shape, &made, err));
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = 0; i < half; i++)
            ort_tensor_set_f64(&made->tensor, r * half + i,
                               ort_tensor_get_f64(t->rows, r * width + i * step));
    ort_status status = ort_edit_add_constant(c->graph, "", &made->tensor, id, err);
    ort_value_free(made);
    return status;
}

/* Rows [P,h]; of those that are picked for all of B: [1,S,h]. */
static ort_status write_half(ort_pass_context *c, const ort_rotary_table *t, int64_t half,
                             ort_id *id, ort_error *err)
{
    ORT_TRY(half_rows(c, t, half, false, id, err));
    if (t->slice) {
        ort_id inputs[5] = {*id};
        for (int i = 1; i < t->slice->input_count; i++)
            inputs[i] = t->slice->inputs[i];
        ORT_TRY(add(c, "Slice", inputs, t->slice->input_count, NULL, 0, 0, id, err));
    }
    ort_id gather[2] = {*id, t->picked};
    return t->picked == ORT_ID_NONE ? ORT_OK : add(c, "Gather", gather, 2, NULL, 0, 0, id, err);
}

/* f as [B,S,h] or [1,S,h]. */
static ort_status flat_half(ort_pass_context *c, const ort_rotary_table *t, ort_id *id,
                            ort_error *err)
{
    const ort_type *type = type_of(c, t->half);
    int64_t list[3] = {type->rank == 2, t->head == 2 && type->rank == 4 ? 0 : -1,
                       type->dim[type->rank - 1].size};
    ort_id inputs[2] = {t->half};
    *id = t->half;
    if (type->rank == 3)
        return ORT_OK;
    ORT_TRY(ort_constant_list(c->graph, list, 3, &inputs[1], err));
    return add(c, "Reshape", inputs, 2, NULL, 0, 0, id, err);
}

/* The operators from f to the whole, for f alone. Layers share them, once merged. */
static ort_status copy_chain(ort_pass_context *c, const ort_rotary_table *t, ort_id *id,
                             ort_error *err)
{
    for (int i = t->count; i-- > 0;) {
        const ort_node *old = t->chain[i];
        ort_id inputs[2] = {old->inputs[0], old->input_count > 1 ? old->inputs[1] : ORT_ID_NONE};
        inputs[t->slot[i]] = *id;
        ort_id made = ort_graph_add_value(c->graph, "");
        if (made == ORT_ID_NONE)
            return ort_error_memory(err, sizeof made);
        ort_node_spec spec = {.domain = ONNX, .op_type = old->op_type, .name = "",
                              .inputs = inputs, .input_count = old->input_count,
                              .outputs = &made, .output_count = 1, .attrs = old->attrs,
                              .attr_count = old->attr_count, .opset = old->opset,
                              .origin = old->origin};
        ORT_TRY(ort_edit_add_node(c->graph, &spec, NULL, err));
        *id = made;
    }
    return ORT_OK;
}

/* [1,S,h] for each of B. */
static ort_status repeat(ort_pass_context *c, const ort_type *x, ort_id source, ort_id *id,
                         ort_error *err)
{
    ort_id shape, size, one, expand[2] = {*id};
    int64_t list[3] = {1, 1, 1}, axis = 0;
    if (ort_dim_known(x->dim[0])) {
        list[0] = x->dim[0].size;
        ORT_TRY(ort_constant_list(c->graph, list, 3, &expand[1], err));
        return add(c, "Expand", expand, 2, NULL, 0, 0, id, err);
    }
    (void)ort_dim_source(c, x->dim[0], &source, &axis);
    ort_attr ends[2] = {{.name = "start", .type = ORT_ATTR_INT, .i = axis},
                        {.name = "end", .type = ORT_ATTR_INT, .i = axis + 1}};
    ORT_TRY(add(c, "Shape", &source, 1, ends, 2, 15, &size, err));
    ORT_TRY(ort_constant_list(c->graph, list, 2, &one, err));
    ort_attr along = {.name = "axis", .type = ORT_ATTR_INT, .i = 0};
    ORT_TRY(add(c, "Concat", (ort_id[]){size, one}, 2, &along, 1, 0, &shape, err));
    expand[1] = shape;
    return add(c, "Expand", expand, 2, NULL, 0, 0, id, err);
}

ort_status ort_rotary_write_table(ort_pass_context *c, const ort_rotary_table *t,
                                  const ort_type *x, ort_id source, ort_id *id, ort_error *err)
{
    int64_t half = x->dim[3].size / 2;
    if (t->positions != ORT_ID_NONE)
        return write_half(c, t, half, id, err);
    if (t->picked != ORT_ID_NONE) {
        ORT_TRY(write_half(c, t, half, id, err));
    } else if (t->rows) {
        ORT_TRY(half_rows(c, t, half, true, id, err));
    } else {
        ORT_TRY(flat_half(c, t, id, err));
        ORT_TRY(copy_chain(c, t, id, err));
    }
    return t->one_batch ? repeat(c, x, source, id, err) : ORT_OK;
}

/* ---- rows of com.microsoft */

/* 0, 1, 2 ... as [B,S] of this [B,S,h]; with B = 1 the number of the first, [1]. */
static ort_status number_rows(ort_pass_context *c, ort_id rows, ort_id *positions, ort_error *err)
{
    const ort_type *type = type_of(c, rows);
    const int64_t zero = 0, one = 1;
    ort_id shape, size, range[3], reshape[2];
    if (type->rank == 2 || is_one(type->dim[0]))
        return ort_constant_list(c->graph, &zero, 1, positions, err);
    ort_attr ends[2] = {{.name = "start", .type = ORT_ATTR_INT, .i = 0},
                        {.name = "end", .type = ORT_ATTR_INT, .i = 2}};
    ort_attr flat = {.name = "keepdims", .type = ORT_ATTR_INT, .i = 0};
    ort_tensor number = {.dtype = ORT_DTYPE_INT64, .shape = {.rank = 0},
                         .data = (void *)(uintptr_t)&zero};
    ORT_TRY(add(c, "Shape", &rows, 1, ends, 2, 15, &shape, err));
    ORT_TRY(add(c, "ReduceProd", &shape, 1, &flat, 1, 0, &size, err));
    ORT_TRY(ort_edit_add_constant(c->graph, "", &number, &range[0], err));
    number.data = (void *)(uintptr_t)&one;
    ORT_TRY(ort_edit_add_constant(c->graph, "", &number, &range[2], err));
    range[1] = size;
    ORT_TRY(add(c, "Range", range, 3, NULL, 0, 0, &reshape[0], err));
    reshape[1] = shape;
    return add(c, "Reshape", reshape, 2, NULL, 0, 0, positions, err);
}

/* [B,S,h] as [B*S,h]; a table of rows stays. */
static ort_status lay_rows(ort_pass_context *c, ort_id *rows, ort_error *err)
{
    const ort_type *type = type_of(c, *rows);
    ort_id inputs[2] = {*rows};
    if (type->rank == 2)
        return ORT_OK;
    const int64_t list[2] = {-1, type->dim[2].size};
    ORT_TRY(ort_constant_list(c->graph, list, 2, &inputs[1], err));
    return add(c, "Reshape", inputs, 2, NULL, 0, 0, rows, err);
}

const char *ort_rotary_microsoft_fits(const ort_pass_context *c, const ort_type *x,
                                      const ort_rotary_table *t)
{
    if (x->dtype != ORT_DTYPE_FLOAT)
        return "com.microsoft RotaryEmbedding would fit if it were float";
    if (t->rows || t->one_batch)
        return NULL;
    const ort_type *half = type_of(c, t->half);
    if (!ort_dim_known(half->dim[half->rank - 1]))
        return "the table's width isn't known";
    return ort_model_opset(c->graph->model, ONNX) < 15
               ? "what numbers the rows of its table came with opset 15" : NULL;
}

ort_status ort_rotary_write_rows(ort_pass_context *c, const ort_rotary_table tables[2],
                                 ort_id ids[2], ort_id *positions, ort_error *err)
{
    *positions = tables[0].positions;
    for (int i = 0; i < 2; i++) {
        const ort_rotary_table *t = &tables[i];
        int64_t width;
        if (t->rows) {
            width = t->rows->shape.dim[t->rows->shape.rank - 1];
            ORT_TRY(write_half(c, t, t->spread == ORT_ROTARY_ONCE ? width : width / 2, &ids[i],
                               err));
            continue;
        }
        ORT_TRY(flat_half(c, t, &ids[i], err));
        ORT_TRY(copy_chain(c, t, &ids[i], err));
    }
    if (*positions == ORT_ID_NONE)
        ORT_TRY(number_rows(c, ids[0], positions, err));
    for (int i = 0; i < 2; i++)
        ORT_TRY(lay_rows(c, &ids[i], err));
    return ORT_OK;
}

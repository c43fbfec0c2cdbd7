/* rotary_write.c - tables of cosines and sines (rotary_table.h) as operators read them: one number
 * for each pair, [B,S,h], or rows [P,h] and positions.
 */
#include "pass/attention/rotary_table.h"
#include "pass/facts/dim_source.h"
#include "pass/facts/facts.h"

/* One number of each pair of a constant's rows. */
static ort_id half_rows(ort_emit *e, const ort_rotary_table *t, int64_t half, bool batched)
{
    ort_tensor made;
    ort_id id = ORT_ID_NONE;
    int64_t width = t->spread == ORT_ROTARY_ONCE ? half : 2 * half;
    int64_t step = t->spread == ORT_ROTARY_PAIRS ? 2 : 1;
    int64_t count = ort_tensor_count(t->rows) / width;
    ort_shape shape = batched ? ort_shape_make(3, (const int64_t[]){1, count, half})
                              : ort_shape_make(2, (const int64_t[]){count, half});
    if (e->status == ORT_OK)
        e->status = ort_edit_new_constant(e->graph, "", t->rows->dtype, &shape, &made, &id,
                                          e->err);
    for (int64_t r = 0; e->status == ORT_OK && r < count; r++)
        for (int64_t i = 0; i < half; i++)
            ort_tensor_set_f64(&made, r * half + i,
                               ort_tensor_get_f64(t->rows, r * width + i * step));
    return id;
}

/* Rows [P,h]; of those that are picked for all of B: [1,S,h]. */
static ort_id write_half(ort_emit *e, const ort_rotary_table *t, int64_t half)
{
    ort_id rows = half_rows(e, t, half, false), inputs[5] = {rows};
    if (t->slice) {
        memcpy(inputs + 1, t->slice->inputs + 1,
               sizeof *inputs * (size_t)(t->slice->input_count - 1));
        rows = ort_emit_op(e, "Slice", inputs, t->slice->input_count, NULL, 0);
    }
    return t->picked == ORT_ID_NONE ? rows : ort_emit_op2(e, "Gather", rows, t->picked);
}

/* f as [B,S,h] or [1,S,h], and by the operators that made the whole of it. Layers share them, once
 * merged. */
static ort_id computed_half(ort_emit *e, const ort_rotary_table *t)
{
    const ort_type *type = ort_emit_type(e, t->half);
    const int64_t list[3] = {type->rank == 2, t->head == 2 && type->rank == 4 ? 0 : -1,
                             type->dim[type->rank - 1].size};
    ort_id id = type->rank == 3 ? t->half : ort_emit_reshape_to(e, t->half, list, 3);
    for (int i = t->count; i-- > 0 && e->status == ORT_OK;) {
        const ort_node *old = t->chain[i];
        ort_id inputs[2] = {old->inputs[0], ort_edit_input(old, 1)};
        inputs[t->slot[i]] = id;
        e->origin = old->origin;
        id = ort_emit_op(e, old->op_type, inputs, old->input_count, old->attrs, old->attr_count);
    }
    e->origin = NULL;
    return id;
}

/* [1,S,h] for each of B. */
static ort_id repeat(const ort_pass_context *c, ort_emit *e, ort_dim batch, ort_id source,
                     ort_id id)
{
    const int64_t list[3] = {ort_dim_known(batch) ? batch.size : 1, 1, 1};
    int64_t axis = 0;
    if (ort_dim_known(batch))
        return ort_emit_op2(e, "Expand", id, ort_emit_ints(e, list, 3));
    (void)ort_dim_source(c, batch, &source, &axis);
    ort_id size = ort_emit_dim(e, source, (int)axis);
    const ort_id parts[2] = {size, ort_emit_ints(e, list, 2)};
    return ort_emit_op2(e, "Expand", id, ort_emit_concat(e, parts, 2));
}

ort_id ort_rotary_write_table(const ort_pass_context *c, ort_emit *e, const ort_rotary_table *t,
                              const ort_type *x, ort_id source)
{
    int64_t half = x->dim[3].size / 2;
    if (t->positions != ORT_ID_NONE)
        return write_half(e, t, half);
    ort_id id = t->picked != ORT_ID_NONE ? write_half(e, t, half)
                : t->rows                ? half_rows(e, t, half, true)
                                         : computed_half(e, t);
    return t->one_batch ? repeat(c, e, x->dim[0], source, id) : id;
}

/* ---- rows of com.microsoft */

/* 0, 1, 2 ... as [B,S] of this [B,S,h]; with B = 1 the number of the first, [1]. */
static ort_id number_rows(ort_emit *e, ort_id rows)
{
    static const int64_t zero = 0;
    const ort_type *type = ort_emit_type(e, rows);
    if (type->rank == 2 || ort_dim_is(type->dim[0], 1))
        return ort_emit_ints(e, &zero, 1);
    return ort_emit_formula(e, "s = (Shape x start=0 end=2); n = (ReduceProd s keepdims=0); "
                               "(Reshape (Range @0 n @1) s)", "x", rows);
}

/* [B,S,h] as [B*S,h]; a table of rows stays. */
static ort_id lay_rows(ort_emit *e, ort_id rows)
{
    const ort_type *type = ort_emit_type(e, rows);
    const int64_t list[2] = {-1, type->dim[2].size};
    return type->rank == 2 ? rows : ort_emit_reshape_to(e, rows, list, 2);
}

const char *ort_rotary_microsoft_fits(const ort_pass_context *c, const ort_type *x,
                                      const ort_rotary_table *t)
{
    if (x->dtype != ORT_DTYPE_FLOAT)
        return "com.microsoft RotaryEmbedding would fit if it were float";
    if (t->rows || t->one_batch)
        return NULL;
    const ort_type *half = ort_fact_type(c->graph, t->half);
    if (!ort_dim_known(half->dim[half->rank - 1]))
        return "the table's width isn't known";
    return ort_model_opset(c->graph->model, ONNX) < 15
               ? "what numbers the rows of its table came with opset 15" : NULL;
}

void ort_rotary_write_rows(ort_emit *e, const ort_rotary_table tables[2], ort_id ids[2],
                           ort_id *positions)
{
    for (int i = 0; i < 2; i++) {
        const ort_rotary_table *t = &tables[i];
        int64_t width = t->rows ? t->rows->shape.dim[t->rows->shape.rank - 1] : 0;
        ids[i] = t->rows ? write_half(e, t, t->spread == ORT_ROTARY_ONCE ? width : width / 2)
                         : computed_half(e, t);
    }
    *positions = tables[0].positions;
    if (*positions == ORT_ID_NONE)
        *positions = number_rows(e, ids[0]);
    for (int i = 0; i < 2; i++)
        ids[i] = lay_rows(e, ids[i]);
}

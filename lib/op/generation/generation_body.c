/* generation_body.c - the values that a body takes and gives, and its run (generation.h): what both
 * forms of bodies are fed by.
 */
#include <string.h>

#include "op/generation/generation.h"

ort_status ort_generation_ids(int64_t rows, int64_t columns, ort_value **value, ort_error *err)
{
    ort_shape shape = {2, {rows, columns}};
    ort_value_free(*value);
    *value = NULL;
    return ort_value_new_tensor_(ORT_DTYPE_INT32, &shape, value, err);
}

ort_status ort_generation_pick(const ort_value *value, int axis, const int32_t *from, int64_t rows,
                               int64_t repeat, ort_value **slot, ort_error *err)
{
    ort_shape shape = value->tensor.shape;
    ort_value *picked = NULL;
    int64_t outer = 1, inner = 1, old = shape.dim[axis];
    for (int i = 0; i < axis; i++)
        outer *= shape.dim[i];
    for (int i = axis + 1; i < shape.rank; i++)
        inner *= shape.dim[i];
    shape.dim[axis] = rows;
    ORT_TRY(ort_value_new_tensor_(value->tensor.dtype, &shape, &picked, err));
    for (int64_t o = 0; o < outer; o++)
        for (int64_t r = 0; r < rows; r++)
            ort_flow_copy(&picked->tensor, (o * rows + r) * inner, &value->tensor,
                          (o * old + (from ? from[r] : r / repeat)) * inner, inner);
    ort_value_free(*slot);
    *slot = picked;
    return ORT_OK;
}

ort_status ort_generation_empty(ort_generation *g, int index, int rank, ort_value **slot,
                                ort_error *err)
{
    const ort_graph *body = g->call->node->bodies[g->body];
    const ort_type *type = &ort_graph_value_at(body, body->inputs.data[index])->fact.type;
    ort_shape shape = {rank, {0}};
    if (type->rank != rank || !ort_dim_known(type->dim[rank - 3]) ||
        !ort_dim_known(type->dim[rank - 1]))
        return ort_call_fail(g->call, err, "past state %d of its decoder doesn't declare the shape "
                             "[%sbatch, heads, length, size] with numbers for heads and size",
                             index, rank == 5 ? "2, " : "");
    shape.dim[0] = 2; /* of rank 5; else the rows */
    shape.dim[rank - 4] = g->rows;
    shape.dim[rank - 3] = type->dim[rank - 3].size;
    shape.dim[rank - 1] = type->dim[rank - 1].size;
    if (g->shared.length >= 0)
        shape.dim[rank - 2] = g->max;
    ort_value_free(*slot);
    *slot = NULL;
    ORT_TRY(ort_value_new_tensor_(type->dtype, &shape, slot, err));
    memset((*slot)->tensor.data, 0, ort_tensor_bytes(&(*slot)->tensor));
    return ORT_OK;
}

ort_status ort_generation_call(ort_generation *g, int index, int in_count, ort_value **out,
                               int out_count, ort_error *err)
{
    ORT_TRY(ort_budget_check(err));
    for (int i = 0; i < out_count; i++) {
        ort_value_free(out[i]);
        out[i] = NULL;
    }
    return ort_call_body(g->call, index, g->in, in_count, out, out_count, err);
}

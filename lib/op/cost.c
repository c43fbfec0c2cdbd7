/* cost.c - what one node computes, from facts alone. */
#include "op/op.h"

bool ort_type_bytes(const ort_type *type, double *bytes)
{
    double count = 1;
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 0 || !type->dtype)
        return false;
    for (int i = 0; i < type->rank; i++) {
        if (!ort_dim_known(type->dim[i]) || type->dim[i].size < 0)
            return false;
        count *= (double)type->dim[i].size;
    }
    *bytes = count * ort_dtype_get(type->dtype)->bits / 8;
    return true;
}

static double elements_of(const ort_type *type)
{
    double count = type->kind == ORT_TYPE_TENSOR && type->rank >= 0 ? 1.0 : 0.0;
    for (int d = 0; d < type->rank; d++)
        count *= ort_dim_known(type->dim[d]) ? (double)type->dim[d].size : 1.0;
    return count;
}

void ort_elementwise_cost(const ort_infer *x, ort_cost *cost)
{
    cost->flops = elements_of(&x->out[0].type);
}

void ort_reduction_cost(const ort_infer *x, ort_cost *cost)
{
    cost->flops = x->in_count && x->in[0] ? elements_of(&x->in[0]->type) : 0;
}

void ort_cost_of(const ort_infer *x, ort_cost *cost)
{
    double bytes;
    *cost = (ort_cost){0};
    if (x->op->impl && x->op->impl->cost)
        x->op->impl->cost(x, cost);
    else if ((x->op->traits & ORT_TRAIT_ELEMENTWISE) && x->out_count &&
             ort_type_bytes(&x->out[0].type, &bytes))
        cost->flops = bytes * 8 / ort_dtype_get(x->out[0].type.dtype)->bits;
}

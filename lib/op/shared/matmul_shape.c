/* matmul_shape.c - a matrix product by its shapes. */
#include "op/shared/matmul_shape.h"

#include <string.h>

/* ---- inference */

/* Dims of `type` seen as a matrix product's operand: transposed as asked, vectors not extended. */
static void operand_dims(const ort_type *type, bool trans, bool trans_batch, ort_dim *dim)
{
    int rank = type->rank;
    for (int d = 0; d < rank; d++)
        dim[d] = type->dim[d];
    if (rank < 2)
        return;
    if (trans_batch) {
        ort_dim first = dim[0];
        memmove(dim, dim + 1, (size_t)(rank - 2) * sizeof *dim);
        dim[rank - 2] = first;
    }
    if (trans) {
        ort_dim last = dim[rank - 1];
        dim[rank - 1] = dim[rank - 2];
        dim[rank - 2] = last;
    }
}

ort_status ort_matmul_infer_shape(ort_infer *x, int a_input, int b_input, ort_error *err)
{
    if (!ort_infer_in_ranked(x, a_input) || !ort_infer_in_ranked(x, b_input))
        return ORT_OK;
    const ort_type *ta = &x->in[a_input]->type, *tb = &x->in[b_input]->type;
    if (ta->rank == 0 || tb->rank == 0)
        return ort_infer_fail(x, err, "a matrix product needs operands of rank 1 and more");
    ort_dim a[ORT_MAX_RANK], b[ORT_MAX_RANK], out[ORT_MAX_RANK];
    operand_dims(ta, ort_node_attr_int(x->node, "transA") != 0,
                 ort_node_attr_int(x->node, "transBatchA") != 0, a);
    operand_dims(tb, ort_node_attr_int(x->node, "transB") != 0,
                 ort_node_attr_int(x->node, "transBatchB") != 0, b);
    ort_dim inner_a = a[ta->rank - 1], inner_b = tb->rank == 1 ? b[0] : b[tb->rank - 2];
    if (ort_dim_differ(inner_a, inner_b)) {
        char left[64], right[64];
        return ort_infer_fail(x, err, "inner dims differ: A has %s columns, B has %s rows",
                              ort_dim_format(x->dims, inner_a, left, sizeof left),
                              ort_dim_format(x->dims, inner_b, right, sizeof right));
    }
    int batch_a = ta->rank > 2 ? ta->rank - 2 : 0, batch_b = tb->rank > 2 ? tb->rank - 2 : 0;
    int batch = batch_a > batch_b ? batch_a : batch_b, rank = batch;
    for (int d = 0; d < batch; d++) {
        int i = d - (batch - batch_a), j = d - (batch - batch_b);
        if (i < 0 || j < 0)
            out[d] = i < 0 ? b[j] : a[i];
        else if (!ort_dim_broadcast(x->dims, a[i], b[j], &out[d]))
            return ort_infer_fail(x, err, "batch dims %lld and %lld don't broadcast",
                                  (long long)a[i].size, (long long)b[j].size);
    }
    if (ta->rank > 1)
        out[rank++] = a[ta->rank - 2];
    if (tb->rank > 1)
        out[rank++] = b[tb->rank - 1];
    ort_infer_set_shape(x, 0, rank, out);
    return ORT_OK;
}

ort_status ort_gemm_infer_shape(ort_infer *x, int a_input, int b_input, ort_error *err)
{
    ort_dim out[2] = {ort_dim_unknown(), ort_dim_unknown()};
    ort_dim ka = ort_dim_unknown(), kb = ort_dim_unknown();
    ORT_TRY(ort_infer_need_rank(x, a_input, 2, err));
    ORT_TRY(ort_infer_need_rank(x, b_input, 2, err));
    bool trans_a = ort_node_attr_int(x->node, "transA") != 0;
    bool trans_b = ort_node_attr_int(x->node, "transB") != 0;
    if (ort_infer_in_ranked(x, a_input)) {
        out[0] = x->in[a_input]->type.dim[trans_a];
        ka = x->in[a_input]->type.dim[!trans_a];
    }
    if (ort_infer_in_ranked(x, b_input)) {
        out[1] = x->in[b_input]->type.dim[!trans_b];
        kb = x->in[b_input]->type.dim[trans_b];
    }
    if (ort_dim_differ(ka, kb)) {
        char left[64], right[64];
        return ort_infer_fail(x, err, "inner dims differ: A has %s, B has %s",
                              ort_dim_format(x->dims, ka, left, sizeof left),
                              ort_dim_format(x->dims, kb, right, sizeof right));
    }
    ort_infer_set_shape(x, 0, 2, out);
    return ORT_OK;
}

ort_status ort_matmul_infer(ort_infer *x, ort_error *err)
{
    return ort_matmul_infer_shape(x, 0, 1, err);
}

ort_status ort_gemm_infer(ort_infer *x, ort_error *err)
{
    return ort_gemm_infer_shape(x, 0, 1, err);
}

void ort_matmul_cost(const ort_infer *x, ort_cost *cost)
{
    if (!ort_infer_in_ranked(x, 0) || x->out[0].type.rank < 0 || x->in[0]->type.rank < 1)
        return;
    const ort_type *a = &x->in[0]->type, *y = &x->out[0].type;
    int inner = a->rank - 1;
    if (a->rank > 1 && ort_node_attr_int(x->node, "transA"))
        inner = a->rank - 2;
    double macs = ort_dim_known(a->dim[inner]) ? (double)a->dim[inner].size : 0;
    for (int d = 0; d < y->rank; d++)
        macs *= ort_dim_known(y->dim[d]) ? (double)y->dim[d].size : 0;
    cost->macs = macs;
}

/* ---- the described problem */

void ort_matmul_strides(const ort_shape *s, bool trans, bool trans_batch, int64_t *row,
                        int64_t *column, int64_t *batch, int64_t *batch_dim, int *batch_rank)
{
    int64_t stride[ORT_MAX_RANK];
    int rank = s->rank;
    ort_shape_strides(s, stride);
    *batch_rank = rank > 2 ? rank - 2 : 0;
    int first = trans_batch && rank > 2 ? 1 : 0;
    for (int d = 0; d < *batch_rank; d++) {
        batch[d] = stride[d + first];
        batch_dim[d] = s->dim[d + first];
    }
    *row = rank < 2 ? 0 : trans_batch ? stride[0] : stride[rank - 2];
    *column = stride[rank - 1];
    if (trans && rank >= 2) {
        int64_t t = *row;
        *row = *column;
        *column = t;
    }
}

ort_status ort_matmul_describe(const ort_shape *a, const ort_shape *b, const matmul_state *s,
                               matmul_plan *plan, ort_error *err)
{
    int64_t as[ORT_MAX_RANK], bs[ORT_MAX_RANK], ad[ORT_MAX_RANK], bd[ORT_MAX_RANK];
    int ar, br;
    if (a->rank < 1 || b->rank < 1)
        return ort_error_set(err, ORT_ERROR_MODEL, "a matrix product needs rank 1 and more");
    ort_matmul_strides(a, s->trans_a, s->trans_batch_a, &plan->a_row, &plan->a_col, as, ad, &ar);
    ort_matmul_strides(b, s->trans_b, s->trans_batch_b, &plan->b_row, &plan->b_col, bs, bd, &br);
    if (b->rank == 1) {
        plan->b_row = plan->b_col;
        plan->b_col = 1;
    }
    int64_t a_last = a->dim[a->rank - 1], b_last = b->dim[b->rank - 1];
    int64_t a_other = a->rank > 1 ? a->dim[s->trans_batch_a ? 0 : a->rank - 2] : 1;
    int64_t b_other = b->rank > 1 ? b->dim[s->trans_batch_b ? 0 : b->rank - 2] : 1;
    bool swap_a = s->trans_a && a->rank > 1, swap_b = s->trans_b && b->rank > 1;
    plan->m = swap_a ? a_last : a_other;
    plan->k = swap_a ? a_other : a_last;
    int64_t kb = b->rank == 1 ? b_last : swap_b ? b_last : b_other;
    plan->n = b->rank == 1 ? 1 : swap_b ? b_other : b_last;
    if (kb != plan->k)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "inner dims differ: A has %lld columns, B has %lld rows",
                             (long long)plan->k, (long long)kb);
    plan->batch_rank = ar > br ? ar : br;
    plan->batch = 1;
    for (int d = 0; d < plan->batch_rank; d++) {
        int i = d - (plan->batch_rank - ar), j = d - (plan->batch_rank - br);
        int64_t da = i < 0 ? 1 : ad[i], db = j < 0 ? 1 : bd[j];
        if (da != db && da != 1 && db != 1)
            return ort_error_set(err, ORT_ERROR_MODEL, "batch dims %lld and %lld don't broadcast",
                                 (long long)da, (long long)db);
        plan->batch_dim[d] = da == 1 ? db : da;
        plan->a_batch[d] = da == 1 ? 0 : as[i];
        plan->b_batch[d] = db == 1 ? 0 : bs[j];
        plan->batch *= plan->batch_dim[d];
    }
    bool b_shared = true, a_rows = plan->batch_rank > 0 && plan->a_col == 1;
    int64_t next = plan->m * plan->a_row;
    for (int d = plan->batch_rank - 1; d >= 0; d--) {
        b_shared = b_shared && (plan->b_batch[d] == 0 || plan->batch_dim[d] == 1);
        a_rows = a_rows && (plan->batch_dim[d] == 1 || plan->a_batch[d] == next);
        next *= plan->batch_dim[d];
    }
    if (plan->m == 1 && a_rows)
        plan->a_row = plan->k;
    if (b_shared && a_rows && plan->a_row == plan->k) { /* one tall product */
        plan->m *= plan->batch;
        plan->batch = 1;
        plan->batch_rank = 0;
    }
    return ORT_OK;
}

/* conv_shape.c - a convolution by its shapes. */
#include "op/shared/conv_shape.h"

#include "base/checked.h"

ort_status ort_conv_infer_shape(ort_infer *x, int x_input, int w_input, ort_error *err)
{
    ort_window_spec spec;
    ort_dim out[ORT_MAX_RANK];
    ORT_TRY(ort_window_read(x->node, &spec, err));
    bool has_x = ort_infer_in_ranked(x, x_input), has_w = ort_infer_in_ranked(x, w_input);
    if (!has_x && !has_w)
        return ORT_OK;
    const ort_type *tx = has_x ? &x->in[x_input]->type : NULL;
    const ort_type *tw = has_w ? &x->in[w_input]->type : NULL;
    int rank = has_x ? tx->rank : tw->rank;
    if (rank < 3)
        return ort_infer_fail(x, err, "input %d has rank %d, a convolution needs 3 and more",
                              has_x ? x_input : w_input, rank);
    if (has_x && has_w && tx->rank != tw->rank)
        return ort_infer_fail(x, err, "the input has rank %d, the weight %d", tx->rank, tw->rank);
    int64_t group = ort_node_attr_int(x->node, "group");
    if (group < 1)
        return ort_infer_fail(x, err, "attribute group is %lld", (long long)group);
    if (has_x && has_w && ort_dim_known(tx->dim[1]) && ort_dim_known(tw->dim[1]) &&
        (tw->dim[1].size > INT64_MAX / group || tx->dim[1].size != tw->dim[1].size * group))
        return ort_infer_fail(x, err,
                              "the input has %lld channels, but the weight is for %lld in each of "
                              "%lld groups", (long long)tx->dim[1].size,
                              (long long)tw->dim[1].size, (long long)group);
    if (has_w && ort_dim_known(tw->dim[0]) && tw->dim[0].size % group)
        return ort_infer_fail(x, err, "%lld output channels don't divide into %lld groups",
                              (long long)tw->dim[0].size, (long long)group);
    out[0] = has_x ? tx->dim[0] : ort_dim_unknown();
    out[1] = has_w ? tw->dim[0] : ort_dim_unknown();
    ort_dim unknown[ORT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        unknown[i] = ort_dim_unknown();
    ORT_TRY(ort_window_infer(x, &spec, rank - 2, has_x ? tx->dim + 2 : unknown,
                             has_w ? tw->dim + 2 : unknown, out + 2, err));
    ort_infer_set_shape(x, 0, rank, out);
    return ORT_OK;
}

ort_status ort_conv_infer(ort_infer *x, ort_error *err)
{
    return ort_conv_infer_shape(x, 0, 1, err);
}

static double known_product(const ort_type *t, int first)
{
    double product = 1;
    for (int d = first; d < t->rank; d++)
        product *= ort_dim_known(t->dim[d]) ? (double)t->dim[d].size : 0;
    return product;
}

void ort_conv_cost(const ort_infer *x, ort_cost *cost)
{
    int w = x->in_count > 4 ? 3 : 1; /* QLinearConv has it after three inputs of x */
    if (ort_infer_in_ranked(x, w) && x->out[0].type.rank > 0)
        cost->macs = known_product(&x->in[w]->type, 1) * known_product(&x->out[0].type, 0);
    if (ort_infer_in_ranked(x, w))
        cost->of_bytes = x->in[w]->type.dtype == ORT_DTYPE_INT8 ||
                         x->in[w]->type.dtype == ORT_DTYPE_UINT8;
}

ort_status ort_conv_window(const ort_window_spec *spec, int64_t group, const ort_shape *x,
                           const ort_shape *w, ort_window *window, ort_error *err)
{
    if (x->rank < 3 || w->rank != x->rank || group < 1 || w->dim[0] % group ||
        w->dim[1] > INT64_MAX / group || x->dim[1] != w->dim[1] * group)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "input and weight don't fit: ranks %d and %d, %lld channels for %lld "
                             "groups of %lld", x->rank, w->rank,
                             (long long)(x->rank > 1 ? x->dim[1] : 0), (long long)group,
                             (long long)(w->rank > 1 ? w->dim[1] : 0));
    return ort_window_resolve(spec, x->rank - 2, x->dim + 2, w->dim + 2, window, err);
}

int64_t ort_conv_groups(const conv_plan *p)
{
    int64_t fit = (32 << 10) / (p->s.channel * p->group_channels * (int64_t)sizeof(float) + 1);
    int64_t groups = ort_max_i64(ort_min_i64(ort_min_i64(fit, 32), p->group), 1);
    while (p->group % groups)
        groups--;
    return groups;
}

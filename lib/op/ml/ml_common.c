/* ml_common.c - labels, post transforms and inference shared by the ai.onnx.ml families. */
#include "op/ml/ml_common.h"

#include <math.h>
#include <string.h>

ort_ml_labels ort_ml_read_labels(const ort_node *node, const char *ints, const char *strings)
{
    ort_ml_labels labels = {0};
    labels.strings = ort_node_strings(node, strings, &labels.count);
    if (labels.count == 0) {
        labels.strings = NULL;
        labels.ints = ort_node_ints(node, ints, &labels.count);
    }
    return labels;
}

void ort_ml_set_label(const ort_ml_labels *labels, ort_tensor *out, int64_t row, int64_t index)
{
    if (labels->strings != NULL) {
        static const ort_string none = {"", 0};
        ((ort_string *)out->data)[row] =
            index < (int64_t)labels->count ? labels->strings[index] : none;
    } else {
        ((int64_t *)out->data)[row] =
            labels->ints != NULL && index < (int64_t)labels->count ? labels->ints[index] : index;
    }
}

double ort_ml_logistic(double x)
{
    double v = 1 / (1 + exp(-fabs(x)));
    return x < 0 ? 1 - v : v;
}

/* Inverse error function by Winitzki's approximation (a = 0.147), as the reference has it. */
double ort_ml_probit(double p)
{
    double x = 2 * p - 1, sign = x < 0 ? -1 : 1, rest = (1 - x) * (1 + x);
    if (rest == 0)
        return 0;
    double l = log(rest), v = 2 / (M_PI * 0.147) + 0.5 * l;
    return 1.41421356 * sign * sqrt(sqrt(v * v - l / 0.147) - v);
}

static void softmax(double *scores, int64_t count, bool keep_zeros)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        max = scores[i] > max ? scores[i] : max;
    for (int64_t i = 0; i < count; i++) {
        /* SOFTMAX_ZERO: a score of zero stays (almost) zero instead of becoming exp(-max). */
        if (keep_zeros && fabs(scores[i]) <= 1e-7)
            scores[i] *= exp(-max);
        else
            scores[i] = exp(scores[i] - max);
        sum += scores[i];
    }
    for (int64_t i = 0; i < count; i++)
        scores[i] = sum == 0 ? 0.5 : scores[i] / sum;
}

void ort_ml_post_row(ort_ml_post post, double *scores, int64_t count)
{
    switch (post) {
    case ORT_ML_NONE:
        break;
    case ORT_ML_SOFTMAX:
    case ORT_ML_SOFTMAX_ZERO:
        softmax(scores, count, post == ORT_ML_SOFTMAX_ZERO);
        break;
    case ORT_ML_LOGISTIC:
        for (int64_t i = 0; i < count; i++)
            scores[i] = ort_ml_logistic(scores[i]);
        break;
    case ORT_ML_PROBIT:
        for (int64_t i = 0; i < count; i++)
            scores[i] = ort_ml_probit(scores[i]);
        break;
    }
}

void ort_ml_load_row(const ort_tensor *t, int64_t first, int64_t count, double *out)
{
    switch (t->dtype) {
    case ORT_DTYPE_FLOAT:
        for (int64_t i = 0; i < count; i++)
            out[i] = (double)((const float *)t->data)[first + i];
        break;
    case ORT_DTYPE_DOUBLE:
        if (count > 0)
            memcpy(out, (const double *)t->data + first, (size_t)count * sizeof *out);
        break;
    case ORT_DTYPE_INT64:
        for (int64_t i = 0; i < count; i++)
            out[i] = (double)((const int64_t *)t->data)[first + i];
        break;
    case ORT_DTYPE_INT32:
        for (int64_t i = 0; i < count; i++)
            out[i] = (double)((const int32_t *)t->data)[first + i];
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            out[i] = ort_tensor_get_f64(t, first + i);
    }
}

void ort_ml_rows(const ort_tensor *t, int64_t *rows, int64_t *features)
{
    int rank = t->shape.rank;
    *features = rank == 0 ? 1 : t->shape.dim[rank - 1];
    *rows = ort_shape_count_range(&t->shape, 0, rank > 0 ? rank - 1 : 0);
}

static ort_dim row_dim(const ort_infer *x)
{
    if (!ort_infer_in_ranked(x, 0))
        return ort_dim_unknown();
    return x->in[0]->type.rank == 2 ? x->in[0]->type.dim[0] : ort_dim_of(1);
}

ort_status ort_ml_infer_rows(ort_infer *x, int64_t columns, ort_error *err)
{
    ort_dim dims[2] = {row_dim(x), columns >= 0 ? ort_dim_of(columns) : ort_dim_unknown()};
    if (ort_infer_in_ranked(x, 0) && x->in[0]->type.rank > 2)
        return ort_infer_fail(x, err, "input X has rank %d, needs [N, F]", x->in[0]->type.rank);
    ort_infer_set_shape(x, 0, 2, dims);
    return ORT_OK;
}

ort_status ort_ml_infer_classifier(ort_infer *x, const ort_ml_labels *labels, int64_t classes,
                                   ort_error *err)
{
    ort_dim dims[2] = {row_dim(x), classes >= 0 ? ort_dim_of(classes) : ort_dim_unknown()};
    if (ort_infer_in_ranked(x, 0) && x->in[0]->type.rank > 2)
        return ort_infer_fail(x, err, "input X has rank %d, needs [N, F]", x->in[0]->type.rank);
    ort_infer_set_type(x, 0, labels->strings != NULL ? ORT_DTYPE_STRING : ORT_DTYPE_INT64, 1, dims);
    ort_infer_set_type(x, 1, ORT_DTYPE_FLOAT, 2, dims);
    return ORT_OK;
}

/* ml_features.c - feature columns of ai.onnx.ml: Scaler, Normalizer, Binarizer, Imputer,
 * OneHotEncoder, FeatureVectorizer, ArrayFeatureExtractor.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/ml/ml_common.h"

/* ---- Scaler: (x - offset) * scale, per feature or for all */

static ort_status scaler_infer(ort_infer *x, ort_error *err)
{
    size_t offsets = 0, scales = 0;
    (void)ort_node_floats(x->node, "offset", &offsets);
    (void)ort_node_floats(x->node, "scale", &scales);
    if (offsets != scales)
        return ort_infer_fail(x, err, "offset has %zu numbers and scale %zu: as many are needed",
                              offsets, scales);
    return ORT_OK;
}

static ort_status imputer_infer(ort_infer *x, ort_error *err)
{
    size_t floats = 0, ints = 0;
    (void)ort_node_floats(x->node, "imputed_value_floats", &floats);
    (void)ort_node_ints(x->node, "imputed_value_int64s", &ints);
    if (floats == 0 && ints == 0)
        return ort_infer_fail(x, err, "imputed_value_floats or imputed_value_int64s must say what "
                              "stands in");
    return ORT_OK;
}

/* A row of doubles as workspace. */
static ort_status row_shape(ort_shaping *s, ort_error *err)
{
    int64_t rows, features;
    ort_ml_rows(s->in[0], &rows, &features);
    s->workspace_bytes = (size_t)features * sizeof(double);
    return ORT_OK;
}

typedef struct scaler_state {
    ort_floats offset, scale;
} scaler_state;

static const ort_bind scaler_bind[] = {
    ORT_BIND(scaler_state, offset), ORT_BIND(scaler_state, scale), {0}};

static ort_status scaler_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    float *out = ort_call_out(call, 0)->data;
    const scaler_state *state = call->state;
    size_t offsets = state->offset.count, scales = state->scale.count;
    int64_t rows, features;
    ort_ml_rows(x, &rows, &features);
    if ((offsets > 1 && (int64_t)offsets != features) ||
        (scales > 1 && (int64_t)scales != features))
        return ort_call_fail(call, err, "input X has %lld features, offset has %zu and scale %zu",
                             (long long)features, offsets, scales);
    double *row = call->workspace;
    const float none = 0, one = 1;
    const float *o = offsets > 0 ? state->offset.ptr : &none;
    const float *s = scales > 0 ? state->scale.ptr : &one;
    int64_t step_o = offsets > 1, step_s = scales > 1;
    for (int64_t r = 0; r < rows; r++) {
        ort_ml_load_row(x, r * features, features, row);
        for (int64_t f = 0; f < features; f++)
            out[r * features + f] =
                (float)((row[f] - (double)o[f * step_o]) * (double)s[f * step_s]);
    }
    return ORT_OK;
}

/* ---- Normalizer: each row by its maximum, sum or length; a divisor of zero leaves the row */

typedef struct normalizer_state {
    enum { NORM_MAX, NORM_L1, NORM_L2 } norm;
} normalizer_state;

static const ort_bind normalizer_bind[] = {
    ORT_BIND(normalizer_state, norm, ORT_WORDS("MAX L1 L2")), {0}};

static double divisor(char kind, const ort_tensor *x, int64_t first, int64_t count)
{
    double sum = kind == 'M' ? -INFINITY : 0;
    for (int64_t i = first; i < first + count; i++) {
        double v = ort_tensor_get_f64(x, i);
        if (kind == 'M')
            sum = fmax(sum, v);
        else
            sum += kind == '1' ? fabs(v) : v * v;
    }
    return kind == '2' ? sqrt(sum) : sum;
}

static ort_status normalizer_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    char kind = "M12"[((const normalizer_state *)call->state)->norm];
    float *out = ort_call_out(call, 0)->data;
    int64_t rows, features;
    ort_ml_rows(x, &rows, &features);
    for (int64_t r = 0; r < rows; r++) {
        double d = divisor(kind, x, r * features, features);
        for (int64_t i = r * features; i < (r + 1) * features; i++)
            out[i] = (float)(d != 0 ? ort_tensor_get_f64(x, i) / d : ort_tensor_get_f64(x, i));
    }
    return ORT_OK;
}

/* ---- Binarizer: 1 above the threshold, else 0 */

typedef struct binarizer_state {
    double threshold;
} binarizer_state;

static const ort_bind binarizer_bind[] = {ORT_BIND(binarizer_state, threshold), {0}};

static ort_status binarizer_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    double threshold = ((const binarizer_state *)call->state)->threshold;
    for (int64_t i = 0; i < ort_tensor_count(x); i++)
        ort_tensor_set_i64(out, i, ort_tensor_get_f64(x, i) > threshold);
    return ORT_OK;
}

/* ---- Imputer */

static void impute_row(const ort_tensor *x, int64_t first, int64_t features, double replaced,
                       const float *by, bool per_feature, double *row, ort_tensor *out)
{
    bool is_nan = isnan(replaced);
    ort_ml_load_row(x, first, features, row);
    for (int64_t f = 0; f < features; f++)
        if (is_nan ? isnan(row[f]) : row[f] == replaced)
            row[f] = (double)by[per_feature ? f : 0];
    if (out->dtype == ORT_DTYPE_DOUBLE)
        memcpy((double *)out->data + first, row, (size_t)features * sizeof *row);
    for (int64_t f = 0; f < features && out->dtype == ORT_DTYPE_FLOAT; f++)
        ((float *)out->data)[first + f] = (float)row[f];
}

typedef struct imputer_state {
    ort_floats floats;
    ort_ints ints;
    double replaced;
    int64_t replaced_int;
} imputer_state;

static const ort_bind imputer_bind[] = {
    ORT_BIND_AS(imputer_state, floats, "imputed_value_floats"),
    ORT_BIND_AS(imputer_state, ints, "imputed_value_int64s"),
    ORT_BIND_AS(imputer_state, replaced, "replaced_value_float"),
    ORT_BIND_AS(imputer_state, replaced_int, "replaced_value_int64"), {0}};

static ort_status imputer_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    const imputer_state *state = call->state;
    bool is_float = x->dtype == ORT_DTYPE_FLOAT || x->dtype == ORT_DTYPE_DOUBLE;
    int64_t rows, features;
    ort_ml_rows(x, &rows, &features);
    size_t count = is_float ? state->floats.count : state->ints.count;
    if (count == 0 || (count > 1 && (int64_t)count != features))
        return ort_call_fail(call, err,
                             "input X has %lld features of type %s, %zu values to impute",
                             (long long)features, ort_dtype_name(x->dtype), count);
    for (int64_t r = 0; r < rows && is_float; r++)
        impute_row(x, r * features, features, state->replaced, state->floats.ptr, count > 1,
                   call->workspace, out);
    for (int64_t i = 0; i < rows * features && !is_float; i++) {
        int64_t v = ort_tensor_get_i64(x, i);
        size_t f = count > 1 ? (size_t)(i % features) : 0;
        ort_tensor_set_i64(out, i, v == state->replaced_int ? state->ints.ptr[f] : v);
    }
    return ORT_OK;
}

/* ---- OneHotEncoder */

static int64_t category_count(const ort_node *node)
{
    size_t n = 0;
    ort_node_strings(node, "cats_strings", &n);
    if (n == 0)
        ort_node_ints(node, "cats_int64s", &n);
    return (int64_t)n;
}

static ort_status one_hot_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[ORT_MAX_RANK];
    if (!ort_infer_in_ranked(x, 0))
        return ORT_OK;
    int rank = x->in[0]->type.rank;
    if (rank + 1 > ORT_MAX_RANK)
        return ort_infer_fail(x, err, "input X has rank %d, at most %d is known", rank,
                              ORT_MAX_RANK - 1);
    memcpy(dims, x->in[0]->type.dim, (size_t)rank * sizeof *dims);
    dims[rank] = ort_dim_of(category_count(x->node));
    ort_infer_set_shape(x, 0, rank + 1, dims);
    return ORT_OK;
}

typedef struct one_hot_state {
    ort_ints ints;
    ort_strings strings;
    bool zeros;
} one_hot_state;

static const ort_bind one_hot_bind[] = {
    ORT_BIND_AS(one_hot_state, ints, "cats_int64s"),
    ORT_BIND_AS(one_hot_state, strings, "cats_strings"), ORT_BIND(one_hot_state, zeros), {0}};

static int64_t find_category(const one_hot_state *state, const ort_tensor *x, int64_t i)
{
    if (x->dtype == ORT_DTYPE_STRING) {
        const ort_string *s = &((const ort_string *)x->data)[i];
        const ort_string *cats = state->strings.ptr;
        for (size_t c = 0; c < state->strings.count; c++)
            if (cats[c].length == s->length &&
                (s->length == 0 || !memcmp(cats[c].ptr, s->ptr, s->length)))
                return (int64_t)c;
        return -1;
    }
    int64_t v = ort_tensor_get_i64(x, i);
    for (size_t c = 0; c < state->ints.count; c++)
        if (state->ints.ptr[c] == v)
            return (int64_t)c;
    return -1;
}

static ort_status one_hot_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *out = ort_call_out(call, 0);
    int64_t n = category_count(call->node);
    const one_hot_state *state = call->state;
    memset(out->data, 0, ort_tensor_bytes(out));
    for (int64_t i = 0; i < ort_tensor_count(x); i++) {
        int64_t c = find_category(state, x, i);
        if (c >= 0)
            ((float *)out->data)[i * n + c] = 1;
        else if (!state->zeros)
            return ort_call_fail(call, err, "element %lld of X is no known category and zeros is 0",
                                 (long long)i);
    }
    return ORT_OK;
}

static ort_status one_hot_prepare(ort_prep *p, ort_error *err)
{
    size_t strings = ((const one_hot_state *)p->state)->strings.count;
    if ((strings > 0) != (ort_prep_dtype(p, 0) == ORT_DTYPE_STRING))
        return ort_prep_fail(p, err, "input X is %s, the categories are %s",
                             ort_dtype_name(ort_prep_dtype(p, 0)),
                             strings > 0 ? "strings" : "integers");
    return ORT_OK;
}

/* ---- FeatureVectorizer: columns side by side, cut or filled with zeros to inputdimensions. A
 * vector is one row of features; behind the first dim of a tensor of more all are features. */

static ort_status vectorizer_infer(ort_infer *x, ort_error *err)
{
    size_t n = 0;
    const int64_t *widths = ort_node_ints(x->node, "inputdimensions", &n);
    ort_dim total = ort_dim_of(0), rows = ort_dim_unknown();
    for (int i = 0; i < x->in_count; i++) {
        ort_dim width = ort_dim_unknown();
        if (ort_infer_in_ranked(x, i)) {
            const ort_type *t = &x->in[i]->type;
            width = ort_dim_of(1);
            for (int d = t->rank > 1 ? 1 : 0; d < t->rank; d++)
                width = ort_dim_mul(x->dims, width, t->dim[d]);
            rows = ort_dim_merge(rows, t->rank > 1 ? t->dim[0] : ort_dim_of(1));
        }
        if ((size_t)i < n && widths[i] >= 0)
            width = ort_dim_of(widths[i]);
        total = ort_dim_add(x->dims, total, width);
    }
    ort_infer_set_shape(x, 0, 2, (ort_dim[]){rows, total});
    return ORT_OK;
}

typedef struct vectorizer_state {
    ort_ints widths;
} vectorizer_state;

static const ort_bind vectorizer_bind[] = {
    ORT_BIND_AS(vectorizer_state, widths, "inputdimensions"), {0}};

static ort_status vectorizer_run(ort_call *call, ort_error *err)
{
    ort_tensor *out = ort_call_out(call, 0);
    const ort_ints *widths = &((const vectorizer_state *)call->state)->widths;
    int64_t rows = out->shape.dim[0], total = out->shape.dim[1], at = 0;
    memset(out->data, 0, ort_tensor_bytes(out));
    for (int i = 0; i < call->in_count; i++) {
        const ort_tensor *x = ort_call_in(call, i);
        int matrix = x->shape.rank > 1;
        int64_t x_rows = ort_shape_count_range(&x->shape, 0, matrix);
        int64_t features = ort_shape_count_range(&x->shape, matrix, x->shape.rank);
        bool given = (size_t)i < widths->count && widths->ptr[i] >= 0;
        int64_t width = given ? widths->ptr[i] : features;
        if (x_rows != rows)
            return ort_call_fail(call, err, "input %d has %lld rows, the first has %lld", i,
                                 (long long)x_rows, (long long)rows);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t f = 0; f < features && f < width; f++)
                ((float *)out->data)[r * total + at + f] =
                    (float)ort_tensor_get_f64(x, r * features + f);
        at += width;
    }
    return ORT_OK;
}

/* ---- ArrayFeatureExtractor: columns of the last axis by index */

static ort_status extractor_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[ORT_MAX_RANK], count = ort_dim_of(1);
    if (!ort_infer_in_ranked(x, 0) || !ort_infer_in_ranked(x, 1))
        return ORT_OK;
    const ort_type *data = &x->in[0]->type, *index = &x->in[1]->type;
    for (int i = 0; i < index->rank; i++)
        count = ort_dim_mul(x->dims, count, index->dim[i]);
    int rank = data->rank < 2 ? 2 : data->rank;
    dims[0] = ort_dim_of(1);
    for (int i = 0; i + 1 < data->rank; i++)
        dims[i] = data->dim[i];
    dims[rank - 1] = count;
    ort_infer_set_shape(x, 0, rank, dims);
    return ORT_OK;
}

static ort_status extractor_run(ort_call *call, ort_error *err)
{
    const ort_tensor *x = ort_call_in(call, 0), *index = ort_call_in(call, 1);
    ort_tensor *out = ort_call_out(call, 0);
    size_t size = (size_t)ort_dtype_get(x->dtype)->bits / 8;
    int64_t rows, features, count = ort_tensor_count(index);
    const int64_t *at = index->data;
    ort_ml_rows(x, &rows, &features);
    for (int64_t k = 0; k < count; k++)
        if (at[k] < 0 || at[k] >= features)
            return ort_call_fail(call, err, "index %lld is outside [0, %lld)", (long long)at[k],
                                 (long long)features);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < count; k++)
            memcpy((char *)out->data + (size_t)(r * count + k) * size,
                   (const char *)x->data + (size_t)(r * features + at[k]) * size, size);
    return ORT_OK;
}

/* ---- rows */

static const ort_op_impl scaler = {
    .state = sizeof(scaler_state), .bind = scaler_bind,
    .rule = "same", .infer = scaler_infer, .shape = row_shape, .run = scaler_run,
};
static const ort_op_impl normalizer = {
    .state = sizeof(normalizer_state), .bind = normalizer_bind,
    .rule = "same", .run = normalizer_run,
};
static const ort_op_impl binarizer = {
    .state = sizeof(binarizer_state), .bind = binarizer_bind,
    .rule = "same", .run = binarizer_run,
};
static const ort_op_impl imputer = {
    .state = sizeof(imputer_state), .bind = imputer_bind,
    .rule = "same", .infer = imputer_infer, .shape = row_shape, .run = imputer_run,
};
static const ort_op_impl one_hot = {
    .state = sizeof(one_hot_state), .bind = one_hot_bind,
    .infer = one_hot_infer, .prepare = one_hot_prepare, .run = one_hot_run,
};
static const ort_op_impl vectorizer = {
    .state = sizeof(vectorizer_state), .bind = vectorizer_bind,
    .infer = vectorizer_infer, .run = vectorizer_run,
};
static const ort_op_impl extractor = {.infer = extractor_infer, .run = extractor_run};

const ort_op ort_ops_ml_features[] = {
    {ML, "Scaler", 1, "X:T -> Y:f32", "T:f32,f64,i64,i32", "offset:fs scale:fs", 0, &scaler},
    {ML, "Normalizer", 1, "X:T -> Y:f32", "T:f32,f64,i64,i32", "norm:s=MAX", 0, &normalizer},
    {ML, "Binarizer", 1, "X:T -> Y:T", "T:f32,f64,i64,i32", "threshold:f=0", 0, &binarizer},
    {ML, "Imputer", 1, "X:T -> Y:T", "T:f32,f64,i64,i32",
     "imputed_value_floats:fs imputed_value_int64s:is replaced_value_float:f=0 "
     "replaced_value_int64:i=0",
     0, &imputer},
    {ML, "OneHotEncoder", 1, "X:T -> Y:f32", "T:str,i64,i32,f32,f64",
     "cats_int64s:is cats_strings:ss zeros:i=1", 0, &one_hot},
    {ML, "FeatureVectorizer", 1, "X*:T1 -> Y:f32", "T1:i32,i64,f32,f64", "inputdimensions:is", 0,
     &vectorizer},
    {ML, "ArrayFeatureExtractor", 1, "X:T,Y:i64 -> Z:T", "T:f32,f64,i64,i32,str", "", 0,
     &extractor},
    {0},
};

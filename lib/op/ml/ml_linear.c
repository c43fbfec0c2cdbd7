/* ml_linear.c - LinearClassifier, LinearRegressor, SVMClassifier and SVMRegressor.
 *
 * Support vector machines follow libsvm: one-against-one votes, Platt's sigmoid per pair, and
 * pairwise coupling (Wu, Lin and Weng, 2004, second method) when prob_a and prob_b are given. Rows
 * are the grid. Kernels of some rows come from one product of them by the support vectors, in
 * double: squared distances are |x|^2 + |v|^2 - 2 x v, around the mean of the support vectors, so
 * that where the data lie costs no digits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "op/ml/ml_common.h"
#include "op/shared/matrix.h"

enum { ROWS_PER_TASK = 8, MAX_CLASSES = 4096 };

typedef enum kernel_kind { KERNEL_LINEAR, KERNEL_POLY, KERNEL_RBF, KERNEL_SIGMOID } kernel_kind;

typedef struct linear_state {
    ort_ml_labels labels;
    ort_ml_post post;
    int64_t targets;          /* rows of coefficients (linear), classes (svm) */
    int64_t outputs;          /* columns of the scores */
    ort_floats coefficients, intercepts, rho, prob_a, prob_b, support, kernel_params;
    ort_ints per_class;
    int64_t vectors, features; /* support vectors and their length */
    kernel_kind kernel;
    double gamma, coef0, degree;
    bool one_class, all_positive, classifier;
    const ort_kernels *k;
    double *packed;           /* support vectors as columns, less `center` for KERNEL_RBF */
    double *center, *squares; /* [features]; [vectors] |v|^2 of those */
} linear_state;

#define LINEAR_POST                                                                                \
    ORT_BIND_AS(linear_state, post, "post_transform", ORT_WORDS(ORT_ML_POST_WORDS))
static const ort_bind linear_bind[] = {
    LINEAR_POST, ORT_BIND(linear_state, coefficients), ORT_BIND(linear_state, intercepts),
    ORT_BIND(linear_state, targets, ORT_WITHIN(1, INT32_MAX), ORT_ELSE(1)), {0}};
static const ort_bind svm_bind[] = {
    LINEAR_POST,
    ORT_BIND_AS(linear_state, kernel, "kernel_type", ORT_WORDS("LINEAR POLY RBF SIGMOID")),
    ORT_BIND(linear_state, kernel_params), ORT_BIND(linear_state, coefficients),
    ORT_BIND(linear_state, rho), ORT_BIND(linear_state, prob_a, ORT_MAYBE),
    ORT_BIND(linear_state, prob_b, ORT_MAYBE),
    ORT_BIND_AS(linear_state, support, "support_vectors"),
    ORT_BIND_AS(linear_state, per_class, "vectors_per_class", ORT_MAYBE),
    ORT_BIND_AS(linear_state, vectors, "n_supports", ORT_MAYBE),
    ORT_BIND(linear_state, one_class, ORT_MAYBE), {0}};

typedef struct work {
    const ort_call *call;
    const linear_state *s;
    const ort_tensor *x;
    int64_t rows, features;
    void (*row)(const struct work *w, int64_t row, const double *x, double *space);
} work;

static void do_rows(void *arg, int64_t first, int64_t end, int thread)
{
    const work *w = arg;
    double *space = ort_call_scratch(w->call, thread);
    for (int64_t r = first; r < end; r++) {
        ort_ml_load_row(w->x, r * w->features, w->features, space);
        w->row(w, r, space, space + w->features);
    }
}

static void store(const work *w, int64_t row, const double *scores, int64_t count)
{
    ort_tensor *out = ort_call_out(w->call, w->s->classifier ? 1 : 0);
    for (int64_t i = 0; out != NULL && i < count; i++)
        ((float *)out->data)[row * w->s->outputs + i] = (float)scores[i];
}

static void store_label(const work *w, int64_t row, int64_t label)
{
    ort_tensor *out = ort_call_out(w->call, 0);
    if (out != NULL)
        ort_ml_set_label(&w->s->labels, out, row, label);
}

static int64_t best_of(const double *scores, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

/* ---- linear */

static double dot(const double *x, const float *w, int64_t n)
{
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += x[i + j] * (double)w[i + j];
    for (; i < n; i++)
        sum[0] += x[i] * (double)w[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void linear_scores(const work *w, const double *x, double *scores)
{
    const linear_state *s = w->s;
    for (int64_t t = 0; t < s->targets; t++) {
        scores[t] = dot(x, s->coefficients.ptr + t * w->features, w->features);
        if ((size_t)t < s->intercepts.count)
            scores[t] += (double)s->intercepts.ptr[t];
    }
}

static void linear_class_row(const work *w, int64_t row, const double *x, double *space)
{
    const linear_state *s = w->s;
    linear_scores(w, x, space);
    /* Two labels and one score s: [-s, s], as ONNX's reference evaluator has it, and as converters
     * of scikit-learn write both rows out; every transform then applies. onnxruntime (1.31.1) gives
     * [1 - s, s] here, also where SOFTMAX asks for a transform; LOGISTIC is the same in both. */
    if (s->targets == 1 && s->outputs == 2) {
        space[1] = space[0];
        space[0] = -space[1];
    }
    /* Before the transform: LOGISTIC and SOFTMAX make ties of large scores. */
    if (s->outputs > 1)
        store_label(w, row, best_of(space, s->outputs));
    ort_ml_post_row(s->post, space, s->outputs);
    if (s->outputs == 1) {
        /* One score, one label: the label when it reaches the threshold, else 0 (or ""). */
        bool yes = space[0] >= (s->post == ORT_ML_NONE ? 0.0 : 0.5);
        ort_tensor *out = ort_call_out(w->call, 0);
        if (yes || out == NULL)
            store_label(w, row, 0);
        else if (s->labels.strings != NULL)
            ((ort_string *)out->data)[row] = (ort_string){"", 0};
        else
            ((int64_t *)out->data)[row] = 0;
    }
    store(w, row, space, s->outputs);
}

static void linear_value_row(const work *w, int64_t row, const double *x, double *space)
{
    linear_scores(w, x, space);
    ort_ml_post_row(w->s->post, space, w->s->outputs);
    store(w, row, space, w->s->outputs);
}

static ort_status linear_run(ort_call *call, ort_error *err)
{
    const linear_state *s = call->state;
    work w = {.call = call, .s = s, .x = ort_call_in(call, 0)};
    w.row = s->classifier ? linear_class_row : linear_value_row;
    ort_ml_rows(w.x, &w.rows, &w.features);
    if ((size_t)(w.features * s->targets) != s->coefficients.count)
        return ort_call_fail(call, err, "input X has %lld features, %zu coefficients serve %lld "
                             "targets", (long long)w.features, s->coefficients.count,
                             (long long)s->targets);
    ort_call_range(call, w.rows, ROWS_PER_TASK, do_rows, &w);
    return ORT_OK;
}

static ort_status linear_shape(ort_shaping *s, ort_error *err)
{
    const linear_state *state = s->state;
    int64_t rows, features,
        most = state->outputs > state->targets ? state->outputs : state->targets;
    ort_ml_rows(s->in[0], &rows, &features);
    s->thread_bytes = (size_t)(features + most + 8) * sizeof(double);
    return ORT_OK;
}

static int64_t linear_targets(const ort_node *node)
{
    size_t intercepts = 0, labels;
    ort_node_floats(node, "intercepts", &intercepts);
    labels = ort_ml_read_labels(node, "classlabels_ints", "classlabels_strings").count;
    return intercepts > 0 ? (int64_t)intercepts : labels > 0 ? (int64_t)labels : 1;
}

static int64_t linear_outputs(const ort_node *node)
{
    int64_t targets = linear_targets(node);
    size_t labels = ort_ml_read_labels(node, "classlabels_ints", "classlabels_strings").count;
    return targets == 1 && labels == 2 ? 2 : targets;
}

static ort_status linear_class_infer(ort_infer *x, ort_error *err)
{
    ort_ml_labels labels = ort_ml_read_labels(x->node, "classlabels_ints", "classlabels_strings");
    if (labels.count > 0 && (int64_t)labels.count < linear_targets(x->node))
        return ort_infer_fail(x, err, "classlabels name %zu of %lld classes", labels.count,
                              (long long)linear_targets(x->node));
    if (labels.count == 0 && linear_targets(x->node) > 1)
        return ort_infer_fail(x, err, "classlabels_ints or classlabels_strings must name the "
                              "classes");
    return ort_ml_infer_classifier(x, &labels, linear_outputs(x->node), err);
}

static ort_status read_linear(ort_prep *p, linear_state *s, ort_error *err)
{
    if (s->coefficients.count == 0)
        return ort_prep_fail(p, err, "attribute coefficients is missing or empty");
    if (s->targets > 0 && s->coefficients.count % (size_t)s->targets != 0)
        return ort_prep_fail(p, err, "%zu coefficients can't serve %lld rows of them",
                             s->coefficients.count, (long long)s->targets);
    return ORT_OK;
}

static ort_status linear_class_prepare(ort_prep *p, ort_error *err)
{
    linear_state *s = p->state;
    s->classifier = true;
    s->labels = ort_ml_read_labels(p->node, "classlabels_ints", "classlabels_strings");
    s->targets = linear_targets(p->node);
    s->outputs = linear_outputs(p->node);
    return read_linear(p, s, err);
}

static ort_status linear_value_infer(ort_infer *x, ort_error *err)
{
    return ort_ml_infer_rows(x, ort_node_attr_int(x->node, "targets"), err);
}

static ort_status linear_value_prepare(ort_prep *p, ort_error *err)
{
    linear_state *s = p->state;
    s->outputs = s->targets;
    return read_linear(p, s, err);
}

/* ---- support vector machines */

/* Of two vectors of which one isn't finite. */
static double distance_square(const double *x, const float *v, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = x[i] - (double)v[i];
        sum += d * d;
    }
    return sum;
}

/* Products x v to kernels, in place. */
static void map_products(const linear_state *s, double *p)
{
    for (int64_t v = 0; v < s->vectors && s->kernel == KERNEL_POLY; v++)
        p[v] = pow(p[v] * s->gamma + s->coef0, s->degree);
    for (int64_t v = 0; v < s->vectors && s->kernel == KERNEL_SIGMOID; v++)
        p[v] = tanh(p[v] * s->gamma + s->coef0);
}

static void map_distances(const linear_state *s, const double *x, double square, double *p)
{
    for (int64_t v = 0; v < s->vectors; v++) {
        double squares = square + s->squares[v];
        double d = isfinite(squares)
                       ? fmax(0, squares - 2 * p[v])
                       : distance_square(x, s->support.ptr + v * s->features, s->features);
        p[v] = exp(-s->gamma * d);
    }
}

/* kernels[rows][vectors] of x[rows][features]; `space` holds as much as x. */
static void kernel_rows(const linear_state *s, int64_t rows, const double *x, double *space,
                        double *kernels)
{
    bool centered = s->kernel == KERNEL_RBF;
    const double *a = x;
    for (int64_t i = 0; centered && i < rows * s->features; i++)
        space[i] = x[i] - s->center[i % s->features];
    if (centered)
        a = space;
    ort_product_f64 p = {.m = rows, .n = s->vectors, .depth = s->features, .a = a,
                         .lda = s->features, .packed = s->packed, .c = kernels, .ldc = s->vectors,
                         .alpha = 1};
    ort_matrix_block_f64(s->k, &p);
    for (int64_t r = 0; r < rows; r++) {
        double square = 0;
        for (int64_t i = 0; centered && i < s->features; i++)
            square += a[r * s->features + i] * a[r * s->features + i];
        if (centered)
            map_distances(s, x + r * s->features, square, kernels + r * s->vectors);
        else
            map_products(s, kernels + r * s->vectors);
    }
}

/* Class probabilities from pairwise ones r[i][j]; q and qp are scratch of k*k and k. */
static void couple(int64_t k, const double *r, double *q, double *qp, double *prob, ort_pace *pace)
{
    double eps = 0.005 / (double)k;
    for (int64_t t = 0; t < k; t++) {
        prob[t] = 1.0 / (double)k;
        q[t * k + t] = 0;
        for (int64_t j = 0; j < k; j++) {
            if (j == t)
                continue;
            q[t * k + t] += r[j * k + t] * r[j * k + t];
            q[t * k + j] = j < t ? q[j * k + t] : -r[j * k + t] * r[t * k + j];
        }
    }
    for (int64_t round = 0; round < (k > 100 ? k : 100); round++) {
        double pqp = 0, worst = 0;
        if (ort_pace_over(pace, (uint64_t)k * (uint64_t)k * 3))
            return;
        for (int64_t t = 0; t < k; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < k; j++)
                qp[t] += q[t * k + j] * prob[j];
            pqp += prob[t] * qp[t];
        }
        for (int64_t t = 0; t < k; t++)
            worst = fmax(worst, fabs(qp[t] - pqp));
        if (worst < eps)
            break;
        for (int64_t t = 0; t < k; t++) {
            double diff = (pqp - qp[t]) / q[t * k + t];
            prob[t] += diff;
            pqp = (pqp + diff * (diff * q[t * k + t] + 2 * qp[t])) / (1 + diff) / (1 + diff);
            for (int64_t j = 0; j < k; j++) {
                qp[j] = (qp[j] + diff * q[t * k + j]) / (1 + diff);
                prob[j] /= 1 + diff;
            }
        }
    }
}

/* Decision values of all pairs (i < j) into `scores`, votes per class. */
static void pair_scores(const linear_state *s, const double *kernels, double *scores, double *votes)
{
    int64_t classes = s->targets, pair = 0, at_i = 0;
    memset(votes, 0, (size_t)classes * sizeof *votes);
    ort_pace pace = {0};
    for (int64_t i = 0; i < classes; at_i += s->per_class.ptr[i], i++) {
        if (ort_pace_over(&pace, (uint64_t)s->vectors + (uint64_t)classes))
            return;
        int64_t at_j = at_i + s->per_class.ptr[i];
        for (int64_t j = i + 1; j < classes; at_j += s->per_class.ptr[j], j++, pair++) {
            double sum = (double)s->rho.ptr[(size_t)pair < s->rho.count ? pair : 0];
            sum += dot(kernels + at_i, s->coefficients.ptr + (j - 1) * s->vectors + at_i,
                       s->per_class.ptr[i]);
            sum += dot(kernels + at_j, s->coefficients.ptr + i * s->vectors + at_j,
                       s->per_class.ptr[j]);
            scores[pair] = sum;
            votes[sum > 0 ? i : j] += 1;
        }
    }
}

static void probabilities(const linear_state *s, const double *scores, double *r, double *q,
                          double *qp, double *prob)
{
    int64_t k = s->targets, pair = 0;
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i + 1; j < k; j++, pair++) {
            double p = 1 - ort_ml_logistic(scores[pair] * (double)s->prob_a.ptr[pair] +
                                           (double)s->prob_b.ptr[pair]);
            p = fmin(fmax(p, 1e-7), 1 - 1e-7);
            r[i * k + j] = p;
            r[j * k + i] = 1 - p;
        }
    ort_pace pace = {0};
    couple(k, r, q, qp, prob, &pace);
}

/* Two classes and one decision value: which label, and the two scores. */
static void two_class(const work *w, int64_t row, double value, int64_t label)
{
    const linear_state *s = w->s;
    double pair[2] = {-value, value};
    if (s->outputs == 1) {
        store(w, row, &value, 1);
    } else {
        ort_ml_post_row(s->post, pair, 2);
        store(w, row, pair, 2);
    }
    store_label(w, row, label);
}

static void svm_class_row(const work *w, int64_t row, const double *x, const double *kernels,
                          double *space)
{
    const linear_state *s = w->s;
    int64_t k = s->targets, pairs = k * (k - 1) / 2;
    double *scores = space, *votes = scores + pairs + k;
    double *r = votes + k, *q = r + k * k, *qp = q + k * k, *prob = qp + k;
    if (s->vectors == 0) { /* linear: one hyperplane per class */
        for (int64_t c = 0; c < k; c++)
            scores[c] = (double)s->rho.ptr[0] +
                        dot(x, s->coefficients.ptr + c * w->features, w->features);
        int64_t best = best_of(scores, k);
        ort_ml_post_row(s->post, scores, k);
        store(w, row, scores, k);
        store_label(w, row, best);
        return;
    }
    pair_scores(s, kernels, scores, votes);
    if (s->prob_a.count > 0) {
        probabilities(s, scores, r, q, qp, prob);
        int64_t best = best_of(votes, k); /* as libsvm: probabilities don't choose the label */
        ort_ml_post_row(s->post, prob, k);
        store(w, row, prob, k);
        store_label(w, row, best);
    } else if (k == 2) {
        int64_t best = best_of(votes, 2);
        if (s->all_positive && scores[0] >= 0.5)
            best = 1;
        two_class(w, row, scores[0], best);
    } else {
        int64_t best = best_of(votes, k);
        ort_ml_post_row(s->post, scores, pairs);
        store(w, row, scores, pairs);
        store_label(w, row, best);
    }
}

static void svm_value_row(const work *w, int64_t row, const double *x, const double *kernels,
                          double *space)
{
    const linear_state *s = w->s;
    double sum = s->rho.count > 0 ? (double)s->rho.ptr[0] : 0;
    if (s->vectors == 0)
        sum += dot(x, s->coefficients.ptr, w->features);
    else
        sum += dot(kernels, s->coefficients.ptr, s->vectors);
    space[0] = s->one_class ? (sum > 0 ? 1 : -1) : sum;
    ort_ml_post_row(s->post, space, 1);
    store(w, row, space, 1);
}

static void svm_rows(void *arg, int64_t first, int64_t end, int thread)
{
    const work *w = arg;
    const linear_state *s = w->s;
    int64_t rows = end - first;
    double *x = ort_call_scratch(w->call, thread), *kernels = x + 2 * ROWS_PER_TASK * w->features;
    double *space = kernels + ROWS_PER_TASK * s->vectors;
    for (int64_t r = 0; r < rows; r++)
        ort_ml_load_row(w->x, (first + r) * w->features, w->features, x + r * w->features);
    if (s->vectors > 0)
        kernel_rows(s, rows, x, x + ROWS_PER_TASK * w->features, kernels);
    for (int64_t r = 0; r < rows; r++)
        (s->classifier ? svm_class_row : svm_value_row)(w, first + r, x + r * w->features,
                                                        kernels + r * s->vectors, space);
}

static ort_status svm_run(ort_call *call, ort_error *err)
{
    const linear_state *s = call->state;
    work w = {.call = call, .s = s, .x = ort_call_in(call, 0)};
    int64_t need;
    ort_ml_rows(w.x, &w.rows, &w.features);
    need = s->vectors > 0 ? s->features
                          : (int64_t)s->coefficients.count / (s->classifier ? s->targets : 1);
    if (w.features != need)
        return ort_call_fail(call, err, "input X has %lld features, the model needs %lld",
                             (long long)w.features, (long long)need);
    ort_call_range(call, w.rows, ROWS_PER_TASK, svm_rows, &w);
    return ORT_OK;
}

static ort_status svm_shape(ort_shaping *s, ort_error *err)
{
    const linear_state *state = s->state;
    int64_t rows, features, k = state->targets;
    ort_ml_rows(s->in[0], &rows, &features);
    s->thread_bytes =
        (size_t)(ROWS_PER_TASK * (2 * features + state->vectors) + k * (k - 1) / 2 + 4 * k +
                 2 * k * k + 8) *
        sizeof(double);
    return ORT_OK;
}

static int64_t svm_outputs(const ort_node *node)
{
    size_t vectors = 0, prob = 0;
    int64_t k = (int64_t)ort_ml_read_labels(node, "classlabels_ints", "classlabels_strings").count;
    ort_node_ints(node, "vectors_per_class", &vectors);
    ort_node_floats(node, "prob_a", &prob);
    k = k > 0 ? k : 1;
    if (vectors == 0 || prob > 0)
        return k;
    return k == 2 ? 2 : k * (k - 1) / 2;
}

static ort_status svm_class_infer(ort_infer *x, ort_error *err)
{
    ort_ml_labels labels = ort_ml_read_labels(x->node, "classlabels_ints", "classlabels_strings");
    return ort_ml_infer_classifier(x, &labels, svm_outputs(x->node), err);
}

static ort_status svm_value_infer(ort_infer *x, ort_error *err)
{
    return ort_ml_infer_rows(x, 1, err);
}

static ort_status read_svm(ort_prep *p, linear_state *s, ort_error *err)
{
    const size_t params = s->kernel_params.count;
    if (params != 0 && params != 3)
        return ort_prep_fail(p, err, "kernel_params has %zu elements; gamma, coef0 and degree are "
                             "needed, or none", params);
    if (params == 3) {
        s->gamma = (double)s->kernel_params.ptr[0];
        s->coef0 = (double)s->kernel_params.ptr[1];
        s->degree = (double)s->kernel_params.ptr[2];
    }
    if (s->coefficients.count == 0 || s->rho.count == 0)
        return ort_prep_fail(p, err, "attributes coefficients and rho are needed");
    s->all_positive = true;
    for (size_t i = 0; i < s->coefficients.count; i++)
        s->all_positive = s->all_positive && s->coefficients.ptr[i] >= 0;
    return ORT_OK;
}

static void find_center(linear_state *s)
{
    for (int64_t i = 0; i < s->features; i++) {
        s->center[i] = 0;
        for (int64_t v = 0; v < s->vectors && s->kernel == KERNEL_RBF; v++)
            s->center[i] += (double)s->support.ptr[v * s->features + i] / (double)s->vectors;
        if (!isfinite(s->center[i]))
            s->center[i] = 0;
    }
}

static ort_status pack_vectors(ort_prep *p, linear_state *s, ort_error *err)
{
    size_t bytes = 0, count = (size_t)(s->vectors * s->features);
    double *rows = malloc((count + 1) * sizeof *rows);
    bool fill = true;
    s->k = p->k;
    s->center = ort_arena_array(p->arena, (size_t)s->features, sizeof *s->center);
    s->squares = ort_arena_array(p->arena, (size_t)s->vectors, sizeof *s->squares);
    if (ort_matrix_packed_bytes_f64(p->k, s->features, s->vectors, &bytes))
        s->packed = ort_prep_pack(p, "vectors", 0, bytes, &fill);
    if (!rows || !s->center || !s->squares || !s->packed) {
        free(rows);
        return ort_error_memory(err, count * sizeof *rows);
    }
    find_center(s);
    for (int64_t v = 0; v < s->vectors; v++) {
        s->squares[v] = 0;
        for (int64_t i = 0; i < s->features; i++) {
            double x = (double)s->support.ptr[v * s->features + i] - s->center[i];
            rows[v * s->features + i] = x;
            s->squares[v] += x * x;
        }
    }
    if (fill)
        ort_matrix_pack_f64(p->k, s->features, s->vectors, rows, 1, s->features, s->packed);
    free(rows);
    return ORT_OK;
}

static ort_status check_vectors(ort_prep *p, linear_state *s, ort_error *err)
{
    if (s->vectors == 0)
        return ORT_OK;
    s->features = (int64_t)s->support.count / s->vectors;
    if (s->features < 1 || s->features * s->vectors != (int64_t)s->support.count)
        return ort_prep_fail(p, err, "%zu numbers in support_vectors can't be %lld vectors",
                             s->support.count, (long long)s->vectors);
    return pack_vectors(p, s, err);
}

static ort_status svm_class_prepare(ort_prep *p, ort_error *err)
{
    linear_state *s = p->state;
    s->classifier = true;
    s->labels = ort_ml_read_labels(p->node, "classlabels_ints", "classlabels_strings");
    s->targets = s->labels.count > 0 ? (int64_t)s->labels.count : 1;
    s->outputs = svm_outputs(p->node);
    ORT_TRY(read_svm(p, s, err));
    if (s->targets > MAX_CLASSES)
        return ort_prep_fail(p, err, "%lld classes are more than %d", (long long)s->targets,
                             MAX_CLASSES);
    for (size_t i = 0; i < s->per_class.count; i++) {
        if (s->per_class.ptr[i] < 0 || s->per_class.ptr[i] > INT32_MAX)
            return ort_prep_fail(p, err, "vectors_per_class holds %lld",
                                 (long long)s->per_class.ptr[i]);
        s->vectors += s->per_class.ptr[i];
    }
    int64_t pairs = s->targets * (s->targets - 1) / 2;
    if (s->vectors > 0 &&
        ((int64_t)s->per_class.count != s->targets ||
         (int64_t)s->coefficients.count < (s->targets - 1) * s->vectors ||
         (s->prob_a.count > 0 &&
          ((int64_t)s->prob_a.count < pairs || (int64_t)s->prob_b.count < pairs))))
        return ort_prep_fail(p, err, "coefficients, vectors_per_class, prob_a and prob_b don't fit "
                             "%lld classes", (long long)s->targets);
    if (s->vectors > 0 && (int64_t)s->rho.count < pairs)
        return ort_prep_fail(p, err, "rho has %zu elements for %lld pairs of classes", s->rho.count,
                             (long long)pairs);
    if (s->vectors == 0 && (int64_t)s->coefficients.count % s->targets != 0)
        return ort_prep_fail(p, err, "%zu coefficients can't serve %lld classes",
                             s->coefficients.count, (long long)s->targets);
    return check_vectors(p, s, err);
}

static ort_status svm_value_prepare(ort_prep *p, ort_error *err)
{
    linear_state *s = p->state;
    s->targets = s->outputs = 1;
    ORT_TRY(read_svm(p, s, err));
    if (s->vectors < 0 || (s->vectors > 0 && (int64_t)s->coefficients.count < s->vectors))
        return ort_prep_fail(p, err, "%zu coefficients for n_supports %lld", s->coefficients.count,
                             (long long)s->vectors);
    return check_vectors(p, s, err);
}

/* ---- rows */

static const ort_op_impl linear_classifier = {
    .state = sizeof(linear_state), .bind = linear_bind,
    .infer = linear_class_infer, .prepare = linear_class_prepare, .shape = linear_shape,
    .run = linear_run,
};
static const ort_op_impl linear_regressor = {
    .state = sizeof(linear_state), .bind = linear_bind,
    .infer = linear_value_infer, .prepare = linear_value_prepare, .shape = linear_shape,
    .run = linear_run,
};
static const ort_op_impl svm_classifier = {
    .state = sizeof(linear_state), .bind = svm_bind,
    .infer = svm_class_infer, .prepare = svm_class_prepare, .shape = svm_shape, .run = svm_run,
};
static const ort_op_impl svm_regressor = {
    .state = sizeof(linear_state), .bind = svm_bind,
    .infer = svm_value_infer, .prepare = svm_value_prepare, .shape = svm_shape, .run = svm_run,
};

const ort_op ort_ops_ml_linear[] = {
    {ML, "LinearClassifier", 1, "X:T1 -> Y:T2,Z:f32", "T1:f32,f64,i64,i32 T2:str,i64",
     "classlabels_ints:is classlabels_strings:ss coefficients:fs! intercepts:fs multi_class:i=0 "
     "post_transform:s=NONE",
     0, &linear_classifier},
    {ML, "LinearRegressor", 1, "X:T -> Y:f32", "T:f32,f64,i64,i32",
     "coefficients:fs intercepts:fs post_transform:s=NONE targets:i=1", 0, &linear_regressor},
    {ML, "SVMClassifier", 1, "X:T1 -> Y:T2,Z:f32", "T1:f32,f64,i64,i32 T2:str,i64",
     "classlabels_ints:is classlabels_strings:ss coefficients:fs kernel_params:fs "
     "kernel_type:s=LINEAR post_transform:s=NONE prob_a:fs prob_b:fs rho:fs support_vectors:fs "
     "vectors_per_class:is",
     0, &svm_classifier},
    {ML, "SVMRegressor", 1, "X:T -> Y:f32", "T:f32,f64,i64,i32",
     "coefficients:fs kernel_params:fs kernel_type:s=LINEAR n_supports:i=0 one_class:i=0 "
     "post_transform:s=NONE rho:fs support_vectors:fs",
     0, &svm_regressor},
    {0},
};

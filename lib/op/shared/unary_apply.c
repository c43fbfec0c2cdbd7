/* unary_apply.c - y = f(x) over every element type, and which f an operator's node is.
 *
 * A row of `functions` or `activations` names the kernel, and where its two parameters come from
 * (an attribute with its default, or a constant).
 */
#pragma GCC optimize("O3") /* vectorize the loops of integers */

#include "op/shared/unary_apply.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

/* ---- which function */

static const struct {
    const char *name;
    ort_unary id;
} functions[] = {
    {"Abs", ORT_UNARY_ABS},     {"Neg", ORT_UNARY_NEG},     {"Ceil", ORT_UNARY_CEIL},
    {"Floor", ORT_UNARY_FLOOR}, {"Round", ORT_UNARY_ROUND}, {"Sqrt", ORT_UNARY_SQRT},
    {"Exp", ORT_UNARY_EXP},     {"Log", ORT_UNARY_LOG},     {"Reciprocal", ORT_UNARY_RECIPROCAL},
    {"Erf", ORT_UNARY_ERF},     {"Sign", ORT_UNARY_SIGN},   {"Sin", ORT_UNARY_SIN},
    {"Cos", ORT_UNARY_COS},     {"Tan", ORT_UNARY_TAN},     {"Asin", ORT_UNARY_ASIN},
    {"Acos", ORT_UNARY_ACOS},   {"Atan", ORT_UNARY_ATAN},   {"Sinh", ORT_UNARY_SINH},
    {"Cosh", ORT_UNARY_COSH},   {"Tanh", ORT_UNARY_TANH},   {"Asinh", ORT_UNARY_ASINH},
    {"Acosh", ORT_UNARY_ACOSH}, {"Atanh", ORT_UNARY_ATANH},
};

bool ort_unary_find(const char *op_type, ort_unary *id)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(op_type, functions[i].name)) {
            *id = functions[i].id;
            return true;
        }
    return false;
}

typedef struct activation {
    const char *name;
    ort_unary id;
    const char *a_name; /* attribute; NULL, or no value and no default: the number beside it */
    float a;
    const char *b_name;
    float b;
} activation;

static const activation activations[] = {
    {"Relu", ORT_UNARY_RELU, NULL, 0, NULL, 0},
    {"LeakyRelu", ORT_UNARY_LEAKY_RELU, "alpha", 0, NULL, 0},
    {"Elu", ORT_UNARY_ELU, "alpha", 0, NULL, 0},
    {"Selu", ORT_UNARY_SELU, "alpha", 0, "gamma", 0},
    {"Celu", ORT_UNARY_CELU, "alpha", 0, NULL, 0},
    {"ThresholdedRelu", ORT_UNARY_THRESHOLDED_RELU, "alpha", 0, NULL, 0},
    {"HardSigmoid", ORT_UNARY_HARD_SIGMOID, "alpha", 0, "beta", 0},
    {"HardSwish", ORT_UNARY_HARD_SWISH, NULL, 0, NULL, 0},
    {"Sigmoid", ORT_UNARY_SIGMOID, NULL, 0, NULL, 0},
    {"Softplus", ORT_UNARY_SOFTPLUS, NULL, 0, NULL, 0},
    {"Softsign", ORT_UNARY_SOFTSIGN, NULL, 0, NULL, 0},
    {"Mish", ORT_UNARY_MISH, NULL, 0, NULL, 0},
    {"Swish", ORT_UNARY_SWISH, "alpha", 0, NULL, 0},
    {"Shrink", ORT_UNARY_SHRINK, "lambd", 0, "bias", 0},
    {"Gelu", ORT_UNARY_GELU, NULL, 0, NULL, 0},
    {"BiasGelu", ORT_UNARY_GELU, NULL, 0, NULL, 0},
    {"FastGelu", ORT_UNARY_GELU_TANH, NULL, 0, NULL, 0},
    {"QuickGelu", ORT_UNARY_SWISH, "alpha", 0, NULL, 0},
    {"Affine", ORT_UNARY_LINEAR, "alpha", 0, "beta", 0},
    {"Scale", ORT_UNARY_LINEAR, "scale", 0, NULL, 0},
    {"ScaledTanh", ORT_UNARY_SCALED_TANH, "alpha", 1.0f, "beta", 1.0f},
    {"ParametricSoftplus", ORT_UNARY_PARAMETRIC_SOFTPLUS, "alpha", 1.0f, "beta", 1.0f},
};

static float number_of(const ort_node *node, const char *name, float otherwise)
{
    const char *text = NULL;
    if (!name || (!ort_node_has(node, name) && node->op &&
                  ort_schema_attr(node->op, name, &text) && !text))
        return otherwise;
    return ort_node_attr_float(node, name);
}

bool ort_unary_of_node(const ort_node *node, ort_unary *id, float *a, float *b)
{
    *a = *b = 0.0f;
    if (node->domain[0] && strcmp(node->domain, MS))
        return false;
    if (ort_unary_find(node->op_type, id))
        return true;
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        const activation *row = &activations[i];
        if (strcmp(node->op_type, row->name))
            continue;
        *id = row->id;
        if (*id == ORT_UNARY_GELU && ort_node_attr_is(node, "approximate", "tanh"))
            *id = ORT_UNARY_GELU_TANH;
        *a = number_of(node, row->a_name, row->a);
        *b = number_of(node, row->b_name, row->b);
        return true;
    }
    return false;
}

/* ---- running it */

ort_status ort_unary_prepare(ort_prep *p, ort_unary id, float a, float b, ort_error *err)
{
    ort_unary_state *state = ort_prep_state(p, sizeof *state);
    if (!state)
        return ort_error_memory(err, sizeof *state);
    state->id = id;
    state->dtype = ort_prep_dtype(p, 0);
    state->a = a;
    state->b = b;
    return ORT_OK;
}

/* Exact integer forms. Unsigned arithmetic: the smallest value wraps onto itself. */
#define INTEGER_LOOP(type, expression)                                                             \
    for (size_t i = 0; i < n; i++) {                                                               \
        type v = ((const type *)x)[i];                                                             \
        ((type *)y)[i] = (type)(expression);                                                       \
    }                                                                                              \
    return true;
#define SIGNED_FUNCTIONS(id_, type, name)                                                          \
    static bool integer_##name(ort_unary id, const void *x, void *y, size_t n)                     \
    {                                                                                              \
        switch ((int)id) {                                                                         \
        case ORT_UNARY_ABS: INTEGER_LOOP(type, v < 0 ? 0 - (uint64_t)v : (uint64_t)v)              \
        case ORT_UNARY_NEG: INTEGER_LOOP(type, 0 - (uint64_t)v)                                    \
        case ORT_UNARY_SIGN: INTEGER_LOOP(type, (v > 0) - (v < 0))                                 \
        case ORT_UNARY_RELU: INTEGER_LOOP(type, v < 0 ? 0 : v)                                     \
        default: return false;                                                                     \
        }                                                                                          \
    }
#define UNSIGNED_FUNCTIONS(id_, type, name)                                                        \
    static bool integer_##name(ort_unary id, const void *x, void *y, size_t n)                     \
    {                                                                                              \
        switch ((int)id) {                                                                         \
        case ORT_UNARY_ABS:                                                                        \
        case ORT_UNARY_RELU: INTEGER_LOOP(type, v)                                                 \
        case ORT_UNARY_NEG: INTEGER_LOOP(type, 0 - (uint64_t)v)                                    \
        case ORT_UNARY_SIGN: INTEGER_LOOP(type, v > 0)                                             \
        default: return false;                                                                     \
        }                                                                                          \
    }
ORT_SIGNED_TYPES(SIGNED_FUNCTIONS)
ORT_UNSIGNED_TYPES(UNSIGNED_FUNCTIONS)

#define INTEGER_CASE(id_, type, name) case ORT_DTYPE_##id_: return integer_##name(id, x, y, n);
static bool integer_run(ort_dtype dtype, ort_unary id, const void *x, void *y, size_t n)
{
    switch ((int)dtype) {
    ORT_INTEGER_TYPES(INTEGER_CASE)
    default: return false;
    }
}

typedef struct unary_job {
    const ort_unary_state *state;
    const ort_vmath_kernels *math;
    const ort_tensor *x;
    ort_tensor *y;
} unary_job;

static void run_widened(const unary_job *job, size_t first, size_t n)
{
    const ort_unary_state *s = job->state;
    const uint16_t *x = (const uint16_t *)job->x->data + first;
    uint16_t *y = (uint16_t *)job->y->data + first;
    float block[ORT_WIDEN_BLOCK];
    for (size_t i = 0; i < n; i += ORT_WIDEN_BLOCK) {
        size_t count = n - i < ORT_WIDEN_BLOCK ? n - i : ORT_WIDEN_BLOCK;
        ort_widen(job->math, s->dtype, x + i, block, count);
        job->math->unary[s->id](block, block, count, s->a, s->b);
        ort_narrow(job->math, s->dtype, block, y + i, count);
    }
}

static void unary_task(void *arg, int64_t first, int64_t end, int thread)
{
    const unary_job *job = arg;
    const ort_unary_state *s = job->state;
    size_t n = (size_t)(end - first);
    size_t bytes = (size_t)ort_dtype_get(s->dtype)->bits / 8;
    char *x = (char *)job->x->data + first * bytes, *y = (char *)job->y->data + first * bytes;
    if (s->dtype == ORT_DTYPE_FLOAT) {
        job->math->unary[s->id]((const float *)x, (float *)y, n, s->a, s->b);
    } else if (s->dtype == ORT_DTYPE_DOUBLE) {
        job->math->unary_f64[s->id]((const double *)x, (double *)y, n, (double)s->a, (double)s->b);
    } else if (s->dtype == ORT_DTYPE_FLOAT16 || s->dtype == ORT_DTYPE_BFLOAT16) {
        run_widened(job, first, n);
    } else if (!integer_run(s->dtype, s->id, x, y, n)) {
        for (size_t i = first; i < first + n; i++) {
            double v = ort_tensor_get_f64(job->x, (int64_t)i), w;
            job->math->unary_f64[s->id](&v, &w, 1, (double)s->a, (double)s->b);
            ort_tensor_set_f64(job->y, (int64_t)i, trunc(w)); /* integers truncate */
        }
    }
}

ort_status ort_unary_run(ort_call *call, ort_error *err)
{
    unary_job job = {call->state, &call->k->math, ort_call_in(call, 0), ort_call_out(call, 0)};
    ort_call_range(call, ort_tensor_count(job.x), ORT_ELEMENTWISE_GRAIN, unary_task, &job);
    return ORT_OK;
}

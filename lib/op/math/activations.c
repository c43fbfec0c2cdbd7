/* activations.c - activation functions: one kernel call with parameters from attributes.
 * Biased forms (BiasGelu, FastGelu) add the bias vector in blocks first.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/binary_apply.h"
#include "op/shared/unary_apply.h"

static ort_status activation_prepare(ort_prep *p, ort_error *err)
{
    ort_unary id;
    float a, b;
    if (!ort_unary_of_node(p->node, &id, &a, &b))
        return ort_prep_fail(p, err, "no activation for operator %s", p->op->name);
    return ort_unary_prepare(p, id, a, b, err);
}

static const ort_op_impl activation_impl = {
    .rule = "same", .prepare = activation_prepare, .run = ort_unary_run,
    .cost = ort_elementwise_cost,
};

/* ---- with a bias over the last axis */

typedef struct biased_job {
    const ort_unary_state *state;
    const ort_vmath_kernels *math;
    const ort_tensor *x, *bias;
    ort_tensor *y;
    int64_t width;
} biased_job;

static void biased_row_f64(const biased_job *job, int64_t row)
{
    const ort_unary_state *s = job->state;
    const double *x = (const double *)job->x->data + row * job->width, *bias = job->bias->data;
    double *y = (double *)job->y->data + row * job->width;
    for (int64_t i = 0; i < job->width; i++)
        y[i] = x[i] + bias[i];
    job->math->unary_f64[s->id](y, y, (size_t)job->width, (double)s->a, (double)s->b);
}

static void biased_row(const biased_job *job, int64_t row)
{
    const ort_unary_state *s = job->state;
    float u[ORT_WIDEN_BLOCK], v[ORT_WIDEN_BLOCK];
    for (int64_t i = 0; i < job->width; i += ORT_WIDEN_BLOCK) {
        size_t n = (size_t)ort_min_i64(job->width - i, ORT_WIDEN_BLOCK);
        int64_t at = row * job->width + i;
        if (s->dtype == ORT_DTYPE_FLOAT) {
            float *y = (float *)job->y->data + at;
            const float *x = (const float *)job->x->data + at;
            const float *bias = (const float *)job->bias->data + i;
            job->math->binary[ORT_BINARY_ADD](x, bias, y, n, ORT_FORM_VV);
            job->math->unary[s->id](y, y, n, s->a, s->b);
            continue;
        }
        ort_tensor_to_f32(job->x, at, (int64_t)n, u);
        ort_tensor_to_f32(job->bias, i, (int64_t)n, v);
        job->math->binary[ORT_BINARY_ADD](u, v, u, n, ORT_FORM_VV);
        job->math->unary[s->id](u, u, n, s->a, s->b);
        ort_tensor_from_f32(u, job->y, at, (int64_t)n);
    }
}

static void biased_task(void *arg, int64_t first, int64_t end, int thread)
{
    const biased_job *job = arg;
    for (int64_t row = first; row < end; row++) {
        if (job->state->dtype == ORT_DTYPE_DOUBLE)
            biased_row_f64(job, row);
        else
            biased_row(job, row);
    }
}

static ort_status biased_shape(ort_shaping *s, ort_error *err)
{
    const ort_tensor *x = s->in[0], *bias = s->in_count > 1 ? s->in[1] : NULL;
    if (bias && (bias->shape.rank != 1 || x->shape.rank < 1 ||
                 bias->shape.dim[0] != x->shape.dim[x->shape.rank - 1])) {
        char a[200], b[200];
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "the bias is %s, needs one value per element of the last axis of %s",
                             ort_shape_format(&bias->shape, a, sizeof a),
                             ort_shape_format(&x->shape, b, sizeof b));
    }
    return bias ? ort_binary_check_types(x, bias, err) : ORT_OK;
}

static ort_status biased_run(ort_call *call, ort_error *err)
{
    biased_job job = {call->state, &call->k->math, ort_call_in(call, 0), ort_call_in(call, 1),
                      ort_call_out(call, 0), 0};
    int64_t total = ort_tensor_count(job.x);
    if (!job.bias)
        return ort_unary_run(call, err);
    if (total == 0)
        return ORT_OK;
    job.width = job.bias->shape.dim[0];
    ort_call_range(call, total / job.width, ort_max_i64(1, ORT_ELEMENTWISE_GRAIN / job.width),
                   biased_task, &job);
    return ORT_OK;
}

static const ort_op_impl biased_impl = {
    .rule = "same", .prepare = activation_prepare, .shape = biased_shape,
    .run = biased_run, .cost = ort_elementwise_cost,
};

#define MAP (ORT_TRAIT_ELEMENTWISE | ORT_TRAIT_INPLACE)
#define TRIAL (MAP | ORT_TRAIT_EXTENSION | ORT_TRAIT_TRIAL)
#define XY(name, since, types, attrs, later)                                                       \
    {ONNX, name, since, "X:T -> Y:T", "T:" types, attrs, MAP, &activation_impl, .history = later}

const ort_op ort_ops_activations[] = {
    XY("Relu", 6, "F", "", "13:T+bf16 14:T+I"),
    XY("LeakyRelu", 6, "F", "alpha:f=0.00999999978", "16:T+bf16"),
    XY("Elu", 6, "F", "alpha:f=1", "22:T+bf16"),
    XY("Selu", 6, "F", "alpha:f=1.67326319 gamma:f=1.05070102", "22:T+bf16"),
    XY("Celu", 12, "f32", "alpha:f=1", "28:T+f16,f64,bf16"),
    {ONNX, "ThresholdedRelu", 1, "X:T -> Y:T", "T:F", "alpha:f=1", TRIAL, &activation_impl},
    XY("ThresholdedRelu", 10, "F", "alpha:f=1", "22:T+bf16"),
    XY("HardSigmoid", 6, "F", "alpha:f=0.200000003 beta:f=0.5", "22:T+bf16"),
    XY("HardSwish", 14, "F", "", "22:T+bf16"),
    XY("Sigmoid", 6, "F", "", "13:T+bf16"),
    XY("Softplus", 1, "F", "", "22:T+bf16"),
    {ONNX, "Softsign", 1, "input:T -> output:T", "T:F", "", MAP, &activation_impl,
     .history = "22:T+bf16"},
    XY("Gelu", 20, "F,bf16", "approximate:s=none", NULL),
    XY("Mish", 18, "F", "", "22:T+bf16"),
    XY("Swish", 24, "F,bf16", "alpha:f=1", NULL),
    {ONNX, "Shrink", 9, "input:T -> output:T", "T:F,I,U", "bias:f=0 lambd:f=0.5", MAP,
     &activation_impl},
    {ONNX, "Affine", 1, "X:T -> Y:T", "T:F", "alpha:f=1 beta:f=0", TRIAL, &activation_impl},
    {ONNX, "ParametricSoftplus", 1, "X:T -> Y:T", "T:F", "alpha:f beta:f", TRIAL,
     &activation_impl},
    {ONNX, "ScaledTanh", 1, "input:T -> output:T", "T:F", "alpha:f beta:f", TRIAL,
     &activation_impl},
    {ONNX, "Scale", 1, "input:T -> output:T", "T:F", "scale:f=1", TRIAL, &activation_impl},
    {MS, "Gelu", 1, "X:T -> Y:T", "T:F,bf16", "", MAP, &activation_impl},
    {MS, "QuickGelu", 1, "X:T -> Y:T", "T:F,bf16", "alpha:f=1.702", MAP, &activation_impl},
    {MS, "BiasGelu", 1, "A:T,B:T -> C:T", "T:F,bf16", "", MAP, &biased_impl},
    {MS, "FastGelu", 1, "X:T,bias?:T -> Y:T", "T:F,bf16", "", MAP, &biased_impl},
    {0},
};

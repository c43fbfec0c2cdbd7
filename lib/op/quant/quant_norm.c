/* quant_norm.c - LayerNormalization between Q and DQ (CodeLayerNorm): rows of 8-bit codes.
 *
 * Sums of codes and of their squares are exact integers; mean and variance follow in double. The
 * rest is one subtraction, two products and a sum in float for each element, none of them fused:
 * the same bits on every tier.
 */
#include <math.h>

#include "base/checked.h"
#include "op/shared/codes.h"

enum { GRAIN = 1 << 14, PIECE = 512, ROW_MAX = 1 << 20 /* what int64 holds the square sums of */ };

/* X, scale, zero point, gamma, beta?, scale, zero point */
enum { IN_X, IN_SCALE, IN_ZERO, IN_GAMMA, IN_BETA, IN_Y_SCALE, IN_Y_ZERO };

typedef struct norm_state {
    int64_t axis;
    float epsilon;
} norm_state;

static const ort_bind norm_bind[] = {
    ORT_BIND(norm_state, axis), ORT_BIND(norm_state, epsilon), {0}};

static int64_t row_length(const norm_state *state, const ort_shape *x)
{
    int64_t axis = state->axis + (state->axis < 0 ? x->rank : 0);
    return axis < 0 ? 0 : ort_shape_count_range(x, (int)ort_min_i64(axis, x->rank), x->rank);
}

static ort_status norm_shape(ort_shaping *s, ort_error *err)
{
    static const int single[] = {IN_SCALE, IN_ZERO, IN_Y_SCALE, IN_Y_ZERO};
    int64_t n = row_length(s->state, &s->in[IN_X]->shape);
    const ort_tensor *beta = s->in[IN_BETA];
    if (n > ROW_MAX || ort_tensor_count(s->in[IN_GAMMA]) != n ||
        (beta && ort_tensor_count(beta) != n))
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "scale and bias aren't one row of %lld elements", (long long)n);
    return ort_codes_need_single(s, single, 4, err);
}

typedef struct norm_job {
    const ort_kernels *k;
    const uint8_t *x;
    uint8_t *y;
    const float *gamma, *beta;
    int64_t length;
    float epsilon;
    ort_codes from, to;
} norm_job;

static void norm_row(const norm_job *j, const uint8_t *x, uint8_t *y)
{
    ort_binary_fn *const *binary = j->k->math.binary;
    const ort_codes plain = {1.0f, 0, j->from.is_signed};
    double n = (double)j->length, scale = (double)j->from.scale;
    int64_t sum = j->k->codes.sum(x, (size_t)j->length, plain.is_signed);
    int64_t squares = j->k->codes.sum_squares(x, (size_t)j->length, plain.is_signed);
    double variance = (double)(j->length * squares - sum * sum) / (n * n) * (scale * scale);
    float mean = (float)((double)sum / n);
    float factor = (float)(scale / sqrt(variance + (double)j->epsilon));
    for (int64_t i = 0; i < j->length; i += PIECE) {
        size_t part = (size_t)ort_min_i64(PIECE, j->length - i);
        float v[PIECE];
        ort_codes_numbers(j->k, &plain, x + i, v, (int64_t)part);
        binary[ORT_BINARY_SUB](v, &mean, v, part, ORT_FORM_VS);
        binary[ORT_BINARY_MUL](v, &factor, v, part, ORT_FORM_VS);
        binary[ORT_BINARY_MUL](v, j->gamma + i, v, part, ORT_FORM_VV);
        if (j->beta)
            binary[ORT_BINARY_ADD](v, j->beta + i, v, part, ORT_FORM_VV);
        ort_codes_quantize(j->k, &j->to, v, y + i, (int64_t)part);
    }
}

static void norm_task(void *arg, int64_t first, int64_t end, int thread)
{
    const norm_job *j = arg;
    for (; first < end; first++)
        norm_row(j, j->x + first * j->length, j->y + first * j->length);
}

static ort_status norm_run(ort_call *call, ort_error *err)
{
    const norm_state *state = call->state;
    const ort_tensor *x = ort_call_in(call, IN_X), *beta = ort_call_in(call, IN_BETA);
    ort_tensor *y = ort_call_out(call, 0);
    if (!y || ort_tensor_count(y) == 0)
        return ORT_OK;
    norm_job j = {.k = call->k, .x = x->data, .y = y->data,
                  .gamma = ort_call_in(call, IN_GAMMA)->data, .beta = beta ? beta->data : NULL,
                  .length = row_length(state, &x->shape), .epsilon = state->epsilon,
                  .from = ort_codes_of(call, x->dtype, IN_SCALE, IN_ZERO),
                  .to = ort_codes_of(call, y->dtype, IN_Y_SCALE, IN_Y_ZERO)};
    ort_call_range(call, ort_tensor_count(y) / j.length, ort_max_i64(GRAIN / j.length, 1),
                   norm_task, &j);
    return ORT_OK;
}

static const ort_op_impl norm_impl = {
    .state = sizeof(norm_state), .bind = norm_bind,
    .rule = "same", .shape = norm_shape, .run = norm_run, .numbers = 0x66,
};

const ort_op ort_ops_quant_norm[] = {
    {ORT_INTERNAL, "CodeLayerNorm", 1,
     "X:T,x_scale:f32,x_zero_point?:T,scale:f32,bias?:f32,y_scale:f32,y_zero_point?:T2 -> Y:T2",
     "T:u8,i8 T2:u8,i8", "axis:i=-1 epsilon:f=1e-5", 0, &norm_impl},
    {0},
};

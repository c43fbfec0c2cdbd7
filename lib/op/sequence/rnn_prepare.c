/* rnn_prepare.c - attributes and weights of the recurrences, made ready for runs.
 *
 * Constant weights are packed once, by the core that computes with them: floats, codes that
 * com.microsoft's DynamicQuantizeLSTM multiplies with a quantized state, or codes that a file
 * dequantizes (rnn_coded.c).
 */
#include "op/sequence/rnn_prepare.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tensor/scalar.h"

ort_rnn_kind ort_rnn_kind_of(const ort_op *op)
{
    switch (op->variant) {
    case ORT_RNN_OP_GRU:
    case ORT_RNN_CODED_GRU:
        return ORT_RNN_GRU;
    case ORT_RNN_OP_RNN:
    case ORT_RNN_CODED_RNN:
        return ORT_RNN_PLAIN;
    default:
        return ORT_RNN_LSTM;
    }
}

static const struct activation_row {
    const char *name;
    ort_unary function;
    float alpha, beta;
    int parameters; /* 1: alpha, 2: alpha and beta */
} activations[] = {
    {"Relu", ORT_UNARY_RELU, 0, 0, 0},
    {"Tanh", ORT_UNARY_TANH, 0, 0, 0},
    {"Sigmoid", ORT_UNARY_SIGMOID, 0, 0, 0},
    {"Affine", ORT_UNARY_LINEAR, 1, 0, 2},
    {"LeakyRelu", ORT_UNARY_LEAKY_RELU, 0.01f, 0, 1},
    {"ThresholdedRelu", ORT_UNARY_THRESHOLDED_RELU, 1, 0, 1},
    {"ScaledTanh", ORT_UNARY_SCALED_TANH, 1, 1, 2},
    {"HardSigmoid", ORT_UNARY_HARD_SIGMOID, 0.2f, 0.5f, 2},
    {"Elu", ORT_UNARY_ELU, 1, 0, 1},
    {"Softsign", ORT_UNARY_SOFTSIGN, 0, 0, 0},
    {"Softplus", ORT_UNARY_SOFTPLUS, 0, 0, 0},
};

static const struct activation_row *find_activation(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strlen(activations[i].name) == length &&
            !strncasecmp(activations[i].name, name, length))
            return &activations[i];
    return NULL;
}

/* Alphas and betas are consumed in order by those functions that have them. */
static ort_status read_activations(const ort_prep *p, ort_rnn *rnn, ort_error *err)
{
    size_t names = rnn->names.count, alpha = 0, beta = 0;
    const ort_string *name = rnn->names.ptr;
    int each = rnn->kind == ORT_RNN_LSTM ? 3 : rnn->kind == ORT_RNN_GRU ? 2 : 1;
    size_t total = (size_t)(each * rnn->directions);
    if (names > 0 && names < total)
        return ort_prep_fail(p, err, "activations names %zu functions, needs %zu", names, total);
    for (size_t i = 0; i < total; i++) {
        bool gate = i % (size_t)each == 0 && rnn->kind != ORT_RNN_PLAIN;
        const struct activation_row *row =
            names > 0 ? find_activation(name[i].ptr, name[i].length)
                      : find_activation(gate ? "Sigmoid" : "Tanh", gate ? 7 : 4);
        if (!row)
            return ort_prep_fail(p, err, "activation '%.*s' is unknown",
                                 (int)(name[i].length < 40 ? name[i].length : 40), name[i].ptr);
        ort_rnn_activation *act = &rnn->act[i / (size_t)each][i % (size_t)each];
        *act = (ort_rnn_activation){row->function, row->alpha, row->beta};
        if (row->parameters >= 1 && alpha < rnn->alphas.count)
            act->alpha = rnn->alphas.ptr[alpha++];
        if (row->parameters == 2 && beta < rnn->betas.count)
            act->beta = rnn->betas.ptr[beta++];
    }
    return ORT_OK;
}

bool ort_rnn_has_shape(const ort_tensor *t, int rank, int64_t a, int64_t b, int64_t c)
{
    return !t || (t->shape.rank == rank && t->shape.dim[0] == a && t->shape.dim[1] == b &&
                  (rank < 3 || t->shape.dim[2] == c));
}

int ort_rnn_weight_sizes(const ort_rnn *rnn, const ort_rnn_source *w, ort_rnn_sizes *s)
{
    s->G = (int)rnn->kind;
    s->D = rnn->directions;
    if (w->R->shape.rank != 3)
        return ORT_RNN_R;
    if (w->W->shape.rank != 3)
        return ORT_RNN_W;
    s->I = w->W->shape.dim[2];
    s->H = w->R->shape.dim[2];
    if (!ort_rnn_has_shape(w->R, 3, s->D, s->G * s->H, s->H))
        return ORT_RNN_R;
    if (!ort_rnn_has_shape(w->W, 3, s->D, s->G * s->H, s->I))
        return ORT_RNN_W;
    if (!ort_rnn_has_shape(w->B, 2, s->D, 2 * s->G * s->H, 0))
        return ORT_RNN_B;
    return ort_rnn_has_shape(w->P, 2, s->D, 3 * s->H, 0) ? -1 : ORT_RNN_P;
}

static ort_status pack_weights(ort_prep *p, ort_rnn *rnn, const ort_rnn_source *w, ort_error *err)
{
    size_t bytes = 0, scratch_bytes = 0;
    void *scratch = NULL;
    bool fill;
    int wrong = ort_rnn_weight_sizes(rnn, w, &rnn->sizes);
    if (wrong >= 0)
        return ort_prep_fail(p, err, "input %d has a shape that doesn't fit W, R and the direction",
                             wrong);
    if (!rnn->core->weights_bytes(p->k, &rnn->sizes, &bytes, &scratch_bytes))
        return ort_prep_fail(p, err, "its weights are too large");
    void *memory = ort_prep_pack(p, "weights", ort_prep_constants(p), bytes, &fill);
    if (memory && fill)
        scratch = malloc(scratch_bytes + 1);
    if (!memory || (fill && !scratch))
        return ort_error_memory(err, bytes);
    rnn->core->weights_fill(p->k, rnn, &rnn->sizes, w, memory, scratch, rnn->weights);
    free(scratch);
    rnn->constant = true;
    ort_prep_absorb(p, ORT_RNN_W);
    ort_prep_absorb(p, ORT_RNN_R);
    if (rnn->late)
        return ORT_OK;
    ort_prep_absorb(p, ORT_RNN_B);
    ort_prep_absorb(p, ORT_RNN_P);
    return ORT_OK;
}

/* 8-bit weights [D][depth][G*H], with the shape [D][G*H][depth] that floats have, and whether scale
 * and zero point hold one number per direction, or one per direction and column. */
static ort_status find_bytes(ort_prep *p, int input, const ort_tensor *scale,
                             const ort_tensor *zero, ort_tensor *out, ort_error *err)
{
    const ort_tensor *q = ort_prep_constant(p, input);
    if (!q || !scale || !zero)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "weights, scales and zero points that "
                             "aren't constant aren't implemented");
    int64_t D = q->shape.dim[0], depth = q->shape.dim[1], columns = q->shape.dim[2];
    int64_t scales = ort_tensor_count(scale);
    if (q->shape.rank != 3 || (scales != D && scales != D * columns) ||
        ort_tensor_count(zero) != scales)
        return ort_prep_fail(p, err, "input %d or its scale has a wrong shape", input);
    *out = (ort_tensor){.dtype = q->dtype, .shape = {3, {D, columns, depth}}, .data = q->data};
    return ORT_OK;
}

/* Codes [D][G*H][depth] of a file's DequantizeLinear, with a scale for each row, and maybe a zero
 * point; a session's pass made them so. */
static ort_status find_codes(ort_prep *p, int input, const ort_tensor *scale,
                             const ort_tensor *zero, ort_tensor *out, ort_error *err)
{
    const ort_tensor *q = ort_prep_constant(p, input);
    if (!q || q->shape.rank != 3 || !scale || scale->dtype != ORT_DTYPE_FLOAT ||
        ort_tensor_count(scale) != q->shape.dim[0] * q->shape.dim[1] ||
        (zero && ort_tensor_count(zero) != ort_tensor_count(scale)))
        return ort_prep_fail(p, err, "input %d isn't codes with a scale for each row", input);
    *out = *q;
    return ORT_OK;
}

/* Scale and zero point of X, if it is codes. */
static ort_status read_input_grid(const ort_prep *p, ort_rnn *rnn, ort_error *err)
{
    const ort_tensor *scale = ort_prep_constant(p, ORT_RNN_X_SCALE);
    const ort_tensor *zero = ort_prep_constant(p, ORT_RNN_X_ZERO);
    rnn->x_coded = rnn->dtype != ORT_DTYPE_FLOAT;
    rnn->x_signed = rnn->dtype == ORT_DTYPE_INT8;
    rnn->dtype = ORT_DTYPE_FLOAT;
    if (!rnn->x_coded)
        return ORT_OK;
    if (!scale || !ort_tensor_one_f32(scale, &rnn->x_scale) ||
        (zero && !ort_tensor_one(zero, &rnn->x_zero)))
        return ort_prep_fail(p, err, "X is codes without one scale");
    return ORT_OK;
}

typedef ort_status find_fn(ort_prep *p, int input, const ort_tensor *scale, const ort_tensor *zero,
                           ort_tensor *out, ort_error *err);

static bool is_given(const ort_prep *p, int input)
{
    return p->in_count > input && p->in[input];
}

static ort_status prepare_quantized(ort_prep *p, ort_rnn *rnn, find_fn *find, ort_error *err)
{
    ort_tensor W = {0}, R = {0};
    ort_rnn_source w = {.W = &W, .R = &R, .B = ort_prep_constant(p, ORT_RNN_B),
                        .P = ort_prep_constant(p, ORT_RNN_P),
                        .w_scale = ort_prep_constant(p, ORT_RNN_W_SCALE),
                        .w_zero = ort_prep_constant(p, ORT_RNN_W_ZERO),
                        .r_scale = ort_prep_constant(p, ORT_RNN_R_SCALE),
                        .r_zero = ort_prep_constant(p, ORT_RNN_R_ZERO), .x_coded = rnn->x_coded};
    rnn->quantized = true;
    rnn->late = (is_given(p, ORT_RNN_B) && !w.B) || (is_given(p, ORT_RNN_P) && !w.P);
    if (rnn->late)
        w.B = w.P = NULL;
    ORT_TRY(find(p, ORT_RNN_W, w.w_scale, w.w_zero, &W, err));
    ORT_TRY(find(p, ORT_RNN_R, w.r_scale, w.r_zero, &R, err));
    return pack_weights(p, rnn, &w, err);
}

static ort_status prepare_coded(ort_prep *p, ort_rnn *rnn, ort_error *err)
{
    rnn->core = &ort_rnn_core_coded;
    ORT_TRY(read_input_grid(p, rnn, err));
    return prepare_quantized(p, rnn, find_codes, err);
}

static ort_status prepare_weights(ort_prep *p, ort_rnn *rnn, ort_error *err)
{
    bool lstm = rnn->kind == ORT_RNN_LSTM;
    ort_rnn_source w = {.W = ort_prep_constant(p, ORT_RNN_W), .R = ort_prep_constant(p, ORT_RNN_R),
                        .B = ort_prep_constant(p, ORT_RNN_B),
                        .P = lstm ? ort_prep_constant(p, ORT_RNN_P) : NULL};
    if (!w.W || !w.R || (is_given(p, ORT_RNN_B) && !w.B) ||
        (lstm && is_given(p, ORT_RNN_P) && !w.P))
        return ORT_OK;
    return pack_weights(p, rnn, &w, err);
}

const ort_bind ort_rnn_bind[] = {
    ORT_BIND(ort_rnn, direction, ORT_WORDS("forward reverse bidirectional")),
    ORT_BIND_AS(ort_rnn, names, "activations"), ORT_BIND_AS(ort_rnn, alphas, "activation_alpha"),
    ORT_BIND_AS(ort_rnn, betas, "activation_beta"),
    ORT_BIND_AS(ort_rnn, batch_first, "layout", ORT_MAYBE),
    ORT_BIND_AS(ort_rnn, coupled, "input_forget", ORT_MAYBE),
    ORT_BIND(ort_rnn, linear_before_reset, ORT_MAYBE), ORT_BIND(ort_rnn, clip, ORT_MAYBE), {0}};

ort_status ort_rnn_settle(const ort_prep *p, ort_rnn *rnn, ort_error *err)
{
    rnn->directions = rnn->direction == ORT_RNN_BOTH ? 2 : 1;
    rnn->reverse = rnn->direction == ORT_RNN_REVERSE;
    return read_activations(p, rnn, err);
}

ort_status ort_rnn_prepare(ort_prep *p, ort_error *err)
{
    ort_rnn *rnn = p->state;
    rnn->kind = ort_rnn_kind_of(p->op);
    ORT_TRY(ort_rnn_settle(p, rnn, err));
    rnn->dtype = ort_prep_dtype(p, ORT_RNN_X);
    if (!strcmp(p->op->domain, ORT_INTERNAL))
        return prepare_coded(p, rnn, err);
    switch (rnn->dtype) {
    case ORT_DTYPE_FLOAT:
    case ORT_DTYPE_FLOAT16:
    case ORT_DTYPE_BFLOAT16:
        rnn->core = &ort_rnn_core_f32;
        break;
    case ORT_DTYPE_DOUBLE:
        rnn->core = &ort_rnn_core_f64;
        break;
    default:
        return ort_prep_unsupported_dtype(p, ORT_RNN_X, err);
    }
    if (p->op->variant != ORT_RNN_DYNAMIC_LSTM)
        return prepare_weights(p, rnn, err);
    rnn->core = &ort_rnn_core_bytes;
    return prepare_quantized(p, rnn, find_bytes, err);
}

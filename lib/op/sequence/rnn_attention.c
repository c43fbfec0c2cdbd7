/* rnn_attention.c - AttnLSTM of com.microsoft: an LSTM that reads, with each input, what it
 * attends to.
 *
 * Per step t, for every row of the batch (attention after Bahdanau, arXiv:1409.0473):
 *
 *   h, c    = lstm(concat(x, attn), h, c)            attn is zero before the first step
 *   align   = softmax over s of sum(V * tanh(memory[s] * MW + h * QW))
 *   context = sum over s of align[s] * memory[s]     of the steps that memory_seq_lens counts
 *   attn    = concat(h, context) * AW, or context without AW
 *
 * Sizes: T steps, B rows, I inputs, H units, S memory steps of depth M, Q inside of the alignment,
 * A of attn. All inputs of all steps pass through one product; a step multiplies all rows at once
 * and does the rest row by row, in parallel. Weights are packed once when all are constant.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/sequence/rnn_common.h"
#include "op/shared/matrix.h"

enum { IN_X, IN_W, IN_R, IN_B, IN_LENS, IN_H, IN_C, IN_P, IN_QW, IN_MW, IN_V, IN_M, IN_M_LENS,
       IN_AW, IN_COUNT };
enum { OUT_Y, OUT_H, OUT_C };

typedef struct attn_sizes {
    int64_t T, B, I, H, S, M, Q, A;
    int D;
} attn_sizes;

typedef struct attn_weights { /* of one direction */
    float *w, *wa, *r;        /* packed [I], [A] and [H] x [4H] */
    float *q, *m, *a;         /* packed [H][Q], [M][Q], [H + M][A]; a NULL: attn is the context */
    float *bias, *peephole, *v; /* [4H], [3H] or NULL, [Q] */
} attn_weights;

typedef struct attn_state {
    ort_rnn rnn; /* first: ort_rnn_bind fills it */
    bool constant;
    attn_weights weights[2];
} attn_state;

typedef struct attn_plan {
    attn_sizes z;
    size_t gates, step, h, c, attn, both, keys, query, align, weights; /* in the workspace */
} attn_plan;

/* ---- weights */

static bool has_dims(const ort_tensor *t, int rank, int64_t a, int64_t b, int64_t c)
{
    return !t || (t->shape.rank == rank && t->shape.dim[0] == a && t->shape.dim[1] == b &&
                  (rank < 3 || t->shape.dim[2] == c));
}

/* The sizes that weights have, and which of them has a wrong shape: its slot, or -1. */
static int weight_sizes(const ort_rnn *rnn, const ort_tensor *const *in, attn_sizes *z)
{
    int D = rnn->directions;
    const int needed[] = {IN_W, IN_R, IN_QW, IN_MW};
    for (int i = 0; i < 4; i++)
        if (!in[needed[i]] || in[needed[i]]->shape.rank != 3)
            return needed[i];
    z->D = D;
    z->H = in[IN_R]->shape.dim[2];
    z->M = in[IN_MW]->shape.dim[1];
    z->Q = in[IN_MW]->shape.dim[2];
    if (in[IN_AW] && in[IN_AW]->shape.rank != 3)
        return IN_AW;
    z->A = in[IN_AW] ? in[IN_AW]->shape.dim[2] : z->M;
    z->I = in[IN_W]->shape.dim[2] - z->A;
    if (z->I < 0 || !has_dims(in[IN_W], 3, D, 4 * z->H, z->I + z->A))
        return IN_W;
    if (!has_dims(in[IN_R], 3, D, 4 * z->H, z->H))
        return IN_R;
    if (!has_dims(in[IN_B], 2, D, 8 * z->H, 0))
        return IN_B;
    if (!has_dims(in[IN_P], 2, D, 3 * z->H, 0))
        return IN_P;
    if (!has_dims(in[IN_QW], 3, D, z->H, z->Q))
        return IN_QW;
    if (!has_dims(in[IN_MW], 3, D, z->M, z->Q))
        return IN_MW;
    if (!in[IN_V] || !has_dims(in[IN_V], 2, D, z->Q, 0))
        return IN_V;
    return has_dims(in[IN_AW], 3, D, z->H + z->M, z->A) ? -1 : IN_AW;
}

/* The next `bytes` of memory; at first NULL: only counted. */
static float *take(char *memory, size_t *total, size_t bytes)
{
    float *at = memory ? (float *)(void *)(memory + *total) : NULL;
    *total += ort_round_up(bytes, 64);
    return at;
}

/* Packs element (k, j) = b[k * row + j * column] of a [depth][n] matrix. */
static float *pack(const ort_kernels *k, char *memory, size_t *total, int64_t depth, int64_t n,
                   const float *b, int64_t row, int64_t column)
{
    size_t bytes = 0; /* b NULL: filled before */
    if (!ort_matrix_packed_bytes_f32(k, depth, n, &bytes))
        bytes = SIZE_MAX / 64;
    float *packed = take(memory, total, bytes);
    if (packed && b)
        ort_matrix_pack_f32(k, depth, n, b, row, column, packed);
    return packed;
}

static const float *part(const ort_tensor *t, int64_t d, int64_t each, bool fill)
{
    return fill && t && t->data ? (const float *)t->data + d * each : NULL;
}

/* Fills weights from memory of as many bytes as it returns; memory NULL: only counted. fill
 * false: that memory was filled before. */
static size_t pack_weights(const ort_kernels *k, const ort_tensor *const *in, const attn_sizes *z,
                           char *memory, bool fill, attn_weights *weights)
{
    size_t total = 0;
    int64_t G = 4 * z->H, width = z->I + z->A;
    for (int d = 0; d < z->D; d++) {
        const float *w = part(in[IN_W], d, G * width, fill), *b = part(in[IN_B], d, 2 * G, fill);
        const float *a = part(in[IN_AW], d, (z->H + z->M) * z->A, fill);
        attn_weights *to = &weights[d];
        to->w = pack(k, memory, &total, z->I, G, w, 1, width);
        to->wa = pack(k, memory, &total, z->A, G, w ? w + z->I : NULL, 1, width);
        to->r = pack(k, memory, &total, z->H, G, part(in[IN_R], d, G * z->H, fill), 1, z->H);
        to->q = pack(k, memory, &total, z->H, z->Q, part(in[IN_QW], d, z->H * z->Q, fill), z->Q, 1);
        to->m = pack(k, memory, &total, z->M, z->Q, part(in[IN_MW], d, z->M * z->Q, fill), z->Q, 1);
        to->a = in[IN_AW] ? pack(k, memory, &total, z->H + z->M, z->A, a, z->A, 1) : NULL;
        to->bias = take(memory, &total, (size_t)G * sizeof(float));
        to->v = take(memory, &total, (size_t)z->Q * sizeof(float));
        to->peephole = in[IN_P] ? take(memory, &total, (size_t)(3 * z->H) * sizeof(float)) : NULL;
        if (!memory || !fill)
            continue;
        for (int64_t j = 0; j < G; j++)
            to->bias[j] = b ? b[j] + b[G + j] : 0.0f;
        memcpy(to->v, part(in[IN_V], d, z->Q, fill), (size_t)z->Q * sizeof(float));
        if (to->peephole)
            memcpy(to->peephole, part(in[IN_P], d, 3 * z->H, fill),
                   (size_t)(3 * z->H) * sizeof(float));
    }
    return total;
}

/* ---- prepare */

static ort_status attn_prepare(ort_prep *p, ort_error *err)
{
    static const int weights[] = {IN_W, IN_R, IN_B, IN_P, IN_QW, IN_MW, IN_V, IN_AW};
    attn_state *s = p->state;
    const ort_tensor *in[IN_COUNT] = {NULL};
    attn_sizes z;
    s->rnn.kind = ORT_RNN_LSTM;
    ORT_TRY(ort_rnn_settle(p, &s->rnn, err));
    for (int i = 0; i < 8; i++) {
        in[weights[i]] = ort_prep_constant(p, weights[i]);
        if (weights[i] < p->in_count && p->in[weights[i]] && !in[weights[i]])
            return ORT_OK; /* packed by each run */
    }
    int wrong = weight_sizes(&s->rnn, in, &z);
    if (wrong >= 0)
        return ort_prep_fail(p, err, "input %d is missing or has a shape that doesn't fit the "
                             "other weights", wrong);
    size_t bytes = pack_weights(p->k, in, &z, NULL, false, s->weights);
    bool fill;
    char *memory = ort_prep_pack(p, "weights", ort_prep_constants(p), bytes + 1, &fill);
    if (!memory)
        return ort_error_memory(err, bytes);
    pack_weights(p->k, in, &z, memory, fill, s->weights);
    for (int i = 0; i < 8; i++)
        ort_prep_absorb(p, weights[i]);
    s->constant = true;
    return ORT_OK;
}

/* ---- shape */

static bool reserve(size_t *total, int64_t a, int64_t b, size_t *offset)
{
    size_t count, bytes;
    if (!ort_mul_size((size_t)a, (size_t)b, &count) ||
        !ort_mul_size(count, sizeof(float), &bytes) || bytes > SIZE_MAX / 8)
        return false;
    *offset = *total;
    return ort_add_size(*total, ort_round_up(bytes, 64), total);
}

static bool inputs_fit(const ort_tensor *const *in, attn_sizes *z)
{
    const ort_shape *x = &in[IN_X]->shape;
    if (x->rank != 3 || x->dim[2] != z->I || !in[IN_M] || in[IN_M]->shape.rank != 3)
        return false;
    z->T = x->dim[0];
    z->B = x->dim[1];
    z->S = in[IN_M]->shape.dim[1];
    return has_dims(in[IN_M], 3, z->B, z->S, z->M) && z->S > 0 &&
           has_dims(in[IN_H], 3, z->D, z->B, z->H) && has_dims(in[IN_C], 3, z->D, z->B, z->H) &&
           (!in[IN_LENS] || ort_tensor_count(in[IN_LENS]) == z->B) &&
           (!in[IN_M_LENS] || ort_tensor_count(in[IN_M_LENS]) == z->B);
}

static ort_status attn_shape(ort_shaping *s, ort_error *err)
{
    const attn_state *state = s->state;
    attn_plan *p = ort_arena_alloc(s->arena, sizeof *p);
    const ort_tensor *in[IN_COUNT] = {NULL};
    attn_weights unused[2];
    size_t total = 0;
    if (!p)
        return ort_error_memory(err, sizeof *p);
    s->plan_state = p;
    for (int i = 0; i < IN_COUNT && i < s->in_count; i++)
        in[i] = s->in[i];
    attn_sizes *z = &p->z;
    int wrong = weight_sizes(&state->rnn, in, z);
    if (wrong >= 0)
        return ort_error_set(err, ORT_ERROR_MODEL, "input %d is missing or has a shape that "
                             "doesn't fit the other weights", wrong);
    if (!inputs_fit(in, z))
        return ort_error_set(err, ORT_ERROR_MODEL, "X, M, their lengths or the initial states "
                             "have shapes that don't fit the weights");
    bool fits = reserve(&total, z->T * z->B, 4 * z->H, &p->gates) &&
                reserve(&total, z->B, 4 * z->H, &p->step) && reserve(&total, z->B, z->H, &p->h) &&
                reserve(&total, z->B, z->H, &p->c) && reserve(&total, z->B, z->A, &p->attn) &&
                reserve(&total, z->B, z->H + z->M, &p->both) &&
                reserve(&total, z->B * z->S, z->Q, &p->keys) &&
                reserve(&total, z->B, z->Q, &p->query) && reserve(&total, z->B, z->S, &p->align);
    p->weights = total;
    if (fits && !state->constant)
        fits = ort_add_size(total, pack_weights(s->k, in, z, NULL, false, unused), &total);
    if (!fits)
        return ort_error_memory(err, SIZE_MAX);
    s->workspace_bytes = total;
    return ORT_OK;
}

/* ---- run */

typedef struct attn_job {
    const ort_call *call;
    const attn_state *state;
    const attn_plan *p;
    const attn_weights *w;
    int d;
    bool backwards;
    int64_t step;
    float *gates, *g, *h, *c, *attn, *both, *keys, *query, *align;
} attn_job;

static int64_t length_of(const ort_call *call, int input, int64_t row, int64_t all)
{
    const ort_tensor *lens = ort_call_in(call, input);
    return lens ? ((const int32_t *)lens->data)[row] : all;
}

/* c[m][n] = a[m][depth] * packed (+ c) (+ bias). */
static void multiply(const attn_job *j, int64_t m, int64_t n, int64_t depth, const float *a,
                     const float *packed, float *c, bool add, const float *bias)
{
    ort_epilogue e = ort_epilogue_none();
    e.add = add ? c : NULL;
    e.ldadd = n;
    e.col_bias = bias;
    ort_product_f32 p = {.m = m, .n = n, .depth = depth, .a = a, .lda = depth, .packed = packed,
                         .c = c, .ldc = n, .epilogue = &e};
    ort_matrix_multiply_f32(j->call, &p);
}

/* The time that a row is at in this step; -1 when its sequence has ended. */
static int64_t time_of(const attn_job *j, int64_t row)
{
    int64_t length = length_of(j->call, IN_LENS, row, j->p->z.T);
    if (j->step >= length)
        return -1;
    return j->backwards ? length - 1 - j->step : j->step;
}

static void gather_task(void *arg, size_t task, int thread)
{
    const attn_job *j = arg;
    int64_t row = (int64_t)task, t = time_of(j, row), G = 4 * j->p->z.H;
    if (t >= 0)
        memcpy(j->g + row * G, j->gates + (t * j->p->z.B + row) * G, (size_t)G * sizeof(float));
}

static void cell_task(void *arg, size_t task, int thread)
{
    const attn_job *j = arg;
    const attn_sizes *z = &j->p->z;
    int64_t row = (int64_t)task, t = time_of(j, row), H = z->H;
    ort_tensor *y = ort_call_out(j->call, OUT_Y);
    float *h = j->h + row * H;
    if (t < 0)
        return;
    ort_rnn_core_f32.lstm_row(j->call->k, &j->state->rnn, j->state->rnn.act[j->d], j->w->peephole,
                              H, j->g + row * 4 * H, h, j->c + row * H);
    if (y)
        memcpy((float *)y->data + ((t * z->D + j->d) * z->B + row) * H, h,
               (size_t)H * sizeof *h);
}

static void soften(float *v, int64_t n)
{
    float most = v[0];
    double sum = 0;
    for (int64_t i = 1; i < n; i++)
        most = fmaxf(most, v[i]);
    for (int64_t i = 0; i < n; i++) {
        v[i] = expf(v[i] - most);
        sum += (double)v[i];
    }
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((double)v[i] / sum);
}

/* Aligns one row with its memory: both = concat(h, context). */
static void align_task(void *arg, size_t task, int thread)
{
    const attn_job *j = arg;
    const attn_sizes *z = &j->p->z;
    int64_t row = (int64_t)task, steps = length_of(j->call, IN_M_LENS, row, z->S);
    const float *memory = (const float *)ort_call_in(j->call, IN_M)->data + row * z->S * z->M;
    const float *keys = j->keys + row * z->S * z->Q, *query = j->query + row * z->Q;
    float *align = j->align + row * z->S, *both = j->both + row * (z->H + z->M);
    float *context = both + z->H;
    if (time_of(j, row) < 0)
        return;
    for (int64_t s = 0; s < steps; s++) {
        float sum = 0;
        for (int64_t q = 0; q < z->Q; q++)
            sum += j->w->v[q] * tanhf(keys[s * z->Q + q] + query[q]);
        align[s] = sum;
    }
    soften(align, steps);
    memcpy(both, j->h + row * z->H, (size_t)z->H * sizeof *both);
    memset(context, 0, (size_t)z->M * sizeof *context);
    for (int64_t s = 0; s < steps; s++)
        for (int64_t m = 0; m < z->M; m++)
            context[m] += align[s] * memory[s * z->M + m];
    if (!j->w->a)
        memcpy(j->attn + row * z->A, context, (size_t)z->M * sizeof *context);
}

static void run_step(attn_job *j)
{
    const attn_sizes *z = &j->p->z;
    size_t rows = (size_t)z->B;
    ort_call_parallel(j->call, rows, gather_task, j);
    multiply(j, z->B, 4 * z->H, z->A, j->attn, j->w->wa, j->g, true, NULL);
    multiply(j, z->B, 4 * z->H, z->H, j->h, j->w->r, j->g, true, NULL);
    ort_call_parallel(j->call, rows, cell_task, j);
    multiply(j, z->B, z->Q, z->H, j->h, j->w->q, j->query, false, NULL);
    ort_call_parallel(j->call, rows, align_task, j);
    if (j->w->a)
        multiply(j, z->B, z->A, z->H + z->M, j->both, j->w->a, j->attn, false, NULL);
}

static void start_state(const attn_job *j, int input, float *state)
{
    const ort_tensor *t = ort_call_in(j->call, input);
    int64_t count = j->p->z.B * j->p->z.H;
    if (t)
        memcpy(state, (const float *)t->data + j->d * count, (size_t)count * sizeof *state);
    else
        memset(state, 0, (size_t)count * sizeof *state);
}

static void end_state(const attn_job *j, int output, const float *state)
{
    ort_tensor *t = ort_call_out(j->call, output);
    int64_t count = j->p->z.B * j->p->z.H;
    if (t)
        memcpy((float *)t->data + j->d * count, state, (size_t)count * sizeof *state);
}

static void run_direction(attn_job *j)
{
    const attn_sizes *z = &j->p->z;
    const float *x = ort_call_in(j->call, IN_X)->data, *memory = ort_call_in(j->call, IN_M)->data;
    start_state(j, IN_H, j->h);
    start_state(j, IN_C, j->c);
    /* Rows whose sequences have ended are multiplied along: they need to hold numbers. */
    memset(j->attn, 0, (size_t)(z->B * z->A) * sizeof *j->attn);
    memset(j->both, 0, (size_t)(z->B * (z->H + z->M)) * sizeof *j->both);
    memset(j->g, 0, (size_t)(z->B * 4 * z->H) * sizeof *j->g);
    multiply(j, z->T * z->B, 4 * z->H, z->I, x, j->w->w, j->gates, false, j->w->bias);
    multiply(j, z->B * z->S, z->Q, z->M, memory, j->w->m, j->keys, false, NULL);
    for (j->step = 0; j->step < z->T; j->step++)
        run_step(j);
    end_state(j, OUT_H, j->h);
    end_state(j, OUT_C, j->c);
}

static ort_status check_lengths(const ort_call *call, const attn_sizes *z, ort_error *err)
{
    for (int64_t b = 0; b < z->B; b++) {
        int64_t length = length_of(call, IN_LENS, b, z->T);
        int64_t steps = length_of(call, IN_M_LENS, b, z->S);
        if (length < 0 || length > z->T || steps < 1 || steps > z->S)
            return ort_call_fail(call, err, "sequence_lens %lld or memory_seq_lens %lld of row "
                                 "%lld is out of range", (long long)length, (long long)steps,
                                 (long long)b);
    }
    return ORT_OK;
}

static ort_status attn_run(ort_call *call, ort_error *err)
{
    const attn_plan *p = call->plan_state;
    const attn_state *state = call->state;
    attn_job j = {.call = call, .state = state, .p = p};
    attn_weights fresh[2];
    const attn_weights *weights = state->weights;
    const ort_tensor *in[IN_COUNT];
    ort_tensor *y = ort_call_out(call, OUT_Y);
#define PLACE(name) (float *)(void *)((char *)call->workspace + p->name)
    j.gates = PLACE(gates);
    j.g = PLACE(step);
    j.h = PLACE(h);
    j.c = PLACE(c);
    j.attn = PLACE(attn);
    j.both = PLACE(both);
    j.keys = PLACE(keys);
    j.query = PLACE(query);
    j.align = PLACE(align);
#undef PLACE
    ORT_TRY(check_lengths(call, &p->z, err));
    if (!state->constant) {
        for (int i = 0; i < IN_COUNT; i++)
            in[i] = ort_call_in(call, i);
        pack_weights(call->k, in, &p->z, (char *)call->workspace + p->weights, true, fresh);
        weights = fresh;
    }
    if (y) /* zero behind the ends of sequences */
        memset(y->data, 0, (size_t)ort_tensor_count(y) * sizeof(float));
    for (j.d = 0; j.d < p->z.D && p->z.B > 0; j.d++) {
        j.w = &weights[j.d];
        j.backwards = state->rnn.reverse || j.d == 1;
        run_direction(&j);
    }
    return ORT_OK;
}

static const ort_op_impl attn_impl = {
    .state = sizeof(attn_state), .bind = ort_rnn_bind,
    .rule = "[_,_,_] [_,_,_] [_,_,_]",
    .infer = ort_rnn_infer, .prepare = attn_prepare, .shape = attn_shape, .run = attn_run,
};

const ort_op ort_ops_rnn_attention[] = {
    {MS, "AttnLSTM", 1,
     "X:T,W:T,R:T,B?:T,sequence_lens?:T1,initial_h?:T,initial_c?:T,P?:T,QW?:T,MW?:T,V?:T,M?:T,"
     "memory_seq_lens?:T1,AW?:T -> Y?:T,Y_h?:T,Y_c?:T",
     "T:f32 T1:i32",
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s=forward "
     "hidden_size:i input_forget:i=0",
     0, &attn_impl},
    {0},
};

/* attention_fused_project.c - QKV of every token: the product that Attention and QAttention begin
 * with. That of QAttention is one of bytes, exact and scaled once.
 */
#include <string.h>

#include "base/checked.h"
#include "op/sequence/attention_fused.h"
#include "op/shared/integer.h"
#include "op/shared/matrix.h"

static const ort_tensor *given(const ort_call *call, const ort_fused *f, int input)
{
    return f->quantized ? ort_call_in(call, input) : NULL;
}

/* Memory: A as the product reads it and a row of columns, or floats of A and of it; weights. */
bool ort_fused_project_space(const ort_kernels *k, const ort_shape *weights, const ort_fused *f,
                             ort_fused_plan *p, size_t *bytes, size_t *thread_bytes)
{
    const int64_t rows = p->B * p->S, depth = weights->dim[0], columns = weights->dim[1];
    const size_t row = ort_round_up((size_t)columns * sizeof(float), 64);
    size_t packed = 0, plain = 0, split = 0;
    if (f->quantized) {
        if (!ort_integer_rows_bytes(k, rows, depth, bytes) ||
            (!f->weights && !ort_integer_packed_bytes(k, depth, columns, &packed)))
            return false;
        *thread_bytes = ort_integer_thread_bytes(k);
    } else {
        if (!ort_mul_size((size_t)(rows * depth), sizeof(float), bytes) ||
            (!f->weights && !ort_matrix_packed_bytes_f32(k, depth, columns, &packed)))
            return false;
        plain = f->weights ? 0 : (size_t)(depth * columns) * sizeof(float);
        *thread_bytes = ort_matrix_tiles_f32(k, rows, columns, depth, true);
        split = ort_matrix_split_f32(k, rows, columns, depth, true);
    }
    p->project_pack = ort_round_up(*bytes, 64) + 2 * row;
    p->project_split = p->project_pack + ort_round_up(packed, 64) + ort_round_up(plain, 64);
    return ort_add_size(p->project_pack, ort_round_up(packed, 64), bytes) &&
           ort_add_size(*bytes, ort_round_up(plain, 64), bytes) &&
           ort_add_size(*bytes, split, bytes);
}

typedef struct scaling {
    const ort_kernels *k;
    float *out;
    int64_t columns;
    const float *scale, *bias; /* per column; bias may be NULL */
} scaling;

static void scale_sums(void *arg, const ort_integer_tile *t)
{
    const scaling *s = arg;
    for (int64_t i = 0; i < t->m; i++)
        s->k->gemm.scale_i32(t->n, t->sums + i * t->ld, s->scale + t->column,
                             s->bias ? s->bias + t->column : NULL,
                             s->out + (t->row + i) * s->columns + t->column);
}

static float scale_of(const ort_tensor *t, int64_t j)
{
    return t ? (float)ort_tensor_get_f64(t, j % ort_tensor_count(t)) : 1.0f;
}

static void project_bytes(const ort_call *call, int64_t rows, float *out, const float *bias,
                          float *scale)
{
    const ort_fused *f = call->state;
    const ort_fused_plan *p = call->plan_state;
    const ort_tensor *x = ort_call_in(call, 0), *w = ort_call_in(call, 1);
    const int64_t depth = w->shape.dim[0], columns = w->shape.dim[1];
    char *own = (char *)call->workspace + p->project_rows;
    const void *packed = f->weights;
    if (!packed) {
        const ort_bytes b = ort_bytes_of(w, columns, 1);
        const ort_zeros zeros = ort_zeros_of(given(call, f, ORT_QATTENTION_W_ZERO));
        ort_integer_pack_now(call, depth, columns, &b, &zeros, own + p->project_pack);
        packed = own + p->project_pack;
    }
    const float x_scale = scale_of(given(call, f, ORT_QATTENTION_X_SCALE), 0);
    for (int64_t j = 0; j < columns; j++)
        scale[j] = x_scale * scale_of(given(call, f, ORT_QATTENTION_W_SCALE), j);
    scaling s = {call->k, out, columns, scale, bias};
    ort_zeros zero = ort_zeros_of(given(call, f, ORT_QATTENTION_X_ZERO));
    zero.count = 1;
    ort_integer_product q = {.m = rows, .n = columns, .depth = depth,
                             .a = ort_bytes_of(x, depth, 1), .a_zero = zero, .packed = packed,
                             .space = own, .finish = scale_sums, .arg = &s};
    ort_integer_multiply(call, &q);
}

static void project_floats(const ort_call *call, int64_t rows, float *out, const float *bias)
{
    const ort_fused *f = call->state;
    const ort_fused_plan *p = call->plan_state;
    const ort_tensor *x = ort_call_in(call, 0), *w = ort_call_in(call, 1);
    const int64_t depth = w->shape.dim[0], columns = w->shape.dim[1];
    char *own = (char *)call->workspace + p->project_rows;
    const float *in = x->data;
    const void *packed = f->weights;
    ort_epilogue e = ort_epilogue_none();
    if (!packed) {
        size_t bytes = 0;
        ort_matrix_packed_bytes_f32(call->k, depth, columns, &bytes);
        float *panels = (float *)(void *)(own + p->project_pack);
        float *plain = (float *)(void *)((char *)panels + ort_round_up(bytes, 64));
        ort_tensor_to_f32(w, 0, depth * columns, plain);
        ort_matrix_pack_f32(call->k, depth, columns, plain, columns, 1, panels);
        packed = panels;
    }
    if (x->dtype != ORT_DTYPE_FLOAT) {
        ort_tensor_to_f32(x, 0, rows * depth, (float *)(void *)own);
        in = (const float *)(const void *)own;
    }
    e.col_bias = bias;
    ort_product_f32 product = {.m = rows, .n = columns, .depth = depth, .a = in, .lda = depth,
                               .packed = packed, .c = out, .ldc = columns, .epilogue = &e};
    if (ort_matrix_tiles_f32(call->k, rows, columns, depth, true) > 0) {
        product.tiles = call->thread_space;
        product.tiles_step = call->thread_bytes;
        product.split = own + p->project_split;
    }
    ort_matrix_multiply_f32(call, &product);
}

void ort_fused_project(const ort_call *call, float *out)
{
    const ort_fused *f = call->state;
    const ort_fused_plan *p = call->plan_state;
    const ort_tensor *b = ort_call_in(call, 2);
    const int64_t columns = ort_call_in(call, 1)->shape.dim[1], rows = p->B * p->S;
    size_t row = ort_round_up((size_t)columns * sizeof(float), 64);
    char *packs = (char *)call->workspace + p->project_rows + p->project_pack;
    float *bias = (float *)(void *)(packs - 2 * row), *scale = (float *)(void *)(packs - row);
    if (b)
        ort_tensor_to_f32(b, 0, columns, bias);
    if (f->quantized)
        project_bytes(call, rows, out, b ? bias : NULL, scale);
    else
        project_floats(call, rows, out, b ? bias : NULL);
}

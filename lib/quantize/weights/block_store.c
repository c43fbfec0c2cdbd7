/* block_store.c - reading columns of weights and storing their codes. */
#include "quantize/weights/block_store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/num.h"

enum { LANES = ORT_BLOCK_LANES, COLUMNS = 64, PIECE = 256 };

ort_block_matrix ort_block_matrix_of(const ort_tensor *t, bool turned, int64_t block)
{
    ort_block_matrix w = {.from = t, .turned = turned, .k = t->shape.dim[turned],
                          .n = t->shape.dim[!turned], .block = block};
    w.blocks = (w.k + block - 1) / block;
    return w;
}

/* ---- reading */

/* Numbers [first, first + count) of the tensor, wherever it lies. */
static void read_floats(const ort_tensor *t, int64_t first, int64_t count, float *out)
{
    if (t->dtype == ORT_DTYPE_FLOAT) {
        memcpy(out, (const char *)t->data + first * (int64_t)sizeof *out,
               (size_t)count * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, (const char *)t->data + (first + i) * (int64_t)sizeof half, sizeof half);
        out[i] = t->dtype == ORT_DTYPE_FLOAT16 ? ort_f16_to_f32(half) : ort_bf16_to_f32(half);
    }
}

static void read_turned(const ort_block_matrix *w, int64_t n, int64_t count, float *out)
{
    float piece[PIECE];
    for (int64_t l = 0; l < count; l++)
        for (int64_t k = 0; k < w->k; k += PIECE) {
            const int64_t some = w->k - k < PIECE ? w->k - k : PIECE;
            read_floats(w->from, (n + l) * w->k + k, some, piece);
            for (int64_t i = 0; i < some; i++)
                out[(k + i) * LANES + l] = piece[i];
        }
}

bool ort_block_columns(const ort_block_matrix *w, int64_t n, float *out)
{
    const int64_t count = w->n - n < LANES ? w->n - n : LANES;
    float none[LANES] = {0}, sum = 0; /* stay 0 as long as numbers are finite */
    if (count < LANES)
        memset(out, 0, (size_t)(w->k * LANES) * sizeof *out);
    if (w->turned)
        read_turned(w, n, count, out);
    for (int64_t k = 0; k < w->k && !w->turned; k++)
        read_floats(w->from, k * w->n + n, count, out + k * LANES);
    for (int64_t k = 0; k < w->k; k++)
        for (int l = 0; l < LANES; l++)
            none[l] += out[k * LANES + l] * 0.0f;
    for (int l = 0; l < LANES; l++)
        sum += none[l];
    return sum == 0;
}

/* ---- storing */

static int64_t whole_bytes(int64_t codes, int bits)
{
    return (codes * bits + 7) / 8;
}

ort_block_store ort_block_store_of(const ort_block_matrix *shape, const ort_block_form *form,
                                     bool by_columns)
{
    ort_block_store c = {.matrix = *shape, .form = *form, .by_columns = by_columns};
    const int64_t grids = shape->n * shape->blocks;
    const int bits = form->bits;
    c.code_bytes = (size_t)(by_columns ? grids * (shape->block * bits / 8)
                                       : whole_bytes(shape->k * shape->n, bits));
    c.scale_bytes = (size_t)grids * (form->scale == ORT_DTYPE_FLOAT ? 4 : 2);
    c.zero_bytes = form->symmetric ? 0
                                   : (size_t)(by_columns
                                                  ? shape->n * whole_bytes(shape->blocks, bits)
                                                  : whole_bytes(grids, bits));
    return c;
}

ort_status ort_block_store_alloc(ort_block_store *c, ort_error *err)
{
    c->codes = calloc(c->code_bytes + 1, 1);
    c->scales = malloc(c->scale_bytes + 1);
    c->zeros = c->zero_bytes ? calloc(c->zero_bytes, 1) : NULL;
    if (c->codes && c->scales && (c->zeros || !c->zero_bytes))
        return ORT_OK;
    ort_block_store_release(c);
    return ort_error_memory(err, c->code_bytes + c->scale_bytes + c->zero_bytes);
}

void ort_block_store_release(ort_block_store *c)
{
    free(c->codes);
    free(c->scales);
    free(c->zeros);
    c->codes = c->zeros = NULL;
    c->scales = NULL;
}

int64_t ort_block_store_stride(const ort_block_store *c)
{
    const bool apart = c->by_columns || c->matrix.turned || c->matrix.n * c->form.bits % 8 == 0;
    return apart ? COLUMNS : (c->matrix.n + LANES - 1) / LANES * LANES;
}

static void put_code(uint8_t *to, int64_t index, int bits, unsigned code)
{
    const int64_t at = index * bits;
    to[at >> 3] = (uint8_t)(to[at >> 3] | code << (at & 7));
}

static void put_scale(ort_block_store *c, int64_t at, float scale)
{
    if (c->form.scale == ORT_DTYPE_FLOAT)
        ((float *)c->scales)[at] = scale;
    else
        ((uint16_t *)c->scales)[at] = c->form.scale == ORT_DTYPE_FLOAT16 ? ort_f32_to_f16(scale)
                                                                        : ort_f32_to_bf16(scale);
}

/* Codes of a signed type in place of unsigned ones around the middle: their top bit is turned. */
static unsigned flip_of(const ort_block_store *c)
{
    return c->form.symmetric && !c->by_columns ? 1u << (c->form.bits - 1) : 0;
}

static void put_column(ort_block_store *c, int64_t n, int64_t b, unsigned zero,
                       const uint8_t *codes)
{
    const ort_block_matrix *s = &c->matrix;
    const int64_t first = b * s->block, count = s->k - first < s->block ? s->k - first : s->block;
    const int bits = c->form.bits;
    const unsigned flip = flip_of(c);
    if (c->by_columns) {
        uint8_t *to = c->codes + (n * s->blocks + b) * (s->block * bits / 8);
        for (int64_t i = 0; i < count; i++)
            put_code(to, i, bits, codes[i * LANES]);
        for (int64_t i = count; i < s->block; i++)
            put_code(to, i, bits, zero);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        put_code(c->codes, s->turned ? n * s->k + first + i : (first + i) * s->n + n, bits,
                 codes[i * LANES] ^ flip);
}

void ort_block_store_put(ort_block_store *c, int64_t n, int64_t b, const ort_block_grid *grid,
                          const uint8_t *codes)
{
    const ort_block_matrix *s = &c->matrix;
    const int64_t row = whole_bytes(s->blocks, c->form.bits);
    for (int64_t l = 0; l < LANES && n + l < s->n; l++) {
        const unsigned zero = (unsigned)grid->zero[l];
        const bool rows = c->by_columns || s->turned;
        const int64_t at = rows ? (n + l) * s->blocks + b : b * s->n + n + l;
        put_scale(c, at, grid->scale[l]);
        if (c->zeros && c->by_columns)
            put_code(c->zeros + (n + l) * row, b, c->form.bits, zero);
        else if (c->zeros)
            put_code(c->zeros, at, c->form.bits, zero);
        put_column(c, n + l, b, zero, codes + l);
    }
}

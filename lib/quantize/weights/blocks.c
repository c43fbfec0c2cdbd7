/* blocks.c - fitting grids to blocks. The loops over lanes are what a compiler makes vectors of;
 * what they hold is one block in each lane.
 *
 * For given codes c = q - zero the best scale is that of the line x = scale * c + shift (least
 * squares); its shift moves the zero point by shift / scale, rounded. Codes of the new line differ
 * again: the two steps alternate, and what had the least error is kept. Ranges of several widths
 * start, since this finds the nearest minimum alone.
 */
#pragma GCC optimize("O3") /* vectorize the loops over lanes */
#include "quantize/weights/blocks.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

enum { LANES = ORT_BLOCK_LANES, WIDTHS = 6, REFINEMENTS = 3, SPLITS = 12 };
#define EACH_LANE for (int l = 0; l < LANES; l++)

/* Numbers below this are 0 for a grid: the reciprocal of their scale may be no float. */
static const float negligible = 1e-30f;

typedef struct lanes {
    float v[LANES];
} lanes;

/* What a pass over a block finds of a grid. */
typedef struct trial {
    ort_block_grid grid;
    lanes error;     /* sum of w (x - scale c)^2 */
    lanes xc, cc, c; /* sums of w x c, w c^2, w c */
} trial;

/* Half to even; |v| is below 2^22. Adding 1.5 * 2^23 leaves no bits behind the point. */
static inline float whole(float v)
{
    return (v + 12582912.0f) - 12582912.0f;
}

static inline float inverse(float scale)
{
    return scale != 0 ? 1.0f / scale : 0.0f;
}

static inline float within(float v, float most)
{
    v = v > 0.0f ? v : 0.0f;
    return v < most ? v : most;
}

static float most_code(const ort_block_form *form)
{
    return (float)((1 << form->bits) - 1);
}

static float middle_code(const ort_block_form *form)
{
    return (float)(1 << (form->bits - 1));
}

/* As the file will hold it. */
static void round_scales(const ort_block_form *form, float *scale)
{
    EACH_LANE
        if (form->scale == ORT_DTYPE_FLOAT16)
            scale[l] = ort_f16_to_f32(ort_f32_to_f16(scale[l]));
        else if (form->scale == ORT_DTYPE_BFLOAT16)
            scale[l] = ort_bf16_to_f32(ort_f32_to_bf16(scale[l]));
}

/* Half of the lanes: what every x86-64 and every ARMv8 has in a register. */
enum { WIDE = LANES / 2 };
typedef float vec __attribute__((vector_size(WIDE * sizeof(float))));
typedef int32_t ivec __attribute__((vector_size(WIDE * sizeof(int32_t))));

static inline vec load(const float *x)
{
    vec v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline vec nearest_code(vec v, vec most)
{
    v = (vec)((ivec)v & (v > 0));
    const ivec below = v < most;
    v = (vec)(((ivec)v & below) | ((ivec)most & ~below));
    return (v + 12582912.0f) - 12582912.0f;
}

/* Lanes h .. h + WIDE - 1. */
static void try_half(const ort_block_form *form, const float *x, const float *importance, int64_t n,
                     int h, trial *t)
{
    vec e = {0}, xc = {0}, cc = {0}, sum = {0}, back;
    const vec most = most_code(form) + e, scale = load(t->grid.scale + h);
    const vec zero = load(t->grid.zero + h);
    for (int l = 0; l < WIDE; l++)
        back[l] = inverse(t->grid.scale[h + l]);
    for (int64_t i = 0; i < n; i++) {
        const float w = importance ? importance[i] : 1.0f;
        const vec v = load(x + i * LANES + h);
        const vec c = nearest_code(v * back + zero, most) - zero;
        const vec d = v - c * scale, wc = w * c;
        e += w * d * d;
        xc += wc * v;
        cc += wc * c;
        sum += wc;
    }
    memcpy(t->error.v + h, &e, sizeof e);
    memcpy(t->xc.v + h, &xc, sizeof e);
    memcpy(t->cc.v + h, &cc, sizeof e);
    memcpy(t->c.v + h, &sum, sizeof e);
}

static void try_grid(const ort_block_form *form, const float *x, const float *importance, int64_t n,
                     trial *t)
{
    for (int h = 0; h < LANES; h += WIDE)
        try_half(form, x, importance, n, h, t);
}

/* Numbers of a block that don't depend on grids. */
typedef struct block {
    const ort_block_form *form;
    const float *x, *importance;
    int64_t n;
    float weight; /* sum of importance */
    lanes sum;    /* of w x */
    lanes least, most, extreme; /* 0 among them; extreme: the one farther from 0 */
} block;

static block block_of(const ort_block_form *form, const float *x, const float *importance,
                      int64_t n)
{
    block b = {.form = form, .x = x, .importance = importance, .n = n};
    for (int64_t i = 0; i < n; i++) {
        const float w = importance ? importance[i] : 1.0f;
        b.weight += w;
        EACH_LANE {
            const float v = x[i * LANES + l];
            b.sum.v[l] += w * v;
            b.least.v[l] = v < b.least.v[l] ? v : b.least.v[l];
            b.most.v[l] = v > b.most.v[l] ? v : b.most.v[l];
        }
    }
    EACH_LANE
        b.extreme.v[l] = -b.least.v[l] > b.most.v[l] ? b.least.v[l] : b.most.v[l];
    return b;
}

/* The line through the codes of a trial, its zero point rounded. */
static ort_block_grid follow(const block *b, const trial *t)
{
    ort_block_grid next = t->grid;
    const float most = most_code(b->form);
    EACH_LANE {
        const float xc = t->xc.v[l], cc = t->cc.v[l], c = t->c.v[l], x = b->sum.v[l];
        const float spread = b->weight * cc - c * c;
        float zero = t->grid.zero[l], moved = 0;
        if (!b->form->symmetric && spread > 0) {
            const float scale = (b->weight * xc - c * x) / spread;
            const float shift = (x - scale * c) / b->weight;
            zero = scale != 0 ? whole(within(zero - shift * inverse(scale), most)) : zero;
            moved = t->grid.zero[l] - zero; /* c becomes c + moved */
        }
        const float den = cc + 2 * moved * c + moved * moved * b->weight;
        const float num = xc + moved * x;
        if (den > 0 && fabsf(num) > negligible * den) {
            next.scale[l] = num / den;
            next.zero[l] = zero;
        }
    }
    round_scales(b->form, next.scale);
    return next;
}

static void keep_better(trial *best, const trial *t)
{
    EACH_LANE
        if (t->error.v[l] < best->error.v[l]) {
            best->grid.scale[l] = t->grid.scale[l];
            best->grid.zero[l] = t->grid.zero[l];
            best->error.v[l] = t->error.v[l];
            best->xc.v[l] = t->xc.v[l];
            best->cc.v[l] = t->cc.v[l];
            best->c.v[l] = t->c.v[l];
        }
}

static void try_from(const block *b, const ort_block_grid *start, int follows, trial *best)
{
    trial t = {.grid = *start};
    for (int i = 0; i <= follows; i++) {
        try_grid(b->form, b->x, b->importance, b->n, &t);
        keep_better(best, &t);
        t.grid = follow(b, &t);
    }
}

/* Ends of the range at both ends of the codes, moved by `shift` of them; of symmetric grids the
 * extreme is at code 0, or with a shift and the other sign at the last code. */
static ort_block_grid start_of(const block *b, float width, int shift)
{
    ort_block_grid g;
    const float most = most_code(b->form), middle = middle_code(b->form);
    EACH_LANE {
        float scale = b->form->symmetric
                          ? shift ? b->extreme.v[l] / (most - middle) : b->extreme.v[l] / -middle
                          : b->most.v[l] / most - b->least.v[l] / most;
        if (fabsf(b->extreme.v[l]) < negligible)
            scale = 1;
        g.zero[l] = b->form->symmetric ? middle : whole(
            within(-b->least.v[l] / scale + (float)shift, most));
        g.scale[l] = scale * width;
    }
    round_scales(b->form, g.scale);
    return g;
}

void ort_block_fit(const ort_block_form *form, const float *x, const float *importance, int64_t n,
                   ort_block_grid *grid)
{
    const float step = form->bits > 4 ? 0.004f : 0.06f;
    const block b = block_of(form, x, importance, n);
    trial best = {.grid = start_of(&b, 1, 0)};
    EACH_LANE
        best.error.v[l] = INFINITY;
    for (int i = 0; i < WIDTHS; i++)
        for (int shift = form->symmetric ? 0 : -1; shift <= 1; shift++) {
            const ort_block_grid start = start_of(&b, 1.0f - step * (float)i, shift);
            try_from(&b, &start, 1, &best);
        }
    for (int i = 0; i < REFINEMENTS; i++) {
        const ort_block_grid next = follow(&b, &best);
        try_from(&b, &next, 0, &best);
    }
    *grid = best.grid;
}

/* ---- half-quadratic splitting */

/* x^(-1/4) to a thousandth: the exponent divided by -4, and a step of Newton's method. */
static inline vec inverse_fourth_root(vec x)
{
    const vec y = (vec)(0x4f5800f0 - ((ivec)x >> 2)), yy = y * y;
    return y * (1.25f - 0.25f * x * yy * yy);
}

/* One step: codes of the grid, the errors d = x / scale + zero - q in units of it, and
 *     e = sign(d) max(|d| - |d|^(p - 1) / beta, 0)
 * of them (generalized soft threshold, Badri & Shaji 2023, eq. 6). The sums of the trial are those
 * of x - scale e, whose line is the next grid; its error is the sum of |d|^p. */
static void split_half(const ort_block_form *form, const float *x, int64_t n, float beta, int h,
                       trial *t, lanes *total)
{
    vec norm = {0}, xc = {0}, cc = {0}, sum = {0}, all = {0}, back;
    const vec most = most_code(form) + norm, scale = load(t->grid.scale + h);
    const vec zero = load(t->grid.zero + h), no_sign = 1e-8f + norm;
    const ivec magnitude = 0x7fffffff + (ivec){0};
    const float less = 1.0f / beta;
    for (int l = 0; l < WIDE; l++)
        back[l] = inverse(t->grid.scale[h + l]);
    for (int64_t i = 0; i < n; i++) {
        const vec v = load(x + i * LANES + h), at = v * back + zero;
        const vec q = nearest_code(at, most), d = at - q, c = q - zero;
        const vec far = (vec)((ivec)d & magnitude) + no_sign, root = inverse_fourth_root(far);
        const vec left = far - less * root, sparse = (vec)((ivec)left & (left > 0));
        const vec plain = v - (vec)((ivec)sparse | ((ivec)d & ~magnitude)) * scale;
        norm += far * root;
        xc += plain * c;
        cc += c * c;
        sum += c;
        all += plain;
    }
    memcpy(t->error.v + h, &norm, sizeof norm);
    memcpy(t->xc.v + h, &xc, sizeof norm);
    memcpy(t->cc.v + h, &cc, sizeof norm);
    memcpy(t->c.v + h, &sum, sizeof norm);
    memcpy(total->v + h, &all, sizeof norm);
}

static void split(const ort_block_form *form, const float *x, int64_t n, float beta, trial *t,
                  lanes *total)
{
    for (int h = 0; h < LANES; h += WIDE)
        split_half(form, x, n, beta, h, t, total);
    EACH_LANE { /* of x, not of codes: |scale|^p times as much */
        const float size = sqrtf(fabsf(t->grid.scale[l]));
        t->error.v[l] = t->error.v[l] * size * sqrtf(size);
    }
}

void ort_block_refine(const ort_block_form *form, const float *x, int64_t n, ort_block_grid *grid)
{
    block b = {.form = form, .x = x, .n = n, .weight = (float)n};
    trial best = {.grid = *grid}, t = {.grid = *grid};
    float beta = 10.0f;
    EACH_LANE
        best.error.v[l] = INFINITY;
    for (int i = 0; i < SPLITS; i++, beta *= 1.01f) {
        split(form, x, n, beta, &t, &b.sum);
        keep_better(&best, &t);
        t.grid = follow(&b, &t);
    }
    *grid = best.grid;
}

/* ---- codes */

void ort_block_codes(const ort_block_form *form, const ort_block_grid *grid, const float *x,
                     int64_t n, uint8_t *codes)
{
    const float most = most_code(form);
    lanes back;
    EACH_LANE
        back.v[l] = inverse(grid->scale[l]);
    for (int64_t i = 0; i < n; i++)
        EACH_LANE
            codes[i * LANES + l] =
                (uint8_t)(int)whole(within(x[i * LANES + l] * back.v[l] + grid->zero[l], most));
}

void ort_block_errors(const ort_block_form *form, const ort_block_grid *grid, const float *x,
                      int64_t n, float *errors)
{
    trial t = {.grid = *grid};
    try_grid(form, x, NULL, n, &t);
    EACH_LANE
        errors[l] = t.error.v[l];
}

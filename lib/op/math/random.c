/* random.c - RandomNormal, RandomUniform (and Like), Multinomial, Bernoulli.
 *
 * Where the numbers come from is random_draw.h's; here they are shaped: mean + scale * normal,
 * low + (high - low) * uniform, in double and rounded once. With a seed attribute the results are
 * those of numpy's RandomState(seed): normal, uniform, binomial(1, p).
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/shared/random_draw.h"

#define GRAIN 4096
#define PIECE 256

enum { UNIFORM, NORMAL };

typedef struct random_state {
    double mean, scale, low, high;
    double seed_attr; /* NaN: none */
    bool normal;
    bool seeded;
    uint64_t seed;
} random_state;

static const ort_bind random_bind[] = {
    ORT_BIND(random_state, mean, ORT_MAYBE),
    ORT_BIND(random_state, scale, ORT_MAYBE),
    ORT_BIND(random_state, low, ORT_MAYBE),
    ORT_BIND(random_state, high, ORT_MAYBE),
    ORT_BIND_AS(random_state, seed_attr, "seed", ORT_ELSE(NAN)), {0}};

static ort_status random_prepare(ort_prep *p, ort_error *err)
{
    random_state *s = p->state;
    s->normal = p->op->variant == NORMAL;
    s->seeded = ort_draw_float_seed(s->seed_attr, &s->seed);
    return ORT_OK;
}

/* ---- RandomNormal, RandomUniform, *Like */

typedef struct fill {
    const random_state *s;
    ort_tensor *y;
    ort_draw draw;
} fill;

static double number(const fill *f, int64_t i)
{
    const random_state *s = f->s;
    if (s->normal)
        return s->mean + s->scale * ort_draw_normal(&f->draw, i);
    return s->low + (s->high - s->low) * ort_draw_uniform(&f->draw, i);
}

static void fill_task(void *arg, int64_t first, int64_t end, int thread)
{
    const fill *f = arg;
    float piece[PIECE];
    if (f->y->dtype == ORT_DTYPE_DOUBLE) {
        for (int64_t i = first; i < end; i++)
            ((double *)f->y->data)[i] = number(f, i);
        return;
    }
    for (; first < end; first += PIECE) {
        int64_t n = ort_min_i64(PIECE, end - first);
        for (int64_t i = 0; i < n; i++)
            piece[i] = (float)number(f, first + i);
        ort_tensor_from_f32(piece, f->y, first, n);
    }
}

static ort_status random_run(ort_call *call, ort_error *err)
{
    const random_state *s = call->state;
    fill f = {.s = s, .y = ort_call_out(call, 0)};
    int64_t count = ort_tensor_count(f.y);
    ort_draw_begin(&f.draw, call, s->seeded, s->seed);
    if (!ort_draw_in_order(&f.draw))
        ort_call_range(call, count, GRAIN, fill_task, &f);
    ort_pace pace = {0};
    for (int64_t i = 0; ort_draw_in_order(&f.draw) && i < count && !ort_pace_over(&pace, GRAIN);
         i += GRAIN)
        fill_task(&f, i, ort_min_i64(i + GRAIN, count), 0);
    return ORT_OK;
}

/* The type of input 0 with the dtype of the attribute. */
static const ort_op_impl random_impl = {
    .state = sizeof(random_state), .bind = random_bind,
    .rule = "-> [shape..]:dtype", .prepare = random_prepare, .run = random_run,
};
static const ort_op_impl like_impl = {
    .state = sizeof(random_state), .bind = random_bind,
    .rule = "[..] -> [..]:dtype|input", .prepare = random_prepare, .run = random_run,
};

/* ---- Bernoulli */

static ort_status bernoulli_run(ort_call *call, ort_error *err)
{
    const random_state *s = call->state;
    const ort_tensor *p = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    int64_t count = ort_tensor_count(p);
    ort_draw draw;
    ort_draw_begin(&draw, call, s->seeded, s->seed);
    for (int64_t i = 0; i < count; i++) {
        double chance = ort_tensor_get_f64(p, i);
        if (!(chance >= 0 && chance <= 1))
            return ort_call_fail(call, err, "element %lld of the input is %g; a probability is 0 "
                                 "to 1", (long long)i, chance);
        ort_tensor_set_f64(y, i, ort_draw_bernoulli(&draw, i, chance) ? 1 : 0);
    }
    return ORT_OK;
}

static const ort_op_impl bernoulli_impl = {
    .state = sizeof(random_state), .bind = random_bind,
    .rule = "[..] -> [..]:dtype|input", .prepare = random_prepare, .run = bernoulli_run,
};

/* ---- Multinomial */

/* One outcome by inversion of the unnormalized log-probabilities in row `first`. */
static int64_t pick(const ort_tensor *x, int64_t first, int64_t classes, double top, double total,
                    double u)
{
    double sum = 0, target = u * total;
    int64_t last = 0;
    for (int64_t c = 0; c < classes; c++) {
        double p = exp(ort_tensor_get_f64(x, first + c) - top);
        if (p > 0)
            last = c;
        sum += p;
        if (sum > target)
            return c;
    }
    return last;
}

static ort_status multinomial_run(ort_call *call, ort_error *err)
{
    const random_state *s = call->state;
    const ort_tensor *x = ort_call_in(call, 0);
    ort_tensor *y = ort_call_out(call, 0);
    ort_draw draw;
    ort_pace pace = {0};
    int64_t rows = x->shape.dim[0], classes = x->shape.dim[1], samples = y->shape.dim[1];
    ort_draw_begin(&draw, call, s->seeded, s->seed);
    if (classes == 0 && rows * samples > 0)
        return ort_call_fail(call, err, "there are no classes to draw from");
    for (int64_t r = 0; r < rows; r++) {
        double top = -INFINITY, total = 0;
        for (int64_t c = 0; c < classes; c++)
            top = fmax(top, ort_tensor_get_f64(x, r * classes + c));
        for (int64_t c = 0; c < classes; c++)
            total += exp(ort_tensor_get_f64(x, r * classes + c) - top);
        if (!(total > 0))
            return ort_call_fail(call, err, "row %lld holds no outcome of positive probability",
                                 (long long)r);
        for (int64_t k = 0; k < samples; k++) {
            int64_t at = r * samples + k;
            if (ort_pace_over(&pace, (uint64_t)classes * 10))
                return ORT_OK;
            ort_tensor_set_i64(y, at, pick(x, r * classes, classes, top, total,
                                           ort_draw_uniform(&draw, at)));
        }
    }
    return ORT_OK;
}

static const ort_op_impl multinomial_impl = {
    .state = sizeof(random_state), .bind = random_bind,
    .rule = "[B,_] -> [B,sample_size]:dtype", .prepare = random_prepare, .run = multinomial_run,
};

/* ---- rows */

const ort_op ort_ops_random[] = {
    {ONNX, "RandomNormal", 1, " -> output:T",
     "T:F",
     "dtype:i=1 mean:f=0 scale:f=1 seed:f shape:is!", ORT_TRAIT_RANDOM, &random_impl,
     .history = "22:T+bf16", .variant = NORMAL},
    {ONNX, "RandomUniform", 1, " -> output:T",
     "T:F",
     "dtype:i=1 high:f=1 low:f=0 seed:f shape:is!", ORT_TRAIT_RANDOM, &random_impl,
     .history = "22:T+bf16"},
    {ONNX, "RandomNormalLike", 1, "input:T1 -> output:T2",
     "T1:F,I,U,C,str,bool T2:F",
     "dtype:i mean:f=0 scale:f=1 seed:f", ORT_TRAIT_RANDOM, &like_impl,
     .history = "22:T1+bf16 T2+bf16", .variant = NORMAL},
    {ONNX, "RandomUniformLike", 1, "input:T1 -> output:T2",
     "T1:F,I,U,C,str,bool T2:F",
     "dtype:i high:f=1 low:f=0 seed:f", ORT_TRAIT_RANDOM, &like_impl,
     .history = "22:T1+bf16 T2+bf16"},
    {ONNX, "Bernoulli", 15, "input:T1 -> output:T2",
     "T1:F T2:F,I,U,bf16,bool",
     "dtype:i seed:f", ORT_TRAIT_RANDOM, &bernoulli_impl, .history = "22:T1+bf16"},
    {ONNX, "Multinomial", 7, "input:T1 -> output:T2",
     "T1:F T2:i32,i64",
     "dtype:i=6 sample_size:i=1 seed:f", ORT_TRAIT_RANDOM, &multinomial_impl,
     .history = "22:T1+bf16"},
    {NULL, NULL, 0, NULL, NULL, NULL, 0, NULL},
};

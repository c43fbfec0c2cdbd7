/* random_draw.c - see random_draw.h. The counter's mix is the finalizer of splitmix64 (Steele, Lea
 * and Flood, OOPSLA 2014); its normals are Box and Muller's, two numbers each, so that i alone
 * decides. */
#include "op/shared/random_draw.h"

#include <math.h>
#include <string.h>

#define TWO_PI 6.283185307179586

/* Every bit of x changes half of the bits of the result. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void ort_draw_begin(ort_draw *draw, const ort_call *call, bool seeded, uint64_t seed)
{
    draw->key = mix(call->seed + 0x632be59bd9b4e019u);
    draw->stream = call->stream;
    if (!draw->stream && seeded) {
        ort_mt19937_seed(&draw->own, seed);
        draw->stream = &draw->own;
    }
}

bool ort_draw_float_seed(double value, uint64_t *seed)
{
    if (isnan(value))
        return false;
    if (value > -1 && value < 0x1p63)
        *seed = (uint64_t)value;
    else
        memcpy(seed, &value, sizeof *seed);
    return true;
}

static double at(uint64_t key, uint64_t counter)
{
    return (double)(mix(key + counter * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-53;
}

double ort_draw_uniform(const ort_draw *draw, int64_t i)
{
    return draw->stream ? ort_mt19937_uniform(draw->stream) : at(draw->key, (uint64_t)i);
}

double ort_draw_normal(const ort_draw *draw, int64_t i)
{
    if (draw->stream)
        return ort_mt19937_normal(draw->stream);
    double u = 1 - at(draw->key, 2 * (uint64_t)i), v = at(draw->key, 2 * (uint64_t)i + 1);
    return sqrt(-2 * log(u)) * cos(TWO_PI * v);
}

bool ort_draw_bernoulli(const ort_draw *draw, int64_t i, double p)
{
    return draw->stream ? ort_mt19937_bernoulli(draw->stream, p) : at(draw->key, (uint64_t)i) < p;
}

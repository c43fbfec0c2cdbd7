/* pairs.c - grids and codes whose products fit 16 bits in twos. */
#include "quantize/pairs.h"

#include <math.h>
#include <stdlib.h>

int ort_pairs_of(const ort_pairs *p, int64_t i, int64_t other[2])
{
    int count = 0;
    if (p->channels == 0)
        return 0;
    const int64_t block = p->channels * p->plane, first = i - i % block, at = i - first;
    const int64_t channel = at / p->plane, tap = at % p->plane;
    if ((channel ^ 1) < p->channels)
        other[count++] = first + (channel ^ 1) * p->plane + tap;
    const int64_t turned = (tap * p->channels + channel) ^ 1;
    if (p->channels % 2 && p->plane > 1 && turned < block) {
        const int64_t k = first + turned % p->channels * p->plane + turned / p->channels;
        if (count == 0 || other[0] != k)
            other[count++] = k;
    }
    return count;
}

/* Half of what codes of a pair may be together: one of both is at least as large. */
static bool is_large(int code)
{
    return abs(code) * 2 > ORT_PAIR_MOST;
}

ort_grid ort_pairs_widen(const ort_codes_range *codes, const ort_pairs *pairs, const float *x,
                         int64_t n, ort_grid grid)
{
    float most = 0;
    int64_t other[2];
    for (int64_t i = 0; i < n; i++) {
        const int code = ort_grid_code(codes, grid, x[i]);
        const int others = is_large(code) ? ort_pairs_of(pairs, i, other) : 0;
        for (int o = 0; o < others; o++) {
            const float together = fabsf(x[i] + x[other[o]]);
            if (!ort_pair_fits(code, ort_grid_code(codes, grid, x[other[o]])) && together > most)
                most = together;
        }
    }
    if (most / ORT_PAIR_MOST > grid.scale)
        grid.scale = most / ORT_PAIR_MOST;
    return grid;
}

/* Two of one sign, in steps, with the least squared error of both. */
static void lower_pair(ort_grid grid, const float *x, int *code, int64_t i, int64_t k)
{
    const int sign = code[i] < 0 ? -1 : 1, a = abs(code[i]), b = abs(code[k]);
    const int over = a + b - ORT_PAIR_MOST;
    const double scale = (double)grid.scale;
    const double apart = fmin(fabs((double)x[i]) / scale, a + 0.5) -
                         fmin(fabs((double)x[k]) / scale, b + 0.5);
    int first = (int)nearbyint((apart + ORT_PAIR_MOST) / 2);
    first = first > a ? a : first < a - over ? a - over : first;
    code[i] = sign * first;
    code[k] = sign * (ORT_PAIR_MOST - first);
}

void ort_pairs_lower(const ort_pairs *pairs, ort_grid grid, const float *x, int64_t n, int *code)
{
    int64_t other[2];
    for (int64_t i = 0; i < n; i++) {
        const int others = is_large(code[i]) ? ort_pairs_of(pairs, i, other) : 0;
        for (int o = 0; o < others; o++)
            if (!ort_pair_fits(code[i], code[other[o]]))
                lower_pair(grid, x, code, i, other[o]);
    }
}

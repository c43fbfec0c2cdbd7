/* code_grid.c - grids of ranges, and the grid that fits numbers best. */
#include "quantize/code_grid.h"

#include <float.h>
#include <math.h>

bool ort_codes_range_of(ort_dtype dtype, bool symmetric, bool reduced, ort_codes_range *range)
{
    static const struct {
        ort_dtype dtype;
        int least, most;
    } types[] = {
        {ORT_DTYPE_INT8, -128, 127}, {ORT_DTYPE_UINT8, 0, 255}, {ORT_DTYPE_INT16, -32768, 32767},
        {ORT_DTYPE_UINT16, 0, 65535}, {ORT_DTYPE_INT4, -8, 7}, {ORT_DTYPE_UINT4, 0, 15},
        {ORT_DTYPE_INT2, -2, 1}, {ORT_DTYPE_UINT2, 0, 3}, {ORT_DTYPE_FLOAT8E4M3FN, -448, 448},
        {ORT_DTYPE_FLOAT8E4M3FNUZ, -240, 240}, {ORT_DTYPE_FLOAT8E5M2, -57344, 57344},
        {ORT_DTYPE_FLOAT8E5M2FNUZ, -57344, 57344},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == dtype) {
            int least = types[i].least, most = types[i].most;
            if (reduced)
                least /= 2, most /= 2;
            if (symmetric && least < -1 && least == -most - 1)
                least++;
            *range = (ort_codes_range){dtype, least, most, symmetric};
            return true;
        }
    return false;
}

/* Division by a scale so small that it is no normal float would lose the codes. */
static float usable(double scale)
{
    float s = (float)scale;
    return s >= FLT_MIN && s <= FLT_MAX ? s : s > FLT_MAX ? FLT_MAX : scale > 0 ? FLT_MIN : 1;
}

ort_grid ort_grid_of(const ort_codes_range *codes, float least, float most)
{
    double lo = least < 0 ? least : 0, hi = most > 0 ? most : 0;
    if (codes->symmetric) {
        int zero = codes->least < 0 ? 0 : (codes->least + codes->most + 1) / 2;
        double reach = -lo > hi ? -lo : hi;
        return (ort_grid){usable(reach / (codes->most - zero)), zero};
    }
    float scale = usable((hi - lo) / ((double)codes->most - codes->least));
    double zero = nearbyint(codes->least - lo / (double)scale);
    zero = zero < codes->least ? codes->least : zero > codes->most ? codes->most : zero;
    return (ort_grid){scale, (int)zero};
}

int ort_grid_code(const ort_codes_range *codes, ort_grid grid, float x)
{
    float q = nearbyintf(x / grid.scale) + (float)grid.zero_point;
    if (!(q > (float)codes->least)) /* NaN too */
        return codes->least;
    return q < (float)codes->most ? (int)q : codes->most;
}

/* Codes here are rounded by adding 1.5 * 2^23: half to even, of numbers that aren't so large, and
 * much faster than a call of nearbyintf. */
static inline double squared_error_of(float v, float inverse, float scale, float least, float most)
{
    const float middle = 12582912.0f;
    float q = v * inverse;
    q = q > least ? q : least; /* NaN too */
    q = q < most ? q : most;
    float d = v - ((q + middle) - middle) * scale;
    return (double)d * (double)d;
}

/* LANES sums, added up in one order everywhere. */
static double squared_error(const ort_codes_range *codes, ort_grid grid, const float *x, int64_t n,
                            int64_t stride)
{
    enum { LANES = 8 };
    const float inverse = 1 / grid.scale, scale = grid.scale;
    const float least = (float)(codes->least - grid.zero_point);
    const float most = (float)(codes->most - grid.zero_point);
    double sum[LANES] = {0}, total = 0;
    int64_t i = 0;
    for (; i + LANES <= n && stride == 1; i += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += squared_error_of(x[i + l], inverse, scale, least, most);
    for (; i < n; i++)
        sum[i % LANES] += squared_error_of(x[i * stride], inverse, scale, least, most);
    for (int l = 0; l < LANES; l++)
        total += sum[l];
    return total;
}

/* What an error beyond rounding is comes from numbers outside of the grid, and only grows as the
 * grid becomes narrower still. */
static bool is_hopeless(double error, ort_grid grid, int64_t n, double least_sum)
{
    return error - (double)n * (double)grid.scale * (double)grid.scale > least_sum;
}

ort_grid ort_grid_fit(const ort_codes_range *codes, const float *x, int64_t n, int64_t stride,
                      double *sum)
{
    enum { STEPS = 48 }; /* of a hundredth each */
    float least = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        least = x[i * stride] < least ? x[i * stride] : least;
        most = x[i * stride] > most ? x[i * stride] : most;
    }
    ort_grid best = ort_grid_of(codes, least, most);
    double least_sum = squared_error(codes, best, x, n, stride);
    for (int i = 1; i <= STEPS && least_sum > 0; i++) {
        float part = 1 - 0.01f * (float)i;
        ort_grid grid = ort_grid_of(codes, least * part, most * part);
        double error = squared_error(codes, grid, x, n, stride);
        if (error < least_sum)
            least_sum = error, best = grid;
        else if (is_hopeless(error, grid, n, least_sum))
            break;
    }
    if (sum)
        *sum = least_sum;
    return best;
}

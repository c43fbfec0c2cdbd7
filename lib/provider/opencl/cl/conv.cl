/* conv.cl - convolutions of NCHW. A work item makes eight channels of one pixel: neighbours read
 * neighbouring pixels, and the eight filters are the same for all of them. What every 16 channels
 * give is added up apart, so that errors don't grow with the depth. */

#define BLOCK 8
#define APART 16

static float activate(int kind, float a, float b, float x)
{
    switch (kind) {
    case 1: return fmax(x, 0.0f);
    case 2: return x >= 0.0f ? x : a * x;
    case 3: return fmin(fmax(x, a), b);
    case 4: return 1.0f / (1.0f + exp(-x));
    case 5: return tanh(x);
    case 6: return fmin(fmax(a * x + b, 0.0f), 1.0f);
    default: return x;
    }
}

__kernel void conv2d(__global const float *x, __global const float *w, __global const float *bias,
                     __global const float *sum, __global float *y, int has_bias, int has_sum,
                     int channels, int height, int width, int outs, int out_height, int out_width,
                     int groups, int kh, int kw, int sy, int sx, int py, int px, int dy, int dx,
                     int kind, float a, float b)
{
    int pixel = get_global_id(0), n = get_global_id(2);
    int plane = out_height * out_width;
    int per_group = outs / groups, blocks = (per_group + BLOCK - 1) / BLOCK;
    int group = (int)get_global_id(1) / blocks;
    int first = ((int)get_global_id(1) % blocks) * BLOCK;
    int ins = channels / groups, taps = kh * kw;
    int count = min(BLOCK, per_group - first);
    int oc = group * per_group + first;
    if (pixel >= plane)
        return;
    int oy = pixel / out_width, ox = pixel % out_width;
    int iy0 = oy * sy - py, ix0 = ox * sx - px;
    __global const float *f[BLOCK];
    float acc[BLOCK], whole[BLOCK];
    for (int j = 0; j < BLOCK; j++) {
        int c = oc + min(j, count - 1);
        f[j] = w + (size_t)c * ins * taps;
        whole[j] = has_bias ? bias[c] : 0.0f;
        acc[j] = 0.0f;
    }
    for (int c = 0; c < ins; c++) {
        __global const float *in = x + ((size_t)n * channels + group * ins + c) * height * width;
        for (int ky = 0; ky < kh; ky++) {
            int iy = iy0 + ky * dy;
            for (int kx = 0; kx < kw; kx++) {
                int ix = ix0 + kx * dx;
                bool inside = iy >= 0 && iy < height && ix >= 0 && ix < width;
                float v = inside ? in[(inside ? iy : 0) * width + (inside ? ix : 0)] : 0.0f;
                int tap = c * taps + ky * kw + kx;
                for (int j = 0; j < BLOCK; j++)
                    acc[j] += v * f[j][tap];
            }
        }
        if (c % APART == APART - 1)
            for (int j = 0; j < BLOCK; j++) {
                whole[j] += acc[j];
                acc[j] = 0.0f;
            }
    }
    for (int j = 0; j < count; j++) {
        size_t at = ((size_t)n * outs + oc + j) * plane + pixel;
        y[at] = activate(kind, a, b, whole[j] + acc[j] + (has_sum ? sum[at] : 0.0f));
    }
}

/* One filter a channel. */
__kernel void depthwise(__global const float *x, __global const float *w,
                        __global const float *bias, __global const float *sum, __global float *y,
                        int has_bias, int has_sum, int channels, int height, int width, int outs,
                        int out_height, int out_width, int groups, int kh, int kw, int sy, int sx,
                        int py, int px, int dy, int dx, int kind, float a, float b)
{
    int pixel = get_global_id(0), c = get_global_id(1), n = get_global_id(2);
    int plane = out_height * out_width;
    int oy = pixel / out_width, ox = pixel % out_width;
    int iy0 = oy * sy - py, ix0 = ox * sx - px;
    __global const float *in = x + ((size_t)n * channels + c / (outs / groups)) * height * width;
    __global const float *f = w + (size_t)c * kh * kw;
    float acc = has_bias ? bias[c] : 0.0f;
    for (int ky = 0; ky < kh; ky++)
        for (int kx = 0; kx < kw; kx++) {
            int iy = iy0 + ky * dy, ix = ix0 + kx * dx;
            bool inside = iy >= 0 && iy < height && ix >= 0 && ix < width;
            float v = inside ? in[(inside ? iy : 0) * width + (inside ? ix : 0)] : 0.0f;
            acc += v * f[ky * kw + kx];
        }
    size_t at = ((size_t)n * outs + c) * plane + pixel;
    y[at] = activate(kind, a, b, acc + (has_sum ? sum[at] : 0.0f));
}

/* kind 0: the greatest; 1: the mean of what lies inside; 2: of the whole window, padding too. */
__kernel void pool(__global const float *x, __global float *y, int height, int width,
                   int out_height, int out_width, int kh, int kw, int sy, int sx, int py, int px,
                   int dy, int dx, int end_y, int end_x, int kind)
{
    int ox = get_global_id(0), oy = get_global_id(1), plane = get_global_id(2);
    __global const float *in = x + (size_t)plane * height * width;
    int inside = 0, whole = 0;
    float most = -INFINITY, sum = 0.0f;
    for (int ky = 0; ky < kh; ky++)
        for (int kx = 0; kx < kw; kx++) {
            int iy = oy * sy - py + ky * dy, ix = ox * sx - px + kx * dx;
            whole += iy < height + end_y && ix < width + end_x;
            if (iy < 0 || iy >= height || ix < 0 || ix >= width)
                continue;
            float v = in[iy * width + ix];
            most = isnan(v) || isnan(most) ? NAN : fmax(most, v);
            sum += v;
            inside++;
        }
    float count = kind == 2 ? whole : inside;
    y[((size_t)plane * out_height + oy) * out_width + ox] = kind == 0 ? most : sum / count;
}

/* rows.cl - what one row of `count` elements gives: means, softmax, norms. A work item has a row;
 * sums are made in blocks of 128, so that errors don't grow with the row. */

#define BLOCK 128

__kernel void mean(__global const float *x, __global float *out, int count)
{
    size_t row = get_global_id(0);
    float sum = 0.0f, part = 0.0f;
    for (int i = 0; i < count; i++) {
        part += x[row * count + i];
        if (i % BLOCK == BLOCK - 1) {
            sum += part;
            part = 0.0f;
        }
    }
    out[row] = (sum + part) / count;
}

/* Elements of a row lie `step` apart; add: a mask [rows of it, count], or none. */
__kernel void softmax(__global const float *x, __global float *out, int count, int step, int as_log)
{
    size_t row = get_global_id(0);
    size_t at = row / step * step * count + row % step;
    float most = -INFINITY, sum = 0.0f, part = 0.0f;
    for (int i = 0; i < count; i++)
        most = fmax(most, x[at + (size_t)i * step]);
    for (int i = 0; i < count; i++) {
        part += exp(x[at + (size_t)i * step] - most);
        if (i % BLOCK == BLOCK - 1) {
            sum += part;
            part = 0.0f;
        }
    }
    sum += part;
    for (int i = 0; i < count; i++) {
        float v = x[at + (size_t)i * step] - most;
        out[at + (size_t)i * step] = as_log ? v - log(sum) : exp(v) / sum;
    }
}

/* LayerNormalization; skip: a second term (has_skip), a bias of it, and the sum as an output. */
__kernel void layer_norm(__global const float *x, __global const float *skip,
                         __global const float *more, __global const float *scale,
                         __global const float *bias, __global float *out, __global float *whole,
                         int has_skip, int has_more, int has_bias, int has_whole, int count,
                         float epsilon)
{
    size_t row = get_global_id(0), at = row * count;
    float sum = 0.0f, part = 0.0f;
    for (int i = 0; i < count; i++) {
        part += x[at + i] + (has_skip ? skip[at + i] : 0.0f) + (has_more ? more[i] : 0.0f);
        if (i % BLOCK == BLOCK - 1) {
            sum += part;
            part = 0.0f;
        }
    }
    float mean = (sum + part) / count;
    sum = part = 0.0f;
    for (int i = 0; i < count; i++) {
        float v = x[at + i] + (has_skip ? skip[at + i] : 0.0f) + (has_more ? more[i] : 0.0f);
        part += (v - mean) * (v - mean);
        if (i % BLOCK == BLOCK - 1) {
            sum += part;
            part = 0.0f;
        }
    }
    float over = 1.0f / sqrt((sum + part) / count + epsilon);
    for (int i = 0; i < count; i++) {
        float v = x[at + i] + (has_skip ? skip[at + i] : 0.0f) + (has_more ? more[i] : 0.0f);
        if (has_whole)
            whole[at + i] = v;
        out[at + i] = (v - mean) * over * scale[i] + (has_bias ? bias[i] : 0.0f);
    }
}

/* rnn.cl - LSTM, GRU, RNN behind the product of all inputs with their weights. A group walks one
 * row of the batch through time, in one direction; its items share the hidden units. A row whose
 * sequence has ended keeps its state; walking backwards it starts when time falls below its length.
 */

#if LANES
static float dot_of(__global const float *a, __global const float *b, int count)
{
    V sum = 0.0f;
    float lane[LANES], all = 0.0f;
    int i = 0;
    for (; i + LANES <= count; i += LANES)
        sum = fma(LOAD(a + i), LOAD(b + i), sum);
    STORE(sum, lane);
    for (int k = 0; k < LANES; k++)
        all += lane[k];
    for (; i < count; i++)
        all += a[i] * b[i];
    return all;
}
#else
static float dot_of(__global const float *a, __global const float *b, int count)
{
    float all = 0.0f, part = 0.0f;
    for (int i = 0; i < count; i++) {
        part += a[i] * b[i];
        if (i % 128 == 127) {
            all += part;
            part = 0.0f;
        }
    }
    return all + part;
}
#endif

/* Every row's gates and both biases of its direction, of the second one the first `second`. */
__kernel void add_bias(__global float *gates, __global const float *bias, int all, int second)
{
    size_t row = get_global_id(2) * get_global_size(1) + get_global_id(1);
    gates += row * all;
    bias += get_global_id(2) * 2 * all;
    ALONG(i, all)
        gates[i] += bias[i] + (i < second ? bias[all + i] : 0.0f);
}

static float opened(int kind, float clip, float v)
{
    float a = kind == 2 ? 0.01f : 0.2f;
    return activate(kind, a, 0.5f, clip > 0.0f ? clamp(v, -clip, clip) : v);
}

/* The group's row: its number in all directions, direction, row of the batch, how long. */
#define ROW_OF_GROUP                                                                               \
    int row = get_group_id(0), d = row / batch, b = row % batch;                                   \
    int length = has_length ? lengths[b] : steps;                                                  \
    int state = d * state_d + b * state_b;                                                         \
    bool back = d || reverse

/* Units of this item. */
#define UNITS(j) for (int j = get_local_id(0); j < hidden; j += get_local_size(0))

/* Time and place of step i; a group's items agree on all of it. */
#define STEP_OF(i, gates_of_unit)                                                                  \
    int t = back ? steps - 1 - i : i;                                                              \
    __global float *g = gates + ((size_t)d * steps * batch + t * row_t + b * row_b) *              \
                                    (gates_of_unit) * hidden;                                      \
    __global float *to = y + ((size_t)t * y_t + d * y_d + b * y_b) * hidden;                       \
    if (t >= length) {                                                                             \
        UNITS(j)                                                                                   \
            if (has_y)                                                                             \
                to[j] = 0.0f;                                                                      \
        continue;                                                                                  \
    }

ALONE void lstm(__global float *gates, __global const float *r, __global const float *peephole,
                __global const int *lengths, __global const float *first_h,
                __global const float *first_c, __global float *states, __global float *cells,
                __global float *y, __global float *last_h, __global float *last_c, int has_peephole,
                int has_length, int has_h, int has_c, int has_y, int has_last_h, int has_last_c,
                int steps, int batch, int hidden, int row_t, int row_b, int y_t, int y_d, int y_b,
                int state_d, int state_b, int reverse, int coupled, int f_kind, int g_kind,
                int h_kind, float clip)
{
    ROW_OF_GROUP;
    __global float *h = states + (size_t)row * 2 * hidden, *next = h + hidden;
    __global float *c = cells + (size_t)row * hidden;
    r += (size_t)d * 4 * hidden * hidden;
    peephole += d * 3 * hidden;
    UNITS(j) {
        h[j] = has_h ? first_h[(size_t)state * hidden + j] : 0.0f;
        c[j] = has_c ? first_c[(size_t)state * hidden + j] : 0.0f;
    }
    for (int i = 0; i < steps; i++) {
        STEP_OF(i, 4)
        barrier(CLK_GLOBAL_MEM_FENCE);
        UNITS(j) {
            float in = g[j] + dot_of(h, r + (size_t)j * hidden, hidden);
            float out = g[hidden + j] + dot_of(h, r + (size_t)(hidden + j) * hidden, hidden);
            float keep =
                g[2 * hidden + j] + dot_of(h, r + (size_t)(2 * hidden + j) * hidden, hidden);
            float cell =
                g[3 * hidden + j] + dot_of(h, r + (size_t)(3 * hidden + j) * hidden, hidden);
            in = opened(f_kind, clip, has_peephole ? in + peephole[j] * c[j] : in);
            keep = opened(f_kind, clip, has_peephole ? keep + peephole[2 * hidden + j] * c[j]
                                                     : keep);
            keep = coupled ? 1.0f - in : keep;
            c[j] = keep * c[j] + in * opened(g_kind, clip, cell);
            out = opened(f_kind, clip, has_peephole ? out + peephole[hidden + j] * c[j] : out);
            next[j] = out * opened(h_kind, 0.0f, c[j]);
            if (has_y)
                to[j] = next[j];
        }
        __global float *old = h;
        h = next;
        next = old;
    }
    UNITS(j) {
        if (has_last_h)
            last_h[(size_t)state * hidden + j] = h[j];
        if (has_last_c)
            last_c[(size_t)state * hidden + j] = c[j];
    }
}

/* linear: the reset gate multiplies the product of the hidden gate, which has a bias of its own
 * (the last third of `bias`). */
ALONE void gru(__global float *gates, __global const float *r, __global const float *bias,
               __global const int *lengths, __global const float *first_h, __global float *states,
               __global float *resets, __global float *y, __global float *last_h, int has_bias,
               int has_length, int has_h, int has_y, int has_last_h, int steps, int batch,
               int hidden, int row_t, int row_b, int y_t, int y_d, int y_b, int state_d,
               int state_b, int reverse, int linear, int f_kind, int g_kind, float clip)
{
    ROW_OF_GROUP;
    __global float *h = states + (size_t)row * 2 * hidden, *next = h + hidden;
    __global float *reset = resets + (size_t)row * hidden;
    r += (size_t)d * 3 * hidden * hidden;
    bias += d * 6 * hidden + 5 * hidden;
    UNITS(j)
        h[j] = has_h ? first_h[(size_t)state * hidden + j] : 0.0f;
    for (int i = 0; i < steps; i++) {
        STEP_OF(i, 3)
        barrier(CLK_GLOBAL_MEM_FENCE);
        UNITS(j) {
            float z = g[j] + dot_of(h, r + (size_t)j * hidden, hidden);
            float open = g[hidden + j] + dot_of(h, r + (size_t)(hidden + j) * hidden, hidden);
            g[j] = opened(f_kind, clip, z);
            open = opened(f_kind, clip, open);
            reset[j] = linear ? open * (dot_of(h, r + (size_t)(2 * hidden + j) * hidden, hidden) +
                                        (has_bias ? bias[j] : 0.0f))
                              : open * h[j];
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
        UNITS(j) {
            float v = g[2 * hidden + j];
            v += linear ? reset[j]
                        : dot_of(reset, r + (size_t)(2 * hidden + j) * hidden, hidden);
            v = opened(g_kind, clip, v);
            next[j] = v + g[j] * (h[j] - v);
            if (has_y)
                to[j] = next[j];
        }
        __global float *old = h;
        h = next;
        next = old;
    }
    UNITS(j)
        if (has_last_h)
            last_h[(size_t)state * hidden + j] = h[j];
}

ALONE void rnn(__global float *gates, __global const float *r, __global const int *lengths,
               __global const float *first_h, __global float *states, __global float *y,
               __global float *last_h, int has_length, int has_h, int has_y, int has_last_h,
               int steps, int batch, int hidden, int row_t, int row_b, int y_t, int y_d, int y_b,
               int state_d, int state_b, int reverse, int f_kind, float clip)
{
    ROW_OF_GROUP;
    __global float *h = states + (size_t)row * 2 * hidden, *next = h + hidden;
    r += (size_t)d * hidden * hidden;
    UNITS(j)
        h[j] = has_h ? first_h[(size_t)state * hidden + j] : 0.0f;
    for (int i = 0; i < steps; i++) {
        STEP_OF(i, 1)
        barrier(CLK_GLOBAL_MEM_FENCE);
        UNITS(j) {
            next[j] = opened(f_kind, clip, g[j] + dot_of(h, r + (size_t)j * hidden, hidden));
            if (has_y)
                to[j] = next[j];
        }
        __global float *old = h;
        h = next;
        next = old;
    }
    UNITS(j)
        if (has_last_h)
            last_h[(size_t)state * hidden + j] = h[j];
}

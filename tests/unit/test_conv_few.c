/* test_conv_few.c - float convolutions with few output positions (op/net/conv_few.c) beside the
 * same convolutions in doubles, which go another way: windows, strides, dilations, paddings,
 * groups, images, biases, additions and activations. The error of a sum of n products in floats is
 * at most n u of the sum of their magnitudes (Higham, Accuracy and Stability, 3.1), u = 2^-24.
 */
#include <math.h>

#include "levels.h"
#include "test.h"

typedef struct few_case {
    int64_t images, channels, maps, group;
    int rank;
    int64_t in[3], kernel[3], stride[3], dilation[3], pads[6];
    bool bias, add;
    const char *activation;
} few_case;

static const few_case cases[] = {
    {1, 1, 258, 1, 1, {640}, {256}, {128}, {1}, {0}, false, false, NULL}, /* frames of sound */
    {1, 128, 1, 1, 1, {1}, {1}, {1}, {1}, {0}, true, false, "Sigmoid"},
    {3, 128, 65, 1, 2, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0}, true, false, "Relu"},
    {2, 40, 33, 1, 2, {7, 7}, {7, 7}, {1, 1}, {1, 1}, {0}, true, true, NULL},
    {1, 24, 70, 1, 2, {3, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1, 0, 0}, true, false, "Clip"},
    {2, 36, 10, 2, 2, {5, 6}, {3, 3}, {2, 3}, {2, 1}, {2, 0, 1, 1}, false, false, "Tanh"},
    {1, 64, 64, 64, 2, {9, 8}, {8, 7}, {1, 1}, {1, 1}, {0}, true, false, NULL},
    {1, 5, 9, 1, 3, {2, 3, 4}, {2, 3, 3}, {1, 1, 2}, {1, 1, 1}, {0, 0, 1, 1, 1, 1}, true,
     true, NULL},
    {1, 700, 1200, 1, 1, {5}, {3}, {2}, {1}, {0}, true, false, NULL}, /* several tasks */
    {1, 33, 5, 1, 1, {1}, {3}, {1}, {1}, {1, 1}, false, false, NULL}, /* most taps see padding */
    {1, 90, 7, 1, 2, {1, 6}, {1, 2}, {1, 1}, {1, 3}, {0, 0, 1, 0}, true, false, "LeakyRelu"},
};

static uint32_t state;

static double number(void)
{
    state = state * 1664525u + 1013904223u;
    return (double)(int32_t)state / 2147483648.0;
}

/* The same numbers, all of which floats hold. */
static ort_value *numbers(ort_dtype dtype, int rank, const int64_t *dims, uint32_t seed,
                          bool absolute)
{
    ort_shape shape = ort_shape_make(rank, dims);
    ort_value *value = NULL;
    if (ort_value_new_tensor(dtype, rank, dims, &value, NULL))
        return NULL;
    state = seed;
    for (int64_t i = 0; i < ort_shape_count(&shape); i++) {
        float v = (float)number();
        ort_tensor_set_f64(&value->tensor, i, absolute ? fabsf(v) : v);
    }
    return value;
}

static ort_value *convolve(ort_env *env, const few_case *c, ort_dtype dtype, const int64_t *out,
                           bool absolute, ort_error *err)
{
    int64_t x_dims[5] = {c->images, c->channels}, w_dims[5] = {c->maps, c->channels / c->group};
    memcpy(x_dims + 2, c->in, (size_t)c->rank * sizeof *c->in);
    memcpy(w_dims + 2, c->kernel, (size_t)c->rank * sizeof *c->kernel);
    const bool clip = c->activation && !strcmp(c->activation, "Clip");
    const float params[] = {-0.5f, 0.75f};
    const size_t rank = (size_t)c->rank;
    const ort_attribute_spec attributes[] = {
        {.name = "strides", .kind = 'I', .ints = c->stride, .count = rank},
        {.name = "dilations", .kind = 'I', .ints = c->dilation, .count = rank},
        {.name = "pads", .kind = 'I', .ints = c->pads, .count = 2 * rank},
        {.name = "group", .kind = 'i', .i = c->group},
        {.name = "activation", .kind = 's', .s = c->activation},
        {.name = "activation_params", .kind = 'F', .floats = params, .count = clip ? 2 : 1},
    };
    const bool leaky = c->activation && !strcmp(c->activation, "LeakyRelu");
    ort_value *in[4] = {numbers(dtype, c->rank + 2, x_dims, 1, absolute),
                        numbers(dtype, c->rank + 2, w_dims, 2, absolute),
                        c->bias ? numbers(dtype, 1, &c->maps, 3, absolute) : NULL,
                        c->add ? numbers(dtype, c->rank + 2, out, 4, absolute) : NULL};
    ort_value *y = NULL;
    size_t count = clip || leaky ? 6 : c->activation ? 5 : 4;
    ort_status status = ort_op_run(env, "com.microsoft", "FusedConv", 0, attributes,
                                   absolute ? 4 : count, in, c->add ? 4 : c->bias ? 3 : 2, &y, 1,
                                   err);
    (void)status;
    for (int i = 0; i < 4; i++)
        ort_value_free(in[i]);
    return y;
}

static void beside_doubles(test_state *test)
{
    size_t judged = 0;
    for (int tier = 0; ort_kernel_tier_at(tier); tier++) {
        ort_env_options options;
        ort_env *env = NULL;
        ort_env_options_init(&options);
        options.isa = ort_kernel_tier_at(tier)->name;
        if (ort_env_new(&options, &env, NULL))
            continue; /* not this processor */
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const few_case *c = &cases[i];
            ort_error err = {0};
            int64_t out[5] = {c->images, c->maps}, depth = c->channels / c->group, plane = 1;
            for (int a = 0; a < c->rank; a++) {
                int64_t reach = (c->kernel[a] - 1) * c->dilation[a] + 1;
                int64_t all = c->in[a] + c->pads[a] + c->pads[a + c->rank];
                out[2 + a] = (all - reach) / c->stride[a] + 1;
                plane *= out[2 + a];
                depth *= c->kernel[a];
            }
            CHECK(plane <= 8 && depth >= 32);
            ort_value *y = convolve(env, c, ORT_DTYPE_FLOAT, out, false, &err);
            ort_value *want = convolve(env, c, ORT_DTYPE_DOUBLE, out, false, &err);
            ort_value *size = convolve(env, c, ORT_DTYPE_DOUBLE, out, true, &err);
            CHECK_TEXT(err.message, "");
            if (!y || !want || !size)
                continue;
            int64_t wrong = 0;
            for (int64_t k = 0; k < c->images * c->maps * plane; k++) {
                double bound = (double)(depth + 4) * 0x1p-24 * ort_tensor_get_f64(&size->tensor, k);
                bound += 0x1p-22; /* of the activation, whose slope is 1 at most */
                wrong += !(fabs(ort_tensor_get_f64(&y->tensor, k) -
                                ort_tensor_get_f64(&want->tensor, k)) <= bound);
            }
            CHECK(wrong == 0);
            judged++;
            ort_value_free(y);
            ort_value_free(want);
            ort_value_free(size);
        }
        ort_env_free(env);
    }
    CHECK(judged >= sizeof cases / sizeof *cases); /* the scalar tier is everywhere */
}

int main(void)
{
    test_state test = {0};
    RUN(&test, beside_doubles);
    return test.failures != 0;
}

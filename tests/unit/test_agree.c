/* test_agree.c - when results of two models count as the same: tensors, and what holds tensors. */
#include "net.h"
#include "test.h"
#include "verify/agree.h"

static ort_value *floats(float a, float b)
{
    ort_shape shape = ort_shape_make(1, (const int64_t[]){2});
    ort_value *v = NULL;
    if (!ort_value_new_tensor_(ORT_DTYPE_FLOAT, &shape, &v, NULL)) {
        ((float *)v->tensor.data)[0] = a;
        ((float *)v->tensor.data)[1] = b;
    }
    return v;
}

static ort_value *integers(int64_t a, int64_t b)
{
    ort_shape shape = ort_shape_make(1, (const int64_t[]){2});
    ort_value *v = NULL;
    if (!ort_value_new_tensor_(ORT_DTYPE_INT64, &shape, &v, NULL)) {
        ((int64_t *)v->tensor.data)[0] = a;
        ((int64_t *)v->tensor.data)[1] = b;
    }
    return v;
}

/* 1 and -1, or both 1, as float16. */
static ort_value *halves(bool apart)
{
    ort_shape shape = ort_shape_make(1, (const int64_t[]){2});
    ort_value *v = NULL;
    if (!ort_value_new_tensor_(ORT_DTYPE_FLOAT16, &shape, &v, NULL)) {
        ((uint16_t *)v->tensor.data)[0] = 0x3c00;
        ((uint16_t *)v->tensor.data)[1] = apart ? 0xbc00 : 0x3c00;
    }
    return v;
}

static ort_value *in_sequence(ort_value *item)
{
    ort_value *v = NULL;
    if (!item || ort_value_new_sequence_(&v, NULL) || ort_value_append_take(v, item, NULL))
        return NULL;
    return v;
}

static ort_value *as_map(ort_value *keys, ort_value *values)
{
    ort_value *v = NULL;
    return !keys || !values || ort_value_new_map_take(keys, values, &v, NULL) ? NULL : v;
}

/* Takes both. */
static bool agree(ort_value *a, ort_value *b, double tolerance)
{
    ort_agreement how = {.tolerance = tolerance};
    ort_difference difference = ORT_DIFFERENCE_INIT;
    bool ok = a && b && !ort_agree_compare(a, b, &how, &difference, NULL) && difference.equal;
    ort_value_free(a);
    ort_value_free(b);
    return ok;
}

static void tensors(test_state *test)
{
    CHECK(agree(floats(1, 100), floats(1.005f, 100), 1e-4)); /* the largest sets the scale */
    CHECK(!agree(floats(1, 100), floats(1.02f, 100), 1e-4));
    CHECK(!agree(floats(1, 100), floats(1.005f, 100), 0));
    CHECK(!agree(integers(1, 100000), integers(2, 100000), 1e-4));
}

static void narrow_types(test_state *test)
{
    CHECK(agree(halves(false), floats(1, 1.05f), 1e-4)); /* 1024 times as much as for float */
    CHECK(!agree(halves(false), halves(true), 40 * 0x1p-11)); /* that of --fp16: not 20 */
    CHECK(!agree(halves(false), floats(1, 1.3f), 0.01));
    CHECK(agree(halves(false), floats(1, 1.3f), 0.2));
}

static void containers(test_state *test)
{
    CHECK(agree(in_sequence(floats(1, 100)), in_sequence(floats(1.005f, 100)), 1e-4));
    CHECK(!agree(in_sequence(floats(1, 100)), in_sequence(floats(1.02f, 100)), 1e-4));
    CHECK(!agree(in_sequence(integers(1, 100000)), in_sequence(integers(2, 100000)), 1e-4));
    CHECK(agree(in_sequence(as_map(integers(1, 2), floats(1, 100))),
                in_sequence(as_map(integers(2, 1), floats(100, 1.005f))), 1e-4));
    CHECK(!agree(as_map(integers(1, 2), floats(1, 100)),
                 as_map(integers(1, 2), floats(1.005f, 100)), 0));
    CHECK(!agree(as_map(integers(1, 2), floats(1, 100)), as_map(integers(1, 3), floats(1, 100)),
                 1));
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, tensors);
    RUN(test, narrow_types);
    RUN(test, containers);
    return test->failures != 0;
}

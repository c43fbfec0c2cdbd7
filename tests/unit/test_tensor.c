/* test_tensor.c - element types, shapes, casts, values and comparison. */
#include <math.h>
#include <stdlib.h>

#include "base/num.h"
#include "tensor/tensor.h"
#include "tensor/text.h"
#include "test.h"

static void dtype_rows(test_state *test)
{
    size_t bytes;
    for (int i = 1; i < ORT_DTYPE_COUNT; i++) {
        const ort_dtype_row *row = ort_dtype_get((ort_dtype)i);
        CHECK((int)row->id == i && row->bits > 0);
        CHECK((int)ort_dtype_parse(row->name) == i && (int)ort_dtype_parse(row->code) == i);
    }
    CHECK(ort_dtype_get((ort_dtype)99)->id == ORT_DTYPE_UNDEFINED);
    CHECK(ort_dtype_parse("float32") == ORT_DTYPE_FLOAT);
    CHECK(ort_dtype_parse("float33") == ORT_DTYPE_UNDEFINED);
    CHECK(ort_dtype_bytes(ORT_DTYPE_INT4, 3, &bytes) && bytes == 2);
    CHECK(ort_dtype_bytes(ORT_DTYPE_FLOAT6E2M3, 5, &bytes) && bytes == 4);
    CHECK(!ort_dtype_bytes(ORT_DTYPE_DOUBLE, INT64_MAX, &bytes));
    CHECK(!ort_dtype_bytes(ORT_DTYPE_FLOAT, -1, &bytes));
}

static void shapes(test_state *test)
{
    char text[64];
    int64_t stride[4];
    ort_shape a = {3, {4, 1, 6}}, b = {2, {5, 1}}, out;
    CHECK(ort_shape_broadcast(&a, &b, &out));
    CHECK_TEXT(ort_shape_format(&out, text, sizeof text), "4x5x6");
    ort_shape_broadcast_strides(&b, &out, stride);
    CHECK(stride[0] == 0 && stride[1] == 1 && stride[2] == 0);
    ort_shape_strides(&out, stride);
    CHECK(stride[0] == 30 && stride[1] == 6 && stride[2] == 1);
    ort_shape c = {2, {3, 7}};
    CHECK(!ort_shape_broadcast(&a, &c, &out));
    ort_shape zero = {2, {0, 3}}, one = {1, {1}};
    CHECK(ort_shape_broadcast(&zero, &one, &out) && ort_shape_count(&out) == 0);
    ort_shape huge = {3, {1 << 30, 1 << 30, 1 << 30}}, negative = {1, {-2}};
    CHECK(ort_shape_check(&huge, ORT_DTYPE_FLOAT, NULL) == ORT_ERROR_DATA);
    CHECK(ort_shape_check(&negative, ORT_DTYPE_FLOAT, NULL) == ORT_ERROR_DATA);
    ort_shape scalar = {0, {0}};
    CHECK(ort_shape_count(&scalar) == 1);
    CHECK_TEXT(ort_shape_format(&scalar, text, sizeof text), "[]");
}

static ort_tensor vector(ort_dtype dtype, int64_t count, void *data)
{
    return (ort_tensor){.dtype = dtype, .shape = {1, {count}}, .data = data};
}

/* Every numeric pair agrees with element access, which is written apart. */
static void casts_agree_with_access(test_state *test)
{
    static const double numbers[] = {0, 1, 2, 3, 1, 0, 2, 1, 0, 3, 1};
    enum { N = sizeof numbers / sizeof numbers[0] };
    for (int from = 1; from < ORT_DTYPE_COUNT; from++)
        for (int to = 1; to < ORT_DTYPE_COUNT; to++) {
            ort_dtype_class x = ort_dtype_get((ort_dtype)from)->class_;
            ort_dtype_class y = ort_dtype_get((ort_dtype)to)->class_;
            bool skip = x == ORT_CLASS_STRING || y == ORT_CLASS_STRING ||
                        x == ORT_CLASS_COMPLEX || y == ORT_CLASS_COMPLEX ||
                        from == ORT_DTYPE_INT2 || to == ORT_DTYPE_INT2 ||
                        from == ORT_DTYPE_FLOAT8E8M0 || to == ORT_DTYPE_FLOAT8E8M0;
            if (skip)
                continue;
            _Alignas(16) unsigned char in[256] = {0}, out[256] = {0};
            ort_tensor src = vector((ort_dtype)from, N, in), dst = vector((ort_dtype)to, N, out);
            for (int i = 0; i < N; i++)
                ort_tensor_set_f64(&src, i, numbers[i]);
            CHECK(ort_tensor_cast(&dst, &src, NULL, NULL) == ORT_OK);
            for (int i = 0; i < N; i++) {
                double want = ort_tensor_get_f64(&src, i);
                if (y == ORT_CLASS_BOOL)
                    want = want != 0;
                CHECK(ort_tensor_get_f64(&dst, i) == want);
            }
        }
}

static void casts_wrap_and_truncate(test_state *test)
{
    int16_t wide[] = {200, -1, 300};
    int8_t narrow[3];
    uint8_t bytes[3];
    float reals[] = {-1.9f, 1.9f, 255.5f};
    int32_t whole[3];
    ort_tensor s = vector(ORT_DTYPE_INT16, 3, wide), d = vector(ORT_DTYPE_INT8, 3, narrow);
    CHECK(ort_tensor_cast(&d, &s, NULL, NULL) == ORT_OK);
    CHECK(narrow[0] == -56 && narrow[1] == -1 && narrow[2] == 44);
    ort_tensor f = vector(ORT_DTYPE_FLOAT, 3, reals), u = vector(ORT_DTYPE_UINT8, 3, bytes);
    CHECK(ort_tensor_cast(&u, &f, NULL, NULL) == ORT_OK);
    CHECK(bytes[0] == 255 && bytes[1] == 1 && bytes[2] == 255);
    ort_tensor i = vector(ORT_DTYPE_INT32, 3, whole);
    CHECK(ort_tensor_cast(&i, &f, NULL, NULL) == ORT_OK);
    CHECK(whole[0] == -1 && whole[1] == 1 && whole[2] == 255);
    int64_t big = INT64_C(0x4000004000000001); /* by way of double it would round to the tie */
    float single;
    ort_tensor b = vector(ORT_DTYPE_INT64, 1, &big), r = vector(ORT_DTYPE_FLOAT, 1, &single);
    CHECK(ort_tensor_cast(&r, &b, NULL, NULL) == ORT_OK && single == (float)big);
}

static void *allocate(void *arg, size_t bytes)
{
    return ort_arena_alloc(arg, bytes);
}

static void string_casts(test_state *test)
{
    float in[] = {3.14f, NAN, INFINITY, -INFINITY, 1.0f, 1e-5f, 1e20f, -0.5f};
    static const char *const want[] = {"3.14", "NaN", "INF", "-INF", "1.0", "1e-05", "1e+20",
                                       "-0.5"};
    ort_string text[8];
    ort_arena arena = {0};
    ort_cast_options options = {true, 'u', allocate, &arena};
    ort_tensor s = vector(ORT_DTYPE_FLOAT, 8, in), t = vector(ORT_DTYPE_STRING, 8, text);
    CHECK(ort_tensor_cast(&t, &s, &options, NULL) == ORT_OK);
    for (int i = 0; i < 8; i++)
        CHECK_TEXT(text[i].ptr, want[i]);
    float back[8];
    ort_tensor f = vector(ORT_DTYPE_FLOAT, 8, back);
    CHECK(ort_tensor_cast(&f, &t, &options, NULL) == ORT_OK);
    for (int i = 0; i < 8; i++)
        CHECK(back[i] == in[i] || (isnan(back[i]) && isnan(in[i])));
    ort_string numbers[] = {{"+inf", 4}, {"1E8", 3}, {"9007199254740993", 16}};
    int64_t whole[1];
    ort_tensor n = vector(ORT_DTYPE_STRING, 2, numbers), i64 = vector(ORT_DTYPE_INT64, 1, whole);
    f.shape.dim[0] = 2;
    CHECK(ort_tensor_cast(&f, &n, &options, NULL) == ORT_OK && isinf(back[0]) && back[1] == 1e8f);
    n = vector(ORT_DTYPE_STRING, 1, numbers + 2);
    CHECK(ort_tensor_cast(&i64, &n, &options, NULL) == ORT_OK && whole[0] == 9007199254740993);
    ort_string bad = {"Hello", 5};
    n = vector(ORT_DTYPE_STRING, 1, &bad);
    CHECK(ort_tensor_cast(&i64, &n, &options, NULL) == ORT_ERROR_RUN);
    ort_arena_release(&arena);
}

static void unaligned_bulk(test_state *test)
{
    unsigned char bytes[64] = {0};
    uint16_t half = ort_f32_to_f16(1.5f);
    for (int i = 0; i < 5; i++)
        memcpy(bytes + 1 + 2 * i, &half, 2);
    float out[5];
    ort_tensor t = vector(ORT_DTYPE_FLOAT16, 5, bytes + 1);
    ort_tensor_to_f32(&t, 1, 3, out);
    CHECK(out[0] == 1.5f && out[2] == 1.5f);
    ort_tensor packed = vector(ORT_DTYPE_UINT4, 5, bytes + 33);
    float in[3] = {7, 9, 15};
    ort_tensor_from_f32(in, &packed, 1, 3);
    ort_tensor_to_f32(&packed, 0, 5, out);
    CHECK(out[0] == 0 && out[1] == 7 && out[2] == 9 && out[3] == 15 && out[4] == 0);
}

static void values_and_references(test_state *test)
{
    ort_value *t, *s, *copy, *keys, *map;
    int64_t dims[2] = {2, 3}, two = 2;
    CHECK(ort_value_new_tensor(ORT_DTYPE_FLOAT, 2, dims, &t, NULL) == ORT_OK);
    CHECK((uintptr_t)ort_value_data(t) % 64 == 0 && ort_value_count(t) == 6);
    ort_value_set_double(t, 5, 2.5);
    CHECK(ort_value_get_double(t, 5) == 2.5 && ort_value_get_double(t, 0) == 0);
    CHECK(ort_value_new_sequence(&s, NULL) == ORT_OK);
    CHECK(ort_value_append(s, t, NULL) == ORT_OK && ort_value_append(s, t, NULL) == ORT_OK);
    CHECK(ort_value_append(s, s, NULL) == ORT_ERROR_DATA);
    ort_value_free(t);
    CHECK(ort_value_count(s) == 2 && ort_value_get_double(ort_value_item(s, 1), 5) == 2.5);
    CHECK(ort_value_clone(s, &copy, NULL) == ORT_OK);
    CHECK(ort_value_item(copy, 0) != t && ort_value_digest(copy) == ort_value_digest(s));
    ort_value_free(s);
    CHECK(ort_value_get_double(ort_value_item(copy, 1), 5) == 2.5);
    ort_value_free(copy);
    CHECK(ort_value_new_tensor(ORT_DTYPE_STRING, 1, &two, &keys, NULL) == ORT_OK);
    CHECK(ort_value_set_string(keys, 1, "b\0c", 3, NULL) == ORT_OK);
    CHECK(ort_value_set_string(keys, 2, "x", 1, NULL) == ORT_ERROR_DATA);
    size_t length;
    CHECK(!memcmp(ort_value_string(keys, 1, &length), "b\0c", 3) && length == 3);
    CHECK(ort_value_new_map(keys, keys, &map, NULL) == ORT_OK && ort_value_count(map) == 2);
    ort_value_free(keys);
    CHECK(ort_value_clone(map, &copy, NULL) == ORT_OK);
    ort_value_free(map);
    CHECK_TEXT(ort_value_string(ort_value_item(copy, 0), 0, NULL), "");
    ort_value_free(copy);
    ort_value_free(NULL);
}

/* Maps of rows lie in one block, and each lives for as long as somebody holds it. */
static void maps_of_rows(test_state *test)
{
    float x[6] = {1, 2, 3, 4, 5, 6};
    int64_t names[2] = {7, 9}, two = 2, sizes[2] = {3, 2};
    ort_tensor rows = {ORT_DTYPE_FLOAT, ort_shape_make(2, sizes), NULL, x};
    ort_value *keys, *s, *copy, *map, *values;
    CHECK(ort_value_new_borrowed(ORT_DTYPE_INT64, 1, &two, names, 16, &keys, NULL) == ORT_OK);
    CHECK(ort_value_new_sequence(&s, NULL) == ORT_OK);
    for (int i = 0; i < 4; i++)
        CHECK(ort_value_append_maps(s, keys, &rows, NULL) == ORT_OK);
    rows.shape.dim[0] = 0;
    CHECK(ort_value_append_maps(s, keys, &rows, NULL) == ORT_OK && ort_value_count(s) == 12);
    CHECK(ort_value_clone(s, &copy, NULL) == ORT_OK);
    CHECK(ort_value_digest(copy) == ort_value_digest(s));
    map = ort_value_retain(ort_value_item(s, 4));
    values = ort_value_retain(ort_value_item(ort_value_item(s, 11), 1));
    CHECK(ort_value_append(s, map, NULL) == ORT_OK && ort_value_item(s, 12) == map);
    ort_value_free(s);
    CHECK(ort_value_get_kind(map) == ORT_VALUE_MAP && ort_value_item(map, 0) == keys);
    CHECK(ort_value_get_double(ort_value_item(map, 1), 1) == 4);
    CHECK(ort_value_get_double(values, 0) == 5);
    ort_value *all[] = {map, keys, copy, values};
    for (int i = 0; i < 4; i++)
        ort_value_free(all[i]);
}

static void comparison(test_state *test)
{
    float x[4] = {1, NAN, INFINITY, 2}, y[4] = {1, NAN, INFINITY, 2.1f};
    int64_t four = 4;
    ort_value *a, *b;
    ort_difference d = ORT_DIFFERENCE_INIT;
    ort_compare_options loose = {.size = sizeof loose, .rtol = 0.1, .atol = 0},
                        tight = {.size = sizeof tight, .rtol = 1e-3, .atol = 0};
    CHECK(ort_value_new_borrowed(ORT_DTYPE_FLOAT, 1, &four, x, sizeof x, &a, NULL) == ORT_OK);
    CHECK(ort_value_new_borrowed(ORT_DTYPE_FLOAT, 1, &four, y, sizeof y, &b, NULL) == ORT_OK);
    CHECK(ort_value_compare(a, b, &loose, &d, NULL) == ORT_OK && d.equal);
    CHECK(ort_value_compare(a, b, &tight, &d, NULL) == ORT_OK && !d.equal);
    CHECK(d.worst == 3 && d.mismatches == 1 && fabs(d.max_abs - 0.1) < 1e-6);
    y[2] = -INFINITY;
    CHECK(ort_value_compare(a, b, &loose, &d, NULL) == ORT_OK && !d.equal && d.worst == 2);
    y[2] = 1;
    CHECK(ort_value_compare(b, a, &loose, &d, NULL) == ORT_OK && !d.equal && d.worst == 2);
    CHECK(ort_value_compare(a, a, NULL, &d, NULL) == ORT_OK && d.equal);
    b->tensor.dtype = ORT_DTYPE_INT32;
    CHECK(ort_value_compare(a, b, NULL, &d, NULL) == ORT_OK && !d.equal);
    CHECK_TEXT(d.text, "is float 4, expected int32 4");
    ort_value_free(a);
    ort_value_free(b);
}

static void map_comparison_ignores_order(test_state *test)
{
    int64_t two = 2, forward[2] = {7, 9}, backward[2] = {9, 7};
    float x[2] = {1, 2}, y[2] = {2, 1};
    ort_value *k1, *k2, *v1, *v2, *a, *b;
    ort_difference d = ORT_DIFFERENCE_INIT;
    CHECK(ort_value_new_borrowed(ORT_DTYPE_INT64, 1, &two, forward, 16, &k1, NULL) == ORT_OK);
    CHECK(ort_value_new_borrowed(ORT_DTYPE_INT64, 1, &two, backward, 16, &k2, NULL) == ORT_OK);
    CHECK(ort_value_new_borrowed(ORT_DTYPE_FLOAT, 1, &two, x, 8, &v1, NULL) == ORT_OK);
    CHECK(ort_value_new_borrowed(ORT_DTYPE_FLOAT, 1, &two, y, 8, &v2, NULL) == ORT_OK);
    CHECK(ort_value_new_map(k1, v1, &a, NULL) == ORT_OK);
    CHECK(ort_value_new_map(k2, v2, &b, NULL) == ORT_OK);
    CHECK(ort_value_compare(a, b, NULL, &d, NULL) == ORT_OK && d.equal);
    backward[0] = 8;
    CHECK(ort_value_compare(a, b, NULL, &d, NULL) == ORT_OK && !d.equal);
    ort_value *all[] = {k1, k2, v1, v2, a, b};
    for (int i = 0; i < 6; i++)
        ort_value_free(all[i]);
}

static void strided_clone(test_state *test)
{
    float data[6] = {1, 2, 3, 4, 5, 6};
    int64_t stride[2] = {1, 3};
    ort_tensor t = {.dtype = ORT_DTYPE_FLOAT, .shape = {2, {3, 2}}, .stride = stride, .data = data};
    ort_value *view, *copy;
    CHECK(ort_tensor_get_f64(&t, 1) == 4 && ort_tensor_get_f64(&t, 2) == 2);
    CHECK(ort_value_new_view(&t, &view, NULL) == ORT_OK);
    CHECK(ort_value_clone(view, &copy, NULL) == ORT_OK);
    const float *flat = ort_value_data(copy);
    CHECK(flat[0] == 1 && flat[1] == 4 && flat[2] == 2 && flat[5] == 6);
    CHECK(ort_value_digest(view) == ort_value_digest(copy));
    ort_value_free(view);
    ort_value_free(copy);
}

/* Three 4-bit elements leave half a byte that isn't theirs; the last element is. */
static void packed_digests(test_state *test)
{
    ort_value *a = NULL, *b = NULL;
    CHECK(ort_value_new_tensor(ORT_DTYPE_INT4, 1, (int64_t[]){3}, &a, NULL) == ORT_OK);
    CHECK(ort_value_new_tensor(ORT_DTYPE_INT4, 1, (int64_t[]){3}, &b, NULL) == ORT_OK);
    memcpy(ort_value_data(a), (uint8_t[]){0x21, 0x03}, 2);
    memcpy(ort_value_data(b), (uint8_t[]){0x21, 0xf3}, 2);
    CHECK(ort_value_digest(a) == ort_value_digest(b));
    memcpy(ort_value_data(b), (uint8_t[]){0x21, 0x04}, 2);
    CHECK(ort_value_digest(a) != ort_value_digest(b));
    ort_value_free(a);
    ort_value_free(b);
}

/* A copy is as deep as what it is of: else copies of copies would nest without a bound. */
static void depth_of_clones(test_state *test)
{
    ort_value *inner = NULL, *outer = NULL, *copy = NULL;
    CHECK(ort_value_new_sequence(&inner, NULL) == ORT_OK);
    for (int i = 0; i < 64; i++, inner = outer) {
        CHECK(ort_value_new_sequence(&outer, NULL) == ORT_OK);
        CHECK(ort_value_append(outer, inner, NULL) == ORT_OK);
        ort_value_free(inner);
    }
    CHECK(ort_value_clone(outer, &copy, NULL) == ORT_OK);
    CHECK(ort_value_new_sequence(&inner, NULL) == ORT_OK);
    CHECK(ort_value_append(inner, copy, NULL) == ORT_ERROR_DATA);
    CHECK(ort_value_append(ort_value_item(copy, 0), inner, NULL) == ORT_ERROR_DATA);
    ort_value_free(inner);
    ort_value_free(outer);
    ort_value_free(copy);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, dtype_rows);
    RUN(&test, shapes);
    RUN(&test, casts_agree_with_access);
    RUN(&test, casts_wrap_and_truncate);
    RUN(&test, string_casts);
    RUN(&test, unaligned_bulk);
    RUN(&test, values_and_references);
    RUN(&test, maps_of_rows);
    RUN(&test, comparison);
    RUN(&test, map_comparison_ignores_order);
    RUN(&test, strided_clone);
    RUN(&test, packed_digests);
    RUN(&test, depth_of_clones);
    return test.failures != 0;
}

/* test_distance.c - how far tensors are from others: sums, what isn't finite, rows, the worst, and
 * that nothing is added of a pair that doesn't fit.
 */
#include <math.h>
#include <stdlib.h>

#include "net.h"
#include "test.h"

static ort_value *make(ort_dtype dtype, int rank, const int64_t *dims, const double *x)
{
    ort_shape shape = ort_shape_make(rank, dims);
    ort_value *v = NULL;
    if (ort_value_new_tensor_(dtype, &shape, &v, NULL))
        abort();
    for (int64_t i = 0; i < ort_value_count(v); i++)
        ort_tensor_set_f64(&v->tensor, i, x[i]);
    return v;
}

static ort_value *row(ort_dtype dtype, int64_t count, const double *x)
{
    return make(dtype, 1, &count, x);
}

/* Takes both. */
static ort_status add(ort_distance *d, ort_value *x, ort_value *y)
{
    ort_status status = ort_distance_add(d, x, y, NULL);
    ort_value_free(x);
    ort_value_free(y);
    return status;
}

#define ROW(dtype, ...)                                                                            \
    row(dtype, sizeof((const double[]){__VA_ARGS__}) / sizeof(double),                             \
        (const double[]){__VA_ARGS__})
#define FLOATS(...) ROW(ORT_DTYPE_FLOAT, __VA_ARGS__)

static void sums_of_two_samples(test_state *test)
{
    ort_distance d = ORT_DISTANCE_INIT;
    CHECK(!add(&d, FLOATS(1, 2, 3), FLOATS(1, 2, 4)));
    CHECK(!add(&d, FLOATS(-4, 0), FLOATS(-2, 0)));
    CHECK(d.samples == 2 && d.count == 5 && d.odd_alike == 0 && d.odd_unlike == 0);
    CHECK(d.signal == 30 && d.noise == 5 && d.other == 25 && d.product == 25);
    CHECK(d.worst == 2 && d.worst_sample == 1 && d.worst_index == 0);
    CHECK(d.worst_reference == -4 && d.worst_other == -2);
    CHECK(fabs(ort_distance_sqnr_db(&d) - 10 * log10(6)) < 1e-12);
    CHECK(fabs(ort_distance_cosine(&d) - 25 / sqrt(30.0 * 25)) < 1e-12);
}

static void equal_ones(test_state *test)
{
    ort_distance d = ORT_DISTANCE_INIT, zeros = ORT_DISTANCE_INIT, empty = ORT_DISTANCE_INIT;
    CHECK(!add(&d, FLOATS(0.1, -7, 1e30), FLOATS(0.1, -7, 1e30)));
    CHECK(ort_distance_sqnr_db(&d) == INFINITY && ort_distance_cosine(&d) == 1 && d.worst == 0);
    CHECK(!add(&zeros, FLOATS(0, 0), FLOATS(0, -0.0)));
    CHECK(ort_distance_sqnr_db(&zeros) == INFINITY && ort_distance_cosine(&zeros) == 1);
    CHECK(isnan(ort_distance_sqnr_db(&empty)) && isnan(ort_distance_cosine(&empty)));
    CHECK(isnan(ort_distance_top1(&empty)) && isnan(ort_distance_clear_top1(&empty)));
}

static void one_is_zero(test_state *test)
{
    ort_distance d = ORT_DISTANCE_INIT, e = ORT_DISTANCE_INIT;
    CHECK(!add(&d, FLOATS(0, 0), FLOATS(0, 1)));
    CHECK(ort_distance_sqnr_db(&d) == -INFINITY && ort_distance_cosine(&d) == 0);
    CHECK(!add(&e, FLOATS(3, 4), FLOATS(0, 0)));
    CHECK(ort_distance_sqnr_db(&e) == 0 && ort_distance_cosine(&e) == 0);
}

static void not_finite(test_state *test)
{
    ort_distance alike = ORT_DISTANCE_INIT, unlike = ORT_DISTANCE_INIT, none = ORT_DISTANCE_INIT;
    CHECK(!add(&alike, FLOATS(1, NAN, -INFINITY), FLOATS(2, NAN, -INFINITY)));
    CHECK(alike.count == 1 && alike.odd_alike == 2 && alike.odd_unlike == 0);
    CHECK(ort_distance_sqnr_db(&alike) == 0 && ort_distance_cosine(&alike) == 1);
    CHECK(!add(&unlike, FLOATS(1, INFINITY, 1, NAN), FLOATS(1, -INFINITY, NAN, 1)));
    CHECK(unlike.count == 1 && unlike.odd_unlike == 3 && unlike.worst == 0);
    CHECK(ort_distance_sqnr_db(&unlike) == -INFINITY && isnan(ort_distance_cosine(&unlike)));
    CHECK(!add(&none, FLOATS(NAN, NAN), FLOATS(NAN, NAN)));
    CHECK(isnan(ort_distance_sqnr_db(&none)) && isnan(ort_distance_cosine(&none)));
    CHECK(none.rows == 0); /* a row with NaN has no best */
}

static void rows_and_margins(test_state *test)
{
    /* clear and kept; clear and lost; close and lost; a tie, of which the first counts; NaN in the
     * other, which agrees with nothing */
    static const double x[] = {0, 1, 0, 1, 0, 0, 0.5, 0.45, 0, 2, 1, 2, 0, 0, 3};
    static const double y[] = {0, 2, 1, 0, 1, 0, 0.4, 0.45, 0, 3, 1, 0, 0, NAN, 3};
    const int64_t dims[] = {1, 5, 3};
    ort_distance d = ORT_DISTANCE_INIT, blind = ORT_DISTANCE_INIT;
    CHECK(!add(&d, make(ORT_DTYPE_FLOAT, 3, dims, x), make(ORT_DTYPE_FLOAT, 3, dims, y)));
    CHECK(d.rows == 5 && d.agreeing == 2 && d.clear_rows == 3 && d.clear_agreeing == 1);
    CHECK(fabs(ort_distance_top1(&d) - 0.4) < 1e-12);
    CHECK(fabs(ort_distance_clear_top1(&d) - 1 / 3.0) < 1e-12);
    CHECK(!add(&d, FLOATS(1), FLOATS(2)) && d.rows == 5); /* one column: no classes */
    blind.margin = NAN;
    CHECK(!add(&blind, FLOATS(1, 2), FLOATS(1, 2)) && blind.rows == 0 && blind.count == 2);
}

static void types(test_state *test)
{
    static const ort_dtype all[] = {ORT_DTYPE_DOUBLE, ORT_DTYPE_FLOAT16, ORT_DTYPE_BFLOAT16,
                                    ORT_DTYPE_INT8,   ORT_DTYPE_INT64,   ORT_DTYPE_UINT4};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ort_distance d = ORT_DISTANCE_INIT;
        CHECK(!add(&d, FLOATS(1, 2, 3, 4, 5), ROW(all[i], 1, 2, 3, 4, 7)));
        CHECK(d.noise == 4 && d.signal == 55 && d.worst_index == 4);
    }
    ort_distance d = ORT_DISTANCE_INIT;
    CHECK(!add(&d, ROW(ORT_DTYPE_BOOL, 0, 1), ROW(ORT_DTYPE_BOOL, 1, 1)) && d.noise == 1);
}

static void refused(test_state *test)
{
    ort_distance d = ORT_DISTANCE_INIT;
    const int64_t one = 1;
    CHECK(add(&d, FLOATS(1, 2), FLOATS(1)) == ORT_ERROR_DATA);
    CHECK(add(&d, FLOATS(1), make(ORT_DTYPE_FLOAT, 2, (const int64_t[]){1, 1},
                                  (const double[]){1})) == ORT_ERROR_DATA);
    ort_value *text = NULL, *x = FLOATS(1);
    CHECK(!ort_value_new_tensor(ORT_DTYPE_STRING, 1, &one, &text, NULL));
    CHECK(ort_distance_add(&d, text, x, NULL) == ORT_ERROR_DATA);
    CHECK(d.samples == 0 && d.count == 0);
    ort_value_free(text);
    ort_value_free(x);
}

/* Long enough for several blocks, and of a length that none divides. */
static void long_ones(test_state *test)
{
    enum { COUNT = 100003 };
    double *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y), noise = 0, signal = 0;
    uint32_t state = 7;
    CHECK(x && y);
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1;
        y[i] = (float)(x[i] + (i % 7) * 1e-3);
        signal += x[i] * x[i];
        noise += (x[i] - y[i]) * (x[i] - y[i]);
    }
    ort_distance d = ORT_DISTANCE_INIT, again = ORT_DISTANCE_INIT;
    CHECK(!add(&d, row(ORT_DTYPE_FLOAT, COUNT, x), row(ORT_DTYPE_FLOAT, COUNT, y)));
    CHECK(!add(&again, row(ORT_DTYPE_DOUBLE, COUNT, x), row(ORT_DTYPE_DOUBLE, COUNT, y)));
    CHECK(d.count == COUNT && fabs(d.signal / signal - 1) < 1e-12);
    CHECK(fabs(d.noise / noise - 1) < 1e-12);
    CHECK(!memcmp(&d, &again, sizeof d));
    free(x);
    free(y);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, sums_of_two_samples);
    RUN(&test, equal_ones);
    RUN(&test, one_is_zero);
    RUN(&test, not_finite);
    RUN(&test, rows_and_margins);
    RUN(&test, types);
    RUN(&test, refused);
    RUN(&test, long_ones);
    return test.failures > 0;
}

/* test_moves.c - strided copies and index maps against the plain definition, for every element
 * size, and transforms of many lengths against the defining sum. */
#include <math.h>
#include <stdlib.h>

#include "base/num.h"
#include "op/shared/bcast_block.h"
#include "op/shared/combine.h"
#include "op/math/fft.h"
#include "op/shared/move.h"
#include "test.h"
#include "workers.h"

static uint64_t seed;

static int64_t draw(int64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

static const ort_dtype types[] = {ORT_DTYPE_INT2, ORT_DTYPE_INT4, ORT_DTYPE_UINT8,
                                  ORT_DTYPE_FLOAT16, ORT_DTYPE_FLOAT, ORT_DTYPE_DOUBLE,
                                  ORT_DTYPE_COMPLEX128};

static unsigned element(ort_dtype dtype, const void *data, int64_t i)
{
    int bits = ort_dtype_get(dtype)->bits;
    const uint8_t *p = data;
    unsigned sum = 0;
    if (bits < 8)
        return ort_packed_get(data, (size_t)i, bits);
    for (int b = 0; b < bits / 8; b++)
        sum = sum * 31 + p[i * (bits / 8) + b];
    return sum;
}

static ort_value *filled(ort_dtype dtype, const ort_shape *shape)
{
    ort_value *v = NULL;
    if (ort_value_new_tensor(dtype, shape->rank, shape->dim, &v, NULL) != ORT_OK)
        return NULL;
    uint8_t *p = v->tensor.data;
    for (size_t i = 0; i < ort_tensor_bytes(&v->tensor); i++)
        p[i] = (uint8_t)draw(256);
    return v;
}

/* Transposes of random shapes, with each axis possibly reversed. */
static void strided(test_state *test)
{
    for (int round = 0; round < 400; round++) {
        ort_dtype dtype = types[round % 7];
        ort_shape in = {.rank = 1 + (int)draw(4)}, out = {.rank = in.rank};
        int perm[4] = {0, 1, 2, 3};
        int64_t stride[4], to[4], index[4] = {0};
        for (int d = 0; d < in.rank; d++)
            in.dim[d] = 1 + draw(d == in.rank - 1 ? 40 : 12);
        if (round % 5 == 0)
            in.dim[in.rank - 1] = 3; /* as images have it */
        for (int d = in.rank - 1; d > 0; d--) {
            int k = (int)draw(d + 1), t = perm[d];
            perm[d] = perm[k];
            perm[k] = t;
        }
        for (int d = 0; d < in.rank; d++)
            out.dim[d] = in.dim[perm[d]];
        ort_value *x = filled(dtype, &in), *y = filled(dtype, &out);
        CHECK(x && y);
        ort_move move = ort_move_between(&x->tensor, &y->tensor);
        ort_shape_strides(&in, stride);
        ort_shape_strides(&out, to);
        for (int d = 0; d < in.rank; d++)
            if (draw(3) == 0) {
                move.src_offset += (in.dim[d] - 1) * stride[d];
                stride[d] = -stride[d];
            }
        for (int d = 0; d < in.rank; d++)
            ort_move_add(&move, out.dim[d], stride[perm[d]], to[d]);
        ort_move_run(&move, NULL);
        for (int64_t i = 0; i < ort_shape_count(&out); i++) {
            int64_t from = 0;
            for (int d = 0; d < in.rank; d++) {
                int64_t s = stride[perm[d]];
                from += s < 0 ? (out.dim[d] - 1 - index[d]) * -s : index[d] * s;
            }
            CHECK(element(dtype, y->tensor.data, i) == element(dtype, x->tensor.data, from));
            for (int d = in.rank - 1; d >= 0 && ++index[d] == out.dim[d]; d--)
                index[d] = 0;
        }
        ort_value_free(x);
        ort_value_free(y);
    }
}

/* Index i of 3 n - 2 around n of them: n - 1, n - 2, .. 0, 1, .. n - 1, n - 2, .. 0. */
static int64_t reflected(int64_t i, int64_t n)
{
    return llabs(i < 2 * n - 1 ? n - 1 - i : 3 * n - 3 - i);
}

static void mapped(test_state *test)
{
    for (int round = 0; round < 400; round++) {
        ort_dtype dtype = types[round % 7];
        ort_shape in = {.rank = 3}, out = {.rank = 3};
        int64_t maps[3][64], index[3] = {0}, fill[2] = {0x5a5a5a5a5a5a5a5a, 0x1234567812345678};
        ort_move_map map = {.fill = fill};
        for (int d = 0; d < 3; d++) {
            int kind = (int)draw(5);
            in.dim[d] = 1 + draw(20);
            out.dim[d] = kind == 0   ? in.dim[d]
                         : kind == 1 ? 2 * in.dim[d]
                         : kind == 4 ? 3 * in.dim[d] - 2 /* reflected on both sides */
                                     : 1 + draw(40);
            map.axis[d] = kind == 0 ? NULL : maps[d];
            for (int64_t i = 0; i < out.dim[d] && kind > 0; i++)
                maps[d][i] = kind == 1   ? i / 2
                             : kind == 2 ? draw(in.dim[d])
                             : kind == 4 ? reflected(i, in.dim[d])
                                         : draw(in.dim[d] + 1) - 1;
        }
        ort_value *x = filled(dtype, &in), *y = filled(dtype, &out);
        CHECK(x && y);
        ort_move_mapped(&x->tensor, &y->tensor, &map, NULL);
        for (int64_t i = 0; i < ort_shape_count(&out); i++) {
            int64_t from = 0;
            bool outside = false;
            for (int d = 0; d < 3; d++) {
                int64_t at = map.axis[d] ? map.axis[d][index[d]] : index[d];
                outside = outside || at < 0;
                from = from * in.dim[d] + at;
            }
            CHECK(element(dtype, y->tensor.data, i) ==
                  (outside ? element(dtype, fill, 0) : element(dtype, x->tensor.data, from)));
            for (int d = 2; d >= 0 && ++index[d] == out.dim[d]; d--)
                index[d] = 0;
        }
        ort_value_free(x);
        ort_value_free(y);
    }
}

/* Operands of random broadcasts laid out block by block, each element where it belongs. */
static void broadcast_blocks(test_state *test)
{
    static const ort_dtype of_bytes[] = {ORT_DTYPE_UINT8, ORT_DTYPE_FLOAT16, ORT_DTYPE_FLOAT,
                                         ORT_DTYPE_DOUBLE, ORT_DTYPE_COMPLEX128};
    for (int round = 0; round < 400; round++) {
        ort_dtype dtype = of_bytes[round % 5];
        ort_shape out = {.rank = 1 + (int)draw(4)}, a = out, b = out;
        for (int d = 0; d < out.rank; d++) {
            out.dim[d] = 1 + draw(round % 3 ? 9 : 70);
            a.dim[d] = draw(2) ? out.dim[d] : 1;
            b.dim[d] = a.dim[d] == 1 || draw(2) ? out.dim[d] : 1;
        }
        const ort_shape *in[2] = {&a, &b};
        int64_t stride[ORT_MAX_RANK], total = ort_shape_count(&out);
        size_t bytes = (size_t)ort_dtype_get(dtype)->bits / 8;
        char space[ORT_BCAST_SPACE(16)] __attribute__((aligned(16)));
        ort_bcast plan;
        ort_bcast_make(&plan, &out, in, 2);
        for (int k = 0; k < 2; k++) {
            ort_value *x = filled(dtype, in[k]);
            ort_bcast_operand operand;
            CHECK(x);
            ort_shape_broadcast_strides(in[k], &out, stride);
            ort_bcast_operand_begin(&operand, &plan, k, x->tensor.data, bytes, space);
            for (int64_t first = draw(total), n; first < total; first += n) {
                n = 1 + draw(total - first < ORT_BCAST_BLOCK ? total - first : ORT_BCAST_BLOCK);
                const char *block = ort_bcast_operand_block(&operand, first, n);
                for (int64_t i = 0; i < n; i++) {
                    int64_t from = 0, rest = first + i;
                    for (int d = out.rank - 1; d >= 0; d--) {
                        from += rest % out.dim[d] * stride[d];
                        rest /= out.dim[d];
                    }
                    CHECK(!memcmp(block + (size_t)i * bytes,
                                  (char *)x->tensor.data + (size_t)from * bytes, bytes));
                }
            }
            ort_value_free(x);
        }
    }
}

static void *arena_alloc(void *arg, size_t bytes)
{
    return ort_arena_alloc(arg, bytes);
}

static bool single_is_near(const ort_fft *fft, const ort_complex *in, const ort_complex *expected,
                           bool inverse)
{
    ort_complex_single x[130], y[130];
    int64_t n = ort_fft_length(fft);
    for (int64_t i = 0; i < n; i++)
        x[i] = (ort_complex_single){(float)in[i].re, (float)in[i].im};
    ort_fft_run_single(fft, x, y, inverse);
    for (int64_t i = 0; i < n; i++)
        if (fabs((double)y[i].re - expected[i].re) > 1e-5 ||
            fabs((double)y[i].im - expected[i].im) > 1e-5)
            return false;
    return true;
}

static void transforms(test_state *test)
{
    const double turn = 6.283185307179586;
    for (int64_t n = 1; n <= 130; n++) {
        ort_complex in[130], out[130];
        ort_arena arena = {0};
        ort_fft *fft = ort_fft_new(n, arena_alloc, &arena);
        CHECK(fft);
        int64_t scratch_count = ort_fft_scratch(fft);
        ort_complex *scratch = ort_arena_array(&arena, (size_t)scratch_count, sizeof *scratch);
        CHECK(scratch);
        for (int64_t i = 0; i < n; i++)
            in[i] = (ort_complex){(double)draw(1000) / 500 - 1, (double)draw(1000) / 500 - 1};
        for (int inverse = 0; inverse < 2; inverse++) {
            ort_fft_run(fft, in, out, inverse, scratch);
            for (int64_t k = 0; k < n; k++) {
                double re = 0, im = 0;
                for (int64_t j = 0; j < n; j++) {
                    double a = (inverse ? turn : -turn) * (double)(j * k % n) / (double)n;
                    re += in[j].re * cos(a) - in[j].im * sin(a);
                    im += in[j].re * sin(a) + in[j].im * cos(a);
                }
                CHECK(fabs(out[k].re - re) < 1e-11 && fabs(out[k].im - im) < 1e-11);
            }
            CHECK(ort_fft_has_single(fft) == (scratch_count == 0));
            CHECK(!ort_fft_has_single(fft) || single_is_near(fft, in, out, inverse));
        }
        ort_arena_release(&arena);
    }
}

static void combinations(test_state *test)
{
    float a[3] = {1, 2, NAN}, b[3] = {5, -7, 3};
    uint8_t p[2] = {1, 0}, q[2] = {0, 0};
    int8_t i[1] = {127}, one[1] = {1};
    CHECK(ort_word_find(ORT_COMBINE_WORDS, "max", 3) == ORT_COMBINE_MAX);
    CHECK(ort_word_find(ORT_COMBINE_WORDS, "avg", 3) < 0);
    ort_combine_get(ORT_DTYPE_FLOAT, ORT_COMBINE_MAX)(a, b, 3);
    CHECK(a[0] == 5 && a[1] == 2 && isnan(a[2]));
    ort_combine_get(ORT_DTYPE_BOOL, ORT_COMBINE_ADD)(p, q, 2);
    CHECK(p[0] == 1 && p[1] == 0);
    ort_combine_get(ORT_DTYPE_INT8, ORT_COMBINE_ADD)(i, one, 1);
    CHECK(i[0] == -128);
    CHECK(!ort_combine_get(ORT_DTYPE_STRING, ORT_COMBINE_ADD));
    CHECK(!ort_combine_get(ORT_DTYPE_COMPLEX64, ORT_COMBINE_MIN));
}

/* MaxUnpool undoes a pooling of 5x5 by 2x2, whose indices count in 5x5; and takes indices that
 * count in the 4x4 that kernel and strides lead to. Where neither fits, they count in 5x5. */
static void unpooling(test_state *test)
{
    static const int64_t given[3][4] = {{6, 8, 16, 18}, {5, 7, 13, 15}, {24, 0, 1, 2}};
    static const int64_t expected[3][4] = {{6, 8, 16, 18}, {6, 8, 16, 18}, {24, 0, 1, 2}};
    static const int64_t two[2] = {2, 2}, dims[4] = {1, 1, 2, 2}, shape[4] = {1, 1, 5, 5};
    static const ort_attribute_spec attributes[] = {
        {.name = "kernel_shape", .kind = 'I', .ints = two, .count = 2},
        {.name = "strides", .kind = 'I', .ints = two, .count = 2}};
    ort_env *env = NULL;
    ort_value *in[3] = {NULL}, *out = NULL;
    CHECK(ort_env_new(NULL, &env, NULL) == ORT_OK);
    for (int k = 0; k < 3; k++) {
        CHECK(ort_value_new_tensor(ORT_DTYPE_FLOAT, 4, dims, &in[0], NULL) == ORT_OK);
        CHECK(ort_value_new_tensor(ORT_DTYPE_INT64, 4, dims, &in[1], NULL) == ORT_OK);
        CHECK(ort_value_new_tensor(ORT_DTYPE_INT64, 1, (int64_t[]){4}, &in[2], NULL) == ORT_OK);
        for (int i = 0; i < 4; i++) {
            ort_value_set_double(in[0], i, i + 1);
            ((int64_t *)ort_value_data(in[1]))[i] = given[k][i];
            ((int64_t *)ort_value_data(in[2]))[i] = shape[i];
        }
        CHECK(ort_op_run(env, "", "MaxUnpool", 22, attributes, 2, in, 3, &out, 1, NULL) == ORT_OK);
        for (int i = 0; i < 4; i++)
            CHECK(ort_value_get_double(out, expected[k][i]) == i + 1);
        for (int i = 0; i < 3; i++)
            ort_value_free(in[i]);
        ort_value_free(out);
        out = NULL;
    }
    ort_env_free(env);
}

enum { SCATTER_ROWS = 31, SCATTER_UPDATES = 2500 };

/* Element (u, j) of updates to row index[u], or index[u][j], added or written in order. */
static void scatter_plainly(const float *updates, const int64_t *index, bool each, bool sums,
                            int64_t columns, float *y)
{
    memset(y, 0, (size_t)(SCATTER_ROWS * columns) * sizeof *y);
    for (int64_t u = 0; u < SCATTER_UPDATES; u++)
        for (int64_t j = 0; j < columns; j++) {
            int64_t k = index[each ? u * columns + j : u];
            float *to = &y[(k < 0 ? k + SCATTER_ROWS : k) * columns + j];
            *to = (sums ? *to : 0) + updates[u * columns + j];
        }
}

/* Rows that many updates go to: with any number of threads as one after another. */
static void scatters(test_state *test)
{
    for (int round = 0; round < 24; round++) {
        const int64_t columns = round % 3 == 0 ? 1 + draw(8) : round % 3 == 1 ? 60 + draw(80)
                                                                             : 400 + draw(300);
        const bool each = round % 2, sums = round / 2 % 2;
        const int64_t shape[3][2] = {{SCATTER_ROWS, columns},
                                     {SCATTER_UPDATES, each ? columns : 1},
                                     {SCATTER_UPDATES, columns}};
        const ort_attribute_spec attribute = {.name = "reduction", .kind = 's',
                                              .s = sums ? "add" : "none"};
        float *expected = malloc((size_t)(SCATTER_ROWS * columns) * sizeof *expected);
        ort_value *in[3] = {NULL};
        for (int i = 0; i < 3; i++)
            CHECK(ort_value_new_tensor(i == 1 ? ORT_DTYPE_INT64 : ORT_DTYPE_FLOAT, 2, shape[i],
                                       &in[i], NULL) == ORT_OK);
        float *updates = ort_value_data(in[2]);
        int64_t *index = ort_value_data(in[1]);
        memset(ort_value_data(in[0]), 0, (size_t)(SCATTER_ROWS * columns) * sizeof *expected);
        for (int64_t i = 0; i < SCATTER_UPDATES * columns; i++)
            updates[i] = (float)draw(1000) / 7 - 70;
        for (int64_t i = 0; i < SCATTER_UPDATES * shape[1][1]; i++)
            index[i] = draw(2 * SCATTER_ROWS) - SCATTER_ROWS;
        CHECK(expected);
        scatter_plainly(updates, index, each, sums, columns, expected);
        for (int threads = 1; threads <= 3; threads += 2) {
            ort_env_options options;
            ort_env *env = NULL;
            ort_value *out = NULL;
            ort_env_options_init(&options);
            options.threads = threads;
            options.own_threads = &workers_at_once;
            CHECK(ort_env_new(&options, &env, NULL) == ORT_OK);
            CHECK(ort_op_run(env, "", each ? "ScatterElements" : "ScatterND", 18, &attribute, 1,
                             in, 3, &out, 1, NULL) == ORT_OK);
            CHECK(!memcmp(ort_value_data(out), expected,
                          (size_t)(SCATTER_ROWS * columns) * sizeof *expected));
            ort_value_free(out);
            ort_env_free(env);
        }
        for (int i = 0; i < 3; i++)
            ort_value_free(in[i]);
        free(expected);
    }
}

enum { CACHE_ROWS = 3, CACHE_LENGTH = 7, CACHE_BLOCKS = 2 };

/* A cache of [3][2][7] or [3][7][block] elements of 4 bits, an update of `n` of its 7 entries. */
static void scatter_nibbles(test_state *test, ort_env *env, ort_dtype dtype, int64_t n, int axis)
{
    const int64_t block = axis == 2 ? 1 : 5, blocks = axis == 2 ? CACHE_BLOCKS : 1;
    const ort_attribute_spec attributes[] = {
        {.name = "axis", .kind = 'i', .i = axis},
        {.name = "mode", .kind = 's', .s = "circular"}};
    ort_value *in[3] = {NULL}, *out = NULL;
    for (int k = 0; k < 2; k++) {
        const int64_t length = k ? n : CACHE_LENGTH;
        const int64_t shape[3] = {CACHE_ROWS, axis == 2 ? blocks : length,
                                  axis == 2 ? length : block};
        CHECK(ort_value_new_tensor(dtype, 3, shape, &in[k], NULL) == ORT_OK);
        for (int64_t i = 0; i < ort_value_count(in[k]); i++)
            ort_packed_set(ort_value_data(in[k]), (size_t)i, 4, (unsigned)draw(16));
    }
    CHECK(ort_value_new_tensor(ORT_DTYPE_INT64, 1, (int64_t[]){CACHE_ROWS}, &in[2], NULL) ==
          ORT_OK);
    int64_t *at = ort_value_data(in[2]), wrong = 0, count = ort_value_count(in[0]);
    for (int b = 0; b < CACHE_ROWS; b++)
        at[b] = draw(CACHE_LENGTH);
    CHECK(ort_op_run(env, "", "TensorScatter", 24, attributes, 2, in, 3, &out, 1, NULL) == ORT_OK);
    for (int64_t i = 0; out && i < count; i++) {
        int64_t entry = i / block % CACHE_LENGTH, row = i / block / CACHE_LENGTH;
        int64_t from = (entry - at[row / blocks] + CACHE_LENGTH) % CACHE_LENGTH;
        ort_value *source = from < n ? in[1] : in[0];
        int64_t k = from < n ? (row * n + from) * block + i % block : i;
        wrong += ort_packed_get(ort_value_data(out), (size_t)i, 4) !=
                 ort_packed_get(ort_value_data(source), (size_t)k, 4);
    }
    CHECK(out && wrong == 0);
    for (int i = 0; i < 3; i++)
        ort_value_free(in[i]);
    ort_value_free(out);
}

/* Elements that share bytes: TensorScatter writes them one by one at odd places. ScatterElements
 * and ScatterND have no such types in any version. */
static void nibbles(test_state *test)
{
    static const ort_dtype nibble_types[] = {ORT_DTYPE_INT4, ORT_DTYPE_UINT4, ORT_DTYPE_FLOAT4E2M1};
    static const char *const plain[] = {"ScatterElements", "ScatterND"};
    ort_env *env = NULL;
    CHECK(ort_env_new(NULL, &env, NULL) == ORT_OK);
    for (int t = 0; t < 3; t++) {
        for (int64_t n = 1; n <= CACHE_LENGTH; n++)
            for (int axis = 1; axis <= 2; axis++)
                scatter_nibbles(test, env, nibble_types[t], n, axis);
        ort_value *in[3] = {NULL}, *out = NULL;
        for (int i = 0; i < 3; i++)
            CHECK(ort_value_new_tensor(i == 1 ? ORT_DTYPE_INT64 : nibble_types[t], 2,
                                       (int64_t[]){3, 1}, &in[i], NULL) == ORT_OK);
        memset(ort_value_data(in[1]), 0, 3 * sizeof(int64_t));
        for (int i = 0; i < 2; i++)
            CHECK(ort_op_run(env, "", plain[i], 18, NULL, 0, in, 3, &out, 1, NULL) != ORT_OK);
        for (int i = 0; i < 3; i++)
            ort_value_free(in[i]);
    }
    ort_env_free(env);
}

/* Rows of every size from a byte on, taken from both ends of a table. */
static void gathered_rows(test_state *test)
{
    ort_env *env = NULL;
    CHECK(ort_env_new(NULL, &env, NULL) == ORT_OK);
    for (int64_t bytes = 1; bytes < 300; bytes += bytes < 70 ? 1 : 37)
        for (int pairs = 0; pairs < 2; pairs++) {
            const int64_t table[2] = {9, bytes}, many[2] = {200, 1};
            ort_value *in[2] = {NULL}, *out = NULL;
            CHECK(ort_value_new_tensor(ORT_DTYPE_UINT8, 2, table, &in[0], NULL) == ORT_OK);
            CHECK(ort_value_new_tensor(ORT_DTYPE_INT64, 2, many, &in[1], NULL) == ORT_OK);
            uint8_t *x = ort_value_data(in[0]);
            int64_t *index = ort_value_data(in[1]);
            for (int64_t i = 0; i < 9 * bytes; i++)
                x[i] = (uint8_t)draw(256);
            for (int64_t i = 0; i < 200; i++)
                index[i] = draw(18) - 9;
            CHECK(ort_op_run(env, "", pairs ? "GatherND" : "Gather", 13, NULL, 0, in, 2, &out, 1,
                             NULL) == ORT_OK);
            const uint8_t *y = ort_value_data(out);
            for (int64_t i = 0; i < 200; i++)
                CHECK(!memcmp(y + i * bytes, x + (index[i] + 9) % 9 * bytes, (size_t)bytes));
            ort_value_free(out);
            index[150] = 9;
            out = NULL;
            CHECK(ort_op_run(env, "", pairs ? "GatherND" : "Gather", 13, NULL, 0, in, 2, &out, 1,
                             NULL) == ORT_ERROR_RUN);
            ort_value_free(in[0]);
            ort_value_free(in[1]);
        }
    ort_env_free(env);
}

int main(void)
{
    test_state test = {0};
    RUN(&test, strided);
    RUN(&test, mapped);
    RUN(&test, broadcast_blocks);
    RUN(&test, transforms);
    RUN(&test, combinations);
    RUN(&test, unpooling);
    RUN(&test, scatters);
    RUN(&test, nibbles);
    RUN(&test, gathered_rows);
    return test.failures ? 1 : 0;
}

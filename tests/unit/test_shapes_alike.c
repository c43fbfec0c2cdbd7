/* test_shapes_alike.c - the same numbers in another shape give the same results on every tier: a
 * column is a row, and rows shorter than a vector are what columns are.
 */
#include <math.h>

#include "net.h"
#include "test.h"
#include "workers.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

typedef struct twin { /* one operator on two shapes */
    const char *op_type;
    int rank[2];
    int64_t dims[2][4];
    int64_t kernel, stride, pads[2];
    int64_t axis[2];
    bool weight;
} twin;

static void set_ints(net *n, ort_node *node, const char *name, const int64_t *ints, size_t count)
{
    ort_attr attr = {.name = name, .type = ORT_ATTR_INTS, .ints = ints, .count = count};
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
}

static void add_window(net *n, ort_node *node, const twin *t, int rank)
{
    set_ints(n, node, "kernel_shape", DIMS(t->kernel, 1), (size_t)rank - 2);
    set_ints(n, node, "strides", DIMS(t->stride, 3), (size_t)rank - 2);
    if (rank == 4)
        set_ints(n, node, "pads", DIMS(t->pads[0], 0, t->pads[1], 0), 4);
    else
        set_ints(n, node, "pads", t->pads, 2);
}

static void build(net *n, const twin *t, int which)
{
    int rank = t->rank[which];
    net_input(n, "x", ORT_DTYPE_FLOAT, rank, t->dims[which]);
    if (t->weight) {
        float data[6 * 4 * 9];
        int64_t maps = 6, channels = t->dims[which][1];
        for (int i = 0; i < 6 * 4 * 9; i++)
            data[i] = sinf((float)i);
        net_constant(n, "w", ORT_DTYPE_FLOAT, rank, DIMS(maps, channels, t->kernel, 1), data);
    }
    ort_node *node = net_node(n, t->op_type, t->weight ? "x w" : "x", "y");
    if (t->kernel)
        add_window(n, node, t, rank);
    else
        net_int(n, node, "axis", t->axis[which]);
    net_output(n, "y");
}

/* The result for numbers that don't repeat; the caller frees. */
static ort_value *result_of(const twin *t, int which, const char *isa, int threads)
{
    net n;
    ort_error err = {0};
    ort_env_options options;
    ort_session_options settings;
    ort_value *y = NULL, *x = net_floats(t->rank[which], t->dims[which], -2, 0.0137f);
    ort_env_options_init(&options);
    options.isa = isa;
    options.threads = threads;
    options.own_threads = &workers_at_once;
    if (!net_init(&n, &options))
        return NULL;
    build(&n, t, which);
    ort_session_options_init(&settings);
    settings.level = 0;
    ort_session *session = net_session(&n, &settings, &err);
    if (!session || run_whole(session, &x, &y, NULL, &err))
        printf("# %s: %s\n", t->op_type, err.message);
    ort_session_free(session);
    ort_value_free(x);
    net_free(&n);
    return y;
}

static const float *floats_of(ort_value *v, int64_t *count)
{
    *count = ort_value_count(v);
    return ort_value_data(v);
}

static bool columns_are_rows_on(const twin *t, const char *isa)
{
    int64_t count, other;
    ort_value *column = result_of(t, 0, isa, 1), *row = result_of(t, 1, isa, 3);
    bool ok = column && row;
    if (ok) {
        const float *a = floats_of(column, &count), *b = floats_of(row, &other);
        ok = count == other && !memcmp(a, b, (size_t)count * sizeof *a);
    }
    ort_value_free(column);
    ort_value_free(row);
    return ok;
}

typedef bool check_fn(const twin *t, const char *isa);

static bool on_all_tiers(const twin *t, check_fn *check)
{
    for (int i = 0; ort_kernel_tier_at(i); i++)
        if (ort_kernel_tier_at(i)->has() && !check(t, ort_kernel_tier_at(i)->name)) {
            printf("# %s, %s\n", t->op_type, ort_kernel_tier_at(i)->name);
            return false;
        }
    return true;
}

static void columns_are_rows(test_state *test)
{
    static const twin twins[] = {
        {"MaxPool", {4, 3}, {{2, 4, 37, 1}, {2, 4, 37}}, 2, 2, {0, 0}, {0}, false},
        {"MaxPool", {4, 3}, {{2, 4, 37, 1}, {2, 4, 37}}, 5, 1, {2, 2}, {0}, false},
        {"AveragePool", {4, 3}, {{1, 3, 20, 1}, {1, 3, 20}}, 3, 2, {1, 1}, {0}, false},
        {"LpPool", {4, 3}, {{1, 3, 20, 1}, {1, 3, 20}}, 3, 3, {0, 1}, {0}, false},
        {"Conv", {4, 3}, {{2, 4, 37, 1}, {2, 4, 37}}, 9, 1, {4, 4}, {0}, true},
        {"Conv", {4, 3}, {{1, 4, 40, 1}, {1, 4, 40}}, 8, 4, {2, 3}, {0}, true},
        {"Conv", {4, 3}, {{1, 4, 1, 1}, {1, 4, 1}}, 3, 2, {1, 1}, {0}, true},
    };
    for (size_t i = 0; i < sizeof twins / sizeof *twins; i++)
        CHECK(on_all_tiers(&twins[i], columns_are_rows_on));
}

/* Rows of a softmax against its formula in double. */
static bool rows_add_up_on(const twin *t, const char *isa)
{
    int64_t count, length = t->dims[0][1];
    ort_value *y = result_of(t, 0, isa, 1), *again = result_of(t, 0, isa, 8);
    ort_value *x = net_floats(2, t->dims[0], -2, 0.0137f);
    bool ok = y && again && x;
    if (ok) {
        const float *a = floats_of(y, &count), *b = floats_of(again, &count);
        const float *in = floats_of(x, &count);
        ok = !memcmp(a, b, (size_t)count * sizeof *a);
        for (int64_t i = 0; ok && i < count; i++) {
            int64_t first = i / length * length;
            double sum = 0, top = (double)in[first + length - 1], mine = (double)in[i] - top;
            for (int64_t k = 0; k < length; k++)
                sum += exp((double)in[first + k] - top);
            double expected = t->op_type[0] == 'L' ? mine - log(sum) : exp(mine) / sum;
            ok = fabs((double)a[i] - expected) <= 1e-6 * fmax(1, fabs(expected));
        }
    }
    ort_value_free(x);
    ort_value_free(y);
    ort_value_free(again);
    return ok;
}

static void short_rows(test_state *test)
{
    for (int64_t length = 1; length <= 9; length++) {
        twin soft = {"Softmax", {2, 0}, {{70, length}}, 0, 0, {0, 0}, {1, 0}, false};
        twin log_soft = {"LogSoftmax", {2, 0}, {{9001, length}}, 0, 0, {0, 0}, {-1, 0}, false};
        CHECK(on_all_tiers(&soft, rows_add_up_on));
        CHECK(on_all_tiers(&log_soft, rows_add_up_on));
    }
}

/* ConvTranspose whose windows stand side by side, and the same with a row and a column of zeros
 * more, which overlap. */
static ort_value *transposed(const char *isa, int threads, int extra)
{
    net n;
    ort_error err = {0};
    ort_env_options options;
    float w[3 * 5 * 4 * 3] = {0}, b[5] = {0.5f, -1, 2, 0, 3};
    int64_t kernel[2] = {3 + extra, 2 + extra};
    ort_value *y = NULL, *x = net_floats(4, DIMS(2, 3, 4, 7), -2, 0.037f);
    for (int64_t m = 0; m < 15; m++)
        for (int64_t t = 0; t < 6; t++)
            w[(m * kernel[0] + t / 2) * kernel[1] + t % 2] = sinf((float)(m * 6 + t));
    ort_env_options_init(&options);
    options.isa = isa;
    options.threads = threads;
    options.own_threads = &workers_at_once;
    if (!net_init(&n, &options))
        return NULL;
    net_input(&n, "x", ORT_DTYPE_FLOAT, 4, DIMS(2, 3, 4, 7));
    net_constant(&n, "w", ORT_DTYPE_FLOAT, 4, DIMS(3, 5, kernel[0], kernel[1]), w);
    net_constant(&n, "b", ORT_DTYPE_FLOAT, 1, DIMS(5), b);
    ort_node *node = net_node(&n, "ConvTranspose", "x w b", "y");
    set_ints(&n, node, "strides", DIMS(3, 2), 2);
    set_ints(&n, node, "pads", DIMS(0, 0, extra, extra), 4);
    net_output(&n, "y");
    ort_session *session = net_session(&n, NULL, &err);
    if (!session || run_whole(session, &x, &y, NULL, &err))
        printf("# %s\n", err.message);
    ort_session_free(session);
    ort_value_free(x);
    net_free(&n);
    return y;
}

static void transposed_windows(test_state *test)
{
    for (int i = 0; ort_kernel_tier_at(i); i++) {
        const char *isa = ort_kernel_tier_at(i)->name;
        int64_t count = 0, other = -1;
        if (!ort_kernel_tier_at(i)->has())
            continue;
        ort_value *apart = transposed(isa, 3, 0), *over = transposed(isa, 1, 1);
        const float *a = apart ? floats_of(apart, &count) : NULL;
        const float *b = over ? floats_of(over, &other) : NULL;
        bool ok = count == other && count == (int64_t)2 * 5 * 12 * 14;
        for (int64_t k = 0; ok && k < count; k++)
            ok = a[k] == b[k];
        ort_value_free(apart);
        ort_value_free(over);
        CHECK(ok);
    }
}

int main(void)
{
    test_state test = {0};
    RUN(&test, columns_are_rows);
    RUN(&test, short_rows);
    RUN(&test, transposed_windows);
    return test.failures != 0;
}

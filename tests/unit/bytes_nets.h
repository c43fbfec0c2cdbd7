/* bytes_nets.h - quantized nets built by hand, and whether they give in the layout of bytes, on
 * every tier and any threads, the codes that plain operators give on the scalar tier.
 */
#ifndef TEST_BYTES_NETS_H
#define TEST_BYTES_NETS_H

#include <math.h>

#include "kernel/kernel.h"
#include "levels.h"
#include "op/edit.h"
#include "test.h"

#define U ORT_DTYPE_UINT8
#define S ORT_DTYPE_INT8

/* Numbers from a fixed sequence over all values of a type. */
NET_STATIC ort_value *codes(ort_dtype dtype, int rank, const int64_t *dims, uint32_t seed, int low,
                        int high)
{
    ort_value *value = NULL;
    if (ort_value_new_tensor(dtype, rank, dims, &value, NULL))
        return NULL;
    for (int64_t i = 0; i < ort_value_count(value); i++) {
        seed = seed * 1664525u + 1013904223u;
        ort_value_set_double(value, i, low + (int)((seed >> 8) % (uint32_t)(high - low + 1)));
    }
    return value;
}

NET_STATIC void add_codes(net *n, const char *name, ort_dtype dtype, int rank, const int64_t *dims,
                      uint32_t seed, int low, int high)
{
    ort_value *v = codes(dtype, rank, dims, seed, low, high);
    if (v)
        net_constant(n, name, dtype, rank, dims, ort_value_data(v));
    ort_value_free(v);
}

NET_STATIC void add_number(net *n, const char *name, ort_dtype dtype, int number)
{
    const int8_t s = (int8_t)number;
    const uint8_t u = (uint8_t)number;
    net_constant(n, name, dtype, 0, NULL, dtype == S ? (const void *)&s : (const void *)&u);
}

NET_STATIC void add_scale(net *n, const char *name, float scale)
{
    net_constant(n, name, ORT_DTYPE_FLOAT, 0, NULL, &scale);
}

NET_STATIC int lowest(ort_dtype dtype)
{
    return dtype == S ? -128 : 0;
}

typedef void build_fn(net *n, const void *arg);

/* The scalar tier's plain operators against the layout on this tier with so many threads. */
NET_STATIC bool agrees(const char *isa, int threads, build_fn *build, const void *arg, ort_value *x,
                   int convs)
{
    net plain, layout;
    ort_error err = {0};
    if (!net_on(&plain, "scalar", 1) || !net_on(&layout, isa, threads))
        return false;
    build(&plain, arg);
    build(&layout, arg);
    ort_session *a = at_level(&plain, 2, &err), *b = at_level(&layout, 3, &err);
    bool ok = a && b && count_ops(b, "BytesConv") == convs && same(a, b, x, 0);
    if (!ok)
        printf("# %s, %d threads: %s, %d convolutions in the layout\n", isa, threads, err.message,
               b ? count_ops(b, "BytesConv") : -1);
    ort_session_free(a);
    ort_session_free(b);
    net_free(&plain);
    net_free(&layout);
    return ok;
}

NET_STATIC bool on_all_tiers(build_fn *build, const void *arg, ort_value *x, int convs)
{
    bool ok = x != NULL;
    for (int t = 0; ort_kernel_tier_at(t) && ok; t++)
        for (int threads = 1; threads <= 3 && ok && ort_kernel_tier_at(t)->has(); threads += 2)
            ok = agrees(ort_kernel_tier_at(t)->name, threads, build, arg, x, convs);
    return ok;
}

#endif

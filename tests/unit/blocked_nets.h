/* blocked_nets.h - nets in the blocked channel layout beside the same in the plain one: what
 * tests of it share.
 */
#ifndef TESTS_UNIT_BLOCKED_NETS_H
#define TESTS_UNIT_BLOCKED_NETS_H

#include <math.h>

#include "kernel/kernel.h"
#include "levels.h"
#include "test.h"

typedef struct shape_case {
    int64_t channels, maps, height, width, group;
    int64_t kernel[2], stride[2], dilation[2], pads[4];
} shape_case;

/* Numbers that neither repeat soon nor grow: sums cancel as those of networks do. */
NET_STATIC void add_weights(net *n, const char *name, int rank, const int64_t *dims)
{
    ort_shape shape = ort_shape_make(rank, dims);
    int64_t count = ort_shape_count(&shape);
    float *data = malloc((size_t)count * sizeof *data);
    for (int64_t i = 0; data && i < count; i++)
        data[i] = sinf((float)(i % 1009) * 0.37f + (float)rank) / 8;
    if (data)
        net_constant(n, name, ORT_DTYPE_FLOAT, rank, dims, data);
    free(data);
}

NET_STATIC void set_window(net *n, ort_node *node, const shape_case *c)
{
    set_ints(n, node, "kernel_shape", c->kernel, 2);
    set_ints(n, node, "strides", c->stride, 2);
    set_ints(n, node, "dilations", c->dilation, 2);
    set_ints(n, node, "pads", c->pads, 4);
}

NET_STATIC void set_group(net *n, ort_node *node, const shape_case *c)
{
    net_int(n, node, "group", c->group);
    set_window(n, node, c);
}

typedef void build_fn(net *n, const void *arg);

/* Level 2 against level 3 on this tier, and level 3 on one thread against three. */
NET_STATIC bool agrees(const char *isa, build_fn *build, const void *arg, ort_value *x, int convs)
{
    net one, three;
    ort_error err = {0};
    bool ok = net_on(&one, isa, 1) && net_on(&three, isa, 3);
    if (!ok)
        return false;
    build(&one, arg);
    build(&three, arg);
    ort_session *plain = at_level(&one, 2, &err), *blocked = at_level(&one, 3, &err);
    ort_session *threads = at_level(&three, 3, &err);
    ok = plain && blocked && threads && count_ops(blocked, "BlockedConv") == convs &&
         same(plain, blocked, x, 2e-5) && same(blocked, threads, x, 0);
    if (!ok)
        printf("# %s: %s, %d convolutions blocked\n", isa, err.message,
               blocked ? count_ops(blocked, "BlockedConv") : -1);
    ort_session_free(plain);
    ort_session_free(blocked);
    ort_session_free(threads);
    net_free(&one);
    net_free(&three);
    return ok;
}

/* The net at level 3 on the best tier; NULL when it can't be made. */
NET_STATIC ort_session *blocked(net *n, build_fn *build, const void *arg)
{
    if (!net_on(n, NULL, 1))
        return NULL;
    build(n, arg);
    return at_level(n, 3, NULL);
}

/* How often operators stand in the net at level 3, as "OPERATOR=COUNT ..."; isa NULL: the best. */
NET_STATIC bool holds(const char *isa, build_fn *build, const void *arg, const char *counts)
{
    net n;
    char text[120], *rest = text;
    bool ok = net_on(&n, isa, 1);
    if (!ok)
        return false;
    build(&n, arg);
    ort_session *s = at_level(&n, 3, NULL);
    snprintf(text, sizeof text, "%s", counts);
    for (char *name; s && (name = strsep(&rest, "="));) {
        int wanted = atoi(strsep(&rest, " ")), found = count_ops(s, name);
        if (found != wanted)
            printf("# %s: %d, not %d\n", name, found, wanted);
        ok = ok && found == wanted;
    }
    ort_session_free(s);
    net_free(&n);
    return ok && s;
}

NET_STATIC bool on_all_tiers(build_fn *build, const void *arg, ort_value *x, int convs)
{
    for (int t = 0; ort_kernel_tier_at(t); t++)
        if (ort_kernel_tier_at(t)->has() &&
            !agrees(ort_kernel_tier_at(t)->name, build, arg, x, convs))
            return false;
    return true;
}

#endif

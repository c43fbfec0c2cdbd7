/* extremes.c - scanning parts of a value, and what they come to. */
#include "kernel/extremes.h"

#include "kernel/kernel.h"

static void join(ort_extremes *to, const ort_extremes *other)
{
    to->least = other->least < to->least ? other->least : to->least;
    to->most = other->most > to->most ? other->most : to->most;
    to->count += other->count;
    to->finite += other->finite;
    to->zeros += other->zeros;
}

void ort_extremes_add(ort_extremes *e, const float *x, size_t n)
{
    ort_scan scan;
    ort_kernels_get(NULL)->math.scan(x, n, &scan); /* the same bits on each tier */
    join(e, &(ort_extremes){scan.least, scan.most, n, (uint64_t)scan.finite, (uint64_t)scan.zeros});
}

ort_extremes ort_extremes_sum(const ort_extremes_part *parts, int count)
{
    ort_extremes all = {0};
    for (int i = 0; i < count; i++)
        join(&all, &parts[i].found);
    return all;
}

/* bound.c - what is left: the time that no implementation of a model's sums as they are defined can
 * beat on a machine.
 *
 * It does the arithmetic at the measured rate of multiply-adds, and reads every weight of a product
 * once a run, from the nearest memory that can hold them all; both at once. Activations cost
 * nothing here. Winograd's tiles do fewer products than their definition, and may be faster.
 */
#include "bench.h"

static double read_ms(const ort_peak *peak, double bytes)
{
    int i = 0;
    while (i + 1 < peak->level_count && (double)peak->levels[i].serves_bytes < bytes)
        i++;
    return bytes / peak->levels[i].gb_per_s / 1e6;
}

bound bound_of(const measure *m, const ort_peak *peak)
{
    if (peak->level_count == 0 || peak->gflops <= 0)
        return (bound){0, false};
    double arithmetic = m->gflop / peak->gflops * 1e3;
    double reads = read_ms(peak, m->weight_mb * 1e6);
    return reads > arithmetic ? (bound){reads, true} : (bound){arithmetic, false};
}

/* range.c - ranges by the observers, whose table is at the end.
 *
 * A histogram is unrolled into the centers of its bins, from the least to the most. Zeros, which
 * every grid holds, count for percentiles and divergence, and cost nothing otherwise.
 */
#include "quantize/seen/range.h"

#include <math.h>
#include <string.h>

typedef struct bins {
    int first, count; /* bin k: [first + k, first + k + 1) * width */
    int zero;         /* the bin where 0 lies */
    double width;
    const ort_histogram *h;
    const ort_response *response;
    uint64_t n[ORT_HISTOGRAM_BINS];      /* with zeros */
    double wanted[ORT_HISTOGRAM_BINS];   /* of their centers: what readers make of them */
} bins;

static double edge(const bins *b, int k)
{
    return (b->first + k) * b->width;
}

static double center(const bins *b, int k)
{
    return edge(b, k) + b->width / 2;
}

static bool unroll(const ort_observed *o, bins *b)
{
    const ort_histogram *h = b->h = &o->histogram;
    b->response = &o->response;
    b->first = 0;
    b->count = ort_histogram_span(h, &b->first);
    b->width = ldexp(1, h->exponent);
    b->zero = -b->first;
    for (int k = 0; k < b->count; k++)
        b->n[k] = ort_histogram_bin(h, b->first + k);
    if (b->count)
        b->n[b->zero] += h->zeros;
    for (int k = 0; k < b->count; k++)
        b->wanted[k] = ort_response_of(b->response, center(b, k));
    return b->count > 0;
}

/* Not beyond what was there. */
static ort_range within(const ort_histogram *h, double least, double most)
{
    return (ort_range){least > h->least ? (float)least : h->least,
                       most < h->most ? (float)most : h->most};
}

/* ---- percentile */

/* How far from 0 the bins of one side reach until at most `beyond` numbers lie further out. */
static int reach(const bins *b, int side, uint64_t beyond)
{
    uint64_t out = 0;
    int k = side < 0 ? 0 : b->count - 1;
    for (; side < 0 ? k < b->zero : k > b->zero; k -= side) {
        out += b->n[k];
        if (out > beyond)
            break;
    }
    return k;
}

static ort_range percentile_range(const bins *b, double percentile, bool symmetric)
{
    double part = (100 - percentile) / 100;
    uint64_t beyond = (uint64_t)(part * (double)b->h->count);
    if (!symmetric)
        return within(b->h, edge(b, reach(b, -1, beyond / 2)),
                      edge(b, reach(b, 1, beyond / 2) + 1));
    int below = b->zero, above = b->count - b->zero; /* bins on each side */
    int r = below > above ? below : above;
    for (uint64_t out = 0; r > 1; r--) {
        out += (r <= below ? b->n[b->zero - r] : 0) + (r <= above ? b->n[b->zero + r - 1] : 0);
        if (out > beyond)
            break;
    }
    return within(b->h, -r * b->width, r * b->width);
}

/* ---- powers of errors */

/* |d|^p, by operations that are rounded alike everywhere. */
static double powered(double d, double p)
{
    const double square = d * d;
    return p > 3.5 ? square * square
           : p > 2.75 ? square * fabs(d)
           : p > 2.25 ? square * sqrt(fabs(d))
                      : square;
}

/* The sum of errors of a grid to the power of p, each bin's numbers at its center. */
static double grid_error(const bins *b, const ort_codes_range *codes, ort_grid grid, double p)
{
    const double scale = grid.scale, least = codes->least - grid.zero_point,
                 most = codes->most - grid.zero_point;
    double sum = 0;
    for (int k = 0; k < b->count; k++) {
        uint64_t n = b->n[k] - (k == b->zero ? b->h->zeros : 0);
        if (n == 0)
            continue;
        double x = center(b, k), q = nearbyint(x / scale);
        q = q < least ? least : q > most ? most : q;
        sum += (double)n * powered(b->wanted[k] - ort_response_of(b->response, q * scale), p);
    }
    return sum;
}

typedef struct search {
    const bins *b;
    const ort_codes_range *codes;
    double power;
    double part[2], best; /* of the least and the most */
} search;

static ort_range part_of(const search *s, const double part[2])
{
    return (ort_range){(float)(s->b->h->least * part[0]), (float)(s->b->h->most * part[1])};
}

static void try_parts(search *s, const double part[2])
{
    ort_range r = part_of(s, part);
    double error = grid_error(s->b, s->codes, ort_grid_of(s->codes, r.least, r.most), s->power);
    if (error < s->best) {
        s->best = error;
        memcpy(s->part, part, sizeof s->part);
    }
}

/* One end moves, or both together. */
static void move_end(search *s, int end, double step)
{
    const double middle = s->part[end];
    for (int i = -24; i <= 24; i++) {
        double part[2] = {s->part[0], s->part[1]};
        part[end] = middle + i * step;
        if (s->codes->symmetric)
            part[1 - end] = part[end];
        if (part[end] > 1.0 / 64 && part[end] <= 1)
            try_parts(s, part);
    }
}

/* The ends are moved in turn, in steps that become finer. */
static ort_range error_range(const bins *b, const ort_codes_range *codes, double power)
{
    search s = {b, codes, power, {1, 1}, INFINITY};
    try_parts(&s, (const double[2]){1, 1});
    for (double step = 1.0 / 32; step >= 1.0 / 512; step /= 4)
        for (int round = 0; round < 2; round++)
            for (int end = 0; end < 2; end++)
                if (codes->symmetric ? end == 0 : (end ? b->h->most : b->h->least) != 0)
                    move_end(&s, end, step);
    return part_of(&s, s.part);
}

/* ---- divergence */

/* The natural logarithm of a positive number, by operations that every machine and C library round
 * alike: x = m 2^e with m within a root of 2 of 1, and ln m = 2 artanh((m - 1) / (m + 1)). */
static double steady_log(double x)
{
    int e;
    double m = frexp(x, &e), sum = 0;
    if (m < 0.70710678118654752)
        m *= 2, e--;
    const double t = (m - 1) / (m + 1), square = t * t;
    for (int k = 21; k > 0; k -= 2)
        sum = sum * square + 1.0 / k;
    return 2 * t * sum + e * 0.69314718055994531;
}

/* Of the bins [first, end), with all beyond moved to its ends, from the same bins when each group
 * of them that becomes one code is spread evenly over those that hold numbers. */
static double divergence(const bins *b, int first, int end, int codes)
{
    const double none = 1e-12; /* where a bin has only what was moved there */
    int n = end - first;
    double below = 0, above = 0, inside = 0, sum = 0;
    for (int k = 0; k < b->count; k++)
        *(k < first ? &below : k >= end ? &above : &inside) += (double)b->n[k];
    double all = below + inside + above;
    for (int g = 0; g < codes && inside > 0; g++) {
        int from = first + (int)((int64_t)g * n / codes);
        int to = first + (int)((int64_t)(g + 1) * n / codes), held = 0;
        double total = 0;
        for (int k = from; k < to; k++) {
            total += (double)b->n[k];
            held += b->n[k] > 0;
        }
        for (int k = from; k < to; k++) {
            double p = (double)b->n[k] + (k == first ? below : 0) + (k == end - 1 ? above : 0);
            double q = b->n[k] > 0 ? total / held / inside : none;
            sum += p > 0 ? p / all * steady_log(p / all / q) : 0;
        }
    }
    return inside > 0 ? sum : INFINITY;
}

/* Numbers above a threshold are clipped, on both sides. */
static ort_range entropy_range(const bins *b, const ort_codes_range *codes)
{
    enum { STEPS = 128 };
    const int levels = codes->most - codes->least + 1, above = b->count - b->zero;
    const int reach = b->zero > above ? b->zero : above;
    int first = 0, end = b->count;
    double best = INFINITY;
    for (int t = STEPS; t >= 1; t--) {
        int r = (int)(((int64_t)reach * t + STEPS - 1) / STEPS);
        int low = b->zero > r ? b->zero - r : 0;
        int high = above > r ? b->zero + r : b->count;
        if (high - low < levels)
            break;
        double d = divergence(b, low, high, levels);
        if (d < best)
            best = d, first = low, end = high;
    }
    return within(b->h, edge(b, first), edge(b, end));
}

/* ---- the table */

static ort_range by_ends(const ort_observed *o, double percentile, const ort_codes_range *codes)
{
    (void)percentile;
    (void)codes;
    return (ort_range){o->histogram.least, o->histogram.most};
}

static ort_range by_average(const ort_observed *o, double percentile, const ort_codes_range *codes)
{
    const ort_average *a = &o->average;
    if (!a->known)
        return by_ends(o, percentile, codes);
    return (ort_range){(float)(a->least < 0 ? a->least : 0), (float)(a->most > 0 ? a->most : 0)};
}

static ort_range by_percentile(const ort_observed *o, double percentile,
                               const ort_codes_range *codes)
{
    bins b;
    return unroll(o, &b) ? percentile_range(&b, percentile, codes->symmetric)
                                     : by_ends(o, percentile, codes);
}

static ort_range by_entropy(const ort_observed *o, double percentile, const ort_codes_range *codes)
{
    bins b;
    return unroll(o, &b) ? entropy_range(&b, codes) : by_ends(o, percentile, codes);
}

static ort_range by_power(const ort_observed *o, double power, const ort_codes_range *codes)
{
    bins b;
    return unroll(o, &b) ? error_range(&b, codes, power) : by_ends(o, 0, codes);
}

static ort_range by_squares(const ort_observed *o, double percentile, const ort_codes_range *codes)
{
    (void)percentile;
    return by_power(o, 2, codes);
}

static ort_range by_l25(const ort_observed *o, double percentile, const ort_codes_range *codes)
{
    (void)percentile;
    return by_power(o, 2.5, codes);
}

static ort_range by_l3(const ort_observed *o, double percentile, const ort_codes_range *codes)
{
    (void)percentile;
    return by_power(o, 3, codes);
}

static ort_range by_l4(const ort_observed *o, double percentile, const ort_codes_range *codes)
{
    (void)percentile;
    return by_power(o, 4, codes);
}

static const ort_observer_row rows[] = {
    [ORT_OBSERVE_MIN_MAX] = {"min-max", "all that was seen", ORT_KEPT_ENDS, by_ends},
    [ORT_OBSERVE_PERCENTILE] = {"percentile", "all but the outermost numbers", ORT_KEPT_BINS,
                                by_percentile},
    [ORT_OBSERVE_ENTROPY] = {"entropy", "what keeps most of the distribution's information",
                             ORT_KEPT_BINS, by_entropy},
    [ORT_OBSERVE_MSE] = {"mse", "what has the least squared error", ORT_KEPT_BINS, by_squares},
    [ORT_OBSERVE_AVERAGE] = {"moving-average", "the mean ends of samples, later ones weighing more",
                             ORT_KEPT_AVERAGES, by_average},
    [ORT_OBSERVE_L25] = {"l2.5", "what has the least sum of |error|^2.5", ORT_KEPT_BINS, by_l25},
    [ORT_OBSERVE_L3] = {"l3", "what has the least sum of |error|^3", ORT_KEPT_BINS, by_l3},
    [ORT_OBSERVE_L4] = {"l4", "what has the least sum of |error|^4", ORT_KEPT_BINS, by_l4},
};

const ort_observer_row *ort_observer_find(ort_observer observer)
{
    return (unsigned)observer < sizeof rows / sizeof *rows ? &rows[observer] : NULL;
}

static bool are_alike(const ort_codes_range *a, const ort_codes_range *b)
{
    return a->dtype == b->dtype && a->least == b->least && a->most == b->most &&
           a->symmetric == b->symmetric;
}

ort_range ort_range_choose(const ort_observed *value, ort_observer observer, double percentile,
                           const ort_codes_range *codes)
{
    ort_chosen *c = value->chosen;
    if (c && c->count > 0 && c->count == value->histogram.count && c->observer == observer &&
        c->percentile == percentile && are_alike(&c->codes, codes) &&
        c->response.kind == value->response.kind &&
        c->ends[0] == value->histogram.least && c->ends[1] == value->histogram.most)
        return (ort_range){c->least, c->most};
    ort_range r = rows[observer].choose(value, percentile, codes);
    if (c && value->histogram.count > 0)
        *c = (ort_chosen){value->histogram.count, observer, percentile, *codes, value->response,
                          {value->histogram.least, value->histogram.most}, r.least, r.most};
    return r;
}

double ort_range_noise(const ort_observed *value, const ort_codes_range *codes, ort_grid grid)
{
    bins b;
    double signal = 0;
    if (!value->histogram.bins || !unroll(value, &b))
        return 0;
    for (int k = 0; k < b.count; k++) {
        double x = b.wanted[k];
        signal += (double)(b.n[k] - (k == b.zero ? b.h->zeros : 0)) * x * x;
    }
    return signal > 0 ? grid_error(&b, codes, grid, 2) / signal : 0;
}

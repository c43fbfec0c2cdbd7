/* seen_range.c - numbers that readers don't tell apart count as those at the end of the span,
 * before an observer looks at them.
 */
#include "quantize/static/seen_range.h"

#include <math.h>
#include <string.h>

#include "quantize/place/place_response.h"

typedef struct cut {
    ort_observed seen;
    uint64_t bins[ORT_HISTOGRAM_BINS];
} cut;

static void cut_bins(cut *c, const ort_histogram *h)
{
    const double inverse = ldexp(1, -h->exponent);
    int first = 0, count = ort_histogram_span(h, &first);
    const int least = (int)floor((double)c->seen.histogram.least * inverse);
    const int most = (int)floor((double)c->seen.histogram.most * inverse);
    memset(c->bins, 0, sizeof c->bins);
    for (int k = first; k < first + count; k++) {
        const int at = k < least ? least : k > most ? most : k;
        c->bins[(unsigned)at % ORT_HISTOGRAM_BINS] += ort_histogram_bin(h, k);
    }
    c->seen.histogram.bins = c->bins;
}

/* A step beyond the ends, so that they have a code. The value itself where its readers tell all of
 * it apart. */
static const ort_observed *cut_to(cut *c, const ort_site *site, ort_id root,
                                  const ort_observed *seen, const ort_code_form *form)
{
    const ort_histogram *h = &seen->histogram;
    const ort_response r = ort_place_response(site->graph, &site->place, root);
    const float least = fmaxf(h->least, r.least), most = fminf(h->most, r.most);
    const float step = (most - least) / (float)(form->codes.most - form->codes.least);
    if (r.kind == ORT_RESPONSE_SAME && h->least >= least && h->most <= most)
        return seen;
    c->seen = *seen;
    c->seen.response = r;
    c->seen.histogram.least = fmaxf(h->least, least - step);
    c->seen.histogram.most = fminf(h->most, most + step);
    c->seen.average.least = fmax(seen->average.least, (double)c->seen.histogram.least);
    c->seen.average.most = fmin(seen->average.most, (double)c->seen.histogram.most);
    if (h->bins)
        cut_bins(c, h);
    return &c->seen;
}

ort_range ort_seen_range(const ort_site *site, ort_id root, const ort_observed *seen,
                         const ort_code_form *form)
{
    cut c;
    return ort_range_choose(cut_to(&c, site, root, seen, form), form->observer, form->percentile,
                            &form->codes);
}

double ort_seen_noise(const ort_site *site, ort_id root, const ort_observed *seen,
                      const ort_code_form *form)
{
    cut c;
    const ort_observed *o = cut_to(&c, site, root, seen, form);
    const ort_range r = ort_range_choose(o, form->observer, form->percentile, &form->codes);
    return ort_range_noise(o, &form->codes, ort_grid_of(&form->codes, r.least, r.most));
}

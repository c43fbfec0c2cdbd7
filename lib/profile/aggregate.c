/* aggregate.c - events to rows: per site, per operator, percentiles, and what the machine's peaks
 * allow. Sums come from the sites, which count every call; percentiles from the events that were
 * kept. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "profile/profile.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double percentile(const double *sorted, size_t count, double p)
{
    size_t rank = (size_t)ceil(p / 100 * (double)count);
    return sorted[rank > 0 ? rank - 1 : 0];
}

ort_spread ort_spread_of(double *numbers, size_t count)
{
    ort_spread s = {.count = count};
    double sum = 0, squares = 0;
    if (count == 0)
        return s;
    qsort(numbers, count, sizeof *numbers, ascending);
    for (size_t i = 0; i < count; i++)
        sum += numbers[i];
    s.mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (numbers[i] - s.mean) * (numbers[i] - s.mean);
    s.min = numbers[0];
    s.p50 = percentile(numbers, count, 50);
    s.p90 = percentile(numbers, count, 90);
    s.p99 = percentile(numbers, count, 99);
    s.cv = s.mean > 0 ? sqrt(squares / (double)count) / s.mean : 0;
    return s;
}

/* ---- rows */

static ort_profile_row row_of(const ort_site *site, const ort_peak *peak)
{
    double calls = (double)site->calls;
    ort_profile_row row = {.site = site,
                           .nodes = 1,
                           .calls = site->calls,
                           .self_ns = site->self_ns,
                           .total_ns = site->total_ns,
                           .cycles = site->cycles,
                           .macs = calls * site->work.macs,
                           .flops = calls * site->work.flops,
                           .bytes = calls * site->moved_bytes};
    double macs = site->work.done_macs > 0 ? site->work.done_macs : site->work.macs;
    if (peak && site->work.of_bytes && peak->int8_gops > 0)
        macs *= peak->gflops / peak->int8_gops; /* those of floats that take as long */
    if (peak && site->work.on_tiles && peak->tile_gflops > 0)
        macs *= peak->gflops / peak->tile_gflops;
    if (peak && site->shaped)
        row.bound_ns = calls * ort_peak_bound_ns(peak, 2 * macs + site->work.flops,
                                                 site->moved_bytes, site->resident_bytes);
    return row;
}

static void add_row(ort_profile_row *to, const ort_profile_row *from, bool new_node)
{
    to->nodes += new_node;
    to->calls += from->calls;
    to->self_ns += from->self_ns;
    to->total_ns += from->total_ns;
    to->cycles += from->cycles;
    to->macs += from->macs;
    to->flops += from->flops;
    to->bytes += from->bytes;
    to->bound_ns += from->bound_ns;
}

static bool same_operator(const ort_op *a, const ort_op *b)
{
    return !strcmp(a->name, b->name) && !strcmp(a->domain, b->domain);
}

/* *of_site: the row among `rows` that a site belongs to. */
static size_t group(const ort_profile *p, const ort_profile_row *nodes, ort_profile_row *rows,
                    uint32_t *of_site)
{
    size_t count = 0;
    for (size_t i = 0; i < p->sites.count; i++) {
        const ort_site *site = p->sites.data[i];
        size_t at = 0;
        bool seen = false;
        while (at < count && !same_operator(rows[at].site->op, site->op))
            at++;
        of_site[i] = (uint32_t)at;
        if (nodes[i].calls == 0)
            continue;
        for (size_t k = 0; k < i && !seen; k++)
            seen = nodes[k].calls && p->sites.data[k]->node == site->node;
        if (at < count)
            add_row(&rows[at], &nodes[i], !seen);
        else
            rows[count++] = nodes[i];
    }
    return count;
}

/* ---- percentiles */

typedef struct sample {
    uint32_t row, run;
    uint64_t ns;
} sample;

static int by_row(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->run < y->run ? -1 : x->run > y->run;
}

/* Samples of measured runs, by row. Returns their number. */
static size_t take_samples(const ort_profile *p, const uint32_t *of_site, sample *samples)
{
    size_t count = 0;
    for (size_t i = 0; i < p->events.count; i++) {
        const ort_event *e = &p->events.data[i];
        if (p->runs.data[e->run].measured)
            samples[count++] =
                (sample){of_site ? of_site[e->site] : e->site, e->run, e->self_ns};
    }
    qsort(samples, count, sizeof *samples, by_row);
    return count;
}

/* Spreads of rows[samples.row]; `per_run`: a run's samples are added up. */
static void spread_rows(const sample *samples, size_t count, bool per_run, ort_profile_row *rows,
                        double *numbers)
{
    for (size_t i = 0; i < count;) {
        size_t n = 0, first = i;
        for (; i < count && samples[i].row == samples[first].row; i++) {
            if (per_run && n && samples[i].run == samples[i - 1].run)
                numbers[n - 1] += (double)samples[i].ns / 1e6;
            else
                numbers[n++] = (double)samples[i].ns / 1e6;
        }
        rows[samples[first].row].spread_ms = ort_spread_of(numbers, n);
    }
}

static ort_status find_spreads(const ort_profile *p, const uint32_t *of_site,
                               ort_profile_summary *s, ort_error *err)
{
    size_t room = p->events.count + p->runs.count + 1, count;
    sample *samples = calloc(room, sizeof *samples);
    double *numbers = calloc(room, sizeof *numbers);
    ort_status status = ORT_OK;
    if (samples && numbers) {
        count = take_samples(p, NULL, samples);
        spread_rows(samples, count, false, s->nodes, numbers);
        count = take_samples(p, of_site, samples);
        spread_rows(samples, count, true, s->operators, numbers);
        count = 0;
        for (size_t i = 0; i < p->runs.count; i++)
            if (p->runs.data[i].measured)
                numbers[count++] = (double)p->runs.data[i].wall_ns / 1e6;
        s->latency_ms = ort_spread_of(numbers, count);
    } else {
        status = ort_error_memory(err, room * sizeof *samples);
    }
    free(samples);
    free(numbers);
    return status;
}

/* ---- the whole */

static int by_time(const void *a, const void *b)
{
    const ort_profile_row *x = a, *y = b;
    if (x->self_ns != y->self_ns)
        return x->self_ns > y->self_ns ? -1 : 1;
    return x->site->id < y->site->id ? -1 : x->site->id > y->site->id;
}

static void add_runs(const ort_profile *p, ort_profile_summary *s)
{
    if (p->runs.count)
        s->first_ms = (double)p->runs.data[0].wall_ns / 1e6;
    for (size_t i = 0; i < p->runs.count; i++) {
        const ort_profile_run *run = &p->runs.data[i];
        if (!run->measured) {
            s->warmup_runs++;
            continue;
        }
        s->runs++;
        s->wall_ns += run->wall_ns;
        s->nodes_ns += run->nodes_ns;
        s->cycles += run->cycles;
    }
}

static size_t drop_idle(ort_profile_row *rows, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].calls)
            rows[kept++] = rows[i];
    return kept;
}

ort_status ort_profile_summarize(const ort_profile *p, const ort_peak *peak,
                                 ort_profile_summary *summary, ort_error *err)
{
    size_t count = p->sites.count;
    uint32_t *of_site = calloc(count + 1, sizeof *of_site);
    ort_status status = ORT_OK;
    *summary = (ort_profile_summary){.nodes = calloc(count + 1, sizeof(ort_profile_row)),
                                     .operators = calloc(count + 1, sizeof(ort_profile_row))};
    if (p->broken)
        status = ort_error_set(err, ORT_ERROR_RUN, "a measured run failed: there is no profile");
    else if (p->failed || !of_site || !summary->nodes || !summary->operators)
        status = ort_error_memory(err, count * sizeof *summary->nodes);
    for (size_t i = 0; i < count && status == ORT_OK; i++)
        summary->nodes[i] = row_of(p->sites.data[i], peak);
    if (status == ORT_OK) {
        add_runs(p, summary);
        summary->operator_count = group(p, summary->nodes, summary->operators, of_site);
        status = find_spreads(p, of_site, summary, err);
    }
    free(of_site);
    if (status != ORT_OK) {
        ort_profile_summary_release(summary);
        return status;
    }
    summary->node_count = drop_idle(summary->nodes, count);
    qsort(summary->nodes, summary->node_count, sizeof *summary->nodes, by_time);
    qsort(summary->operators, summary->operator_count, sizeof *summary->operators, by_time);
    return ORT_OK;
}

void ort_profile_summary_release(ort_profile_summary *summary)
{
    free(summary->nodes);
    free(summary->operators);
    *summary = (ort_profile_summary){0};
}

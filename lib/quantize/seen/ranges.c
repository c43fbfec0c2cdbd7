/* ranges.c - values by name, what they held, and what two of such know together. */
#include "quantize/seen/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "tensor/tensor.h"

ort_status ort_ranges_make(ort_ranges **ranges, ort_error *err)
{
    *ranges = calloc(1, sizeof **ranges);
    return *ranges ? ORT_OK : ort_error_memory(err, sizeof **ranges);
}

void ort_ranges_release(ort_ranges *r)
{
    if (!r)
        return;
    ort_hashmap_release(&r->by_name);
    ort_vec_release(&r->values);
    ort_arena_release(&r->memory);
    free(r);
}

void ort_ranges_set(ort_ranges *r, uint64_t model, ort_kept kept)
{
    r->is_set = true;
    r->model = model;
    r->kept = kept;
}

ort_status ort_ranges_add(ort_ranges *r, const char *name, ort_error *err)
{
    ort_observed value = {.name = ort_arena_strdup(&r->memory, name)};
    size_t bytes = ORT_HISTOGRAM_BINS * sizeof *value.histogram.bins;
    if (r->kept == ORT_KEPT_BINS) {
        value.histogram.bins = ort_arena_alloc(&r->memory, bytes);
        if (!value.histogram.bins)
            return ort_error_memory(err, bytes);
        value.chosen = ort_arena_array(&r->memory, 1, sizeof *value.chosen);
    }
    if (value.chosen)
        *value.chosen = (ort_chosen){0};
    if (!value.name || !ort_hashmap_put_str(&r->by_name, value.name, r->values.count) ||
        !ort_vec_push(&r->values, value))
        return ort_error_memory(err, sizeof value);
    return ORT_OK;
}

ort_observed *ort_ranges_find(const ort_ranges *r, const char *name)
{
    uint64_t at;
    return ort_hashmap_get_str(&r->by_name, name, &at) ? &r->values.data[at] : NULL;
}

/* ---- observing */

static void average(ort_average *a, const ort_ends *ends)
{
    const double part = 0.01;
    if (!ends->finite)
        return;
    if (!a->known)
        *a = (ort_average){ends->least, ends->most, true};
    a->least += part * (ends->least - a->least);
    a->most += part * (ends->most - a->most);
}

static void observe_floats(ort_ranges *r, ort_observed *o, const float *x, size_t n, ort_ends *ends,
                           ort_pool *pool)
{
    if (r->kept == ORT_KEPT_AVERAGES)
        ort_ends_add(ends, x, n);
    ort_histogram_add(&o->histogram, x, n, pool);
}

static void observe_halves(ort_ranges *r, ort_observed *o, const uint16_t *x, size_t n,
                           ort_ends *ends)
{
    enum { BLOCK = 4096 };
    float wide[BLOCK];
    for (size_t done = 0; done < n; done += BLOCK) {
        size_t count = n - done < BLOCK ? n - done : BLOCK;
        ort_f16s_to_f32(x + done, wide, count);
        observe_floats(r, o, wide, count, ends, NULL);
    }
}

void ort_ranges_observe(ort_ranges *r, ort_observed *o, const ort_tensor *t, ort_pool *pool)
{
    ort_ends ends = ORT_ENDS_INIT;
    size_t n = (size_t)ort_tensor_count(t);
    if (t->dtype == ORT_DTYPE_FLOAT)
        observe_floats(r, o, t->data, n, &ends, pool);
    else if (t->dtype == ORT_DTYPE_FLOAT16)
        observe_halves(r, o, t->data, n, &ends);
    if (r->kept == ORT_KEPT_AVERAGES)
        average(&o->average, &ends);
}

/* ---- merging */

static const char *const kept_words[] = {"the ends of ranges", "bins", "moving averages"};
static const char *const takers[] = {"min-max", "mse", "moving-average"}; /* and others */

static ort_status refuse_kept(const ort_ranges *into, const ort_ranges *from, const char *name,
                              ort_error *err)
{
    if (from->kept == ORT_KEPT_AVERAGES && into->kept == ORT_KEPT_AVERAGES)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "%s: moving averages depend on the order of samples and don't merge; "
                             "calibrate all samples in one run", name);
    return ort_error_set(err, ORT_ERROR_USAGE,
                         "%s holds %s, %s are needed; the observer %s takes what it holds, for "
                         "others calibrate with one of them", name, kept_words[from->kept],
                         kept_words[into->kept], takers[from->kept]);
}

/* Bins have ends too. */
static bool kept_fit(const ort_ranges *into, const ort_ranges *from)
{
    if (from->kept == ORT_KEPT_AVERAGES)
        return into->kept == ORT_KEPT_AVERAGES && into->samples == 0;
    return into->kept == from->kept ||
           (into->kept == ORT_KEPT_ENDS && from->kept == ORT_KEPT_BINS && into->samples == 0);
}

static ort_status refuse_model(const ort_ranges *into, const ort_ranges *from, const char *name,
                               ort_error *err)
{
    for (size_t i = 0; i < into->values.count; i++)
        if (!ort_ranges_find(from, into->values.data[i].name))
            return ort_error_set(err, ORT_ERROR_USAGE,
                                 "%s: ranges of another model: value '%s' isn't among them", name,
                                 into->values.data[i].name);
    return ort_error_set(err, ORT_ERROR_USAGE,
                         "%s: ranges of another model, with values of the same names: its weights "
                         "or operators differ; calibrate this one", name);
}

static ort_status check_values(const ort_ranges *into, const ort_ranges *from, bool more,
                               const char *name, ort_error *err)
{
    for (size_t i = 0; i < into->values.count; i++)
        if (!ort_ranges_find(from, into->values.data[i].name))
            return ort_error_set(err, ORT_ERROR_USAGE,
                                 "%s: value '%s' isn't among the ranges; calibrate with the same "
                                 "options", name, into->values.data[i].name);
    for (size_t i = 0; i < from->values.count && !more; i++)
        if (!ort_ranges_find(into, from->values.data[i].name))
            return ort_error_set(err, ORT_ERROR_USAGE,
                                 "%s: value '%s' is in no ranges before; calibrate with the same "
                                 "options", name, from->values.data[i].name);
    return ORT_OK;
}

static ort_status check_counts(const ort_ranges *into, const ort_ranges *from, const char *name,
                               ort_error *err)
{
    uint64_t sum;
    bool fits = !__builtin_add_overflow(into->samples, from->samples, &sum);
    for (size_t i = 0; i < into->values.count && fits; i++) {
        const ort_histogram *a = &into->values.data[i].histogram;
        const ort_histogram *b = &ort_ranges_find(from, into->values.data[i].name)->histogram;
        fits = !__builtin_add_overflow(a->count, b->count, &sum) &&
               !__builtin_add_overflow(a->not_finite, b->not_finite, &sum);
    }
    return fits ? ORT_OK
                : ort_error_set(err, ORT_ERROR_DATA, "%s: more numbers than 64 bits count", name);
}

static ort_status take_names(ort_ranges *into, const ort_ranges *from, ort_error *err)
{
    ort_ranges_set(into, from->model, from->kept);
    for (size_t i = 0; i < from->values.count; i++)
        ORT_TRY(ort_ranges_add(into, from->values.data[i].name, err));
    return ORT_OK;
}

static ort_status check_merge(const ort_ranges *into, const ort_ranges *from, bool more,
                              const char *name, ort_error *err)
{
    if (into->model != from->model)
        return refuse_model(into, from, name, err);
    if (!kept_fit(into, from))
        return refuse_kept(into, from, name, err);
    if (into->tier && from->tier && strcmp(into->tier, from->tier))
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "%s: seen in runs on %s, what is merged with it on %s, and sums of "
                             "floats differ between these; calibrate on one kind of machine", name,
                             from->tier, into->tier);
    ORT_TRY(check_values(into, from, more, name, err));
    return check_counts(into, from, name, err);
}

ort_status ort_ranges_merge(ort_ranges *into, const ort_ranges *from, bool more, const char *name,
                            ort_error *err)
{
    if (!from->is_set)
        return ort_error_set(err, ORT_ERROR_USAGE, "%s: these ranges hold nothing yet", name);
    if (!into->is_set)
        ORT_TRY(take_names(into, from, err));
    ORT_TRY(check_merge(into, from, more, name, err));
    if (from->tier && !into->tier && !(into->tier = ort_arena_strdup(&into->memory, from->tier)))
        return ort_error_memory(err, strlen(from->tier));
    for (size_t i = 0; i < into->values.count; i++) {
        ort_observed *to = &into->values.data[i];
        const ort_observed *o = ort_ranges_find(from, to->name);
        ort_histogram_merge(&to->histogram, &o->histogram);
        if (into->kept == ORT_KEPT_AVERAGES)
            to->average = o->average;
    }
    into->samples += from->samples;
    into->made_up += from->made_up;
    return ORT_OK;
}

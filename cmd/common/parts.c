/* parts.c - sums by channel, and channels put together by size (parts.h). */
#include "common/parts.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearness.h"
#include "common/tool.h"

enum { MOST_CHANNELS = 1024 };
static const double much = 10;  /* as large */
static const double least = 32; /* numbers in a channel that tell its size */

/* ---- sums */

static bool begin(struct parts_axis *a, const ort_value *v, int axis)
{
    const int64_t channels = ort_value_dims(v)[axis];
    const bool fits = channels > 1 && channels <= MOST_CHANNELS;
    if (a->channels == 0) {
        a->channels = fits ? channels : -1;
        a->axis = axis;
        a->signal = tool_alloc(2 * MOST_CHANNELS * sizeof *a->signal);
        a->noise = a->signal + MOST_CHANNELS;
        memset(a->signal, 0, 2 * MOST_CHANNELS * sizeof *a->signal);
    }
    if (a->channels != channels || a->axis != axis)
        a->channels = -1;
    return a->channels > 0;
}

static double at(const ort_value *v, const float *data, int64_t i)
{
    return data != NULL ? (double)data[i] : ort_value_get_double(v, i);
}

static const float *floats_of(const ort_value *v)
{
    return ort_value_dtype(v) == ORT_DTYPE_FLOAT ? ort_value_data((ort_value *)v) : NULL;
}

/* Of a channel `inner` numbers lie side by side. */
static void add_axis(struct parts_axis *a, const ort_value *x, const ort_value *y, int axis)
{
    int64_t inner = 1;
    if (!begin(a, x, axis))
        return;
    for (int i = axis + 1; i < ort_value_rank(x); i++)
        inner *= ort_value_dims(x)[i];
    const float *const xs = floats_of(x), *const ys = floats_of(y);
    const int64_t count = ort_value_count(x);
    for (int64_t first = 0, row = 0; first < count; first += inner, row++) {
        double signal = 0, noise = 0;
        for (int64_t i = first; i < first + inner; i++) {
            const double r = at(x, xs, i), e = r - at(y, ys, i);
            const bool counts = isfinite(r) && isfinite(e); /* others are told beside the ratio */
            signal += counts ? r * r : 0;
            noise += counts ? e * e : 0;
        }
        a->signal[row % a->channels] += signal;
        a->noise[row % a->channels] += noise;
    }
    a->count += (double)count / (double)a->channels;
}

static bool is_real(const ort_value *v)
{
    return ort_value_get_kind(v) == ORT_VALUE_TENSOR && dtype_is_float(ort_value_dtype(v));
}

void parts_add(part_sums *p, const ort_value *reference, const ort_value *other)
{
    if (!is_real(reference) || !is_real(other) || ort_value_rank(reference) < 3 ||
        ort_value_count(reference) == 0)
        return;
    add_axis(&p->second, reference, other, 1);
    add_axis(&p->last, reference, other, ort_value_rank(reference) - 1);
}

void parts_release(part_sums *p)
{
    free(p->second.signal);
    free(p->last.signal);
    *p = (part_sums){0};
}

/* ---- parts */

typedef struct channel {
    int64_t place;
    double signal, noise;
} channel;

static int by_signal(const void *a, const void *b)
{
    const channel *x = a, *y = b;
    return x->signal < y->signal ? -1 : x->signal > y->signal;
}

static int by_place(const void *a, const void *b)
{
    const channel *x = a, *y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* "0-3, 7"; what has no room is three dots. */
static void list_channels(const channel *sorted, size_t count, char *list, size_t room)
{
    char one[48];
    list[0] = '\0';
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end].place == sorted[end - 1].place + 1; end++)
            ;
        const size_t used = strlen(list);
        snprintf(one, sizeof one, "%s%lld", used > 0 ? ", " : "", (long long)sorted[i].place);
        if (end > i + 1)
            snprintf(one + strlen(one), sizeof one - strlen(one), "-%lld",
                     (long long)sorted[end - 1].place);
        if (used + strlen(one) + sizeof ", ..." > room) {
            snprintf(list + used, room - used, ", ...");
            return;
        }
        snprintf(list + used, room - used, "%s", one);
    }
}

/* Channels [from, to) of all that are sorted by signal. */
static void measure(const struct parts_axis *a, channel *all, size_t count, size_t from, size_t to,
                    worst_part *worst)
{
    double signal = 0, noise = 0, rest = 0;
    for (size_t i = 0; i < count; i++)
        *(i >= from && i < to ? &signal : &rest) += all[i].signal;
    for (size_t i = from; i < to; i++)
        noise += all[i].noise;
    const double db = noise > 0 ? 10 * log10(signal / noise) : INFINITY;
    const double smaller = sqrt(rest / (double)(count - (to - from)) /
                                (signal / (double)(to - from)));
    if (!(db < worst->sqnr_db) || smaller < 1)
        return;
    channel *own = tool_alloc((to - from) * sizeof *own);
    memcpy(own, all + from, (to - from) * sizeof *own);
    qsort(own, to - from, sizeof *own, by_place);
    worst->axis = a->axis;
    worst->channels = a->channels;
    worst->sqnr_db = db;
    worst->smaller = smaller;
    list_channels(own, to - from, worst->list, sizeof worst->list);
    free(own);
}

/* Channels without any signal are of no part. */
static void find(const struct parts_axis *a, worst_part *worst)
{
    if (a->channels <= 0 || a->count < least)
        return;
    channel *all = tool_alloc((size_t)a->channels * sizeof *all);
    size_t count = 0;
    for (int64_t c = 0; c < a->channels; c++)
        if (a->signal[c] > 0)
            all[count++] = (channel){c, a->signal[c], a->noise[c]};
    qsort(all, count, sizeof *all, by_signal);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && all[to].signal < all[to - 1].signal * much * much; to++)
            ;
        if (from > 0 || to < count)
            measure(a, all, count, from, to, worst);
    }
    free(all);
}

bool parts_worst(const part_sums *p, worst_part *worst)
{
    *worst = (worst_part){.axis = -1, .sqnr_db = INFINITY};
    find(&p->second, worst);
    if (p->last.axis != p->second.axis)
        find(&p->last, worst);
    return worst->axis >= 0;
}

/* ---- as text */

const char *part_text(const worst_part *p, char *text, size_t room)
{
    char db[24];
    snprintf(text, room, "channel%s %s of %lld along axis %d, %.3g times smaller than the rest: "
             "SQNR %s dB", strpbrk(p->list, "-,") ? "s" : "", p->list, (long long)p->channels,
             p->axis, p->smaller, nearness_sqnr(p->sqnr_db, db, sizeof db));
    return text;
}

void parts_json(struct json_object *object, const part_sums *p)
{
    worst_part worst;
    if (!parts_worst(p, &worst))
        return;
    json_object *o = json_object_new_object();
    json_object_object_add(o, "axis", json_object_new_int(worst.axis));
    json_object_object_add(o, "channels", json_object_new_string(worst.list));
    json_object_object_add(o, "of", json_object_new_int64(worst.channels));
    json_object_object_add(o, "times_smaller", json_object_new_double(worst.smaller));
    json_object_object_add(o, "sqnr_db", json_object_new_double(worst.sqnr_db));
    json_object_object_add(object, "worst_part", o);
}

/* ranges_json.c - ranges as text: the same text of the same ranges, and the same bits read back.
 *
 *     {"schema": "ort-ranges/1", "model": "0123456789abcdef", "tier": "common", "keeps": "bins",
 *      "samples": 2, "made_up": 0, "values": [
 *      {"name": "x", "count": 9, "zeros": 1, "not_finite": 0, "least": -0.5, "most": 1,
 *       "exponent": -10, "bins": [1, -700, 6, -834, 1]}]}
 *
 * Bins are those from the one that holds the least number (or 0) to the one of the most, each
 * 2^exponent wide; a negative number stands for so many empty ones. What a file says of a range
 * follows from its ends and counts, so a file in which it doesn't is damaged, and refused.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_in.h"
#include "quantize/seen/ranges.h"

static const char schema[] = "ort-ranges/1";
static const char *const kept_names[] = {"ends", "bins", "averages"};

/* ---- writing */

static void write_float(ort_json *json, const char *key, float value)
{
    ort_strbuf text = {0};
    ort_strbuf_add_float(&text, value);
    ort_json_key(json, key);
    ort_json_raw(json, ort_strbuf_text(&text), text.length);
    json->out->failed |= text.failed;
    ort_strbuf_release(&text);
}

static void write_uint(ort_json *json, const char *key, uint64_t value)
{
    ort_json_key(json, key);
    ort_json_uint(json, value);
}

static void write_bins(ort_json *json, const ort_histogram *h)
{
    int first = 0, count = ort_histogram_span(h, &first), empty = 0;
    ort_json_key(json, "exponent");
    ort_json_int(json, count ? h->exponent : 0);
    ort_json_key(json, "bins");
    ort_json_begin_array(json);
    for (int k = first; k <= first + count; k++) {
        uint64_t n = k < first + count ? ort_histogram_bin(h, k) : 1;
        if (n && empty)
            ort_json_int(json, -empty);
        if (n && k < first + count)
            ort_json_uint(json, n);
        empty = n ? 0 : empty + 1;
    }
    ort_json_end_array(json);
}

static void write_value(const ort_ranges *r, const ort_observed *o, ort_strbuf *out)
{
    const ort_histogram *h = &o->histogram;
    ort_json json;
    ort_json_init(&json, out, 0);
    ort_json_begin_object(&json);
    ort_json_key(&json, "name");
    ort_json_string(&json, o->name);
    write_uint(&json, "count", h->count);
    write_uint(&json, "zeros", h->zeros);
    write_uint(&json, "not_finite", h->not_finite);
    write_float(&json, "least", h->least);
    write_float(&json, "most", h->most);
    if (r->kept == ORT_KEPT_BINS)
        write_bins(&json, h);
    if (r->kept == ORT_KEPT_AVERAGES && o->average.known) {
        ort_json_key(&json, "average_least");
        ort_json_double(&json, o->average.least);
        ort_json_key(&json, "average_most");
        ort_json_double(&json, o->average.most);
    }
    ort_json_end_object(&json);
}

ort_status ort_ranges_write_json(const ort_ranges *r, ort_strbuf *out, ort_error *err)
{
    ort_json json;
    char model[17];
    if (!r->is_set || !r->tier)
        return ort_error_set(err, ORT_ERROR_USAGE, "no sample was observed: there are no ranges");
    snprintf(model, sizeof model, "%016llx", (unsigned long long)r->model);
    ort_json_init(&json, out, 1);
    ort_json_begin_object(&json);
    const char *const texts[][2] = {{"schema", schema}, {"model", model}, {"tier", r->tier},
                                    {"keeps", kept_names[r->kept]}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ort_json_key(&json, texts[i][0]);
        ort_json_string(&json, texts[i][1]);
    }
    write_uint(&json, "samples", r->samples);
    write_uint(&json, "made_up", r->made_up);
    ort_json_key(&json, "values");
    ort_json_begin_array(&json);
    for (size_t i = 0; i < r->values.count; i++) { /* a line each */
        ort_strbuf line = {0};
        write_value(r, &r->values.data[i], &line);
        ort_json_raw(&json, ort_strbuf_text(&line), line.length);
        out->failed |= line.failed;
        ort_strbuf_release(&line);
    }
    ort_json_end_array(&json);
    ort_json_end_object(&json);
    ort_strbuf_add_char(out, '\n');
    return out->failed ? ort_error_memory(err, out->length) : ORT_OK;
}

/* ---- reading: members stand in the order in which they are written, and all are there */

static void expect_key(ort_json_in *in, char before, const char *wanted)
{
    const char *key = ort_json_in_more(in, before) ? ort_json_in_key(in) : "";
    if (strcmp(key, wanted))
        ort_json_in_fail(in, "member \"%s\" should be here%s%.40s%s", wanted,
                         key[0] ? ", not \"" : "", key, key[0] ? "\"" : "");
}

static uint64_t read_uint(ort_json_in *in, const char *key)
{
    expect_key(in, '}', key);
    return ort_json_in_uint(in);
}

static const char *read_text(ort_json_in *in, const char *key)
{
    expect_key(in, '}', key);
    return ort_json_in_string(in);
}

/* An end of a range: 0, or a normal number on its side of it. */
static float read_end(ort_json_in *in, const char *key, float side)
{
    expect_key(in, '}', key);
    float value = ort_json_in_float(in);
    if (value * side < 0 || (value != 0 && fabsf(value) < FLT_MIN))
        ort_json_in_fail(in, "%g is no end of a range that holds 0", (double)value);
    return value;
}

/* The bin of an end of the range isn't empty, as the end is in it; that of 0 may be. */
static bool ends_are_held(const ort_histogram *h, int first, int count)
{
    return !count || ((h->least == 0 || ort_histogram_bin(h, first)) &&
                      (h->most == 0 || ort_histogram_bin(h, first + count - 1)));
}

static void read_bins(ort_json_in *in, ort_histogram *h)
{
    int first = 0, at = 0, count, exponent;
    uint64_t sum = h->zeros;
    bool fits = true;
    expect_key(in, '}', "exponent");
    exponent = (int)ort_json_in_int(in);
    h->exponent = h->least == h->most ? 0 : ort_histogram_exponent(h->least, h->most);
    if (exponent != h->exponent)
        ort_json_in_fail(in, "bins from %g to %g have exponent %d, not %d", (double)h->least,
                         (double)h->most, h->exponent, exponent);
    count = ort_histogram_span(h, &first);
    expect_key(in, '}', "bins");
    ort_json_in_enter(in, '[');
    while (ort_json_in_more(in, ']') && fits) {
        int64_t n = ort_json_in_int(in);
        fits = n < 0 ? n >= at - count : at < count && n > 0;
        if (fits && n > 0) {
            h->bins[(unsigned)(first + at) % ORT_HISTOGRAM_BINS] = (uint64_t)n;
            fits = !__builtin_add_overflow(sum, (uint64_t)n, &sum);
        }
        at += fits && n < 0 ? (int)-n : 1;
    }
    if (!fits || at != count)
        ort_json_in_fail(in, "the bins aren't the %d of the range from %g to %g", count,
                         (double)h->least, (double)h->most);
    else if (sum != h->count || !ends_are_held(h, first, count))
        ort_json_in_fail(in, "the bins don't hold the %llu numbers that were counted",
                         (unsigned long long)h->count);
}

static void read_averages(ort_json_in *in, ort_average *a)
{
    if (!ort_json_in_more(in, '}'))
        return;
    if (strcmp(ort_json_in_key(in), "average_least"))
        ort_json_in_fail(in, "member \"average_least\" or the end of the value should be here");
    a->least = ort_json_in_double(in);
    expect_key(in, '}', "average_most");
    a->most = ort_json_in_double(in);
    a->known = true;
    if (a->least > a->most)
        ort_json_in_fail(in, "average_least is above average_most");
}

static void check_range(ort_json_in *in, const ort_ranges *r, const ort_observed *o)
{
    const ort_histogram *h = &o->histogram;
    if (h->zeros > h->count || (h->zeros == h->count) != (h->least == h->most))
        ort_json_in_fail(in, "%llu numbers, %llu zeros among them, don't reach from %g to %g",
                         (unsigned long long)h->count, (unsigned long long)h->zeros,
                         (double)h->least, (double)h->most);
    if (o->average.known && ((float)o->average.least < h->least ||
                             (float)o->average.most > h->most))
        ort_json_in_fail(in, "the averages lie outside of the range");
    if (r->samples == 0 && h->count + h->not_finite > 0)
        ort_json_in_fail(in, "numbers of no sample");
}

static void read_value(ort_json_in *in, ort_ranges *r)
{
    ort_json_in_enter(in, '{');
    const char *name = read_text(in, "name");
    if (in->status == ORT_OK && ort_ranges_find(r, name))
        ort_json_in_fail(in, "value '%.100s' is there twice", name);
    if (in->status == ORT_OK)
        in->status = ort_ranges_add(r, name, in->err);
    if (in->status != ORT_OK)
        return;
    ort_observed *o = &r->values.data[r->values.count - 1];
    ort_histogram *h = &o->histogram;
    h->count = read_uint(in, "count");
    h->zeros = read_uint(in, "zeros");
    h->not_finite = read_uint(in, "not_finite");
    h->least = read_end(in, "least", -1);
    h->most = read_end(in, "most", 1);
    if (in->status == ORT_OK && r->kept == ORT_KEPT_BINS)
        read_bins(in, h);
    bool ends = r->kept != ORT_KEPT_AVERAGES;
    if (!ends)
        read_averages(in, &o->average);
    if ((ends || o->average.known) && ort_json_in_more(in, '}'))
        ort_json_in_fail(in, "value '%.100s' has a member too many", o->name);
    if (in->status == ORT_OK)
        check_range(in, r, o);
}

static void read_model(ort_json_in *in, ort_ranges *r)
{
    const char *digits = read_text(in, "model");
    uint64_t model = 0;
    bool right = strlen(digits) == 16;
    for (const char *c = digits; *c && right; c++) {
        const char *found = strchr("0123456789abcdef", *c);
        right = found != NULL;
        model = model << 4 | (right ? (uint64_t)(found - "0123456789abcdef") & 15 : 0);
    }
    if (!right)
        ort_json_in_fail(in, "\"model\" isn't of 16 hexadecimal digits");
    r->model = model;
}

static void read_head(ort_json_in *in, ort_ranges *r)
{
    ort_json_in_enter(in, '{');
    const char *text = read_text(in, "schema");
    if (strcmp(text, schema))
        ort_json_in_fail(in, "schema \"%.40s\" isn't \"%s\": no ranges that this version reads",
                         text, schema);
    read_model(in, r);
    r->tier = ort_arena_strdup(&r->memory, read_text(in, "tier"));
    if (!r->tier && in->status == ORT_OK)
        in->status = ort_error_memory(in->err, in->text.length);
    text = read_text(in, "keeps");
    size_t kept = 0;
    while (kept < sizeof kept_names / sizeof *kept_names && strcmp(kept_names[kept], text))
        kept++;
    if (kept == sizeof kept_names / sizeof *kept_names)
        ort_json_in_fail(in, "\"keeps\" is \"%.40s\", none of ends, bins and averages", text);
    ort_ranges_set(r, r->model, (ort_kept)kept);
    r->samples = read_uint(in, "samples");
    r->made_up = read_uint(in, "made_up");
    if (r->made_up > r->samples)
        ort_json_in_fail(in, "more samples are made up than there are");
}

static ort_status read_all(ort_json_in *in, ort_ranges *r)
{
    read_head(in, r);
    expect_key(in, '}', "values");
    ort_json_in_enter(in, '[');
    while (ort_json_in_more(in, ']'))
        read_value(in, r);
    in->first = false;
    if (ort_json_in_more(in, '}'))
        ort_json_in_fail(in, "a member too many behind \"values\"");
    ort_json_in_end(in);
    return in->status;
}

ort_status ort_ranges_read_json(ort_ranges *r, const char *text, size_t size, const char *name,
                                ort_error *err)
{
    ort_json_in in;
    ort_ranges *read = NULL;
    ORT_TRY(ort_ranges_make(&read, err));
    ort_json_in_open(&in, text, size, name, err);
    ort_status status = read_all(&in, read);
    ort_json_in_close(&in);
    if (status == ORT_OK)
        status = ort_ranges_merge(r, read, false, name, err);
    ort_ranges_release(read);
    return status;
}

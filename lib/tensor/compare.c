/* compare.c - comparison of values: |a - b| <= atol + rtol * |b|, b expected; NaN equals NaN and an
 * infinity equals itself. Integers differ by exact 64-bit arithmetic, strings by bytes. The worst
 * element is the one that exceeds its tolerance most (or comes nearest, when all are within). */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/options.h"
#include "tensor/tensor.h"
#include "tensor/text.h"

typedef struct comparison {
    const ort_compare_options *options;
    ort_difference *difference;
    double worst_excess; /* largest |a - b| - tolerance so far */
    bool any;
} comparison;

static void say(ort_difference *difference, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(ort_difference *difference, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(difference->text, sizeof difference->text, format, args);
    va_end(args);
}

static ort_status not_equal(ort_difference *difference)
{
    difference->equal = false;
    if (difference->mismatches == 0)
        difference->mismatches = 1;
    return ORT_OK;
}

static void note(comparison *c, int64_t index, double actual, double expected, double diff)
{
    ort_difference *d = c->difference;
    double tolerance = c->options->atol + c->options->rtol * fabs(expected);
    double excess = diff - tolerance;
    if (diff == 0)
        excess = -INFINITY; /* also for infinities, whose tolerance is not a number */
    else if (isnan(excess))
        excess = INFINITY;
    if (diff > d->max_abs || isnan(diff))
        d->max_abs = isnan(diff) ? INFINITY : diff;
    double relative = diff == 0 ? 0 : expected == 0 ? INFINITY : diff / fabs(expected);
    if (isnan(relative))
        relative = INFINITY;
    if (relative > d->max_rel && expected != 0)
        d->max_rel = relative;
    if (excess > 0)
        d->mismatches++;
    if (!c->any || excess > c->worst_excess) {
        c->any = true;
        c->worst_excess = excess;
        d->worst = index;
        d->worst_actual = actual;
        d->worst_expected = expected;
    }
}

static double float_distance(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0;
    return isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
}

static void compare_float(comparison *c, const ort_tensor *a, const ort_tensor *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double x = ort_tensor_get_f64(a, i), y = ort_tensor_get_f64(b, i);
        double distance = float_distance(x, y);
        /* An infinite expectation would make every tolerance infinite. */
        if (distance == INFINITY && isinf(y))
            distance = NAN;
        note(c, i, x, y, distance);
    }
}

static void compare_integer(comparison *c, const ort_tensor *a, const ort_tensor *b, int64_t count)
{
    bool is_unsigned = a->dtype == ORT_DTYPE_UINT64;
    for (int64_t i = 0; i < count; i++) {
        int64_t x = ort_tensor_get_i64(a, i), y = ort_tensor_get_i64(b, i);
        bool above = is_unsigned ? (uint64_t)x > (uint64_t)y : x > y;
        uint64_t distance = above ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
        note(c, i, is_unsigned ? (double)(uint64_t)x : (double)x,
             is_unsigned ? (double)(uint64_t)y : (double)y, (double)distance);
    }
}

static void compare_complex(comparison *c, const ort_tensor *a, const ort_tensor *b, int64_t count)
{
    /* Parts are compared as a tensor of twice as many reals; the index is of the complex number. */
    ort_dtype part = a->dtype == ORT_DTYPE_COMPLEX64 ? ORT_DTYPE_FLOAT : ORT_DTYPE_DOUBLE;
    ort_tensor x = {.dtype = part, .shape = {1, {2 * count}}, .data = a->data};
    ort_tensor y = {.dtype = part, .shape = {1, {2 * count}}, .data = b->data};
    compare_float(c, &x, &y, 2 * count);
    c->difference->worst /= 2;
}

static void format_index(const ort_shape *shape, int64_t index, char *text, size_t size)
{
    int64_t at[ORT_MAX_RANK];
    for (int i = shape->rank - 1; i >= 0; i--) {
        at[i] = index % shape->dim[i];
        index /= shape->dim[i];
    }
    size_t used = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < shape->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, i ? ",%" PRId64 : "%" PRId64, at[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

static void compare_strings(comparison *c, const ort_tensor *a, const ort_tensor *b, int64_t count)
{
    ort_difference *d = c->difference;
    const ort_string *x = a->data, *y = b->data;
    for (int64_t i = 0; i < count; i++) {
        if (x[i].length == y[i].length &&
            (x[i].length == 0 || !memcmp(x[i].ptr, y[i].ptr, x[i].length)))
            continue;
        if (d->mismatches++ == 0)
            d->worst = i;
    }
    d->equal = d->mismatches == 0;
    if (d->equal) {
        say(d, "all %" PRId64 " strings are equal", count);
        return;
    }
    char at[128];
    format_index(&a->shape, d->worst, at, sizeof at);
    const ort_string *p = &x[d->worst], *q = &y[d->worst];
    say(d, "%" PRId64 " of %" PRId64 " strings differ; first at %s: '%.*s', expected '%.*s'",
        d->mismatches, count, at, p->length < 80 ? (int)p->length : 80, p->ptr ? p->ptr : "",
        q->length < 80 ? (int)q->length : 80, q->ptr ? q->ptr : "");
}

static void summarize(comparison *c, const ort_tensor *a, const ort_tensor *b, int64_t count)
{
    ort_difference *d = c->difference;
    d->equal = d->mismatches == 0;
    if (count == 0) {
        say(d, "both are empty");
        return;
    }
    ort_strbuf text = {0};
    if (!d->equal)
        ort_strbuf_addf(&text, "%" PRId64 " of %" PRId64 " elements differ; ", d->mismatches,
                        count);
    if (d->equal && d->max_abs == 0) {
        ort_strbuf_addf(&text, "all %" PRId64 " elements are equal", count);
    } else {
        char at[128];
        format_index(&a->shape, d->worst, at, sizeof at);
        ort_strbuf_addf(&text, "worst at %s: ", at);
        ort_text_add_element(&text, a, d->worst);
        ort_strbuf_add(&text, ", expected ");
        ort_text_add_element(&text, b, d->worst);
        ort_strbuf_addf(&text, " (max abs %.3g, max rel %.3g; rtol %g, atol %g)", d->max_abs,
                        d->max_rel, c->options->rtol, c->options->atol);
    }
    say(d, "%s", ort_strbuf_text(&text));
    ort_strbuf_release(&text);
}

static void compare_tensors(comparison *c, const ort_tensor *a, const ort_tensor *b)
{
    int64_t count = ort_tensor_count(a);
    switch (ort_dtype_get(a->dtype)->class_) {
    case ORT_CLASS_STRING: compare_strings(c, a, b, count); return;
    case ORT_CLASS_FLOAT: compare_float(c, a, b, count); break;
    case ORT_CLASS_COMPLEX: compare_complex(c, a, b, count); break;
    default: compare_integer(c, a, b, count); break;
    }
    summarize(c, a, b, count);
}

static ort_status compare_contiguous(const ort_value *a, const ort_value *b,
                                     const ort_compare_options *options,
                                     ort_difference *difference, ort_error *err)
{
    ort_value *copies[2] = {NULL, NULL};
    ort_status status = ORT_OK;
    if (a->tensor.stride)
        status = ort_value_clone(a, &copies[0], err);
    if (status == ORT_OK && b->tensor.stride)
        status = ort_value_clone(b, &copies[1], err);
    if (status == ORT_OK) {
        comparison c = {.options = options, .difference = difference};
        compare_tensors(&c, copies[0] ? &copies[0]->tensor : &a->tensor,
                        copies[1] ? &copies[1]->tensor : &b->tensor);
    }
    ort_value_free(copies[0]);
    ort_value_free(copies[1]);
    return status;
}

static ort_status compare_tensor_values(const ort_value *a, const ort_value *b,
                                        const ort_compare_options *options,
                                        ort_difference *difference, ort_error *err)
{
    char mine[160], theirs[160];
    if (a->tensor.dtype == b->tensor.dtype && ort_shape_equal(&a->tensor.shape, &b->tensor.shape))
        return compare_contiguous(a, b, options, difference, err);
    say(difference, "is %s %s, expected %s %s", ort_dtype_name(a->tensor.dtype),
        ort_shape_format(&a->tensor.shape, mine, sizeof mine), ort_dtype_name(b->tensor.dtype),
        ort_shape_format(&b->tensor.shape, theirs, sizeof theirs));
    return not_equal(difference);
}

/* Item `index` differs: its one line gets its place in front. */
static void add_place(ort_difference *difference, const char *place, size_t index)
{
    char text[sizeof difference->text];
    memcpy(text, difference->text, sizeof text);
    say(difference, "%s %zu: %.400s", place, index, text);
}

static ort_status compare_sequences(const ort_value *a, const ort_value *b,
                                    const ort_compare_options *options,
                                    ort_difference *difference, ort_error *err)
{
    if (a->count != b->count) {
        say(difference, "has %zu items, expected %zu", a->count, b->count);
        return not_equal(difference);
    }
    ort_difference total = {.equal = true};
    say(&total, "all %zu items are within tolerance", a->count);
    int64_t mismatches = 0;
    for (size_t i = 0; i < a->count; i++) {
        ort_difference one;
        ORT_TRY(ort_value_compare_(a->items[i], b->items[i], options, &one, err));
        mismatches += one.mismatches;
        bool first_failure = !one.equal && total.equal;
        if (first_failure || (one.equal == total.equal && one.max_abs > total.max_abs)) {
            total = one;
            add_place(&total, "item", i);
        }
    }
    *difference = total;
    difference->mismatches = mismatches;
    return ORT_OK;
}

/* Bytes of key `index`, for look-up. */
static const char *key_bytes(const ort_tensor *keys, int64_t index, size_t *length)
{
    if (keys->dtype == ORT_DTYPE_STRING) {
        const ort_string *s = (const ort_string *)keys->data + index;
        *length = s->length;
        return s->ptr ? s->ptr : "";
    }
    *length = (size_t)ort_dtype_get(keys->dtype)->bits / 8;
    return (const char *)keys->data + (size_t)index * *length;
}

/* Values of map `a` in the order of the keys of `b`. */
static ort_status order_values(const ort_value *a, const ort_value *b, ort_value **ordered,
                               ort_difference *difference, ort_error *err)
{
    const ort_tensor *mine = &a->items[0]->tensor, *theirs = &b->items[0]->tensor;
    int64_t count = ort_tensor_count(mine);
    size_t size = (size_t)ort_dtype_get(a->items[1]->tensor.dtype)->bits / 8, length;
    ort_hashmap places = {0};
    *ordered = NULL;
    ort_status status = ort_value_clone(a->items[1], ordered, err);
    for (int64_t i = 0; i < count && status == ORT_OK; i++) {
        const char *key = key_bytes(mine, i, &length);
        if (!ort_hashmap_put(&places, key, length, (uint64_t)i))
            status = ort_error_memory(err, (size_t)count);
    }
    ort_value *source = a->items[1];
    for (int64_t i = 0; i < count && status == ORT_OK; i++) {
        const char *key = key_bytes(theirs, i, &length);
        uint64_t at;
        if (!ort_hashmap_get(&places, key, length, &at)) {
            say(difference, "has no key for item %" PRId64 " of the expected map", i);
            not_equal(difference);
            break;
        }
        memcpy((char *)(*ordered)->tensor.data + (size_t)i * size,
               (const char *)source->tensor.data + (size_t)at * size, size);
    }
    ort_hashmap_release(&places);
    return status;
}

static ort_status compare_maps(const ort_value *a, const ort_value *b,
                               const ort_compare_options *options, ort_difference *difference,
                               ort_error *err)
{
    ort_dtype mine = a->items[0]->tensor.dtype, theirs = b->items[0]->tensor.dtype;
    if (ort_value_count(a) != ort_value_count(b) || mine != theirs) {
        say(difference, "has %" PRId64 " %s keys, expected %" PRId64 " %s keys",
            ort_value_count(a), ort_dtype_name(mine), ort_value_count(b), ort_dtype_name(theirs));
        return not_equal(difference);
    }
    ort_value *ordered = NULL;
    ort_status status = order_values(a, b, &ordered, difference, err);
    if (status == ORT_OK && difference->equal)
        status = ort_value_compare_(ordered, b->items[1], options, difference, err);
    ort_value_free(ordered);
    return status;
}

ort_status ort_value_compare_(const ort_value *actual, const ort_value *expected,
                              const ort_compare_options *options, ort_difference *difference,
                              ort_error *err)
{
    static const char *const kinds[] = {"absent", "a tensor", "a sequence", "a map"};
    *difference = (ort_difference){.equal = true};
    ort_value_kind a = ort_value_get_kind(actual), b = ort_value_get_kind(expected);
    if (a != b) {
        say(difference, "is %s, expected %s", kinds[a], kinds[b]);
        return not_equal(difference);
    }
    switch (a) {
    case ORT_VALUE_TENSOR:
        return compare_tensor_values(actual, expected, options, difference, err);
    case ORT_VALUE_SEQUENCE: return compare_sequences(actual, expected, options, difference, err);
    case ORT_VALUE_MAP: return compare_maps(actual, expected, options, difference, err);
    case ORT_VALUE_NONE: break;
    }
    say(difference, "both are absent");
    return ORT_OK;
}

ort_status ort_value_compare(const ort_value *actual, const ort_value *expected,
                             const ort_compare_options *options, ort_difference *difference,
                             ort_error *err)
{
    ort_difference found;
    ort_compare_options own = ORT_COMPARE_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ORT_TRY(ORT_RESULT_CHECK(difference, err));
    ORT_TRY(ort_value_check_host(actual, err));
    ORT_TRY(ort_value_check_host(expected, err));
    ORT_TRY(ort_value_compare_(actual, expected, options, &found, err));
    return ORT_RESULT_GIVE(difference, &found, err);
}

/* strbuf.c - growing byte strings, and numbers as text in the "C" locale.
 *
 * The first failed allocation sets `failed` and later appends do nothing, so callers check once.
 * Numbers go through one process-wide "C" locale object: what a host program does with setlocale
 * changes neither our output nor our parsing. */
#define _GNU_SOURCE 1
#include "base/strbuf.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale; /* (locale_t)0 when memory was exhausted: the process locale is used */

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t get_locale(void)
{
    pthread_once(&locale_once, make_locale);
    return c_locale;
}

double ort_parse_double(const char *text, char **end)
{
    locale_t c = get_locale();
    return c ? strtod_l(text, end, c) : strtod(text, end);
}

float ort_parse_float(const char *text, char **end)
{
    locale_t c = get_locale();
    return c ? strtof_l(text, end, c) : strtof(text, end);
}

static bool reserve(ort_strbuf *buf, size_t extra)
{
    if (buf->failed)
        return false;
    if (buf->data && extra < buf->capacity - buf->length)
        return true;
    size_t wanted = buf->length + extra + 1;
    if (wanted <= buf->length) {
        buf->failed = true;
        return false;
    }
    size_t capacity = buf->capacity ? buf->capacity : 64;
    while (capacity < wanted)
        capacity = capacity > SIZE_MAX / 2 ? wanted : capacity * 2;
    char *data = realloc(buf->data, capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void ort_strbuf_add_bytes(ort_strbuf *buf, const void *bytes, size_t count)
{
    if (!reserve(buf, count))
        return;
    if (count)
        memcpy(buf->data + buf->length, bytes, count);
    buf->length += count;
    buf->data[buf->length] = '\0';
}

void ort_strbuf_add(ort_strbuf *buf, const char *text)
{
    ort_strbuf_add_bytes(buf, text, strlen(text));
}

void ort_strbuf_add_char(ort_strbuf *buf, char c)
{
    ort_strbuf_add_bytes(buf, &c, 1);
}

void ort_strbuf_addf(ort_strbuf *buf, const char *format, ...)
{
    locale_t c = get_locale();
    locale_t before = c ? uselocale(c) : (locale_t)0;
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0) {
        buf->failed = true;
    } else if (reserve(buf, (size_t)length)) {
        vsnprintf(buf->data + buf->length, (size_t)length + 1, format, again);
        buf->length += (size_t)length;
    }
    va_end(again);
    if (c)
        uselocale(before);
}

/* nan, inf and -inf; false for finite numbers. */
static bool add_special(ort_strbuf *buf, double value)
{
    if (isnan(value))
        ort_strbuf_add(buf, "nan");
    else if (isinf(value))
        ort_strbuf_add(buf, value < 0 ? "-inf" : "inf");
    else
        return false;
    return true;
}

/* Integers of moderate size print exactly and need no search. */
static bool add_small_integer(ort_strbuf *buf, double value)
{
    if (value == 0 || fabs(value) >= 1e15 || value != (double)(int64_t)value)
        return false;
    ort_strbuf_addf(buf, "%lld", (long long)value);
    return true;
}

void ort_strbuf_add_double(ort_strbuf *buf, double value)
{
    if (add_special(buf, value) || add_small_integer(buf, value))
        return;
    locale_t c = get_locale();
    locale_t before = c ? uselocale(c) : (locale_t)0;
    char text[40];
    /* 15 digits always survive the way through a normal double; denormals have fewer. */
    for (int digits = fabs(value) < 1e-290 ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (ort_parse_double(text, NULL) == value)
            break;
    }
    if (c)
        uselocale(before);
    ort_strbuf_add(buf, text);
}

void ort_strbuf_add_float(ort_strbuf *buf, float value)
{
    if (add_special(buf, value))
        return;
    if (fabsf(value) < 1e6f && add_small_integer(buf, value))
        return;
    locale_t c = get_locale();
    locale_t before = c ? uselocale(c) : (locale_t)0;
    char text[40];
    for (int digits = fabsf(value) < 1e-35f ? 1 : 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (ort_parse_float(text, NULL) == value)
            break;
    }
    if (c)
        uselocale(before);
    ort_strbuf_add(buf, text);
}

const char *ort_strbuf_text(const ort_strbuf *buf)
{
    return buf->data ? buf->data : "";
}

void ort_strbuf_clear(ort_strbuf *buf)
{
    buf->length = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

void ort_strbuf_release(ort_strbuf *buf)
{
    free(buf->data);
    memset(buf, 0, sizeof *buf);
}

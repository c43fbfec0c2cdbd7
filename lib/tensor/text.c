/* text.c - numbers as text: plain decimals with the fewest digits that read back to the same value,
 * scientific form below 1e-4 and from 1e16 on, "NaN", "INF" and "-INF" as ONNX Cast names them. */
#include "tensor/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

/* Most digits needed to tell neighbours of a type apart. */
static int digits_needed(ort_dtype dtype)
{
    switch (dtype) {
    case ORT_DTYPE_DOUBLE:
    case ORT_DTYPE_COMPLEX128: return 17;
    case ORT_DTYPE_FLOAT16: return 5;
    default: return 9;
    }
}

static bool reads_back(const char *text, double value, ort_dtype dtype)
{
    double back = ort_parse_double(text, NULL);
    switch (dtype) {
    case ORT_DTYPE_DOUBLE:
    case ORT_DTYPE_COMPLEX128: return back == value;
    case ORT_DTYPE_FLOAT16: return ort_f64_to_f16(back) == ort_f64_to_f16(value);
    default: return (float)back == (float)value;
    }
}

/* Digits without the point and the decimal exponent of the first one, from "d.ddde[+-]xx". */
static int split_scientific(const char *text, char *digits, int *count)
{
    *count = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++)
        if (isdigit((unsigned char)*p))
            digits[(*count)++] = *p;
    while (*count > 1 && digits[*count - 1] == '0')
        (*count)--;
    return *p == 'e' ? atoi(p + 1) : 0;
}

static void add_positional(ort_strbuf *out, const char *digits, int count, int exponent)
{
    if (exponent < 0) {
        ort_strbuf_add(out, "0.");
        for (int i = -1; i > exponent; i--)
            ort_strbuf_add_char(out, '0');
        ort_strbuf_add_bytes(out, digits, (size_t)count);
        return;
    }
    for (int i = 0; i <= exponent || i < count; i++) {
        if (i == exponent + 1)
            ort_strbuf_add_char(out, '.');
        ort_strbuf_add_char(out, i < count ? digits[i] : '0');
    }
    if (count <= exponent + 1)
        ort_strbuf_add(out, ".0");
}

static void add_number(ort_strbuf *out, double value, ort_dtype dtype)
{
    if (isnan(value)) {
        ort_strbuf_add(out, "NaN");
        return;
    }
    if (signbit(value))
        ort_strbuf_add_char(out, '-');
    value = fabs(value);
    if (isinf(value)) {
        ort_strbuf_add(out, "INF");
        return;
    }
    ort_strbuf text = {0};
    for (int precision = 0; precision < digits_needed(dtype); precision++) {
        ort_strbuf_clear(&text);
        ort_strbuf_addf(&text, "%.*e", precision, value);
        if (reads_back(ort_strbuf_text(&text), value, dtype))
            break;
    }
    char digits[32];
    int count, exponent = split_scientific(ort_strbuf_text(&text), digits, &count);
    if (exponent >= -4 && exponent < 16) {
        add_positional(out, digits, count, exponent);
    } else {
        ort_strbuf_add_bytes(out, digits, 1);
        if (count > 1) {
            ort_strbuf_add_char(out, '.');
            ort_strbuf_add_bytes(out, digits + 1, (size_t)count - 1);
        }
        ort_strbuf_addf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    }
    out->failed |= text.failed;
    ort_strbuf_release(&text);
}

static void add_complex(ort_strbuf *out, const ort_tensor *t, int64_t index)
{
    double part[2];
    if (t->dtype == ORT_DTYPE_COMPLEX64) {
        float f[2];
        memcpy(f, (const char *)t->data + (size_t)index * sizeof f, sizeof f);
        part[0] = f[0];
        part[1] = f[1];
    } else {
        memcpy(part, (const char *)t->data + (size_t)index * sizeof part, sizeof part);
    }
    ort_strbuf_add_char(out, '(');
    add_number(out, part[0], t->dtype);
    if (!signbit(part[1]) || isnan(part[1]))
        ort_strbuf_add_char(out, '+');
    add_number(out, part[1], t->dtype);
    ort_strbuf_add(out, "j)");
}

void ort_text_add_element(ort_strbuf *out, const ort_tensor *t, int64_t index)
{
    switch (ort_dtype_get(t->dtype)->class_) {
    case ORT_CLASS_FLOAT:
        add_number(out, ort_tensor_get_f64(t, index), t->dtype);
        return;
    case ORT_CLASS_INT:
        ort_strbuf_addf(out, "%" PRId64, ort_tensor_get_i64(t, index));
        return;
    case ORT_CLASS_UINT:
        ort_strbuf_addf(out, "%" PRIu64, (uint64_t)ort_tensor_get_i64(t, index));
        return;
    case ORT_CLASS_BOOL:
        ort_strbuf_add(out, ort_tensor_get_i64(t, index) ? "True" : "False");
        return;
    case ORT_CLASS_COMPLEX: add_complex(out, t, index); return;
    case ORT_CLASS_STRING: {
        const ort_string *s = (const ort_string *)t->data + index;
        ort_strbuf_add_bytes(out, s->ptr, s->length);
        return;
    }
    case ORT_CLASS_NONE: return;
    }
}

/* ---------------------------------------------------------------------------- text to number -- */

static bool parse_f64(const char *text, double *value)
{
    char *end;
    *value = ort_parse_double(text, &end);
    while (isspace((unsigned char)*end))
        end++;
    return end != text && *end == '\0';
}

/* Integers in full precision; decimals and exponents are accepted and truncated. */
static bool parse_integer(const char *text, bool is_unsigned, int64_t *value)
{
    char *end;
    errno = 0;
    if (is_unsigned && !strchr(text, '-'))
        *value = (int64_t)strtoull(text, &end, 10);
    else
        *value = strtoll(text, &end, 10);
    while (isspace((unsigned char)*end))
        end++;
    if (end != text && *end == '\0' && errno == 0)
        return true;
    double number;
    if (!parse_f64(text, &number) || !(number > -0x1p63 && number < 0x1p64))
        return false;
    *value = number < 0x1p63 ? (int64_t)number : (int64_t)(uint64_t)number;
    return true;
}

static bool parse_bool(const char *text, int64_t *value)
{
    double number;
    if (!strcasecmp(text, "true") || !strcasecmp(text, "false")) {
        *value = tolower((unsigned char)text[0]) == 't';
        return true;
    }
    if (!parse_f64(text, &number))
        return false;
    *value = number != 0;
    return true;
}

enum { LONGEST_NUMBER = 400 };

bool ort_text_parse_integer(ort_tensor *t, int64_t index, const char *text, size_t length)
{
    char copy[LONGEST_NUMBER], *end;
    if (length == 0 || length >= sizeof copy || isspace((unsigned char)text[0]))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    bool negative = copy[0] == '-';
    errno = 0;
    int64_t value = negative || ort_dtype_get(t->dtype)->class_ == ORT_CLASS_INT
                        ? strtoll(copy, &end, 10)
                        : (int64_t)strtoull(copy, &end, 10);
    if (end != copy + length || errno != 0) {
        double number;
        if (!parse_f64(copy, &number) || number != nearbyint(number) || fabs(number) > 0x1p53)
            return false;
        value = (int64_t)number;
    }
    if (negative && value < 0 && ort_dtype_get(t->dtype)->class_ == ORT_CLASS_UINT)
        return false;
    ort_tensor_set_i64(t, index, value);
    return ort_tensor_get_i64(t, index) == value;
}

bool ort_text_parse_element(ort_tensor *t, int64_t index, const char *text, size_t length,
                            const ort_cast_options *options)
{
    char copy[LONGEST_NUMBER];
    if (length == 0 || length >= sizeof copy || memchr(text, '\0', length))
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    int64_t integer = 0;
    double number = 0;
    ort_tensor wide = {.shape = ort_shape_make(0, NULL)};
    switch (ort_dtype_get(t->dtype)->class_) {
    case ORT_CLASS_INT:
    case ORT_CLASS_UINT:
        if (!parse_integer(copy, ort_dtype_get(t->dtype)->class_ == ORT_CLASS_UINT, &integer))
            return false;
        ort_tensor_set_i64(t, index, integer);
        return true;
    case ORT_CLASS_BOOL:
        if (!parse_bool(copy, &integer))
            return false;
        ort_tensor_set_i64(t, index, integer);
        return true;
    case ORT_CLASS_FLOAT:
    case ORT_CLASS_COMPLEX: break;
    default: return false;
    }
    if (!parse_f64(copy, &number))
        return false;
    /* Through a conversion of one element, so that saturate and round_mode hold here too. */
    union {
        double f64[2];
        uint8_t bytes[16];
    } cell = {{0}};
    wide.dtype = ORT_DTYPE_DOUBLE;
    wide.data = &number;
    ort_tensor one = {.dtype = t->dtype, .shape = ort_shape_make(0, NULL), .data = &cell};
    ort_tensor_convert(&one, &wide, options);
    int bits = ort_dtype_get(t->dtype)->bits;
    if (bits < 8)
        ort_packed_set(t->data, (size_t)index, bits, cell.bytes[0]);
    else
        memcpy((char *)t->data + (size_t)index * ((size_t)bits / 8), &cell, (size_t)bits / 8);
    return true;
}

/* json_in.c - JSON as RFC 8259 says it, one item after the other. */
#include "base/json_in.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum { LONGEST_NUMBER = 63 };

void ort_json_in_open(ort_json_in *in, const char *text, size_t size, const char *name,
                      ort_error *err)
{
    *in = (ort_json_in){.begin = text, .at = text, .end = text + size, .name = name, .err = err};
}

void ort_json_in_close(ort_json_in *in)
{
    ort_strbuf_release(&in->text);
}

void ort_json_in_fail(ort_json_in *in, const char *format, ...)
{
    char text[400];
    long line = 1;
    va_list args;
    if (in->status != ORT_OK)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (const char *c = in->begin; c < in->at; c++)
        line += *c == '\n';
    in->status = ort_error_set(in->err, ORT_ERROR_DATA, "%s, line %ld: %s", in->name, line, text);
}

/* The next character that is no white space; 0 at the end, or where something is wrong. */
static char peek(ort_json_in *in)
{
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n' || *in->at == '\t' ||
                                *in->at == '\r'))
        in->at++;
    return in->status == ORT_OK && in->at < in->end ? *in->at : '\0';
}

static bool expect(ort_json_in *in, char wanted)
{
    char c = peek(in);
    if (c == wanted) {
        in->at++;
        return true;
    }
    if (in->at >= in->end)
        ort_json_in_fail(in, "the text ends where '%c' should be", wanted);
    else
        ort_json_in_fail(in, c > ' ' && c < 0x7f ? "'%c' should be where '%c' is"
                                                 : "'%c' should be where byte 0x%02x is",
                         wanted, (unsigned char)c);
    return false;
}

void ort_json_in_enter(ort_json_in *in, char open)
{
    expect(in, open);
    in->first = true;
}

bool ort_json_in_more(ort_json_in *in, char close)
{
    bool first = in->first;
    in->first = false;
    if (in->status != ORT_OK)
        return false;
    if (peek(in) == close) {
        in->at++;
        return false;
    }
    if (!first)
        expect(in, ',');
    return in->status == ORT_OK;
}

/* ---- strings */

static unsigned four_digits(ort_json_in *in)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++, in->at++) {
        char c = in->at < in->end ? *in->at : '\0';
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) {
            ort_json_in_fail(in, "\\u takes four hexadecimal digits");
            return 0;
        }
        value = value * 16 + (unsigned)digit;
    }
    return value;
}

static void code_point(ort_json_in *in)
{
    char bytes[4];
    uint32_t c = four_digits(in);
    if (c >= 0xd800 && c < 0xdc00 && in->end - in->at >= 2 && in->at[0] == '\\' &&
        in->at[1] == 'u') {
        in->at += 2;
        uint32_t low = four_digits(in);
        c = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : 0;
    }
    if (c == 0 || (c >= 0xd800 && c < 0xe000))
        ort_json_in_fail(in, "a string has a character that is none");
    else
        ort_strbuf_add_bytes(&in->text, bytes, ort_utf8_encode(c, bytes));
}

static void escape(ort_json_in *in)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = in->at < in->end ? *in->at++ : '\0';
    const char *found = c ? strchr(from, c) : NULL;
    if (c == 'u')
        code_point(in);
    else if (found)
        ort_strbuf_add_char(&in->text, to[found - from]);
    else
        ort_json_in_fail(in, "a string has an escape that JSON lacks");
}

const char *ort_json_in_string(ort_json_in *in)
{
    ort_strbuf_clear(&in->text);
    if (!expect(in, '"'))
        return "";
    while (in->status == ORT_OK) {
        const char *plain = in->at;
        while (in->at < in->end && *in->at != '"' && *in->at != '\\' &&
               (unsigned char)*in->at >= ' ')
            in->at++;
        ort_strbuf_add_bytes(&in->text, plain, (size_t)(in->at - plain));
        char c = in->at < in->end ? *in->at : '\0';
        in->at += c == '"' || c == '\\';
        if (c == '"')
            break;
        if (c == '\\')
            escape(in);
        else
            ort_json_in_fail(in, in->at < in->end ? "a string has a control character"
                                                  : "the text ends within a string");
    }
    if (in->text.failed && in->status == ORT_OK)
        in->status = ort_error_memory(in->err, in->text.length);
    return in->status == ORT_OK ? ort_strbuf_text(&in->text) : "";
}

const char *ort_json_in_key(ort_json_in *in)
{
    ort_json_in_string(in);
    expect(in, ':');
    return in->status == ORT_OK ? ort_strbuf_text(&in->text) : "";
}

/* ---- numbers */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *c)
{
    while (is_digit(*c))
        c++;
    return c;
}

/* -? (0 | [1-9][0-9]*) (.[0-9]+)? ([eE][+-]?[0-9]+)? and nothing else */
static bool is_number(const char *c, bool whole)
{
    c += *c == '-';
    if (!is_digit(*c) || (*c == '0' && is_digit(c[1])))
        return false;
    c = skip_digits(c);
    if (*c == '.' && !whole) {
        if (!is_digit(*++c))
            return false;
        c = skip_digits(c);
    }
    if ((*c == 'e' || *c == 'E') && !whole) {
        c += c[1] == '+' || c[1] == '-' ? 2 : 1;
        if (!is_digit(*c))
            return false;
        c = skip_digits(c);
    }
    return *c == '\0';
}

/* The characters of a number, in `text`; false: something is wrong. */
static bool take_number(ort_json_in *in, char text[LONGEST_NUMBER + 1], bool whole)
{
    size_t length = 0;
    char c = peek(in);
    for (; in->at < in->end && (is_digit(c) || (c && strchr("+-.eE", c)));
         c = ++in->at < in->end ? *in->at : '\0')
        if (length < LONGEST_NUMBER)
            text[length++] = c;
    text[length] = '\0';
    if (in->status == ORT_OK && (length == LONGEST_NUMBER || !is_number(text, whole)))
        ort_json_in_fail(in, "%s should be here%s%s%s", whole ? "a whole number" : "a number",
                         length ? ", not '" : "", text, length ? "'" : "");
    return in->status == ORT_OK;
}

/* Digits up to most. */
static uint64_t read_digits(ort_json_in *in, const char *digits, uint64_t most)
{
    uint64_t value = 0;
    for (const char *c = digits; *c; c++) {
        unsigned digit = (unsigned)(*c - '0');
        if (value > (most - digit) / 10) {
            ort_json_in_fail(in, "%s is too large a number", digits);
            return 0;
        }
        value = value * 10 + digit;
    }
    return value;
}

uint64_t ort_json_in_uint(ort_json_in *in)
{
    char text[LONGEST_NUMBER + 1];
    if (!take_number(in, text, true))
        return 0;
    if (text[0] == '-') {
        ort_json_in_fail(in, "%s is below 0", text);
        return 0;
    }
    return read_digits(in, text, UINT64_MAX);
}

int64_t ort_json_in_int(ort_json_in *in)
{
    char text[LONGEST_NUMBER + 1];
    if (!take_number(in, text, true))
        return 0;
    bool below = text[0] == '-';
    int64_t value = (int64_t)read_digits(in, text + below, INT64_MAX);
    return below ? -value : value;
}

double ort_json_in_double(ort_json_in *in)
{
    char text[LONGEST_NUMBER + 1];
    double value = take_number(in, text, false) ? ort_parse_double(text, NULL) : 0;
    if (!isfinite(value))
        ort_json_in_fail(in, "%s is too large a number", text);
    return in->status == ORT_OK ? value : 0;
}

float ort_json_in_float(ort_json_in *in)
{
    char text[LONGEST_NUMBER + 1];
    float value = take_number(in, text, false) ? ort_parse_float(text, NULL) : 0;
    if (!isfinite(value))
        ort_json_in_fail(in, "%s is too large a number", text);
    return in->status == ORT_OK ? value : 0;
}

void ort_json_in_end(ort_json_in *in)
{
    if (peek(in) || (in->status == ORT_OK && in->at < in->end))
        ort_json_in_fail(in, "something stands behind the end");
}

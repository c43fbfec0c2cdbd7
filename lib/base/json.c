/* json.c - the streaming JSON writer: `has_item` has a bit per nesting level that says whether a
 * comma is due. Text is passed through as UTF-8; malformed bytes become U+FFFD, so that whatever a
 * model file contains, the report is valid JSON. */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

void ort_json_init(ort_json *json, ort_strbuf *out, int indent)
{
    memset(json, 0, sizeof *json);
    json->out = out;
    json->indent = indent;
}

static uint64_t level_bit(const ort_json *json)
{
    return UINT64_C(1) << json->depth;
}

static void new_line(ort_json *json)
{
    if (json->indent <= 0)
        return;
    ort_strbuf_add_char(json->out, '\n');
    for (int i = 0; i < json->depth * json->indent; i++)
        ort_strbuf_add_char(json->out, ' ');
}

/* Comma and line break in front of a value or key. */
static void before_item(ort_json *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->depth == 0)
        return;
    if (json->has_item & level_bit(json)) {
        ort_strbuf_add_char(json->out, ',');
        if (json->indent <= 0)
            ort_strbuf_add_char(json->out, ' ');
    }
    json->has_item |= level_bit(json);
    new_line(json);
}

static void begin(ort_json *json, char bracket)
{
    before_item(json);
    ort_strbuf_add_char(json->out, bracket);
    assert(json->depth < 63); /* whoever writes what others nested looks first */
    json->depth++;
    json->has_item &= ~level_bit(json);
}

static void end(ort_json *json, char bracket)
{
    assert(json->depth > 0 && !json->after_key);
    bool any = (json->has_item & level_bit(json)) != 0;
    json->depth--;
    if (any)
        new_line(json);
    ort_strbuf_add_char(json->out, bracket);
}

void ort_json_begin_object(ort_json *json)
{
    begin(json, '{');
}

void ort_json_end_object(ort_json *json)
{
    end(json, '}');
}

void ort_json_begin_array(ort_json *json)
{
    begin(json, '[');
}

void ort_json_end_array(ort_json *json)
{
    end(json, ']');
}

/* Length of the well-formed UTF-8 sequence at `p` (of `left` bytes), 0 when malformed. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    size_t used;
    if (p[0] < 0x80)
        return 1;
    uint32_t code = ort_utf8_decode((const char *)p, left, &used);
    return code == 0xfffd && used == 1 ? 0 : used;
}

bool ort_json_is_text(const char *text, size_t length)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t at = 0, step; at < length; at += step) {
        step = utf8_length(p + at, length - at);
        if (step == 0)
            return false;
    }
    return true;
}

static void add_escaped(ort_strbuf *out, const unsigned char *p, size_t length)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    while (length) {
        size_t run = 0, step;
        while (run < length && p[run] >= 0x20 && p[run] != '"' && p[run] != '\\' &&
               (step = utf8_length(p + run, length - run)) != 0)
            run += step;
        ort_strbuf_add_bytes(out, p, run);
        p += run;
        length -= run;
        if (!length)
            break;
        const char *name = NULL;
        for (size_t i = 0; i + 1 < sizeof named; i += 2)
            if ((unsigned char)named[i] == *p)
                name = &named[i + 1];
        if (name) {
            ort_strbuf_add_char(out, '\\');
            ort_strbuf_add_char(out, *name);
        } else if (*p < 0x20) {
            ort_strbuf_addf(out, "\\u%04x", (unsigned)*p);
        } else {
            ort_strbuf_add(out, "\xef\xbf\xbd");
        }
        p++;
        length--;
    }
}

static void add_quoted(ort_json *json, const char *text, size_t length)
{
    ort_strbuf_add_char(json->out, '"');
    add_escaped(json->out, (const unsigned char *)text, length);
    ort_strbuf_add_char(json->out, '"');
}

void ort_json_key(ort_json *json, const char *key)
{
    before_item(json);
    add_quoted(json, key, strlen(key));
    ort_strbuf_add(json->out, ": ");
    json->after_key = true;
}

void ort_json_string_n(ort_json *json, const char *text, size_t length)
{
    before_item(json);
    add_quoted(json, text, length);
}

void ort_json_string(ort_json *json, const char *text)
{
    ort_json_string_n(json, text, strlen(text));
}

/* Histograms are lists of many thousand numbers, for which printf is slow. */
static void add_whole(ort_strbuf *out, uint64_t size, bool negative)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + size % 10);
        size /= 10;
    } while (size > 0);
    if (negative)
        digits[--at] = '-';
    ort_strbuf_add_bytes(out, digits + at, sizeof digits - at);
}

void ort_json_int(ort_json *json, int64_t value)
{
    const bool negative = value < 0;
    before_item(json);
    add_whole(json->out, negative ? 0 - (uint64_t)value : (uint64_t)value, negative);
}

void ort_json_uint(ort_json *json, uint64_t value)
{
    before_item(json);
    add_whole(json->out, value, false);
}

void ort_json_double(ort_json *json, double value)
{
    before_item(json);
    if (!isfinite(value))
        ort_strbuf_add_char(json->out, '"');
    ort_strbuf_add_double(json->out, value);
    if (!isfinite(value))
        ort_strbuf_add_char(json->out, '"');
}

void ort_json_bool(ort_json *json, bool value)
{
    before_item(json);
    ort_strbuf_add(json->out, value ? "true" : "false");
}

void ort_json_null(ort_json *json)
{
    before_item(json);
    ort_strbuf_add(json->out, "null");
}

void ort_json_raw(ort_json *json, const char *text, size_t length)
{
    before_item(json);
    ort_strbuf_add_bytes(json->out, text, length);
}

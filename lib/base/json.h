/* json.h - a streaming JSON writer over a strbuf: keeps commas and nesting, escapes strings, prints
 * numbers the same in every locale. Non-finite numbers become the strings "nan", "inf", "-inf". */
#ifndef ORT_BASE_JSON_H
#define ORT_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

typedef struct ort_json {
    ort_strbuf *out;
    int depth;
    int indent;        /* spaces per level; 0 = one line */
    uint64_t has_item; /* bit per depth: something was written at this level */
    bool after_key;
} ort_json;

void ort_json_init(ort_json *json, ort_strbuf *out, int indent);
void ort_json_begin_object(ort_json *json);
void ort_json_end_object(ort_json *json);
void ort_json_begin_array(ort_json *json);
void ort_json_end_array(ort_json *json);
void ort_json_key(ort_json *json, const char *key);
void ort_json_string(ort_json *json, const char *text);
void ort_json_string_n(ort_json *json, const char *text, size_t length);
void ort_json_int(ort_json *json, int64_t value);
void ort_json_uint(ort_json *json, uint64_t value);
void ort_json_double(ort_json *json, double value);
void ort_json_bool(ort_json *json, bool value);
void ort_json_null(ort_json *json);
/* True for well-formed UTF-8: only such strings are carried without loss. */
bool ort_json_is_text(const char *text, size_t length);
/* Appends text that is one finished JSON value. */
void ort_json_raw(ort_json *json, const char *text, size_t length);

#endif

/* strbuf.h - a growing byte string, always NUL-terminated (text reports, JSON, names). */
#ifndef ORT_BASE_STRBUF_H
#define ORT_BASE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ort_strbuf {
    char *data;    /* NULL while empty; use ort_strbuf_text */
    size_t length; /* bytes, without the NUL */
    size_t capacity;
    bool failed;   /* an allocation failed: later appends do nothing, check once at the end */
} ort_strbuf;      /* all zero is a valid empty buffer */

void ort_strbuf_add(ort_strbuf *buf, const char *text);
void ort_strbuf_add_bytes(ort_strbuf *buf, const void *bytes, size_t count);
void ort_strbuf_add_char(ort_strbuf *buf, char c);
void ort_strbuf_addf(ort_strbuf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Doubles and floats print the same in every locale and read back to the same bits (shortest
 * round-trip form; "nan", "inf", "-inf"). */
void ort_strbuf_add_double(ort_strbuf *buf, double value);
void ort_strbuf_add_float(ort_strbuf *buf, float value);
const char *ort_strbuf_text(const ort_strbuf *buf); /* never NULL */
void ort_strbuf_clear(ort_strbuf *buf);
void ort_strbuf_release(ort_strbuf *buf);

/* Locale-independent strtod: parses a prefix of `text`, sets *end. */
double ort_parse_double(const char *text, char **end);
/* The same of a float, rounded once. */
float ort_parse_float(const char *text, char **end);

#endif

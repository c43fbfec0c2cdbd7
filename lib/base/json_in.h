/* json_in.h - JSON read item by item, without a tree of it in memory: for files whose numbers are
 * many, and whose form is fixed. What is wrong is told once, with its line; all calls after that do
 * nothing, so that readers look at `status` at the end of a part.
 */
#ifndef ORT_BASE_JSON_IN_H
#define ORT_BASE_JSON_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

typedef struct ort_json_in {
    const char *begin, *at, *end;
    const char *name; /* of the file, for messages */
    bool first;       /* nothing of the list or object was read yet */
    ort_strbuf text;  /* the last string */
    ort_status status;
    ort_error *err;
} ort_json_in;

/* The text and the name are borrowed. */
void ort_json_in_open(ort_json_in *in, const char *text, size_t size, const char *name,
                      ort_error *err);
void ort_json_in_close(ort_json_in *in);
/* "NAME, line 12: ..." of ORT_ERROR_DATA, unless something was wrong before. */
void ort_json_in_fail(ort_json_in *in, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* '{' or '['; then ort_json_in_more before each item, until it says that there is none. */
void ort_json_in_enter(ort_json_in *in, char open);
bool ort_json_in_more(ort_json_in *in, char close);
/* A string, without a NUL in it, decoded; good until the next one. "" when something is wrong. */
const char *ort_json_in_string(ort_json_in *in);
/* The same, and the colon behind it. */
const char *ort_json_in_key(ort_json_in *in);
/* Whole numbers that are written as such, in their range; 0 when something is wrong. */
uint64_t ort_json_in_uint(ort_json_in *in);
int64_t ort_json_in_int(ort_json_in *in);
/* Finite numbers. A float is rounded once. */
double ort_json_in_double(ort_json_in *in);
float ort_json_in_float(ort_json_in *in);
/* Nothing but white space is left. */
void ort_json_in_end(ort_json_in *in);

#endif

/* screen.h - what a stream can show: its width, and colour where that tells something.
 *
 * Files and pipes get every character and no colour, so that they can be searched and compared; a
 * terminal gets what fits.
 */
#ifndef COMMON_SCREEN_H
#define COMMON_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

#include "ort.h"

/* Columns of the terminal that the stream is (COLUMNS, else what the terminal says, else 80); 0
 * where it is none: no limit. */
int screen_width(FILE *stream);

/* What is written to `memory` will be shown on `real`; NULL, NULL: no longer. */
void screen_stand_for(FILE *memory, FILE *real);

typedef enum screen_style {
    STYLE_PLAIN,
    STYLE_GOOD,
    STYLE_BAD,
    STYLE_NEAR,
    STYLE_DIM
} screen_style;
/* What the stream takes to begin a style ("" without colour), and to end it. */
const char *screen_begin(FILE *stream, screen_style style);
const char *screen_end(FILE *stream);

/* fprintf; a terminal gets it without the control characters that names may hold (text_tame). */
__attribute__((format(printf, 2, 3))) void screen_printf(FILE *stream, const char *format, ...);
/* ort_value_print, likewise. Returns 0 or an exit status after saying why. */
int screen_value(FILE *stream, const ort_value *value, const char *name, int64_t items);

/* "ok    " or "FAIL  ", in its colour: how every verdict of a gate begins. */
void screen_verdict(FILE *stream, bool good);

/* A field of CSV: in quotes where it holds a comma, a quote or an end of line (RFC 4180). For a
 * terminal without control characters. */
void screen_csv(FILE *out, const char *text);

/* Characters of UTF-8, not bytes. */
size_t screen_length(const char *text);
/* Leaves `width` characters of a text, its middle an ellipsis of three dots; 4 or more. */
void screen_shorten(char *text, size_t width);

#endif

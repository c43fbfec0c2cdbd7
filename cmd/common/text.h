/* text.h - small forms of text that several tools write. */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include <stdio.h>

/* A field of CSV: in quotes where it holds a comma, a quote or an end of line (RFC 4180). */
void text_csv(FILE *out, const char *text);

#endif

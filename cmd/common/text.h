/* text.h - small forms of text that several tools write. */
#ifndef COMMON_TEXT_H
#define COMMON_TEXT_H

#include <stddef.h>

/* Bytes of the well-formed character of UTF-8 at `text`, 0 where there is none (RFC 3629). */
size_t text_character(const char *text);
/* Control characters, which a terminal would obey, become question marks; ends of lines and tabs
 * stay. Names in a model may hold anything. */
void text_tame(char *text);

#endif

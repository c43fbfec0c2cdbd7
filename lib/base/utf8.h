/* utf8.h - code points of Unicode as bytes of UTF-8. */
#ifndef ORT_BASE_UTF8_H
#define ORT_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The code point at text[0], length >= 1; *used bytes. Malformed bytes are U+FFFD, one at a
 * time. */
uint32_t ort_utf8_decode(const char *text, size_t length, size_t *used);
/* Up to 4 bytes; returns their number. */
size_t ort_utf8_encode(uint32_t c, char *out);

#endif

/* unicode.h - UTF-8 code points and simple, locale-free case mapping. */
#ifndef ORT_OP_TEXT_UNICODE_H
#define ORT_OP_TEXT_UNICODE_H

#include <stddef.h>
#include <stdint.h>

/* The code point at text[0], length >= 1; *used bytes. Malformed bytes are U+FFFD, one at a
 * time. */
uint32_t ort_utf8_decode(const char *text, size_t length, size_t *used);
/* Up to 4 bytes; returns their number. */
size_t ort_utf8_encode(uint32_t c, char *out);
uint32_t ort_unicode_lower(uint32_t c);
uint32_t ort_unicode_upper(uint32_t c);

#endif

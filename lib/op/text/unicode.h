/* unicode.h - simple, locale-free case mapping of code points. */
#ifndef ORT_OP_TEXT_UNICODE_H
#define ORT_OP_TEXT_UNICODE_H

#include "base/utf8.h"

uint32_t ort_unicode_lower(uint32_t c);
uint32_t ort_unicode_upper(uint32_t c);

#endif

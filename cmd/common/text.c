/* text.c - small forms of text (text.h). */
#include "common/text.h"

#include <stdbool.h>

/* The least second byte that isn't another spelling of a shorter character, and the largest. */
static void second_byte(unsigned char first, unsigned char *least, unsigned char *most)
{
    *least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf; /* no surrogates, no more planes */
}

size_t text_character(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char least, most;
    if (*p == 0 || (*p >= 0x80 && *p < 0xc2) || *p > 0xf4)
        return 0;
    size_t length = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
    second_byte(*p, &least, &most);
    if (length > 1 && (p[1] < least || p[1] > most))
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

void text_tame(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++) {
        bool long_form = *p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0; /* U+0080 to U+009F */
        if (long_form)
            *p++ = '?';
        if (long_form || *p == 0x7f || (*p < 0x20 && *p != '\n' && *p != '\t'))
            *p = '?';
    }
}

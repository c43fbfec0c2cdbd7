/* utf8.c - code points to bytes and back (utf8.h). */
#include "base/utf8.h"

uint32_t ort_utf8_decode(const char *text, size_t length, size_t *used)
{
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3
               : s[0] < 0xf5 ? 4 : 0;
    *used = 1;
    if (n == 1)
        return s[0];
    if (n == 0 || n > length)
        return 0xfffd;
    uint32_t c = s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0xfffd;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0xfffd;
    *used = n;
    return c;
}

size_t ort_utf8_encode(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xf0u) | c);
    return n;
}

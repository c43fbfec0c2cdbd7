/* colour.c - names and colours of classes; which words can be read on them. */
#include <stdio.h>
#include <string.h>

#include "draw.h"

const char *class_name(const draw_tool *t, int64_t class, char *buffer, size_t size)
{
    if (class >= 0 && (size_t)class < t->labels.count)
        return t->labels.items[class];
    bool faces = t->detect != NULL &&
                 (!strcmp(t->detect, "yunet") || !strcmp(t->detect, "ultraface"));
    if (faces && t->labels.count == 0)
        return "face";
    snprintf(buffer, size, "%lld", (long long)class);
    return buffer;
}

/* Sasha Trubetskoy's list of distinct colours (2017), without black, white and grey; more classes
 * begin it again. */
unsigned class_colour(int64_t class)
{
    static const unsigned colours[] = {
        0x3cb44b, 0xe6194b, 0x4363d8, 0xf58231, 0x911eb4, 0x42d4f4, 0xf032e6, 0xbfef45, 0xffe119,
        0x469990, 0xfabed4, 0x9a6324, 0xdcbeff, 0x800000, 0xaaffc3, 0x808000, 0xffd8b1, 0x000075};
    int64_t count = (int64_t)(sizeof colours / sizeof *colours), i = class % count;
    return colours[i < 0 ? i + count : i];
}

unsigned dark_or_light(unsigned background)
{
    unsigned luma = 299 * (background >> 16 & 255) + 587 * (background >> 8 & 255) +
                    114 * (background & 255);
    return luma > 140000 ? 0x000000 : 0xffffff;
}

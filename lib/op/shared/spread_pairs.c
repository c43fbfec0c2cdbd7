/* spread_pairs.c - see spread_pairs.h. */
#pragma GCC optimize("O3") /* vectorize the padding */

#include "op/shared/spread_pairs.h"

#include <string.h>

typedef struct pair_walk {
    const ort_spread *s;
    ort_pair_line *line;
    const void *planes;
    int16_t pad;
} pair_walk;

static void fill(int64_t count, int16_t pad, int32_t *out)
{
    const uint32_t both = (uint16_t)pad | (uint32_t)(uint16_t)pad << 16;
    if (!both) {
        memset(out, 0, (size_t)count * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = (int32_t)both;
}

/* One slice of a phase: rows of `extent[2]` pairs. */
static void spread_slice(const pair_walk *walk, ort_spread_part part, int32_t *out)
{
    const ort_spread *s = walk->s;
    const int64_t line = s->extent[2], stride = s->w.stride[2], right = part.first + part.count;
    const int64_t before = part.rows > 0 ? part.first_row : s->extent[1];
    fill(before * line, walk->pad, out);
    if (part.rows <= 0)
        return;
    int32_t *to = out + before * line, *end = out + s->extent[1] * line;
    if (stride == 1 && part.count == line && part.in_row == line) { /* one run */
        walk->line(walk->planes, part.from, stride, part.rows * line, (int16_t *)(void *)to);
        to += part.rows * line;
        part.rows = 0;
    }
    for (int64_t i = 0; i < part.rows; i++, to += line) {
        fill(part.first, walk->pad, to);
        walk->line(walk->planes, part.from + i * part.in_row, stride, part.count,
                   (int16_t *)(void *)(to + part.first));
        fill(line - right, walk->pad, to + right);
    }
    fill(end - to, walk->pad, to);
}

void ort_spread_pairs(const ort_spread *s, ort_pair_line *line, const void *planes, int16_t pad,
                      int32_t *out)
{
    const pair_walk walk = {s, line, planes, pad};
    ort_spread_part part;
    for (int64_t pz = 0; pz < s->phases[0]; pz++)
        for (int64_t py = 0; py < s->phases[1]; py++)
            for (int64_t px = 0; px < s->phases[2]; px++)
                for (int64_t zq = 0; zq < s->extent[0]; zq++, out += s->extent[1] * s->extent[2]) {
                    ort_spread_rows(s, pz, py, px, zq, 0, &part);
                    spread_slice(&walk, part, out);
                }
}

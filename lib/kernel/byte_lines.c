/* byte_lines.c - tables of codes as lines (codes.h): for each 16 entries slopes are tried around
 * that between their ends, until at some height all are on the line or the allowed steps above it.
 * Steep tables need coarse slopes, bent ones more steps.
 */
#include "kernel/codes.h"

enum { ENTRIES = 16, SLOPE = 127, TRIES = 9, SHIFT_MOST = 6, SHIFT_LEAST = 3 };

/* Of entries by their distances from the first: the least height of a line of this slope. */
static bool line_fits(const int *entry, int parts, int steps, int slope, int *height)
{
    int least = -(1 << 20), most = 1 << 20;
    for (int i = 0; i < ENTRIES; i++) {
        const int top = parts * entry[i] - slope * i;
        least = top - parts * steps > least ? top - parts * steps : least;
        most = top + parts - 1 < most ? top + parts - 1 : most;
    }
    *height = least;
    return least <= most;
}

static bool find_line(const int *entry, int parts, int steps, int *slope, int *height)
{
    const int middle = parts * entry[ENTRIES - 1] / (ENTRIES - 1);
    for (int i = 0; i < TRIES; i++) {
        *slope = middle + (i % 2 ? -1 : 1) * ((i + 1) / 2);
        if (*slope >= -SLOPE && *slope <= SLOPE &&
            line_fits(entry, parts, steps, *slope, height))
            return true;
    }
    return false;
}

/* Rounded down. */
static int whole_of(int count, int parts)
{
    return (count + (parts << 12)) / parts - (1 << 12);
}

static bool find_lines(const uint8_t *table, ort_byte_lines *lines)
{
    const int parts = 1 << lines->shift, steps = (1 << lines->planes) - 1;
    for (int h = 0; h < 256 / ENTRIES; h++, table += ENTRIES) {
        int entry[ENTRIES], slope, height;
        for (int i = 0; i < ENTRIES; i++)
            entry[i] = (int8_t)(uint8_t)(table[i] - table[0]);
        if (!find_line(entry, parts, steps, &slope, &height))
            return false;
        lines->base[h] = (uint8_t)(table[0] + whole_of(height, parts));
        lines->slope[h] = (int8_t)slope;
        lines->fine[h] = (int8_t)(height - parts * whole_of(height, parts));
        for (int i = 0; i < ENTRIES; i++) {
            const int line = whole_of(slope * i + height, parts), more = entry[i] - line;
            const int from = line - whole_of(height, parts); /* which kernels keep in 8 bits */
            if (from < INT8_MIN || from > INT8_MAX)
                return false;
            for (int p = 0; p < lines->planes; p++)
                lines->more[p][2 * h + i / 8] |= (uint8_t)((more >> p & 1) << i % 8);
        }
    }
    return true;
}

bool ort_byte_lines_of(const uint8_t *table, ort_byte_lines *lines)
{
    for (int planes = 1; planes <= 2; planes++)
        for (int shift = SHIFT_MOST; shift >= SHIFT_LEAST; shift--) {
            *lines = (ort_byte_lines){.shift = shift, .planes = planes};
            if (find_lines(table, lines))
                return true;
        }
    return false;
}

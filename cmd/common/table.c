/* table.c - text tables (table.h). Widths count characters, not bytes. */
#include "common/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/screen.h"
#include "common/text.h"
#include "common/tool.h"

/* On a terminal a long name keeps its ends; in a pipe it is whole, so that it can be searched. A
 * column of words narrower than READABLE_CELL tells little; below LEAST_CELL, nothing. */
enum { MAX_COLUMNS = 16, READABLE_CELL = 24, LEAST_CELL = 8 };
#define HIDDEN SIZE_MAX

struct table {
    size_t columns, count, capacity;
    const char *heads[MAX_COLUMNS];
    bool right[MAX_COLUMNS], may_go[MAX_COLUMNS];
    size_t width[MAX_COLUMNS]; /* or HIDDEN */
    char **cells;
    unsigned char *styles;
};

table *table_new(const char *const *heads)
{
    table *t = tool_alloc(sizeof *t);
    memset(t, 0, sizeof *t);
    for (; heads[t->columns] && t->columns < MAX_COLUMNS; t->columns++) {
        const char *head = heads[t->columns];
        t->may_go[t->columns] = *head == '~';
        head += *head == '~';
        t->right[t->columns] = *head == '>';
        t->heads[t->columns] = head + (*head == '>');
    }
    return t;
}

void table_cell(table *t, const char *text)
{
    if (t->count == t->capacity) {
        size_t larger = t->capacity ? 2 * t->capacity : 64;
        char **cells = tool_alloc(larger * sizeof *cells);
        unsigned char *styles = tool_alloc(larger);
        if (t->count) {
            memcpy(cells, t->cells, t->count * sizeof *cells);
            memcpy(styles, t->styles, t->count);
        }
        free(t->cells);
        free(t->styles);
        t->cells = cells;
        t->styles = styles;
        t->capacity = larger;
    }
    t->cells[t->count++] = tool_strdup(text ? text : "");
}

void table_style(table *t, screen_style style)
{
    if (t->count > 0)
        t->styles[t->count - 1] = (unsigned char)style;
}

void table_cellf(table *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = tool_vprintf(format, args);
    va_end(args);
    table_cell(t, text);
    free(text);
}

size_t table_rows(const table *t)
{
    return t->count / t->columns;
}

static void put(FILE *stream, const char *text, size_t width, bool right, bool last,
                screen_style style)
{
    size_t length = screen_length(text), gap = width > length ? width - length : 0;
    if (right)
        fprintf(stream, "%*s", (int)gap, "");
    if (style != STYLE_PLAIN)
        fprintf(stream, "%s%s%s", screen_begin(stream, style), text, screen_end(stream));
    else
        fputs(text, stream);
    if (!last)
        fprintf(stream, "%*s  ", right ? 0 : (int)gap, "");
}

/* Up to the last cell that holds something: no spaces at the end of a line. */
static void put_row(const table *t, FILE *stream, const char *const *cells,
                    const unsigned char *styles)
{
    size_t last = t->columns;
    while (last > 1 && (t->width[last - 1] == HIDDEN || !*cells[last - 1]))
        last--;
    for (size_t c = 0; c < last; c++)
        if (t->width[c] != HIDDEN)
            put(stream, cells[c], t->width[c], t->right[c], c + 1 == last,
                styles != NULL ? (screen_style)styles[c] : STYLE_DIM);
    fputc('\n', stream);
}

static void measure(table *t)
{
    for (size_t c = 0; c < t->columns; c++)
        t->width[c] = screen_length(t->heads[c]);
    for (size_t i = 0; i < t->count; i++) {
        size_t w = screen_length(t->cells[i]), *width = &t->width[i % t->columns];
        *width = w > *width ? w : *width;
    }
}

static size_t line_length(const table *t)
{
    size_t sum = 0;
    for (size_t c = 0; c < t->columns; c++)
        sum += t->width[c] == HIDDEN ? 0 : t->width[c] + (sum > 0 ? 2 : 0);
    return sum;
}

/* The widest column of words that can still be narrower, or `columns`. */
static size_t widest(const table *t)
{
    size_t best = t->columns;
    for (size_t c = 0; c < t->columns; c++) {
        size_t least = screen_length(t->heads[c]) > LEAST_CELL ? screen_length(t->heads[c])
                                                               : LEAST_CELL;
        if (!t->right[c] && t->width[c] != HIDDEN && t->width[c] > least &&
            (best == t->columns || t->width[c] > t->width[best]))
            best = c;
    }
    return best;
}

/* Words give way first, down to what can be told apart; then columns that may go, from the right;
 * then words again. */
static void narrow(table *t, size_t limit)
{
    for (size_t c; line_length(t) > limit && (c = widest(t)) < t->columns &&
                   t->width[c] > READABLE_CELL;)
        t->width[c]--;
    for (size_t c = t->columns; c-- > 0 && line_length(t) > limit;)
        if (t->may_go[c])
            t->width[c] = HIDDEN;
    for (size_t c; line_length(t) > limit && (c = widest(t)) < t->columns;)
        t->width[c]--;
}

/* How to see what is hidden or shortened. */
static void put_note(const table *t, FILE *stream, size_t shortened)
{
    size_t hidden = 0;
    for (size_t c = 0; c < t->columns; c++)
        hidden += t->width[c] == HIDDEN;
    if (hidden == 0 && shortened == 0)
        return;
    fprintf(stream, "%s(", screen_begin(stream, STYLE_DIM));
    for (size_t c = 0, said = 0; c < t->columns; c++)
        if (t->width[c] == HIDDEN)
            fprintf(stream, "%s%s", said++ > 0 ? ", " : "not shown: ", t->heads[c]);
    fprintf(stream, "%s%sall: | cat)%s\n", hidden > 0 ? "; " : "",
            shortened > 0 ? "names shortened; " : "", screen_end(stream));
}

void table_print(table *t, FILE *stream)
{
    size_t limit = (size_t)screen_width(stream), shortened = 0;
    measure(t);
    if (limit > 0)
        narrow(t, limit);
    put_row(t, stream, t->heads, NULL);
    for (size_t i = 0; i < t->count; i++) {
        size_t width = t->width[i % t->columns];
        if (limit > 0)
            text_tame(t->cells[i]);
        if (limit > 0 && width != HIDDEN && screen_length(t->cells[i]) > width) {
            screen_shorten(t->cells[i], width);
            shortened++;
        }
    }
    for (size_t i = 0; i + t->columns <= t->count; i += t->columns)
        put_row(t, stream, (const char *const *)t->cells + i, t->styles + i);
    put_note(t, stream, shortened);
}

void table_free(table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
    free(t->styles);
    free(t);
}

static char *ring(void)
{
    static char buffers[8][64];
    static unsigned next;
    return buffers[next++ % 8];
}

const char *text_count(double n)
{
    char digits[32], *out = ring();
    int length = snprintf(digits, sizeof digits, "%.0f", n), used = 0;
    for (int i = 0; i < length && used < 60; i++) {
        if (i && (length - i) % 3 == 0 && digits[i - 1] != '-')
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

const char *text_bytes(double n)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    char *out = ring();
    int unit = 0;
    while (n >= 999.5 && unit < 4) {
        n /= 1000;
        unit++;
    }
    snprintf(out, 64, unit && n < 99.95 ? "%.1f %s" : "%.0f %s", n, units[unit]);
    return out;
}

const char *text_ms(double ms)
{
    static const struct {
        double ms;
        const char *name;
    } units[] = {{1e-6, "ns"}, {1e-3, "us"}, {1, "ms"}, {1e3, "s"}};
    char *out = ring();
    int unit = 3;
    while (unit > 0 && fabs(ms) < units[unit].ms * 0.9995)
        unit--;
    double n = ms / units[unit].ms;
    int digits = fabs(n) < 9.995 ? 2 : fabs(n) < 99.95 ? 1 : 0;
    snprintf(out, 64, "%.*f %s", digits, n, units[unit].name);
    return out;
}

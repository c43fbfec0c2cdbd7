/* table.c - text tables (table.h). Widths count characters, not bytes. */
#include "common/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tool.h"

/* On a terminal a long name keeps its ends; in a pipe it is whole, so that it can be searched. */
enum { MAX_COLUMNS = 16, LONGEST_CELL = 48, KEPT_END = 22 };

struct table {
    size_t columns, count, capacity;
    const char *heads[MAX_COLUMNS];
    bool right[MAX_COLUMNS];
    char **cells;
};

table *table_new(const char *const *heads)
{
    table *t = tool_alloc(sizeof *t);
    memset(t, 0, sizeof *t);
    for (; heads[t->columns] && t->columns < MAX_COLUMNS; t->columns++) {
        t->right[t->columns] = heads[t->columns][0] == '>';
        t->heads[t->columns] = heads[t->columns] + t->right[t->columns];
    }
    return t;
}

void table_cell(table *t, const char *text)
{
    if (t->count == t->capacity) {
        size_t larger = t->capacity ? 2 * t->capacity : 64;
        char **cells = tool_alloc(larger * sizeof *cells);
        if (t->count)
            memcpy(cells, t->cells, t->count * sizeof *cells);
        free(t->cells);
        t->cells = cells;
        t->capacity = larger;
    }
    t->cells[t->count++] = tool_strdup(text ? text : "");
}

void table_cellf(table *t, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    table_cell(t, text);
}

size_t table_rows(const table *t)
{
    return t->count / t->columns;
}

static size_t visible(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put(FILE *stream, const char *text, size_t width, bool right, bool last)
{
    size_t gap = width > visible(text) ? width - visible(text) : 0;
    if (right)
        fprintf(stream, "%*s", (int)gap, "");
    fputs(text, stream);
    if (!last)
        fprintf(stream, "%*s  ", right ? 0 : (int)gap, "");
}

/* Up to the last cell that holds something: no spaces at the end of a line. */
static void put_row(const table *t, FILE *stream, const char *const *cells, const size_t *width)
{
    size_t last = t->columns;
    while (last > 1 && !*cells[last - 1])
        last--;
    for (size_t c = 0; c < last; c++)
        put(stream, cells[c], width[c], t->right[c], c + 1 == last);
    fputc('\n', stream);
}

/* Only plain ASCII is cut: a cut must not fall into a character. */
static void shorten(char *text)
{
    size_t length = strlen(text);
    if (length <= LONGEST_CELL || visible(text) != length)
        return;
    memcpy(text + KEPT_END, "...", 3);
    memmove(text + KEPT_END + 3, text + length - KEPT_END, KEPT_END + 1);
}

void table_print(const table *t, FILE *stream)
{
    size_t width[MAX_COLUMNS];
    for (size_t i = 0; isatty(STDOUT_FILENO) && i < t->count; i++)
        if (i % t->columns + 1 < t->columns)
            shorten(t->cells[i]);
    for (size_t c = 0; c < t->columns; c++)
        width[c] = visible(t->heads[c]);
    for (size_t i = 0; i < t->count; i++) {
        size_t w = visible(t->cells[i]);
        width[i % t->columns] = w > width[i % t->columns] ? w : width[i % t->columns];
    }
    put_row(t, stream, t->heads, width);
    for (size_t i = 0; i + t->columns <= t->count; i += t->columns)
        put_row(t, stream, (const char *const *)t->cells + i, width);
}

void table_free(table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
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

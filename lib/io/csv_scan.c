/* csv_scan.c - text of a table to cells (csv_scan.h): RFC 4180, and what spreadsheets make of it.
 */
#include "io/csv_scan.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* -------------------------------------------------------------------------------- encodings -- */

static bool is_high(uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
static bool is_low(uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

ort_status ort_csv_decode(const unsigned char *bytes, size_t count, char **text, size_t *length,
                          ort_error *err)
{
    *text = NULL;
    bool little = count >= 2 && bytes[0] == 0xff && bytes[1] == 0xfe;
    bool big = count >= 2 && bytes[0] == 0xfe && bytes[1] == 0xff;
    if (!little && !big)
        return ORT_OK;
    if (count % 2)
        return ort_error_set(err, ORT_ERROR_DATA, "byte %zu: half a character of UTF-16 at the "
                             "end; the file was cut off, make it again", count - 1);
    size_t units = count / 2, used = 0;
    char *out = malloc(units * 3);
    if (!out)
        return ort_error_memory(err, units * 3);
    for (size_t i = 1; i < units; i++) {
        uint32_t code = bytes[2 * i + little] * 256u + bytes[2 * i + big];
        uint32_t next = i + 1 < units ? bytes[2 * i + 2 + little] * 256u + bytes[2 * i + 2 + big]
                                      : 0;
        bool pair = is_high(code) && is_low(next);
        if (!pair && (is_high(code) || is_low(code))) {
            free(out);
            return ort_error_set(err, ORT_ERROR_DATA, "byte %zu: 0x%04x is half of a pair of "
                                 "UTF-16, the other half is missing; save the table as UTF-8",
                                 2 * i, (unsigned)code);
        }
        if (pair) {
            code = 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00);
            i++;
        }
        used += ort_utf8_encode(code, out + used);
    }
    assert(used <= units * 3);
    *text = out;
    *length = used;
    return ORT_OK;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Of the separators outside of quotes in the first line, the most frequent one; semicolons where
 * they stand between numbers with decimal commas. */
static char find_separator(const char *p, const char *end)
{
    size_t commas = 0, semicolons = 0, tabs = 0, decimal = 0;
    const char *start = p;
    for (bool quoted = false; p < end && (quoted || (*p != '\n' && *p != '\r')); p++) {
        if (*p == '"')
            quoted = !quoted;
        commas += !quoted && *p == ',';
        decimal += !quoted && *p == ',' && p > start && is_digit(p[-1]) && p + 1 < end &&
                   is_digit(p[1]);
        semicolons += !quoted && *p == ';';
        tabs += !quoted && *p == '\t';
    }
    commas -= semicolons && commas == decimal ? decimal : 0;
    return tabs > commas && tabs > semicolons ? '\t' : semicolons > commas ? ';' : ',';
}

static void skip_empty_lines(ort_csv_scan *scan)
{
    for (; scan->at < scan->end && (*scan->at == '\n' || *scan->at == '\r'); scan->at++)
        scan->line += *scan->at == '\n' || scan->at + 1 == scan->end || scan->at[1] != '\n';
}

ort_status ort_csv_scan_init(ort_csv_scan *scan, const char *text, size_t length, ort_error *err)
{
    const char *nul = length ? memchr(text, '\0', length) : NULL;
    if (nul) {
        size_t line = 1;
        for (const char *p = text; p < nul; p++)
            line += *p == '\n';
        return ort_error_set(err, ORT_ERROR_DATA, "line %zu: a NUL byte, so this is no table; text "
                             "in UTF-16 needs its byte order mark", line);
    }
    bool marked = length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3);
    *scan = (ort_csv_scan){text + (marked ? 3 : 0), text + length, ',', 1};
    skip_empty_lines(scan);
    scan->separator = find_separator(scan->at, scan->end);
    return ORT_OK;
}

/* ------------------------------------------------------------------------------------ cells -- */

bool ort_csv_row(ort_csv_scan *scan)
{
    skip_empty_lines(scan);
    return scan->at < scan->end;
}

static bool ends_cell(const ort_csv_scan *scan, const char *p)
{
    assert(p <= scan->end);
    return p == scan->end || *p == scan->separator || *p == '\n' || *p == '\r';
}

/* Behind the opening quote to behind the closing one. */
static ort_status read_quoted(ort_csv_scan *scan, ort_csv_cell *cell, ort_error *err)
{
    const char *p = scan->at + 1;
    size_t opened = scan->line;
    *cell = (ort_csv_cell){.text = p, .quoted = true};
    for (; p < scan->end; p++) {
        if (*p == '"' && (p + 1 == scan->end || p[1] != '"'))
            break;
        cell->doubled |= *p == '"';
        p += *p == '"';
        scan->line += *p == '\n' || (*p == '\r' && (p + 1 == scan->end || p[1] != '\n'));
    }
    assert(p <= scan->end); /* two quotes are passed where there are two */
    if (p == scan->end)
        return ort_error_set(err, ORT_ERROR_DATA, "line %zu: a quote is opened and never closed",
                             opened);
    cell->length = (size_t)(p - cell->text);
    for (p++; p < scan->end && *p == ' ';)
        p++;
    if (!ends_cell(scan, p))
        return ort_error_set(err, ORT_ERROR_DATA, "line %zu: text behind a closing quote; a quote "
                             "inside of quotes is written twice", scan->line);
    scan->at = p;
    return ORT_OK;
}

ort_status ort_csv_next(ort_csv_scan *scan, ort_csv_cell *cell, bool *last, ort_error *err)
{
    const char *start = scan->at, *p = start;
    while (p < scan->end && *p == ' ')
        p++;
    if (p < scan->end && *p == '"') {
        scan->at = p;
        ORT_TRY(read_quoted(scan, cell, err));
    } else {
        while (!ends_cell(scan, p))
            p++;
        *cell = (ort_csv_cell){.text = start, .length = (size_t)(p - start)};
        scan->at = p;
    }
    assert(cell->text + cell->length <= scan->end && scan->at <= scan->end);
    *last = scan->at == scan->end || *scan->at != scan->separator;
    scan->at += !*last;
    return ORT_OK;
}

const char *ort_csv_text(const ort_csv_cell *cell, ort_strbuf *scratch, size_t *length)
{
    *length = cell->length;
    if (!cell->doubled)
        return cell->text;
    ort_strbuf_clear(scratch);
    for (size_t i = 0; i < cell->length; i++) {
        i += cell->text[i] == '"';
        ort_strbuf_add_char(scratch, cell->text[i]);
    }
    *length = scratch->length;
    return ort_strbuf_text(scratch);
}

ort_csv_cell ort_csv_trim(const ort_csv_cell *cell)
{
    ort_csv_cell c = *cell;
    while (c.length > 0 && (c.text[0] == ' ' || c.text[0] == '\t')) {
        c.text++;
        c.length--;
    }
    while (c.length > 0 && (c.text[c.length - 1] == ' ' || c.text[c.length - 1] == '\t'))
        c.length--;
    return c;
}

/* ---------------------------------------------------------------------------------- numbers -- */

/* Digits and a point, exact: an integer below 2^53 divided by a power of ten up to 10^22 is rounded
 * once (Clinger, How to Read Floating Point Numbers Accurately, 1990). */
static bool read_plain(const char *text, size_t length, double *value)
{
    static const double powers[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15};
    bool negative = length > 0 && text[0] == '-', point = false;
    uint64_t digits = 0;
    size_t count = 0, behind = 0;
    for (size_t i = negative; i < length; i++) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || ++count > 15)
            return false;
        digits = digits * 10 + (uint64_t)(text[i] - '0');
        behind += point;
    }
    if (count == 0)
        return false;
    assert(behind < sizeof powers / sizeof *powers);
    double number = (double)digits / powers[behind];
    *value = negative ? -number : number;
    return true;
}

/* What pandas.read_csv takes for missing (its na_values), but for the spellings of NaN that every
 * parser of numbers knows. */
static bool is_missing(const char *text, size_t length)
{
    static const char *const words[] = {"NA",    "N/A",      "n/a",      "#N/A",  "#NA",    "<NA>",
                                        "NULL",  "null",     "None",     "1.#IND", "-1.#IND",
                                        "#N/A N/A", "1.#QNAN", "-1.#QNAN"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && !memcmp(words[i], text, length))
            return true;
    return false;
}

bool ort_csv_number(const ort_csv_cell *cell, double *value)
{
    enum { LONGEST = 400 };
    char copy[LONGEST], *end;
    ort_csv_cell c = ort_csv_trim(cell);
    if (read_plain(c.text, c.length, value))
        return true;
    *value = NAN;
    if (c.length == 0 || is_missing(c.text, c.length))
        return true;
    if (c.length >= sizeof copy)
        return false;
    memcpy(copy, c.text, c.length);
    copy[c.length] = '\0';
    *value = ort_parse_double(copy, &end);
    return end != copy && *end == '\0';
}

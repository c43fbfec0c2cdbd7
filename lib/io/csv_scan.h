/* csv_scan.h - the cells of a table, one after another, where they lie.
 *
 * Nothing is copied: a cell is a piece of the text, so that a table costs no memory beside its
 * bytes and its tensors. Rows end with \n, \r\n or \r, empty lines are no rows. */
#ifndef ORT_IO_CSV_SCAN_H
#define ORT_IO_CSV_SCAN_H

#include "base/error.h"
#include "base/strbuf.h"

typedef struct ort_csv_cell {
    const char *text; /* without its quotes */
    size_t length;
    bool quoted;
    bool doubled; /* holds quotes as they are written inside of quotes: twice */
} ort_csv_cell;

typedef struct ort_csv_scan {
    const char *at, *end;
    char separator;
    size_t line; /* of `at`, from 1 */
} ort_csv_scan;

/* UTF-8 of bytes that open with a byte order mark of UTF-16, as spreadsheets save "Unicode text":
 * *text is to be freed. NULL when there is no such mark: the bytes are taken as they are. */
ort_status ort_csv_decode(const unsigned char *bytes, size_t count, char **text, size_t *length,
                          ort_error *err);
/* Text that may be a table; the separator (comma, semicolon, tab) is found in the first line. */
ort_status ort_csv_scan_init(ort_csv_scan *scan, const char *text, size_t length, ort_error *err);

/* Steps over empty lines; is there a row? */
bool ort_csv_row(ort_csv_scan *scan);
/* The next cell of the row; *last: it was the last one. */
ort_status ort_csv_next(ort_csv_scan *scan, ort_csv_cell *cell, bool *last, ort_error *err);

/* The text of a cell; *length bytes of `scratch` or of the table. Spaces are part of it. */
const char *ort_csv_text(const ort_csv_cell *cell, ort_strbuf *scratch, size_t *length);
/* Without the spaces around it, as numbers and names are read. */
ort_csv_cell ort_csv_trim(const ort_csv_cell *cell);
/* Is it a number? Empty cells and words for missing values are NaN. */
bool ort_csv_number(const ort_csv_cell *cell, double *value);

#endif

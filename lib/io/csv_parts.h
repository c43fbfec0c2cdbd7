/* csv_parts.h - what the columns of a table become: one tensor, one of several, a column that only
 * goes with the rows, or nothing. Decided before any element is read. */
#ifndef ORT_IO_CSV_PARTS_H
#define ORT_IO_CSV_PARTS_H

#include "base/hashmap.h"
#include "io/csv_scan.h"
#include "io/format.h"

/* A tensor to be: rows x width, in the order of its columns. */
typedef struct ort_csv_part {
    const char *name;           /* in `names` */
    ort_dtype dtype;
    const ort_type_info *type;  /* the input it is for, which says its shape; or NULL */
    size_t width;               /* columns */
    bool kept;                  /* goes with the rows: strings, one per row */
    size_t column;              /* of a kept one */
    int64_t next;               /* element to be filled */
    ort_value *value;
} ort_csv_part;

enum { ORT_CSV_OPEN = UINT32_MAX, ORT_CSV_DROPPED = UINT32_MAX - 1 };

typedef struct ort_csv_table {
    ort_csv_scan start;     /* at the first row */
    size_t rows, columns;   /* rows with the header */
    const ort_read_options *options;
    bool header;            /* the first row is no data */
    bool named;             /* it names inputs */
    uint32_t *part_of;      /* [columns] index of a part, or ORT_CSV_*; NULL: all are open */
    ORT_VEC(ort_csv_part) parts;
    ort_arena names;
    ort_hashmap taken;      /* names of columns that are tensors, of the first `indexed` parts */
    size_t indexed;
    ort_strbuf scratch;
} ort_csv_table;

/* Chooses the parts of a table whose rows are counted. */
ort_status ort_csv_choose(ort_csv_table *t, ort_error *err);
/* Does a table's first row name one of the purposes? */
ort_status ort_csv_names_purpose(ort_csv_table *t, bool *named, ort_error *err);
/* "'age' (3)", for messages; in the arena of names. */
const char *ort_csv_label(ort_csv_table *t, size_t column);

/* The writer of tables. */
ort_status ort_csv_write(const ort_tensors *tensors, FILE *stream,
                         const ort_write_options *options, ort_error *err);

#endif

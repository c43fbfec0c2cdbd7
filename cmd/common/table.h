/* table.h - text tables: columns as wide as their cells, numbers to the right, nothing cut off. */
#ifndef COMMON_TABLE_H
#define COMMON_TABLE_H

#include <stdio.h>

typedef struct table table;

/* heads: one per column, ended by NULL; a head that begins with '>' aligns its column to the
 * right. */
table *table_new(const char *const *heads);
/* The next cell, row by row. NULL is "". */
void table_cell(table *t, const char *text);
void table_cellf(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t table_rows(const table *t);
void table_print(const table *t, FILE *stream);
void table_free(table *t);

/* 1234567 as "1,234,567", 1500000 bytes as "1.5 MB"; in a ring of static buffers: at most 8 at
 * once. */
const char *text_count(double n);
const char *text_bytes(double n);

#endif

/* table.h - text tables: columns as wide as their cells, numbers to the right. Files and pipes get
 * everything; a terminal gets what fits, and is told how to see the rest. */
#ifndef COMMON_TABLE_H
#define COMMON_TABLE_H

#include <stdio.h>

#include "common/screen.h"

typedef struct table table;

/* heads: one per column, ended by NULL; a head that begins with '>' aligns its column to the
 * right, one that begins with '~' (before that) goes where the terminal is narrow. */
table *table_new(const char *const *heads);
/* The next cell, row by row. NULL is "". */
void table_cell(table *t, const char *text);
void table_cellf(table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Of the last cell, where there is colour. */
void table_style(table *t, screen_style style);
size_t table_rows(const table *t);
/* Once: it shortens the cells of a terminal. */
void table_print(table *t, FILE *stream);
void table_free(table *t);

/* 1234567 as "1,234,567", 1500000 bytes as "1.5 MB"; in a ring of static buffers: at most 8 at
 * once. */
const char *text_count(double n);
const char *text_bytes(double n);
/* 0.00123 ms as "1.23 us": three digits in the unit that fits; in the same ring. */
const char *text_ms(double ms);

#endif

/* whole_file.h - ort_out_file with the messages and exit statuses of the tools. */
#ifndef COMMON_WHOLE_FILE_H
#define COMMON_WHOLE_FILE_H

#include <stdbool.h>

#include "ort.h"

/* path NULL or "-": standard output. Returns 0 or an exit status after saying why. */
int whole_file_open(ort_out_file **f, const char *path);
/* status 0: the file takes its place; else it goes away. Frees f; returns `status`, or
 * EXIT_DATA after saying why. tool_finish looks after standard output. */
int whole_file_close(ort_out_file *f, int status);
int whole_file_text(const char *path, const char *text); /* all of these, with `text` in it */
/* "out.png", "out_1.png", "out_2.png": of several records the second and later get a number. The
 * caller frees it. */
char *whole_file_numbered(const char *path, size_t number);

/* A device or a pipe: takes records one after another, where a file holds one. */
bool whole_file_is_special(const char *path);
/* One more record for such a path. *f, NULL at first, stays open until whole_file_close: the reader
 * of a pipe meets its end only behind the last one. 0 or an exit status after saying why. */
int whole_file_append(ort_out_file **f, const char *path, const ort_tensors *record,
                      const ort_write_options *options);

/* Files of several records, which appear together behind the last one, or none of them. */
typedef struct whole_files {
    ort_out_file **items;
    size_t count;
} whole_files;

/* One more finished file; takes f. 0 or an exit status after saying why. */
int whole_files_add(whole_files *files, ort_out_file *f);
/* status 0: all take their places; else they go away. Returns `status`, or why one can't. */
int whole_files_close(whole_files *files, int status);

#endif

/* out_file.h - files that appear whole or not at all: written beside their place under a temporary
 * name, renamed when complete. Devices and pipes are written directly. */
#ifndef ORT_IO_OUT_FILE_H
#define ORT_IO_OUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

typedef struct ort_out_file {
    FILE *stream;   /* write here */
    char *path;     /* of the finished file; NULL for stdout */
    char *temporary; /* NULL when written directly */
} ort_out_file;

/* "-" is stdout. */
ort_status ort_out_file_open(ort_out_file *file, const char *path, ort_error *err);
/* Flush (`sync`: to the disk), rename, release. On failure the temporary file is gone. */
ort_status ort_out_file_commit(ort_out_file *file, bool sync, ort_error *err);
/* Give up: no file appears. */
void ort_out_file_abort(ort_out_file *file);
/* ORT_ERROR_IO with the reason when a write to `stream` has failed; flushes. */
ort_status ort_out_file_check(FILE *stream, const char *label, ort_error *err);

#endif

/* out_file.h - files that appear whole or not at all: written without a name where the file system
 * can (O_TMPFILE), else beside their place under a temporary one, and put in their place when
 * complete. Devices and pipes are written directly. Their calls are public. */
#ifndef ORT_IO_OUT_FILE_H
#define ORT_IO_OUT_FILE_H

#include <stdio.h>

#include "base/error.h"

struct ort_out_file { /* declared in ort.h */
    FILE *stream;    /* NULL: closed, waits for its commit */
    char *path;      /* of the finished file; NULL for stdout */
    char *temporary; /* what opens the unfinished file meanwhile; NULL: written directly */
    int nameless;    /* a descriptor of the unfinished file, which has no name yet; or -1 */
};

/* ORT_ERROR_IO with the reason when a write to `stream` has failed; flushes. */
ort_status ort_out_file_check(FILE *stream, const char *label, ort_error *err);

#endif

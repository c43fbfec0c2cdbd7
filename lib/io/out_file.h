/* out_file.h - files that appear whole or not at all: written without a name where the file system
 * can (O_TMPFILE), else beside their place under a temporary one, and put in their place when
 * complete. Devices and pipes are written directly. ort_out_file and its calls are public. */
#ifndef ORT_IO_OUT_FILE_H
#define ORT_IO_OUT_FILE_H

#include <stdio.h>

#include "base/error.h"

/* ORT_ERROR_IO with the reason when a write to `stream` has failed; flushes. */
ort_status ort_out_file_check(FILE *stream, const char *label, ort_error *err);

#endif

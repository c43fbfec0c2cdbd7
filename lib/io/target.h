/* target.h - which format a file is written in: what the caller says, else what its name says. */
#ifndef ORT_IO_TARGET_H
#define ORT_IO_TARGET_H

#include "io/format.h"

/* The row that writes to `path` (NULL: a stream), and the settings filled in by the name. */
ort_status ort_target_format(const char *path, ort_write_options *settings,
                             const ort_format_row **row, ort_error *err);

#endif

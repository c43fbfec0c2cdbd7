/* file_map.h - a whole file as bytes: mapped read-only when it is a regular file, read into one
 * buffer when it is a pipe or a terminal. */
#ifndef ORT_IO_FILE_MAP_H
#define ORT_IO_FILE_MAP_H

#include "io/blob.h"

/* `path` "-" reads stdin to its end. max_bytes 0: no limit; a larger file is ORT_ERROR_MODEL. */
ort_status ort_file_map(const char *path, size_t max_bytes, ort_blob **blob, ort_error *err);
/* The same for an open descriptor, which is not closed; `label` is for messages. */
ort_status ort_file_map_fd(int fd, const char *label, size_t max_bytes, ort_blob **blob,
                           ort_error *err);

#endif

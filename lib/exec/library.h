/* library.h - opening a shared object that exports a table. */
#ifndef ORT_EXEC_LIBRARY_H
#define ORT_EXEC_LIBRARY_H

#include "ort.h"

/* what: "operator", "provider". A file that can't be opened or loaded is ORT_ERROR_IO, one without
 * the table ORT_ERROR_USAGE; both messages begin with the path. */
ort_status ort_library_open(const char *path, const char *entry, const char *what, void **handle,
                            const void **table, ort_error *err);
void ort_library_close(void *handle);

#endif

/* spool.h - constants that are made one after the other and don't fit memory together: beyond a
 * few megabytes they lie in a file without a name, mapped, whose pages leave memory when a model
 * forgets them (ort_model_forget), as those of the weights of its own files do.
 */
#ifndef ORT_IO_SPOOL_H
#define ORT_IO_SPOOL_H

#include "io/blob.h"

typedef struct ort_spool ort_spool;

/* Nothing is opened yet. The folder's name is copied. */
ort_status ort_spool_new(const char *folder, ort_spool **spool, ort_error *err);
/* Room for `bytes` of zeros, on a page of its own, which may be written. *blob NULL: it belongs in
 * memory, since all that was asked for so far does. A full disk is an error here, never a signal
 * later. */
ort_status ort_spool_room(ort_spool *spool, size_t bytes, ort_blob **blob, ort_error *err);
/* Room in the file however little it is, which processes made by fork share: what one of them
 * writes there the others read. */
ort_status ort_spool_share(ort_spool *spool, size_t bytes, ort_blob **blob, ort_error *err);
/* What was given goes on lying there. */
void ort_spool_free(ort_spool *spool);

#endif

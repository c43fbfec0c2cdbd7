/* spool.h - constants that are made one after the other and don't fit memory together: they go to a
 * file without a name, and a model maps it as it maps the weights of its own files. */
#ifndef ORT_QUANTIZE_SPOOL_H
#define ORT_QUANTIZE_SPOOL_H

#include "graph/graph.h"

typedef struct ort_spool {
    int fd; /* -1: not open */
    const uint8_t *map;
    size_t size, used;
} ort_spool;

#define ORT_SPOOL_INIT {-1, NULL, 0, 0}
/* What a tensor of so many bytes takes in it. */
size_t ort_spool_room(size_t bytes);
/* For `bytes` of rooms, in a folder; the model keeps the mapping. The bytes are there as long as
 * the model is, also after the spool is closed. */
ort_status ort_spool_open(ort_spool *s, const char *folder, size_t bytes, ort_model *model,
                          ort_error *err);
ort_status ort_spool_put(ort_spool *s, const void *bytes, size_t count, const void **at,
                         ort_error *err);
void ort_spool_close(ort_spool *s);

#endif

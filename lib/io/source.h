/* source.h - the bytes of a model and where they came from: the first station of the walk. */
#ifndef ORT_IO_SOURCE_H
#define ORT_IO_SOURCE_H

#include "io/blob.h"
#include "io/reach.h"

typedef struct ort_source {
    const uint8_t *bytes;
    size_t count;
    ort_blob *blob;        /* holds the bytes */
    const char *label;     /* what messages call it; borrowed */
    ort_reach reach;       /* where external data may lie */
    ort_blob *stored;      /* a pack file: what external data's offsets mean; or NULL. Borrowed */
    ort_blob *absent;      /* zeros in place of external data without a place. Borrowed */
    bool skeleton;         /* large weights are not needed and never touched */
    bool as_stored;        /* large weights may stay unaligned */
    bool in_pieces;        /* of ort_load_options */
} ort_source; /* all zero is valid and empty */

/* A file ("-": stdin). options may be NULL. Files of another well-known kind are refused by name.
 */
ort_status ort_source_open(const char *path, const ort_load_options *options, ort_source *source,
                           ort_error *err);
/* The caller's memory. */
ort_status ort_source_memory(const void *bytes, size_t count, const ort_load_options *options,
                             ort_source *source, ort_error *err);
void ort_source_release(ort_source *source);

#endif

/* pack.h - the pack file beside an optimized model: what a session of one machine makes of it.
 *
 *   header  one page: magic, stamp, where the sections lie, a digest of the page
 *   payload packed constants and weights, from 4096 on: large blocks on pages, small ones on 64
 *   graph   the session's graph as an ONNX model; its large tensors refer to the payload
 *   table   an entry per block: whose it is, place, size, digest
 *
 * A pack is as hostile as a model: opening checks every place and size and the digests of header,
 * graph and table; ort_pack_verify reads the payload, once, before a session is made of it. Digests
 * are taken of pieces, so that all threads share the work and pages of tables can leave again.
 * Whether a pack belongs to a model is told by its stamp (ort_pack_stamp_of), without reading
 * weights. Numbers lie in the order of the machine, little-endian: a pack is never portable.
 */
#ifndef ORT_IO_PACK_H
#define ORT_IO_PACK_H

#include "base/digest.h"
#include "base/pool.h"
#include "base/vec.h"
#include "io/blob.h"
#include "io/out_file.h"

#define ORT_PACK_SUFFIX ".pack"
#define ORT_PACK_PAGE 4096
#define ORT_PACK_KIND 16              /* bytes of an entry's kind, its NUL included */
#define ORT_PACK_WEIGHT "weight"      /* kind of a tensor of the graph */
#define ORT_PACK_NO_STEP UINT32_MAX   /* whose step a weight has */
#define ORT_PACK_DIGEST_KEY "ort.weights" /* of the model's metadata: hex digest of its weights */

/* What must be equal in a pack and in the session that wants it. */
typedef struct ort_pack_stamp {
    char library[64];      /* version and digest of the library's sources */
    char isa[16];          /* kernel tier */
    char data_file[192];   /* name of the model's external data, "" when it has none */
    uint64_t data_bytes;   /* of that file */
    uint64_t model_bytes;  /* of the model's own file */
    uint64_t skeleton;     /* digest of the model's bytes without bulk payloads, and their sizes */
    uint64_t weights;      /* digest that ort-optimize wrote into the model and here */
} ort_pack_stamp;

typedef struct ort_pack_entry {
    uint32_t step; /* number of the prepared step, ORT_PACK_NO_STEP for weights */
    uint32_t reserved;
    char kind[ORT_PACK_KIND];
    uint64_t offset, bytes; /* in the file */
    uint64_t digest;
} ort_pack_entry;

typedef struct ort_pack {
    ort_blob *blob; /* the whole file */
    ort_pack_stamp stamp;
    const ort_pack_entry *entries;
    size_t entry_count;
    const uint8_t *graph;
    size_t graph_bytes;
    size_t absent_bytes; /* of the largest tensor whose data was left out */
} ort_pack; /* all zero is valid and empty */

/* ORT_ERROR_IO when it can't be opened, ORT_ERROR_MODEL when it is no pack or damaged. */
ort_status ort_pack_open(const char *path, ort_pack *pack, ort_error *err);
/* The same of an open file, which stays open; `label` is for messages. */
ort_status ort_pack_open_fd(int fd, const char *label, ort_pack *pack, ort_error *err);
void ort_pack_release(ort_pack *pack);
/* Read everything: ORT_ERROR_MODEL that names the first block whose bytes differ. pool may be NULL.
 */
ort_status ort_pack_verify(const ort_pack *pack, ort_pool *pool, ort_error *err);
/* A large weight: maybe a table of which a run reads a few rows. */
static inline bool ort_pack_is_table(const ort_pack_entry *e)
{
    return e->step == ORT_PACK_NO_STEP && e->bytes > (uint64_t)256 << 10;
}

/* The library's own: version and sources. */
const char *ort_pack_library(void);
/* Fill what a model file (its bytes) says: sizes, skeleton, weights (0: no digest is written
 * there). The data file's part is the caller's. */
ort_status ort_pack_stamp_of(const uint8_t *bytes, size_t count, ort_pack_stamp *stamp,
                             ort_error *err);
/* NULL when equal, else what differs, for a message. */
const char *ort_pack_stamp_differs(const ort_pack_stamp *pack, const ort_pack_stamp *model);

/* pack_write.c: a pack that appears whole or not at all. Blocks are written as they come. */
typedef struct ort_pack_writer {
    ort_out_file *file;
    uint64_t at;
    ORT_VEC(ort_pack_entry) entries;
} ort_pack_writer;

ort_status ort_pack_writer_open(ort_pack_writer *w, const char *path, ort_error *err);
/* *offset: where the block lies in the file. */
ort_status ort_pack_writer_add(ort_pack_writer *w, uint32_t step, const char *kind,
                               const void *bytes, size_t count, uint64_t *offset, ort_error *err);
/* The block of an earlier entry again, for another step. */
ort_status ort_pack_writer_repeat(ort_pack_writer *w, uint32_t step, size_t entry, ort_error *err);
/* Header and table; the graph's bytes are given whole. The file is complete but has not appeared
 * yet: it is readable under file->temporary. */
ort_status ort_pack_writer_finish(ort_pack_writer *w, const ort_pack_stamp *stamp,
                                  const void *graph, size_t graph_bytes, size_t absent_bytes,
                                  ort_error *err);
/* Rename it into place. Releases. */
ort_status ort_pack_writer_commit(ort_pack_writer *w, ort_error *err);
void ort_pack_writer_abort(ort_pack_writer *w);

/* ---- internal to pack*.c: the first page */

typedef struct ort_pack_header {
    char magic[8];
    uint32_t format, byte_order;
    uint64_t digest; /* of the page with this field zero */
    uint64_t file_bytes;
    uint64_t graph_offset, graph_bytes, graph_digest;
    uint64_t table_offset, table_count, table_digest;
    uint64_t absent_bytes;
    ort_pack_stamp stamp;
} ort_pack_header;

typedef union ort_pack_page {
    ort_pack_header header;
    uint8_t bytes[ORT_PACK_PAGE];
} ort_pack_page;

#define ORT_PACK_MAGIC "ORTPACK"
#define ORT_PACK_FORMAT 2
#define ORT_PACK_PIECE ((size_t)1 << 20)
/* Digest of an entry: of those of its pieces. */
uint64_t ort_pack_digest(const void *bytes, size_t count);
#define ORT_PACK_BYTE_ORDER 0x01020304u
uint64_t ort_pack_page_digest(const ort_pack_page *page);

#endif

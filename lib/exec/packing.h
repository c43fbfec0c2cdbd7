/* packing.h - the packed constants of a session: collected for a pack file, or found in one.
 *
 * A block is found by the number of its step, by its kind and by its size, in the order in which
 * blocks were made. Steps are numbered as they are prepared, the steps of bodies before the node
 * that owns the body. A step that is folded while the program is built has no number, because the
 * graph of a pack doesn't contain it.
 */
#ifndef ORT_EXEC_PACKING_H
#define ORT_EXEC_PACKING_H

#include "base/hashmap.h"
#include "exec/program.h"
#include "exec/session.h"
#include "graph/export.h"
#include "io/pack.h"

#define ORT_PACKING_INPUTS 64

typedef struct ort_packing ort_packing;

typedef struct ort_packed { /* a block made by `prepare` */
    uint32_t step;
    char kind[ORT_PACK_KIND]; /* a copy: an operator of several stages makes it up */
    const void *bytes;
    size_t count;
} ort_packed;

struct ort_packing {
    const ort_pack *from; /* blocks come from here; NULL: they are collected */
    size_t next;          /* entry of `from` */
    bool misfits;         /* `from` hadn't what a step asked for */
    uint32_t step;
    ORT_VEC(ort_packed) made;
    size_t step_first;     /* first of `made` that is the present step's */
    ort_hashmap read;      /* data pointers of constants that runs read; keys lie in the tensors */
};

/* from NULL: blocks are collected; else they are looked up in this pack. */
void ort_packing_init(ort_packing *packing, const ort_pack *from);
void ort_packing_release(ort_packing *packing);
/* Called before and after a step is prepared. constants: those of the program, by value id.
 * absorbed: inputs that runs don't read. */
void ort_packing_begin(ort_packing *packing);
ort_status ort_packing_end(ort_packing *packing, const ort_step *step,
                           const ort_tensor *const *constants, uint64_t absorbed, bool folded,
                           ort_error *err);
/* In between: the next block of the file, if it is one of that kind and size (*bytes, or told there
 * for ORT_PACK_ANY_SIZE); or a block that was made, also when another step made it before. */
const void *ort_packing_find(ort_packing *packing, const char *kind, size_t *bytes);
bool ort_packing_made(ort_packing *packing, const char *kind, const void *packed, size_t bytes);
/* Note that runs read this constant, because it is a result of the program. */
ort_status ort_packing_read(ort_packing *packing, const ort_tensor *constant, ort_error *err);
bool ort_packing_is_read(const ort_packing *packing, const ort_tensor *constant);

/* pack_graph.c: a new model of the session's graph, which gives the same program when it is
 * prepared again. The results of folded steps are constants in it, and the doc_string of a node
 * holds the node's opset and origin. */
ort_status ort_pack_graph_of(const ort_session *session, ort_model **model, ort_error *err);
/* Set the opsets and origins of nodes from their doc_strings. */
ort_status ort_pack_graph_settle(ort_graph *graph, ort_error *err);

/* pack_load.c: the digest of all weights of a model, as ort-optimize writes it; never 0. */
uint64_t ort_pack_weights_digest(const ort_model *model);
/* The session that a pack holds. `source` is the model's own file, kept for a run that overrides a
 * default. Pack and source are taken, also on failure. options NULL: the session will never run, so
 * its model may be newer than this build knows. */
ort_status ort_pack_session(ort_env *env, ort_pack *pack, ort_source *source,
                            const ort_session_options *options, ort_session **session,
                            ort_error *err);
/* The stamp that a pack of this model file needs in this environment. */
ort_status ort_pack_stamp_wanted(const ort_env *env, const ort_source *source,
                                 const ort_pack_stamp *of, ort_pack_stamp *stamp, ort_error *err);
/* May a session with these options use a pack? Only with the options that packs are made with. */
bool ort_pack_options_fit(const ort_env *env, const ort_session_options *options);
/* The pack beside a model: opened, and compared with the model. ORT_OK with pack->blob NULL: there
 * is none. An error says why it doesn't fit. */
ort_status ort_pack_beside(const ort_env *env, const char *path, const ort_source *source,
                           ort_pack *pack, ort_error *err);

#endif

/* packing.h - packed constants of a session go to a pack file, or come from one.
 *
 * Steps are counted as they are prepared, bodies before the node that owns them; steps that are
 * folded while the program is built don't count: a pack's graph hasn't got them. A block is found
 * by its step's number, its kind and its size, in the order in which it was made.
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
    uint64_t absorbed;     /* inputs of the present step that runs don't read */
    ORT_VEC(ort_packed) made;
    size_t step_first;     /* first of `made` that is the present step's */
    ort_hashmap read;      /* data pointers of constants that runs read; keys lie in the tensors */
    ort_pack_services services;
};

/* from NULL: collect. */
void ort_packing_init(ort_packing *packing, const ort_pack *from);
void ort_packing_release(ort_packing *packing);
/* Around the preparation of a step. constants: of the program, by value id. */
const ort_pack_services *ort_packing_begin(ort_packing *packing);
ort_status ort_packing_end(ort_packing *packing, const ort_step *step,
                           const ort_tensor *const *constants, bool folded, ort_error *err);
/* Runs read this constant (it is a result). */
ort_status ort_packing_read(ort_packing *packing, const ort_tensor *constant, ort_error *err);
bool ort_packing_is_read(const ort_packing *packing, const ort_tensor *constant);

/* pack_graph.c: the session's graph as a model that gives the same program when it is prepared
 * again: folded steps are constants; a node's doc_string holds its opset and its origin. A new
 * model. */
ort_status ort_pack_graph_of(const ort_session *session, ort_model **model, ort_error *err);
/* Opsets and origins back from the doc_strings. */
ort_status ort_pack_graph_settle(ort_graph *graph, ort_error *err);

/* pack_load.c: the digest of all weights of a model, as ort-optimize writes it; never 0. */
uint64_t ort_pack_weights_digest(const ort_model *model);
/* The session that a pack holds; `source`: of the model's own file, kept for a run that overrides
 * a default. Takes both, also on failure. options NULL: nobody will run it, so it may be newer than
 * this build knows. */
ort_status ort_pack_session(ort_env *env, ort_pack *pack, ort_source *source,
                            const ort_session_options *options, ort_session **session,
                            ort_error *err);
/* The stamp that a pack of this model file needs in this environment. */
ort_status ort_pack_stamp_wanted(const ort_env *env, const ort_source *source,
                                 const ort_pack_stamp *of, ort_pack_stamp *stamp, ort_error *err);
/* May these options use a pack at all? They are those it was made with. */
bool ort_pack_options_fit(const ort_env *env, const ort_session_options *options);
/* The pack beside a model: opened, and compared with the model. ORT_OK with pack->blob NULL: there
 * is none. An error says why it doesn't fit. */
ort_status ort_pack_beside(const ort_env *env, const char *path, const ort_source *source,
                           ort_pack *pack, ort_error *err);

#endif

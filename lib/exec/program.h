/* program.h - a graph made ready to run: a flat array of prepared steps, for bodies recursively.
 *
 * Immutable once built, but for the cache of plans (under a lock). Values are numbered as in the
 * graph. `constants` holds what is known for the life of the session, also for captured values, so
 * a body never captures a constant at run time.
 */
#ifndef ORT_EXEC_PROGRAM_H
#define ORT_EXEC_PROGRAM_H

#include <assert.h>
#include <pthread.h>

#include "base/findings.h"
#include "exec/env.h"
#include "io/blob.h"
#include "op/op.h"
#include "provider/partition.h"

typedef struct ort_program ort_program;
typedef struct ort_plan ort_plan;

typedef struct ort_step {
    const ort_node *node;
    const ort_op *op;
    const char *provider; /* who runs it: a body's steps, whoever runs the node that has it */
    int device; /* index into the partition's list; -1: the host, which alone prepares its steps */
    const void *state; /* prepared */
    void (*release)(const void *state); /* or NULL */
    const ort_appends *appends;         /* caches that it extends in place, or NULL */
    const char *const *packed_attrs;    /* attributes that only its preparation reads, or NULL */
    unsigned traits;
    int in_count, out_count, body_count;
    const ort_id *in, *out; /* the node's: ORT_ID_NONE where absent */
    ort_program **bodies;
} ort_step;

typedef struct ort_capture { /* a value of the enclosing program that this one reads */
    ort_id inner, outer;
} ort_capture;

/* A cache that can grow in place: input number `given` is read by a step that gives it out as
 * output number `output`, longer along `axis` (ort_appends), and by nothing else but for its shape.
 * elastic: nothing that runs depends on the number of rows but that step. */
typedef struct ort_growth {
    int given, output, axis;
    bool elastic;
} ort_growth;

#define ORT_PLAN_CACHE 8

struct ort_program {
    const ort_graph *graph;
    const ort_program *parent;
    const ort_env *env;
    const ort_partition *partition; /* of this graph; NULL: the host runs all */
    ort_step *steps;
    int step_count;
    int value_count;
    const ort_tensor **constants; /* [value_count]; NULL: not a constant of the session */
    const ort_id *inputs;         /* graph inputs that a caller gives */
    int input_count;
    const ort_id *outputs;
    int output_count;
    ort_capture *captures;
    int capture_count;
    const ort_tensor *const *defaults; /* [input_count] of the main graph, or NULL */
    bool keep_all; /* every value lives to the end of a run */
    bool watches;  /* runs show what ort_program_shows */
    ort_growth *growths; /* of the main graph */
    int growth_count;
    struct {
        const char *bytes;
        size_t count;
    } packed; /* while it is made: of files, packed and still in memory */
    ORT_VEC(ort_value *) owned;      /* constants computed while building */
    ORT_VEC(ort_blob *) blobs;       /* aligned copies of constants that the file doesn't align */
    pthread_mutex_t lock;
    ort_plan *plans[ORT_PLAN_CACHE]; /* most recently used first; one reference each */
};

typedef struct ort_program_options {
    const ort_env *env;
    ort_arena *arena;        /* states and packed weights: lives as long as the program */
    ort_findings *findings;  /* receives every node that can't be prepared */
    const ort_partition *partition; /* of the graph's nodes; of a body, NULL: */
    const char *provider;           /* runs all of them */
    const ort_id *inputs;    /* of the main graph: what the caller gives */
    int input_count;
    const ort_tensor *const *defaults;
    bool keep_all, watches; /* of the main graph */
    ort_blob **spare; /* memory for the next aligned copy, or NULL there; the caller's to release */
    struct ort_packing *packing; /* packed constants come from a file, or are collected; or NULL */
    struct ort_shared_packs *shared; /* those that serve several steps; or NULL */
} ort_program_options;

ort_status ort_program_new(const ort_program_options *options, const ort_graph *graph,
                           const ort_program *parent, ort_program **program, ort_error *err);
void ort_program_free(ort_program *program);
/* A result of the graph that the session knows without a run: where every value is kept, also what
 * the file's nodes computed from constants. */
static inline bool ort_program_is_known_result(const ort_program *program, int id)
{
    assert(id >= 0 && id < program->value_count);
    const ort_graph_value *value = program->graph->values.data[id];
    return program->constants[id] && value->is_output && !value->initializer_proto;
}
/* Is it an output of the session, or a value that the session watches? */
static inline bool ort_program_shows(const ort_program *program, ort_id id)
{
    assert(id == ORT_ID_NONE || id < (ort_id)program->value_count);
    if (!program->watches || id == ORT_ID_NONE)
        return false;
    const ort_graph_value *value = program->graph->values.data[id];
    return program->parent ? value->is_watched : value->is_output;
}
/* growth.c */
ort_status ort_program_find_growths(ort_program *program, ort_error *err);
/* The growth of input number `given`, or NULL. */
const ort_growth *ort_program_growth(const ort_program *program, int given);

#endif

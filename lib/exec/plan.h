/* plan.h - a program for given input types and shapes: which steps run, where every value lies.
 *
 * Steps whose inputs are known while planning are evaluated at once and gone; steps that only give
 * data another shape are gone too. The others are static (all shapes known: storage at a fixed
 * place of one arena, or in the caller's output) or dynamic (shapes settled while running: storage
 * from the run's buffers). A plan is immutable and reference-counted; any number of frames use it.
 *
 * "Given" values are what a run starts from: the program's inputs in order, then its captures.
 */
#ifndef ORT_EXEC_PLAN_H
#define ORT_EXEC_PLAN_H

#include <assert.h>

#include "exec/program.h"

typedef enum ort_place {
    ORT_PLACE_NONE,     /* not needed by this plan */
    ORT_PLACE_CONSTANT, /* known while planning */
    ORT_PLACE_GIVEN,    /* the caller's memory: `port` counts given values */
    ORT_PLACE_ARENA,    /* `offset` into the frame's arena */
    ORT_PLACE_OUTPUT,   /* memory of the result: `port` counts outputs */
    ORT_PLACE_DYNAMIC,  /* found while running */
    ORT_PLACE_DEVICE,   /* only memory of the provider that computes it */
} ort_place;

typedef struct ort_slot_plan {
    ort_place place;
    bool fixed; /* tensor's type and shape are known; its data for constants */
    int port;
    size_t offset;
    ort_tensor tensor;
} ort_slot_plan;

typedef struct ort_plan_step {
    const ort_step *step;
    int position; /* among all needed steps */
    const void *plan_state;
    size_t workspace_offset, thread_offset; /* into the arena */
    size_t workspace_bytes, thread_bytes;   /* thread_bytes: per thread */
    int workspace, threads;                 /* scratch as storages of this step alone, if any */
    bool dynamic;        /* shapes are settled at run time */
    bool special;        /* dynamic, random, or values die here: not the short loop */
    const ort_id *drops; /* dynamic values that die after this step */
    int drop_count;
} ort_plan_step;

/* Consecutive steps of one provider, for these shapes: one step of the plan, whose plan_state this
 * is. The inputs and outputs of that step are what is copied. */
typedef struct ort_plan_part {
    int device; /* index into the partition's list */
    int index;  /* among the parts of that device */
    const ort_device_copy *in, *out;
} ort_plan_part;

#define ORT_MAX_BRANCHES 16

/* Steps [first, first + count) fall apart into branches that touch nothing of each other. */
typedef struct ort_branch_group {
    int first, count, branch_count;
    const int *order;           /* the steps, branch by branch */
    int ends[ORT_MAX_BRANCHES]; /* of each branch in `order`; the longest branch first */
} ort_branch_group;

typedef struct ort_patch { /* a slot whose memory is the caller's */
    ort_id slot;
    int port;
} ort_patch;

/* Type and shape of one given value. A value with strides is a cache that grows in place
 * (program.h); where that is elastic, the shape has all rows that there is room for, and the plan
 * serves fewer. */
typedef struct ort_given {
    ort_kind kind;
    bool absent; /* not given: its default, if it has one */
    bool strided;
    int room_axis; /* along which values may be shorter; 0: none */
    ort_dtype dtype;
    ort_shape shape;
} ort_given;

struct ort_plan {
    int references; /* atomic */
    const ort_program *program;
    ort_arena memory;          /* everything below */
    ORT_VEC(ort_value *) owned; /* results of steps evaluated while planning */
    ort_given *given;
    int given_count;
    bool *wanted; /* per output; NULL: all. The others have no place */
    ort_slot_plan *slots; /* by value id */
    ort_id *same; /* by value id: the value whose elements it has in another shape; else its own */
    ort_plan_step *steps;
    int step_count;
    ort_branch_group *groups; /* by their first step; none with one thread */
    int group_count;
    bool plain; /* no step is special, and no groups: the short loop */
    ort_patch *inputs, *outputs;
    int input_patches, output_patches;
    bool *direct; /* per output: its storage is the result's memory */
    ort_id *dynamic; /* slots of place DYNAMIC */
    int dynamic_count;
    void *devices[ORT_PROVIDERS_MAX]; /* what each provider made of its parts; or NULL */
    /* By given value: a bit for each provider of the list that reads it, and ORT_PLAN_HOST. By
     * output: the provider that computes it, if nobody but the caller reads it elsewhere; else -1.
     * NULL: the host runs all. */
    uint32_t *given_readers;
    int8_t *makers;
    /* By value id, where devices run a part of the program: who reads it, the caller and bodies
     * being the host; the device on which it lies for bodies alone, which a part of it computes,
     * else -1. */
    uint32_t *readers;
    int8_t *lent;
    bool has_bodies; /* a step that the plan needs runs bodies */
    size_t arena_bytes;
    size_t peak_bytes; /* greatest sum of what is alive at one step; arena_bytes minus gaps */
    int peak_position;
    int position_count;
    struct ort_storage *storages; /* for reports */
    int storage_count;
    int *storage_of; /* by value id; -1 */
};

#define ORT_PLAN_ALIGNMENT 64 /* bytes */
#define ORT_PLAN_HOST (1u << 31) /* beside a bit for each provider of the list */

/* One stretch of memory: values that share it, alive from position `first` to `last`. */
typedef struct ort_storage {
    size_t bytes, offset; /* in the arena; until places are found: within the storage below */
    int first, last;
    int output;   /* the output whose memory it is, or -1 */
    int within;   /* the storage that it is a part of, or -1 */
    ort_id value; /* the first that lives in it; ORT_ID_NONE: workspace */
} ort_storage;

/* Rows along `axis` that strides leave room for. */
static inline int64_t ort_plan_room(const ort_tensor *t, int axis)
{
    assert(t->stride && axis > 0 && axis < t->shape.rank && t->stride[axis] > 0);
    return t->stride[axis - 1] / t->stride[axis];
}
bool ort_plan_matches(const ort_plan *plan, ort_value *const *given, const bool *wanted);
static inline bool ort_plan_wants(const ort_plan *plan, int output)
{
    assert(output >= 0 && output < plan->program->output_count);
    return !plan->wanted || plan->wanted[output];
}
/* The plan for these given values and wanted outputs, made when the cache has none. A reference. */
ort_status ort_plan_get(ort_program *program, ort_value *const *given, const bool *wanted,
                        ort_plan **plan, ort_error *err);
/* A plan for types instead of values; not cached. */
ort_status ort_plan_new(const ort_program *program, const ort_given *given, const bool *wanted,
                        ort_plan **plan, ort_error *err);
void ort_plan_drop(ort_plan *plan);

/* plan_facts.c: facts of every value for these given types; folds what is known into plan->owned,
 * and sets plan->same. */
ort_status ort_plan_infer(ort_plan *plan, ort_fact *facts, ort_error *err);
/* plan_shown.c: among the needed steps, those that only a watcher reads as early as may be. */
ort_status ort_plan_show_early(const ort_step **steps, int count, int values, ort_error *err);
/* plan_parts.c: which of the steps that a plan needs run where, part by part. */
typedef struct ort_parts ort_parts;
/* `kept`: the needed steps, in order; `last_use` by value id. *parts NULL: the host runs all. */
/* Who reads the value in runs of the body, as far as that is known before them: a run that finds
 * another reader fetches it. */
uint32_t ort_program_readers(const ort_program *body, ort_id id);
ort_status ort_parts_new(ort_plan *plan, const ort_fact *facts, const ort_step *const *kept,
                         int count, const int *last_use, ort_parts **parts, ort_error *err);
/* The last step of the part that begins at kept step `first`; -1: the host runs that one. */
int ort_parts_end(const ort_parts *parts, int first);
/* Steps [first, last] as one: its inputs are what is copied to the device, its outputs what is
 * copied from there. */
ort_status ort_parts_add(ort_parts *parts, int first, int last, ort_plan_step *step,
                         ort_error *err);
/* Each provider makes its own of its parts: plan->devices. */
ort_status ort_parts_finish(ort_parts *parts, ort_error *err);
void ort_parts_free(ort_parts *parts);
/* part_run.c: what runs a part; what runs a step that a device claimed and whose shapes no plan
 * knows: by the host, without preparation. */
extern const ort_op ort_part_op;
ort_status ort_run_unprepared(ort_call *call, ort_error *err);
/* What a provider's failure is to whoever runs: ORT_ERROR_DEVICE, with words. */
ort_status ort_device_status(ort_status status, const ort_provider *row, ort_error *err);
/* plan_branches.c: the groups, and the longer lives of what they touch. */
ort_status ort_plan_branch(ort_plan *plan, const ort_fact *facts, ort_error *err);
/* plan_join.c: which storages are parts of others, once groups are known. */
void ort_plan_join(ort_plan *plan);
/* plan_memory.c: offsets for all storages that are not an output's; sets arena and peak bytes. */
ort_status ort_plan_place(ort_plan *plan, ort_error *err);
/* plan_verify.c: what each step reads was written where it lies, and nothing since; what runs side
 * by side touches nothing of each other. ORT_ERROR_RUN names the first that isn't so. Builds for
 * development ask it of every plan. */
ort_status ort_plan_verify(const ort_plan *plan, ort_error *err);

#endif

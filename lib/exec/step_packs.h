/* step_packs.h - where the packed constants of a step come from and go to while it is prepared: a
 * pack file, or another step that packed the same constants in the same way, or fresh memory.
 *
 * Layers that share a weight, and recurrent nets that were unrolled, would otherwise hold a packed
 * copy for every node: memory grows by the number of steps, and each copy streams through the
 * caches anew.
 */
#ifndef ORT_EXEC_STEP_PACKS_H
#define ORT_EXEC_STEP_PACKS_H

#include "base/arena.h"
#include "base/hashmap.h"
#include "exec/program.h"

struct ort_packing;

typedef struct ort_spare_room {
    char *at; /* aligned to 64 */
    size_t bytes;
} ort_spare_room;

/* The blocks that may serve again, of all steps of a session; and memory that may: of constants
 * that passes made and steps packed, each a scaled copy of a weight, say. */
typedef struct ort_shared_packs {
    ort_hashmap blocks;
    ort_arena keys;
    ORT_VEC(ort_spare_room) rooms;
} ort_shared_packs; /* all zero is valid and empty */

void ort_shared_packs_release(ort_shared_packs *shared);

/* While one step is prepared. */
typedef struct ort_step_packs {
    ort_pack_services services;
    struct ort_packing *packing; /* a file is read or collected; or NULL */
    ort_shared_packs *shared;
    const ort_step *step;
    const ort_graph *graph;
    const ort_tensor *const *constants; /* of its program, by value id */
    uint64_t absorbed;                  /* inputs that runs don't read */
    uint64_t attributes;                /* hash of the step's, once it is asked for; else 0 */
} ort_step_packs;

/* packs is filled in place, as its services point into it. */
void ort_step_packs_begin(ort_step_packs *packs, const ort_program_options *options,
                          const ort_program *program, const ort_step *step);
/* The step is prepared: constants that it alone read, and packed, are memory for other blocks. */
void ort_step_packs_spare(const ort_step_packs *packs);

#endif

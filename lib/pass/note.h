/* note.h - the near-misses of one round (ort_pass_note in pass/pass.h), as the driver keeps them.
 * All zeros are a list without any.
 */
#ifndef ORT_PASS_NOTE_H
#define ORT_PASS_NOTE_H

#include "base/arena.h"
#include "base/vec.h"
#include "pass/pass.h"

typedef struct ort_near_miss {
    const ort_pass *pass;
    const ort_node *node; /* compared only */
    const char *label, *condition;
} ort_near_miss;

struct ort_near_misses {
    ort_arena arena; /* of the texts */
    ORT_VEC(ort_near_miss) list;
};

/* Those of this pass, in the order in which it found them, to options->near_miss or the log. */
void ort_near_misses_tell(const ort_near_misses *m, const ort_pass_options *options,
                          const ort_pass *pass);
/* Forget all of them; it may be used again. */
void ort_near_misses_drop(ort_near_misses *m);

#endif

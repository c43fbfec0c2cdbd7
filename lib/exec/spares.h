/* spares.h - memory of results that callers have given back, kept for the results of the next run.
 *
 * The C library hands large blocks that are freed back to the system, which clears their pages anew
 * for the next run, one fault each: a fifth of the time of a model that puts out its whole cache,
 * and on one thread. So a session keeps as much as its last run put out, and not above 64 MB.
 */
#ifndef ORT_EXEC_SPARES_H
#define ORT_EXEC_SPARES_H

#include <stddef.h>

#define ORT_SPARE_LEAST ((size_t)16 << 10) /* smaller results come from malloc */

typedef struct ort_spares ort_spares;

/* NULL when memory is exhausted. */
ort_spares *ort_spares_new(void);
/* The session is gone: memory that is out goes to the system when it comes back. NULL: nothing. */
void ort_spares_close(ort_spares *spares);
/* At least `bytes`, unset and aligned to 64; NULL when memory is exhausted. *taken: sum of what the
 * run has taken, 0 at first. */
void *ort_spares_take(ort_spares *spares, size_t bytes, size_t *taken);
/* `memory` was taken from the ort_spares `arg`; on any thread, also when those are closed. */
void ort_spares_give(void *arg, void *memory);

#endif

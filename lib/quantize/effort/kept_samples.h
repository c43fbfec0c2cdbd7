/* kept_samples.h - inputs that samples gave, kept for runs that choose codes by what layers read
 * and give: at most ORT_KEPT_SAMPLES, those of the least digests, so that neither their order nor
 * their number decides more than which.
 */
#ifndef ORT_QUANTIZE_KEPT_SAMPLES_H
#define ORT_QUANTIZE_KEPT_SAMPLES_H

#include "exec/session.h"
#include "ort.h"

enum { ORT_KEPT_SAMPLES = 32 };
typedef struct ort_kept_sample {
    uint64_t digest;
    ort_value **inputs; /* [count], NULL where a default was taken */
} ort_kept_sample;
typedef struct ort_kept_samples {
    ort_kept_sample samples[ORT_KEPT_SAMPLES]; /* by digest */
    int count, inputs;
} ort_kept_samples;

ort_status ort_keep_sample(ort_kept_samples *kept, ort_value *const *inputs, size_t count,
                           ort_error *err);
void ort_kept_release(ort_kept_samples *kept);

/* The first of them that hold no more than so many bytes together, at least two of them and `least`
 * rows of batches. */
int ort_kept_within(const ort_kept_samples *kept, size_t bytes, int least);

/* Have all of them inputs of the same shapes? */
bool ort_kept_alike(const ort_kept_samples *kept);

/* What the session gives for sample `at`; see: of inputs, and of what the session watches. */
typedef void ort_kept_see(void *arg, const char *name, const ort_value *value);
ort_status ort_kept_run(const ort_kept_samples *kept, int at, ort_session *session,
                        ort_kept_see *see, void *arg, ort_error *err);
/* Only what these outputs need; see: of them. */
ort_status ort_kept_outputs(const ort_kept_samples *kept, int at, ort_session *session,
                            const char *const *outputs, size_t count, ort_kept_see *see, void *arg,
                            ort_error *err);

#endif

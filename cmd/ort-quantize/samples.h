/* samples.h - the sets of inputs that calibration and checks run on, one after the other. */
#ifndef ORT_QUANTIZE_SAMPLES_H
#define ORT_QUANTIZE_SAMPLES_H

#include "common/feed.h"

typedef struct samples {
    feed_options from;
    ort_session *session; /* of the model as it is given, for the names and types of its inputs */
    feed feed;
    ort_value **inputs;   /* of the present sample; borrowed, NULL: its default */
    size_t count;         /* of inputs */
    size_t at;            /* samples of this pass so far */
    bool open;
} samples;

/* For the inputs of a model, which `path` names in messages. The options are read until the samples
 * are closed. 0 or an exit status. */
int samples_open(samples *s, const feed_options *from, ort_env *env, ort_model *model,
                 const char *path);
/* s->inputs become those of the next sample. *end: there is none, and the next pass begins anew. */
int samples_next(samples *s, bool *end);
void samples_close(samples *s);

#endif

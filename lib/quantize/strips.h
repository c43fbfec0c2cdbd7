/* strips.h - a weight read a strip of channels at a time, wherever it lies, so that neither memory
 * nor the next weight has to make room for all of it.
 *
 * A tensor is [outer][channels][inner]. Where outer is 1 a strip is a piece of it and is read in
 * place. Elsewhere it is copied together in pieces, whose pages leave memory as soon as they are
 * copied: columns of a matrix touch every page of it.
 */
#ifndef ORT_QUANTIZE_STRIPS_H
#define ORT_QUANTIZE_STRIPS_H

#include "base/pool.h"
#include "graph/graph.h"

typedef struct ort_channels {
    int64_t outer, count, inner;
} ort_channels;

/* axis -1: the tensor is one channel. */
ort_channels ort_channels_of(const ort_tensor *t, int axis);

typedef struct ort_strip {
    const char *data; /* [outer][count][inner], for no type aligned */
    ort_channels of;  /* `count` of this strip */
    int64_t first;    /* of its channels, a multiple of 64 */
} ort_strip;

typedef ort_status ort_strip_fn(void *arg, const ort_strip *strip, ort_error *err);
/* The strips of a tensor of the model, in order. */
ort_status ort_strips_each(const ort_model *model, const ort_tensor *t, const ort_channels *c,
                           ort_strip_fn *fn, void *arg, ort_error *err);

/* Each channel of a float tensor as line[outer * inner], aligned; by all threads of the pool (NULL:
 * by the caller, in order). `thread` as in pool.h. */
typedef void ort_line_fn(void *arg, int64_t channel, const float *line, int thread);
ort_status ort_lines_each(const ort_model *model, const ort_tensor *t, const ort_channels *c,
                          ort_pool *pool, ort_line_fn *fn, void *arg, ort_error *err);

/* Are the floats of a tensor all finite numbers? */
bool ort_strips_finite(const ort_model *model, const ort_tensor *t);

#endif

/* stamp.h - how a model was quantized, in its metadata, so that a file tells what it is and how to
 * make it again. Every writer of codes stamps what it writes.
 */
#ifndef ORT_QUANTIZE_STAMP_H
#define ORT_QUANTIZE_STAMP_H

#include "graph/graph.h"

typedef struct ort_quantize_stamp {
    const char *verb;    /* "static", "dynamic", "weights" */
    const char *options; /* those that differ from the defaults, as they are written; or NULL */
    const char *samples; /* "64 samples, digest 0123456789abcdef", "made up, seed 7",
                          * "ranges.json"; NULL: none decided */
    const char *tier;    /* of float runs that decided, told unless it is common; NULL: none did */
} ort_quantize_stamp;

/* The property "ort.quantize.VERB": "0.9.0; options: ...; samples: ...; tier: scalar". A model that
 * was quantized by the same verb before keeps what that said, behind " < ". */
ort_status ort_quantize_stamp_model(ort_model *model, const ort_quantize_stamp *stamp,
                                    ort_error *err);

#endif

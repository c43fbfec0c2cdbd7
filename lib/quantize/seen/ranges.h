/* ranges.h - what values of a model held on samples: ort_ranges of ort_tools.h.
 *
 * Ranges of equal models merge, whoever saw the samples: histograms and ends of ranges to what one
 * run over all samples would have made of them, bit for bit. Averages depend on the order of
 * samples, so they don't merge.
 */
#ifndef ORT_QUANTIZE_RANGES_H
#define ORT_QUANTIZE_RANGES_H

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/pool.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "quantize/code_grid.h"
#include "quantize/seen/histogram.h"
#include "quantize/seen/response.h"
#include "ort.h"

/* What is kept of a value beside its ends. */
typedef enum ort_kept {
    ORT_KEPT_ENDS,
    ORT_KEPT_BINS,
    ORT_KEPT_AVERAGES,
} ort_kept;

/* A moving average of the ends of samples: average += (end - average) / 100, the first one as it
 * is. The constant is that of onnxruntime's calibrator (CalibMovingAverageConstant). */
typedef struct ort_average {
    double least, most;
    bool known;
} ort_average;

/* The range that was chosen last, of so many numbers: a search makes many models of one
 * histogram. */
typedef struct ort_chosen {
    uint64_t count; /* 0: none yet */
    ort_observer observer;
    double percentile;
    ort_codes_range codes;
    ort_response response;
    float ends[2]; /* of what was seen: readers may cut it */
    float least, most;
} ort_chosen;

typedef struct ort_observed {
    const char *name;
    ort_histogram histogram; /* with bins where these are kept */
    ort_average average;     /* of ORT_KEPT_AVERAGES */
    ort_chosen *chosen;      /* or NULL: nobody keeps it */
    ort_response response;   /* what readers make of it */
} ort_observed;

struct ort_ranges {
    ort_arena memory;
    bool is_set; /* false: of no model yet */
    uint64_t model; /* its mark (model_mark.h) */
    const char *tier; /* of the runs; NULL: none yet */
    ort_kept kept;
    uint64_t samples, made_up; /* these among the samples */
    ORT_VEC(ort_observed) values;
    ort_hashmap by_name;
};

/* Of nothing so far. */
ort_status ort_ranges_make(ort_ranges **ranges, ort_error *err);
void ort_ranges_release(ort_ranges *ranges);
/* Which model, and what is kept of its values, before the first of them. */
void ort_ranges_set(ort_ranges *ranges, uint64_t model, ort_kept kept);
/* A value that nothing is known of; the name is copied. */
ort_status ort_ranges_add(ort_ranges *ranges, const char *name, ort_error *err);
/* NULL: not among them. Good until the next value is added. */
ort_observed *ort_ranges_find(const ort_ranges *ranges, const char *name);

/* What a value is in one sample. */
void ort_ranges_observe(ort_ranges *ranges, ort_observed *value, const ort_tensor *tensor,
                        ort_pool *pool);

/* `into` becomes what both have seen. Both have the same values, or `from` has more of them, where
 * `more` says that these are left out. name: of what `from` comes from, for messages. */
ort_status ort_ranges_merge(ort_ranges *into, const ort_ranges *from, bool more, const char *name,
                            ort_error *err);

/* JSON, of schema "ort-ranges/1" (ranges_json.c). */
ort_status ort_ranges_write_json(const ort_ranges *ranges, ort_strbuf *out, ort_error *err);
ort_status ort_ranges_read_json(ort_ranges *ranges, const char *text, size_t size,
                                const char *name, ort_error *err);

#endif

/* resample.h - separable resampling of a tensor along some of its axes: tap tables and passes.
 *
 * A table says for every output index of an axis which input indices (clamped to the axis) weigh
 * how much. Passes run from the last axis to the first, in float (16-bit and smaller types) or
 * double.
 */
#ifndef ORT_OP_SHARED_RESAMPLE_H
#define ORT_OP_SHARED_RESAMPLE_H

#include "op/op.h"

typedef enum ort_coordinate { /* coordinate_transformation_mode */
    ORT_COORD_HALF_PIXEL,
    ORT_COORD_HALF_PIXEL_SYMMETRIC,
    ORT_COORD_PYTORCH_HALF_PIXEL,
    ORT_COORD_ALIGN_CORNERS,
    ORT_COORD_ASYMMETRIC,
    ORT_COORD_TF_HALF_PIXEL_FOR_NN,
    ORT_COORD_TF_CROP_AND_RESIZE,
    ORT_COORD_COUNT
} ort_coordinate;

typedef enum ort_rounding { /* nearest_mode; SIMPLE (opset 10): ceil when shrinking, else floor */
    ORT_ROUND_PREFER_FLOOR,
    ORT_ROUND_PREFER_CEIL,
    ORT_ROUND_FLOOR,
    ORT_ROUND_CEIL,
    ORT_ROUND_SIMPLE,
} ort_rounding;

typedef struct ort_resample_axis { /* one axis of a Resize */
    int64_t in, out;
    float scale;             /* as given, or out / in */
    float width;             /* scale * in, a fraction where out is its floor */
    float roi_start, roi_end;
} ort_resample_axis;

typedef struct ort_resample_kind {
    ort_coordinate coordinate;
    bool cubic, antialias, exclude_outside;
    float cubic_a;
} ort_resample_kind;

typedef struct ort_resample_table {
    int axis, taps;
    int64_t in, out;
    int64_t *index;    /* [out][taps] */
    float *weight;     /* [out][taps] */
    double *weight64;
    uint8_t *outside;  /* [out]: the coordinate lies outside (tf_crop_and_resize); or NULL */
} ort_resample_table;

typedef struct ort_resample {
    int table_count;
    ort_resample_table table[ORT_MAX_RANK]; /* ascending axes */
    int64_t block;         /* output rows of the first axis per task */
    int64_t blocks, outer; /* tasks: outer * blocks */
    int64_t rest_in, rest_out; /* elements behind the first axis */
    bool bilinear;         /* shrinks the last two axes with two taps each, at once */
    int64_t slab, stage;   /* elements of the scratch buffers: input slab, pass result (two) */
    size_t scratch_bytes;  /* per thread */
} ort_resample;

typedef void *ort_resample_alloc(void *arg, size_t bytes);

/* Nearest source index of every output index into index[out]; -1: outside, extrapolate. */
void ort_resample_nearest(ort_coordinate mode, ort_rounding rounding,
                          const ort_resample_axis *axis, int64_t *index);
/* Does this axis change anything? */
bool ort_resample_needed(ort_coordinate mode, const ort_resample_axis *axis);
/* Fill plan->table[plan->table_count++] for `axis_number`. false: no memory. */
bool ort_resample_add(ort_resample *plan, int axis_number, const ort_resample_kind *kind,
                      const ort_resample_axis *axis, ort_resample_alloc *alloc, void *arg);
/* Sizes of tasks and scratch, after the last table. */
void ort_resample_layout(ort_resample *plan, const ort_shape *in, const ort_shape *out,
                         ort_dtype dtype);
/* Run on `pool` with scratch_bytes per thread at `scratch` (scratch_stride apart). The dtype is a
 * float or an integer of 8 bits and more. */
void ort_resample_run(const ort_resample *plan, const ort_tensor *in, ort_tensor *out,
                      void *scratch, size_t scratch_stride, ort_pool *pool);
/* Elements with a coordinate outside on any axis become `value`. */
void ort_resample_extrapolate(const ort_resample *plan, ort_tensor *out, float value);

#endif

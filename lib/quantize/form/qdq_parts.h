/* qdq_parts.h - what the writers of codes are made of: constants, Q and DQ nodes, pairs of them. */
#ifndef ORT_QUANTIZE_QDQ_PARTS_H
#define ORT_QUANTIZE_QDQ_PARTS_H

#include "quantize/form/qdq.h"
#include "quantize/pairs.h"

/* A value in one form. Lists by value: `next` is an index into the writer's pairs, -1 ends one. */
typedef struct ort_qdq_pair {
    int form;
    ort_id numbers;     /* what DequantizeLinear gives, or ORT_ID_NONE: only the grid is there */
    ort_id scale, zero; /* ORT_ID_NONE: of a grid that no node needs yet */
    ort_grid grid;
    int next;
} ort_qdq_pair;

/* A weight in one form. */
typedef struct ort_qdq_weight {
    ort_id id;
    ort_codes_range codes;
    bool fit;
    int axis;             /* of the stored tensor; -1: one scale */
    int sums;             /* of what products add up: along it channels have sums of their own */
    ort_pairs pairs;      /* of its products; no channels: none that processors cut */
    int64_t channels;
    double *least_scales; /* [channels]: what biases need */
    const float *scales;  /* [channels], once written */
    ort_id code_id, scale, numbers;
    ort_id zero; /* ORT_ID_NONE: 0 */
    ort_id turned_from, turned; /* the result of a Transpose, and what it is of `numbers` */
} ort_qdq_weight;

/* A zero point of one number, which all values with it read. */
typedef struct ort_qdq_zero {
    ort_dtype dtype;
    int64_t zero;
    ort_id id;
} ort_qdq_zero;

typedef struct ort_qdq_writer {
    ort_graph *graph;
    const ort_placement *place;
    const ort_qdq_options *options;
    size_t value_count, node_count; /* that the graph had */
    ORT_VEC(ort_qdq_pair) pairs;
    int *heads;                     /* by value */
    ORT_VEC(ort_qdq_weight) weights;
    ORT_VEC(ort_qdq_zero) zeros;
} ort_qdq_writer;

const char *ort_qdq_name(const ort_qdq_writer *w, ort_id id);
/* "STEM_WHAT" in the model's arena; NULL: no memory. */
const char *ort_qdq_joined(const ort_qdq_writer *w, const char *stem, const char *what);
/* A constant STEM_WHAT of one dimension, or none. */
ort_status ort_qdq_constant(ort_qdq_writer *w, const char *stem, const char *what, ort_dtype dtype,
                            int rank, int64_t count, ort_tensor *tensor, ort_id *id,
                            ort_error *err);
ort_status ort_qdq_zero_of(ort_qdq_writer *w, ort_dtype dtype, int64_t zero, ort_id *id,
                           ort_error *err);
/* A QuantizeLinear STEM_q or DequantizeLinear STEM_dq; axis -1: one scale. in[2] ORT_ID_NONE, of a
 * DequantizeLinear of constants alone: the zero point is 0. */
ort_status ort_qdq_add_linear(ort_qdq_writer *w, const char *op_type, const char *stem,
                              const ort_id in[3], int axis, ort_id *result, ort_error *err);
/* Writes the code that stands for x. */
void ort_qdq_put(ort_tensor *t, int64_t i, const ort_codes_range *codes, ort_grid grid, float x);

ort_id ort_qdq_root(const ort_qdq_writer *w, ort_id id);
/* Of the value's root in this form; the index of its pair, -1: no memory. */
int ort_qdq_grid_of(ort_qdq_writer *w, ort_id id, int form);

#endif

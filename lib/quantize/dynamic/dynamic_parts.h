/* dynamic_parts.h - what the files of dynamic quantization share (dynamic.h).
 *
 * A row says for an operator when a node of it can become integer (`read`) and what it becomes
 * (`write`). First every node is read, so that it is known how all readers of a weight want it;
 * then those that can go are written.
 */
#ifndef ORT_QUANTIZE_DYNAMIC_PARTS_H
#define ORT_QUANTIZE_DYNAMIC_PARTS_H

#include "base/vec.h"
#include "quantize/dynamic/dynamic.h"

enum { ORT_DYNAMIC_TABLES = 5 }; /* weights of one node, at most */

/* A constant that becomes codes, as [outer][channels][inner]. One copy of them for all its readers
 * that agree on the channels, and a turned one (its last two dims swapped) only where nobody reads
 * it as it lies. */
typedef struct ort_dynamic_weight {
    ort_graph *graph; /* where it lies, around the bodies that read it */
    ort_id id;
    int64_t outer, channels, inner;
    int axis;         /* the first that counts channels */
    bool symmetric;   /* whatever the options say */
    bool nearest;     /* each code for itself: nothing adds it up with values of one sign */
    bool whole;       /* codes span all numbers, none of which is clipped */
    int plain, turned; /* how many nodes read it as it lies, or turned */
    bool written, restored; /* codes are there; they were made float again */
    ort_id codes, codes_turned;
    ort_id scales, zeros;   /* vectors of `channels`, or scalars when there is one of a matrix */
    float *scale;
    int *zero;
    double pairs; /* the share of sums of two products that may leave 16 bits */
} ort_dynamic_weight;

static inline double ort_dynamic_numbers(const ort_dynamic_weight *w)
{
    return (double)w->outer * (double)w->channels * (double)w->inner;
}

/* A value as bytes, by its range in the run; one node for all its readers. */
typedef struct ort_dynamic_bytes {
    ort_graph *graph;
    ort_id value, codes, scale, zero;
} ort_dynamic_bytes;

typedef struct ort_dynamic_row ort_dynamic_row;
typedef struct ort_dynamic_unit {
    const ort_dynamic_row *row;
    ort_graph *graph;
    ort_node *node;
    size_t note;
    int weight_count;
    size_t weights[ORT_DYNAMIC_TABLES]; /* of ort_dynamic.weights */
    bool turned;                        /* the product reads its weight turned */
    const char *stored; /* why it reads codes made float again; NULL: it goes */
    bool floats;        /* a table that others read as floats */
} ort_dynamic_unit;

typedef struct ort_dynamic {
    ort_model *model;
    const ort_dynamic_options *options;
    ort_pool *pool;
    ort_codes_range codes, symmetric; /* of weights */
    ort_quantize_notes *notes;
    ORT_VEC(ort_dynamic_weight) weights;
    ORT_VEC(ort_dynamic_bytes) bytes;
    ORT_VEC(ort_dynamic_unit) units;
    bool no_memory;
} ort_dynamic;

struct ort_dynamic_row {
    const char *domain, *op_type;
    /* Why it stays, or NULL: it goes, and its weights are in the unit. */
    const char *(*read)(ort_dynamic *d, ort_dynamic_unit *u);
    ort_status (*write)(ort_dynamic *d, const ort_dynamic_unit *u, ort_error *err);
    const char *becomes;
    const char *stays; /* of an operator that never goes */
};

extern const ort_dynamic_row ort_dynamic_products[], ort_dynamic_layers[];

/* Units that make the model's results and are small are stored as codes alone (dynamic_last.c). */
void ort_dynamic_keep_last(ort_dynamic *d);
/* Tables that others read as floats stay (dynamic_tables.c). */
ort_status ort_dynamic_keep_tables(ort_dynamic *d, ort_error *err);
/* A table that a product multiplies as it lies has that product's codes, with a scale a column: the
 * file holds it once (dynamic_layers.c). */
void ort_dynamic_share_tables(ort_dynamic *d);
/* Weights that lie in the file as codes and are made float again behind them (dynamic_stored.c). */
ort_status ort_dynamic_settle_stored(ort_dynamic *d, ort_error *err);
ort_status ort_dynamic_write_stored(ort_dynamic *d, const ort_dynamic_unit *u, ort_error *err);

/* ---- constants (dynamic_weight.c) */

/* The constant behind input `slot`, in its own graph, with float elements; NULL: none. *turned: it
 * came through a Transpose that swaps two dims. */
const ort_tensor *ort_dynamic_constant(const ort_graph *graph, ort_id id, ort_graph **owner,
                                       ort_id *own, bool *turned);
/* The unit reads input `slot` in codes with channels on these dims, [first, last) of the constant
 * as it lies; last <= first: one scale. Why it can't, or NULL. */
const char *ort_dynamic_take(ort_dynamic *d, ort_dynamic_unit *u, int slot, int first, int last,
                             bool turned, bool symmetric);
/* A reader of the weights that `u` took wants each code the nearest: roundings that cancel in sums
 * are larger for nothing where rows are looked up, or multiplied by states of both signs. `whole`:
 * of the range of all numbers; a recurrence multiplies by what was clipped in each step. */
void ort_dynamic_want_nearest(ort_dynamic *d, const ort_dynamic_unit *u, bool whole);
/* The codes of a weight in the graph of the unit, and a scale or zero point as a constant of this
 * shape (NULL: the vector that all share). zero: ORT_ID_NONE where all are 0 and may be absent. */
typedef struct ort_dynamic_codes {
    ort_id codes, scale, zero;
} ort_dynamic_codes;
ort_status ort_dynamic_codes_of(ort_dynamic *d, const ort_dynamic_unit *u, int which,
                                const ort_shape *shape, double factor, bool with_zero,
                                ort_dynamic_codes *result, ort_error *err);
ort_status ort_dynamic_constant_of(ort_graph *graph, const char *stem, const char *what,
                                   ort_dtype dtype, const ort_shape *shape, ort_tensor *tensor,
                                   ort_id *id, ort_error *err);
/* All weights that a unit reads become codes; threads of the pool share the channels. */
ort_status ort_dynamic_write_weights(ort_dynamic *d, ort_error *err);

/* ---- nodes (dynamic_nodes.c) */

/* The bytes of a value, made where they aren't there yet. */
ort_status ort_dynamic_bytes_of(ort_dynamic *d, ort_graph *graph, ort_id value,
                                ort_dynamic_bytes *bytes, ort_error *err);
/* A node named after the unit's, STEM_what; its one result new, or, `last`, what the unit's node
 * gave, which must be gone. */
typedef struct ort_dynamic_new {
    const char *domain, *op_type, *what;
    const ort_id *inputs;
    int input_count;
    const ort_attr *set;
    int set_count;
    bool keeps_attrs, last;
} ort_dynamic_new;
ort_status ort_dynamic_add(const ort_dynamic_unit *u, const ort_dynamic_new *made, ort_id *result,
                           ort_error *err);
static inline bool ort_dynamic_is_float(const ort_graph *graph, ort_id id)
{
    const ort_type *type = id == ORT_ID_NONE ? NULL : &graph->values.data[id]->fact.type;
    return type && type->kind == ORT_TYPE_TENSOR && type->dtype == ORT_DTYPE_FLOAT;
}

#endif

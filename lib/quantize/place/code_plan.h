/* code_plan.h - which codes each node reads: the options, and what rules change of them.
 *
 * The type of codes belongs to the pair of a value and who reads it: one value may be codes of 8
 * bits for one reader and of 16 for another, each rounded once from what was computed. A node that
 * only moves codes takes the form that its readers want, so that nothing is rounded twice.
 */
#ifndef ORT_QUANTIZE_CODE_PLAN_H
#define ORT_QUANTIZE_CODE_PLAN_H

#include "quantize/code_grid.h"
#include "quantize/place/code_rules.h"
#include "quantize/place/place.h"

/* Codes of what is computed. */
typedef struct ort_code_form {
    ort_codes_range codes;
    ort_observer observer;
    double percentile;
    bool has_range; /* a rule says the range, not samples */
    float least, most;
} ort_code_form;

/* Codes of weights. */
typedef struct ort_weight_form {
    ort_codes_range codes;
    bool per_tensor, fit;
    bool in_pairs; /* sums of two products with bytes are to fit 16 bits */
} ort_weight_form;

typedef struct ort_code_plan {
    const ort_graph *graph;
    ort_code_spec base;            /* of the options */
    bool fit, full_range;
    ort_code_spec *nodes, *values; /* by id: what rules say of them */
    size_t node_count, value_count;
    size_t *first;                 /* by node: where its inputs lie in `reads` */
    short *reads;                  /* forms, by input */
    ORT_VEC(ort_code_form) forms;  /* the first is that of the options */
} ort_code_plan;

/* ORT_ERROR_USAGE with the reason: options that don't go together. */
ort_status ort_code_plan_check(const ort_quantize_options *options, ort_error *err);
/* Of one graph. met[i] grows by how many nodes or values rule i names in it. */
ort_status ort_code_plan_make(ort_code_plan *plan, const ort_graph *graph,
                              const ort_quantize_options *options, const ort_code_rules *rules,
                              size_t *met, ort_error *err);
/* Once it is known which nodes compute on codes. */
ort_status ort_code_plan_settle(ort_code_plan *plan, const ort_placement *place, ort_error *err);
void ort_code_plan_release(ort_code_plan *plan);

/* Does a rule say that the node, or a value that it reads or gives, stays float? The reason, or
 * NULL. */
const char *ort_code_plan_float(const ort_code_plan *plan, const ort_node *node);
/* Is it to compute in float16? */
bool ort_code_plan_half(const ort_code_plan *plan, const ort_node *node);
/* Of input `slot`, an index of plan->forms. */
int ort_code_plan_form(const ort_code_plan *plan, const ort_node *node, int slot);
ort_weight_form ort_code_plan_weights(const ort_code_plan *plan, const ort_node *node);
/* The first opset, and version of the format, that have all types of options and rules. */
int ort_code_plan_opset(const ort_quantize_options *options, const ort_code_rules *rules);
int ort_code_plan_ir(const ort_quantize_options *options, const ort_code_rules *rules);

#endif

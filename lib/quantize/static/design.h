/* design.h - a copy of a float model made ready, and what of it is to compute on codes: once
 * without regard to what is excluded, which is what samples are observed for, and once with it.
 *
 * A site is one graph of the model: the main one, and each body of control flow, which has codes of
 * its own. What a body captures becomes codes inside of it.
 */
#ifndef ORT_QUANTIZE_DESIGN_H
#define ORT_QUANTIZE_DESIGN_H

#include "base/log.h"
#include "op/op.h"
#include "quantize/place/code_plan.h"
#include "quantize/static/even.h"

typedef struct ort_site {
    ort_graph *graph;
    size_t parent;        /* a site, of a body */
    ort_id node;          /* there */
    int body;             /* of that node; -1: the main graph */
    ort_code_plan plan;
    ort_placement place;
    ort_placement widest; /* what could be observed: nothing is excluded, each step by itself */
    ort_placement whole;  /* nothing is excluded */
    const char **stays;   /* by node: a reason that was found later, or NULL */
    bool *halves;         /* by node: of those that stay, float16 */
    ort_place_finite *finite; /* by value: what placing has found out */
} ort_site;

typedef struct ort_design {
    ort_model *model;             /* borrowed: the caller's copy, changed */
    ort_quantize_options options; /* its pointers are the caller's, and not kept */
    const char **exclude, **include; /* copies in the model's arena, or NULL */
    ort_code_rules rules;
    bool rules_refused;           /* the last error is one of these */
    ORT_VEC(ort_site) sites;      /* the main graph first, a body behind the graph around it */
    size_t evened;                /* pairs of products that the option equalize gave factors */
    ort_channel_ids muls;         /* nodes that smoothing put before products of the main graph */
} ort_design;

/* The level-1 passes (unless options say not), the opset that the types need, types of values. A
 * model that was optimized too far is refused. After a failure release it. */
ort_status ort_design_make(ort_design *design, ort_model *model, const ort_registry *registry,
                           const ort_log *log, const ort_quantize_options *options,
                           ort_error *err);
/* Other overrides (or NULL) instead of those that there are. */
ort_status ort_design_override(ort_design *design, const ort_registry *registry, const char *json,
                               ort_error *err);
/* Factors of channels moved by what was seen of them; places again. */
ort_status ort_design_smooth(ort_design *design, ort_smoothing *smoothing,
                             const ort_registry *registry, ort_error *err);
/* Places again, once `stays` says more. */
ort_status ort_design_place(ort_design *design, ort_error *err);
/* The graph of a site in a copy of the model. */
ort_graph *ort_design_graph(const ort_design *design, const ort_site *site,
                            const ort_model *copy);
void ort_design_release(ort_design *design);

#endif

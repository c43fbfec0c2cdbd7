/* code_rules.h - which nodes and values are to have other codes than the options say, or none:
 * the JSON of "ort-overrides/1".
 *
 *     {"schema": "ort-overrides/1",
 *      "overrides": [
 *        {"node": "head_*", "type": "float"},
 *        {"operator": "MatMul", "type": "uint16", "weights": "int8"},
 *        {"node": "/conv7", "weights": "int4", "per_channel": true},
 *        {"value": "/relu3_out", "observer": "percentile", "percentile": 99.9},
 *        {"value": "/probabilities", "range": [0, 1]}]}
 *
 * Each names nodes by "node" or "operator", or values by "value": names, in which * and ? stand for
 * any text and any letter. Later ones prevail, member by member; what a value says prevails over
 * its readers.
 *
 *     type               of what such nodes read, or of the value; "float": it stays; "float16":
 *                        such nodes compute in that, with weights of it
 *     weights            type of the weights of such nodes
 *     symmetric          the zero point is the middle of the codes
 *     symmetric_weights, per_channel, reduce_range
 *     observer           min-max, percentile, entropy, mse, l2.5, l3, l4;   percentile   a number
 *     range              [least, most]: instead of what was observed
 */
#ifndef ORT_QUANTIZE_CODE_RULES_H
#define ORT_QUANTIZE_CODE_RULES_H

#include "base/vec.h"
#include "graph/graph.h"

/* What a rule says: UNDEFINED, -1, 0 and false where it says nothing. */
typedef struct ort_code_spec {
    ort_dtype type, weights;
    signed char symmetric, symmetric_weights, per_channel, reduce_range, observer;
    double percentile;
    bool has_range;
    float least, most;
} ort_code_spec;

#define ORT_CODE_SPEC_NONE \
    ((ort_code_spec){.symmetric = -1, .symmetric_weights = -1, .per_channel = -1, \
                     .reduce_range = -1, .observer = -1})

typedef enum ort_rule_of { ORT_RULE_NODE, ORT_RULE_OPERATOR, ORT_RULE_VALUE } ort_rule_of;

typedef struct ort_code_rule {
    ort_rule_of of;
    char *pattern;
    ort_code_spec spec;
} ort_code_rule;

typedef struct ort_code_rules {
    ORT_VEC(ort_code_rule) list;
} ort_code_rules;

/* text NULL: no rules. A mistake is ORT_ERROR_USAGE with its place and what is allowed. */
ort_status ort_code_rules_parse(const char *text, ort_code_rules *rules, ort_error *err);
void ort_code_rules_release(ort_code_rules *rules);

bool ort_code_rule_meets(const ort_code_rule *rule, const ort_node *node);
/* Does one name an observer that needs more than the least and the largest number? */
bool ort_code_rules_observe(const ort_code_rules *rules);
/* What the later one says goes over what is there. */
void ort_code_spec_join(ort_code_spec *spec, const ort_code_spec *later);

#endif

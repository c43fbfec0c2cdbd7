/* gradient_rules.c - finding the rule of an operator. The families' tables are the documented list:
 * ort(3) names the same operators, and make lint compares. */
#include <string.h>

#include "gradient/gradient.h"

static const ort_grad_rule *const families[] = {ort_grad_elementwise, ort_grad_algebra,
                                                ort_grad_moves, ort_grad_windows, ort_grad_norms};

const ort_grad_rule *ort_grad_find_rule(const ort_node *node)
{
    if (*node->domain)
        return NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const ort_grad_rule *rule = families[i]; rule->op_type; rule++)
            if (!strcmp(rule->op_type, node->op_type))
                return rule;
    return NULL;
}

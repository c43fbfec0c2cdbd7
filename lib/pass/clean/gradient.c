/* gradient.c - Gradient nodes are no operators that run: see gradient/expansion.c. */
#include "gradient/gradient.h"
#include "pass/pass.h"

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_gradient_expand(c->graph, changes, err);
}

const ort_pass ort_pass_gradient = {
    .name = "gradient",
    .level = 0,
    .exact = true,
    .doc = "Gradient nodes become the nodes that compute them (always runs)",
    .apply = apply,
};

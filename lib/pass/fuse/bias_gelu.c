/* bias_gelu.c - a row added before Gelu becomes the operator's own bias.
 *
 *     Gelu(x + b)                   BiasGelu          both of com.microsoft, for float
 *     Gelu approximate=tanh(x + b)  FastGelu
 *
 * For files: in a session the sum and the Gelu are one ElementwiseChain, or go with the product
 * before them.
 */
#include "pass/facts/facts.h"
#include "pass/rewrite.h"

static const char *unless(const ort_pass_context *c, ort_match *m)
{
    const ort_type *x = ort_match_type(m, "x");
    const ort_tensor *b = ort_match_constant(m, "b");
    if (x->dtype != ORT_DTYPE_FLOAT || ort_type_rank(x) < 1)
        return "it isn't float of known rank";
    if (b->shape.rank != 1 || !ort_dim_is(x->dim[x->rank - 1], b->shape.dim[0]))
        return "what is added isn't one number for each of the last dimension";
    return NULL;
}

static const ort_rewrite rewrites[] = {
    {"(Gelu (x + #b) approximate=tanh)", "file? (ms.FastGelu x b)", unless},
    {"(Gelu|ms.Gelu (x + #b))", "file? (ms.BiasGelu x b)", unless},
    {"(ms.FastGelu (x + #b))", "file? (ms.FastGelu x b)", unless},
    {0},
};

const ort_pass ort_pass_bias_gelu = {
    .name = "bias_gelu",
    .level = 2,
    .doc = "a row added before Gelu becomes its bias",
    .rewrites = rewrites,
};

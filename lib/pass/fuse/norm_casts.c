/* norm_casts.c - a normalization in float, in the midst of a narrower type, becomes the operator of
 * that type: it computes its first stage in float by itself (stash_type 1), and rounds where the
 * casts did.
 *
 *     x:f16 -> Cast -> Norm (scale of ones) -> Cast -> * gamma:f16 [-> + beta:f16]
 */
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/rewrite.h"

static const char *unless(const ort_pass_context *c, ort_match *m)
{
    const ort_tensor *one = ort_match_constant(m, "one");
    ort_dtype dtype = ort_match_type(m, "x")->dtype;
    if (dtype != ORT_DTYPE_FLOAT16 && dtype != ORT_DTYPE_BFLOAT16)
        return "it isn't cast from a narrower type";
    if (ort_fact_type(c->graph, m->nodes[0]->outputs[0])->dtype != dtype)
        return "it isn't cast back to the same type";
    if (ort_node_attr_int(ort_match_node(m, "n"), "stash_type") != 1 ||
        !ort_constant_is_all(one, 1))
        return "it has a scale of its own";
    if (!ort_shape_equal(&ort_match_constant(m, "g")->shape, &one->shape) ||
        (ort_match_has(m, "b") &&
         !ort_shape_equal(&ort_match_constant(m, "b")->shape, &one->shape)))
        return "scale or bias isn't of the normalized axes";
    return NULL;
}

static const char *const forms[] = {
    "scaled(n): (Cast n) * #g + #b | (Cast n) * #g",
    NULL,
};

#define HALVES "x:2,3,8.f16 one=1:8 g:8.f16 b:8.f16 Cast.to=10 "

static const ort_rewrite rewrites[] = {
    {"@scaled(n:(LayerNormalization (Cast x to=1) #one))", "(LayerNormalization x g b &n)", unless,
     .example = HALVES "opset=17"},
    {"(Cast n:(RMSNormalization (Cast x to=1) #one)) * #g", "(RMSNormalization x g &n)", unless,
     .example = HALVES "opset=23"},
    {0},
};

const ort_pass ort_pass_norm_casts = {
    .name = "norm_casts",
    .level = 2,
    .doc = "a normalization in float between casts takes the narrower type",
    .rewrites = rewrites,
    .forms = forms,
};

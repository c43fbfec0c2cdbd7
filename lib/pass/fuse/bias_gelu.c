/* bias_gelu.c - a row added before Gelu becomes the operator's own bias.
 *
 *     Gelu(x + b)                   BiasGelu          both of com.microsoft, for float
 *     Gelu approximate=tanh(x + b)  FastGelu
 *
 * For files: in a session the sum and the Gelu are one ElementwiseChain, or go with the product
 * before them.
 */
#include <string.h>

#include "base/error.h"
#include "pass/pattern.h"

static const ort_pattern_form forms[] = {
    {"g:(Gelu|ms.Gelu (Add x #b))", 0},
    {"g:(ms.FastGelu (Add x #b))", 0},
};

static const char *check(const ort_pass_context *c, const ort_match *m)
{
    const ort_type *x = ort_match_type(m, c->graph, "x");
    const ort_tensor *b = ort_match_constant(m, c->graph, "b");
    if (x->kind != ORT_TYPE_TENSOR || x->dtype != ORT_DTYPE_FLOAT || x->rank < 1)
        return "it isn't float of known rank";
    ort_dim last = x->dim[x->rank - 1];
    if (b->shape.rank != 1 || !ort_dim_known(last) || last.size != b->shape.dim[0])
        return "what is added isn't one number for each of the last dimension";
    return NULL;
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    const ort_node *gelu = m->nodes[0];
    bool tanh = f != forms || !strcmp(ort_node_string(gelu, "approximate", "none"), "tanh");
    ort_id inputs[2] = {ort_match_value(m, "x"), ort_match_value(m, "b")};
    ort_node_spec spec = {.domain = MS, .op_type = tanh ? "FastGelu" : "BiasGelu",
                          .inputs = inputs, .input_count = 2};
    const char *why = check(c, m);
    if (why)
        ort_pass_note(c, gelu, "%s", why);
    if (why || !(spec.opset = ort_pass_opset(c, gelu, MS, spec.op_type, 1)))
        return ORT_OK;
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    if (!c->portable)
        return ORT_OK;
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_bias_gelu = {
    .name = "bias_gelu",
    .level = 2,
    .doc = "a row added before Gelu becomes its bias",
    .apply = apply,
};

/* norm_casts.c - a normalization in float, in the midst of a narrower type, becomes the operator of
 * that type: it computes its first stage in float by itself (stash_type 1), and rounds where the
 * casts did.
 *
 *     x:f16 -> Cast -> Norm (scale of ones) -> Cast -> * gamma:f16 [-> + beta:f16]
 */
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/pattern.h"

enum { BETA = 1 };

#define SCALED(op) "(Mul (Cast n:(" op " (Cast x to=1) #one)) #g)"

static const ort_pattern_form forms[] = {
    {"(Add " SCALED("LayerNormalization") " #b)", BETA},
    {SCALED("LayerNormalization|RMSNormalization"), 0},
};

static bool same_dims(const ort_tensor *a, const ort_tensor *b)
{
    if (a->shape.rank != b->shape.rank)
        return false;
    for (int d = 0; d < a->shape.rank; d++)
        if (a->shape.dim[d] != b->shape.dim[d])
            return false;
    return true;
}

static const char *check(const ort_pass_context *c, const ort_match *m, unsigned flags)
{
    const ort_graph *graph = c->graph;
    const ort_tensor *one = ort_match_constant(m, graph, "one");
    ort_dtype dtype = ort_match_type(m, graph, "x")->dtype;
    if (dtype != ORT_DTYPE_FLOAT16 && dtype != ORT_DTYPE_BFLOAT16)
        return "it isn't cast from a narrower type";
    if (graph->values.data[m->nodes[0]->outputs[0]]->fact.type.dtype != dtype)
        return "it isn't cast back to the same type";
    if (ort_node_int(ort_match_node(m, "n"), "stash_type", 1) != 1 ||
        !ort_constant_is_all(one, 1))
        return "it has a scale of its own";
    if (!same_dims(ort_match_constant(m, graph, "g"), one) ||
        (flags & BETA && !same_dims(ort_match_constant(m, graph, "b"), one)))
        return "scale or bias isn't of the normalized axes";
    return NULL;
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    const ort_node *norm = ort_match_node(m, "n");
    ort_id inputs[3] = {ort_match_value(m, "x"), ort_match_value(m, "g"),
                        f->flags & BETA ? ort_match_value(m, "b") : ORT_ID_NONE};
    const char *why = check(c, m, f->flags);
    if (why) {
        ort_pass_note(c, m->nodes[0], "%s", why);
        return ORT_OK;
    }
    ort_node_spec spec = {.domain = ONNX, .op_type = norm->op_type, .inputs = inputs,
                          .input_count = f->flags & BETA ? 3 : 2, .attrs = norm->attrs,
                          .attr_count = norm->attr_count, .opset = norm->opset};
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_norm_casts = {
    .name = "norm_casts",
    .level = 2,
    .doc = "a normalization in float between casts takes the narrower type",
    .apply = apply,
};

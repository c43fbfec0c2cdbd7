/* quotient.c - b times the reciprocal of a becomes b / a: one rounding less. After the fusions, and
 * not where a is a root: that is how exporters spell a normalization, which a later run with other
 * options (--contrib, --opset) may still make one node of.
 */
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/pattern.h"

enum { RECIPROCAL = 1 };

static const ort_pattern_form forms[] = {
    {"(Mul b (Div #one a))", 0},
    {"(Mul b (Reciprocal a))", RECIPROCAL},
};

/* A single 1 that doesn't make the quotient larger than what it divides. */
static bool is_one(const ort_pass_context *c, const ort_match *m)
{
    const ort_tensor *one = ort_match_constant(m, c->graph, "one");
    const ort_type *a = ort_match_type(m, c->graph, "a");
    return ort_tensor_count(one) == 1 && ort_constant_is_all(one, 1) &&
           a->kind == ORT_TYPE_TENSOR && a->rank >= one->shape.rank;
}

static bool is_root(const ort_pass_context *c, ort_id a)
{
    const ort_node *node = ort_edit_producer(c->graph, a);
    return ort_edit_is(node, ONNX, "Sqrt") || ort_edit_is(node, ONNX, "Pow");
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    const ort_type *a = ort_match_type(m, c->graph, "a");
    ort_id inputs[2] = {ort_match_value(m, "b"), ort_match_value(m, "a")};
    ort_node_spec spec = {.domain = ONNX, .op_type = "Div", .inputs = inputs, .input_count = 2};
    if (ort_dtype_get(a->dtype)->class_ != ORT_CLASS_FLOAT || m->nodes[0]->opset < 7 ||
        (!(f->flags & RECIPROCAL) && !is_one(c, m)) || is_root(c, inputs[1]))
        return ORT_OK;
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_quotient = {.name = "quotient",
                                    .level = 2,
                                    .doc = "a product with a reciprocal becomes a quotient",
                                    .apply = apply};

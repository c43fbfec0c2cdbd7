/* dynamic_quant.c - products of codes that are scaled to float become one operator.
 *
 *     Cast(MatMulInteger(a, b, za, zb)) * (sa * sb) [+ bias]    MatMulIntegerToFloat
 *     the same, a quantized by a DynamicQuantizeLinear that
 *     nothing else reads                                        DynamicQuantizeMatMul
 *
 * Both of com.microsoft, which scales and shifts in the same order, so results stay. sb is one
 * number or one per column, as is the bias.
 */
#include "base/error.h"
#include "pass/pattern.h"

#define PRODUCT(inputs, scale)                                                                     \
    "(Mul (Cast (MatMulInteger " inputs ") to=1) (Mul " scale " #sb))"

enum { BIASED = 1, ZEROED = 2 }; /* zb is given */

#define BOTH(inputs, flags)                                                                        \
    {"(Add " PRODUCT(inputs, "sa") " #bias)", BIASED | (flags)}, {PRODUCT(inputs, "sa"), flags}

static const ort_pattern_form forms[] = {BOTH("a #b za #zb", ZEROED), BOTH("a #b za", 0)};

/* One number, or one for each of the last dim of `of`. */
static bool is_row(const ort_tensor *t, const ort_tensor *of)
{
    return ort_tensor_count(t) == 1
               ? t->shape.rank <= 1
               : t->shape.rank == 1 && t->shape.dim[0] == of->shape.dim[of->shape.rank - 1];
}

static const char *check(const ort_pass_context *c, const ort_match *m, const ort_pattern_form *f)
{
    const ort_graph *graph = c->graph;
    const ort_tensor *b = ort_match_constant(m, graph, "b");
    const ort_type *sa = ort_match_type(m, graph, "sa");
    if (b->shape.rank != 2)
        return "the weights aren't a matrix";
    if (sa->kind != ORT_TYPE_TENSOR || sa->rank != 0 || sa->dtype != ORT_DTYPE_FLOAT)
        return "the scale of the left side isn't one float";
    if (!is_row(ort_match_constant(m, graph, "sb"), b) ||
        (f->flags & ZEROED && !is_row(ort_match_constant(m, graph, "zb"), b)))
        return "scales of the weights aren't one per column";
    if (f->flags & BIASED) {
        const ort_tensor *bias = ort_match_constant(m, graph, "bias");
        if (bias->shape.rank != 1 || bias->shape.dim[0] != b->shape.dim[1])
            return "the bias isn't one number per column";
    }
    return NULL;
}

static bool is_unread(const ort_graph *graph, const ort_node *node, int slot, int uses)
{
    const ort_graph_value *value = graph->values.data[node->outputs[slot]];
    return !value->is_output && value->use_count == uses;
}

/* The DynamicQuantizeLinear of a, sa and za, when all that read it goes; NULL. */
static ort_node *quantizer(const ort_pass_context *c, const ort_match *m)
{
    ort_node *node = ort_edit_producer(c->graph, ort_match_value(m, "a"));
    return ort_edit_is(node, ONNX, "DynamicQuantizeLinear") &&
                   node->outputs[0] == ort_match_value(m, "a") &&
                   node->outputs[1] == ort_match_value(m, "sa") &&
                   node->outputs[2] == ort_match_value(m, "za") &&
                   is_unread(c->graph, node, 0, 1) && is_unread(c->graph, node, 1, 1) &&
                   is_unread(c->graph, node, 2, 1)
               ? node
               : NULL;
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    const char *why = check(c, m, f);
    ort_node *dynamic = quantizer(c, m);
    const char *op_type = dynamic ? "DynamicQuantizeMatMul" : "MatMulIntegerToFloat";
    if (why)
        ort_pass_note(c, m->nodes[0], "%s", why);
    if (why || !ort_pass_opset(c, m->nodes[0], MS, op_type, 1))
        return ORT_OK;
    ort_id zb = f->flags & ZEROED ? ort_match_value(m, "zb") : ORT_ID_NONE;
    ort_id bias = f->flags & BIASED ? ort_match_value(m, "bias") : ORT_ID_NONE;
    ort_id b = ort_match_value(m, "b"), sb = ort_match_value(m, "sb");
    ort_id all[7] = {ort_match_value(m, "a"), b, ort_match_value(m, "sa"), sb,
                     ort_match_value(m, "za"), zb, bias};
    ort_id short_form[5] = {dynamic ? dynamic->inputs[0] : ORT_ID_NONE, b, sb, zb, bias};
    ort_node_spec spec = {.domain = MS, .op_type = op_type,
                          .inputs = dynamic ? short_form : all,
                          .input_count = dynamic ? 5 : 7};
    while (spec.inputs[spec.input_count - 1] == ORT_ID_NONE)
        spec.input_count--;
    ++*changes;
    ORT_TRY(ort_match_replace(c, m, &spec, err));
    if (dynamic)
        ort_graph_remove_node(c->graph, dynamic);
    return ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_dynamic_quant = {
    .name = "dynamic_quant",
    .level = 2,
    .doc = "MatMulInteger, its scale and bias become one node",
    .apply = apply,
};

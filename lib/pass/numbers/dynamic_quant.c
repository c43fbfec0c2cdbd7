/* dynamic_quant.c - products of codes that are scaled to float become one operator.
 *
 *     Cast(MatMulInteger(a, b, za, zb)) * (sa * sb) [+ bias]    MatMulIntegerToFloat
 *     the same, a quantized by a DynamicQuantizeLinear that
 *     nothing else reads                                        DynamicQuantizeMatMul
 *     Cast(MatMulInteger(a, b, za, zb)) * (sa * sb), where b
 *     and its scale, one number, are computed too               MatMulIntegerToFloat
 *     MatMulIntegerToFloat + bias                               with its bias
 *
 * Both of com.microsoft, which scales and shifts in the same order, so results stay. sb of constant
 * weights is one number or one per column, as is the bias.
 */
#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/rewrite.h"

/* One number, or one for each of the last dim of `of`. */
static bool is_row(const ort_tensor *t, const ort_tensor *of)
{
    return ort_tensor_count(t) == 1
               ? t->shape.rank <= 1
               : ort_tensor_is_row(t, of->shape.dim[of->shape.rank - 1]);
}

static const char *unless(const ort_pass_context *c, ort_match *m)
{
    const ort_tensor *b = ort_match_constant(m, "b");
    const ort_type *sa = ort_match_type(m, "sa");
    if (b->shape.rank != 2)
        return "the weights aren't a matrix";
    if (ort_type_rank(sa) != 0 || sa->dtype != ORT_DTYPE_FLOAT)
        return "the scale of the left side isn't one float";
    if (!is_row(ort_match_constant(m, "sb"), b) ||
        (ort_match_has(m, "zb") && !is_row(ort_match_constant(m, "zb"), b)))
        return "scales of the weights aren't one per column";
    return ort_match_has(m, "bias") &&
                   !ort_tensor_is_row(ort_match_constant(m, "bias"), b->shape.dim[1])
               ? "the bias isn't one number per column"
               : NULL;
}

/* Of attention, for example, whose keys and values are quantized as they come. */
static const char *unless_computed(const ort_pass_context *c, ort_match *m)
{
    const char *const numbers[] = {"sa", "sb", "za", "zb"};
    for (int i = 0; i < 4; i++)
        if (ort_type_rank(ort_match_type(m, numbers[i])) != 0)
            return "a scale or zero point isn't one number";
    return ort_match_type(m, "sa")->dtype != ORT_DTYPE_FLOAT ? "the scales aren't floats" : NULL;
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

static ort_status write(ort_pass_context *c, ort_match *m, int *changes, ort_error *err)
{
    const bool computed = !ort_match_constant(m, "b");
    ort_node *dynamic = computed ? NULL : quantizer(c, m);
    const char *op_type = dynamic ? "DynamicQuantizeMatMul" : "MatMulIntegerToFloat";
    if (!ort_pass_opset(c, m->nodes[0], MS, op_type, 1))
        return ORT_OK;
    ort_id zb = ort_match_value(m, "zb"), bias = ort_match_value(m, "bias");
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
    ORT_TRY(ort_match_replace(m, &spec, err));
    if (dynamic)
        ort_graph_remove_node(c->graph, dynamic);
    return ORT_OK;
}

static const char *unless_row(const ort_pass_context *c, ort_match *m)
{
    const ort_type *product = ort_match_type(m, "b");
    const ort_tensor *bias = ort_match_constant(m, "bias");
    int last = ort_type_rank(product) - 1;
    return last < 1 || !ort_dim_known(product->dim[last]) ||
                   !ort_tensor_is_row(bias, product->dim[last].size)
               ? "the bias isn't one number per column"
               : NULL;
}

static const char *const forms[] = {
    "shifted(n): n + #bias | n",
    "product(): (MatMulInteger a #b za #zb) | (MatMulInteger a #b za)",
    NULL,
};

static const ort_rewrite rewrites[] = {
    {"@shifted((Cast @product() to=1) * (sa * #sb))", .unless = unless, .write = write,
     .example = "a:2,4.u8 b:4,6.i8 za:.u8 zb:6.i8 sa: sb:6 bias:6 opset=17"},
    {"(Cast (MatMulInteger a b za zb) to=1) * (sa * sb)", .unless = unless_computed,
     .write = write, .example = "a:2,2,4.u8 b:2,4,6.i8 za:.u8 zb:.i8 sa: sb: opset=17"},
    {"(ms.MatMulIntegerToFloat a b sa sb za zb) + #bias",
     "(ms.MatMulIntegerToFloat a b sa sb za zb bias)", unless_row,
     .example = "a:2,3,4.u8 b:4,6.i8 za:.u8 zb:.i8 sa: sb: bias:6 opset=17"},
    {0},
};

const ort_pass ort_pass_dynamic_quant = {
    .name = "dynamic_quant",
    .level = 2,
    .doc = "MatMulInteger, its scale and bias become one node",
    .rewrites = rewrites,
    .forms = forms,
};

/* group_norm.c - GroupNormalization as PyTorch's exporter spells it, where the opset has it (21).
 *
 *     x [N,C,...] -> Reshape [N,G,-1] -> InstanceNormalization (scale 1, bias 0)
 *                 -> Reshape to x's shape -> * w [C,1,...] -> + b [C,1,...]
 *
 * w and b may be missing. In a file this pays in operators only: runtimes without a kernel of their
 * own expand the operator again.
 */
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/pattern.h"

enum { SCALED = 1, SHIFTED = 2 };

#define NORMAL                                                                                     \
    "(Reshape i:(InstanceNormalization r:(Reshape x _) #one #zero) _)"

static const ort_pattern_form forms[] = {
    {"(Add (Mul " NORMAL " #w) #b)", SCALED | SHIFTED},
    {"(Mul " NORMAL " #w)", SCALED},
    {NORMAL, 0},
};

/* One number for each channel of x, which broadcasts along them: [C,1,1] or [1,C,1,1]. */
static bool is_per_channel(const ort_tensor *t, const ort_type *x)
{
    int at = t->shape.rank - (x->rank - 1);
    if (at < 0 || t->shape.rank > x->rank || t->shape.dim[at] != x->dim[1].size)
        return false;
    return ort_tensor_count(t) == x->dim[1].size;
}

static const char *check(const ort_pass_context *c, const ort_match *m, unsigned flags)
{
    const ort_type *x = ort_match_type(m, c->graph, "x"), *r = ort_match_type(m, c->graph, "r");
    const ort_type *y = &c->graph->values.data[m->nodes[0]->outputs[0]]->fact.type;
    if (x->kind != ORT_TYPE_TENSOR || x->rank < 3 || !ort_dim_known(x->dim[1]))
        return "the channels aren't known";
    if (r->rank != 3 || !ort_dim_equal(r->dim[0], x->dim[0]) || !ort_dim_known(r->dim[1]) ||
        r->dim[1].size < 1 || x->dim[1].size % r->dim[1].size)
        return "it isn't reshaped to groups of channels";
    if (y->kind != ORT_TYPE_TENSOR || y->rank != x->rank)
        return "the result has another shape";
    for (int d = 0; d < x->rank; d++)
        if (!ort_dim_equal(x->dim[d], y->dim[d]))
            return "the result may have another shape";
    if (!ort_constant_is_all(ort_match_constant(m, c->graph, "one"), 1) ||
        !ort_constant_is_all(ort_match_constant(m, c->graph, "zero"), 0))
        return "groups have a scale or bias";
    if ((flags & SCALED && !is_per_channel(ort_match_constant(m, c->graph, "w"), x)) ||
        (flags & SHIFTED && !is_per_channel(ort_match_constant(m, c->graph, "b"), x)))
        return "scale or bias isn't one number per channel";
    return NULL;
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    const ort_type *x = ort_match_type(m, c->graph, "x"), *r = ort_match_type(m, c->graph, "r");
    ort_id inputs[3] = {ort_match_value(m, "x")};
    const char *why = check(c, m, f->flags);
    int opset = why ? 0 : ort_pass_opset(c, m->nodes[0], ONNX, "GroupNormalization", 21);
    if (why)
        ort_pass_note(c, m->nodes[0], "%s", why);
    if (!opset)
        return ORT_OK;
    const int64_t channels[1] = {x->dim[1].size};
    for (int i = 0; i < 2; i++) {
        bool given = f->flags & (i ? SHIFTED : SCALED);
        const ort_tensor *t = given ? ort_match_constant(m, c->graph, i ? "b" : "w") : NULL;
        ORT_TRY(given ? ort_constant_reshaped(c->graph, t, 1, channels, &inputs[1 + i], err)
                      : ort_constant_filled(c->graph, x->dtype, 1, channels, i ? 0 : 1,
                                            &inputs[1 + i], err));
    }
    const ort_node *instance = ort_match_node(m, "i");
    ort_attr set[2] = {
        {.name = "epsilon", .type = ORT_ATTR_FLOAT,
         .f = ort_node_float(instance, "epsilon", 1e-5f)},
        {.name = "num_groups", .type = ORT_ATTR_INT, .i = r->dim[1].size}};
    ort_node_spec spec = {.domain = ONNX, .op_type = "GroupNormalization", .inputs = inputs,
                          .input_count = 3, .set = set, .set_count = 2, .opset = opset};
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_group_norm = {
    .name = "group_norm",
    .level = 2,
    .doc = "InstanceNormalization of groups of channels becomes GroupNormalization",
    .apply = apply,
};

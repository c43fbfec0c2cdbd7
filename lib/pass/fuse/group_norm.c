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
#include "pass/facts/facts.h"
#include "pass/rewrite.h"

/* One number for each channel of x, which broadcasts along them: [C,1,1] or [1,C,1,1]. */
static bool is_per_channel(const ort_tensor *t, const ort_type *x)
{
    int at = t->shape.rank - (x->rank - 1);
    if (at < 0 || t->shape.rank > x->rank || t->shape.dim[at] != x->dim[1].size)
        return false;
    return ort_tensor_count(t) == x->dim[1].size;
}

static const char *unless(const ort_pass_context *c, ort_match *m)
{
    const ort_type *x = ort_match_type(m, "x"), *r = ort_match_type(m, "r");
    const ort_type *y = ort_fact_type(c->graph, m->nodes[0]->outputs[0]);
    if (ort_type_rank(x) < 3 || !ort_dim_known(x->dim[1]))
        return "the channels aren't known";
    if (r->rank != 3 || !ort_dim_equal(r->dim[0], x->dim[0]) || !ort_dim_known(r->dim[1]) ||
        r->dim[1].size < 1 || x->dim[1].size % r->dim[1].size)
        return "it isn't reshaped to groups of channels";
    if (ort_type_rank(y) != x->rank)
        return "the result has another shape";
    if (!ort_facts_same_shape(x, y))
        return "the result may have another shape";
    if (!ort_constant_is_all(ort_match_constant(m, "one"), 1) ||
        !ort_constant_is_all(ort_match_constant(m, "zero"), 0))
        return "groups have a scale or bias";
    if ((ort_match_has(m, "w") && !is_per_channel(ort_match_constant(m, "w"), x)) ||
        (ort_match_has(m, "b") && !is_per_channel(ort_match_constant(m, "b"), x)))
        return "scale or bias isn't one number per channel";
    ort_match_let(m, "groups", (double)r->dim[1].size);
    ort_match_let(m, "epsilon", (double)ort_node_attr_float(ort_match_node(m, "i"), "epsilon"));
    return NULL;
}

/* Scale and bias as one number for each channel; ones and zeros where there are none. */
static ort_status prepare(ort_pass_context *c, ort_match *m, ort_error *err)
{
    static const char *const names[] = {"w", "b"};
    const ort_type *x = ort_match_type(m, "x");
    const int64_t channels[1] = {x->dim[1].size};
    for (int i = 0; i < 2; i++) {
        const ort_tensor *t = ort_match_constant(m, names[i]);
        ort_id id;
        ORT_TRY(t ? ort_constant_reshaped(c->graph, t, 1, channels, &id, err)
                  : ort_constant_filled(c->graph, x->dtype, 1, channels, i ? 0 : 1, &id, err));
        ort_match_let_value(m, names[i], id);
    }
    return ORT_OK;
}

static const char *const forms[] = {
    "scaled(n): n * #w + #b | n * #w | n",
    NULL,
};

static const ort_rewrite rewrites[] = {
    {"@scaled((Reshape i:(InstanceNormalization r:(Reshape x p) #one #zero) q))",
     "(GroupNormalization@21 x w b epsilon=$epsilon num_groups=$groups)", unless, prepare,
     .example = "x:2,4,6 p=[0,2,-1] q=[2,4,6] one=1:2 zero=0:2 w:4,1 b:4,1 opset=21"},
    {0},
};

const ort_pass ort_pass_group_norm = {
    .name = "group_norm",
    .level = 2,
    .doc = "InstanceNormalization of groups of channels becomes GroupNormalization",
    .rewrites = rewrites,
    .forms = forms,
};

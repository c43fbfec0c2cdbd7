/* conv_sum.c - Conv and the Add of its result to a tensor of the same shape become one FusedConv
 * with input Z, together with the activation after the Add: residual networks write each sum once.
 * In a file that may hold com.microsoft operators, too: onnxruntime has Z, and is as fast with it.
 */
#include "pass/facts/facts.h"
#include "pass/fuse/activation.h"

/* A product of codes in a session: provider/cpu/coded_convs.c has it multiply bytes, which pays for
 * a sum by itself. */
static bool multiplies_codes(const ort_pass_context *c, ort_match *m)
{
    return !c->portable && ort_fact_is_coded(c->graph, ort_match_value(m, "x")) &&
           ort_fact_is_coded(c->graph, ort_match_value(m, "w"));
}

static const char *unless(const ort_pass_context *c, ort_match *m)
{
    const ort_type *n = ort_match_type(m, "n");
    if (ort_match_constant(m, "z") || ort_match_node(m, "s")->opset < 7 || multiplies_codes(c, m))
        return "";
    if (!ort_facts_same_type(n, ort_match_type(m, "z")) || n->rank < 3)
        return "what is added to the Conv isn't known to be float of its shape";
    return ort_fused_conv_unless(c, m);
}

static const char *const forms[] = {
    ORT_ACTIVATION_CLIP,
    "activated(y): @activation(y) | y",
    NULL,
};

static const ort_rewrite rewrites[] = {
    {"@activated(s:(Add n:(Conv x w b?) z))", ORT_FUSED_CONV("x w b z"), unless,
     ort_fused_conv_prepare,
     .example = "x:1,3,5,5 w#4,3,3,3 b#4 z:1,4,3,3 p=-0.5 q=0.5 opset=17"},
    {0},
};

const ort_pass ort_pass_conv_sum = {
    .name = "conv_sum",
    .level = 2,
    .doc = "Conv and the Add of a residual become one",
    .rewrites = rewrites,
    .forms = forms,
};

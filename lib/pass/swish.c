/* swish.c - x * sigmoid(alpha * x): Swish where the opset has it, else com.microsoft QuickGelu. */
#include "base/error.h"
#include "pass/pattern.h"

static const char *const patterns[] = {
    "(Mul x (Sigmoid (Mul x #a)))",
    "(Mul x (Sigmoid x))",
};

static ort_status fuse(ort_pass_context *c, const ort_match *m, float alpha, int *changes,
                       ort_error *err)
{
    const ort_node *root = m->nodes[0];
    ort_id x = ort_match_value(m, "x");
    bool is_float = ort_match_type(m, c->graph, "x")->dtype == ORT_DTYPE_FLOAT;
    ort_attr attr = {.name = "alpha", .type = ORT_ATTR_FLOAT, .f = alpha};
    ort_node_spec spec = {.domain = ONNX, .op_type = "Swish", .inputs = &x, .input_count = 1,
                          .set = &attr, .set_count = 1};
    if (c->portable && !c->contrib) {
        spec.opset = ort_pass_opset(c, root, ONNX, "Swish", 24);
    } else if (is_float) {
        spec.domain = MS;
        spec.op_type = "QuickGelu";
        spec.opset = ort_pass_opset(c, root, MS, "QuickGelu", 1);
    }
    if (!spec.opset)
        return ORT_OK;
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_pattern p[2];
    ort_match m;
    ort_node *node;
    ort_pattern_parse(&p[0], patterns[0]);
    ort_pattern_parse(&p[1], patterns[1]);
    ORT_EACH_NODE(c->graph, node)
    {
        if (ort_pattern_match(&p[1], c->graph, node, &m)) {
            ORT_TRY(fuse(c, &m, 1.0f, changes, err));
        } else if (ort_pattern_match(&p[0], c->graph, node, &m)) {
            const ort_tensor *alpha = ort_match_constant(&m, c->graph, "a");
            if (ort_tensor_count(alpha) == 1)
                ORT_TRY(fuse(c, &m, (float)ort_tensor_get_f64(alpha, 0), changes, err));
        }
    }
    return ORT_OK;
}

const ort_pass ort_pass_swish = {
    .name = "swish", .level = 2, .doc = "x * sigmoid(a x) becomes Swish or QuickGelu",
    .apply = apply};

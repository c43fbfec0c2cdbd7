/* norm_fusion.c - LayerNormalization and RMSNormalization spelled in elementwise operators.
 *
 *     d = x - mean(x);  d / sqrt(mean(d^2) + epsilon) * gamma [+ beta]
 *     x / sqrt(mean(x^2) + epsilon) * gamma
 *
 * The means must run over the last axes and keep them; gamma and beta are constants of exactly
 * those axes. LayerNormalization came with opset 17, RMSNormalization with 23.
 */
#include "base/error.h"
#include "pass/pattern.h"
#include "pass/skip_norm.h"

enum { RMS = 1, BETA = 2 };

#define SQUARE_POW "(Pow d 2)"
#define SQUARE_MUL "(Mul d d)"
#define CENTERED "d:(Sub x m:(ReduceMean x ...))"
#define STD(square) "(Sqrt (Add v:(ReduceMean " square " ...) #e))"
#define BY_DIV(square) "(Div " CENTERED " " STD(square) ")"
#define BY_MUL(square) "(Mul " CENTERED " (Reciprocal " STD(square) "))"
#define LAYER(normal)                                                                              \
    {"(Add (Mul " normal " #g) #b)", BETA}, {"(Mul " normal " #g)", 0}

/* x s + (beta - mean s), s = gamma / std: how some exporters batch the scale. */
#define SCALED(d)                                                                                  \
    "(Add (Mul x s:(Mul (Reciprocal (Sqrt (Add v:(ReduceMean (Mul " d " d) ...) #e))) #g)) "       \
    "(Sub #b (Mul m:(ReduceMean x ...) s)))"

#define RMS_STD(square) "(Sqrt (Add v:(ReduceMean " square " ...) #e))"
#define RMS_OF(square)                                                                             \
    {"(Mul (Mul d (Reciprocal " RMS_STD(square) ")) #g)", RMS},                                    \
        {"(Mul (Mul d (Div 1 " RMS_STD(square) ")) #g)", RMS},                                     \
        {"(Mul (Div d " RMS_STD(square) ") #g)", RMS}

static const ort_pattern_form forms[] = {
    LAYER(BY_DIV(SQUARE_POW)), LAYER(BY_DIV(SQUARE_MUL)),    LAYER(BY_MUL(SQUARE_POW)),
    LAYER(BY_MUL(SQUARE_MUL)), {SCALED("d:(Sub x m)"), BETA}, RMS_OF(SQUARE_POW),
    RMS_OF(SQUARE_MUL),
};

/* The number of last axes that a ReduceMean runs over, kept as ones; 0 when it is none of these. */
static int last_axes(const ort_graph *graph, const ort_node *mean)
{
    const ort_type *type = &graph->values.data[mean->inputs[0]]->fact.type;
    size_t count = 0;
    const int64_t *axes = ort_node_ints(mean, "axes", &count);
    const ort_tensor *given = ort_edit_constant(graph, mean, 1);
    bool last[ORT_MAX_RANK] = {false};
    int n = 0;
    if (!ort_node_int(mean, "keepdims", 1) || type->kind != ORT_TYPE_TENSOR || type->rank <= 0)
        return 0;
    if (given)
        count = (size_t)ort_tensor_count(given);
    if (count == 0 || count > (size_t)type->rank)
        return 0;
    for (size_t i = 0; i < count; i++) {
        int64_t axis = given ? ort_tensor_get_i64(given, (int64_t)i) : axes[i];
        axis += axis < 0 ? type->rank : 0;
        if (axis < 0 || axis >= type->rank || last[axis])
            return 0;
        last[axis] = true;
    }
    while (n < (int)count && last[type->rank - 1 - n])
        n++;
    return n == (int)count ? n : 0;
}

/* A constant of exactly the last `count` dims of x. */
static bool spans(const ort_tensor *t, const ort_type *x, int count)
{
    int skip = t->shape.rank - count;
    for (int d = 0; d < skip; d++)
        if (t->shape.dim[d] != 1)
            return false;
    for (int d = 0; d < count && skip >= 0; d++) {
        ort_dim dim = x->dim[x->rank - count + d];
        if (!ort_dim_known(dim) || dim.size != t->shape.dim[skip + d])
            return false;
    }
    return skip == 0;
}

static const char *check(const ort_pass_context *c, const ort_match *m,
                         const ort_pattern_form *f, int *axes)
{
    const ort_graph *graph = c->graph;
    const ort_type *x = ort_match_type(m, graph, f->flags & RMS ? "d" : "x");
    const ort_tensor *epsilon = ort_match_constant(m, graph, "e");
    *axes = last_axes(graph, ort_match_node(m, "v"));
    if (!*axes || (!(f->flags & RMS) && last_axes(graph, ort_match_node(m, "m")) != *axes))
        return "a mean isn't over the last axes";
    if (ort_tensor_count(epsilon) != 1)
        return "epsilon isn't one number";
    if (!spans(ort_match_constant(m, graph, "g"), x, *axes) ||
        (f->flags & BETA && !spans(ort_match_constant(m, graph, "b"), x, *axes)))
        return "scale or bias isn't of the normalized axes";
    return NULL;
}

/* The opset hasn't the operator, but com.microsoft has one that takes a sum in. */
static ort_status fuse_sum(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                           const ort_id inputs[3], float epsilon, int *changes, ort_error *err)
{
    ort_skip_norm norm = {.sum = inputs[0], .gamma = inputs[1], .beta = inputs[2],
                          .epsilon = epsilon, .rms = f->flags & RMS};
    ort_node *add = ort_skip_norm_add(c, m->nodes[0], &norm);
    if (!add)
        return ORT_OK;
    ort_id output = m->nodes[0]->outputs[0];
    const char *origin = ort_match_remove(c, m);
    if (!origin)
        return ort_error_memory(err, 64);
    ++*changes;
    return ort_skip_norm_write(c, m->nodes[0], add, &norm, output, origin, err);
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    int axes;
    const char *op_type = f->flags & RMS ? "RMSNormalization" : "LayerNormalization";
    const char *why = check(c, m, f, &axes);
    if (why) {
        ort_pass_note(c, m->nodes[0], "%s", why);
        return ORT_OK;
    }
    ort_id inputs[3] = {ort_match_value(m, f->flags & RMS ? "d" : "x"), ort_match_value(m, "g"),
                        f->flags & BETA ? ort_match_value(m, "b") : ORT_ID_NONE};
    ort_attr set[2] = {
        {.name = "axis", .type = ORT_ATTR_INT, .i = -axes},
        {.name = "epsilon", .type = ORT_ATTR_FLOAT,
         .f = (float)ort_tensor_get_f64(ort_match_constant(m, c->graph, "e"), 0)}};
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .inputs = inputs,
                          .input_count = f->flags & BETA ? 3 : 2, .set = set, .set_count = 2};
    spec.opset = ort_pass_opset(c, m->nodes[0], ONNX, op_type, f->flags & RMS ? 23 : 17);
    if (!spec.opset)
        return axes == 1 ? fuse_sum(c, m, f, inputs, set[1].f, changes, err) : ORT_OK;
    ++*changes;
    return ort_match_replace(c, m, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_layer_norm = {
    .name = "layer_norm",
    .level = 2,
    .doc = "LayerNormalization and RMSNormalization spelled out become one node",
    .apply = apply,
};

/* layer_norm_form.c - LayerNormalization, RMSNormalization and InstanceNormalization spelled in
 * elementwise operators.
 *
 *     d = x - mean(x);  d / sqrt(mean(d^2) + epsilon) [* gamma] [+ beta]
 *     x / sqrt(mean(x^2) + epsilon) [* gamma]
 *
 * The means must run over the last axes and keep them; gamma and beta are constants of exactly
 * those axes, and gamma is one of ones when there is none. Means over all axes but batch and
 * channels, with constants of the channels, are InstanceNormalization. LayerNormalization came with
 * opset 17, RMSNormalization with 23.
 */
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/fuse/embed_norm_form.h"
#include "pass/pattern.h"
#include "tensor/scalar.h"

enum { RMS = 1, SCALE = 2, BETA = 4 };

#define SQUARE_POW "(Pow d 2)"
#define SQUARE_MUL "(Mul d d)"
#define CENTERED "d:(Sub x m:(ReduceMean x ...))"
#define SUM(square) "(Add v:(ReduceMean " square " ...) #e)"
#define STD(square) "(Sqrt " SUM(square) ")"
#define BY_DIV(d, square) "(Div " d " " STD(square) ")"
#define BY_MUL(d, square) "(Mul " d " (Reciprocal " STD(square) "))"
#define BY_ONE(d, square) "(Mul " d " (Div 1 " STD(square) "))"
#define BY_POW(d, square) "(Mul " d " (Pow " SUM(square) " -0.5))"

#define LAYER(normal)                                                                              \
    {"(Add (Mul " normal " #g) #b)", SCALE | BETA}, {"(Mul " normal " #g)", SCALE}, {normal, 0}
#define ROOT(normal) {"(Mul " normal " #g)", RMS | SCALE}, {normal, RMS}
#define EACH(form, by, d) form(by(d, SQUARE_POW)), form(by(d, SQUARE_MUL))

/* x s + (beta - mean s), s = gamma / std: how some exporters batch the scale. */
#define BATCHED(d)                                                                                 \
    "(Add (Mul x s:(Mul (Reciprocal (Sqrt (Add v:(ReduceMean (Mul " d " d) ...) #e))) #g)) "       \
    "(Sub #b (Mul m:(ReduceMean x ...) s)))"

static const ort_pattern_form forms[] = {
    EACH(LAYER, BY_DIV, CENTERED), EACH(LAYER, BY_MUL, CENTERED),
    EACH(LAYER, BY_ONE, CENTERED), EACH(LAYER, BY_POW, CENTERED),
    {BATCHED("d:(Sub x m)"), SCALE | BETA},
    EACH(ROOT, BY_DIV, "d"),       EACH(ROOT, BY_MUL, "d"),
    EACH(ROOT, BY_ONE, "d"),       EACH(ROOT, BY_POW, "d"),
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
    if (ort_node_int(mean, "keepdims", 1) != 1 || type->kind != ORT_TYPE_TENSOR || type->rank <= 0)
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

/* A constant of the last `count` dims of x, with leading ones or without. */
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
    return skip >= 0 && t->shape.rank <= x->rank;
}

typedef struct norm {
    const ort_type *x;
    const ort_tensor *gamma, *beta; /* or NULL */
    float epsilon;
    int axes; /* how many last ones */
    bool rms, instance;
} norm;

/* The constants run along axis 1 of x, or (instance false) along the normalized axes. */
static bool suits(const norm *n, const ort_tensor *t, bool instance)
{
    if (!t || !instance)
        return !t || spans(t, n->x, n->axes);
    ort_dim channels = n->x->dim[1];
    int at = t->shape.rank - (n->x->rank - 1);
    return ort_dim_known(channels) && (at == 0 || at == 1) && t->shape.dim[at] == channels.size &&
           ort_tensor_count(t) == channels.size;
}

#define ONES_MAX 4096 /* elements of a scale that the model hasn't */

/* Can a scale of ones be made? */
static bool is_sized(const norm *n)
{
    int64_t count = 1;
    for (int d = n->instance ? 1 : n->x->rank - n->axes;
         d < (n->instance ? 2 : n->x->rank) && count >= 0 && count <= ONES_MAX; d++)
        count = ort_dim_known(n->x->dim[d]) ? count * n->x->dim[d].size : -1;
    return count >= 0 && count <= ONES_MAX;
}

static const char *check(const ort_pass_context *c, const ort_match *m, unsigned flags, norm *n)
{
    const ort_graph *graph = c->graph;
    const ort_tensor *epsilon = ort_match_constant(m, graph, "e");
    *n = (norm){.x = ort_match_type(m, graph, flags & RMS ? "d" : "x"),
                .gamma = flags & SCALE ? ort_match_constant(m, graph, "g") : NULL,
                .beta = flags & BETA ? ort_match_constant(m, graph, "b") : NULL,
                .rms = flags & RMS,
                .axes = last_axes(graph, ort_match_node(m, "v"))};
    if (!n->axes || (!n->rms && last_axes(graph, ort_match_node(m, "m")) != n->axes))
        return "a mean isn't over the last axes";
    double small;
    if (!ort_tensor_one_f64(epsilon, &small))
        return "epsilon isn't one number";
    n->epsilon = (float)small;
    bool spatial = !n->rms && n->x->rank >= 3 && n->axes == n->x->rank - 2;
    n->instance = spatial && (n->gamma || n->axes > 1) && suits(n, n->gamma, true) &&
                  suits(n, n->beta, true);
    if (!n->instance && (!suits(n, n->gamma, false) || !suits(n, n->beta, false)))
        return "scale or bias isn't of the normalized axes";
    if (!n->gamma && !is_sized(n))
        return "without a scale the normalized dims must be known, and small";
    return NULL;
}

/* The constant itself where it has the operator's shape, else a copy; of `number` without one. */
static ort_status constant_of(ort_pass_context *c, const norm *n, const ort_tensor *t, ort_id old,
                              double number, ort_id *id, ort_error *err)
{
    int64_t dims[ORT_MAX_RANK];
    int rank = n->instance ? 1 : n->axes;
    for (int d = 0; d < rank; d++)
        dims[d] = n->x->dim[n->instance ? 1 : n->x->rank - rank + d].size;
    *id = old;
    if (t && t->shape.rank == rank)
        return ORT_OK;
    return t ? ort_constant_reshaped(c->graph, t, rank, dims, id, err)
             : ort_constant_filled(c->graph, n->x->dtype, rank, dims, number, id, err);
}

/* The opset hasn't the operator, but com.microsoft has one that takes a sum in. */
static ort_status fuse_sum(ort_pass_context *c, const ort_match *m, const norm *n, int *changes,
                           ort_error *err)
{
    ort_skip_norm skip = {.sum = ort_match_value(m, n->rms ? "d" : "x"),
                          .gamma = n->gamma ? ort_match_value(m, "g") : ORT_ID_NONE,
                          .beta = n->beta ? ort_match_value(m, "b") : ORT_ID_NONE,
                          .epsilon = n->epsilon, .rms = n->rms};
    ort_embedding e;
    bool embeds = n->axes == 1 && ort_embed_norm_read(c, m->nodes[0], &skip, &e);
    ort_node *add = n->axes == 1 && !embeds ? ort_skip_norm_add(c, m->nodes[0], &skip) : NULL;
    if (!add && !embeds)
        return ORT_OK;
    ORT_TRY(constant_of(c, n, n->gamma, skip.gamma, 1, &skip.gamma, err));
    ort_id output = m->nodes[0]->outputs[0];
    const char *origin = ort_match_remove(c, m);
    if (!origin)
        return ort_error_memory(err, 64);
    ++*changes;
    return embeds ? ort_embed_norm_write(c, m->nodes[0], &e, &skip, output, origin, err)
                  : ort_skip_norm_write(c, m->nodes[0], add, &skip, output, origin, err);
}

static ort_status write(ort_pass_context *c, const ort_match *m, const norm *n, int opset,
                        const char *op_type, ort_error *err)
{
    ort_id inputs[3] = {ort_match_value(m, n->rms ? "d" : "x")};
    bool shifted = n->beta || n->instance;
    ORT_TRY(constant_of(c, n, n->gamma, n->gamma ? ort_match_value(m, "g") : ORT_ID_NONE, 1,
                        &inputs[1], err));
    if (shifted)
        ORT_TRY(constant_of(c, n, n->beta, n->beta ? ort_match_value(m, "b") : ORT_ID_NONE, 0,
                            &inputs[2], err));
    ort_attr set[2] = {{.name = "epsilon", .type = ORT_ATTR_FLOAT, .f = n->epsilon},
                       {.name = "axis", .type = ORT_ATTR_INT, .i = -n->axes}};
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .inputs = inputs,
                          .input_count = shifted ? 3 : 2, .set = set,
                          .set_count = n->instance ? 1 : 2, .opset = opset};
    return ort_match_replace(c, m, &spec, err);
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    norm n;
    const char *why = check(c, m, f->flags, &n);
    const char *op_type = n.instance ? "InstanceNormalization"
                          : n.rms    ? "RMSNormalization"
                                     : "LayerNormalization";
    if (why) {
        ort_pass_note(c, m->nodes[0], "%s", why);
        return ORT_OK;
    }
    int opset = ort_pass_opset(c, m->nodes[0], ONNX, op_type, n.instance ? 6 : n.rms ? 23 : 17);
    if (!opset)
        return fuse_sum(c, m, &n, changes, err);
    ++*changes;
    return write(c, m, &n, opset, op_type, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_layer_norm_form = {
    .name = "layer_norm_form",
    .level = 2,
    .doc = "Layer-, RMS- and InstanceNormalization spelled out become one node",
    .apply = apply,
};

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
#include "pass/facts/facts.h"
#include "pass/fuse/embed_norm_form.h"
#include "pass/rewrite.h"

/* The number of last axes that a ReduceMean runs over, kept as ones; 0 when it is none of these. */
static int last_axes(const ort_graph *graph, const ort_node *mean)
{
    int rank = ort_type_rank(ort_fact_type(graph, mean->inputs[0])), n = 0;
    unsigned kept = rank > 0 ? ort_fact_kept_axes(graph, mean, rank) : 0;
    while (n < rank && kept >> (rank - 1 - n) & 1)
        n++;
    return kept && kept == ((1u << n) - 1) << (rank - n) ? n : 0;
}

/* A constant of the last `count` dims of x, with leading ones or without. */
static bool spans(const ort_tensor *t, const ort_type *x, int count)
{
    int skip = t->shape.rank - count;
    for (int d = 0; d < skip; d++)
        if (t->shape.dim[d] != 1)
            return false;
    for (int d = 0; d < count && skip >= 0; d++) {
        if (!ort_dim_is(x->dim[x->rank - count + d], t->shape.dim[skip + d]))
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
    int at = t->shape.rank - (n->x->rank - 1);
    return (at == 0 || at == 1) && ort_dim_is(n->x->dim[1], t->shape.dim[at]) &&
           ort_tensor_count(t) == t->shape.dim[at];
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

static const char *check(const ort_pass_context *c, const ort_match *m, norm *n)
{
    const ort_graph *graph = c->graph;
    bool rms = !ort_match_has(m, "m");
    *n = (norm){.x = ort_match_type(m, rms ? "d" : "x"),
                .gamma = ort_match_constant(m, "g"),
                .beta = ort_match_constant(m, "b"),
                .epsilon = (float)ort_match_number(m, "e"),
                .rms = rms,
                .axes = last_axes(graph, ort_match_node(m, "v"))};
    if (!n->axes || (!n->rms && last_axes(graph, ort_match_node(m, "m")) != n->axes))
        return "a mean isn't over the last axes";
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
static ort_status fuse_sum(ort_pass_context *c, ort_match *m, const norm *n, int *changes,
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
    const char *origin = ort_match_remove(m);
    if (!origin)
        return ort_error_memory(err, 64);
    ++*changes;
    return embeds ? ort_embed_norm_write(c, m->nodes[0], &e, &skip, output, origin, err)
                  : ort_skip_norm_write(c, m->nodes[0], add, &skip, output, origin, err);
}

static ort_status write_norm(ort_pass_context *c, ort_match *m, const norm *n, int opset,
                             const char *op_type, ort_error *err)
{
    ort_id inputs[3] = {ort_match_value(m, n->rms ? "d" : "x")};
    bool shifted = n->beta || n->instance;
    ORT_TRY(constant_of(c, n, n->gamma, n->gamma ? ort_match_value(m, "g") : ORT_ID_NONE, 1,
                        &inputs[1], err));
    if (shifted)
        ORT_TRY(constant_of(c, n, n->beta, n->beta ? ort_match_value(m, "b") : ORT_ID_NONE, 0,
                            &inputs[2], err));
    ort_attr set[2] = {ort_attr_float("epsilon", (double)n->epsilon),
                       ort_attr_int("axis", -n->axes)};
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .inputs = inputs,
                          .input_count = shifted ? 3 : 2, .set = set,
                          .set_count = n->instance ? 1 : 2, .opset = opset};
    return ort_match_replace(m, &spec, err);
}

static ort_status write(ort_pass_context *c, ort_match *m, int *changes, ort_error *err)
{
    norm n;
    const char *why = check(c, m, &n);
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
    return write_norm(c, m, &n, opset, op_type, err);
}

static const char *const forms[] = {
    "square(d): (Pow d 2) | d * d",
    "variance(d): v:(ReduceMean @square(d) ...) + $e",
    "normal(d): d / (Sqrt @variance(d)) | d * (Reciprocal (Sqrt @variance(d)))"
    " | d * (1 / (Sqrt @variance(d))) | d * (Pow @variance(d) -0.5)",
    "moved(n): n * #g + #b | n * #g | n",
    "scaled(n): n * #g | n",
    /* x s + (beta - mean s), s = gamma / std: how some exporters batch the scale */
    "scale(d): s:((Reciprocal (Sqrt (v:(ReduceMean (d * d) ...) + $e))) * #g)",
    NULL,
};

#define LAST_OF(x) x ":2,3,8 g:8 b:8 e=0.001 ReduceMean.axes=-1, opset=17"

static const ort_rewrite rewrites[] = {
    {"@moved(@normal(d:(x - m:(ReduceMean x ...))))", .write = write, .example = LAST_OF("x")},
    {"x * @scale(d:(x - m)) + (#b - m:(ReduceMean x ...) * s)", .write = write,
     .example = LAST_OF("x")},
    {"@scaled(@normal(d))", .write = write, .example = LAST_OF("d")},
    {0},
};

const ort_pass ort_pass_layer_norm_form = {
    .name = "layer_norm_form",
    .level = 2,
    .doc = "Layer-, RMS- and InstanceNormalization spelled out become one node",
    .rewrites = rewrites,
    .forms = forms,
};

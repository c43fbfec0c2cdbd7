/* folded_transpose.c - a Transpose between two Reshapes, of which the first folds several
 * dimensions into one and the second unfolds them, becomes a Transpose of the unfolded value.
 *
 *     Reshape [B,H,T,D] to [B*H,T,D], Transpose 0,2,1, Reshape to [B,H,D,T]
 *     becomes  Transpose 0,1,3,2
 *
 * Exporters write this to turn keys for a product that allows three dimensions. The folded
 * dimension must be a run of neighbouring ones, and every other one must stay; facts tell which are
 * which, so that it doesn't matter how a shape was computed. The nodes that computed the shapes go,
 * too. A value with a leading 1, [1,B,H,T,D], is squeezed first.
 */
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"

typedef struct fold {
    int axis;  /* of the folded shape, which stands for */
    int count; /* dimensions of the unfolded one */
} fold;

/* Is dimension `axis` of `narrow` a run of two or more of `wide`? All others are equal. Where a
 * size is 1 or comes twice, it may be so of several. */
static bool read_fold(const ort_type *wide, const ort_type *narrow, int axis, fold *f)
{
    if (ort_type_rank(narrow) < 2 || ort_type_rank(wide) <= narrow->rank)
        return false;
    int more = wide->rank - narrow->rank;
    *f = (fold){axis, more + 1};
    for (int d = 0; d < narrow->rank; d++)
        if (d != axis && !ort_dim_equal(wide->dim[d < axis ? d : d + more], narrow->dim[d]))
            return false;
    return true;
}

/* The transposition of the unfolded dimensions; false: `out` doesn't unfold them as they were. */
static bool read_unfolded(const ort_type *in, const fold *f, const int64_t *perm, int rank,
                          const ort_type *out, int64_t wide_perm[ORT_MAX_RANK])
{
    int n = 0;
    if (out->kind != ORT_TYPE_TENSOR || out->rank != in->rank)
        return false;
    for (int i = 0; i < rank; i++) {
        int64_t from = perm[i] > f->axis ? perm[i] + f->count - 1 : perm[i];
        for (int k = 0; k < (perm[i] == f->axis ? f->count : 1); k++)
            wide_perm[n++] = from + k;
    }
    for (int d = 0; d < out->rank; d++)
        if (!ort_dim_equal(out->dim[d], in->dim[wide_perm[d]]))
            return false;
    return true;
}

/* The same without a first dimension of 1, which the result doesn't have either; or unchanged. */
static ort_type bare_of(const ort_type *in, const ort_type *out)
{
    ort_type bare = *in;
    if (ort_type_rank(in) < 2 || out->rank != in->rank - 1 || !ort_dim_is(in->dim[0], 1))
        return bare;
    bare.rank--;
    for (int d = 0; d < bare.rank; d++)
        bare.dim[d] = in->dim[d + 1];
    return bare;
}

static ort_status squeeze_first(ort_pass_context *c, ort_id *id, ort_error *err)
{
    const int64_t zero = 0;
    ort_id inputs[2] = {*id};
    ort_attr axes = ort_attr_ints("axes", &zero, 1);
    bool listed = ort_model_opset(c->graph->model, ONNX) >= 13;
    if (listed)
        ORT_TRY(ort_constant_list(c->graph, &zero, 1, &inputs[1], err));
    return ort_edit_add_result(c->graph, "Squeeze", inputs, listed ? 2 : 1, &axes,
                               listed ? 0 : 1, id, err);
}

/* The transposition of `in` that folding to `narrow`, `perm` and unfolding to `out` is. */
static bool read_turn(const ort_type *in, const ort_type *narrow, const int64_t *perm,
                      const ort_type *out, int64_t wide_perm[ORT_MAX_RANK])
{
    fold f;
    for (int axis = 0; axis < narrow->rank; axis++)
        if (read_fold(in, narrow, axis, &f) &&
            read_unfolded(in, &f, perm, narrow->rank, out, wide_perm))
            return true;
    return false;
}

static ort_status unfold(ort_pass_context *c, ort_node *reshape, ort_node *transpose, int *changes,
                         ort_error *err)
{
    ort_node *first = ort_edit_producer(c->graph, transpose->inputs[0]);
    size_t count;
    const int64_t *perm = ort_node_ints(transpose, "perm", &count);
    int64_t wide_perm[ORT_MAX_RANK];
    if (!ort_edit_is(first, ONNX, "Reshape") || !perm)
        return ORT_OK;
    const ort_type *given = ort_fact_type(c->graph, first->inputs[0]);
    const ort_type *narrow = ort_fact_type(c->graph, first->outputs[0]);
    const ort_type *out = ort_fact_type(c->graph, reshape->outputs[0]);
    const ort_type bare = bare_of(given, out), *in = &bare;
    if (narrow->rank != (int)count ||
        !read_turn(in, narrow, perm, out, wide_perm)) {
        if (in->rank > narrow->rank && in->rank == out->rank)
            ort_pass_note(c, reshape, "dimensions aren't known to be unfolded as they were folded");
        return ORT_OK;
    }
    ort_attr set = ort_attr_ints("perm", wide_perm, in->rank);
    ort_id input = first->inputs[0];
    if (in->rank < given->rank)
        ORT_TRY(squeeze_first(c, &input, err));
    ort_node_spec spec = {.op_type = "Transpose", .inputs = &input, .input_count = 1,
                          .set = &set, .set_count = 1};
    ++*changes;
    return ort_edit_replace(c->graph, transpose, reshape, &spec, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        if (!ort_edit_is(node, ONNX, "Reshape"))
            continue;
        ort_node *transpose = ort_edit_producer(c->graph, node->inputs[0]);
        if (ort_edit_is(transpose, ONNX, "Transpose") &&
            ort_edit_only_reader(c->graph, transpose->outputs[0]) == node)
            ORT_TRY(unfold(c, node, transpose, changes, err));
    }
    return ORT_OK;
}

const ort_pass ort_pass_folded_transpose = {
    .name = "folded_transpose",
    .level = 1,
    .exact = true,
    .doc = "Reshape, Transpose, Reshape back is one Transpose",
    .apply = apply,
};

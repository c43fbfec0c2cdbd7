/* attention_around.c - what stands around the products of an attention and the operator takes in:
 *
 *     heads      Reshape [B,S,H,D], Transpose 0,2,1,3; and back around the result
 *     packed     Reshape [B,S,3,H,D], Transpose 2,0,3,1,4, Split, Slice or Gather along axis 0
 *     groups     [B,G,1,T,D], Expand [B,G,n,T,D], Reshape [B,G*n,T,D]
 *     cache      Concat of past and new rows along T, the whole being a result of the graph
 *
 * Shapes are compared as facts, so that how a shape was computed doesn't matter.
 */
#include "graph/uses.h"
#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/slice_cut.h"
#include "tensor/scalar.h"

static const int64_t heads_first[4] = {0, 2, 1, 3};

static const ort_type *type_of(const ort_graph *graph, ort_id id)
{
    return &graph->values.data[id]->fact.type;
}

/* ---- groups */

/* b is a, or a with a 1 put in at `at`. */
static bool same_but(const ort_type *a, const ort_type *b, int at)
{
    if (b->rank != a->rank + 1 || !ort_dim_known(b->dim[at]) || b->dim[at].size != 1)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (!ort_dim_equal(a->dim[d], b->dim[d < at ? d : d + 1]))
            return false;
    return true;
}

/* What was repeated so that this [B,G*n,T,D] came out: [B,G,T,D], or [B,G,1,T,D] where that was
 * made of something else; or ORT_ID_NONE. */
static ort_id unrepeated(const ort_graph *graph, ort_id id, ort_attention *a)
{
    ort_node *reshape = ort_edit_producer(graph, id);
    if (!ort_edit_is(reshape, ONNX, "Reshape") || !ort_attention_ranked(graph, id, 4))
        return ORT_ID_NONE;
    ort_node *expand = ort_edit_producer(graph, reshape->inputs[0]);
    if (!ort_edit_is(expand, ONNX, "Expand") && !ort_edit_is(expand, ONNX, "Tile"))
        return ORT_ID_NONE;
    const ort_type *all = type_of(graph, id), *wide = type_of(graph, expand->outputs[0]);
    const ort_type *one = type_of(graph, expand->inputs[0]);
    if (wide->rank != 5 || one->rank != 5 || !ort_dim_known(one->dim[2]) ||
        one->dim[2].size != 1 || !ort_dim_known(one->dim[1]) || !ort_dim_known(all->dim[1]))
        return ORT_ID_NONE;
    for (int d = 0; d < 5; d++)
        if (d != 2 && (!ort_dim_equal(one->dim[d], wide->dim[d]) ||
                       (d != 1 && !ort_dim_equal(one->dim[d], all->dim[d ? d - 1 : 0]))))
            return ORT_ID_NONE;
    ort_attention_drop(a, reshape);
    ort_attention_drop(a, expand);
    ort_node *unsqueeze = ort_edit_producer(graph, expand->inputs[0]);
    if ((ort_edit_is(unsqueeze, ONNX, "Unsqueeze") || ort_edit_is(unsqueeze, ONNX, "Reshape")) &&
        ort_attention_ranked(graph, unsqueeze->inputs[0], 4) &&
        same_but(type_of(graph, unsqueeze->inputs[0]), one, 2)) {
        ort_attention_drop(a, unsqueeze);
        return unsqueeze->inputs[0];
    }
    return expand->inputs[0];
}

bool ort_attention_ungroup(const ort_pass_context *c, ort_attention *a)
{
    ort_attention before = *a;
    if (a->k_is_rows || a->q_heads || a->shared)
        return a->shared && !a->k_is_rows && !a->q_heads;
    ort_id k = unrepeated(c->graph, a->k, a), v = unrepeated(c->graph, a->v, a);
    if (k == ORT_ID_NONE || v == ORT_ID_NONE ||
        !ort_dim_equal(type_of(c->graph, k)->dim[1], type_of(c->graph, v)->dim[1])) {
        *a = before;
        return false;
    }
    a->k = k;
    a->v = v;
    return true;
}

/* ---- cache */

static bool is_among(ort_node *const *list, int count, const ort_node *node)
{
    for (int i = 0; i < count; i++)
        if (list[i] == node)
            return true;
    return false;
}

/* Does this node certainly go? One around does when only what goes reads it; readers come first in
 * the list. What stays would hang on the operator's result, and a mask on that. */
static bool goes(const ort_graph *graph, const ort_attention *a, const ort_node *node)
{
    bool gone[ORT_ATTENTION_AROUND] = {false};
    if (is_among(a->core, a->core_count, node))
        return true;
    for (int i = 0; i < a->around_count; i++) {
        gone[i] = !a->around[i]->removed;
        for (int o = 0; gone[i] && o < a->around[i]->output_count; o++) {
            ort_readers readers = ort_readers_of(graph, a->around[i]->outputs[o]);
            const ort_node *reader;
            gone[i] = !graph->values.data[a->around[i]->outputs[o]]->is_output;
            while (gone[i] && (reader = ort_readers_next(&readers))) {
                bool first = is_among(a->core, a->core_count, reader);
                for (int k = 0; k < i && !first; k++)
                    first = gone[k] && a->around[k] == reader;
                gone[i] = first;
            }
        }
        if (a->around[i] == node)
            return gone[i];
    }
    return false;
}

/* The Concat of past and new rows that only what goes reads, and maybe the caller. */
static ort_node *appended(const ort_graph *graph, ort_id id, const ort_attention *a)
{
    ort_node *concat = ort_edit_producer(graph, id);
    if (!ort_edit_is(concat, ONNX, "Concat") || concat->input_count != 2 ||
        !ort_attention_ranked(graph, concat->inputs[0], 4) ||
        !ort_attention_ranked(graph, concat->inputs[1], 4))
        return NULL;
    int64_t axis = ort_node_int(concat, "axis", 0);
    if (axis != 2 && axis != -2)
        return NULL;
    ort_readers readers = ort_readers_of(graph, id);
    const ort_node *reader;
    while ((reader = ort_readers_next(&readers)))
        if (!goes(graph, a, reader))
            return NULL;
    return concat;
}

bool ort_attention_uncache(const ort_pass_context *c, ort_attention *a)
{
    if (a->k_is_rows || (a->q_heads && !a->row) || a->past_k != ORT_ID_NONE)
        return false;
    ort_node *k = appended(c->graph, a->k, a), *v = appended(c->graph, a->v, a);
    if (!k || !v || k == v)
        return false;
    a->present_k = a->k;
    a->present_v = a->v;
    a->past_k = k->inputs[0];
    a->past_v = v->inputs[0];
    a->k = k->inputs[1];
    a->v = v->inputs[1];
    a->core[a->core_count++] = k;
    a->core[a->core_count++] = v;
    return true;
}

/* ---- heads */

/* One head: [B,S,D] is reshaped to [B,1,S,D]. */
static ort_id unsplit_one(const ort_graph *graph, ort_node *reshape, int64_t *heads,
                          ort_attention *a)
{
    if ((!ort_edit_is(reshape, ONNX, "Reshape") && !ort_edit_is(reshape, ONNX, "Unsqueeze")) ||
        !ort_attention_ranked(graph, reshape->inputs[0], 3) ||
        !same_but(type_of(graph, reshape->inputs[0]), type_of(graph, reshape->outputs[0]), 1) ||
        !ort_dim_known(type_of(graph, reshape->inputs[0])->dim[2]))
        return ORT_ID_NONE;
    *heads = 1;
    ort_attention_drop(a, reshape);
    return reshape->inputs[0];
}

ort_id ort_attention_unsplit(const ort_graph *graph, ort_id id, int64_t *heads, ort_attention *a)
{
    ort_node *transpose = ort_edit_producer(graph, id), *row = ort_attention_row_split(graph, id);
    if (row) {
        *heads = type_of(graph, id)->dim[1].size;
        ort_attention_drop(a, row);
        return row->inputs[0];
    }
    if (transpose && !ort_edit_is(transpose, ONNX, "Transpose"))
        return unsplit_one(graph, transpose, heads, a);
    if (!ort_attention_has_perm(transpose, heads_first, 4))
        return ORT_ID_NONE;
    ort_node *reshape = ort_edit_producer(graph, transpose->inputs[0]);
    if (!ort_edit_is(reshape, ONNX, "Reshape"))
        return ORT_ID_NONE;
    const ort_type *whole = type_of(graph, reshape->inputs[0]);
    const ort_type *parts = type_of(graph, reshape->outputs[0]);
    if (!ort_attention_ranked(graph, reshape->inputs[0], 3) ||
        !ort_attention_ranked(graph, reshape->outputs[0], 4) ||
        !ort_dim_equal(whole->dim[0], parts->dim[0]) ||
        !ort_dim_equal(whole->dim[1], parts->dim[1]) || !ort_dim_known(parts->dim[2]) ||
        !ort_dim_known(parts->dim[3]))
        return ORT_ID_NONE;
    *heads = parts->dim[2].size;
    ort_attention_drop(a, transpose);
    ort_attention_drop(a, reshape);
    return reshape->inputs[0];
}

/* The Reshape that puts the heads of this [B,S,H,E] together as [B,S,H*E], or NULL. */
static ort_node *joined(const ort_graph *graph, ort_id id)
{
    ort_node *reshape = ort_edit_only_reader(graph, id);
    if (!ort_edit_is(reshape, ONNX, "Reshape") || reshape->inputs[0] != id)
        return NULL;
    const ort_type *parts = type_of(graph, id), *whole = type_of(graph, reshape->outputs[0]);
    return ort_attention_ranked(graph, reshape->outputs[0], 3) &&
                   ort_dim_equal(whole->dim[0], parts->dim[0]) &&
                   ort_dim_equal(whole->dim[1], parts->dim[1])
               ? reshape
               : NULL;
}

/* Is this the node that makes [B,S,E] of the one head `id`, [B,1,S,E]? */
static bool is_one_joined(const ort_graph *graph, ort_id id, const ort_node *node)
{
    return (ort_edit_is(node, ONNX, "Reshape") || ort_edit_is(node, ONNX, "Squeeze")) &&
           node->inputs[0] == id && ort_attention_ranked(graph, node->outputs[0], 3) &&
           same_but(type_of(graph, node->outputs[0]), type_of(graph, id), 1);
}

bool ort_attention_join_result(const ort_graph *graph, ort_attention *a)
{
    ort_node *transpose = ort_edit_only_reader(graph, a->root->outputs[0]);
    ort_node *row = ort_attention_row_joined(graph, a->root->outputs[0]);
    if (a->joined)
        return true;
    if (a->core_count + 2 > ORT_ATTENTION_CORE)
        return false;
    if (row || is_one_joined(graph, a->root->outputs[0], transpose)) {
        a->core[a->core_count++] = a->root = row ? row : transpose;
        return true;
    }
    if (!ort_attention_has_perm(transpose, heads_first, 4))
        return false;
    const ort_type *parts = type_of(graph, transpose->outputs[0]);
    ort_node *reshape = joined(graph, transpose->outputs[0]);
    if (!reshape && (!ort_dim_known(parts->dim[2]) || !ort_dim_known(parts->dim[3])))
        return false;
    a->parted = reshape ? ORT_ID_NONE : transpose->outputs[0];
    a->core[a->core_count++] = transpose;
    if (reshape)
        a->core[a->core_count++] = reshape;
    a->root = reshape ? reshape : transpose;
    return true;
}

/* k as [B,T,G*D]: it was read before its transposition, so that of the heads is missing. */
static ort_id unsplit_rows(const ort_graph *graph, ort_attention *a, int64_t *heads)
{
    *heads = 1;
    if (ort_attention_ranked(graph, a->k, 3))
        return a->k;
    ort_node *reshape = ort_edit_producer(graph, a->k);
    if (!ort_edit_is(reshape, ONNX, "Reshape") ||
        !ort_attention_ranked(graph, reshape->inputs[0], 3))
        return ORT_ID_NONE;
    const ort_type *whole = type_of(graph, reshape->inputs[0]), *parts = type_of(graph, a->k);
    if (!ort_dim_equal(whole->dim[0], parts->dim[0]) ||
        !ort_dim_equal(whole->dim[1], parts->dim[1]) || !ort_dim_known(parts->dim[2]) ||
        !ort_dim_known(parts->dim[3]))
        return ORT_ID_NONE;
    *heads = parts->dim[2].size;
    ort_attention_drop(a, reshape);
    return reshape->inputs[0];
}

bool ort_attention_join(const ort_graph *graph, ort_attention *a)
{
    ort_attention before = *a;
    int64_t heads[3] = {a->q_heads};
    if ((a->q_heads && !a->row) || a->head_scale != ORT_ID_NONE)
        return false;
    ort_id q = a->row ? a->q : ort_attention_unsplit(graph, a->q, &heads[0], a);
    ort_id k = a->k_is_rows ? unsplit_rows(graph, a, &heads[1])
                            : ort_attention_unsplit(graph, a->k, &heads[1], a);
    ort_id v = ort_attention_unsplit(graph, a->v, &heads[2], a);
    if (q == ORT_ID_NONE || k == ORT_ID_NONE || v == ORT_ID_NONE || heads[1] != heads[2] ||
        !ort_attention_join_result(graph, a)) {
        *a = before;
        return false;
    }
    a->q = ort_attention_unscaled(graph, q, a);
    a->k = ort_attention_unscaled(graph, k, a);
    a->v = v;
    a->q_heads = heads[0];
    a->kv_heads = heads[1];
    return true;
}

/* ---- packed */

static int64_t first_int(const ort_graph *graph, const ort_node *node, const char *attr)
{
    size_t count = 0;
    const int64_t *list = ort_node_ints(node, attr, &count);
    const ort_tensor *given = ort_edit_constant(graph, node, 1);
    int64_t number = -1;
    if (given) {
        ort_tensor_one_i64(given, &number);
        return number;
    }
    return count == 1 ? list[0] : -1;
}

/* Does it slice row `index` of three? */
static bool is_third(const ort_graph *graph, const ort_node *slice, int index)
{
    ort_slice_cut cut;
    return ort_edit_is(slice, ONNX, "Slice") && ort_slice_cut_read(graph, slice, &cut) &&
           cut.count == 1 && cut.axis[0] == 0 && cut.step[0] == 1 && cut.start[0] == index &&
           (cut.end[0] == index + 1 || (index == 2 && cut.end[0] > 2));
}

/* The transposed value of which this is part `index` along its first axis; or ORT_ID_NONE. */
static ort_id part_of(const ort_graph *graph, ort_id id, int index, ort_attention *a)
{
    ort_node *node = ort_edit_producer(graph, id);
    ort_attention_drop(a, node);
    if (ort_edit_is(node, ONNX, "Gather")) {
        const ort_tensor *at = ort_edit_constant(graph, node, 1);
        int64_t place;
        return ort_tensor_one_i64(at, &place) && at->shape.rank == 0 && place == index &&
                       ort_node_int(node, "axis", 0) == 0
                   ? node->inputs[0]
                   : ORT_ID_NONE;
    }
    if (!ort_edit_is(node, ONNX, "Squeeze") || first_int(graph, node, "axes") != 0)
        return ORT_ID_NONE;
    ort_node *split = ort_edit_producer(graph, node->inputs[0]);
    if (is_third(graph, split, index)) {
        ort_attention_drop(a, split);
        return split->inputs[0];
    }
    if (!ort_edit_is(split, ONNX, "Split") || split->output_count != 3 ||
        split->outputs[index] != node->inputs[0] || ort_node_int(split, "axis", 0) != 0)
        return ORT_ID_NONE;
    ort_attention_drop(a, split);
    return split->inputs[0];
}

ort_id ort_attention_packed(const ort_graph *graph, ort_attention *a, int64_t *heads)
{
    static const int64_t order[5] = {2, 0, 3, 1, 4};
    ort_id parts[3] = {a->q, a->k, a->v}, whole = ORT_ID_NONE;
    for (int i = 0; i < 3; i++) {
        ort_node *node = ort_edit_producer(graph, parts[i]);
        ort_id id = node ? part_of(graph, parts[i], i, a) : ORT_ID_NONE;
        if (id == ORT_ID_NONE || (i && id != whole))
            return ORT_ID_NONE;
        whole = id;
    }
    ort_node *transpose = ort_edit_producer(graph, whole);
    ort_node *reshape = ort_attention_has_perm(transpose, order, 5)
                            ? ort_edit_producer(graph, transpose->inputs[0]) : NULL;
    if (!ort_edit_is(reshape, ONNX, "Reshape") ||
        !ort_attention_ranked(graph, reshape->inputs[0], 3))
        return ORT_ID_NONE;
    const ort_type *x = type_of(graph, reshape->inputs[0]);
    const ort_type *split = type_of(graph, reshape->outputs[0]);
    if (split->rank != 5 || !ort_dim_equal(x->dim[0], split->dim[0]) ||
        !ort_dim_equal(x->dim[1], split->dim[1]) || !ort_dim_known(split->dim[2]) ||
        split->dim[2].size != 3 || !ort_dim_known(split->dim[3]) || !ort_dim_known(split->dim[4]))
        return ORT_ID_NONE;
    *heads = split->dim[3].size;
    ort_attention_drop(a, transpose);
    ort_attention_drop(a, reshape);
    return reshape->inputs[0];
}

/* attention_steps.c - heads of torch.nn.MultiheadAttention, which computes with steps first:
 *
 *     x [S,B,E]    Reshape [S,B*H,D], Transpose 1,0,2 [B*H,S,D]    of q, k and v
 *     the same,    then Reshape [B,H,S,D]                          for scaled_dot_product_attention
 *
 * Keys may be turned at once, by a Transpose 1,2,0. The result [B*H,S,E] or [B,H,S,E] becomes
 * [S,B*H,E] by a Transpose 1,0,2, or [S,B,H,E] by 2,0,1,3. Operators have the batch first: q, k, v
 * and the result are transposed, which push_transposes.c joins with what stands around.
 */
#include "base/error.h"
#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/constants.h"

static const int64_t batch_first[3] = {1, 0, 2};

static const ort_type *type_of(const ort_graph *graph, ort_id id)
{
    return &graph->values.data[id]->fact.type;
}

/* The [B*H,m,n] of this [B,H,m,n], or what is given. */
static ort_id folded(const ort_graph *graph, ort_id id, ort_attention *a)
{
    ort_node *reshape = ort_edit_producer(graph, id);
    if (!ort_edit_is(reshape, ONNX, "Reshape") || !ort_attention_ranked(graph, id, 4) ||
        !ort_attention_ranked(graph, reshape->inputs[0], 3))
        return id;
    const ort_type *in = type_of(graph, reshape->inputs[0]), *out = type_of(graph, id);
    if (!ort_dim_equal(in->dim[1], out->dim[2]) || !ort_dim_equal(in->dim[2], out->dim[3]))
        return id;
    ort_attention_drop(a, reshape);
    return reshape->inputs[0];
}

/* The [S,B,E] value that this [S,B*H,D] parts, or ORT_ID_NONE. */
static ort_id unparted(const ort_graph *graph, ort_id id, int64_t *heads, ort_attention *a)
{
    ort_node *reshape = ort_edit_producer(graph, id);
    if (!ort_edit_is(reshape, ONNX, "Reshape") || !ort_attention_ranked(graph, id, 3) ||
        !ort_attention_ranked(graph, reshape->inputs[0], 3))
        return ORT_ID_NONE;
    const ort_type *whole = type_of(graph, reshape->inputs[0]), *parts = type_of(graph, id);
    if (!ort_dim_equal(whole->dim[0], parts->dim[0]) || !ort_dim_known(whole->dim[2]) ||
        !ort_dim_known(parts->dim[2]) || parts->dim[2].size < 1 ||
        whole->dim[2].size % parts->dim[2].size)
        return ORT_ID_NONE;
    *heads = whole->dim[2].size / parts->dim[2].size;
    ort_attention_drop(a, reshape);
    return reshape->inputs[0];
}

/* The [S,B,E] of which this, [B*H,S,D] or [B,H,S,D], is made by the Transpose; or ORT_ID_NONE. */
static ort_id unturned(const ort_graph *graph, ort_id id, const int64_t *perm, int64_t *heads,
                       ort_attention *a)
{
    id = ort_attention_unscaled(graph, id, a);
    id = ort_attention_unscaled(graph, folded(graph, id, a), a);
    ort_node *turn = ort_edit_producer(graph, id);
    if (!ort_attention_has_perm(turn, perm, 3))
        return ORT_ID_NONE;
    ort_attention_drop(a, turn);
    return unparted(graph, ort_attention_unscaled(graph, turn->inputs[0], a), heads, a);
}

/* Keys [S,B,E], turned at once or after all. */
static ort_id keys_of(const ort_graph *graph, ort_id id, int64_t *heads, ort_attention *a)
{
    static const int64_t at_once[3] = {1, 2, 0}, swap[4] = {0, 1, 3, 2}, last[3] = {0, 2, 1};
    ort_attention before = *a;
    ort_id k = unturned(graph, id, at_once, heads, a);
    if (k != ORT_ID_NONE)
        return k;
    *a = before;
    ort_node *turn = ort_edit_producer(graph, ort_attention_unscaled(graph, id, a));
    if (!ort_attention_has_perm(turn, swap, 4) && !ort_attention_has_perm(turn, last, 3))
        return ORT_ID_NONE;
    ort_attention_drop(a, turn);
    return unturned(graph, turn->inputs[0], batch_first, heads, a);
}

/* The Transpose that puts steps first again, or NULL. */
static ort_node *turned_result(const ort_graph *graph, const ort_node *product)
{
    static const int64_t apart[4] = {2, 0, 1, 3};
    ort_node *turn = ort_edit_only_reader(graph, product->outputs[0]);
    return ort_attention_has_perm(turn, batch_first, 3) || ort_attention_has_perm(turn, apart, 4)
               ? turn : NULL;
}

bool ort_attention_read_steps(const ort_graph *graph, ort_attention *a, const ort_node *scores)
{
    ort_attention before = *a;
    int64_t heads[3] = {0};
    ort_node *product = a->root, *turn = turned_result(graph, product);
    ort_id q = turn ? unturned(graph, scores->inputs[0], batch_first, &heads[0], a) : ORT_ID_NONE;
    ort_id k = turn ? keys_of(graph, scores->inputs[1], &heads[1], a) : ORT_ID_NONE;
    double scale = a->scale;
    ort_id v = turn ? unturned(graph, product->inputs[1], batch_first, &heads[2], a) : ORT_ID_NONE;
    if (q == ORT_ID_NONE || k == ORT_ID_NONE || v == ORT_ID_NONE || heads[0] != heads[1] ||
        heads[0] != heads[2] || a->scale != scale || a->core_count == ORT_ATTENTION_CORE) {
        *a = before;
        return false;
    }
    a->q = q;
    a->k = k;
    a->v = v;
    a->q_heads = a->kv_heads = heads[0];
    a->core[a->core_count++] = turn;
    a->root = turn;
    a->steps = true;
    a->parted = turn->outputs[0];
    const ort_type *type = type_of(graph, scores->outputs[0]);
    a->T = type->dim[type->rank - 1];
    return true;
}

/* ---- writing */

static ort_status turn(ort_pass_context *c, ort_id *id, ort_error *err)
{
    ort_attr perm = {.name = "perm", .type = ORT_ATTR_INTS, .ints = batch_first, .count = 3};
    ort_id in = *id;
    if ((*id = ort_graph_add_value(c->graph, "")) == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *id);
    ort_node_spec spec = {.domain = ONNX, .op_type = "Transpose", .name = "", .inputs = &in,
                          .input_count = 1, .outputs = id, .output_count = 1, .set = &perm,
                          .set_count = 1};
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

ort_status ort_attention_turn_steps(ort_pass_context *c, ort_attention *a, ort_error *err)
{
    ort_id *const parts[3] = {&a->q, &a->k, &a->v};
    for (int i = 0; a->steps && i < 3; i++)
        ORT_TRY(turn(c, parts[i], err));
    return ORT_OK;
}

ort_status ort_attention_part_steps(ort_pass_context *c, ort_id result, ort_id parted,
                                    ort_error *err)
{
    const ort_type *type = type_of(c->graph, parted);
    int64_t list[4] = {0, -1, type->dim[2].size, 0};
    ort_id inputs[2] = {result};
    ORT_TRY(turn(c, &inputs[0], err));
    if (type->rank == 4) {
        list[1] = 0;
        list[3] = type->dim[3].size;
    }
    ORT_TRY(ort_constant_list(c->graph, list, type->rank, &inputs[1], err));
    ort_node_spec spec = {.domain = ONNX, .op_type = "Reshape", .name = "", .inputs = inputs,
                          .input_count = 2, .outputs = &parted, .output_count = 1};
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

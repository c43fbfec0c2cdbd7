/* opencl_tokens.c - operators whose inputs choose rows or places: Gather, embeddings, rotations;
 * and the other way round, where the greatest element lies. Indices that a run computes are
 * looked at by the device: the run fails with what the first bad one was.
 */
#include <string.h>

#include "base/error.h"
#include "provider/opencl/opencl_parts.h"
#include "tensor/scalar.h"

static bool is_index(const ort_graph *graph, const ort_node *node, int input)
{
    ort_dtype type = ort_cl_type(graph, node, input);
    return type == ORT_DTYPE_INT32 || type == ORT_DTYPE_INT64;
}

static bool is_wide(const ort_cl_step *s, int input)
{
    return ort_cl_in(s, input)->type.dtype == ORT_DTYPE_INT64;
}

/* Where an axis lies: elements in front, of it and behind. */
typedef struct place {
    int axis;
    int64_t outer, size, inner;
} place;

static place place_of(const ort_cl_step *s, int64_t otherwise)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t axis = ort_node_int(s->node, "axis", otherwise);
    place p = {(int)(axis < 0 ? axis + x->type.rank : axis), 1, 1, 1};
    for (int d = 0; d < x->type.rank; d++)
        *(d < p.axis ? &p.outer : d == p.axis ? &p.size : &p.inner) *= ort_cl_dim(x, d);
    return p;
}

/* ---- Gather, GatherElements */

static bool claim_gather(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "this form has no kernel";
    return ort_cl_rank(graph, node, 0) > 0 && is_index(graph, node, 1);
}

/* Floats, flags of masks, numbers of tokens, codes. */
static bool claim_gather_rows(const ort_graph *graph, const ort_node *node, const char **why)
{
    if (!claim_gather(graph, node, why))
        return false;
    *why = "the element type has no kernel";
    ort_dtype type = ort_cl_type(graph, node, 0);
    if (type != ORT_DTYPE_FLOAT && type != ORT_DTYPE_BOOL && type != ORT_DTYPE_INT32 &&
        type != ORT_DTYPE_INT64 && type != ORT_DTYPE_INT8 && type != ORT_DTYPE_UINT8)
        return false;
    *why = "more than 6 axes have no kernel";
    return ort_cl_rank(graph, node, 0) + ort_cl_rank(graph, node, 1) - 1 <= ORT_CL_AXES &&
           ort_cl_rank(graph, node, 0) <= ORT_CL_AXES;
}

static ort_status emit_gather(ort_cl_step *s, ort_error *err)
{
    const place p = place_of(s, 0);
    const ort_dtype type = ort_cl_in(s, 0)->type.dtype;
    const bool bytes = type != ORT_DTYPE_FLOAT;
    const int64_t inner = bytes ? p.inner * ort_dtype_bits(type) / 8 : p.inner;
    const int64_t grid[3] = {ort_cl_along(s, inner), ort_cl_count(ort_cl_in(s, 1)), p.outer};
    if (!bytes && ort_cl_constant_input(s, 1) && ort_cl_in(s, 1)->type.rank <= 1)
        return ort_cl_gather_table(s, err);
    int fault, code = ort_cl_checks(s, -p.size, p.size, &fault);
    ort_cl_launch_grid(s, "tokens", bytes ? "gather_bytes" : "gather_rows", grid, NULL, "bbbbiiii",
                       ort_cl_read(s, 0), ort_cl_read(s, 1), ort_cl_write(s, 0), fault,
                       (int64_t)code, (int64_t)is_wide(s, 1), p.size, inner);
    return ORT_OK;
}

static ort_status emit_gather_elements(ort_cl_step *s, ort_error *err)
{
    const ort_type *x = &ort_cl_in(s, 0)->type, *y = &ort_cl_out(s, 0)->type;
    const place p = place_of(s, 0);
    ort_cl_walk w = ort_cl_walk_of(y);
    int64_t count = ort_cl_count(ort_cl_out(s, 0)), step = 1;
    const int64_t grid[3] = {ort_cl_items(s, count), 1, 1};
    for (int d = x->rank - 1; d >= 0; d--) {
        w.x[ORT_CL_AXES - x->rank + d] = d == p.axis ? 0 : step;
        step *= x->dim[d].size;
    }
    int fault, code = ort_cl_checks(s, -p.size, p.size, &fault);
    ort_cl_launch_grid(s, "tokens", "gather_elements", grid, NULL, "bbbbiiiivvi",
                       ort_cl_read(s, 0), ort_cl_read(s, 1), ort_cl_write(s, 0), fault,
                       (int64_t)code, (int64_t)is_wide(s, 1), p.size, p.inner, w.n, w.x, count);
    return ORT_OK;
}

/* ---- EmbedLayerNormalization */

enum { IN_IDS, IN_SEGMENTS, IN_WORDS, IN_PLACES, IN_SEGMENT_TABLE, IN_GAMMA, IN_BETA, IN_MASK,
       IN_POSITIONS };

static bool claim_embed(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "the element types have no kernel";
    for (int i = IN_WORDS; i <= IN_BETA; i++)
        if (ort_cl_has(node, i) && ort_cl_type(graph, node, i) != ORT_DTYPE_FLOAT)
            return false;
    *why = "this form has no kernel";
    return ort_cl_rank(graph, node, IN_IDS) == 2 &&
           (!ort_cl_has(node, IN_SEGMENTS) || ort_cl_has(node, IN_SEGMENT_TABLE));
}

static ort_status emit_embed(ort_cl_step *s, ort_error *err)
{
    const ort_fact *ids = ort_cl_in(s, IN_IDS), *words = ort_cl_in(s, IN_WORDS);
    int64_t steps = ort_cl_dim(ids, 1), tokens = ort_cl_count(ids), hidden = ort_cl_dim(words, 1);
    bool segments = ort_cl_has(s->node, IN_SEGMENTS), places = ort_cl_has(s->node, IN_POSITIONS);
    bool mask = ort_cl_has(s->node, IN_MASK);
    int sum = ort_cl_gives(s->node, 2) ? ort_cl_write(s, 2) : ort_cl_scratch(s, tokens * hidden);
    int fault, code = ort_cl_checks(s, 0, 0, &fault);
    int table = ort_cl_read(s, IN_WORDS), number = ort_cl_read(s, IN_IDS);
    const int64_t grid[3] = {ort_cl_along(s, hidden), tokens, 1}, rows[3] = {tokens, 1, 1};
    ort_cl_launch_grid(s, "tokens", "embed", grid, NULL, "bbbbbbbbiiiiiiiii", number,
                       segments ? ort_cl_read(s, IN_SEGMENTS) : number,
                       places ? ort_cl_read(s, IN_POSITIONS) : number, table,
                       ort_cl_read(s, IN_PLACES),
                       segments ? ort_cl_read(s, IN_SEGMENT_TABLE) : table, sum, fault,
                       (int64_t)code, (int64_t)segments, (int64_t)places,
                       places ? ort_cl_count(ort_cl_in(s, IN_POSITIONS)) : 0,
                       ort_cl_dim(words, 0), ort_cl_dim(ort_cl_in(s, IN_PLACES), 0),
                       segments ? ort_cl_dim(ort_cl_in(s, IN_SEGMENT_TABLE), 0) : 0, steps, hidden);
    int scale = ort_cl_read(s, IN_GAMMA), to = ort_cl_write(s, 0);
    ort_cl_launch_grid(s, "rows", "layer_norm", rows, NULL, "bbbbbbb|iiiiif", sum, sum, scale,
                       scale, ort_cl_read(s, IN_BETA), to, to, (int64_t)0, (int64_t)0, (int64_t)1,
                       (int64_t)0, hidden, (double)ort_node_attr_float(s->node, "epsilon"));
    const int64_t batch[3] = {ort_cl_dim(ids, 0), 1, 1};
    if (ort_cl_gives(s->node, 1))
        ort_cl_launch_grid(s, "tokens", "mask_lengths", batch, NULL, "bbii",
                           mask ? ort_cl_read(s, IN_MASK) : number, ort_cl_write(s, 1),
                           (int64_t)mask, steps);
    return ORT_OK;
}

/* ---- RotaryEmbedding: com.microsoft has positions in front of the tables */

typedef struct turning {
    int64_t heads, size, rotated, steps, tokens;
    int positions, cosines;
} turning;

/* False: heads that don't follow from the input. */
static bool turning_of(const ort_node *node, const ort_type *x, const ort_type *table, turning *t)
{
    bool own = !strcmp(node->domain, MS), apart = x->rank == 4;
    int64_t rotated = ort_node_int(node, "rotary_embedding_dim", 0);
    int64_t width = table->dim[table->rank - 1].size;
    t->positions = own ? 1 : 3;
    t->cosines = own ? 2 : 1;
    t->heads = apart ? x->dim[1].size : ort_node_int(node, "num_heads", 0);
    if (!t->heads && own && !rotated && width > 0)
        t->heads = x->dim[2].size / (2 * width);
    if (t->heads <= 0)
        return false;
    t->size = apart ? x->dim[3].size : x->dim[2].size / t->heads;
    t->rotated = rotated ? rotated : t->size;
    t->steps = x->dim[apart ? 2 : 1].size;
    t->tokens = x->dim[0].size * t->steps;
    return t->rotated == 2 * width && t->rotated <= t->size;
}

static bool claim_rotary(const ort_graph *graph, const ort_node *node, const char **why)
{
    int rank = ort_cl_rank(graph, node, 0), cosines = !strcmp(node->domain, MS) ? 2 : 1;
    *why = "the element types have no kernel";
    for (int i = cosines; i < cosines + 2; i++)
        if (ort_cl_type(graph, node, i) != ORT_DTYPE_FLOAT)
            return false;
    *why = "this form has no kernel";
    const ort_type *x = &graph->values.data[node->inputs[0]]->fact.type;
    const ort_type *table = &graph->values.data[node->inputs[cosines]]->fact.type;
    return (rank == 3 || rank == 4) && table->rank >= 2 && ort_dim_known(x->dim[rank - 1]) &&
           ort_dim_known(table->dim[table->rank - 1]) && (rank == 3 || ort_dim_known(x->dim[1]));
}

static ort_status emit_rotary(ort_cl_step *s, ort_error *err)
{
    const ort_type *x = &ort_cl_in(s, 0)->type;
    int first = !strcmp(s->node->domain, MS) ? 2 : 1;
    const ort_fact *table = ort_cl_in(s, first);
    turning t;
    if (!turning_of(s->node, x, &table->type, &t))
        return ort_error_set(err, ORT_ERROR_DEVICE, "the input, the tables and the number of heads "
                             "don't fit together");
    bool given = ort_cl_has(s->node, t.positions);
    int64_t count = given ? ort_cl_count(ort_cl_in(s, t.positions)) : 0;
    bool offset = given && count == 1 && first == 2 && ort_cl_in(s, t.positions)->type.rank < 2;
    const int64_t grid[3] = {t.heads, t.tokens, 1};
    int64_t rows = ort_cl_dim(table, 0);
    if (given ? !offset && count != t.tokens : ort_cl_count(table) != t.tokens * t.rotated / 2)
        return ort_error_set(err, ORT_ERROR_DEVICE, "the positions and the tables don't fit");
    int fault, code = ort_cl_checks(s, 0, rows, &fault), from = ort_cl_read(s, 0);
    ort_cl_launch_grid(s, "tokens", "turn", grid, NULL, "bbbbbbiiiiiiiii", from,
                       ort_cl_read(s, first), ort_cl_read(s, first + 1),
                       given ? ort_cl_read(s, t.positions) : from, ort_cl_write(s, 0), fault,
                       (int64_t)code, (int64_t)(!given ? 0 : offset ? 2 : 1), rows, t.heads,
                       t.steps, t.size, t.rotated / 2,
                       ort_node_int(s->node, "interleaved", 0), (int64_t)(x->rank == 4));
    return ORT_OK;
}

/* ---- along one axis */

static bool claim_axis(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "the element type isn't float";
    return ort_cl_type(graph, node, 0) == ORT_DTYPE_FLOAT && ort_cl_rank(graph, node, 0) > 0;
}

static ort_status emit_place_of_most(ort_cl_step *s, ort_error *err)
{
    const place p = place_of(s, 0);
    const int64_t grid[3] = {p.outer * p.inner, 1, 1};
    ort_cl_launch_grid(s, "tokens", "place_of_most", grid, NULL, "bbiiii", ort_cl_read(s, 0),
                       ort_cl_write(s, 0), p.size, p.inner,
                       (int64_t)!strcmp(s->node->op_type, "ArgMin"),
                       ort_node_int(s->node, "select_last_index", 0));
    return ORT_OK;
}

static bool claim_sums(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "an axis that isn't constant has no kernel";
    return ort_cl_is_given(graph, node, 1) && ort_cl_rank(graph, node, 0) > 0;
}

static ort_status emit_sums(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t axis, size, step = 1;
    ORT_TRY(ort_cl_known(s, 1, err));
    if (!ort_tensor_one_i64(ort_cl_in(s, 1)->value, &axis))
        return ort_error_set(err, ORT_ERROR_MODEL, "its axis has to be one number");
    axis += axis < 0 ? x->type.rank : 0;
    size = ort_cl_dim(x, (int)axis);
    for (int d = (int)axis + 1; d < x->type.rank; d++)
        step *= ort_cl_dim(x, d);
    int from = ort_cl_read(s, 0), to = ort_cl_write(s, 0);
    const int64_t grid[3] = {size ? ort_cl_count(x) / size : 0, 1, 1};
    ort_cl_launch_grid(s, "tokens", "sums", grid, NULL, "bbiiii", from, to, size, step,
                       ort_node_int(s->node, "exclusive", 0), ort_node_int(s->node, "reverse", 0));
    return ORT_OK;
}

const ort_cl_row ort_cl_tokens_rows[] = {
    {ONNX, "Gather", claim_gather_rows, emit_gather, .typed = true, .half = true},
    {ONNX, "GatherElements", claim_gather, emit_gather_elements, .half = true},
    {MS, "EmbedLayerNormalization", claim_embed, emit_embed, .typed = true, .half = true},
    {ONNX, "RotaryEmbedding", claim_rotary, emit_rotary, .half = true},
    {MS, "RotaryEmbedding", claim_rotary, emit_rotary, .half = true},
    {ONNX, "ArgMax", claim_axis, emit_place_of_most, .typed = true, .half = true},
    {ONNX, "ArgMin", claim_axis, emit_place_of_most, .typed = true, .half = true},
    {ONNX, "CumSum", claim_sums, emit_sums, .half = true},
    {0},
};

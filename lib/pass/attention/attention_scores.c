/* attention_scores.c - the scores of an attention, read from the Softmax up to the product of q and
 * k, by rows of a form and what it means. A row reads the scores inside of it and adds its own:
 *
 *     + mask               any number of them, a mask being what isn't derived from the product
 *     Where(keep, s, low)  low so low that a score vanishes beside it
 *     c tanh(s / c)        softcap
 *     * scale, / scale     a constant
 *     * scales             a constant for each head
 *     Max(s, lowest)       no score is less than the lowest number
 *     Reshape              heads folded into the batch or apart again; windows of an image (Swin),
 *                          which are of its batch: where their mask is added, scores are
 *                          [B/n,n,H,S,T]
 *
 * Which operand of a sum is the product is found by trying both. The product may be a FusedMatMul.
 */
#include "pass/attention/attention_match.h"

#include <float.h>
#include <math.h>

#include "pass/attention/heads.h"
#include "pass/facts/facts.h"

#define LOW (-1e9) /* a score beside it is lost in rounding */

enum { DEPTH = 8 };

typedef ort_attention_scores scores;
typedef ort_attention_reader reader;

static bool read_at(reader *r, ort_id id, const ort_node *by, int depth, scores *s);

/* Are terms part of what is read already? A factor outside of them would be one of theirs. */
static bool has_terms(const ort_attention_terms *t)
{
    return t->mask_count > 0 || t->keep != ORT_ID_NONE || t->window != ORT_ID_NONE;
}

static bool is_bare(const scores *s)
{
    return !has_terms(&s->terms) && !(s->softcap > 0);
}

/* ---- rows */

/* q k^T, or q times what is turned already. */
static bool read_product(reader *r, ort_node *node, int depth, scores *s)
{
    bool fused = ort_edit_is(node, MS, "FusedMatMul");
    if (fused && (ort_node_attr_int(node, "transA") || ort_node_attr_int(node, "transBatchA") ||
                  ort_node_attr_int(node, "transBatchB")))
        return false;
    *s = (scores){.product = node, .head_scale = ORT_ID_NONE, .whole = ORT_ID_NONE,
                  .scale = fused ? (double)ort_node_attr_float(node, "alpha") : 1,
                  .terms = {.keep = ORT_ID_NONE, .fill = ORT_ID_NONE, .window = ORT_ID_NONE,
                            .apart = ORT_ID_NONE, .keys = {.id = ORT_ID_NONE}}};
    return r->operands(r, s);
}

/* c tanh(s / c) */
static bool read_softcap(reader *r, ort_node *mul, int depth, scores *s)
{
    double cap, factor;
    int slot = ort_heads_factor(r->graph, mul, &cap);
    ort_node *tanh = slot < 0 ? NULL : ort_edit_producer(r->graph, mul->inputs[slot]);
    ort_node *div = ort_edit_is(tanh, ONNX, "Tanh") ? ort_edit_producer(r->graph, tanh->inputs[0])
                                                     : NULL;
    slot = div ? ort_heads_factor(r->graph, div, &factor) : -1;
    if (slot < 0 || fabs(factor * cap - 1) > 1e-5 || !(cap > 0) ||
        ort_edit_only_reader(r->graph, tanh->outputs[0]) != mul ||
        ort_edit_only_reader(r->graph, div->outputs[0]) != tanh ||
        !read_at(r, div->inputs[slot], div, depth, s) || !is_bare(s) ||
        s->head_scale != ORT_ID_NONE)
        return false;
    s->softcap = cap;
    return true;
}

static bool read_factor(reader *r, ort_node *node, int depth, scores *s)
{
    double factor;
    int slot = ort_heads_factor(r->graph, node, &factor);
    if (slot < 0 || !read_at(r, node->inputs[slot], node, depth, s) || !is_bare(s))
        return false;
    s->scale *= factor;
    return true;
}

/* Factors for each head, [H,1,1]: the slot of what they multiply; -1: it isn't that. */
static int scales_heads(const ort_graph *graph, const ort_node *node)
{
    const ort_type *type = ort_fact_type(graph, node->outputs[0]);
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 4)
        return -1;
    for (int slot = 0; slot < 2; slot++) {
        const ort_tensor *t = ort_edit_constant(graph, node, 1 - slot);
        int rank = t ? t->shape.rank : 0;
        if (rank >= 3 && rank <= 4 && t->shape.dim[rank - 3] > 1 &&
            ort_tensor_count(t) == t->shape.dim[rank - 3])
            return slot;
    }
    return -1;
}

static bool read_head_scale(reader *r, ort_node *node, int depth, scores *s)
{
    int slot = scales_heads(r->graph, node);
    if (slot < 0 || !read_at(r, node->inputs[slot], node, depth, s) || !is_bare(s) ||
        s->head_scale != ORT_ID_NONE)
        return false;
    s->head_scale = node->inputs[1 - slot];
    return true;
}

static bool add_mask(ort_attention_terms *t, ort_id mask)
{
    if (t->mask_count == ORT_ATTENTION_MASKS)
        return false;
    memmove(t->masks + 1, t->masks, sizeof *t->masks * (size_t)t->mask_count++);
    t->masks[0] = mask;
    t->outside += t->keep != ORT_ID_NONE;
    return true;
}

static bool read_sum(reader *r, ort_node *node, int depth, scores *s)
{
    for (int slot = 0; slot < 2; slot++) {
        if (!read_at(r, node->inputs[slot], node, depth, s))
            continue;
        if (!ort_fact_ranked(r->graph, node->outputs[0], 5))
            return add_mask(&s->terms, node->inputs[1 - slot]);
        bool first = s->terms.window == ORT_ID_NONE;
        s->terms.window = node->inputs[1 - slot];
        s->terms.apart = node->outputs[0];
        return first;
    }
    return false;
}

static bool read_choice(reader *r, ort_node *node, int depth, scores *s)
{
    double low;
    int slot = ort_fact_number(r->graph, node, 2, &low)   ? 1
               : ort_fact_number(r->graph, node, 1, &low) ? 2
                                                          : 0;
    if (slot && !(low <= LOW))
        r->why = "what stands for a masked score isn't low enough";
    if (!slot || !(low <= LOW) || !read_at(r, node->inputs[slot], node, depth, s) ||
        s->terms.keep != ORT_ID_NONE)
        return false;
    s->terms.keep = node->inputs[0];
    s->terms.fill = node->inputs[3 - slot];
    s->terms.keep_is_inverse = slot == 2;
    return true;
}

/* Of numbers that are finite it changes none. */
static bool read_floor(reader *r, ort_node *node, int depth, scores *s)
{
    double low;
    for (int slot = 0; slot < 2 && node->input_count == 2; slot++)
        if (ort_fact_number(r->graph, node, 1 - slot, &low) && low <= (double)-FLT_MAX)
            return read_at(r, node->inputs[slot], node, depth, s) && (s->floored = true);
    return false;
}

/* Are the last `count` dims of both the same? */
static bool ends_alike(const ort_graph *graph, ort_id a, int a_rank, ort_id b, int b_rank,
                       int count)
{
    if (!ort_fact_ranked(graph, a, a_rank) || !ort_fact_ranked(graph, b, b_rank))
        return false;
    const ort_type *x = ort_fact_type(graph, a), *y = ort_fact_type(graph, b);
    for (int i = 1; i <= count; i++)
        if (!ort_dim_equal(x->dim[a_rank - i], y->dim[b_rank - i]))
            return false;
    return true;
}

static bool read_reshape(reader *r, ort_node *node, int depth, scores *s)
{
    ort_id in = node->inputs[0], out = node->outputs[0];
    bool windows = ends_alike(r->graph, in, 5, out, 4, 3) ||
                   ends_alike(r->graph, out, 5, in, 4, 3);
    bool folds = ends_alike(r->graph, in, 4, out, 3, 2);
    if ((!windows && !folds && !ends_alike(r->graph, out, 4, in, 3, 2)) ||
        !read_at(r, in, node, depth, s))
        return false;
    if (!windows && s->whole == ORT_ID_NONE)
        s->whole = folds ? in : out;
    if (!windows && !folds && !s->terms.unfold)
        s->terms.unfold = node;
    return true;
}

/* ---- the grammar */

static const struct {
    const char *domain, *op_type;
    bool (*read)(reader *r, ort_node *node, int depth, scores *s);
} rows[] = {
    {ONNX, "MatMul", read_product}, {MS, "FusedMatMul", read_product},
    {ONNX, "Mul", read_softcap},    {ONNX, "Div", read_softcap},
    {ONNX, "Mul", read_factor},     {ONNX, "Div", read_factor},
    {ONNX, "Mul", read_head_scale}, {ONNX, "Add", read_sum},
    {ONNX, "Where", read_choice},   {ONNX, "Max", read_floor},
    {ONNX, "Reshape", read_reshape},
};

static bool read_at(reader *r, ort_id id, const ort_node *by, int depth, scores *s)
{
    ort_node *node = ort_edit_producer(r->graph, id);
    if (!node || depth > DEPTH || ort_edit_only_reader(r->graph, id) != by)
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (ort_edit_is(node, rows[i].domain, rows[i].op_type) &&
            rows[i].read(r, node, depth + 1, s))
            return true;
    return false;
}

bool ort_attention_read_scores(ort_attention_reader *r, ort_id id, const ort_node *by,
                               ort_attention_scores *s)
{
    return read_at(r, id, by, 0, s);
}

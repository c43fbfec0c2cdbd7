/* attention_packed.c - self-attention whose projections read one value becomes Attention of
 * com.microsoft, which multiplies with all three weights at once.
 *
 *     MatMul(x, Wq) [+ bq], MatMul(x, Wk) [+ bk], MatMul(x, Wv) [+ bv]        three products
 *     Split(MatMul(x, W) [+ b])                                               or one, split
 *     becomes  Attention(x, [Wq Wk Wv], [bq bk bv], mask_index, attention_bias)
 *
 * Weights that are joined must have no other reader: the file doesn't grow but by zeros for a bias
 * that is missing. The three have the same width. One of them at least must have a bias: the schema
 * calls it optional, but without it onnxruntime 1.31 ends with a segmentation fault.
 */
#include <string.h>

#include "base/error.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/facts.h"

typedef struct projection {
    ort_id x, weights, bias; /* [K,N], [N] or ORT_ID_NONE */
} projection;

typedef struct packed {
    projection parts[3];
    int count; /* 3, or 1 that is split */
} packed;

static bool is_weight(const ort_graph *graph, ort_id id, int rank)
{
    const ort_tensor *t = ort_fact_constant(graph, id);
    return t && t->shape.rank == rank && t->dtype == ORT_DTYPE_FLOAT;
}

/* MatMul(x, W), or that plus a constant row. */
static bool read_projection(const ort_graph *graph, ort_id id, projection *p)
{
    const ort_node *node = ort_edit_producer(graph, id), *sum = node;
    p->bias = ORT_ID_NONE;
    if (ort_edit_is(sum, ONNX, "Add") && sum->opset >= 7) {
        int slot = is_weight(graph, sum->inputs[1], 1) ? 1 : 0;
        p->bias = sum->inputs[slot];
        node = ort_edit_producer(graph, sum->inputs[1 - slot]);
        if (!is_weight(graph, p->bias, 1) || !node ||
            ort_edit_only_reader(graph, node->outputs[0]) != sum)
            return false;
    }
    if (!ort_edit_is(node, ONNX, "MatMul") || !is_weight(graph, node->inputs[1], 2) ||
        !ort_fact_ranked(graph, node->inputs[0], 3))
        return false;
    p->x = node->inputs[0];
    p->weights = node->inputs[1];
    int64_t width = ort_fact_constant(graph, p->weights)->shape.dim[1];
    return p->bias == ORT_ID_NONE || ort_fact_constant(graph, p->bias)->shape.dim[0] == width;
}

/* Three equal parts of the last axis, in this order. */
static bool read_split(const ort_graph *graph, const ort_attention *a, packed *p)
{
    const ort_node *split = ort_edit_producer(graph, a->q);
    const ort_type *q = ort_fact_type(graph, a->q);
    if (!ort_edit_is(split, ONNX, "Split") || split->output_count != 3 ||
        split->outputs[0] != a->q || split->outputs[1] != a->k || split->outputs[2] != a->v)
        return false;
    int64_t axis = ort_node_attr_int(split, "axis");
    if ((axis != 2 && axis != -1) || !read_projection(graph, split->inputs[0], &p->parts[0]))
        return false;
    p->count = 1;
    return ort_edit_only_reader(graph, split->inputs[0]) == split && ort_dim_known(q->dim[2]) &&
           3 * q->dim[2].size == ort_fact_constant(graph, p->parts[0].weights)->shape.dim[1];
}

static bool read_three(const ort_graph *graph, const ort_attention *a, packed *p)
{
    const ort_id ids[3] = {a->q, a->k, a->v};
    p->count = 3;
    if (a->q == a->k || a->q == a->v || a->k == a->v)
        return false; /* its weights would be there twice */
    for (int i = 0; i < 3; i++) {
        projection *part = &p->parts[i], *first = &p->parts[0];
        if (!read_projection(graph, ids[i], part) || part->x != first->x ||
            graph->values.data[part->weights]->use_count != 1 ||
            ort_fact_constant(graph, part->weights)->shape.dim[1] !=
                ort_fact_constant(graph, first->weights)->shape.dim[1])
            return false;
    }
    return true;
}

static bool has_bias(const packed *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->parts[i].bias != ORT_ID_NONE)
            return true;
    return false;
}

/* ---- weights side by side */

static void copy_columns(ort_tensor *to, int64_t at, const ort_tensor *from)
{
    int64_t rows = from->shape.rank == 2 ? from->shape.dim[0] : 1;
    int64_t width = from->shape.dim[from->shape.rank - 1];
    int64_t all = to->shape.dim[to->shape.rank - 1];
    for (int64_t r = 0; r < rows; r++)
        memcpy((float *)to->data + r * all + at, (const char *)from->data + r * width * 4,
               (size_t)width * sizeof(float));
}

/* The weights of all parts (or their biases), zeros for one that is missing. */
static ort_status join(ort_pass_context *c, const packed *p, bool biases, const char *name,
                       ort_id *id, ort_error *err)
{
    const ort_tensor *first = ort_fact_constant(c->graph, p->parts[0].weights), *part;
    int64_t width = first->shape.dim[1];
    ort_shape shape = biases ? ort_shape_make(1, (const int64_t[]){3 * width})
                             : ort_shape_make(2, (const int64_t[]){first->shape.dim[0], 3 * width});
    ort_tensor made;
    *id = biases ? p->parts[0].bias : p->parts[0].weights;
    if (p->count == 1)
        return ORT_OK;
    ORT_TRY(ort_edit_new_constant(c->graph, name, ORT_DTYPE_FLOAT, &shape, &made, id, err));
    memset(made.data, 0, ort_tensor_bytes(&made));
    for (int i = 0; i < 3; i++) {
        ort_id of = biases ? p->parts[i].bias : p->parts[i].weights;
        if (of == ORT_ID_NONE)
            continue;
        if (!(part = ort_graph_weight(c->graph, of)))
            return ort_error_memory(err, sizeof *part);
        copy_columns(&made, i * width, part);
    }
    return ORT_OK;
}

/* ---- writing */

static bool read_packed(const ort_graph *graph, const ort_attention *a, packed *p)
{
    *p = (packed){.count = 0};
    return a->q_heads == a->kv_heads && a->cache.past_k == ORT_ID_NONE &&
           ort_fact_ranked(graph, a->k, 3) && ort_fact_ranked(graph, a->v, 3) &&
           (read_split(graph, a, p) || read_three(graph, a, p)) &&
           /* the one that splits heads off: for others it would be computed twice */
           ort_edit_only_reader(graph, a->q) && ort_edit_only_reader(graph, a->k) &&
           ort_edit_only_reader(graph, a->v);
}

ort_status ort_attention_fuse_packed(ort_pass_context *c, const ort_attention *a, ort_id mask,
                                     ort_id keys, ort_id empty, bool *done, ort_error *err)
{
    packed p;
    *done = false;
    if (!read_packed(c->graph, a, &p))
        return ORT_OK;
    if (!has_bias(&p)) {
        ort_pass_note(c, a->root, "com.microsoft Attention would fit if q, k or v had a bias");
        return ORT_OK;
    }
    if (!ort_pass_opset(c, a->root, MS, "Attention", 1))
        return ORT_OK;
    ort_id inputs[6] = {p.parts[0].x, ORT_ID_NONE, ORT_ID_NONE, keys, ORT_ID_NONE, mask};
    ORT_TRY(join(c, &p, false, c->graph->values.data[p.parts[0].weights]->name, &inputs[1], err));
    ORT_TRY(join(c, &p, true, "qkv_bias", &inputs[2], err));
    *done = true;
    const ort_attention_operator attention = {MS, "Attention", 1, inputs, 6};
    return ort_attention_replace(c, a, &attention, empty, err);
}

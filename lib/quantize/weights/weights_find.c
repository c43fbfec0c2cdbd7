/* weights_find.c - which nodes read weights that can become codes, and why others don't.
 *
 * MatMul and Gemm multiply by constant matrices, also by one that is turned by a Transpose first;
 * Gather takes rows of a table. A table whose rows are the columns of a product (tied embeddings)
 * is stored once for both.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "op/spacer.h"
#include "quantize/node_names.h"
#include "quantize/results.h"
#include "quantize/weights/weights.h"

static const char *const stays_computed = "its weights are computed";
static const char *const stays_coded = "its weights are quantized already";

/* Of a matrix with K rows. OpenVINO takes no DequantizeLinear whose blocks are longer than that. */
static int64_t block_of(const ort_weights *w, int64_t k)
{
    const int64_t block = w->options.block_size;
    return block == 0 || (w->options.form == ORT_WEIGHTS_QDQ && block > k) ? k : block;
}

/* ---- the constant that a node reads */

typedef struct found {
    const ort_tensor *tensor;
    ort_id id;
    bool turned;
} found;

static bool is_turn(const ort_node *node)
{
    size_t count;
    if (!ort_edit_is(node, ONNX, "Transpose"))
        return false;
    const int64_t *perm = ort_node_ints(node, "perm", &count);
    return !perm || (count == 2 && perm[0] == 1 && perm[1] == 0);
}

static bool is_coded(const ort_node *node)
{
    return node && (ort_edit_is(node, ONNX, "DequantizeLinear") ||
                    (node->op && !strcmp(node->op->name, "DequantizeLinear")));
}

static const char *look_up(const ort_graph *graph, ort_id id, found *f)
{
    const ort_node *from = ort_spacer_producer(graph, id);
    *f = (found){.id = id};
    if (is_turn(from)) {
        f->turned = true;
        f->id = from->inputs[0];
        from = ort_spacer_producer(graph, f->id);
    }
    if (is_coded(from))
        return stays_coded;
    f->tensor = ort_fact_value(graph, f->id);
    if (!f->tensor || !f->tensor->data)
        return stays_computed;
    if (f->tensor->shape.rank != 2 || f->tensor->stride)
        return "its weights aren't a matrix";
    if (f->tensor->dtype != ORT_DTYPE_FLOAT && f->tensor->dtype != ORT_DTYPE_FLOAT16 &&
        f->tensor->dtype != ORT_DTYPE_BFLOAT16)
        return "its weights aren't floats of 16 or 32 bits";
    if (ort_quantize_is_result(graph, f->id))
        return ort_quantize_result_stays;
    return ort_tensor_count(f->tensor) ? NULL : "its weights are empty";
}

/* alpha goes into scales or the left side, beta into a constant bias. */
static bool takes_factors(const ort_graph *graph, const ort_node *node, const found *f)
{
    const float alpha = ort_node_float(node, "alpha", 1), beta = ort_node_float(node, "beta", 1);
    const ort_id bias = ort_edit_input(node, 2);
    const bool scales = beta != 1 && bias != ORT_ID_NONE;
    if (alpha != 1 && (!isfinite(alpha) || f->tensor->dtype != ORT_DTYPE_FLOAT))
        return false;
    const ort_tensor *t = scales ? ort_fact_value(graph, bias) : NULL;
    return !scales || (isfinite(beta) && t && t->data && t->dtype == ORT_DTYPE_FLOAT);
}

static const char *check_gemm(const ort_weights *w, const ort_graph *graph, const ort_node *node,
                              found *f)
{
    const ort_id bias = ort_edit_input(node, 2);
    if (ort_node_int(node, "transB", 0))
        f->turned = !f->turned;
    if (w->options.form == ORT_WEIGHTS_QDQ)
        return NULL;
    if (ort_node_int(node, "transA", 0))
        return "its left side is transposed";
    if (!takes_factors(graph, node, f))
        return "alpha or beta isn't 1, and its numbers aren't floats of 32 bits";
    if (bias == ORT_ID_NONE)
        return NULL;
    const ort_type *type = ort_fact_tensor(graph, bias);
    const int64_t columns = f->tensor->shape.dim[!f->turned];
    return type && type->rank == 1 && ort_dim_is(type->dim[0], columns)
               ? NULL
               : "its bias isn't one number a column";
}

static const char *check_product(const ort_weights *w, const ort_graph *graph,
                                 const ort_node *node, found *f)
{
    const ort_type *a = ort_fact_type(graph, node->inputs[0]);
    const char *why = look_up(graph, node->inputs[1], f);
    if (why == stays_computed && ort_fact_value(graph, node->inputs[0]))
        return "its weights are on the left side";
    if (!why && ort_edit_is(node, ONNX, "Gemm"))
        why = check_gemm(w, graph, node, f);
    if (why)
        return why;
    if (a->dtype != f->tensor->dtype)
        return "the type of its left side isn't known";
    return ort_type_rank(a) == 1 ? "its left side is a vector" : NULL;
}

static const char *check_table(const ort_weights *w, const ort_graph *graph, const ort_node *node,
                               found *f)
{
    const char *why = look_up(graph, node->inputs[0], f);
    if (why)
        return why;
    if (f->turned || ort_axis_in(ort_node_int(node, "axis", 0), 2) != 0)
        return "it doesn't take rows of its table";
    f->turned = true; /* a row is what a column is for a product */
    const int64_t k = f->tensor->shape.dim[1];
    if (w->options.form == ORT_WEIGHTS_NBITS && k % block_of(w, k))
        return "its rows aren't whole blocks";
    return NULL;
}

/* ---- the lists */

static size_t find_weight(const ort_weights *w, const ort_graph *graph, const found *f)
{
    for (size_t i = 0; i < w->weights.count; i++) {
        const ort_weight *have = &w->weights.data[i];
        if (have->graph == graph && have->id == f->id && have->turned == f->turned)
            return i;
    }
    return SIZE_MAX;
}

static ort_status add_weight(ort_weights *w, ort_graph *graph, const found *f, ort_id input,
                             size_t *at, ort_error *err)
{
    const ort_block_matrix shape = ort_block_matrix_of(
        f->tensor, f->turned, block_of(w, f->tensor->shape.dim[f->turned]));
    ort_weight weight = {.graph = graph, .id = f->id, .input = input, .turned = f->turned,
                         .shape = shape, .bytes = ort_tensor_bytes(f->tensor),
                         .moments = SIZE_MAX, .codes = ORT_ID_NONE,
                         .scales = ORT_ID_NONE, .zeros = ORT_ID_NONE, .rows = ORT_ID_NONE,
                         .value = ORT_ID_NONE};
    *at = w->weights.count;
    return ort_vec_push(&w->weights, weight) ? ORT_OK : ort_error_memory(err, sizeof weight);
}

static ort_status add_reader(ort_weights *w, ort_graph *graph, ort_node *node, ort_error *err)
{
    ort_weight_reader r = {.graph = graph, .node = node, .op_type = node->op_type,
                           .weight = SIZE_MAX};
    found f = {0};
    r.table = ort_edit_is(node, ONNX, "Gather");
    r.why = r.table ? check_table(w, graph, node, &f) : check_product(w, graph, node, &f);
    if (r.why == stays_computed)
        return ORT_OK; /* nobody would expect it */
    r.name = ort_arena_strdup(&w->arena, node->name);
    if (!r.name)
        return ort_error_memory(err, strlen(node->name));
    const char *unasked = ort_node_unwanted(graph, node, w->options.include, w->options.exclude);
    r.why = unasked ? unasked : r.why;
    if (!r.why) {
        r.weight = find_weight(w, graph, &f);
        if (r.weight == SIZE_MAX)
            ORT_TRY(add_weight(w, graph, &f, r.table ? ORT_ID_NONE : node->inputs[0], &r.weight,
                               err));
        ort_weight *weight = &w->weights.data[r.weight];
        if (r.table)
            weight->has_table = true;
        else if (!weight->has_product)
            weight->has_product = true, weight->input = node->inputs[0];
    }
    return ort_vec_push(&w->readers, r) ? ORT_OK : ort_error_memory(err, sizeof r);
}

static ort_status add_coded(ort_weights *w, ort_graph *graph, ort_node *node, ort_error *err)
{
    ort_weight_reader r = {.graph = graph, .node = node, .op_type = node->op_type,
                           .weight = SIZE_MAX, .why = stays_coded};
    r.name = ort_arena_strdup(&w->arena, node->name);
    return r.name && ort_vec_push(&w->readers, r) ? ORT_OK : ort_error_memory(err, sizeof r);
}

static ort_status find_in(ort_weights *w, ort_graph *graph, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(graph, node) {
        for (int b = 0; b < node->body_count; b++)
            ORT_TRY(find_in(w, node->bodies[b], err));
        if (ort_edit_is_any(node, "MatMul|Gemm|Gather"))
            ORT_TRY(add_reader(w, graph, node, err));
        else if (ort_edit_is_any(node, "ms.MatMulNBits|ms.GatherBlockQuantized"))
            ORT_TRY(add_coded(w, graph, node, err));
    }
    return ORT_OK;
}

/* In whatever blocks. */
static bool is_multiplied(const ort_weights *w, const ort_weight *table)
{
    for (size_t i = 0; i < w->weights.count; i++) {
        const ort_weight *have = &w->weights.data[i];
        if (have->graph == table->graph && have->id == table->id && have->has_product)
            return true;
    }
    return false;
}

static bool on_codes(void *arg, const ort_graph *graph, const ort_node *node)
{
    const ort_weights *w = arg;
    for (size_t i = 0; i < w->readers.count; i++)
        if (w->readers.data[i].graph == graph && w->readers.data[i].node == node)
            return !w->readers.data[i].why;
    return false;
}

/* The file holds a table in floats if another node reads them, or nobody asks for it in codes. */
static const char *table_stays(ort_weights *w, const ort_weight *weight)
{
    if (!w->options.tables && !is_multiplied(w, weight))
        return "tables stay unless they are asked for";
    return ort_quantize_has_float_reader(weight->graph, weight->id, on_codes, w)
               ? ort_quantize_table_stays : NULL;
}

ort_status ort_low_bits_find(ort_weights *w, ort_error *err)
{
    ORT_TRY(find_in(w, w->model->graph, err));
    for (size_t i = 0; i < w->readers.count; i++) {
        ort_weight_reader *r = &w->readers.data[i];
        if (r->table && r->weight != SIZE_MAX)
            r->why = table_stays(w, &w->weights.data[r->weight]);
    }
    return ORT_OK;
}

/* one_hot.c - a product of one-hot rows with a table picks rows of the table:
 *
 *     MatMul(Cast(x == [0 1 .. n-1]), W[n, k])  becomes  Gather([W; 0], Clip(x, -1, n))
 *
 * A code that is none of 0 .. n-1 has a row of zeros, which stands behind the table: code n, and -1
 * from the end. Sums of zeros and one number are that number, as long as the table is finite.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "pass/pattern.h"

static const ort_pattern_form forms[] = {
    {"(MatMul (Cast (Equal x #codes)) #w)", 0},
};

static bool counts_up(const ort_tensor *codes, int64_t n)
{
    if (!codes->data || ort_tensor_count(codes) != n || codes->shape.rank < 1 ||
        codes->shape.dim[codes->shape.rank - 1] != n)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (ort_tensor_get_i64(codes, i) != i)
            return false;
    return true;
}

static bool is_finite(const ort_tensor *w)
{
    for (int64_t i = 0; i < ort_tensor_count(w); i++)
        if (!isfinite(ort_tensor_get_f64(w, i)))
            return false;
    return true;
}

static const char *check(const ort_pass_context *c, const ort_match *m)
{
    const ort_type *x = ort_match_type(m, c->graph, "x");
    const ort_tensor *codes = ort_match_constant(m, c->graph, "codes");
    const ort_tensor *w = ort_match_constant(m, c->graph, "w");
    if (x->kind != ORT_TYPE_TENSOR || x->rank < 1 || !ort_dim_known(x->dim[x->rank - 1]) ||
        x->dim[x->rank - 1].size != 1 || x->rank < codes->shape.rank)
        return "the codes don't stand one by one along the last axis";
    if (x->dtype != ORT_DTYPE_INT32 && x->dtype != ORT_DTYPE_INT64)
        return "the codes aren't int32 or int64";
    if (w->dtype != ORT_DTYPE_FLOAT || !w->data || w->shape.rank != 2 ||
        !counts_up(codes, w->shape.dim[0]))
        return "the codes compared with aren't the rows of a table of floats";
    return is_finite(w) ? NULL : "the table isn't finite";
}

/* [W; 0] */
static ort_status add_table(ort_graph *graph, const ort_tensor *w, ort_id *id, ort_error *err)
{
    ort_shape shape = w->shape;
    ort_tensor table;
    size_t bytes = ort_tensor_bytes(w);
    shape.dim[0]++;
    ORT_TRY(ort_edit_new_constant(graph, "table", ORT_DTYPE_FLOAT, &shape, &table, id, err));
    memcpy(table.data, w->data, bytes);
    memset((char *)table.data + bytes, 0, ort_tensor_bytes(&table) - bytes);
    return ORT_OK;
}

/* An integer of this type, or (rank 1) a list of one. */
static ort_status add_integer(ort_graph *graph, ort_dtype dtype, int rank, int64_t number,
                              ort_id *id, ort_error *err)
{
    const int64_t one = 1;
    int32_t narrow = (int32_t)number;
    ort_tensor t = {.dtype = dtype, .shape = ort_shape_make(rank, &one),
                    .data = dtype == ORT_DTYPE_INT64 ? (void *)&number : (void *)&narrow};
    return ort_edit_add_constant(graph, "code", &t, id, err);
}

/* op_type(inputs...) -> output, a new value unless it is given. */
static ort_status add(ort_pass_context *c, const char *op_type, const ort_id *inputs, int count,
                      const ort_node_spec *like, ort_id *output, ort_error *err)
{
    ort_node_spec spec = *like;
    if (*output == ORT_ID_NONE)
        *output = ort_graph_add_value(c->graph, "picked");
    if (*output == ORT_ID_NONE)
        return ort_error_memory(err, 64);
    spec.op_type = op_type;
    spec.inputs = inputs;
    spec.input_count = count;
    spec.outputs = output;
    spec.output_count = 1;
    return ort_edit_add_node(c->graph, &spec, NULL, err);
}

static ort_status replace(ort_pass_context *c, const ort_match *m, int opset, ort_error *err)
{
    const ort_tensor *w = ort_match_constant(m, c->graph, "w");
    ort_dtype dtype = ort_match_type(m, c->graph, "x")->dtype;
    ort_id squeeze[2] = {ort_match_value(m, "x")}, clip[3] = {ORT_ID_NONE}, gather[2];
    ort_id output = m->nodes[0]->outputs[0];
    ORT_TRY(add_integer(c->graph, ORT_DTYPE_INT64, 1, -1, &squeeze[1], err));
    ORT_TRY(add_integer(c->graph, dtype, 0, -1, &clip[1], err));
    ORT_TRY(add_integer(c->graph, dtype, 0, w->shape.dim[0], &clip[2], err));
    ORT_TRY(add_table(c->graph, w, &gather[0], err));
    gather[1] = ORT_ID_NONE;
    ort_node_spec like = {.domain = ONNX, .name = "", .opset = opset};
    const char *name = m->nodes[0]->name;
    like.origin = ort_match_remove(c, m);
    if (!like.origin)
        return ort_error_memory(err, 64);
    ORT_TRY(add(c, "Squeeze", squeeze, 2, &like, &clip[0], err));
    ORT_TRY(add(c, "Clip", clip, 3, &like, &gather[1], err));
    like.name = name; /* once: onnxruntime refuses a second node of that name */
    return add(c, "Gather", gather, 2, &like, &output, err);
}

static ort_status fuse(ort_pass_context *c, const ort_match *m, const ort_pattern_form *f,
                       int *changes, ort_error *err)
{
    const ort_node *product = m->nodes[0];
    const char *why = check(c, m);
    int opset;
    if (why)
        ort_pass_note(c, product, "%s", why);
    if (why || !(opset = ort_pass_opset(c, product, ONNX, "Squeeze", 13)))
        return ORT_OK;
    ++*changes;
    return replace(c, m, opset, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    return ort_pattern_forms(c, forms, sizeof forms / sizeof *forms, fuse, changes, err);
}

const ort_pass ort_pass_one_hot = {
    .name = "one_hot",
    .level = 2,
    .doc = "a product of one-hot rows with a table picks rows of the table",
    .apply = apply,
};

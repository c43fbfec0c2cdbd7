/* one_hot.c - a product of one-hot rows with a table picks rows of the table:
 *
 *     MatMul(Cast(x == [0 1 .. n-1]), W[n, k])  becomes  Gather([W; 0], Clip(x, -1, n))
 *
 * A code that is none of 0 .. n-1 has a row of zeros, which stands behind the table: code n, and -1
 * from the end. Sums of zeros and one number are that number, as long as the table is finite.
 */
#include <math.h>

#include "base/error.h"
#include "pass/facts/facts.h"
#include "pass/rewrite.h"

static bool is_finite(const ort_tensor *w)
{
    for (int64_t i = 0; i < ort_tensor_count(w); i++)
        if (!isfinite(ort_tensor_get_f64(w, i)))
            return false;
    return true;
}

static const char *unless(const ort_pass_context *c, ort_match *m)
{
    const ort_type *x = ort_match_type(m, "x");
    const ort_tensor *codes = ort_match_constant(m, "codes");
    const ort_tensor *w = ort_match_constant(m, "w");
    if (ort_type_rank(x) < 1 || !ort_dim_is(x->dim[x->rank - 1], 1) ||
        x->rank < codes->shape.rank)
        return "the codes don't stand one by one along the last axis";
    if (x->dtype != ORT_DTYPE_INT32 && x->dtype != ORT_DTYPE_INT64)
        return "the codes aren't int32 or int64";
    if (w->dtype != ORT_DTYPE_FLOAT || !w->data || w->shape.rank != 2 ||
        ort_tensor_count(codes) != w->shape.dim[0] || codes->shape.rank < 1 ||
        codes->shape.dim[codes->shape.rank - 1] != w->shape.dim[0] ||
        !codes->data || !ort_tensor_counts_up(codes))
        return "the codes compared with aren't the rows of a table of floats";
    ort_match_let(m, "n", (double)w->shape.dim[0]);
    return is_finite(w) ? NULL : "the table isn't finite";
}

/* [W; 0] */
static ort_status add_table(ort_pass_context *c, ort_match *m, ort_error *err)
{
    const ort_tensor *w = ort_match_constant(m, "w");
    ort_shape shape = w->shape;
    ort_tensor table;
    ort_id id;
    size_t bytes = ort_tensor_bytes(w);
    shape.dim[0]++;
    ORT_TRY(ort_edit_new_constant(c->graph, "table", ORT_DTYPE_FLOAT, &shape, &table, &id, err));
    memcpy(table.data, w->data, bytes);
    memset((char *)table.data + bytes, 0, ort_tensor_bytes(&table) - bytes);
    ort_match_let_value(m, "table", id);
    return ORT_OK;
}

static const ort_rewrite rewrites[] = {
    {"(MatMul (Cast (Equal x #codes)) #w)",
     "(Gather table (Clip@13 (Squeeze@13 x [-1]) -1 $n))", unless, add_table,
     .example = "x:2,3,1.i64 codes=[0,1,2] w:3,5 Cast.to=1 opset=17"},
    {0},
};

const ort_pass ort_pass_one_hot = {
    .name = "one_hot",
    .level = 2,
    .doc = "a product of one-hot rows with a table picks rows of the table",
    .rewrites = rewrites,
};

/* opencl_reduce.c - reductions over any axes. An item makes one element of the result: it walks
 * over the reduced axes from where the kept ones begin.
 */
#include "provider/opencl/opencl_parts.h"

static const ort_tensor *axes_input(const ort_graph *graph, const ort_node *node)
{
    return ort_cl_has(node, 1) ? graph->values.data[node->inputs[1]]->fact.value : NULL;
}

static bool claim_reduce(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "axes that aren't constants have no kernel";
    return ort_cl_is_given(graph, node, 1);
}

/* Bits of the axes that are reduced. */
static unsigned reduced(const ort_cl_step *s, int rank)
{
    size_t count = 0;
    unsigned bits = 0;
    const ort_tensor *input = axes_input(s->plan->request->graph, s->node);
    const int64_t *list = ort_node_ints(s->node, "axes", &count);
    if (ort_cl_has(s->node, 1)) {
        input = ort_cl_in(s, 1)->value;
        count = input ? (size_t)ort_tensor_count(input) : 0;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t axis = input ? ort_tensor_get_i64(input, (int64_t)i) : list[i];
        bits |= 1u << (axis < 0 ? axis + rank : axis);
    }
    bool none = !count && ort_node_int(s->node, "noop_with_empty_axes", 0);
    return count || none ? bits : (1u << rank) - 1;
}

static ort_status emit_reduce(ort_cl_step *s, ort_error *err)
{
    const ort_type *x = &ort_cl_in(s, 0)->type;
    ORT_TRY(ort_cl_known(s, 1, err));
    unsigned bits = reduced(s, x->rank);
    int64_t stride[ORT_CL_AXES], kept = 1, count = 1;
    ort_cl_walk outer = {{1, 1, 1, 1, 1, 1}, {0}, {0}}, inner = outer;
    ort_cl_spread(x, x->rank, stride);
    for (int d = 0; d < x->rank; d++) {
        int at = ORT_CL_AXES - x->rank + d;
        ort_cl_walk *w = bits >> d & 1 ? &inner : &outer;
        w->n[at] = x->dim[d].size;
        w->x[at] = stride[d];
        *(bits >> d & 1 ? &count : &kept) *= x->dim[d].size;
    }
    for (int d = 0; d < ORT_CL_AXES; d++) /* so that axes are joined by x alone */
        inner.y[d] = inner.x[d], outer.y[d] = outer.x[d];
    ort_cl_join_axes(&outer);
    ort_cl_join_axes(&inner);
    const int64_t grid[3] = {kept, 1, 1};
    ort_cl_launch_grid(s, "rows", s->row->kernel, grid, NULL, "bbvvvvi", ort_cl_read(s, 0),
                       ort_cl_write(s, 0), outer.n, outer.x, inner.n, inner.x, count);
    return ORT_OK;
}

const ort_cl_row ort_cl_reduce_rows[] = {
    {ONNX, "ReduceSum", claim_reduce, emit_reduce, "reduce_sum", .half = true},
    {ONNX, "ReduceMean", claim_reduce, emit_reduce, "reduce_mean", .half = true},
    {ONNX, "ReduceMax", claim_reduce, emit_reduce, "reduce_max", .half = true},
    {ONNX, "ReduceMin", claim_reduce, emit_reduce, "reduce_min", .half = true},
    {ONNX, "ReduceProd", claim_reduce, emit_reduce, "reduce_prod", .half = true},
    {ONNX, "ReduceSumSquare", claim_reduce, emit_reduce, "reduce_squares", .half = true},
    {ONNX, "ReduceL1", claim_reduce, emit_reduce, "reduce_l1", .half = true},
    {ONNX, "ReduceL2", claim_reduce, emit_reduce, "reduce_l2", .half = true},
    {ONNX, "ReduceLogSum", claim_reduce, emit_reduce, "reduce_log_sum", .half = true},
    {0},
};

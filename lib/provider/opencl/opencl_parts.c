/* opencl_parts.c - see opencl_parts.h. */
#include "provider/opencl/opencl_parts.h"

#include <string.h>

bool ort_cl_find_activation(const ort_node *node, ort_cl_activation *activation)
{
    static const struct {
        const char *name;
        ort_cl_activation is;
    } known[] = {
        {"", {0, 0, 0}},          {"Relu", {1, 0, 0}}, {"LeakyRelu", {2, 0.01, 0}},
        {"Clip", {3, -3.402823466e38, 3.402823466e38}}, {"Sigmoid", {4, 0, 0}},
        {"Tanh", {5, 0, 0}},      {"HardSigmoid", {6, 0.2, 0.5}},
    };
    size_t count = 0;
    const char *name = ort_node_string(node, "activation", "");
    const float *list = ort_node_floats(node, "activation_params", &count);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name))
            continue;
        *activation = known[i].is;
        activation->a = count > 0 ? list[0] : ort_node_float(node, "activation_alpha",
                                                             (float)activation->a);
        activation->b = count > 1 ? list[1] : ort_node_float(node, "activation_beta",
                                                             (float)activation->b);
        return true;
    }
    return false;
}

enum { TILE = 32, SIDE = 8 }; /* gemm.cl */

void ort_cl_multiply(ort_cl_step *s, const ort_cl_product *p)
{
    static const size_t local[3] = {SIDE, SIDE, 1};
    const int64_t grid[3] = {(p->n + TILE - 1) / TILE * SIDE, (p->m + TILE - 1) / TILE * SIDE,
                             p->batch1 * p->batch2};
    bool has_c = p->c.buffer >= 0;
    const ort_cl_matrix none = {.buffer = p->a.buffer}, *c = has_c ? &p->c : &none;
    ort_cl_launch_grid(s, "gemm", "gemm", grid, local, "bbbbiiiiiiiiiiiiiiiiiiiiiiiiiffiff",
                       p->a.buffer, p->b.buffer, c->buffer, p->y.buffer, (int64_t)has_c, p->m,
                       p->n, p->k, p->batch2, p->a.start, p->a.batch1, p->a.batch2, p->a.row,
                       p->a.column, p->b.start, p->b.batch1, p->b.batch2, p->b.row, p->b.column,
                       c->start, c->batch1, c->batch2, c->row, c->column, p->y.start, p->y.batch1,
                       p->y.batch2, p->y.row, p->y.column, p->alpha, p->beta, p->activation.kind,
                       p->activation.a, p->activation.b);
}

void ort_cl_softmax_rows(ort_cl_step *s, int from, int to, int64_t rows, int64_t count,
                         int64_t step, bool as_log)
{
    const int64_t grid[3] = {rows, 1, 1};
    ort_cl_launch_grid(s, "rows", "softmax", grid, NULL, "bbiii", from, to, count, step,
                       (int64_t)as_log);
}

void ort_cl_spread(const ort_type *type, int rank, int64_t *stride)
{
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        int own = d - (rank - type->rank);
        int64_t size = own >= 0 ? type->dim[own].size : 1;
        stride[d] = size == 1 ? 0 : step;
        step *= size;
    }
}

ort_cl_walk ort_cl_walk_of(const ort_type *type)
{
    ort_cl_walk w = {{1, 1, 1, 1, 1, 1}, {0}, {0}};
    for (int d = 0; d < type->rank; d++)
        w.n[ORT_CL_AXES - type->rank + d] = type->dim[d].size;
    return w;
}

void ort_cl_join_axes(ort_cl_walk *walk)
{
    ort_cl_walk w = {{1, 1, 1, 1, 1, 1}, {0}, {0}};
    int at = ORT_CL_AXES;
    for (int d = ORT_CL_AXES - 1; d >= 0; d--) {
        if (walk->n[d] == 1)
            continue;
        if (at < ORT_CL_AXES && walk->x[d] == w.x[at] * w.n[at] &&
            walk->y[d] == w.y[at] * w.n[at]) {
            w.n[at] *= walk->n[d];
            continue;
        }
        at--;
        w.n[at] = walk->n[d];
        w.x[at] = walk->x[d];
        w.y[at] = walk->y[d];
    }
    *walk = w;
}

bool ort_cl_is_given(const ort_graph *graph, const ort_node *node, int input)
{
    return !ort_cl_has(node, input) || graph->values.data[node->inputs[input]]->fact.value;
}

bool ort_cl_floats(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (ort_cl_has(node, i) &&
            graph->values.data[node->inputs[i]]->fact.type.dtype != ORT_DTYPE_FLOAT)
            return false;
    return true;
}

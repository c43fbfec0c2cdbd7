/* opencl_parts.c - see opencl_parts.h. */
#include "provider/opencl/opencl_parts.h"

#include <assert.h>
#include <stdio.h>
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

bool ort_cl_next_activation(const ort_cl_plan *p, const ort_device_step *step,
                            ort_cl_activation *activation)
{
    static const struct {
        const char *kernel;
        ort_cl_activation is;
    } known[] = {
        {"relu", {1, 0, 0}},    {"leaky_relu", {2, 0, 0}},
        {"clip", {3, 0, 0}},    {"sigmoid", {4, 0, 0}},
        {"tanh_", {5, 0, 0}},   {"hard_sigmoid", {6, 0, 0}},
        {"gelu", {7, 0, 0}},    {"hard_swish", {8, 1.0 / 6, 0.5}},
        {"swish", {9, 0, 0}},   {"quick_gelu", {9, 0, 0}},
        {"gelu_tanh", {10, 0, 0}},
    };
    const ort_cl_row *row = p->device->row_of(step->op);
    if (row->form != ORT_CL_ONE)
        return false;
    const ort_cl_step s = {.plan = (ort_cl_plan *)p, .node = step->node, .op = step->op,
                           .row = row};
    double two[2] = {0, 0};
    const char *kernel = row->numbers ? row->numbers(&s, two) : row->kernel;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].kernel, kernel))
            continue;
        *activation = known[i].is;
        if (row->numbers) {
            activation->a = two[0];
            activation->b = two[1];
        }
        return activation->kind != 3 || two[0] <= two[1];
    }
    return false;
}

ort_cl_activation ort_cl_activation_of(const ort_cl_step *s)
{
    ort_cl_activation activation = {0};
    if (s->next)
        (void)ort_cl_next_activation(s->plan, s->next, &activation);
    else
        (void)ort_cl_find_activation(s->node, &activation);
    return activation;
}

int64_t ort_cl_rows_of_item(const ort_cl_step *s, int64_t rows, int64_t others)
{
    const ort_cl_device *d = s->plan->device;
    int64_t tile = ort_cl_tile_of(s)->rows;
    int64_t enough = 4 * (d->units ? (int64_t)d->units : 1), count = ORT_CL_MOST_ROWS / tile * tile;
    while (count > 2 * tile && (rows + count - 1) / count * others < enough)
        count = (count / 2 + tile - 1) / tile * tile;
    if (rows < 1)
        return count;
    int64_t items = (rows + count - 1) / count, each = (rows + items - 1) / items;
    return (each + tile - 1) / tile * tile; /* as many each, that no item makes a rest alone */
}

enum { SUBS = 2 }; /* common.cl */

/* Is B a weight, or several of them? */
static bool has_weight(const ort_cl_step *s, const ort_cl_product *p)
{
    return p->b_input >= 0 && ort_cl_constant_input(s, p->b_input) && !p->b.batch1 && !p->b.batch2;
}

/* B in strips where it is a weight: its start, then. */
static ort_cl_matrix right_side(ort_cl_step *s, const ort_cl_product *p, int64_t *strip_step)
{
    int64_t strip = 2 * ort_cl_tile_of(s)->lanes, wide = strip ? (p->n + strip - 1) / strip : 0;
    ort_cl_strips strips = {0};
    ort_cl_matrix b = p->b;
    *strip_step = strip * b.column;
    if (has_weight(s, p) && strip) {
        strips = (ort_cl_strips){.start = b.start, .outer_step = b.column, .k_step = b.row,
                                 .batch = 1, .outer = p->n, .k = p->k, .strip = strip};
        *strip_step = strip * p->k;
        b = (ort_cl_matrix){-1, 0, 0, 0, strip, 1};
    }
    if (p->nodes) {
        b.batch2 = strip ? wide * strip * p->k : p->n * p->k;
        b.buffer = ort_cl_read_weights(s, p->nodes, (int)p->batch2, p->b_input, &strips);
    } else if (strips.strip) {
        b.buffer = ort_cl_read_strips(s, p->b_input, &strips);
    } else if (p->b_input >= 0) {
        b.buffer = ort_cl_read(s, p->b_input);
    }
    return b;
}

static void multiply(ort_cl_step *s, const ort_cl_product *p, const ort_cl_norm *norm,
                     int64_t rows)
{
    const ort_cl_tile *t = ort_cl_tile_of(s);
    const size_t side = t->lanes ? 1 : (size_t)t->side, group[3] = {side, side, 1};
    int64_t width = t->lanes ? 2 * SUBS * t->lanes : t->tile, wide = (p->n + width - 1) / width;
    int64_t batch = p->batch1 * p->batch2, strip_step;
    if (!rows)
        rows = t->lanes ? ort_cl_rows_of_item(s, p->m, wide * batch) : t->tile;
    int64_t high = (p->m + rows - 1) / rows;
    const int64_t grid[3] = {wide * (int64_t)side, high * (int64_t)side, batch};
    bool has_c = p->c.buffer >= 0;
    const ort_cl_matrix none = {.buffer = p->a.buffer}, *c = has_c ? &p->c : &none;
    const ort_cl_matrix b = right_side(s, p, &strip_step);
    assert(p->y.column == 1);
    const ort_cl_norm *o = norm; /* for what it lacks stands its scale */
    ort_cl_launch_grid(s, o->kind ? "gemm_norm" : "gemm", "gemm", grid, group,
                       "bbbboooooo|iiiiiiiiiiiiiiiiiiiiiiiiiiffiffiiiiif", p->a.buffer, b.buffer,
                       c->buffer, p->y.buffer, o->skip >= 0 ? o->skip : o->scale,
                       o->more >= 0 ? o->more : o->scale, o->scale,
                       o->shift >= 0 ? o->shift : o->scale, o->out,
                       o->kind ? ort_cl_counters(s, high) : -1, (int64_t)has_c, p->m, p->n, p->k,
                       p->batch2, p->a.start, p->a.batch1, p->a.batch2, p->a.row, p->a.column,
                       b.start, b.batch1, b.batch2, b.row, b.column, strip_step, c->start,
                       c->batch1, c->batch2, c->row, c->column, p->y.start, p->y.batch1,
                       p->y.batch2, p->y.row, p->y.column, p->alpha, p->beta, p->activation.kind,
                       p->activation.a, p->activation.b, rows, (int64_t)o->kind,
                       (int64_t)(o->skip >= 0), (int64_t)(o->more >= 0),
                       (int64_t)(o->shift >= 0), o->epsilon);
}

void ort_cl_multiply(ort_cl_step *s, const ort_cl_product *p)
{
    int64_t batch = p->batch1 * p->batch2;
    bool weight = p->b_input >= 0 && ort_cl_constant_input(s, p->b_input);
    char shape[ORT_CL_SHAPE];
    ort_cl_choices choices;
    ort_cl_product to = *p;
    ort_cl_norm norm = {0, -1, -1, -1, -1, -1, 0};
    snprintf(shape, sizeof shape, "gemm %lldx%lldx%lld, batch %lld%s%s%s", (long long)p->m,
             (long long)p->k, (long long)p->n, (long long)batch,
             p->a.column == 1 ? "" : ", turned", weight ? ", weight" : "",
             s->half ? ", halves" : "");
    ort_cl_choices_of(s, shape, p->m, (double)batch * (double)p->m * (double)p->n * (double)p->k,
                      &choices);
    bool whole = batch == 1 && p->y.row == p->n && choices.count == 1 &&
                 s->plan->device->tiles[choices.list[0].tiles].lanes;
    bool normed = to.y.buffer < 0 && whole && p->find_norm &&
                  p->find_norm(s, p->n, &norm, &to.y.buffer);
    if (to.y.buffer < 0 && !normed)
        to.y.buffer = ort_cl_write(s, 0);
    for (int i = 0; i < choices.count; i++) {
        int first = ort_cl_choose(s, &choices.list[i]);
        multiply(s, &to, &norm, choices.list[i].rows);
        ort_cl_chosen(s, &choices, i, first);
    }
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

enum { LONG = 64 }; /* a row whose beginning costs little */

/* An item goes along the last axis without a thought: a long one, which lies closely in one operand
 * at least. Where items have an element each, neighbours write neighbours. */
static void order_axes(ort_cl_walk *w)
{
    int64_t most = 0, best = ORT_CL_AXES - 1;
    for (int d = ORT_CL_AXES - 1; d >= 0; d--) {
        int64_t size = w->n[d] < LONG ? w->n[d] : LONG;
        int64_t worth = size * (w->y[d] == 1 ? 4 : w->x[d] == 1 ? 2 : 1);
        best = worth > most ? d : best;
        most = worth > most ? worth : most;
    }
    const int64_t n = w->n[best], x = w->x[best], y = w->y[best];
    for (int64_t d = best; d + 1 < ORT_CL_AXES; d++) {
        w->n[d] = w->n[d + 1];
        w->x[d] = w->x[d + 1];
        w->y[d] = w->y[d + 1];
    }
    w->n[ORT_CL_AXES - 1] = n;
    w->x[ORT_CL_AXES - 1] = x;
    w->y[ORT_CL_AXES - 1] = y;
}

void ort_cl_move_with(ort_cl_step *s, const char *kernel, int from, int to, ort_cl_walk w,
                      int64_t first, int64_t at)
{
    int64_t count = 1;
    for (int d = 0; d < ORT_CL_AXES; d++)
        count *= w.n[d];
    const int64_t grid[3] = {ort_cl_items(s, count), 1, 1};
    ort_cl_join_axes(&w);
    if (s->plan->device->lanes)
        order_axes(&w);
    ort_cl_launch_grid(s, "map", kernel, grid, NULL, "bb|vvviii", from, to, w.n, w.x, w.y, first,
                       at, count);
}

bool ort_cl_is_given(const ort_graph *graph, const ort_node *node, int input)
{
    if (!ort_cl_has(node, input))
        return true;
    const ort_fact *fact = &graph->values.data[node->inputs[input]]->fact;
    for (int i = 0; !fact->value && fact->symbolic && i < fact->symbolic_count; i++)
        if (fact->symbolic[i].expr == ORT_DIM_UNKNOWN)
            return false;
    return fact->value || fact->symbolic;
}

bool ort_cl_floats(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (ort_cl_has(node, i) &&
            graph->values.data[node->inputs[i]]->fact.type.dtype != ORT_DTYPE_FLOAT)
            return false;
    return true;
}

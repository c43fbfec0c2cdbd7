/* opencl_rnn.c - LSTM, GRU, RNN: one product gives what all inputs add to the gates, for all steps
 * at once; one launch then walks each row of the batch through time (cl/rnn.cl).
 */
#include <string.h>

#include "provider/opencl/opencl_parts.h"

enum { IN_X, IN_W, IN_R, IN_B, IN_LENGTHS, IN_H, IN_C, IN_PEEPHOLE };
enum { OUT_Y, OUT_H, OUT_C };

/* Kinds of common.cl, with the numbers that the operators give them by default. */
static const struct {
    const char *name;
    int kind;
} activations[] = {{"Relu", 1}, {"LeakyRelu", 2}, {"Sigmoid", 4}, {"Tanh", 5}, {"HardSigmoid", 6}};

static int kind_of(const ort_string *name)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (name->length == strlen(activations[i].name) &&
            !strncmp(name->ptr, activations[i].name, name->length))
            return activations[i].kind;
    return -1;
}

static int directions_of(const ort_node *node)
{
    return strcmp(ort_node_string(node, "direction", "forward"), "bidirectional") ? 1 : 2;
}

static int gates_of(const ort_node *node)
{
    return !strcmp(node->op_type, "LSTM") ? 4 : !strcmp(node->op_type, "GRU") ? 3 : 1;
}

/* How many a direction has: f, g, h of LSTM; f, g of GRU; f. */
static int activations_of(const ort_node *node)
{
    int gates = gates_of(node);
    return gates == 1 ? 1 : gates - 1;
}

/* False: there are others, or the directions differ. */
static bool find_kinds(const ort_node *node, int *kinds)
{
    size_t count = 0;
    const ort_string *names = ort_node_strings(node, "activations", &count);
    int own = activations_of(node), directions = directions_of(node);
    for (int i = 0; i < own; i++)
        kinds[i] = own > 1 && i == 0 ? 4 : 5;
    if (!count)
        return true;
    if ((int)count != own * directions)
        return false;
    for (int i = 0; i < (int)count; i++) {
        int kind = kind_of(&names[i]);
        if (kind < 0 || (i >= own && kind != kinds[i - own]))
            return false;
        if (i < own)
            kinds[i] = kind;
    }
    return true;
}

static bool claim_rnn(const ort_graph *graph, const ort_node *node, const char **why)
{
    int kinds[3];
    *why = "the element types have no kernel";
    for (int i = 0; i < node->input_count; i++)
        if (i != IN_LENGTHS && ort_cl_has(node, i) &&
            ort_cl_type(graph, node, i) != ORT_DTYPE_FLOAT)
            return false;
    *why = "these activations have no kernel";
    if (!find_kinds(node, kinds) || ort_node_has(node, "activation_alpha") ||
        ort_node_has(node, "activation_beta"))
        return false;
    *why = "this form has no kernel"; /* of opset 1, whose outputs an attribute chooses */
    return node->opset >= 7 && ort_cl_rank(graph, node, IN_X) == 3 &&
           ort_cl_rank(graph, node, IN_R) == 3;
}

typedef struct walk {
    ort_cl_step *s;
    int64_t steps, batch, depth, hidden, gates, directions;
    int64_t row_t, row_b;        /* rows of the product: of one step, of a row of the batch */
    int64_t y_t, y_d, y_b;       /* in hidden units */
    int64_t state_d, state_b;
    int product, states;
    int kinds[3];
} walk;

static void find_layout(walk *w)
{
    const ort_type *x = &ort_cl_in(w->s, IN_X)->type;
    bool batch_first = ort_node_int(w->s->node, "layout", 0);
    int64_t d = w->directions;
    w->steps = x->dim[batch_first].size;
    w->batch = x->dim[!batch_first].size;
    w->depth = x->dim[2].size;
    w->row_t = batch_first ? 1 : w->batch;
    w->row_b = batch_first ? w->steps : 1;
    w->y_t = batch_first ? d : d * w->batch;
    w->y_d = batch_first ? 1 : w->batch;
    w->y_b = batch_first ? w->steps * d : 1;
    w->state_d = batch_first ? 1 : w->batch;
    w->state_b = batch_first ? d : 1;
}

/* X W of all steps in each direction. */
static void multiply(walk *w)
{
    int64_t all = w->gates * w->hidden, rows = w->steps * w->batch;
    w->product = ort_cl_scratch(w->s, w->directions * rows * all);
    int x = ort_cl_read(w->s, IN_X);
    for (int64_t d = 0; d < w->directions; d++) {
        ort_cl_product p = {.batch1 = 1, .batch2 = 1, .m = rows, .n = all, .k = w->depth,
                            .c = ort_cl_no_matrix(), .b_input = IN_W, .alpha = 1};
        p.a = (ort_cl_matrix){x, 0, 0, 0, w->depth, 1};
        p.b = (ort_cl_matrix){0, d * all * w->depth, 0, 0, 1, w->depth};
        p.y = (ort_cl_matrix){w->product, d * rows * all, 0, 0, all, 1};
        ort_cl_multiply(w->s, &p);
    }
}

/* Both biases; of a GRU whose hidden gate keeps its own, without that. */
static void add_bias(walk *w, bool apart)
{
    int64_t all = w->gates * w->hidden, rows = w->steps * w->batch;
    const int64_t grid[3] = {ort_cl_along(w->s, all), rows, w->directions};
    if (ort_cl_has(w->s->node, IN_B))
        ort_cl_launch_grid(w->s, "rnn", "add_bias", grid, NULL, "bbii", w->product,
                           ort_cl_read(w->s, IN_B), all, apart ? all - w->hidden : all);
}

/* An input or output, or what stands for it where it isn't there. */
static int in_or(const walk *w, int input)
{
    return ort_cl_has(w->s->node, input) ? ort_cl_read(w->s, input) : w->product;
}

static int out_or(const walk *w, int output)
{
    return ort_cl_gives(w->s->node, output) ? ort_cl_write(w->s, output) : w->states;
}

static void group_of(const walk *w, int64_t *grid, size_t *local)
{
    const ort_cl_device *d = w->s->plan->device;
    size_t most = d->most_group < 256 ? d->most_group : 256;
    local[0] = d->lanes ? 1 : (size_t)w->hidden < most ? (size_t)w->hidden : most;
    local[0] = local[0] ? local[0] : 1;
    local[1] = local[2] = 1;
    grid[0] = w->directions * w->batch * (int64_t)local[0];
    grid[1] = grid[2] = 1;
}

static void walk_lstm(walk *w, const int64_t *grid, const size_t *local)
{
    const ort_node *node = w->s->node;
    int cells = ort_cl_scratch(w->s, w->directions * w->batch * w->hidden);
    ort_cl_launch_grid(
        w->s, "rnn", "lstm", grid, local, "bbbbbbbbbbbiiiiiiiiiiiiiiiiiiiiiif", w->product,
        ort_cl_read(w->s, IN_R), in_or(w, IN_PEEPHOLE), in_or(w, IN_LENGTHS), in_or(w, IN_H),
        in_or(w, IN_C), w->states, cells, out_or(w, OUT_Y), out_or(w, OUT_H), out_or(w, OUT_C),
        (int64_t)ort_cl_has(node, IN_PEEPHOLE), (int64_t)ort_cl_has(node, IN_LENGTHS),
        (int64_t)ort_cl_has(node, IN_H), (int64_t)ort_cl_has(node, IN_C),
        (int64_t)ort_cl_gives(node, OUT_Y), (int64_t)ort_cl_gives(node, OUT_H),
        (int64_t)ort_cl_gives(node, OUT_C), w->steps, w->batch, w->hidden, w->row_t, w->row_b,
        w->y_t, w->y_d, w->y_b, w->state_d, w->state_b,
        (int64_t)!strcmp(ort_node_string(node, "direction", "forward"), "reverse"),
        ort_node_int(node, "input_forget", 0), (int64_t)w->kinds[0], (int64_t)w->kinds[1],
        (int64_t)w->kinds[2], (double)ort_node_float(node, "clip", 0));
}

static void walk_gru(walk *w, const int64_t *grid, const size_t *local)
{
    const ort_node *node = w->s->node;
    int resets = ort_cl_scratch(w->s, w->directions * w->batch * w->hidden);
    ort_cl_launch_grid(
        w->s, "rnn", "gru", grid, local, "bbbbbbbbbiiiiiiiiiiiiiiiiiiif", w->product,
        ort_cl_read(w->s, IN_R), in_or(w, IN_B), in_or(w, IN_LENGTHS), in_or(w, IN_H), w->states,
        resets, out_or(w, OUT_Y), out_or(w, OUT_H), (int64_t)ort_cl_has(node, IN_B),
        (int64_t)ort_cl_has(node, IN_LENGTHS), (int64_t)ort_cl_has(node, IN_H),
        (int64_t)ort_cl_gives(node, OUT_Y), (int64_t)ort_cl_gives(node, OUT_H), w->steps, w->batch,
        w->hidden, w->row_t, w->row_b, w->y_t, w->y_d, w->y_b, w->state_d, w->state_b,
        (int64_t)!strcmp(ort_node_string(node, "direction", "forward"), "reverse"),
        ort_node_int(node, "linear_before_reset", 0), (int64_t)w->kinds[0], (int64_t)w->kinds[1],
        (double)ort_node_float(node, "clip", 0));
}

static void walk_rnn(walk *w, const int64_t *grid, const size_t *local)
{
    const ort_node *node = w->s->node;
    ort_cl_launch_grid(
        w->s, "rnn", "rnn", grid, local, "bbbbbbbiiiiiiiiiiiiiiiif", w->product,
        ort_cl_read(w->s, IN_R), in_or(w, IN_LENGTHS), in_or(w, IN_H), w->states,
        out_or(w, OUT_Y), out_or(w, OUT_H), (int64_t)ort_cl_has(node, IN_LENGTHS),
        (int64_t)ort_cl_has(node, IN_H), (int64_t)ort_cl_gives(node, OUT_Y),
        (int64_t)ort_cl_gives(node, OUT_H), w->steps, w->batch, w->hidden, w->row_t, w->row_b,
        w->y_t, w->y_d, w->y_b, w->state_d, w->state_b,
        (int64_t)!strcmp(ort_node_string(node, "direction", "forward"), "reverse"),
        (int64_t)w->kinds[0], (double)ort_node_float(node, "clip", 0));
}

static ort_status emit_rnn(ort_cl_step *s, ort_error *err)
{
    const ort_fact *r = ort_cl_in(s, IN_R);
    walk w = {.s = s, .gates = gates_of(s->node), .directions = ort_cl_dim(r, 0),
              .hidden = ort_cl_dim(r, 2)};
    int64_t grid[3];
    size_t local[3];
    find_kinds(s->node, w.kinds);
    find_layout(&w);
    multiply(&w);
    add_bias(&w, w.gates == 3 && ort_node_int(s->node, "linear_before_reset", 0));
    w.states = ort_cl_scratch(s, 2 * w.directions * w.batch * w.hidden);
    group_of(&w, grid, local);
    (w.gates == 4 ? walk_lstm : w.gates == 3 ? walk_gru : walk_rnn)(&w, grid, local);
    return ORT_OK;
}

const ort_cl_row ort_cl_rnn_rows[] = {
    {ONNX, "LSTM", claim_rnn, emit_rnn},
    {ONNX, "GRU", claim_rnn, emit_rnn},
    {ONNX, "RNN", claim_rnn, emit_rnn},
    {0},
};

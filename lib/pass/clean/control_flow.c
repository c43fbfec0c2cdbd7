/* control_flow.c - control flow whose way is known becomes plain nodes.
 *
 *     If of a constant condition      the nodes of its branch
 *     Loop of no round                its initial values
 *     Loop, Scan of n known rounds    n copies of the body
 *
 * A copy per round makes a file grow: beyond the first it is paid from the growth budget, in bytes
 * of the nodes; the body's constants are shared. A Loop unrolls when its condition certainly stays
 * true. In a session only what runs at most once goes: its nodes are as fast inside as outside.
 */
#pragma GCC optimize("Os") /* once a session or less */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/copy_body.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/pass.h"
#include "tensor/scalar.h"

/* Beyond this a loop is the smaller and, planned once, the faster form. */
enum { MAX_NODES = 128 };

typedef struct site {
    ort_pass_context *c;
    ort_node *node;
    ort_graph *body;
    ort_name_counts *counts;
    int64_t rounds;
    int first;   /* slot of the first carried value; Scan: of the first state */
    int carried; /* values carried from round to round */
    int scanned; /* Scan: inputs that are cut into rounds */
} site;

/* ---- the copies */

/* The values that a round's copy gives for the body's outputs, in `results`. `inputs` has what the
 * body's inputs mean, `outputs` what its outputs shall be called (ORT_ID_NONE: anything). */
typedef struct round_io {
    ort_id *map; /* by value of the body; constants stay from copy to copy */
    const ort_id *inputs, *outputs;
    ort_id *results;
    bool first;
} round_io;

static void bind(const site *s, const round_io *io)
{
    const ort_graph *body = s->body;
    for (size_t v = 0; v < body->values.count; v++)
        if (io->first || body->producers.data[v] != ORT_ID_NONE)
            io->map[v] = ORT_ID_NONE;
    for (size_t i = 0; i < body->inputs.count; i++)
        io->map[body->inputs.data[i]] = io->inputs[i];
    for (size_t i = 0; i < body->outputs.count; i++) {
        ort_id id = body->outputs.data[i];
        if (io->map[id] == ORT_ID_NONE && body->producers.data[id] != ORT_ID_NONE)
            io->map[id] = io->outputs[i];
    }
}

/* In a body a contradiction stays: it may be of a branch that the shapes at hand never take (a
 * model for two sampling rates, say), which the If around it judges. */
static ort_status infer_new(ort_graph *graph, size_t from, ort_error *err)
{
    for (size_t i = from; i < graph->nodes.count; i++) {
        ort_status status = ort_node_infer(graph, graph->nodes.data[i], err);
        if (status != ORT_OK && !(graph->parent && status == ORT_ERROR_MODEL))
            return status;
    }
    return ORT_OK;
}

/* A result that has its value already (a capture, a constant, an input, the same as another). */
static ort_status pass_on(const site *s, ort_id from, ort_id to, ort_error *err)
{
    ort_node_spec spec = {.domain = ONNX, .op_type = "Identity", .name = s->node->name,
                          .inputs = &from, .input_count = 1, .outputs = &to, .output_count = 1,
                          .origin = ort_edit_origin_of(s->node)};
    return from == to ? ORT_OK : ort_edit_add_node(s->c->graph, &spec, NULL, err);
}

static ort_status copy_round(const site *s, const round_io *io, const char *suffix, ort_error *err)
{
    ort_graph *graph = s->c->graph;
    size_t from = graph->nodes.count;
    ort_body_copy copy = {.graph = graph, .body = s->body, .counts = s->counts, .map = io->map,
                          .suffix = suffix, .keeps_constants = !io->first};
    bind(s, io);
    ORT_TRY(ort_body_copy_nodes(&copy, err));
    ORT_TRY(infer_new(graph, from, err));
    for (size_t i = 0; i < s->body->outputs.count; i++) {
        io->results[i] = io->map[s->body->outputs.data[i]];
        if (io->outputs[i] != ORT_ID_NONE)
            ORT_TRY(pass_on(s, io->results[i], io->outputs[i], err));
    }
    return ORT_OK;
}

/* ---- If */

/* The node goes first: its outputs then are free for the nodes of its branch. */
static ort_status inline_if(site *s, ort_error *err)
{
    size_t outs = s->body->outputs.count;
    ort_id *list = calloc(2 * outs + s->body->values.count + 1, sizeof *list);
    if (!list)
        return ort_error_memory(err, sizeof *list * outs);
    for (size_t i = 0; i < outs; i++)
        list[i] = (int)i < s->node->output_count ? s->node->outputs[i] : ORT_ID_NONE;
    round_io io = {.map = list + 2 * outs, .outputs = list, .results = list + outs, .first = true};
    ort_status status = ort_name_counts_take(s->counts, s->c->graph, s->node, err);
    ort_graph_remove_node(s->c->graph, s->node);
    if (status == ORT_OK)
        status = copy_round(s, &io, "", err);
    free(list);
    return status;
}

static ort_status try_if(ort_pass_context *c, ort_node *node, ort_name_counts *counts, int *changes,
                         ort_error *err)
{
    int64_t condition;
    if (!ort_tensor_one_i64(ort_edit_constant(c->graph, node, 0), &condition))
        return ORT_OK;
    const char *branch = condition ? "then_branch" : "else_branch";
    int body = ort_node_body(node, branch);
    site s = {.c = c, .node = node, .counts = counts};
    if (body < 0)
        return ORT_OK;
    s.body = node->bodies[body];
    if (!ort_body_is_copyable(s.body, true)) {
        ort_pass_note(c, node, "its branch has a constant that isn't at hand");
        return ORT_OK;
    }
    ++*changes;
    return inline_if(&s, err);
}

/* ---- Loop and Scan */

static size_t body_bytes(const ort_graph *body, int *nodes)
{
    const ort_node *node;
    size_t bytes = 0;
    *nodes = 0;
    ORT_EACH_NODE(body, node)
    {
        ++*nodes;
        bytes += ort_edit_message_bytes(body, node);
    }
    return bytes;
}

/* May the body be there so many times? */
static bool affordable(const site *s)
{
    int nodes;
    size_t bytes = body_bytes(s->body, &nodes), more;
    if (s->rounds <= 1)
        return true;
    if (!s->c->portable)
        return false;
    if (s->rounds > MAX_NODES || s->rounds * nodes > MAX_NODES) {
        ort_pass_note(s->c, s->node, "%lld rounds of %d nodes are too many to unroll",
                      (long long)s->rounds, nodes);
        return false;
    }
    more = bytes * (size_t)(s->rounds - 1);
    if (more > *s->c->growth_bytes) {
        ort_pass_note(s->c, s->node, "%lld rounds exceed the growth budget",
                      (long long)s->rounds);
        return false;
    }
    *s->c->growth_bytes -= more;
    return true;
}

static ort_status add_number(ort_graph *graph, const char *name, ort_dtype dtype, int64_t number,
                             ort_id *id, ort_error *err)
{
    bool truth = number != 0;
    ort_tensor t = {.dtype = dtype, .data = dtype == ORT_DTYPE_BOOL ? (void *)&truth
                                                                    : (void *)&number};
    return ort_edit_add_constant(graph, name, &t, id, err);
}

/* One node with an axis, its result a new value. */
static ort_status add_axis_node(const site *s, const char *op_type, const ort_id *inputs,
                                int count, int64_t axis, ort_id *result, ort_error *err)
{
    bool listed = !strcmp(op_type, "Unsqueeze");
    ort_attr attr = listed ? ort_attr_ints("axes", &axis, 1) : ort_attr_int("axis", axis);
    if (*result == ORT_ID_NONE)
        *result = ort_graph_add_value(s->c->graph, s->node->name);
    if (*result == ORT_ID_NONE)
        return ort_error_memory(err, sizeof attr);
    ort_id with_axes[2] = {inputs[0]};
    ort_node_spec spec = {.domain = ONNX, .op_type = op_type, .name = s->node->name,
                          .inputs = inputs, .input_count = count, .outputs = result,
                          .output_count = 1, .set = &attr, .set_count = 1,
                          .origin = ort_edit_origin_of(s->node)};
    if (listed && ort_model_opset(s->c->graph->model, ONNX) >= 13) {
        ORT_TRY(ort_constant_named(s->c->graph, "axes", &axis, 1, &with_axes[1], err));
        spec.inputs = with_axes;
        spec.input_count = 2;
        spec.set_count = 0;
    }
    return ort_edit_add_node(s->c->graph, &spec, NULL, err);
}

/* The rounds' parts of an output, stacked along an axis. */
static ort_status stack(const site *s, ort_id *parts, int64_t axis, bool reversed, ort_id output,
                        ort_error *err)
{
    bool one = s->rounds == 1;
    for (int64_t i = 0; i < s->rounds; i++) {
        ort_id made = one ? output : ORT_ID_NONE;
        ORT_TRY(add_axis_node(s, "Unsqueeze", &parts[i], 1, axis, &made, err));
        parts[i] = made;
    }
    for (int64_t i = 0; reversed && i < s->rounds / 2; i++) {
        ort_id swap = parts[i];
        parts[i] = parts[s->rounds - 1 - i];
        parts[s->rounds - 1 - i] = swap;
    }
    return one ? ORT_OK
               : add_axis_node(s, "Concat", parts, (int)s->rounds, axis, &output, err);
}

static int64_t listed_at(const ort_node *node, const char *name, int at)
{
    size_t count = 0;
    const int64_t *list = ort_node_ints(node, name, &count);
    return list && at < (int)count ? list[at] : 0;
}

/* What the body's inputs mean in this round. */
static ort_status round_inputs(const site *s, int64_t round, const ort_id *state, ort_id *inputs,
                               ort_error *err)
{
    ort_graph *graph = s->c->graph;
    int at = 0;
    if (!s->scanned && s->first == 2) { /* Loop: its number and its condition */
        ORT_TRY(add_number(graph, "round", ORT_DTYPE_INT64, round, &inputs[at++], err));
        ORT_TRY(add_number(graph, "goes_on", ORT_DTYPE_BOOL, 1, &inputs[at++], err));
    }
    for (int i = 0; i < s->carried; i++)
        inputs[at++] = state[i];
    for (int i = 0; i < s->scanned; i++) {
        bool reversed = listed_at(s->node, "scan_input_directions", i) != 0;
        ort_id pair[2] = {s->node->inputs[s->carried + i]};
        inputs[at] = ORT_ID_NONE;
        ORT_TRY(add_number(graph, "round", ORT_DTYPE_INT64,
                           reversed ? s->rounds - 1 - round : round, &pair[1], err));
        ORT_TRY(add_axis_node(s, "Gather", pair, 2, listed_at(s->node, "scan_input_axes", i),
                              &inputs[at++], err));
    }
    return ORT_OK;
}

typedef struct unrolling { /* lists, in one block */
    ort_id *inputs, *outputs, *results, *state, *map;
    ort_id *parts; /* [output][round] */
} unrolling;

static ort_status finish(const site *s, const unrolling *u, const ort_id *outputs, ort_error *err)
{
    int skip = s->scanned ? 0 : 1; /* the Loop's condition */
    int outs = (int)s->body->outputs.count - skip;
    for (int i = 0; i < outs && i < s->node->output_count; i++) {
        if (outputs[i] == ORT_ID_NONE)
            continue;
        if (i < s->carried) {
            ORT_TRY(pass_on(s, u->state[i], outputs[i], err));
            continue;
        }
        int k = i - s->carried;
        ORT_TRY(stack(s, u->parts + (skip + i) * s->rounds,
                      s->scanned ? listed_at(s->node, "scan_output_axes", k) : 0,
                      s->scanned && listed_at(s->node, "scan_output_directions", k), outputs[i],
                      err));
    }
    return ORT_OK;
}

static ort_status unroll_rounds(const site *s, unrolling *u, ort_error *err)
{
    size_t outs = s->body->outputs.count;
    int skip = s->scanned ? 0 : 1;
    for (int i = 0; i < s->carried; i++)
        u->state[i] = s->node->inputs[s->first + i];
    for (size_t i = 0; i < outs; i++)
        u->outputs[i] = ORT_ID_NONE;
    for (int64_t round = 0; round < s->rounds; round++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, "/%lld", (long long)round);
        round_io io = {.map = u->map, .inputs = u->inputs, .outputs = u->outputs,
                       .results = u->results, .first = round == 0};
        ORT_TRY(round_inputs(s, round, u->state, u->inputs, err));
        ORT_TRY(copy_round(s, &io, s->rounds == 1 ? "" : suffix, err));
        for (int i = 0; i < s->carried; i++)
            u->state[i] = u->results[skip + i];
        for (size_t i = 0; i < outs; i++)
            u->parts[(int64_t)i * s->rounds + round] = u->results[i];
    }
    return ORT_OK;
}

static ort_status unroll(site *s, ort_error *err)
{
    size_t ins = s->body->inputs.count, outs = s->body->outputs.count;
    size_t values = s->body->values.count;
    size_t total = ins + 2 * outs + (size_t)s->carried + values + outs * (size_t)s->rounds;
    ort_id *block = calloc(total + 1, sizeof *block);
    if (!block)
        return ort_error_memory(err, total * sizeof *block);
    unrolling u = {.inputs = block, .outputs = block + ins, .results = block + ins + outs};
    u.state = u.results + outs;
    u.map = u.state + s->carried;
    u.parts = u.map + values;
    ort_status status = ort_name_counts_take(s->counts, s->c->graph, s->node, err);
    ort_graph_remove_node(s->c->graph, s->node); /* its outputs are free, its inputs still known */
    if (status == ORT_OK)
        status = unroll_rounds(s, &u, err);
    if (status == ORT_OK)
        status = finish(s, &u, s->node->outputs, err);
    free(block);
    return status;
}

static bool certainly_true(const ort_graph *graph, ort_id id, bool absent)
{
    if (id == ORT_ID_NONE)
        return absent;
    int64_t number;
    return ort_tensor_one_i64(graph->values.data[id]->fact.value, &number) && number;
}

/* Does the body say "go on" whatever happens? Inference runs it with a true condition. */
static bool goes_on(const ort_graph *body)
{
    ort_id out = body->outputs.data[0];
    return out == body->inputs.data[1] || certainly_true(body, out, false);
}

/* Rounds of a Loop, or -1 with a note. */
static int64_t loop_rounds(const ort_pass_context *c, const ort_node *node, const ort_graph *body)
{
    const ort_tensor *trips = ort_edit_constant(c->graph, node, 0);
    const ort_tensor *condition = ort_edit_constant(c->graph, node, 1);
    bool has_condition = ort_edit_input(node, 1) != ORT_ID_NONE;
    int64_t enters, count;
    if (has_condition && ort_tensor_one_i64(condition, &enters) && !enters)
        return 0;
    if (!ort_tensor_one_i64(trips, &count))
        return -1;
    if (count <= 0)
        return 0;
    if (has_condition && (!condition || !condition->data || ort_tensor_count(condition) != 1)) {
        ort_pass_note(c, node, "its first condition isn't constant");
        return -1;
    }
    if (count > 1 && !goes_on(body)) {
        ort_pass_note(c, node, "its condition may change");
        return -1;
    }
    return count;
}

/* No round: outputs that stack parts would be empty, of a shape that only a run tells. */
static bool has_stacked(const ort_node *node, int carried)
{
    for (int i = carried; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            return true;
    return false;
}

static ort_status run_site(site *s, int *changes, ort_error *err)
{
    if (s->rounds < 0 || s->body->inputs.count == 0 || s->body->outputs.count == 0)
        return ORT_OK;
    if (s->rounds == 0 && has_stacked(s->node, s->carried)) {
        ort_pass_note(s->c, s->node, "it runs no round, and the shape of an output isn't known");
        return ORT_OK;
    }
    if (!ort_body_is_copyable(s->body, s->rounds <= 1)) {
        if (s->c->portable)
            ort_pass_note(s->c, s->node, "its body has control flow inside, or a constant that "
                                         "isn't at hand");
        return ORT_OK;
    }
    if (!affordable(s))
        return ORT_OK;
    ++*changes;
    return unroll(s, err);
}

static ort_status try_loop(ort_pass_context *c, ort_node *node, ort_name_counts *counts,
                           int *changes, ort_error *err)
{
    int body = ort_node_body(node, "body");
    site s = {.c = c, .node = node, .counts = counts, .first = 2,
              .carried = node->input_count > 2 ? node->input_count - 2 : 0};
    if (body < 0 || node->input_count < 2)
        return ORT_OK;
    s.body = node->bodies[body];
    if ((int)s.body->inputs.count != s.carried + 2 || (int)s.body->outputs.count <= s.carried)
        return ORT_OK;
    s.rounds = loop_rounds(c, node, s.body);
    return run_site(&s, changes, err);
}

/* Rounds of a Scan: what is cut along its axis has a known size. */
static int64_t scan_rounds(const ort_graph *graph, const ort_node *node, int first)
{
    int64_t rounds = -1;
    for (int i = first; i < node->input_count; i++) {
        const ort_type *type = ort_fact_tensor(graph, node->inputs[i]);
        int axis = type ? ort_axis_in(listed_at(node, "scan_input_axes", i - first), type->rank)
                        : -1;
        if (axis < 0 || !ort_dim_known(type->dim[axis]) ||
            (rounds >= 0 && rounds != type->dim[axis].size))
            return -1;
        rounds = type->dim[axis].size;
    }
    return rounds;
}

static ort_status try_scan(ort_pass_context *c, ort_node *node, ort_name_counts *counts,
                           int *changes, ort_error *err)
{
    int body = ort_node_body(node, "body");
    site s = {.c = c, .node = node, .counts = counts,
              .scanned = (int)ort_node_attr_int(node, "num_scan_inputs")};
    s.carried = node->input_count - s.scanned;
    if (body < 0 || node->opset < 9 || s.scanned < 1 || s.carried < 0)
        return ORT_OK;
    s.body = node->bodies[body];
    if ((int)s.body->inputs.count != node->input_count ||
        (int)s.body->outputs.count < s.carried)
        return ORT_OK;
    s.rounds = scan_rounds(c->graph, node, s.carried);
    return s.rounds > 0 ? run_site(&s, changes, err) : ORT_OK;
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_name_counts counts = {0};
    ort_status status = ORT_OK;
    ort_node *node;
    ORT_PASS_EACH_NODE(c->graph, node)
    {
        bool is_if = ort_edit_is(node, ONNX, "If"), is_loop = ort_edit_is(node, ONNX, "Loop");
        if (!is_if && !is_loop && !ort_edit_is(node, ONNX, "Scan"))
            continue;
        status = is_if     ? try_if(c, node, &counts, changes, err)
                 : is_loop ? try_loop(c, node, &counts, changes, err)
                           : try_scan(c, node, &counts, changes, err);
        if (status != ORT_OK)
            break;
    }
    ort_name_counts_release(&counts);
    return status;
}

const ort_pass ort_pass_control_flow = {
    .name = "control_flow",
    .level = 1,
    .exact = true,
    .doc = "If of a known condition, Loop and Scan of few known rounds become plain nodes",
    .apply = apply,
};

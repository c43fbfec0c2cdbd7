/* random_inputs.c - made-up inputs for a session, the same on every machine for a seed.
 *
 * Sizes come from made_up_sizes.c, values from the rule of ort-formats(5): what indexes (traced to
 * Gather, OneHot and their kin) stays in bounds, masks are ones, positions count up, sequences are
 * as long as they can be, what the graph compares with a constant takes that constant, the rest is
 * normal. Strings need a sample. Sums of twelve uniform draws stand for the normal distribution: no
 * library function, so the same bits everywhere.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "made_up/made_up.h"
#include "op/edit.h"
#include "tensor/scalar.h"

#define TRACE_DEPTH 12
#define FILL_STEPS 10
#define TRACE_SLOTS (1 << 24) /* looked at, in all: lists and ladders of moves are long */

typedef enum role { ROLE_FREE, ROLE_INDEX, ROLE_COMPARED } role;

typedef struct trace {
    role role;
    int64_t bound;  /* of an index: exclusive */
    double constant;
    int64_t slots;  /* looked at */
} trace;

typedef struct maker {
    const ort_session *session;
    uint64_t state;
    ort_sizes sizes;
    ort_pace pace;
} maker;

/* ---- numbers */

static uint64_t draw(maker *m)
{
    uint64_t x = m->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double draw_uniform(maker *m)
{
    return (double)(draw(m) >> 11) * 0x1p-53;
}

static double draw_normal(maker *m)
{
    double sum = -6.0;
    for (int i = 0; i < 12; i++)
        sum += draw_uniform(m);
    return sum;
}

/* ---- what becomes of an input */

static bool one_of(const ort_node *node, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(node->op_type, *names))
            return true;
    return false;
}

static const char *const movers[] = {"Cast",    "Reshape",   "Unsqueeze", "Squeeze", "Identity",
                                     "Flatten", "Transpose", "Slice",     "Expand",  "Concat",
                                     "Gather",  "Split",     "Tile",      NULL};
static const char *const gathers[] = {"Gather", "GatherElements", "GatherND", NULL};
static const char *const comparers[] = {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual",
                                        NULL};

/* Size of the axis that indices of a Gather run over; 0 when not known. */
static int64_t gathered_size(const ort_graph *graph, const ort_node *node)
{
    const ort_graph_value *data = ort_graph_value_at(graph, node->inputs[0]);
    const ort_type *type = data ? &data->fact.type : NULL;
    int64_t axis = strcmp(node->op_type, "GatherND")
                       ? ort_node_int(node, "axis", 0)
                       : ort_node_int(node, "batch_dims", 0);
    if (!type || type->kind != ORT_TYPE_TENSOR || type->rank <= 0)
        return 0;
    axis += axis < 0 ? type->rank : 0;
    if (axis < 0 || axis >= type->rank || !ort_dim_known(type->dim[axis]))
        return 0;
    return type->dim[axis].size;
}

static void found_index(trace *t, int64_t bound)
{
    if (bound <= 0)
        bound = 1;
    if (t->role != ROLE_INDEX || bound < t->bound)
        t->bound = bound;
    t->role = ROLE_INDEX;
}

/* Operators that pick rows of a table by one of their inputs. */
static const struct {
    const char *domain, *op_type;
    int index, table; /* slots */
} lookups[] = {
    {MS, "EmbedLayerNormalization", 0, 2}, {MS, "EmbedLayerNormalization", 1, 4},
    {MS, "EmbedLayerNormalization", 8, 3}, {MS, "RotaryEmbedding", 1, 2},
    {ONNX, "RotaryEmbedding", 3, 1},
};

/* The rows that slot `slot` of the node picks from; 0: it isn't such an input. */
static int64_t looked_up(const ort_graph *graph, const ort_node *node, int slot)
{
    for (size_t i = 0; i < sizeof lookups / sizeof *lookups; i++) {
        if (slot != lookups[i].index || !ort_edit_is(node, lookups[i].domain, lookups[i].op_type) ||
            lookups[i].table >= node->input_count)
            continue;
        const ort_graph_value *table = ort_graph_value_at(graph, node->inputs[lookups[i].table]);
        if (table && table->fact.type.kind == ORT_TYPE_TENSOR && table->fact.type.rank > 0 &&
            ort_dim_known(table->fact.type.dim[0]))
            return table->fact.type.dim[0].size;
    }
    return 0;
}

/* Is this input a mask: of keys, or whatever becomes conditions? */
static bool is_mask(const ort_node *node, int slot)
{
    return (slot == 4 && ort_edit_is(node, MS, "MultiHeadAttention")) ||
           (slot == 3 && ort_edit_is(node, MS, "Attention")) ||
           (slot == 0 && ort_edit_is(node, ONNX, "Cast") &&
            ort_node_int(node, "to", 0) == ORT_DTYPE_BOOL);
}

/* How many steps a recurrence has, where this input says how many of them each sequence takes; 0:
 * it is another input. Of an open number of steps the first alone is sure to be there. */
static int64_t steps_of(const ort_graph *graph, const ort_node *node, int slot)
{
    if (slot != 4 || !ort_edit_is_any(node, "LSTM|GRU|RNN"))
        return 0;
    const ort_type *x = ort_fact_tensor(graph, node->inputs[0]);
    const bool known = x && x->rank == 3 && ort_dim_known(x->dim[0]);
    return known && x->dim[0].size > 0 ? x->dim[0].size : 1;
}

static void follow(const ort_graph *graph, ort_id id, int depth, trace *t);

static void look_at(const ort_graph *graph, const ort_node *node, int slot, int depth, trace *t)
{
    if (slot == 1 && one_of(node, gathers)) {
        found_index(t, gathered_size(graph, node));
        return;
    }
    int64_t rows = looked_up(graph, node, slot);
    if (rows > 0) {
        found_index(t, rows);
        return;
    }
    if (slot == 0 && !strcmp(node->op_type, "OneHot")) {
        int64_t size = 1;
        ort_tensor_one_i64(ort_edit_constant(graph, node, 1), &size);
        found_index(t, size);
        return;
    }
    const int64_t steps = steps_of(graph, node, slot);
    if ((steps > 0 || is_mask(node, slot)) && t->role == ROLE_FREE) {
        t->role = ROLE_COMPARED;
        t->constant = steps > 0 ? (double)steps : 1;
        return;
    }
    if (slot < 2 && node->input_count == 2 && one_of(node, comparers)) {
        double other;
        if (t->role == ROLE_FREE &&
            ort_tensor_one_f64(ort_edit_constant(graph, node, 1 - slot), &other)) {
            t->role = ROLE_COMPARED;
            t->constant = other;
        }
        return;
    }
    if (one_of(node, movers) && (slot == 0 || !strcmp(node->op_type, "Concat")))
        for (int i = 0; i < node->output_count; i++)
            if (node->outputs[i] != ORT_ID_NONE)
                follow(graph, node->outputs[i], depth - 1, t);
}

static void follow(const ort_graph *graph, ort_id id, int depth, trace *t)
{
    const ort_node *node;
    if (depth <= 0 || t->slots >= TRACE_SLOTS || graph->values.data[id]->use_count == 0)
        return;
    ORT_EACH_NODE(graph, node)
    {
        t->slots += node->input_count + 1;
        for (int i = 0; i < node->input_count && t->slots < TRACE_SLOTS; i++)
            if (node->inputs[i] == id)
                look_at(graph, node, i, depth, t);
        for (int i = 0; i < node->implicit_count && t->slots < TRACE_SLOTS; i++) {
            if (node->implicit[i] != id)
                continue;
            for (int b = 0; b < node->body_count; b++)
                for (size_t v = 0; v < node->bodies[b]->values.count; v++)
                    if (node->bodies[b]->values.data[v]->outer == id)
                        follow(node->bodies[b], (ort_id)v, depth - 1, t);
        }
    }
}

/* ---- values */

static bool named(const char *name, const char *part)
{
    char lower[128];
    size_t i = 0;
    for (; name[i] && i + 1 < sizeof lower; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    lower[i] = 0;
    return strstr(lower, part) != NULL;
}

/* Each ends when the work is stopped: whoever made the tensor asks. */

static void fill_counting(maker *m, ort_tensor *t)
{
    int64_t count = ort_tensor_count(t);
    int64_t last = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
    for (int64_t i = 0; i < count && !ort_pace_over(&m->pace, FILL_STEPS); i++)
        ort_tensor_set_i64(t, i, i % last);
}

static void fill_constant(maker *m, ort_tensor *t, double number)
{
    for (int64_t i = 0; i < ort_tensor_count(t) && !ort_pace_over(&m->pace, FILL_STEPS); i++)
        ort_tensor_set_f64(t, i, number);
}

static void fill_integers(maker *m, ort_tensor *t, int64_t low, int64_t high)
{
    for (int64_t i = 0; i < ort_tensor_count(t) && !ort_pace_over(&m->pace, FILL_STEPS); i++)
        ort_tensor_set_i64(t, i, low + (int64_t)(draw(m) % (uint64_t)(high - low)));
}

static void fill_normal(maker *m, ort_tensor *t)
{
    for (int64_t i = 0; i < ort_tensor_count(t) && !ort_pace_over(&m->pace, FILL_STEPS); i++)
        ort_tensor_set_f64(t, i, draw_normal(m));
}

static void fill(maker *m, const ort_port *port, ort_tensor *t)
{
    trace found = {ROLE_FREE, 0, 0, 0};
    ort_dtype_class class_ = ort_dtype_get(t->dtype)->class_;
    follow(m->session->model->graph, port->id, TRACE_DEPTH, &found);
    if (class_ == ORT_CLASS_BOOL || named(port->name, "mask"))
        fill_constant(m, t, 1);
    else if (named(port->name, "position") && class_ != ORT_CLASS_FLOAT)
        fill_counting(m, t);
    else if (found.role == ROLE_INDEX)
        fill_integers(m, t, 0, found.bound);
    else if (found.role == ROLE_COMPARED && (class_ != ORT_CLASS_FLOAT || t->shape.rank == 0))
        /* of a batch, what is 0 is padding: a row of it alone has no result */
        fill_constant(m, t, t->shape.rank >= 2 && found.constant == 0 ? 1 : found.constant);
    else if (class_ == ORT_CLASS_INT || class_ == ORT_CLASS_UINT)
        fill_integers(m, t, 0, ort_dtype_bits(t->dtype) == 8 && class_ == ORT_CLASS_UINT ? 256
                               : ort_dtype_bits(t->dtype) < 8                            ? 2
                                                                                         : 10);
    else if (class_ == ORT_CLASS_COMPLEX)
        memset(t->data, 0, ort_tensor_bytes(t));
    else
        fill_normal(m, t);
}

static ort_status make(maker *m, int index, ort_value **value, ort_error *err)
{
    const ort_port *port = &m->session->inputs[index];
    ort_shape shape = ort_sizes_choose(&m->sizes, index);
    if (port->default_value)
        return ORT_OK;
    if (port->type.kind != ORT_TYPE_TENSOR || port->type.dtype == ORT_DTYPE_UNDEFINED)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "input '%s' is %s, which can't be made up: give a sample", port->name,
                             port->type_text);
    if (port->type.dtype == ORT_DTYPE_STRING)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "input '%s' holds strings, which can't be made up: give a sample",
                             port->name);
    ORT_TRY(ort_value_new_tensor_(port->type.dtype, &shape, value, err));
    fill(m, port, &(*value)->tensor);
    return ORT_OK;
}

ort_status ort_exec_make_inputs(const ort_session *session, uint64_t seed, int variant, int trial,
                                ort_value **inputs, ort_error *err)
{
    maker m = {.session = session, .state = seed};
    ort_status status = ORT_OK;
    double values = ort_sizes_values(session, variant, trial);
    ort_sizes_init(&m.sizes, session, variant, trial);
    for (int i = 0; i < session->input_count; i++)
        inputs[i] = NULL;
    if (values > ort_sizes_room(session))
        return ort_error_set(err, ORT_ERROR_USAGE, "made-up inputs would hold %.0f values: give a "
                             "sample, or sizes of dimensions", values);
    for (int i = 0; i < session->input_count && status == ORT_OK; i++) {
        status = make(&m, i, &inputs[i], err);
        if (status == ORT_OK) /* sizes that nothing takes are tried one by one */
            status = ort_budget_check(err);
    }
    for (int i = 0; status != ORT_OK && i < session->input_count; i++) {
        ort_value_free(inputs[i]);
        inputs[i] = NULL;
    }
    return status;
}

static void drop(ort_value **values, int count)
{
    for (int i = 0; i < count; i++) {
        ort_value_free(values[i]);
        values[i] = NULL;
    }
}

/* Bodies settle their shapes as they run: only a run tells. */
static bool has_bodies(const ort_session *session)
{
    const ort_node *node;
    ORT_EACH_NODE(session->model->graph, node)
        if (node->body_count)
            return true;
    return false;
}

static ort_status runs(const ort_session *session, ort_value **inputs, bool *ran, ort_error *err)
{
    ort_value **outputs = calloc((size_t)session->output_count + 1, sizeof *outputs);
    if (!outputs)
        return ort_error_memory(err, sizeof *outputs * (size_t)session->output_count);
    *ran = ort_session_run_all(session, inputs, outputs, NULL, NULL) == ORT_OK;
    drop(outputs, session->output_count);
    free(outputs);
    return ORT_OK;
}

/* The first sizes that run; the default ones, whose error the caller will see, when none does. */
static ort_status make_by_running(const ort_session *session, uint64_t seed, ort_value **inputs,
                                  ort_error *err)
{
    int trials = ort_sizes_trials(session);
    double left = ort_sizes_room(session);
    for (int trial = ort_sizes_fit(session); trial < trials; trial++) {
        bool ran = false;
        double values = ort_sizes_values(session, 0, trial);
        if (values > left)
            continue;
        left -= values;
        ORT_TRY(ort_exec_make_inputs(session, seed, 0, trial, inputs, err));
        ort_status status = runs(session, inputs, &ran, err);
        if (ran)
            return ORT_OK;
        drop(inputs, session->input_count);
        ORT_TRY(status);
    }
    return ort_exec_make_inputs(session, seed, 0, 0, inputs, err);
}

ort_status ort_session_random_inputs(const ort_session *session, uint64_t seed, ort_value **inputs,
                                     size_t input_count, ort_error *err)
{
    if (!session || (input_count && !inputs))
        return ort_error_null(err, __func__);
    ORT_TRY(ort_exec_check_count(session->input_count, "inputs", input_count, err));
    const ort_limits *limits = &session->env->limits;
    ort_budget budget; /* of all trials: the model runs in them */
    ort_budget_begin(&budget, NULL, limits->timeout_s, limits->cancel);
    ort_status status =
        has_bodies(session) && ort_exec_has_free_dims(session)
            ? make_by_running(session, seed, inputs, err)
            : ort_exec_make_inputs(session, seed, 0, ort_sizes_fit(session), inputs, err);
    return ort_budget_end(&budget, status, err);
}

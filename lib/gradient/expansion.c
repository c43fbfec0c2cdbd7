/* expansion.c - Gradient nodes of ai.onnx.preview.training become the nodes that compute them, by
 * reverse-mode differentiation of the graph they name. Required: the operator has no kernel.
 *
 *   xs, zs --- nodes between ---> y         what the attributes name
 *     |                           |
 *   given ---- the same again --- y'        only where a value given isn't the value named
 *     |                           |
 *     '---- backward nodes -- ones like y'  gradients, summed where a value has several readers
 *
 * The gradient of a tensor y is that of the sum of its elements. Values that y takes from
 * elsewhere than xs and zs stand as they are. Integers, booleans and strings carry no gradient: a
 * path through them ends there. An x that y doesn't depend on has the gradient zero. A Gradient
 * node on the way to y is expanded before, so that derivatives of any order come out.
 */
#include "gradient/gradient.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define NODES_MAX 1000000

/* One expansion; `marks` are by value of the graph as it was at the start. */
typedef struct expansion {
    ort_emit g;
    ort_tape tape;
    ort_node *node;
    const ort_string *xs, *zs;
    int x_count, z_count;
    ort_id y;
    ort_id *named;    /* [x_count + z_count] the values that xs and zs name */
    uint8_t *bound;   /* by value: one of them */
    uint8_t *wanted;  /* by value: y is computed from it, not beyond bound ones */
    ort_id *now;      /* by value: what stands for it here; itself when nothing changed */
    size_t value_count, node_count;
    ort_arena memory;
} expansion;

/* ---- what the attributes name */

static ort_status complain(const expansion *e, ort_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static ort_status complain(const expansion *e, ort_error *err, const char *format, ...)
{
    char label[256], text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ort_error_set(err, ORT_ERROR_MODEL, "%s: %s",
                         ort_node_label(e->node, label, sizeof label), text);
}

/* A name means a value of the graph that the node stands in. */
static ort_status find_named(const expansion *e, const char *attr, const char *name, ort_id *id,
                             ort_error *err)
{
    *id = ort_graph_find_value(e->g.graph, name);
    if (*id != ORT_ID_NONE)
        return ORT_OK;
    for (const ort_graph *outer = e->g.graph->parent; outer; outer = outer->parent)
        if (ort_graph_find_value(outer, name) != ORT_ID_NONE)
            return complain(e, err, "%s names '%s' of an outer graph, which nothing in this body "
                            "reads; a body's Gradient differentiates that body only", attr, name);
    return complain(e, err, "%s names '%s', which the graph doesn't have", attr, name);
}

static ort_status resolve_names(expansion *e, ort_error *err)
{
    int count = e->x_count + e->z_count;
    const char *y = ort_node_string(e->node, "y", "");
    if (!e->x_count || e->node->input_count != count)
        return complain(e, err, "it has %d inputs, xs and zs name %d values", e->node->input_count,
                        count);
    if (e->node->output_count > e->x_count)
        return complain(e, err, "it has %d outputs, xs names %d values", e->node->output_count,
                        e->x_count);
    ORT_TRY(find_named(e, "y", y, &e->y, err));
    for (int i = 0; i < count; i++) {
        bool x = i < e->x_count;
        const char *name = x ? e->xs[i].ptr : e->zs[i - e->x_count].ptr;
        ORT_TRY(find_named(e, x ? "xs" : "zs", name, &e->named[i], err));
        if (e->bound[e->named[i]])
            return complain(e, err, "xs and zs name '%s' twice", name);
        if (e->node->inputs[i] == ORT_ID_NONE)
            return complain(e, err, "input %d, the value of '%s', is absent", i, name);
        e->bound[e->named[i]] = 1;
    }
    return ORT_OK;
}

/* ---- which nodes lie between */

/* Mark all that `wanted` values are computed from; stop_at: values not to go beyond, or NULL. */
static void mark_sources(const ort_graph *graph, uint8_t *wanted, const uint8_t *stop_at)
{
    for (size_t k = graph->order.count; k-- > 0;) {
        const ort_node *node = graph->nodes.data[graph->order.data[k]];
        bool needed = false;
        for (int i = 0; i < node->output_count && !node->removed; i++) {
            ort_id id = node->outputs[i];
            needed = needed || (id != ORT_ID_NONE && wanted[id] && !(stop_at && stop_at[id]));
        }
        for (int i = 0; i < node->input_count && needed; i++)
            if (node->inputs[i] != ORT_ID_NONE)
                wanted[node->inputs[i]] = 1;
        for (int i = 0; i < node->implicit_count && needed; i++)
            wanted[node->implicit[i]] = 1;
    }
}

/* Nodes that the expansion itself adds give values beyond those that it began with. */
static bool is_between(const expansion *e, const ort_node *node)
{
    for (int i = 0; i < node->output_count && !node->removed; i++) {
        ort_id id = node->outputs[i];
        if (id != ORT_ID_NONE && id < e->value_count && e->wanted[id] && !e->bound[id])
            return true;
    }
    return false;
}

/* "H cannot appear in xs and zs": what other named values determine is no variable. */
static ort_status check_independent(expansion *e, ort_error *err)
{
    const ort_graph *graph = e->g.graph;
    uint8_t *sources = ort_arena_alloc(&e->memory, e->value_count + 1);
    ort_node *node;
    if (!sources)
        return ort_error_memory(err, e->value_count);
    ORT_EACH_NODE(graph, node)
        for (int i = 0; i < node->output_count; i++)
            for (int k = 0; node->outputs[i] != ORT_ID_NONE && e->bound[node->outputs[i]] &&
                            k < node->input_count; k++)
                if (node->inputs[k] != ORT_ID_NONE)
                    sources[node->inputs[k]] = 1;
    mark_sources(graph, sources, NULL);
    for (int i = 0; i < e->x_count + e->z_count; i++)
        if (sources[e->named[i]])
            return complain(e, err, "'%s' determines another value of xs and zs; they must be "
                            "independent", graph->values.data[e->named[i]]->name);
    return ORT_OK;
}

/* Is `value` of `graph` computed from `from` (a value of the same graph)? */
static bool computed_from(const ort_graph *graph, ort_id value, ort_id from, ort_arena *memory)
{
    uint8_t *marks = ort_arena_alloc(memory, graph->values.count + 1);
    if (!marks)
        return true;
    marks[value] = 1;
    mark_sources(graph, marks, NULL);
    return marks[from];
}

/* A body's Gradient sees the body alone: a captured x must not reach y through another capture. */
static ort_status check_captures(expansion *e, ort_error *err)
{
    const ort_graph *graph = e->g.graph;
    for (int i = 0; i < e->x_count; i++) {
        const ort_graph_value *x = graph->values.data[e->named[i]];
        for (size_t v = 0; x->outer != ORT_ID_NONE && v < e->value_count; v++) {
            const ort_graph_value *other = graph->values.data[v];
            if (e->wanted[v] && !e->bound[v] && other->outer != ORT_ID_NONE &&
                computed_from(graph->parent, other->outer, x->outer, &e->memory))
                return complain(e, err, "y depends on '%s' through '%s' of an outer graph; a "
                                "body's Gradient differentiates that body only", x->name,
                                other->name);
        }
    }
    return ORT_OK;
}

/* ---- forward: the nodes between, again where they must be */

static bool is_changed(const expansion *e, ort_id id)
{
    return id != ORT_ID_NONE && e->now[id] != id;
}

/* The value as a variable of this expansion. Equal values given for two names stay two. */
static ort_status bind(expansion *e, int i, ort_error *err)
{
    ort_emit *g = &e->g;
    ort_id named = e->named[i], given = e->node->inputs[i];
    const ort_type *want = ort_emit_type(g, named), *have = ort_emit_type(g, given);
    if (want->dtype != have->dtype)
        return complain(e, err, "input %d is %s, '%s' is %s", i, ort_dtype_name(have->dtype),
                        g->graph->values.data[named]->name, ort_dtype_name(want->dtype));
    e->now[named] = given == named ? named : ort_emit_op1(g, "Identity", given);
    return g->status;
}

/* A copy of a node that reads what stands for its inputs now. */
static ort_node *copy_node(expansion *e, const ort_node *from)
{
    ort_emit *g = &e->g;
    ort_id *in = ort_arena_array(&e->memory, (size_t)from->input_count + 1, sizeof *in);
    ort_id *out = ort_arena_array(&e->memory, (size_t)from->output_count + 1, sizeof *out);
    const char *name = ort_arena_printf(&g->graph->model->arena, "%s/%s", g->stem,
                                        *from->name ? from->name : from->op_type);
    bool ok = in && out && name && ++g->made <= g->limit;
    if (from->body_count) {
        ort_emit_refuse(g, "the values given aren't those named, and a node with bodies isn't "
                        "computed again");
        return NULL;
    }
    for (int i = 0; ok && i < from->input_count; i++)
        in[i] = from->inputs[i] == ORT_ID_NONE ? ORT_ID_NONE : e->now[from->inputs[i]];
    for (int i = 0; ok && i < from->output_count; i++) {
        ort_id old = from->outputs[i];
        out[i] = ORT_ID_NONE;
        if (old == ORT_ID_NONE)
            continue;
        out[i] = ort_graph_add_value(g->graph, name);
        ok = out[i] != ORT_ID_NONE;
        if (!e->bound[old])
            e->now[old] = out[i];
    }
    ort_node *node = ok ? ort_graph_add_node(g->graph, from->domain, from->op_type, name, in,
                                             from->input_count, out, from->output_count) : NULL;
    if (!node) {
        ort_emit_fail_memory(g);
        return NULL;
    }
    node->attrs = from->attrs; /* shared: editing replaces the array */
    node->attr_count = from->attr_count;
    node->opset = from->opset;
    node->overload = from->overload;
    node->op = from->op;
    g->status = ort_node_infer(g->graph, node, g->err);
    return g->status != ORT_OK ? NULL : node;
}

/* Does the node read something that another value stands for? */
static bool must_copy(const expansion *e, const ort_node *node)
{
    bool changed = false;
    for (int i = 0; i < node->input_count; i++)
        changed = changed || is_changed(e, node->inputs[i]);
    for (int i = 0; i < node->implicit_count; i++)
        changed = changed || is_changed(e, node->implicit[i]);
    return changed;
}

static ort_status forward(expansion *e, ort_error *err)
{
    ort_emit *g = &e->g;
    size_t count = g->graph->order.count;
    for (size_t k = 0; k < count; k++) {
        ort_node *from = g->graph->nodes.data[g->graph->order.data[k]], *node = from;
        if (!is_between(e, from))
            continue;
        ort_id *replaced = ort_arena_array(&e->memory, (size_t)from->output_count + 1,
                                           sizeof *replaced);
        if (!replaced)
            return ort_error_memory(err, sizeof *replaced);
        for (int i = 0; i < from->output_count; i++)
            replaced[i] = ORT_ID_NONE;
        if (must_copy(e, from))
            node = copy_node(e, from);
        if (node)
            ort_grad_record(g, node, replaced);
        for (int i = 0; i < from->output_count; i++)
            if (replaced[i] != ORT_ID_NONE && from->outputs[i] != ORT_ID_NONE &&
                !e->bound[from->outputs[i]])
                e->now[from->outputs[i]] = replaced[i];
        if (g->status != ORT_OK)
            return g->status;
    }
    return ORT_OK;
}

/* ---- results */

/* The outputs keep their values: whoever reads them reads the gradients. */
static ort_status give_outputs(expansion *e, ort_error *err)
{
    ort_emit *g = &e->g;
    ort_node *target = e->node;
    g->at = target;
    for (int i = 0; i < target->output_count && g->status == ORT_OK; i++) {
        ort_id x = e->now[e->named[i]], gradient = ort_grad_sum(g, x);
        if (target->outputs[i] == ORT_ID_NONE)
            e->named[i] = ORT_ID_NONE;
        else
            e->named[i] = gradient == ORT_ID_NONE ? ort_emit_zeros(g, x) : gradient;
    }
    if (g->status != ORT_OK)
        return g->status;
    ort_graph_remove_node(g->graph, target);
    for (int i = 0; i < target->output_count; i++) {
        if (target->outputs[i] == ORT_ID_NONE)
            continue;
        ort_node_spec spec = {.domain = ONNX, .op_type = "Identity", .name = target->name,
                              .inputs = &e->named[i], .input_count = 1,
                              .outputs = &target->outputs[i], .output_count = 1};
        ORT_TRY(ort_edit_add_node(g->graph, &spec, NULL, err));
    }
    return ort_edit_finish(g->graph, err);
}

/* ---- one node, after those on its way */

static bool is_gradient(const ort_node *node)
{
    return !node->removed && !strcmp(node->op_type, "Gradient") &&
           !strcmp(node->domain, ORT_GRAD_TRAINING);
}

static ort_status expand(ort_graph *graph, ort_node *node, int depth, ort_error *err);

static ort_status allocate(expansion *e, ort_error *err)
{
    const ort_graph *graph = e->g.graph;
    size_t x_count, z_count, values = graph->values.count;
    e->xs = ort_node_strings(e->node, "xs", &x_count);
    e->zs = ort_node_strings(e->node, "zs", &z_count);
    if (x_count + z_count > (size_t)INT32_MAX)
        return complain(e, err, "it names %zu values", x_count + z_count);
    e->x_count = (int)x_count;
    e->z_count = (int)z_count;
    e->value_count = values;
    e->node_count = graph->nodes.count;
    e->named = ort_arena_array(&e->memory, x_count + z_count + 1, sizeof *e->named);
    e->bound = ort_arena_alloc(&e->memory, values + 1);
    e->wanted = ort_arena_alloc(&e->memory, values + 1);
    e->now = ort_arena_array(&e->memory, values + 1, sizeof *e->now);
    if (!e->named || !e->bound || !e->wanted || !e->now)
        return ort_error_memory(err, values * sizeof *e->now);
    for (size_t i = 0; i < values; i++)
        e->now[i] = (ort_id)i;
    e->g.limit = NODES_MAX - (int)(e->node_count < NODES_MAX ? e->node_count : NODES_MAX);
    return ORT_OK;
}

/* Names, and which nodes lie between. *inner: a Gradient node on the way, to be expanded first. */
static ort_status survey(expansion *e, ort_node **inner, ort_error *err)
{
    const ort_graph *graph = e->g.graph;
    ort_node *node;
    *inner = NULL;
    ORT_TRY(allocate(e, err));
    ORT_TRY(resolve_names(e, err));
    e->wanted[e->y] = 1;
    mark_sources(graph, e->wanted, e->bound);
    ORT_EACH_NODE(graph, node)
        if (is_gradient(node) && is_between(e, node)) {
            *inner = node;
            return node == e->node ? complain(e, err, "y is its own result") : ORT_OK;
        }
    for (int i = 0; i < e->x_count; i++)
        if (ort_grad_passage_of(&graph->values.data[e->named[i]]->fact.type) != ORT_GRAD_PASSES)
            return complain(e, err, "xs names '%s', which isn't float16, float or double",
                            graph->values.data[e->named[i]]->name);
    ORT_TRY(check_independent(e, err));
    return check_captures(e, err);
}

static ort_status differentiate(expansion *e, ort_error *err)
{
    ort_emit *g = &e->g;
    g->opset = (int)ort_model_opset(g->graph->model, ONNX);
    if (g->opset < ORT_GRAD_MIN_OPSET)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED, "Gradient takes a model of opset %d or "
                             "newer, this one imports %d", ORT_GRAD_MIN_OPSET, g->opset);
    g->stem = *e->node->name ? e->node->name : "gradient";
    for (int i = 0; i < e->x_count + e->z_count; i++)
        ORT_TRY(bind(e, i, err));
    for (int i = 0; i < e->x_count; i++)
        ort_grad_set_variable(g, e->now[e->named[i]]);
    ORT_TRY(forward(e, err));
    ort_grad_run_back(g, e->now[e->y]);
    ORT_TRY(g->status);
    return give_outputs(e, err);
}

static ort_status expand_once(ort_graph *graph, ort_node *node, ort_node **inner, ort_error *err)
{
    ort_error own = {0};
    expansion e = {.node = node,
                   .g = {.graph = graph, .at = node, .purpose = "gradient",
                         .refused = "differentiated", .err = err ? err : &own}};
    e.g.tape = &e.tape;
    ort_status status = survey(&e, inner, e.g.err);
    if (status == ORT_OK && !*inner)
        status = differentiate(&e, e.g.err);
    ort_vec_release(&e.tape.nodes);
    ort_vec_release(&e.tape.active);
    ort_vec_release(&e.tape.sums);
    ort_arena_release(&e.memory);
    return status;
}

/* The depth of Gradients of Gradients; more would be a cycle or far too many nodes. */
#define DEPTH_MAX 16

static ort_status expand(ort_graph *graph, ort_node *node, int depth, ort_error *err)
{
    char label[256];
    ort_node *inner = NULL;
    if (depth > DEPTH_MAX)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "%s: Gradients of Gradients more than %d deep, or in a cycle",
                             ort_node_label(node, label, sizeof label), DEPTH_MAX);
    do {
        ORT_TRY(expand_once(graph, node, &inner, err));
        if (inner)
            ORT_TRY(expand(graph, inner, depth + 1, err));
    } while (inner);
    return ORT_OK;
}

ort_status ort_gradient_expand(ort_graph *graph, int *count, ort_error *err)
{
    char label[256];
    for (size_t i = 0, nodes = graph->nodes.count; i < nodes; i++) {
        ort_node *node = graph->nodes.data[i];
        if (!is_gradient(node))
            continue;
        ort_status status = expand(graph, node, 0, err);
        if (status == ORT_ERROR_UNSUPPORTED)
            return ort_error_wrap(err, status, "%s", ort_node_label(node, label, sizeof label));
        ORT_TRY(status);
        ++*count;
    }
    return ORT_OK;
}

/* opset.c - the walk of a model to another version of ai.onnx (opset.h). A node may be of another
 * version than the model when it comes from a function; each goes from its own. */
#include "opset/opset.h"

#include <string.h>

#include "base/error.h"
#include "base/findings.h"
#include "graph/defaults.h"
#include "graph/follow.h"
#include "graph/strip.h"
#include "op/check/check.h"

typedef struct walk {
    ort_model *model;
    const ort_registry *registry;
    ort_findings *blockers;
    int from, to; /* of the present step; they differ by one */
    int goal;
    int reach;    /* where the first blocker was met, or where the walk goes */
    ort_error *err;
} walk;

static void set_import(ort_model *model, int version)
{
    for (size_t i = 0; i < model->opsets.count; i++)
        if (!*model->opsets.data[i].domain)
            model->opsets.data[i].version = version;
    model->changed = true;
}

/* ---- one node */

/* What a rule emitted is of its place, or the rule doesn't fit these types. */
static void check_emitted(ort_opset_step *s)
{
    ort_graph *graph = s->g.graph;
    for (size_t i = s->first; i < graph->nodes.count && s->g.status == ORT_OK && !s->blocked; i++)
        if (!graph->nodes.data[i]->removed)
            ort_opset_check_types(s, graph->nodes.data[i], graph->nodes.data[i]->op);
}

/* Results that are known already need no operator. */
static bool becomes_constant(ort_opset_step *s)
{
    ort_graph *graph = s->g.graph;
    ort_node *node = s->node;
    bool known = node->body_count == 0 && node->op && !(node->op->traits & ORT_TRAIT_RANDOM) &&
                 !node->removed;
    for (int i = 0; i < node->output_count && known; i++) {
        const ort_graph_value *v = ort_graph_value_at(graph, node->outputs[i]);
        known = !v || (v->fact.value && v->fact.value->data && !v->is_output);
    }
    for (int i = 0; i < node->output_count && known && s->g.status == ORT_OK; i++) {
        ort_id id = node->outputs[i];
        if (id != ORT_ID_NONE)
            s->g.status = ort_edit_make_constant(graph, id, graph->values.data[id]->fact.value,
                                                 s->g.err);
    }
    return known;
}

/* A blocked node stays as it is; what was emitted for it goes. */
static void give_up(walk *w, ort_opset_step *s)
{
    ort_graph *graph = s->g.graph;
    for (size_t i = s->first; i < graph->nodes.count; i++)
        ort_graph_remove_node(graph, graph->nodes.data[i]);
    if (becomes_constant(s))
        return;
    if (ort_findings_count(w->blockers) == 0)
        w->reach = w->from;
    for (int i = 0; i < s->blocked && i < ORT_OPSET_REASONS && s->reasons[i]; i++)
        ort_findings_add(w->blockers, ORT_FINDING_ERROR, "%s", s->reasons[i]);
}

/* New names begin with what is the node's alone: looking for free ones is slow in large graphs. */
static const char *stem_of(const ort_graph *graph, const ort_node *node)
{
    const ort_graph_value *v = node->output_count ? ort_graph_value_at(graph, node->outputs[0])
                                                  : NULL;
    return *node->name ? node->name : v ? v->name : node->op_type;
}

static ort_status cross(walk *w, ort_graph *graph, ort_node *node)
{
    ort_error own = {0};
    ort_opset_step s = {
        .g = {.graph = graph, .at = node, .opset = w->to, .limit = 1 << 16,
              .stem = stem_of(graph, node), .err = &own,
              .purpose = "form in older versions"},
        .node = node, .from = node->op, .goal = w->goal, .up = w->to > w->from,
        .version = w->to > w->from ? w->to : w->from, .first = graph->nodes.count};
    s.to = ort_registry_find(w->registry, ONNX, node->op_type, w->to);
    /* Experimental operators have one row; opset 10 was released without them. */
    bool ends = s.up && w->to == 10 && ort_opset_has_rule(node->op_type, 10, true);
    if (s.to && s.to == node->op && !ends) {
        node->opset = w->to;
        return ORT_OK;
    }
    ort_opset_apply_rules(&s);
    if (!s.replaced && !s.blocked && s.g.status == ORT_OK) {
        s.to = ort_registry_find(w->registry, ONNX, node->op_type, w->to);
        ort_opset_fit(&s);
    }
    check_emitted(&s);
    if (s.g.status == ORT_OK && node->origin)
        s.g.status = ort_follow_nodes(graph, s.first, node->origin, w->err);
    if (s.g.status == ORT_ERROR_UNSUPPORTED || s.g.status == ORT_ERROR_MODEL) {
        s.g.status = ORT_OK;
        ort_opset_block(&s, "%s", own.message);
    }
    if (s.blocked && s.g.status == ORT_OK)
        give_up(w, &s);
    else if (!s.replaced && s.g.status == ORT_OK) {
        node->opset = w->to;
        node->op = s.to;
    }
    if (s.g.status != ORT_OK && w->err)
        *w->err = own;
    return s.g.status;
}

/* The one operator elsewhere that is made of these: passes expand it, from this version on. */
static void check_gradient(walk *w, const ort_node *node)
{
    char label[256];
    if (w->from != ORT_GRAD_MIN_OPSET || w->to > w->from || strcmp(node->op_type, "Gradient") ||
        strcmp(node->domain, ORT_GRAD_TRAINING))
        return;
    if (ort_findings_count(w->blockers) == 0)
        w->reach = w->from;
    ort_findings_add(w->blockers, ORT_FINDING_ERROR, "%s: a gradient is made of newer operators: "
                     "needs opset %d", ort_node_label(node, label, sizeof label), w->from);
}

/* ---- the walk */

static ort_status step_graph(walk *w, ort_graph *graph)
{
    size_t count = graph->order.count, nodes = graph->nodes.count;
    for (size_t k = 0; k < count; k++) {
        ort_node *node = graph->nodes.data[graph->order.data[k]];
        if (node->removed)
            continue;
        for (int b = 0; b < node->body_count; b++)
            ORT_TRY(step_graph(w, node->bodies[b]));
        check_gradient(w, node);
        if (!*node->domain && node->opset == w->from)
            ORT_TRY(cross(w, graph, node));
    }
    return graph->nodes.count == nodes ? ORT_OK : ort_edit_finish(graph, w->err);
}

/* The oldest and the newest version of ai.onnx among nodes. */
static void survey(const ort_graph *graph, int *oldest, int *newest)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        if (!*node->domain && node->opset && node->opset < *oldest)
            *oldest = node->opset;
        if (!*node->domain && node->opset > *newest)
            *newest = node->opset;
        for (int b = 0; b < node->body_count; b++)
            survey(node->bodies[b], oldest, newest);
    }
}

static ort_status walk_to(walk *w, int opset)
{
    int oldest = opset, newest = opset;
    survey(w->model->graph, &oldest, &newest);
    for (w->from = newest; w->from > opset; w->from--) {
        w->to = w->from - 1;
        set_import(w->model, w->to);
        ORT_TRY(step_graph(w, w->model->graph));
    }
    for (w->from = oldest; w->from < opset; w->from++) {
        w->to = w->from + 1;
        set_import(w->model, w->to);
        ORT_TRY(step_graph(w, w->model->graph));
    }
    set_import(w->model, opset);
    ort_graph_touch(w->model->graph, NULL);
    return ORT_OK;
}

/* Constants that nothing reads any more. */
static void sweep(ort_graph *graph)
{
    ort_node *node;
    (void)ort_graph_drop_initializers(graph);
    ORT_EACH_NODE(graph, node)
        for (int b = 0; b < node->body_count; b++)
            sweep(node->bodies[b]);
}

/* ---- the version of the format */

/* What came with IR versions beyond 4, below which nothing is written: types of elements. */
static int ir_of_dtype(ort_dtype dtype)
{
    switch (dtype) {
    case ORT_DTYPE_FLOAT8E4M3FN:
    case ORT_DTYPE_FLOAT8E4M3FNUZ:
    case ORT_DTYPE_FLOAT8E5M2:
    case ORT_DTYPE_FLOAT8E5M2FNUZ: return 9;
    case ORT_DTYPE_UINT4:
    case ORT_DTYPE_INT4: return 10;
    case ORT_DTYPE_FLOAT4E2M1: return 11;
    case ORT_DTYPE_FLOAT8E8M0: return 12;
    case ORT_DTYPE_UINT2:
    case ORT_DTYPE_INT2: return 13;
    case ORT_DTYPE_FLOAT6E2M3:
    case ORT_DTYPE_FLOAT6E3M2: return 14;
    default: return 4;
    }
}

static int ir_of_graph(const ort_graph *graph)
{
    const ort_node *node;
    int ir = 4;
    for (size_t i = 0; i < graph->values.count; i++) {
        int own = ir_of_dtype(graph->values.data[i]->fact.type.dtype);
        ir = own > ir ? own : ir;
    }
    ORT_EACH_NODE(graph, node)
    {
        if (*node->overload && ir < 10)
            ir = 10;
        for (int b = 0; b < node->body_count; b++) {
            int own = ir_of_graph(node->bodies[b]);
            ir = own > ir ? own : ir;
        }
    }
    return ir;
}

/* Each opset was released with a version of the format; a runtime of that time reads no newer. */
static void set_ir(ort_model *model, int opset)
{
    static const uint8_t released[] = {[7] = 3,   [8] = 3,   [9] = 4,   [10] = 5,  [11] = 6,
                                       [12] = 7,  [13] = 7,  [14] = 7,  [15] = 8,  [16] = 8,
                                       [17] = 8,  [18] = 8,  [19] = 9,  [20] = 9,  [21] = 10,
                                       [22] = 10, [23] = 11, [24] = 12, [25] = 13, [26] = 13,
                                       [27] = 13, [28] = 14};
    int least = released[opset], own = ir_of_graph(model->graph);
    if (own < 8 && model->functions.count)
        own = 8;
    if (model->ir_version < least)
        model->ir_version = least;
    if (model->ir_version > least)
        model->ir_version = own > least ? (own < model->ir_version ? own : model->ir_version)
                                        : least;
    model->changed = true;
}

/* ---- all of it */

static ort_status convert(walk *w, int opset)
{
    ort_hidden_defaults hidden = {0};
    ort_graph *graph = w->model->graph;
    ort_status status = ort_defaults_hide(graph, &hidden, w->err);
    if (status == ORT_OK)
        status = ort_graph_infer(graph, w->registry, NULL, w->err);
    if (status == ORT_OK)
        status = walk_to(w, opset);
    ort_defaults_restore(graph, &hidden);
    if (status != ORT_OK)
        return status;
    sweep(graph);
    set_ir(w->model, opset);
    return ort_findings_to_error(w->blockers, ORT_ERROR_UNSUPPORTED, w->err);
}

static ort_status convert_expanded(walk *w)
{
    ORT_TRY(ort_model_inline_functions(w->model, w->err));
    return convert(w, w->goal);
}

/* Functions stay. Whether their operators have the types they are called with shows when they are
 * expanded, in a copy. */
static ort_status convert_around(walk *w)
{
    walk trial = *w;
    if (!ort_opset_functions_stay(w->model, w->registry, w->goal, w->blockers)) {
        w->reach = (int)ort_model_opset(w->model, ONNX);
        return ort_findings_to_error(w->blockers, ORT_ERROR_UNSUPPORTED, w->err);
    }
    ORT_TRY(ort_model_clone(w->model, &trial.model, w->err));
    ort_status status = convert_expanded(&trial);
    ort_model_free(trial.model);
    w->reach = trial.reach;
    if (status != ORT_OK)
        return status;
    ORT_TRY(ort_opset_restamp_functions(w->model, w->goal, w->err));
    return convert(w, w->goal);
}

/* Of other domains there are no rules: an operator means the same in both versions, or it stays. */
static void settle_others(walk *w, ort_graph *graph)
{
    ort_node *node;
    char label[256];
    ORT_EACH_NODE(graph, node)
    {
        int own = *node->domain ? (int)ort_model_opset(w->model, node->domain) : 0;
        for (int b = 0; b < node->body_count; b++)
            settle_others(w, node->bodies[b]);
        if (!own || !node->opset || node->opset == own)
            continue;
        if (ort_registry_find(w->registry, node->domain, node->op_type, own) == node->op)
            node->opset = own;
        else
            ort_findings_add(w->blockers, ORT_FINDING_ERROR, "%s is of version %d of '%s', where "
                             "the model imports %d", ort_node_label(node, label, sizeof label),
                             node->opset, node->domain, own);
    }
}

ort_status ort_model_settle_opsets(ort_model *model, const ort_registry *registry,
                                   ort_findings *blockers, ort_error *err)
{
    int own = (int)ort_model_opset(model, ONNX);
    walk w = {.model = model, .registry = registry, .blockers = blockers, .goal = own,
              .reach = own, .err = err};
    ort_hidden_defaults hidden = {0};
    ort_status status = ort_defaults_hide(model->graph, &hidden, err);
    if (status == ORT_OK)
        status = ort_graph_infer(model->graph, registry, NULL, err);
    if (status == ORT_OK)
        status = walk_to(&w, own);
    if (status == ORT_OK)
        settle_others(&w, model->graph);
    ort_defaults_restore(model->graph, &hidden);
    sweep(model->graph);
    return status;
}

ort_status ort_model_convert_opset(ort_model *model, const ort_registry *registry, int opset,
                                   bool keep_functions, ort_findings *blockers, int *reach,
                                   ort_error *err)
{
    walk w = {.model = model, .registry = registry, .blockers = blockers, .goal = opset,
              .reach = opset, .err = err};
    if (opset < ORT_OPSET_OLDEST || opset > ORT_NEWEST_OPSET)
        return ort_error_set(err, ORT_ERROR_USAGE, "opset %d is none of %d to %d", opset,
                             ORT_OPSET_OLDEST, ORT_NEWEST_OPSET);
    ORT_TRY(ort_check_copy(model, registry, err));
    ort_status status = keep_functions && model->functions.count ? convert_around(&w)
                                                                 : convert_expanded(&w);
    *reach = w.reach;
    return status;
}

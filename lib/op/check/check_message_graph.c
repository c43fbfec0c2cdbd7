/* check_message_graph.c - the graphs of a message (check_message.h): their nodes, the bodies of
 * these, what each graph declares. */
#include <stdio.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "graph/build.h"
#include "op/check/check.h"
#include "op/check/check_message.h"

/* ---- nodes */

void ort_check_bodies(ort_message_check *c, const Onnx__AttributeProto *a)
{
    char inner[420];
    snprintf(inner, sizeof inner, "in a body of %s: ", c->node ? c->node : "a function");
    if (a->g)
        ort_check_message_graph(c, a->g, inner);
    for (size_t i = 0; i < a->n_graphs; i++)
        ort_check_message_graph(c, a->graphs[i], inner);
}

/* A call gives and takes no more than its function does. */
static void check_call(ort_message_check *c, const Onnx__NodeProto *node, const char *place)
{
    const ort_function *f = ort_functions_find(&c->functions, ort_build_domain(node->domain),
                                               ort_build_text(node->op_type),
                                               ort_build_text(node->overload));
    if (f && (node->n_input > (size_t)f->input_count || node->n_output > (size_t)f->output_count))
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "%shas %zu inputs and %zu outputs, its function %d and %d", place,
                         node->n_input, node->n_output, f->input_count, f->output_count);
}

/* They run here, and nowhere else: version 5 of their domain took them out. */
static void check_deprecated(ort_message_check *c, const Onnx__NodeProto *node, const char *place)
{
    const char *op = ort_check_text(node->op_type);
    int64_t version = ort_model_opset(c->model, ML);
    if (strcmp(ort_check_text(node->domain), ML) || (version && version < 5) || c->in_function ||
        (strcmp(op, "TreeEnsembleClassifier") && strcmp(op, "TreeEnsembleRegressor")))
        return;
    ort_findings_add(c->findings, ORT_FINDING_ERROR,
                     "%sis deprecated since version 5 of '%s'%s: import version 3, or use "
                     "TreeEnsemble",
                     place, ML, version ? "" : ", which the model doesn't import");
}

static void check_targets(ort_message_check *c, const Onnx__NodeProto *node, const char *place)
{
    const char *op = ort_check_text(node->op_type);
    if (strcmp(ort_check_text(node->domain), ML) ||
        (strcmp(op, "TreeEnsembleRegressor") && strcmp(op, "TreeEnsemble")))
        return;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (!strcmp(ort_check_text(node->attribute[i]->name), "n_targets"))
            return;
    ort_findings_add(c->findings, ORT_FINDING_WARNING,
                     "%sattribute n_targets is missing: read as 1, which not every runtime does",
                     place);
}

static void check_node(ort_message_check *c, const Onnx__NodeProto *node, size_t index,
                       const char *place)
{
    char inner[420], label[200];
    const char *name = ort_check_text(node->name), *op = ort_check_text(node->op_type);
    const char *around = c->node;
    if (*name)
        snprintf(label, sizeof label, "node '%.100s' (%.60s)", name, op);
    else
        snprintf(label, sizeof label, "node #%zu (%.60s)", index, op);
    snprintf(inner, sizeof inner, "%s%s: ", place, label);
    if (!node->n_input && !node->n_output)
        ort_findings_add(c->findings, ORT_FINDING_ERROR, "%shas neither inputs nor outputs",
                         inner);
    check_deprecated(c, node, inner);
    check_targets(c, node, inner);
    check_call(c, node, inner);
    c->node = label;
    for (size_t i = 0; i < node->n_attribute; i++) {
        ort_check_attribute(c, node->attribute[i], inner);
        ort_check_bodies(c, node->attribute[i]);
    }
    c->node = around;
}

typedef struct disorder { /* nodes with an input that nothing before them computes */
    size_t count;
    const Onnx__NodeProto *node;
    const char *input;
} disorder;

static void note_disorder(const ort_name_scope *scope, const Onnx__NodeProto *node, disorder *d)
{
    for (size_t i = 0; i < node->n_input; i++) {
        if (!*node->input[i] || ort_check_is_known(scope, node->input[i]))
            continue;
        if (!d->count)
            d->node = node, d->input = node->input[i];
        d->count++;
        return;
    }
}

/* The main graph is sorted by every runtime; bodies and functions are expected to be sorted. */
void ort_check_nodes(ort_message_check *c, Onnx__NodeProto *const *nodes, size_t count,
                     ort_name_scope *scope, bool is_main, const char *place)
{
    const ort_name_scope *around = c->scope;
    disorder d = {0};
    c->scope = scope;
    for (size_t i = 0; i < count && c->status == ORT_OK; i++) {
        note_disorder(scope, nodes[i], &d);
        check_node(c, nodes[i], i, place);
        for (size_t k = 0; k < nodes[i]->n_output; k++) {
            if (!is_main && ort_hashmap_get_str(&scope->names, nodes[i]->output[k], NULL))
                ort_findings_add(c->findings, ORT_FINDING_ERROR,
                                 "%svalue '%s' is defined twice: again by node #%zu (%s)", place,
                                 nodes[i]->output[k], i, ort_check_text(nodes[i]->op_type));
            ort_check_know(c, scope, nodes[i]->output[k]);
        }
        if (c->status == ORT_OK)
            c->status = ort_budget_check(c->err);
    }
    c->scope = around;
    if (d.count && !ort_check_is_known(scope, d.input))
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "%snode '%s' (%s) reads '%s', which nothing computes", place,
                         ort_check_text(d.node->name), ort_check_text(d.node->op_type), d.input);
    else if (d.count)
        ort_findings_add(c->findings, is_main ? ORT_FINDING_WARNING : ORT_FINDING_ERROR,
                         "%sthe nodes are not in the order of computation: %zu stand too early, "
                         "the first is '%s' (%s), whose input '%s' isn't computed yet; saving the "
                         "model anew sorts them",
                         place, d.count, ort_check_text(d.node->name),
                         ort_check_text(d.node->op_type), d.input);
}

/* ---- graphs */

/* An initializer against what declares its name: a graph input or a value info. */
static void check_fit(ort_message_check *c, const Onnx__ValueInfoProto *info,
                      const Onnx__TensorProto *t, const char *place)
{
    const Onnx__TypeProto *type = info->type;
    if (!type || !type->value_case)
        return;
    bool fits = type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    const Onnx__TensorShapeProto *shape = fits ? type->tensor_type->shape : NULL;
    fits = fits && (!type->tensor_type->elem_type || type->tensor_type->elem_type == t->data_type);
    fits = fits && (!shape || shape->n_dim == t->n_dims);
    for (size_t i = 0; fits && shape && i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
        fits = d->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
               d->dim_value < 0 || d->dim_value == t->dims[i];
    }
    if (!fits)
        ort_findings_add(c->findings, ORT_FINDING_ERROR,
                         "%sinitializer '%s' has another type or shape than the graph declares "
                         "for its name",
                         place, ort_check_text(t->name));
}

static bool same_tensor(const Onnx__TypeProto *a, const Onnx__TypeProto *b)
{
    if (!a || !b || a->value_case != b->value_case)
        return !a || !b;
    if (a->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return true;
    const Onnx__TensorShapeProto *x = a->tensor_type->shape, *y = b->tensor_type->shape;
    if (a->tensor_type->elem_type != b->tensor_type->elem_type || (x && y && x->n_dim != y->n_dim))
        return false;
    for (size_t i = 0; x && y && i < x->n_dim; i++) {
        bool known = x->dim[i]->value_case == 1 && y->dim[i]->value_case == 1;
        if (known && x->dim[i]->dim_value != y->dim[i]->dim_value)
            return false;
    }
    return true;
}

static bool same_element(const Onnx__TypeProto *a, const Onnx__TypeProto *b)
{
    if (!a || !b || a->value_case != b->value_case)
        return !a || !b;
    return a->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
           a->tensor_type->elem_type == b->tensor_type->elem_type;
}

/* An input that is an output as well is declared twice. */
static void check_passed(ort_message_check *c, const Onnx__GraphProto *graph,
                         const ort_hashmap *declared, const char *place)
{
    for (size_t i = 0; i < graph->n_output; i++) {
        const Onnx__ValueInfoProto *out = graph->output[i];
        uint64_t at;
        if (ort_hashmap_get_str(declared, ort_check_text(out->name), &at) && at < graph->n_input &&
            !same_tensor(graph->input[at]->type, out->type))
            ort_findings_add(c->findings, ORT_FINDING_WARNING,
                             "%s'%s' is declared as a graph input and as a graph output, of "
                             "another type or shape",
                             place, ort_check_text(out->name));
    }
}

/* The declarations of a graph: inputs, value infos, outputs. */
static const Onnx__ValueInfoProto *declaration(const Onnx__GraphProto *graph, size_t i)
{
    if (i < graph->n_input)
        return graph->input[i];
    i -= graph->n_input;
    return i < graph->n_value_info ? graph->value_info[i] : graph->output[i - graph->n_value_info];
}

/* By name, the first declaration of each. */
static void note_declarations(ort_message_check *c, const Onnx__GraphProto *graph,
                              ort_hashmap *declared, const char *place)
{
    size_t inside = graph->n_input + graph->n_value_info, count = inside + graph->n_output;
    for (size_t i = 0; i < count && c->status == ORT_OK; i++) {
        const char *name = ort_check_text(declaration(graph, i)->name);
        uint64_t at;
        if (!ort_hashmap_get_str(declared, name, &at)) {
            if (!ort_hashmap_put_str(declared, name, i))
                c->status = ort_error_memory(c->err, sizeof(ort_hashmap_entry));
        } else if (i >= graph->n_input && i < inside) {
            ort_findings_add(c->findings,
                             same_element(declaration(graph, at)->type, declaration(graph, i)->type)
                                 ? ORT_FINDING_WARNING
                                 : ORT_FINDING_ERROR,
                             "%svalue '%s' is declared twice", place, name);
        }
    }
}

static void check_declarations(ort_message_check *c, const Onnx__GraphProto *graph,
                               const char *place)
{
    ort_hashmap declared = {0};
    note_declarations(c, graph, &declared, place);
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *t = graph->initializer[i];
        uint64_t at;
        if (ort_hashmap_get_str(&declared, ort_check_text(t->name), &at))
            check_fit(c, declaration(graph, at), t, place);
    }
    check_passed(c, graph, &declared, place);
    ort_hashmap_release(&declared);
}

/* Before IR 4 an initializer had to be a graph input; of one that nothing reads either, runtimes
 * have no notion at all. */
static bool is_stray(const ort_message_check *c, const char *name)
{
    const ort_graph *graph = c->model->graph;
    ort_id id = ort_graph_find_value(graph, name);
    return id != ORT_ID_NONE && graph->values.data[id]->use_count == 0;
}

static void check_initializers(ort_message_check *c, const Onnx__GraphProto *graph,
                               ort_name_scope *scope, const char *place)
{
    size_t unlisted = 0;
    bool stray = false;
    const char *last = "";
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *t = graph->initializer[i];
        const char *name = ort_check_text(t->name);
        ort_check_tensor(c, t, place);
        if (!*name)
            ort_findings_add(c->findings, ORT_FINDING_ERROR, "%sinitializer %zu has no name",
                             place, i);
        else if (c->scope && ort_hashmap_get_str(&scope->names, name, NULL))
            ort_findings_add(c->findings, ORT_FINDING_ERROR,
                             "%sinitializer '%s' has the name of another value", place, name);
        else if (!ort_check_is_known(scope, name))
            unlisted++, last = name, stray = stray || (!c->scope && is_stray(c, name));
        ort_check_know(c, scope, name);
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *s = graph->sparse_initializer[i];
        ort_check_sparse(c, s, place);
        if (s->values)
            ort_check_know(c, scope, s->values->name);
    }
    if (unlisted && c->model->ir_version < 4)
        ort_findings_add(c->findings, stray ? ORT_FINDING_ERROR : ORT_FINDING_WARNING,
                         "%s%zu initializers, the last of them '%s', are no graph inputs, which IR "
                         "version %lld asks for (4 and later don't)",
                         place, unlisted, last, (long long)c->model->ir_version);
}

void ort_check_message_graph(ort_message_check *c, const Onnx__GraphProto *graph,
                             const char *place)
{
    ort_name_scope scope = {.outer = c->scope};
    bool is_main = graph == ((const Onnx__ModelProto *)c->model->proto)->graph;
    if (!*ort_check_text(graph->name))
        ort_findings_add(c->findings, is_main ? ORT_FINDING_WARNING : ORT_FINDING_ERROR,
                         "%sthe graph has no name: give it any", place);
    for (size_t i = 0; i < graph->n_input; i++) {
        ort_check_value_info(c, graph->input[i], ORT_ROLE_INPUT, is_main, place);
        ort_check_know(c, &scope, graph->input[i]->name);
    }
    check_initializers(c, graph, &scope, place);
    check_declarations(c, graph, place);
    ort_check_nodes(c, graph->node, graph->n_node, &scope, is_main, place);
    for (size_t i = 0; i < graph->n_output; i++) {
        const char *name = ort_check_text(graph->output[i]->name);
        if (!is_main && *name && !ort_hashmap_get_str(&scope.names, name, NULL))
            ort_findings_add(c->findings, ORT_FINDING_ERROR,
                             "%sgraph output '%s' is a value of the graph around it: pass it "
                             "through an Identity",
                             place, name);
        ort_check_value_info(c, graph->output[i], ORT_ROLE_OUTPUT, is_main, place);
    }
    for (size_t i = 0; i < graph->n_value_info; i++)
        ort_check_value_info(c, graph->value_info[i], ORT_ROLE_INSIDE, is_main, place);
    ort_hashmap_release(&scope.names);
}

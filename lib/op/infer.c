/* infer.c - drives inference over a graph: facts flow along `order`, through bodies.
 *
 * A value's fact is what inference derives, completed by what the file declares (declared types
 * fill gaps only; where they contradict, the derived one stands and a finding says so). Small
 * integer and scalar computations whose inputs are all constant are evaluated on the spot, so that
 * shapes which depend on them are known.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/findings.h"
#include "op/custom.h"
#include "op/op.h"

/* Bounds of what is evaluated during inference; larger work is left to constant folding. */
#define EVAL_MAX_OUTPUT 1024
#define EVAL_MAX_INPUT 65536

/* What inferring a node of a body counts. */
#define BODY_STEPS 100u

typedef struct driver {
    ort_graph *graph;      /* mutable at load time, NULL at plan time */
    const ort_registry *registry;
    ort_findings *findings;
} driver;

static ort_status infer_graph(ort_graph *graph, driver *d, ort_error *err);

/* ---- bodies */

/* Plan time: what load-time inference found, without its symbols. */
static void copy_static_fact(ort_fact *out, const ort_fact *from)
{
    *out = *from;
    out->value = NULL;
    out->symbolic = NULL;
    for (int i = 0; i < out->type.rank; i++)
        if (!ort_dim_known(out->type.dim[i]))
            out->type.dim[i] = ort_dim_unknown();
}

static void remember_declared(ort_graph *graph, ort_graph_value *value)
{
    if (value->inferred)
        return;
    value->inferred = true;
    if (value->fact.type.kind == ORT_TYPE_UNKNOWN)
        return;
    ort_type *copy = ort_arena_alloc(&graph->model->arena, sizeof *copy);
    if (copy != NULL) {
        *copy = value->fact.type;
        value->declared = copy;
    }
}

static void bind_captures(ort_graph *body)
{
    for (size_t i = 0; i < body->values.count; i++) {
        ort_graph_value *value = body->values.data[i];
        if (value->outer != ORT_ID_NONE)
            value->fact = body->parent->values.data[value->outer]->fact;
    }
}

static ort_status infer_body(ort_infer *x, int index, const ort_fact *inputs, int input_count,
                             ort_fact *outputs, int output_count, ort_error *err)
{
    driver *d = x->driver;
    ort_graph *body = x->node->bodies[index];
    if (d->graph != NULL) {
        /* Loops infer their bodies again until nothing changes, those in them each time. */
        (void)ort_budget_spend(BODY_STEPS * (body->order.count + 1));
        bind_captures(body);
        for (int i = 0; i < input_count && i < (int)body->inputs.count; i++) {
            ort_graph_value *value = body->values.data[body->inputs.data[i]];
            remember_declared(body, value);
            value->fact = inputs[i];
            if (value->declared != NULL)
                ort_type_merge(&value->fact.type, value->declared);
        }
        /* Without `err` it is a body that never runs: nobody asks what contradicts in it. Of an If
         * one branch may contradict the shapes at hand: that is for the If to judge. */
        bool asked = err != NULL && strcmp(x->node->op_type, "If");
        driver inner = {body, d->registry, asked ? d->findings : NULL};
        ORT_TRY(infer_graph(body, &inner, err));
    }
    for (int i = 0; i < output_count && i < (int)body->outputs.count; i++) {
        const ort_fact *fact = &body->values.data[body->outputs.data[i]]->fact;
        if (d->graph != NULL)
            outputs[i] = *fact;
        else
            copy_static_fact(&outputs[i], fact);
    }
    return ORT_OK;
}

/* ---- one node */

/* A symbolic result with all elements known is a constant. */
static void settle_symbolic(ort_fact *fact, ort_arena *arena)
{
    if (fact->symbolic == NULL || fact->value != NULL || fact->type.kind != ORT_TYPE_TENSOR ||
        (fact->type.dtype != ORT_DTYPE_INT64 && fact->type.dtype != ORT_DTYPE_INT32))
        return;
    for (int i = 0; i < fact->symbolic_count; i++)
        if (!ort_dim_known(fact->symbolic[i]))
            return;
    if (fact->type.rank < 0 || fact->type.rank > 1)
        return;
    ort_tensor *t = ort_arena_alloc(arena, sizeof *t);
    void *data = ort_arena_array(arena, (size_t)fact->symbolic_count + 1, sizeof(int64_t));
    if (t == NULL || data == NULL)
        return;
    t->dtype = fact->type.dtype;
    t->shape.rank = fact->type.rank;
    if (fact->type.rank == 1)
        t->shape.dim[0] = fact->symbolic_count;
    t->data = data;
    for (int i = 0; i < fact->symbolic_count; i++)
        ort_tensor_set_i64(t, i, fact->symbolic[i].size);
    fact->value = t;
}

/* x: all but what the node tells, and the inference of bodies. */
static ort_status call_infer(ort_infer *x, ort_error *err)
{
    x->op = x->node->op;
    x->opset = x->node->opset;
    x->infer_body = infer_body;
    for (int i = 0; i < x->out_count; i++) {
        memset(&x->out[i], 0, sizeof x->out[i]);
        x->out[i].type.rank = -1;
    }
    ort_status status = ort_op_infer(x, err);
    if (status != ORT_OK) {
        char label[200];
        return ort_error_wrap(err, status, "%s", ort_node_label(x->node, label, sizeof label));
    }
    for (int i = 0; i < x->out_count; i++)
        settle_symbolic(&x->out[i], x->arena);
    return ORT_OK;
}

ort_status ort_infer_call(const ort_graph *graph, const ort_node *node, const ort_fact *const *in,
                          int in_count, ort_fact *out, int out_count, ort_dim_table *dims,
                          ort_arena *arena, ort_error *err)
{
    driver d = {0};
    ort_infer x = {.node = node, .in_count = in_count, .out_count = out_count, .in = in, .out = out,
                   .dims = dims, .arena = arena, .graph = graph, .driver = &d};
    return call_infer(&x, err);
}

static int64_t known_count(const ort_type *type)
{
    int64_t count = 1;
    if (type->kind != ORT_TYPE_TENSOR || type->rank < 0)
        return -1;
    for (int i = 0; i < type->rank; i++)
        if (!ort_dim_known(type->dim[i]) || !ort_mul_i64(count, type->dim[i].size, &count))
            return -1;
    return count;
}

/* The first input of the type variable has the element type of this one. */
static bool agrees(const ort_schema *schema, const ort_fact *const *in, int slot,
                   const ort_param *param)
{
    for (int i = 0; i < slot; i++) {
        const ort_param *other = ort_schema_param(schema->inputs, schema->input_count, i);
        if (in[i] != NULL && other != NULL && !strcmp(other->type, param->type))
            return in[i]->type.dtype == in[slot]->type.dtype;
    }
    return true;
}

/* A file may give an operator types that its row hasn't, or two for one variable, and an attribute
 * may name such an output: check says so later, no kernel may see it. */
static bool types_fit(const ort_op *op, const ort_fact *const *in, int in_count,
                      const ort_type *out)
{
    ort_schema schema;
    if (ort_schema_parse(op, &schema, NULL) != ORT_OK)
        return false;
    for (int i = 0; i < in_count; i++) {
        const ort_param *p = ort_schema_param(schema.inputs, schema.input_count, i);
        if (in[i] == NULL)
            continue;
        if (p == NULL || !ort_schema_allows(op, p->type, &in[i]->type) ||
            (!p->mixed && ort_schema_is_variable(op, p->type) && !agrees(&schema, in, i, p)))
            return false;
    }
    const ort_param *p = ort_schema_param(schema.outputs, schema.output_count, 0);
    return p != NULL && ort_schema_allows(op, p->type, out);
}

static bool worth_evaluating(const ort_node *node, const ort_fact *const *in, int in_count,
                             const ort_fact *out)
{
    int64_t total = 0, count = known_count(&out->type);
    if (node->op->impl->run == NULL || node->body_count > 0 || node->output_count != 1 ||
        (node->op->traits & (ORT_TRAIT_RANDOM | ORT_TRAIT_CONTROL)) != 0 || out->value != NULL ||
        count < 0 || count > EVAL_MAX_OUTPUT || out->type.dtype == ORT_DTYPE_STRING ||
        out->type.dtype == ORT_DTYPE_UNDEFINED)
        return false;
    for (int i = 0; i < in_count; i++) {
        if (in[i] == NULL)
            continue;
        if (in[i]->value == NULL || in[i]->value->dtype == ORT_DTYPE_STRING)
            return false;
        total += ort_tensor_count(in[i]->value);
    }
    return total <= EVAL_MAX_INPUT && types_fit(node->op, in, in_count, &out->type);
}

/* Evaluate a node on constants; failure is no error here (the run will tell). */
static void evaluate(ort_graph *graph, const ort_node *node, const ort_fact *const *in,
                     int in_count, ort_fact *out)
{
    ort_value *inputs[ORT_SCHEMA_MAX] = {0}, *result = NULL;
    ort_fact facts[ORT_SCHEMA_MAX];
    const ort_fact *given[ORT_SCHEMA_MAX] = {0};
    bool ok = in_count <= ORT_SCHEMA_MAX;
    for (int i = 0; i < in_count && ok; i++)
        ok = in[i] == NULL || ort_value_for_kernel(in[i]->value, &inputs[i], NULL) == ORT_OK;
    for (int i = 0; i < in_count && ok; i++) {
        if (in[i] == NULL)
            continue;
        facts[i] = *in[i];
        facts[i].value = &inputs[i]->tensor;
        given[i] = &facts[i];
    }
    if (ok && ort_node_eval(node, given, ort_kernels_get("scalar"), NULL, inputs, in_count, &result,
                            1, NULL) == ORT_OK &&
        result != NULL && result->kind == ORT_KIND_TENSOR) {
        size_t bytes = ort_tensor_bytes(&result->tensor);
        ort_tensor *t = ort_arena_alloc(&graph->model->arena, sizeof *t);
        void *data = ort_arena_alloc_aligned(&graph->model->arena, bytes + 1, 64, 0);
        if (t != NULL && data != NULL) {
            *t = result->tensor;
            if (bytes > 0)
                memcpy(data, result->tensor.data, bytes);
            t->data = data;
            out->value = t;
            out->type = ort_type_of_tensor(t);
        }
    }
    ort_value_free(result);
    for (int i = 0; i < in_count && i < ORT_SCHEMA_MAX; i++)
        ort_value_free(inputs[i]);
}

static ort_status contradiction(const ort_graph *graph, const ort_node *node,
                                const ort_graph_value *value, const ort_type *inferred,
                                ort_error *err)
{
    char label[200], a[300], b[300];
    ort_node_label(node, label, sizeof label);
    ort_type_format(graph->model->dims, value->declared, a, sizeof a);
    ort_type_format(graph->model->dims, inferred, b, sizeof b);
    bool wrong_dtype = inferred->kind == ORT_TYPE_TENSOR &&
                       value->declared->kind == ORT_TYPE_TENSOR &&
                       inferred->dtype != value->declared->dtype;
    if (wrong_dtype)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "%s: output '%s' is declared %s but computes to %s", label,
                             value->name, a, b);
    return ORT_OK;
}

/* A model loaded without its weights has constants whose data isn't there: their type is all that
 * is known. */
static const ort_fact *without_missing_data(ort_graph *graph, const ort_fact *fact)
{
    const ort_tensor *t = fact->value;
    if (!graph->model->skeleton || t == NULL || t->data != NULL || ort_tensor_count(t) == 0)
        return fact;
    ort_fact *bare = ort_arena_alloc(&graph->model->arena, sizeof *bare);
    if (bare == NULL)
        return NULL;
    *bare = *fact;
    bare->value = NULL;
    return bare;
}

static ort_status infer_node(ort_graph *graph, ort_node *node, driver *d, ort_error *err)
{
    const ort_fact *small_in[16];
    ort_fact small_out[4];
    const ort_fact **in = small_in;
    ort_fact *out = small_out;
    ort_status status = ORT_OK;
    if (node->op == NULL)
        return ORT_OK;
    if (node->input_count > 16)
        in = malloc((size_t)node->input_count * sizeof *in);
    if (node->output_count > 4)
        out = malloc((size_t)node->output_count * sizeof *out);
    if (in == NULL || out == NULL) {
        status = ort_error_memory(err, 0);
        goto done;
    }
    for (int i = 0; i < node->input_count; i++) {
        ort_graph_value *value = ort_graph_value_at(graph, node->inputs[i]);
        in[i] = value != NULL ? without_missing_data(graph, &value->fact) : NULL;
    }
    ort_infer x = {.node = node, .in_count = node->input_count, .out_count = node->output_count,
                   .in = in, .out = out, .dims = graph->model->dims,
                   .arena = &graph->model->arena, .graph = graph, .driver = d};
    status = call_infer(&x, err);
    if (status != ORT_OK)
        goto done;
    if (node->output_count == 1 && worth_evaluating(node, in, node->input_count, &out[0]))
        evaluate(graph, node, in, node->input_count, &out[0]);
    for (int i = 0; i < node->output_count; i++) {
        ort_graph_value *value = ort_graph_value_at(graph, node->outputs[i]);
        if (value == NULL)
            continue;
        remember_declared(graph, value);
        if (value->declared != NULL) {
            ort_type merged = out[i].type;
            if (ort_type_merge(&merged, value->declared))
                out[i].type = merged;
        }
        value->fact = out[i];
    }
done:
    if (in != small_in)
        free(in);
    if (out != small_out)
        free(out);
    return status;
}

ort_status ort_node_infer(ort_graph *graph, ort_node *node, ort_error *err)
{
    driver d = {graph, graph->model->registry, NULL};
    return infer_node(graph, node, &d, err);
}

/* ---- a graph */

/* onnxruntime's converters add operators of a domain that the model doesn't import (float16 adds
 * Cast to a model of ai.onnx.ml alone). As there, the newest version is taken; the import is added,
 * so that saving mends the file, and check warns. 0 when the model imports nothing at all, or the
 * operator is unknown. */
static int assumed_opset(ort_model *model, const ort_node *node, const ort_registry *registry)
{
    ort_opset opset = {node->domain, 1, true};
    if (model->opsets.count == 0 || !ort_registry_oldest(registry, node->domain, node->op_type))
        return 0;
    if (!strcmp(node->domain, ONNX))
        opset.version = ORT_NEWEST_OPSET;
    else if (!strcmp(node->domain, ML))
        opset.version = ORT_NEWEST_ML_OPSET;
    if (!ort_vec_push(&model->opsets, opset))
        return 0;
    model->changed = true;
    return (int)opset.version;
}

void ort_node_share_type(ort_node *node)
{
    if (node->op && node->op->impl != &ort_custom_impl)
        node->op_type = node->op->name;
}

static void resolve(ort_node *node, const ort_graph *graph, const ort_registry *registry)
{
    if (node->op != NULL)
        return;
    if (node->opset == 0)
        node->opset = (int)ort_model_opset(graph->model, node->domain);
    if (node->opset == 0)
        node->opset = assumed_opset(graph->model, node, registry);
    const ort_op *op = ort_registry_find(registry, node->domain, node->op_type, node->opset);
    /* Infer functions and kernels rely on required inputs; check tells what is missing. */
    node->op = op && ort_schema_fits(op, node) ? op : NULL;
    ort_node_share_type(node);
}

/* Inference of a body may end early (an If whose other branch is taken): its nodes have operators
 * all the same. */
static void resolve_all(const ort_graph *graph, const ort_registry *registry)
{
    ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        resolve(node, graph, registry);
        for (int i = 0; i < node->body_count; i++)
            resolve_all(node->bodies[i], registry);
    }
}

/* A check tells of them all when the last fact is known (check.c). */
static ort_status report_contradictions(ort_graph *graph, const ort_node *node, const driver *d,
                                        ort_error *err)
{
    if (d->findings != NULL)
        return ORT_OK;
    for (int i = 0; i < node->output_count; i++) {
        ort_graph_value *value = ort_graph_value_at(graph, node->outputs[i]);
        if (value == NULL || value->declared == NULL)
            continue;
        ort_type merged = value->fact.type;
        if (!ort_type_merge(&merged, value->declared))
            ORT_TRY(contradiction(graph, node, value, &value->fact.type, err));
    }
    return ORT_OK;
}

static ort_status infer_graph(ort_graph *graph, driver *d, ort_error *err)
{
    ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        ORT_TRY(ort_budget_check(err));
        resolve(node, graph, d->registry);
        ort_status status = infer_node(graph, node, d, err);
        if (status == ORT_OK)
            status = report_contradictions(graph, node, d, err);
        if (status != ORT_OK && d->findings != NULL && status == ORT_ERROR_MODEL) {
            if (err != NULL) /* once: bodies are inferred until their facts settle */
                ort_findings_add_once(d->findings, ORT_FINDING_ERROR, err->message);
            continue;
        }
        if (status == ORT_ERROR_MODEL && err == NULL)
            continue; /* a body that never runs: what contradicts in it stays unknown */
        if (status != ORT_OK) {
            resolve_all(graph, d->registry);
            return status;
        }
    }
    return ORT_OK;
}

ort_status ort_graph_infer(ort_graph *graph, const ort_registry *registry, ort_findings *findings,
                           ort_error *err)
{
    driver d = {graph, registry, findings};
    ort_error own = {0};
    for (size_t i = 0; i < graph->initializers.count; i++) {
        ort_graph_value *value = graph->values.data[graph->initializers.data[i]];
        if (value->fact.value != NULL && !value->is_input)
            value->fact.type = ort_type_of_tensor(value->fact.value);
    }
    return infer_graph(graph, &d, err != NULL ? err : &own);
}

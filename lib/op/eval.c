/* eval.c - the plain interpreter: infer, prepare, shape and run of one node at a time.
 *
 * A scope holds the values of one graph while its nodes run in order; bodies get a scope of their
 * own whose captured values are found in the scope around it, or are constants of the enclosing
 * graph. Everything that operators allocate (states, strings) lives in one arena until the
 * outermost call ends; string outputs are deep-copied out of it.
 */
#include "op/eval.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum { NODE_STEPS = 1000 }; /* what a node costs here before it computes anything */

typedef struct evaluation {
    const ort_kernels *k;
    ort_pool *pool;
    ort_arena memory;
} evaluation;

typedef struct scope {
    const struct scope *around; /* of the graph that holds the node, or NULL */
    const ort_graph *graph;
    ort_value **values; /* by id; NULL: not computed */
} scope;

typedef struct eval_call {
    ort_call call;
    evaluation *ev;
    const scope *around;
} eval_call;

/* One node about to run: everything of its call in one allocation. */
typedef struct eval_job {
    const ort_node *node;
    const ort_fact *const *in_facts;
    ort_value *const *inputs;
    int input_count;
    ort_value **outputs;
    int output_count;
    const void *state; /* NULL: prepare first */
    void (*release)(const void *state); /* of a state prepared here; or NULL */
    bool prepared;
} eval_job;

static ort_status eval_node(evaluation *ev, const scope *around, eval_job *job, ort_error *err);

ort_fact ort_fact_of_value(const ort_value *value)
{
    ort_fact fact = {0};
    if (!value)
        return fact;
    if (value->kind == ORT_KIND_TENSOR) {
        fact.type = ort_type_of_tensor(&value->tensor);
        fact.value = &value->tensor;
    } else if (value->kind == ORT_KIND_SEQUENCE) {
        fact.type.kind = ORT_TYPE_SEQUENCE;
    } else if (value->kind == ORT_KIND_MAP) {
        fact.type.kind = ORT_TYPE_MAP;
    } else {
        fact.type.kind = ORT_TYPE_OPTIONAL;
    }
    return fact;
}

bool ort_type_concrete(const ort_type *type, ort_shape *shape)
{
    if (type->kind != ORT_TYPE_TENSOR || type->dtype == ORT_DTYPE_UNDEFINED || type->rank < 0)
        return false;
    shape->rank = type->rank;
    for (int i = 0; i < type->rank; i++) {
        if (!ort_dim_known(type->dim[i]) || type->dim[i].size < 0)
            return false;
        shape->dim[i] = type->dim[i].size;
    }
    return true;
}

ort_status ort_node_wrap_error(const ort_node *node, ort_error *err, ort_status status)
{
    char label[256];
    if (err && (!strncmp(err->message, "node '", 6) || !strncmp(err->message, "node #", 6)))
        return status;
    return ort_error_wrap(err, status, "%s", ort_node_label(node, label, sizeof label));
}

/* ---- services */

static void *service_alloc(ort_call *call, size_t bytes)
{
    return ort_arena_alloc(&((eval_call *)call->executor)->ev->memory, bytes);
}

static ort_status service_output(ort_call *call, int index, ort_dtype dtype, const ort_shape *shape,
                                 ort_error *err)
{
    ort_value *value = NULL;
    if (index >= call->out_count)
        return ORT_OK;
    ORT_TRY(ort_shape_check(shape, dtype, err));
    ORT_TRY(ort_value_new_tensor_(dtype, shape, &value, err));
    ort_value_free(call->out[index]);
    call->out[index] = value;
    return ORT_OK;
}

static void service_set_output(ort_call *call, int index, ort_value *value)
{
    if (index >= call->out_count) {
        ort_value_free(value);
        return;
    }
    ort_value_free(call->out[index]);
    call->out[index] = value;
}

/* The value of id in a scope: computed, constant, or captured from further out. A new reference. */
static ort_value *find_value(const scope *s, const ort_graph *graph, ort_id id, ort_error *err)
{
    while (graph && id != ORT_ID_NONE) {
        const ort_graph_value *value = graph->values.data[id];
        if (s && s->graph == graph && s->values[id])
            return ort_value_retain(s->values[id]);
        if (value->fact.value && value->outer == ORT_ID_NONE) {
            ort_value *view = NULL;
            const ort_tensor *t = ort_graph_weight((ort_graph *)(uintptr_t)graph, id);
            if (!t)
                return ort_error_memory(err, ort_tensor_bytes(value->fact.value)), NULL;
            return ort_value_for_kernel(t, &view, err) ? NULL : view;
        }
        if (value->outer == ORT_ID_NONE) {
            ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                          "value '%s' isn't known before the model runs", value->name);
            return NULL;
        }
        if (s && s->graph == graph)
            s = s->around;
        id = value->outer;
        graph = graph->parent;
    }
    ort_error_set(err, ORT_ERROR_MODEL, "a body captures a value that no outer graph has");
    return NULL;
}

static ort_status run_body_node(evaluation *ev, scope *s, const ort_node *node, ort_error *err)
{
    ort_status status = ORT_ERROR_MEMORY;
    int in_count = node->input_count, out_count = node->output_count;
    ort_value **values = calloc((size_t)(in_count + out_count) + 1, sizeof *values);
    ort_fact *facts = calloc((size_t)in_count + 1, sizeof *facts);
    const ort_fact **fact_list = calloc((size_t)in_count + 1, sizeof *fact_list);
    if (!values || !facts || !fact_list) {
        ort_error_memory(err, sizeof *facts * (size_t)in_count);
        goto done;
    }
    for (int i = 0; i < in_count; i++) {
        if (node->inputs[i] == ORT_ID_NONE)
            continue;
        values[i] = find_value(s, s->graph, node->inputs[i], err);
        if (!values[i]) {
            status = err && err->status != ORT_OK ? err->status : ORT_ERROR_MODEL;
            goto done;
        }
        facts[i] = ort_fact_of_value(values[i]);
        if (facts[i].type.kind == ORT_TYPE_SEQUENCE || facts[i].type.kind == ORT_TYPE_MAP)
            facts[i].type = s->graph->values.data[node->inputs[i]]->fact.type;
        fact_list[i] = &facts[i];
    }
    eval_job job = {.node = node,
                    .in_facts = fact_list,
                    .inputs = values,
                    .input_count = in_count,
                    .outputs = values + in_count,
                    .output_count = out_count};
    ORT_TRY_GOTO(status, eval_node(ev, s, &job, err), done);
    for (int i = 0; i < out_count; i++)
        if (node->outputs[i] != ORT_ID_NONE) {
            ort_value_free(s->values[node->outputs[i]]);
            s->values[node->outputs[i]] = ort_value_retain(job.outputs[i]);
        }
done:
    for (int i = 0; values && i < in_count + out_count; i++)
        ort_value_free(values[i]);
    free(values);
    free(facts);
    free(fact_list);
    return status;
}

static ort_status service_body(ort_call *call, int index, ort_value *const *inputs, int input_count,
                               ort_value **outputs, int output_count, ort_handed handed,
                               ort_error *err)
{
    eval_call *c = call->executor;
    const ort_graph *graph = call->node->bodies[index];
    scope s = {c->around, graph, NULL};
    ort_status status = ORT_OK;
    const ort_node *node;

    if (input_count != (int)graph->inputs.count || output_count != (int)graph->outputs.count)
        return ort_error_set(
            err, ORT_ERROR_MODEL,
            "the body has %zu inputs and %zu outputs, the operator needs %d and %d",
            graph->inputs.count, graph->outputs.count, input_count, output_count);
    s.values = calloc(graph->values.count + 1, sizeof(ort_value *));
    if (!s.values)
        return ort_error_memory(err, graph->values.count * sizeof(ort_value *));
    for (int i = 0; i < input_count; i++)
        s.values[graph->inputs.data[i]] = inputs[i] ? ort_value_retain(inputs[i]) : NULL;
    ORT_EACH_NODE(graph, node)
    {
        status = run_body_node(c->ev, &s, node, err);
        if (status != ORT_OK)
            goto done;
    }
    for (int i = 0; i < output_count; i++) {
        outputs[i] = find_value(&s, graph, graph->outputs.data[i], err);
        if (!outputs[i]) {
            status = err && err->status != ORT_OK ? err->status : ORT_ERROR_MODEL;
            while (--i >= 0) {
                ort_value_free(outputs[i]);
                outputs[i] = NULL;
            }
            goto done;
        }
    }
done:
    for (size_t i = 0; i < graph->values.count; i++)
        ort_value_free(s.values[i]);
    free(s.values);
    return status;
}

static const ort_call_services eval_services = {
    .alloc = service_alloc,
    .output = service_output,
    .body = service_body,
    .set_output = service_set_output,
};

/* ---- one node */

static ort_status no_body_inference(ort_infer *x, int index, const ort_fact *inputs,
                                    int input_count, ort_fact *outputs, int output_count,
                                    ort_error *err)
{
    memset(outputs, 0, sizeof *outputs * (size_t)output_count);
    return ORT_OK;
}

static ort_status infer_outputs(evaluation *ev, const eval_job *job, ort_fact *out, ort_error *err)
{
    const ort_node *node = job->node;
    const ort_graph *graph = NULL;
    ort_infer x = {.node = node,
                   .op = node->op,
                   .opset = node->opset,
                   .in_count = job->input_count,
                   .out_count = job->output_count,
                   .in = job->in_facts,
                   .out = out,
                   .arena = &ev->memory,
                   .graph = graph,
                   .infer_body = no_body_inference};
    ort_cost cost = {0};
    if (node->op->traits & ORT_TRAIT_CONTROL)
        return ORT_OK;
    ORT_TRY(ort_op_infer(&x, err));
    ort_cost_of(&x, &cost);
    (void)ort_budget_spend(ort_steps_of(cost.macs + cost.flops));
    return ort_budget_check(err);
}

/* Storage for the outputs whose shape is known; the others are the operator's own business. */
static ort_status make_outputs(const eval_job *job, const ort_fact *out, ort_error *err)
{
    bool own = job->node->op->traits & (ORT_TRAIT_DYNAMIC | ORT_TRAIT_CONTROL);
    for (int i = 0; i < job->output_count; i++) {
        ort_shape shape;
        job->outputs[i] = NULL;
        if (job->node->outputs[i] == ORT_ID_NONE)
            continue;
        if (own || !ort_type_concrete(&out[i].type, &shape)) {
            if (!own && out[i].type.kind == ORT_TYPE_TENSOR && job->input_count &&
                job->in_facts[0] && job->in_facts[0]->type.kind == ORT_TYPE_TENSOR)
                return ort_error_set(err, ORT_ERROR_RUN,
                                     "the shape of output %d can't be determined from these inputs",
                                     i);
            ORT_TRY(ort_value_new_none(&job->outputs[i], err)); /* a place that set_output takes */
            continue;
        }
        ORT_TRY(ort_shape_check(&shape, out[i].type.dtype, err));
        ORT_TRY(ort_value_new_tensor_(out[i].type.dtype, &shape, &job->outputs[i], err));
    }
    return ORT_OK;
}

static ort_status prepare_node(evaluation *ev, eval_job *job, const ort_fact *out, ort_error *err)
{
    const ort_node *node = job->node;
    const ort_fact **out_list;
    if (job->prepared || !ort_op_prepares(node->op))
        return ORT_OK;
    out_list = ort_arena_array(&ev->memory, (size_t)job->output_count + 1, sizeof *out_list);
    if (!out_list)
        return ort_error_memory(err, sizeof *out_list);
    for (int i = 0; i < job->output_count; i++)
        out_list[i] = &out[i];
    ort_prep p = {.node = node,
                  .op = node->op,
                  .opset = node->opset,
                  .in_count = job->input_count,
                  .out_count = job->output_count,
                  .in = job->in_facts,
                  .out = out_list,
                  .k = ev->k,
                  .arena = &ev->memory};
    ORT_TRY(ort_op_prepare(&p, err));
    job->state = p.state;
    job->release = p.release;
    return ORT_OK;
}

static ort_status shape_node(evaluation *ev, const eval_job *job, ort_call *call, ort_error *err)
{
    const ort_tensor **views;
    int threads = ev->pool ? ort_pool_threads(ev->pool) : 1;
    if (!job->node->op->impl->shape)
        return ORT_OK;
    views = ort_arena_array(&ev->memory, (size_t)(job->input_count + job->output_count) + 1,
                            sizeof *views);
    if (!views)
        return ort_error_memory(err, sizeof *views);
    for (int i = 0; i < job->input_count; i++)
        if (job->inputs[i] && job->inputs[i]->kind == ORT_KIND_TENSOR)
            views[i] = &job->inputs[i]->tensor;
    for (int i = 0; i < job->output_count; i++)
        if (job->outputs[i] && job->outputs[i]->kind == ORT_KIND_TENSOR)
            views[job->input_count + i] = &job->outputs[i]->tensor;
    ort_shaping s = {.node = job->node,
                     .state = job->state,
                     .in_count = job->input_count,
                     .out_count = job->output_count,
                     .in = views,
                     .out = views + job->input_count,
                     .k = ev->k,
                     .arena = &ev->memory};
    ORT_TRY(job->node->op->impl->shape(&s, err));
    call->plan_state = s.plan_state;
    call->thread_bytes = ort_round_up(s.thread_bytes, 64);
    if (s.workspace_bytes)
        call->workspace = ort_arena_alloc_aligned(&ev->memory, s.workspace_bytes, 64, 0);
    if (s.thread_bytes)
        call->thread_space = ort_arena_alloc_aligned(
            &ev->memory, call->thread_bytes * (size_t)(threads > 0 ? threads : 1), 64, 0);
    if ((s.workspace_bytes && !call->workspace) || (s.thread_bytes && !call->thread_space))
        return ort_error_memory(err, s.workspace_bytes + s.thread_bytes);
    return ORT_OK;
}

static bool holds_strings(const ort_value *value)
{
    if (value->kind == ORT_KIND_TENSOR)
        return value->tensor.dtype == ORT_DTYPE_STRING;
    for (size_t i = 0; value->kind != ORT_KIND_NONE && i < value->count; i++)
        if (value->items[i] && holds_strings(value->items[i]))
            return true;
    return false;
}

static ort_status run_node(evaluation *ev, const scope *around, eval_job *job, ort_error *err)
{
    const ort_node *node = job->node;
    eval_call c = {.ev = ev, .around = around};
    c.call = (ort_call){.node = node,
                        .state = job->state,
                        .in_count = job->input_count,
                        .out_count = job->output_count,
                        .in = job->inputs,
                        .out = job->outputs,
                        .k = ev->k,
                        .pool = ev->pool,
                        .services = &eval_services,
                        .executor = &c};
    if ((node->op->traits & ORT_TRAIT_ALIAS) && job->outputs[0] &&
        job->outputs[0]->kind == ORT_KIND_TENSOR && job->inputs[0]->kind == ORT_KIND_TENSOR) {
        ort_tensor_copy_data(&job->outputs[0]->tensor, &job->inputs[0]->tensor);
        return ORT_OK;
    }
    ORT_TRY(shape_node(ev, job, &c.call, err));
    return node->op->impl->run(&c.call, err);
}

static void drop_outputs(eval_job *job)
{
    for (int i = 0; i < job->output_count; i++) {
        ort_value_free(job->outputs[i]);
        job->outputs[i] = NULL;
    }
}

/* Strings made by the operator lie in the evaluation's arena; the result must own them. */
static ort_status own_strings(const eval_job *job, ort_error *err)
{
    for (int i = 0; i < job->output_count; i++) {
        ort_value *copy = NULL;
        if (!job->outputs[i] || !holds_strings(job->outputs[i]))
            continue;
        ORT_TRY(ort_value_clone(job->outputs[i], &copy, err));
        ort_value_free(job->outputs[i]);
        job->outputs[i] = copy;
    }
    return ORT_OK;
}

static ort_status eval_node(evaluation *ev, const scope *around, eval_job *job, ort_error *err)
{
    const ort_node *node = job->node;
    ort_fact *out;
    ort_status status;

    for (int i = 0; i < job->output_count; i++)
        job->outputs[i] = NULL;
    (void)ort_budget_spend(NODE_STEPS);
    if (!node->op || !node->op->impl || !node->op->impl->run)
        return ort_node_wrap_error(node, err,
                                   ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                                                 "no provider runs operator %s%s%s", node->domain,
                                                 node->domain[0] ? "." : "", node->op_type));
    out = ort_arena_array(&ev->memory, (size_t)job->output_count + 1, sizeof *out);
    if (!out)
        return ort_error_memory(err, sizeof *out);
    status = infer_outputs(ev, job, out, err);
    if (status == ORT_OK)
        status = make_outputs(job, out, err);
    if (status == ORT_OK)
        status = prepare_node(ev, job, out, err);
    if (status == ORT_OK)
        status = run_node(ev, around, job, err);
    if (status == ORT_OK) /* what was cut short is no result */
        status = ort_budget_check(err);
    if (status == ORT_OK)
        status = own_strings(job, err);
    if (job->state && job->release)
        job->release(job->state);
    if (status != ORT_OK) {
        drop_outputs(job);
        return ort_node_wrap_error(node, err, status);
    }
    return ORT_OK;
}

/* The outermost call. */
static ort_status evaluate(evaluation *ev, eval_job *job, ort_error *err)
{
    ort_budget budget;
    ort_budget_begin_ahead(&budget);
    ort_status status = eval_node(ev, NULL, job, err);
    ort_arena_release(&ev->memory);
    return ort_budget_end(&budget, status, err);
}

ort_status ort_node_eval(const ort_node *node, const ort_fact *const *in_facts,
                         const ort_kernels *k, ort_pool *pool, ort_value *const *inputs,
                         int input_count, ort_value **outputs, int output_count, ort_error *err)
{
    evaluation ev = {.k = k, .pool = pool};
    eval_job job = {.node = node,
                    .in_facts = in_facts,
                    .inputs = inputs,
                    .input_count = input_count,
                    .outputs = outputs,
                    .output_count = output_count};
    return evaluate(&ev, &job, err);
}

ort_status ort_node_eval_prepared(const ort_node *node, const void *state,
                                  const ort_fact *const *in_facts, const ort_kernels *k,
                                  ort_pool *pool, ort_value **values, int input_count,
                                  int output_count, ort_error *err)
{
    evaluation ev = {.k = k, .pool = pool};
    eval_job job = {.node = node,
                    .in_facts = in_facts,
                    .inputs = values,
                    .input_count = input_count,
                    .outputs = values + input_count,
                    .output_count = output_count,
                    .state = state,
                    .prepared = true};
    return evaluate(&ev, &job, err);
}

/* program.c - building a program: constants, captures, steps, and `prepare` of every node. A node
 * that can't be prepared is a finding; the build goes on so that all of them are reported
 * together. */
#include "exec/program.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "exec/packing.h"
#include "exec/step_packs.h"
#include "exec/plan.h"
#include "op/eval.h"
#include "op/half_weight.h"

static void find_constants(ort_program *p)
{
    for (int id = 0; id < p->value_count; id++) {
        const ort_graph_value *value = p->graph->values.data[id];
        if (value->outer != ORT_ID_NONE) {
            p->constants[id] = p->parent && (int)value->outer < p->parent->value_count
                                   ? p->parent->constants[value->outer]
                                   : NULL;
        } else if (!value->is_input) {
            p->constants[id] = value->fact.value;
        }
    }
}

static ort_status find_captures(ort_program *p, ort_error *err)
{
    int count = 0;
    for (int id = 0; id < p->value_count; id++)
        count += p->graph->values.data[id]->outer != ORT_ID_NONE && !p->constants[id];
    p->captures = calloc((size_t)count + 1, sizeof *p->captures);
    if (!p->captures)
        return ort_error_memory(err, sizeof *p->captures * (size_t)count);
    for (int id = 0; id < p->value_count; id++) {
        ort_id outer = p->graph->values.data[id]->outer;
        if (outer != ORT_ID_NONE && !p->constants[id])
            p->captures[p->capture_count++] = (ort_capture){(ort_id)id, outer};
    }
    return ORT_OK;
}

/* The facts of a node's values as prepare sees them: session constants, captured ones included. */
static const ort_fact **list_facts(const ort_program *p, ort_arena *arena, const ort_id *ids,
                                   int count, bool constants)
{
    const ort_fact **list = ort_arena_array(arena, (size_t)count + 1, sizeof *list);
    for (int i = 0; list && i < count; i++) {
        const ort_fact *fact;
        ort_fact *copy;
        if (ids[i] == ORT_ID_NONE)
            continue;
        fact = &p->graph->values.data[ids[i]]->fact;
        list[i] = fact;
        if (fact->value == (constants ? p->constants[ids[i]] : NULL))
            continue;
        copy = ort_arena_alloc(arena, sizeof *copy);
        if (!copy)
            return NULL;
        *copy = *fact;
        copy->value = constants ? p->constants[ids[i]] : NULL;
        if (copy->value && copy->type.kind == ORT_TYPE_UNKNOWN)
            copy->type = ort_type_of_tensor(copy->value);
        list[i] = copy;
    }
    return list;
}

/* ---- constants that the file doesn't align (a model loaded as stored) */

static bool is_unaligned(const ort_program *p, ort_id id)
{
    const ort_tensor *t = id == ORT_ID_NONE ? NULL : p->constants[id];
    return t && t->data && !ort_tensor_aligned(t);
}

/* Does the step's `run` (or `prepare`) take this input as it lies? */
static bool runs_unaligned(const ort_program *p, const ort_step *step, int input)
{
    return (step->traits & ORT_TRAIT_READS_UNALIGNED) && step->in[input] != ORT_ID_NONE &&
           p->constants[step->in[input]] &&
           ort_dtype_get(p->constants[step->in[input]]->dtype)->class_ == ORT_CLASS_FLOAT;
}

static bool packs_unaligned(const ort_program *p, const ort_step *step, int input)
{
    const ort_tensor *t = p->constants[step->in[input]];
    return runs_unaligned(p, step, input) ||
           (input == 1 && (step->traits & ORT_TRAIT_PACKS_UNALIGNED) &&
            t->dtype == ORT_DTYPE_FLOAT) ||
           (input == 1 && (step->traits & ORT_TRAIT_PACKS_HALF) && ort_half_is_kept(t));
}

/* An aligned copy in a blob of its own; in the spare one when that is large enough. */
static ort_status copy_aligned(const ort_tensor *from, ort_tensor *to, ort_blob **spare,
                               ort_blob **blob, ort_error *err)
{
    assert(!from->stride); /* its bytes are copied as they lie */
    size_t bytes = ort_tensor_bytes(from);
    if (spare && *spare && (*spare)->count >= bytes) {
        *blob = *spare;
        *spare = NULL;
    } else {
        void *data = aligned_alloc(64, ort_round_up(bytes, 64));
        if (!data)
            return ort_error_memory(err, bytes);
        ORT_TRY(ort_blob_new(ORT_BLOB_HEAP, data, bytes, blob, err));
    }
    *to = *from;
    to->data = (void *)(uintptr_t)(*blob)->bytes;
    assert(ort_tensor_aligned(to));
    memcpy(to->data, from->data, bytes);
    return ORT_OK;
}

/* Memory that was touched before costs no page faults again. */
static void keep_spare(ort_blob **spare, ort_blob *blob)
{
    if (!spare || (*spare && (*spare)->count >= blob->count)) {
        ort_blob_release(blob);
        return;
    }
    ort_blob_release(*spare);
    *spare = blob;
}

/* Runs will read it: the copy becomes the program's constant. Takes the blob. */
static ort_status adopt(const ort_program_options *o, ort_program *p, ort_id id,
                        const ort_tensor *aligned, ort_blob *blob, ort_error *err)
{
    assert(aligned->data == blob->bytes && is_unaligned(p, id));
    ort_tensor *kept = ort_arena_alloc(o->arena, sizeof *kept);
    if (!kept || !ort_vec_push(&p->blobs, blob)) {
        ort_blob_release(blob);
        return ort_error_memory(err, sizeof *kept);
    }
    *kept = *aligned;
    p->constants[id] = kept;
    return ORT_OK;
}

static ort_status align(const ort_program_options *o, ort_program *p, ort_id id, ort_error *err)
{
    ort_tensor aligned;
    ort_blob *blob = NULL;
    if (!is_unaligned(p, id))
        return ORT_OK;
    ORT_TRY(copy_aligned(p->constants[id], &aligned, NULL, &blob, err));
    return adopt(o, p, id, &aligned, blob, err);
}

static ort_status align_all(const ort_program_options *o, ort_program *p, const ort_id *ids,
                            int count, ort_error *err)
{
    for (int i = 0; i < count; i++)
        ORT_TRY(align(o, p, ids[i], err));
    return ORT_OK;
}

static ort_status align_inputs(const ort_program_options *o, ort_program *p, const ort_step *step,
                               ort_error *err)
{
    for (int i = 0; i < step->in_count; i++)
        if (!runs_unaligned(p, step, i))
            ORT_TRY(align(o, p, step->in[i], err));
    return ORT_OK;
}

typedef struct borrowed { /* an input's aligned copy while its step is prepared */
    ort_tensor tensor;
    ort_blob *blob;
    ort_fact fact;
} borrowed;

/* The facts of a step with aligned constants; what it packs needs them only now. */
static ort_status borrow(const ort_program_options *o, const ort_program *p, const ort_step *step,
                         const ort_fact **in, borrowed *list, ort_error *err)
{
    for (int i = 0; i < step->in_count; i++) {
        if (!is_unaligned(p, step->in[i]) || packs_unaligned(p, step, i))
            continue;
        ORT_TRY(copy_aligned(p->constants[step->in[i]], &list[i].tensor, o->spare, &list[i].blob,
                             err));
        list[i].fact = *in[i];
        list[i].fact.value = &list[i].tensor;
        in[i] = &list[i].fact;
    }
    return ORT_OK;
}

/* Gives back the copies of absorbed inputs, and keeps the others, those that runs read. */
static ort_status settle(const ort_program_options *o, ort_program *p, const ort_step *step,
                         borrowed *list, uint64_t absorbed, ort_error *err)
{
    ort_status status = ORT_OK;
    for (int i = 0; i < step->in_count; i++) {
        bool absorbs = i < ORT_PACKING_INPUTS && absorbed >> i & 1;
        if (!list[i].blob) {
            if (status == ORT_OK && !absorbs && !runs_unaligned(p, step, i))
                status = align(o, p, step->in[i], err);
            continue;
        }
        if (status != ORT_OK || absorbs || !is_unaligned(p, step->in[i]))
            keep_spare(o->spare, list[i].blob);
        else
            status = adopt(o, p, step->in[i], &list[i].tensor, list[i].blob, err);
    }
    return status;
}

enum { FORGET_BYTES = 64 << 10 }; /* a file's smaller constants aren't worth a system call */

enum { TOGETHER_BYTES = 4 << 20 }; /* what is packed and leaves memory by one call */

static void forget_packed(ort_program *p)
{
    if (p->packed.count)
        ort_model_forget(p->graph->model, p->packed.bytes, p->packed.count);
    p->packed.count = 0;
}

/* Weights of one neighbourhood leave memory together: what leaves takes its surroundings along,
 * which the next weight would fetch again. */
static void pass_packed(ort_program *p, const char *begin, const char *end)
{
    const char *first = p->packed.count && p->packed.bytes < begin ? p->packed.bytes : begin;
    const char *last = p->packed.bytes + p->packed.count;
    if (!p->packed.count || last < end)
        last = end;
    if (last - first > TOGETHER_BYTES) {
        forget_packed(p);
        first = begin, last = end;
    }
    p->packed.bytes = first;
    p->packed.count = (size_t)(last - first);
}

/* Packed weights needn't lie in memory twice: pages of the file that nobody reads again leave it.
 * (Another step that reads them gets them back.) */
static void forget_absorbed(ort_program *p, const ort_step *step, uint64_t absorbed)
{
    for (int i = 0; i < step->in_count && i < ORT_PACKING_INPUTS; i++) {
        const ort_tensor *t = step->in[i] == ORT_ID_NONE ? NULL : p->constants[step->in[i]];
        if (absorbed >> i & 1 && t && t->data && ort_tensor_bytes(t) >= FORGET_BYTES)
            pass_packed(p, t->data, (const char *)t->data + ort_tensor_bytes(t));
    }
}

/* What math_fast may cost. */
static void say_rounds(const ort_program_options *o, const ort_node *node, int64_t of)
{
    char label[128];
    ort_log_write(&o->env->log, ORT_LOG_INFO,
                  "%s: math fast: each element of input 0 is off by at most 1/254 of the largest "
                  "of its %lld", ort_node_label(node, label, sizeof label), (long long)of);
}

static ort_status prepare_step(const ort_program_options *o, ort_program *p, ort_step *step,
                               ort_step_packs *packs, ort_error *err)
{
    ort_arena scratch = {0};
    ort_error problem = {0};
    ort_status status;
    ort_prep prep = {.node = step->node,
                     .op = step->op,
                     .opset = step->node->opset,
                     .in_count = step->in_count,
                     .out_count = step->out_count,
                     .graph = p->graph,
                     .k = o->env->k,
                     .math_strict = o->env->options.math_strict,
                     .math_fast = o->env->options.math_fast,
                     .packs = &packs->services,
                     .pool = o->env->pool,
                     .arena = o->arena};
    if (!ort_op_prepares(step->op))
        return align_inputs(o, p, step, err);
    const ort_fact **in = list_facts(p, &scratch, step->in, step->in_count, true);
    borrowed *list = ort_arena_array(&scratch, (size_t)step->in_count + 1, sizeof *list);
    prep.in = in;
    prep.out = list_facts(p, &scratch, step->out, step->out_count, true);
    if (!prep.in || !prep.out || !list) {
        ort_arena_release(&scratch);
        return ort_error_memory(err, sizeof(ort_fact));
    }
    ort_status aligned = borrow(o, p, step, in, list, err);
    status = aligned ? aligned : ort_op_prepare(&prep, &problem);
    ort_status settled = settle(o, p, step, list, packs->absorbed, aligned ? NULL : err);
    if (!aligned && !prep.packs->reads)
        forget_absorbed(p, step, packs->absorbed);
    if (!aligned && !settled && status == ORT_OK && !p->keep_all && !p->watches && !p->partition)
        ort_step_packs_spare(packs);
    ort_arena_release(&scratch);
    if (aligned || settled)
        return aligned ? aligned : settled;
    if (prep.rounds && status == ORT_OK)
        say_rounds(o, step->node, prep.rounds);
    step->state = prep.state;
    step->release = prep.release;
    step->appends = prep.appends;
    step->packed_attrs = prep.packed_attrs;
    if (status == ORT_ERROR_MEMORY)
        return ort_error_set(err, status, "%s", problem.message);
    if (status != ORT_OK) {
        ort_node_wrap_error(step->node, &problem, status);
        ort_findings_add(o->findings, ORT_FINDING_ERROR, "%s", problem.message);
    }
    return ORT_OK;
}

static ort_status build_bodies(const ort_program_options *o, ort_program *p, ort_step *step,
                               ort_error *err)
{
    ort_program_options inner = *o;
    inner.inputs = NULL;
    inner.defaults = NULL;
    inner.keep_all = false;
    inner.provider = step->provider;
    if (!step->node->body_count)
        return ORT_OK;
    step->bodies = calloc((size_t)step->node->body_count, sizeof *step->bodies);
    if (!step->bodies)
        return ort_error_memory(err, sizeof *step->bodies);
    step->body_count = step->node->body_count;
    for (int i = 0; i < step->body_count; i++) {
        inner.partition = ort_partition_body(o->partition, step->node, i);
        ORT_TRY(ort_program_new(&inner, step->node->bodies[i], p, &step->bodies[i], err));
    }
    return ORT_OK;
}

/* ---- steps whose inputs are all constants of the session */

#define FOLD_MAX_BYTES ((size_t)1 << 30)

/* What passes leave unfolded (DequantizeLinear of weights) is computed here, once, so that the
 * steps after it see constants while they are prepared. */
static bool foldable(const ort_program *p, const ort_step *step)
{
    if (step->traits & (ORT_TRAIT_RANDOM | ORT_TRAIT_CONTROL | ORT_TRAIT_DYNAMIC))
        return false;
    for (int i = 0; i < step->in_count; i++)
        if (step->in[i] != ORT_ID_NONE && !p->constants[step->in[i]])
            return false;
    for (int i = 0; i < step->out_count; i++) {
        ort_tensor tensor = {0};
        const ort_type *type;
        if (step->out[i] == ORT_ID_NONE)
            continue;
        type = &p->graph->values.data[step->out[i]]->fact.type;
        tensor.dtype = type->dtype;
        if (!ort_type_concrete(type, &tensor.shape) ||
            ort_shape_check(&tensor.shape, type->dtype, NULL) ||
            ort_tensor_bytes(&tensor) > FOLD_MAX_BYTES)
            return false;
    }
    return step->in_count > 0;
}

/* Failure leaves the step to the run, which will report it. */
static ort_status fold(ort_program *p, const ort_step *step, ort_error *err)
{
    ort_status status = ORT_OK;
    int in = step->in_count, out = step->out_count;
    ort_value **values = calloc((size_t)(in + out) + 1, sizeof *values);
    ort_arena scratch = {0};
    const ort_fact **facts = list_facts(p, &scratch, step->in, in, true);
    if (!values || !facts || !ort_vec_reserve(&p->owned, p->owned.count + (size_t)out)) {
        status = ort_error_memory(err, sizeof *values * (size_t)(in + out));
        goto done;
    }
    for (int i = 0; i < in; i++)
        if (facts[i])
            ORT_TRY_GOTO(status, ort_value_new_view(facts[i]->value, &values[i], err), done);
    if (ort_node_eval_prepared(step->node, step->state, facts, p->env->k, p->env->pool, values, in,
                               out, NULL))
        goto done;
    for (int i = 0; i < out; i++) {
        ort_value *value = values[in + i];
        if (!value || value->kind != ORT_KIND_TENSOR || step->out[i] == ORT_ID_NONE)
            continue;
        assert(p->owned.count < p->owned.capacity);
        p->constants[step->out[i]] = &value->tensor;
        p->owned.data[p->owned.count++] = value;
        values[in + i] = NULL;
    }
done:
    for (int i = 0; values && i < in + out; i++)
        ort_value_free(values[i]);
    free(values);
    ort_arena_release(&scratch);
    return status;
}

/* Every output that is wanted is a constant: no run comes here. */
static bool is_known(const ort_program *p, const ort_step *step)
{
    bool any = false;
    for (int i = 0; i < step->out_count; i++) {
        if (step->out[i] == ORT_ID_NONE)
            continue;
        if (!p->constants[step->out[i]])
            return false;
        any = true;
    }
    return any;
}

/* A step without preparation whose outputs are constants. */
static ort_status skip_step(const ort_program_options *o, ort_program *p, const ort_step *step,
                            ort_error *err)
{
    if (!o->packing)
        return ORT_OK;
    ort_packing_begin(o->packing);
    return ort_packing_end(o->packing, step, p->constants, 0, true, err);
}

static ort_status build_step(const ort_program_options *o, ort_program *p, const ort_node *node,
                             ort_error *err)
{
    ort_step *step = &p->steps[p->step_count++];
    char label[256];
    *step = (ort_step){.node = node,
                       .op = node->op,
                       .provider = o->partition ? ort_partition_name(o->partition, node)
                                                : o->provider,
                       .device = p->partition ? ort_partition_device(p->partition, node) : -1,
                       .in_count = node->input_count,
                       .out_count = node->output_count,
                       .in = node->inputs,
                       .out = node->outputs};
    if (step->device >= 0) {
        step->traits = node->op->traits;
        return ORT_OK;
    }
    if (!node->op || !node->op->impl || !node->op->impl->run) {
        if (!p->parent) /* the partition reported it */
            return ORT_OK;
        ort_findings_add(o->findings, ORT_FINDING_ERROR,
                         "%s: no provider runs operator %s%s%s of opset %d",
                         ort_node_label(node, label, sizeof label), node->domain,
                         node->domain[0] ? "." : "", node->op_type, node->opset);
        return ORT_OK;
    }
    step->traits = node->op->traits;
    if (!p->keep_all && ort_half_is_kept_cast(p->graph, node)) {
        p->constants[node->outputs[0]] = p->constants[node->inputs[0]];
        return skip_step(o, p, step, err);
    }
    ORT_TRY(build_bodies(o, p, step, err));
    size_t problems = ort_findings_errors(o->findings);
    ort_step_packs packs;
    ort_step_packs_begin(&packs, o, p, step);
    if (o->packing)
        ort_packing_begin(o->packing);
    ORT_TRY(prepare_step(o, p, step, &packs, err));
    if (ort_findings_errors(o->findings) == problems && foldable(p, step)) {
        ORT_TRY(align_inputs(o, p, step, err));
        ORT_TRY(fold(p, step, err));
    }
    return o->packing ? ort_packing_end(o->packing, step, p->constants, packs.absorbed,
                                        is_known(p, step), err)
                      : ORT_OK;
}

ort_status ort_program_new(const ort_program_options *options, const ort_graph *graph,
                           const ort_program *parent, ort_program **program, ort_error *err)
{
    ort_status status;
    const ort_node *node;
    int live = 0;
    assert(parent ? parent->graph == graph->parent : !graph->parent);
    ort_program *p = calloc(1, sizeof *p);
    *program = NULL;
    if (!p)
        return ort_error_memory(err, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    p->graph = graph;
    p->parent = parent;
    p->env = options->env;
    p->partition = options->partition && options->partition->divided ? options->partition : NULL;
    p->value_count = (int)graph->values.count;
    p->inputs = options->inputs ? options->inputs : graph->inputs.data;
    p->input_count = options->inputs ? options->input_count : (int)graph->inputs.count;
    p->outputs = graph->outputs.data;
    p->output_count = (int)graph->outputs.count;
    p->defaults = options->defaults;
    p->keep_all = options->keep_all;
    p->watches = options->watches;
    ORT_EACH_NODE(graph, node)
        live++;
    p->constants = calloc((size_t)p->value_count + 1, sizeof *p->constants);
    p->steps = calloc((size_t)live + 1, sizeof *p->steps);
    if (!p->constants || !p->steps) {
        status = ort_error_memory(err, sizeof *p->steps * (size_t)live);
        goto fail;
    }
    find_constants(p);
    ORT_TRY_GOTO(status, find_captures(p, err), fail);
    ORT_EACH_NODE(graph, node)
    {
        ORT_TRY_GOTO(status, build_step(options, p, node, err), fail);
        ORT_TRY_GOTO(status, ort_budget_check(err), fail); /* or it is packed in part */
    }
    assert(p->step_count == live);
    forget_packed(p);
    ORT_TRY_GOTO(status, align_all(options, p, p->outputs, p->output_count, err), fail);
    for (int i = 0; options->packing && i < p->output_count; i++)
        if (p->constants[p->outputs[i]])
            ORT_TRY_GOTO(status, ort_packing_read(options->packing, p->constants[p->outputs[i]],
                                                  err), fail);
    ORT_TRY_GOTO(status, ort_program_find_growths(p, err), fail);
    *program = p;
    return ORT_OK;
fail:
    ort_program_free(p);
    return status;
}

void ort_program_free(ort_program *program)
{
    if (!program)
        return;
    for (int i = 0; i < ORT_PLAN_CACHE; i++)
        ort_plan_drop(program->plans[i]);
    for (int s = 0; s < program->step_count; s++) {
        const ort_step *step = &program->steps[s];
        for (int b = 0; b < step->body_count; b++)
            ort_program_free(step->bodies[b]);
        free(step->bodies);
        if (step->state && step->release)
            step->release(step->state);
    }
    for (size_t i = 0; i < program->owned.count; i++)
        ort_value_free(program->owned.data[i]);
    ort_vec_release(&program->owned);
    for (size_t i = 0; i < program->blobs.count; i++)
        ort_blob_release(program->blobs.data[i]);
    ort_vec_release(&program->blobs);
    pthread_mutex_destroy(&program->lock);
    free(program->constants);
    free(program->growths);
    free(program->captures);
    free(program->steps);
    free(program);
}

/* custom.c - the phases of an operator that comes from a library: each builds the views that the
 * library sees (custom_api.c answers its questions), calls it, and settles what it said.
 *
 * The library's word is not taken for what memory safety rests on: element types of outputs are
 * those that inference found, shapes are checked, every output must have been asked for.
 */
#include "op/custom.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* ---- around a callback */

static custom_node *begin(custom_node *c, int phase, const ort_node *node)
{
    c->shown.api = &ort_custom_api;
    c->phase = phase;
    c->node = node;
    c->row = ort_custom_of(node->op);
    c->misuse[0] = '\0';
    return c;
}

/* Views of the inputs and outputs, on the stack when they are few. */
typedef struct view_space {
    ort_ops_tensor views[2 * CUSTOM_SMALL];
    bool flags[2 * CUSTOM_SMALL];
} view_space;

static bool make_views(custom_node *c, view_space *space, int in_count, int out_count)
{
    size_t total = (size_t)in_count + (size_t)out_count;
    ort_ops_tensor *views = space->views;
    bool *flags = space->flags;
    if (total > 2 * CUSTOM_SMALL) {
        views = ort_arena_array(&c->scratch, total, sizeof *views);
        flags = ort_arena_array(&c->scratch, total, sizeof *flags);
        if (!views || !flags)
            return false;
    }
    memset(flags, 0, total * sizeof *flags);
    c->in_count = in_count;
    c->out_count = out_count;
    c->in = views;
    c->out = views + in_count;
    c->present = flags;
    c->asked = flags + in_count;
    return true;
}

static void finish(custom_node *c)
{
    ort_vec_release(&c->sizes);
    ort_arena_release(&c->scratch);
}

static ort_status allowed_status(int phase, ort_status status)
{
    if (status == ORT_ERROR_MEMORY)
        return status;
    if (phase != CUSTOM_RUN)
        return phase == CUSTOM_CREATE && status == ORT_ERROR_UNSUPPORTED ? status : ORT_ERROR_MODEL;
    return status == ORT_ERROR_CANCELLED || status == ORT_ERROR_TIMEOUT ||
                   status == ORT_ERROR_DEVICE
               ? status
               : ORT_ERROR_RUN;
}

/* The status that the runtime goes on with: of the phase's kind, with a message in any case. */
static ort_status settle(const custom_node *c, ort_status status, const ort_error *own,
                         ort_error *err)
{
    static const char *const phases[] = {"", "infer", "create", "", "run"};
    const char *library = c->row->library->name;
    if (status == ORT_OK && c->misuse[0])
        return ort_error_set(err, allowed_status(c->phase, ORT_ERROR_RUN),
                             "operator library '%s': %s", library, c->misuse);
    if (status == ORT_OK)
        return ORT_OK;
    status = allowed_status(c->phase, status);
    if (!own->message[0])
        return ort_error_set(err, status, "operator library '%s': %s failed and says nothing%s%s",
                             library, phases[c->phase], c->misuse[0] ? ": " : "", c->misuse);
    return ort_error_set(err, status, "%s", own->message);
}

static void clear(ort_error *own)
{
    own->status = ORT_OK;
    own->count = 0;
    own->message[0] = '\0';
}

/* ---- views before a run */

static ort_status view_fact(custom_node *c, int index, const ort_fact *fact, ort_error *err)
{
    static char nothing; /* data of an empty constant */
    if (fact->type.kind != ORT_TYPE_TENSOR && fact->type.kind != ORT_TYPE_UNKNOWN)
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "input %d is no tensor; operators of a library take tensors only",
                             index);
    ort_ops_tensor *view = ort_custom_view_type(c, &fact->type);
    if (!view)
        return ort_error_memory(err, sizeof *view);
    if (fact->value)
        view->data = fact->value->data || view->count ? fact->value->data : &nothing;
    c->in[index] = *view;
    c->present[index] = true;
    return ORT_OK;
}

static ort_status view_facts(custom_node *c, view_space *space, const ort_fact *const *in,
                             int in_count, int out_count, ort_error *err)
{
    if (!make_views(c, space, in_count, out_count))
        return ort_error_memory(err, sizeof *space);
    if (!ort_schema_fits(&c->row->op, c->node))
        return ort_error_set(err, ORT_ERROR_MODEL,
                             "the inputs or outputs don't fit the signature %s", c->row->op.sig);
    for (int i = 0; i < in_count; i++)
        if (in[i])
            ORT_TRY(view_fact(c, i, in[i], err));
    return ORT_OK;
}

/* ---- infer */

/* What the model declares, where nothing else says it. */
static ort_dtype declared_dtype(const custom_node *c, int output)
{
    const ort_graph *graph = c->x->graph;
    const ort_graph_value *value = graph ? ort_graph_value_at(graph, c->node->outputs[output])
                                         : NULL;
    return value && value->fact.type.kind == ORT_TYPE_TENSOR ? value->fact.type.dtype
                                                             : ORT_DTYPE_UNDEFINED;
}

static void complete_types(const custom_node *c)
{
    for (int i = 0; i < c->out_count; i++) {
        ort_type *type = &c->x->out[i].type;
        if (type->kind == ORT_TYPE_UNKNOWN)
            *type = ort_type_tensor(ORT_DTYPE_UNDEFINED, -1, NULL);
        if (!type->dtype)
            type->dtype = declared_dtype(c, i);
    }
}

static ort_status custom_infer(ort_infer *x, ort_error *err)
{
    custom_node node = {.x = x}, *c = begin(&node, CUSTOM_INFER, x->node);
    view_space space;
    ort_error own;
    clear(&own);
    ort_status status = view_facts(c, &space, x->in, x->in_count, x->out_count, err);
    if (status == ORT_OK && c->row->row.infer)
        status = settle(c, c->row->row.infer(&c->shown, &own), &own, err);
    if (status == ORT_OK)
        complete_types(c);
    finish(c);
    return status;
}

/* ---- prepare */

static ort_status check_attributes(const custom_node *c, ort_error *err)
{
    for (int i = 0; i < c->row->schema.attr_count; i++) {
        const ort_attr_spec *spec = &c->row->schema.attrs[i];
        if (spec->required && !ort_node_has(c->node, spec->name))
            return ort_error_set(err, ORT_ERROR_MODEL, "attribute '%s' is required, but missing",
                                 spec->name);
    }
    return ORT_OK;
}

static ort_status check_type(const custom_node *c, int input, ort_dtype dtype, ort_error *err)
{
    const ort_schema *s = &c->row->schema;
    const ort_param *param = ort_schema_param(s->inputs, s->input_count, input);
    const ort_type type = {.kind = ORT_TYPE_TENSOR, .dtype = dtype, .rank = -1};
    char allowed[400];
    if (!param || ort_schema_allows(&c->row->op, param->type, &type))
        return ORT_OK;
    return ort_error_set(err, c->phase == CUSTOM_RUN ? ORT_ERROR_RUN : ORT_ERROR_MODEL,
                         "input %d (%s) is %s, %s-%d takes %s", input, param->name,
                         ort_dtype_name(dtype), c->row->op.name, c->row->op.since,
                         ort_schema_format_types(&c->row->op, param->type, allowed,
                                                 sizeof allowed));
}

static ort_status settle_types(const custom_node *c, custom_state *state, ort_error *err)
{
    for (int i = 0; i < c->in_count; i++) {
        if (!c->present[i])
            continue;
        if (c->in[i].dtype)
            ORT_TRY(check_type(c, i, c->in[i].dtype, err));
        else
            state->check_inputs = true;
    }
    for (int i = 0; i < c->out_count; i++) {
        const ort_fact *fact = c->p->out[i];
        state->dtypes[i] = fact ? fact->type.dtype : ORT_DTYPE_UNDEFINED;
        if (fact && c->node->outputs[i] != ORT_ID_NONE && !state->dtypes[i])
            return ort_error_set(err, ORT_ERROR_MODEL,
                                 "the element type of output %d is not known: neither the "
                                 "signature %s nor inference nor the model says it",
                                 i, c->row->op.sig);
    }
    return ORT_OK;
}

static void custom_release(const void *state)
{
    const custom_state *s = state;
    if (s->row->row.create && s->row->row.destroy)
        s->row->row.destroy(s->user);
}

static ort_status make_state(custom_node *c, ort_prep *p, ort_error *err)
{
    ort_error own;
    view_space space;
    custom_state *state = ort_arena_alloc(
        p->arena, sizeof *state + (size_t)p->out_count * sizeof *state->dtypes);
    if (!state)
        return ort_error_memory(err, sizeof *state);
    state->row = c->row;
    clear(&own);
    ORT_TRY(view_facts(c, &space, p->in, p->in_count, p->out_count, err));
    ORT_TRY(check_attributes(c, err));
    ORT_TRY(settle_types(c, state, err));
    if (c->row->row.create) {
        ort_status status = c->row->row.create(&c->shown, &state->user, &own);
        ORT_TRY(settle(c, status, &own, err));
    }
    p->state = state;
    p->release = custom_release;
    return ORT_OK;
}

static ort_status custom_prepare(ort_prep *p, ort_error *err)
{
    custom_node node = {.p = p};
    ort_status status = make_state(begin(&node, CUSTOM_CREATE, p->node), p, err);
    finish(&node);
    return status;
}

/* ---- run */

static ort_status view_inputs(custom_node *c, ort_error *err)
{
    for (int i = 0; i < c->in_count; i++) {
        const ort_value *value = c->call->in[i];
        if (!value || value->kind == ORT_KIND_NONE)
            continue;
        if (value->kind != ORT_KIND_TENSOR)
            return ort_error_set(err, ORT_ERROR_RUN,
                                 "input %d is no tensor; operators of a library take tensors only",
                                 i);
        const ort_tensor *t = &value->tensor;
        assert(!t->stride);
        if (c->state->check_inputs)
            ORT_TRY(check_type(c, i, t->dtype, err));
        c->in[i] = (ort_ops_tensor){.dtype = t->dtype,
                                    .rank = t->shape.rank,
                                    .dims = t->shape.dim,
                                    .count = ort_tensor_count(t),
                                    .data = t->data};
        c->present[i] = true;
    }
    return ORT_OK;
}

static ort_status check_outputs(const custom_node *c, ort_error *err)
{
    for (int i = 0; i < c->out_count; i++)
        if (c->call->out[i] && !c->asked[i])
            return ort_error_set(err, ORT_ERROR_RUN,
                                 "operator library '%s': run has not asked for the memory of "
                                 "output %d",
                                 c->row->library->name, i);
    return ORT_OK;
}

static ort_status custom_run(ort_call *call, ort_error *err)
{
    custom_node node = {.call = call, .state = call->state};
    custom_node *c = begin(&node, CUSTOM_RUN, call->node);
    view_space space;
    ort_error own;
    ort_status status = ORT_OK;
    clear(&own);
    if (!make_views(c, &space, call->in_count, call->out_count))
        status = ort_error_memory(err, sizeof space);
    if (status == ORT_OK)
        status = view_inputs(c, err);
    if (status == ORT_OK)
        status = settle(c, c->row->row.run(&c->shown, c->state->user, &own), &own, err);
    if (status == ORT_OK)
        status = check_outputs(c, err);
    finish(c);
    return status;
}

const ort_op_impl ort_custom_impl = {
    .infer = custom_infer,
    .prepare = custom_prepare,
    .run = custom_run,
};

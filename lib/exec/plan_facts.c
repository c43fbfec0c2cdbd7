/* plan_facts.c - inference with concrete shapes, and evaluation of what is known by then.
 *
 * A step is evaluated here when all its inputs are known (constants, or results of shapes), it
 * gives the same result each time, and the result is small. Bodies are inferred with the facts of
 * their call; a body that contradicts these shapes is not an error, since it may never run.
 *
 * On the way the walk notes which values are others in another shape: outputs of steps that only
 * give one, and of an If whose condition is known, where the branch does nothing else.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "exec/plan.h"
#include "op/eval.h"
#include "op/half_weight.h"
#include "tensor/scalar.h"

#define FOLD_MAX_COUNT 4096
#define FOLD_MAX_CONSTANT_BYTES ((int64_t)16 << 20)

typedef struct walker {
    ort_plan *plan; /* owns all results */
    const ort_program *program;
    ort_fact *facts;
    ort_id *same;         /* by value id: whose elements it has, or its own id */
    const ort_step *step; /* the current one */
    ort_id *through;      /* by output of the body that was inferred last: the outer value that it
                           * is, or ORT_ID_NONE */
} walker;

static ort_status walk(walker *w, ort_error *err);

static void start_facts(walker *w)
{
    const ort_program *p = w->program;
    memset(w->facts, 0, sizeof *w->facts * (size_t)p->value_count);
    for (int id = 0; id < p->value_count; id++) {
        w->same[id] = (ort_id)id;
        w->facts[id].type.rank = -1;
        if (!p->constants[id])
            continue;
        w->facts[id].type = ort_type_of_tensor(p->constants[id]);
        w->facts[id].value = p->constants[id];
        if (ort_half_is_kept(p->constants[id])) /* the value's own type, not how it is kept */
            w->facts[id].type.dtype = p->graph->values.data[id]->fact.type.dtype;
    }
}

/* The outer value that an output of the body is, in another shape or not. */
static ort_id passed_through(const walker *body, const walker *outer, int output)
{
    const ort_program *p = body->program;
    const ort_id id = body->same[p->outputs[output]];
    for (int i = 0; i < p->capture_count; i++)
        if (p->captures[i].inner == id)
            return outer->same[p->captures[i].outer];
    return ORT_ID_NONE;
}

static ort_status infer_body(ort_infer *x, int index, const ort_fact *inputs, int input_count,
                             ort_fact *outputs, int output_count, ort_error *err)
{
    walker *outer = x->driver;
    assert(index >= 0 && index < outer->step->body_count);
    const ort_program *body = outer->step->bodies[index];
    walker w = {.plan = outer->plan, .program = body};
    ort_error ignored = {0};
    for (int i = 0; i < outer->step->out_count; i++)
        outer->through[i] = ORT_ID_NONE;
    for (int i = 0; i < output_count; i++) {
        memset(&outputs[i], 0, sizeof outputs[i]);
        outputs[i].type.rank = -1;
    }
    w.facts = malloc(sizeof *w.facts * ((size_t)body->value_count + 1));
    w.same = malloc(sizeof *w.same * ((size_t)body->value_count + 1));
    if (!w.facts || !w.same) {
        free(w.facts);
        free(w.same);
        return ort_error_memory(err, sizeof *w.facts * (size_t)body->value_count);
    }
    start_facts(&w);
    for (int i = 0; i < input_count && i < body->input_count; i++)
        w.facts[body->inputs[i]] = inputs[i];
    for (int i = 0; i < body->capture_count; i++)
        w.facts[body->captures[i].inner] = outer->facts[body->captures[i].outer];
    if (walk(&w, &ignored) == ORT_OK)
        for (int i = 0; i < output_count && i < body->output_count; i++) {
            outputs[i] = w.facts[body->outputs[i]];
            if (i < outer->step->out_count)
                outer->through[i] = passed_through(&w, outer, i);
        }
    free(w.facts);
    free(w.same);
    return ORT_OK;
}

/* A symbolic value whose elements are all numbers is a constant. */
static void settle_symbolic(ort_arena *arena, ort_fact *fact)
{
    ort_shape shape;
    ort_tensor *tensor;
    if (fact->value || !fact->symbolic || !ort_type_concrete(&fact->type, &shape) ||
        ort_shape_count(&shape) != fact->symbolic_count)
        return;
    for (int i = 0; i < fact->symbolic_count; i++)
        if (!ort_dim_known(fact->symbolic[i]))
            return;
    tensor = ort_arena_alloc(arena, sizeof *tensor);
    if (!tensor)
        return;
    *tensor = (ort_tensor){.dtype = fact->type.dtype, .shape = shape};
    tensor->data = ort_arena_array(arena, (size_t)fact->symbolic_count + 1, 8);
    if (!tensor->data)
        return;
    for (int i = 0; i < fact->symbolic_count; i++)
        ort_tensor_set_i64(tensor, i, fact->symbolic[i].size);
    fact->value = tensor;
}

static bool foldable(const walker *w, const ort_step *s, const ort_fact *const *in,
                     const ort_fact *out)
{
    bool constant = true;
    if ((s->traits & (ORT_TRAIT_RANDOM | ORT_TRAIT_CONTROL)) || s->device >= 0)
        return false;
    for (int i = 0; i < s->in_count; i++) {
        if (!in[i])
            continue;
        if (!in[i]->value || in[i]->type.kind != ORT_TYPE_TENSOR)
            return false;
        constant = constant && w->program->constants[s->in[i]];
    }
    for (int i = 0; i < s->out_count; i++) {
        ort_shape shape;
        if (out[i].type.kind != ORT_TYPE_TENSOR)
            return false;
        if (s->traits & ORT_TRAIT_DYNAMIC) {
            if (s->in_count && in[0] && ort_tensor_count(in[0]->value) > FOLD_MAX_COUNT)
                return false;
            continue;
        }
        if (!ort_type_concrete(&out[i].type, &shape) ||
            ort_shape_check(&shape, out[i].type.dtype, NULL))
            return false;
        int64_t count = ort_shape_count(&shape);
        if (count > (constant ? FOLD_MAX_CONSTANT_BYTES / 16 : FOLD_MAX_COUNT))
            return false;
    }
    return true;
}

/* Evaluate the step; failure leaves it to the run, which will report it. */
static ort_status fold(walker *w, const ort_step *s, const ort_fact *const *in, ort_fact *out,
                       ort_error *err)
{
    ort_status status = ORT_OK;
    int total = s->in_count + s->out_count;
    ort_value **values = calloc((size_t)total + 1, sizeof *values);
    if (!values || !ort_vec_reserve(&w->plan->owned, w->plan->owned.count + (size_t)s->out_count)) {
        free(values);
        return ort_error_memory(err, sizeof *values * (size_t)total);
    }
    for (int i = 0; i < s->in_count; i++)
        if (in[i])
            ORT_TRY_GOTO(status, ort_value_new_view(in[i]->value, &values[i], err), done);
    if (ort_node_eval_prepared(s->node, s->state, in, w->program->env->k, NULL, values, s->in_count,
                               s->out_count, NULL))
        goto done;
    for (int i = 0; i < s->out_count; i++) {
        ort_value *value = values[s->in_count + i];
        if (!value || value->kind != ORT_KIND_TENSOR)
            continue;
        assert(w->plan->owned.count < w->plan->owned.capacity);
        out[i].value = &value->tensor;
        out[i].type = ort_type_of_tensor(&value->tensor);
        w->plan->owned.data[w->plan->owned.count++] = value;
        values[s->in_count + i] = NULL;
    }
done:
    for (int i = 0; i < total; i++)
        ort_value_free(values[i]);
    free(values);
    return status;
}

/* The branch that an If is known to take is the one that it infers last. */
static void note_same(walker *w, const ort_step *s, const ort_fact *const *in)
{
    int64_t known;
    const bool chosen = s->body_count == 2 && !strcmp(s->op->name, "If") && in[0] &&
                        ort_tensor_one_i64(in[0]->value, &known);
    if ((s->traits & ORT_TRAIT_ALIAS) && s->out_count == 1 && s->in[0] != ORT_ID_NONE)
        w->same[s->out[0]] = w->same[s->in[0]];
    for (int i = 0; chosen && i < s->out_count; i++)
        if (s->out[i] != ORT_ID_NONE && w->through[i] != ORT_ID_NONE)
            w->same[s->out[i]] = w->through[i];
}

static ort_status walk_step(walker *w, const ort_step *s, const ort_fact **in, ort_fact *out,
                            ort_error *err)
{
    ort_infer x = {.node = s->node,
                   .op = s->op,
                   .opset = s->node->opset,
                   .in_count = s->in_count,
                   .out_count = s->out_count,
                   .in = in,
                   .out = out,
                   .arena = &w->plan->memory,
                   .graph = w->program->graph,
                   .infer_body = infer_body,
                   .driver = w};
    bool known = true;
    for (int i = 0; i < s->in_count; i++)
        in[i] = s->in[i] == ORT_ID_NONE ? NULL : &w->facts[s->in[i]];
    for (int i = 0; i < s->out_count; i++) {
        memset(&out[i], 0, sizeof out[i]);
        out[i].type.rank = -1;
        known = known && (s->out[i] == ORT_ID_NONE || w->facts[s->out[i]].value);
    }
    if (known && s->out_count)
        return ORT_OK; /* a constant of the session */
    w->step = s;
    ort_status status = ort_op_infer(&x, err);
    if (status != ORT_OK)
        return ort_node_wrap_error(s->node, err, status);
    note_same(w, s, in);
    known = true;
    for (int i = 0; i < s->out_count; i++) {
        settle_symbolic(&w->plan->memory, &out[i]);
        known = known && out[i].value;
    }
    if (!known && foldable(w, s, in, out))
        ORT_TRY(fold(w, s, in, out, err));
    for (int i = 0; i < s->out_count; i++)
        if (s->out[i] != ORT_ID_NONE && !w->facts[s->out[i]].value)
            w->facts[s->out[i]] = out[i];
    return ORT_OK;
}

static ort_status walk(walker *w, ort_error *err)
{
    int most_in = 1, most_out = 1;
    ort_status status = ORT_OK;
    const ort_fact **in;
    ort_fact *out;
    for (int i = 0; i < w->program->step_count; i++) {
        const ort_step *s = &w->program->steps[i];
        most_in = s->in_count > most_in ? s->in_count : most_in;
        most_out = s->out_count > most_out ? s->out_count : most_out;
    }
    in = malloc(sizeof *in * (size_t)most_in);
    out = malloc(sizeof *out * (size_t)most_out);
    w->through = malloc(sizeof *w->through * (size_t)most_out);
    if (!in || !out || !w->through)
        status = ort_error_memory(err, sizeof *out * (size_t)most_out);
    for (int i = 0; status == ORT_OK && i < w->program->step_count; i++)
        status = walk_step(w, &w->program->steps[i], in, out, err);
    free(in);
    free(out);
    free(w->through);
    return status;
}

/* The fact of a given value whose type is all that is known. */
static void given_fact(const walker *w, int index, ort_id id, ort_fact *fact)
{
    assert(index < w->plan->given_count);
    const ort_given *given = &w->plan->given[index];
    const ort_type *declared = &w->program->graph->values.data[id]->fact.type;
    if (given->absent) {
        const ort_tensor *value =
            w->program->defaults && index < w->program->input_count ? w->program->defaults[index]
                                                                     : NULL;
        if (value) {
            fact->type = ort_type_of_tensor(value);
            fact->value = value;
        }
        return;
    }
    if (given->kind == ORT_KIND_TENSOR) {
        ort_tensor tensor = {.dtype = given->dtype, .shape = given->shape};
        fact->type = ort_type_of_tensor(&tensor);
    } else if (declared->kind != ORT_TYPE_TENSOR) {
        fact->type = *declared;
    }
}

ort_status ort_plan_infer(ort_plan *plan, ort_fact *facts, ort_error *err)
{
    const ort_program *p = plan->program;
    plan->same = ort_arena_array(&plan->memory, (size_t)p->value_count + 1, sizeof *plan->same);
    if (!plan->same)
        return ort_error_memory(err, sizeof *plan->same * (size_t)p->value_count);
    walker w = {.plan = plan, .program = p, .facts = facts, .same = plan->same};
    start_facts(&w);
    for (int i = 0; i < p->input_count; i++)
        given_fact(&w, i, p->inputs[i], &facts[p->inputs[i]]);
    for (int i = 0; i < p->capture_count; i++)
        given_fact(&w, p->input_count + i, p->captures[i].inner, &facts[p->captures[i].inner]);
    return walk(&w, err);
}

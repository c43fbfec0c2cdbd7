/* plan_cache.c - the plans of a program, most recently used first. Plans are made outside the
 * lock: two callers may make the same one, which costs time but nothing else. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/plan.h"

static bool given_matches(const ort_given *given, const ort_value *value)
{
    if (!value)
        return given->absent;
    if (given->absent || given->kind != value->kind)
        return false;
    if (value->kind != ORT_KIND_TENSOR)
        return true;
    const ort_tensor *t = &value->tensor;
    int axis = given->room_axis;
    if (given->dtype != t->dtype || given->shape.rank != t->shape.rank ||
        given->strided != (t->stride != NULL))
        return false;
    if (!axis)
        return !memcmp(given->shape.dim, t->shape.dim,
                       sizeof given->shape.dim[0] * (size_t)given->shape.rank);
    for (int d = 0; d < t->shape.rank; d++)
        if (given->shape.dim[d] != (d == axis ? ort_plan_room(t, axis) : t->shape.dim[d]))
            return false;
    return true;
}

static bool wants_equal(const ort_plan *plan, const bool *wanted)
{
    if (!plan->wanted || !wanted)
        return !plan->wanted && !wanted;
    return !memcmp(plan->wanted, wanted, sizeof *wanted * (size_t)plan->program->output_count);
}

bool ort_plan_matches(const ort_plan *plan, ort_value *const *given, const bool *wanted)
{
    if (!wants_equal(plan, wanted))
        return false;
    for (int i = 0; i < plan->given_count; i++)
        if (!given_matches(&plan->given[i], given[i]))
            return false;
    return true;
}

static ort_plan *find(ort_program *program, ort_value *const *given, const bool *wanted)
{
    for (int i = 0; i < ORT_PLAN_CACHE && program->plans[i]; i++) {
        ort_plan *plan = program->plans[i];
        if (!ort_plan_matches(plan, given, wanted))
            continue;
        memmove(&program->plans[1], &program->plans[0], sizeof plan * (size_t)i);
        program->plans[0] = plan;
        assert(__atomic_load_n(&plan->references, __ATOMIC_RELAXED) > 0); /* the cache's own */
        __atomic_add_fetch(&plan->references, 1, __ATOMIC_RELAXED);
        return plan;
    }
    return NULL;
}

static void remember(ort_program *program, ort_plan *plan)
{
    ort_plan *oldest;
    pthread_mutex_lock(&program->lock);
    oldest = program->plans[ORT_PLAN_CACHE - 1];
    memmove(&program->plans[1], &program->plans[0], sizeof plan * (ORT_PLAN_CACHE - 1));
    program->plans[0] = plan;
    __atomic_add_fetch(&plan->references, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&program->lock);
    ort_plan_drop(oldest);
}

static void describe(const ort_program *program, int index, const ort_tensor *t, ort_given *given)
{
    given->dtype = t->dtype;
    given->shape = t->shape;
    given->strided = t->stride != NULL;
    const ort_growth *growth = t->stride ? ort_program_growth(program, index) : NULL;
    assert(!growth || growth->axis < t->shape.rank);
    if (!growth || !growth->elastic)
        return;
    given->room_axis = growth->axis;
    given->shape.dim[growth->axis] = ort_plan_room(t, growth->axis);
}

ort_status ort_plan_get(ort_program *program, ort_value *const *given, const bool *wanted,
                        ort_plan **plan, ort_error *err)
{
    int count = program->input_count + program->capture_count;
    ort_given *types;
    ort_status status;

    pthread_mutex_lock(&program->lock);
    *plan = find(program, given, wanted);
    pthread_mutex_unlock(&program->lock);
    if (*plan)
        return ORT_OK;
    types = calloc((size_t)count + 1, sizeof *types);
    if (!types)
        return ort_error_memory(err, sizeof *types * (size_t)count);
    for (int i = 0; i < count; i++) {
        if (!given[i]) {
            types[i].absent = true;
            continue;
        }
        types[i].kind = given[i]->kind;
        if (given[i]->kind == ORT_KIND_TENSOR)
            describe(program, i, &given[i]->tensor, &types[i]);
    }
    status = ort_plan_new(program, types, wanted, plan, err);
    free(types);
    if (status == ORT_OK)
        remember(program, *plan);
    return status;
}

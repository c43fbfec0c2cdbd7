/* plan_join.c - parts of a concatenation are computed where they end up: the storage of a part lies
 * within the storage of the whole, so that the Concat finds it there and copies nothing.
 *
 * That takes a part which nothing reads after the Concat, alone in a storage of its own, and a
 * whole in which the parts follow one another. No step runs beside the Concat: one that still reads
 * a part could meet one that already writes over the whole.
 */
#include <assert.h>

#include "base/error.h"
#include "exec/plan.h"

static bool in_group(const ort_plan *plan, int step)
{
    for (int g = 0; g < plan->group_count; g++)
        if (step >= plan->groups[g].first && step < plan->groups[g].first + plan->groups[g].count)
            return true;
    return false;
}

/* Does nothing but this one tensor live in the storage? */
static bool fills(const ort_storage *s, const ort_tensor *t)
{
    return s->output < 0 && s->bytes == ort_tensor_bytes(t);
}

static void join(ort_plan *plan, const ort_plan_step *ps)
{
    const ort_step *s = ps->step;
    const ort_slot_plan *whole = &plan->slots[s->out[0]];
    int64_t axis = ort_node_attr_int(s->node, "axis");
    size_t at = 0, bytes;
    if (whole->place != ORT_PLACE_ARENA || whole->tensor.dtype == ORT_DTYPE_STRING ||
        ort_dtype_get(whole->tensor.dtype)->bits < 8)
        return;
    int into = plan->storage_of[s->out[0]];
    axis += axis < 0 ? whole->tensor.shape.rank : 0;
    assert(into >= 0 && into < plan->storage_count);
    assert(axis >= 0 && axis < whole->tensor.shape.rank);
    if (!fills(&plan->storages[into], &whole->tensor) ||
        plan->storages[into].first != ps->position ||
        ort_shape_count_range(&whole->tensor.shape, 0, (int)axis) != 1)
        return;
    for (int i = 0; i < s->in_count; i++, at += bytes) {
        const ort_slot_plan *part = &plan->slots[s->in[i]];
        bytes = ort_tensor_bytes(&part->tensor);
        if (part->place != ORT_PLACE_ARENA || at % ORT_PLAN_ALIGNMENT)
            continue;
        ort_storage *storage = &plan->storages[plan->storage_of[s->in[i]]];
        if (!fills(storage, &part->tensor) || storage->within >= 0 ||
            storage->last != ps->position)
            continue;
        assert(plan->storage_of[s->in[i]] < into); /* wholes are made later (plan_memory.c) */
        assert(at + bytes <= plan->storages[into].bytes);
        storage->within = into;
        storage->offset = at;
    }
}

void ort_plan_join(ort_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        const ort_plan_step *ps = &plan->steps[i];
        if ((ps->step->traits & ORT_TRAIT_JOINS) && !ps->dynamic && !in_group(plan, i))
            join(plan, ps);
    }
}

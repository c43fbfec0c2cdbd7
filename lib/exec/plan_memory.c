/* plan_memory.c - offsets in the arena. Storages are placed from the largest to the smallest, each
 * at the lowest offset where it overlaps no storage that lives at the same time. The peak, the most
 * that is alive at once, is the size that no placement can go below.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "exec/plan.h"

static int by_size(const void *a, const void *b)
{
    const ort_storage *x = *(const ort_storage *const *)a, *y = *(const ort_storage *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Lowest offset for `s` among the `count` placed storages, which are sorted by offset. */
static size_t find_gap(ort_storage *const *placed, int count, const ort_storage *s)
{
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        const ort_storage *other = placed[i];
        size_t end = other->offset + other->bytes;
        if (other->last < s->first || other->first > s->last || end <= at)
            continue;
        if (other->offset >= at && other->offset - at >= s->bytes)
            break;
        at = end;
    }
    return at;
}

static void insert_by_offset(ort_storage **placed, int count, ort_storage *s)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (placed[middle]->offset <= s->offset)
            low = middle + 1;
        else
            high = middle;
    }
    assert(low == 0 || placed[low - 1]->offset <= s->offset);
    assert(low == count || placed[low]->offset > s->offset);
    memmove(placed + low + 1, placed + low, sizeof *placed * (size_t)(count - low));
    placed[low] = s;
}

static void find_peak(ort_plan *plan, int64_t *change)
{
    int64_t alive = 0;
    int steps = plan->position_count;
    for (int i = 0; i < plan->storage_count; i++) {
        const ort_storage *s = &plan->storages[i];
        int first = s->first < 0 ? 0 : s->first, last = s->last < steps ? s->last : steps - 1;
        if (s->output >= 0 || s->within >= 0 || first >= steps)
            continue;
        change[first] += (int64_t)s->bytes;
        change[last + 1] -= (int64_t)s->bytes;
    }
    for (int i = 0; i < steps; i++) {
        alive += change[i];
        if ((size_t)alive > plan->peak_bytes) {
            plan->peak_bytes = (size_t)alive;
            plan->peak_position = i;
        }
    }
    assert(plan->peak_bytes <= plan->arena_bytes);
}

/* What lies within another storage lives inside of its life. */
static void outlive_parts(ort_plan *plan)
{
    for (int i = 0; i < plan->storage_count; i++) {
        const ort_storage *part = &plan->storages[i];
        for (int w = part->within; w >= 0; w = plan->storages[w].within) {
            ort_storage *whole = &plan->storages[w];
            whole->first = part->first < whole->first ? part->first : whole->first;
            whole->last = part->last > whole->last ? part->last : whole->last;
        }
    }
}

/* Parts may have parts: wholes, which are made later, come first. */
static void place_parts(ort_plan *plan)
{
    for (int i = plan->storage_count - 1; i >= 0; i--)
        if (plan->storages[i].within >= 0) {
            assert(plan->storages[i].within > i);
            plan->storages[i].offset += plan->storages[plan->storages[i].within].offset;
        }
}

ort_status ort_plan_place(ort_plan *plan, ort_error *err)
{
    int count = 0, placed_count = 0;
    size_t total = 0;
    outlive_parts(plan);
    ort_status status = ORT_OK;
    ort_storage **order = calloc((size_t)plan->storage_count * 2 + 2, sizeof *order);
    ort_storage **placed = order ? order + plan->storage_count + 1 : NULL;
    int64_t *change = calloc((size_t)plan->position_count + 2, sizeof *change);
    if (!order || !change) {
        status = ort_error_memory(err, sizeof *order * (size_t)plan->storage_count);
        goto done;
    }
    for (int i = 0; i < plan->storage_count; i++) {
        ort_storage *s = &plan->storages[i];
        s->bytes = ort_round_up(s->bytes, ORT_PLAN_ALIGNMENT);
        if (s->output >= 0 || s->within >= 0 || s->bytes == 0)
            continue;
        if (!ort_add_size(total, s->bytes, &total) || total > PTRDIFF_MAX) {
            status = ort_error_set(err, ORT_ERROR_MEMORY,
                                   "the intermediate tensors need more memory than a process has");
            goto done;
        }
        order[count++] = s;
    }
    qsort(order, (size_t)count, sizeof *order, by_size);
    for (int i = 0; i < count; i++) {
        ort_storage *s = order[i];
        s->offset = find_gap(placed, placed_count, s);
        assert(s->offset % ORT_PLAN_ALIGNMENT == 0 && s->offset <= total - s->bytes);
        if (s->offset + s->bytes > plan->arena_bytes)
            plan->arena_bytes = s->offset + s->bytes;
        insert_by_offset(placed, placed_count++, s);
    }
    find_peak(plan, change);
    place_parts(plan);
done:
    free(order);
    free(change);
    return status;
}

/* call.c - the small helpers that operators use in prepare and run.
 *
 * Messages made here don't name the node: whoever drives the operator (session, interpreter) puts
 * the node's label in front, once.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/huge.h"
#include "op/op.h"

void *ort_prep_state(ort_prep *p, size_t bytes)
{
    p->state = ort_arena_alloc(p->arena, bytes);
    return p->state;
}

/* ---- blocks of packed constants */

enum {
    SHARED_BYTES = 2 << 20, /* of a block: to start a thread takes as long as a quarter of them */
    PAGES_BYTES = 256 << 10,
};

int ort_prep_threads(const ort_prep *p)
{
    return p->pool ? ort_pool_threads(p->pool) : 1;
}

void ort_prep_fill(const ort_prep *p, size_t bytes, size_t tasks, ort_task_fn *fn, void *arg)
{
    ort_pool_run(bytes < SHARED_BYTES ? NULL : p->pool, tasks, fn, arg);
}

typedef struct pages_job {
    char *at;
    size_t bytes;
} pages_job;

static void task_pages(void *arg, size_t task, int thread)
{
    const pages_job *j = arg;
    const size_t first = task * PAGES_BYTES, left = j->bytes - first;
    ort_pages_touch(j->at + first, left < PAGES_BYTES ? left : PAGES_BYTES);
}

/* The system takes longer for the pages of a block than packing does: pages that are there are
 * taken again. */
static void *new_block(ort_prep *p, size_t bytes, bool zero)
{
    bool touch;
    void *room = p->packs && p->packs->room ? p->packs->room(p->packs->arg, bytes) : NULL;
    if (room)
        return room;
    if (zero || bytes < SHARED_BYTES || ort_prep_threads(p) < 2)
        return ort_arena_alloc_aligned(p->arena, bytes, 64, zero);
    pages_job job = {ort_arena_alloc_untouched(p->arena, bytes, 64, &touch), bytes};
    if (job.at && touch)
        ort_prep_fill(p, bytes, (bytes + PAGES_BYTES - 1) / PAGES_BYTES, task_pages, &job);
    return job.at;
}

void *ort_prep_pack(ort_prep *p, const char *kind, unsigned of, size_t bytes, bool *fill)
{
    const ort_pack_services *packs = p->packs;
    const void *found = packs ? packs->find(packs->arg, kind, of, &bytes) : NULL;
    *fill = !found && !ort_prep_is_packed(p);
    if (!*fill)
        return (void *)(uintptr_t)found;
    void *packed = new_block(p, bytes, packs && packs->clean);
    return packed && (!packs || packs->made(packs->arg, kind, of, packed, bytes)) ? packed : NULL;
}

unsigned ort_prep_constants(const ort_prep *p)
{
    unsigned all = 0;
    for (int i = 0; i < p->in_count && i < (int)sizeof all * CHAR_BIT; i++)
        all |= p->in[i] && p->in[i]->value ? 1u << i : 0;
    return all;
}

bool ort_prep_is_packed(const ort_prep *p)
{
    return p->packs && p->packs->reads;
}

const void *ort_prep_packed(ort_prep *p, const char *kind, size_t *bytes)
{
    *bytes = ORT_PACK_ANY_SIZE;
    return p->packs->find(p->packs->arg, kind, 0, bytes);
}

void ort_prep_absorb(ort_prep *p, int input)
{
    if (p->packs)
        p->packs->absorbed(p->packs->arg, input);
}

const ort_tensor *ort_prep_constant(const ort_prep *p, int input)
{
    return input < p->in_count && p->in[input] ? p->in[input]->value : NULL;
}

ort_dtype ort_prep_dtype(const ort_prep *p, int input)
{
    return input < p->in_count && p->in[input] ? p->in[input]->type.dtype : ORT_DTYPE_UNDEFINED;
}

ort_status ort_prep_unsupported_dtype(const ort_prep *p, int input, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                         "element type %s of input %d isn't implemented; cast it first, or file a "
                         "request with the operator's name",
                         ort_dtype_name(ort_prep_dtype(p, input)), input);
}

ort_status ort_prep_need_real(const ort_prep *p, int input, ort_error *err)
{
    switch (ort_prep_dtype(p, input)) {
    case ORT_DTYPE_FLOAT:
    case ORT_DTYPE_DOUBLE:
    case ORT_DTYPE_FLOAT16:
    case ORT_DTYPE_BFLOAT16: return ORT_OK;
    default: return ort_prep_unsupported_dtype(p, input, err);
    }
}

ort_status ort_prep_fail(const ort_prep *p, ort_error *err, const char *format, ...)
{
    char text[ORT_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ort_error_set(err, ORT_ERROR_MODEL, "%s", text);
}

void ort_call_set_output(ort_call *call, int index, ort_value *value)
{
    call->services->set_output(call, index, value);
}

ort_status ort_call_fail(const ort_call *call, ort_error *err, const char *format, ...)
{
    char text[ORT_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ort_error_set(err, ORT_ERROR_RUN, "%s", text);
}

typedef struct range {
    int64_t total, grain;
    ort_range_fn *fn;
    void *arg;
} range;

static void range_task(void *arg, size_t task, int thread)
{
    const range *r = arg;
    int64_t first = (int64_t)task * r->grain;
    r->fn(r->arg, first, ort_min_i64(first + r->grain, r->total), thread);
}

void ort_call_range(const ort_call *call, int64_t total, int64_t grain, ort_range_fn *fn, void *arg)
{
    range r = {total, grain, fn, arg};
    ort_call_parallel(call, ort_task_count(total, grain), range_task, &r);
}

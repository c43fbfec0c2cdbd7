/* packing.c - collecting and finding packed constants (packing.h). */
#include "exec/packing.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

const void *ort_packing_find(ort_packing *p, const char *kind, size_t *bytes)
{
    const ort_pack_entry *e = NULL;
    while (p->next < p->from->entry_count &&
           p->from->entries[p->next].step == ORT_PACK_NO_STEP)
        p->next++;
    if (p->next < p->from->entry_count)
        e = &p->from->entries[p->next++];
    if (!e || e->step != p->step || strcmp(e->kind, kind) ||
        (e->bytes != *bytes && *bytes != ORT_PACK_ANY_SIZE)) {
        p->misfits = true;
        return NULL;
    }
    assert(e->offset <= p->from->blob->count && e->bytes <= p->from->blob->count - e->offset);
    *bytes = e->bytes;
    return p->from->blob->bytes + e->offset;
}

bool ort_packing_made(ort_packing *p, const char *kind, const void *packed, size_t bytes)
{
    assert(strlen(kind) < sizeof(((ort_packed *)0)->kind));
    ort_packed block = {.step = p->step, .bytes = packed, .count = bytes};
    snprintf(block.kind, sizeof block.kind, "%s", kind);
    return ort_vec_push(&p->made, block);
}

void ort_packing_init(ort_packing *packing, const ort_pack *from)
{
    *packing = (ort_packing){.from = from};
}

void ort_packing_release(ort_packing *packing)
{
    ort_vec_release(&packing->made);
    ort_hashmap_release(&packing->read);
}

void ort_packing_begin(ort_packing *packing)
{
    packing->step_first = packing->made.count;
}

ort_status ort_packing_read(ort_packing *packing, const ort_tensor *constant, ort_error *err)
{
    const char *key = (const char *)&constant->data;
    return ort_hashmap_put(&packing->read, key, sizeof constant->data, 1)
               ? ORT_OK
               : ort_error_memory(err, sizeof constant->data);
}

bool ort_packing_is_read(const ort_packing *packing, const ort_tensor *constant)
{
    uint64_t value;
    return ort_hashmap_get(&packing->read, (const char *)&constant->data, sizeof constant->data,
                           &value);
}

ort_status ort_packing_end(ort_packing *packing, const ort_step *step,
                           const ort_tensor *const *constants, uint64_t absorbed, bool folded,
                           ort_error *err)
{
    assert(packing->step_first <= packing->made.count);
    if (folded) {
        packing->made.count = packing->step_first;
        return ORT_OK;
    }
    packing->step++;
    if (packing->from)
        return ORT_OK;
    for (int i = 0; i < step->in_count; i++) {
        bool reads = i >= ORT_PACKING_INPUTS || !(absorbed >> i & 1);
        if (step->in[i] != ORT_ID_NONE && constants[step->in[i]] && reads)
            ORT_TRY(ort_packing_read(packing, constants[step->in[i]], err));
    }
    return ORT_OK;
}

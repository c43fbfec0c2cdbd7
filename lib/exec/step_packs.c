/* step_packs.c - files and other steps as the source of a step's packed constants (step_packs.h).
 *
 * A block is known again by the operator, its attributes, the types of its inputs, the kind and
 * size of the block, and by the constants that it was made of: their place in memory and shape.
 * Two weights that are equal and lie in different places are two. Memory of constants goes to other
 * blocks only where no step that comes can read them, so that a place tells a constant to the end.
 */
#include "exec/step_packs.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "exec/packing.h"
#include "graph/hash.h"
#include "io/blob.h"

enum { MADE_OF_MAX = 32 }; /* bits of `of` */

typedef struct made_of {
    int64_t dtype, rank; /* of the input, whether or not the block is made of it */
    const void *data;    /* NULL: the block isn't */
    uint64_t shape;
} made_of;

typedef struct block_key { /* compared as bytes: it begins as zeros and has no gaps */
    const ort_op *op;
    int64_t opset, bytes, count;
    uint64_t attributes;
    char kind[ORT_PACK_KIND];
    made_of in[]; /* count */
} block_key;

static size_t key_bytes(const block_key *key)
{
    return sizeof *key + (size_t)key->count * sizeof key->in[0];
}

/* False when the block is made of something that isn't a constant. */
static bool describe_input(const ort_step_packs *p, int i, bool part, made_of *in)
{
    ort_id id = p->step->in[i];
    if (id == ORT_ID_NONE)
        return true;
    const ort_type *type = &p->graph->values.data[id]->fact.type;
    const ort_tensor *t = p->constants[id];
    in->dtype = type->dtype;
    in->rank = type->rank;
    if (!part)
        return true;
    if (!t || !t->data || t->stride)
        return false;
    in->data = t->data;
    in->shape = ort_hash_bytes(t->shape.dim, (size_t)t->shape.rank * sizeof *t->shape.dim, 1);
    return true;
}

/* A step has two blocks or more, each of which is looked for and made. */
static uint64_t hash_attributes(ort_step_packs *p)
{
    const ort_node *node = p->step->node;
    uint64_t sum = p->attributes;
    for (int i = 0; !p->attributes && i < node->attr_count; i++)
        sum += ort_hash_attr(p->graph->model->dims, &node->attrs[i]);
    return p->attributes = sum;
}

/* What a block is known by; NULL: it serves one step only. */
static block_key *describe(ort_step_packs *p, const char *kind, unsigned of, size_t bytes)
{
    const ort_step *step = p->step;
    if (!of || !p->shared || step->in_count > MADE_OF_MAX || strlen(kind) >= ORT_PACK_KIND)
        return NULL;
    size_t size = sizeof(block_key) + (size_t)step->in_count * sizeof(made_of);
    block_key *key = ort_arena_alloc(&p->shared->keys, size);
    if (!key)
        return NULL;
    memset(key, 0, size);
    key->op = step->op;
    key->opset = step->node->opset;
    key->bytes = (int64_t)bytes;
    key->count = step->in_count;
    memcpy(key->kind, kind, strlen(kind) + 1);
    key->attributes = hash_attributes(p);
    for (int i = 0; i < step->in_count; i++)
        if (!describe_input(p, i, of >> i & 1, &key->in[i]))
            return NULL;
    return key;
}

/* ---- what `prepare` calls */

static const void *find(void *arg, const char *kind, unsigned of, size_t *bytes)
{
    ort_step_packs *p = arg;
    uint64_t found;
    if (p->services.reads)
        return ort_packing_find(p->packing, kind, bytes);
    const block_key *key = describe(p, kind, of, *bytes);
    if (!key || !ort_hashmap_get(&p->shared->blocks, (const char *)key, key_bytes(key), &found))
        return NULL;
    const void *block = (const void *)(uintptr_t)found;
    return !p->packing || ort_packing_made(p->packing, kind, block, *bytes) ? block : NULL;
}

static bool made(void *arg, const char *kind, unsigned of, const void *packed, size_t bytes)
{
    ort_step_packs *p = arg;
    const block_key *key = describe(p, kind, of, bytes);
    if (key && !ort_hashmap_put(&p->shared->blocks, (const char *)key, key_bytes(key),
                                (uintptr_t)packed))
        return false;
    return !p->packing || ort_packing_made(p->packing, kind, packed, bytes);
}

static void absorbed(void *arg, int input)
{
    ort_step_packs *p = arg;
    if (input >= 0 && input < ORT_PACKING_INPUTS)
        p->absorbed |= (uint64_t)1 << input;
}

/* The smallest that is large enough. */
static void *room(void *arg, size_t bytes)
{
    ort_step_packs *p = arg;
    ort_spare_room *best = NULL;
    for (size_t i = 0; !p->packing && p->shared && i < p->shared->rooms.count; i++) {
        ort_spare_room *r = &p->shared->rooms.data[i];
        if (r->bytes >= bytes && (!best || r->bytes < best->bytes))
            best = r;
    }
    if (!best)
        return NULL;
    char *at = best->at;
    size_t taken = ort_round_up(bytes, 64);
    taken = taken < best->bytes ? taken : best->bytes;
    best->at += taken;
    best->bytes -= taken;
    return at;
}

/* ---- what the program calls */

void ort_step_packs_begin(ort_step_packs *packs, const ort_program_options *options,
                          const ort_program *program, const ort_step *step)
{
    ort_packing *packing = options->packing;
    *packs = (ort_step_packs){.services = {.find = find,
                                           .made = made,
                                           .absorbed = absorbed,
                                           .room = room,
                                           .reads = packing && packing->from,
                                           .clean = packing != NULL,
                                           .arg = packs},
                              .packing = packing,
                              .shared = options->shared,
                              .step = step,
                              .graph = program->graph,
                              .constants = (const ort_tensor *const *)program->constants};
}

enum { SPARE_BYTES = 64 << 10 }; /* smaller ones aren't worth looking for */

static bool overlaps(const ort_tensor *t, const char *begin, const char *end)
{
    const char *data = t->data;
    return data && data < end && data + ort_tensor_bytes(t) > begin;
}

/* Did a pass make this constant, for this step alone? Then its memory is the model's own: it lies
 * in no file, and no other value shares it. */
static bool is_alone(const ort_step_packs *p, ort_id id, const ort_tensor *t)
{
    const ort_graph *graph = p->graph;
    const ort_graph_value *v = graph->values.data[id];
    const char *begin = t->data, *end = begin + ort_tensor_bytes(t);
    if (v->use_count != 1 || v->is_output || v->is_input || v->is_watched ||
        v->outer != ORT_ID_NONE || v->initializer_proto ||
        graph->producers.data[id] != ORT_ID_NONE || v->fact.value != t)
        return false;
    for (size_t i = 0; i < graph->model->blobs.count; i++) {
        const ort_blob *b = graph->model->blobs.data[i];
        if (begin < (const char *)b->bytes + b->count && end > (const char *)b->bytes)
            return false;
    }
    for (size_t i = 0; i < graph->values.count; i++) {
        const ort_tensor *other = graph->values.data[i]->fact.value;
        if (i != id && other && overlaps(other, begin, end))
            return false;
    }
    return true;
}

static void give(const ort_step_packs *p, const ort_tensor *t)
{
    ort_spare_room *last = p->shared->rooms.count
                               ? &p->shared->rooms.data[p->shared->rooms.count - 1] : NULL;
    const ort_spare_room r = {t->data, ort_tensor_bytes(t)};
    /* What passes made one after the other lies so, too. */
    if (last && last->at + last->bytes <= r.at && last->at + ort_round_up(last->bytes, 64) >= r.at)
        last->bytes = (size_t)(r.at + r.bytes - last->at);
    else
        (void)ort_vec_push(&p->shared->rooms, r);
}

void ort_step_packs_spare(const ort_step_packs *p)
{
    const ort_step *step = p->step;
    const ort_model *model = p->graph->model;
    if (!p->shared || p->packing || p->graph->parent || p->graph->has_bodies || model->base ||
        model->references != 1 || model->skeleton)
        return;
    for (int i = 0; i < step->in_count && i < ORT_PACKING_INPUTS; i++) {
        const ort_tensor *t = step->in[i] == ORT_ID_NONE ? NULL : p->constants[step->in[i]];
        if (p->absorbed >> i & 1 && t && t->data && !t->stride && (uintptr_t)t->data % 64 == 0 &&
            t->dtype != ORT_DTYPE_STRING && ort_tensor_bytes(t) >= SPARE_BYTES &&
            is_alone(p, step->in[i], t))
            give(p, t);
    }
}

void ort_shared_packs_release(ort_shared_packs *shared)
{
    ort_vec_release(&shared->rooms);
    ort_hashmap_release(&shared->blocks);
    ort_arena_release(&shared->keys);
}

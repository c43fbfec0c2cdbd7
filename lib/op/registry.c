/* registry.c - finds the operator row that governs a node: (domain, name) and opset version.
 *
 * The built-in rows come from the families of families.def; the registry groups them once by
 * operator, so that a look-up is one hash probe and a short walk over versions. Every process does
 * that when it starts: nothing is sorted or copied but pointers, and a row for each version that a
 * history names: it differs from the first in `since` alone. Rows of families stay const and
 * shared; an operator library adds its rows through the same index.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/custom.h"
#include "op/op.h"

#define X(name) extern const ort_op ort_ops_##name[];
#include "op/families.def"
#undef X

typedef struct op_index {
    ORT_VEC(const ort_op *) rows; /* grouped by operator, versions ascending */
    ORT_VEC(uint32_t) first;      /* start of each operator's group in rows; one past the end */
    uint32_t *slots;              /* by hash of the operator: its group + 1; 0 empty */
    size_t slot_count;            /* power of two, at most half full */
} op_index;

struct ort_registry {
    op_index index;
    ort_arena made; /* rows of histories and of operator libraries */
};

static const char *canonical(const char *domain)
{
    return domain == NULL || !strcmp(domain, "ai.onnx") ? "" : domain;
}

static bool same_text(const char *a, const char *b) { return a == b || !strcmp(a, b); }

static bool same_operator(const ort_op *a, const ort_op *b)
{
    return same_text(a->domain, b->domain) && same_text(a->name, b->name);
}

static void release_index(op_index *index)
{
    ort_vec_release(&index->rows);
    ort_vec_release(&index->first);
    free(index->slots);
    index->slots = NULL;
}

/* A row for each number that a word of the history begins with. */
static bool add_history(op_index *index, ort_arena *arena, const ort_op *row)
{
    for (const char *p = row->history; p != NULL; p = strchr(p, ' ')) {
        int since = 0;
        for (p += *p == ' '; *p >= '0' && *p <= '9'; p++)
            since = 10 * since + *p - '0';
        if (since == 0)
            continue;
        ort_op *version = ort_arena_alloc(arena, sizeof *version);
        if (version == NULL || !ort_vec_push(&index->rows, version))
            return false;
        *version = *row;
        version->since = since;
    }
    return true;
}

static bool add_family(op_index *index, ort_arena *arena, const ort_op *rows)
{
    for (; rows->name != NULL; rows++)
        if (!ort_vec_push(&index->rows, rows) || !add_history(index, arena, rows))
            return false;
    return true;
}

/* A row of the group: `example` while the index is built, later the first of the group. */
static const ort_op *row_of(const op_index *index, const ort_op *const *example, uint32_t group)
{
    return example != NULL ? example[group] : index->rows.data[index->first.data[group]];
}

/* The slot that holds the operator's group, or the empty one where it belongs. */
static uint32_t *find_slot(const op_index *index, const ort_op *const *example, const char *domain,
                           const char *name)
{
    size_t mask = index->slot_count - 1;
    size_t at = (size_t)ort_hash_bytes(name, strlen(name), (unsigned char)domain[0]) & mask;
    for (; index->slots[at] != 0; at = (at + 1) & mask) {
        const ort_op *op = row_of(index, example, index->slots[at] - 1);
        if (!strcmp(op->name, name) && !strcmp(op->domain, domain))
            break;
    }
    return &index->slots[at];
}

/* group[i]: of rows[i]; example[g]: a row of group g; size[g]: how many it has. Returns the number
 * of groups. */
static uint32_t find_groups(op_index *index, uint32_t *group, const ort_op **example,
                            uint32_t *size)
{
    uint32_t count = 0;
    for (size_t i = 0; i < index->rows.count; i++) {
        const ort_op *op = index->rows.data[i];
        if (i > 0 && same_operator(op, index->rows.data[i - 1])) {
            group[i] = group[i - 1];
        } else {
            uint32_t *slot = find_slot(index, example, op->domain, op->name);
            if (*slot == 0) {
                example[count] = op;
                *slot = ++count;
            }
            group[i] = *slot - 1;
        }
        size[group[i]]++;
    }
    return count;
}

/* Rows move to their groups, each behind those of older versions. */
static bool place_rows(op_index *index, const uint32_t *group, uint32_t *size, uint32_t count)
{
    size_t rows = index->rows.count;
    const ort_op **placed = malloc((rows + 1) * sizeof *placed);
    if (placed == NULL || !ort_vec_reserve(&index->first, count + 1)) {
        free(placed);
        return false;
    }
    for (uint32_t g = 0, at = 0; g <= count; g++) {
        index->first.data[index->first.count++] = at;
        at += g < count ? size[g] : 0;
    }
    memset(size, 0, count * sizeof *size);
    for (size_t i = 0; i < rows; i++) {
        const ort_op *op = index->rows.data[i];
        uint32_t first = index->first.data[group[i]], at = first + size[group[i]]++;
        for (; at > first && placed[at - 1]->since >= op->since; at--) {
            assert(placed[at - 1]->since > op->since); /* no two rows of one version */
            placed[at] = placed[at - 1];
        }
        placed[at] = op;
    }
    memcpy(index->rows.data, placed, rows * sizeof *placed);
    free(placed);
    return true;
}

static bool build_index(op_index *index)
{
    size_t rows = index->rows.count;
    for (index->slot_count = 16; index->slot_count < 2 * rows;)
        index->slot_count *= 2;
    index->slots = calloc(index->slot_count, sizeof *index->slots);
    uint32_t *group = calloc(2 * rows + 1, sizeof *group);
    const ort_op **example = malloc((rows + 1) * sizeof *example);
    bool ok = index->slots != NULL && group != NULL && example != NULL;
    if (ok) {
        uint32_t count = find_groups(index, group, example, group + rows);
        ok = place_rows(index, group, group + rows, count);
    }
    free(group);
    free(example);
    return ok;
}

ort_status ort_registry_new(ort_registry **out, ort_error *err)
{
    ort_registry *registry = calloc(1, sizeof *registry);
    if (registry == NULL)
        return ort_error_memory(err, sizeof *registry);
    bool ok = true;
#define X(name) ok = ok && add_family(&registry->index, &registry->made, ort_ops_##name);
#include "op/families.def"
#undef X
    if (!ok || !build_index(&registry->index)) {
        ort_registry_free(registry);
        return ort_error_memory(err, 0);
    }
    *out = registry;
    return ORT_OK;
}

void ort_registry_free(ort_registry *registry)
{
    if (registry == NULL)
        return;
    release_index(&registry->index);
    ort_arena_release(&registry->made);
    free(registry);
}

/* The group of an operator as [*begin, *end) in rows; false when the operator is unknown. */
static bool find_group(const ort_registry *registry, const char *domain, const char *name,
                       uint32_t *begin, uint32_t *end)
{
    const op_index *index = &registry->index;
    uint32_t slot = *find_slot(index, NULL, canonical(domain), name);
    if (slot == 0)
        return false;
    *begin = index->first.data[slot - 1];
    *end = index->first.data[slot];
    return true;
}

const ort_op *ort_registry_find(const ort_registry *registry, const char *domain, const char *name,
                                int64_t version)
{
    uint32_t begin, end;
    const ort_op *found = NULL;
    if (!find_group(registry, domain, name, &begin, &end))
        return NULL;
    for (uint32_t i = begin; i < end && registry->index.rows.data[i]->since <= version; i++)
        found = registry->index.rows.data[i];
    return found != NULL && (found->traits & ORT_TRAIT_DEPRECATED) != 0 ? NULL : found;
}

int ort_registry_oldest(const ort_registry *registry, const char *domain, const char *name)
{
    uint32_t begin, end;
    bool known = find_group(registry, domain, name, &begin, &end);
    return known ? registry->index.rows.data[begin]->since : 0;
}

size_t ort_registry_count(const ort_registry *registry) { return registry->index.rows.count; }

const ort_op *ort_registry_at(const ort_registry *registry, size_t index)
{
    return registry->index.rows.data[index];
}

bool ort_registry_has_domain(const ort_registry *registry, const char *domain)
{
    domain = canonical(domain);
    for (size_t i = 0; i < registry->index.rows.count; i++)
        if (!strcmp(registry->index.rows.data[i]->domain, domain))
            return true;
    return false;
}

const char *ort_registry_hint(const ort_registry *registry, const char *domain)
{
    return ort_registry_has_domain(registry, domain)
               ? ""
               : "; operators of this domain come from an operator library (--ops-lib)";
}

/* ---- operator libraries */

static ort_status exists(const ort_registry *registry, const ort_op *op, uint32_t begin,
                         uint32_t end, ort_error *err)
{
    char versions[200] = "";
    const char *domain = *op->domain ? op->domain : "ai.onnx";
    for (uint32_t i = begin; i < end; i++) {
        const ort_op *other = registry->index.rows.data[i];
        const ort_ops_library *from = ort_op_library(other);
        size_t used = strlen(versions);
        if (from != NULL && other->since == op->since)
            return ort_error_set(err, ORT_ERROR_USAGE,
                                 "operator %s of '%s', version %d, is already added by operator "
                                 "library '%s'",
                                 op->name, domain, op->since, from->name);
        if (from == NULL)
            snprintf(versions + used, sizeof versions - used, "%s%d", used > 0 ? ", " : "",
                     other->since);
    }
    if (versions[0] == '\0')
        return ORT_OK;
    return ort_error_set(err, ORT_ERROR_USAGE,
                         "operator %s of '%s' is built in (since %s); give it another name or a "
                         "domain of your own",
                         op->name, domain, versions);
}

static ort_status check_new(const ort_registry *registry, const ort_op *const *rows, size_t count,
                            ort_error *err)
{
    uint32_t begin, end;
    for (size_t i = 0; i < count; i++) {
        if (find_group(registry, rows[i]->domain, rows[i]->name, &begin, &end))
            ORT_TRY(exists(registry, rows[i], begin, end, err));
        for (size_t k = 0; k < i; k++)
            if (same_operator(rows[i], rows[k]) && rows[i]->since == rows[k]->since)
                return ort_error_set(err, ORT_ERROR_USAGE,
                                     "operator %s of '%s', version %d, has two rows", rows[i]->name,
                                     rows[i]->domain, rows[i]->since);
    }
    return ORT_OK;
}

/* A new index takes the place of the old one, so that a failure changes nothing. */
ort_status ort_registry_add(ort_registry *registry, const ort_ops_library *library, ort_error *err)
{
    op_index index = {.slots = NULL};
    const ort_op **rows = NULL;
    bool ok = true;
    for (size_t i = 0; i < registry->index.rows.count; i++)
        if (ort_op_library(registry->index.rows.data[i]) == library)
            return ort_error_set(err, ORT_ERROR_USAGE, "the operator library is already added");
    ORT_TRY(ort_custom_rows(library, &registry->made, &rows, err));
    ORT_TRY(check_new(registry, rows, library->row_count, err));
    for (size_t i = 0; i < registry->index.rows.count && ok; i++)
        ok = ort_vec_push(&index.rows, registry->index.rows.data[i]);
    for (size_t i = 0; i < library->row_count && ok; i++)
        ok = ort_vec_push(&index.rows, rows[i]);
    if (!ok || !build_index(&index)) {
        release_index(&index);
        return ort_error_memory(err, 0);
    }
    release_index(&registry->index);
    registry->index = index;
    return ORT_OK;
}

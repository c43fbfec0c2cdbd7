/* registry.c - finds the operator row that governs a node: (domain, name) and opset version.
 *
 * The built-in rows come from the families of families.def; the registry groups them once by
 * operator, so that a look-up is one hash probe and a short walk over versions. Every process does
 * that when it starts: nothing is sorted or copied but pointers. A version that a row's history
 * names gets a row of its own, which differs from the first in `since` alone, when somebody asks
 * for it: a model asks for few of them. Rows of families stay const and shared; an operator library
 * adds its rows through the same index.
 */
#include <pthread.h>
#include <stdatomic.h>
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
    uint32_t *later; /* of each row and one past the end: versions in the histories before it */
    _Atomic(const ort_op *) *version; /* their rows; NULL: nobody has asked */
    ort_op *space;                    /* for them */
} op_index;

struct ort_registry {
    op_index index;
    ort_arena made; /* rows of histories and of operator libraries */
};

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER; /* one thread makes a version's row */

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
    free(index->later);
    free(index->version);
    index->slots = index->later = NULL;
    index->version = NULL;
}

/* The number that the next word of a history begins with, 0 at its end. */
static int next_version(const char **history)
{
    const char *p = *history;
    int since = 0;
    while (since == 0 && p != NULL && *p != '\0') {
        for (p += *p == ' '; *p >= '0' && *p <= '9'; p++)
            since = 10 * since + *p - '0';
        p = strchr(p, ' ');
    }
    *history = p;
    return since;
}

static bool add_rows(op_index *index, const ort_op *rows)
{
    for (; rows->name != NULL; rows++)
        if (!ort_vec_push(&index->rows, rows))
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

/* Places for the versions of the histories. */
static bool place_versions(op_index *index, ort_arena *made)
{
    const size_t rows = index->rows.count;
    uint32_t count = 0;
    index->later = malloc((rows + 1) * sizeof *index->later);
    if (index->later == NULL)
        return false;
    for (size_t i = 0; i < rows; i++) {
        index->later[i] = count;
        for (const char *p = index->rows.data[i]->history; next_version(&p) != 0;)
            count++;
    }
    index->later[rows] = count;
    index->version = calloc(count + 1, sizeof *index->version);
    index->space = ort_arena_alloc_aligned(made, (count + 1) * sizeof *index->space,
                                           _Alignof(ort_op), 0); /* touched where rows are made */
    return index->version != NULL && index->space != NULL;
}

static bool build_index(op_index *index, ort_arena *made)
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
        ok = place_rows(index, group, group + rows, count) && place_versions(index, made);
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
#define X(name) ok = ok && add_rows(&registry->index, ort_ops_##name);
#include "op/families.def"
#undef X
    if (!ok || !build_index(&registry->index, &registry->made)) {
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

/* The row of number `which`, a version since `since`, in the history of a row. */
static const ort_op *version_of(const op_index *index, uint32_t row, uint32_t which, int since)
{
    const uint32_t at = index->later[row] + which;
    assert(at < index->later[row + 1]);
    const ort_op *made = atomic_load_explicit(&index->version[at], memory_order_acquire);
    if (made != NULL)
        return made;
    pthread_mutex_lock(&making);
    made = atomic_load_explicit(&index->version[at], memory_order_relaxed);
    if (made == NULL) {
        ort_op *version = &index->space[at];
        *version = *index->rows.data[row];
        version->since = since;
        made = version;
        atomic_store_explicit(&index->version[at], made, memory_order_release);
    }
    pthread_mutex_unlock(&making);
    return made;
}

/* The newest version of a row's history that isn't after `version`, or the row itself. */
static const ort_op *newest(const op_index *index, uint32_t row, int64_t version)
{
    const char *p = index->rows.data[row]->history;
    int since = 0;
    uint32_t count = 0;
    for (int next; (next = next_version(&p)) != 0 && next <= version; count++)
        since = next;
    return count ? version_of(index, row, count - 1, since) : index->rows.data[row];
}

const ort_op *ort_registry_find(const ort_registry *registry, const char *domain, const char *name,
                                int64_t version)
{
    const op_index *index = &registry->index;
    uint32_t begin, end, at;
    if (!find_group(registry, domain, name, &begin, &end))
        return NULL;
    for (at = begin; at < end && index->rows.data[at]->since <= version;)
        at++;
    const ort_op *found = at > begin ? newest(index, at - 1, version) : NULL;
    return found != NULL && (found->traits & ORT_TRAIT_DEPRECATED) != 0 ? NULL : found;
}

int ort_registry_oldest(const ort_registry *registry, const char *domain, const char *name)
{
    uint32_t begin, end;
    bool known = find_group(registry, domain, name, &begin, &end);
    return known ? registry->index.rows.data[begin]->since : 0;
}

/* Rows and, behind each, the versions of its history. */
size_t ort_registry_count(const ort_registry *registry)
{
    const op_index *index = &registry->index;
    return index->rows.count + index->later[index->rows.count];
}

const ort_op *ort_registry_at(const ort_registry *registry, size_t at)
{
    const op_index *index = &registry->index;
    uint32_t row = 0, beyond = (uint32_t)index->rows.count;
    assert(at < ort_registry_count(registry));
    while (beyond - row > 1) {
        const uint32_t middle = row + (beyond - row) / 2;
        if (middle + index->later[middle] <= at)
            row = middle;
        else
            beyond = middle;
    }
    const uint32_t which = (uint32_t)at - row - index->later[row];
    const char *p = index->rows.data[row]->history;
    int since = 0;
    for (uint32_t i = 0; i < which; i++)
        since = next_version(&p);
    return which ? version_of(index, row, which - 1, since) : index->rows.data[row];
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
    const uint32_t *later = registry->index.later;
    for (uint32_t i = begin + later[begin]; i < end + later[end]; i++) {
        const ort_op *other = ort_registry_at(registry, i);
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

/* Sessions hold versions that the old index made: the new one hands out the same. */
static void keep_versions(op_index *index, const ort_registry *from)
{
    const op_index *old = &from->index;
    for (size_t i = 0; i < index->rows.count; i++) {
        const ort_op *row = index->rows.data[i];
        uint32_t at, end;
        if (index->later[i] == index->later[i + 1] ||
            !find_group(from, row->domain, row->name, &at, &end))
            continue;
        while (at < end && old->rows.data[at] != row)
            at++;
        for (uint32_t k = index->later[i]; at < end && k < index->later[i + 1]; k++)
            atomic_init(&index->version[k],
                        atomic_load(&old->version[old->later[at] + k - index->later[i]]));
    }
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
    if (!ok || !build_index(&index, &registry->made)) {
        release_index(&index);
        return ort_error_memory(err, 0);
    }
    keep_versions(&index, registry);
    release_index(&registry->index);
    registry->index = index;
    return ORT_OK;
}

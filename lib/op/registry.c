/* registry.c - finds the operator row that governs a node: (domain, name) and opset version.
 *
 * The built-in rows come from the families of families.def; the registry indexes them once by
 * "domain:name" so that a look-up is one hash probe and a short walk over versions. Rows stay const
 * and shared; an operator library adds its rows through the same index.
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
    ORT_VEC(const ort_op *) rows;  /* grouped by operator, versions ascending */
    ORT_VEC(uint32_t) first;       /* start of each operator's group in rows; one past the end */
    ort_hashmap groups;            /* "domain:name" to group number */
    ort_arena names;
} op_index;

struct ort_registry {
    op_index index;
    ort_arena custom; /* rows of operator libraries */
};

static const char *canonical(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

typedef struct sort_key {
    uint64_t start; /* the first bytes of the name, so that most comparisons are one of numbers */
    const ort_op *op;
} sort_key;

static sort_key key_of(const ort_op *op)
{
    sort_key key = {.op = op};
    const char *p = op->name;
    for (int i = 0; i < 8; i++)
        key.start = key.start << 8 | (unsigned char)(*p ? *p++ : '\0');
    return key;
}

static int by_name_and_version(const void *a, const void *b)
{
    const sort_key *x = a, *y = b;
    int order = x->op->domain == y->op->domain ? 0 : strcmp(x->op->domain, y->op->domain);
    if (order != 0)
        return order;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    order = strcmp(x->op->name, y->op->name);
    return order != 0 ? order : x->op->since - y->op->since;
}

static bool sort_rows(op_index *index)
{
    size_t count = index->rows.count;
    sort_key *keys = malloc((count + 1) * sizeof *keys);
    if (keys == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        keys[i] = key_of(index->rows.data[i]);
    qsort(keys, count, sizeof *keys, by_name_and_version);
    for (size_t i = 0; i < count; i++)
        index->rows.data[i] = keys[i].op;
    free(keys);
    return true;
}

/* "domain:name"; its length, or 0 when it has no room. */
static size_t key_text(const char *domain, const char *name, char *key, size_t size)
{
    size_t domain_length = strlen(domain), name_length = strlen(name);
    if (domain_length + name_length + 1 > size)
        return 0;
    memcpy(key, domain, domain_length);
    key[domain_length] = ':';
    memcpy(key + domain_length + 1, name, name_length);
    return domain_length + 1 + name_length;
}

static bool same_operator(const ort_op *a, const ort_op *b)
{
    return strcmp(a->domain, b->domain) == 0 && strcmp(a->name, b->name) == 0;
}

static void release_index(op_index *index)
{
    ort_vec_release(&index->rows);
    ort_vec_release(&index->first);
    ort_hashmap_release(&index->groups);
    ort_arena_release(&index->names);
}

static bool add_family(op_index *index, const ort_op *rows)
{
    for (; rows->name != NULL; rows++)
        if (!ort_vec_push(&index->rows, rows))
            return false;
    return true;
}

/* Sorts the rows and finds the groups. */
static bool build_index(op_index *index)
{
    if (!sort_rows(index))
        return false;
    for (size_t i = 0; i < index->rows.count; i++) {
        const ort_op *op = index->rows.data[i];
        if (i > 0 && same_operator(op, index->rows.data[i - 1])) {
            assert(op->since > index->rows.data[i - 1]->since); /* no two rows of one version */
            continue;
        }
        char key[256];
        size_t length = key_text(op->domain, op->name, key, sizeof key);
        const char *kept = length ? ort_arena_strndup(&index->names, key, length) : NULL;
        if (kept == NULL || !ort_hashmap_put(&index->groups, kept, length, index->first.count) ||
            !ort_vec_push(&index->first, (uint32_t)i))
            return false;
    }
    return ort_vec_push(&index->first, (uint32_t)index->rows.count);
}

ort_status ort_registry_new(ort_registry **out, ort_error *err)
{
    ort_registry *registry = calloc(1, sizeof *registry);
    if (registry == NULL)
        return ort_error_memory(err, sizeof *registry);
    bool ok = true;
#define X(name) ok = ok && add_family(&registry->index, ort_ops_##name);
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
    ort_arena_release(&registry->custom);
    free(registry);
}

/* The group of an operator as [*begin, *end) in rows; false when the operator is unknown. */
static bool find_group(const ort_registry *registry, const char *domain, const char *name,
                       uint32_t *begin, uint32_t *end)
{
    char key[256];
    size_t length = key_text(canonical(domain), name, key, sizeof key);
    uint64_t group;
    if (!length || !ort_hashmap_get(&registry->index.groups, key, length, &group))
        return false;
    *begin = registry->index.first.data[group];
    *end = registry->index.first.data[group + 1];
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
        if (strcmp(registry->index.rows.data[i]->domain, domain) == 0)
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
    op_index index = {.names = {0}};
    const ort_op **rows = NULL;
    bool ok = true;
    for (size_t i = 0; i < registry->index.rows.count; i++)
        if (ort_op_library(registry->index.rows.data[i]) == library)
            return ort_error_set(err, ORT_ERROR_USAGE, "the operator library is already added");
    ORT_TRY(ort_custom_rows(library, &registry->custom, &rows, err));
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

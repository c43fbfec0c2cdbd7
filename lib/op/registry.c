/* registry.c - finds the operator row that governs a node: (domain, name) and opset version.
 *
 * The built-in rows come from the families of families.def; the registry indexes them once by
 * "domain:name" so that a look-up is one hash probe and a short walk over versions. Rows stay const
 * and shared; an operator library adds its rows through the same index.
 */
#include <stdlib.h>
#include <string.h>

#include "op/op.h"

#define X(name) extern const ort_op ort_ops_##name[];
#include "op/families.def"
#undef X

struct ort_registry {
    ORT_VEC(const ort_op *) rows;  /* grouped by operator after indexing, versions ascending */
    ORT_VEC(uint32_t) first;       /* start of each operator's group in rows */
    ort_hashmap index;             /* "domain:name" to group number */
    ort_arena names;
};

static const char *canonical(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static int by_name_and_version(const void *a, const void *b)
{
    const ort_op *x = *(const ort_op *const *)a, *y = *(const ort_op *const *)b;
    int order = strcmp(x->domain, y->domain);
    if (order == 0)
        order = strcmp(x->name, y->name);
    return order != 0 ? order : x->since - y->since;
}

static bool same_operator(const ort_op *a, const ort_op *b)
{
    return strcmp(a->domain, b->domain) == 0 && strcmp(a->name, b->name) == 0;
}

static bool add_family(ort_registry *registry, const ort_op *rows)
{
    for (; rows->name != NULL; rows++)
        if (!ort_vec_push(&registry->rows, rows))
            return false;
    return true;
}

static bool build_index(ort_registry *registry)
{
    qsort(registry->rows.data, registry->rows.count, sizeof *registry->rows.data,
          by_name_and_version);
    for (size_t i = 0; i < registry->rows.count; i++) {
        const ort_op *op = registry->rows.data[i];
        if (i > 0 && same_operator(op, registry->rows.data[i - 1])) {
            assert(op->since > registry->rows.data[i - 1]->since); /* no two rows of one version */
            continue;
        }
        const char *key = ort_arena_printf(&registry->names, "%s:%s", op->domain, op->name);
        if (key == NULL || !ort_hashmap_put_str(&registry->index, key, registry->first.count) ||
            !ort_vec_push(&registry->first, (uint32_t)i))
            return false;
    }
    return ort_vec_push(&registry->first, (uint32_t)registry->rows.count);
}

ort_status ort_registry_new(ort_registry **out, ort_error *err)
{
    ort_registry *registry = calloc(1, sizeof *registry);
    if (registry == NULL)
        return ort_error_memory(err, sizeof *registry);
    bool ok = true;
#define X(name) ok = ok && add_family(registry, ort_ops_##name);
#include "op/families.def"
#undef X
    if (!ok || !build_index(registry)) {
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
    ort_vec_release(&registry->rows);
    ort_vec_release(&registry->first);
    ort_hashmap_release(&registry->index);
    ort_arena_release(&registry->names);
    free(registry);
}

/* The group of an operator as [*begin, *end) in rows; false when the operator is unknown. */
static bool find_group(const ort_registry *registry, const char *domain, const char *name,
                       uint32_t *begin, uint32_t *end)
{
    char key[256];
    size_t domain_length, name_length = strlen(name);
    domain = canonical(domain);
    domain_length = strlen(domain);
    if (domain_length + name_length + 1 > sizeof key)
        return false;
    memcpy(key, domain, domain_length);
    key[domain_length] = ':';
    memcpy(key + domain_length + 1, name, name_length);
    uint64_t group;
    if (!ort_hashmap_get(&registry->index, key, domain_length + 1 + name_length, &group))
        return false;
    *begin = registry->first.data[group];
    *end = registry->first.data[group + 1];
    return true;
}

const ort_op *ort_registry_find(const ort_registry *registry, const char *domain, const char *name,
                                int64_t version)
{
    uint32_t begin, end;
    const ort_op *found = NULL;
    if (!find_group(registry, domain, name, &begin, &end))
        return NULL;
    for (uint32_t i = begin; i < end && registry->rows.data[i]->since <= version; i++)
        found = registry->rows.data[i];
    return found != NULL && (found->traits & ORT_TRAIT_DEPRECATED) != 0 ? NULL : found;
}

int ort_registry_oldest(const ort_registry *registry, const char *domain, const char *name)
{
    uint32_t begin, end;
    return find_group(registry, domain, name, &begin, &end) ? registry->rows.data[begin]->since : 0;
}

size_t ort_registry_count(const ort_registry *registry) { return registry->rows.count; }

const ort_op *ort_registry_at(const ort_registry *registry, size_t index)
{
    return registry->rows.data[index];
}

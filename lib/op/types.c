/* types.c - the values of a model by name and type (types.h). All that a list says lies in its own
 * arena: it outlives the model. */
#include "op/types.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/findings.h"
#include "op/op.h"

typedef struct entry {
    const char *name;
    const ort_type_info *info;
} entry;

struct ort_types {
    ort_arena memory;
    ORT_VEC(entry) entries;
    ort_hashmap places; /* of names */
};

ort_status ort_model_infer_types(ort_model *model, ort_error *err)
{
    ort_findings *findings = NULL;
    ORT_TRY(ort_graph_inline_functions(model->graph, err));
    ORT_TRY(ort_findings_new(&findings, err));
    ort_status status = ort_graph_infer(model->graph, model->registry, findings, err);
    ort_findings_free(findings);
    return status;
}

ort_status ort_model_typed_copy(const ort_model *model, ort_model **copy, ort_error *err)
{
    ORT_TRY(ort_model_clone(model, copy, err));
    ort_status status = ort_model_infer_types(*copy, err);
    if (status != ORT_OK) {
        ort_model_free(*copy);
        *copy = NULL;
    }
    return status;
}

static ort_status add(ort_types *types, const ort_graph *graph, ort_id id, ort_error *err)
{
    const ort_graph_value *value = graph->values.data[id];
    entry e = {ort_arena_strdup(&types->memory, value->name),
               ort_value_describe(graph->model->dims, value, &types->memory)};
    if (!e.name || !e.info || !ort_vec_push(&types->entries, e) ||
        !ort_hashmap_put_str(&types->places, e.name, types->entries.count - 1))
        return ort_error_memory(err, sizeof e);
    return ORT_OK;
}

static ort_status add_list(ort_types *types, const ort_graph *graph, const ort_id *ids,
                           size_t count, ort_error *err)
{
    for (size_t i = 0; i < count; i++)
        ORT_TRY(add(types, graph, ids[i], err));
    return ORT_OK;
}

/* Names that nobody gives a value any more, and values without a name, are left out. */
static ort_status add_all(ort_types *types, const ort_graph *graph, ort_error *err)
{
    for (size_t i = 0; i < graph->values.count; i++) {
        const ort_graph_value *value = graph->values.data[i];
        bool exists = value->is_input || value->fact.value ||
                      graph->producers.data[i] != ORT_ID_NONE;
        if (exists && *value->name)
            ORT_TRY(add(types, graph, (ort_id)i, err));
    }
    return ORT_OK;
}

static ort_status collect(ort_types *types, const ort_graph *graph, ort_types_of which,
                          ort_error *err)
{
    switch (which) {
    case ORT_TYPES_INPUTS:
        return add_list(types, graph, graph->inputs.data, graph->inputs.count, err);
    case ORT_TYPES_OUTPUTS:
        return add_list(types, graph, graph->outputs.data, graph->outputs.count, err);
    case ORT_TYPES_INITIALIZERS:
        return add_list(types, graph, graph->initializers.data, graph->initializers.count, err);
    case ORT_TYPES_ALL: return add_all(types, graph, err);
    }
    return ort_error_set(err, ORT_ERROR_USAGE, "there is no list %d of types", (int)which);
}

ort_status ort_types_collect(const ort_model *typed, ort_types_of which, ort_types **types,
                             ort_error *err)
{
    *types = calloc(1, sizeof **types);
    if (!*types)
        return ort_error_memory(err, sizeof **types);
    ort_status status = collect(*types, typed->graph, which, err);
    if (status != ORT_OK) {
        ort_types_free(*types);
        *types = NULL;
    }
    return status;
}

void ort_types_free(ort_types *types)
{
    if (!types)
        return;
    ort_hashmap_release(&types->places);
    ort_vec_release(&types->entries);
    ort_arena_release(&types->memory);
    free(types);
}

size_t ort_types_count(const ort_types *types)
{
    return types ? types->entries.count : 0;
}

const char *ort_types_name(const ort_types *types, size_t index)
{
    return types && index < types->entries.count ? types->entries.data[index].name : NULL;
}

const ort_type_info *ort_types_info(const ort_types *types, size_t index)
{
    return types && index < types->entries.count ? types->entries.data[index].info : NULL;
}

const ort_type_info *ort_types_find(const ort_types *types, const char *name)
{
    uint64_t place;
    bool found = types && name && ort_hashmap_get_str(&types->places, name, &place);
    return found ? types->entries.data[place].info : NULL;
}

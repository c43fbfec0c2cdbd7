/* type_info.c - a type as callers see it (ort_type_info of ort.h): plain numbers and texts. */
#include <string.h>

#include "graph/graph.h"

enum { MOST_NESTED = 50, LONGEST_TEXT = 512 };

/* NULL in *symbol: a number, or an axis of which nothing is known. */
static bool describe_dim(const ort_dim_table *dims, ort_dim dim, ort_arena *arena, int64_t *size,
                         const char **symbol)
{
    char text[LONGEST_TEXT];
    *size = ort_dim_known(dim) ? dim.size : -1;
    if (ort_dim_known(dim) || dim.expr == ORT_DIM_UNKNOWN)
        return true;
    *symbol = ort_arena_strdup(arena, ort_dim_format(dims, dim, text, sizeof text));
    return *symbol != NULL;
}

static bool describe_shape(const ort_dim_table *dims, const ort_type *type, ort_arena *arena,
                           ort_type_info *info)
{
    size_t count = type->rank > 0 ? (size_t)type->rank : 0;
    int64_t *sizes = ort_arena_array(arena, count + 1, sizeof *sizes);
    const char **symbols = ort_arena_array(arena, count + 1, sizeof *symbols);
    if (!sizes || !symbols)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!describe_dim(dims, type->dim[i], arena, &sizes[i], &symbols[i]))
            return false;
    info->rank = type->rank;
    info->dims = sizes;
    info->symbols = symbols;
    return true;
}

static const ort_type_info *describe(const ort_dim_table *dims, const ort_type *type,
                                     ort_arena *arena, int depth)
{
    char text[LONGEST_TEXT];
    ort_type_info *info = ort_arena_array(arena, 1, sizeof *info);
    if (!info)
        return NULL;
    *info = (ort_type_info){.kind = type->kind, .dtype = type->dtype, .rank = -1};
    info->text = ort_arena_strdup(arena, ort_type_format(dims, type, text, sizeof text));
    bool shaped = type->kind == ORT_TYPE_TENSOR || type->kind == ORT_TYPE_SPARSE;
    if (!info->text || (shaped && !describe_shape(dims, type, arena, info)))
        return NULL;
    if (!type->element || depth == MOST_NESTED)
        return info;
    info->element = describe(dims, type->element, arena, depth + 1);
    return info->element ? info : NULL;
}

const ort_type_info *ort_type_describe(const ort_dim_table *dims, const ort_type *type,
                                       ort_arena *arena)
{
    return describe(dims, type, arena, 0);
}

/* type_info.c - a type as callers see it (ort_type_info of ort.h): plain numbers and texts. What
 * the file says that a value stands for (denotations) is read from its declaration. */
#include <assert.h>
#include <string.h>

#include "graph/graph.h"
#include "onnx.pb-c.h"

enum { MOST_NESTED = 50, LONGEST_TEXT = 512 };

typedef struct description {
    const ort_dim_table *dims;
    ort_arena *arena;
} description;

/* Texts of the file, which its model may not outlive. "": it says nothing. */
static bool copy_word(ort_arena *arena, const char *word, const char **copy)
{
    if (word && *word)
        *copy = ort_arena_strdup(arena, word);
    return !word || !*word || *copy;
}

/* NULL in *symbol: a number, or an axis of which nothing is known. */
static bool describe_dim(const description *d, ort_dim dim, int64_t *size, const char **symbol)
{
    char text[LONGEST_TEXT];
    *size = ort_dim_known(dim) ? dim.size : -1;
    if (ort_dim_known(dim) || dim.expr == ORT_DIM_UNKNOWN)
        return true;
    *symbol = ort_arena_strdup(d->arena, ort_dim_format(d->dims, dim, text, sizeof text));
    return *symbol != NULL;
}

static const Onnx__TensorShapeProto *declared_shape(const Onnx__TypeProto *declared)
{
    if (declared && declared->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return declared->tensor_type->shape;
    if (declared && declared->value_case == ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE)
        return declared->sparse_tensor_type->shape;
    return NULL;
}

static bool describe_shape(const description *d, const ort_type *type,
                           const Onnx__TypeProto *declared, ort_type_info *info)
{
    assert(type->rank <= ORT_MAX_RANK);
    size_t count = type->rank > 0 ? (size_t)type->rank : 0;
    int64_t *sizes = ort_arena_array(d->arena, count + 1, sizeof *sizes);
    const char **symbols = ort_arena_array(d->arena, count + 1, sizeof *symbols);
    const char **words = ort_arena_array(d->arena, count + 1, sizeof *words);
    const Onnx__TensorShapeProto *shape = declared_shape(declared);
    if (!sizes || !symbols || !words)
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *word = shape && shape->n_dim == count ? shape->dim[i]->denotation : NULL;
        if (!describe_dim(d, type->dim[i], &sizes[i], &symbols[i]) ||
            !copy_word(d->arena, word, &words[i]))
            return false;
    }
    info->rank = type->rank;
    info->dims = sizes;
    info->symbols = symbols;
    info->denotations = words;
    return true;
}

static const Onnx__TypeProto *declared_element(const Onnx__TypeProto *declared)
{
    switch (declared ? declared->value_case : ONNX__TYPE_PROTO__VALUE__NOT_SET) {
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE: return declared->sequence_type->elem_type;
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE: return declared->optional_type->elem_type;
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: return declared->map_type->value_type;
    default: return NULL;
    }
}

static const ort_type_info *describe(const description *d, const ort_type *type,
                                     const Onnx__TypeProto *declared, int depth)
{
    char text[LONGEST_TEXT];
    ort_type_info *info = ort_arena_array(d->arena, 1, sizeof *info);
    if (!info)
        return NULL;
    *info = (ort_type_info){.kind = type->kind, .dtype = type->dtype, .rank = -1};
    info->text = ort_arena_strdup(d->arena, ort_type_format(d->dims, type, text, sizeof text));
    bool shaped = type->kind == ORT_TYPE_TENSOR || type->kind == ORT_TYPE_SPARSE;
    if (!info->text || !copy_word(d->arena, declared ? declared->denotation : NULL,
                                  &info->denotation))
        return NULL;
    if (shaped && !describe_shape(d, type, declared, info))
        return NULL;
    if (!type->element || depth == MOST_NESTED)
        return info;
    info->element = describe(d, type->element, declared_element(declared), depth + 1);
    return info->element ? info : NULL;
}

const ort_type_info *ort_value_describe(const ort_dim_table *dims, const ort_graph_value *value,
                                        ort_arena *arena)
{
    const Onnx__ValueInfoProto *declared = value->info_proto;
    description d = {dims, arena};
    return describe(&d, &value->fact.type, declared ? declared->type : NULL, 0);
}

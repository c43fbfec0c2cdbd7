/* type.c - what values are, as a model declares them or as they were made: OrtTypeInfo and the
 * shape of tensors. Both are copies, so that they outlive session and value. What a Cast function
 * gives is a part of the type and not released.
 */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

/* 24 to 26 came into the ABI in another order than into ONNX. */
int abi_dtype_out(ort_dtype dtype)
{
    switch (dtype) {
    case ORT_DTYPE_UINT2:
        return 24;
    case ORT_DTYPE_INT2:
        return 25;
    case ORT_DTYPE_FLOAT8E8M0:
        return 26;
    default:
        return dtype < ORT_DTYPE_FLOAT8E8M0 ? (int)dtype : 0;
    }
}

ort_dtype abi_dtype_in(int type)
{
    static const ort_dtype late[] = {ORT_DTYPE_UINT2, ORT_DTYPE_INT2, ORT_DTYPE_FLOAT8E8M0};
    if (type >= 24 && type <= 26)
        return late[type - 24];
    return type > 0 && type < 24 ? (ort_dtype)type : ORT_DTYPE_UNDEFINED;
}

/* --------------------------------------------------------------------------------- the shape -- */

static void clear_shape(OrtTensorTypeAndShapeInfo *info)
{
    for (size_t i = 0; info->symbols && i < info->rank; i++)
        free(info->symbols[i]);
    free(info->symbols);
    free(info->dims);
    info->symbols = NULL;
    info->dims = NULL;
    info->rank = 0;
}

/* The library calls an axis without a name x[0], so that shapes can be compared. */
static const char *known_symbol(const char *symbol)
{
    return symbol && !strchr(symbol, '[') ? symbol : "";
}

static OrtStatus *fill_shape(OrtTensorTypeAndShapeInfo *info, size_t rank, const int64_t *dims,
                             const char *const *symbols)
{
    clear_shape(info);
    info->has_shape = true;
    info->dims = calloc(rank + 1, sizeof *info->dims);
    info->symbols = calloc(rank + 1, sizeof *info->symbols);
    if (!info->dims || !info->symbols) {
        clear_shape(info);
        return abi_no_memory();
    }
    info->rank = rank;
    for (size_t i = 0; i < rank; i++) {
        info->dims[i] = dims[i];
        info->symbols[i] = strdup(symbols ? known_symbol(symbols[i]) : "");
        if (!info->symbols[i])
            return abi_no_memory();
    }
    return NULL;
}

OrtStatus *abi_CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? NULL : abi_no_memory();
}

void abi_ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo *info)
{
    if (!info || info->inside)
        return;
    clear_shape(info);
    free(info);
}

OrtStatus *abi_tensor_type(int dtype, size_t rank, const int64_t *dims,
                           OrtTensorTypeAndShapeInfo **out)
{
    OrtTensorTypeAndShapeInfo *info;
    ABI_TRY(abi_CreateTensorTypeAndShapeInfo(&info));
    info->dtype = dtype;
    OrtStatus *status = fill_shape(info, rank, dims, NULL);
    if (status)
        abi_ReleaseTensorTypeAndShapeInfo(info);
    else
        *out = info;
    return status;
}

OrtStatus *abi_shape_copy(const OrtTensorTypeAndShapeInfo *from, OrtTensorTypeAndShapeInfo **out)
{
    OrtTensorTypeAndShapeInfo *info;
    ABI_TRY(abi_CreateTensorTypeAndShapeInfo(&info));
    info->inside = true;
    info->dtype = from->dtype;
    *out = info;
    return from->has_shape ? fill_shape(info, from->rank, from->dims,
                                        (const char *const *)from->symbols)
                           : NULL;
}

void abi_shape_free(OrtTensorTypeAndShapeInfo *info)
{
    if (!info)
        return;
    clear_shape(info);
    free(info);
}

OrtStatus *abi_SetTensorElementType(OrtTensorTypeAndShapeInfo *info, int type)
{
    ABI_CHECK(info, "info is NULL");
    info->dtype = type;
    return NULL;
}

OrtStatus *abi_SetDimensions(OrtTensorTypeAndShapeInfo *info, const int64_t *dims, size_t count)
{
    ABI_CHECK(info && (dims || !count), "dims is NULL");
    ABI_CHECK(count <= ABI_MAX_RANK, "%zu dimensions: at most %d", count, ABI_MAX_RANK);
    for (size_t i = 0; i < count; i++)
        ABI_CHECK(dims[i] >= -1, "dim_values must be -1 (symbolic dimension) or larger.");
    return fill_shape(info, count, dims, NULL);
}

OrtStatus *abi_SetSymbolicDimensions(OrtTensorTypeAndShapeInfo *info, const char **names,
                                     size_t count)
{
    ABI_CHECK(info && (names || !count), "dim_params is NULL");
    for (size_t i = 0; i < count && i < info->rank; i++) {
        char *name = strdup(names[i] ? names[i] : "");
        if (!name)
            return abi_no_memory();
        free(info->symbols[i]);
        info->symbols[i] = name;
    }
    return NULL;
}

OrtStatus *abi_GetTensorElementType(const OrtTensorTypeAndShapeInfo *info, int *out)
{
    *out = info->dtype;
    return NULL;
}

OrtStatus *abi_GetDimensionsCount(const OrtTensorTypeAndShapeInfo *info, size_t *out)
{
    *out = info->rank;
    return NULL;
}

OrtStatus *abi_GetDimensions(const OrtTensorTypeAndShapeInfo *info, int64_t *dims, size_t count)
{
    for (size_t i = 0; i < count && i < info->rank; i++)
        dims[i] = info->dims[i];
    return NULL;
}

OrtStatus *abi_GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo *info, const char **names,
                                     size_t count)
{
    for (size_t i = 0; i < count && i < info->rank; i++)
        names[i] = info->symbols[i];
    return NULL;
}

OrtStatus *abi_GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo *info, size_t *out)
{
    int64_t count = info->has_shape;
    for (size_t i = 0; i < info->rank; i++)
        if (info->dims[i] < 0 || __builtin_mul_overflow(count, info->dims[i], &count))
            return abi_fail(ABI_FAIL, "Integer overflow: dimension %zu isn't known", i);
    *out = (size_t)count;
    return NULL;
}

bool abi_TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo *info)
{
    return info->has_shape;
}

/* ---------------------------------------------------------------------------------- the type -- */

static OrtStatus *fill_type(OrtTypeInfo *type, const ort_type_info *info);

static OrtStatus *fill_element(OrtTypeInfo *type, const ort_type_info *element)
{
    static const ort_type_info unknown = {.kind = ORT_TYPE_UNKNOWN, .rank = -1};
    type->element = calloc(1, sizeof *type->element);
    if (!type->element)
        return abi_no_memory();
    type->element->inside = true;
    ABI_TRY(fill_type(type->element, element ? element : &unknown));
    if (type->type == ABI_MAP) { /* values are scalars, and said to have no shape */
        clear_shape(&type->element->tensor);
        type->element->tensor.has_shape = false;
    }
    return NULL;
}

static OrtStatus *fill_type(OrtTypeInfo *type, const ort_type_info *info)
{
    static const enum abi_type types[] = {
        [ORT_TYPE_UNKNOWN] = ABI_UNKNOWN,   [ORT_TYPE_TENSOR] = ABI_TENSOR,
        [ORT_TYPE_SPARSE] = ABI_SPARSE,     [ORT_TYPE_SEQUENCE] = ABI_SEQUENCE,
        [ORT_TYPE_OPTIONAL] = ABI_OPTIONAL, [ORT_TYPE_MAP] = ABI_MAP,
        [ORT_TYPE_OPAQUE] = ABI_OPAQUE};
    type->type = types[info->kind];
    type->denotation = strdup(info->denotation ? info->denotation : "");
    if (!type->denotation)
        return abi_no_memory();
    if (type->type == ABI_MAP)
        type->key = abi_dtype_out(info->dtype);
    if (type->type == ABI_SEQUENCE || type->type == ABI_OPTIONAL || type->type == ABI_MAP)
        return fill_element(type, info->element);
    type->tensor.inside = true;
    type->tensor.dtype = abi_dtype_out(info->dtype);
    if (info->rank < 0)
        return NULL;
    return fill_shape(&type->tensor, (size_t)info->rank, info->dims, info->symbols);
}

static void free_type(OrtTypeInfo *type)
{
    if (!type)
        return;
    clear_shape(&type->tensor);
    free_type(type->element);
    free(type->denotation);
    free(type);
}

OrtStatus *abi_type_of(const ort_type_info *info, OrtTypeInfo **out)
{
    OrtTypeInfo *type = calloc(1, sizeof *type);
    if (!type)
        return abi_no_memory();
    OrtStatus *status = fill_type(type, info);
    if (status)
        free_type(type);
    else
        *out = type;
    return status;
}

void abi_ReleaseTypeInfo(OrtTypeInfo *type)
{
    if (type && !type->inside)
        free_type(type);
}

OrtStatus *abi_GetOnnxTypeFromTypeInfo(const OrtTypeInfo *type, int *out)
{
    *out = type->type;
    return NULL;
}

OrtStatus *abi_GetDenotationFromTypeInfo(const OrtTypeInfo *type, const char **out, size_t *length)
{
    *out = type->denotation;
    *length = strlen(type->denotation);
    return NULL;
}

OrtStatus *abi_CastTypeInfoToTensorInfo(const OrtTypeInfo *type,
                                        const OrtTensorTypeAndShapeInfo **out)
{
    *out = type->type == ABI_TENSOR || type->type == ABI_SPARSE ? &type->tensor : NULL;
    return NULL;
}

static OrtStatus *cast(const OrtTypeInfo *type, enum abi_type wanted, const OrtTypeInfo **out)
{
    *out = type->type == wanted ? type : NULL;
    return NULL;
}

OrtStatus *abi_CastTypeInfoToMapTypeInfo(const OrtTypeInfo *type, const OrtMapTypeInfo **out)
{
    return cast(type, ABI_MAP, out);
}

OrtStatus *abi_CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo *type,
                                              const OrtSequenceTypeInfo **out)
{
    return cast(type, ABI_SEQUENCE, out);
}

OrtStatus *abi_CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo *type,
                                              const OrtOptionalTypeInfo **out)
{
    return cast(type, ABI_OPTIONAL, out);
}

OrtStatus *abi_GetMapKeyType(const OrtMapTypeInfo *type, int *out)
{
    *out = type->key;
    return NULL;
}

/* The caller owns what these give: a copy. */
OrtStatus *abi_type_copy(const OrtTypeInfo *from, OrtTypeInfo **out)
{
    OrtTypeInfo *type = calloc(1, sizeof *type);
    if (!type)
        return abi_no_memory();
    type->type = from->type;
    type->key = from->key;
    type->denotation = strdup(from->denotation);
    OrtStatus *status = type->denotation ? NULL : abi_no_memory();
    type->tensor.dtype = from->tensor.dtype;
    type->tensor.inside = true;
    if (!status && from->tensor.has_shape)
        status = fill_shape(&type->tensor, from->tensor.rank, from->tensor.dims,
                            (const char *const *)from->tensor.symbols);
    if (!status && from->element) {
        status = abi_type_copy(from->element, &type->element);
        if (type->element)
            type->element->inside = true;
    }
    if (status)
        free_type(type);
    else
        *out = type;
    return status;
}

OrtStatus *abi_GetMapValueType(const OrtMapTypeInfo *type, OrtTypeInfo **out)
{
    return abi_type_copy(type->element, out);
}

OrtStatus *abi_GetSequenceElementType(const OrtSequenceTypeInfo *type, OrtTypeInfo **out)
{
    return abi_type_copy(type->element, out);
}

OrtStatus *abi_GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo *type, OrtTypeInfo **out)
{
    return abi_type_copy(type->element, out);
}

/* Clients release what a Cast gave them, too; it goes with its type. */
void abi_ReleaseMapTypeInfo(OrtMapTypeInfo *type) {}

void abi_ReleaseSequenceTypeInfo(OrtSequenceTypeInfo *type) {}

/* ------------------------------------------------------------------------------- of values -- */

/* The shapes that a value was made with; items of a sequence may differ in theirs. */
typedef struct description {
    ort_type_info info[4];
    size_t used;
} description;

static const ort_type_info *describe(description *d, const ort_value *value, bool shapes)
{
    if (d->used == sizeof d->info / sizeof *d->info)
        return NULL;
    ort_type_info *info = &d->info[d->used++];
    *info = (ort_type_info){.rank = -1};
    switch (ort_value_get_kind(value)) {
    case ORT_VALUE_TENSOR:
        info->kind = ORT_TYPE_TENSOR;
        info->dtype = ort_value_dtype(value);
        info->rank = shapes ? ort_value_rank(value) : -1;
        info->dims = ort_value_dims(value);
        break;
    case ORT_VALUE_SEQUENCE:
        info->kind = ORT_TYPE_SEQUENCE;
        info->element =
            ort_value_count(value) ? describe(d, ort_value_item(value, 0), false) : NULL;
        break;
    case ORT_VALUE_MAP:
        info->kind = ORT_TYPE_MAP;
        info->dtype = ort_value_dtype(ort_value_item(value, 0));
        info->element = describe(d, ort_value_item(value, 1), false);
        break;
    default:
        break;
    }
    return info;
}

OrtStatus *abi_GetTypeInfo(const OrtValue *value, OrtTypeInfo **out)
{
    ABI_CHECK(value && out, "value is NULL");
    *out = NULL;
    if (value->sparse) {
        const abi_sparse *sparse = value->sparse;
        ort_type_info info = {.kind = ORT_TYPE_SPARSE,
                              .dtype = abi_dtype_in(sparse->dtype),
                              .rank = (int)sparse->rank,
                              .dims = sparse->dims};
        return abi_type_of(&info, out);
    }
    if (ort_value_get_kind(value->value) == ORT_VALUE_NONE)
        return NULL;
    description d = {.used = 0};
    return abi_type_of(describe(&d, value->value, true), out);
}

OrtStatus *abi_GetValueType(const OrtValue *value, int *out)
{
    static const enum abi_type types[] = {[ORT_VALUE_NONE] = ABI_UNKNOWN,
                                          [ORT_VALUE_TENSOR] = ABI_TENSOR,
                                          [ORT_VALUE_SEQUENCE] = ABI_SEQUENCE,
                                          [ORT_VALUE_MAP] = ABI_MAP};
    *out = value->sparse ? ABI_SPARSE : types[ort_value_get_kind(value->value)];
    return NULL;
}

OrtStatus *abi_GetTensorTypeAndShape(const OrtValue *value, OrtTensorTypeAndShapeInfo **out)
{
    ABI_CHECK(value && out, "value is NULL");
    if (value->sparse)
        return abi_tensor_type(value->sparse->dtype, value->sparse->rank, value->sparse->dims, out);
    ABI_CHECK(ort_value_get_kind(value->value) == ORT_VALUE_TENSOR, "Argument is not a tensor");
    return abi_tensor_type(abi_dtype_out(ort_value_dtype(value->value)),
                           (size_t)ort_value_rank(value->value), ort_value_dims(value->value), out);
}

OrtStatus *abi_GetTensorElementTypeAndShapeDataReference(const OrtValue *value, int *type,
                                                         const int64_t **dims, size_t *count)
{
    ABI_CHECK(value, "value is NULL");
    if (value->sparse) {
        *type = value->sparse->dtype;
        *dims = value->sparse->dims;
        *count = value->sparse->rank;
        return NULL;
    }
    ABI_CHECK(ort_value_get_kind(value->value) == ORT_VALUE_TENSOR, "Argument is not a tensor");
    *type = abi_dtype_out(ort_value_dtype(value->value));
    *count = (size_t)ort_value_rank(value->value);
    *dims = *count ? ort_value_dims(value->value) : NULL;
    return NULL;
}

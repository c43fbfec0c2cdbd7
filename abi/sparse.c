/* sparse.c - sparse tensors as clients make and read them: values with their places, in one of
 * three formats. The library's own values are dense; a sparse one is kept here and not fed to a
 * model.
 */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

enum { COO = 1, CSR = 2, BLOCKS = 4 }; /* OrtSparseFormat */

void abi_sparse_free(abi_sparse *sparse)
{
    if (!sparse)
        return;
    ort_value_free(sparse->values);
    ort_value_free(sparse->indices[0]);
    ort_value_free(sparse->indices[1]);
    free(sparse);
}

static OrtStatus *make(const int64_t *dims, size_t rank, int type, OrtValue **out)
{
    ABI_CHECK(rank <= ABI_MAX_RANK, "%zu dimensions: at most %d", rank, ABI_MAX_RANK);
    ABI_CHECK(abi_dtype_in(type) != ORT_DTYPE_UNDEFINED, "Tensor element type %d is not supported",
              type);
    abi_sparse *sparse = calloc(1, sizeof *sparse);
    if (!sparse)
        return abi_no_memory();
    sparse->dtype = type;
    sparse->rank = rank;
    memcpy(sparse->dims, dims, rank * sizeof *dims);
    OrtStatus *status = abi_wrap(NULL, out);
    if (status)
        free(sparse);
    else
        (*out)->sparse = sparse;
    return status;
}

OrtStatus *abi_CreateSparseTensorAsOrtValue(OrtAllocator *allocator, const int64_t *dims,
                                            size_t rank, int type, OrtValue **out)
{
    ABI_CHECK(allocator && dims && out, "dense_shape is NULL");
    return make(dims, rank, type, out);
}

OrtStatus *abi_CreateSparseTensorWithValuesAsOrtValue(const OrtMemoryInfo *memory, void *data,
                                                      const int64_t *dims, size_t rank,
                                                      const int64_t *value_dims, size_t value_rank,
                                                      int type, OrtValue **out)
{
    ort_error err = ORT_ERROR_INIT;
    ABI_CHECK(memory && dims && value_dims && out, "values_shape is NULL");
    ABI_CHECK(type != ORT_DTYPE_STRING, "Use CreateSparseTensorAsOrtValue for strings");
    ABI_TRY(make(dims, rank, type, out));
    size_t count = 1;
    for (size_t i = 0; i < value_rank; i++)
        count *= (size_t)value_dims[i];
    ort_dtype dtype = abi_dtype_in(type);
    size_t bytes = count * (size_t)ort_dtype_bits(dtype) / 8;
    ort_status status = bytes ? ort_value_new_borrowed(dtype, (int)value_rank, value_dims, data,
                                                       bytes, &(*out)->sparse->values, &err)
                              : ort_value_new_tensor(dtype, (int)value_rank, value_dims,
                                                     &(*out)->sparse->values, &err);
    if (status == ORT_OK)
        return NULL;
    abi_ReleaseValue(*out);
    *out = NULL;
    return abi_from_error(&err);
}

static OrtStatus *check_sparse(const OrtValue *value)
{
    ABI_CHECK(value, "value is NULL");
    ABI_CHECK(value->sparse, "Argument is not a sparse tensor");
    return NULL;
}

/* ---------------------------------------------------------------------------- copies of data */

static OrtStatus *copy_values(abi_sparse *sparse, const int64_t *dims, size_t rank,
                              const void *values)
{
    ort_error err = ORT_ERROR_INIT;
    ort_value *made;
    if (ort_value_new_tensor(abi_dtype_in(sparse->dtype), (int)rank, dims, &made, &err) != ORT_OK)
        return abi_from_error(&err);
    const char *const *texts = values;
    ort_status status = ORT_OK;
    if (sparse->dtype == ORT_DTYPE_STRING)
        for (int64_t i = 0; status == ORT_OK && i < ort_value_count(made); i++)
            status = ort_value_set_string(made, i, texts[i], strlen(texts[i]), &err);
    else if (ort_value_bytes(made))
        memcpy(ort_value_data(made), values, ort_value_bytes(made));
    if (status != ORT_OK) {
        ort_value_free(made);
        return abi_from_error(&err);
    }
    ort_value_free(sparse->values);
    sparse->values = made;
    return NULL;
}

static OrtStatus *copy_indices(abi_sparse *sparse, int place, ort_dtype dtype, const int64_t *dims,
                               size_t rank, const void *indices)
{
    ort_error err = ORT_ERROR_INIT;
    ort_value *made;
    if (ort_value_new_tensor(dtype, (int)rank, dims, &made, &err) != ORT_OK)
        return abi_from_error(&err);
    if (ort_value_bytes(made))
        memcpy(ort_value_data(made), indices, ort_value_bytes(made));
    ort_value_free(sparse->indices[place]);
    sparse->indices[place] = made;
    return NULL;
}

static OrtStatus *use_indices(abi_sparse *sparse, int place, ort_dtype dtype, const int64_t *dims,
                              size_t rank, void *indices, size_t bytes)
{
    ort_error err = ORT_ERROR_INIT;
    ort_value *made;
    ort_status status =
        bytes ? ort_value_new_borrowed(dtype, (int)rank, dims, indices, bytes, &made, &err)
              : ort_value_new_tensor(dtype, (int)rank, dims, &made, &err);
    if (status != ORT_OK)
        return abi_from_error(&err);
    ort_value_free(sparse->indices[place]);
    sparse->indices[place] = made;
    return NULL;
}

/* Places of `count` values: one number each, or row and column. */
static OrtStatus *coo_dims(const abi_sparse *sparse, const int64_t *places, size_t numbers,
                           int64_t count, int64_t dims[2], size_t *rank)
{
    bool pairs = numbers == 2 * (size_t)count && count;
    ABI_CHECK(pairs || numbers == (size_t)count,
              "COO indices count must be equal to or twice the values count.");
    ABI_CHECK(!pairs || sparse->rank == 2, "COO pairs need a dense shape of 2 dimensions");
    int64_t size = 1;
    for (size_t i = 0; i < sparse->rank; i++)
        size *= sparse->dims[i];
    for (int64_t i = 0; i < count; i++) {
        const int64_t *at = places + (pairs ? 2 : 1) * i;
        bool in =
            pairs ? at[0] >= 0 && at[0] < sparse->dims[0] && at[1] >= 0 && at[1] < sparse->dims[1]
                  : *at >= 0 && *at < size;
        ABI_CHECK(in, "COO %s index out of bounds", pairs ? "2D" : "linear");
    }
    dims[0] = count;
    dims[1] = 2;
    *rank = pairs ? 2 : 1;
    return NULL;
}

static OrtStatus *check_csr(const abi_sparse *sparse, int64_t values, const int64_t *inner,
                            size_t inner_count, const int64_t *outer, size_t outer_count)
{
    ABI_CHECK(sparse->rank == 2, "Dense shape must be 2-D for CSR, it has %zu dimensions",
              sparse->rank);
    ABI_CHECK(inner_count == (size_t)values,
              "Expecting inner index size: %zu the same as values size: %lld", inner_count,
              (long long)values);
    if (!outer_count && !values)
        return NULL;
    ABI_CHECK(outer_count && outer[outer_count - 1] == values,
              "CSR outer index last element must equal inner index count (%zu), got: %lld",
              inner_count, outer_count ? (long long)outer[outer_count - 1] : 0);
    ABI_CHECK(outer_count == (size_t)sparse->dims[0] + 1,
              "Outer index count must be rows + 1 or zero. Got: %zu rows: %lld", outer_count,
              (long long)sparse->dims[0]);
    for (size_t i = 0; i < inner_count; i++)
        ABI_CHECK(inner[i] >= 0 && inner[i] < sparse->dims[1],
                  "CSR inner index value out of bounds");
    for (size_t i = 1; i < outer_count; i++)
        ABI_CHECK(outer[i] >= outer[i - 1], "CSR outer indices must not decrease");
    return NULL;
}

/* Places are columns of [2, blocks]; values are [rows of a block, columns of a block, blocks]. */
static OrtStatus *check_blocks(const int64_t *value_dims, size_t value_rank,
                               const int64_t *index_dims, size_t index_rank)
{
    ABI_CHECK(value_rank >= 3, "Expecting to have at lest 3-D shape. Got: %zu", value_rank);
    ABI_CHECK(index_rank == 2 && index_dims[0] == 2,
              "Indices must be 2-D with 2 rows, they have %zu dimensions", index_rank);
    int64_t blocks = 1;
    for (size_t i = 2; i < value_rank; i++)
        blocks *= value_dims[i];
    if (index_dims[1] == blocks)
        return NULL;
    return abi_fail(ABI_FAIL, "Expecting index blocks: %lld to be equal to values blocks: %lld",
                    (long long)index_dims[1], (long long)blocks);
}

OrtStatus *abi_FillSparseTensorCoo(OrtValue *value, const OrtMemoryInfo *memory,
                                   const int64_t *value_dims, size_t value_rank, const void *values,
                                   const int64_t *indices, size_t count)
{
    int64_t dims[2];
    size_t rank;
    ABI_TRY(check_sparse(value));
    abi_sparse *sparse = value->sparse;
    ABI_TRY(copy_values(sparse, value_dims, value_rank, values));
    ABI_TRY(coo_dims(sparse, indices, count, ort_value_count(sparse->values), dims, &rank));
    ABI_TRY(copy_indices(sparse, 0, ORT_DTYPE_INT64, dims, rank, indices));
    sparse->format = COO;
    return NULL;
}

OrtStatus *abi_FillSparseTensorCsr(OrtValue *value, const OrtMemoryInfo *memory,
                                   const int64_t *value_dims, size_t value_rank, const void *values,
                                   const int64_t *inner, size_t inner_count, const int64_t *outer,
                                   size_t outer_count)
{
    ABI_TRY(check_sparse(value));
    abi_sparse *sparse = value->sparse;
    ABI_TRY(copy_values(sparse, value_dims, value_rank, values));
    ABI_TRY(
        check_csr(sparse, ort_value_count(sparse->values), inner, inner_count, outer, outer_count));
    int64_t inner_dims = (int64_t)inner_count, outer_dims = (int64_t)outer_count;
    ABI_TRY(copy_indices(sparse, 0, ORT_DTYPE_INT64, &inner_dims, 1, inner));
    ABI_TRY(copy_indices(sparse, 1, ORT_DTYPE_INT64, &outer_dims, 1, outer));
    sparse->format = CSR;
    return NULL;
}

OrtStatus *abi_FillSparseTensorBlockSparse(OrtValue *value, const OrtMemoryInfo *memory,
                                           const int64_t *value_dims, size_t value_rank,
                                           const void *values, const int64_t *index_dims,
                                           size_t index_rank, const int32_t *indices)
{
    ABI_TRY(check_sparse(value));
    abi_sparse *sparse = value->sparse;
    ABI_TRY(check_blocks(value_dims, value_rank, index_dims, index_rank));
    ABI_TRY(copy_values(sparse, value_dims, value_rank, values));
    ABI_TRY(copy_indices(sparse, 0, ORT_DTYPE_INT32, index_dims, index_rank, indices));
    sparse->format = BLOCKS;
    return NULL;
}

/* ------------------------------------------------------------------- on memory of the client */

OrtStatus *abi_UseCooIndices(OrtValue *value, int64_t *indices, size_t count)
{
    int64_t dims[2];
    size_t rank;
    ABI_TRY(check_sparse(value));
    ABI_CHECK(value->sparse->values, "The sparse tensor has no values");
    ABI_TRY(coo_dims(value->sparse, indices, count, ort_value_count(value->sparse->values), dims,
                     &rank));
    ABI_TRY(use_indices(value->sparse, 0, ORT_DTYPE_INT64, dims, rank, indices,
                        count * sizeof *indices));
    value->sparse->format = COO;
    return NULL;
}

OrtStatus *abi_UseCsrIndices(OrtValue *value, int64_t *inner, size_t inner_count, int64_t *outer,
                             size_t outer_count)
{
    ABI_TRY(check_sparse(value));
    abi_sparse *sparse = value->sparse;
    ABI_CHECK(sparse->values, "The sparse tensor has no values");
    ABI_TRY(
        check_csr(sparse, ort_value_count(sparse->values), inner, inner_count, outer, outer_count));
    int64_t inner_dims = (int64_t)inner_count, outer_dims = (int64_t)outer_count;
    ABI_TRY(use_indices(sparse, 0, ORT_DTYPE_INT64, &inner_dims, 1, inner,
                        inner_count * sizeof *inner));
    ABI_TRY(use_indices(sparse, 1, ORT_DTYPE_INT64, &outer_dims, 1, outer,
                        outer_count * sizeof *outer));
    sparse->format = CSR;
    return NULL;
}

OrtStatus *abi_UseBlockSparseIndices(OrtValue *value, const int64_t *dims, size_t rank,
                                     int32_t *indices)
{
    ABI_TRY(check_sparse(value));
    size_t count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    ABI_TRY(use_indices(value->sparse, 0, ORT_DTYPE_INT32, dims, rank, indices,
                        count * sizeof *indices));
    value->sparse->format = BLOCKS;
    return NULL;
}

/* ----------------------------------------------------------------------------------- reading */

OrtStatus *abi_IsSparseTensor(const OrtValue *value, int *out)
{
    *out = value->sparse ? 1 : 0;
    return NULL;
}

OrtStatus *abi_GetSparseTensorFormat(const OrtValue *value, int *out)
{
    ABI_TRY(check_sparse(value));
    *out = value->sparse->format;
    return NULL;
}

static OrtStatus *type_of(const ort_value *part, OrtTensorTypeAndShapeInfo **out)
{
    ABI_CHECK(part, "The sparse tensor doesn't hold what is asked for");
    return abi_tensor_type(abi_dtype_out(ort_value_dtype(part)), (size_t)ort_value_rank(part),
                           ort_value_dims(part), out);
}

OrtStatus *abi_GetSparseTensorValuesTypeAndShape(const OrtValue *value,
                                                 OrtTensorTypeAndShapeInfo **out)
{
    ABI_TRY(check_sparse(value));
    return type_of(value->sparse->values, out);
}

OrtStatus *abi_GetSparseTensorValues(const OrtValue *value, const void **out)
{
    ABI_TRY(check_sparse(value));
    ABI_CHECK(value->sparse->values, "The sparse tensor has no values");
    ABI_CHECK(value->sparse->dtype != ORT_DTYPE_STRING, "Use GetStringTensor*() API to retrieve "
                                                        "strings");
    *out = ort_value_data(value->sparse->values);
    return NULL;
}

/* OrtSparseIndicesFormat: 0 COO, 1 and 2 inner and outer of CSR, 3 blocks. */
static OrtStatus *find_indices(const OrtValue *value, int which, ort_value **out)
{
    static const struct {
        int format, place;
    } places[] = {{COO, 0}, {CSR, 0}, {CSR, 1}, {BLOCKS, 0}};
    ABI_TRY(check_sparse(value));
    ABI_CHECK(which >= 0 && which < 4, "Unsupported indices_format passed");
    ABI_CHECK(value->sparse->format == places[which].format,
              "The sparse tensor has indices of another format");
    *out = value->sparse->indices[places[which].place];
    return NULL;
}

OrtStatus *abi_GetSparseTensorIndicesTypeShape(const OrtValue *value, int which,
                                               OrtTensorTypeAndShapeInfo **out)
{
    ort_value *indices = NULL;
    ABI_TRY(find_indices(value, which, &indices));
    return type_of(indices, out);
}

OrtStatus *abi_GetSparseTensorIndices(const OrtValue *value, int which, size_t *count,
                                      const void **out)
{
    ort_value *indices = NULL;
    ABI_TRY(find_indices(value, which, &indices));
    *count = (size_t)ort_value_count(indices);
    *out = ort_value_data(indices);
    return NULL;
}

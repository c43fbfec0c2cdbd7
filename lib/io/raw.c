/* raw.c - the bytes of one tensor and nothing else: type and shape come from the caller. */
#include <assert.h>
#include <string.h>

#include "io/format.h"
#include "io/purpose.h"

static ort_status read_file(const unsigned char *bytes, size_t count,
                            const ort_read_options *options, ort_tensors *tensors, ort_error *err)
{
    if (options->dtype == ORT_DTYPE_UNDEFINED || options->dtype == ORT_DTYPE_STRING)
        return ort_error_set(err, ORT_ERROR_USAGE, "raw bytes need an element type and a shape");
    /* Sub-byte types fill their last byte. */
    size_t bits = (size_t)ort_dtype_bits(options->dtype), needed = 0;
    ort_shape shape;
    ort_value *value = NULL;
    assert(bits > 0);
    ORT_TRY(ort_purpose_shape(options, (int64_t)(count / bits * 8 + count % bits * 8 / bits),
                              &shape, err));
    ORT_TRY(ort_shape_check(&shape, options->dtype, err));
    ort_dtype_bytes(options->dtype, ort_shape_count(&shape), &needed);
    if (needed != count) { /* before so much memory is asked for */
        char text[128];
        return ort_error_set(err, ORT_ERROR_DATA, "has %zu bytes, %s %s needs %zu", count,
                             ort_dtype_name(options->dtype),
                             ort_shape_format(&shape, text, sizeof text), needed);
    }
    ORT_TRY(ort_value_new_tensor_(options->dtype, &shape, &value, err));
    if (count)
        memcpy(value->tensor.data, bytes, count);
    return ort_tensors_add_take(tensors, "", value, err);
}

/* 0 where type and shape leave it open. */
static size_t record_bytes(const ort_read_options *options)
{
    size_t bytes = 0;
    if (options->dtype == ORT_DTYPE_UNDEFINED || options->dtype == ORT_DTYPE_STRING ||
        options->rank < 0 || options->rank > ORT_MAX_RANK)
        return 0;
    ort_shape shape = ort_shape_make(options->rank, options->dims);
    return ort_shape_check(&shape, options->dtype, NULL) == ORT_OK &&
                   ort_dtype_bytes(options->dtype, ort_shape_count(&shape), &bytes)
               ? bytes
               : 0;
}

static ort_status read_record(ort_input *in, const ort_read_options *options, ort_tensors *tensors,
                              ort_error *err)
{
    ort_shape shape = ort_shape_make(options->rank, options->dims);
    ort_value *value = NULL;
    assert(record_bytes(options) > 0); /* the caller asked */
    ORT_TRY(ort_value_new_tensor_(options->dtype, &shape, &value, err));
    ort_status status = ort_input_need(in, value->tensor.data, record_bytes(options),
                                       "a raw tensor of that type and shape", err);
    if (status == ORT_OK)
        return ort_tensors_add_take(tensors, "", value, err);
    ort_value_free(value);
    return status;
}

static ort_status write_file(const ort_tensors *tensors, FILE *stream,
                             const ort_write_options *options, ort_error *err)
{
    const ort_tensor *t;
    ORT_TRY(ort_format_single(tensors, "raw", &t, err));
    if (t->dtype == ORT_DTYPE_STRING)
        return ort_format_lacks(err, "raw", t->dtype);
    size_t bytes = ort_tensor_bytes(t);
    if (bytes)
        fwrite(t->data, 1, bytes, stream);
    return ORT_OK;
}

/* Whose type and shape are told. */
static ort_status claims(const ort_format_guess *guess, bool *mine, ort_error *err)
{
    *mine = guess->options->dtype != ORT_DTYPE_UNDEFINED && guess->options->rank != 0;
    return ORT_OK;
}

const ort_format_row ort_format_row_raw = {
    .format = ORT_FORMAT_RAW,
    .name = "raw",
    .endings = "raw bin",
    .traits = ORT_FORMAT_UNTYPED | ORT_FORMAT_TAKES_DTYPE | ORT_FORMAT_TAKES_DIMS,
    .claims = claims,
    .read_record = read_record,
    .record_bytes = record_bytes,
    .read = read_file,
    .write = write_file,
};

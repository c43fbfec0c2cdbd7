/* format.h - the registry of tensor formats: one const row per format, one file per format.
 *
 * Readers and writers leave the label of the file to their callers: their messages start with what
 * was wrong. A reader adds values to `tensors`; what it leaves there on failure is thrown away. */
#ifndef ORT_IO_FORMAT_H
#define ORT_IO_FORMAT_H

#include "base/json.h"
#include "io/framing.h"
#include "io/input.h"
#include "io/tensors.h"

/* What a caller of ort.h asks for, completed by `own`; NULL: refused, err says why. */
const ort_read_options *ort_read_options_known(const ort_read_options *given, ort_read_options *own,
                                               ort_error *err);

typedef struct ort_format_row {
    ort_format format;
    const char *name;
    const char *extensions; /* space-separated, the usual one first */
    bool (*matches)(const unsigned char *bytes, size_t count); /* NULL: content says nothing */
    /* Formats that parse as they read take one record from a stream; the others get its bytes. */
    ort_status (*read_record)(ort_input *in, const ort_read_options *options, ort_tensors *tensors,
                              ort_error *err);
    ort_status (*read)(const unsigned char *bytes, size_t count, const ort_read_options *options,
                       ort_tensors *tensors, ort_error *err);
    ort_frame_fn *frame; /* of those: where the bytes of a record end; NULL: with the stream */
    ort_status (*write)(const ort_tensors *tensors, FILE *stream, const ort_write_options *options,
                        ort_error *err);
} ort_format_row;

/* The row of `format`, NULL for AUTO and unknown numbers. */
const ort_format_row *ort_format_get(ort_format format);
/* By content (up to the first `count` bytes); NULL when it says nothing. */
const ort_format_row *ort_format_detect(const unsigned char *bytes, size_t count);
/* Extension of a path without its dot, "" when it has none. */
const char *ort_path_extension(const char *path);

/* The one tensor that a format without room for more can hold. */
ort_status ort_format_single(const ort_tensors *tensors, const char *format,
                             const ort_tensor **tensor, ort_error *err);
/* "X has no NAME; A, B have it". */
ort_status ort_format_lacks(ort_error *err, const char *format, ort_dtype dtype);

/* -------------------------------------------------------------------- one group per format -- */

ort_status ort_npy_read(ort_input *in, const ort_read_options *options, ort_tensors *tensors,
                        ort_error *err);
ort_status ort_npy_write(const ort_tensors *tensors, FILE *stream,
                         const ort_write_options *options, ort_error *err);
/* One array; dtype names the element type of raw ("V") arrays, or UNDEFINED. */
ort_status ort_npy_read_value(ort_input *in, ort_dtype dtype, ort_value **value, ort_error *err);

/* An array as .npy bytes: a header, then a payload that borrows the tensor's data where it can. */
typedef struct ort_npy_bytes {
    ort_strbuf header;
    const void *payload;
    size_t payload_bytes;
    void *owned; /* the payload when it had to be made */
} ort_npy_bytes;
/* `utf8`: strings as bytes ("S"), else as UTF-32 ("U"). Types without a numpy name are written as
 * unsigned integers of their size, packed ones as a flat array of bytes. */
ort_status ort_npy_encode(const ort_tensor *tensor, bool utf8, ort_npy_bytes *out, ort_error *err);
void ort_npy_release(ort_npy_bytes *bytes);

ort_status ort_npz_read(ort_input *in, const ort_read_options *options, ort_tensors *tensors,
                        ort_error *err);
ort_status ort_npz_write(const ort_tensors *tensors, FILE *stream,
                         const ort_write_options *options, ort_error *err);

ort_status ort_safetensors_read(const unsigned char *bytes, size_t count,
                                const ort_read_options *options, ort_tensors *tensors,
                                ort_error *err);
ort_status ort_safetensors_write(const ort_tensors *tensors, FILE *stream,
                                 const ort_write_options *options, ort_error *err);

ort_status ort_tensor_json_read(const unsigned char *bytes, size_t count,
                                const ort_read_options *options, ort_tensors *tensors,
                                ort_error *err);
ort_status ort_tensor_json_write(const ort_tensors *tensors, FILE *stream,
                                 const ort_write_options *options, ort_error *err);
/* One value from JSON text. */
ort_status ort_tensor_json_parse(const char *text, size_t length, ort_dtype dtype,
                                 ort_value **value, ort_error *err);
/* JSON is text: strings of other bytes are refused, they would change silently. */
ort_status ort_tensor_json_check(const ort_value *value, ort_error *err);
void ort_tensor_json_add(ort_json *json, const ort_value *value);

ort_status ort_csv_read(const unsigned char *bytes, size_t count, const ort_read_options *options,
                        ort_tensors *tensors, ort_error *err);
/* Is text that no name gives a format a table, whose first row names a purpose? */
ort_status ort_csv_is_wanted(const unsigned char *bytes, size_t count,
                             const ort_read_options *options, bool *wanted, ort_error *err);
ort_status ort_csv_write(const ort_tensors *tensors, FILE *stream,
                         const ort_write_options *options, ort_error *err);

ort_status ort_raw_read(const unsigned char *bytes, size_t count, const ort_read_options *options,
                        ort_tensors *tensors, ort_error *err);
/* Bytes of a record of raw tensors: 0 where type and shape leave it open. */
size_t ort_raw_record_bytes(const ort_read_options *options);
ort_status ort_raw_read_record(ort_input *in, const ort_read_options *options, ort_tensors *tensors,
                               ort_error *err);
ort_status ort_raw_write(const ort_tensors *tensors, FILE *stream,
                         const ort_write_options *options, ort_error *err);

ort_status ort_image_read(const unsigned char *bytes, size_t count, const ort_read_options *options,
                          ort_tensors *tensors, ort_error *err);
ort_status ort_image_write(const ort_tensors *tensors, FILE *stream,
                           const ort_write_options *options, ort_error *err);

ort_status ort_wav_read(const unsigned char *bytes, size_t count, const ort_read_options *options,
                        ort_tensors *tensors, ort_error *err);
ort_status ort_wav_write(const ort_tensors *tensors, FILE *stream,
                         const ort_write_options *options, ort_error *err);

#endif

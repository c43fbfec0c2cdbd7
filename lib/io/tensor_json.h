/* tensor_json.h - values as JSON, for files of it and members of archives. */
#ifndef ORT_IO_TENSOR_JSON_H
#define ORT_IO_TENSOR_JSON_H

#include "base/json.h"
#include "io/tensors.h"

struct json_object; /* of json-c */

/* Arrays and objects that are read inside each other, and values of them. */
enum { ORT_JSON_DEEPEST = 64, ORT_JSON_DEEPEST_VALUE = 24 };

/* Text that should be a JSON object, which is the caller's to put; *root NULL: it is none. */
ort_status ort_json_parse_object(const void *text, size_t length, struct json_object **root,
                                 ort_error *err);
/* One value from JSON text. */
ort_status ort_tensor_json_parse(const char *text, size_t length, ort_dtype dtype,
                                 ort_value **value, ort_error *err);
/* JSON is text: strings of other bytes are refused, they would change silently. */
ort_status ort_tensor_json_check(const ort_value *value, ort_error *err);
/* The members "dtype" and "shape" of an object that is open. */
void ort_tensor_json_add_type(ort_json *json, const char *dtype, const ort_shape *shape);
void ort_tensor_json_add(ort_json *json, const ort_value *value);
ort_status ort_tensor_json_write(const ort_tensors *tensors, FILE *stream,
                                 const ort_write_options *options, ort_error *err);

#endif

/* purpose.h - the model's input or output that a value of a file is for (ort_purpose of ort.h).
 * Where a file doesn't say the type of a value, the type of that input or output decides: for
 * numbers in text, and for bytes that could be read as several kinds of value.
 */
#ifndef ORT_IO_PURPOSE_H
#define ORT_IO_PURPOSE_H

#include "tensor/tensor.h"

/* The purpose of that name, else (of values without a name) that of `position`; NULL: none. */
const ort_purpose *ort_purpose_find(const ort_read_options *options, const char *name,
                                    size_t position);
/* The element type of text that says none: what the caller wants, else what the purpose says. */
ort_dtype ort_purpose_dtype(const ort_read_options *options, const ort_purpose *purpose);
/* One element may be written without the brackets that its rank asks for, or with more. */
void ort_purpose_fit_single(const ort_purpose *purpose, ort_value *value);
/* The shape that the caller asks for, its open size filled in for `count` elements. */
ort_status ort_purpose_shape(const ort_read_options *options, int64_t count, ort_shape *shape,
                             ort_error *err);

#endif

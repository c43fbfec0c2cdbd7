/* mapped.h - large arrays of a file as values whose bytes come with the file's pages when they are
 * read, so that samples can be taken one by one out of a file that memory couldn't hold.
 */
#ifndef ORT_IO_MAPPED_H
#define ORT_IO_MAPPED_H

#include "io/input.h"
#include "tensor/tensor.h"

/* The next bytes of `in` as a tensor; *value stays NULL where they are few, lie where the element
 * type can't be read, or `in` is no regular file: read them then. */
ort_status ort_mapped_value(ort_input *in, ort_dtype dtype, const ort_shape *shape,
                            ort_value **value, ort_error *err);

#endif

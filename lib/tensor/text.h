/* text.h - numbers as the texts that ONNX Cast and reports show, and back. */
#ifndef ORT_TENSOR_TEXT_H
#define ORT_TENSOR_TEXT_H

#include "base/strbuf.h"
#include "tensor/tensor.h"

/* Appends element `index` (contiguous data; strings as they are): shortest digits that read back to
 * the same value, "3.14", "1.0", "1e-05", "NaN", "INF", "-INF", "True", "(1.0+2.0j)". */
void ort_text_add_element(ort_strbuf *out, const ort_tensor *t, int64_t index);

/* Stores the number that `text` spells into element `index`; false when it spells none. */
bool ort_text_parse_element(ort_tensor *t, int64_t index, const char *text, size_t length,
                            const ort_cast_options *options);
/* The same for integer types, of data and not as Cast has it: false, too, where the type can't hold
 * the number as it is. "12.0" is an integer, as tables have it that held missing values once. */
bool ort_text_parse_integer(ort_tensor *t, int64_t index, const char *text, size_t length);

#endif

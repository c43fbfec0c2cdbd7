/* wire_list.h - long lists in attributes, which stay in the input (wire.h). A payload is either one
 * packed field, or a run of fields that hold an element each, with their tags. When the model is
 * saved, the payload is written as it is.
 */
#ifndef ORT_IO_WIRE_LIST_H
#define ORT_IO_WIRE_LIST_H

#include "io/wire.h"
#include "tensor/tensor.h"

/* The end of the run of like fields at `at` < end, each a tag of one byte and an element; *elements
 * counts them. It ends before what isn't of the field, is broken, or is rare. */
size_t ort_wire_list_scan(const uint8_t *bytes, size_t at, size_t end, size_t *elements);
/* Behind the run of fields at `at` with this tag: lists that stay in the skeleton have thousands of
 * elements in a row too, a field each. */
size_t ort_wire_skip_like(const uint8_t *bytes, size_t at, size_t end, uint64_t tag);
/* The elements of the value of one field, a packed one or not, which is whole. */
size_t ort_wire_list_count(uint32_t field, const uint8_t *value, size_t count, bool packed);

/* The elements of a payload, list->elements of them; return where the next one goes. Texts need
 * list->count bytes at `text`; each is followed by a NUL. */
void *ort_wire_list_numbers(const ort_wire_payload *list, void *out); /* int64_t or float */
ort_string *ort_wire_list_strings(const ort_wire_payload *list, ort_string *out, char *text);

#endif

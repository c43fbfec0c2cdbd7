/* tensors.h - named values in order, as readers of files fill them. Callers have the calls of
 * ort.h; the library sees what a list is made of. */
#ifndef ORT_IO_TENSORS_H
#define ORT_IO_TENSORS_H

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "tensor/tensor.h"

typedef struct ort_tensors_entry {
    const char *name; /* in `names`; "" when unnamed */
    ort_value *value;
} ort_tensors_entry;

struct ort_tensors { /* declared in ort.h */
    ORT_VEC(ort_tensors_entry) list;
    ORT_VEC(const char *) sources; /* names of the files it was made of; in `names` */
    ORT_VEC(ort_tensors_entry) columns; /* go with the rows of the values, and are none */
    ort_arena names;
    ort_hashmap index; /* of the first `indexed` of them, by name: made where there are many */
    size_t indexed;
    int sample_rate; /* of sound; or 0 */
};

/* What a reader returns at its end: the value that it made, or, where it failed, none. */
static inline ort_status ort_value_hand(ort_status status, ort_value *made, ort_value **value)
{
    *value = status == ORT_OK ? made : NULL;
    if (status != ORT_OK)
        ort_value_free(made);
    return status;
}

/* Adds a value and takes its reference (also on failure). */
ort_status ort_tensors_add_take(ort_tensors *tensors, const char *name, ort_value *value,
                                ort_error *err);
ort_status ort_tensors_add_column_take(ort_tensors *tensors, const char *name, ort_value *value,
                                       ort_error *err);
/* What value `index` is called where each needs a name: its own, or numpy's arr_INDEX in `text`. */
const char *ort_tensors_full_name(const ort_tensors *tensors, size_t index, char text[32]);
/* Takes entry `at` out of the list; its value is the caller's. */
ort_value *ort_tensors_take_at(ort_tensors *tensors, size_t at);

#endif

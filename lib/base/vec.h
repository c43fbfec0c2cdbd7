/* vec.h - typed growing arrays: `ORT_VEC(int) v = {0}; if (!ort_vec_push(&v, 3)) goto oom;` */
#ifndef ORT_BASE_VEC_H
#define ORT_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define ORT_VEC(type)                                                                              \
    struct {                                                                                       \
        type *data;                                                                                \
        size_t count, capacity;                                                                    \
    }

/* Room for `wanted` elements of `size` bytes; false when memory is exhausted (contents kept). */
bool ort_vec_grow_(void **data, size_t *capacity, size_t wanted, size_t size);

#define ort_vec_reserve(v, wanted)                                                                 \
    ort_vec_grow_((void **)&(v)->data, &(v)->capacity, (wanted), sizeof *(v)->data)
#define ort_vec_push(v, ...)                                                                       \
    (ort_vec_reserve((v), (v)->count + 1) ? ((v)->data[(v)->count++] = (__VA_ARGS__), true) : false)
#define ort_vec_pop(v) ((v)->data[--(v)->count])
#define ort_vec_clear(v) ((v)->count = 0)
#define ort_vec_release(v) (free((v)->data), (v)->data = NULL, (v)->count = (v)->capacity = 0)

#endif

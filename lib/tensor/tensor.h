/* tensor.h - shapes, tensors (views) and values (what flows along an edge).
 *
 * A tensor is a view: element type, shape, data. It owns nothing. `stride` is NULL for contiguous
 * row-major data (what kernels may assume but for caches that grow in place, op.h: ort_appends);
 * otherwise one element stride per axis.
 * Sub-byte elements are packed as ONNX packs them (first element in the low bits).
 * Strings are ort_string records (pointer, length); their bytes belong to whoever owns the value.
 *
 * A value is reference-counted and holds a tensor, a sequence of values, a map (two one-dimensional
 * tensors: keys and values), or nothing (an absent optional).
 */
#ifndef ORT_TENSOR_TENSOR_H
#define ORT_TENSOR_TENSOR_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/budget.h"
#include "base/error.h"
#include "tensor/dtype.h"

#define ORT_MAX_RANK 16

typedef struct ort_shape {
    int rank;
    int64_t dim[ORT_MAX_RANK];
} ort_shape;

/* Product of the dims (1 for a scalar). Dims must be checked before (ort_shape_check). */
int64_t ort_shape_count(const ort_shape *shape);
/* Product of dims [first, last). */
int64_t ort_shape_count_range(const ort_shape *shape, int first, int last);
bool ort_shape_equal(const ort_shape *a, const ort_shape *b);
/* Refuses negative dims and products beyond PTRDIFF_MAX bytes of `dtype`. */
ort_status ort_shape_check(const ort_shape *shape, ort_dtype dtype, ort_error *err);
/* numpy broadcasting of b onto a into *out (may alias); false when they don't fit. */
bool ort_shape_broadcast(const ort_shape *a, const ort_shape *b, ort_shape *out);
/* Row-major element strides; broadcast: 0 where `in` has 1 and `out` has not; aligned right. */
void ort_shape_strides(const ort_shape *shape, int64_t *stride);
void ort_shape_broadcast_strides(const ort_shape *in, const ort_shape *out, int64_t *stride);
/* "1x3x224x224", "scalar" -> "[]". Writes at most `size` bytes with the NUL; returns `text`. */
char *ort_shape_format(const ort_shape *shape, char *text, size_t size);
/* "1,3,224,224", to stand in brackets behind a type, as types are printed; "" of a scalar. */
char *ort_shape_list(const ort_shape *shape, char *text, size_t size);
ort_shape ort_shape_make(int rank, const int64_t *dims);

struct ort_string { /* declared in ort.h */
    const char *ptr; /* not NUL-terminated; may be NULL when length is 0 */
    size_t length;
};

struct ort_tensor {
    ort_dtype dtype;
    ort_shape shape;
    const int64_t *stride; /* NULL: contiguous */
    void *data;            /* may be NULL while only type and shape are known, or when empty */
};

static inline int64_t ort_tensor_count(const ort_tensor *t) { return ort_shape_count(&t->shape); }
/* Bytes of a contiguous tensor of this type and shape (shape already checked). */
size_t ort_tensor_bytes(const ort_tensor *t);
/* Element `index` (row-major) of any numeric or bool type, as int64 / double. Floats are truncated
 * by the int64 form. Not for strings and complex. */
int64_t ort_tensor_get_i64(const ort_tensor *t, int64_t index);
double ort_tensor_get_f64(const ort_tensor *t, int64_t index);
/* Store with conversion (round to nearest even, integers wrap modulo 2^bits). */
void ort_tensor_set_i64(ort_tensor *t, int64_t index, int64_t value);
void ort_tensor_set_f64(ort_tensor *t, int64_t index, double value);
/* Copy contiguous data; same dtype and count. String records are copied, not their bytes. */
void ort_tensor_copy_data(ort_tensor *dst, const ort_tensor *src);

/* Elementwise conversion of contiguous data with ONNX Cast semantics (float to int truncates toward
 * zero, to bool is != 0, strings are parsed and printed). saturate and round_mode as in Cast-24.
 * String outputs are allocated with `alloc(arg, bytes)`. dst->data is written; dst->shape must have
 * the same count as src->shape. */
typedef struct ort_cast_options {
    bool saturate;   /* float8, float6 and float4 targets */
    char round_mode; /* 'u', 'd', 'n' for float8e8m0 */
    void *(*alloc)(void *arg, size_t bytes);
    void *alloc_arg;
} ort_cast_options;
ort_status ort_tensor_cast(ort_tensor *dst, const ort_tensor *src, const ort_cast_options *options,
                           ort_error *err);
/* The same between types that are neither strings nor without a class, which can't fail. NULL
 * options: those that Cast has by itself. */
void ort_tensor_convert(ort_tensor *dst, const ort_tensor *src, const ort_cast_options *options);
/* Any float-class or integer tensor to float32 and back (bulk, no saturation): how low-precision
 * types compute. `out` holds count floats. */
void ort_tensor_to_f32(const ort_tensor *src, int64_t first, int64_t count, float *out);
void ort_tensor_from_f32(const float *in, ort_tensor *dst, int64_t first, int64_t count);

typedef enum ort_kind {
    ORT_KIND_NONE, /* an absent optional */
    ORT_KIND_TENSOR,
    ORT_KIND_SEQUENCE,
    ORT_KIND_MAP,
    ORT_KIND_DEVICE, /* a tensor without data here: exec/away.h; callers see a tensor */
} ort_kind;

struct ort_value { /* declared in ort.h */
    ort_kind kind;
    int references;      /* atomic */
    ort_tensor tensor;   /* ORT_KIND_TENSOR */
    struct ort_value **items; /* ORT_KIND_SEQUENCE: `count` of them; ORT_KIND_MAP: keys, values */
    size_t count, capacity;
    ort_dtype item_dtype;  /* element type of an empty tensor sequence */
    void *storage;         /* freed with the value; may be NULL (borrowed data) */
    void (*release)(void *release_arg, void *storage); /* NULL: free(storage) */
    void *release_arg;
    ort_account *account;  /* charged for the value and its own storage, or NULL */
    size_t charged_bytes;
    struct ort_value_block *block; /* that it lies in, with others (value_maps.c); NULL: none */
    bool given;          /* by the caller: released even where there is no storage */
    bool is_item;        /* of another; a sequence stops growing then */
    int depth;           /* of sequences inside */
    ort_arena strings;   /* bytes of a string tensor's elements */
};

/* Does the data lie as its element type needs it? */
bool ort_tensor_aligned(const ort_tensor *t);

/* A tensor value with its own zero-initialized, 64-byte aligned storage. */
ort_status ort_value_new_tensor_(ort_dtype dtype, const ort_shape *shape, ort_value **value,
                                 ort_error *err);
/* The same with its bytes unset, and no strings. */
ort_status ort_value_new_unset_(ort_dtype dtype, const ort_shape *shape, ort_value **value,
                                ort_error *err);
/* ORT_ERROR_USAGE for one on a device. */
ort_status ort_value_check_host(const ort_value *value, ort_error *err);
/* A tensor value that borrows `data` (must outlive it). */
ort_status ort_value_new_view(const ort_tensor *tensor, ort_value **value, ort_error *err);
/* The same for kernels, which want the data aligned: a copy of what a file doesn't align. */
ort_status ort_value_for_kernel(const ort_tensor *tensor, ort_value **value, ort_error *err);
/* Deep copy: strings' bytes and all items included; contiguous. */
ort_status ort_value_clone(const ort_value *source, ort_value **value, ort_error *err);
/* Fill element `index` of a string tensor value with a copy that the value owns. */
ort_status ort_value_set_string_(ort_value *value, int64_t index, const char *text, size_t length,
                                 ort_error *err);
ort_status ort_value_new_sequence_(ort_value **value, ort_error *err);
/* An absent optional. */
ort_status ort_value_new_none(ort_value **value, ort_error *err);
/* Appends and takes the reference of `item`. */
ort_status ort_value_append_take(ort_value *sequence, ort_value *item, ort_error *err);
/* Room for so many items more. */
ort_status ort_value_reserve(ort_value *sequence, size_t more, ort_error *err);
/* Appends a map for each row of a matrix whose elements have whole bytes: from `keys`, which all of
 * them hold, to the row's elements. They are made in one piece (value_maps.c). */
ort_status ort_value_append_maps(ort_value *sequence, ort_value *keys, const ort_tensor *rows,
                                 ort_error *err);
/* One value less lies in it. */
void ort_value_block_drop(struct ort_value_block *block);
/* Takes both references; both are one-dimensional tensors of equal length. */
ort_status ort_value_new_map_take(ort_value *keys, ort_value *values, ort_value **value,
                                  ort_error *err);
/* It is going to have storage of its own: charged to the account that the value is charged to. */
ort_status ort_value_charge(ort_value *value, size_t bytes, ort_error *err);
/* The value leaves the work that made it, and counts only among all that is held together. */
void ort_value_leave_account(ort_value *value);
/* Whoever takes the value's storage counts it from now on. */
void ort_value_uncharge(ort_value *value);
/* ort_value_retain and ort_value_free of ort.h count references. */
/* ort_value_compare with options that are known, and a result that is ours. */
ort_status ort_value_compare_(const ort_value *actual, const ort_value *expected,
                              const ort_compare_options *options, ort_difference *difference,
                              ort_error *err);

#endif

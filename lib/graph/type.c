/* type.c - types of values: printing, merging what two sources say. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

typedef struct writer {
    char *text;
    size_t size, used;
} writer;

static void put(writer *w, const char *s)
{
    for (; *s; s++)
        if (w->used + 1 < w->size)
            w->text[w->used++] = *s;
}

static const char *dtype_name(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_UNDEFINED ? "?" : ort_dtype_get(dtype)->name;
}

static void put_type(writer *w, const ort_dim_table *dims, const ort_type *t, int depth);

/* Up to the parenthesis that closes the type. */
static void put_element(writer *w, const ort_dim_table *dims, const ort_type *t,
                        const char *before, int depth)
{
    put(w, before);
    if (t->element && depth < 50)
        put_type(w, dims, t->element, depth + 1);
    else
        put(w, "?");
    put(w, ")");
}

static void put_shape(writer *w, const ort_dim_table *dims, const ort_type *t)
{
    char text[512];
    put(w, "[");
    for (int i = 0; i < t->rank; i++) {
        put(w, i ? "," : "");
        put(w, ort_dim_format(dims, t->dim[i], text, sizeof text));
    }
    put(w, t->rank < 0 ? "...]" : "]");
}

static void put_type(writer *w, const ort_dim_table *dims, const ort_type *t, int depth)
{
    switch (t->kind) {
    case ORT_TYPE_TENSOR:
    case ORT_TYPE_SPARSE:
        put(w, t->kind == ORT_TYPE_SPARSE ? "sparse(" : "");
        put(w, dtype_name(t->dtype));
        put_shape(w, dims, t);
        put(w, t->kind == ORT_TYPE_SPARSE ? ")" : "");
        break;
    case ORT_TYPE_SEQUENCE: put_element(w, dims, t, "seq(", depth); break;
    case ORT_TYPE_OPTIONAL: put_element(w, dims, t, "optional(", depth); break;
    case ORT_TYPE_MAP:
        put(w, "map(");
        put(w, dtype_name(t->dtype));
        put_element(w, dims, t, ",", depth);
        break;
    case ORT_TYPE_OPAQUE: put(w, "opaque"); break;
    case ORT_TYPE_UNKNOWN: put(w, "?"); break;
    }
}

char *ort_type_format(const ort_dim_table *dims, const ort_type *type, char *text, size_t size)
{
    writer w = {text, size, 0};
    put_type(&w, dims, type, 0);
    assert(!size || w.used < size);
    if (size)
        text[w.used] = '\0';
    return text;
}

ort_type ort_type_tensor(ort_dtype dtype, int rank, const ort_dim *dims)
{
    ort_type type = {.kind = ORT_TYPE_TENSOR, .dtype = dtype, .rank = rank};
    assert(rank >= -1 && rank <= ORT_MAX_RANK);
    for (int i = 0; i < rank; i++)
        type.dim[i] = dims[i];
    return type;
}

ort_type ort_type_of_tensor(const ort_tensor *tensor)
{
    ort_type type = {.kind = ORT_TYPE_TENSOR, .dtype = tensor->dtype, .rank = tensor->shape.rank};
    assert(type.rank >= 0 && type.rank <= ORT_MAX_RANK);
    for (int i = 0; i < type.rank; i++)
        type.dim[i] = ort_dim_of(tensor->shape.dim[i]);
    return type;
}

static bool merge_shapes(ort_type *a, const ort_type *b)
{
    assert(a->rank <= ORT_MAX_RANK && b->rank <= ORT_MAX_RANK);
    if (b->rank < 0)
        return true;
    if (a->rank >= 0 && a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (ort_dim_differ(a->dim[i], b->dim[i]))
            return false;
    for (int i = 0; i < b->rank; i++)
        a->dim[i] = a->rank < 0 ? b->dim[i] : ort_dim_merge(a->dim[i], b->dim[i]);
    a->rank = b->rank;
    return true;
}

/* True when b says nothing that a (a type below a sequence, optional or map) contradicts. */
static bool compatible(const ort_type *a, const ort_type *b, int depth)
{
    if (!a || !b || depth > 50 || a->kind == ORT_TYPE_UNKNOWN || b->kind == ORT_TYPE_UNKNOWN)
        return true;
    if (a->kind != b->kind || (a->dtype && b->dtype && a->dtype != b->dtype))
        return false;
    if (a->kind == ORT_TYPE_TENSOR || a->kind == ORT_TYPE_SPARSE)
        return true; /* items of a sequence may have many shapes */
    return compatible(a->element, b->element, depth + 1);
}

bool ort_type_merge(ort_type *a, const ort_type *b)
{
    if (b->kind == ORT_TYPE_UNKNOWN)
        return true;
    if (a->kind == ORT_TYPE_UNKNOWN) {
        *a = *b;
        return true;
    }
    if (!compatible(a, b, 0))
        return false;
    bool tensors = a->kind == ORT_TYPE_TENSOR || a->kind == ORT_TYPE_SPARSE;
    if (tensors && !merge_shapes(a, b))
        return false;
    if (!a->dtype)
        a->dtype = b->dtype;
    if (!a->element)
        a->element = b->element;
    return true;
}

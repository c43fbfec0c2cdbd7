/* misfit.c - remedies for the common ways in which tensors miss a model (misfit.h). */
#include "common/misfit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/tool.h"

enum { MOST_DIMS = 16 };

typedef struct wanted {
    ort_dtype dtype;
    int rank;
    int64_t dims[MOST_DIMS]; /* -1: any */
} wanted;

static bool fits(int64_t wanted_dim, int64_t dim) { return wanted_dim < 0 || wanted_dim == dim; }

/* Would the value fit if its dims were in this order? */
static bool fits_as(const wanted *w, const int64_t *dims, const int *order)
{
    for (int i = 0; i < w->rank; i++)
        if (!fits(w->dims[i], dims[order[i]]))
            return false;
    return true;
}

static bool fits_behind(const wanted *w, const int64_t *dims, int rank)
{
    for (int i = 0; i < rank; i++)
        if (!fits(w->dims[i + 1], dims[i]))
            return false;
    return fits(w->dims[0], 1);
}

/* Of another order or rank; NULL where none of these would do. */
static const char *shape_remedy(const wanted *w, const int64_t *dims, int rank)
{
    static const int same[] = {0, 1, 2, 3}, first[] = {0, 3, 1, 2}, last[] = {0, 2, 3, 1};
    static const int planar[] = {2, 0, 1};
    if (rank == w->rank && rank == 4 && !fits_as(w, dims, same))
        return fits_as(w, dims, first)  ? "channels are last: ort-tensor --layout nchw"
               : fits_as(w, dims, last) ? "channels are first: ort-tensor --layout nhwc"
                                        : NULL;
    if (rank + 1 != w->rank)
        return NULL;
    if (fits_behind(w, dims, rank))
        return "the batch lacks: ort-tensor --unsqueeze 0";
    int64_t turned[3];
    for (int i = 0; rank == 3 && i < 3; i++)
        turned[i] = dims[planar[i]];
    return rank == 3 && fits_behind(w, turned, 3) ? "an image as read: ort-tensor --layout nchw"
                                                  : NULL;
}

/* Pixels as they are read, for a network that takes planes of floats. */
static bool is_picture(const wanted *w, const ort_value *v)
{
    const int64_t *d = ort_value_dims(v);
    return w->rank == 4 && dtype_is_float(w->dtype) && ort_value_dtype(v) == ORT_DTYPE_UINT8 &&
           ort_value_rank(v) == 3 && (d[2] == 1 || d[2] == 3 || d[2] == 4) &&
           (w->dims[1] < 5) && fits(w->dims[0], 1);
}

static void picture_remedy(const wanted *w, const ort_value *v, char *text, size_t size)
{
    const int64_t *d = ort_value_dims(v);
    char resize[80] = "";
    if (w->dims[2] > 0 && w->dims[3] > 0 && (w->dims[2] != d[0] || w->dims[3] != d[1]))
        snprintf(resize, sizeof resize, "--resize %lldx%lld ", (long long)w->dims[2],
                 (long long)w->dims[3]);
    snprintf(text, size, "; of a picture: ort-tensor %s%s--float, or --mean and --std",
             w->dims[1] == 1 && d[2] > 1 ? "--gray " : "", resize);
}

static void remedy(const wanted *w, const ort_value *v, char *text, size_t size)
{
    ort_dtype has = ort_value_dtype(v);
    const char *shape = w->rank < 0 ? NULL
                                    : shape_remedy(w, ort_value_dims(v), ort_value_rank(v));
    size_t used = 0;
    if (shape == NULL && is_picture(w, v)) {
        picture_remedy(w, v, text, size);
        return;
    }
    if (shape != NULL)
        used = (size_t)snprintf(text, size, "; %s", shape);
    if (has == w->dtype || w->dtype == ORT_DTYPE_UNDEFINED || w->dtype == ORT_DTYPE_STRING ||
        has == ORT_DTYPE_STRING || used >= size)
        return;
    if (has == ORT_DTYPE_UINT8 && dtype_is_float(w->dtype))
        snprintf(text + used, size - used, "; ort-tensor --scale 1/255 makes bytes 0 to 1, "
                 "--cast %s keeps 0 to 255", ort_dtype_name(w->dtype));
    else
        snprintf(text + used, size - used, "; ort-tensor --cast %s", ort_dtype_name(w->dtype));
}

static bool differs(const wanted *w, const ort_value *v)
{
    if (w->dtype != ORT_DTYPE_UNDEFINED && ort_value_dtype(v) != w->dtype)
        return true;
    if (w->rank < 0)
        return false;
    bool differ = ort_value_rank(v) != w->rank;
    for (int i = 0; i < w->rank && !differ; i++)
        differ = !fits(w->dims[i], ort_value_dims(v)[i]);
    return differ;
}

void misfit_explain(const ort_session *session, ort_value *const *inputs, ort_error *err)
{
    size_t length = strlen(err->message);
    char *end = err->message + length;
    if (strstr(err->message, "input '") == NULL)
        return;
    for (size_t i = 0; i < ort_session_input_count(session); i++) {
        const ort_value *v = inputs[i];
        wanted w = {.dtype = ort_session_input_dtype(session, i)};
        w.rank = ort_session_input_dims(session, i, w.dims, MOST_DIMS);
        if (v == NULL && !ort_session_input_optional(session, i) &&
            strstr(err->message, "is missing") != NULL) {
            snprintf(end, sizeof err->message - length, "; -i %s=FILE gives one, --random 1 makes "
                     "one up", ort_session_input_name(session, i));
            return;
        }
        if (v == NULL || ort_value_get_kind(v) != ORT_VALUE_TENSOR || w.rank > MOST_DIMS ||
            !differs(&w, v))
            continue;
        remedy(&w, v, end, sizeof err->message - length);
        return;
    }
}

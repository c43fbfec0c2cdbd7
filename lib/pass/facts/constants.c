/* constants.c - small constants that passes make and ask about. */
#include "pass/facts/constants.h"

#include "base/error.h"

enum { COUNT_MAX = 65536 };

bool ort_constant_is_all(const ort_tensor *t, double number)
{
    int64_t count = t && t->data ? ort_tensor_count(t) : 0;
    if (!count || count > COUNT_MAX || t->dtype == ORT_DTYPE_STRING ||
        ort_dtype_get(t->dtype)->class_ == ORT_CLASS_COMPLEX)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (ort_tensor_get_f64(t, i) != number)
            return false;
    return true;
}

/* Elements of a constant that may be there in two layouts. */
enum { SMALL_CONSTANT = 64 };

bool ort_constant_moves(const ort_graph *graph, ort_id id)
{
    const ort_graph_value *value = graph->values.data[id];
    const ort_tensor *t = value->is_input || value->is_output ? NULL : value->fact.value;
    return t && t->data && t->dtype != ORT_DTYPE_STRING &&
           (value->use_count == 1 || ort_tensor_count(t) <= SMALL_CONSTANT);
}

ort_status ort_constant_reshaped(ort_graph *graph, const ort_tensor *t, int rank,
                                 const int64_t *dims, ort_id *id, ort_error *err)
{
    ort_tensor made = *t;
    made.shape = ort_shape_make(rank, dims);
    return ort_edit_add_constant(graph, "", &made, id, err);
}

ort_status ort_constant_filled(ort_graph *graph, ort_dtype dtype, int rank, const int64_t *dims,
                               double number, ort_id *id, ort_error *err)
{
    ort_shape shape = ort_shape_make(rank, dims);
    ort_tensor made;
    ORT_TRY(ort_edit_new_constant(graph, "", dtype, &shape, &made, id, err));
    for (int64_t i = 0; i < ort_tensor_count(&made); i++)
        ort_tensor_set_f64(&made, i, number);
    return ORT_OK;
}

ort_status ort_constant_named(ort_graph *graph, const char *name, const int64_t *list, int count,
                              ort_id *id, ort_error *err)
{
    ort_tensor made = {.dtype = ORT_DTYPE_INT64, .shape = {.rank = 1, .dim = {count}},
                       .data = (void *)(uintptr_t)list};
    return ort_edit_add_constant(graph, name, &made, id, err);
}

ort_status ort_constant_list(ort_graph *graph, const int64_t *list, int count, ort_id *id,
                             ort_error *err)
{
    return ort_constant_named(graph, "", list, count, id, err);
}

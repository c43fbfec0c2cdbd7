/* qdq_parts.c - constants and nodes beside the values that they are made for, by whose names they
 * are called.
 */
#include "quantize/form/qdq_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "quantize/code_types.h"

const char *ort_qdq_name(const ort_qdq_writer *w, ort_id id)
{
    return w->graph->values.data[id]->name;
}

const char *ort_qdq_joined(const ort_qdq_writer *w, const char *stem, const char *what)
{
    return ort_arena_printf(&w->graph->model->arena, "%s_%s", stem, what);
}

ort_status ort_qdq_constant(ort_qdq_writer *w, const char *stem, const char *what, ort_dtype dtype,
                            int rank, int64_t count, ort_tensor *tensor, ort_id *id,
                            ort_error *err)
{
    ort_shape shape = {.rank = rank, .dim = {count}};
    const char *name = ort_qdq_joined(w, stem, what);
    if (!name)
        return ort_error_memory(err, strlen(stem));
    return ort_edit_new_constant(w->graph, name, dtype, &shape, tensor, id, err);
}

ort_status ort_qdq_zero_of(ort_qdq_writer *w, ort_dtype dtype, int64_t zero, ort_id *id,
                           ort_error *err)
{
    char what[24];
    ort_tensor tensor;
    for (size_t i = 0; i < w->zeros.count; i++) {
        *id = w->zeros.data[i].id;
        if (w->zeros.data[i].dtype == dtype && w->zeros.data[i].zero == zero)
            return ORT_OK;
    }
    (void)snprintf(what, sizeof what, "%" PRId64, zero);
    ORT_TRY(ort_qdq_constant(w, "zero", what, dtype, 0, 0, &tensor, id, err));
    ort_tensor_set_f64(&tensor, 0, (double)zero);
    return ort_vec_push(&w->zeros, ((ort_qdq_zero){dtype, zero, *id}))
               ? ORT_OK : ort_error_memory(err, sizeof *w->zeros.data);
}

/* typed: a constant of the codes' type. */
static const char *domain_of(const ort_qdq_writer *w, ort_id typed)
{
    ort_dtype dtype = w->graph->values.data[typed]->fact.type.dtype;
    return w->options->contrib && ort_codes_opset(dtype) > ort_model_opset(w->graph->model, "")
               ? MS : ONNX;
}

ort_status ort_qdq_add_linear(ort_qdq_writer *w, const char *op_type, const char *stem,
                              const ort_id in[3], int axis, ort_id *result, ort_error *err)
{
    const char *name = ort_qdq_joined(w, stem, op_type[0] == 'Q' ? "q" : "dq");
    const bool zero = in[2] != ORT_ID_NONE;
    ort_attr attr = ort_attr_int("axis", axis);
    ort_id out = name ? ort_graph_add_value(w->graph, name) : ORT_ID_NONE;
    ort_node *node;
    if (out == ORT_ID_NONE)
        return ort_error_memory(err, strlen(stem));
    ort_node_spec spec = {.domain = domain_of(w, in[zero ? 2 : 0]), .op_type = op_type,
                          .name = ort_qdq_name(w, out), .inputs = in, .input_count = zero ? 3 : 2,
                          .outputs = &out, .output_count = 1,
                          .set = &attr, .set_count = axis >= 0};
    *result = out;
    return ort_edit_add_node(w->graph, &spec, &node, err);
}

void ort_qdq_put(ort_tensor *t, int64_t i, const ort_codes_range *codes, ort_grid grid, float x)
{
    if (ort_codes_are_floats(t->dtype)) {
        float q = x / grid.scale;
        q = fmaxf(fminf(q, (float)codes->most), (float)codes->least);
        ort_tensor_set_f64(t, i, (double)q);
    } else {
        ort_tensor_set_f64(t, i, ort_grid_code(codes, grid, x));
    }
}

ort_id ort_qdq_root(const ort_qdq_writer *w, ort_id id)
{
    return ort_place_root(w->place, id);
}

int ort_qdq_grid_of(ort_qdq_writer *w, ort_id id, int form)
{
    id = ort_qdq_root(w, id);
    for (int i = w->heads[id]; i >= 0; i = w->pairs.data[i].next)
        if (w->pairs.data[i].form == form)
            return i;
    ort_qdq_pair pair = {.form = form, .numbers = ORT_ID_NONE, .scale = ORT_ID_NONE,
                         .zero = ORT_ID_NONE, .next = w->heads[id]};
    pair.grid = w->options->grid(w->options->arg, id, &w->options->plan->forms.data[form]);
    if (!ort_vec_push(&w->pairs, pair))
        return -1;
    return w->heads[id] = (int)w->pairs.count - 1;
}

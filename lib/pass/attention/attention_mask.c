/* attention_mask.c - what is summed onto the scores of an attention (attention_match.h), as the one
 * value that operators take.
 *
 * A condition is 0 where the score stays, or the masks that were summed before it came; beside the
 * low number that stands elsewhere no score counts.
 */
#include <math.h>

#include "base/error.h"
#include "op/edit.h"
#include "pass/attention/attention_match.h"
#include "pass/facts/constants.h"
#include "pass/facts/dim_source.h"

static const ort_type *type_of(const ort_pass_context *c, ort_id id)
{
    return &c->graph->values.data[id]->fact.type;
}

/* One dim of a value, as a list of one number. */
static ort_status size_of(ort_pass_context *c, ort_id source, int64_t axis, ort_id *size,
                          ort_error *err)
{
    ort_attr set[2] = {{.name = "start", .type = ORT_ATTR_INT, .i = axis},
                       {.name = "end", .type = ORT_ATTR_INT, .i = axis + 1}};
    ort_attr along = {.name = "axis", .type = ORT_ATTR_INT, .i = 0};
    bool ranged = ort_model_opset(c->graph->model, ONNX) >= 15;
    if ((*size = ort_graph_add_value(c->graph, "")) == ORT_ID_NONE)
        return ort_error_memory(err, sizeof *size);
    ort_node_spec spec = {.domain = ONNX, .op_type = "Shape", .name = "", .inputs = &source,
                          .input_count = 1, .outputs = size, .output_count = 1, .set = set,
                          .set_count = ranged ? 2 : 0};
    ORT_TRY(ort_edit_add_node(c->graph, &spec, NULL, err));
    if (ranged)
        return ORT_OK;
    ort_id gather[2] = {*size};
    ORT_TRY(ort_constant_list(c->graph, &axis, 1, &gather[1], err));
    return ort_edit_add_result(c->graph, "Gather", gather, 2, &along, 1, size, err);
}

/* How many images a batch of `windows` each has, as a list of one number. */
static ort_status images_of(ort_pass_context *c, const ort_attention *a, int64_t windows,
                            ort_id *images, ort_error *err)
{
    ort_id source = ORT_ID_NONE, quotient[2];
    int64_t axis = 0;
    (void)ort_dim_source(c, a->images, &source, &axis);
    if (source != ORT_ID_NONE)
        return size_of(c, source, axis, images, err);
    ORT_TRY(size_of(c, a->q, 0, &quotient[0], err));
    ORT_TRY(ort_constant_list(c->graph, &windows, 1, &quotient[1], err));
    return ort_edit_add_result(c->graph, "Div", quotient, 2, NULL, 0, images, err);
}

/* What is summed onto the scores of one image's windows, [n,1 or H,S,T], for all images: [B,...],
 * the windows of an image lying together. */
static ort_status for_images(ort_pass_context *c, const ort_attention *a, ort_id *mask,
                             ort_error *err)
{
    int64_t list[4] = {a->images.size, 1, 1, 1}, windows = type_of(c, *mask)->dim[0].size;
    ort_id inputs[2] = {*mask}, parts[2];
    ort_attr along = {.name = "axis", .type = ORT_ATTR_INT, .i = 0};
    if (ort_dim_known(a->images)) {
        if (a->images.size == 1)
            return ORT_OK;
        ORT_TRY(ort_constant_list(c->graph, list, 4, &inputs[1], err));
    } else {
        ORT_TRY(images_of(c, a, windows, &parts[0], err));
        ORT_TRY(ort_constant_list(c->graph, list + 1, 3, &parts[1], err));
        ORT_TRY(ort_edit_add_result(c->graph, "Concat", parts, 2, &along, 1, &inputs[1], err));
    }
    return ort_edit_add_result(c->graph, "Tile", inputs, 2, NULL, 0, mask, err);
}

/* [B*H,S,T] */
static bool is_folded(const ort_pass_context *c, const ort_attention *a, ort_id mask)
{
    const ort_type *type = type_of(c, mask);
    return a->unfold && type->rank == 3 && ort_dim_equal(type->dim[0], a->folded);
}

static bool is_of_batch(const ort_pass_context *c, const ort_attention *a, ort_id mask)
{
    const ort_type *type = type_of(c, mask);
    if (is_folded(c, a, mask))
        return true;
    return type->rank == 4 && !(ort_dim_known(type->dim[0]) && type->dim[0].size == 1);
}

/* As the scores are unfolded. */
static ort_status unfolded(ort_pass_context *c, const ort_attention *a, ort_id *mask,
                           ort_error *err)
{
    ort_id inputs[2] = {*mask};
    if (!is_folded(c, a, *mask))
        return ORT_OK;
    inputs[1] = a->unfold->inputs[1];
    return ort_edit_add_result(c->graph, "Reshape", inputs, 2, a->unfold->attrs,
                               a->unfold->attr_count, mask, err);
}

static ort_status add_masks(ort_pass_context *c, const ort_attention *a, bool of_batch,
                            ort_id *mask, ort_error *err)
{
    for (int i = 0; i < a->mask_count; i++) {
        ort_id sum[2] = {*mask, a->masks[i]};
        if (is_of_batch(c, a, a->masks[i]) != of_batch)
            continue;
        ORT_TRY(unfolded(c, a, &sum[1], err));
        if (*mask == ORT_ID_NONE)
            *mask = sum[1];
        else
            ORT_TRY(ort_edit_add_result(c->graph, "Add", sum, 2, NULL, 0, mask, err));
    }
    return ORT_OK;
}

/* All that is summed onto the scores as one value; ORT_ID_NONE: nothing. What doesn't depend on the
 * image is summed first: it is smaller, and may be constant. */
static ort_status sum_of(ort_pass_context *c, const ort_attention *a, ort_id *mask, ort_error *err)
{
    *mask = ORT_ID_NONE;
    if (a->window != ORT_ID_NONE) {
        const ort_type *type = type_of(c, a->window);
        int64_t list[4];
        for (int d = 0; d < 4; d++)
            list[d] = type->dim[type->rank - 4 + d].size;
        ort_id inputs[2] = {a->window};
        ORT_TRY(ort_constant_list(c->graph, list, 4, &inputs[1], err));
        ORT_TRY(ort_edit_add_result(c->graph, "Reshape", inputs, 2, NULL, 0, mask, err));
    }
    ORT_TRY(add_masks(c, a, false, mask, err));
    if (a->window != ORT_ID_NONE)
        ORT_TRY(for_images(c, a, mask, err));
    return add_masks(c, a, true, mask, err);
}

ort_status ort_attention_mask(ort_pass_context *c, const ort_attention *a, ort_id *mask,
                              ort_error *err)
{
    if (a->keep == ORT_ID_NONE)
        return sum_of(c, a, mask, err);
    ort_attention inside = *a;
    inside.mask_count -= a->masks_outside;
    for (int i = 0; i < inside.mask_count; i++)
        inside.masks[i] = a->masks[a->masks_outside + i];
    ort_id kept;
    ORT_TRY(sum_of(c, &inside, &kept, err));
    if (kept == ORT_ID_NONE)
        ORT_TRY(ort_constant_filled(c->graph, type_of(c, a->q)->dtype, 0, NULL, 0, &kept, err));
    ort_id where[3] = {a->keep, a->keep_is_inverse ? a->fill : kept,
                       a->keep_is_inverse ? kept : a->fill};
    ORT_TRY(ort_edit_add_result(c->graph, "Where", where, 3, NULL, 0, mask, err));
    for (int i = 0; i < a->masks_outside; i++) {
        ort_id sum[2] = {*mask, a->masks[i]};
        ORT_TRY(unfolded(c, a, &sum[1], err));
        ORT_TRY(ort_edit_add_result(c->graph, "Add", sum, 2, NULL, 0, mask, err));
    }
    return ORT_OK;
}

ort_status ort_attention_full_rows(ort_pass_context *c, ort_id q, bool any_rank, ort_id *mask,
                                   ort_error *err)
{
    const ort_type *type = type_of(c, *mask);
    int rows_axis = type_of(c, q)->rank == 4 ? 2 : 1;
    ort_dim rows = type->dim[type->rank - 2], wanted = type_of(c, q)->dim[rows_axis];
    bool spread = !ort_dim_equal(rows, wanted);
    int64_t list[4] = {1, 1, spread && ort_dim_known(wanted) ? wanted.size : 1, 1}, axis;
    ort_id shape, expand[2] = {*mask};
    if ((type->rank == 4 || any_rank) && !spread)
        return ORT_OK;
    if (!spread || ort_dim_known(wanted)) {
        ORT_TRY(ort_constant_list(c->graph, list, 4, &shape, err));
    } else {
        ort_id source = q, one, size;
        axis = 1;
        (void)ort_dim_source(c, wanted, &source, &axis);
        ORT_TRY(size_of(c, source, axis, &size, err));
        ORT_TRY(ort_constant_list(c->graph, list, 1, &one, err));
        ort_id parts[4] = {one, one, size, one};
        ort_attr along = {.name = "axis", .type = ORT_ATTR_INT, .i = 0};
        ORT_TRY(ort_edit_add_result(c->graph, "Concat", parts, 4, &along, 1, &shape, err));
    }
    expand[1] = shape;
    return ort_edit_add_result(c->graph, "Expand", expand, 2, NULL, 0, mask, err);
}

/* ---- numbers of a mask */

static bool is_finite_constant(const ort_tensor *t)
{
    if (!t->data || t->dtype == ORT_DTYPE_STRING)
        return false;
    for (int64_t i = 0; i < ort_tensor_count(t); i++)
        if (!isfinite(ort_tensor_get_f64(t, i)))
            return false;
    return true;
}

/* Certainly no infinity: a constant, a choice of such, or one of them moved. */
static bool is_finite(const ort_graph *graph, ort_id id, int depth)
{
    static const char *const moves[] = {"Unsqueeze", "Reshape", "Expand", "Slice", "Squeeze",
                                        "Transpose"};
    const ort_graph_value *value = graph->values.data[id];
    const ort_node *node = ort_edit_producer(graph, id);
    if (value->fact.value && !value->is_input)
        return is_finite_constant(value->fact.value);
    if (!node || depth > 8)
        return false;
    if (ort_edit_is(node, ONNX, "Where"))
        return is_finite(graph, node->inputs[1], depth + 1) &&
               is_finite(graph, node->inputs[2], depth + 1);
    if (ort_edit_is(node, ONNX, "ConstantOfShape")) {
        const ort_attr *of = ort_node_attr(node, "value");
        return !of || (of->type == ORT_ATTR_TENSOR && of->t && is_finite_constant(of->t));
    }
    if (ort_edit_is(node, ONNX, "Concat")) {
        bool all = true;
        for (int i = 0; i < node->input_count && all; i++)
            all = is_finite(graph, node->inputs[i], depth + 1);
        return all;
    }
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (ort_edit_is(node, ONNX, moves[i]))
            return is_finite(graph, node->inputs[0], depth + 1);
    return false;
}

bool ort_attention_masks_finitely(const ort_pass_context *c, const ort_attention *a)
{
    bool keys = a->keys.id != ORT_ID_NONE;
    if (a->mask_count + keys + (a->window != ORT_ID_NONE) + (a->keep != ORT_ID_NONE) > 1)
        return false; /* a sum of two may overflow */
    return (!keys || isfinite(a->keys.low)) &&
           (a->mask_count == 0 || is_finite(c->graph, a->masks[0], 0)) &&
           (a->window == ORT_ID_NONE || is_finite(c->graph, a->window, 0)) &&
           (a->keep == ORT_ID_NONE || is_finite(c->graph, a->fill, 0));
}

/* opset_legacy.c - operators that were on trial until opset 9, spelled in those that were released
 * (op/moves/legacy.c says what they mean). Those that a text spells lie in opset_expand.c.
 */
#include <string.h>

#include "opset/opset.h"

/* ---- windows become Slice */

/* Counted from the end where the size of the image doesn't matter; no border at all is the end. */
static void crop(ort_opset_step *s)
{
    size_t borders, sizes;
    const int64_t *border = ort_node_ints(s->node, "border", &borders);
    const int64_t *size = ort_node_ints(s->node, "scale", &sizes);
    if (borders != 4 || (sizes && sizes != 2)) {
        ort_opset_block(s, "its attributes don't name a window");
        return;
    }
    int64_t starts[] = {border[1], border[0]}, ends[2];
    for (int i = 0; i < 2; i++) /* border: left, top, right, bottom; size: height, width */
        ends[i] = sizes ? starts[i] + size[i] : border[3 - i] ? -border[3 - i] : INT64_MAX;
    ort_opset_replace_by(s, ort_emit_formula(&s->g, "(Slice a $starts $ends [2 3])",
                                             "a $starts[] $ends[]", s->node->inputs[0], starts, 2,
                                             ends, 2));
}

/* ---- constants of a shape */

/* The shape that attributes and the input say, as a value; ORT_ID_NONE after a blocker. */
static ort_id fill_shape(ort_opset_step *s)
{
    size_t count, more;
    const int64_t *shape = ort_node_ints(s->node, "shape", &count);
    ort_node_ints(s->node, "extra_shape", &more);
    ort_id x = ort_opset_in(s, 0);
    if (ort_node_has(s->node, "shape") || x == ORT_ID_NONE)
        return ort_emit_ints(&s->g, shape, (int)count);
    ort_id own = ort_node_attr_int(s->node, "input_as_shape")
                     ? ort_emit_cast(&s->g, x, ORT_DTYPE_INT64)
                     : ort_emit_shape(&s->g, x);
    return ort_emit_formula(&s->g, more ? "(Concat own $extra_shape axis=0)" : "own", "own", own);
}

static void constant_fill(ort_opset_step *s)
{
    /* Tensors of attributes aren't copied: this one lives as long as the model. */
    ort_arena *arena = &s->g.graph->model->arena;
    ort_tensor *one = ort_arena_array(arena, 1, sizeof *one);
    int64_t *bits = ort_arena_array(arena, 2, sizeof *bits);
    if (!one || !bits) {
        ort_emit_fail_memory(&s->g);
        return;
    }
    *one = (ort_tensor){.dtype = (ort_dtype)ort_node_attr_int(s->node, "dtype"),
                        .shape = {1, {1}}, .data = bits};
    ort_tensor_set_f64(one, 0, (double)ort_node_attr_float(s->node, "value"));
    const ort_attr value = {.name = "value", .type = ORT_ATTR_TENSOR, .t = one};
    ort_id shape = fill_shape(s);
    ort_opset_replace_by(s, ort_emit_op(&s->g, "ConstantOfShape", &shape, 1, &value, 1));
}

static void given_fill(ort_opset_step *s)
{
    size_t count;
    const float *values = ort_node_floats(s->node, "values", &count);
    ort_id list = ort_opset_add_floats(s, values, (int)count);
    ort_opset_replace_by(s, ort_emit_formula(&s->g, "(Reshape (CastLike list y) shape)",
                                             "list y shape", list, s->node->outputs[0],
                                             fill_shape(s)));
}

/* ---- flags became axes */

static void mean_variance_up_9(ort_opset_step *s)
{
    static const int64_t axes[] = {0, 2, 3, 1};
    int count = ort_node_attr_int(s->node, "across_channels") ? 4 : 3;
    if (!ort_node_attr_int(s->node, "normalize_variance")) {
        ort_opset_replace_by(s, ort_emit_formula(&s->g, "a - (ReduceMean a $axes)", "a $axes[]",
                                                 s->node->inputs[0], axes, count));
        return;
    }
    ort_opset_drop(s, "across_channels");
    ort_opset_drop(s, "normalize_variance");
    if (count == 4)
        ort_opset_set_ints(s, "axes", axes, count);
}

const ort_opset_rule ort_opset_legacy[] = {
    {"ConstantFill", 10, constant_fill, NULL},
    {"Crop", 10, crop, NULL},
    {"GivenTensorFill", 10, given_fill, NULL},
    {"MeanVarianceNormalization", 9, mean_variance_up_9, NULL},
    {0},
};

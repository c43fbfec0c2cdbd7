/* opset_windows.c - conversion of pooling, resizing and sampling.
 *
 * Resize of opset 10 (and Upsample) placed samples at x / scale; nearest took the floor when
 * growing and the ceiling when shrinking. Opset 11 spelled both out.
 */
#include <math.h>
#include <string.h>

#include "opset/opset.h"

/* ---- pooling */

static int64_t list_at(const ort_opset_step *s, const char *attr, int i, int64_t fallback)
{
    size_t count;
    const int64_t *list = ort_node_ints(s->node, attr, &count);
    return (size_t)i < count ? list[i] : fallback;
}

/* Windows along each axis: those that fit, and with ceil_mode. From opset 22 on one that would
 * begin behind the data doesn't count; before, that was left to the runtime. */
typedef struct windows {
    bool known, as_floor, dropped; /* as many as fit on all axes; one was dropped */
} windows;

static windows count_windows(const ort_opset_step *s)
{
    windows w = {.known = true, .as_floor = true};
    ort_id x = s->node->inputs[0];
    int rank = ort_opset_rank(s, x);
    bool automatic = !ort_node_attr_is(s->node, "auto_pad", "NOTSET");
    for (int d = 2; d < rank; d++) {
        int64_t size = ort_opset_dim(s, x, d), stride = list_at(s, "strides", d - 2, 1);
        int64_t kernel = list_at(s, "kernel_shape", d - 2, 0);
        int64_t reach = (kernel - 1) * list_at(s, "dilations", d - 2, 1) + 1;
        int64_t begin = list_at(s, "pads", d - 2, 0);
        int64_t room = size + begin + list_at(s, "pads", d - 2 + rank - 2, 0) - reach;
        if (size < 0 || automatic || stride <= 0 || kernel <= 0 || room < 0)
            return (windows){0};
        bool more = room % stride != 0, drops = (room / stride + 1) * stride >= size + begin;
        w.as_floor = w.as_floor && (!more || drops);
        w.dropped = w.dropped || (more && drops);
    }
    w.known = rank > 2;
    return w;
}

static void drop_ceil_mode(ort_opset_step *s)
{
    windows w = count_windows(s);
    if (ort_node_attr_int(s->node, "ceil_mode") && w.known && w.as_floor)
        ort_opset_drop(s, "ceil_mode");
}

static void pool_down_22(ort_opset_step *s)
{
    windows w = count_windows(s);
    if (!ort_node_attr_int(s->node, "ceil_mode") || !w.known || !w.dropped)
        return;
    drop_ceil_mode(s);
    if (ort_node_has(s->node, "ceil_mode"))
        ort_opset_block(s, "'ceil_mode' counted a window that begins behind the data before");
}

static void drop_dilations(ort_opset_step *s)
{
    if (ort_fact_ints_are(s->node, "dilations", 1))
        ort_opset_drop(s, "dilations");
}

static void pool_down_10(ort_opset_step *s)
{
    drop_ceil_mode(s);
    if (!strcmp(s->node->op_type, "MaxPool"))
        drop_dilations(s);
}

static void lp_pool_down_18(ort_opset_step *s)
{
    drop_ceil_mode(s);
    drop_dilations(s);
}

/* ---- Resize */

typedef struct factors { /* of a Resize, when they are known */
    int count;
    float of[ORT_MAX_RANK];
    bool grows, shrinks, whole; /* any above 1, any below 1, all of them integers */
} factors;

static bool is_absent(const ort_opset_step *s, int slot)
{
    const ort_tensor *t = ort_opset_constant(s, slot);
    return ort_opset_in(s, slot) == ORT_ID_NONE || (t && !ort_tensor_count(t));
}

static bool read_sizes(const ort_opset_step *s, int slot, factors *f)
{
    int64_t sizes[ORT_MAX_RANK];
    if (!ort_opset_ints(s, slot, sizes, ORT_MAX_RANK, &f->count))
        return false;
    for (int i = 0; i < f->count; i++) {
        int64_t size = ort_opset_dim(s, s->node->inputs[0], i);
        if (size <= 0)
            return false;
        f->of[i] = (float)sizes[i] / (float)size;
    }
    return true;
}

/* From constant scales, or constant sizes of a known shape. */
static bool read_factors(const ort_opset_step *s, int scales, int sizes, factors *f)
{
    const ort_tensor *t = ort_opset_constant(s, scales);
    *f = (factors){.whole = true};
    if (is_absent(s, scales)) {
        if (sizes < 0 || !read_sizes(s, sizes, f))
            return false;
    } else {
        if (!t || ort_tensor_count(t) > ORT_MAX_RANK)
            return false;
        f->count = (int)ort_tensor_count(t);
        for (int i = 0; i < f->count; i++)
            f->of[i] = (float)ort_tensor_get_f64(t, i);
    }
    for (int i = 0; i < f->count; i++) {
        f->grows = f->grows || f->of[i] > 1;
        f->shrinks = f->shrinks || f->of[i] < 1;
        f->whole = f->whole && f->of[i] == floorf(f->of[i]);
    }
    return true;
}

static ort_id no_numbers(ort_opset_step *s) { return ort_opset_add_floats(s, NULL, 0); }

static void resize_up_11(ort_opset_step *s)
{
    ort_id scales = s->node->inputs[1];
    factors f;
    bool known = read_factors(s, 1, -1, &f);
    bool nearest = ort_node_attr_is(s->node, "mode", "nearest");
    if (nearest && (!known || (f.grows && f.shrinks))) {
        ort_opset_block(s, known ? "it grows one axis and shrinks another: the rounding of opset "
                                   "10 depends on which"
                                 : "its scales are computed: the rounding of opset 10 depends on "
                                   "whether they shrink");
        return;
    }
    ort_opset_set_string(s, "coordinate_transformation_mode", "asymmetric");
    if (nearest)
        ort_opset_set_string(s, "nearest_mode", f.shrinks ? "ceil" : "floor");
    ort_opset_set_input(s, 1, no_numbers(s));
    ort_opset_set_input(s, 2, scales);
}

/* Does nearest pick x / scale, rounded as opset 10 does? */
static bool is_simple_nearest(const factors *f, const char *where, const char *rounding)
{
    if (!strcmp(where, "asymmetric"))
        return (!f->shrinks && !strcmp(rounding, "floor")) ||
               (!f->grows && !strcmp(rounding, "ceil")) || (!f->shrinks && !f->grows);
    /* The middle of a pixel that was repeated a whole number of times lies in it. */
    return (!strcmp(where, "half_pixel") || !strcmp(where, "pytorch_half_pixel")) && !f->shrinks &&
           f->whole && (!strncmp(rounding, "round", 5));
}

static void resize_down_11(ort_opset_step *s)
{
    char mode[40], where[40], rounding[40];
    factors f;
    ort_node_attr_text(s->node, "mode", mode, sizeof mode);
    ort_node_attr_text(s->node, "coordinate_transformation_mode", where, sizeof where);
    ort_node_attr_text(s->node, "nearest_mode", rounding, sizeof rounding);
    if (!read_factors(s, 2, 3, &f)) {
        ort_opset_block(s, "its scales or sizes are computed");
        return;
    }
    bool nearest = !strcmp(mode, "nearest");
    if (nearest ? !is_simple_nearest(&f, where, rounding)
                : strcmp(mode, "linear") || strcmp(where, "asymmetric")) {
        ort_opset_block(s, "mode %s with coordinates %s%s%s has no older form", mode, where,
                        nearest ? " and rounding " : "", nearest ? rounding : "");
        return;
    }
    static const char *const newer[] = {"coordinate_transformation_mode", "nearest_mode",
                                        "cubic_coeff_a", "exclude_outside",
                                        "extrapolation_value"};
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
        ort_opset_drop(s, newer[i]);
    ort_opset_set_input(s, 3, ORT_ID_NONE);
    ort_opset_set_input(s, 2, ORT_ID_NONE);
    ort_opset_set_input(s, 1, ort_opset_add_floats(s, f.of, f.count));
}

/* Both were required, but could be empty. */
static void resize_up_13(ort_opset_step *s)
{
    for (int slot = 3; slot >= 1; slot--)
        if (is_absent(s, slot))
            ort_opset_set_input(s, slot, ORT_ID_NONE);
}

static void resize_down_13(ort_opset_step *s)
{
    for (int slot = 1; slot <= 2; slot++)
        if (ort_opset_in(s, slot) == ORT_ID_NONE)
            ort_opset_set_input(s, slot, no_numbers(s));
}

/* Scales or sizes of some axes as those of all. */
static void resize_down_18(ort_opset_step *s)
{
    size_t count;
    const int64_t *axes = ort_node_ints(s->node, "axes", &count);
    ort_id x = s->node->inputs[0];
    int rank = ort_opset_rank(s, x), slot = is_absent(s, 2) ? 3 : 2;
    const ort_tensor *some = ort_opset_constant(s, slot);
    float scales[ORT_MAX_RANK];
    int64_t sizes[ORT_MAX_RANK];
    if (!axes)
        return;
    if (rank < 0 || !some || (size_t)ort_tensor_count(some) != count || !is_absent(s, 1)) {
        ort_opset_block(s, "'axes' with a roi, or scales, sizes or a rank known at run time only");
        return;
    }
    for (int i = 0; i < rank; i++) {
        scales[i] = 1;
        sizes[i] = ort_opset_dim(s, x, i);
    }
    for (size_t i = 0; i < count; i++) {
        int64_t axis = axes[i] + (axes[i] < 0 ? rank : 0);
        if (axis < 0 || axis >= rank)
            return;
        scales[axis] = (float)ort_tensor_get_f64(some, (int64_t)i);
        sizes[axis] = slot == 3 ? ort_tensor_get_i64(some, (int64_t)i) : 0;
    }
    for (int i = 0; i < rank && slot == 3; i++)
        if (sizes[i] < 0) {
            ort_opset_block(s, "'axes' with sizes, of an input whose other sizes aren't known");
            return;
        }
    ort_opset_set_input(s, slot, slot == 3 ? ort_emit_ints(&s->g, sizes, rank)
                                           : ort_opset_add_floats(s, scales, rank));
    ort_opset_drop(s, "axes");
}

static void resize_down_19(ort_opset_step *s)
{
    if (ort_node_attr_is(s->node, "coordinate_transformation_mode", "half_pixel_symmetric"))
        ort_opset_block(s, "coordinates 'half_pixel_symmetric' aren't there before");
}

/* ---- Upsample */

/* It only grew, whatever its scales. What Resize of opset 10 makes of computed scales depends on
 * them, so that the walk goes over it. */
static void upsample_by_computed(ort_opset_step *s)
{
    ort_node *node = s->node;
    ort_id in[] = {node->inputs[0], no_numbers(s), node->inputs[1]};
    char mode[40];
    const char *const set[][2] = {{"mode", ort_node_attr_text(node, "mode", mode, sizeof mode)},
                                  {"coordinate_transformation_mode", "asymmetric"},
                                  {"nearest_mode", "floor"}};
    ort_attr attrs[3];
    for (int i = 0; i < 3; i++)
        attrs[i] = ort_attr_string(set[i][0], set[i][1]);
    ort_node_spec spec = {.domain = ONNX, .op_type = "Resize", .name = node->name, .inputs = in,
                          .input_count = 3, .outputs = node->outputs, .output_count = 1,
                          .set = attrs, .set_count = 3, .opset = 11, .origin = node->origin};
    if (s->g.status != ORT_OK)
        return;
    ort_graph_remove_node(s->g.graph, node);
    s->replaced = true;
    s->g.status = ort_edit_add_node(s->g.graph, &spec, NULL, s->g.err);
}

static void upsample_up_10(ort_opset_step *s)
{
    factors f;
    if (ort_node_attr_is(s->node, "mode", "bilinear"))
        ort_opset_set_string(s, "mode", "linear");
    if (s->goal > 10 && !read_factors(s, 1, -1, &f))
        upsample_by_computed(s);
    else
        ort_opset_rename(s, "Resize");
}

static void resize_down_10(ort_opset_step *s)
{
    factors f;
    if (!read_factors(s, 1, -1, &f) || f.shrinks) {
        ort_opset_block(s, "Upsample, which it was before, only grows, by constant scales");
        return;
    }
    ort_opset_rename(s, "Upsample");
}

/* ---- sampling */

static void rename_mode(ort_opset_step *s, const char *const names[][2], int from)
{
    for (int i = 0; i < 2; i++)
        if (ort_node_attr_is(s->node, "mode", names[i][from])) {
            ort_opset_set_string(s, "mode", names[i][!from]);
            return;
        }
}

static const char *const grid_modes[][2] = {{"bilinear", "linear"}, {"bicubic", "cubic"}};

static void grid_up_20(ort_opset_step *s) { rename_mode(s, grid_modes, 0); }

static void grid_down_20(ort_opset_step *s)
{
    int rank = ort_opset_rank(s, s->node->inputs[0]);
    if (rank != 4)
        ort_opset_block(s, "its input has %d dimensions, and had 4 before", rank);
    rename_mode(s, grid_modes, 1);
}

static void roi_align_up_16(ort_opset_step *s)
{
    ort_opset_set_string(s, "coordinate_transformation_mode", "output_half_pixel");
}

static void roi_align_down_16(ort_opset_step *s)
{
    static const char name[] = "coordinate_transformation_mode";
    char where[40];
    ort_node_attr_text(s->node, name, where, sizeof where);
    if (strcmp(where, "output_half_pixel"))
        ort_opset_block(s, "coordinates '%s' aren't there before", where);
    else
        ort_opset_drop(s, name);
}

/* ---- blocks of channels */

/* Mode CRD, which older versions lack, of an input whose sizes but the batch are known: Reshape,
 * Transpose, Reshape by a text of x, block size b and sizes, shrunk (down) or grown by b. */
static void spell_crd(ort_opset_step *s, const char *text, bool down)
{
    ort_id x = s->node->inputs[0];
    int64_t b = ort_node_attr_int(s->node, "blocksize"), c = ort_opset_dim(s, x, 1);
    int64_t h = ort_opset_dim(s, x, 2), w = ort_opset_dim(s, x, 3);
    if (!ort_node_attr_is(s->node, "mode", "CRD"))
        return;
    if (c <= 0 || h <= 0 || w <= 0 || b <= 0) {
        ort_opset_block(s, "mode 'CRD' of an input of unknown size");
        return;
    }
    ort_opset_replace_by(
        s, ort_emit_formula(&s->g, text, "x $b $c $h $w $d $i $j", x, (double)b, (double)c,
                            (double)h, (double)w, (double)(down ? c * b * b : c / (b * b)),
                            (double)(down ? h / b : h * b), (double)(down ? w / b : w * b)));
}

static void depth_down_11(ort_opset_step *s)
{
    spell_crd(s, "(Reshape (Transpose (Reshape x [0 $d $b $b $h $w]) perm=0,1,4,2,5,3) "
                 "[0 $d $i $j])", false);
}

static void space_down_28(ort_opset_step *s)
{
    spell_crd(s, "(Reshape (Transpose (Reshape x [0 $c $i $b $j $b]) perm=0,1,3,5,2,4) "
                 "[0 $d $i $j])", true);
}

const ort_opset_rule ort_opset_windows[] = {
    {"AveragePool", 10, NULL, pool_down_10},
    {"AveragePool", 19, NULL, drop_dilations},
    {"AveragePool", 22, NULL, pool_down_22},
    {"DepthToSpace", 11, NULL, depth_down_11},
    {"GridSample", 20, grid_up_20, grid_down_20},
    {"LpPool", 18, NULL, lp_pool_down_18},
    {"LpPool", 22, NULL, pool_down_22},
    {"MaxPool", 10, NULL, pool_down_10},
    {"MaxPool", 22, NULL, pool_down_22},
    {"Resize", 10, NULL, resize_down_10},
    {"Resize", 11, resize_up_11, resize_down_11},
    {"Resize", 13, resize_up_13, resize_down_13},
    {"Resize", 18, NULL, resize_down_18},
    {"Resize", 19, NULL, resize_down_19},
    {"RoiAlign", 16, roi_align_up_16, roi_align_down_16},
    {"SpaceToDepth", 28, NULL, space_down_28},
    {"Upsample", 10, upsample_up_10, NULL},
    {0},
};

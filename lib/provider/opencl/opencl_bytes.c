/* opencl_bytes.c - products of codes of 8 bits: convolutions and matrix products with constant
 * weights, sums and means of codes, with the CPU's bits (cl/bytes.cl).
 *
 * What zero points add to sums is known when a plan is made but for the sum of the operand's own
 * codes: filters are packed into words here, and a number for each takes the rest away again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/shared/codes.h"
#include "op/shared/window.h"
#include "provider/opencl/opencl_parts.h"
#include "tensor/scalar.h"

typedef struct slots { /* inputs; -1: none */
    int x, w, x_scale, w_scale, x_zero, w_zero, y_scale, y_zero, bias;
} slots;

typedef struct kind {
    const char *op_type;
    slots in;
    bool matrix;
} kind;

static const kind kinds[] = {
    {"QLinearConv", {0, 3, 1, 4, 2, 5, 6, 7, 8}, false},
    {"ConvInteger", {0, 1, -1, -1, 2, 3, -1, -1, -1}, false},
    {"QLinearMatMul", {0, 3, 1, 4, 2, 5, 6, 7, -1}, true},
    {"MatMulInteger", {0, 1, -1, -1, 2, 3, -1, -1, -1}, true},
    {"QGemm", {0, 3, 1, 4, 2, 5, 7, 8, 6}, true},
};

static const kind *kind_of(const ort_node *node)
{
    const kind *k = kinds;
    while (strcmp(k->op_type, node->op_type))
        k++;
    return k;
}

static bool is_byte(ort_dtype type)
{
    return type == ORT_DTYPE_INT8 || type == ORT_DTYPE_UINT8;
}

static bool has(const ort_node *node, int input)
{
    return input >= 0 && ort_cl_has(node, input);
}

/* All inputs but x are numbers of the plan, x's one for all of it. */
static bool claim_bytes(const ort_graph *graph, const ort_node *node, const char **why)
{
    const kind *k = kind_of(node);
    const int one[] = {k->in.x_scale, k->in.x_zero, k->in.y_scale, k->in.y_zero};
    ort_dtype y = graph->values.data[node->outputs[0]]->fact.type.dtype;
    *why = "the element types have no kernel";
    if (!is_byte(ort_cl_type(graph, node, k->in.x)) ||
        !is_byte(ort_cl_type(graph, node, k->in.w)) || (!is_byte(y) && y != ORT_DTYPE_INT32) ||
        (k->in.y_scale >= 0) != is_byte(y))
        return false;
    *why = "weights, scales and zero points that aren't constants have no kernel";
    for (int i = 1; i < node->input_count; i++)
        if (has(node, i) && !graph->values.data[node->inputs[i]]->fact.value)
            return false;
    *why = "scales of rows have no kernel";
    for (int i = 0; i < 4; i++)
        if (has(node, one[i]) &&
            ort_tensor_count(graph->values.data[node->inputs[one[i]]]->fact.value) != 1)
            return false;
    *why = "this form has no kernel";
    int rank = ort_cl_rank(graph, node, k->in.x), w_rank = ort_cl_rank(graph, node, k->in.w);
    if (k->matrix)
        return rank >= 2 && w_rank == 2 && !ort_node_int(node, "transA", 0);
    return rank >= 3 && rank <= 5 && !ort_node_int(node, "channels_last", 0);
}

/* ---- what each filter adds to its sums, and what multiplies them */

static const ort_tensor *constant(const ort_cl_step *s, int input)
{
    const ort_device_request *r = s->plan->request;
    if (!has(s->node, input))
        return NULL;
    ort_id id = s->node->inputs[input];
    return r->constants[id] ? r->constants[id] : r->facts[id].value;
}

/* An integer, as codes are turned: 128 less where they are unsigned. */
static int code_at(const ort_tensor *t, ort_dtype type, int64_t index)
{
    int64_t count = t ? ort_tensor_count(t) : 0;
    int code = count ? (int)ort_tensor_get_i64(t, count == 1 ? 0 : index) : 0;
    return type == ORT_DTYPE_UINT8 ? code - 128 : code;
}

static float scale_at(const ort_tensor *t, int64_t index)
{
    float scale = 1;
    if (t)
        ort_tensor_to_f32(t, ort_tensor_count(t) == 1 ? 0 : index, 1, &scale);
    return scale;
}

enum { MAPS = 16, PLACES = 8 }; /* bytes.cl */

typedef struct filters { /* `maps` of them: element (map, channel, tap) of the weight */
    const ort_tensor *tensor;
    int64_t maps, groups, ins, taps, map_step, in_step;
    int64_t cells; /* of a tap: ins, padded to words */
} filters;

static int filter_code(const filters *f, int64_t map, int64_t in, int64_t tap)
{
    int64_t at = map * f->map_step + in * f->in_step + tap;
    const uint8_t *codes = f->tensor->data;
    return f->tensor->dtype == ORT_DTYPE_UINT8 ? codes[at] - 128 : (int8_t)codes[at];
}

static int64_t blocks_of(const filters *f)
{
    return (f->maps / f->groups + MAPS - 1) / MAPS;
}

/* [group][blocks of MAPS][taps][words][MAPS] of four codes each. */
static void fill_words(const void *arg, void *to)
{
    const filters *f = arg;
    int64_t outs = f->maps / f->groups, blocks = blocks_of(f);
    for (int64_t map = 0; map < f->maps; map++) {
        int64_t group = map / outs, own = map % outs;
        int8_t *block = (int8_t *)to + (group * blocks + own / MAPS) * f->taps * f->cells * MAPS;
        for (int64_t tap = 0; tap < f->taps; tap++)
            for (int64_t c = 0; c < f->ins; c++)
                block[((tap * f->cells + c) / 4 * MAPS + own % MAPS) * 4 + c % 4] =
                    (int8_t)filter_code(f, map, c, tap);
    }
}

/* The form's numbers: `start` is below 0 in no strips. */
static int pack(ort_cl_step *s, const kind *k, const filters *f)
{
    const ort_cl_strips form = {.start = -1, .batch_step = f->cells, .outer_step = f->map_step,
                                .k_step = f->in_step, .batch = f->groups, .outer = f->maps,
                                .k = f->ins, .strip = f->taps};
    size_t bytes = (size_t)(f->groups * blocks_of(f) * f->taps * f->cells * MAPS);
    return ort_cl_read_form(s, k->in.w, &form, bytes, fill_words, f);
}

typedef struct sums { /* by filter */
    int shift, zeros, scale; /* buffers */
    bool has_zeros;
    int64_t x_zero; /* of turned codes */
} sums;

/* sum (x - x_zero) (w - zero), where x * w is added up for all cells, and x by itself. Padding is
 * x_zero in x and 0 in w. */
static sums sums_of(ort_cl_step *s, const kind *k, const filters *f, bool by_words)
{
    const ort_tensor *zero = constant(s, k->in.w_zero), *bias = constant(s, k->in.bias);
    const ort_tensor *w_scale = constant(s, k->in.w_scale);
    float y_scale = scale_at(constant(s, k->in.y_scale), 0);
    float x_scale = scale_at(constant(s, k->in.x_scale), 0) * ort_node_float(s->node, "alpha", 1);
    int64_t *list = malloc(((size_t)f->maps + 1) * 2 * sizeof *list), *zeros = list + f->maps;
    float *scale = malloc(((size_t)f->maps + 1) * sizeof *scale);
    sums r = {.x_zero = code_at(constant(s, k->in.x_zero), ort_cl_in(s, k->in.x)->type.dtype, 0)};
    for (int64_t map = 0; map < f->maps && list && scale; map++) {
        int64_t whole = 0;
        zeros[map] = code_at(zero, f->tensor->dtype, map);
        for (int64_t c = 0; c < f->ins; c++)
            for (int64_t tap = 0; tap < f->taps; tap++)
                whole += filter_code(f, map, c, tap);
        list[map] = bias ? ort_tensor_get_i64(bias, map) : 0;
        if (by_words)
            list[map] += r.x_zero * (f->taps * f->cells * zeros[map] - whole);
        r.has_zeros = r.has_zeros || zeros[map];
        scale[map] = x_scale * scale_at(w_scale, map) / y_scale;
    }
    if (list && scale) {
        r.shift = ort_cl_table(s, list, f->maps);
        r.zeros = ort_cl_table(s, zeros, f->maps);
        r.scale = ort_cl_numbers(s, scale, f->maps);
    } else {
        s->plan->status = ort_error_memory(s->plan->error, (size_t)f->maps * sizeof *list);
    }
    free(list);
    free(scale);
    return r;
}

static int64_t flip_of(ort_dtype type)
{
    return type == ORT_DTYPE_UINT8 ? 128 : 0;
}

static int64_t result_kind(const ort_cl_step *s)
{
    ort_dtype type = ort_cl_out(s, 0)->type.dtype;
    return type == ORT_DTYPE_UINT8 ? 1 : type == ORT_DTYPE_INT8 ? 2 : 0;
}

static int64_t result_zero(const ort_cl_step *s, const kind *k)
{
    int64_t zero = 0;
    const ort_tensor *given = constant(s, k->in.y_zero);
    return given && ort_tensor_one_i64(given, &zero) ? zero : 0;
}

/* ---- the launches */

typedef struct product { /* places of z groups: windows over three axes */
    int64_t z, channel_step, place_step, in[3], wide[3], out[3], stride[3], begin[3];
    int64_t to_map, to_place; /* steps of the result */
    int taps;                 /* the table of offsets */
} product;

static int64_t volume(const int64_t *three)
{
    return three[0] * three[1] * three[2];
}

static void multiply_words(ort_cl_step *s, const kind *k, const filters *f, const product *p)
{
    const sums r = sums_of(s, k, f, true);
    int64_t outs = f->maps / f->groups, places = volume(p->wide), plane = volume(p->out);
    bool lanes = s->plan->device->lanes;
    int64_t each = lanes ? PLACES : 1;
    int x = ort_cl_read(s, k->in.x), w = pack(s, k, f);
    int spread = ort_cl_scratch(s, (p->z * places * f->cells + 3) / 4), to = ort_cl_write(s, 0);
    const int64_t wide[3] = {places, p->z, 1};
    const int64_t grid[3] = {(plane + each - 1) / each, (outs + MAPS - 1) / MAPS, p->z};
    ort_cl_launch_grid(s, "bytes", "spread_bytes", wide, NULL, "bbiiiiiiiiiiiiii", x, spread,
                       f->ins, f->cells, p->channel_step, p->place_step, p->in[0], p->in[1],
                       p->in[2], p->wide[1], p->wide[2], p->begin[0], p->begin[1], p->begin[2],
                       flip_of(ort_cl_in(s, k->in.x)->type.dtype), r.x_zero);
    ort_cl_launch_grid(s, "bytes", "dots", grid, NULL, "bbbbbbbiiiiiiiiiiiiiiiiii", spread, w,
                       p->taps, r.shift, r.zeros, r.scale, to, f->cells / 4, f->taps, places,
                       f->groups, outs, plane, p->out[1], p->out[2], p->stride[0], p->stride[1],
                       p->stride[2], p->wide[1], p->wide[2], (int64_t)r.has_zeros, p->to_map,
                       p->to_place, result_kind(s), result_zero(s, k));
}

static ort_status emit_matrix(ort_cl_step *s, ort_error *err)
{
    const kind *k = kind_of(s->node);
    const ort_fact *x = ort_cl_in(s, k->in.x), *w = ort_cl_in(s, k->in.w);
    bool turned = ort_node_int(s->node, "transB", 0);
    int64_t depth = ort_cl_dim(x, x->type.rank - 1), n = ort_cl_dim(w, turned ? 0 : 1), none = 0;
    int64_t rows = depth ? ort_cl_count(x) / depth : 0;
    const filters f = {constant(s, k->in.w), n, 1, depth, 1, turned ? depth : 1, turned ? 1 : n,
                       (depth + 3) / 4 * 4};
    const ort_tensor *bias = constant(s, k->in.bias);
    if (bias && ort_tensor_count(bias) != n)
        return ort_error_set(err, ORT_ERROR_DEVICE, "a bias of %lld elements for %lld columns has "
                             "no kernel", (long long)ort_tensor_count(bias), (long long)n);
    if (!ort_cl_count(ort_cl_out(s, 0)) || !depth)
        return ort_cl_write(s, 0), ORT_OK;
    const product p = {1, 1, depth, {1, 1, rows}, {1, 1, rows}, {1, 1, rows}, {1, 1, 1}, {0}, 1, n,
                       ort_cl_table(s, &none, 1)};
    multiply_words(s, k, &f, &p);
    return ORT_OK;
}

static int tap_table(ort_cl_step *s, const ort_window *w, const int64_t *wide)
{
    int64_t count = volume(w->kernel), *taps = malloc((size_t)count * sizeof *taps + 1);
    if (!taps) {
        s->plan->status = ort_error_memory(s->plan->error, (size_t)count * sizeof *taps);
        return 0;
    }
    for (int64_t t = 0; t < count; t++) {
        int64_t x = t % w->kernel[2] * w->dilation[2];
        int64_t y = t / w->kernel[2] % w->kernel[1] * w->dilation[1];
        int64_t d = t / w->kernel[2] / w->kernel[1] * w->dilation[0];
        taps[t] = (d * wide[1] + y) * wide[2] + x;
    }
    int table = ort_cl_table(s, taps, count);
    free(taps);
    return table;
}

static void few_channels(ort_cl_step *s, const kind *k, const filters *f, const ort_window *w,
                         int64_t images)
{
    const sums r = sums_of(s, k, f, false);
    int64_t plane = volume(w->out);
    int x = ort_cl_read(s, k->in.x), filter = ort_cl_read(s, k->in.w), to = ort_cl_write(s, 0);
    const int64_t grid[3] = {ort_cl_items(s, plane), f->maps, images};
    ort_cl_launch_grid(s, "bytes", "few_channels", grid, NULL,
                       "bbbbbbiiiiiiiiiiiiiiiiiiiiiiiiii", x, filter, r.shift, r.zeros, r.scale,
                       to, f->groups, f->ins, f->maps / f->groups, w->in[0], w->in[1], w->in[2],
                       plane, w->out[1], w->out[2], w->kernel[0], w->kernel[1], w->kernel[2],
                       w->stride[0], w->stride[1], w->stride[2], w->begin[0], w->begin[1],
                       w->begin[2], w->dilation[0], w->dilation[1], w->dilation[2],
                       flip_of(ort_cl_in(s, k->in.x)->type.dtype), r.x_zero,
                       flip_of(f->tensor->dtype), result_kind(s), result_zero(s, k));
}

static ort_status emit_conv(ort_cl_step *s, ort_error *err)
{
    const kind *k = kind_of(s->node);
    const ort_fact *x = ort_cl_in(s, k->in.x), *w = ort_cl_in(s, k->in.w);
    int64_t groups = ort_node_int(s->node, "group", 1), ins = ort_cl_dim(w, 1), taps;
    int64_t in[ORT_WINDOW_MAX], kernel[ORT_WINDOW_MAX];
    ort_window_spec spec = {0};
    ort_window window;
    for (int d = 2; d < x->type.rank; d++) {
        in[d - 2] = ort_cl_dim(x, d);
        kernel[d - 2] = ort_cl_dim(w, d);
    }
    ORT_TRY(ort_window_read(s->node, &spec, err));
    ORT_TRY(ort_window_resolve(&spec, x->type.rank - 2, in, kernel, &window, err));
    ort_window_pad_to_3d(&window);
    taps = volume(window.kernel);
    const filters f = {constant(s, k->in.w), ort_cl_dim(w, 0), groups, ins, taps, ins * taps, taps,
                       (ins + 3) / 4 * 4};
    if (!ort_cl_count(ort_cl_out(s, 0)))
        return ort_cl_write(s, 0), ORT_OK;
    if (ins < 3) {
        few_channels(s, k, &f, &window, ort_cl_dim(x, 0));
        return ORT_OK;
    }
    product p = {.z = ort_cl_dim(x, 0) * groups, .channel_step = volume(window.in),
                 .place_step = 1, .to_map = volume(window.out), .to_place = 1};
    for (int d = 0; d < 3; d++) {
        int64_t reach = (window.out[d] - 1) * window.stride[d] +
                        (window.kernel[d] - 1) * window.dilation[d] + 1;
        int64_t whole = window.begin[d] + window.in[d];
        p.in[d] = window.in[d];
        p.out[d] = window.out[d];
        p.stride[d] = window.stride[d];
        p.begin[d] = window.begin[d];
        p.wide[d] = reach > whole ? reach : whole;
    }
    p.taps = tap_table(s, &window, p.wide);
    multiply_words(s, k, &f, &p);
    return ORT_OK;
}

/* ---- QLinearAdd */

static bool claim_add(const ort_graph *graph, const ort_node *node, const char **why)
{
    const ort_type *a = &graph->values.data[node->inputs[0]]->fact.type;
    const ort_type *b = &graph->values.data[node->inputs[3]]->fact.type;
    *why = "the element types have no kernel";
    if (!is_byte(a->dtype) || a->dtype != b->dtype)
        return false;
    *why = "scales and zero points that aren't one constant have no kernel";
    for (int i = 1; i < 8; i++) {
        const ort_tensor *t =
            ort_cl_has(node, i) ? graph->values.data[node->inputs[i]]->fact.value : NULL;
        if (i != 3 && ort_cl_has(node, i) && (!t || ort_tensor_count(t) != 1))
            return false;
    }
    *why = "operands of two shapes have no kernel";
    for (int d = 0; d < a->rank && a->rank == b->rank; d++)
        if (!ort_dim_equal(a->dim[d], b->dim[d]))
            return false;
    return a->rank == b->rank;
}

static ort_status emit_add(ort_cl_step *s, ort_error *err)
{
    ort_dtype type = ort_cl_in(s, 0)->type.dtype;
    const ort_codes a = ort_codes_read(constant(s, 1), constant(s, 2), type);
    const ort_codes b = ort_codes_read(constant(s, 4), constant(s, 5), type);
    const ort_codes y = ort_codes_read(constant(s, 6), constant(s, 7), type);
    const ort_byte_sum sum = ort_codes_sum(&a, &b, &y);
    int64_t count = ort_cl_count(ort_cl_out(s, 0));
    const int64_t grid[3] = {ort_cl_items(s, count), 1, 1};
    ort_cl_launch_grid(s, "bytes", "add_codes", grid, NULL, "bbbifffi", ort_cl_read(s, 0),
                       ort_cl_read(s, 3), ort_cl_write(s, 0), (int64_t)sum.is_signed,
                       (double)sum.a_ratio, (double)sum.b_ratio, (double)sum.fixed, count);
    return ORT_OK;
}

/* ---- QLinearGlobalAveragePool */

static bool claim_mean(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "the element types have no kernel";
    if (!is_byte(ort_cl_type(graph, node, 0)))
        return false;
    *why = "scales and zero points that aren't one constant have no kernel";
    for (int i = 1; i < 5; i++) {
        const ort_tensor *t =
            ort_cl_has(node, i) ? graph->values.data[node->inputs[i]]->fact.value : NULL;
        if (ort_cl_has(node, i) && (!t || ort_tensor_count(t) != 1))
            return false;
    }
    *why = "channels that come last have no kernel";
    return !ort_node_int(node, "channels_last", 0) && ort_cl_rank(graph, node, 0) >= 3;
}

static ort_status emit_mean(ort_cl_step *s, ort_error *err)
{
    ort_dtype type = ort_cl_in(s, 0)->type.dtype;
    const ort_codes x = ort_codes_read(constant(s, 1), constant(s, 2), type);
    const ort_codes y = ort_codes_read(constant(s, 3), constant(s, 4), type);
    int64_t means = ort_cl_count(ort_cl_out(s, 0));
    int64_t count = means ? ort_cl_count(ort_cl_in(s, 0)) / means : 0;
    const int64_t grid[3] = {means, 1, 1};
    float factor = x.scale / ((float)count * y.scale);
    ort_cl_launch_grid(s, "bytes", "mean_codes", grid, NULL, "bbiifii", ort_cl_read(s, 0),
                       ort_cl_write(s, 0), (int64_t)x.is_signed, count, (double)factor,
                       (int64_t)x.zero, (int64_t)y.zero);
    return ORT_OK;
}

const ort_cl_row ort_cl_bytes_rows[] = {
    {ONNX, "QLinearConv", claim_bytes, emit_conv, .typed = true},
    {ONNX, "ConvInteger", claim_bytes, emit_conv, .typed = true},
    {ONNX, "QLinearMatMul", claim_bytes, emit_matrix, .typed = true},
    {ONNX, "MatMulInteger", claim_bytes, emit_matrix, .typed = true},
    {MS, "QGemm", claim_bytes, emit_matrix, .typed = true},
    {MS, "QLinearAdd", claim_add, emit_add, .typed = true},
    {MS, "QLinearGlobalAveragePool", claim_mean, emit_mean, .typed = true},
    {0},
};

/* quant_upscale.c - a ConvTranspose between DequantizeLinear and QuantizeLinear becomes a Conv,
 * whose codes are then put between each other.
 *
 *     ConvTranspose of stride s     Conv of s * s times the maps, DepthToSpace, Slice
 *
 * Pixel s r + p of the result is the sum over j of pixel r - j of the input times weight p + s j:
 * an ordinary convolution for each phase p. Weights beyond the kernel hold the zero point. Exact:
 * the same products are summed, and the Conv goes to integers where it would anyway
 * (quant_units.c, and wide_convs.c of 16 bits). In a session alone: for others a ConvTranspose
 * says more.
 */
#include "base/checked.h"
#include "base/error.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/numbers/quant_pair.h"
#include "tensor/scalar.h"

typedef struct upscale {
    ort_pass_context *c;
    ort_node *node;
    ort_quant w, y;
    const ort_tensor *codes;  /* of the weights: [channels, maps of a group, kernel...] */
    int64_t stride, group, maps; /* maps: of all groups */
    int64_t taps[2], kernel[2];  /* taps: of one phase */
    int64_t begin[2], cut[2]; /* what is left out at both ends */
    int64_t more[2];          /* rows of zeros that are read behind the input */
} upscale;

static int64_t int_at(const ort_node *node, const char *name, size_t i, int64_t otherwise)
{
    size_t count;
    const int64_t *list = ort_node_ints(node, name, &count);
    return i < count ? list[i] : otherwise;
}

/* ---- what fits */

static const char *read_geometry(upscale *u)
{
    const ort_node *n = u->node;
    u->stride = int_at(n, "strides", 0, 1);
    if (!ort_node_attr_is(n, "auto_pad", "NOTSET") || ort_node_has(n, "output_shape") ||
        int_at(n, "strides", 1, 1) != u->stride || u->stride < 1 || u->stride > 8 ||
        !ort_fact_ints_are(n, "dilations", 1))
        return "strides differ or are long, it is dilated, or its padding follows from its shape";
    for (int a = 0; a < 2; a++) {
        int64_t k = u->codes->shape.dim[2 + a], pad_end = int_at(n, "pads", 2 + (size_t)a, 0);
        u->kernel[a] = k;
        u->taps[a] = (k + u->stride - 1) / u->stride;
        u->begin[a] = int_at(n, "pads", (size_t)a, 0);
        u->cut[a] = u->taps[a] * u->stride - k + pad_end -
                    int_at(n, "output_padding", (size_t)a, 0);
        u->more[a] = u->cut[a] < 0 ? (u->stride - 1 - u->cut[a]) / u->stride : 0;
        u->cut[a] += u->more[a] * u->stride;
        if (u->begin[a] < 0 || pad_end < 0 || k < 1)
            return "it has negative pads";
    }
    return NULL;
}

static const char *read_node(upscale *u)
{
    const ort_graph *graph = u->c->graph;
    ort_quant x;
    if (!ort_quant_read(graph, ort_edit_producer(graph, u->node->inputs[0]), "DequantizeLinear",
                        &x) ||
        !ort_quant_read(graph, ort_edit_producer(graph, u->node->inputs[1]), "DequantizeLinear",
                        &u->w) ||
        !ort_quant_is_code(x.dtype) || !ort_quant_is_plain(&x) || !ort_quant_is_byte(u->w.dtype))
        return "an input isn't dequantized from codes, weights of 8 bits, by constants";
    u->codes = ort_edit_constant(graph, u->w.node, 0);
    if (!u->codes || !u->codes->data || u->codes->shape.rank != 4 ||
        !ort_fact_ranked(graph, u->node->inputs[0], 4))
        return "it isn't over two axes with constant weights";
    u->group = ort_node_attr_int(u->node, "group");
    u->maps = u->group * u->codes->shape.dim[1];
    if (!ort_quant_is_plain(&u->w) && (ort_axis_in(u->w.axis, 4) != 1 || u->group != 1))
        return "the scales of the weights aren't one per map";
    if (u->group < 1 || u->codes->shape.dim[0] % u->group || u->maps < 1)
        return "its groups don't fit";
    return read_geometry(u);
}

/* ---- the convolution */

/* Each number of a row `phases` times. */
static ort_status repeat(const upscale *u, const ort_tensor *row, ort_dtype dtype, ort_id *id,
                         ort_error *err)
{
    int64_t phases = u->stride * u->stride;
    ort_shape shape = {1, {u->maps * phases}};
    ort_tensor made;
    ORT_TRY(ort_edit_new_constant(u->c->graph, "", dtype, &shape, &made, id, err));
    for (int64_t i = 0; i < shape.dim[0]; i++) {
        int64_t from = ort_tensor_count(row) == 1 ? 0 : i / phases;
        ort_tensor_set_f64(&made, i, ort_tensor_get_f64(row, from));
    }
    return ORT_OK;
}

/* Weights of map m, channel c (in its group), tap t of both axes, phase p of both. */
static int64_t code_at(const upscale *u, int64_t m, int64_t channel, const int64_t t[2],
                       const int64_t p[2])
{
    int64_t group_maps = u->maps / u->group, channels = u->codes->shape.dim[0] / u->group;
    int64_t k[2];
    for (int a = 0; a < 2; a++) {
        k[a] = p[a] + u->stride * (u->taps[a] - 1 - t[a]);
        if (k[a] >= u->kernel[a])
            return u->w.zero ? ort_tensor_get_i64(u->w.zero, ort_quant_is_plain(&u->w) ? 0 : m) : 0;
    }
    int64_t from = (m / group_maps * channels + channel) * group_maps + m % group_maps;
    return ort_tensor_get_i64(u->codes, (from * u->kernel[0] + k[0]) * u->kernel[1] + k[1]);
}

static ort_status make_weights(const upscale *u, ort_id *id, ort_error *err)
{
    int64_t s = u->stride, channels = u->codes->shape.dim[0] / u->group, at = 0;
    ort_shape shape = {4, {u->maps * s * s, channels, u->taps[0], u->taps[1]}};
    ort_tensor made;
    ORT_TRY(ort_edit_new_constant(u->c->graph, u->c->graph->values.data[u->w.node->inputs[0]]->name,
                                  u->w.dtype, &shape, &made, id, err));
    for (int64_t map = 0; map < shape.dim[0]; map++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t ty = 0; ty < u->taps[0]; ty++)
                for (int64_t tx = 0; tx < u->taps[1]; tx++, at++) {
                    const int64_t p[2] = {map / s % s, map % s}, t[2] = {ty, tx};
                    ort_tensor_set_i64(&made, at, code_at(u, map / (s * s), c, t, p));
                }
    return ORT_OK;
}

/* The weights' DequantizeLinear. */
static ort_status add_weights(const upscale *u, ort_id *numbers, ort_error *err)
{
    ort_id inputs[3] = {ORT_ID_NONE, u->w.node->inputs[1], ort_edit_input(u->w.node, 2)};
    ort_attr axis = ort_attr_int("axis", 0);
    ORT_TRY(make_weights(u, &inputs[0], err));
    if (!ort_quant_is_plain(&u->w)) {
        ORT_TRY(repeat(u, u->w.scale, ORT_DTYPE_FLOAT, &inputs[1], err));
        if (u->w.zero)
            ORT_TRY(repeat(u, u->w.zero, u->w.dtype, &inputs[2], err));
    }
    *numbers = ort_graph_add_value(u->c->graph, "");
    ort_node_spec spec = {.domain = ONNX, .op_type = "DequantizeLinear", .inputs = inputs,
                          .input_count = inputs[2] == ORT_ID_NONE ? 2 : 3, .outputs = numbers,
                          .output_count = 1, .set = &axis, .opset = 13,
                          .set_count = !ort_quant_is_plain(&u->w)};
    return *numbers == ORT_ID_NONE ? ort_error_memory(err, sizeof *numbers)
                                   : ort_edit_add_node(u->c->graph, &spec, NULL, err);
}

/* A bias in float, or its codes and their scales. */
typedef struct bias_row {
    const ort_tensor *row, *scales; /* NULL: none */
} bias_row;

/* False: it isn't constant. */
static bool read_bias(const upscale *u, bias_row *b)
{
    const ort_graph *graph = u->c->graph;
    ort_id bias = ort_edit_input(u->node, 2);
    *b = (bias_row){NULL};
    if (bias == ORT_ID_NONE)
        return true;
    const ort_node *dequantize = ort_edit_producer(graph, bias);
    bool coded = ort_edit_is(dequantize, ONNX, "DequantizeLinear");
    b->row = ort_edit_constant(graph, coded ? dequantize : u->node, coded ? 0 : 2);
    b->scales = coded ? ort_edit_constant(graph, dequantize, 1) : NULL;
    const ort_tensor *zero = coded ? ort_edit_constant(graph, dequantize, 2) : NULL;
    return b->row && b->row->data && ort_tensor_is_row(b->row, u->maps) &&
           (!coded || (b->scales && b->scales->data)) && (!zero || ort_constant_is_all(zero, 0));
}

static ort_status add_bias(const upscale *u, const bias_row *b, ort_id *id, ort_error *err)
{
    int64_t phases = u->stride * u->stride;
    ort_shape shape = {1, {u->maps * phases}};
    ort_tensor made;
    *id = ORT_ID_NONE;
    if (!b->row)
        return ORT_OK;
    ORT_TRY(ort_edit_new_constant(u->c->graph, "", ORT_DTYPE_FLOAT, &shape, &made, id, err));
    for (int64_t i = 0; i < shape.dim[0]; i++) {
        int64_t map = i / phases, of = b->scales && ort_tensor_count(b->scales) > 1 ? map : 0;
        double scale = b->scales ? ort_tensor_get_f64(b->scales, of) : 1;
        ort_tensor_set_f64(&made, i, ort_tensor_get_f64(b->row, map) * scale);
    }
    return ORT_OK;
}

static ort_status add_conv(const upscale *u, const bias_row *b, ort_id *result, ort_error *err)
{
    ort_id inputs[3] = {u->node->inputs[0]};
    ORT_TRY(add_weights(u, &inputs[1], err));
    ORT_TRY(add_bias(u, b, &inputs[2], err));
    const int64_t *t = u->taps;
    const int64_t pads[] = {t[0] - 1, t[1] - 1, t[0] - 1 + u->more[0], t[1] - 1 + u->more[1]};
    const ort_attr set[] = {ort_attr_ints("pads", pads, 4), ort_attr_int("group", u->group)};
    return ort_edit_add_result(u->c->graph, "Conv", inputs, inputs[2] == ORT_ID_NONE ? 2 : 3, set,
                               2, result, err);
}

/* ---- the codes */

/* A value between two steps; the last one's is that of the QuantizeLinear. */
static ort_id result_of(const upscale *u, bool last)
{
    return last ? u->y.node->outputs[0] : ort_graph_add_value(u->c->graph, "");
}

/* The pixels of a block of maps side by side. */
static ort_status add_spread(const upscale *u, ort_id codes, ort_id result, ort_error *err)
{
    ort_attr set[] = {ort_attr_int("blocksize", u->stride), ort_attr_string("mode", "CRD")};
    ort_node_spec spec = {.domain = ONNX, .op_type = "DepthToSpace", .inputs = &codes,
                          .input_count = 1, .outputs = &result, .output_count = 1, .set = set,
                          .set_count = 2, .opset = 13};
    return ort_edit_add_node(u->c->graph, &spec, NULL, err);
}

/* What the pads leave out goes. */
static ort_status add_slice(const upscale *u, ort_id codes, ort_id result, ort_error *err)
{
    const int64_t axes[] = {2, 3}, ends[] = {u->cut[0] ? -u->cut[0] : INT32_MAX,
                                             u->cut[1] ? -u->cut[1] : INT32_MAX};
    ort_id inputs[4] = {codes};
    ort_node_spec spec = {.domain = ONNX, .op_type = "Slice", .inputs = inputs, .input_count = 4,
                          .outputs = &result, .output_count = 1, .opset = 13};
    ORT_TRY(ort_constant_list(u->c->graph, u->begin, 2, &inputs[1], err));
    ORT_TRY(ort_constant_list(u->c->graph, ends, 2, &inputs[2], err));
    ORT_TRY(ort_constant_list(u->c->graph, axes, 2, &inputs[3], err));
    return ort_edit_add_node(u->c->graph, &spec, NULL, err);
}

static ort_status write(const upscale *u, const bias_row *b, ort_error *err)
{
    ort_graph *graph = u->c->graph;
    bool cut = u->cut[0] || u->cut[1] || u->begin[0] || u->begin[1], spread = u->stride > 1;
    ort_id result, codes = result_of(u, !cut && !spread);
    ort_id moved = spread ? result_of(u, !cut) : codes, whole = result_of(u, true);
    if (codes == ORT_ID_NONE || moved == ORT_ID_NONE)
        return ort_error_memory(err, sizeof codes);
    ORT_TRY(add_conv(u, b, &result, err));
    ort_id inputs[3] = {result, u->y.node->inputs[1], ort_edit_input(u->y.node, 2)};
    ort_node_spec quantize = ort_edit_again(u->y.node);
    quantize.inputs = inputs;
    quantize.outputs = &codes;
    quantize.origin = ort_edit_origin(graph, u->node, u->y.node);
    ort_graph_remove_node(graph, u->y.node);
    ort_graph_remove_node(graph, u->node);
    ORT_TRY(ort_edit_add_node(graph, &quantize, NULL, err));
    if (spread)
        ORT_TRY(add_spread(u, codes, moved, err));
    if (cut)
        ORT_TRY(add_slice(u, moved, whole, err));
    ort_quant_drop_unread(graph, u->w.node->outputs[0]);
    return ORT_OK;
}

static ort_status try_at(ort_pass_context *c, ort_node *last, int *changes, ort_error *err)
{
    upscale u = {.c = c, .node = ort_quant_source(c->graph, last)};
    bias_row b;
    if (!ort_edit_is(u.node, ONNX, "ConvTranspose") ||
        !ort_quant_read(c->graph, last, "QuantizeLinear", &u.y) ||
        !ort_quant_is_code(u.y.dtype) || !ort_quant_is_plain(&u.y))
        return ORT_OK;
    const char *why = read_node(&u);
    if (!why && !read_bias(&u, &b))
        why = "its bias isn't constant";
    if (why) {
        ort_pass_note(c, u.node, "%s", why);
        return ORT_OK;
    }
    ++*changes;
    return u.node->outputs[0] != last->inputs[0] ? ort_quant_swap(c, last, err)
                                                 : write(&u, &b, err);
}

static ort_status apply(ort_pass_context *c, int *changes, ort_error *err)
{
    ort_node *node;
    if (c->portable)
        return ORT_OK;
    ORT_PASS_EACH_NODE(c->graph, node)
        if (ort_edit_is(node, ONNX, "QuantizeLinear"))
            ORT_TRY(try_at(c, node, changes, err));
    return ORT_OK;
}

const ort_pass ort_pass_quant_upscale = {
    .name = "quant_upscale",
    .level = 2,
    .doc = "a ConvTranspose between DequantizeLinear and QuantizeLinear becomes a Conv (session)",
    .apply = apply,
};

/* opencl_codes.c - QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: floats as codes and
 * back; MatMulNBits: products with weights of few bits, which stay packed on the device.
 */
#include <string.h>

#include "provider/opencl/opencl_parts.h"

/* The type of codes as kernels are called; NULL: none has it. */
static const char *code_name(ort_dtype type, bool encodes)
{
    return type == ORT_DTYPE_INT8                ? "char"
           : type == ORT_DTYPE_UINT8             ? "uchar"
           : type == ORT_DTYPE_INT16             ? "short"
           : type == ORT_DTYPE_UINT16            ? "ushort"
           : type == ORT_DTYPE_INT32 && !encodes ? "int"
                                                 : NULL;
}

static bool claim_codes(const ort_graph *graph, const ort_node *node, const char **why)
{
    bool encodes = !strcmp(node->op_type, "QuantizeLinear");
    const ort_type *y = &graph->values.data[node->outputs[0]]->fact.type;
    ort_dtype codes = encodes ? y->dtype : ort_cl_type(graph, node, 0);
    ort_dtype floats = encodes ? ort_cl_type(graph, node, 0) : y->dtype;
    *why = "the element types have no kernel";
    return code_name(codes, encodes) && floats == ORT_DTYPE_FLOAT &&
           ort_cl_type(graph, node, 1) == ORT_DTYPE_FLOAT &&
           (!ort_cl_has(node, 2) || ort_cl_type(graph, node, 2) == codes);
}

/* Which elements share a scale (codes.cl): all, those of an index of the axis, or blocks. */
typedef struct sharing {
    int64_t inner, channels, block, behind;
} sharing;

static sharing sharing_of(const ort_cl_step *s)
{
    const ort_fact *x = ort_cl_in(s, 0), *scale = ort_cl_in(s, 1);
    int rank = x->type.rank;
    int64_t axis = ort_node_int(s->node, "axis", 1), inner = 1;
    int64_t block = ort_node_int(s->node, "block_size", 0);
    if (ort_cl_count(scale) == 1)
        return (sharing){1, 1, 1, 1};
    axis += axis < 0 ? rank : 0;
    for (int d = (int)axis + 1; d < rank; d++)
        inner *= ort_cl_dim(x, d);
    if (!block || scale->type.rank < 2)
        return (sharing){inner, ort_cl_dim(x, (int)axis), 1, 1};
    /* Rows of all axes in front follow each other: the whole of a row is a multiple of blocks. */
    return (sharing){inner, ort_cl_count(scale) / inner, block, inner};
}

static ort_status emit_codes(ort_cl_step *s, ort_error *err)
{
    static const char *const names[2][5] = {
        {"decode_char", "decode_uchar", "decode_short", "decode_ushort", "decode_int"},
        {"encode_char", "encode_uchar", "encode_short", "encode_ushort", NULL}};
    bool encodes = !strcmp(s->node->op_type, "QuantizeLinear"), zero = ort_cl_has(s->node, 2);
    const ort_fact *x = ort_cl_in(s, 0), *y = ort_cl_out(s, 0);
    const char *name = code_name(encodes ? y->type.dtype : x->type.dtype, encodes);
    const char *const *kernel = names[encodes];
    const sharing g = sharing_of(s);
    const int64_t grid[3] = {ort_cl_items(s, ort_cl_count(y)), 1, 1};
    while (strcmp(*kernel + strlen("decode_"), name))
        kernel++;
    int from = ort_cl_read(s, 0);
    ort_cl_launch_grid(s, "codes", *kernel, grid, NULL, "bbbbiiiiii", from, ort_cl_read(s, 1),
                       zero ? ort_cl_read(s, 2) : from, ort_cl_write(s, 0), (int64_t)zero, g.inner,
                       g.channels, g.block, g.behind, ort_cl_count(y));
    return ORT_OK;
}

/* Blocks that the axis isn't a multiple of would not follow each other. */
static bool claim_linear(const ort_graph *graph, const ort_node *node, const char **why)
{
    const ort_type *x = &graph->values.data[node->inputs[0]]->fact.type;
    int64_t block = ort_node_int(node, "block_size", 0), axis = ort_node_int(node, "axis", 1);
    axis += axis < 0 ? x->rank : 0;
    if (!claim_codes(graph, node, why))
        return false;
    *why = "blocks that don't fill the axis have no kernel";
    return !block || (axis < x->rank && ort_dim_known(x->dim[axis]) &&
                      x->dim[axis].size % block == 0);
}

enum { PIECE = 4096 }; /* codes.cl */

static ort_status emit_dynamic(ort_cl_step *s, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0);
    int64_t count = ort_cl_count(x), pieces = (count + PIECE - 1) / PIECE;
    int from = ort_cl_read(s, 0), ranges = ort_cl_scratch(s, 2 * pieces + 2);
    int to = ort_cl_write(s, 0), scale = ort_cl_write(s, 1), zero = ort_cl_write(s, 2);
    const int64_t grid[3] = {pieces, 1, 1}, one[3] = {1, 1, 1};
    const int64_t items[3] = {ort_cl_items(s, count), 1, 1};
    ort_cl_launch_grid(s, "codes", "ranges", grid, NULL, "bbi", from, ranges, count);
    ort_cl_launch_grid(s, "codes", "range_codes", one, NULL, "bbbi", ranges, scale, zero, pieces);
    ort_cl_launch_grid(s, "codes", "encode_uchar", items, NULL, "bbbbiiiiii", from, scale, zero,
                       to, (int64_t)1, (int64_t)1, (int64_t)1, (int64_t)1, (int64_t)1, count);
    return ORT_OK;
}

static bool claim_dynamic(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "this form has no kernel";
    return ort_cl_gives(node, 0) && ort_cl_gives(node, 1) && ort_cl_gives(node, 2) &&
           ort_cl_type(graph, node, 0) == ORT_DTYPE_FLOAT;
}

/* ---- MatMulNBits */

enum { IN_A, IN_B, IN_SCALES, IN_ZEROS, IN_ORDER, IN_BIAS };

static bool claim_few_bits(const ort_graph *graph, const ort_node *node, const char **why)
{
    int64_t bits = ort_node_int(node, "bits", 4), block = ort_node_int(node, "block_size", 0);
    *why = "this form has no kernel";
    if (bits < 2 || bits > 8 || block < 16 || ort_cl_has(node, IN_ORDER) ||
        ort_node_int(node, "weight_prepacked", 0))
        return false;
    *why = "the element types have no kernel";
    for (int i = 0; i < node->input_count; i++)
        if (ort_cl_has(node, i) && i != IN_B &&
            ort_cl_type(graph, node, i) != ORT_DTYPE_FLOAT &&
            (i != IN_ZEROS || ort_cl_type(graph, node, i) != ORT_DTYPE_UINT8))
            return false;
    return ort_cl_type(graph, node, IN_B) == ORT_DTYPE_UINT8;
}

enum { ROWS_AT_ONCE = 8 }; /* codes.cl */

static ort_status emit_few_bits(ort_cl_step *s, ort_error *err)
{
    const ort_fact *y = ort_cl_out(s, 0);
    int64_t n = ort_node_int(s->node, "N", 1), k = ort_node_int(s->node, "K", 1);
    int64_t bits = ort_node_int(s->node, "bits", 4), m = ort_cl_count(y) / n;
    int64_t block = ort_node_int(s->node, "block_size", 32), blocks = (k + block - 1) / block;
    bool zeros = ort_cl_has(s->node, IN_ZEROS), bias = ort_cl_has(s->node, IN_BIAS);
    bool packed = zeros && ort_cl_in(s, IN_ZEROS)->type.dtype == ORT_DTYPE_UINT8;
    const int64_t grid[3] = {n, (m + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE, 1};
    int a = ort_cl_read(s, IN_A);
    ort_cl_launch_grid(s, "codes", "few_bits", grid, NULL, "bbbbbbiiiiiiii", a,
                       ort_cl_read(s, IN_B), ort_cl_read(s, IN_SCALES),
                       zeros ? ort_cl_read(s, IN_ZEROS) : a, bias ? ort_cl_read(s, IN_BIAS) : a,
                       ort_cl_write(s, 0), (int64_t)(packed ? 1 : zeros ? 2 : 0), (int64_t)bias,
                       m, n, k, bits, block, blocks);
    return ORT_OK;
}

const ort_cl_row ort_cl_codes_rows[] = {
    {ONNX, "QuantizeLinear", claim_linear, emit_codes, .typed = true},
    {ONNX, "DequantizeLinear", claim_linear, emit_codes, .typed = true},
    {MS, "QuantizeLinear", claim_linear, emit_codes, .typed = true},
    {MS, "DequantizeLinear", claim_linear, emit_codes, .typed = true},
    {ONNX, "DynamicQuantizeLinear", claim_dynamic, emit_dynamic, .typed = true},
    {MS, "MatMulNBits", claim_few_bits, emit_few_bits},
    {0},
};

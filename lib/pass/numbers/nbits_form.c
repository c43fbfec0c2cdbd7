/* nbits_form.c - a product with weights dequantized by blocks becomes MatMulNBits.
 *
 *     MatMul(a, DequantizeLinear(w [K,N], scale [K/block,N], zero, axis 0))
 *     MatMul(a, Transpose(DequantizeLinear(w [N,K], scale [N,K/block], zero, axis 1)))
 *
 * w holds constants of 2, 4 or 8 bits, in blocks of a multiple of 16. Where that is no power of 2,
 * the parts of a block that are get its scale each. The operator of com.microsoft wants [N][blocks]
 * blocks of unsigned codes, low bits first, with the middle of the range as zero point when none is
 * given: a signed code is the unsigned one with its sign bit turned. Two matrices may be a Gemm by
 * now. accuracy_level stays 0, so that sums are those of the float product, unless a property of
 * the model says otherwise; when onnxruntime itself rewrites the pattern it allows activations of 8
 * bits (level 4), which is quicker and far from exact.
 */
#include <string.h>

#include "base/error.h"
#include "graph/override.h"
#include "pass/facts/constants.h"
#include "pass/facts/facts.h"
#include "pass/rewrite.h"

enum { TURNED = 1, GEMM = 2 };

/* The property has the name of the entry with which onnxruntime's sessions are told the same. */
static int accuracy_level(const ort_model *model)
{
    const char *level = ort_graph_metadata(model, "session.qdq_matmulnbits_accuracy_level");
    return level && !strcmp(level, "4") ? 4 : 0;
}

typedef struct blocks {
    const ort_tensor *w, *scale, *zero; /* zero or NULL */
    bool turned;                        /* rows are columns of the product */
    int bits;
    unsigned flip;                      /* what makes a signed code an unsigned one */
    int64_t K, N, block, count;         /* count: blocks along K */
    int64_t part, parts;                /* what becomes a block, and how many of them are along K */
} blocks;

static bool read_dtype(ort_dtype dtype, blocks *b)
{
    b->bits = ort_dtype_bits(dtype);
    bool is_signed = dtype == ORT_DTYPE_INT8 || dtype == ORT_DTYPE_INT4 || dtype == ORT_DTYPE_INT2;
    b->flip = is_signed ? 1u << (b->bits - 1) : 0;
    return is_signed || dtype == ORT_DTYPE_UINT8 || dtype == ORT_DTYPE_UINT4 ||
           dtype == ORT_DTYPE_UINT2;
}

static bool has_shape(const ort_tensor *t, int64_t rows, int64_t columns)
{
    return t->shape.rank == 2 && t->shape.dim[0] == rows && t->shape.dim[1] == columns &&
           !t->stride && t->data;
}

/* A product alone, whichever side is transposed; a Transpose of two dims turns them. */
static bool is_plain(const ort_node *root, unsigned flags)
{
    return !(flags & GEMM) || (ort_node_attr_float(root, "alpha") == 1.0f &&
                               !ort_node_attr_int(root, "transA"));
}

static const char *check(const ort_pass_context *c, const ort_match *m, unsigned flags, blocks *b)
{
    const ort_node *d = ort_match_node(m, "d");
    bool turned = flags & GEMM ? ort_node_attr_int(m->nodes[0], "transB") != 0 : flags & TURNED;
    const ort_type *a = ort_match_type(m, "a");
    *b = (blocks){.w = ort_match_constant(m, "w"),
                  .scale = ort_match_constant(m, "s"),
                  .zero = ort_edit_constant(c->graph, d, 2),
                  .turned = turned,
                  .block = ort_node_attr_int(d, "block_size")};
    if (!is_plain(m->nodes[0], flags))
        return "the product is scaled, or its left side transposed";
    if (b->block < 16 || b->block % 16)
        return "the weights aren't in blocks of a multiple of 16";
    if (b->w->shape.rank != 2 || !read_dtype(b->w->dtype, b))
        return "the weights aren't a matrix of 2, 4 or 8 bits";
    b->K = b->w->shape.dim[turned];
    b->N = b->w->shape.dim[!turned];
    b->count = (b->K + b->block - 1) / b->block;
    b->part = b->block & -b->block;
    b->parts = (b->K + b->part - 1) / b->part;
    if (ort_fact_axis(d, 2) != turned)
        return "the blocks aren't along the rows of the product";
    int64_t rows = turned ? b->N : b->count, columns = turned ? b->count : b->N;
    if (!has_shape(b->w, b->w->shape.dim[0], b->w->shape.dim[1]) ||
        !has_shape(b->scale, rows, columns) || a->dtype != b->scale->dtype)
        return "the scales aren't of the blocks, or of another type than what is multiplied";
    if (ort_edit_input(d, 2) != ORT_ID_NONE &&
        (!b->zero || b->zero->dtype != b->w->dtype || !has_shape(b->zero, rows, columns)))
        return "the zero points aren't constants of the blocks";
    if (ort_type_rank(a) < 2)
        return "the rank of the left side isn't known";
    return NULL;
}

static unsigned code_at(const void *data, int64_t index, int bits)
{
    int64_t at = index * bits;
    return (unsigned)((const uint8_t *)data)[at >> 3] >> (at & 7) & ((1u << bits) - 1);
}

static void put_code(uint8_t *data, int64_t index, int bits, unsigned code)
{
    int64_t at = index * bits;
    data[at >> 3] = (uint8_t)(data[at >> 3] | code << (at & 7));
}

/* [rows][columns], or turned round, as rows of N that begin at whole bytes; `count` of each, where
 * `each` of them are one column. */
static ort_status repack(ort_pass_context *c, const blocks *b, const ort_tensor *from,
                         int64_t columns, int64_t count, int64_t each, const ort_shape *shape,
                         ort_id *id, ort_error *err)
{
    ort_tensor made;
    ORT_TRY(ort_edit_new_constant(c->graph, "", ORT_DTYPE_UINT8, shape, &made, id, err));
    uint8_t *to = made.data;
    int64_t bytes = ort_tensor_count(&made), row = bytes / (b->N > 0 ? b->N : 1);
    memset(to, 0, (size_t)bytes);
    for (int64_t i = 0; i < count; i++)
        for (int64_t n = 0; n < b->N; n++) {
            const int64_t k = i / each, at = b->turned ? n * columns + k : k * b->N + n;
            put_code(to + n * row, i, b->bits, code_at(from->data, at, b->bits) ^ b->flip);
        }
    return ORT_OK;
}

static ort_status scales_of(ort_pass_context *c, const ort_match *m, const blocks *b, ort_id *id,
                            ort_error *err)
{
    ort_tensor made;
    ort_shape shape = ort_shape_make(2, (const int64_t[]){b->N, b->parts});
    *id = ort_match_value(m, "s");
    if (b->turned && b->part == b->block)
        return ORT_OK;
    ORT_TRY(ort_edit_new_constant(c->graph, "", b->scale->dtype, &shape, &made, id, err));
    for (int64_t i = 0; i < b->parts; i++)
        for (int64_t n = 0; n < b->N; n++) {
            const int64_t k = i * b->part / b->block;
            ort_tensor_set_f64(&made, n * b->parts + i,
                               ort_tensor_get_f64(b->scale, b->turned ? n * b->count + k
                                                                      : k * b->N + n));
        }
    return ORT_OK;
}

static ort_status write(ort_pass_context *c, ort_match *m, int *changes, ort_error *err)
{
    blocks b;
    ort_id inputs[4] = {ort_match_value(m, "a"), ORT_ID_NONE, ORT_ID_NONE, ORT_ID_NONE};
    const char *why = check(c, m, m->flags, &b);
    if (why)
        ort_pass_note(c, m->nodes[0], "%s", why);
    if (why || !ort_pass_opset(c, m->nodes[0], MS, "MatMulNBits", 1))
        return ORT_OK;
    ort_shape packed = ort_shape_make(3, (const int64_t[]){b.N, b.parts, b.part * b.bits / 8});
    ort_shape zeros = ort_shape_make(2, (const int64_t[]){b.N, (b.parts * b.bits + 7) / 8});
    ORT_TRY(repack(c, &b, b.w, b.K, b.K, 1, &packed, &inputs[1], err));
    ORT_TRY(scales_of(c, m, &b, &inputs[2], err));
    if (b.zero)
        ORT_TRY(repack(c, &b, b.zero, b.count, b.parts, b.block / b.part, &zeros, &inputs[3],
                       err));
    else if (!b.flip) /* zero itself, not the middle */
        ORT_TRY(ort_constant_filled(c->graph, ORT_DTYPE_UINT8, 2, zeros.dim, 0, &inputs[3], err));
    int level = accuracy_level(c->graph->model);
    ort_attr set[5] = {ort_attr_int("K", b.K), ort_attr_int("N", b.N),
                       ort_attr_int("bits", b.bits), ort_attr_int("block_size", b.part),
                       ort_attr_int("accuracy_level", level)};
    ort_node_spec spec = {.domain = MS, .op_type = "MatMulNBits", .inputs = inputs,
                          .input_count = inputs[3] == ORT_ID_NONE ? 3 : 4, .set = set,
                          .set_count = level ? 5 : 4, .opset = 1};
    ++*changes;
    return ort_match_replace(m, &spec, err);
}

#define COLUMNS "a:3,32 w:32,8.u4 s:2,8 DequantizeLinear.axis=0 "
#define ROWS "a:3,32 w:8,32.u4 s:8,2 DequantizeLinear.axis=1 "
#define BLOCKS "DequantizeLinear.block_size=16 opset=21"

static const ort_rewrite rewrites[] = {
    {"(MatMul a d:(DequantizeLinear #w #s ...))", .write = write, .example = COLUMNS BLOCKS},
    {"(MatMul a (Transpose d:(DequantizeLinear #w #s ...)))", .write = write, .flags = TURNED,
     .example = ROWS BLOCKS},
    {"(Gemm a d:(DequantizeLinear #w #s ...))", .write = write, .flags = GEMM,
     .example = COLUMNS BLOCKS},
    {0},
};

const ort_pass ort_pass_nbits_form = {
    .name = "nbits_form",
    .level = 2,
    .doc = "MatMul with weights dequantized by blocks becomes MatMulNBits",
    .rewrites = rewrites,
};

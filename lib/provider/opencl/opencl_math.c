/* opencl_math.c - products of matrices, elementwise operators. */
#include <math.h>
#include <string.h>

#include "provider/opencl/opencl_parts.h"

/* ---- Gemm */

static bool claim_gemm(const ort_graph *graph, const ort_node *node, const char **why)
{
    ort_cl_activation activation;
    *why = "the activation has no kernel";
    return ort_cl_floats(graph, node) && ort_cl_find_activation(node, &activation) &&
           ort_cl_rank(graph, node, 0) == 2;
}

static ort_status emit_gemm(ort_cl_step *s, ort_error *err)
{
    const ort_fact *a = ort_cl_in(s, 0), *y = ort_cl_out(s, 0);
    bool across = ort_node_int(s->node, "transA", 0), turned = ort_node_int(s->node, "transB", 0);
    int64_t m = ort_cl_dim(y, 0), n = ort_cl_dim(y, 1), k = ort_cl_dim(a, across ? 0 : 1);
    ort_cl_product p = {.batch1 = 1, .batch2 = 1, .m = m, .n = n, .k = k,
                        .alpha = ort_node_float(s->node, "alpha", 1),
                        .beta = ort_node_float(s->node, "beta", 1)};
    (void)ort_cl_find_activation(s->node, &p.activation);
    p.a = (ort_cl_matrix){ort_cl_read(s, 0), 0, 0, 0, across ? 1 : k, across ? m : 1};
    p.b = (ort_cl_matrix){0, 0, 0, 0, turned ? 1 : n, turned ? k : 1};
    p.b_input = 1;
    p.c = ort_cl_no_matrix();
    if (ort_cl_has(s->node, 2)) {
        int64_t stride[2];
        ort_cl_spread(&ort_cl_in(s, 2)->type, 2, stride);
        p.c = (ort_cl_matrix){ort_cl_read(s, 2), 0, 0, 0, stride[0], stride[1]};
    }
    p.y = (ort_cl_matrix){ort_cl_write(s, 0), 0, 0, 0, n, 1};
    ort_cl_multiply(s, &p);
    return ORT_OK;
}

/* ---- MatMul */

/* Up to two batch axes; any number of A's where B has none. */
static bool claim_matmul(const ort_graph *graph, const ort_node *node, const char **why)
{
    int a = ort_cl_rank(graph, node, 0), b = ort_cl_rank(graph, node, 1);
    bool turned = ort_node_int(node, "transA", 0) || ort_node_int(node, "transB", 0);
    *why = "more than two batch axes have no kernel";
    return ort_cl_floats(graph, node) && a >= 1 && b >= 1 && (a <= 4 || b <= 2) && b <= 4 &&
           (!turned || (a >= 2 && b >= 2 && a <= 4)) && !ort_node_int(node, "transBatchA", 0) &&
           !ort_node_int(node, "transBatchB", 0);
}

/* A vector is a row on the left, a column on the right. */
static ort_type matrix_of(const ort_type *type, bool left)
{
    ort_type t = *type;
    if (t.rank != 1)
        return t;
    t.rank = 2;
    t.dim[1] = left ? t.dim[0] : ort_dim_of(1);
    t.dim[0] = left ? ort_dim_of(1) : t.dim[0];
    return t;
}

/* All rows of A as one matrix: B has no batch axes. */
static int64_t rows_of(const ort_type *a)
{
    int64_t rows = 1;
    for (int d = 0; d < a->rank - 1; d++)
        rows *= a->dim[d].size;
    return rows;
}

static ort_status emit_matmul(ort_cl_step *s, ort_error *err)
{
    const ort_type a = matrix_of(&ort_cl_in(s, 0)->type, true);
    const ort_type b = matrix_of(&ort_cl_in(s, 1)->type, false);
    bool across = ort_node_int(s->node, "transA", 0), turned = ort_node_int(s->node, "transB", 0);
    int64_t as[4] = {0}, bs[4] = {0}, batch[2] = {1, 1};
    int64_t m = a.dim[a.rank - (across ? 1 : 2)].size, k = a.dim[a.rank - (across ? 2 : 1)].size;
    int64_t n = b.dim[b.rank - (turned ? 2 : 1)].size;
    if (b.rank == 2 && !across) {
        m = rows_of(&a);
    } else {
        ort_cl_spread(&a, 4, as);
        ort_cl_spread(&b, 4, bs);
        for (int d = 0; d < 2; d++) { /* the second and third axis from the right but one */
            int at = a.rank - 4 + d, bt = b.rank - 4 + d;
            int64_t left = at >= 0 ? a.dim[at].size : 1, right = bt >= 0 ? b.dim[bt].size : 1;
            batch[d] = left == 1 ? right : left;
        }
    }
    ort_cl_product p = {.batch1 = batch[0], .batch2 = batch[1], .m = m, .n = n, .k = k,
                        .alpha = ort_node_float(s->node, "alpha", 1), .c = ort_cl_no_matrix()};
    p.a = (ort_cl_matrix){ort_cl_read(s, 0), 0, as[0], as[1], across ? 1 : k, across ? m : 1};
    p.b = (ort_cl_matrix){0, 0, bs[0], bs[1], turned ? 1 : n, turned ? k : 1};
    p.b_input = 1;
    p.y = (ort_cl_matrix){ort_cl_write(s, 0), 0, batch[1] * m * n, m * n, n, 1};
    ort_cl_multiply(s, &p);
    return ORT_OK;
}

/* ---- elementwise */

static ort_status emit_unary_with(ort_cl_step *s, double a, double b)
{
    int64_t count = ort_cl_count(ort_cl_out(s, 0));
    const int64_t grid[3] = {ort_cl_items(s, count), 1, 1};
    ort_cl_launch_grid(s, "map", s->row->kernel, grid, NULL, "bbffi", ort_cl_read(s, 0),
                       ort_cl_write(s, 0), a, b, count);
    return ORT_OK;
}

static ort_status emit_unary(ort_cl_step *s, ort_error *err)
{
    return emit_unary_with(s, ort_node_attr_float(s->node, "alpha"),
                           ort_node_attr_float(s->node, "beta"));
}

static bool claim_alone(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "a bias has no kernel";
    return !ort_cl_has(node, 1);
}

static ort_status emit_selu(ort_cl_step *s, ort_error *err)
{
    return emit_unary_with(s, ort_node_attr_float(s->node, "alpha"),
                           ort_node_attr_float(s->node, "gamma"));
}

static ort_status emit_gelu(ort_cl_step *s, ort_error *err)
{
    bool by_tanh = strcmp(ort_node_string(s->node, "approximate", "none"), "none");
    const ort_cl_row row = {.kernel = by_tanh ? "gelu_tanh" : "gelu"};
    s->row = &row;
    return emit_unary_with(s, 0, 0);
}

static bool claim_clip(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "bounds that aren't constants have no kernel";
    return ort_cl_is_given(graph, node, 1) && ort_cl_is_given(graph, node, 2);
}

static double bound(const ort_cl_step *s, int input, const char *attr, double none)
{
    const ort_fact *fact = ort_cl_in(s, input);
    float value = (float)none;
    if (fact && fact->value)
        ort_tensor_to_f32(fact->value, 0, 1, &value);
    return fact ? value : ort_node_float(s->node, attr, value);
}

static ort_status emit_clip(ort_cl_step *s, ort_error *err)
{
    return emit_unary_with(s, bound(s, 1, "min", -INFINITY), bound(s, 2, "max", INFINITY));
}

static bool claim_binary(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "this form has no kernel";
    return node->input_count == 2 && ort_cl_floats(graph, node) && node->opset >= 7;
}

static bool claim_biased(const ort_graph *graph, const ort_node *node, const char **why)
{
    return node->input_count == 2 && ort_cl_floats(graph, node);
}

static ort_status emit_binary(ort_cl_step *s, ort_error *err)
{
    const ort_fact *y = ort_cl_out(s, 0);
    ort_cl_walk w = ort_cl_walk_of(&y->type);
    const int64_t grid[3] = {ort_cl_items(s, ort_cl_count(y)), 1, 1};
    ort_cl_spread(&ort_cl_in(s, 0)->type, ORT_CL_AXES, w.x);
    ort_cl_spread(&ort_cl_in(s, 1)->type, ORT_CL_AXES, w.y);
    ort_cl_join_axes(&w);
    ort_cl_launch_grid(s, "map", s->row->kernel, grid, NULL, "bbbvvvi", ort_cl_read(s, 0),
                       ort_cl_read(s, 1), ort_cl_write(s, 0), w.n, w.x, w.y, ort_cl_count(y));
    return ORT_OK;
}

const ort_cl_row ort_cl_math_rows[] = {
    {ONNX, "Gemm", claim_gemm, emit_gemm, NULL},
    {MS, "FusedGemm", claim_gemm, emit_gemm, NULL},
    {ONNX, "MatMul", claim_matmul, emit_matmul, NULL},
    {MS, "FusedMatMul", claim_matmul, emit_matmul, NULL},
    {ONNX, "Relu", NULL, emit_unary, "relu"},
    {ONNX, "LeakyRelu", NULL, emit_unary, "leaky_relu"},
    {ONNX, "Clip", claim_clip, emit_clip, "clip"},
    {ONNX, "Sigmoid", NULL, emit_unary, "sigmoid"},
    {ONNX, "Tanh", NULL, emit_unary, "tanh_"},
    {ONNX, "HardSigmoid", NULL, emit_unary, "hard_sigmoid"},
    {ONNX, "HardSwish", NULL, emit_unary, "hard_swish"},
    {MS, "QuickGelu", NULL, emit_unary, "quick_gelu"},
    {MS, "Gelu", NULL, emit_unary, "gelu"},
    {ONNX, "Gelu", NULL, emit_gelu, NULL},
    {MS, "FastGelu", claim_alone, emit_unary, "gelu_tanh"},
    {ONNX, "Sin", NULL, emit_unary, "sin_"},
    {ONNX, "Cos", NULL, emit_unary, "cos_"},
    {ONNX, "Round", NULL, emit_unary, "round_"},
    {ONNX, "Sign", NULL, emit_unary, "sign_"},
    {ONNX, "Softsign", NULL, emit_unary, "softsign"},
    {ONNX, "Selu", NULL, emit_selu, "selu"},
    {ONNX, "Celu", NULL, emit_unary, "celu"},
    {ONNX, "ThresholdedRelu", NULL, emit_unary, "thresholded"},
    {ONNX, "Mish", NULL, emit_unary, "mish"},
    {ONNX, "Swish", NULL, emit_unary, "swish"},
    {ONNX, "Exp", NULL, emit_unary, "exp_"},
    {ONNX, "Log", NULL, emit_unary, "log_"},
    {ONNX, "Sqrt", NULL, emit_unary, "sqrt_"},
    {ONNX, "Neg", NULL, emit_unary, "neg"},
    {ONNX, "Abs", NULL, emit_unary, "abs_"},
    {ONNX, "Erf", NULL, emit_unary, "erf_"},
    {ONNX, "Reciprocal", NULL, emit_unary, "reciprocal"},
    {ONNX, "Floor", NULL, emit_unary, "floor_"},
    {ONNX, "Ceil", NULL, emit_unary, "ceil_"},
    {ONNX, "Elu", NULL, emit_unary, "elu"},
    {ONNX, "Softplus", NULL, emit_unary, "softplus"},
    {ONNX, "Add", claim_binary, emit_binary, "add"},
    {ONNX, "Sub", claim_binary, emit_binary, "sub"},
    {ONNX, "Mul", claim_binary, emit_binary, "mul"},
    {ONNX, "Div", claim_binary, emit_binary, "divide"},
    {ONNX, "Pow", claim_binary, emit_binary, "power"},
    {ONNX, "Max", claim_binary, emit_binary, "most"},
    {ONNX, "Min", claim_binary, emit_binary, "least"},
    {ONNX, "PRelu", claim_binary, emit_binary, "prelu"},
    {MS, "BiasGelu", claim_biased, emit_binary, "bias_gelu"},
    {0},
};

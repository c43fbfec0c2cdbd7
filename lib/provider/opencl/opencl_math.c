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
    p.activation = ort_cl_activation_of(s);
    p.a = (ort_cl_matrix){ort_cl_read(s, 0), 0, 0, 0, across ? 1 : k, across ? m : 1};
    p.b = (ort_cl_matrix){0, 0, 0, 0, turned ? 1 : n, turned ? k : 1};
    p.b_input = 1;
    p.c = ort_cl_no_matrix();
    if (ort_cl_has(s->node, 2)) {
        int64_t stride[2];
        ort_cl_spread(&ort_cl_in(s, 2)->type, 2, stride);
        p.c = (ort_cl_matrix){ort_cl_read(s, 2), 0, 0, 0, stride[0], stride[1]};
    }
    p.y = (ort_cl_matrix){-1, 0, 0, 0, n, 1};
    p.find_norm = ort_cl_norm_behind;
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

/* Several products of all rows of A in one launch; false: nothing is launched. */
static bool multiply_siblings(ort_cl_step *s, int64_t m, int64_t n, int64_t k)
{
    const ort_node *nodes[ORT_CL_SIBLINGS];
    ort_cl_plan *plan = s->plan;
    int count = ort_cl_siblings(s, nodes);
    int to = count > 1 ? ort_cl_write_parts(s, nodes, count) : -1;
    if (to < 0)
        return false;
    const ort_cl_product p = {.batch1 = 1, .batch2 = count, .m = m, .n = n, .k = k, .alpha = 1,
                              .a = {ort_cl_read(s, 0), 0, 0, 0, k, 1}, .b = {0, 0, 0, 0, n, 1},
                              .b_input = 1, .nodes = nodes, .c = ort_cl_no_matrix(),
                              .y = {to, 0, 0, m * n, n, 1}};
    ort_cl_multiply(s, &p);
    for (int i = 1; i < count; i++)
        plan->ahead[nodes[i]->outputs[0]].made = true;
    return true;
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
        if (multiply_siblings(s, m, n, k))
            return ORT_OK;
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
                        .alpha = ort_node_float(s->node, "alpha", 1), .c = ort_cl_no_matrix(),
                        .activation = ort_cl_activation_of(s)};
    p.a = (ort_cl_matrix){ort_cl_read(s, 0), 0, as[0], as[1], across ? 1 : k, across ? m : 1};
    p.b = (ort_cl_matrix){0, 0, bs[0], bs[1], turned ? 1 : n, turned ? k : 1};
    p.b_input = 1;
    p.y = (ort_cl_matrix){-1, 0, batch[1] * m * n, m * n, n, 1};
    p.find_norm = ort_cl_norm_behind;
    ort_cl_multiply(s, &p);
    return ORT_OK;
}

/* ---- elementwise */

static const char *alpha_beta(const ort_cl_step *s, double *two)
{
    two[0] = ort_node_attr_float(s->node, "alpha");
    two[1] = ort_node_attr_float(s->node, "beta");
    return s->row->kernel;
}

static bool claim_alone(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "a bias has no kernel";
    return !ort_cl_has(node, 1);
}

static const char *alpha_gamma(const ort_cl_step *s, double *two)
{
    two[0] = ort_node_attr_float(s->node, "alpha");
    two[1] = ort_node_attr_float(s->node, "gamma");
    return s->row->kernel;
}

static const char *which_gelu(const ort_cl_step *s, double *two)
{
    bool by_tanh = strcmp(ort_node_string(s->node, "approximate", "none"), "none");
    return by_tanh ? "gelu_tanh" : "gelu";
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

static const char *bounds(const ort_cl_step *s, double *two)
{
    two[0] = bound(s, 1, "min", -INFINITY);
    two[1] = bound(s, 2, "max", INFINITY);
    return s->row->kernel;
}

/* ---- of several operands */

static bool claim_operands(const ort_graph *graph, const ort_node *node, int most,
                           const char **why)
{
    *why = "more than four operands have no kernel";
    if (node->input_count > most)
        return false;
    *why = "this form has no kernel";
    return node->input_count > 0 && node->opset >= 7;
}

static bool claim_floats(const ort_graph *graph, const ort_node *node, const char **why)
{
    return claim_operands(graph, node, 4, why) && ort_cl_floats(graph, node);
}

static bool all_of(const ort_graph *graph, const ort_node *node, const char *elements)
{
    for (int i = 0; i < node->input_count; i++) {
        int element = ort_cl_element(ort_cl_type(graph, node, i));
        if (element < 0 || !strchr(elements, '0' + element) ||
            ort_cl_type(graph, node, i) != ort_cl_type(graph, node, 0))
            return false;
    }
    return true;
}

static bool claim_numbers(const ort_graph *graph, const ort_node *node, const char **why)
{
    if (!claim_operands(graph, node, 4, why))
        return false;
    *why = "the element type has no kernel";
    return all_of(graph, node, "012");
}

static bool claim_flags(const ort_graph *graph, const ort_node *node, const char **why)
{
    if (!claim_operands(graph, node, 2, why))
        return false;
    *why = "the element type has no kernel";
    return all_of(graph, node, "3");
}

static bool claim_not(const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "the element type has no kernel";
    return all_of(graph, node, "3");
}

static bool claim_biased(const ort_graph *graph, const ort_node *node, const char **why)
{
    return node->input_count == 2 && ort_cl_floats(graph, node);
}

static bool claim_where(const ort_graph *graph, const ort_node *node, const char **why)
{
    int element = ort_cl_element(ort_cl_type(graph, node, 1));
    *why = "the element type has no kernel";
    return element >= 0 && element < 3;
}

static bool claim_cast(const ort_graph *graph, const ort_node *node, const char **why)
{
    int from = ort_cl_element(ort_cl_type(graph, node, 0));
    int to = ort_cl_element(graph->values.data[node->outputs[0]]->fact.type.dtype);
    *why = "these types have no kernel";
    return from >= 0 && to >= 0 && from != to;
}

#define ONE(domain, name, function, ...)                                                           \
    {domain, name, .kernel = function, .form = ORT_CL_ONE, __VA_ARGS__}
#define FOLD(domain, name, function, claim_, ...)                                                  \
    {domain, name, claim_, .kernel = function, .form = ORT_CL_FOLD, __VA_ARGS__}
#define ALPHA_BETA .numbers = alpha_beta

const ort_cl_row ort_cl_math_rows[] = {
    {ONNX, "Gemm", claim_gemm, emit_gemm, .half = true, .activates = true},
    {MS, "FusedGemm", claim_gemm, emit_gemm, .half = true, .activates = true},
    {ONNX, "MatMul", claim_matmul, emit_matmul, .half = true, .activates = true},
    {MS, "FusedMatMul", claim_matmul, emit_matmul, .half = true, .activates = true},
    ONE(ONNX, "Relu", "relu"),
    ONE(ONNX, "LeakyRelu", "leaky_relu", ALPHA_BETA),
    ONE(ONNX, "Clip", "clip", .claim = claim_clip, .numbers = bounds),
    ONE(ONNX, "Sigmoid", "sigmoid"),
    ONE(ONNX, "Tanh", "tanh_"),
    ONE(ONNX, "HardSigmoid", "hard_sigmoid", ALPHA_BETA),
    ONE(ONNX, "HardSwish", "hard_swish"),
    ONE(MS, "QuickGelu", "quick_gelu", ALPHA_BETA),
    ONE(MS, "Gelu", "gelu"),
    ONE(ONNX, "Gelu", "gelu", .numbers = which_gelu),
    ONE(MS, "FastGelu", "gelu_tanh", .claim = claim_alone),
    ONE(ONNX, "Sin", "sin_"),
    ONE(ONNX, "Cos", "cos_"),
    ONE(ONNX, "Round", "round_"),
    ONE(ONNX, "Sign", "sign_"),
    ONE(ONNX, "Softsign", "softsign"),
    ONE(ONNX, "Selu", "selu", .numbers = alpha_gamma),
    ONE(ONNX, "Celu", "celu", ALPHA_BETA),
    ONE(ONNX, "ThresholdedRelu", "thresholded", ALPHA_BETA),
    ONE(ONNX, "Mish", "mish"),
    ONE(ONNX, "Swish", "swish", ALPHA_BETA),
    ONE(ONNX, "Exp", "exp_"),
    ONE(ONNX, "Log", "log_"),
    ONE(ONNX, "Sqrt", "sqrt_"),
    ONE(ONNX, "Neg", "neg"),
    ONE(ONNX, "Abs", "abs_"),
    ONE(ONNX, "Erf", "erf_"),
    ONE(ONNX, "Reciprocal", "reciprocal"),
    ONE(ONNX, "Floor", "floor_"),
    ONE(ONNX, "Ceil", "ceil_"),
    ONE(ONNX, "Elu", "elu", ALPHA_BETA),
    ONE(ONNX, "Softplus", "softplus"),
    FOLD(ONNX, "Add", "add", claim_numbers, .typed = true),
    FOLD(ONNX, "Sub", "sub", claim_numbers, .typed = true),
    FOLD(ONNX, "Mul", "mul", claim_numbers, .typed = true),
    FOLD(ONNX, "Div", "divide", claim_floats),
    FOLD(ONNX, "Pow", "power", claim_floats),
    FOLD(ONNX, "Max", "most", claim_numbers, .typed = true),
    FOLD(ONNX, "Min", "least", claim_numbers, .typed = true),
    FOLD(ONNX, "PRelu", "prelu", claim_floats),
    FOLD(MS, "BiasGelu", "bias_gelu", claim_biased),
    FOLD(ONNX, "Sum", "add", claim_floats),
    FOLD(ONNX, "Less", "less", claim_numbers, .typed = true),
    FOLD(ONNX, "LessOrEqual", "less_equal", claim_numbers, .typed = true),
    FOLD(ONNX, "Greater", "greater", claim_numbers, .typed = true),
    FOLD(ONNX, "GreaterOrEqual", "greater_equal", claim_numbers, .typed = true),
    FOLD(ONNX, "Equal", "equal", claim_numbers, .typed = true),
    FOLD(ONNX, "And", "and", claim_flags, .typed = true),
    FOLD(ONNX, "Or", "or", claim_flags, .typed = true),
    FOLD(ONNX, "Xor", "xor", claim_flags, .typed = true),
    ONE(ONNX, "Not", "not", .claim = claim_not, .typed = true),
    {ONNX, "Where", claim_where, .kernel = "where", .form = ORT_CL_PICK, .typed = true},
    {ONNX, "Cast", claim_cast, .kernel = "cast", .form = ORT_CL_CAST, .typed = true},
    {0},
};

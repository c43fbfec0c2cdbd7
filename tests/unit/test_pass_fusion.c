/* test_pass_fusion.c - how exporters spell what is one operator: each spelling becomes it where the
 * file may hold it, computes what it did, and stays where a condition fails. */
#include <math.h>

#include "expr.h"
#include "op/edit.h"
#include "pass/pass.h"
#include "test.h"

enum { CONTRIB = 1, HALF = 2, SESSION = 4 };

typedef struct fusion {
    const char *text;    /* expr.h; x is the input, y the output */
    const char *dims;    /* of x: "2,3,8", n and m for symbols of 2 and 3 */
    int opset, flags;
    const char *op_type; /* that must be there, or (with '!') must not */
    int left;            /* nodes that are left, or -1 */
    double tolerance;    /* 0: 2e-6 */
} fusion;

static int count_ops(const net *n, const char *op_type)
{
    ort_node *node;
    int count = 0;
    ORT_EACH_NODE(n->model->graph, node)
        count += !op_type || !strcmp(node->op_type, op_type);
    return count;
}

static void add_up(void *arg, const ort_pass *pass, uint64_t ns, int changes)
{
    (void)pass;
    (void)ns;
    *(int *)arg += changes;
}

/* Changes that the passes up to level 2 make; -1 when they fail. */
static int rewrite(net *n, int flags)
{
    int changes = 0;
    ort_pass_options options = {.level = 2, .portable = !(flags & SESSION),
                                .contrib = flags & CONTRIB, .registry = n->env->registry,
                                .report = add_up, .report_arg = &changes};
    if (ort_graph_infer(n->model->graph, n->env->registry, NULL, NULL) ||
        ort_passes_run(n->model, &options, NULL))
        return -1;
    return changes;
}

static ort_session *plain(net *n)
{
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = 0;
    return net_session(n, &options, NULL);
}

static ort_value *input_of(const fusion *f, int64_t *declared, int *rank)
{
    int64_t dims[8];
    ort_value *x = NULL;
    *rank = 0;
    for (const char *p = f->dims; *p; p += *p == ',') {
        char *end = (char *)(uintptr_t)p + 1;
        dims[*rank] = *p == 'n' ? 2 : *p == 'm' ? 3 : strtoll(p, &end, 10);
        declared[*rank] = *p == 'n' ? -1 : *p == 'm' ? -2 : dims[*rank];
        ++*rank;
        p = end;
    }
    ort_dtype dtype = f->flags & HALF ? ORT_DTYPE_FLOAT16 : ORT_DTYPE_FLOAT;
    if (ort_value_new_tensor(dtype, *rank, dims, &x, NULL))
        return NULL;
    for (int64_t i = 0; i < ort_value_count(x); i++)
        ort_value_set_double(x, i, sin(0.7 * (double)i) * 2);
    return x;
}

static bool same(ort_session *before, ort_session *after, ort_value *x, double tolerance)
{
    ort_compare_options options = {tolerance, tolerance};
    ort_difference difference = {0};
    ort_value *y[2] = {0};
    bool ok = !ort_session_run(before, &x, &y[0], NULL, NULL) &&
              !ort_session_run(after, &x, &y[1], NULL, NULL) &&
              !ort_value_compare(y[1], y[0], &options, &difference, NULL) && difference.equal;
    ort_value_free(y[0]);
    ort_value_free(y[1]);
    return ok;
}

static void check_fusion(test_state *test, const fusion *f)
{
    net n;
    int rank;
    int64_t dims[8];
    ort_opset contrib = {.domain = "com.microsoft", .version = 1};
    ort_value *x = input_of(f, dims, &rank);
    CHECK(x && net_init(&n, NULL));
    n.model->opsets.data[0].version = f->opset;
    n.model->ir_version = 10;
    if (strstr(f->text, "(ms."))
        CHECK(ort_vec_push(&n.model->opsets, contrib));
    expr e = {.n = &n, .half = f->flags & HALF};
    net_input(&n, "x", f->flags & HALF ? ORT_DTYPE_FLOAT16 : ORT_DTYPE_FLOAT, rank, dims);
    expr_build(&e, f->text);
    net_output(&n, "y");
    ort_session *before = plain(&n);
    int first = before ? rewrite(&n, f->flags) : -1;
    int second = first < 0 ? -1 : rewrite(&n, f->flags);
    ort_session *after = second == 0 ? plain(&n) : NULL;
    bool not = *f->op_type == '!';
    bool kind = (count_ops(&n, f->op_type + not) > 0) != not;
    bool ok = after && same(before, after, x, f->tolerance > 0 ? f->tolerance : 2e-6) && kind &&
              (f->left < 0 || count_ops(&n, NULL) == f->left);
    if (!ok) {
        ort_node *node;
        printf("# %s, opset %d, flags %d: changes %d then %d, %s, left:", f->text, f->opset,
               f->flags, first, second, after && kind ? "results" : "operators");
        ORT_EACH_NODE(n.model->graph, node)
            printf(" %s", node->op_type);
        printf("\n");
    }
    CHECK(ok);
    ort_value_free(x);
    ort_session_free(before);
    ort_session_free(after);
    net_free(&n);
}

static void check_all(test_state *test, const fusion *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_fusion(test, &list[i]);
}

#define ALL(list) check_all(test, list, sizeof(list) / sizeof *(list))

/* ---- activations */

#define ERF "(Add (Erf (Div x 1.41421356)) 1)"
#define CUBE "(Add (Tanh (Mul (Add x (Mul (Pow x 3) 0.044715)) 0.79788456)) 1)"

static void activations(test_state *test)
{
    const fusion list[] = {
        {"y = (Mul (Mul x 0.5) " ERF ")", "2,8", 20, 0, "Gelu", 1, 0},
        {"y = (Mul x (Mul 0.5 " ERF "))", "2,8", 20, 0, "Gelu", 1, 0},
        {"y = (Div (Mul x " ERF ") 2)", "2,8", 20, 0, "Gelu", 1, 0},
        {"y = (Mul (Mul x 0.5) " ERF ")", "2,8", 19, 0, "!Gelu", 5, 0},
        {"y = (Mul (Mul x 0.5) " ERF ")", "2,8", 19, CONTRIB, "Gelu", 1, 0},
        {"y = (Mul (Mul x 0.5) " ERF ")", "2,8", 13, SESSION, "Gelu", 1, 0},
        {"y = (Mul (Mul x 0.5) " ERF ")", "2,8", 20, HALF, "Gelu", 1, 2e-3},
        {"y = (Mul (Mul x 0.6) " ERF ")", "2,8", 20, 0, "!Gelu", 5, 0},
        {"y = (Mul (Mul x 0.5) " CUBE ")", "2,8", 20, 0, "Gelu", 1, 0},
        {"y = (Mul (Mul x 0.5) " CUBE ")", "2,8", 17, CONTRIB, "FastGelu", 1, 0},
        {"y = (Mul x (Mul 0.5 (Add 1 (Tanh (Mul (Mul x 0.79788456) "
         "(Add 1 (Mul 0.044715 (Mul x x))))))))", "2,8", 20, 0, "Gelu", 1, 0},
        {"h = (Add x #b:8); y = (Mul (Mul h 0.5) (Add (Erf (Div h 1.41421356)) 1))", "2,8", 17,
         CONTRIB, "BiasGelu", 1, 0},
        {"y = (Gelu (Add x #b:8))", "2,8", 20, CONTRIB, "BiasGelu", 1, 0},
        {"y = (Gelu (Add #b:8 x) approximate=tanh)", "2,8", 20, CONTRIB, "FastGelu", 1, 0},
        {"y = (ms.FastGelu (Add x #b:8))", "2,8", 17, CONTRIB, "FastGelu", 1, 0},
        {"y = (Gelu (Add x #b:8))", "2,8", 20, 0, "!BiasGelu", 2, 0},
        {"y = (Gelu (Add x #b:2,8))", "2,8", 20, CONTRIB, "!BiasGelu", 2, 0},
        {"y = (Mul x (Tanh (Softplus x)))", "2,8", 18, 0, "Mish", 1, 0},
        {"y = (Mul (Tanh (Log (Add 1 (Exp x)))) x)", "2,8", 18, 0, "Mish", 1, 0},
        {"y = (Mul x (Tanh (Softplus x)))", "2,8", 17, 0, "!Mish", 3, 0},
        {"y = (Mul x (Tanh (Softplus x)))", "2,8", 17, SESSION, "Mish", 1, 0},
        {"y = (Mul x (Tanh (Softplus (Neg x))))", "2,8", 18, 0, "!Mish", 4, 0},
        {"y = (Mul x (Sigmoid x))", "2,8", 24, CONTRIB, "Swish", 1, 0},
        {"y = (Mul x (Sigmoid (Mul x 1.702)))", "2,8", 23, CONTRIB, "QuickGelu", 1, 0},
        {"y = (Mul x (Sigmoid x))", "2,8", 23, 0, "!QuickGelu", 2, 0},
    };
    ALL(list);
}

/* ---- normalizations */

#define D "d:(Sub x (ReduceMean x axes=-1,))"
#define SQUARES(d) "(Sqrt (Add (ReduceMean (Pow " d " 2.0) axes=-1,) 0.00001))"

static void norms(test_state *test)
{
    const fusion list[] = {
        {"y = (Add (Mul (Div " D " " SQUARES("d") ") #g:8) #b:8)", "2,3,8", 17, 0,
         "LayerNormalization", 1, 1e-5},
        {"y = (Mul (Div " D " " SQUARES("d") ") #g:1,1,8)", "2,3,8", 17, 0, "LayerNormalization", 1,
         1e-5},
        {"y = (Div " D " " SQUARES("d") ")", "n,m,8", 17, 0, "LayerNormalization", 1, 1e-5},
        {"y = (Div " D " " SQUARES("d") ")", "2,8,n", 17, 0, "!LayerNormalization", 7, 1e-5},
        {"y = (Mul " D " (Pow (Add (ReduceMean (Mul d d) axes=-1,) 0.00001) -0.5))", "2,3,8", 17, 0,
         "LayerNormalization", 1, 1e-5},
        {"y = (Add (Mul (Div " D " " SQUARES("d") ") #g:8) #b:8)", "2,3,8", 16, 0,
         "!LayerNormalization", 9, 1e-5},
        {"y = (Mul (Mul x (Reciprocal (Sqrt (Add (ReduceMean (Pow x 2.0) [-1]) 0.00001)))) #g:8)",
         "2,3,8", 23, 0, "RMSNormalization", 1, 1e-5},
        {"y = (Div x (Sqrt (Add (ReduceMean (Mul x x) [-1]) 0.00001)))", "2,3,8", 23, 0,
         "RMSNormalization", 1, 1e-5},
        {"y = (Div x (Sqrt (Add (ReduceMean (Mul x x) [-2]) 0.00001)))", "2,3,8", 23, 0,
         "!RMSNormalization", 5, 1e-5},
        {"c = (Cast x to=1); y = (Mul (Cast (Mul c (Reciprocal (Sqrt (Add (ReduceMean (Pow c "
         "(Cast 2.0 to=1)) [-1]) (Cast 0.00001 to=1))))) to=10) #g:8)", "2,3,8", 23, HALF,
         "RMSNormalization", 1, 2e-3},
        {"c = (Cast x to=1); d = (Sub c (ReduceMean c [-1])); y = (Add (Mul (Cast (Div d (Sqrt "
         "(Add (ReduceMean (Mul d d) [-1]) (Cast 0.00001 to=1)))) to=10) #g:8) #b:8)", "2,3,8", 18,
         HALF, "LayerNormalization", 1, 4e-3},
        {"y = (Add (Mul (Div d:(Sub x (ReduceMean x [2 3])) (Sqrt (Add (ReduceMean (Mul d d) "
         "[2 3]) 0.00001))) #g:4,1,1) #b:1,4,1,1)", "2,4,3,5", 18, 0, "InstanceNormalization", 1,
         1e-5},
        {"y = (Div d:(Sub x (ReduceMean x [2 3])) (Sqrt (Add (ReduceMean (Mul d d) [2 3]) "
         "0.00001)))", "2,4,m,3", 18, 0, "InstanceNormalization", 1, 1e-5},
    };
    ALL(list);
}

static void group_norms(test_state *test)
{
    const char *const text = "y = (Add (Mul (Reshape (InstanceNormalization (Reshape x [0 2 -1]) "
                             "(Cast [1 1] to=1) (Cast [0 0] to=1) epsilon=0.001) (Shape x)) "
                             "#g:4,1,1) #b:4,1,1)";
    const fusion list[] = {
        {text, "n,4,3,5", 21, 0, "GroupNormalization", 1, 1e-5},
        {text, "n,4,3,5", 20, 0, "!GroupNormalization", -1, 1e-5},
        {text, "n,4,3,5", 20, SESSION, "GroupNormalization", 1, 1e-5},
        {"y = (Mul (Reshape (InstanceNormalization (Reshape x [0 2 -1]) (Cast [1 1] to=1) "
         "(Cast [0 0] to=1)) (Shape x)) #g:4,1)", "n,4,m", 21, 0, "GroupNormalization", 1, 1e-5},
        {"y = (Reshape (InstanceNormalization (Reshape x [0 2 -1]) (Cast [1 2] to=1) "
         "(Cast [0 0] to=1)) (Shape x))", "n,4,m", 21, 0, "!GroupNormalization", -1, 1e-5},
    };
    ALL(list);
}

static void softmaxes(test_state *test)
{
    const fusion list[] = {
        {"e = (Exp (Sub x (ReduceMax x [-1]))); y = (Div e (ReduceSum e [-1]))", "2,3,8", 18, 0,
         "Softmax", 1, 0},
        {"e = (Exp x); y = (Div e (ReduceSum e [1]))", "2,3,8", 18, 0, "Softmax", 1, 0},
        {"e = (Exp x); y = (Div e (ReduceSum e [1] keepdims=0))", "3,3,3", 18, 0, "!Softmax", 3, 0},
        {"e = (Exp x); y = (Div e (ReduceSum e [1 2]))", "2,3,8", 18, 0, "!Softmax", 3, 0},
        {"e = (Exp x); y = (Div e (ReduceSum e axes=2,))", "2,3,8", 11, 0, "Softmax", 1, 0},
        {"e = (Exp x); y = (Div e (ReduceSum e axes=1,))", "2,3,8", 11, 0, "!Softmax", 3, 0},
        {"y = (Log (Softmax x axis=1))", "2,3,8", 18, 0, "LogSoftmax", 1, 0},
        {"d = (Sub x (ReduceMax x [-1])); y = (Sub d (Log (ReduceSum (Exp d) [-1])))", "2,3,8", 18,
         0, "LogSoftmax", 1, 0},
        {"y = (Sub x (ReduceLogSumExp x [-1]))", "2,3,8", 18, 0, "LogSoftmax", 1, 0},
    };
    ALL(list);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, activations);
    RUN(test, norms);
    RUN(test, group_norms);
    RUN(test, softmaxes);
    return test->failures != 0;
}

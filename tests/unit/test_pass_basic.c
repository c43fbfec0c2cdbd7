/* test_pass_basic.c - passes of level 1 on small graphs: what they make of a graph that fits, that
 * they leave alone what doesn't, that a second run changes nothing, and the same results. */
#include "pass/optimize.h"
#include "rewrite.h"
#include "test.h"

/* ---- weights that are listed as inputs */

/* y = Relu(x w) + b; w and b have defaults, listed as inputs are those that `listed` names. */
static void build_listed(net *n, const char *listed)
{
    static const float w[6] = {1, 2, 3, 4, 5, 6}, b[3] = {0.5f, 0, -1};
    int64_t x_dims[2] = {2, 2}, w_dims[2] = {2, 3}, b_dims[1] = {3};
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, x_dims);
    net_constant(n, "w", ORT_DTYPE_FLOAT, 2, w_dims, w);
    net_constant(n, "b", ORT_DTYPE_FLOAT, 1, b_dims, b);
    net_node(n, "MatMul", "x w", "m");
    net_node(n, "Relu", "m", "r");
    net_node(n, "Add", "r b", "y");
    net_output(n, "y");
    for (; *listed; listed++) {
        ort_id id = ort_graph_find_value(n->graph, *listed == 'w' ? "w" : "b");
        n->graph->values.data[id]->is_input = true;
        (void)!ort_vec_push(&n->graph->inputs, id);
    }
}

static void listed_weights(test_state *test)
{
    static const char *const disable[] = {"weight_inputs", NULL};
    static const struct {
        const char *listed;
        bool disabled;
        size_t inputs;
    } cases[] = {{"wb", false, 1}, {"wb", true, 3}, {"w", false, 2}, {"b", false, 2},
                 {"", false, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net n;
        CHECK(net_init(&n, NULL));
        build_listed(&n, cases[i].listed);
        ort_pass_options options = {.level = 2, .portable = true, .registry = n.env->registry,
                                    .disable = cases[i].disabled ? disable : NULL};
        CHECK(!ort_model_rewrite(n.model, &options, false, NULL));
        CHECK(n.graph->inputs.count == cases[i].inputs);
        for (int k = 0; k < 2; k++) { /* defaults are there again */
            ort_id id = ort_graph_find_value(n.graph, k ? "w" : "b");
            CHECK(n.graph->values.data[id]->fact.value != NULL);
        }
        CHECK(!ort_model_rewrite(n.model, &options, false, NULL));
        CHECK(n.graph->inputs.count == cases[i].inputs);
        net_free(&n);
    }
}

/* ---- control flow */

static void build_if(net *n, int condition)
{
    net_text(n, "x:2,3; #two=2; k = (Neg x)");
    if (condition < 0)
        net_text(n, "c.bool:");
    else
        net_text(n, condition ? "#c.bool=1" : "#c.bool=0");
    ort_node *node = net_node(n, "If", "c", "y z");
    net_body(n, node, "then_branch");
    net_text(n, "#k2=3; a = (Mul k k2); t = (Add a two); t, k2");
    net_end(n);
    net_body(n, node, "else_branch");
    net_text(n, "#k2=4; k, k2");
    net_end(n);
    net_text(n, "w = (Abs y); w, z");
}

static void branches(test_state *test)
{
    static const char *const ops[] = {"Neg If Abs", "Neg Abs", "Neg Mul Add Abs"};
    for (int condition = -1; condition < 2; condition++) {
        net n;
        CHECK(net_init(&n, NULL));
        build_if(&n, condition);
        if (condition >= 0)
            net_text(&n, "out2 = (Identity z)"); /* z itself is a constant that is an output */
        const char *made = net_rewritten(&n, NULL, 0, 0);
        CHECK(!strncmp(made, ops[condition + 1], strlen(ops[condition + 1])));
        CHECK(count_ops(&n, "If") == (condition < 0));
        net_free(&n);
    }
}

/* A body knows the names around it: none is defined in both. Bodies beside each other may. */
static void names_of_bodies(test_state *test)
{
    net n;
    CHECK(net_init(&n, NULL));
    build_if(&n, -1);
    ort_graph *graph = n.model->graph, *then = NULL;
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (graph->nodes.data[i]->body_count)
            then = graph->nodes.data[i]->bodies[0];
    CHECK(then && ort_graph_find_value(then, "k2") != ORT_ID_NONE);
    const ort_id outer = ort_graph_add_value(graph, "k2");
    CHECK_TEXT(graph->values.data[outer]->name, "k2_1");
    const ort_id inner = ort_graph_add_value(then, "w");
    CHECK_TEXT(then->values.data[inner]->name, "w_1");
    const ort_id fresh = ort_graph_add_value(then, "fresh");
    CHECK_TEXT(then->values.data[fresh]->name, "fresh");
    const ort_id again = ort_graph_add_value(graph, "fresh");
    CHECK_TEXT(graph->values.data[again]->name, "fresh_1");
    net_free(&n);
}

/* y doubles and shifts per round; s stacks what it was. cond: 0 absent, 1 true, 2 changes. */
static void build_loop(net *n, int64_t trips, int cond)
{
    net_text(n, "x:2,3; #step=1.5; #yes.bool=1");
    net_constant(n, "trips", ORT_DTYPE_INT64, 0, NULL, &trips);
    ort_node *node = net_node(n, "Loop", cond ? "trips yes x" : "trips - x", "y s");
    net_body(n, node, "body");
    net_input(n, "round", ORT_DTYPE_INT64, 0, NULL);
    net_input(n, "go", ORT_DTYPE_BOOL, 0, NULL);
    net_input(n, "v", ORT_DTYPE_FLOAT, 2, DIMS(2, 3));
    net_text(n, "#twice=2; #one.i64=1; w = (Mul v twice); next = (Add w step)");
    net_text(n, cond == 2 ? "on = (Less round one)" : "on = (Identity go)");
    net_text(n, "on, next, v");
    net_end(n);
    net_text(n, "r = (Relu y); r, s");
}

static void loops(test_state *test)
{
    static const struct {
        int64_t trips;
        int cond;
        size_t growth;
        bool unrolled;
    } cases[] = {
        {1, 0, 0, true},       {3, 0, 100000, true},  {3, 1, 100000, true}, {3, 0, 0, false},
        {3, 2, 100000, false}, {100, 0, 1 << 20, false}, {0, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net n;
        CHECK(net_init(&n, NULL));
        build_loop(&n, cases[i].trips, cases[i].cond);
        CHECK(*net_rewritten(&n, NULL, cases[i].growth, 0));
        CHECK(count_ops(&n, "Loop") == !cases[i].unrolled);
        CHECK(!cases[i].unrolled || count_ops(&n, "Mul") == cases[i].trips);
        net_free(&n);
    }
}

/* Nothing stacked: no round leaves the initial value. */
static void no_round(test_state *test)
{
    net n;
    CHECK(net_init(&n, NULL));
    net_text(&n, "x:2; #trips.i64=0");
    ort_node *node = net_node(&n, "Loop", "trips - x", "y");
    net_body(&n, node, "body");
    net_input(&n, "round", ORT_DTYPE_INT64, 0, NULL);
    net_input(&n, "go", ORT_DTYPE_BOOL, 0, NULL);
    net_input(&n, "v", ORT_DTYPE_FLOAT, 1, DIMS(2));
    net_text(&n, "w = (Exp v); on = (Identity go); on, w");
    net_end(&n);
    net_text(&n, "r = (Relu y); r");
    CHECK_TEXT(net_rewritten(&n, NULL, 0, 0), "Relu");
    net_free(&n);
}

/* A running sum over axis 1, stacked backwards along axis 1. */
static void scans(test_state *test)
{
    static const char *const ones[] = {"scan_input_axes", "scan_input_directions",
                                       "scan_output_axes", "scan_output_directions"};
    for (int growth = 0; growth < 2; growth++) {
        net n;
        CHECK(net_init(&n, NULL));
        net_text(&n, "x:2,3; start:2");
        ort_node *node = net_node(&n, "Scan", "start x", "end sums");
        net_int(&n, node, "num_scan_inputs", 1);
        for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
            ort_attr attr = ort_attr_ints(ones[i], DIMS(1), 1);
            CHECK(!ort_node_set_attr(n.graph, node, &attr, NULL));
        }
        net_body(&n, node, "body");
        net_input(&n, "s", ORT_DTYPE_FLOAT, 1, DIMS(2));
        net_input(&n, "e", ORT_DTYPE_FLOAT, 1, DIMS(2));
        net_text(&n, "t = (Add s e); u = (Relu t); t, u");
        net_end(&n);
        net_text(&n, "end, sums");
        CHECK(*net_rewritten(&n, NULL, growth ? 100000 : 0, 0));
        CHECK(count_ops(&n, "Scan") == !growth && count_ops(&n, "Add") == 3 * growth);
        net_free(&n);
    }
}

/* ---- folding */

/* Parts of a weight in another order: each of them alone would add bytes, all together don't. */
static void reordered_weights(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,8; #w:8,64; #o.i64=0,; #a.i64=4,; #b.i64=8,; p = (Slice w o a o); "
         "q = (Slice w a b o); r = (Concat q p axis=0); y = (MatMul x r); y", "MatMul"},
        {"x:2,8; #w:8,64; #o.i64=0,; #a.i64=4,; #b.i64=8,; p = (Slice w o a o); "
         "q = (Slice w a b o); r = (Concat q p axis=0); u = (MatMul x r); v = (MatMul x w); "
         "y = (Add u v); y",
         "Slice Slice Concat MatMul Gemm"},
    };
    CHECK_CASES(cases, 0);
}

/* What a body captures stays in the graph around it: nothing is gained by folding what reads it. */
static void captured_weights(test_state *test)
{
    for (int own = 0; own < 2; own++) {
        net n;
        CHECK(net_init(&n, NULL));
        net_text(&n, "x:64; c.bool:");
        net_text(&n, own ? "#w:1" : "#w:64");
        ort_node *node = net_node(&n, "If", "c", "y");
        net_body(&n, node, "then_branch");
        net_text(&n, own ? "#v:64; magnitudes = (Abs v)" : "magnitudes = (Abs w)");
        net_text(&n, "t = (Add x magnitudes); t");
        net_end(&n);
        net_body(&n, node, "else_branch");
        net_text(&n, "e = (Add x w); e");
        net_end(&n);
        net_text(&n, "y");
        CHECK(*net_rewritten(&n, NULL, 0, 0));
        CHECK(node->body_count == 2 && count_ops_in(node->bodies[0], "Abs") == !own);
        net_free(&n);
    }
}

/* Constants of another shape keep their elements where they are. What is read in both shapes would
 * be in the file twice. */
static void reshaped_constants(test_state *test)
{
    static const net_case cases[] = {
        {"x:3,2; #w:2,3; #s.i64=3,2; r = (Reshape w s); y = (Add x r); y", "Add"},
        {"x:2,3; #w:2,3; #a.i64=0,; u = (Unsqueeze w a); v = (Flatten u axis=2); "
         "r = (Squeeze u a); y = (Add x r); y", "Add"},
        {"x:3,64; #w:64,3; #s.i64=3,64; #b.i64=0,; r = (Reshape w s); "
         "m = (ReduceMean r keepdims=1); d = (Sub r m); y = (Mul x d); y", "Mul"},
        {"x:64,64; #w:64,64; #s.i64=1,64,64; r = (Reshape w s); a = (Add x w); y = (Add x r); "
         "y, a", "Reshape Add Add"},
    };
    CHECK_CASES(cases, 1e-6);
}

/* What keeps every dimension goes, also where one has no name. */
static void idle_reshapes(test_state *test)
{
    static const net_case cases[] = {
        {"x:n,3; #s.i64=-1,3; y = (Reshape x s); z = (Relu y); z", "Relu"},
        {"x:2,6; #s.i64=-1,3; y = (Reshape x s); z = (Relu y); z", "Reshape Relu"},
        {"x:n,m; y = (Flatten x axis=1); z = (Relu y); z", "Relu"},
        {"x:2,3; y = (Flatten x axis=0); z = (Relu y); z", "Flatten Relu"},
    };
    CHECK_CASES(cases, 0);
}

/* ---- bounds, choices, parts */

static void bounds_in_a_row(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,9; a = (Relu x); y = (Relu a); y", "Relu"},
        {"x:2,9; #lo=-0.5; #hi=0.5; a = (Relu x); y = (Clip a lo hi); y", "Clip"},
        {"x:2,9; #lo=-0.5; #hi=0.5; a = (Clip x lo hi); y = (Relu a); y", "Clip"},
        {"x:2,9; #lo=-0.5; a = (Clip x lo); y = (Relu a); y", "Relu"},
        {"x:2,9; #a=0.5; #b=0.75; #c=-1; #d=0.25; u = (Clip x a b); y = (Clip u c d); y", "Clip"},
        /* what is between them is read; a bound isn't constant */
        {"x:2,9; #hi=0.5; a = (Relu x); y = (Clip a - hi); y, a", "Relu Clip"},
        {"x:2,9; hi:; a = (Relu x); y = (Clip a - hi); y", "Relu Clip"},
    };
    CHECK_CASES(cases, 0);
}

static void choices(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,3; z:2,3; c.bool:2,3; n = (Not c); y = (Where n x z); y", "Where"},
        {"x:2,3; z:2,3; c.bool:2,3; n = (Not c); y = (Where n x z); y, n", "Not Where"},
        {"x:2,3; z:2,3; #c.bool=1; a = (Where c x z); y = (Relu a); y", "Relu"},
        {"x:3; z:2,3; #c.bool=1; a = (Where c x z); y = (Relu a); y", "Where Relu"},
    };
    CHECK_CASES(cases, 0);
}

static void joined_and_parted(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,3; z:2,5; #s.i64=3,5; c = (Concat x z axis=1); a,b = (Split c s axis=1); "
         "u = (Relu a); v = (Exp b); u, v", "Relu Exp"},
        {"x:2,3; z:2,5; #s.i64=4,4; c = (Concat x z axis=1); a,b = (Split c s axis=1); "
         "u = (Relu a); v = (Exp b); u, v", "Concat Split Relu Exp"},
        {"x:2,6; #s.i64=2,4; a,b = (Split x s axis=1); c = (Concat a b axis=1); y = (Relu c); y",
         "Relu"},
        {"x:2,6; #s.i64=2,4; a,b = (Split x s axis=1); c = (Concat b a axis=1); y = (Relu c); y",
         "Split Concat Relu"},
        {"x:2,3; z:2,5; #s.i64=3,; #e.i64=8,; #o.i64=1,; c = (Concat x z axis=1); "
         "a = (Slice c s e o); y = (Relu a); y", "Relu"},
        {"x:2,3; z:2,5; #s.i64=-5,; #e.i64=9223372036854775807,; #o.i64=-1,; "
         "c = (Concat x z axis=1); a = (Slice c s e o); y = (Relu a); y", "Relu"},
        {"x:2,3; z:2,5; #s.i64=2,; #e.i64=8,; #o.i64=1,; c = (Concat x z axis=1); "
         "a = (Slice c s e o); y = (Relu a); y", "Concat Slice Relu"},
        {"x:1,n,3; z:1,n,3; #k.i64=-1; c = (Concat x z axis=0); a = (Gather c k axis=0); "
         "y = (Relu a); y", "Squeeze Relu"},
        {"x:2,3; z:2,5; #k.i64=4; c = (Concat x z axis=1); a = (Gather c k axis=1); "
         "y = (Relu a); y", "Gather Relu"},
        {"x:n,3; z:1,3; #k.i64=0; c = (Concat x z axis=0); a = (Gather c k axis=0); "
         "y = (Relu a); y", "Concat Gather Relu"},
    };
    CHECK_CASES(cases, 0);
}

/* ---- slices, shapes and quotients */

#define FOCUS                                                                                      \
    "#a.i64=0,0; #b.i64=1,0; #d.i64=0,1; #e.i64=1,1; #far.i64=1000000000000,1000000000000; "       \
    "#axes.i64=2,3; #two.i64=2,2; p = (Slice x a far axes two); q = (Slice x b far axes two); "    \
    "r = (Slice x d far axes two); s = (Slice x e far axes two); "

static void slices_joined(test_state *test)
{
    static const net_case cases[] = {
        {"x:1,3,8,6; " FOCUS "c = (Concat p r q s axis=1); y = (Relu c); y",
         "SpaceToDepth Relu"},
        {"x:1,3,8,6; " FOCUS "c = (Concat p q r s axis=1); y = (Relu c); y",
         "SpaceToDepth Gather Relu"},
        {"x:1,3,8,6; " FOCUS "c = (Concat p q r r axis=1); y = (Relu c); y",
         "Slice Slice Slice Concat Relu"},
        {"x:1,3,8,6; " FOCUS "c = (Concat p r q s axis=1); y = (Relu c); y, p",
         "Slice Slice Slice Slice Concat Relu"},
        {"x:1,3,8,6; " FOCUS "c = (Concat p r q s axis=2); y = (Relu c); y",
         "Slice Slice Slice Slice Concat Relu"},
    };
    CHECK_CASES(cases, 0);
}

#define PARTS "#z.i64=0,; #f.i64=4,; #g.i64=-3,; #h.i64=9999,; #o.i64=1,;"

static void encoder(net *n, const char *in, const char *out, const int64_t *keys,
                    const int64_t *values, size_t count)
{
    ort_node *node = net_node(n, "LabelEncoder", in, out);
    ort_attr lists[2] = {{.name = "keys_int64s", .type = ORT_ATTR_INTS, .ints = keys},
                         {.name = "values_int64s", .type = ORT_ATTR_INTS, .ints = values}};
    node->domain = ML;
    node->opset = 3;
    for (int i = 0; i < 2; i++) {
        lists[i].count = count;
        (void)!ort_node_set_attr(n->graph, node, &lists[i], NULL);
    }
}

/* The second gives its default for 7, which it doesn't know, and for the first one's default. */
static void labels_joined(test_state *test)
{
    static const int64_t keys[3] = {0, 1, 2}, codes[3] = {5, 6, 7}, values[2] = {50, 60};
    for (int reader = 0; reader < 2; reader++) {
        ort_opset ml = {.domain = ML, .version = 3};
        size_t count = 0;
        net n;
        CHECK(net_init(&n, NULL) && ort_vec_push(&n.model->opsets, ml));
        net_text(&n, "x.i64:2,3");
        encoder(&n, "x", "a", keys, codes, 3);
        encoder(&n, "a", "b", codes, values, 2);
        net_text(&n, "y = (Neg b); y");
        if (reader)
            net_text(&n, "z = (Neg a); z");
        const char *ops = net_rewritten(&n, NULL, 0, 0);
        CHECK_TEXT(ops, reader ? "LabelEncoder LabelEncoder Neg Neg" : "LabelEncoder Neg");
        const ort_node *node = node_of(&n, "LabelEncoder");
        const int64_t *list = ort_node_ints(node, "values_int64s", &count);
        CHECK(reader || (count == 3 && list[0] == 50 && list[1] == 60 && list[2] == -1));
        CHECK(reader || ort_node_int(node, "default_int64", 0) == -1);
        net_free(&n);
    }
}

static void slices_split(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,12; " PARTS "a = (Slice x z f o); b = (Slice x f g o); c = (Slice x g h o); "
         "u = (Relu a); v = (Exp b); w = (Neg c); u, v, w", "Split Relu Exp Neg"},
        {"x:2,12; " PARTS "c = (Slice x g h o); a = (Slice x z f o); b = (Slice x f g o); "
         "u = (Relu a); v = (Exp b); w = (Neg c); t = (Tanh x); u, v, w, t",
         "Split Relu Exp Neg Tanh"},
        {"x:2,12; " PARTS "a = (Slice x z f o); c = (Slice x g h o); u = (Relu a); w = (Neg c); "
         "u, w", "Slice Slice Relu Neg"}, /* some is left out */
        {"x:2,12; " PARTS "a = (Slice x z g o); c = (Slice x f h o); u = (Relu a); w = (Neg c); "
         "u, w", "Slice Slice Relu Neg"}, /* some is taken twice */
        {"x:2,n; " PARTS "a = (Slice x z f o); c = (Slice x f h o); u = (Relu a); w = (Neg c); "
         "u, w", "Slice Slice Relu Neg"},
    };
    CHECK_CASES(cases, 0);
}

static void shapes_read_early(test_state *test)
{
    static const net_case cases[] = {
        {"x:n,3; a = (Relu x); s = (Shape a); y = (Cast s to=1); y", "Shape Cast"},
        {"x:n,3; a = (Cast x to=11); s = (Shape a); y = (Cast s to=1); y", "Shape Cast"},
        {"x:n,3; a = (Relu x); s = (Shape a); y = (Cast s to=1); y, a", "Relu Shape Cast"},
        {"x:n,3; a = (Transpose x perm=1,0); s = (Shape a); y = (Cast s to=1); y",
         "Shape Gather Cast"},
    };
    CHECK_CASES(cases, 0);
}

static void quotients(test_state *test)
{
    static const net_case cases[] = {
        {"x:2,3; z:2,3; #one=1; a = (Exp x); r = (Div one a); y = (Mul r z); y",
         "Exp Div"},
        {"x:2,3; z:2,3; a = (Exp x); r = (Reciprocal a); y = (Mul z r); y", "Exp Div"},
        {"x:2,3; z:2,3; a = (Exp x); r = (Reciprocal a); y = (Mul z r); y, r",
         "Exp Reciprocal Mul"},
        {"x:2,3; z:2,3; #two=2; a = (Exp x); r = (Div two a); y = (Mul r z); y",
         "Exp Div Mul"},
        {"x:2,3; z:2,3; e = (Exp x); a = (Sqrt e); r = (Reciprocal a); y = (Mul z r); y",
         "Exp Sqrt Reciprocal Mul"},
        {"x:2,3; z:3,4; c:4; g = (Gemm x z); y = (Sum g c); y", "Gemm"},
        {"x:2,3; z:3,4; c:4; g = (Gemm x z); y = (Sum g c c); y", "Gemm Sum"},
    };
    CHECK_CASES(cases, 1e-6);
}

/* ---- pads */

#define PADS "#p.i64=0,0,1,0,0,0,1,1; #zero=0; #low=-3.5e38; #one=1;"

static void pads_into_windows(test_state *test)
{
    static const net_case cases[] = {
        {"x:1,2,6,5; #w:3,2,3,3; " PADS "a = (Pad x p zero); y = (Conv a w); y", "Conv"},
        {"x:1,2,6,5; " PADS "a = (Pad x p low); y = (MaxPool a kernel_shape=3,3); y",
         "MaxPool"},
        {"x:1,2,6,5; " PADS "r = (Relu x); a = (Pad r p zero); "
         "y = (MaxPool a kernel_shape=2,2 pads=0,1,0,0); y", "Relu MaxPool"},
        {"x:1,2,6,5; " PADS "a = (Pad x p); y = (AveragePool a kernel_shape=2,2); y",
         "AveragePool"},
        {"x:1,2,6,5; " PADS "a = (Pad x p low); "
         "y = (MaxPool a kernel_shape=3,3 strides=2,2 auto_pad=VALID); y", "MaxPool"},
        {"x:1,2,6,5; #w:3,2,3,3; " PADS "a = (Pad x p zero); y = (Conv a w auto_pad=VALID); y",
         "Conv"},
        {"x:1,2,6,5; #w:3,2,3,3; " PADS "a = (Pad x p zero); y = (Conv a w auto_pad=SAME_UPPER); "
         "y", "Pad Conv"},
        /* zeros could be the largest; they don't count; another number; windows of pads alone */
        {"x:1,2,6,5; " PADS "a = (Pad x p zero); y = (MaxPool a kernel_shape=3,3); y",
         "Pad MaxPool"},
        {"x:1,2,6,5; " PADS "a = (Pad x p); y = (AveragePool a kernel_shape=2,2 pads=1,0,0,0); y",
         "Pad AveragePool"},
        {"x:1,2,6,5; #w:3,2,3,3; " PADS "a = (Pad x p one); y = (Conv a w); y", "Pad Conv"},
        {"x:1,2,6,5; " PADS "r = (Relu x); a = (Pad r p); y = (MaxPool a kernel_shape=1,1); y",
         "Relu Pad MaxPool"},
        {"x:1,2,6,5; " PADS "r = (Relu x); a = (Pad r p); "
         "y = (MaxPool a kernel_shape=2,2 ceil_mode=1); y", "Relu Pad MaxPool"},
        /* a long kernel, in a file; one dimension alone */
        {"x:1,2,9,5; #w:3,2,7,1; " PADS "a = (Pad x p); y = (Conv a w); y", "Conv"},
        {"x:1,2,9,5; #w:3,2,8,1; " PADS "a = (Pad x p); y = (Conv a w); y", "Pad Conv"},
        {"x:1,2,9; #w:3,2,8; #p.i64=0,0,4,0,0,3; a = (Pad x p); y = (Conv a w); y", "Conv"},
    };
    CHECK_CASES(cases, 1e-6);
    net n; /* in a session */
    CHECK(net_init(&n, NULL));
    net_text(&n, "x:1,2,9,5; #w:3,2,8,1; " PADS "a = (Pad x p); y = (Conv a w); y");
    ort_pass_options options = {.level = 1, .registry = n.env->registry};
    CHECK(!ort_graph_infer(n.model->graph, n.env->registry, NULL, NULL));
    CHECK(!ort_passes_run(n.model, &options, NULL));
    CHECK_TEXT(net_ops(&n), "Conv");
    net_free(&n);
    CHECK(net_init(&n, NULL)); /* amounts of some axes */
    n.model->opsets.data[0].version = 18;
    net_text(&n, "x:1,2,6,5; #w:3,2,3,3; #p.i64=1,0,1,1; #o.i64=2,-1; a = (Pad x p - o); "
                 "y = (Conv a w); y");
    CHECK_TEXT(net_rewritten(&n, NULL, 0, 1e-6), "Conv");
    net_free(&n);
}

static void pads_in_a_row(test_state *test)
{
    static const net_case cases[] = {
        {"x:1,2,6,5; " PADS "#q.i64=0,1,0,2,0,0,3,0; a = (Pad x p one); y = (Pad a q one); y",
         "Pad"},
        {"x:1,2,n,5; " PADS "a = (Pad x p); b = (Pad a p); y = (Pad b p); y", "Pad"},
        /* another number, another mode, an amount that cuts, another reader */
        {"x:1,2,6,5; " PADS "a = (Pad x p one); y = (Pad a p zero); y", "Pad Pad"},
        {"x:1,2,6,5; " PADS "a = (Pad x p mode=edge); y = (Pad a p mode=edge); y",
         "Pad Pad"},
        {"x:1,2,6,5; " PADS "a = (Pad x p mode=reflect); y = (Pad a p mode=reflect); y",
         "Pad Pad"},
        {"x:1,2,6,5; " PADS "a = (Pad x p); y = (Pad a p mode=edge); y", "Pad Pad"},
        {"x:1,2,6,5; " PADS "#q.i64=0,0,-1,0,0,0,0,0; a = (Pad x p); y = (Pad a q); y",
         "Pad Pad"},
        {"x:1,2,6,5; " PADS "a = (Pad x p); y = (Pad a p); z = (Relu a); y, z", "Pad Pad Relu"},
    };
    CHECK_CASES(cases, 0);
    net n; /* amounts of some axes */
    CHECK(net_init(&n, NULL));
    n.model->opsets.data[0].version = 18;
    net_text(&n, "x:2,3; #p.i64=1,2; #o.i64=-1,; #r.i64=0,; a = (Pad x p - o); "
                 "y = (Pad a p - r); y");
    CHECK_TEXT(net_rewritten(&n, NULL, 0, 0), "Pad");
    net_free(&n);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, listed_weights);
    RUN(test, branches);
    RUN(test, names_of_bodies);
    RUN(test, loops);
    RUN(test, no_round);
    RUN(test, scans);
    RUN(test, reordered_weights);
    RUN(test, captured_weights);
    RUN(test, reshaped_constants);
    RUN(test, idle_reshapes);
    RUN(test, bounds_in_a_row);
    RUN(test, choices);
    RUN(test, joined_and_parted);
    RUN(test, slices_joined);
    RUN(test, slices_split);
    RUN(test, labels_joined);
    RUN(test, shapes_read_early);
    RUN(test, quotients);
    RUN(test, pads_into_windows);
    RUN(test, pads_in_a_row);
    return test->failures != 0;
}

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
    net_text(n, "in x 2,3; fs two 2; Neg x -> k");
    if (condition < 0)
        net_text(n, "inb c -");
    else
        net_text(n, condition ? "b c 1" : "b c 0");
    ort_node *node = net_node(n, "If", "c", "y z");
    net_body(n, node, "then_branch");
    net_text(n, "fs k2 3; Mul k k2 -> a; Add a two -> t; out t k2");
    net_end(n);
    net_body(n, node, "else_branch");
    net_text(n, "fs k2 4; out k k2");
    net_end(n);
    net_text(n, "Abs y -> w; out w z");
}

static void branches(test_state *test)
{
    static const char *const ops[] = {"Neg If Abs", "Neg Abs", "Neg Mul Add Abs"};
    for (int condition = -1; condition < 2; condition++) {
        net n;
        CHECK(net_init(&n, NULL));
        build_if(&n, condition);
        if (condition >= 0)
            net_text(&n, "Identity z -> out2"); /* z itself is a constant that is an output */
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
    net_text(n, "in x 2,3; fs step 1.5; b yes 1");
    net_constant(n, "trips", ORT_DTYPE_INT64, 0, NULL, &trips);
    ort_node *node = net_node(n, "Loop", cond ? "trips yes x" : "trips - x", "y s");
    net_body(n, node, "body");
    net_input(n, "round", ORT_DTYPE_INT64, 0, NULL);
    net_input(n, "go", ORT_DTYPE_BOOL, 0, NULL);
    net_input(n, "v", ORT_DTYPE_FLOAT, 2, DIMS(2, 3));
    net_text(n, "fs twice 2; is one 1; Mul v twice -> w; Add w step -> next");
    net_text(n, cond == 2 ? "Less round one -> on" : "Identity go -> on");
    net_text(n, "out on next v");
    net_end(n);
    net_text(n, "Relu y -> r; out r s");
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
    net_text(&n, "in x 2; is trips 0");
    ort_node *node = net_node(&n, "Loop", "trips - x", "y");
    net_body(&n, node, "body");
    net_input(&n, "round", ORT_DTYPE_INT64, 0, NULL);
    net_input(&n, "go", ORT_DTYPE_BOOL, 0, NULL);
    net_input(&n, "v", ORT_DTYPE_FLOAT, 1, DIMS(2));
    net_text(&n, "Exp v -> w; Identity go -> on; out on w");
    net_end(&n);
    net_text(&n, "Relu y -> r; out r");
    CHECK_TEXT(net_rewritten(&n, NULL, 0, 0), "Relu");
    net_free(&n);
}

/* A running sum over axis 1, stacked backwards along axis 1. */
static void scans(test_state *test)
{
    for (int growth = 0; growth < 2; growth++) {
        net n;
        CHECK(net_init(&n, NULL));
        net_text(&n, "in x 2,3; in start 2");
        ort_node *node = net_node(&n, "Scan", "start x", "end sums");
        net_attribute(&n, node, "num_scan_inputs=1");
        net_attribute(&n, node, "scan_input_axes=1,");
        net_attribute(&n, node, "scan_input_directions=1,");
        net_attribute(&n, node, "scan_output_axes=1,");
        net_attribute(&n, node, "scan_output_directions=1,");
        net_body(&n, node, "body");
        net_input(&n, "s", ORT_DTYPE_FLOAT, 1, DIMS(2));
        net_input(&n, "e", ORT_DTYPE_FLOAT, 1, DIMS(2));
        net_text(&n, "Add s e -> t; Relu t -> u; out t u");
        net_end(&n);
        net_text(&n, "out end sums");
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
        {"in x 2,8; f w 8,64; i o 0; i a 4; i b 8; Slice w o a o -> p; Slice w a b o -> q;"
         "Concat q p -> r axis=0; MatMul x r -> y; out y", "MatMul"},
        {"in x 2,8; f w 8,64; i o 0; i a 4; i b 8; Slice w o a o -> p; Slice w a b o -> q;"
         "Concat q p -> r axis=0; MatMul x r -> u; MatMul x w -> v; Add u v -> y; out y",
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
        net_text(&n, "in x 64; inb c -");
        net_text(&n, own ? "f w 1" : "f w 64");
        ort_node *node = net_node(&n, "If", "c", "y");
        net_body(&n, node, "then_branch");
        net_text(&n, own ? "f v 64; Abs v -> magnitudes" : "Abs w -> magnitudes");
        net_text(&n, "Add x magnitudes -> t; out t");
        net_end(&n);
        net_body(&n, node, "else_branch");
        net_text(&n, "Add x w -> e; out e");
        net_end(&n);
        net_text(&n, "out y");
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
        {"in x 3,2; f w 2,3; i s 3,2; Reshape w s -> r; Add x r -> y; out y", "Add"},
        {"in x 2,3; f w 2,3; i a 0; Unsqueeze w a -> u; Flatten u -> v axis=2; Squeeze u a -> r;"
         "Add x r -> y; out y", "Add"},
        {"in x 3,64; f w 64,3; i s 3,64; i b 0; Reshape w s -> r; ReduceMean r -> m keepdims=1;"
         "Sub r m -> d; Mul x d -> y; out y", "Mul"},
        {"in x 64,64; f w 64,64; i s 1,64,64; Reshape w s -> r; Add x w -> a; Add x r -> y;"
         "out y a", "Reshape Add Add"},
    };
    CHECK_CASES(cases, 1e-6);
}

/* What keeps every dimension goes, also where one has no name. */
static void idle_reshapes(test_state *test)
{
    static const net_case cases[] = {
        {"in x n,3; i s -1,3; Reshape x s -> y; Relu y -> z; out z", "Relu"},
        {"in x 2,6; i s -1,3; Reshape x s -> y; Relu y -> z; out z", "Reshape Relu"},
        {"in x n,m; Flatten x -> y axis=1; Relu y -> z; out z", "Relu"},
        {"in x 2,3; Flatten x -> y axis=0; Relu y -> z; out z", "Flatten Relu"},
    };
    CHECK_CASES(cases, 0);
}

/* ---- bounds, choices, parts */

static void bounds_in_a_row(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,9; Relu x -> a; Relu a -> y; out y", "Relu"},
        {"in x 2,9; fs lo -0.5; fs hi 0.5; Relu x -> a; Clip a lo hi -> y; out y", "Clip"},
        {"in x 2,9; fs lo -0.5; fs hi 0.5; Clip x lo hi -> a; Relu a -> y; out y", "Clip"},
        {"in x 2,9; fs lo -0.5; Clip x lo -> a; Relu a -> y; out y", "Relu"},
        {"in x 2,9; fs a 0.5; fs b 0.75; fs c -1; fs d 0.25; Clip x a b -> u; Clip u c d -> y;"
         "out y", "Clip"},
        /* what is between them is read; a bound isn't constant */
        {"in x 2,9; fs hi 0.5; Relu x -> a; Clip a - hi -> y; out y a", "Relu Clip"},
        {"in x 2,9; in hi -; Relu x -> a; Clip a - hi -> y; out y", "Relu Clip"},
    };
    CHECK_CASES(cases, 0);
}

static void choices(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,3; in z 2,3; inb c 2,3; Not c -> n; Where n x z -> y; out y", "Where"},
        {"in x 2,3; in z 2,3; inb c 2,3; Not c -> n; Where n x z -> y; out y n", "Not Where"},
        {"in x 2,3; in z 2,3; b c 1; Where c x z -> a; Relu a -> y; out y", "Relu"},
        {"in x 3; in z 2,3; b c 1; Where c x z -> a; Relu a -> y; out y", "Where Relu"},
    };
    CHECK_CASES(cases, 0);
}

static void joined_and_parted(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,3; in z 2,5; i s 3,5; Concat x z -> c axis=1; Split c s -> a b axis=1;"
         "Relu a -> u; Exp b -> v; out u v", "Relu Exp"},
        {"in x 2,3; in z 2,5; i s 4,4; Concat x z -> c axis=1; Split c s -> a b axis=1;"
         "Relu a -> u; Exp b -> v; out u v", "Concat Split Relu Exp"},
        {"in x 2,6; i s 2,4; Split x s -> a b axis=1; Concat a b -> c axis=1; Relu c -> y; out y",
         "Relu"},
        {"in x 2,6; i s 2,4; Split x s -> a b axis=1; Concat b a -> c axis=1; Relu c -> y; out y",
         "Split Concat Relu"},
        {"in x 2,3; in z 2,5; i s 3; i e 8; i o 1; Concat x z -> c axis=1; Slice c s e o -> a;"
         "Relu a -> y; out y", "Relu"},
        {"in x 2,3; in z 2,5; i s -5; i e 9223372036854775807; i o -1; Concat x z -> c axis=1;"
         "Slice c s e o -> a; Relu a -> y; out y", "Relu"},
        {"in x 2,3; in z 2,5; i s 2; i e 8; i o 1; Concat x z -> c axis=1; Slice c s e o -> a;"
         "Relu a -> y; out y", "Concat Slice Relu"},
        {"in x 1,n,3; in z 1,n,3; is k -1; Concat x z -> c axis=0; Gather c k -> a axis=0;"
         "Relu a -> y; out y", "Squeeze Relu"},
        {"in x 2,3; in z 2,5; is k 4; Concat x z -> c axis=1; Gather c k -> a axis=1;"
         "Relu a -> y; out y", "Gather Relu"},
        {"in x n,3; in z 1,3; is k 0; Concat x z -> c axis=0; Gather c k -> a axis=0;"
         "Relu a -> y; out y", "Concat Gather Relu"},
    };
    CHECK_CASES(cases, 0);
}

/* ---- slices, shapes and quotients */

#define FOCUS                                                                                      \
    "i a 0,0; i b 1,0; i d 0,1; i e 1,1; i far 1000000000000,1000000000000; i axes 2,3;"           \
    "i two 2,2; Slice x a far axes two -> p; Slice x b far axes two -> q;"                         \
    "Slice x d far axes two -> r; Slice x e far axes two -> s;"

static void slices_joined(test_state *test)
{
    static const net_case cases[] = {
        {"in x 1,3,8,6;" FOCUS "Concat p r q s -> c axis=1; Relu c -> y; out y",
         "SpaceToDepth Relu"},
        {"in x 1,3,8,6;" FOCUS "Concat p q r s -> c axis=1; Relu c -> y; out y",
         "SpaceToDepth Gather Relu"},
        {"in x 1,3,8,6;" FOCUS "Concat p q r r -> c axis=1; Relu c -> y; out y",
         "Slice Slice Slice Concat Relu"},
        {"in x 1,3,8,6;" FOCUS "Concat p r q s -> c axis=1; Relu c -> y; out y p",
         "Slice Slice Slice Slice Concat Relu"},
        {"in x 1,3,8,6;" FOCUS "Concat p r q s -> c axis=2; Relu c -> y; out y",
         "Slice Slice Slice Slice Concat Relu"},
    };
    CHECK_CASES(cases, 0);
}

#define PARTS "i z 0; i f 4; i g -3; i h 9999; i o 1;"

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
        net_text(&n, "ini x 2,3");
        encoder(&n, "x", "a", keys, codes, 3);
        encoder(&n, "a", "b", codes, values, 2);
        net_text(&n, "Neg b -> y; out y");
        if (reader)
            net_text(&n, "Neg a -> z; out z");
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
        {"in x 2,12;" PARTS "Slice x z f o -> a; Slice x f g o -> b; Slice x g h o -> c;"
         "Relu a -> u; Exp b -> v; Neg c -> w; out u v w", "Split Relu Exp Neg"},
        {"in x 2,12;" PARTS "Slice x g h o -> c; Slice x z f o -> a; Slice x f g o -> b;"
         "Relu a -> u; Exp b -> v; Neg c -> w; Tanh x -> t; out u v w t",
         "Split Relu Exp Neg Tanh"},
        {"in x 2,12;" PARTS "Slice x z f o -> a; Slice x g h o -> c; Relu a -> u; Neg c -> w;"
         "out u w", "Slice Slice Relu Neg"}, /* some is left out */
        {"in x 2,12;" PARTS "Slice x z g o -> a; Slice x f h o -> c; Relu a -> u; Neg c -> w;"
         "out u w", "Slice Slice Relu Neg"}, /* some is taken twice */
        {"in x 2,n;" PARTS "Slice x z f o -> a; Slice x f h o -> c; Relu a -> u; Neg c -> w;"
         "out u w", "Slice Slice Relu Neg"},
    };
    CHECK_CASES(cases, 0);
}

static void shapes_read_early(test_state *test)
{
    static const net_case cases[] = {
        {"in x n,3; Relu x -> a; Shape a -> s; Cast s -> y to=1; out y", "Shape Cast"},
        {"in x n,3; Cast x -> a to=11; Shape a -> s; Cast s -> y to=1; out y", "Shape Cast"},
        {"in x n,3; Relu x -> a; Shape a -> s; Cast s -> y to=1; out y a", "Relu Shape Cast"},
        {"in x n,3; Transpose x -> a perm=1,0; Shape a -> s; Cast s -> y to=1; out y",
         "Shape Gather Cast"},
    };
    CHECK_CASES(cases, 0);
}

static void quotients(test_state *test)
{
    static const net_case cases[] = {
        {"in x 2,3; in z 2,3; fs one 1; Exp x -> a; Div one a -> r; Mul r z -> y; out y",
         "Exp Div"},
        {"in x 2,3; in z 2,3; Exp x -> a; Reciprocal a -> r; Mul z r -> y; out y", "Exp Div"},
        {"in x 2,3; in z 2,3; Exp x -> a; Reciprocal a -> r; Mul z r -> y; out y r",
         "Exp Reciprocal Mul"},
        {"in x 2,3; in z 2,3; fs two 2; Exp x -> a; Div two a -> r; Mul r z -> y; out y",
         "Exp Div Mul"},
        {"in x 2,3; in z 2,3; Exp x -> e; Sqrt e -> a; Reciprocal a -> r; Mul z r -> y; out y",
         "Exp Sqrt Reciprocal Mul"},
        {"in x 2,3; in z 3,4; in c 4; Gemm x z -> g; Sum g c -> y; out y", "Gemm"},
        {"in x 2,3; in z 3,4; in c 4; Gemm x z -> g; Sum g c c -> y; out y", "Gemm Sum"},
    };
    CHECK_CASES(cases, 1e-6);
}

/* ---- pads */

#define PADS "i p 0,0,1,0,0,0,1,1; fs zero 0; fs low -3.5e38; fs one 1;"

static void pads_into_windows(test_state *test)
{
    static const net_case cases[] = {
        {"in x 1,2,6,5; f w 3,2,3,3;" PADS "Pad x p zero -> a; Conv a w -> y; out y", "Conv"},
        {"in x 1,2,6,5;" PADS "Pad x p low -> a; MaxPool a -> y kernel_shape=3,3; out y",
         "MaxPool"},
        {"in x 1,2,6,5;" PADS "Relu x -> r; Pad r p zero -> a;"
         "MaxPool a -> y kernel_shape=2,2 pads=0,1,0,0; out y", "Relu MaxPool"},
        {"in x 1,2,6,5;" PADS "Pad x p -> a; AveragePool a -> y kernel_shape=2,2; out y",
         "AveragePool"},
        {"in x 1,2,6,5;" PADS "Pad x p low -> a;"
         "MaxPool a -> y kernel_shape=3,3 strides=2,2 auto_pad:=VALID; out y", "MaxPool"},
        {"in x 1,2,6,5; f w 3,2,3,3;" PADS "Pad x p zero -> a;"
         "Conv a w -> y auto_pad:=VALID; out y", "Conv"},
        {"in x 1,2,6,5; f w 3,2,3,3;" PADS "Pad x p zero -> a;"
         "Conv a w -> y auto_pad:=SAME_UPPER; out y", "Pad Conv"},
        /* zeros could be the largest; they don't count; another number; windows of pads alone */
        {"in x 1,2,6,5;" PADS "Pad x p zero -> a; MaxPool a -> y kernel_shape=3,3; out y",
         "Pad MaxPool"},
        {"in x 1,2,6,5;" PADS "Pad x p -> a;"
         "AveragePool a -> y kernel_shape=2,2 pads=1,0,0,0; out y", "Pad AveragePool"},
        {"in x 1,2,6,5; f w 3,2,3,3;" PADS "Pad x p one -> a; Conv a w -> y; out y", "Pad Conv"},
        {"in x 1,2,6,5;" PADS "Relu x -> r; Pad r p -> a; MaxPool a -> y kernel_shape=1,1; out y",
         "Relu Pad MaxPool"},
        {"in x 1,2,6,5;" PADS "Relu x -> r; Pad r p -> a;"
         "MaxPool a -> y kernel_shape=2,2 ceil_mode=1; out y", "Relu Pad MaxPool"},
        /* a long kernel, in a file; one dimension alone */
        {"in x 1,2,9,5; f w 3,2,7,1;" PADS "Pad x p -> a; Conv a w -> y; out y", "Conv"},
        {"in x 1,2,9,5; f w 3,2,8,1;" PADS "Pad x p -> a; Conv a w -> y; out y", "Pad Conv"},
        {"in x 1,2,9; f w 3,2,8; i p 0,0,4,0,0,3; Pad x p -> a; Conv a w -> y; out y", "Conv"},
    };
    CHECK_CASES(cases, 1e-6);
    net n; /* in a session */
    CHECK(net_init(&n, NULL));
    net_text(&n, "in x 1,2,9,5; f w 3,2,8,1;" PADS "Pad x p -> a; Conv a w -> y; out y");
    ort_pass_options options = {.level = 1, .registry = n.env->registry};
    CHECK(!ort_graph_infer(n.model->graph, n.env->registry, NULL, NULL));
    CHECK(!ort_passes_run(n.model, &options, NULL));
    CHECK_TEXT(net_ops(&n), "Conv");
    net_free(&n);
    CHECK(net_init(&n, NULL)); /* amounts of some axes */
    n.model->opsets.data[0].version = 18;
    net_text(&n, "in x 1,2,6,5; f w 3,2,3,3; i p 1,0,1,1; i o 2,-1;"
                 "Pad x p - o -> a; Conv a w -> y; out y");
    CHECK_TEXT(net_rewritten(&n, NULL, 0, 1e-6), "Conv");
    net_free(&n);
}

static void pads_in_a_row(test_state *test)
{
    static const net_case cases[] = {
        {"in x 1,2,6,5;" PADS "i q 0,1,0,2,0,0,3,0; Pad x p one -> a; Pad a q one -> y; out y",
         "Pad"},
        {"in x 1,2,n,5;" PADS "Pad x p -> a; Pad a p -> b; Pad b p -> y; out y", "Pad"},
        /* another number, another mode, an amount that cuts, another reader */
        {"in x 1,2,6,5;" PADS "Pad x p one -> a; Pad a p zero -> y; out y", "Pad Pad"},
        {"in x 1,2,6,5;" PADS "Pad x p -> a mode:=edge; Pad a p -> y mode:=edge; out y",
         "Pad Pad"},
        {"in x 1,2,6,5;" PADS "Pad x p -> a mode:=reflect; Pad a p -> y mode:=reflect; out y",
         "Pad Pad"},
        {"in x 1,2,6,5;" PADS "Pad x p -> a; Pad a p -> y mode:=edge; out y", "Pad Pad"},
        {"in x 1,2,6,5;" PADS "i q 0,0,-1,0,0,0,0,0; Pad x p -> a; Pad a q -> y; out y",
         "Pad Pad"},
        {"in x 1,2,6,5;" PADS "Pad x p -> a; Pad a p -> y; Relu a -> z; out y z", "Pad Pad Relu"},
    };
    CHECK_CASES(cases, 0);
    net n; /* amounts of some axes */
    CHECK(net_init(&n, NULL));
    n.model->opsets.data[0].version = 18;
    net_text(&n, "in x 2,3; i p 1,2; i o -1; i r 0; Pad x p - o -> a; Pad a p - r -> y; out y");
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

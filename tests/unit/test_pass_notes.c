/* test_pass_notes.c - near-misses: what a pass says of a place that fits but for one condition,
 * once, and that it says nothing where all fits or little does. */
#include "rewrite.h"
#include "test.h"

typedef struct told {
    int count;
    char text[256]; /* of the last one */
} told;

static void tell(void *arg, const ort_pass *pass, const char *node, const char *condition)
{
    told *t = arg;
    t->count++;
    snprintf(t->text, sizeof t->text, "%s: %s: %s", pass->name, node, condition);
}

/* A Gelu whose one half is another number, or whose inner value has another reader. */
static void build_gelu(net *n, float half, bool second_reader)
{
    static const float root = 1.41421356f, one = 1;
    int64_t dims[2] = {2, 3};
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, dims);
    net_constant(n, "root", ORT_DTYPE_FLOAT, 0, NULL, &root);
    net_constant(n, "one", ORT_DTYPE_FLOAT, 0, NULL, &one);
    net_constant(n, "half", ORT_DTYPE_FLOAT, 0, NULL, &half);
    net_node(n, "Div", "x root", "d");
    net_node(n, "Erf", "d", "e");
    net_node(n, "Add", "one e", "a");
    net_node(n, "Mul", "x a", "m");
    net_node(n, "Mul", "m half", "y");
    net_output(n, "y");
    if (second_reader)
        net_output(n, "e");
}

static void forms(test_state *test)
{
    static const struct {
        float half;
        bool second_reader;
        const char *text; /* NULL: it fits */
    } cases[] = {
        {0.5f, false, NULL},
        {0.25f, false, "gelu: node 'y' (Mul): 'half' isn't 0.5"},
        {0.5f, true, "gelu: node 'y' (Mul): 'e' has another reader"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char *const only[] = {"gelu", NULL};
        told heard = {0};
        ort_pass_options options = {.only = only, .portable = true, .contrib = true,
                                    .near_miss = tell, .near_miss_arg = &heard};
        net n;
        CHECK(net_init(&n, NULL));
        build_gelu(&n, cases[i].half, cases[i].second_reader);
        options.registry = n.env->registry;
        CHECK(!ort_graph_infer(n.model->graph, n.env->registry, NULL, NULL));
        CHECK(!ort_passes_run(n.model, &options, NULL));
        CHECK(heard.count == (cases[i].text != NULL));
        CHECK(count_ops(&n, "Gelu") == (cases[i].text == NULL));
        CHECK_TEXT(heard.text, cases[i].text ? cases[i].text : "");
        net_free(&n);
    }
}

typedef struct note_case {
    const char *pass, *net; /* rewrite.h */
    const char *text;       /* "node: condition"; "": nothing is told */
} note_case;

/* inside: of a session. */
static void check_note(test_state *test, const note_case *n_case, bool inside)
{
    const char *const only[] = {n_case->pass, NULL};
    char text[300] = "";
    told heard = {0};
    net n;
    CHECK(net_init(&n, NULL));
    ort_pass_options options = {.only = only, .portable = true, .contrib = true,
                                .near_miss = tell, .near_miss_arg = &heard,
                                .registry = n.env->registry};
    options.portable = !inside;
    options.target = inside ? n.env->k : NULL;
    net_text(&n, n_case->net);
    CHECK(!ort_graph_infer(n.model->graph, n.env->registry, NULL, NULL));
    CHECK(!ort_passes_run(n.model, &options, NULL));
    if (*n_case->text)
        snprintf(text, sizeof text, "%s: %s", n_case->pass, n_case->text);
    CHECK_TEXT(heard.text, text);
    CHECK(heard.count == (*n_case->text != '\0'));
    net_free(&n);
}

static void conditions(test_state *test)
{
    static const note_case cases[] = {
        {"identity", "in x 2,n; ini s 2; Reshape x s -> y; out y",
         "node 'y' (Reshape): a dimension of its result isn't known to be that of its input"},
        {"identity", "in x 2,3; i s 3,2; Reshape x s -> y; out y", ""},
        {"identity", "in x 3; fs one 1; f1 r 1,1,1; Mul x one -> a; Mul a r -> b; "
         "Neg b -> y; out y",
         ""},
        {"identity", "in x n; f1 r 0,0,0; Add x r -> y; out y",
         "node 'y' (Add): its constant may broadcast the other operand"},
        {"identity", "in x 2,3; Dropout x -> y m; out y m",
         "node 'y m' (Dropout): its mask is read, or it may be training"},
        {"identity", "in x 3; inb c -; b t 1; in z n; Where t z x -> y; out y",
         "node 'y' (Where): the branch that it takes may be broadcast"},
        {"identity", "in x 2,3; Identity x -> y; out y",
         "node 'y' (Identity): it gives a graph output that no other node can give"},
        {"default_inputs",
         "in x 4,2,3; in h 1,2,5; f w 1,15,3; f r 1,15,5; Neg h -> k; GRU x w r - - k -> y "
         "hidden_size=5; out y",
         "node 'y' (GRU): 'k' isn't known to be zeros alone"},
        {"default_inputs",
         "in x 4,2,3; in h 1,2,5; f w 1,15,3; f r 1,15,5; "
         "GRU x w r - - h -> y hidden_size=5; out y",
         ""},
        {"not_where",
         "in x 2,3; in z 2,3; inb c 3; i a 0; Not c -> n; Unsqueeze n a -> u; "
         "Where u x z -> y; out y",
         "node 'y' (Where): Unsqueeze stands between it and the Not"},
        {"not_where", "in x 2,3; in z 2,3; inb c 3; Not c -> n; Where n x z -> y; out y", ""},
        {"dead_nodes", "in x 4,6; Split x -> a b axis=1 num_outputs=2; Neg b -> y; out y",
         "node 'a b' (Split): nothing reads 'a', but 'b' is read"},
        {"push_transposes",
         "in x 2,3,4; i s 0,12; Transpose x -> t perm=0,2,1; Reshape t s -> y; out y",
         "node 't' (Transpose): node 'y' (Reshape) doesn't run in another layout"},
        {"push_transposes", "in x 2,3,4; Transpose x -> t perm=0,2,1; Relu t -> y; out y",
         "node 't' (Transpose): around it the other layout takes as many Transposes"},
        {"push_transposes",
         "in x 2,3,4; Transpose x -> t perm=2,0,1; Relu t -> r; "
         "Transpose r -> u perm=1,2,0; Neg u -> y; "
         "out y",
         ""},
        {"matmul_form",
         "in x 2,3,4; in z 2,3,4; Transpose z -> t perm=0,2,1; MatMul x t -> y; "
         "Neg t -> u; out y u",
         "node 'y' (MatMul): the Transpose of an operand has another reader"},
        {"conv_sum", "in x 1,3,8,8; in z 1,1,8,8; f w 2,3,1,1; Conv x w -> a; Add a z -> y; out y",
         "node 'y' (Add): what is added to the Conv isn't known to be float of its shape"},
        {"linear_before",
         "in x 1,4,6,6; f g 4; f h 4; f u 4; f v 4; f w 3,4,3,3; BatchNormalization x g h u v -> b;"
         "Conv b w -> y pads=1,1,1,1; out y",
         "node 'b' (BatchNormalization): the Conv pads what is shifted"},
        {"linear_before",
         "in x 2,4; fs t 1; fs h 2; f w 4,3; Erf x -> e; Add e t -> a; Mul x a -> m; "
         "Div m h -> s; MatMul s w -> y; out y",
         "node 's' (Div): it is the end of an activation"},
        {"row_products",
         "in x 2,3,4; f w 4,5; i f -1,4; i g 3,2,5; Reshape x f -> r; MatMul r w -> m; "
         "Reshape m g -> y; out y",
         "node 'y' (Reshape): its leading dimensions aren't known to be those before r"},
        {"embed_norm_form",
         "ini a 2,3; in q 2,3,4; f w 9,4; f p 1,3,4; f g 4; f b 4; Gather w a -> e; Add e p -> t; "
         "Add t q -> s; LayerNormalization s g b -> y; out y",
         "node 'y' (LayerNormalization): one term of the sum isn't rows of a constant table"},
        {"swish", "in x 2,3; f1 a 1,2,3; Mul x a -> m; Sigmoid m -> s; Mul x s -> y; out y",
         "node 'y' (Mul): 'a' isn't one constant number"},
        {"hard_swish",
         "in x 2,3; fs t 3; fs o 0; fs s 6; Add x t -> a; Clip a o s -> c; Mul x c -> m; "
         "Div m s -> y; out y c",
         "node 'y' (Div): 'c' has another reader"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_note(test, &cases[i], false);
}

static void conditions_inside(test_state *test)
{
    static const note_case cases[] = {
        {"chain_fusion", "in x 2,3; Relu x -> a; Tanh a -> y; Softmax a -> z; out y z",
         "node 'a' (Relu): its result is read elsewhere than by what would follow"},
        {"chain_fusion", "in x 1,3; in z 2,3; Relu x -> a; Add a z -> y; out y",
         "node 'a' (Relu): what follows isn't known to keep its shape"},
        {"chain_fusion", "in x 2,3; Relu x -> a; Softmax a -> y; out y", ""},
        {"chain_fusion", "in x 2,3; Relu x -> a; Tanh a -> y; out y", ""},
        {"conv_gate", "in x 1,3,8,8; f w 4,3,3,3; Conv x w -> a; HardSigmoid a -> s; Mul a s -> y;"
         "out y", "node 'a' (Conv): the HardSigmoid of its gate hasn't the slope of HardSwish"},
        {"conv_gate", "in x 1,3,8,8; f w 4,3,3,3; Conv x w -> a; HardSwish a -> y; Neg a -> z;"
         "out y z", "node 'a' (Conv): its result is read elsewhere than by its gate"},
        {"conv_gate", "in x 1,3,8,8; f w 4,3,3,3; Conv x w -> a; Relu a -> y; out y", ""},
        {"blocked_layout", "in x 1,3,8,8; in w 16,3,3,3; Conv x w -> y; out y",
         "node 'y' (Conv): its filters or its bias aren't constant"},
        {"blocked_layout", "in x 1,3,8,8; f w 2,3,3,3; Conv x w -> y; out y",
         "node 'y' (Conv): its channels would fill less than half of their blocks"},
        {"blocked_layout", "in x 1,4,8,8; f w 4,1,3,3; Conv x w -> y group=4; out y",
         "node 'y' (Conv): it is depthwise, and its input doesn't lie in the layout"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_note(test, &cases[i], true);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, forms);
    RUN(test, conditions);
    RUN(test, conditions_inside);
    return test->failures != 0;
}

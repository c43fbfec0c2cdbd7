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
        {"identity", "x:2,n; s.i64:2; y = (Reshape x s); y",
         "node 'y' (Reshape): a dimension of its result isn't known to be that of its input"},
        {"identity", "x:2,3; #s.i64=3,2; y = (Reshape x s); y", ""},
        {"identity", "x:3; #one=1; #r=1,1,1; a = (Mul x one); b = (Mul a r); y = (Neg b); y",
         ""},
        {"identity", "x:n; #r=0,0,0; y = (Add x r); y",
         "node 'y' (Add): its constant may broadcast the other operand"},
        {"identity", "x:2,3; y,m = (Dropout x); y, m",
         "node 'y' (Dropout): its mask is read, or it may be training"},
        {"identity", "x:3; c.bool:; #t.bool=1; z:n; y = (Where t z x); y",
         "node 'y' (Where): the branch that it takes may be broadcast"},
        {"identity", "x:2,3; y = (Identity x); y",
         "node 'y' (Identity): it gives a graph output that no other node can give"},
        {"default_inputs",
         "x:4,2,3; h:1,2,5; #w:1,15,3; #r:1,15,5; k = (Neg h); "
         "y = (GRU x w r - - k hidden_size=5); y",
         "node 'y' (GRU): 'k' isn't known to be zeros alone"},
        {"default_inputs",
         "x:4,2,3; h:1,2,5; #w:1,15,3; #r:1,15,5; y = (GRU x w r - - h hidden_size=5); y",
         ""},
        {"not_where",
         "x:2,3; z:2,3; c.bool:3; #a.i64=0,; n = (Not c); u = (Unsqueeze n a); "
         "y = (Where u x z); y",
         "node 'y' (Where): Unsqueeze stands between it and the Not"},
        {"not_where", "x:2,3; z:2,3; c.bool:3; n = (Not c); y = (Where n x z); y", ""},
        {"dead_nodes", "x:4,6; a,b = (Split x axis=1); y = (Neg b); y",
         "node 'a' (Split): nothing reads 'a', but 'b' is read"},
        {"push_transposes",
         "x:2,3,4; #s.i64=0,12; t = (Transpose x perm=0,2,1); y = (Reshape t s); y",
         "node 't' (Transpose): node 'y' (Reshape) doesn't run in another layout"},
        {"push_transposes", "x:2,3,4; t = (Transpose x perm=0,2,1); y = (Relu t); y",
         "node 't' (Transpose): around it the other layout takes as many Transposes"},
        {"push_transposes",
         "x:2,3,4; t = (Transpose x perm=2,0,1); r = (Relu t); u = (Transpose r perm=1,2,0); "
         "y = (Neg u); y",
         ""},
        {"matmul_form",
         "x:2,3,4; z:2,3,4; t = (Transpose z perm=0,2,1); y = (MatMul x t); u = (Neg t); y, u",
         "node 'y' (MatMul): the Transpose of an operand has another reader"},
        {"conv_sum", "x:1,3,8,8; z:1,1,8,8; #w:2,3,1,1; a = (Conv x w); y = (Add a z); y",
         "node 'y' (Add): what is added to the Conv isn't known to be float of its shape"},
        {"linear_before",
         "x:1,4,6,6; #g:4; #h:4; #u:4; #v:4; #w:3,4,3,3; b = (BatchNormalization x g h u v); "
         "y = (Conv b w pads=1,1,1,1); y",
         "node 'b' (BatchNormalization): the Conv pads what is shifted"},
        {"linear_before",
         "x:2,4; #t=1; #h=2; #w:4,3; e = (Erf x); a = (Add e t); m = (Mul x a); s = (Div m h); "
         "y = (MatMul s w); y",
         "node 's' (Div): it is the end of an activation"},
        {"row_products",
         "x:2,3,4; #w:4,5; #f.i64=-1,4; #g.i64=3,2,5; r = (Reshape x f); m = (MatMul r w); "
         "y = (Reshape m g); y",
         "node 'y' (Reshape): its leading dimensions aren't known to be those before r"},
        {"embed_norm_form",
         "a.i64:2,3; q:2,3,4; #w:9,4; #p:1,3,4; #g:4; #b:4; e = (Gather w a); t = (Add e p); "
         "s = (Add t q); y = (LayerNormalization s g b); y",
         "node 'y' (LayerNormalization): one term of the sum isn't rows of a constant table"},
        {"swish", "x:2,3; #a=1,2,3; m = (Mul x a); s = (Sigmoid m); y = (Mul x s); y",
         "node 'y' (Mul): 'a' isn't one constant number"},
        {"hard_swish",
         "x:2,3; #t=3; #o=0; #s=6; a = (Add x t); c = (Clip a o s); m = (Mul x c); "
         "y = (Div m s); y, c",
         "node 'y' (Div): 'c' has another reader"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_note(test, &cases[i], false);
}

static void conditions_inside(test_state *test)
{
    static const note_case cases[] = {
        {"chain_fusion", "x:2,3; a = (Relu x); y = (Tanh a); z = (Softmax a); y, z",
         "node 'a' (Relu): its result is read elsewhere than by what would follow"},
        {"chain_fusion", "x:1,3; z:2,3; a = (Relu x); y = (Add a z); y",
         "node 'a' (Relu): what follows isn't known to keep its shape"},
        {"chain_fusion", "x:2,3; a = (Relu x); y = (Softmax a); y", ""},
        {"chain_fusion", "x:2,3; a = (Relu x); y = (Tanh a); y", ""},
        {"lstm_cells", "x:2,12; c:2,3; w:2,3; f, i, o, g = (Split x axis=1); "
                      "a = ((Sigmoid f) * c); b = ((Sigmoid i) * (Tanh w)); n = (Add a b); "
                      "t = (Tanh n); h = ((Sigmoid o) * t); h, n, g",
         "node 't' (Tanh): the gates of its step aren't the quarters of one value"},
        {"conv_gate", "x:1,3,8,8; #w:4,3,3,3; a = (Conv x w); s = (HardSigmoid a); "
                      "y = (Mul a s); y",
                      "node 'a' (Conv): the HardSigmoid of its gate hasn't the slope of HardSwish"},
        {"conv_gate", "x:1,3,8,8; #w:4,3,3,3; a = (Conv x w); y = (HardSwish a); z = (Neg a); "
                      "y, z", "node 'a' (Conv): its result is read elsewhere than by its gate"},
        {"conv_gate", "x:1,3,8,8; #w:4,3,3,3; a = (Conv x w); y = (Relu a); y", ""},
        {"blocked_layout", "x:1,3,8,8; w:16,3,3,3; y = (Conv x w); y",
         "node 'y' (Conv): its filters or its bias aren't constant"},
        {"blocked_layout", "x:1,3,8,8; #w:2,3,3,3; y = (Conv x w); y",
         "node 'y' (Conv): its channels would fill less than half of their blocks"},
        {"blocked_layout", "x:1,4,8,8; #w:4,1,3,3; y = (Conv x w group=4); y",
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

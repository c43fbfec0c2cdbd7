/* test_opset.c - models of another opset: what they are made of, that they compute the same, and
 * what blocks them. The conformance models cover the newest version of each operator on its way
 * down and back (make opset-sweep); older forms on their way up are here. */
#include "rewrite.h"
#include "test.h"

typedef struct conversion {
    int from, to;
    const char *text;
    const char *ops;     /* afterwards; NULL: blocked... */
    const char *blocker; /* ...by this, which the first message holds */
} conversion;

static bool convert(net *n, int opset, char *message, size_t size, int *reach)
{
    ort_findings *blockers = NULL;
    ort_error err = {0};
    bool done = !ort_model_set_opset(n->env, n->model, opset, false, &blockers, reach, &err);
    snprintf(message, size, "%s",
             ort_findings_count(blockers) ? ort_findings_message(blockers, 0) : err.message);
    ort_findings_free(blockers);
    return done;
}

static bool holds_at(const conversion *c)
{
    net n;
    char message[ORT_ERROR_TEXT];
    if (!net_init(&n, NULL))
        return false;
    n.model->opsets.data[0].version = c->from;
    net_text(&n, c->text);
    ort_session *before = c->ops ? plain(&n) : NULL, *after = NULL;
    bool done = convert(&n, c->to, message, sizeof message, NULL);
    bool ok = done == (c->ops != NULL);
    if (ok && done) {
        after = plain(&n);
        ok = before && after && !strcmp(net_ops(&n), c->ops) && net_agree(before, after, 1e-5);
    } else if (ok) {
        ok = strstr(message, c->blocker) != NULL;
    }
    if (!ok)
        printf("opset %d to %d of '%s': %s %s\n", c->from, c->to, c->text,
               done ? net_ops(&n) : "blocked:", message);
    ort_session_free(before);
    ort_session_free(after);
    net_free(&n);
    return ok;
}

#define ALL(list)                                                                                  \
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)                                        \
    CHECK(holds_at(&(list)[i]))

static void broadcasting(test_state *test)
{
    static const conversion list[] = {
        {6, 7, "in x 2,3,4; f b 3; Add x b -> y axis=1 broadcast=1; out y", "Unsqueeze Add", NULL},
        {6, 13, "in x 2,3,4; f b 3; Add x b -> y axis=1 broadcast=1; out y", "Unsqueeze Add", NULL},
        {6, 7, "in x 2,3,4; f b 4; Mul x b -> y broadcast=1; out y", "Mul", NULL},
        {6, 28, "in x 2,3,4; f b 3; PRelu x b -> y; out y", "Unsqueeze PRelu", NULL},
        {6, 9, "in x 2,3; f b 3,4; f c 4; Gemm x b c -> y broadcast=1; out y", "Gemm", NULL},
        {8, 7, "in x 2,3; in y 3; Sum x y x -> z; out z", "Add Add", NULL},
        {8, 7, "in x 2,3; in y 3; Mean x y -> z; out z", "Add Div", NULL},
        {8, 7, "in x 2,3; in y 3; Max x y -> z; out z", NULL, "different shapes"},
        {12, 11, "in x 2,3; i e 2,3,2; Pow x e -> z; out z", "Cast Pow", NULL},
        {11, 9, "in x 2,3; f b 3,4; Gemm x b -> y; out y", "Gemm", NULL},
    };
    ALL(list);
}

static void axes(test_state *test)
{
    static const conversion list[] = {
        {12, 13, "in x 2,3,4; Softmax x -> y; out y", "Flatten Softmax Reshape", NULL},
        {12, 13, "in x n,3,m; LogSoftmax x -> y axis=1; out y",
         "Flatten LogSoftmax Shape Reshape", NULL},
        {11, 13, "in x 2,3,4; Softmax x -> y axis=2; out y", "Softmax", NULL},
        {13, 11, "in x 2,3,4; Softmax x -> y axis=1; out y", "Transpose Softmax Transpose", NULL},
        {13, 7, "in x 2,3,4; Softmax x -> y; out y", "Softmax", NULL},
        {9, 13, "in x 2,3,4; Slice x -> y axes=1, starts=0, ends=-1,; out y", "Slice", NULL},
        {13, 9, "in x 2,3,4; i a 1; i b 3; i c -2; Slice x a b c -> y; out y", "Slice", NULL},
        {13, 9, "in x 2,3,4; i a 1; i b 3; i c 1; i d 2; Slice x a b c d -> y; out y", NULL,
         "a step is 2, steps were 1 before: needs opset 10"},
        {13, 9, "in x 2,3,4; ini a 1; i b 3; i c 1; Slice x a b c -> y; out y", NULL,
         "'starts' is computed, and was an attribute before: needs opset 10"},
        {11, 18, "in x 2,3,4; ReduceMean x -> y axes=-1, keepdims=0; out y", "ReduceMean", NULL},
        {18, 9, "in x 2,3,4; i a -1; ReduceMean x a -> y; out y", "ReduceMean", NULL},
        {18, 13, "in x 2,3,4; ReduceSumSquare x -> y noop_with_empty_axes=1; out y", "Mul", NULL},
        {12, 13, "in x 2,1,4; Squeeze x -> y axes=1,; out y", "Squeeze", NULL},
        {13, 9, "in x 2,4; i a -1; Unsqueeze x a -> y; out y", "Unsqueeze", NULL},
        {12, 18, "in x 6,4; Split x -> y z; out y z", "Split", NULL},
        {18, 9, "in x 5,4; Split x -> y z num_outputs=2; out y z", "Split", NULL},
        {9, 11, "in x 5,4; TopK x -> v i k=3 axis=0; out v", "TopK", NULL},
        {18, 10, "in x 2,3,4; i p 1,2; i a -1; Pad x p - a -> y; out y", "Pad", NULL},
        {10, 28, "in x 2,3; Pad x -> y pads=0,1,2,0 value~1.5; out y", "Pad", NULL},
        {15, 13, "in x 2,n,4; Shape x -> y start=1; out y", "Shape Slice", NULL},
        {14, 13, "in x 2,3; i s 3,2; Reshape x s -> y allowzero=1; out y", "Reshape", NULL},
    };
    ALL(list);
}

static void windows(test_state *test)
{
    static const conversion list[] = {
        {9, 28, "in x 1,2,3,3; f1 s 1,1,2,2; Upsample x s -> y; out y", "Resize", NULL},
        {9, 10, "in x 1,2,3,3; in s 4; Upsample x s -> y; out s", "Resize", NULL},
        {9, 13, "in x 1,2,3,3; in s 4; Upsample x s -> y; out s", "Resize", NULL},
        {10, 11, "in x 1,2,3,3; f1 s 1,1,2,0.5; Resize x s -> y; out y", NULL, "shrinks another"},
        {10, 13, "in x 1,2,8,8; f1 s 1,1,0.6,0.6; Resize x s -> y; out y", "Resize", NULL},
        {18, 9, "in x 1,2,3,3; f1 s 2,2; Resize x - s -> y axes=2,3; out y", "Upsample", NULL},
        {13, 10, "in x 1,2,3,3; i s 1,2,6,9; Resize x - - s -> y; out y", "Resize", NULL},
        {13, 10, "in x 1,2,3,3; f1 s 1,1,2,2; Resize x - s -> y mode:=cubic; out y", NULL,
         "mode cubic with coordinates half_pixel has no older form: needs opset 11"},
        {22, 10, "in x 1,1,5,5; AveragePool x -> y kernel_shape=2,2 dilations=1,1; out y",
         "AveragePool", NULL},
        {22, 18, "in x 1,1,9,9; AveragePool x -> y kernel_shape=2,2 dilations=2,2; out y", NULL,
         "attribute 'dilations' isn't there before: needs opset 19"},
        {16, 20, "in x 1,1,3,3; in g 1,2,2,2; GridSample x g -> y; out y", "GridSample", NULL},
    };
    ALL(list);
}

static void norms(test_state *test)
{
    static const conversion list[] = {
        {6, 28, "in x 2,3,4; f s 3; f b 3; f m 3; f v 3; BatchNormalization x s b m v -> y "
                "is_test=1; out y", "BatchNormalization", NULL},
        {6, 28, "in x 2,3; Dropout x -> y is_test=1 ratio~0.3; out y", "Dropout", NULL},
        {9, 13, "in x 2,3; Dropout x -> y k; out y k", "Dropout Cast", NULL},
        {22, 7, "in x 2,3; fs r 0.25; Dropout x r -> y; out y", "Dropout", NULL},
        {22, 7, "in x 2,3; fs r 0.25; b t 1; Dropout x r t -> y; out y", NULL,
         "'training_mode' is true, or computed: needs opset 12"},
        {22, 13, "in x 3,2,4; f w 1,20,4; f r 1,20,5; LSTM x w r -> y h c hidden_size=5 layout=1; "
                 "out y h c", "Transpose LSTM Transpose Transpose Transpose", NULL},
        {21, 13, "in x 2,4,3; f s 4; f b 4; GroupNormalization x s b -> y num_groups=2; out y",
         "Reshape ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Reshape Unsqueeze Unsqueeze Mul "
         "Add", NULL},
    };
    ALL(list);
}

static void spelled(test_state *test)
{
    static const conversion list[] = {
        {9, 13, "in x 2,3; Affine x -> y alpha~0.5; ScaledTanh y -> z alpha~2; out z",
         "Mul Add Mul Tanh Mul", NULL},
        {20, 19, "in x 2,3; Gelu x -> y; out y", "Mul Mul Erf Add Mul", NULL},
        {14, 13, "in x 2,3; HardSwish x -> y; out y", "HardSigmoid Mul", NULL},
        {28, 13, "in x 2,3; in z 2,3; SwiGLU x z -> y alpha~1.5; out y", "Mul Sigmoid Mul Mul",
         NULL},
        {14, 13, "in x 3,3; Trilu x -> y upper=0; out y", "Unsqueeze Greater Not Where", NULL},
        {23, 17, "in x 1,2,3,4; f c 1,3,2; f s 1,3,2; RotaryEmbedding x c s -> y; out y",
         "Transpose Unsqueeze Unsqueeze Slice Slice Mul Mul Sub Mul Mul Add Concat "
         "Transpose", NULL},
        {13, 9, "in x 2,3; in l -; fs h 2; Clip x l h -> y; out y", "Max Min", NULL},
        {17, 11, "in x 2,3; f s 3; f b 3; LayerNormalization x s b -> y; out y",
         "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Mul Add", NULL},
        {11, 10, "is a 0; is b 5; is c 2; ini x 3; Range a b c -> r; Add r x -> y; out y", "Add",
         NULL},
        {20, 9, "in x 1,1,3,3; in g 1,2,2,2; GridSample x g -> y; out y", NULL,
         "the operator isn't there before opset 16: needs opset 16"},
    };
    ALL(list);
}

/* Operators that were on trial until opset 9, and GroupNormalization before it scaled channels. */
static void trials(test_state *test)
{
    static const conversion list[] = {
        {9, 10, "in x 2,3; Scale x -> y scale~0.5; out y", "Mul", NULL},
        {6, 13, "in x 2,3; ThresholdedRelu x -> y alpha~0.5; out y", "ThresholdedRelu", NULL},
        {9, 13, "in x 1,2,5,6; Crop x -> y border=1,2,1,0; out y", "Slice", NULL},
        {7, 28, "in x n,2,5,6; Crop x -> y border=1,0,0,1 scale=2,3; out y", "Slice", NULL},
        {9, 10, "in x 3,4; i a 1,0; i b 3,-1; DynamicSlice x a b -> y; out y", "Slice", NULL},
        {9, 13, "in x 3,4; i a 1; i b 3; i c 1; DynamicSlice x a b c -> y; out y", "Slice", NULL},
        {9, 13, "in x 2,3; ConstantFill -> f shape=2,3 value~1.5; Add x f -> y; out y",
         "ConstantOfShape Add", NULL},
        {9, 10, "in x n,3; ConstantFill x -> y extra_shape=2, value~2; out y",
         "Shape Concat ConstantOfShape", NULL},
        {9, 11, "in x 4; i s 2; ConstantFill s -> y input_as_shape=1 extra_shape=4, dtype=1; "
                "Add x y -> z; out z", "Concat ConstantOfShape Add", NULL},
        {9, 13, "in x 2,2; GivenTensorFill -> f shape=2,2 values~1,2,3,4; Add x f -> y; out y",
         "Reshape Add", NULL},
        {8, 9, "in x 2,3,4,4; MeanVarianceNormalization x -> y; out y",
         "MeanVarianceNormalization", NULL},
        {8, 13, "in x 2,3,4,4; MeanVarianceNormalization x -> y across_channels=1; out y",
         "MeanVarianceNormalization", NULL},
        {8, 10, "in x 2,3,4,4; MeanVarianceNormalization x -> y normalize_variance=0; out y",
         "ReduceMean Sub", NULL},
        {18, 21, "in x 2,4,3; f s 2; f b 2; GroupNormalization x s b -> y num_groups=2; out y",
         "Reshape Expand Reshape Reshape Expand Reshape GroupNormalization", NULL},
        {20, 17, "in x 2,4,3; f s 2; f b 2; GroupNormalization x s b -> y num_groups=2; out y",
         "Reshape ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Unsqueeze Unsqueeze Mul Add "
         "Reshape", NULL},
    };
    ALL(list);
}

/* All blockers are found in one walk, and the nearest opset without one. */
static void blockers(test_state *test)
{
    net n;
    int reach = 0;
    ort_findings *found = NULL;
    CHECK(net_init(&n, NULL));
    n.model->opsets.data[0].version = 20;
    net_text(&n, "in x 1,1,3,3; in g 1,2,2,2; ini a 4; ini b 4; GridSample x g -> y; "
                 "Slice y a b -> z; Trilu z -> t; out t");
    CHECK(ort_model_set_opset(n.env, n.model, 9, false, &found, &reach, NULL) ==
          ORT_ERROR_UNSUPPORTED);
    CHECK(ort_findings_count(found) >= 3);
    CHECK(reach == 16);
    ort_findings_free(found);
    net_free(&n);

    CHECK(net_init(&n, NULL));
    net_text(&n, "in x 2; Relu x -> y; out y");
    CHECK(ort_model_set_opset(n.env, n.model, 29, false, NULL, NULL, NULL) == ORT_ERROR_USAGE);
    CHECK(ort_model_set_opset(n.env, n.model, 6, false, NULL, NULL, NULL) == ORT_ERROR_USAGE);
    CHECK(ort_model_set_opset(n.env, n.model, 21, false, NULL, NULL, NULL) == ORT_OK);
    CHECK(n.model->ir_version == 10 && ort_model_opset(n.model, "") == 21);
    CHECK(ort_model_set_opset(n.env, n.model, 7, false, NULL, NULL, NULL) == ORT_OK);
    CHECK(n.model->ir_version == 4 && ort_model_opset(n.model, "") == 7);
    net_free(&n);
}

int main(void)
{
    test_state state = {0}, *test = &state;
    RUN(test, broadcasting);
    RUN(test, axes);
    RUN(test, windows);
    RUN(test, norms);
    RUN(test, spelled);
    RUN(test, trials);
    RUN(test, blockers);
    return test->failures != 0;
}

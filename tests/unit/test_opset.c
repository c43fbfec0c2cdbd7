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
        {6, 7, "x:2,3,4; #b:3; y = (Add x b axis=1 broadcast=1); y", "Unsqueeze Add", NULL},
        {6, 13, "x:2,3,4; #b:3; y = (Add x b axis=1 broadcast=1); y", "Unsqueeze Add", NULL},
        {6, 7, "x:2,3,4; #b:4; y = (Mul x b broadcast=1); y", "Mul", NULL},
        {6, 28, "x:2,3,4; #b:3; y = (PRelu x b); y", "Unsqueeze PRelu", NULL},
        {6, 9, "x:2,3; #b:3,4; #c:4; y = (Gemm x b c broadcast=1); y", "Gemm", NULL},
        {8, 7, "x:2,3; y:3; z = (Sum x y x); z", "Add Add", NULL},
        {8, 7, "x:2,3; y:3; z = (Mean x y); z", "Add Div", NULL},
        {8, 7, "x:2,3; y:3; z = (Max x y); z", NULL, "different shapes"},
        {12, 11, "x:2,3; #e.i64=2,3,2; z = (Pow x e); z", "Cast Pow", NULL},
        {11, 9, "x:2,3; #b:3,4; y = (Gemm x b); y", "Gemm", NULL},
    };
    ALL(list);
}

static void axes(test_state *test)
{
    static const conversion list[] = {
        {12, 13, "x:2,3,4; y = (Softmax x); y", "Flatten Softmax Reshape", NULL},
        {12, 13, "x:n,3,m; y = (LogSoftmax x axis=1); y",
         "Flatten LogSoftmax Shape Reshape", NULL},
        {11, 13, "x:2,3,4; y = (Softmax x axis=2); y", "Softmax", NULL},
        {13, 11, "x:2,3,4; y = (Softmax x axis=1); y", "Transpose Softmax Transpose", NULL},
        {13, 7, "x:2,3,4; y = (Softmax x); y", "Softmax", NULL},
        {9, 13, "x:2,3,4; y = (Slice x axes=1, starts=0, ends=-1,); y", "Slice", NULL},
        {13, 9, "x:2,3,4; #a.i64=1,; #b.i64=3,; #c.i64=-2,; y = (Slice x a b c); y", "Slice", NULL},
        {13, 9, "x:2,3,4; #a.i64=1,; #b.i64=3,; #c.i64=1,; #d.i64=2,; y = (Slice x a b c d); y",
                NULL,
         "a step is 2, steps were 1 before: needs opset 10"},
        {13, 9, "x:2,3,4; a.i64:1; #b.i64=3,; #c.i64=1,; y = (Slice x a b c); y", NULL,
         "'starts' is computed, and was an attribute before: needs opset 10"},
        {11, 18, "x:2,3,4; y = (ReduceMean x axes=-1, keepdims=0); y", "ReduceMean", NULL},
        {18, 9, "x:2,3,4; #a.i64=-1,; y = (ReduceMean x a); y", "ReduceMean", NULL},
        {18, 13, "x:2,3,4; y = (ReduceSumSquare x noop_with_empty_axes=1); y", "Mul", NULL},
        {12, 13, "x:2,1,4; y = (Squeeze x axes=1,); y", "Squeeze", NULL},
        {13, 9, "x:2,4; #a.i64=-1,; y = (Unsqueeze x a); y", "Unsqueeze", NULL},
        {12, 18, "x:6,4; y,z = (Split x); y, z", "Split", NULL},
        {18, 9, "x:5,4; y,z = (Split x num_outputs=2); y, z", "Split", NULL},
        {9, 11, "x:5,4; v,i = (TopK x k=3 axis=0); v", "TopK", NULL},
        {18, 10, "x:2,3,4; #p.i64=1,2; #a.i64=-1,; y = (Pad x p - a); y", "Pad", NULL},
        {10, 28, "x:2,3; y = (Pad x pads=0,1,2,0 value=1.5); y", "Pad", NULL},
        {15, 13, "x:2,n,4; y = (Shape x start=1); y", "Shape Slice", NULL},
        {14, 13, "x:2,3; #s.i64=3,2; y = (Reshape x s allowzero=1); y", "Reshape", NULL},
    };
    ALL(list);
}

static void windows(test_state *test)
{
    static const conversion list[] = {
        {9, 28, "x:1,2,3,3; #s=1,1,2,2; y = (Upsample x s); y", "Resize", NULL},
        {9, 10, "x:1,2,3,3; s:4; y = (Upsample x s); s", "Resize", NULL},
        {9, 13, "x:1,2,3,3; s:4; y = (Upsample x s); s", "Resize", NULL},
        {10, 11, "x:1,2,3,3; #s=1,1,2,0.5; y = (Resize x s); y", NULL, "shrinks another"},
        {10, 13, "x:1,2,8,8; #s=1,1,0.6,0.6; y = (Resize x s); y", "Resize", NULL},
        {18, 9, "x:1,2,3,3; #s=2,2; y = (Resize x - s axes=2,3); y", "Upsample", NULL},
        {13, 10, "x:1,2,3,3; #s.i64=1,2,6,9; y = (Resize x - - s); y", "Resize", NULL},
        {13, 10, "x:1,2,3,3; #s=1,1,2,2; y = (Resize x - s mode=cubic); y", NULL,
         "mode cubic with coordinates half_pixel has no older form: needs opset 11"},
        {22, 10, "x:1,1,5,5; y = (AveragePool x kernel_shape=2,2 dilations=1,1); y",
         "AveragePool", NULL},
        {22, 18, "x:1,1,9,9; y = (AveragePool x kernel_shape=2,2 dilations=2,2); y", NULL,
         "attribute 'dilations' isn't there before: needs opset 19"},
        {16, 20, "x:1,1,3,3; g:1,2,2,2; y = (GridSample x g); y", "GridSample", NULL},
    };
    ALL(list);
}

static void norms(test_state *test)
{
    static const conversion list[] = {
        {6, 28, "x:2,3,4; #s:3; #b:3; #m:3; #v:3; y = (BatchNormalization x s b m v is_test=1); "
                "y", "BatchNormalization", NULL},
        {6, 28, "x:2,3; y = (Dropout x is_test=1 ratio=0.3); y", "Dropout", NULL},
        {9, 13, "x:2,3; y,k = (Dropout x); y, k", "Dropout Cast", NULL},
        {22, 7, "x:2,3; #r=0.25; y = (Dropout x r); y", "Dropout", NULL},
        {22, 7, "x:2,3; #r=0.25; #t.bool=1; y = (Dropout x r t); y", NULL,
         "'training_mode' is true, or computed: needs opset 12"},
        {22, 13, "x:3,2,4; #w:1,20,4; #r:1,20,5; y,h,c = (LSTM x w r hidden_size=5 layout=1); "
                 "y, h, c", "Transpose LSTM Transpose Transpose Transpose", NULL},
        {21, 13, "x:2,4,3; #s:4; #b:4; y = (GroupNormalization x s b num_groups=2); y",
         "Reshape ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Reshape Unsqueeze Unsqueeze Mul "
         "Add", NULL},
    };
    ALL(list);
}

static void spelled(test_state *test)
{
    static const conversion list[] = {
        {9, 13, "x:2,3; y = (Affine x alpha=0.5); z = (ScaledTanh y alpha=2.0); z",
         "Mul Add Mul Tanh Mul", NULL},
        {20, 19, "x:2,3; y = (Gelu x); y", "Mul Mul Erf Add Mul", NULL},
        {14, 13, "x:2,3; y = (HardSwish x); y", "HardSigmoid Mul", NULL},
        {28, 13, "x:2,3; z:2,3; y = (SwiGLU x z alpha=1.5); y", "Mul Sigmoid Mul Mul",
         NULL},
        {14, 13, "x:3,3; y = (Trilu x upper=0); y", "Unsqueeze Greater Not Where", NULL},
        {23, 17, "x:1,2,3,4; #c:1,3,2; #s:1,3,2; y = (RotaryEmbedding x c s); y",
         "Transpose Unsqueeze Unsqueeze Slice Slice Mul Mul Sub Mul Mul Add Concat "
         "Transpose", NULL},
        {13, 9, "x:2,3; l:; #h=2; y = (Clip x l h); y", "Max Min", NULL},
        {17, 11, "x:2,3; #s:3; #b:3; y = (LayerNormalization x s b); y",
         "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Mul Add", NULL},
        {11, 10, "#a.i64=0; #b.i64=5; #c.i64=2; x.i64:3; r = (Range a b c); y = (Add r x); y",
                 "Add",
         NULL},
        {20, 9, "x:1,1,3,3; g:1,2,2,2; y = (GridSample x g); y", NULL,
         "the operator isn't there before opset 16: needs opset 16"},
    };
    ALL(list);
}

/* Operators that were on trial until opset 9, and GroupNormalization before it scaled channels. */
static void trials(test_state *test)
{
    static const conversion list[] = {
        {9, 10, "x:2,3; y = (Scale x scale=0.5); y", "Mul", NULL},
        {6, 13, "x:2,3; y = (ThresholdedRelu x alpha=0.5); y", "ThresholdedRelu", NULL},
        {9, 13, "x:1,2,5,6; y = (Crop x border=1,2,1,0); y", "Slice", NULL},
        {7, 28, "x:n,2,5,6; y = (Crop x border=1,0,0,1 scale=2,3); y", "Slice", NULL},
        {9, 10, "x:3,4; #a.i64=1,0; #b.i64=3,-1; y = (DynamicSlice x a b); y", "Slice", NULL},
        {9, 13, "x:3,4; #a.i64=1,; #b.i64=3,; #c.i64=1,; y = (DynamicSlice x a b c); y",
                "Slice", NULL},
        {9, 13, "x:2,3; f = (ConstantFill shape=2,3 value=1.5); y = (Add x f); y",
         "ConstantOfShape Add", NULL},
        {9, 10, "x:n,3; y = (ConstantFill x extra_shape=2, value=2.0); y",
         "Shape Concat ConstantOfShape", NULL},
        {9, 11, "x:4; #s.i64=2,; y = (ConstantFill s input_as_shape=1 extra_shape=4, dtype=1); "
                "z = (Add x y); z", "Concat ConstantOfShape Add", NULL},
        {9, 13, "x:2,2; f = (GivenTensorFill shape=2,2 values=1,2,3,4); y = (Add x f); y",
         "Reshape Add", NULL},
        {8, 9, "x:2,3,4,4; y = (MeanVarianceNormalization x); y",
         "MeanVarianceNormalization", NULL},
        {8, 13, "x:2,3,4,4; y = (MeanVarianceNormalization x across_channels=1); y",
         "MeanVarianceNormalization", NULL},
        {8, 10, "x:2,3,4,4; y = (MeanVarianceNormalization x normalize_variance=0); y",
         "ReduceMean Sub", NULL},
        {18, 21, "x:2,4,3; #s:2; #b:2; y = (GroupNormalization x s b num_groups=2); y",
         "Reshape Expand Reshape Reshape Expand Reshape GroupNormalization", NULL},
        {20, 17, "x:2,4,3; #s:2; #b:2; y = (GroupNormalization x s b num_groups=2); y",
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
    net_text(&n, "x:1,1,3,3; g:1,2,2,2; a.i64:4; b.i64:4; y = (GridSample x g); "
                 "z = (Slice y a b); t = (Trilu z); t");
    CHECK(ort_model_set_opset(n.env, n.model, 9, false, &found, &reach, NULL) ==
          ORT_ERROR_UNSUPPORTED);
    CHECK(ort_findings_count(found) >= 3);
    CHECK(reach == 16);
    ort_findings_free(found);
    net_free(&n);

    CHECK(net_init(&n, NULL));
    net_text(&n, "x:2; y = (Relu x); y");
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

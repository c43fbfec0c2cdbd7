/* test_gradient.c - Gradient against central differences in double, operator by operator.
 *
 * A row is an operator on small inputs. The model computes t, the sum of the squares of its float
 * outputs, the gradients of t, the sum of their squares h, and the gradients of h by a second
 * Gradient node. Each element of each input is moved a little to both sides: the differences of t
 * and of h must be what the Gradient nodes say. All rows run at their first and their last opset,
 * and once more with every dimension of the inputs written `f` symbolic.
 */
#include <math.h>
#include <stdio.h>

#include "gradient/gradient.h"
#include "net.h"
#include "test.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define INPUTS_MAX 6
#define OUTPUTS_MAX 3
#define STEP 1e-5

/* Which second derivatives there are. A convolution whose weight is a gradient takes a kernel of
 * known size, which symbolic inputs don't give; what scatters without adding up needs no opset 16,
 * its second derivative does. */
typedef enum orders { TWICE, TWICE_WHEN_FIXED, TWICE_FROM_16 } orders;

typedef struct row {
    const char *op_type;
    /* Blank-separated: f2x3 float input, F2x3 the same of fixed dims, c2x3 float constant,
     * i3=0,2,1 int64 constant, b2x3 alternating bools, - absent. */
    const char *in;
    const char *out;   /* a letter per output: f float, i anything else, - not asked for */
    const char *attrs; /* as in schemas: "axis:i=1 mode:s=edge axes:is=1,2" */
    int first, last;   /* opsets */
    double low, high;  /* of the inputs' values */
    orders second;
} row;

static const row rows[] = {
    {"Abs", "f2x3", "f", "", 13, 28, -2, 2, TWICE},
    {"Acos", "f2x3", "f", "", 12, 28, -0.8, 0.8, TWICE},
    {"Acosh", "f2x3", "f", "", 12, 28, 1.2, 3, TWICE},
    {"Add", "f2x3 f3", "f", "", 12, 28, -2, 2, TWICE},
    {"Add", "f2x3 f2x1", "f", "", 12, 28, -2, 2, TWICE},
    {"Add", "f1x3 f4x2x1", "f", "", 12, 28, -2, 2, TWICE},
    {"Add", "f2x3 f", "f", "", 12, 28, -2, 2, TWICE},
    {"Asin", "f2x3", "f", "", 12, 28, -0.8, 0.8, TWICE},
    {"Asinh", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Atan", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Atanh", "f2x3", "f", "", 12, 28, -0.8, 0.8, TWICE},
    {"AveragePool", "f1x2x7", "f", "kernel_shape:is=3 strides:is=2", 12, 28, -2, 2, TWICE},
    {"AveragePool", "f2x2x5x6", "f", "kernel_shape:is=3,2 pads:is=1,0,1,1 strides:is=2,1", 12, 28,
     -2, 2, TWICE},
    {"AveragePool", "f1x2x5x6", "f",
     "kernel_shape:is=3,2 pads:is=1,0,1,1 strides:is=2,1 count_include_pad:i=1", 12, 28, -2, 2,
     TWICE},
    {"AveragePool", "F1x2x6x7", "f",
     "kernel_shape:is=3,3 strides:is=2,3 pads:is=0,1,0,1 ceil_mode:i=1", 12, 28, -2, 2, TWICE},
    {"AveragePool", "F1x1x6x7", "f",
     "kernel_shape:is=3,3 strides:is=2,3 pads:is=1,1,0,1 ceil_mode:i=1 count_include_pad:i=1", 19,
     28, -2, 2, TWICE},
    {"AveragePool", "F1x1x5x6", "f", "kernel_shape:is=2,3 auto_pad:s=SAME_UPPER strides:is=2,2",
     12, 28, -2, 2, TWICE},
    {"AveragePool", "f1x1x7x6", "f", "kernel_shape:is=2,2 dilations:is=2,3", 19, 28, -2, 2, TWICE},
    {"AveragePool", "f1x1x3x4x3", "f", "kernel_shape:is=2,2,2", 12, 28, -2, 2, TWICE},
    {"BatchNormalization", "f2x3x2 F3 F3 c3 C3", "f", "epsilon:f=0.01", 12, 28, -1, 1, TWICE},
    {"BatchNormalization", "f2x3x2 F3 F3 F3 V3", "f", "", 14, 28, -1, 1, TWICE},
    {"BatchNormalization", "f2x3x2 F3 F3 F3 V3", "fff", "training_mode:i=1 momentum:f=0.7", 14, 28,
     -1, 1, TWICE},
    {"Celu", "f2x3", "f", "alpha:f=0.7", 28, 28, -2, 2, TWICE},
    {"Clip", "f3x4 F F", "f", "", 12, 28, -1, 1, TWICE},
    {"Clip", "f3x4 - F", "f", "", 12, 28, -1, 1, TWICE},
    {"Clip", "f3x4", "f", "", 12, 28, -1, 1, TWICE},
    {"Compress", "f3x4 b3", "f", "axis:i=0", 13, 28, -2, 2, TWICE},
    {"Concat", "f2x3 f2x1 f2x2", "f", "axis:i=-1", 12, 28, -2, 2, TWICE},
    {"Conv", "f2x3x7 F4x3x3", "f", "pads:is=1,2 strides:is=2", 12, 28, -1, 1, TWICE_WHEN_FIXED},
    {"Conv", "f2x2x5x6 F3x2x3x2 F3", "f", "", 12, 28, -1, 1, TWICE_WHEN_FIXED},
    {"Conv", "f2x4x5x6 F6x2x3x2 F6", "f", "group:i=2 strides:is=2,3 pads:is=1,1,0,2", 12, 28, -1,
     1, TWICE_WHEN_FIXED},
    {"Conv", "f1x3x8x7 F3x1x3x2", "f", "group:i=3 dilations:is=2,3 strides:is=2,1", 12, 28, -1, 1,
     TWICE_WHEN_FIXED},
    {"Conv", "F1x2x5x4 F2x2x3x3", "f", "auto_pad:s=SAME_LOWER strides:is=2,2", 12, 28, -1, 1,
     TWICE},
    {"Conv", "f1x2x3x4x3 F2x2x2x2x2", "f", "strides:is=1,2,1", 12, 28, -1, 1, TWICE_WHEN_FIXED},
    {"ConvTranspose", "f2x3x4 F3x2x3 F2", "f", "strides:is=2 output_padding:is=1", 12, 28, -1, 1,
     TWICE_WHEN_FIXED},
    {"ConvTranspose", "f1x4x3x4 F4x2x3x2", "f",
     "group:i=2 strides:is=2,3 pads:is=1,0,1,1 dilations:is=1,2", 12, 28, -1, 1, TWICE_WHEN_FIXED},
    {"Cos", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Cosh", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"CumSum", "f3x4 i=1", "f", "", 12, 28, -2, 2, TWICE},
    {"CumSum", "f3x4 i=0", "f", "reverse:i=1 exclusive:i=1", 14, 28, -2, 2, TWICE},
    {"DepthToSpace", "f1x8x2x2", "f", "blocksize:i=2", 12, 28, -2, 2, TWICE},
    {"DepthToSpace", "f1x8x2x2", "f", "blocksize:i=2 mode:s=CRD", 12, 28, -2, 2, TWICE},
    {"Div", "f2x3 f3", "f", "", 12, 28, 0.5, 2, TWICE},
    {"Dropout", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Elu", "f3x3", "f", "alpha:f=0.6", 12, 28, -2, 2, TWICE},
    {"Erf", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Exp", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Expand", "f2x1 i3=3,2,4", "f", "", 12, 28, -2, 2, TWICE},
    {"Flatten", "f2x3x2", "f", "axis:i=2", 12, 28, -2, 2, TWICE},
    {"Gather", "f4x3 i2x2=1,1,-1,0", "f", "axis:i=0", 16, 28, -2, 2, TWICE},
    {"Gather", "f2x4 i3=3,0,3", "f", "axis:i=-1", 16, 28, -2, 2, TWICE},
    {"GatherElements", "f3x4 i2x4=0,2,1,0,2,2,0,0", "f", "axis:i=0", 16, 28, -2, 2, TWICE},
    {"GatherND", "f3x4 i3x1=2,0,2", "f", "", 16, 28, -2, 2, TWICE},
    {"GatherND", "f2x3x2 i2x1=2,0", "f", "batch_dims:i=1", 16, 28, -2, 2, TWICE},
    {"Gelu", "f3x3", "f", "", 20, 28, -2, 2, TWICE},
    {"Gelu", "f3x3", "f", "approximate:s=tanh", 20, 28, -2, 2, TWICE},
    {"Gemm", "f3x4 f4x2 f2", "f", "alpha:f=0.7 beta:f=1.3", 12, 28, -1, 1, TWICE},
    {"Gemm", "f4x3 f4x2 f3x1", "f", "transA:i=1", 12, 28, -1, 1, TWICE},
    {"Gemm", "f3x4 f2x4", "f", "transB:i=1 alpha:f=0.5", 12, 28, -1, 1, TWICE},
    {"Gemm", "f4x3 f2x4 f", "f", "transA:i=1 transB:i=1", 12, 28, -1, 1, TWICE},
    {"GlobalAveragePool", "f2x3x2x3", "f", "", 12, 28, -1, 1, TWICE},
    {"GlobalMaxPool", "f2x3x2x3", "f", "", 12, 28, -1, 1, TWICE},
    {"GroupNormalization", "f2x4x3 F2 F2", "f", "num_groups:i=2", 18, 20, -1, 1, TWICE},
    {"GroupNormalization", "f2x4x3 F4 F4", "f", "num_groups:i=2", 21, 28, -1, 1, TWICE},
    {"HardSigmoid", "f4x4", "f", "alpha:f=0.4 beta:f=0.4", 12, 28, -3, 3, TWICE},
    {"HardSwish", "f4x4", "f", "", 14, 28, -5, 5, TWICE},
    {"Identity", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"InstanceNormalization", "f2x3x4 F3 F3", "f", "epsilon:f=0.01", 12, 28, -1, 1, TWICE},
    {"LayerNormalization", "f2x3x4 F4 F4", "f", "", 17, 28, -1, 1, TWICE},
    {"LayerNormalization", "f2x3x4 F3x4", "f", "axis:i=1 epsilon:f=0.1", 17, 28, -1, 1, TWICE},
    {"LeakyRelu", "f3x3", "f", "alpha:f=0.2", 12, 28, -2, 2, TWICE},
    {"Log", "f2x3", "f", "", 12, 28, 0.5, 3, TWICE},
    {"LogSoftmax", "f2x3x2", "f", "axis:i=1", 12, 28, -2, 2, TWICE},
    {"LogSoftmax", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"MatMul", "f3x4 f4x2", "f", "", 12, 28, -1, 1, TWICE},
    {"MatMul", "f2x3x4 f4x2", "f", "", 12, 28, -1, 1, TWICE},
    {"MatMul", "f3x1x2x4 f2x4x3", "f", "", 12, 28, -1, 1, TWICE},
    {"MatMul", "f4 f4x2", "f", "", 12, 28, -1, 1, TWICE},
    {"MatMul", "f2x3x4 f4", "f", "", 12, 28, -1, 1, TWICE},
    {"MatMul", "f4 f2x4x3", "f", "", 12, 28, -1, 1, TWICE},
    {"MatMul", "f4 f4", "f", "", 12, 28, -1, 1, TWICE},
    {"Max", "f2x3 f3 f2x1", "f", "", 12, 28, -1, 1, TWICE},
    {"MaxPool", "f2x2x6", "f", "kernel_shape:is=2 strides:is=2", 12, 28, -2, 2, TWICE},
    {"MaxPool", "f2x2x5x6", "f", "kernel_shape:is=3,2 pads:is=1,0,1,1 strides:is=2,1", 16, 28, -2,
     2, TWICE},
    {"MaxPool", "f1x2x5x6", "fi", "kernel_shape:is=3,2 ceil_mode:i=1 strides:is=2,2", 16, 28, -2,
     2, TWICE},
    {"Mean", "f2x3 f3", "f", "", 13, 28, -1, 1, TWICE},
    {"Min", "f2x3 f3", "f", "", 12, 28, -1, 1, TWICE},
    {"Mish", "f3x3", "f", "", 18, 28, -2, 2, TWICE},
    {"Mul", "f2x3 f2x1", "f", "", 12, 28, -2, 2, TWICE},
    {"Neg", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"NegativeLogLikelihoodLoss", "f3x4 i3=2,0,3", "f", "", 12, 28, -2, 2, TWICE},
    {"NegativeLogLikelihoodLoss", "f3x4x2 i3x2=2,0,3,1,1,2 c4", "f",
     "reduction:s=sum ignore_index:i=1", 12, 28, 0.5, 2, TWICE},
    {"Pad", "f2x3 i4=1,0,0,2", "f", "", 12, 28, -2, 2, TWICE},
    {"Pad", "f3x4 i4=-1,2,1,-2 F", "f", "", 12, 28, -2, 2, TWICE},
    {"Pad", "f3x4 i2=1,2 - i1=1", "f", "", 18, 28, -2, 2, TWICE},
    {"Pad", "f3x4 i4=1,2,0,1", "f", "mode:s=reflect", 16, 28, -2, 2, TWICE},
    {"Pad", "f3x4 i4=1,2,0,1", "f", "mode:s=edge", 16, 28, -2, 2, TWICE},
    {"Pow", "f2x3 f3", "f", "", 12, 28, 0.5, 2, TWICE},
    {"Pow", "f2x3 i=3", "f", "", 12, 28, -2, 2, TWICE},
    {"PRelu", "f3x4 f4", "f", "", 12, 28, -2, 2, TWICE},
    {"Reciprocal", "f2x3", "f", "", 13, 28, 0.5, 2, TWICE},
    {"ReduceL1", "f2x3x2", "f", "axes:is=1", 12, 17, -2, 2, TWICE},
    {"ReduceL2", "f2x3x2", "f", "axes:is=0,-1", 12, 17, -2, 2, TWICE},
    {"ReduceL2", "f2x3x2 i1=1", "f", "keepdims:i=0", 18, 28, -2, 2, TWICE},
    {"ReduceLogSum", "f2x3", "f", "axes:is=1", 12, 17, 0.5, 2, TWICE},
    {"ReduceLogSumExp", "f2x3", "f", "axes:is=1 keepdims:i=0", 12, 17, -2, 2, TWICE},
    {"ReduceLogSumExp", "f2x3", "f", "", 18, 28, -2, 2, TWICE},
    {"ReduceMax", "f2x3x2 i2=0,2", "f", "keepdims:i=0", 18, 28, -2, 2, TWICE},
    {"ReduceMax", "f2x3", "f", "axes:is=-1", 12, 17, -2, 2, TWICE},
    {"ReduceMean", "f2x3x2 i1=-2", "f", "", 18, 28, -2, 2, TWICE},
    {"ReduceMean", "f2x3x2", "f", "axes:is=0,2 keepdims:i=0", 12, 17, -2, 2, TWICE},
    {"ReduceMean", "f2x3", "f", "keepdims:i=0", 12, 28, -2, 2, TWICE},
    {"ReduceMin", "f2x3x2", "f", "axes:is=1", 12, 17, -2, 2, TWICE},
    {"ReduceSum", "f2x3x2 i1=1", "f", "keepdims:i=0", 13, 28, -2, 2, TWICE},
    {"ReduceSum", "f2x3x2", "f", "axes:is=1", 12, 12, -2, 2, TWICE},
    {"ReduceSum", "f2x3", "f", "noop_with_empty_axes:i=1", 13, 28, -2, 2, TWICE},
    {"ReduceSum", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"ReduceSumSquare", "f2x3x2 i2=1,2", "f", "", 18, 28, -2, 2, TWICE},
    {"Relu", "f3x3", "f", "", 13, 28, -2, 2, TWICE},
    {"Reshape", "f2x3x2 i2=4,-1", "f", "", 12, 28, -2, 2, TWICE},
    {"ReverseSequence", "f4x3 i3=2,4,1", "f", "", 12, 28, -2, 2, TWICE},
    {"RMSNormalization", "f2x3x4 F4", "f", "", 23, 28, -1, 1, TWICE},
    {"ScatterElements", "f3x3 i2x3=1,0,2,0,2,1 f2x3", "f", "axis:i=0", 12, 28, -2, 2,
     TWICE_FROM_16},
    {"ScatterElements", "f3x3 i2x3=1,0,2,1,2,1 f2x3", "f", "reduction:s=add", 16, 28, -2, 2, TWICE},
    {"ScatterND", "f4x2 i2x1=3,1 f2x2", "f", "", 12, 28, -2, 2, TWICE_FROM_16},
    {"ScatterND", "f4x2 i2x1=3,3 f2x2", "f", "reduction:s=add", 16, 28, -2, 2, TWICE},
    {"Selu", "f3x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Shrink", "f3x3", "f", "lambd:f=0.6 bias:f=0.1", 12, 28, -2, 2, TWICE},
    {"Sigmoid", "f2x3", "f", "", 13, 28, -2, 2, TWICE},
    {"Sin", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Sinh", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Slice", "f4x5 i2=0,1 i2=3,5", "f", "", 12, 28, -2, 2, TWICE},
    {"Slice", "f4x5 i1=-1 i1=-6 i1=1 i1=-2", "f", "", 12, 28, -2, 2, TWICE},
    {"Softmax", "f2x3x2", "f", "axis:i=1", 12, 28, -2, 2, TWICE},
    {"Softmax", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"SoftmaxCrossEntropyLoss", "f3x4 i3=2,0,3", "f", "", 12, 28, -2, 2, TWICE},
    {"SoftmaxCrossEntropyLoss", "f2x4x3 i2x3=2,0,3,1,1,2 c4", "ff", "ignore_index:i=1", 12, 28,
     0.5, 2, TWICE},
    {"SoftmaxCrossEntropyLoss", "f2x4x3 i2x3=2,0,3,-7,1,2", "f",
     "reduction:s=none ignore_index:i=-7", 12, 28, -2, 2, TWICE},
    {"SoftmaxCrossEntropyLoss", "f3x4 i3=2,0,2 F4", "f", "", 16, 28, 0.5, 2, TWICE},
    {"Softplus", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Softsign", "f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"SpaceToDepth", "f1x2x4x2", "f", "blocksize:i=2", 13, 28, -2, 2, TWICE},
    {"Split", "f2x4", "ff", "axis:i=1 split:is=1,3", 12, 12, -2, 2, TWICE},
    {"Split", "f2x4 i2=1,3", "fi", "axis:i=-1", 13, 28, -2, 2, TWICE},
    {"Sqrt", "f2x3", "f", "", 13, 28, 0.5, 2, TWICE},
    {"Squeeze", "F2x1x3", "f", "axes:is=1", 12, 12, -2, 2, TWICE},
    {"Squeeze", "f2x1x3 i1=1", "f", "", 13, 28, -2, 2, TWICE},
    {"Sub", "f3 f2x3", "f", "", 12, 28, -2, 2, TWICE},
    {"Sum", "f2x3 f3 f2x1", "f", "", 13, 28, -2, 2, TWICE},
    {"Swish", "f2x3", "f", "alpha:f=0.7", 24, 28, -2, 2, TWICE},
    {"Tan", "f2x3", "f", "", 12, 28, -1, 1, TWICE},
    {"Tanh", "f2x3", "f", "", 13, 28, -2, 2, TWICE},
    {"ThresholdedRelu", "f3x3", "f", "alpha:f=0.5", 12, 28, -2, 2, TWICE},
    {"Tile", "f2x3 i2=2,3", "f", "", 12, 28, -2, 2, TWICE},
    {"TopK", "f2x4 i1=2", "fi", "axis:i=1", 12, 28, -2, 2, TWICE},
    {"Transpose", "f2x3x4", "f", "perm:is=2,0,1", 12, 28, -2, 2, TWICE},
    {"Transpose", "f2x3x4", "f", "", 12, 28, -2, 2, TWICE},
    {"Trilu", "f3x4 i=-1", "f", "upper:i=0", 14, 28, -2, 2, TWICE},
    {"Unsqueeze", "f2x3", "f", "axes:is=0,3", 12, 12, -2, 2, TWICE},
    {"Unsqueeze", "f2x3 i2=0,-1", "f", "", 13, 28, -2, 2, TWICE},
    {"Where", "b2x3 f2x3 f3", "f", "", 12, 28, -2, 2, TWICE},
};

/* ---- a model from a row */

typedef struct model {
    net n;
    int count;                     /* inputs that vary */
    ort_value *x[INPUTS_MAX];
    char names[INPUTS_MAX][16];
    bool symbolic, second;
    uint32_t random;
} model;

static double draw(model *m, double low, double high)
{
    m->random = m->random * 1664525u + 1013904223u;
    return low + (high - low) * (double)(m->random >> 8) / (1 << 24);
}

/* "2x3" into dims; returns the rank and moves on. */
static int read_dims(const char **text, int64_t *dims)
{
    int rank = 0;
    while (**text >= '0' && **text <= '9') {
        char *end;
        dims[rank++] = strtoll(*text, &end, 10);
        *text = *end == 'x' ? end + 1 : end;
    }
    return rank;
}

static void add_variable(model *m, const char *name, int rank, const int64_t *dims, bool fixed,
                         double low, double high)
{
    ort_id id = net_input(&m->n, name, ORT_DTYPE_DOUBLE, rank, dims);
    ort_type *type = &m->n.graph->values.data[id]->fact.type;
    for (int i = 0; i < rank && m->symbolic && !fixed; i++) {
        char symbol[32];
        snprintf(symbol, sizeof symbol, "%s_%d", name, i);
        type->dim[i] = ort_dim_symbol(m->n.model->dims, symbol);
    }
    if (ort_value_new_tensor(ORT_DTYPE_DOUBLE, rank, dims, &m->x[m->count], NULL))
        return;
    for (int64_t i = 0; i < ort_value_count(m->x[m->count]); i++)
        ort_value_set_double(m->x[m->count], i, draw(m, low, high));
    snprintf(m->names[m->count++], sizeof m->names[0], "%s", name);
}

/* Constants of the letters c (any value), i and b. */
static void add_constant(model *m, const char *name, char kind, int rank, const int64_t *dims,
                         const char *numbers, double low, double high)
{
    double f[64];
    int64_t list[64];
    uint8_t bits[64];
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    for (int i = 0; i < count && i < 64; i++) {
        f[i] = draw(m, low, high);
        bits[i] = i % 2 == 0;
        if (kind == 'i')
            list[i] = strtoll(numbers + 1, (char **)(uintptr_t)&numbers, 10);
    }
    net_constant(&m->n, name,
                 kind == 'i' ? ORT_DTYPE_INT64 : kind == 'b' ? ORT_DTYPE_BOOL : ORT_DTYPE_DOUBLE,
                 rank, dims, kind == 'i' ? (void *)list : kind == 'b' ? (void *)bits : (void *)f);
}

/* The inputs of a row; list: their names for net_node. Capitals C and V: positive. */
static void add_inputs(model *m, const row *r, char *list, size_t size)
{
    const char *p = r->in;
    size_t used = 0;
    for (int k = 0; *p; k++) {
        char name[16], kind = *p++;
        int64_t dims[ORT_MAX_RANK];
        double low = r->low, high = r->high;
        snprintf(name, sizeof name, "x%d", k);
        int rank = read_dims(&p, dims);
        if (kind == 'C' || kind == 'V') {
            low = 0.5;
            high = 1.5;
        }
        if (kind == 'f' || kind == 'F' || kind == 'V')
            add_variable(m, name, rank, dims, kind != 'f', low, high);
        else if (kind != '-')
            add_constant(m, name, kind, rank, dims, p, low, high);
        used += (size_t)snprintf(list + used, size - used, "%s%s", k ? " " : "",
                                 kind == '-' ? "-" : name);
        p += strcspn(p, " ");
        p += *p == ' ';
    }
}

static void add_attr(model *m, ort_node *node, const char *text)
{
    char name[64], kind[4], value[128], *p = value;
    int64_t ints[16];
    ort_attr attr = {.name = name, .ints = ints};
    if (sscanf(text, "%63[^:]:%3[^=]=%127[^ ]", name, kind, value) != 3)
        return;
    if (!strcmp(kind, "i")) {
        attr.type = ORT_ATTR_INT;
        attr.i = strtoll(value, NULL, 10);
    } else if (!strcmp(kind, "f")) {
        attr.type = ORT_ATTR_FLOAT;
        attr.f = strtof(value, NULL);
    } else if (!strcmp(kind, "s")) {
        attr.type = ORT_ATTR_STRING;
        attr.s = (ort_string){value, strlen(value)};
    } else {
        attr.type = ORT_ATTR_INTS;
        while (*p) {
            ints[attr.count++] = strtoll(p, &p, 10);
            p += *p == ',';
        }
    }
    (void)!ort_node_set_attr(m->n.graph, node, &attr, NULL);
}

static void add_attrs(model *m, ort_node *node, const char *text)
{
    while (*text) {
        add_attr(m, node, text);
        text += strcspn(text, " ");
        text += *text == ' ';
    }
}

/* total = the sum of the squares of these values */
static void add_squares(model *m, const char *total, const char (*names)[16], int count)
{
    char list[256] = "", in[80], square[16], sum[16];
    for (int i = 0; i < count; i++) {
        snprintf(square, sizeof square, "%s_q%d", total, i);
        snprintf(sum, sizeof sum, "%s_s%d", total, i);
        snprintf(in, sizeof in, "%s %s", names[i], names[i]);
        net_node(&m->n, "Mul", in, square);
        net_int(&m->n, net_node(&m->n, "ReduceSum", square, sum), "keepdims", 0);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? " " : "", sum);
    }
    net_node(&m->n, "Sum", list, total);
}

static ort_attr strings_attr(const char *name, const ort_string *list, size_t count)
{
    return (ort_attr){.name = name, .type = ORT_ATTR_STRINGS, .strings = list, .count = count};
}

/* A Gradient node; given: names of its inputs; outputs dPREFIX0, dPREFIX1... */
static ort_node *add_gradient(net *n, const char *const *xs, const char *const *given, int count,
                              const char *y, const char *prefix)
{
    ort_id in[INPUTS_MAX], out[INPUTS_MAX];
    ort_string list[INPUTS_MAX];
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%d", prefix, i);
        in[i] = net_value(n, n->graph, given[i]);
        out[i] = ort_graph_add_value(n->graph, name);
        list[i] = (ort_string){xs[i], strlen(xs[i])};
    }
    ort_node *node = ort_graph_add_node(n->graph, ORT_GRAD_TRAINING, "Gradient", prefix, in, count,
                                        out, count);
    ort_attr names = strings_attr("xs", list, (size_t)count);
    ort_attr target = {.name = "y", .type = ORT_ATTR_STRING, .s = {y, strlen(y)}};
    (void)!ort_node_set_attr(n->graph, node, &names, NULL);
    (void)!ort_node_set_attr(n->graph, node, &target, NULL);
    return node;
}

static void set_opset(net *n, int opset)
{
    n->model->opsets.data[0].version = opset;
    ort_opset training = {.domain = ORT_GRAD_TRAINING, .version = 1};
    (void)!ort_vec_push(&n->model->opsets, training);
}

/* Outputs t, g0..., h, k0...; what is not differentiated twice ends after the g. */
static ort_session *build(model *m, const row *r, int opset, bool symbolic, ort_error *err)
{
    char in[128], out[64] = "", floats[OUTPUTS_MAX][16], gradients[INPUTS_MAX][16];
    const char *xs[INPUTS_MAX];
    int count = 0;
    ort_session_options options;
    memset(m, 0, sizeof *m);
    m->symbolic = symbolic;
    m->second = r->second == TWICE || (r->second == TWICE_WHEN_FIXED && !symbolic) ||
                (r->second == TWICE_FROM_16 && opset >= 16);
    m->random = 12345;
    if (!net_init(&m->n, NULL))
        return NULL;
    set_opset(&m->n, opset);
    add_inputs(m, r, in, sizeof in);
    for (int i = 0; r->out[i]; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        if (r->out[i] == 'f')
            snprintf(floats[count++], sizeof floats[0], "%s", name);
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s", i ? " " : "",
                 r->out[i] == '-' ? "-" : name);
    }
    add_attrs(m, net_node(&m->n, r->op_type, in, out), r->attrs);
    add_squares(m, "t", (const char(*)[16])floats, count);
    for (int i = 0; i < m->count; i++) {
        xs[i] = m->names[i];
        snprintf(gradients[i], sizeof gradients[0], "g%d", i);
    }
    add_gradient(&m->n, xs, xs, m->count, "t", "g");
    net_output(&m->n, "t");
    for (int i = 0; i < m->count; i++)
        net_output(&m->n, gradients[i]);
    if (m->second) {
        add_squares(m, "h", (const char(*)[16])gradients, m->count);
        add_gradient(&m->n, xs, xs, m->count, "h", "k");
        net_output(&m->n, "h");
        for (int i = 0; i < m->count; i++) {
            gradients[i][0] = 'k';
            net_output(&m->n, gradients[i]);
        }
    }
    ort_session_options_init(&options);
    options.level = symbolic ? 2 : 0;
    return net_session(&m->n, &options, err);
}

static void release(model *m, ort_session *session)
{
    ort_session_free(session);
    for (int i = 0; i < m->count; i++)
        ort_value_free(m->x[i]);
    net_free(&m->n);
}

/* ---- differences */

static void free_values(ort_value **values, int count)
{
    for (int i = 0; i < count; i++)
        ort_value_free(values[i]);
}

/* t and h with element `at` of input `i` moved by `by`; false when the run fails. */
static bool moved(const model *m, const ort_session *session, int i, int64_t at, double by,
                  double *sums)
{
    ort_value *out[2 * INPUTS_MAX + 2] = {NULL};
    double was = ort_value_get_double(m->x[i], at);
    ort_value_set_double(m->x[i], at, was + by);
    bool ok = run_whole(session, m->x, out, NULL, NULL) == ORT_OK;
    ort_value_set_double(m->x[i], at, was);
    sums[0] = ok ? ort_value_get_double(out[0], 0) : 0;
    sums[1] = ok && m->second ? ort_value_get_double(out[m->count + 1], 0) : 0;
    free_values(out, 2 * INPUTS_MAX + 2);
    return ok;
}

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 2e-6 * (1 + fabs(a) + fabs(b));
}

/* The first gradient that differs from its difference is named in `why`. */
static bool compare(const model *m, const ort_session *session, char *why, size_t size)
{
    ort_value *out[2 * INPUTS_MAX + 2] = {NULL};
    ort_error err = {0};
    bool ok = run_whole(session, m->x, out, NULL, &err) == ORT_OK;
    snprintf(why, size, "%.300s", err.message);
    for (int order = 0; ok && order < 1 + m->second; order++)
        for (int i = 0; ok && i < m->count; i++) {
            const ort_value *slope = out[order * (m->count + 1) + 1 + i];
            ok = ort_value_count(slope) == ort_value_count(m->x[i]);
            if (!ok)
                snprintf(why, size, "gradient %d of order %d has %lld elements", i, order + 1,
                         (long long)ort_value_count(slope));
            for (int64_t at = 0; ok && at < ort_value_count(slope); at++) {
                double up[2] = {0}, down[2] = {0}, is = ort_value_get_double(slope, at);
                ok = moved(m, session, i, at, STEP, up) && moved(m, session, i, at, -STEP, down);
                double is_near = (up[order] - down[order]) / (2 * STEP);
                ok = ok && close_to(is, is_near);
                if (!ok)
                    snprintf(why, size, "order %d, input %d[%lld]: %.9g, differences say %.9g",
                             order + 1, i, (long long)at, is, is_near);
            }
        }
    free_values(out, 2 * INPUTS_MAX + 2);
    return ok;
}

static bool check_row(const row *r, int opset, bool symbolic, char *why, size_t size)
{
    model m;
    ort_error err = {0};
    char text[400] = "";
    ort_session *session = build(&m, r, opset, symbolic, &err);
    bool ok = session && compare(&m, session, text, sizeof text);
    if (!ok)
        snprintf(why, size, "%s (%s; %s) opset %d%s: %s%.400s", r->op_type, r->in, r->attrs, opset,
                 symbolic ? ", symbolic" : "", session ? text : "", session ? "" : err.message);
    release(&m, session);
    return ok;
}

static void all_rows(test_state *test)
{
    char why[900];
    int failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        for (int form = 0; form < 3; form++) {
            bool symbolic = form == 2;
            if ((form == 1 && r->first == r->last) || (symbolic && r->last < 13))
                continue;
            if (check_row(r, form ? r->last : r->first, symbolic, why, sizeof why))
                continue;
            printf("# %s\n", why);
            failed++;
        }
    }
    CHECK(failed == 0);
}

/* A rule without a row is an untested rule; constants and casts have cases of their own below. */
static void every_rule_has_a_row(test_state *test)
{
    const ort_grad_rule *const families[] = {ort_grad_elementwise, ort_grad_algebra,
                                             ort_grad_moves, ort_grad_windows, ort_grad_norms};
    for (size_t f = 0; f < 5; f++)
        for (const ort_grad_rule *rule = families[f]; rule->op_type; rule++) {
            bool found = rule->zero || !strncmp(rule->op_type, "Cast", 4);
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                found = found || !strcmp(rows[i].op_type, rule->op_type);
            CHECK_TEXT(found ? "" : rule->op_type, "");
        }
}

/* ---- single models: float inputs of shape [2, 2] by name, results as text */

static bool start(net *n, int opset, const char *inputs)
{
    if (!net_init(n, NULL))
        return false;
    set_opset(n, opset);
    for (const char *p = inputs; *p; p++)
        net_input(n, (char[]){*p, '\0'}, ORT_DTYPE_FLOAT, 2, DIMS(2, 2));
    return true;
}

/* Run on 1 2 3 4, 2 3 4 5...; the outputs' numbers, "|" between outputs; or the error. */
static const char *results(net *n, char *text, size_t size)
{
    ort_value *in[4] = {NULL}, *out[4] = {NULL};
    ort_error err = {0};
    ort_session *session = net_session(n, NULL, &err);
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; session && i < (int)ort_session_input_count(session); i++)
        in[i] = net_floats(2, DIMS(2, 2), (float)i + 1, 1);
    if (!session || run_whole(session, in, out, NULL, &err))
        snprintf(text, size, "%.390s", err.message);
    for (int o = 0; o < 4 && out[o]; o++)
        for (int64_t i = 0; i < ort_value_count(out[o]); i++)
            used += (size_t)snprintf(text + used, size - used, "%s%g",
                                     i ? " " : o ? " | " : "", ort_value_get_double(out[o], i));
    free_values(in, 4);
    free_values(out, 4);
    ort_session_free(session);
    net_free(n);
    return text;
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__})

/* The gradient of a tensor is that of the sum of its elements; several uses add up. */
static void several_uses(test_state *test)
{
    net n;
    char text[400];
    CHECK(start(&n, 17, "ab"));
    net_node(&n, "Mul", "a b", "p");
    net_node(&n, "Mul", "p a", "y");
    net_node(&n, "Add", "y a", "z");
    add_gradient(&n, NAMES("a", "b"), NAMES("a", "b"), 2, "z", "g");
    net_output(&n, "g0");
    net_output(&n, "g1");
    CHECK_TEXT(results(&n, text, sizeof text), "5 13 25 41 | 1 4 9 16");
}

/* y is computed again from the values given; those named stand for themselves elsewhere. */
static void other_values(test_state *test)
{
    net n;
    char text[400];
    CHECK(start(&n, 17, "ab"));
    net_node(&n, "Mul", "a a", "p");
    net_node(&n, "Mul", "p a", "y");
    add_gradient(&n, NAMES("a"), NAMES("b"), 1, "y", "g");
    add_gradient(&n, NAMES("p"), NAMES("p"), 1, "y", "h");
    net_output(&n, "g0");
    net_output(&n, "h0");
    net_output(&n, "y");
    CHECK_TEXT(results(&n, text, sizeof text), "12 27 48 75 | 1 2 3 4 | 1 8 27 64");
}

/* The same value given for two names is two variables. */
static void one_value_twice(test_state *test)
{
    net n;
    char text[400];
    CHECK(start(&n, 17, "abc"));
    net_node(&n, "Mul", "a b", "p");
    net_node(&n, "Sub", "p b", "y");
    add_gradient(&n, NAMES("a", "b"), NAMES("c", "c"), 2, "y", "g");
    net_output(&n, "g0");
    net_output(&n, "g1");
    CHECK_TEXT(results(&n, text, sizeof text), "3 4 5 6 | 2 3 4 5");
}

/* No dependence, or one through integers or steps only: zeros like x. */
static void zero_gradients(test_state *test)
{
    const char *const steps[] = {"Floor", "Ceil", "Round", "Sign"};
    for (int i = 0; i < 5; i++) {
        net n;
        char text[400];
        CHECK(start(&n, 17, "ab"));
        if (i < 4) {
            net_node(&n, steps[i], "a", "q");
        } else {
            net_int(&n, net_node(&n, "Cast", "a", "whole"), "to", ORT_DTYPE_INT32);
            net_int(&n, net_node(&n, "Cast", "whole", "q"), "to", ORT_DTYPE_FLOAT);
        }
        net_node(&n, "Mul", "q q", "y");
        add_gradient(&n, NAMES("a", "b"), NAMES("a", "b"), 2, "y", "g");
        net_output(&n, "g0");
        net_output(&n, "g1");
        CHECK_TEXT(results(&n, text, sizeof text), "0 0 0 0 | 0 0 0 0");
    }
}

static void casts(test_state *test)
{
    net n;
    char text[400];
    CHECK(start(&n, 17, "ab"));
    net_int(&n, net_node(&n, "Cast", "a", "d"), "to", ORT_DTYPE_DOUBLE);
    net_node(&n, "Mul", "d d", "s");
    net_node(&n, "CastLike", "s b", "y");
    add_gradient(&n, NAMES("a"), NAMES("a"), 1, "y", "g");
    net_output(&n, "g0");
    CHECK_TEXT(results(&n, text, sizeof text), "2 4 6 8");
}

/* x^4 three times: Gradients of Gradients, the outermost first among the nodes. */
static void third_order(test_state *test)
{
    net n;
    char text[400];
    CHECK(start(&n, 17, "a"));
    net_node(&n, "Mul", "a a", "s");
    net_node(&n, "Mul", "s s", "y");
    add_gradient(&n, NAMES("a"), NAMES("a"), 1, "f0", "h");
    add_gradient(&n, NAMES("a"), NAMES("a"), 1, "e0", "f");
    add_gradient(&n, NAMES("a"), NAMES("a"), 1, "y", "e");
    net_output(&n, "h0");
    CHECK_TEXT(results(&n, text, sizeof text), "24 48 72 96");
}

/* In the branches of an If: captured values are variables like others. */
static void in_a_body(test_state *test)
{
    net n;
    char text[400];
    bool yes = true;
    CHECK(start(&n, 17, "a"));
    net_constant(&n, "yes", ORT_DTYPE_BOOL, 0, NULL, &yes);
    ort_node *branch = net_node(&n, "If", "yes", "out");
    net_body(&n, branch, "then_branch");
    net_node(&n, "Mul", "a a", "y");
    add_gradient(&n, NAMES("a"), NAMES("a"), 1, "y", "g");
    net_output(&n, "g0");
    net_end(&n);
    net_body(&n, branch, "else_branch");
    net_node(&n, "Neg", "a", "z");
    net_output(&n, "z");
    net_end(&n);
    net_output(&n, "out");
    CHECK_TEXT(results(&n, text, sizeof text), "2 4 6 8");
}

/* ---- what is refused */

static bool refuses(net *n, const char *part, char *text, size_t size)
{
    net_output(n, "g0");
    return strstr(results(n, text, size), part) != NULL;
}

static void refused(test_state *test)
{
    net n;
    char text[800];
    CHECK(start(&n, 17, "a"));
    net_node(&n, "Det", "a", "d");
    net_node(&n, "Mul", "d d", "y");
    add_gradient(&n, NAMES("a"), NAMES("a"), 1, "y", "g");
    CHECK(refuses(&n, "node 'd' (Det) can't be differentiated: no rule is known for operator Det "
                  "(ort(3), DIFFERENTIATION, lists those that have one)", text, sizeof text));
    CHECK(start(&n, 17, "a"));
    net_node(&n, "Mul", "a a", "y");
    add_gradient(&n, NAMES("a"), NAMES("a"), 1, "w", "g");
    CHECK(refuses(&n, "node 'g' (Gradient): y names 'w', which the graph doesn't have", text,
                  sizeof text));
    CHECK(start(&n, 17, "a"));
    net_node(&n, "Mul", "a a", "h");
    net_node(&n, "Mul", "h a", "y");
    add_gradient(&n, NAMES("a", "h"), NAMES("a", "h"), 2, "y", "g");
    CHECK(refuses(&n, "'a' determines another value of xs and zs", text, sizeof text));
    CHECK(start(&n, 17, "a"));
    add_gradient(&n, NAMES("a"), NAMES("a"), 1, "g0", "g");
    CHECK(refuses(&n, "y is its own result", text, sizeof text));
    CHECK(start(&n, 11, "a"));
    net_node(&n, "Mul", "a a", "y");
    add_gradient(&n, NAMES("a"), NAMES("a"), 1, "y", "g");
    CHECK(refuses(&n, "Gradient takes a model of opset 12 or newer, this one imports 11", text,
                  sizeof text));
}

/* A captured x may not reach y through a value that the outer graph computes from it. */
static void refused_in_a_body(test_state *test)
{
    net n;
    char text[800];
    bool yes = true;
    CHECK(start(&n, 17, "a"));
    net_node(&n, "Neg", "a", "m");
    net_constant(&n, "yes", ORT_DTYPE_BOOL, 0, NULL, &yes);
    ort_node *branch = net_node(&n, "If", "yes", "out");
    net_body(&n, branch, "then_branch");
    net_node(&n, "Mul", "a m", "y");
    add_gradient(&n, NAMES("a"), NAMES("a"), 1, "y", "g");
    net_output(&n, "g0");
    net_end(&n);
    net_body(&n, branch, "else_branch");
    net_node(&n, "Neg", "a", "z");
    net_output(&n, "z");
    net_end(&n);
    net_output(&n, "out");
    CHECK(strstr(results(&n, text, sizeof text), "y depends on 'a' through 'm' of an outer graph"));
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, all_rows);
    RUN(&test, every_rule_has_a_row);
    RUN(&test, several_uses);
    RUN(&test, other_values);
    RUN(&test, one_value_twice);
    RUN(&test, zero_gradients);
    RUN(&test, casts);
    RUN(&test, third_order);
    RUN(&test, in_a_body);
    RUN(&test, refused);
    RUN(&test, refused_in_a_body);
    return test.failures > 0;
}

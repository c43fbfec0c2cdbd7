/* vmath.h - elementwise functions, reductions, softmax, normalization and conversions of one tier.
 *
 * Contract of every member: pointers need no alignment, counts are elements, nothing is read or
 * written past the count, an output may be the same pointer as an input of equal element size (no
 * other overlap). Results depend on the arguments alone, so callers that cut work into pieces by
 * size get the same bits for every thread count. NaN propagates unless said otherwise.
 *
 * Accuracy (f32, worst case measured against the scalar tier over normal results): exp, log 1 ULP;
 * sigmoid, softplus, elu, sin, cos, mish 2 ULP or 6e-8 absolute near a zero; tanh, erf 5 ULP; gelu
 * and swish 1.2e-7 * |x| (16 lanes: swish 1.6e-7). The scalar tier rounds what double gives, once.
 */
#ifndef ORT_KERNEL_VMATH_H
#define ORT_KERNEL_VMATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y = f(x); `a` and `b` are the parameters named on the right, ignored by the others. */
typedef enum ort_unary {
    ORT_UNARY_ABS,
    ORT_UNARY_NEG,
    ORT_UNARY_SIGN,
    ORT_UNARY_SQUARE,
    ORT_UNARY_SQRT,
    ORT_UNARY_RSQRT,       /* 1 / sqrt(x), by division */
    ORT_UNARY_RECIPROCAL,
    ORT_UNARY_FLOOR,
    ORT_UNARY_CEIL,
    ORT_UNARY_ROUND,       /* half to even */
    ORT_UNARY_EXP,
    ORT_UNARY_LOG,
    ORT_UNARY_ERF,
    ORT_UNARY_SIN,
    ORT_UNARY_COS,
    ORT_UNARY_TAN,
    ORT_UNARY_ASIN,
    ORT_UNARY_ACOS,
    ORT_UNARY_ATAN,
    ORT_UNARY_SINH,
    ORT_UNARY_COSH,
    ORT_UNARY_TANH,
    ORT_UNARY_ASINH,
    ORT_UNARY_ACOSH,
    ORT_UNARY_ATANH,
    ORT_UNARY_RELU,
    ORT_UNARY_LEAKY_RELU,  /* x < 0 ? a * x : x */
    ORT_UNARY_ELU,         /* x < 0 ? a * (exp(x) - 1) : x */
    ORT_UNARY_SELU,        /* b * (x > 0 ? x : a * (exp(x) - 1)) */
    ORT_UNARY_CELU,        /* max(0, x) + min(0, a * (exp(x / a) - 1)) */
    ORT_UNARY_THRESHOLDED_RELU, /* x > a ? x : 0; 0 for NaN */
    ORT_UNARY_SHRINK,      /* x < -a ? x + b : x > a ? x - b : 0; 0 for NaN */
    ORT_UNARY_HARD_SIGMOID, /* clamp(a * x + b, 0, 1) */
    ORT_UNARY_HARD_SWISH,  /* x * clamp(x / 6 + 0.5, 0, 1) */
    ORT_UNARY_SIGMOID,
    ORT_UNARY_SOFTPLUS,
    ORT_UNARY_SOFTSIGN,
    ORT_UNARY_GELU,        /* by erf */
    ORT_UNARY_GELU_TANH,   /* the tanh approximation */
    ORT_UNARY_SWISH,       /* x * sigmoid(a * x): SiLU, QuickGelu */
    ORT_UNARY_MISH,
    ORT_UNARY_CLIP,        /* min(max(x, a), b) */
    ORT_UNARY_LINEAR,      /* a * x + b */
    ORT_UNARY_SCALED_TANH, /* a * tanh(b * x) */
    ORT_UNARY_PARAMETRIC_SOFTPLUS, /* a * log(1 + exp(b * x)) */
    ORT_UNARY_COUNT
} ort_unary;

typedef void ort_unary_fn(const float *x, float *y, size_t n, float a, float b);
typedef void ort_unary_f64_fn(const double *x, double *y, size_t n, double a, double b);

/* y = f(a, b). The form says which operand is one element: one signature serves every element type
 * (operators add functions of other types than f32 to the same machinery). */
typedef enum ort_form {
    ORT_FORM_VV, /* a[i], b[i] */
    ORT_FORM_VS, /* a[i], b[0] */
    ORT_FORM_SV, /* a[0], b[i] */
} ort_form;

typedef enum ort_binary {
    ORT_BINARY_ADD,
    ORT_BINARY_SUB,
    ORT_BINARY_MUL,
    ORT_BINARY_DIV,
    ORT_BINARY_MAX, /* NaN when either is NaN */
    ORT_BINARY_MIN,
    ORT_BINARY_POW,
    ORT_BINARY_FMOD,
    ORT_BINARY_PRELU, /* a < 0 ? a * b : a */
    ORT_BINARY_COUNT
} ort_binary;

typedef enum ort_compare { /* y is uint8: 0 or 1 */
    ORT_COMPARE_EQ,
    ORT_COMPARE_GT,
    ORT_COMPARE_LT,
    ORT_COMPARE_GE,
    ORT_COMPARE_LE,
    ORT_COMPARE_COUNT
} ort_compare;

typedef void ort_binary_fn(const void *a, const void *b, void *y, size_t n, ort_form form);

/* Reductions of a run, and row accumulation. */
typedef enum ort_accum {
    ORT_ACCUM_SUM,
    ORT_ACCUM_SUM_ABS,
    ORT_ACCUM_SUM_SQUARE,
    ORT_ACCUM_MAX, /* NaN when any is NaN; -inf for n = 0 */
    ORT_ACCUM_MIN,
    ORT_ACCUM_PROD,
    ORT_ACCUM_COUNT
} ort_accum;

enum { ORT_TREE_LANES = 16, ORT_TREE_LEAVES = 32, ORT_TREE_BLOCKS = 4 };

/* x <= split, of a tree of at most ORT_TREE_LEAVES leaves. */
typedef struct ort_tree_test {
    float split;
    uint32_t keep;   /* leaves that stay possible when it fails: of leaf i bit 31 - i; never 0 */
    uint32_t column; /* of the feature: floats before it */
} ort_tree_test;

/* Trees one after the other, counts[t] tests of each. */
typedef struct ort_tree_list {
    const ort_tree_test *tests;
    const uint32_t *counts;
    size_t count;
} ort_tree_list;

/* Blocks of ORT_TREE_LANES rows, none of them NaN: columns[b * step + feature * ORT_TREE_LANES +
 * row]. At most ORT_TREE_BLOCKS of them. */
typedef struct ort_tree_rows {
    const float *columns;
    size_t step, blocks;
} ort_tree_rows;

/* What is not finite counts for neither end; denormals count as 0. */
typedef struct ort_scan {
    float least, most; /* of the finite ones and 0 */
    int32_t finite, zeros;
} ort_scan;

typedef struct ort_vmath_kernels {
    int lanes; /* f32 per vector */

    ort_unary_fn *unary[ORT_UNARY_COUNT];
    ort_unary_f64_fn *unary_f64[ORT_UNARY_COUNT];
    ort_binary_fn *binary[ORT_BINARY_COUNT];   /* f32 */
    ort_binary_fn *compare[ORT_COMPARE_COUNT]; /* f32 -> uint8 */

    /* y[i] = c[i] ? a[i * step_a] : b[i * step_b]; steps are 0 or 1. */
    void (*where)(const uint8_t *c, const float *a, size_t step_a, const float *b, size_t step_b,
                  float *y, size_t n);

    /* Reduce x[0..n). Sums are formed in float within blocks of 4096, across blocks in double. */
    double (*reduce[ORT_ACCUM_COUNT])(const float *x, size_t n);
    /* sum of (x[i] - center)^2 */
    double (*sum_square_diff)(const float *x, size_t n, float center);
    /* acc[j] = acc[j] op x[r * stride + j], r in order 0..rows-1, for j in [0, n). */
    void (*accumulate[ORT_ACCUM_COUNT])(float *acc, const float *x, size_t rows, size_t stride,
                                        size_t n);
    /* Smallest and largest element; NaN elements are ignored. n >= 1. */
    void (*min_max)(const float *x, size_t n, float *min, float *max);
    /* Ends and counts of n < 2^31 elements. */
    void (*scan)(const float *x, size_t n, ort_scan *scan);
    /* floor(x[i] * inverse) & mask, the product exact and its floor in 31 bits, one after the other
     * of what is neither 0, denormal nor not finite; bin has n places. mask is below 2^16. */
    void (*bins)(const float *x, size_t n, double inverse, int32_t mask, uint16_t *bin);
    float (*dot)(const float *a, const float *b, size_t n);

    /* y[i] = exp(x[i] - center); returns the sum. x[i] <= center. exp(-inf) is exactly 0. */
    float (*exp_sum)(const float *x, float *y, size_t n, float center);
    void (*softmax)(const float *x, float *y, size_t n);
    void (*log_softmax)(const float *x, float *y, size_t n);
    /* The same down columns: element r of column j is x[r * stride + j], j in [0, n). */
    void (*softmax_columns)(const float *x, float *y, size_t rows, size_t stride, size_t n);
    void (*log_softmax_columns)(const float *x, float *y, size_t rows, size_t stride, size_t n);

    /* y = (x - mean) / sqrt(variance + epsilon) * scale + bias over one row; scale and bias hold n
     * values or are NULL; mean and inv_std receive the statistics unless NULL. */
    void (*layer_norm)(const float *x, const float *scale, const float *bias, float *y, size_t n,
                       float epsilon, float *mean, float *inv_std);
    /* y = x / sqrt(mean(x^2) + epsilon) * scale; scale may be NULL. */
    void (*rms_norm)(const float *x, const float *scale, float *y, size_t n, float epsilon,
                     float *inv_rms);

    /* y[i] = x[i] * scale[i] + bias[i] */
    void (*scale_bias)(const float *x, const float *scale, const float *bias, float *y, size_t n);
    /* y[i] = x[i] * scale + bias, fused */
    void (*scale_bias_row)(const float *x, float *y, size_t n, float scale, float bias);
    /* y[i] += a * x[i] */
    void (*axpy)(float *y, const float *x, size_t n, float a);

    /* One step of n units by the usual functions of a recurrent layer, from sums of products: gates
     * i o f c of an LSTM. new_cell may be cell. */
    void (*lstm_gates)(size_t n, const float *const gates[4], const float *cell, float *new_cell,
                       float *state);
    /* z r h of a GRU, one after the other. recurrent: what the reset gate multiplies and h is added
     * to; NULL: h has it, and r isn't read. */
    void (*gru_gates)(size_t n, const float *gates, const float *recurrent, float *state);

    /* Round to nearest even. */
    void (*f16_to_f32)(const uint16_t *x, float *y, size_t n);
    void (*f32_to_f16)(const float *x, uint16_t *y, size_t n);
    void (*bf16_to_f32)(const uint16_t *x, float *y, size_t n);
    void (*f32_to_bf16)(const float *x, uint16_t *y, size_t n);

    /* y = saturate(round(x / scale) + zero_point), half to even; NaN gives the
     * smallest value. */
    void (*quantize_u8)(const float *x, uint8_t *y, size_t n, float scale, int zero_point);
    void (*quantize_s8)(const float *x, int8_t *y, size_t n, float scale, int zero_point);
    void (*quantize_u16)(const float *x, uint16_t *y, size_t n, float scale, int zero_point);
    void (*quantize_s16)(const float *x, int16_t *y, size_t n, float scale, int zero_point);
    /* y = (x - zero_point) * scale */
    void (*dequantize_u16)(const uint16_t *x, float *y, size_t n, float scale, int zero_point);
    void (*dequantize_s16)(const int16_t *x, float *y, size_t n, float scale, int zero_point);
    void (*dequantize_u8)(const uint8_t *x, float *y, size_t n, float scale, int zero_point);
    void (*dequantize_s8)(const int8_t *x, float *y, size_t n, float scale, int zero_point);
    /* y = float(x) * scale + bias (bias may be 0): int32 accumulators of integer products */
    void (*dequantize_s32)(const int32_t *x, float *y, size_t n, float scale, float bias);

    /* `given` rows, the last one again for those that a block lacks, as the block `columns`; false
     * when one holds a NaN. */
    bool (*tree_columns)(const float *rows, size_t features, size_t given, float *columns);
    /* The leaf of each row in each tree, counted from the tree's first. */
    void (*tree_exits)(const ort_tree_list *trees, const ort_tree_rows *rows,
                       uint32_t (*exits)[ORT_TREE_BLOCKS][ORT_TREE_LANES]);
    /* scores[b][row] += weights[t][leaf], tree after tree. */
    void (*tree_sums)(const ort_tree_list *trees, const ort_tree_rows *rows,
                      const double (*weights)[ORT_TREE_LEAVES], double (*scores)[ORT_TREE_LANES]);
} ort_vmath_kernels;

/* Each fills or overrides members of the table; called by dispatch.c, worst tier first. */
void ort_vmath_plug_scalar(ort_vmath_kernels *table);
void ort_vmath_plug_avx2(ort_vmath_kernels *table);
void ort_vmath_plug_avx512(ort_vmath_kernels *table);

#endif

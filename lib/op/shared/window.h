/* window.h - the sliding window of convolutions and poolings: attributes, output dims, paddings. */
#ifndef ORT_OP_SHARED_WINDOW_H
#define ORT_OP_SHARED_WINDOW_H

#include "op/op.h"

#define ORT_WINDOW_MAX (ORT_MAX_RANK - 2)

typedef enum ort_auto_pad {
    ORT_PAD_EXPLICIT,
    ORT_PAD_VALID,
    ORT_PAD_SAME_UPPER,
    ORT_PAD_SAME_LOWER,
} ort_auto_pad;

/* The attributes kernel_shape, strides, dilations, pads, auto_pad, ceil_mode. */
typedef struct ort_window_spec {
    int rank;        /* of the lists given, 0 when none is */
    bool has_kernel; /* else the kernel is the weight's */
    bool ceil_mode;
    ort_auto_pad auto_pad;
    int64_t kernel[ORT_WINDOW_MAX], stride[ORT_WINDOW_MAX], dilation[ORT_WINDOW_MAX];
    int64_t begin[ORT_WINDOW_MAX], end[ORT_WINDOW_MAX];
} ort_window_spec;

/* The same with every number known. Axes are the spatial ones, outermost first. */
typedef struct ort_window {
    int rank;
    int64_t in[ORT_WINDOW_MAX], out[ORT_WINDOW_MAX], kernel[ORT_WINDOW_MAX];
    int64_t stride[ORT_WINDOW_MAX], dilation[ORT_WINDOW_MAX];
    int64_t begin[ORT_WINDOW_MAX], end[ORT_WINDOW_MAX]; /* paddings */
} ort_window;

ort_status ort_window_read(const ort_node *node, ort_window_spec *spec, ort_error *err);
/* The binding of member `spec` of a state (bind.h). */
#define ORT_BIND_WINDOW(state) ORT_BIND_BY(state, spec, "strides", ort_window_bind)
ort_status ort_window_bind(const ort_node *node, void *spec, ort_error *err);
/* ORT_ERROR_MODEL where attribute kernel_shape is there and isn't the weight's. */
ort_status ort_window_check_kernel(const ort_infer *x, const ort_window_spec *spec, int rank,
                                   const ort_dim *kernel, ort_error *err);
/* Output dims; unknown where they can't be told. kernel may be NULL when spec has it. */
ort_status ort_window_infer(const ort_infer *x, const ort_window_spec *spec, int rank,
                            const ort_dim *in, const ort_dim *kernel, ort_dim *out, ort_error *err);
/* Outputs 0 and 1 of a pool over all axes of input 0 but `before` ones in front and `behind` at the
 * end, which stay as they are. */
ort_status ort_window_infer_pool(ort_infer *x, int before, int behind, ort_error *err);
ort_status ort_window_resolve(const ort_window_spec *spec, int rank, const int64_t *in,
                              const int64_t *kernel, ort_window *window, ort_error *err);
/* Put axes of size 1 in front until the rank is 3. */
void ort_window_pad_to_3d(ort_window *window);
/* The same; axes of size 1 at the end go to the front too, so that a column is a row, as it lies in
 * memory. */
void ort_window_to_3d(ort_window *window);

/* The same windows without the taps that meet the input at no output: what is left is no wider than
 * input and output together, however wide the kernel is. Two taps stay at least, where there are
 * as many. Of three axes. */
void ort_window_trim(ort_window *window);
/* How many taps of the window at each output coordinate of `axis` count: those inside the input, or
 * inside its padding as well. [out[axis]], in the arena. */
ort_status ort_window_counts(const ort_window *window, int axis, bool include_pad,
                             ort_arena *arena, const float **counts, ort_error *err);

/* pooling.c: one operation per element of each window. */
void ort_window_cost(const ort_infer *x, ort_cost *cost);

#endif

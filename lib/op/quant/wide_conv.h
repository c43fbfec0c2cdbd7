/* wide_conv.h - what a convolution of 16-bit codes (wide_conv.c) keeps, and what follows on its
 * sums.
 */
#ifndef ORT_OP_QUANT_WIDE_CONV_H
#define ORT_OP_QUANT_WIDE_CONV_H

#include "op/shared/conv_shape.h"

enum { ORT_WIDE_COLUMNS = 256 }; /* sums that are finished at a time */

typedef struct ort_wide_conv {
    ort_window_spec spec;
    int64_t group, act; /* an ort_unary, or -1 */
    float act_a, act_b, low, high;
    const double *sums;     /* of filters, [maps] */
    const int32_t *weights; /* [maps][pairs of channels][taps] of two int16 */
    int64_t block;          /* pairs of a filter that int32 sums hold */
} ort_wide_conv;

typedef struct ort_wide_job {
    const ort_call *call;
    const ort_wide_conv *s;
    const uint16_t *x;
    ort_tensor *y;
    const double *scale, *bias; /* per map: of sums, and what is added then, for the zero point
                                   too */
    uint16_t flip;              /* of codes */
    int zero;                   /* of flipped codes */
    float y_scale;
    int y_zero;
} ort_wide_job;

/* A line of numbers in a thread's scratch. */
typedef struct ort_wide_line {
    double *scale, *bias;
    float *numbers;
    uint16_t *codes;
} ort_wide_line;

enum {
    ORT_WIDE_LINE_BYTES =
        ORT_WIDE_COLUMNS * (2 * sizeof(double) + sizeof(float) + sizeof(uint16_t)),
};
/* wide_line.c: the line in so many bytes, aligned for double; what lies behind it. */
char *ort_wide_open_line(void *space, ort_wide_line *line);
/* n numbers of a map's sums (of one block), scaled in double, rounded in the end. */
void ort_wide_numbers(const ort_wide_job *j, const ort_wide_line *line, int64_t map,
                      const int32_t *sums, int64_t n);
/* What follows on n numbers; where the elements of Y lie then. */
const char *ort_wide_follow(const ort_wide_job *j, const ort_wide_line *line, int64_t n);

/* wide_windows.c: windows on each channel alone, of a plane of rows. */
typedef struct ort_wide_windows ort_wide_windows;
/* NULL in *windows: it takes none like these. Their scratch is in sh->thread_bytes then. */
ort_status ort_wide_windows_shape(ort_shaping *sh, const ort_wide_conv *s, const conv_plan *c,
                                  ort_wide_windows **windows, ort_error *err);
void ort_wide_windows_run(ort_call *call, const ort_wide_job *job, const conv_plan *c,
                          const ort_wide_windows *windows);

#endif

/* operations.h - what the command line does to tensors before they are used: one list of operations
 * in the order in which they were written, for ort-tensor and for the tools that read samples.
 */
#ifndef COMMON_OPERATIONS_H
#define COMMON_OPERATIONS_H

#include "common/settings.h"

typedef struct operations operations;

/* Turns a value into a new one, which the caller frees. */
typedef struct operation operation;
typedef int operation_fn(operations *o, const operation *op, const ort_value *in, ort_value **out);
struct operation {
    operation_fn *apply;
    const char *option;   /* for messages: "--resize" */
    const char *argument;
    const char *place;    /* what it runs over, likewise; or NULL */
};

struct operations {
    const settings *settings;
    ort_env *env; /* made when an operation first needs it */
    operation *items;
    size_t count;
    const char *mean, *std, *filter, *fill;
    bool normalizes;    /* --mean or --std stands among them */
    bool keep_channels;
    int rate;           /* of the sound that is read; 0: it is none */
    const char *place;  /* of what is read, for messages; or NULL */
};

/* Rows of a tool's table, for the member of that name; `wants`: what they need, or NULL. */
int operations_add(void *target, const option_row *row, const char *value);
#define OPERATION(type, member, wants, name, argument, text)                                       \
    {0, name, argument, OPTION_CALL, offsetof(type, member), .doc = text, .set = operations_add,   \
     .needs = wants}
#define PICTURE_ROWS(type, member, wants)                                                          \
    OPERATION(type, member, wants, "resize", "N|HxW", "shorter side to N, or height and width"),   \
    {0, "filter", "NAME", OPTION_STRING, offsetof(type, member.filter),                            \
     .doc = "of --resize: nearest box bilinear hamming bicubic lanczos",                           \
     .needs = "resize|letterbox", .choices = "nearest|box|bilinear|hamming|bicubic|lanczos"},      \
    OPERATION(type, member, wants, "crop", "N|HxW[+Y+X]", "the centre, or at row Y and column X"), \
    OPERATION(type, member, wants, "pad", "N|HxW[+Y+X]", "onto a larger canvas"),                  \
    OPERATION(type, member, wants, "letterbox", "N|HxW[+Y+X]",                                     \
              "scaled to fit, in the centre or at row Y, column X"),                               \
    {0, "fill", "V", OPTION_STRING, offsetof(type, member.fill),                                   \
     .doc = "value of --pad and --letterbox (default 0)", .needs = "pad|letterbox"},               \
    OPERATION(type, member, wants, "gray", NULL, "luma of an RGB image"),                          \
    OPERATION(type, member, wants, "bgr", NULL, "swap red and blue"),                              \
    {0, "mean", "LIST", OPTION_CALL, offsetof(type, member),                                       \
     .doc = "to NCHW float in 0..1, minus the mean", .set = operations_add,                        \
     .again = AGAIN_REFUSED, .needs = wants},                                                      \
    {0, "std", "LIST", OPTION_CALL, offsetof(type, member),                                        \
     .doc = "... and divided by the standard deviation", .set = operations_add,                    \
     .again = AGAIN_REFUSED, .needs = wants},                                                      \
    OPERATION(type, member, wants, "float", NULL, "to NCHW float in 0..1"),                        \
    OPERATION(type, member, wants, "layout", "NAME", "hwc, chw, nhwc or nchw")
#define NUMBER_ROWS(type, member, wants)                                                           \
    OPERATION(type, member, wants, "scale", "A[,B]", "x * A + B as float; 1/255 is a number"),     \
    OPERATION(type, member, wants, "cast", "TYPE", "to another element type"),                     \
    OPERATION(type, member, wants, "reshape", "DIMS", "to another shape; -1 is what is left"),     \
    OPERATION(type, member, wants, "transpose", "AXES", "as 0,2,3,1"),                             \
    OPERATION(type, member, wants, "slice", "SPEC", "as numpy: 0,:,2:10"),                         \
    OPERATION(type, member, wants, "squeeze", NULL, "drop dimensions of size 1"),                  \
    OPERATION(type, member, wants, "unsqueeze", "AXES", "add dimensions of size 1")
#define SOUND_ROWS(type, member, wants)                                                            \
    OPERATION(type, member, wants, "mono", NULL,                                                   \
              "mix channels (frames x channels to frames); done for WAV files by itself"),         \
    {0, "keep-channels", NULL, OPTION_FLAG, offsetof(type, member.keep_channels),                  \
     .doc = "don't mix the channels of a WAV file", .needs = wants},                               \
    OPERATION(type, member, wants, "rate", "HZ", "resample sound")

/* All of them over one value; *out is NULL where there are none. 0 or an exit status. */
int operations_apply(operations *o, const ort_value *in, ort_value **out);
void operations_release(operations *o);
/* The environment of those that are operators of ONNX. */
int operations_env(operations *o, ort_env **env);

/* "--resize: what" with the value's type and shape; EXIT_DATA. */
int bad_value(const operation *op, const ort_value *in, const char *needs);
/* Comma-separated numbers; returns how many, -1 after complaining. "0.5", "1/255". */
int parse_numbers(const char *option, const char *text, double *out, int capacity);

/* ---- image.c: values of HxW, HxWxC, NxHxWxC (uint8) or CxHxW, NxCxHxW (float) */
operation_fn apply_resize, apply_crop, apply_pad, apply_letterbox, apply_layout,
    apply_normalize, apply_scale, apply_gray, apply_bgr;
/* What image formats store: HxWxC uint8 from any of the above. */
int to_image(const ort_value *in, ort_value **out);

/* ---- resample.c */
/* Resize planes of interleaved channels as PIL does (antialiased; uint8 rounds between passes). */
int resample(const void *in, ort_dtype dtype, int64_t height, int64_t width, int64_t channels,
             void *out, int64_t out_height, int64_t out_width, const char *filter);
bool resample_known(const char *filter);

/* ---- algebra.c: through ort_op_run */
operation_fn apply_cast, apply_reshape, apply_transpose, apply_slice, apply_argmax, apply_softmax,
    apply_squeeze, apply_unsqueeze;

/* ---- sound.c */
operation_fn apply_mono, apply_rate;

#endif

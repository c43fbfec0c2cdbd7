/* gelu.c - Gelu spelled in elementwise operators.
 *
 *     x/2 (1 + erf(x / sqrt 2))                              Gelu, com.microsoft Gelu
 *     x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))          Gelu approximate=tanh, FastGelu
 *
 * The ONNX operator where the opset has it (20), else com.microsoft's, which is for float.
 */
#include "pass/rewrite.h"

static const char *const forms[] = {
    "half(x, g): x * 0.5 * g | x * (g * 0.5) | x * g * 0.5 | x * g / 2",
    "root_half(x): x / 1.41421356 | x * 0.70710678",
    "cubic(x): (x + (Pow x 3) * 0.044715) * 0.79788456"
    " | (x + x * (x * x) * 0.044715) * 0.79788456"
    " | (x + x * 0.044715 * x * x) * 0.79788456"
    " | x * 0.79788456 * (x * 0.044715 * x + 1)"
    " | x * 0.79788456 * (x * x * 0.044715 + 1)"
    " | x * 0.79788456 * ((Pow x 2) * 0.044715 + 1)",
    NULL,
};

static const ort_rewrite rewrites[] = {
    {"@half(x, (Erf @root_half(x)) + 1)", "(Gelu x) | float? (ms.Gelu x)"},
    {"@half(x, (Tanh @cubic(x)) + 1)", "(Gelu x approximate=tanh) | float? (ms.FastGelu x)"},
    {0},
};

const ort_pass ort_pass_gelu = {
    .name = "gelu",
    .level = 2,
    .doc = "Gelu spelled with Erf or Tanh becomes one node",
    .rewrites = rewrites,
    .forms = forms,
};

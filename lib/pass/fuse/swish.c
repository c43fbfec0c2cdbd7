/* swish.c - x * sigmoid(alpha * x): Swish where the opset has it, else com.microsoft QuickGelu. */
#include "pass/rewrite.h"

#define SWISH(a) "file? (Swish x alpha=" a ") | float? (ms.QuickGelu x alpha=" a ")"

static const ort_rewrite rewrites[] = {
    {"x * (Sigmoid x)", SWISH("1.0")},
    {"x * (Sigmoid (x * $a))", SWISH("$a")},
    {0},
};

const ort_pass ort_pass_swish = {
    .name = "swish",
    .level = 2,
    .doc = "x * sigmoid(a x) becomes Swish or QuickGelu",
    .rewrites = rewrites,
};

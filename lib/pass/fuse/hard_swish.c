/* hard_swish.c - x * clip(x + 3, 0, 6) / 6, as exporters spell it before opset 14, becomes
 * HardSwish, or HardSigmoid and Mul where the opset has no HardSwish.
 */
#include "pass/rewrite.h"

#define HARD_SWISH "float? (HardSwish x) | float? x * (HardSigmoid x alpha=0.16666667 beta=0.5)"

static const ort_rewrite rewrites[] = {
    {"x * (Clip (x + 3) 0 6) / 6", HARD_SWISH},
    {"x * ((Clip (x + 3) 0 6) / 6)", HARD_SWISH},
    {0},
};

const ort_pass ort_pass_hard_swish = {
    .name = "hard_swish",
    .level = 2,
    .doc = "x * clip(x + 3, 0, 6) / 6 becomes HardSwish",
    .rewrites = rewrites,
};

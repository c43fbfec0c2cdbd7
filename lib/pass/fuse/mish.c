/* mish.c - x tanh(log(1 + e^x)) becomes Mish, where the opset has it (18). */
#include "pass/rewrite.h"

static const char *const forms[] = {
    "softplus(x): (Softplus x) | (Log ((Exp x) + 1))",
    NULL,
};

static const ort_rewrite rewrites[] = {
    {"x * (Tanh @softplus(x))", "(Mish x)"},
    {0},
};

const ort_pass ort_pass_mish = {
    .name = "mish",
    .level = 2,
    .doc = "x tanh(softplus(x)) becomes Mish",
    .rewrites = rewrites,
    .forms = forms,
};

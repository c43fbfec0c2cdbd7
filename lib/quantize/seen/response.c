/* response.c - activations, near enough to tell which codes serve them better. */
#include "quantize/seen/response.h"

static double clamped(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

/* 1 / (1 + e^-x) with e^y = (1 + y / 2^12)^(2^12). */
static double sigmoid(double x)
{
    double power = 1 - clamped(x, -32, 32) / 4096;
    for (int i = 0; i < 12; i++)
        power *= power;
    return 1 / (1 + power);
}

double ort_response_of(const ort_response *r, double x)
{
    if (r->kind == ORT_RESPONSE_SAME)
        return x;
    x = clamped(x, (double)r->least, (double)r->most);
    switch (r->kind) {
    case ORT_RESPONSE_HARD_SWISH:
        return x * clamped(x / 6 + 0.5, 0, 1);
    case ORT_RESPONSE_SWISH:
        return x * sigmoid(x);
    case ORT_RESPONSE_SIGMOID:
        return sigmoid(x);
    case ORT_RESPONSE_TANH:
        return 2 * sigmoid(2 * x) - 1;
    case ORT_RESPONSE_SAME:
    case ORT_RESPONSE_CLIPPED:
        break;
    }
    return x;
}

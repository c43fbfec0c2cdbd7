/* expr.h - small models written as text (emit/notation.h):
 *
 *     "y = (Mul h:(Mul x 0.5) (Add (Erf (Div h 1.41421356)) 1))"
 *
 * A name that nothing defines is a value of the model, an input; #w:3,4 is a float constant of
 * these dims, of small numbers that depend on its name; #w.i8:3,4 and .u4, .i4, .u8 in codes,
 * #w.h:3,4 in float16. Weights may be float16 everywhere: expr.half.
 */
#ifndef TESTS_UNIT_EXPR_H
#define TESTS_UNIT_EXPR_H

#include <ctype.h>
#include <limits.h>

#include "base/num.h"
#include "emit/write.h"
#include "net.h"

typedef struct expr {
    net *n;
    bool half;
} expr;

static ort_dtype expr_codes(const char *type)
{
    bool four = type[1] == '4';
    if (*type == 'u')
        return four ? ORT_DTYPE_UINT4 : ORT_DTYPE_UINT8;
    return four ? ORT_DTYPE_INT4 : ORT_DTYPE_INT8;
}

/* "w" ".i8:3,4" */
NET_STATIC ort_id expr_weights(const expr *e, const char *name, const char *text)
{
    union {
        float f[4096];
        uint16_t h[4096];
        uint8_t b[4096];
    } data;
    int64_t dims[8], count = 1;
    int rank = 0;
    unsigned seed = 0;
    bool typed = *text == '.', half = e->half || !strncmp(text, ".h", 2);
    for (const char *p = strchr(text, ':') + 1; isdigit((unsigned char)*p); p += *p == ',') {
        char *end;
        dims[rank] = strtoll(p, &end, 10);
        count *= dims[rank++];
        p = end;
    }
    for (const char *p = name; *p; p++)
        seed = seed * 31 + (unsigned char)*p;
    if (typed && text[1] != 'h') {
        for (size_t i = 0; i < sizeof data.b; i++)
            data.b[i] = (uint8_t)(seed + 151u * i);
        return net_constant(e->n, name, expr_codes(text + 1), rank, dims, &data);
    }
    for (int64_t i = 0; i < count; i++) {
        float number = (float)((seed + 7919u * (unsigned)i) % 41) / 32 - 0.625f;
        if (half)
            data.h[i] = ort_f32_to_f16(number);
        else
            data.f[i] = number;
    }
    return net_constant(e->n, name, half ? ORT_DTYPE_FLOAT16 : ORT_DTYPE_FLOAT, rank, dims, &data);
}

/* ort_write_source.unbound */
NET_STATIC ort_id expr_unbound(void *arg, const ort_term *t, const ort_text_name *name)
{
    const expr *e = arg;
    char word[64];
    snprintf(word, sizeof word, "%.*s", name->length, name->text);
    return t->kind == '#' ? expr_weights(e, word, t->text) : net_value(e->n, e->n->graph, word);
}

/* False: it can't be written. */
NET_STATIC bool expr_build(expr *e, const char *text)
{
    ort_text parsed;
    int opset = (int)ort_model_opset(e->n->model, "");
    ort_emit emit = {.graph = e->n->graph, .stem = "n", .purpose = "model", .opset = opset,
                     .limit = INT_MAX};
    ort_write_source source = {.unbound = expr_unbound, .arg = e};
    bool ok = ort_text_parse(&parsed, text, NULL);
    ort_writer w = {.e = &emit, .text = &parsed, .source = &source,
                    .like = e->n->graph->inputs.data[0]};
    if (ok)
        ort_write(&w, &parsed.choices.data[0]);
    ort_text_release(&parsed);
    return ok && emit.status == ORT_OK;
}

#endif

/* expr.h - small models written as text (emit/notation.h):
 *
 *     "x:2,n; y = (Mul h:(Mul x 0.5) (Add (Erf (Div h 1.41421356)) 1))"
 *
 * A name that nothing defines is a value of the model. The numbers of a constant that has none
 * depend on its name: small ones, or (expr.large) all above zero and different. Weights may be
 * float16 everywhere: expr.half.
 */
#ifndef TESTS_UNIT_EXPR_H
#define TESTS_UNIT_EXPR_H

#include <limits.h>

#include "emit/write.h"
#include "net.h"

typedef struct expr {
    net *n;
    bool half, large;
} expr;

/* "2,n" */
static inline int expr_dims(const char *text, int64_t *dims)
{
    int count = 0;
    for (; *text; text += strcspn(text, ","), text += *text == ',')
        dims[count++] = *text == 'n' ? -1 : *text == 'm' ? -2 : strtoll(text, NULL, 10);
    return count;
}

/* "0.5", "0,2,"; as many as the shape says. */
static void expr_numbers(const char *text, ort_shape *shape, double *list)
{
    bool is_list = strchr(text, ',');
    int64_t count = 0;
    while (*text && *text != ',') {
        char *end;
        list[count++] = strtod(text, &end);
        text = end + (*end == ',');
    }
    *shape = ort_shape_make(is_list, &count);
}

static double expr_number(const expr *e, unsigned seed, int64_t i, bool is_float)
{
    if (e->large)
        return is_float ? 0.25 + 0.125 * (double)(i * 7 % 31) : (double)(i * 37 % 251);
    return is_float ? (double)((seed + 7919u * (unsigned)i) % 41) / 32 - 0.625
                    : (double)(seed + 151u * (unsigned)i);
}

/* ".i8:3,4", "=0.5" */
static ort_id expr_constant(const expr *e, const char *name, const char *text)
{
    const char *mark = text + strcspn(text, ":=");
    ort_dtype dtype = net_type_called(text, e->half ? ORT_DTYPE_FLOAT16 : ORT_DTYPE_FLOAT);
    bool is_float = ort_dtype_get(dtype)->class_ == ORT_CLASS_FLOAT;
    double list[64];
    int64_t dims[ORT_MAX_RANK];
    ort_shape shape;
    ort_tensor t;
    ort_id id;
    unsigned seed = 0;
    if (*mark == '=')
        expr_numbers(mark + 1, &shape, list);
    else
        shape = ort_shape_make(expr_dims(mark + 1, dims), dims);
    if (ort_edit_new_constant(e->n->graph, name, dtype, &shape, &t, &id, NULL) != ORT_OK)
        return ORT_ID_NONE;
    for (const char *p = name; *p; p++)
        seed = seed * 31 + (unsigned char)*p;
    for (int64_t i = 0; i < ort_tensor_count(&t); i++) {
        double number = *mark == '=' ? list[i] : expr_number(e, seed, i, is_float);
        if (is_float)
            ort_tensor_set_f64(&t, i, number);
        else
            ort_tensor_set_i64(&t, i, number >= 0x1p63 ? INT64_MAX : (int64_t)number);
    }
    return id;
}

/* ort_write_source.unbound */
NET_STATIC ort_id expr_unbound(void *arg, const ort_term *t, const ort_text_name *called)
{
    const expr *e = arg;
    char name[64], text[512];
    int64_t dims[ORT_MAX_RANK];
    snprintf(name, sizeof name, "%.*s", called->length, called->text);
    snprintf(text, sizeof text, "%.*s", t->length, t->length ? t->text : "");
    if (t->kind == '#')
        return expr_constant(e, ort_arena_strdup(&e->n->model->arena, name), text);
    if (!*text)
        return net_value(e->n, e->n->graph, name);
    return net_input(e->n, name, net_type_called(text, ORT_DTYPE_FLOAT),
                     expr_dims(strchr(text, ':') + 1, dims), dims);
}

/* False: it can't be written. */
NET_STATIC bool expr_build(expr *e, const char *text)
{
    ort_text parsed;
    const ort_graph *graph = e->n->graph;
    int opset = (int)ort_model_opset(e->n->model, "");
    ort_emit emit = {.graph = e->n->graph, .stem = "n", .purpose = "model", .opset = opset,
                     .limit = INT_MAX};
    ort_write_source source = {.unbound = expr_unbound, .arg = e};
    bool ok = ort_text_parse(&parsed, text, NULL);
    ort_writer w = {.e = &emit, .text = &parsed, .source = &source,
                    .like = graph->inputs.count ? graph->inputs.data[0] : ORT_ID_NONE};
    if (ok)
        ort_write(&w, &parsed.choices.data[0]);
    ort_text_release(&parsed);
    return ok && emit.status == ORT_OK;
}

#endif

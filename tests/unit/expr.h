/* expr.h - small models written as text, in the manner of pass/pattern.h:
 *
 *     "y = (Mul h:(Mul x 0.5) (Add (Erf (Div h 1.41421356)) 1))"
 *
 *     (Op a b k=2 p=0,2, f=0.5 s=tanh)   a node and its attributes: an integer, a list (a comma
 *                    comes last), a float (it has a point), a string; (ms.Op ...) of com.microsoft
 *     n:(Op ...)     the result is called n; "a,b = (Op ...)" as a statement: both results
 *     x              a value that has a name    0.5  a float scalar    @3  an int64 scalar
 *     [0 -1]         an int64 list              -    an absent input
 *     #w:3,4         a float constant of these dims, of small numbers that depend on its name;
 *                    #w.i8:3,4 and .u4, .i4, .u8 in codes, #w.h:3,4 in float16
 *
 * Statements are separated by ';'. Numbers and weights may be float16: expr.half.
 */
#ifndef TESTS_UNIT_EXPR_H
#define TESTS_UNIT_EXPR_H

#include <ctype.h>

#include "base/num.h"
#include "net.h"

typedef struct expr {
    net *n;
    const char *at;
    int made; /* names made so far */
    bool half;
} expr;

static ort_id expr_term(expr *e);

NET_STATIC void expr_space(expr *e)
{
    e->at += strspn(e->at, " \n");
}

NET_STATIC size_t expr_word(const char *text)
{
    return strcspn(text, " \n():=;,[]");
}

NET_STATIC ort_id expr_constant(expr *e, const char *name, int rank, const int64_t *dims,
                                const float *data)
{
    uint16_t halves[4096];
    ort_shape shape = ort_shape_make(rank, dims);
    char text[32];
    snprintf(text, sizeof text, "c%d", e->made++);
    if (!e->half)
        return net_constant(e->n, name ? name : text, ORT_DTYPE_FLOAT, rank, dims, data);
    for (int64_t i = 0; i < ort_shape_count(&shape); i++)
        halves[i] = ort_f32_to_f16(data[i]);
    return net_constant(e->n, name ? name : text, ORT_DTYPE_FLOAT16, rank, dims, halves);
}

/* After '#'. */
NET_STATIC ort_id expr_weights(expr *e)
{
    float data[4096];
    char name[64];
    int64_t dims[8], count = 1;
    int rank = 0;
    size_t length = expr_word(e->at);
    unsigned seed = 0;
    ort_dtype codes = ORT_DTYPE_UNDEFINED;
    snprintf(name, sizeof name, "%.*s", (int)length, e->at);
    bool half = e->half, is_half = strstr(name, ".h") != NULL;
    if (strchr(name, '.') && !is_half) {
        const char *type = strchr(name, '.') + 1;
        codes = *type == 'u' ? (type[1] == '4' ? ORT_DTYPE_UINT4 : ORT_DTYPE_UINT8)
                             : (type[1] == '4' ? ORT_DTYPE_INT4 : ORT_DTYPE_INT8);
    }
    e->at += length + 1;
    for (; isdigit((unsigned char)*e->at); e->at += *e->at == ',') {
        char *end;
        dims[rank] = strtoll(e->at, &end, 10);
        count *= dims[rank++];
        e->at = end;
    }
    for (const char *p = name; *p; p++)
        seed = seed * 31 + (unsigned char)*p;
    if (codes != ORT_DTYPE_UNDEFINED) {
        uint8_t bytes[4096];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(seed + 151u * i);
        return net_constant(e->n, name, codes, rank, dims, bytes);
    }
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)((seed + 7919u * (unsigned)i) % 41) / 32 - 0.625f;
    e->half = half || is_half;
    ort_id id = expr_constant(e, name, rank, dims, data);
    e->half = half;
    return id;
}

/* After '['. */
NET_STATIC ort_id expr_list(expr *e)
{
    int64_t list[32], count = 0;
    char name[32];
    for (expr_space(e); *e->at != ']'; expr_space(e)) {
        char *end;
        list[count++] = strtoll(e->at, &end, 10);
        e->at = end;
    }
    e->at++;
    snprintf(name, sizeof name, "c%d", e->made++);
    return net_constant(e->n, name, ORT_DTYPE_INT64, 1, &count, list);
}

NET_STATIC void expr_attr(expr *e, ort_node *node, const char *text)
{
    char name[32], word[64];
    int64_t list[8];
    ort_attr attr = {.name = name};
    size_t length = expr_word(text);
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    text += length + 1;
    length = strcspn(text, " \n)");
    snprintf(word, sizeof word, "%.*s", (int)length, text);
    if (isalpha((unsigned char)*word)) {
        attr.type = ORT_ATTR_STRING;
        attr.s.ptr = word;
        attr.s.length = length;
    } else if (strchr(word, '.')) {
        attr.type = ORT_ATTR_FLOAT;
        attr.f = strtof(word, NULL);
    } else if (strchr(word, ',')) {
        attr.type = ORT_ATTR_INTS;
        attr.ints = list;
        for (char *p = word; *p; p += *p == ',')
            list[attr.count++] = strtoll(p, &p, 10);
    } else {
        attr.type = ORT_ATTR_INT;
        attr.i = strtoll(word, NULL, 10);
    }
    (void)!ort_node_set_attr(e->n->graph, node, &attr, NULL);
}

/* After '('. */
NET_STATIC ort_id expr_node(expr *e, const ort_id *outputs, int output_count)
{
    ort_id inputs[8];
    const char *attrs[8];
    char op_type[64];
    int input_count = 0, attr_count = 0;
    bool ms = !strncmp(e->at, "ms.", 3);
    size_t length = expr_word(e->at += ms ? 3 : 0);
    snprintf(op_type, sizeof op_type, "%.*s", (int)length, e->at);
    e->at += length;
    for (expr_space(e); *e->at != ')'; expr_space(e)) {
        length = expr_word(e->at);
        if (e->at[length] == '=') {
            attrs[attr_count++] = e->at;
            e->at += strcspn(e->at, " \n)");
        } else {
            inputs[input_count++] = expr_term(e);
        }
    }
    e->at++;
    char name[80];
    snprintf(name, sizeof name, "%s%d", op_type, e->made++);
    ort_node *node = ort_graph_add_node(e->n->graph, ms ? "com.microsoft" : "", op_type, name,
                                        inputs, input_count, outputs, output_count);
    for (int i = 0; i < attr_count; i++)
        expr_attr(e, node, attrs[i]);
    return outputs[0];
}

static ort_id expr_term(expr *e)
{
    char name[64];
    char c = *e->at;
    size_t length = expr_word(e->at);
    if (c == '(' || c == '[' || c == '#') {
        e->at++;
        ort_id made = c == '(' ? ort_graph_add_value(e->n->graph, "") : ORT_ID_NONE;
        return c == '(' ? expr_node(e, &made, 1) : c == '[' ? expr_list(e) : expr_weights(e);
    }
    snprintf(name, sizeof name, "%.*s", (int)length, e->at);
    e->at += length;
    if (*e->at == ':') {
        ort_id made = net_value(e->n, e->n->graph, name);
        e->at += 2;
        return expr_node(e, &made, 1);
    }
    if (c == '@') {
        int64_t number = strtoll(name + 1, NULL, 10);
        snprintf(name, sizeof name, "c%d", e->made++);
        return net_constant(e->n, name, ORT_DTYPE_INT64, 0, NULL, &number);
    }
    if (isdigit((unsigned char)c) || (c == '-' && isdigit((unsigned char)name[1]))) {
        float number = strtof(name, NULL);
        return expr_constant(e, NULL, 0, NULL, &number);
    }
    return c == '-' ? ORT_ID_NONE : net_value(e->n, e->n->graph, name);
}

/* Statements "name = (Op ...)" or "a,b = (Op ...)"; what they define need not be an output. */
NET_STATIC void expr_build(expr *e, const char *text)
{
    for (e->at = text, expr_space(e); *e->at; expr_space(e)) {
        ort_id outputs[4];
        int count = 0;
        for (; *e->at != '='; expr_space(e)) {
            char name[64];
            size_t length = expr_word(e->at);
            snprintf(name, sizeof name, "%.*s", (int)length, e->at);
            outputs[count++] = net_value(e->n, e->n->graph, name);
            e->at += length + (e->at[length] == ',');
        }
        e->at++;
        expr_space(e);
        e->at++; /* '(' */
        (void)expr_node(e, outputs, count);
        expr_space(e);
        e->at += *e->at == ';';
    }
}

#endif

/* rewrite.h - passes on small graphs: run, run again, the same results. Static functions only. */
#ifndef TESTS_UNIT_REWRITE_H
#define TESTS_UNIT_REWRITE_H

#include <ctype.h>

#include "pass_count.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* Changes that the passes of files make. */
NET_STATIC int rewrite(net *n, bool contrib)
{
    return rewrite_with(n, (ort_pass_options){.portable = true, .contrib = contrib});
}

/* Rewritten twice, the second time without a change, the model computes what it did. */
NET_STATIC bool holds(net *n, bool contrib, ort_value *x, double tolerance)
{
    ort_compare_options options = {sizeof options, tolerance, tolerance};
    ort_difference difference = ORT_DIFFERENCE_INIT;
    ort_value *y[2] = {0}, *z[2] = {0};
    ort_session *before = plain(n);
    bool ok = before && rewrite(n, contrib) >= 0 && rewrite(n, contrib) == 0;
    ort_session *after = plain(n);
    ok = ok && after && !run_whole(before, &x, y, NULL, NULL) &&
         !run_whole(after, &x, z, NULL, NULL) &&
         !ort_value_compare(z[0], y[0], &options, &difference, NULL) && difference.equal;
    ort_value_free(x);
    for (int i = 0; i < 2; i++) {
        ort_value_free(y[i]);
        ort_value_free(z[i]);
    }
    ort_session_free(before);
    ort_session_free(after);
    return ok;
}

NET_STATIC ort_node *node_of(net *n, const char *op_type)
{
    ort_node *node;
    ORT_EACH_NODE(n->model->graph, node)
        if (!strcmp(node->op_type, op_type))
            return node;
    return NULL;
}

NET_STATIC void ints(net *n, const char *name, int64_t count, const int64_t *list)
{
    net_constant(n, name, ORT_DTYPE_INT64, 1, &count, list);
}

/* ---- nets as text: statements that end at ';', words separated by blanks
 *
 *     in x 2,3,n           a float input; ini: int64; inb: bool; "-": a scalar
 *     i name 1,2           int64 constant of one dimension; is name 1: a scalar; b name 1: bool
 *     f name 2,3           float constant of this shape, its numbers all different
 *     fs name 0.5          a float scalar
 *     f1 name 0,1.5        float constant of these numbers
 *     u name 120           a uint8 scalar; uw name 2,3: a uint8 constant of this shape
 *     Op a - b -> y z k=1 list=1, f~0.5 s:=same    a node with its attributes; ms.Op: of
 *                          com.microsoft
 *     out y z
 */

typedef struct net_words {
    char text[24][64];
    int count;
} net_words;

NET_STATIC const char *net_split(const char *at, net_words *w)
{
    for (w->count = 0; *at && *at != ';';) {
        size_t length = strcspn(at, " ;\n");
        if (length && w->count < 24)
            snprintf(w->text[w->count++], 64, "%.*s", (int)length, at);
        at += length;
        at += strspn(at, " \n");
    }
    return *at ? at + 1 : at;
}

NET_STATIC int net_numbers(const char *text, double *list)
{
    int count = 0;
    while (*text && strcmp(text, "-")) {
        char *end;
        list[count++] = *text == 'n' ? -1 : *text == 'm' ? -2 : strtod(text, &end);
        text += strcspn(text, ",");
        text += *text == ',';
    }
    return count;
}

NET_STATIC void net_attribute(net *n, ort_node *node, const char *word)
{
    char name[64];
    double list[64];
    int64_t whole[64];
    float floats[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "=~:"), word);
    const char *mark = word + strlen(name), *text = mark + 1 + (*mark == ':');
    int count = *mark == ':' ? 0 : net_numbers(text, list);
    ort_attr attr = {.name = name};
    for (int i = 0; i < count; i++)
        whole[i] = (int64_t)list[i], floats[i] = (float)list[i];
    if (*mark == ':') {
        attr.type = ORT_ATTR_STRING;
        attr.s = (ort_string){(char *)(uintptr_t)text, strlen(text)};
    } else if (*mark == '~' && strchr(text, ',')) {
        attr.type = ORT_ATTR_FLOATS;
        attr.floats = floats;
        attr.count = (size_t)count;
    } else if (*mark == '~') {
        attr.type = ORT_ATTR_FLOAT;
        attr.f = (float)list[0];
    } else if (strchr(text, ',')) {
        attr.type = ORT_ATTR_INTS;
        attr.ints = whole;
        attr.count = (size_t)count;
    } else {
        attr.type = ORT_ATTR_INT;
        attr.i = whole[0];
    }
    (void)!ort_node_set_attr(n->graph, node, &attr, NULL);
}

NET_STATIC ort_node *net_statement_node(net *n, const net_words *w)
{
    char in[512] = "", out[512] = "", *to = in;
    bool microsoft = !strncmp(w->text[0], "ms.", 3);
    ort_opset contrib = {.domain = "com.microsoft", .version = 1};
    int at = 1;
    for (; at < w->count; at++) {
        if (!strcmp(w->text[at], "->")) {
            to = out;
            continue;
        }
        if (strpbrk(w->text[at], "=~"))
            break;
        snprintf(to + strlen(to), 512 - strlen(to), "%s%s", *to ? " " : "", w->text[at]);
    }
    if (microsoft && !ort_model_opset(n->model, contrib.domain))
        (void)!ort_vec_push(&n->model->opsets, contrib);
    ort_node *node = net_node_of(n, microsoft ? contrib.domain : "", w->text[0] + 3 * microsoft, in,
                                 out);
    for (; at < w->count; at++)
        net_attribute(n, node, w->text[at]);
    return node;
}

NET_STATIC void net_statement_constant(net *n, const net_words *w)
{
    const char *kind = w->text[0], *name = w->text[1];
    double list[64];
    int64_t whole[64], dims[8], total = 1;
    int count = net_numbers(w->text[2], list);
    float numbers[4096];
    for (int i = 0; i < count; i++) {
        whole[i] = list[i] >= 0x1p63 ? INT64_MAX : (int64_t)list[i];
        numbers[i] = (float)list[i];
    }
    if (!strcmp(kind, "i") || !strcmp(kind, "f1")) {
        dims[0] = count;
        net_constant(n, name, *kind == 'i' ? ORT_DTYPE_INT64 : ORT_DTYPE_FLOAT, 1, dims,
                     *kind == 'i' ? (void *)whole : (void *)numbers);
    } else if (!strcmp(kind, "is")) {
        net_constant(n, name, ORT_DTYPE_INT64, 0, NULL, whole);
    } else if (!strcmp(kind, "fs")) {
        net_constant(n, name, ORT_DTYPE_FLOAT, 0, NULL, numbers);
    } else if (!strcmp(kind, "u")) {
        uint8_t code = (uint8_t)whole[0];
        net_constant(n, name, ORT_DTYPE_UINT8, 0, NULL, &code);
    } else if (!strcmp(kind, "uw")) {
        uint8_t codes[4096];
        for (size_t i = 0; i < sizeof codes; i++)
            codes[i] = (uint8_t)(i * 37 % 251);
        for (int i = 0; i < count; i++)
            dims[i] = whole[i];
        net_constant(n, name, ORT_DTYPE_UINT8, count, dims, codes);
    } else if (!strcmp(kind, "b")) {
        bool truth = whole[0] != 0;
        net_constant(n, name, ORT_DTYPE_BOOL, 0, NULL, &truth);
    } else {
        for (int i = 0; i < count; i++)
            total *= dims[i] = whole[i];
        for (int64_t i = 0; i < total && i < 4096; i++)
            numbers[i] = 0.25f + 0.125f * (float)(i * 7 % 31);
        net_constant(n, name, ORT_DTYPE_FLOAT, count, dims, numbers);
    }
}

NET_STATIC void net_text(net *n, const char *text)
{
    net_words w;
    while (*text) {
        text = net_split(text, &w);
        double list[64];
        int64_t dims[8];
        const char *kind = w.count ? w.text[0] : "";
        if (!strcmp(kind, "in") || !strcmp(kind, "ini") || !strcmp(kind, "inb")) {
            int rank = net_numbers(w.text[2], list);
            for (int i = 0; i < rank; i++)
                dims[i] = (int64_t)list[i];
            net_input(n, w.text[1], kind[2] == 'i'   ? ORT_DTYPE_INT64
                                    : kind[2] == 'b' ? ORT_DTYPE_BOOL
                                                     : ORT_DTYPE_FLOAT,
                      rank, dims);
        } else if (!strcmp(kind, "out")) {
            for (int i = 1; i < w.count; i++)
                net_output(n, w.text[i]);
        } else if (islower((unsigned char)*kind) && strncmp(kind, "ms.", 3)) {
            net_statement_constant(n, &w);
        } else if (*kind) {
            net_statement_node(n, &w);
        }
    }
}

/* The operators of the main graph in order, as "Conv Relu". */
NET_STATIC const char *net_ops(const net *n)
{
    static char text[1024];
    ort_node *node;
    text[0] = '\0';
    ORT_EACH_NODE(n->model->graph, node)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? " " : "",
                 node->op_type);
    return text;
}

NET_STATIC void net_free_values(ort_value **values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ort_value_free(values[i]);
}

/* Do both sessions give the same on made-up inputs? */
NET_STATIC bool net_agree(ort_session *a, ort_session *b, double tolerance)
{
    ort_compare_options options = {sizeof options, tolerance, tolerance};
    ort_value *x[8] = {0}, *y[8] = {0}, *z[8] = {0};
    size_t ins = ort_session_input_count(a), outs = ort_session_output_count(a);
    bool ok = ins <= 8 && outs <= 8 && !ort_session_random_inputs(a, 7, x, ins, NULL) &&
              !run_whole(a, x, y, NULL, NULL) && !run_whole(b, x, z, NULL, NULL);
    for (size_t i = 0; i < outs && ok; i++) {
        ort_difference difference = ORT_DIFFERENCE_INIT;
        ok = !ort_value_compare(z[i], y[i], &options, &difference, NULL) && difference.equal;
    }
    net_free_values(x, 8);
    net_free_values(y, 8);
    net_free_values(z, 8);
    return ok;
}

/* What these passes make of a net: its operators; "" when they fail, a second run finds more, or
 * the results differ. */
NET_STATIC const char *net_rewritten_for(net *n, const char *const *only, bool contrib,
                                         size_t growth_bytes, double tolerance)
{
    ort_pass_options options = {.only = only, .portable = true, .contrib = contrib,
                                .growth_bytes = growth_bytes};
    ort_session *before = plain(n);
    bool ok = before && rewrite_with(n, options) >= 0 && rewrite_with(n, options) == 0;
    ort_session *after = ok ? plain(n) : NULL;
    ok = after && net_agree(before, after, tolerance);
    ort_session_free(before);
    ort_session_free(after);
    return ok ? net_ops(n) : "";
}

NET_STATIC const char *net_rewritten(net *n, const char *const *only, size_t growth_bytes,
                                     double tolerance)
{
    return net_rewritten_for(n, only, false, growth_bytes, tolerance);
}

typedef struct net_case {
    const char *text, *ops; /* statements; operators afterwards */
} net_case;

/* NULL when every case comes out as it says, else a line on the first that doesn't. */
NET_STATIC const char *net_cases(const net_case *cases, size_t count, bool contrib,
                                 double tolerance)
{
    static char why[1400];
    for (size_t i = 0; i < count; i++) {
        net n;
        if (!net_init(&n, NULL))
            return "memory";
        net_text(&n, cases[i].text);
        const char *ops = net_rewritten_for(&n, NULL, contrib, 0, tolerance);
        bool same = !strcmp(ops, cases[i].ops);
        if (!same)
            snprintf(why, sizeof why, "case %zu: '%s', expected '%s'", i, ops, cases[i].ops);
        net_free(&n);
        if (!same)
            return why;
    }
    return NULL;
}

/* All cases of a table; with com.microsoft allowed. */
#define CHECK_CASES(cases, tolerance) CHECK_CASES_WITH(cases, false, tolerance)
#define CHECK_CONTRIB_CASES(cases, tolerance) CHECK_CASES_WITH(cases, true, tolerance)
#define CHECK_CASES_WITH(cases, contrib, tolerance)                                                \
    do {                                                                                           \
        const char *why_ =                                                                         \
            net_cases(cases, sizeof(cases) / sizeof *(cases), contrib, tolerance);                 \
        CHECK_TEXT(why_ ? why_ : "", "");                                                          \
    } while (0)

#endif

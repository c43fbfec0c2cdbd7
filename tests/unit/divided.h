/* divided.h - graphs as text, and sessions of them on the host and on the device of the tests.
 * Static functions only. */
#ifndef TESTS_UNIT_DIVIDED_H
#define TESTS_UNIT_DIVIDED_H

#include "far_provider.h"
#include "net.h"

NET_STATIC const ort_provider *const *far_table(void)
{
    static const ort_provider *table[3];
    table[0] = ort_provider_at(0);
    table[1] = &far_provider;
    return table;
}

/* "Op in in -> out; ...": x is the input, w a constant of four floats. Outputs: of the last node,
 * and names behind "=>". */
NET_STATIC void build(net *n, const char *text)
{
    static const float weights[4] = {1, -2, 3, -4};
    char node[200], op[40], in[100], out[60];
    net_input(n, "x", ORT_DTYPE_FLOAT, 2, (const int64_t[]){-1, 4});
    net_constant(n, "w", ORT_DTYPE_FLOAT, 1, (const int64_t[]){4}, weights);
    const char *outputs = strstr(text, "=>");
    for (const char *p = text; *p && p != outputs;) {
        size_t length = strcspn(p, ";=");
        snprintf(node, sizeof node, "%.*s", (int)length, p);
        if (sscanf(node, " %39s %99[^>]> %59s", op, in, out) == 3) {
            in[strlen(in) - 1] = '\0'; /* the dash, and the blank before it */
            for (size_t end = strlen(in); end && in[end - 1] == ' ';)
                in[--end] = '\0';
            net_node(n, op, in, out);
        }
        p += length + (p[length] == ';');
    }
    for (const char *p = outputs + 2; *p;) {
        p += strspn(p, " ");
        size_t length = strcspn(p, " ");
        snprintf(out, sizeof out, "%.*s", (int)length, p);
        if (length)
            net_output(n, out);
        p += length;
    }
}

NET_STATIC ort_session *session_of(net *n, const char *providers, bool keep_all, ort_error *err)
{
    ort_session_options options;
    ort_session_options_init(&options);
    options.providers = providers;
    options.keep_all = keep_all;
    options.level = 0; /* nodes stay what the test names */
    n->env->providers = far_table();
    return net_session(n, &options, err);
}

/* Rows of 4, the same results on both. */
NET_STATIC bool same_results(const ort_session *a, const ort_session *b, int64_t rows,
                             ort_error *err)
{
    size_t count = ort_session_output_count(a);
    ort_value *x = net_floats(2, (const int64_t[]){rows, 4}, -3, 0.75f), *got[8] = {0},
              *want[8] = {0};
    const char *const names[] = {"x"};
    bool ok = !ort_session_run(a, names, &x, 1, NULL, got, count, NULL, err) &&
              !ort_session_run(b, names, &x, 1, NULL, want, count, NULL, err);
    for (size_t i = 0; i < count; i++) {
        ok = ok && ort_value_count(got[i]) == ort_value_count(want[i]);
        for (int64_t k = 0; ok && k < ort_value_count(got[i]); k++)
            ok = ort_value_get_double(got[i], k) == ort_value_get_double(want[i], k);
        ort_value_free(got[i]);
        ort_value_free(want[i]);
    }
    ort_value_free(x);
    return ok;
}

#endif

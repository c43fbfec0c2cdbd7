/* value_pairs.c - which value of a quantized model is which of the float one.
 *
 * Values go by their names. Where a quantizer put QuantizeLinear and DequantizeLinear behind a
 * value X, what X became is what DequantizeLinear gives, which quantizers name after X; where it
 * left codes alone (QOperator form), they are dequantized with the scale named after X. Weights are
 * what DequantizeLinear makes of constants named after them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/look.h"
#include "per_tensor.h"

/* ---- names */

static int by_text(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

bool pairs_has(const string_list *sorted, const char *name)
{
    return sorted->count > 0 &&
           bsearch(&name, sorted->items, sorted->count, sizeof *sorted->items, by_text) != NULL;
}

static json_object *nth(json_object *list, size_t index)
{
    return index < length_of(list) ? json_object_array_get_idx(list, index) : NULL;
}

int pairs_read(party *p)
{
    ort_error err = {0};
    char *text = NULL;
    if (ort_model_report(p->model, ORT_REPORT_NODES, &text, &err) != ORT_OK)
        return tool_fail_in(p->path, &err);
    json_object *report = json_tokener_parse(text);
    p->nodes = json_object_get(member(report, "nodes"));
    json_object_put(report);
    ort_text_free(text);
    for (size_t i = 0; i < length_of(p->nodes); i++) {
        json_object *outputs = member(nth(p->nodes, i), "outputs");
        bool in_body = member(nth(p->nodes, i), "graph") != NULL;
        for (size_t k = 0; k < length_of(outputs) && !in_body; k++)
            string_list_add(&p->names,
                            json_object_get_string(nth(outputs, k)));
    }
    if (p->names.count > 0)
        qsort(p->names.items, p->names.count, sizeof *p->names.items, by_text);
    return 0;
}

static common_value *add_value(per_tensor *t, const char *name, const char *other,
                               const char *kind)
{
    if (t->count == t->capacity) {
        t->capacity = t->capacity * 2 + 64;
        common_value *grown = tool_alloc(t->capacity * sizeof *grown);
        if (t->count > 0)
            memcpy(grown, t->values, t->count * sizeof *grown);
        free(t->values);
        t->values = grown;
    }
    common_value *v = &t->values[t->count++];
    *v = (common_value){.name = tool_strdup(name), .other = tool_strdup(other), .kind = kind,
                        .distance = ORT_DISTANCE_INIT};
    v->distance.margin = NAN; /* rows mean something in outputs alone */
    return v;
}

enum { ENDINGS = 3 }; /* of ort-quantize, of its earlier releases, of onnxruntime */
static const char *const dequantized[ENDINGS] = {"_dq", "_DequantizeLinear",
                                                 "_DequantizeLinear_Output"};
static const char *const codes[ENDINGS] = {"_q", "_QuantizeLinear", "_quantized"};

/* What a Relu or a Clip makes of X where nothing else reads X: a quantizer of the QOperator form
 * leaves that to the range of the codes, which keep the name of X. X itself elsewhere. */
static const char *behind_clamp(const per_tensor *t, const char *name)
{
    const char *found = NULL;
    int readers = 0;
    for (size_t i = 0; i < length_of(t->a.nodes); i++) {
        json_object *node = nth(t->a.nodes, i), *inputs = member(node, "inputs");
        const char *op = text_of(node, "op_type");
        for (size_t k = 0; k < length_of(inputs); k++) {
            if (strcmp(json_object_get_string(nth(inputs, k)), name))
                continue;
            readers++;
            if (k == 0 && (!strcmp(op, "Relu") || !strcmp(op, "Clip")))
                found = json_object_get_string(nth(member(node, "outputs"), 0));
        }
    }
    return readers == 1 && found && !pairs_has(&t->b.names, found) ? found : name;
}

/* Operators that read a scale read the zero point next: the name of what follows `scale`; NULL. */
static const char *zero_behind(const per_tensor *t, const char *scale)
{
    for (size_t i = 0; i < length_of(t->b.nodes); i++) {
        json_object *node = nth(t->b.nodes, i), *inputs = member(node, "inputs");
        bool scales = text_of(node, "op_type")[0] == 'Q' ||
                      !strcmp(text_of(node, "op_type"), "DequantizeLinear");
        for (size_t k = 0; scales && k + 1 < length_of(inputs); k++)
            if (!strcmp(json_object_get_string(nth(inputs, k)), scale))
                return json_object_get_string(nth(inputs, k + 1));
    }
    return NULL;
}

/* Codes of X with one scale, which the file has under the name of X. */
static void add_codes(per_tensor *t, const char *name, const char *kind)
{
    ort_value *scale = NULL, *zero = NULL;
    char *scale_name = tool_printf("%s_scale", name);
    const char *zero_name = zero_behind(t, scale_name);
    bool found = zero_name &&
                 ort_model_constant(t->b.model, scale_name, &scale, NULL) == ORT_OK &&
                 ort_model_constant(t->b.model, zero_name, &zero, NULL) == ORT_OK &&
                 ort_value_count(scale) == 1 && ort_value_count(zero) == 1;
    for (size_t i = 0; i < ENDINGS && found; i++) {
        char *other = tool_printf("%s%s", name, codes[i]);
        if (pairs_has(&t->b.names, other)) {
            common_value *v = add_value(t, behind_clamp(t, name), other, kind);
            v->scale = scale;
            v->zero = zero;
            scale = zero = NULL;
            found = false;
        }
        free(other);
    }
    ort_value_free(scale);
    ort_value_free(zero);
    free(scale_name);
}

static void pair_value(per_tensor *t, const char *name, const char *kind)
{
    size_t before = t->count;
    for (size_t i = 0; i < ENDINGS && t->count == before; i++) {
        char *other = tool_printf("%s%s", name, dequantized[i]);
        if (pairs_has(&t->b.names, other))
            add_value(t, name, other, kind);
        free(other);
    }
    if (t->count == before && pairs_has(&t->b.names, name))
        add_value(t, name, name, kind);
    if (t->count == before)
        add_codes(t, name, kind);
}

/* What the quantized file makes of a weight, by the part of it that does. */
static int run_part(per_tensor *t, common_value *v)
{
    ort_session_options options;
    ort_error err = {0};
    ort_model *part = NULL;
    ort_session *session = NULL;
    ort_value *made = NULL;
    const char *names[] = {v->other};
    settings_session_options(&t->options->settings, &options);
    options.level = 0;
    bool ok = ort_model_extract(t->b.model, NULL, 0, names, 1, &part, &err) == ORT_OK &&
              ort_session_new(t->env, part, &options, &session, &err) == ORT_OK &&
              ort_session_run(session, NULL, NULL, 0, NULL, &made, 1, NULL, &err) == ORT_OK;
    if (ok && ort_distance_add(&v->distance, v->kept, made, NULL) != ORT_OK)
        v->why = "the two have other shapes";
    v->seen = ok;
    ort_value_free(made);
    ort_session_free(session);
    ort_model_free(part);
    return ok ? 0 : tool_fail_in(t->b.path, &err);
}

/* X of a DequantizeLinear named after a constant X of the float model. */
static int add_weight(per_tensor *t, const char *other)
{
    ort_value *weight = NULL;
    int status = 0;
    for (size_t i = 0; i < ENDINGS && status == 0; i++) {
        size_t length = strlen(other), end = strlen(dequantized[i]);
        if (length <= end || strcmp(other + length - end, dequantized[i]))
            continue;
        char *name = tool_strndup(other, length - end);
        if (!pairs_has(&t->a.names, name) &&
            ort_model_constant(t->a.model, name, &weight, NULL) == ORT_OK) {
            common_value *v = add_value(t, name, other, "weight");
            v->kept = weight;
            status = run_part(t, v);
            v->kept = NULL;
            ort_value_free(weight);
            weight = NULL;
        }
        free(name);
    }
    return status;
}

static int add_weights(per_tensor *t)
{
    int status = 0;
    for (size_t i = 0; i < length_of(t->b.nodes) && status == 0; i++) {
        json_object *node = nth(t->b.nodes, i), *output = nth(member(node, "outputs"), 0);
        if (output && !member(node, "graph") &&
            !strcmp(text_of(node, "op_type"), "DequantizeLinear"))
            status = add_weight(t, json_object_get_string(output));
    }
    return status;
}

int pairs_by_name(const void *x, const void *y)
{
    return strcmp((*(common_value *const *)x)->name, (*(common_value *const *)y)->name);
}

int pairs_by_other(const void *x, const void *y)
{
    return strcmp((*(common_value *const *)x)->other, (*(common_value *const *)y)->other);
}

static bool is_output(const ort_session *session, const char *name)
{
    return find_output(session, name) >= 0;
}

static void pair_computed(per_tensor *t, const ort_session *session)
{
    for (size_t i = 0; i < ort_session_input_count(session); i++)
        pair_value(t, ort_session_input_name(session, i), "input");
    for (size_t i = 0; i < t->a.names.count; i++) {
        const char *name = t->a.names.items[i];
        if (name[0] != '\0' && (i == 0 || strcmp(name, t->a.names.items[i - 1])))
            pair_value(t, name, is_output(session, name) ? "output" : "value");
    }
}

static void sort_values(per_tensor *t)
{
    t->by_name = tool_alloc((t->count + 1) * sizeof(common_value *));
    t->by_other = tool_alloc((t->count + 1) * sizeof(common_value *));
    for (size_t i = 0; i < t->count; i++)
        t->by_name[i] = t->by_other[i] = &t->values[i];
    qsort(t->by_name, t->count, sizeof(common_value *), pairs_by_name);
    qsort(t->by_other, t->count, sizeof(common_value *), pairs_by_other);
}

int pairs_find(per_tensor *t)
{
    pair_computed(t, t->a.session);
    int status = add_weights(t);
    sort_values(t);
    return status;
}

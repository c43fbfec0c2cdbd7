/* explain.c - the words of the ABI for models and runs that the library refused.
 *
 * Bindings, and people's search engines, know errors by their texts. They stand in front of
 * the library's own, which say the same and sometimes more.
 */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

static const ort_type_info *find(const OrtSession *session, const char *name, bool input)
{
    const ort_session *s = session->session;
    size_t count = input ? ort_session_input_count(s) : session->output_count;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, input ? ort_session_input_name(s, i) : ort_session_output_name(s, i)))
            return input ? ort_session_input_type(s, i) : ort_session_output_type(s, i);
    return NULL;
}

bool abi_session_has(const OrtSession *session, const char *name, bool input)
{
    return find(session, name, input);
}

/* C++'s names of element types. */
static const char *type_name(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_UNDEFINED ? "unknown" : ort_dtype_name(dtype);
}

static OrtStatus *explain_dims(const ort_type_info *type, const char *name, const ort_value *value,
                               const char *side)
{
    const int64_t *dims = ort_value_dims(value);
    char list[1024];
    int used = 0;
    if (type->rank <= 0)
        return NULL;
    if (ort_value_rank(value) != type->rank)
        return abi_fail(ABI_INVALID_ARGUMENT,
                        "Invalid rank for %s: %s Got: %d Expected: %d Please fix either the "
                        "inputs/outputs or the model.",
                        side, name, ort_value_rank(value), type->rank);
    for (int i = 0; i < type->rank && used < (int)sizeof list - 80; i++)
        if (type->dims[i] >= 0 && type->dims[i] != dims[i])
            used += snprintf(list + used, sizeof list - (size_t)used,
                             " index: %d Got: %lld Expected: %lld\n", i, (long long)dims[i],
                             (long long)type->dims[i]);
    return !used ? NULL
                 : abi_fail(ABI_INVALID_ARGUMENT,
                            "Got invalid dimensions for %s: %s for the following indices\n%s "
                            "Please fix either the inputs/outputs or the model.",
                            side, name, list);
}

static OrtStatus *explain_value(const ort_type_info *type, const char *name, const ort_value *value,
                                const char *side)
{
    if (type->kind == ORT_TYPE_OPTIONAL && type->element)
        type = type->element;
    if (type->kind != ORT_TYPE_TENSOR || ort_value_get_kind(value) != ORT_VALUE_TENSOR)
        return NULL;
    if (type->dtype != ort_value_dtype(value))
        return abi_fail(ABI_INVALID_ARGUMENT,
                        "Unexpected %s data type. Actual: (tensor(%s)) , expected: (tensor(%s))",
                        side, type_name(ort_value_dtype(value)), type_name(type->dtype));
    return explain_dims(type, name, value, side);
}

static OrtStatus *explain_missing(const OrtSession *session, const char *const *names, size_t count)
{
    for (size_t i = 0; i < session->input_count; i++) {
        const char *name = ort_session_input_name(session->session, session->inputs[i]);
        size_t k = 0;
        while (k < count && strcmp(names[k], name))
            k++;
        if (k == count)
            return abi_fail(ABI_FAIL, "Missing Input: %s", name);
    }
    return NULL;
}

OrtStatus *abi_explain_run(const OrtSession *session, const char *const *input_names,
                           const OrtValue *const *inputs, size_t input_count,
                           const char *const *output_names, size_t output_count,
                           OrtValue *const *outputs)
{
    for (size_t i = 0; i < input_count; i++) {
        const ort_type_info *type = find(session, input_names[i], true);
        ABI_CHECK(type, "Invalid input name: %s", input_names[i]);
        ABI_TRY(explain_value(type, input_names[i], inputs[i]->value, "input"));
    }
    for (size_t i = 0; i < output_count; i++) {
        const ort_type_info *type = find(session, output_names[i], false);
        ABI_CHECK(type, "Invalid output name: %s", output_names[i]);
        if (outputs[i] && outputs[i]->value)
            ABI_TRY(explain_value(type, output_names[i], outputs[i]->value, "output"));
    }
    return explain_missing(session, input_names, input_count);
}

OrtStatus *abi_explain_node(enum abi_code code, const ort_error *err)
{
    const char *text = err->message, *open = strstr(text, " ("), *close = strstr(text, "): ");
    if (strncmp(text, "node ", 5) || !open || !close || open > close)
        return NULL;
    bool named = text[5] == '\'';
    int length = named ? (int)(open - text) - 7 : 0;
    return abi_fail(code,
                    "Non-zero status code returned while running %.*s node. Name:'%.*s' Status "
                    "Message: %s",
                    (int)(close - open) - 2, open + 2, length, text + 6, close + 3);
}

OrtStatus *abi_explain_operator(const char *place, const ort_error *err)
{
    const char *name = strstr(err->message, ": operator ");
    const char *end = name ? strstr(name, " of opset ") : NULL;
    if (!end || !strstr(end, " is unknown"))
        return NULL;
    name += strlen(": operator ");
    const char *dot = end;
    while (dot > name && *dot != '.')
        dot--;
    if (dot > name)
        return abi_fail(ABI_FAIL, "%sFatal error: %.*s:%.*s(-1) is not a registered function/op",
                        place, (int)(dot - name), name, (int)(end - dot) - 1, dot + 1);
    return abi_fail(ABI_INVALID_GRAPH,
                    "%sThis is an invalid model. Error No Op registered for %.*s with "
                    "domain_version of %d. %s",
                    place, (int)(end - name), name, atoi(end + strlen(" of opset ")), err->message);
}

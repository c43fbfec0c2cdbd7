/* form.c - the model's form beside its passes: axes made symbolic, what is stripped, where weights
 * are written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optimize.h"

static const struct {
    const char *name;
    unsigned what;
} strips[] = {{"docs", ORT_STRIP_DOCS}, {"names", ORT_STRIP_NAMES}, {"unused", ORT_STRIP_UNUSED}};

enum { STRIPS = sizeof strips / sizeof *strips };

static unsigned strip_of(const char *name)
{
    for (int i = 0; i < STRIPS; i++)
        if (!strcmp(strips[i].name, name))
            return strips[i].what;
    return 0;
}

int form_check(const optimize_options *o)
{
    if (o->output && !*o->output)
        return tool_usage("-o needs the name of a file, or -");
    if (o->external_data && strchr(o->external_data, '/'))
        return tool_usage("--external-data: '%s' must be a file name, without folders",
                          o->external_data);
    return 0;
}

/* INPUT[:AXIS][=NAME]; an input's own name may hold colons: an axis is digits to the end. */
static int make_dynamic(ort_env *env, ort_model *model, const char *text)
{
    ort_error err = {0};
    const char *equals = strrchr(text, '=');
    char *input = equals ? tool_strndup(text, (size_t)(equals - text)) : tool_strdup(text);
    const char *symbol = equals ? equals + 1 : "batch";
    char *colon = strrchr(input, ':');
    int64_t axis = 0;
    int status = 0;
    if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1)) {
        status = option_parse_int("--make-dynamic", colon + 1, 0, 63, &axis);
        *colon = '\0';
    }
    if (status == 0 && !*symbol)
        status = tool_usage("--make-dynamic %s: the dimension needs a name", text);
    if (status == 0 &&
        ort_model_make_dynamic(env, model, input, (int)axis, symbol, &err) != ORT_OK)
        status = tool_fail(&err);
    free(input);
    return status;
}

int form_before(const optimize_options *o, ort_env *env, ort_model *model)
{
    int status = 0;
    for (size_t i = 0; i < o->dynamic.count && status == 0; i++)
        status = make_dynamic(env, model, o->dynamic.items[i]);
    return status;
}

int form_opset(const optimize_options *o, ort_env *env, ort_model *model, const char *path)
{
    ort_error err = {0};
    ort_findings *blockers = NULL;
    int64_t opset;
    int reach, status = 0;
    if (!o->opset)
        return 0;
    if (option_parse_int("--opset", o->opset, 1, INT32_MAX, &opset) != 0)
        return EXIT_USAGE;
    bool keep = o->functions && !strcmp(o->functions, "keep");
    if (ort_model_set_opset(env, model, (int)opset, keep, &blockers, &reach, &err) != ORT_OK) {
        size_t count = ort_findings_count(blockers);
        status = count ? 0 : tool_fail_in(path, &err);
        for (size_t i = 0; i < count; i++) {
            snprintf(err.message, sizeof err.message, "%s", ort_findings_message(blockers, i));
            status = tool_fail_in(path, &err);
        }
        snprintf(err.message, sizeof err.message,
                 "opset %d is out of reach (%zu blocker%s), opset %d isn't", (int)opset, count,
                 count == 1 ? "" : "s", reach);
        if (count)
            status = tool_fail_in(path, &err);
    }
    ort_findings_free(blockers);
    return status;
}

void form_after(const optimize_options *o, ort_model *model)
{
    unsigned what = 0;
    for (size_t i = 0; i < o->strips.count; i++)
        what |= strip_of(o->strips.items[i]);
    if (what)
        ort_model_strip(model, what);
}

int form_save(const optimize_options *o, ort_env *env, ort_model *model)
{
    ort_error err = {0};
    ort_save_options options = {.size = sizeof options, .inline_all = o->inline_all};
    const char *slash = o->output ? strrchr(o->output, '/') : NULL;
    char *name = NULL;
    if (o->external_data)
        name = tool_printf("%s.data", slash ? slash + 1 : o->output);
    if (o->external_data)
        options.external_data = *o->external_data ? o->external_data : name;
    ort_status status = o->pack
                            ? ort_model_save_packed(env, model, o->output, &options, &err)
                            : ort_model_save(model, o->output, &options, &err);
    free(name);
    return status != ORT_OK ? tool_fail(&err) : 0;
}

/* calls.c - are calls of the model's own functions worth expanding? A body that is called often is
 * written once for each call then, and the file grows by what the passes don't take out of them
 * again; so the model is kept as it was until that is known. */
#include "optimize.h"

/* Bodies of functions that are called once bring no more than longer names. Conversions rewrite
 * what the functions hold: they settle what stays. */
static bool decides(const optimize_options *o, const ort_model *model)
{
    return !o->functions && !o->opset && !o->fp16 && !o->bf16 &&
           (o->settings.level_number != 0 || o->passes.count) && ort_model_repeats_functions(model);
}

int calls_begin(calls *c, const optimize_options *o, const ort_model *model, const char *path)
{
    ort_error err = {0};
    *c = (calls){0};
    if (!decides(o, model))
        return 0;
    if (ort_model_written_bytes(model, &c->bytes, &err) != ORT_OK ||
        ort_model_copy(model, &c->before, &err) != ORT_OK)
        return tool_fail_in(path, &err);
    return 0;
}

int calls_judge(calls *c, const ort_optimize_options *options, ort_model **model, bool *again,
                const char *path)
{
    ort_error err = {0};
    size_t bytes;
    *again = false;
    if (!c->before)
        return 0;
    if (ort_model_written_bytes(*model, &bytes, &err) != ORT_OK)
        return tool_fail_in(path, &err);
    double factor = options->max_growth > 1 ? options->max_growth : 1;
    if ((double)bytes <= factor * (double)c->bytes + (double)options->growth_bytes)
        return 0;
    tool_warn("%s: functions stay: expanded, the file would have %zu bytes instead of %zu "
              "(--functions inline expands them)", path, bytes, c->bytes);
    ort_model_free(*model);
    *model = c->before;
    c->before = NULL;
    *again = true;
    return 0;
}

void calls_end(calls *c)
{
    ort_model_free(c->before);
    c->before = NULL;
}

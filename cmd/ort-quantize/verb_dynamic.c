/* verb_dynamic.c - ort-quantize dynamic: bytes whose range is found in each run. Samples, if there
 * are any, only judge the file.
 */
#include <stdlib.h>
#include <string.h>

#include "chosen.h"

static void tell(const ort_quantize_notes *notes, FILE *out)
{
    for (size_t i = 0; i < ort_quantize_notes_count(notes); i++) {
        const ort_quantize_note *n = ort_quantize_notes_get(notes, i);
        fprintf(out, "%s (%s): ", n->node, n->op_type);
        if (!n->became)
            fprintf(out, "stays float: %s", n->why);
        else
            fprintf(out, "becomes %s", n->became);
        if (n->saturating > 0)
            fprintf(out, "; %.1f %% of its sums of two products could leave 16 bits, which "
                         "processors without VNNI clip (--reduce-range avoids it)",
                    100 * n->saturating);
        fputc('\n', out);
    }
}

static void warn_of_none(const quantizing *q, const ort_quantize_notes *notes)
{
    for (size_t i = 0; i < ort_quantize_notes_count(notes); i++)
        if (ort_quantize_notes_get(notes, i)->became)
            return;
    tool_warn("%s: nothing in it was quantized; -v says why each node stays", q->path);
}

static void dynamic_options(quantizing *q, const chosen *c, ort_dynamic_options *options)
{
    const quantize_options *o = &q->options;
    ort_dynamic_options_init(options);
    if (o->weight_type && !strcmp(o->weight_type, "int8"))
        options->weights = ORT_DTYPE_INT8;
    options->symmetric_weights = o->symmetric_weights;
    options->per_tensor = o->per_tensor;
    options->plain_weights = o->plain_weights;
    options->reduce_range = o->reduce_range;
    options->computed = o->computed_products;
    options->small = o->small;
    options->float_tables = o->float_tables;
    options->convs = o->convolutions;
    options->folder = q->folder;
    options->choice = q->choice;
    options->on_share = progress_stage;
    options->share_arg = &q->progress;
    options->include = c->include.items;
    options->exclude = c->exclude.items;
}

static int make(quantizing *q, const chosen *c, ort_quantize_notes *notes)
{
    ort_dynamic_options options;
    ort_error err = {0};
    dynamic_options(q, c, &options);
    progress_wait(&q->progress, "quantizing", is_quiet(q));
    ort_status made = ort_model_quantize_dynamic(q->env, q->original, &options, &q->made, notes,
                                                 &err);
    progress_end(&q->progress);
    if (made != ORT_OK)
        return tool_fail_in(q->path, &err);
    if (q->options.settings.verbose)
        tell(notes, stderr);
    if (c->exclude.count == 0)
        warn_of_none(q, notes);
    return 0;
}

int verb_dynamic(quantizing *q)
{
    const quantize_options *o = &q->options;
    chosen names = {0};
    ort_quantize_notes *notes = NULL;
    ort_error err = {0};
    const bool bytes = !o->weight_type || !strcmp(o->weight_type, "int8") ||
                       !strcmp(o->weight_type, "uint8");
    if (!bytes)
        return tool_usage("--weight-type %s: dynamic products have int8 or uint8", o->weight_type);
    int status = chosen_read(&names, q);
    if (status == 0)
        status = load_original(q, LOAD_AS_STORED);
    if (status == 0 && ort_quantize_notes_new(&notes, &err) != ORT_OK)
        status = tool_fail(&err);
    if (status == 0)
        status = make(q, &names, notes);
    chosen_release(&names);
    ort_quantize_notes_free(notes);
    return status == 0 ? closing_save(q) : status;
}

/* verb_static.c - ort-quantize static: ranges of values seen on samples, and codes that cover them.
 */
#include <stdlib.h>
#include <string.h>

#include "automatic.h"
#include "calibration.h"
#include "choice.h"
#include "chosen.h"
#include "common/screen.h"
#include "effort.h"
#include "guard.h"
#include "ranges.h"
#include "sensitivity.h"

static void quantizer_options(quantizing *q, const chosen *c, ort_quantize_options *options)
{
    const quantize_options *o = &q->options;
    ort_quantize_options_init(options);
    if (o->activation_type)
        options->activations = ort_dtype_parse(o->activation_type);
    if (o->weight_type)
        options->weights = ort_dtype_parse(o->weight_type);
    else if (o->asymmetric_weights && !o->full_range && options->activations == ORT_DTYPE_UINT8)
        options->weights = ORT_DTYPE_UINT8; /* the same numbers, and no processor cuts their sums */
    options->qoperator = o->form && !strcmp(o->form, "qoperator");
    options->contrib = o->contrib_codes;
    options->without_passes = o->no_passes;
    options->keep_fused = o->keep_fused;
    options->exclude = c->exclude.items;
    options->include = c->include.items;
    options->overrides = c->overrides;
    options->symmetric = o->symmetric;
    options->asymmetric_weights = o->asymmetric_weights;
    options->per_tensor = o->per_tensor;
    options->plain_weights = o->plain_weights;
    options->reduce_range = o->reduce_range;
    options->full_range = o->full_range;
    options->observer = observer_named(o->observer, options->observer);
    if (o->percentile > 0)
        options->percentile = o->percentile;
    options->correct_biases = o->effort || o->bias_correction;
    options->adaptive_rounding = o->effort || o->adaround;
    options->equalize = o->equalize;
    if (o->smooth)
        options->smooth = o->alpha > 0 ? o->alpha : 0.5;
    options->threads = o->settings.thread_count;
    options->folder = q->folder;
    options->on_share = progress_stage;
    options->share_arg = &q->progress;
}

static ort_status apply(quantizing *q, ort_quantizer *quantizer, ort_model **made,
                        ort_error *err)
{
    progress_wait(&q->progress, "quantizing", is_quiet(q));
    ort_status status = ort_quantizer_apply(quantizer, made, err);
    progress_end(&q->progress);
    return status;
}

/* The found assignment with the ranges that were seen makes the model, as the file of it would:
 * to the byte, so the stamp tells these two. (--smooth asks for samples, whose digest stays.) */
static int quantize_found(quantizing *q, ort_quantize_options *options, const ort_ranges *ranges,
                          const char *overrides)
{
    ort_quantizer *quantizer = NULL;
    ort_error err = {0};
    options->overrides = overrides;
    chosen_found(q, overrides);
    if (!q->options.smooth && q->ranges_of[0] == '\0')
        ranges_tell(q, ranges);
    ort_status status = ort_quantizer_new(q->env, q->original, options, &quantizer, &err);
    if (status == ORT_OK)
        status = ort_quantizer_use_ranges(quantizer, ranges, NULL, &err);
    if (status == ORT_OK)
        status = apply(q, quantizer, &q->made, &err);
    ort_quantizer_free(quantizer);
    return status == ORT_OK ? 0 : tool_fail_in(q->path, &err);
}

static int search(quantizing *q, ort_quantize_options *options, ort_quantizer *quantizer)
{
    ort_ranges *ranges = NULL;
    ort_error err = {0};
    char *overrides = NULL;
    int status = 0;
    if (ort_ranges_new(&ranges, &err) != ORT_OK ||
        ort_quantizer_ranges(quantizer, ranges, &err) != ORT_OK)
        status = tool_fail_in(q->path, &err);
    if (status == 0 && q->options.random && q->options.ranges.count == 0)
        ort_ranges_set_made_up(ranges);
    if (status == 0)
        status = automatic(q, quantizer, q->samples.at, &overrides);
    if (status == 0)
        status = quantize_found(q, options, ranges, overrides);
    free(overrides);
    ort_ranges_free(ranges);
    return status;
}

static bool is_among(const char *type, const char *const *list)
{
    while (type != NULL && *list != NULL && strcmp(type, *list))
        list++;
    return type != NULL && *list != NULL;
}

/* Valid ONNX that not every runtime has: OpenVINO 2026.4 reads no tensors of 2 bits, nor of the
 * float8 without infinities and negative zero, and has no Q and DQ to 4 bits for some operators. */
static void warn_of_rare(const quantize_options *o)
{
    static const char *const rare[] = {"int4", "uint4", "int2", "uint2", "float8e4m3fnuz",
                                       "float8e5m2fnuz", NULL};
    if (is_among(o->activation_type, rare))
        tool_warn("--activation-type %s: OpenVINO has no such codes for what is computed; 8 or 16 "
                  "bits run there", o->activation_type);
    else if (is_among(o->weight_type, rare + 2))
        tool_warn("--weight-type %s: OpenVINO has no such codes; 4, 8 or 16 bits run there",
                  o->weight_type);
}

/* What makes the model asks for other runs than those that choose, or has ranges already. */
static bool runs_alone(const quantize_options *o)
{
    return o->sensitivity || o->automatic || o->smooth || o->ranges.count > 0;
}

/* Samples, not only what was seen of them. */
static bool runs_again(const quantize_options *o)
{
    return o->bias_correction || o->adaround;
}

static int learn(quantizing *q, ort_quantizer *quantizer, const ort_ranges *seen)
{
    ort_error err = {0};
    if (seen == NULL)
        return ranges_learn(q, quantizer);
    return ort_quantizer_use_ranges(quantizer, seen, NULL, &err) == ORT_OK
               ? 0
               : tool_fail_in(q->path, &err);
}

static bool has_codes(const char *why)
{
    return strstr(why, "quantized before") || strstr(why, "on codes already");
}

/* With -v each node that stays float, and why; without, how many have codes already. */
static void tell(const quantizing *q, const ort_quantizer *quantizer)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    size_t coded = 0, taken = 0;
    for (size_t i = 0; ort_quantizer_node(quantizer, i, &info); i++) {
        const bool stays = !strcmp(info.part, "float");
        taken += !stays;
        coded += stays && has_codes(info.why);
        if (stays && q->options.settings.verbose > 0)
            screen_printf(stderr, "%s '%s' stays float: %s\n", info.op_type, info.name, info.why);
    }
    const quantize_options *o = &q->options;
    const bool asked = o->exclude.count || o->exclude_from || o->overrides || o->automatic;
    if (coded && !o->settings.json && !o->settings.quiet && !takes_stdout(o))
        printf("left as they are: %zu nodes that were quantized before\n", coded);
    if (taken == 0 && !asked)
        tool_warn("%s: nothing in it was quantized; -v says why each node stays", q->path);
}

static int make(quantizing *q, ort_quantize_options *options, const ort_ranges *seen)
{
    ort_quantizer *quantizer = NULL;
    ort_error err = {0};
    int status = chosen_quantizer(q, options, &quantizer);
    if (status == 0 && q->options.smooth)
        status = ranges_smooth(q, quantizer);
    if (status == 0)
        status = learn(q, quantizer, seen);
    if (status == 0 && q->kept.count > 0) {
        guard_note(q, quantizer);
        status = guard_keep(q, quantizer);
    }
    if (status == 0 && q->options.sensitivity)
        status = sensitivity(q, quantizer, q->samples.at);
    else if (status == 0 && q->options.automatic)
        status = search(q, options, quantizer);
    else if (status == 0 && apply(q, quantizer, &q->made, &err) != ORT_OK)
        status = tool_fail_in(q->path, &err);
    if (status == 0 && q->made) {
        warn_of_rare(&q->options);
        tell(q, quantizer);
    }
    ort_quantizer_free(quantizer);
    return status;
}

/* The stamp tells what was chosen. */
static void take_choice(quantizing *q, const choice *c, ort_quantize_options *options)
{
    quantize_options *o = &q->options;
    if (c->round && !o->effort)
        o->adaround = options->adaptive_rounding = true;
    if (q->options.observer == NULL)
        q->options.observer = ort_observer_name(c->observer, NULL);
    q->options.equalize = c->equalize;
    options->observer = c->observer;
    options->equalize = c->equalize;
    q->kept = c->kept;
}

static int quantize(quantizing *q, const chosen *list)
{
    ort_quantize_options options;
    ort_ranges *seen = NULL;
    choice c = {0};
    quantizer_options(q, list, &options);
    const bool chooses = can_choose(q);
    const bool corrects = q->options.bias_correction || can_correct(q);
    options.correct_biases = options.correct_biases || (corrects && !runs_alone(&q->options));
    if (options.correct_biases && !q->options.effort) /* for the stamp */
        q->options.bias_correction = true;
    int status = prepare_samples(q);
    if (status != 0)
        return status;
    status = runs_alone(&q->options) || (runs_again(&q->options) && !chooses)
                 ? 0 : calibration_apart(q, &options, chooses, &c, &seen);
    if (status == 0 && seen != NULL && chooses)
        take_choice(q, &c, &options);
    if (runs_again(&q->options)) {
        ort_ranges_free(seen);
        seen = NULL;
    }
    const size_t usual = effort_of(c.round || q->options.adaround, corrects);
    if (status == 0)
        status = q->options.effort ? choose_effort(q, &options, seen, usual)
                                   : make(q, &options, seen);
    ort_ranges_free(seen);
    return status;
}

int verb_static(quantizing *q)
{
    chosen c = {0};
    if (q->options.form && !strcmp(q->options.form, "nbits"))
        return tool_usage("static has the forms qdq and qoperator; nbits is one of weights");
    if (q->options.inputs.count == 0 && !q->options.random && q->options.ranges.count == 0)
        return tool_usage("static quantization takes samples: -i FILE, or --random SEED for "
                          "made-up ones; or what calibrate wrote: --ranges FILE");
    int status = chosen_read(&c, q);
    if (status == 0)
        status = load_original(q, LOAD_AS_STORED);
    if (status == 0)
        status = quantize(q, &c);
    chosen_release(&c);
    return status == 0 && q->made ? closing_save(q) : status;
}

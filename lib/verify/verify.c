/* verify.c - a rewritten model beside its original (ort_models_verify).
 *
 * Both are run at level 0, so that nothing but the rewriting is compared. Inputs come from samples
 * or are made up for the rewritten model, whose declared shapes are the narrower ones; for the
 * original where axes were opened. A verdict
 * needs numbers: an output that is NaN all over verifies nothing, nor do outputs that are all
 * empty, and a model that draws random numbers differs from itself. A sample that the original
 * doesn't take is the caller's mistake; made-up inputs that it doesn't take are ours.
 */
#pragma GCC optimize("Os") /* once a session or less */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/options.h"
#include "graph/graph.h"
#include "made_up/made_up.h"
#include "verify/agree.h"
#include "verify/as_run.h"
#include "verify/opened.h"

enum { MADE_UP_DRAWS = 2 }; /* of the same size */

typedef struct pair {
    ort_session *a, *b; /* original, rewritten */
    const ort_verify_options *options;
    ort_verification *result;
    ort_value **inputs_a, **inputs_b, **outputs_a, **outputs_b;
    bool *seen;       /* by output of a: it held finite numbers, or anything exact */
    bool compared;    /* some output was not empty */
    bool opened;      /* b has open axes where a has sizes */
    bool on_codes;    /* b computes on codes what a computes in float */
    ort_as_run as_run;
    int planned;
} pair;

static void say(pair *p, ort_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(pair *p, ort_verdict verdict, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(p->result->text, sizeof p->result->text, format, args);
    va_end(args);
    p->result->verdict = verdict;
}

/* ---- one pair of outputs */

/* Operators whose float arithmetic is replaced by sums of codes. */
static int count_on_codes(const ort_session *session)
{
    const ort_graph *graph = session->model->graph;
    ort_node *node;
    int count = 0;
    ORT_EACH_NODE(graph, node)
        count += !strncmp(node->op_type, "QLinear", 7) || !strcmp(node->op_type, "QGemm");
    return count;
}

static void keep_worst(pair *p, const char *name, double max_abs, double scaled)
{
    ort_verification *r = p->result;
    if (max_abs <= r->max_abs && r->output[0])
        return;
    r->max_abs = max_abs;
    r->max_scaled = scaled;
    snprintf(r->output, sizeof r->output, "%s", name);
}

static ort_status compare(pair *p, int index, const ort_value *b, ort_error *err)
{
    ort_difference difference;
    const ort_value *a = p->outputs_a[index];
    const char *name = p->a->outputs[index].name;
    bool real = ort_agree_is_float(a), empty = ort_agree_is_empty(a);
    double scale = real ? ort_agree_magnitude(a) : 0;
    p->compared = p->compared || !empty;
    p->seen[index] = p->seen[index] || empty || !real || scale >= 0;
    ort_agreement how = {.tolerance = p->options->tolerance,
                         .codes = p->on_codes ? p->options->code_tolerance : 0};
    ORT_TRY(ort_agree_compare(a, b, &how, &difference, err));
    keep_worst(p, name, difference.max_abs, scale > 0 ? difference.max_abs / scale : 0);
    if (difference.equal)
        return ORT_OK;
    snprintf(p->result->output, sizeof p->result->output, "%s", name);
    say(p, ORT_DIFFERENT, "output '%s': %s", name, difference.text);
    return ORT_OK;
}

/* ---- one pair of runs */

static int find_input(const ort_session *session, const char *name)
{
    for (int i = 0; i < session->input_count; i++)
        if (!strcmp(session->inputs[i].name, name))
            return i;
    return -1;
}

static int find_output(const ort_session *session, const char *name)
{
    for (int i = 0; i < session->output_count; i++)
        if (!strcmp(session->outputs[i].name, name))
            return i;
    return -1;
}

static void free_values(ort_value **values, int count)
{
    for (int i = 0; values && i < count; i++) {
        ort_value_free(values[i]);
        values[i] = NULL;
    }
}

static ort_run_options run_options(uint64_t seed)
{
    ort_run_options options = ORT_RUN_OPTIONS_INIT;
    options.seed = seed;
    return options;
}

/* The rewritten model failed where the original did not: it differs, unless a limit stopped it. */
static void say_failed(pair *p, const char *doing, ort_status status, const ort_error *why)
{
    bool limited = status == ORT_ERROR_TIMEOUT || status == ORT_ERROR_MEMORY ||
                   status == ORT_ERROR_CANCELLED;
    say(p, limited ? ORT_NOT_VERIFIED : ORT_DIFFERENT, "%s: %.500s", doing, why->message);
}

/* Does the original give other results with another seed? Its outputs are in outputs_a. */
static bool draws_random(pair *p)
{
    ort_run_options options = run_options(p->options->seed + 1);
    ort_value **again = calloc((size_t)p->a->output_count + 1, sizeof *again);
    bool differs = false;
    if (again && ort_session_run_all(p->a, p->inputs_a, again, &options, NULL) == ORT_OK)
        for (int i = 0; i < p->a->output_count && !differs; i++) {
            ort_compare_options exact = ORT_COMPARE_OPTIONS_INIT;
            ort_difference d;
            differs = ort_value_compare_(again[i], p->outputs_a[i], &exact, &d, NULL) == ORT_OK &&
                      !d.equal;
        }
    free_values(again, p->a->output_count);
    free(again);
    return differs;
}

/* Codes that flip where a float unit rounds otherwise may be all of the difference. */
static bool flips_alone(pair *p)
{
    return p->on_codes && p->options->code_tolerance > 0 &&
           ort_as_run_agree(&p->as_run, (ort_value *const *const[]){p->inputs_a, p->inputs_b},
                            (ort_value *const *const[]){p->outputs_a, p->outputs_b},
                            p->options->code_tolerance);
}

/* *ran: the original took these inputs. */
static ort_status run_pair(pair *p, bool *ran, ort_error *err)
{
    ort_run_options options = run_options(p->options->seed);
    ort_error why = {0};
    ort_status status = ORT_OK;
    *ran = false;
    if (p->options->on_run)
        p->options->on_run(p->options->arg, p->result->runs, p->planned);
    ort_status refused = ort_session_run_all(p->a, p->inputs_a, p->outputs_a, &options, &why);
    if (refused && p->options->sample_count)
        status = ort_error_set(err, refused, "the original doesn't run on a sample: %.500s",
                               why.message);
    else if (refused && !p->result->runs)
        say(p, ORT_NOT_VERIFIED, "the original doesn't run on made-up inputs: %.400s; give a "
                                 "sample, or sizes of its dimensions",
            why.message);
    if (refused)
        goto done;
    *ran = true;
    refused = ort_session_run_all(p->b, p->inputs_b, p->outputs_b, &options, &why);
    if (refused) {
        say_failed(p, "the original runs, the rewritten model doesn't", refused, &why);
        goto done;
    }
    p->result->runs++;
    for (int i = 0; i < p->a->output_count && status == ORT_OK; i++) {
        int at = find_output(p->b, p->a->outputs[i].name);
        if (at < 0)
            say(p, ORT_DIFFERENT, "the rewritten model has no output '%s'", p->a->outputs[i].name);
        else
            status = compare(p, i, p->outputs_b[at], err);
        if (p->result->verdict == ORT_DIFFERENT)
            break;
    }
    if (p->result->verdict == ORT_DIFFERENT && status == ORT_OK && flips_alone(p))
        say(p, ORT_VERIFIED, "codes flip where float units round; sessions of both agree");
    if (p->result->verdict == ORT_DIFFERENT && draws_random(p))
        say(p, ORT_NOT_VERIFIED, "the model draws random numbers: each run differs");
done:
    free_values(p->outputs_a, p->a->output_count);
    free_values(p->outputs_b, p->b->output_count);
    return status;
}

/* ---- inputs */

/* The rewritten model's inputs in the original's order, by name. */
static bool share_inputs(pair *p)
{
    for (int i = 0; i < p->a->input_count; i++) {
        int at = find_input(p->b, p->a->inputs[i].name);
        p->inputs_a[i] = at < 0 ? NULL : p->inputs_b[at];
        if (!p->inputs_a[i] && !p->a->inputs[i].default_value) {
            say(p, ORT_NOT_VERIFIED, "the rewritten model has no input '%s'", p->a->inputs[i].name);
            return false;
        }
    }
    return true;
}

/* An axis was made symbolic: two made-up samples at once, which the original takes one by one. */
static ort_status run_joined(pair *p)
{
    ort_error why = {0};
    char text[600];
    if (p->options->on_run)
        p->options->on_run(p->options->arg, p->result->runs, p->planned);
    if (ort_verify_opened(p->a, p->b, p->options, text, &why)) {
        say(p, ORT_NOT_VERIFIED, "another size than the original's: %.400s", why.message);
        return ORT_OK;
    }
    p->result->sizes = p->result->sizes > 1 ? p->result->sizes + 1 : 2;
    if (*text)
        say(p, ORT_DIFFERENT, "%s", text);
    else
        p->result->runs++;
    return ORT_OK;
}

static ort_status run_samples(pair *p, ort_error *err)
{
    p->planned = (int)p->options->sample_count + p->opened;
    for (size_t s = 0; s < p->options->sample_count; s++) {
        const ort_tensors *sample = p->options->samples[s];
        bool ran;
        for (int i = 0; i < p->b->input_count; i++) {
            p->inputs_b[i] = NULL;
            for (size_t k = 0; k < ort_tensors_count(sample); k++)
                if (!strcmp(ort_tensors_name(sample, k), p->b->inputs[i].name) ||
                    (p->b->input_count == 1 && ort_tensors_count(sample) == 1))
                    p->inputs_b[i] = ort_tensors_value(sample, k);
            if (!p->inputs_b[i] && !p->b->inputs[i].default_value)
                return ort_error_set(err, ORT_ERROR_USAGE, "sample %zu has no value for input '%s'",
                                     s, p->b->inputs[i].name);
        }
        if (share_inputs(p))
            ORT_TRY(run_pair(p, &ran, err));
        if (p->result->verdict != ORT_VERIFIED)
            break;
    }
    memset(p->inputs_b, 0, sizeof *p->inputs_b * (size_t)p->b->input_count);
    return p->opened && p->result->verdict == ORT_VERIFIED ? run_joined(p) : ORT_OK;
}

/* The model that inputs are made up for. */
static const ort_session *maker(const pair *p) { return p->opened ? p->a : p->b; }

/* The original's inputs in the rewritten model's order, by name. */
static void lend_inputs(pair *p)
{
    for (int i = 0; i < p->b->input_count; i++) {
        int at = find_input(p->a, p->b->inputs[i].name);
        p->inputs_b[i] = at < 0 ? NULL : p->inputs_a[at];
    }
}

/* One draw; *ran: the original took it. The verdict of a refusal is the caller's to judge. */
static ort_status run_draw(pair *p, int draw, int variant, int trial, bool *ran, ort_error *err)
{
    ort_error why = {0};
    ort_status status = ORT_OK;
    uint64_t seed = p->options->seed + (uint64_t)draw;
    ort_value **made = p->opened ? p->inputs_a : p->inputs_b;
    *ran = false;
    if (ort_exec_make_inputs(maker(p), seed, variant, trial, made, &why)) {
        say(p, ORT_NOT_VERIFIED, "%.500s", why.message);
        return ORT_OK;
    }
    if (p->opened)
        lend_inputs(p);
    if (p->opened || share_inputs(p))
        status = run_pair(p, ran, err);
    free_values(made, maker(p)->input_count);
    return status;
}

/* The first of the sizes that the original takes; none: the verdict tells of the usual ones. What
 * all trials make up has a bound: a model that takes none of them is told of in seconds. */
static ort_status find_sizes(pair *p, int *trial, bool *found, ort_error *err)
{
    ort_verification first;
    int trials = ort_sizes_trials(maker(p));
    double left = ort_sizes_room(maker(p));
    *found = false;
    for (*trial = 0; *trial < trials && !*found; ++*trial) {
        double values = ort_sizes_values(maker(p), 0, *trial);
        if (*trial > 0 && values > left)
            continue;
        left -= values <= left ? values : 0;
        ORT_TRY(run_draw(p, 0, 0, *trial, found, err));
        if (*found)
            return ORT_OK;
        if (*trial == 0)
            first = *p->result;
        p->result->verdict = ORT_VERIFIED;
        p->result->text[0] = '\0';
    }
    *p->result = first;
    return ORT_OK;
}

/* A second size where dimensions are open: the first of the variants that the original takes. */
static ort_status run_other_size(pair *p, int trial, ort_error *err)
{
    bool ran = false;
    double room = ort_sizes_room(maker(p));
    for (int variant = 1; variant < ORT_SIZES_VARIANTS && !ran; variant++)
        if (ort_sizes_values(maker(p), variant, trial) <= room)
            ORT_TRY(run_draw(p, 1, variant, trial, &ran, err));
    p->result->sizes += ran;
    return ORT_OK;
}

static ort_status run_made_up(pair *p, ort_error *err)
{
    bool open = ort_exec_has_free_dims(maker(p)), ran;
    int trial;
    p->planned = MADE_UP_DRAWS + open + p->opened;
    ORT_TRY(find_sizes(p, &trial, &ran, err));
    p->result->sizes = ran;
    if (ran && open && p->result->verdict == ORT_VERIFIED)
        ORT_TRY(run_other_size(p, trial, err));
    for (int i = 1; ran && i < MADE_UP_DRAWS && p->result->verdict == ORT_VERIFIED; i++)
        ORT_TRY(run_draw(p, i + open, 0, trial, &ran, err));
    return p->opened && ran && p->result->verdict == ORT_VERIFIED ? run_joined(p) : ORT_OK;
}

/* ---- the whole */

static ort_status open_session(ort_env *env, const ort_model *model, ort_session **session,
                               ort_error *err)
{
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    options.level = 0;
    return ort_exec_session_new(env, model, &options, session, err);
}

static ort_status allocate(pair *p, ort_error *err)
{
    size_t inputs = (size_t)(p->a->input_count > p->b->input_count ? p->a->input_count
                                                                   : p->b->input_count);
    p->inputs_a = calloc(inputs + 1, sizeof *p->inputs_a); /* each may hold the other's */
    p->inputs_b = calloc(inputs + 1, sizeof *p->inputs_b);
    p->outputs_a = calloc((size_t)p->a->output_count + 1, sizeof *p->outputs_a);
    p->outputs_b = calloc((size_t)p->b->output_count + 1, sizeof *p->outputs_b);
    p->seen = calloc((size_t)p->a->output_count + 1, sizeof *p->seen);
    return p->inputs_a && p->inputs_b && p->outputs_a && p->outputs_b && p->seen
               ? ORT_OK
               : ort_error_memory(err, sizeof *p->inputs_a);
}

static ort_status verify(pair *p, ort_error *err)
{
    ORT_TRY(allocate(p, err));
    ORT_TRY(p->options->sample_count ? run_samples(p, err) : run_made_up(p, err));
    if (p->result->verdict == ORT_VERIFIED && !p->result->runs)
        say(p, ORT_NOT_VERIFIED, "nothing was run");
    if (p->result->verdict == ORT_VERIFIED && !p->compared && p->a->output_count)
        say(p, ORT_NOT_VERIFIED, "every output is empty on these inputs: give a sample");
    for (int i = 0; i < p->a->output_count && p->result->verdict == ORT_VERIFIED; i++)
        if (!p->seen[i])
            say(p, ORT_NOT_VERIFIED,
                "output '%.200s' is NaN or infinite all over on these inputs: give a sample",
                p->a->outputs[i].name);
    return ORT_OK;
}

ort_status ort_models_verify(ort_env *env, const ort_model *original, const ort_model *changed,
                             const ort_verify_options *options, ort_verification *result,
                             ort_error *err)
{
    if (!env || !original || !changed)
        return ort_error_null(err, __func__);
    ort_error why = {0};
    ort_verification found = ORT_VERIFICATION_INIT;
    ort_verify_options own = ORT_VERIFY_OPTIONS_INIT;
    options = ORT_OPTIONS_KNOWN(options, &own, err);
    if (!options)
        return ORT_ERROR_USAGE;
    ORT_TRY(ORT_RESULT_CHECK(result, err));
    pair p = {.options = options, .result = &found, .as_run = {env, {original, changed}}};
    ort_status status = ORT_OK, refused;
    ort_budget budget; /* of both sessions and all runs */
    if (options->timeout_s > 0)
        ort_budget_begin(&budget, NULL, options->timeout_s, NULL);
    if (open_session(env, original, &p.a, &why)) {
        say(&p, ORT_NOT_VERIFIED, "the original can't be run here: %.500s", why.message);
    } else if ((refused = open_session(env, changed, &p.b, &why))) {
        say_failed(&p, "the rewritten model can't be run", refused, &why);
    } else {
        p.opened = ort_opened(p.a, p.b);
        p.on_codes = count_on_codes(p.b) > count_on_codes(p.a);
        status = verify(&p, err);
    }
    free(p.inputs_a);
    free(p.inputs_b);
    free(p.outputs_a);
    free(p.outputs_b);
    free(p.seen);
    ort_exec_session_release(p.a);
    ort_exec_session_release(p.b);
    ort_as_run_release(&p.as_run);
    if (options->timeout_s > 0)
        status = ort_budget_end(&budget, status, err);
    return status != ORT_OK ? status : ORT_RESULT_GIVE(result, &found, err);
}

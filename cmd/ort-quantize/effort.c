/* effort.c - the refinements of --effort, each judged on samples that it didn't learn from.
 */
#include "effort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "choice.h"
#include "trial.h"

/* What may help or harm; the cheapest first. */
static const struct effort {
    const char *name;
    bool rounded, corrected, equalized;
} efforts[] = {{"no refinement", false, false, false},
               {"biases by samples", false, true, false},
               {"the same, channels equalized", false, true, true},
               {"rounding and biases by samples", true, true, false},
               {"the same, channels equalized", true, true, true}};
enum { EFFORTS = sizeof efforts / sizeof *efforts, BIASES = 1, EVEN_BIASES = 2 };

/* Of models refined by all samples but those of a part, on that part. */
typedef struct judgement {
    nearness_to_float near[TRIAL_PARTS], outer[TRIAL_PARTS]; /* outer: by outputs themselves */
    bool is_made, scaled;
} judgement;

typedef struct efforts_judged {
    quantizing *q;
    double work, done; /* of all that may be judged and made */
    bool has_pairs;    /* of products whose channels can be equalized */
    trial t, outer; /* what Softmaxes read is compared, as their results hang on few of the samples;
                     * and outputs themselves */
} efforts_judged;

static ort_quantize_options options_of(const ort_quantize_options *options, size_t effort)
{
    ort_quantize_options own = *options;
    own.correct_biases = efforts[effort].corrected;
    own.adaptive_rounding = efforts[effort].rounded;
    own.equalize = own.equalize || efforts[effort].equalized;
    return own;
}

static size_t parts_of(const efforts_judged *r)
{
    return r->t.total < TRIAL_PARTS ? r->t.total : TRIAL_PARTS;
}

/* A model that is refined takes a few times as long as one that isn't. */
static double work_of(size_t effort)
{
    return efforts[effort].rounded ? 3 : efforts[effort].corrected ? 2 : 1;
}

static void advance(efforts_judged *r, double work)
{
    r->done += work;
    progress_part(&r->q->whole, r->done / r->work);
}

static int judge_part(efforts_judged *r, const ort_quantize_options *own, judgement *j)
{
    ort_model *model = NULL;
    int status = choice_make(r->q, own, NULL, &model);
    if (status == 0)
        status = trial_held_out(&r->t, model, &j->near[r->q->fold]);
    if (status == 0)
        status = trial_held_out(&r->outer, model, &j->outer[r->q->fold]);
    ort_model_free(model);
    return status;
}

static int judge_effort(efforts_judged *r, const ort_quantize_options *options, size_t effort,
                        judgement *j)
{
    const ort_quantize_options own = options_of(options, effort);
    quantizing *q = r->q;
    int status = 0;
    j->is_made = true;
    q->folds = parts_of(r);
    for (q->fold = 0; q->fold < q->folds && status == 0; q->fold++) {
        status = judge_part(r, &own, j);
        j->scaled = j->scaled || j->near[q->fold].scaled;
        if (q->options.settings.verbose)
            fprintf(stderr, "%s, part %zu of samples: %.2f dB, outputs %.2f dB\n",
                    efforts[effort].name, q->fold + 1, j->near[q->fold].sqnr_db,
                    j->outer[q->fold].sqnr_db);
        advance(r, work_of(effort) / (double)q->folds);
    }
    q->folds = 0;
    return status;
}

/* How much nearer to float a is than b. */
static double nearer_by(const nearness_to_float *a, const nearness_to_float *b, bool scaled)
{
    const double exact_db = 200;
    return fmin(trial_db(a, scaled), exact_db) - fmin(trial_db(b, scaled), exact_db);
}

/* The same on average; *better: on so many parts. */
static double gain_over(const efforts_judged *r, const judgement *a, const judgement *b,
                        size_t *better)
{
    double gain = 0;
    *better = 0;
    for (size_t i = 0; i < parts_of(r); i++) {
        const double by = nearer_by(&a->near[i], &b->near[i], a->scaled || b->scaled);
        gain += by / (double)parts_of(r);
        *better += by > 0;
    }
    return gain;
}

/* Does the gain stand out of what parts differ by: is its mean twice as large as its standard
 * error? And aren't outputs themselves further off? With few results a sample, as of two classes,
 * chance makes up whole decibels. */
static bool is_clear(const efforts_judged *r, const judgement *a, const judgement *b)
{
    const double n = (double)parts_of(r), errors = 2;
    double sum = 0, squares = 0, outer = 0;
    for (size_t i = 0; i < parts_of(r); i++) {
        const double by = nearer_by(&a->near[i], &b->near[i], a->scaled || b->scaled);
        sum += by;
        squares += by * by;
        outer += nearer_by(&a->outer[i], &b->outer[i], false);
    }
    const double mean = sum / n, variance = fmax(squares / n - mean * mean, 0) * n / (n - 1);
    return mean > 0 && mean * mean >= errors * errors * variance / n && outer >= 0;
}

/* Made of all but a part of the samples, what is usual is worse than of all: that less is nearer to
 * float on the part says little. */
static bool does_less(size_t effort, size_t usual)
{
    return (efforts[usual].rounded && !efforts[effort].rounded) ||
           (efforts[usual].corrected && !efforts[effort].corrected);
}

/* Channels are equalized before weights are rounded where that helped without rounding. */
static int judge_efforts(efforts_judged *r, const ort_quantize_options *options, size_t usual,
                         judgement *js)
{
    int status = 0;
    bool even = false;
    for (size_t i = 0; i < EFFORTS && status == 0; i++) {
        size_t better;
        if (efforts[i].rounded && js[EVEN_BIASES].is_made)
            even = gain_over(r, &js[EVEN_BIASES], &js[BIASES], &better) > 0;
        if (i != usual && ((efforts[i].equalized && (options->equalize || !r->has_pairs)) ||
                           (i < BIASES && does_less(i, usual)) ||
                           (efforts[i].rounded && efforts[i].equalized != even)))
            advance(r, work_of(i));
        else
            status = judge_effort(r, options, i, &js[i]);
    }
    return status;
}

static ort_status pass_by(void *arg, ort_value *const *inputs, size_t count, ort_error *err)
{
    (void)arg, (void)inputs, (void)count, (void)err; /* samples are counted */
    return ORT_OK;
}

static int find_pairs(efforts_judged *r, const ort_quantize_options *options)
{
    ort_quantize_options own = *options;
    ort_quantizer *quantizer = NULL;
    ort_error err = {0};
    own.equalize = true;
    if (ort_quantizer_new(r->q->env, r->q->original, &own, &quantizer, &err) != ORT_OK)
        return tool_fail_in(r->q->path, &err);
    r->has_pairs = ort_quantizer_equalized(quantizer) > 0;
    ort_quantizer_free(quantizer);
    return 0;
}

static int open_efforts(efforts_judged *r, const ort_quantize_options *options,
                        const ort_ranges *ranges)
{
    const ort_quantize_options own = options_of(options, 0);
    ort_model *model = NULL;
    int status = r->q->samples.at > 0 ? 0 : each_sample(r->q, "reading samples", pass_by, NULL);
    if (status == 0)
        status = find_pairs(r, &own);
    if (status == 0)
        status = choice_make(r->q, &own, r->q->options.smooth ? NULL : ranges, &model);
    if (status == 0)
        status = trial_open_inside(&r->t, r->q, r->q->samples.at, model);
    if (status == 0)
        status = trial_open(&r->outer, r->q, r->q->samples.at);
    ort_model_free(model);
    return status;
}

/* The one that samples chose: others than the usual one must be better by more than chance, on all
 * parts but one, and clearly. With one sample alone nobody can judge. */
static int find_effort(efforts_judged *r, const ort_quantize_options *options,
                       const ort_ranges *ranges, size_t usual, size_t *chosen)
{
    judgement js[EFFORTS] = {0};
    double best = CHOICE_CHANCE_DB;
    *chosen = usual;
    int status = open_efforts(r, options, ranges);
    if (status != 0 || r->t.total < 2)
        return status;
    status = judge_efforts(r, options, usual, js);
    for (size_t i = 0; i < EFFORTS && status == 0; i++) {
        size_t better = 0;
        const double gain = js[i].is_made ? gain_over(r, &js[i], &js[usual], &better) : 0;
        if (i != usual && !does_less(i, usual) && gain >= best && better + 1 >= parts_of(r) &&
            is_clear(r, &js[i], &js[usual])) {
            best = gain;
            *chosen = i;
        }
    }
    return status;
}

static int make_effort(quantizing *q, const ort_quantize_options *options,
                       const ort_ranges *ranges, size_t effort, ort_model **model)
{
    const ort_quantize_options own = options_of(options, effort);
    const bool again = effort > 0 || q->options.smooth;
    return choice_make(q, &own, again ? NULL : ranges, model);
}

/* By outputs themselves, as the report will, on all samples: the usual model where the chosen one
 * is further from float even there. */
static int keep_nearer(const efforts_judged *r, ort_model **chosen, ort_model **usual)
{
    nearness_to_float of_chosen = {0}, of_usual = {0};
    int status = trial_run(&r->outer, *chosen, &of_chosen);
    if (status == 0)
        status = trial_run(&r->outer, *usual, &of_usual);
    if (status == 0 && r->q->options.settings.verbose)
        fprintf(stderr, "chosen, all samples: %.2f dB; as usual: %.2f dB\n", of_chosen.sqnr_db,
                of_usual.sqnr_db);
    if (status == 0 && of_chosen.sqnr_db < of_usual.sqnr_db) {
        ort_model *last = *chosen;
        *chosen = *usual;
        *usual = last;
    }
    return status;
}

int choose_effort(quantizing *q, const ort_quantize_options *options, const ort_ranges *ranges,
                  size_t usual)
{
    efforts_judged r = {.q = q};
    ort_model *as_usual = NULL;
    size_t chosen;
    for (size_t i = 0; i < EFFORTS; i++)
        r.work += work_of(i);
    r.work += 1; /* the chosen one is made of all samples, which takes as long as on its parts */
    progress_whole(&q->whole, "refinements", is_quiet(q));
    int status = find_effort(&r, options, ranges, usual, &chosen);
    if (status == 0)
        status = make_effort(q, options, ranges, chosen, &q->made);
    if (status == 0 && chosen != usual)
        status = make_effort(q, options, ranges, usual, &as_usual);
    if (status == 0 && chosen != usual)
        status = keep_nearer(&r, &q->made, &as_usual);
    progress_end(&q->whole);
    ort_model_free(as_usual);
    trial_close(&r.t);
    trial_close(&r.outer);
    return status;
}

/* Of those without equalized channels: where weights are rounded by samples, biases are corrected,
 * too. */
size_t effort_of(bool rounded, bool corrected)
{
    size_t i = 0;
    while (efforts[i].rounded != rounded || efforts[i].corrected != (rounded || corrected))
        i++;
    return i;
}

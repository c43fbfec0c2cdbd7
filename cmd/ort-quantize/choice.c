/* choice.c - models made and measured one after the other, on the kernel tier of calibration, so
 * that the same one is chosen everywhere.
 */
#include "choice.h"

#include <stdio.h>

#include "ranges.h"
#include "trial.h"

/* The usual one first. Squares cut off the most, min-max nothing. */
static const ort_observer observers[] = {ORT_OBSERVE_MSE, ORT_OBSERVE_L25, ORT_OBSERVE_L3,
                                         ORT_OBSERVE_L4, ORT_OBSERVE_MIN_MAX};

/* What another observer must bring: less is chance, as few samples judge, and those that ranges
 * come of. */
static const double least_gain_db = 0.5;

/* ranges NULL: the samples are seen again, which what is refined needs. */
static int make(quantizing *q, const ort_quantize_options *options, const ort_ranges *ranges,
                ort_model **model)
{
    ort_quantizer *quantizer = NULL;
    ort_error err = {0};
    int status = 0;
    if (ort_quantizer_new(q->env, q->original, options, &quantizer, &err) != ORT_OK)
        return tool_fail_in(q->path, &err);
    if (ranges == NULL)
        status = q->options.smooth ? ranges_smooth(q, quantizer) : 0;
    if (ranges == NULL && status == 0)
        status = ranges_learn(q, quantizer);
    if (ranges != NULL && ort_quantizer_use_ranges(quantizer, ranges, NULL, &err) != ORT_OK)
        status = tool_fail_in(q->path, &err);
    if (status == 0 && ort_quantizer_apply(quantizer, model, &err) != ORT_OK)
        status = tool_fail_in(q->path, &err);
    ort_quantizer_free(quantizer);
    return status;
}

/* The best model so far: the first one, where no other is better than it by `gain` dB. */
typedef struct race {
    const trial *t;
    ort_model *model;
    double db, gain, bar; /* bar: what the others must reach */
    size_t at, tried;
} race;

static int enter(race *r, ort_model *model)
{
    nearness_to_float near = {0};
    int status = trial_run(r->t, model, &near);
    if (status == 0 && r->tried == 0)
        r->bar = near.sqnr_db + r->gain;
    if (status == 0 && (r->tried == 0 || (near.sqnr_db > r->db && near.sqnr_db >= r->bar))) {
        ort_model *last = r->model;
        r->model = model;
        r->db = near.sqnr_db;
        r->at = r->tried;
        model = last;
    }
    r->tried++;
    ort_model_free(model);
    return status;
}

static void tell(const quantizing *q, const char *name, const race *r, size_t at)
{
    if (q->options.settings.verbose)
        fprintf(stderr, "%s: %s%.2f dB\n", name, r->at == at ? "" : "at most ", r->db);
}

int choose_observer(quantizing *q, const ort_quantize_options *options, const ort_ranges *ranges,
                    ort_observer *best)
{
    ort_quantize_options own = *options;
    trial t = {0};
    race r = {.t = &t, .gain = least_gain_db};
    int status = trial_open(&t, q, q->samples.at);
    for (size_t i = 0; i < sizeof observers / sizeof *observers && status == 0; i++) {
        ort_model *model = NULL;
        own.observer = observers[i];
        own.correct_biases = own.adaptive_rounding = false;
        status = make(q, &own, ranges, &model);
        if (status == 0)
            status = enter(&r, model);
        tell(q, ort_observer_name(observers[i], NULL), &r, i);
    }
    *best = observers[r.at];
    ort_model_free(r.model);
    trial_close(&t);
    return status;
}

/* What may help or harm. */
static const struct {
    const char *name;
    bool refined, equalized;
} efforts[] = {{"no refinement", false, false},
               {"channels equalized", false, true},
               {"rounding and biases by samples", true, false},
               {"the same, channels equalized", true, true}};

int choose_effort(quantizing *q, const ort_quantize_options *options, const ort_ranges *ranges)
{
    trial t = {0};
    race r = {.t = &t};
    int status = trial_open(&t, q, q->samples.at);
    for (size_t i = 0; i < sizeof efforts / sizeof *efforts && status == 0; i++) {
        ort_quantize_options own = *options;
        ort_model *model = NULL;
        own.correct_biases = own.adaptive_rounding = efforts[i].refined;
        own.equalize = own.equalize || efforts[i].equalized;
        status = make(q, &own, i > 0 || q->options.smooth ? NULL : ranges, &model);
        if (status == 0)
            status = enter(&r, model);
        tell(q, efforts[i].name, &r, i);
    }
    if (status == 0)
        q->made = r.model;
    else
        ort_model_free(r.model);
    trial_close(&t);
    return status;
}

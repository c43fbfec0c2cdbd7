/* choice.c - models made and measured one after the other, on the kernel tier of calibration, so
 * that the same one is chosen everywhere.
 */
#include "choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "chosen.h"
#include "guard.h"
#include "ranges.h"

/* The usual one first. Squares cut off the most, min-max nothing. */
static const ort_observer observers[] = {ORT_OBSERVE_MSE, ORT_OBSERVE_L25, ORT_OBSERVE_L3,
                                         ORT_OBSERVE_L4, ORT_OBSERVE_MIN_MAX};

/* A model as near as the first needs no node in float that breaks a chain of codes; as the second,
 * none at all. */
static const double near_db = 25, nearest_db = 32;
/* What recurrent layers must bring to keep weights of four times the size, and with --effort. */
static const double recurrent_db = 6, recurrent_effort_db = 1;
/* What --effort asks of small tables in float16, and of harmful nodes of a model that is near. */
static const double table_db = 1, harmful_db = 0.75;
enum { FLOATS_PART = 100 }; /* of the float file, that these may add to the one on codes */

/* Of which an assignment leaves something open: --overrides are taken as they are. */
static bool is_at_most(const quantizing *q, size_t megabytes)
{
    size_t bytes;
    return q->options.overrides == NULL &&
           ort_model_written_bytes(q->original, &bytes, NULL) == ORT_OK &&
           bytes <= megabytes << 20;
}

bool can_choose(const quantizing *q)
{
    enum { MOST_MB = 32 }; /* several of them are in memory at a time */
    return (q->options.observer == NULL || keep_sensitive(q) > 0) && is_at_most(q, MOST_MB);
}

/* Made-up samples say nothing of what real ones are on average; with an observer that is given,
 * ranges alone make the same model. */
bool can_correct(const quantizing *q)
{
    enum { MOST_MB = 128 }; /* the float model and that on codes are in memory, with sessions */
    const quantize_options *o = &q->options;
    return o->observer == NULL && !o->plain_biases && !o->random && is_at_most(q, MOST_MB);
}

static int open_quantizer(quantizing *q, const ort_quantize_options *options,
                          const ort_ranges *ranges, ort_quantizer **quantizer)
{
    ort_error err = {0};
    int status = chosen_quantizer(q, options, quantizer);
    if (status != 0)
        return status;
    if (ranges == NULL)
        status = q->options.smooth ? ranges_smooth(q, *quantizer) : 0;
    if (ranges == NULL && status == 0)
        status = ranges_learn(q, *quantizer);
    if (ranges != NULL && ort_quantizer_use_ranges(*quantizer, ranges, NULL, &err) != ORT_OK)
        status = tool_fail_in(q->path, &err);
    if (status == 0 && q->options.effort && q->folds == 0 && q->kept.count > 0)
        guard_note(q, *quantizer); /* no one else makes a model of --effort */
    return status == 0 ? guard_keep(q, *quantizer) : status;
}

static int apply(quantizing *q, ort_quantizer *quantizer, ort_model **model)
{
    ort_error err = {0};
    progress_wait(&q->progress, "quantizing", is_quiet(q));
    ort_status status = ort_quantizer_apply(quantizer, model, &err);
    progress_end(&q->progress);
    return status == ORT_OK ? 0 : tool_fail_in(q->path, &err);
}

int choice_make(quantizing *q, const ort_quantize_options *options, const ort_ranges *ranges,
                ort_model **model)
{
    const bool learns = options->correct_biases || options->adaptive_rounding;
    ort_quantizer *quantizer = NULL;
    int status = open_quantizer(q, options, learns ? NULL : ranges, &quantizer);
    if (status == 0)
        status = apply(q, quantizer, model);
    ort_quantizer_free(quantizer);
    return status;
}

/* The best model so far: the first one, where no other is better than it by `gain` dB. */
typedef struct race {
    quantizing *q;
    trial t; /* opened with the first model */
    bool inside; /* what Softmaxes read is compared */
    ort_model *model;
    nearness_to_float first, best, last; /* first: what others must be nearer than; last: of the one
                                          * that entered last */
    double gain;
    size_t at, tried;
    size_t bytes; /* of the file of the model that was made last with kept nodes */
    double work, done; /* in models made and run; all that may come of it */
} race;

/* What takes about so many of these: ranges are seen anew; nodes run alone; weights are rounded by
 * samples. */
enum { ANEW_WORK = 3, ALONE_WORK = 12, ROUNDED_WORK = 6 };

static void advance(race *r, double work)
{
    r->done += work;
    progress_part(&r->q->whole, r->done / r->work);
}

static bool wins(const race *r, const nearness_to_float *near)
{
    const double db = trial_db(near, near->scaled), best = trial_db(&r->best, near->scaled);
    if (r->tried == 0)
        return true;
    return db > best && db >= trial_db(&r->first, near->scaled) + r->gain;
}

/* Takes the model. */
static int enter(race *r, ort_model *model)
{
    const size_t total = r->q->samples.at;
    int status = r->tried > 0 ? 0
                 : r->inside  ? trial_open_inside(&r->t, r->q, total, model)
                              : trial_open(&r->t, r->q, total);
    if (status == 0)
        status = trial_run(&r->t, model, &r->last);
    if (status == 0 && r->tried == 0)
        r->first = r->last;
    if (status == 0 && wins(r, &r->last)) {
        ort_model *last = r->model;
        r->model = model;
        r->best = r->last;
        r->at = r->tried;
        model = last;
    }
    r->tried++;
    ort_model_free(model);
    return status;
}

static void tell(const race *r, const char *name)
{
    if (r->q->options.settings.verbose)
        fprintf(stderr, "%s: %.2f dB\n", name, r->last.sqnr_db);
}

static void leave(race *r)
{
    ort_model_free(r->model);
    trial_close(&r->t);
}

/* ---- what options leave open */

static int try_observers(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                         choice *c)
{
    const size_t count = r->q->options.observer == NULL ? sizeof observers / sizeof *observers : 1;
    ort_quantize_options own = *options;
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        ort_model *model = NULL;
        if (count > 1)
            own.observer = observers[i];
        status = choice_make(r->q, &own, ranges, &model);
        if (status == 0)
            status = enter(r, model);
        tell(r, ort_observer_name(own.observer, NULL));
        advance(r, 1);
    }
    c->observer = count > 1 ? observers[r->at] : options->observer;
    return status;
}

/* The model's numbers are others then: its ranges are seen anew. */
static int try_equalized(race *r, const ort_quantize_options *options, ort_ranges **ranges,
                         choice *c)
{
    ort_quantize_options own = *options;
    ort_quantizer *quantizer = NULL;
    ort_ranges *seen = NULL;
    ort_model *model = NULL;
    ort_error err = {0};
    own.equalize = true;
    if (ort_quantizer_new(r->q->env, r->q->original, &own, &quantizer, &err) != ORT_OK)
        return tool_fail_in(r->q->path, &err);
    int status = 0;
    if (ort_quantizer_equalized(quantizer) > 0) {
        r->first = r->best;
        status = ranges_learn(r->q, quantizer);
        if (status == 0)
            status = apply(r->q, quantizer, &model);
        if (status == 0)
            status = enter(r, model);
        tell(r, "channels equalized");
        c->equalize = r->at + 1 == r->tried;
    }
    if (status == 0 && c->equalize &&
        (ort_ranges_new(&seen, &err) != ORT_OK ||
         ort_quantizer_ranges(quantizer, seen, &err) != ORT_OK))
        status = tool_fail_in(r->q->path, &err);
    if (seen != NULL) {
        ort_ranges_free(*ranges);
        *ranges = seen;
    }
    ort_quantizer_free(quantizer);
    return status;
}

/* Recurrent layers compute in float, with weights as codes for the size alone. Where the error of a
 * step grows in the next ones, these cost a net all that it says. */
static int try_recurrent(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                         choice *c)
{
    kept_nodes kept = {0};
    ort_quantizer *quantizer = NULL;
    ort_model *model = NULL;
    int status = open_quantizer(r->q, options, ranges, &quantizer);
    if (status == 0)
        guard_recurrent(quantizer, &kept);
    r->q->kept = kept;
    if (status == 0 && kept.count > 0)
        status = guard_keep(r->q, quantizer);
    r->q->kept = (kept_nodes){0};
    if (status == 0 && kept.count > 0) {
        r->first = r->best;
        r->gain = r->q->options.effort ? recurrent_effort_db : recurrent_db;
        status = apply(r->q, quantizer, &model);
        if (status == 0)
            status = enter(r, model);
        tell(r, "weights of recurrent layers in float");
    }
    ort_quantizer_free(quantizer);
    if (kept.count > 0 && r->at + 1 == r->tried)
        c->kept = kept;
    else
        free(kept.index);
    return status;
}

static int try_float_nodes(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                           choice *c)
{
    ort_quantizer *quantizer = NULL;
    int status = open_quantizer(r->q, options, ranges, &quantizer);
    if (status == 0)
        status = guard_choose(&r->t, quantizer, r->best.sqnr_db >= near_db, &c->kept);
    ort_quantizer_free(quantizer);
    return status;
}

/* A model with these nodes in float, beside float. */
static int run_kept(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                    const kept_nodes *kept)
{
    ort_model *model = NULL;
    ort_error err = {0};
    r->q->kept = *kept;
    int status = choice_make(r->q, options, ranges, &model);
    r->q->kept = (kept_nodes){0};
    r->bytes = 0;
    if (status == 0 && ort_model_written_bytes(model, &r->bytes, &err) != ORT_OK)
        status = tool_fail_in(r->q->path, &err);
    if (status == 0)
        status = r->q->folds > 0 ? trial_held_out(&r->t, model, &r->last)
                                 : trial_run(&r->t, model, &r->last);
    ort_model_free(model);
    return status;
}

/* With codes of weights by samples and without, both made of all samples but those of a part, on
 * that part; of the few that make no parts, on all. */
static int rounded_on(race *r, const ort_quantize_options *options, const kept_nodes *kept,
                      double *gain)
{
    ort_quantize_options own = *options;
    int status = run_kept(r, &own, NULL, kept);
    const double plain_db = r->last.sqnr_db;
    own.adaptive_rounding = true;
    if (status == 0)
        status = run_kept(r, &own, NULL, kept);
    if (status == 0 && r->q->options.settings.verbose)
        fprintf(stderr, "codes of weights by samples: %.2f dB, without %.2f dB\n",
                r->last.sqnr_db, plain_db);
    *gain = r->last.sqnr_db - plain_db;
    return status;
}

/* On one part, where it has numbers enough; where it hasn't, on average of them all. */
static int judge_rounded(race *r, const ort_quantize_options *options, const kept_nodes *kept,
                         double *gain)
{
    enum { LEAST_SAMPLES = 2 * TRIAL_PARTS, ENOUGH = 512 };
    quantizing *q = r->q;
    size_t parts = TRIAL_PARTS;
    int status = 0;
    if (r->t.samples < LEAST_SAMPLES)
        return rounded_on(r, options, kept, gain);
    q->folds = TRIAL_PARTS;
    for (q->fold = 0; q->fold < parts && status == 0; q->fold++) {
        double part = 0;
        if (q->fold == 0 && trial_held_out_numbers(&r->t) >= ENOUGH)
            parts = 1;
        status = rounded_on(r, options, kept, &part);
        *gain += part / (double)parts;
    }
    q->folds = 0;
    return status;
}

/* Codes of weights by samples, where the others leave the model far from float; with biases as they
 * will be, since these take what rounding leaves on average. */
static int try_rounded(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                       choice *c)
{
    double gain = 0;
    int status = run_kept(r, options, ranges, &c->kept);
    if (status == 0 && r->last.sqnr_db < near_db)
        status = judge_rounded(r, options, &c->kept, &gain);
    advance(r, ROUNDED_WORK);
    c->round = gain >= CHOICE_CHANCE_DB;
    return status;
}

/* ---- clear answers */

/* Nodes that stay float, each with those before it. */
enum { AS_CHOSEN, APART, HARMFUL, KEPT_LISTS };

/* What a classifier's clear answers may need besides, the cheapest in runs first. */
static const struct {
    const char *name;
    bool rounded;
    int kept;
} harder[] = {{"as chosen", false, AS_CHOSEN},
              {"codes of weights by samples", true, AS_CHOSEN},
              {"filters of single channels in float", false, APART},
              {"both", true, APART},
              {"both, and other nodes in float", true, HARMFUL}};
/* Of them that have to stay on samples: a few less do on others. */
static const double least_clear = 0.995;
static const double harmful_percent = 16; /* of the multiply-adds */

static int extend(race *r, const ort_quantize_options *options, const ort_ranges *ranges, int which,
                  kept_nodes *lists)
{
    ort_quantizer *quantizer = NULL;
    kept_nodes *list = &lists[which];
    for (size_t i = 0; i < lists[which - 1].count; i++)
        kept_nodes_add(list, lists[which - 1].index[i]);
    int status = open_quantizer(r->q, options, ranges, &quantizer);
    if (status == 0)
        status = which == APART ? guard_depthwise(r->q, quantizer, list)
                                : guard_more(&r->t, quantizer, harmful_percent, list);
    ort_quantizer_free(quantizer);
    return status;
}

/* Until enough of them stay; else what keeps most. */
static int try_answers(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                       choice *c)
{
    kept_nodes lists[KEPT_LISTS] = {c->kept};
    double best = 0, clear = 0;
    size_t at = 0;
    int made = AS_CHOSEN, status = 0;
    for (size_t i = 0; i < sizeof harder / sizeof *harder && status == 0 && best < least_clear;
         i++) {
        const int kept = harder[i].kept;
        ort_quantize_options own = *options;
        own.adaptive_rounding = harder[i].rounded;
        if (kept > made)
            status = extend(r, options, ranges, made = kept, lists);
        if (status != 0 || (kept > 0 && lists[kept].count == lists[kept - 1].count))
            continue;
        status = run_kept(r, &own, ranges, &lists[kept]);
        clear = r->last.clear;
        at = clear > best ? i : at;
        best = fmax(best, clear);
        if (r->q->options.settings.verbose)
            fprintf(stderr, "%s: %.2f %% of clear answers\n", harder[i].name, 100 * clear);
        advance(r, harder[i].rounded ? ROUNDED_WORK : 1);
    }
    c->round = harder[at].rounded;
    c->kept = lists[harder[at].kept];
    for (int k = 0; k < KEPT_LISTS; k++)
        if (k != harder[at].kept)
            free(lists[k].index);
    return status;
}

/* ---- --effort */

static kept_nodes copy_of(const kept_nodes *kept)
{
    kept_nodes copy = {0};
    for (size_t i = 0; i < kept->count; i++)
        kept_nodes_add(&copy, kept->index[i]);
    return copy;
}

/* Nothing is gained on a model that gives the float one's outputs exactly. */
static bool gains(const race *r, const nearness_to_float *before, double least)
{
    return r->last.sqnr_db - before->sqnr_db >= least;
}

/* What is kept becomes this, where that is so much nearer to float, of a file that is no longer by
 * more than a hundredth of the float one's. r->last and r->bytes are of what is kept, and stay so.
 */
static int try_kept(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                    kept_nodes *kept, double least_gain, const char *name, choice *c)
{
    const nearness_to_float before = r->last;
    const size_t bytes = r->bytes;
    size_t floats = 0;
    int status = run_kept(r, options, ranges, kept);
    tell(r, name);
    if (status == 0 && gains(r, &before, least_gain) &&
        ort_model_written_bytes(r->q->original, &floats, NULL) == ORT_OK &&
        r->bytes <= bytes + floats / FLOATS_PART) {
        const kept_nodes fewer = c->kept;
        c->kept = *kept;
        *kept = fewer;
    } else {
        r->last = before;
        r->bytes = bytes;
    }
    return status;
}

typedef int add_kept_fn(race *r, ort_quantizer *quantizer, kept_nodes *kept);

/* Small tables make little of a file, and a row of bytes has what it looks up to eight bits. */
static int add_tables(race *r, ort_quantizer *quantizer, kept_nodes *kept)
{
    (void)r;
    guard_tables(quantizer, kept);
    return 0;
}

/* However near the model is, products that hold little and harm most. */
static int add_harmful(race *r, ort_quantizer *quantizer, kept_nodes *kept)
{
    return guard_choose(&r->t, quantizer, false, kept);
}

static int try_also(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                    add_kept_fn *add, double least_gain, const char *name, choice *c)
{
    ort_quantizer *quantizer = NULL;
    kept_nodes kept = copy_of(&c->kept);
    int status = open_quantizer(r->q, options, ranges, &quantizer);
    if (status == 0)
        status = add(r, quantizer, &kept);
    ort_quantizer_free(quantizer);
    if (status == 0 && kept.count > c->kept.count)
        status = try_kept(r, options, ranges, &kept, least_gain, name, c);
    free(kept.index);
    return status;
}

static void drop(kept_nodes *kept, size_t node)
{
    size_t left = 0;
    for (size_t i = 0; i < kept->count; i++)
        if (kept->index[i] != node)
            kept->index[left++] = kept->index[i];
    kept->count = left;
}

/* Without each of these nodes in turn, unless the model is further from float then than before. */
static int drop_all(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                    const kept_nodes *nodes, const nearness_to_float *before, kept_nodes *kept)
{
    int status = 0;
    for (size_t i = 0; i < nodes->count && status == 0; i++) {
        kept_nodes fewer = copy_of(kept);
        drop(&fewer, nodes->index[i]);
        if (fewer.count < kept->count)
            status = run_kept(r, options, ranges, &fewer);
        if (fewer.count < kept->count)
            tell(r, "a recurrent layer on codes again, tables in float16");
        if (status == 0 && fewer.count < kept->count && gains(r, before, 0))
            drop(kept, nodes->index[i]);
        free(fewer.index);
    }
    return status;
}

/* Tables in float16 may bring more than codes in some of the recurrent layers cost that are kept:
 * as near a model, of a smaller file. */
static int try_codes_again(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                           choice *c)
{
    const nearness_to_float before = r->last;
    const size_t bytes = r->bytes;
    ort_quantizer *quantizer = NULL;
    kept_nodes kept = copy_of(&c->kept), recurrent = {0};
    int status = open_quantizer(r->q, options, ranges, &quantizer);
    if (status == 0) {
        guard_tables(quantizer, &kept);
        guard_recurrent(quantizer, &recurrent);
    }
    ort_quantizer_free(quantizer);
    const size_t all = kept.count;
    if (all > c->kept.count)
        status = drop_all(r, options, ranges, &recurrent, &before, &kept);
    r->last = before;
    r->bytes = bytes;
    if (status == 0 && kept.count < all)
        status = try_kept(r, options, ranges, &kept, 0,
                          "tables in float16, fewer recurrent layers in float", c);
    free(kept.index);
    free(recurrent.index);
    return status;
}

static int try_more(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                    choice *c)
{
    int status = run_kept(r, options, ranges, &c->kept);
    if (status == 0)
        status = try_also(r, options, ranges, add_tables, table_db, "tables in float16", c);
    if (status == 0)
        status = try_codes_again(r, options, ranges, c);
    advance(r, 1);
    if (status == 0 && r->best.sqnr_db >= near_db)
        status = try_also(r, options, ranges, add_harmful, harmful_db, "harmful nodes in float",
                          c);
    return status;
}

/* Are all nodes of a kind in float, besides those that are, worth it? */
static int try_group(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                     const guard_group *group, choice *c)
{
    const nearness_to_float before = r->last;
    ort_quantizer *quantizer = NULL;
    kept_nodes kept = copy_of(&c->kept);
    int status = open_quantizer(r->q, options, ranges, &quantizer);
    if (status == 0)
        status = group->add(r->q, quantizer, &kept);
    const bool fits = status == 0 && kept.count > c->kept.count &&
                      guard_percent(quantizer, &kept) <= harmful_percent;
    ort_quantizer_free(quantizer);
    if (fits) {
        status = run_kept(r, options, ranges, &kept);
        tell(r, group->name);
    }
    if (status == 0 && gains(r, &before, guard_least_gain(group))) {
        const kept_nodes fewer = c->kept;
        c->kept = kept;
        kept = fewer;
    } else {
        r->last = before;
    }
    free(kept.index);
    return status;
}

/* Unless the model is as near to float as can be asked for with all that was chosen. */
static int try_groups(race *r, const ort_quantize_options *options, const ort_ranges *ranges,
                      choice *c)
{
    int status = run_kept(r, options, ranges, &c->kept);
    tell(r, "as chosen");
    for (size_t i = 0; i < GUARD_GROUPS && status == 0; i++) {
        if (r->last.sqnr_db < nearest_db)
            status = try_group(r, options, ranges, &guard_groups[i], c);
        advance(r, 1);
    }
    return status;
}

/* Made-up samples have no clear answers; what options say isn't changed. */
static bool may_ask_for_more(const quantize_options *o)
{
    return o->observer == NULL && o->keep_sensitive < 0 && o->random == NULL && !o->adaround;
}

static bool asks_for_more(const race *r)
{
    return r->best.clear < least_clear && may_ask_for_more(&r->q->options);
}

/* If all of it comes to that. */
static double most_work(const quantizing *q)
{
    const quantize_options *o = &q->options;
    double work = o->observer == NULL ? sizeof observers / sizeof *observers + ANEW_WORK : 1;
    if (keep_sensitive(q) > 0)
        work += 1 + ALONE_WORK;
    for (size_t i = 0; i < sizeof harder / sizeof *harder && may_ask_for_more(o); i++)
        work += (harder[i].rounded ? ROUNDED_WORK : 1) +
                (harder[i].kept == HARMFUL ? ALONE_WORK : 0);
    return work + (o->effort ? GUARD_GROUPS + 1 : 0);
}

int choose(quantizing *q, const ort_quantize_options *options, ort_ranges **ranges, choice *c)
{
    race r = {.q = q, .inside = true, .gain = CHOICE_CHANCE_DB, .work = most_work(q)};
    ort_quantize_options own = *options;
    own.correct_biases = own.adaptive_rounding = false;
    progress_whole(&q->whole, "choosing", is_quiet(q));
    int status = try_observers(&r, &own, *ranges, c);
    own.observer = c->observer;
    if (status == 0 && q->options.observer == NULL && !own.equalize && isfinite(r.best.sqnr_db))
        status = try_equalized(&r, &own, ranges, c);
    advance(&r, q->options.observer == NULL ? ANEW_WORK : 0);
    own.equalize = c->equalize = own.equalize || c->equalize;
    if (status == 0 && keep_sensitive(q) > 0 &&
        (r.best.sqnr_db < nearest_db || q->options.effort))
        status = try_recurrent(&r, &own, *ranges, c);
    const bool more = q->options.effort && q->options.keep_sensitive < 0;
    if (status == 0 && keep_sensitive(q) > 0 &&
        r.best.sqnr_db < (more ? near_db : nearest_db))
        status = try_float_nodes(&r, &own, *ranges, c);
    if (status == 0 && more)
        status = try_more(&r, &own, *ranges, c);
    advance(&r, keep_sensitive(q) > 0 ? 1 + ALONE_WORK : 0);
    if (status == 0 && more)
        status = try_groups(&r, &own, *ranges, c);
    if (status == 0 && asks_for_more(&r))
        status = try_answers(&r, &own, *ranges, c);
    else if (status == 0 && may_ask_for_more(&q->options) && r.best.sqnr_db < near_db) {
        own.correct_biases = options->correct_biases;
        status = try_rounded(&r, &own, *ranges, c);
    }
    progress_end(&q->whole);
    leave(&r);
    return status;
}

/* prove.c - is a model faster with what was measured of a device than as shipped? Times of single
 * kernels don't tell: caches, neighbours and the order of launches aren't those of a run.
 *
 * Two sessions run by turns, and each pair of runs gives a ratio. It is decided by the interval
 * (99 %) of the ratios' median, which needs no shape of their distribution: a busy moment makes a
 * few ratios wrong, not the median. Looks are far apart, as each is one more chance to be misled.
 * Two sessions of equal settings may differ by where their memory lies: less than a hundredth is
 * nothing.
 */
#include <math.h>
#include <stdlib.h>

#include "profile_tool.h"

enum { LEAST_PAIRS = 12, MOST_PAIRS = 4000 };

typedef struct proving {
    ort_binding *side[2]; /* tuned, as shipped */
    double ms[2][MOST_PAIRS];
    double ratio[MOST_PAIRS];
    int pairs;
} proving;

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *numbers, int count)
{
    double *sorted = tool_alloc((size_t)count * sizeof *sorted);
    for (int i = 0; i < count; i++)
        sorted[i] = numbers[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_number);
    double middle = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
    free(sorted);
    return middle;
}

static void judge(const proving *p, tune_proof *proof)
{
    double sorted[MOST_PAIRS];
    int reach = (int)ceil(2.576 * sqrt(p->pairs) / 2), middle = p->pairs / 2;
    for (int i = 0; i < p->pairs; i++)
        sorted[i] = p->ratio[i];
    qsort(sorted, (size_t)p->pairs, sizeof *sorted, by_number);
    int low = middle - reach - 1, high = middle + reach;
    proof->low = sorted[low > 0 ? low : 0];
    proof->high = sorted[high < p->pairs ? high : p->pairs - 1];
    proof->ratio = median(p->ratio, p->pairs);
    proof->tuned_ms = median(p->ms[0], p->pairs);
    proof->shipped_ms = median(p->ms[1], p->pairs);
    proof->pairs = p->pairs;
}

static ort_status run_pair(proving *p, const ort_run_options *how, ort_error *err)
{
    for (int i = 0; i < 2; i++) {
        int side = (p->pairs + i) % 2;
        double begin = profile_now_s();
        ort_status status = ort_binding_run(p->side[side], how, err);
        if (status != ORT_OK)
            return status;
        p->ms[side][p->pairs] = (profile_now_s() - begin) * 1e3;
    }
    p->ratio[p->pairs] = p->ms[0][p->pairs] / p->ms[1][p->pairs];
    p->pairs++;
    return ORT_OK;
}

static ort_status run_pairs(proving *p, const profile_options *o, tune_proof *proof,
                            ort_error *err)
{
    const ort_run_options how = {.size = sizeof how, .timeout_s = o->settings.timeout};
    double seconds = o->seconds > 0 ? o->seconds : 10, begin;
    ort_status status = ORT_OK;
    progress bar;
    for (int i = 0; i < 4 && status == ORT_OK; i++) /* the first two of each aren't kept */
        status = ort_binding_run(p->side[i % 2], &how, err);
    progress_begin(&bar, "comparing", o->settings.no_progress || o->settings.quiet);
    begin = profile_now_s();
    for (int look = LEAST_PAIRS; status == ORT_OK;) {
        double share = (profile_now_s() - begin) / seconds;
        bool last = p->pairs == MOST_PAIRS || (share >= 1 && p->pairs >= LEAST_PAIRS);
        if (last || p->pairs == look) {
            judge(p, proof);
            look += look / 2;
            if (last || proof->high < PROFILE_WORTH || proof->low > PROFILE_WORTH)
                break;
        }
        progress_share(&bar, (uint64_t)p->pairs, share);
        status = run_pair(p, &how, err);
    }
    progress_end(&bar);
    return status;
}

/* A session with this list of providers, bound to the inputs. */
static ort_status open_side(const prove_setup *setup, const char *list, ort_session **session,
                            ort_binding **binding, ort_error *err)
{
    ort_session_options options;
    settings_session_options(&setup->options->settings, &options);
    options.providers = list;
    options.strict = true;
    ort_status status = ort_session_new(setup->env, setup->model, &options, session, err);
    return status == ORT_OK ? profile_bind(*session, setup->inputs, binding, err) : status;
}

int profile_prove(const prove_setup *setup, tune_proof *proof)
{
    ort_session *sessions[2] = {NULL, NULL};
    ort_error err = {0};
    ort_status status = ORT_OK;
    proving *p = tool_alloc(sizeof *p);
    *p = (proving){.pairs = 0};
    for (int i = 0; i < 2 && status == ORT_OK; i++)
        status = open_side(setup, setup->lists[i], &sessions[i], &p->side[i], &err);
    if (status == ORT_OK)
        status = run_pairs(p, setup->options, proof, &err);
    for (int i = 0; i < 2; i++) {
        ort_binding_free(p->side[i]);
        ort_session_free(sessions[i]);
    }
    free(p);
    return status == ORT_OK ? 0 : tool_fail_in(setup->label, &err);
}

/* trial_judge.c - a model held against float on every sample there is, as the report will do, so
 * that what a search takes for good passes the gates afterwards. The float model runs along: its
 * answers to all samples may be more than memory holds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evaluation.h"
#include "trial.h"

typedef struct judging {
    const trial *t;
    ort_session *sessions[SIDES];
    ort_value **out[SIDES];
    trial_tally *tallies;
    ort_tensors *labels; /* or NULL */
    int64_t labelled, correct[SIDES];
} judging;

/* Of the first output that tells classes; what doesn't fit is told by the report. */
static void count_correct(judging *j)
{
    const ort_value *labels = ort_tensors_value(j->labels, 0);
    size_t k = 0;
    while (k < j->t->outputs && labels_classes(j->out[FLOAT_SIDE][k]) == 0)
        k++;
    if (k == j->t->outputs)
        return;
    int64_t classes = labels_classes(j->out[FLOAT_SIDE][k]);
    int64_t rows = ort_value_count(j->out[FLOAT_SIDE][k]) / classes;
    if (ort_value_count(j->out[INTEGER_SIDE][k]) != rows * classes)
        return;
    for (int64_t r = 0; r < rows && j->labelled < ort_value_count(labels); r++, j->labelled++) {
        int64_t label = (int64_t)ort_value_get_double(labels, j->labelled);
        for (int s = 0; s < SIDES; s++)
            j->correct[s] += labels_said(j->out[s][k], r, classes) == label;
    }
}

static ort_status run_sides(judging *j, ort_value *const *inputs, ort_error *err)
{
    ort_status status = ORT_OK;
    for (int s = 0; s < SIDES && status == ORT_OK; s++) {
        memset(j->out[s], 0, j->t->outputs * sizeof *j->out[s]);
        status = trial_session_run(j->t, j->sessions[s], inputs, j->out[s], err);
    }
    return status;
}

static ort_status judge_sample(void *arg, ort_value *const *inputs, size_t count, ort_error *err)
{
    judging *j = arg;
    ort_status status = run_sides(j, inputs, err);
    (void)count;
    if (status == ORT_OK && trial_add(j->t, j->tallies, j->out[FLOAT_SIDE],
                                      j->out[INTEGER_SIDE]) != 0)
        status = ORT_ERROR_DATA;
    if (status == ORT_OK && j->labels != NULL)
        count_correct(j);
    for (int s = 0; s < SIDES; s++)
        for (size_t k = 0; k < j->t->outputs; k++) {
            ort_value_free(j->out[s][k]);
            j->out[s][k] = NULL;
        }
    return status;
}

static int open_judging(judging *j, ort_model *model)
{
    const trial *t = j->t;
    int status = labels_read(t->q->options.labels, &j->labels);
    for (int s = 0; s < SIDES; s++) {
        j->out[s] = tool_alloc((t->outputs + 1) * sizeof *j->out[s]);
        memset(j->out[s], 0, t->outputs * sizeof *j->out[s]);
        if (status == 0)
            status = trial_session(t, s == FLOAT_SIDE ? t->q->original : model, &j->sessions[s]);
    }
    j->tallies = trial_tallies(t);
    return status;
}

int trial_judge(const trial *t, ort_model *model, nearness_to_float *near)
{
    judging j = {.t = t};
    if (t->samples == t->total && t->q->options.labels == NULL)
        return trial_run(t, model, near);
    int status = open_judging(&j, model);
    if (status == 0)
        status = each_sample(t->q, "comparing", judge_sample, &j);
    trial_worst(t, j.tallies, near);
    if (j.labelled > 0)
        near->drop = (double)(j.correct[FLOAT_SIDE] - j.correct[INTEGER_SIDE]) /
                     (double)j.labelled;
    for (int s = 0; s < SIDES; s++) {
        ort_session_free(j.sessions[s]);
        free(j.out[s]);
    }
    ort_tensors_free(j.labels);
    free(j.tallies);
    return status;
}

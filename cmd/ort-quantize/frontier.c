/* frontier.c - points of a search: measured, ordered, as a table and JSON. */
#include "frontier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearness.h"
#include "common/table.h"

/* ---- measuring */

/* The best of runs on the first sample, with the settings that the user gave: models are timed one
 * after another, and what else the machine does meanwhile must not decide. */
static int time_model(const trial *t, ort_model *model, double *best_ms)
{
    enum { RUNS = 25, WARM = 2, MOST_MS = 1500 };
    ort_session_options options;
    ort_session *session = NULL;
    ort_error err = {0};
    double begin = tool_now_ms();
    ort_value **out = tool_alloc((t->outputs + 1) * sizeof *out);
    int count = -WARM, status = 0;
    settings_session_options(&t->q->options.settings, &options);
    if (ort_session_new(t->q->env, model, &options, &session, &err) != ORT_OK)
        status = tool_fail_in(t->q->path, &err);
    while (status == 0 && count < RUNS && (count < 5 || tool_now_ms() - begin < MOST_MS)) {
        double before = tool_now_ms();
        memset(out, 0, t->outputs * sizeof *out);
        if (ort_session_run(session, NULL, t->in[0], t->inputs, NULL, out, t->outputs, NULL,
                            &err) != ORT_OK)
            status = tool_fail_in(t->q->path, &err);
        double ms = tool_now_ms() - before;
        *best_ms = count <= 0 || ms < *best_ms ? ms : *best_ms;
        for (size_t i = 0; i < t->outputs; i++)
            ort_value_free(out[i]);
        count++;
    }
    ort_session_free(session);
    free(out);
    return status;
}

bool frontier_holds(const quantizing *q, const nearness_to_float *near)
{
    const quantize_options *o = &q->options;
    return (o->min_sqnr < 0 || near->sqnr_db >= o->min_sqnr) &&
           (o->min_cosine < 0 || near->cosine >= o->min_cosine) &&
           (o->min_top1 < 0 || near->top1 >= o->min_top1) &&
           (o->max_drop < 0 || near->drop <= o->max_drop);
}

int frontier_add(frontier *f, const trial *t, ort_model *model, char *what, char *overrides)
{
    point *p = &f->points[f->count];
    size_t bytes = 0;
    ort_error err = {0};
    *p = (point){.what = what, .overrides = overrides};
    f->count++;
    int status = trial_judge(t, model, &p->near);
    if (status == 0)
        status = time_model(t, model, &p->ms);
    if (status == 0 && ort_model_written_bytes(model, &bytes, &err) != ORT_OK)
        status = tool_fail_in(t->q->path, &err);
    p->bytes = (double)bytes;
    p->holds = frontier_holds(t->q, &p->near) &&
               (t->q->options.max_size == 0 || p->bytes <= (double)t->q->options.max_size);
    return status;
}

static int by_ms(const void *a, const void *b)
{
    const point *x = a, *y = b;
    return x->ms < y->ms ? -1 : x->ms > y->ms;
}

static int by_bytes(const void *a, const void *b)
{
    const point *x = a, *y = b;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes ? 1 : by_ms(a, b);
}

void frontier_choose(frontier *f)
{
    qsort(f->points, f->count, sizeof *f->points, f->by_size ? by_bytes : by_ms);
    f->chosen = -1;
    for (size_t i = f->count; i-- > 0;)
        if (f->points[i].holds)
            f->chosen = (int)i;
}

/* ---- shown */

void frontier_text(const frontier *f, FILE *out)
{
    const bool labelled = f->count > 0 && !isnan(f->points[0].near.drop);
    table *t = labelled ? table_new((const char *const[]){"", ">dB", ">drop", ">time", ">size",
                                                          "nodes", NULL})
                        : table_new((const char *const[]){"", ">dB", ">time", ">size", "nodes",
                                                          NULL});
    char text[24];
    for (size_t i = 0; i < f->count; i++) {
        const point *p = &f->points[i];
        table_cellf(t, "%c", frontier_mark(f, i));
        table_cell(t, nearness_sqnr(p->near.sqnr_db, text, sizeof text));
        if (labelled)
            table_cellf(t, "%.4f", p->near.drop);
        table_cell(t, text_ms(p->ms));
        table_cell(t, text_bytes(p->bytes));
        table_cell(t, p->what);
    }
    table_print(t, out);
    table_free(t);
    frontier_characters(f, out);
}

static json_object *number(double value)
{
    return isfinite(value) ? json_object_new_double(value) : NULL;
}

json_object *frontier_json(const frontier *f)
{
    json_object *list = json_object_new_array();
    for (size_t i = 0; i < f->count; i++) {
        const point *p = &f->points[i];
        json_object *j = json_object_new_object();
        json_object_object_add(j, "nodes", json_object_new_string(p->what));
        json_object_object_add(j, "sqnr_db", number(p->near.sqnr_db));
        json_object_object_add(j, "cosine", number(p->near.cosine));
        json_object_object_add(j, "top1", number(p->near.top1));
        json_object_object_add(j, "drop", number(p->near.drop));
        json_object_object_add(j, "best_ms", number(p->ms));
        json_object_object_add(j, "written_bytes", json_object_new_int64((int64_t)p->bytes));
        json_object_object_add(j, "holds", json_object_new_boolean(p->holds));
        json_object_object_add(j, "chosen", json_object_new_boolean((int)i == f->chosen));
        json_object_array_add(list, j);
    }
    return list;
}

void frontier_release(frontier *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->points[i].what);
        free(f->points[i].overrides);
    }
}

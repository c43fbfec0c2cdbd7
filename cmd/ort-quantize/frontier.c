/* frontier.c - points of a search: measured, ordered, drawn as a table, as characters, as SVG. */
#include "frontier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearness.h"
#include "common/table.h"
#include "common/whole_file.h"

enum { COLUMNS_OF_PLOT = 56, LINES_OF_PLOT = 12 };

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
           (o->min_top1 < 0 || near->top1 >= o->min_top1);
}

int frontier_add(frontier *f, const trial *t, ort_model *model, char *what, char *overrides)
{
    point *p = &f->points[f->count];
    size_t bytes = 0;
    ort_error err = {0};
    *p = (point){.what = what, .overrides = overrides};
    f->count++;
    int status = trial_run(t, model, &p->near);
    if (status == 0)
        status = time_model(t, model, &p->ms);
    if (status == 0 && ort_model_written_bytes(model, &bytes, &err) != ORT_OK)
        status = tool_fail_in(t->q->path, &err);
    p->bytes = (double)bytes;
    p->holds = frontier_holds(t->q, &p->near);
    return status;
}

static double cost_of(const frontier *f, const point *p)
{
    return f->by_size ? p->bytes : p->ms;
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

/* Exact models have no finite ratio: they stand above the others. */
static double height_of(const frontier *f, const point *p)
{
    double top = 0;
    for (size_t i = 0; i < f->count; i++)
        if (isfinite(f->points[i].near.sqnr_db) && f->points[i].near.sqnr_db > top)
            top = f->points[i].near.sqnr_db;
    return isfinite(p->near.sqnr_db) ? p->near.sqnr_db
           : p->near.sqnr_db > 0     ? top + 10
                                     : 0;
}

/* A place in [0, 1] of each axis. */
static void place_of(const frontier *f, const point *p, double *x, double *y)
{
    double low = INFINITY, high = 0, floor = INFINITY, top = -INFINITY;
    for (size_t i = 0; i < f->count; i++) {
        low = fmin(low, cost_of(f, &f->points[i]));
        high = fmax(high, cost_of(f, &f->points[i]));
        floor = fmin(floor, height_of(f, &f->points[i]));
        top = fmax(top, height_of(f, &f->points[i]));
    }
    *x = high > low ? (cost_of(f, p) - low) / (high - low) : 0;
    *y = top > floor ? (height_of(f, p) - floor) / (top - floor) : 0;
}

static char mark_of(const frontier *f, size_t i)
{
    return (int)i == f->chosen ? '*' : f->points[i].holds ? '+' : 'o';
}

static void plot_characters(const frontier *f, FILE *out)
{
    char grid[LINES_OF_PLOT][COLUMNS_OF_PLOT + 1];
    double x, y;
    memset(grid, ' ', sizeof grid);
    for (size_t i = 0; i < f->count; i++) {
        place_of(f, &f->points[i], &x, &y);
        char *at = &grid[LINES_OF_PLOT - 1 - (int)lround(y * (LINES_OF_PLOT - 1))]
                        [(int)lround(x * (COLUMNS_OF_PLOT - 1))];
        *at = *at == '*' ? '*' : mark_of(f, i);
    }
    fprintf(out, "\ndB\n");
    for (int line = 0; line < LINES_OF_PLOT; line++)
        fprintf(out, "|%.*s\n", COLUMNS_OF_PLOT, grid[line]);
    fprintf(out, "+");
    for (int i = 0; i < COLUMNS_OF_PLOT; i++)
        fputc('-', out);
    fprintf(out, " %s\n* chosen  + holds the gates  o does not\n", f->by_size ? "size" : "time");
}

void frontier_text(const frontier *f, FILE *out)
{
    table *t = table_new((const char *const[]){"", ">dB", ">time", ">size", "nodes", NULL});
    char text[24];
    for (size_t i = 0; i < f->count; i++) {
        const point *p = &f->points[i];
        table_cellf(t, "%c", mark_of(f, i));
        table_cell(t, nearness_sqnr(p->near.sqnr_db, text, sizeof text));
        table_cell(t, text_ms(p->ms));
        table_cell(t, text_bytes(p->bytes));
        table_cell(t, p->what);
    }
    table_print(t, out);
    table_free(t);
    plot_characters(f, out);
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
        json_object_object_add(j, "best_ms", number(p->ms));
        json_object_object_add(j, "written_bytes", json_object_new_int64((int64_t)p->bytes));
        json_object_object_add(j, "holds", json_object_new_boolean(p->holds));
        json_object_object_add(j, "chosen", json_object_new_boolean((int)i == f->chosen));
        json_object_array_add(list, j);
    }
    return list;
}

int frontier_plot(const frontier *f, const char *path)
{
    static const char *const colours[] = {"#888", "#2a2", "#c22"};
    enum { WIDTH = 640, HEIGHT = 400, EDGE = 50 };
    ort_out_file *file = NULL;
    char text[24];
    double x, y;
    int status = whole_file_open(&file, path);
    if (status != 0)
        return status;
    FILE *out = ort_out_file_stream(file);
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                 "font-family=\"sans-serif\" font-size=\"12\">\n"
                 "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#000\"/>\n"
                 "<text x=\"%d\" y=\"%d\">dB</text>\n<text x=\"%d\" y=\"%d\">%s</text>\n",
            WIDTH, HEIGHT, EDGE, EDGE, HEIGHT - EDGE, WIDTH - EDGE, EDGE - 10, EDGE - 15,
            WIDTH - EDGE - 20, HEIGHT - EDGE + 25, f->by_size ? "size" : "time");
    for (size_t i = 0; i < f->count; i++) {
        const point *p = &f->points[i];
        place_of(f, p, &x, &y);
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"><title>%s: %s dB, ",
                EDGE + 20 + x * (WIDTH - 2 * EDGE - 40),
                HEIGHT - EDGE - 20 - y * (HEIGHT - 2 * EDGE - 40),
                colours[(int)i == f->chosen ? 2 : p->holds], p->what,
                nearness_sqnr(p->near.sqnr_db, text, sizeof text));
        fprintf(out, "%s, %s</title></circle>\n", text_ms(p->ms), text_bytes(p->bytes));
    }
    fprintf(out, "</svg>\n");
    return whole_file_close(file, 0);
}

void frontier_release(frontier *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->points[i].what);
        free(f->points[i].overrides);
    }
}

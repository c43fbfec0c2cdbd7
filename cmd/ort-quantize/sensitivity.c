/* sensitivity.c - each node alone on codes, all else float; then the nodes one after another on
 * codes, from the least harmful one.
 *
 * Ranges are those of one calibration. What a model costs is its session and a run of a few
 * samples, so that several hundred nodes take minutes at most; of more than that the cumulative
 * numbers are those of groups of neighbours in the list.
 */
#include "sensitivity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/look.h"
#include "common/nearness.h"
#include "common/screen.h"
#include "trial.h"

/* ---- nodes */

static bool can_be_taken(const char *part)
{
    return !strcmp(part, "product") || !strcmp(part, "step") || !strcmp(part, "table") ||
           !strcmp(part, "weights");
}

int harm_nodes(harm_list *list, const ort_quantizer *quantizer)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    size_t nodes = 0;
    while (ort_quantizer_node(quantizer, nodes, &info))
        nodes++;
    list->rows = tool_alloc((nodes + 1) * sizeof *list->rows);
    list->count = 0;
    for (size_t i = 0; i < nodes; i++)
        if (ort_quantizer_node(quantizer, i, &info) && can_be_taken(info.part))
            list->rows[list->count++] =
                (node_harm){i, info.name, info.op_type, info.part, NAN, NAN};
    return list->count > 0 ? 0
                           : tool_error(ORT_ERROR_MODEL, "no node of the model computes on codes");
}

static int by_harm(const void *a, const void *b)
{
    const node_harm *x = a, *y = b;
    if (x->alone_db < y->alone_db || x->alone_db > y->alone_db)
        return x->alone_db < y->alone_db ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Fills alone_db and orders by it. */
static int harm_alone(harm_list *list, const trial *t, ort_quantizer *quantizer)
{
    ort_error err = {0};
    int status = 0;
    progress_begin(&t->q->progress, "nodes alone", is_quiet(t->q));
    for (size_t i = 0; i < list->count && status == 0; i++) {
        ort_model *model = NULL;
        nearness_to_float near = {0};
        if (ort_quantizer_apply_alone(quantizer, list->rows[i].index, &model, &err) != ORT_OK)
            status = tool_fail_in(t->q->path, &err);
        if (status == 0)
            status = trial_run(t, model, &near);
        list->rows[i].alone_db = near.sqnr_db;
        ort_model_free(model);
        progress_step(&t->q->progress, i + 1, list->count);
    }
    progress_end(&t->q->progress);
    qsort(list->rows, list->count, sizeof *list->rows, by_harm);
    return status;
}

/* ---- one after another */

/* Which nodes compute on codes, as one number: corridors may take others along, or nobody. */
static uint64_t placed(const ort_quantizer *quantizer)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    uint64_t sum = 14695981039346656037u; /* FNV-1a, of parts */
    for (size_t i = 0; ort_quantizer_node(quantizer, i, &info); i++)
        sum = (sum ^ (uint64_t)(unsigned char)info.part[0] ^ (uint64_t)(info.part[1] == 'l')) *
              1099511628211u;
    return sum;
}

static int keep(const quantizing *q, ort_quantizer *quantizer, size_t index, bool stays)
{
    ort_error err = {0};
    return ort_quantizer_keep_float(quantizer, index, stays, &err) == ORT_OK
               ? 0
               : tool_fail_in(q->path, &err);
}

static int measure(const trial *t, ort_quantizer *quantizer, double *db)
{
    ort_model *model = NULL;
    ort_error err = {0};
    nearness_to_float near = {0};
    int status = ort_quantizer_apply(quantizer, &model, &err) == ORT_OK
                     ? trial_run(t, model, &near)
                     : tool_fail_in(t->q->path, &err);
    *db = near.sqnr_db;
    ort_model_free(model);
    return status;
}

static int harm_cumulative(harm_list *list, const trial *t, ort_quantizer *quantizer)
{
    enum { MOST_RUNS = 256 };
    size_t stride = (list->count + MOST_RUNS - 1) / MOST_RUNS;
    uint64_t before = 0;
    double db = NAN;
    int status = 0;
    for (size_t i = 0; i < list->count && status == 0; i++)
        status = keep(t->q, quantizer, list->rows[i].index, true);
    progress_begin(&t->q->progress, "nodes together", is_quiet(t->q));
    for (size_t i = list->count; i-- > 0 && status == 0;) {
        status = keep(t->q, quantizer, list->rows[i].index, false);
        uint64_t now = placed(quantizer);
        if (status == 0 && now != before && (i % stride == 0 || i + 1 == list->count)) {
            status = measure(t, quantizer, &db);
            before = now;
        }
        list->rows[i].cumulative_db = i % stride == 0 || i + 1 == list->count ? db : NAN;
        progress_step(&t->q->progress, list->count - i, list->count);
    }
    progress_end(&t->q->progress);
    return status;
}

/* ---- the list */

/* How many rows have to stay float for --min-sqnr: those before the first with which it holds. */
static size_t needed(const harm_list *list, double min_db)
{
    size_t i = 0;
    while (i < list->count && !(list->rows[i].cumulative_db >= min_db))
        i++;
    return i;
}

static const char *db_text(double db, char *text, size_t room)
{
    return isnan(db) ? "-" : nearness_sqnr(db, text, room);
}

static void print_text(const quantizing *q, const harm_list *list)
{
    char alone[24], together[24];
    const bool gated = q->options.min_sqnr >= 0;
    size_t stay = gated ? needed(list, q->options.min_sqnr) : list->count;
    printf("# node\toperator\tdB alone\tdB with all below it\n");
    if (gated)
        printf("# --min-sqnr %g holds where the first %zu stay float; the others are comments\n",
               q->options.min_sqnr, stay);
    for (size_t i = 0; i < list->count; i++) {
        const node_harm *row = &list->rows[i];
        screen_printf(stdout, "%s%s\t%s\t%s\t%s\n", i < stay ? "" : "#", row->name, row->op_type,
                      db_text(row->alone_db, alone, sizeof alone),
                      db_text(row->cumulative_db, together, sizeof together));
    }
}

static json_object *number(double value)
{
    return isfinite(value) ? json_object_new_double(value) : NULL;
}

static void print_json(const trial *t, const harm_list *list)
{
    json_object *j = json_object_new_object(), *rows = json_object_new_array();
    const quantizing *q = t->q;
    json_object_object_add(j, "schema", json_object_new_string("ort-quantize/1"));
    json_object_object_add(j, "model", json_object_new_string(q->path));
    json_object_object_add(j, "verb", json_object_new_string("static"));
    json_object_object_add(j, "samples", json_object_new_int64((int64_t)t->samples));
    for (size_t i = 0; i < list->count; i++) {
        const node_harm *row = &list->rows[i];
        json_object *r = json_object_new_object();
        json_object_object_add(r, "node", json_object_new_string(row->name));
        json_object_object_add(r, "op_type", json_object_new_string(row->op_type));
        json_object_object_add(r, "part", json_object_new_string(row->part));
        json_object_object_add(r, "alone_db", number(row->alone_db));
        json_object_object_add(r, "cumulative_db", number(row->cumulative_db));
        json_object_array_add(rows, r);
    }
    json_object_object_add(j, "sensitivity", rows);
    json_object_object_add(j, "to_exclude", q->options.min_sqnr < 0 ? NULL
                           : json_object_new_int64((int64_t)needed(list, q->options.min_sqnr)));
    tool_reported();
    printf("%s\n", json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY |
                                                     JSON_C_TO_STRING_SPACED |
                                                     JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(j);
}

int sensitivity(quantizing *q, ort_quantizer *quantizer, size_t total)
{
    harm_list list = {0};
    trial t = {0};
    int status = harm_nodes(&list, quantizer);
    if (status == 0)
        status = trial_open(&t, q, total);
    if (status == 0)
        status = harm_alone(&list, &t, quantizer);
    if (status == 0)
        status = harm_cumulative(&list, &t, quantizer);
    if (status == 0 && q->options.settings.json)
        print_json(&t, &list);
    else if (status == 0)
        print_text(q, &list);
    trial_close(&t);
    free(list.rows);
    return status;
}

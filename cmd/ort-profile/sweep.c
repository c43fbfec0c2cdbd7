/* sweep.c - --sweep: one model at several batch sizes, thread counts, levels or providers, as one
 * table, and where one setting overtakes another.
 *
 * Each cell is a session of its own with made-up inputs of its own. Cells are measured by turns,
 * twice, and the lower median of a cell counts: a busy moment then slows no single one.
 */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/look.h"
#include "common/table.h"
#include "profile_tool.h"

enum { MOST_ROWS = 12, MOST_COLUMNS = 8, ROUNDS = 2, FEWEST_RUNS = 5 };

typedef struct cell {
    double ms;    /* 0: not measured yet */
    char why[300]; /* why there is no time; "" */
} cell;

typedef struct sweep {
    const profile_options *o;
    ort_env *env;
    const char *path, *axis;
    char batch[256]; /* the name of the dimension; "": it is fixed */
    int64_t rows[MOST_ROWS];
    const char *columns[MOST_COLUMNS]; /* lists of providers; one: that of the settings */
    int row_count, column_count;
    cell cells[MOST_ROWS][MOST_COLUMNS];
} sweep;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- what is swept */

/* "float[batch,3,224,224]": the name of the first dimension, unless it is a number. */
static void find_batch(const ort_session *session, char *name, size_t size)
{
    const ort_type_info *type = ort_session_input_count(session) > 0
                                    ? ort_session_input_type(session, 0)
                                    : NULL;
    const char *from = type != NULL ? strchr(type->text, '[') : NULL;
    size_t length = from != NULL ? strcspn(from + 1, ",]") : 0;
    name[0] = '\0';
    if (length > 0 && length < size && strchr("0123456789?", from[1]) == NULL)
        snprintf(name, size, "%.*s", (int)length, from + 1);
}

static void powers(sweep *s, int64_t most)
{
    for (int64_t n = 1; n < most && s->row_count < MOST_ROWS - 1; n *= 2)
        s->rows[s->row_count++] = n;
    s->rows[s->row_count++] = most;
}

static int choose(sweep *s)
{
    const char *name;
    bool providers = !strcmp(s->axis, "provider");
    s->columns[s->column_count++] = s->o->settings.provider;
    if (!strcmp(s->axis, "threads")) {
        powers(s, ort_env_threads(s->env));
    } else if (!strcmp(s->axis, "level")) {
        for (int64_t level = 0; level <= 3; level++)
            s->rows[s->row_count++] = level;
    } else if (*s->batch) {
        powers(s, providers ? 8 : 32);
    } else if (providers) {
        s->rows[s->row_count++] = 1;
    } else {
        return tool_usage("--sweep batch: the first dimension of the first input of %s isn't open",
                          s->path);
    }
    if (!providers)
        return 0;
    s->columns[0] = ort_env_provider_name(s->env, 0);
    for (int i = 1; (name = ort_env_provider_name(s->env, i)) != NULL; i++)
        if (s->column_count < MOST_COLUMNS)
            s->columns[s->column_count++] = name;
    return 0;
}

/* ---- a cell */

static ort_status new_session(const sweep *s, int row, int column, ort_model *model,
                              ort_session **session, ort_error *err)
{
    ort_session_options options;
    char list[200];
    settings_session_options(&s->o->settings, &options);
    if (!strcmp(s->axis, "threads"))
        options.threads = (int)s->rows[row];
    if (!strcmp(s->axis, "level"))
        options.level = (int)s->rows[row];
    /* All that it claims, or the question would be answered by an estimate. */
    snprintf(list, sizeof list, "%s:cost=off,%s", s->columns[column] ? s->columns[column] : "",
             ort_env_provider_name(s->env, 0));
    if (!strcmp(s->axis, "provider"))
        options.providers = column > 0 ? list : s->columns[0];
    options.strict = !strcmp(s->axis, "provider"); /* a device that is missing has no time */
    bool open = *s->batch && (!strcmp(s->axis, "batch") || !strcmp(s->axis, "provider"));
    ort_status status = open ? ort_model_set_dim(model, s->batch, s->rows[row], err) : ORT_OK;
    return status == ORT_OK ? ort_session_new(s->env, model, &options, session, err) : status;
}

static ort_status measure(const sweep *s, ort_binding *binding, double *median, ort_error *err)
{
    double times[1000], begin = 0, limit = s->o->seconds > 0 ? s->o->seconds * 1e3 : 200;
    const ort_run_options how = {.size = sizeof how, .timeout_s = s->o->settings.timeout};
    ort_status status = ORT_OK;
    size_t count = 0;
    for (int64_t i = 0; i <= s->o->warmup && status == ORT_OK; i++)
        status = ort_binding_run(binding, &how, err);
    begin = now_ms();
    while (status == ORT_OK && count < 1000 &&
           (s->o->repeat > 0 ? count < (size_t)s->o->repeat
                             : count < FEWEST_RUNS || now_ms() - begin < limit)) {
        double at = now_ms();
        status = ort_binding_run(binding, &how, err);
        times[count++] = now_ms() - at;
    }
    qsort(times, count, sizeof *times, by_number);
    *median = count > 0 ? times[count / 2] : 0;
    return status;
}

static ort_status run_session(const sweep *s, const ort_session *session, cell *c, ort_error *err)
{
    feed f = {0};
    const string_list none = {0};
    const feed_options from = {.inputs = &s->o->inputs,
                               .random = s->o->random ? s->o->random : "1"};
    size_t count = ort_session_input_count(session);
    ort_value **inputs = tool_alloc((count + 1) * sizeof *inputs);
    ort_binding *binding = NULL;
    double median = 0;
    bool end;
    ort_status status = ORT_OK;
    if (feed_open(&f, &from, session, &none) != 0 || feed_next(&f, inputs, &end) != 0)
        status = ORT_ERROR_DATA; /* which was said */
    if (status == ORT_OK)
        status = ort_binding_new(session, &binding, err);
    for (size_t i = 0; i < count && status == ORT_OK; i++)
        if (inputs[i] != NULL)
            status = ort_binding_set_input(binding, ort_session_input_name(session, i), inputs[i],
                                           err);
    if (status == ORT_OK)
        status = measure(s, binding, &median, err);
    if (status == ORT_OK && (c->ms == 0 || median < c->ms))
        c->ms = median;
    ort_binding_free(binding);
    feed_close(&f);
    free(inputs);
    return status;
}

/* Returns an exit status only where the model itself can't be read. */
static int fill(sweep *s, int row, int column)
{
    cell *c = &s->cells[row][column];
    ort_model *model = NULL;
    ort_session *session = NULL;
    ort_error err = {0};
    int status = settings_load_model(&s->o->settings, s->env, s->path, LOAD_ALL, &model);
    if (status != 0)
        return status;
    ort_status made = new_session(s, row, column, model, &session, &err);
    if (made == ORT_OK)
        made = run_session(s, session, c, &err);
    if (made != ORT_OK)
        snprintf(c->why, sizeof c->why, "%.299s", err.message[0] ? err.message : "no inputs");
    ort_session_free(session);
    ort_model_free(model);
    return 0;
}

/* ---- what it comes to */

static const char *row_name(const sweep *s)
{
    return !strcmp(s->axis, "provider") ? "batch" : s->axis;
}

static double items(const sweep *s, int row)
{
    return *s->batch && !strcmp(row_name(s), "batch") ? (double)s->rows[row] : 1;
}

/* From which row on the column is faster than the first; -1: never. */
static int overtakes(const sweep *s, int column)
{
    int from = -1;
    for (int r = s->row_count - 1; r >= 0; r--) {
        const cell *own = &s->cells[r][column], *first = &s->cells[r][0];
        if (!(own->ms > 0) || !(first->ms > 0) || own->ms >= first->ms)
            return from;
        from = r;
    }
    return from;
}

/* The first row whose time for an item is within 5 % of the best of all. */
static int enough_of(const sweep *s)
{
    double best = 0;
    for (int r = 0; r < s->row_count; r++) {
        double each = s->cells[r][0].ms / items(s, r);
        best = each > 0 && (best == 0 || each < best) ? each : best;
    }
    for (int r = 0; r < s->row_count; r++)
        if (s->cells[r][0].ms > 0 && s->cells[r][0].ms / items(s, r) <= best * 1.05)
            return r;
    return -1;
}

static char *crossover(const sweep *s)
{
    char *text = tool_strdup("");
    int row = enough_of(s);
    for (int c = 1; c < s->column_count; c++) {
        int from = overtakes(s, c);
        const cell *last = &s->cells[s->row_count - 1][c];
        char *more = *last->why ? tool_printf("%s%s: %s\n", text, s->columns[c], last->why)
                     : from < 0 ? tool_printf("%s%s is never faster than %s\n", text, s->columns[c],
                                              s->columns[0])
                                : tool_printf("%s%s is faster than %s from %s %lld on\n", text,
                                              s->columns[c], s->columns[0], row_name(s),
                                              (long long)s->rows[from]);
        free(text);
        text = more;
    }
    if (s->column_count == 1 && row >= 0) {
        free(text);
        text = tool_printf("crossover: %s %lld; beyond it nothing is won (5 %%)\n", s->axis,
                           (long long)s->rows[row]);
    }
    return text;
}

static void print_text(const sweep *s)
{
    const char *heads[MOST_COLUMNS * 2 + 2] = {0};
    char names[MOST_COLUMNS * 2 + 1][220];
    int count = 0;
    bool many = items(s, s->row_count - 1) > 1;
    snprintf(names[count++], sizeof names[0], ">%s", row_name(s));
    for (int c = 0; c < s->column_count; c++) {
        snprintf(names[count++], sizeof names[0], ">%.190s%sms",
                 s->column_count > 1 ? s->columns[c] : "", s->column_count > 1 ? " " : "");
        if (many)
            snprintf(names[count++], sizeof names[0], ">ms/item");
    }
    for (int i = 0; i < count; i++)
        heads[i] = names[i];
    table *t = table_new(heads);
    for (int r = 0; r < s->row_count; r++) {
        table_cellf(t, "%lld", (long long)s->rows[r]);
        for (int c = 0; c < s->column_count; c++) {
            const cell *x = &s->cells[r][c];
            table_cellf(t, x->ms > 0 ? "%.4g" : "-", x->ms);
            if (many)
                table_cellf(t, x->ms > 0 ? "%.4g" : "-", x->ms / items(s, r));
        }
    }
    table_print(t, stdout);
    table_free(t);
    char *text = crossover(s);
    printf("%s", text);
    free(text);
}

static void print_json(const sweep *s)
{
    json_object *j = json_object_new_object(), *list = json_object_new_array();
    tool_reported();
    json_object_object_add(j, "schema", json_object_new_string("ort-profile/1"));
    json_object_object_add(j, "model", json_object_new_string(s->path));
    json_object_object_add(j, "sweep", json_object_new_string(s->axis));
    for (int r = 0; r < s->row_count; r++)
        for (int c = 0; c < s->column_count; c++) {
            const cell *x = &s->cells[r][c];
            json_object *one = json_object_new_object();
            json_object_object_add(one, row_name(s), json_object_new_int64(s->rows[r]));
            if (s->column_count > 1)
                json_object_object_add(one, "provider", json_object_new_string(s->columns[c]));
            json_object_object_add(one, "p50_ms", x->ms > 0 ? json_object_new_double(x->ms) : NULL);
            if (*x->why)
                json_object_object_add(one, "problem", json_object_new_string(x->why));
            json_object_array_add(list, one);
        }
    json_object_object_add(j, "cells", list);
    char *text = crossover(s);
    json_object_object_add(j, "crossover", json_object_new_string(text));
    free(text);
    printf("%s\n", json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY |
                                                         JSON_C_TO_STRING_SPACED |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(j);
}

/* A session of the settings alone tells which dimensions are open. */
static int look(sweep *s)
{
    ort_session_options options;
    ort_model *model = NULL;
    ort_session *session = NULL;
    ort_error err = {0};
    int status = settings_load_model(&s->o->settings, s->env, s->path, LOAD_ALL, &model);
    if (status != 0)
        return status;
    settings_session_options(&s->o->settings, &options);
    options.providers = NULL;
    if (ort_session_new(s->env, model, &options, &session, &err) != ORT_OK)
        status = tool_fail_in(s->path, &err);
    else
        find_batch(session, s->batch, sizeof s->batch);
    ort_session_free(session);
    ort_model_free(model);
    return status;
}

int profile_sweep(const profile_options *o, const char *path)
{
    sweep s = {.o = o, .path = path, .axis = o->sweep};
    int status = settings_new_env(&o->settings, &s.env);
    if (status == 0)
        status = look(&s);
    if (status == 0)
        status = choose(&s);
    for (int round = 0; round < ROUNDS; round++)
        for (int r = 0; r < s.row_count; r++)
            for (int c = 0; c < s.column_count && status == 0; c++)
                if (!*s.cells[r][c].why)
                    status = fill(&s, r, c);
    for (int r = 0; s.column_count == 1 && r < s.row_count && status == 0; r++)
        if (*s.cells[r][0].why)
            status = tool_error(ORT_ERROR_RUN, "%s %lld: %s", s.axis, (long long)s.rows[r],
                                s.cells[r][0].why);
    if (status == 0 && o->settings.json)
        print_json(&s);
    else if (status == 0)
        print_text(&s);
    ort_env_free(s.env);
    return status;
}

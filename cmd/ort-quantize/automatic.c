/* automatic.c - a search of codes by node: how much noise each kind of codes makes with a node
 * alone, what it costs there, and from the cheapest assignment on always the step that takes away
 * most noise for its cost (Shoham and Gersho, "Efficient bit allocation for an arbitrary set of
 * quantizers", IEEE Trans. ASSP 36, 1988; noise of nodes is taken to add up). What this guesses is
 * measured: the first assignment on the way that holds the gates is found by halving, and models
 * along the way are timed whole.
 */
#include "automatic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/look.h"
#include "common/whole_file.h"
#include "frontier.h"
#include "sensitivity.h"

typedef enum level {
    LEVEL_INT4,
    LEVEL_INT8,
    LEVEL_INT16,
    LEVEL_FLOAT16,
    LEVEL_FLOAT,
    LEVELS
} level;

static const struct {
    const char *name, *key, *value; /* the rule; NULL: what the options say */
} levels[LEVELS] = {
    {"int4 weights", "weights", "int4"},
    {"int8", NULL, NULL},
    {"int16", "type", "uint16"},
    {"float16", "type", "float16"},
    {"float", "type", "float"},
};

typedef struct candidate {
    char *name;
    double noise[LEVELS]; /* of the outputs, by their signal; infinite: there is no such form */
    double cost[LEVELS];  /* milliseconds or bytes */
    level first;          /* where the way begins */
} candidate;

typedef struct move {
    size_t node;
    level to;
} move;

typedef struct search {
    quantizing *q;
    ort_quantizer *quantizer;
    trial trial;
    candidate *nodes;
    size_t count;
    move *moves;
    size_t move_count;
    frontier *found;
    progress models; /* around that of the samples of each */
} search;

/* ---- assignments */

static level level_at(const search *s, size_t node, size_t moves)
{
    level l = s->nodes[node].first;
    for (size_t i = 0; i < moves; i++)
        l = s->moves[i].node == node ? s->moves[i].to : l;
    return l;
}

static void add_rule(json_object *list, const char *of, const char *name, level l)
{
    json_object *rule = json_object_new_object();
    json_object_object_add(rule, of, json_object_new_string(name));
    json_object_object_add(rule, levels[l].key, json_object_new_string(levels[l].value));
    json_object_array_add(list, rule);
}

/* Takes the list. */
static char *overrides_of(json_object *list)
{
    json_object *j = json_object_new_object();
    json_object_object_add(j, "schema", json_object_new_string("ort-overrides/1"));
    json_object_object_add(j, "overrides", list);
    char *text = tool_strdup(json_object_to_json_string_ext(
        j, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(j);
    return text;
}

static char *assignment(const search *s, size_t moves, char **what)
{
    json_object *list = json_object_new_array();
    size_t counts[LEVELS] = {0};
    for (size_t i = 0; i < s->count; i++) {
        level l = level_at(s, i, moves);
        counts[l]++;
        if (levels[l].key)
            add_rule(list, "node", s->nodes[i].name, l);
    }
    *what = tool_strdup("");
    for (int l = 0; l < LEVELS; l++) {
        if (counts[l] == 0)
            continue;
        char *longer = tool_printf("%s%s%zu %s", *what, **what ? ", " : "", counts[l],
                                   levels[l].name);
        free(*what);
        *what = longer;
    }
    return overrides_of(list);
}

static int make(const search *s, const char *overrides, ort_model **model)
{
    ort_error err = {0};
    *model = NULL;
    return ort_quantizer_override(s->quantizer, overrides, &err) == ORT_OK &&
                   ort_quantizer_apply(s->quantizer, model, &err) == ORT_OK
               ? 0
               : tool_fail_in(s->q->path, &err);
}

/* ---- noise and bytes of each node alone */

static bool index_of(const search *s, const char *name, size_t *index)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    for (*index = 0; ort_quantizer_node(s->quantizer, *index, &info); ++*index)
        if (!strcmp(info.name, name))
            return true;
    return false;
}

static int take_alone(search *s, candidate *c, level l)
{
    ort_model *model = NULL;
    ort_error err = {0};
    nearness_to_float near;
    size_t index, bytes = 0;
    if (!index_of(s, c->name, &index))
        return 0;
    if (ort_quantizer_apply_alone(s->quantizer, index, &model, &err) != ORT_OK ||
        ort_model_written_bytes(model, &bytes, &err) != ORT_OK) {
        ort_model_free(model);
        return tool_fail_in(s->q->path, &err);
    }
    int status = trial_run(&s->trial, model, &near);
    c->noise[l] = pow(10, -near.sqnr_db / 10);
    c->cost[l] = (double)bytes;
    ort_model_free(model);
    return status;
}

static char *all_at(level l)
{
    json_object *list = json_object_new_array();
    if (levels[l].key)
        add_rule(list, "operator", "*", l);
    return overrides_of(list);
}

static int take_level(search *s, level l, size_t *done)
{
    ort_error err = {0};
    char *overrides = all_at(l);
    int status = ort_quantizer_override(s->quantizer, overrides, &err) == ORT_OK
                     ? 0
                     : tool_fail_in(s->q->path, &err);
    free(overrides);
    for (size_t i = 0; i < s->count && status == 0; i++) {
        status = take_alone(s, &s->nodes[i], l);
        progress_step(&s->q->progress, ++*done, s->count * LEVEL_FLOAT);
    }
    return status;
}

/* What stays float makes no noise, and has the bytes of the model without any codes. */
static int take_nodes(search *s)
{
    ort_model *model = NULL;
    ort_error err = {0};
    size_t bytes = 0, done = 0;
    int status = 0;
    progress_begin(&s->q->progress, "nodes alone", is_quiet(s->q));
    for (level l = LEVEL_INT4; l < LEVEL_FLOAT && status == 0; l++)
        status = take_level(s, l, &done);
    progress_end(&s->q->progress);
    char *overrides = all_at(LEVEL_FLOAT);
    if (status == 0)
        status = make(s, overrides, &model);
    if (status == 0 && ort_model_written_bytes(model, &bytes, &err) != ORT_OK)
        status = tool_fail_in(s->q->path, &err);
    free(overrides);
    ort_model_free(model);
    for (size_t i = 0; i < s->count; i++) {
        s->nodes[i].noise[LEVEL_FLOAT] = 0;
        s->nodes[i].cost[LEVEL_FLOAT] = (double)bytes;
    }
    return status;
}

/* ---- times of each node, in models that have one kind of codes */

static bool holds_name(const char *joined, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = joined; (at = strstr(at, name)) != NULL; at++)
        if ((at == joined || at[-1] == '+') && (at[length] == '\0' || at[length] == '+'))
            return true;
    return false;
}

static void take_step(search *s, json_object *step, level l)
{
    double ms = number_of(member(step, "spread_ms"), "min"); /* others run beside it */
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(text_of(step, "name"), s->nodes[i].name) ||
            holds_name(text_of(step, "fused_from"), s->nodes[i].name))
            s->nodes[i].cost[l] += ms;
}

static int profile_runs(search *s, const ort_session *session, char **report)
{
    enum { WARM = 3, RUNS = 15 };
    ort_profile *profile = NULL;
    ort_run_options run = ORT_RUN_OPTIONS_INIT;
    ort_error err = {0};
    const trial *t = &s->trial;
    ort_value **out = tool_alloc((t->outputs + 1) * sizeof *out);
    ort_status status = ort_profile_new(session, NULL, &profile, &err);
    run.profile = profile;
    for (int i = 0; i < WARM + RUNS && status == ORT_OK; i++) {
        memset(out, 0, t->outputs * sizeof *out);
        if (i == WARM)
            ort_profile_start(profile);
        status = ort_session_run(session, NULL, t->in[0], t->inputs, NULL, out, t->outputs, &run,
                                 &err);
        for (size_t k = 0; k < t->outputs; k++)
            ort_value_free(out[k]);
    }
    if (status == ORT_OK)
        status = ort_profile_report(profile, NULL, report, &err);
    ort_profile_free(profile);
    free(out);
    return status == ORT_OK ? 0 : tool_fail_in(s->q->path, &err);
}

static int time_level(search *s, level l)
{
    ort_session_options options;
    ort_session *session = NULL;
    ort_model *model = NULL;
    ort_error err = {0};
    char *overrides = all_at(l), *report = NULL;
    int status = make(s, overrides, &model);
    free(overrides);
    settings_session_options(&s->q->options.settings, &options);
    if (status == 0 && ort_session_new(s->q->env, model, &options, &session, &err) != ORT_OK)
        status = tool_fail_in(s->q->path, &err);
    if (status == 0)
        status = profile_runs(s, session, &report);
    for (size_t i = 0; i < s->count; i++)
        s->nodes[i].cost[l] = 0;
    json_object *j = status == 0 ? json_tokener_parse(report) : NULL;
    for (size_t i = 0; i < length_of(member(j, "nodes")); i++)
        take_step(s, json_object_array_get_idx(member(j, "nodes"), i), l);
    json_object_put(j);
    ort_text_free(report);
    ort_session_free(session);
    ort_model_free(model);
    return status;
}

/* Codes that all together take as long as finer ones do are no way to go: mixed with those they
 * would only add what lies at borders. */
static void drop_slow(search *s)
{
    double sums[LEVELS] = {0}, finer;
    for (size_t i = 0; i < s->count; i++)
        for (level l = LEVEL_INT4; l < LEVELS; l++)
            sums[l] += s->nodes[i].cost[l];
    finer = sums[LEVEL_FLOAT];
    for (int l = LEVEL_FLOAT16; l >= LEVEL_INT4; l--) {
        for (size_t i = 0; i < s->count && sums[l] >= finer * 0.9; i++)
            s->nodes[i].noise[l] = INFINITY;
        finer = fmin(finer, sums[l]);
    }
}

/* ---- the way */

static bool is_there(const candidate *c, level l)
{
    return isfinite(c->noise[l]);
}

static level cheapest(const candidate *c)
{
    level best = LEVEL_FLOAT;
    for (level l = LEVEL_INT4; l < LEVELS; l++)
        if (is_there(c, l) && (c->cost[l] < c->cost[best] ||
                               (c->cost[l] <= c->cost[best] && c->noise[l] < c->noise[best])))
            best = l;
    return best;
}

static double slope(const candidate *c, level from, level to)
{
    double less = c->noise[from] - c->noise[to], more = c->cost[to] - c->cost[from];
    return less <= 0 ? -1 : less / fmax(more, 1e-9);
}

static bool next_move(const search *s, const level *now, move *best)
{
    double most = -1;
    for (size_t i = 0; i < s->count; i++)
        for (level l = LEVEL_INT4; l < LEVELS; l++) {
            if (l == now[i] || !is_there(&s->nodes[i], l))
                continue;
            double gain = slope(&s->nodes[i], now[i], l);
            if (gain > most) {
                most = gain;
                *best = (move){i, l};
            }
        }
    return most >= 0;
}

static void make_way(search *s)
{
    level *now = tool_alloc((s->count + 1) * sizeof *now);
    s->moves = tool_alloc((s->count * LEVELS + 1) * sizeof *s->moves);
    for (size_t i = 0; i < s->count; i++)
        now[i] = s->nodes[i].first = cheapest(&s->nodes[i]);
    while (s->move_count < s->count * LEVELS && next_move(s, now, &s->moves[s->move_count])) {
        const move *m = &s->moves[s->move_count++];
        now[m->node] = m->to;
    }
    free(now);
}

/* ---- measured */

static int holds_at(search *s, size_t moves, bool *holds)
{
    ort_model *model = NULL;
    nearness_to_float near;
    char *what, *overrides = assignment(s, moves, &what);
    int status = make(s, overrides, &model);
    if (status == 0)
        status = trial_judge(&s->trial, model, &near);
    *holds = status == 0 && frontier_holds(s->q, &near);
    ort_model_free(model);
    free(what);
    free(overrides);
    return status;
}

static int first_that_holds(search *s, size_t *first)
{
    size_t low = 0, high = s->move_count;
    int status = 0;
    while (low < high && status == 0) {
        bool holds;
        size_t middle = (low + high) / 2;
        status = holds_at(s, middle, &holds);
        if (holds)
            high = middle;
        else
            low = middle + 1;
    }
    *first = high;
    return status;
}

/* Takes both texts. */
static int add_point(search *s, char *overrides, char *what)
{
    ort_model *model = NULL;
    for (size_t i = 0; i < s->found->count; i++)
        if (!strcmp(s->found->points[i].overrides, overrides)) { /* measured already */
            free(overrides);
            free(what);
            return 0;
        }
    int status = make(s, overrides, &model);
    if (status == 0)
        status = frontier_add(s->found, &s->trial, model, what, overrides);
    else {
        free(overrides);
        free(what);
    }
    ort_model_free(model);
    return status;
}

static int measure_way(search *s)
{
    enum { POINTS = 6 };
    size_t first = 0;
    int status = first_that_holds(s, &first);
    progress_begin(&s->models, "models", is_quiet(s->q));
    for (size_t i = 0; i <= POINTS + 3 && status == 0; i++) {
        /* the ends and what lies evenly between; the first that holds, and what is near it */
        size_t at = i <= POINTS         ? i * s->move_count / POINTS
                    : i == POINTS + 1   ? first
                    : i == POINTS + 2   ? first + (s->move_count - first) / 8
                                        : first + (s->move_count - first) / 4;
        char *what, *overrides = assignment(s, at, &what);
        status = add_point(s, overrides, what);
        progress_step(&s->models, i + 1, POINTS + 5);
    }
    if (status == 0) /* what the options alone give */
        status = add_point(s, all_at(LEVEL_INT8), tool_printf("%zu int8", s->count));
    progress_end(&s->models);
    return status;
}

static int begin(search *s, size_t total)
{
    harm_list list = {0};
    int status = harm_nodes(&list, s->quantizer);
    s->nodes = tool_alloc((list.count + 1) * sizeof *s->nodes);
    for (size_t i = 0; i < list.count && status == 0; i++) {
        if (!*list.rows[i].name) /* no rule names it: it has what the options say */
            continue;
        candidate *c = &s->nodes[s->count++];
        *c = (candidate){.name = tool_strdup(list.rows[i].name)};
        for (level l = LEVEL_INT4; l < LEVELS; l++)
            c->noise[l] = INFINITY;
    }
    free(list.rows);
    return status == 0 ? trial_open(&s->trial, s->q, total) : status;
}

static int run_search(search *s, size_t total)
{
    int status = begin(s, total);
    if (status == 0)
        status = take_nodes(s);
    for (level l = LEVEL_INT4; l < LEVELS && status == 0 && !s->found->by_size; l++)
        status = time_level(s, l);
    if (status != 0)
        return status;
    if (!s->found->by_size)
        drop_slow(s);
    make_way(s);
    return measure_way(s);
}

static int tell(const quantizing *q, const frontier *f)
{
    const quantize_options *o = &q->options;
    if (!o->settings.json && !o->settings.quiet)
        frontier_text(f, takes_stdout(o) ? stderr : stdout);
    return o->plot ? frontier_plot(f, o->plot) : 0;
}

int automatic(quantizing *q, ort_quantizer *quantizer, size_t total, char **overrides)
{
    frontier found = {.chosen = -1, .by_size = !strcmp(q->options.automatic, "size"),
                      .gate_db = q->options.min_sqnr};
    search s = {.q = q, .quantizer = quantizer, .found = &found};
    int status = run_search(&s, total);
    if (status == 0) {
        frontier_choose(&found);
        q->frontier = frontier_json(&found);
        status = tell(q, &found);
    }
    if (status == 0 && found.chosen < 0)
        status = tool_error(ORT_ERROR_GATE, "no assignment that was tried holds the gates");
    if (status == 0)
        *overrides = tool_printf("%s\n", found.points[found.chosen].overrides);
    if (status == 0 && q->options.assignment)
        status = whole_file_text(q->options.assignment, *overrides);
    frontier_release(&found);
    trial_close(&s.trial);
    for (size_t i = 0; i < s.count; i++)
        free(s.nodes[i].name);
    free(s.nodes);
    free(s.moves);
    return status;
}

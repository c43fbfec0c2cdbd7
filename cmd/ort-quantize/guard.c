/* guard.c - nodes by noise, then by harm, then as many as help. */
#include "guard.h"

#include <math.h>
#include <stdlib.h>

#include "common/look.h"
#include "common/screen.h"

enum {
    MOST_ALONE = 48,    /* models of one node on codes */
    GLANCE_ROWS = 8,    /* of samples that each of them runs on */
    STEP_WORK = 32,     /* multiply-adds that take as long as a number of a step in float */
};
/* Or nothing stays float: of nodes whose time counts, and of the smallest ones. */
static const double least_gain_db = 2, least_gain_small_db = 0.75;
static const double least_gain_kind_db = 1; /* with --effort, of all nodes of a kind */
static const double small = 1.0 / 40; /* of the work that may stay float */
static const double small_percent = 1; /* of the multiply-adds, that many small products make */
static const double enough_db = 0.5;    /* fewer nodes do as well as more that gain so little */
static const double least_share = 0.02; /* of all noise, that a node alone makes */

double keep_sensitive(const quantizing *q)
{
    const double usual = 4;
    return q->options.keep_sensitive >= 0 ? q->options.keep_sensitive : usual;
}

void kept_nodes_add(kept_nodes *kept, size_t index)
{
    size_t *longer = tool_alloc((kept->count + 1) * sizeof *longer);
    for (size_t i = 0; i < kept->count; i++)
        longer[i] = kept->index[i];
    longer[kept->count++] = index;
    free(kept->index);
    kept->index = longer;
}

static bool is_kept(const kept_nodes *kept, size_t index)
{
    for (size_t i = 0; i < kept->count; i++)
        if (kept->index[i] == index)
            return true;
    return false;
}

typedef struct suspect {
    size_t index;
    double work, noise; /* noise: of what it reads; then what it makes of outputs alone */
} suspect;

typedef struct suspects {
    suspect *rows;
    size_t count;
    double room; /* work that may stay float */
} suspects;

static int by_noise(const void *a, const void *b)
{
    const suspect *x = a, *y = b;
    if (x->noise < y->noise || x->noise > y->noise)
        return x->noise > y->noise ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* All but those that are kept; the noisiest first, as far as models of one are worth their time. */
static void find_suspects(const ort_quantizer *quantizer, double percent, const kept_nodes *kept,
                          suspects *s)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    double total = 0;
    size_t nodes = 0;
    while (ort_quantizer_node(quantizer, nodes, &info))
        nodes++;
    s->rows = tool_alloc((nodes + 1) * sizeof *s->rows);
    for (size_t i = 0; i < nodes; i++) {
        suspect row = {.index = i};
        const bool product = ort_quantizer_node(quantizer, i, &info) &&
                             !strcmp(info.part, "product"); /* else a step */
        if (is_kept(kept, i) ||
            !ort_quantizer_node_harm(quantizer, i, &row.work, &row.noise) || row.work <= 0)
            continue;
        row.work *= product ? 1 : STEP_WORK;
        total += product ? row.work : 0;
        s->rows[s->count++] = row;
    }
    s->room = total * percent / 100;
    qsort(s->rows, s->count, sizeof *s->rows, by_noise);
    if (s->count > MOST_ALONE)
        s->count = MOST_ALONE;
}

/* Orders by what each does to outputs. */
static int measure_alone(const trial *t, ort_quantizer *quantizer, suspects *s)
{
    ort_error err = {0};
    int status = 0;
    progress_begin(&t->q->progress, "nodes alone", is_quiet(t->q));
    for (size_t i = 0; i < s->count && status == 0; i++) {
        ort_model *model = NULL;
        nearness_to_float near = {0};
        if (ort_quantizer_apply_alone(quantizer, s->rows[i].index, &model, &err) != ORT_OK)
            status = tool_fail_in(t->q->path, &err);
        if (status == 0)
            status = trial_glance(t, model, GLANCE_ROWS, &near);
        s->rows[i].noise = near.sqnr_db < 200 ? pow(10, -near.sqnr_db / 10) : 0;
        ort_model_free(model);
        progress_step(&t->q->progress, i + 1, s->count);
    }
    progress_end(&t->q->progress);
    qsort(s->rows, s->count, sizeof *s->rows, by_noise);
    return status;
}

/* Of the most harmful ones those that fit together and make much of the noise come first. */
static size_t pick(suspects *s, double room, double all_noise)
{
    size_t picked = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i].work <= room && s->rows[i].noise >= least_share * all_noise) {
            const suspect row = s->rows[i];
            room -= row.work;
            memmove(&s->rows[picked + 1], &s->rows[picked], (i - picked) * sizeof row);
            s->rows[picked++] = row;
        }
    return picked;
}

/* How much nearer to float the first of them bring the model. */
static double gain_db(const suspects *s, size_t count, double all_noise)
{
    double left = all_noise;
    for (size_t i = 0; i < count; i++)
        left -= s->rows[i].noise;
    return 10 * log10(all_noise / fmax(left, all_noise * 1e-6));
}

static size_t count_needed(suspects *s, double room, double least_db)
{
    double all = 0;
    for (size_t i = 0; i < s->count; i++)
        all += s->rows[i].noise;
    if (!(all > 0))
        return 0;
    qsort(s->rows, s->count, sizeof *s->rows, by_noise);
    const size_t picked = pick(s, room, all);
    size_t needed = picked;
    while (needed > 0 && gain_db(s, needed - 1, all) >= gain_db(s, picked, all) - enough_db)
        needed--;
    return gain_db(s, needed, all) >= least_db ? needed : 0;
}

static void tell_picked(const trial *t, const ort_quantizer *quantizer, const suspects *s,
                        size_t count)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    for (size_t i = 0; i < count && t->q->options.settings.verbose; i++)
        if (ort_quantizer_node(quantizer, s->rows[i].index, &info))
            screen_printf(stderr, "%s '%s': %.2f dB with it alone on codes\n", info.op_type,
                          info.name, -10 * log10(s->rows[i].noise));
}

int guard_choose(const trial *t, ort_quantizer *quantizer, bool near, kept_nodes *chosen)
{
    suspects s = {0};
    size_t needed = 0;
    find_suspects(quantizer, keep_sensitive(t->q), chosen, &s);
    int status = measure_alone(t, quantizer, &s);
    if (status == 0 && !near)
        needed = count_needed(&s, s.room, least_gain_db);
    if (status == 0 && needed == 0)
        needed = count_needed(&s, s.room * small, least_gain_small_db);
    tell_picked(t, quantizer, &s, needed);
    for (size_t i = 0; i < needed; i++)
        kept_nodes_add(chosen, s.rows[i].index);
    free(s.rows);
    return status;
}

int guard_more(const trial *t, ort_quantizer *quantizer, double percent, kept_nodes *chosen)
{
    suspects s = {0};
    find_suspects(quantizer, percent, chosen, &s);
    int status = measure_alone(t, quantizer, &s);
    const size_t needed = status == 0 ? count_needed(&s, s.room, 0) : 0;
    tell_picked(t, quantizer, &s, needed);
    for (size_t i = 0; i < needed; i++)
        kept_nodes_add(chosen, s.rows[i].index);
    free(s.rows);
    return status;
}

static void add_parts(const ort_quantizer *quantizer, const char *part, kept_nodes *chosen)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    for (size_t i = 0; ort_quantizer_node(quantizer, i, &info); i++)
        if (!strcmp(info.part, part))
            kept_nodes_add(chosen, i);
}

void guard_recurrent(const ort_quantizer *quantizer, kept_nodes *chosen)
{
    add_parts(quantizer, "weights", chosen);
}

void guard_tables(const ort_quantizer *quantizer, kept_nodes *chosen)
{
    add_parts(quantizer, "table", chosen);
}

/* Several groups, and a weight like float[480,1,5,5]. */
static bool has_single_channels(json_object *node)
{
    json_object *types = member(node, "input_types"), *attributes = member(node, "attributes");
    const char *type = json_object_get_string(json_object_array_get_idx(types, 1));
    const char *second = type != NULL ? strchr(type, ',') : NULL;
    return second != NULL && !strncmp(second, ",1,", 3) && member(attributes, "group") != NULL &&
           number_of(attributes, "group") > 1;
}

/* How a node may have come to that name: its own, its first output's, where it has none, or with a
 * number behind it, where another node has that one. */
enum { OWN_NAME, OUTPUT_NAME, NUMBERED_NAME, OTHER_NAME };

static int name_kind(json_object *node, const char *name)
{
    json_object *outputs = member(node, "outputs");
    const char *own = text_of(node, "name");
    if (own[0] || length_of(outputs) == 0)
        return !strcmp(own, name) ? OWN_NAME : OTHER_NAME;
    const char *first = json_object_get_string(json_object_array_get_idx(outputs, 0));
    const size_t length = strlen(first);
    if (strncmp(first, name, length))
        return OTHER_NAME;
    const char *rest = name + length;
    if (!rest[0])
        return OUTPUT_NAME;
    return rest[0] == '_' && rest[1] && !rest[1 + strspn(rest + 1, "0123456789")] ? NUMBERED_NAME
                                                                                : OTHER_NAME;
}

/* By name, of the nodes that the report lists. */
static bool is_depthwise(json_object *nodes, const char *name)
{
    int least = OTHER_NAME;
    bool found = false;
    for (size_t i = 0; name[0] && i < length_of(nodes); i++) {
        json_object *node = json_object_array_get_idx(nodes, i);
        const int kind = name_kind(node, name);
        if (kind >= least)
            continue;
        least = kind;
        found = has_single_channels(node);
    }
    return found;
}

int guard_depthwise(const quantizing *q, const ort_quantizer *quantizer, kept_nodes *chosen)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    ort_error err = {0};
    char *text = NULL;
    if (ort_model_report(q->original, ORT_REPORT_NODES, &text, &err) != ORT_OK)
        return tool_fail_in(q->path, &err);
    json_object *report = json_tokener_parse(text);
    for (size_t i = 0; ort_quantizer_node(quantizer, i, &info); i++)
        if (!strcmp(info.part, "product") && !strcmp(info.op_type, "Conv") &&
            !is_kept(chosen, i) && is_depthwise(member(report, "nodes"), info.name))
            kept_nodes_add(chosen, i);
    json_object_put(report);
    ort_text_free(text);
    return 0;
}

static int by_work(const void *a, const void *b)
{
    const suspect *x = a, *y = b;
    if (x->work < y->work || x->work > y->work)
        return x->work > y->work ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The products of least work that make `small_percent` of it together, such as those of means of
 * channels. */
static int add_small(const quantizing *q, const ort_quantizer *quantizer, kept_nodes *chosen)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    suspects s = {0};
    double all = 0, sum = 0;
    size_t nodes = 0;
    (void)q;
    while (ort_quantizer_node(quantizer, nodes, &info))
        nodes++;
    s.rows = tool_alloc((nodes + 1) * sizeof *s.rows);
    for (size_t i = 0; i < nodes; i++) {
        suspect row = {.index = i};
        if (ort_quantizer_node(quantizer, i, &info) && !strcmp(info.part, "product") &&
            ort_quantizer_node_harm(quantizer, i, &row.work, &row.noise)) {
            all += row.work;
            s.rows[s.count++] = row;
        }
    }
    qsort(s.rows, s.count, sizeof *s.rows, by_work);
    for (size_t i = 0; i < s.count && (sum += s.rows[i].work) <= all * small_percent / 100; i++)
        if (!is_kept(chosen, s.rows[i].index))
            kept_nodes_add(chosen, s.rows[i].index);
    free(s.rows);
    return 0;
}

/* What lies between products, too: there each step rounds to codes what is a float until then. */
static int add_between(const quantizing *q, const ort_quantizer *quantizer, kept_nodes *chosen)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    for (size_t i = 0; ort_quantizer_node(quantizer, i, &info); i++)
        if (!strcmp(info.part, "step") && !is_kept(chosen, i))
            kept_nodes_add(chosen, i);
    return guard_depthwise(q, quantizer, chosen);
}

const guard_group guard_groups[GUARD_GROUPS] = {
    {"small products in float", add_small, true},
    {"filters of single channels in float", guard_depthwise, false},
    {"these, and what lies between products", add_between, false}};

double guard_percent(const ort_quantizer *quantizer, const kept_nodes *kept)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    double all = 0, stays = 0, work, noise;
    for (size_t i = 0; ort_quantizer_node(quantizer, i, &info); i++) {
        if (!ort_quantizer_node_harm(quantizer, i, &work, &noise))
            continue;
        const bool product = !strcmp(info.part, "product");
        all += product ? work : 0;
        if (is_kept(kept, i))
            stays += product ? work : STEP_WORK * work;
    }
    return all > 0 ? 100 * stays / all : 0;
}

double guard_least_gain(const guard_group *group)
{
    return group->is_small ? least_gain_small_db : least_gain_kind_db;
}

static bool is_table(const ort_quantizer *quantizer, size_t index)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    return ort_quantizer_node(quantizer, index, &info) && !strcmp(info.part, "table");
}

int guard_keep(const quantizing *q, ort_quantizer *quantizer)
{
    ort_error err = {0};
    ort_status status = ORT_OK;
    for (size_t i = 0; i < q->kept.count && status == ORT_OK; i++)
        status = is_table(quantizer, q->kept.index[i])
                     ? ort_quantizer_keep_half(quantizer, q->kept.index[i], &err)
                     : ort_quantizer_keep_float(quantizer, q->kept.index[i], true, &err);
    return status == ORT_OK ? 0 : tool_fail_in(q->path, &err);
}

/* Names and their share of all products, while the quantizer still says what they would be. */
void guard_note(quantizing *q, ort_quantizer *quantizer)
{
    ort_quantizer_node_info info = ORT_QUANTIZER_NODE_INFO_INIT;
    json_object *names = json_object_new_array(), *tables = json_object_new_array();
    double all = 0, kept = 0, work, noise;
    for (size_t i = 0; ort_quantizer_node(quantizer, i, &info); i++)
        if (!strcmp(info.part, "product") && ort_quantizer_node_harm(quantizer, i, &work, &noise))
            all += work;
    for (size_t i = 0; i < q->kept.count; i++) {
        if (!ort_quantizer_node(quantizer, q->kept.index[i], &info))
            continue;
        json_object_array_add(is_table(quantizer, q->kept.index[i]) ? tables : names,
                              json_object_new_string(info.name));
        if (!strcmp(info.part, "product") &&
            ort_quantizer_node_harm(quantizer, q->kept.index[i], &work, &noise))
            kept += work;
    }
    json_object_put(q->kept_float);
    q->kept_float = json_object_new_object();
    json_object_object_add(q->kept_float, "nodes", names);
    json_object_object_add(q->kept_float, "tables_float16", tables);
    json_object_object_add(q->kept_float, "share_of_products",
                           json_object_new_double(all > 0 ? kept / all : 0));
}

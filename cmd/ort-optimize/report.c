/* report.c - what the model was and became: a table by operator, the passes, the verification. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/look.h"
#include "common/table.h"
#include "optimize.h"

/* ---- measuring */

static int read_report(ort_model *model, ort_report which, json_object **json)
{
    ort_error err = {0};
    char *text = NULL;
    if (ort_model_report(model, which, &text, &err) != ORT_OK)
        return tool_fail(&err);
    *json = json_tokener_parse(text);
    ort_text_free(text);
    return 0;
}

static char *operator_name(json_object *row)
{
    const char *domain = text_of(row, "domain"), *op_type = text_of(row, "op_type");
    return strcmp(domain, "ai.onnx") ? tool_printf("%s.%s", domain, op_type) : tool_strdup(op_type);
}

static operator_measure *find_operator(const measure *m, const char *name)
{
    for (size_t i = 0; i < m->op_count; i++)
        if (!strcmp(m->ops[i].name, name))
            return &m->ops[i];
    return NULL;
}

static void take_operators(measure *m, json_object *list)
{
    size_t count = length_of(list);
    m->ops = tool_alloc((count + 1) * sizeof *m->ops);
    for (size_t i = 0; i < count; i++) {
        json_object *row = json_object_array_get_idx(list, i);
        m->ops[i] = (operator_measure){.name = operator_name(row),
                                       .count = number_of(row, "count"),
                                       .macs_known = true};
    }
    m->op_count = count;
}

/* Functions are expanded where costs are counted: nodes of operators that only they hold have no
 * row of their own. */
static void take_costs(measure *m, json_object *rows)
{
    for (size_t i = 0; i < length_of(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        char *name = operator_name(row);
        operator_measure *op = find_operator(m, name);
        free(name);
        if (!op)
            continue;
        op->weight_bytes = number_of(row, "weight_bytes");
        op->macs = number_of(row, "macs");
        op->macs_known = number_of(row, "open_nodes") == 0;
    }
}

int measure_take(measure *m, ort_model *model)
{
    json_object *json = NULL;
    int status = read_report(model, ORT_REPORT_SUMMARY, &json);
    if (status != 0)
        return status;
    m->nodes = number_of(json, "nodes");
    m->weight_bytes = number_of(json, "weight_bytes");
    take_operators(m, member(json, "operators"));
    json_object_put(json);
    status = read_report(model, ORT_REPORT_OPERATOR_COST, &json);
    if (status != 0)
        return status;
    json_object *total = member(json, "total");
    m->macs = number_of(total, "macs");
    m->macs_known = number_of(total, "open_nodes") == 0;
    take_costs(m, member(json, "operators"));
    json_object_put(json);
    return 0;
}

static double size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (double)info.st_size : 0;
}

double measure_file(const char *path)
{
    char *data = tool_printf("%s.data", path);
    double bytes = size_of(path) + size_of(data);
    free(data);
    return bytes;
}

void report_add_pass(report *r, const char *name, int changes, double ms)
{
    for (size_t i = 0; i < r->pass_count; i++) {
        if (strcmp(r->passes[i].name, name))
            continue;
        r->passes[i].changes += changes; /* a second round of passes */
        r->passes[i].ms += ms;
        return;
    }
    pass_record *passes = tool_alloc((r->pass_count + 1) * sizeof *passes);
    for (size_t i = 0; i < r->pass_count; i++)
        passes[i] = r->passes[i];
    free(r->passes);
    r->passes = passes;
    r->passes[r->pass_count++] = (pass_record){name, changes, ms};
}

void report_add_near_miss(report *r, const char *pass, const char *node, const char *condition)
{
    if (r->near_miss_count == r->near_miss_capacity) {
        size_t capacity = r->near_miss_capacity ? 2 * r->near_miss_capacity : 64;
        near_miss_record *list = tool_alloc(capacity * sizeof *list);
        for (size_t i = 0; i < r->near_miss_count; i++)
            list[i] = r->near_misses[i];
        free(r->near_misses);
        r->near_misses = list;
        r->near_miss_capacity = capacity;
    }
    r->near_misses[r->near_miss_count++] =
        (near_miss_record){pass, tool_strdup(node), tool_strdup(condition), 1};
}

static void release_measure(measure *m)
{
    for (size_t i = 0; i < m->op_count; i++)
        free(m->ops[i].name);
    free(m->ops);
}

void report_forget_passes(report *r)
{
    free(r->passes);
    for (size_t i = 0; i < r->near_miss_count; i++) {
        free(r->near_misses[i].node);
        free(r->near_misses[i].condition);
    }
    free(r->near_misses);
    r->passes = NULL;
    r->near_misses = NULL;
    r->pass_count = r->near_miss_count = r->near_miss_capacity = 0;
}

void report_release(report *r)
{
    release_measure(&r->before);
    release_measure(&r->after);
    report_forget_passes(r);
}

/* ---- text */

/* "+" where nodes of open size are left out: what a pass settles then makes the sum grow. */
static void macs_cell(table *t, double macs, bool known)
{
    table_cellf(t, "%s%s", text_count(macs), known ? "" : "+");
}

static void operator_row(table *t, const report *r, const char *name)
{
    static const operator_measure none = {.macs_known = true};
    const operator_measure *before = find_operator(&r->before, name);
    const operator_measure *after = find_operator(&r->after, name);
    before = before ? before : &none;
    after = after ? after : &none;
    table_cell(t, name);
    table_cell(t, text_count(before->count));
    table_cell(t, text_count(after->count));
    table_cell(t, text_bytes(before->weight_bytes));
    table_cell(t, text_bytes(after->weight_bytes));
    macs_cell(t, before->macs, before->macs_known);
    macs_cell(t, after->macs, after->macs_known);
    table_cell(t, before->count == after->count  ? ""
                  : after->count > before->count ? "more"
                  : after->count == 0            ? "gone"
                                                 : "fewer");
}

static void total_row(table *t, const measure *before, const measure *after)
{
    table_cell(t, "all nodes");
    table_cell(t, text_count(before->nodes));
    table_cell(t, text_count(after->nodes));
    table_cell(t, text_bytes(before->weight_bytes));
    table_cell(t, text_bytes(after->weight_bytes));
    macs_cell(t, before->macs, before->macs_known);
    macs_cell(t, after->macs, after->macs_known);
    table_cell(t, "");
}

static void operator_table(const report *r, FILE *stream)
{
    static const char *const heads[] = {"operator", ">before", ">after", ">weights", ">after",
                                        ">MACs",    ">after",  "",       NULL};
    table *t = table_new(heads);
    for (size_t i = 0; i < r->before.op_count; i++)
        operator_row(t, r, r->before.ops[i].name);
    for (size_t i = 0; i < r->after.op_count; i++)
        if (!find_operator(&r->before, r->after.ops[i].name))
            operator_row(t, r, r->after.ops[i].name);
    total_row(t, &r->before, &r->after);
    table_print(t, stream);
    table_free(t);
    if (!r->before.macs_known || !r->after.macs_known)
        fprintf(stream, "+: and nodes of open size\n");
    if (r->after.file_bytes > 0)
        fprintf(stream, "file: %s -> %s\n",
                r->before.file_bytes > 0 ? text_bytes(r->before.file_bytes) : "-",
                text_bytes(r->after.file_bytes));
}

static void pass_table(const report *r, FILE *stream)
{
    static const char *const heads[] = {"pass", ">rewrites", ">ms", NULL};
    table *t = table_new(heads);
    for (size_t i = 0; i < r->pass_count; i++) {
        if (r->passes[i].changes == 0)
            continue;
        table_cell(t, r->passes[i].name);
        table_cellf(t, "%d", r->passes[i].changes);
        table_cellf(t, "%.2f", r->passes[i].ms);
    }
    if (table_rows(t) > 0) {
        fputc('\n', stream);
        table_print(t, stream);
    }
    table_free(t);
}

/* An input less is the one change that a caller of the model can notice. */
static void input_note(const report *r, FILE *stream)
{
    for (size_t i = 0; i < r->pass_count; i++)
        if (!strcmp(r->passes[i].name, "weight_inputs") && r->passes[i].changes > 0)
            fprintf(stream, "\n%d weights were listed as inputs and are none any more "
                            "(--disable weight_inputs keeps them)\n",
                    r->passes[i].changes);
}

/* Where passes that were asked for by name would have written what the file may not have. */
static void contrib_note(const report *r, FILE *stream)
{
    int places = 0;
    for (size_t i = 0; i < r->near_miss_count; i++)
        places += strstr(r->near_misses[i].condition, "--contrib allows it") != NULL;
    if (places)
        fprintf(stream, "\nplaces left alone for want of operators of com.microsoft: %d (--contrib "
                        "allows them)\n", places);
}

/* Those of one pass and one condition together, in the order they were told. */
static int by_reason(const void *a, const void *b)
{
    const near_miss_record *x = *(const near_miss_record *const *)a;
    const near_miss_record *y = *(const near_miss_record *const *)b;
    int order = strcmp(x->pass, y->pass);
    if (!order)
        order = strcmp(x->condition, y->condition);
    return order ? order : (x > y) - (x < y);
}

static int by_place(const void *a, const void *b)
{
    const near_miss_record *x = *(const near_miss_record *const *)a;
    const near_miss_record *y = *(const near_miss_record *const *)b;
    return (x > y) - (x < y);
}

/* The first of each kind, in the order they were told, in front of `list`; returns how many. */
static size_t first_of_kinds(const report *r, const near_miss_record **list)
{
    size_t kinds = 0;
    near_miss_record *first = NULL;
    for (size_t i = 0; i < r->near_miss_count; i++)
        list[i] = &r->near_misses[i];
    qsort(list, r->near_miss_count, sizeof *list, by_reason);
    for (size_t i = 0; i < r->near_miss_count; i++) {
        near_miss_record *miss = &r->near_misses[list[i] - r->near_misses];
        if (!first || strcmp(first->pass, miss->pass) ||
            strcmp(first->condition, miss->condition)) {
            list[kinds++] = first = miss;
            first->times = 0;
        }
        first->times++;
    }
    qsort(list, kinds, sizeof *list, by_place);
    return kinds;
}

static void near_miss_list(const report *r, FILE *stream)
{
    if (r->near_miss_count == 0)
        return;
    const near_miss_record **list = tool_alloc(r->near_miss_count * sizeof *list);
    size_t kinds = first_of_kinds(r, list);
    fprintf(stream, "\nleft alone:\n");
    for (size_t i = 0; i < kinds; i++) {
        fprintf(stream, "  %s%s%s", screen_begin(stream, STYLE_NEAR), list[i]->pass,
                screen_end(stream));
        screen_printf(stream, ": %s: %s", list[i]->node, list[i]->condition);
        if (list[i]->times > 1)
            fprintf(stream, " (%zu times, first here)", list[i]->times);
        fputc('\n', stream);
    }
    free(list);
}

void report_text(const report *r, const optimize_options *o, FILE *stream)
{
    const ort_verification *v = &r->verification;
    operator_table(r, stream);
    pass_table(r, stream);
    input_note(r, stream);
    if (o->settings.verbose)
        near_miss_list(r, stream);
    else if (o->passes.count)
        contrib_note(r, stream);
    if (!r->verified)
        return;
    fputc('\n', stream);
    char sizes[40] = "";
    if (v->sizes > 1)
        snprintf(sizes, sizeof sizes, ", of %d sizes", v->sizes);
    if (v->verdict == ORT_VERIFIED)
        screen_printf(stream, "verified: %d runs agree%s%s; largest difference %.3g (%.3g of the "
                      "largest value), in '%s'%s%s\n", v->runs,
                      r->tolerance > 0 ? "" : " to the bit", sizes, v->max_abs, v->max_scaled,
                      v->output, *v->text ? "; " : "", v->text);
    else
        screen_printf(stream, "%s: %s\n",
                      v->verdict == ORT_DIFFERENT ? "different" : "not verified", v->text);
    if (r->bisected)
        fprintf(stream, "first wrong after pass: %s\n", r->bisected);
}

/* ---- JSON */

static void add(json_object *to, const char *key, json_object *value)
{
    json_object_object_add(to, key, value);
}

static json_object *number_or_null(double number, bool known)
{
    return known ? json_object_new_int64((int64_t)number) : NULL;
}

static json_object *measure_json(const measure *m)
{
    json_object *j = json_object_new_object(), *ops = json_object_new_object();
    add(j, "nodes", json_object_new_int64((int64_t)m->nodes));
    add(j, "weight_bytes", json_object_new_int64((int64_t)m->weight_bytes));
    add(j, "file_bytes", number_or_null(m->file_bytes, m->file_bytes > 0));
    add(j, "macs", number_or_null(m->macs, m->macs_known));
    for (size_t i = 0; i < m->op_count; i++) {
        json_object *op = json_object_new_object();
        add(op, "count", json_object_new_int64((int64_t)m->ops[i].count));
        add(op, "weight_bytes", json_object_new_int64((int64_t)m->ops[i].weight_bytes));
        add(op, "macs", number_or_null(m->ops[i].macs, m->ops[i].macs_known));
        add(ops, m->ops[i].name, op);
    }
    add(j, "operators", ops);
    return j;
}

static json_object *verification_json(const report *r)
{
    static const char *const words[] = {"verified", "different", "not verified"};
    const ort_verification *v = &r->verification;
    json_object *j = json_object_new_object();
    add(j, "verdict", json_object_new_string(r->verified ? words[v->verdict] : "not asked for"));
    add(j, "runs", json_object_new_int(v->runs));
    add(j, "sizes", json_object_new_int(v->sizes));
    add(j, "tolerance", r->verified ? json_object_new_double(r->tolerance) : NULL);
    add(j, "max_abs", json_object_new_double(v->max_abs));
    add(j, "max_scaled", json_object_new_double(v->max_scaled));
    add(j, "output", json_object_new_string(v->output));
    add(j, "text", json_object_new_string(v->text));
    add(j, "first_wrong_pass", r->bisected ? json_object_new_string(r->bisected) : NULL);
    return j;
}

static json_object *near_misses_json(const report *r)
{
    json_object *list = json_object_new_array();
    for (size_t i = 0; i < r->near_miss_count; i++) {
        json_object *miss = json_object_new_object();
        add(miss, "pass", json_object_new_string(r->near_misses[i].pass));
        add(miss, "node", json_object_new_string(r->near_misses[i].node));
        add(miss, "condition", json_object_new_string(r->near_misses[i].condition));
        json_object_array_add(list, miss);
    }
    return list;
}

void report_json(const report *r, const optimize_options *o, const char *model, FILE *stream)
{
    json_object *j = json_object_new_object(), *passes = json_object_new_array();
    add(j, "schema", json_object_new_string("ort-optimize/1"));
    add(j, "model", json_object_new_string(model));
    add(j, "output", o->output ? json_object_new_string(o->output) : NULL);
    add(j, "level", json_object_new_int(o->settings.level_number < 0 ? 2
                                                                     : o->settings.level_number));
    add(j, "contrib", json_object_new_boolean(o->contrib));
    add(j, "opset", o->opset ? json_object_new_int64(atoll(o->opset)) : NULL);
    for (size_t i = 0; i < r->pass_count; i++) {
        json_object *pass = json_object_new_object();
        add(pass, "name", json_object_new_string(r->passes[i].name));
        add(pass, "rewrites", json_object_new_int(r->passes[i].changes));
        add(pass, "time_ms", json_object_new_double(r->passes[i].ms));
        json_object_array_add(passes, pass);
    }
    add(j, "passes", passes);
    add(j, "load_ms", json_object_new_double(r->times.load_ms));
    add(j, "optimize_ms", json_object_new_double(r->times.optimize_ms));
    add(j, "near_miss_ms", json_object_new_double(r->times.near_miss_ms));
    add(j, "verify_ms", json_object_new_double(r->times.verify_ms));
    add(j, "save_ms", json_object_new_double(r->times.save_ms));
    add(j, "near_misses", near_misses_json(r));
    add(j, "before", measure_json(&r->before));
    add(j, "after", measure_json(&r->after));
    add(j, "verification", verification_json(r));
    fprintf(stream, "%s\n",
            json_object_to_json_string_ext(j, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED));
    json_object_put(j);
}

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

static void take_operators(measure *m, json_object *list)
{
    size_t count = json_object_array_length(list);
    m->ops = tool_alloc((count + 1) * sizeof *m->ops);
    m->counts = tool_alloc((count + 1) * sizeof *m->counts);
    for (size_t i = 0; i < count; i++) {
        json_object *row = json_object_array_get_idx(list, i);
        const char *domain = json_object_get_string(member(row, "domain"));
        const char *op_type = json_object_get_string(member(row, "op_type"));
        m->ops[i] = strcmp(domain, "ai.onnx") ? tool_printf("%s.%s", domain, op_type)
                                              : tool_strdup(op_type);
        m->counts[i] = json_object_get_double(member(row, "count"));
    }
    m->op_count = count;
}

int measure_take(measure *m, ort_model *model)
{
    json_object *json = NULL;
    int status = read_report(model, ORT_REPORT_SUMMARY, &json);
    if (status != 0)
        return status;
    m->nodes = json_object_get_double(member(json, "nodes"));
    m->weight_bytes = json_object_get_double(member(json, "weight_bytes"));
    take_operators(m, member(json, "operators"));
    json_object_put(json);
    status = read_report(model, ORT_REPORT_COST, &json);
    if (status != 0)
        return status;
    json_object *total = member(json, "total");
    m->macs = json_object_get_double(member(total, "macs"));
    m->macs_known = json_object_get_int(member(total, "open_nodes")) == 0;
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
        (near_miss_record){pass, tool_strdup(node), tool_strdup(condition)};
}

static void release_measure(measure *m)
{
    for (size_t i = 0; i < m->op_count; i++)
        free(m->ops[i]);
    free(m->ops);
    free(m->counts);
}

void report_release(report *r)
{
    release_measure(&r->before);
    release_measure(&r->after);
    free(r->passes);
    for (size_t i = 0; i < r->near_miss_count; i++) {
        free(r->near_misses[i].node);
        free(r->near_misses[i].condition);
    }
    free(r->near_misses);
}

/* ---- text */

static double count_of(const measure *m, const char *op)
{
    for (size_t i = 0; i < m->op_count; i++)
        if (!strcmp(m->ops[i], op))
            return m->counts[i];
    return 0;
}

static void operator_row(table *t, const report *r, const char *op)
{
    double before = count_of(&r->before, op), after = count_of(&r->after, op);
    table_cell(t, op);
    table_cell(t, text_count(before));
    table_cell(t, text_count(after));
    table_cell(t, before == after ? "" : after > before ? "more" : after == 0 ? "gone" : "fewer");
}

/* Nodes of open size count as nothing: what a pass settles makes the sum grow. */
static void macs_row(table *t, const report *r)
{
    const measure *sides[] = {&r->before, &r->after};
    bool known = r->before.macs_known && r->after.macs_known;
    table_cell(t, known ? "MACs" : "MACs (+: and nodes of open size)");
    for (int i = 0; i < 2; i++) {
        char *count = tool_printf("%s%s", text_count(sides[i]->macs),
                                  sides[i]->macs_known ? "" : "+");
        table_cell(t, count);
        free(count);
    }
    table_cell(t, "");
}

static void operator_table(const report *r, FILE *stream)
{
    static const char *const heads[] = {"operator", ">before", ">after", "", NULL};
    table *t = table_new(heads);
    for (size_t i = 0; i < r->before.op_count; i++)
        operator_row(t, r, r->before.ops[i]);
    for (size_t i = 0; i < r->after.op_count; i++)
        if (count_of(&r->before, r->after.ops[i]) == 0)
            operator_row(t, r, r->after.ops[i]);
    table_cell(t, "nodes");
    table_cell(t, text_count(r->before.nodes));
    table_cell(t, text_count(r->after.nodes));
    table_cell(t, "");
    table_cell(t, "weights");
    table_cell(t, text_bytes(r->before.weight_bytes));
    table_cell(t, text_bytes(r->after.weight_bytes));
    table_cell(t, "");
    if (r->after.file_bytes > 0) {
        table_cell(t, "file");
        table_cell(t, r->before.file_bytes > 0 ? text_bytes(r->before.file_bytes) : "-");
        table_cell(t, text_bytes(r->after.file_bytes));
        table_cell(t, "");
    }
    macs_row(t, r);
    table_print(t, stream);
    table_free(t);
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

static void near_miss_list(const report *r, FILE *stream)
{
    if (r->near_miss_count > 0)
        fprintf(stream, "\nleft alone:\n");
    for (size_t i = 0; i < r->near_miss_count; i++) {
        const near_miss_record *miss = &r->near_misses[i];
        fprintf(stream, "  %s: %s: %s\n", miss->pass, miss->node, miss->condition);
    }
}

void report_text(const report *r, const optimize_options *o, FILE *stream)
{
    const ort_verification *v = &r->verification;
    operator_table(r, stream);
    pass_table(r, stream);
    if (o->settings.verbose)
        near_miss_list(r, stream);
    if (!r->verified)
        return;
    fputc('\n', stream);
    if (v->verdict == ORT_VERIFIED)
        fprintf(stream, "verified: %d runs agree%s; largest difference %.3g (%.3g of the largest "
                        "value), in '%s'\n", v->runs, v->sizes > 1 ? ", of two sizes" : "",
                v->max_abs, v->max_scaled, v->output);
    else
        fprintf(stream, "%s: %s\n",
                v->verdict == ORT_DIFFERENT ? "different" : "not verified", v->text);
    if (r->bisected)
        fprintf(stream, "first wrong after pass: %s\n", *r->bisected ? r->bisected : "(none)");
}

/* ---- JSON */

static void add(json_object *to, const char *key, json_object *value)
{
    json_object_object_add(to, key, value);
}

static json_object *measure_json(const measure *m)
{
    json_object *j = json_object_new_object(), *ops = json_object_new_object();
    add(j, "nodes", json_object_new_int64((int64_t)m->nodes));
    add(j, "weight_bytes", json_object_new_int64((int64_t)m->weight_bytes));
    add(j, "file_bytes", m->file_bytes > 0 ? json_object_new_int64((int64_t)m->file_bytes) : NULL);
    add(j, "macs", m->macs_known ? json_object_new_int64((int64_t)m->macs) : NULL);
    for (size_t i = 0; i < m->op_count; i++)
        add(ops, m->ops[i], json_object_new_int64((int64_t)m->counts[i]));
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

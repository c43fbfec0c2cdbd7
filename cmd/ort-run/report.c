/* report.c - latency report, digests, phase times; JSON of what each record gave. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/screen.h"
#include "common/table.h"
#include "run.h"

void timing_add(timing *t, double ms)
{
    if (t->count == t->capacity) {
        t->capacity = t->capacity * 2 + 64;
        t->runs_ms = realloc(t->runs_ms, t->capacity * sizeof *t->runs_ms);
        if (t->runs_ms == NULL)
            tool_alloc(SIZE_MAX / 2);
    }
    t->runs_ms[t->count++] = ms;
}

typedef struct latency {
    double min, p50, p90, p99, mean, cv;
} latency;

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Nearest-rank percentile of a sorted list. */
static double percentile(const double *sorted, size_t n, double p)
{
    size_t rank = (size_t)ceil(p / 100 * (double)n);
    return sorted[rank > 0 ? rank - 1 : 0];
}

static latency summarize(const timing *t)
{
    latency l = {0};
    double sum = 0, squares = 0;
    if (t->count == 0)
        return l;
    double *sorted = tool_alloc(t->count * sizeof *sorted);
    memcpy(sorted, t->runs_ms, t->count * sizeof *sorted);
    qsort(sorted, t->count, sizeof *sorted, ascending);
    for (size_t i = 0; i < t->count; i++)
        sum += sorted[i];
    l.mean = sum / (double)t->count;
    for (size_t i = 0; i < t->count; i++)
        squares += (sorted[i] - l.mean) * (sorted[i] - l.mean);
    l.min = sorted[0];
    l.p50 = percentile(sorted, t->count, 50);
    l.p90 = percentile(sorted, t->count, 90);
    l.p99 = percentile(sorted, t->count, 99);
    l.cv = l.mean > 0 ? sqrt(squares / (double)t->count) / l.mean : 0;
    free(sorted);
    return l;
}

void report_judge(const timing *t, const limits *allowed, gate_list *gates)
{
    latency l = summarize(t);
    bool timed = t->count > 0;
    gates_judge(gates, allowed, timed ? l.p50 : NAN, timed ? l.p90 : NAN, timed ? l.p99 : NAN);
}

static void print_json_dims(FILE *out, const ort_value *value)
{
    fputc('[', out);
    for (int i = 0; i < ort_value_rank(value); i++)
        fprintf(out, "%s%" PRId64, i > 0 ? ", " : "", ort_value_dims(value)[i]);
    fputc(']', out);
}

static const char *kind_name(const ort_value *value)
{
    switch (ort_value_get_kind(value)) {
    case ORT_VALUE_TENSOR:
        return ort_dtype_name(ort_value_dtype(value));
    case ORT_VALUE_SEQUENCE:
        return "sequence";
    case ORT_VALUE_MAP:
        return "map";
    case ORT_VALUE_NONE:
        break;
    }
    return "none";
}

void report_outputs(const run_place *at, const ort_session *session, ort_value *const *outputs,
                    FILE *list)
{
    for (size_t i = 0; i < ort_session_output_count(session); i++) {
        fprintf(list, "%s\n    {\"name\": ", at->record > 1 || i > 0 ? "," : "");
        tool_json_string(list, ort_session_output_name(session, i));
        if (at->many)
            fprintf(list, ", \"record\": %zu", at->record);
        if (at->many && at->path != NULL) {
            fputs(", \"source\": ", list);
            tool_json_string(list, at->path);
        }
        fprintf(list, ", \"dtype\": \"%s\", \"shape\": ", kind_name(outputs[i]));
        print_json_dims(list, outputs[i]);
        fprintf(list, ", \"digest\": \"%016" PRIx64 "\"}", ort_value_digest(outputs[i]));
    }
}

static void print_json_settings(const run_report *r, FILE *out)
{
    const settings *s = &r->options->settings;
    fprintf(out, "{\n  \"schema\": \"ort-run/1\",\n  \"model\": ");
    tool_json_string(out, r->model);
    fprintf(out, ",\n  \"threads\": %d,\n  \"provider\": ", ort_env_threads(r->env));
    tool_json_string(out, settings_provider(s));
    for (size_t i = 0; i < s->provider_libs.count; i++) {
        fputs(i ? ", " : ",\n  \"provider_libs\": [", out);
        tool_json_string(out, s->provider_libs.items[i]);
        fputs(i + 1 == s->provider_libs.count ? "]" : "", out);
    }
    for (size_t i = 0; i < s->ops_libs.count; i++) {
        fputs(i ? ", " : ",\n  \"ops_libs\": [", out);
        tool_json_string(out, s->ops_libs.items[i]);
        fputs(i + 1 == s->ops_libs.count ? "]" : "", out);
    }
    fprintf(out, ",\n  \"isa\": \"%s\",\n  \"level\": %d,\n", ort_env_isa(r->env),
            s->level_number < 0 ? 3 : s->level_number);
}

/* Every gate that was asked for: the exit status is 0 only when all of them passed. */
static void print_json_gates(const run_report *r, FILE *out)
{
    const expectation *x = r->expect;
    bool first = true;
    fputs("  \"gates\": [", out);
    if (r->options->expect.count > 0) {
        fprintf(out, "\n    {\"gate\": \"expect\", \"passed\": %s, \"compared\": %zu, "
                "\"differing\": %zu, \"not_compared\": %zu}",
                x->differing == 0 ? "true" : "false", x->compared, x->differing, x->not_compared);
        first = false;
    }
    gates_print_json(r->gates, first, out);
    if (r->options->settings.strict)
        fprintf(out, "%s\n    {\"gate\": \"strict\", \"passed\": %s}",
                first && r->gates->count == 0 ? "" : ",",
                tool_strict_status() == 0 ? "true" : "false");
    fprintf(out, "%s],\n", !first || r->gates->count > 0 || r->options->settings.strict ? "\n  "
                                                                                        : "");
}

static void print_json(const run_report *r, const latency *l, FILE *out)
{
    const timing *t = r->timing;
    const expectation *x = r->expect;
    print_json_settings(r, out);
    fprintf(out, "  \"load_ms\": %.3f,\n  \"first_ms\": %.3f,\n  \"runs\": %zu,\n", t->load_ms,
            t->first_ms, t->count);
    if (t->count == 0) /* nothing was timed */
        fprintf(out, "  \"latency_ms\": null,\n");
    else
        fprintf(out,
                "  \"latency_ms\": {\"min\": %.6f, \"p50\": %.6f, \"p90\": %.6f, \"p99\": %.6f, "
                "\"mean\": %.6f, \"cv\": %.4f},\n",
                l->min, l->p50, l->p90, l->p99, l->mean, l->cv);
    fprintf(out, "  \"peak_rss_bytes\": %zu,\n  \"records\": %zu,\n", ort_peak_rss_bytes(),
            r->records);
    if (r->options->expect.count > 0)
        fprintf(out, "  \"expect\": [%s\n  ],\n  \"not_compared\": [%s%s],\n", x->verdicts,
                x->omissions, x->not_compared > 0 ? "\n  " : "");
    print_json_gates(r, out);
    fprintf(out, "  \"outputs\": [%s\n  ]\n}\n", r->outputs);
}

static void print_text(const run_report *r, const latency *l, FILE *out)
{
    const timing *t = r->timing;
    screen_printf(out, "model    %s\n", r->model);
    fprintf(out, "threads  %d, isa %s\nload     %s\nfirst    %s\n", ort_env_threads(r->env),
            ort_env_isa(r->env), text_ms(t->load_ms), text_ms(t->first_ms));
    if (t->count > 0)
        fprintf(out, "runs     %zu: min %s  p50 %s  p90 %s  p99 %s  mean %s  cv %.1f %%\n",
                t->count, text_ms(l->min), text_ms(l->p50), text_ms(l->p90), text_ms(l->p99),
                text_ms(l->mean), 100 * l->cv);
    fprintf(out, "memory   %.1f MB peak\n", (double)ort_peak_rss_bytes() / 1e6);
}

void report_print(const run_report *r, FILE *out)
{
    latency l = summarize(r->timing);
    if (r->options->settings.json && out == stdout)
        tool_reported();
    if (r->options->settings.json)
        print_json(r, &l, out);
    else
        print_text(r, &l, out);
}

int report_hash(const sink *s, const run_place *at, ort_value *const *outputs, FILE *out)
{
    for (size_t i = 0; i < s->wanted_count; i++) {
        ort_value *value = NULL;
        int status = expression_value(&s->wanted[i], s->session, outputs, &value);
        if (status != 0)
            return status;
        screen_printf(out, "%016" PRIx64 "  %s", ort_value_digest(ort_value_item(value, 0)),
                      s->wanted[i].text);
        if (at->many && at->path != NULL)
            screen_printf(out, "  %s", at->path);
        else if (at->many)
            fprintf(out, "  %zu", at->record);
        fputc('\n', out);
        ort_value_free(value);
    }
    return 0;
}

int report_phases(const ort_session *session, const timing *t, const carry *c, FILE *out)
{
    if (t->model_ms > 0)
        fprintf(out, "%-24s %9.3f ms\n", "load", t->model_ms);
    for (size_t i = 0; i < ort_session_phase_count(session); i++) {
        uint64_t ns;
        int changes;
        const char *name = ort_session_phase(session, i, &ns, &changes);
        if (changes >= 0)
            fprintf(out, "%-24s %9.3f ms  %d changes\n", name, (double)ns / 1e6, changes);
        else
            fprintf(out, "%-24s %9.3f ms\n", name, (double)ns / 1e6);
    }
    fprintf(out, "%-24s %9.3f ms\n%-24s %9.3f ms\n", "session ready", t->load_ms, "first run",
            t->first_ms);
    if (c->states > 0)
        fprintf(out, "%-24s %9zu     %zu grow in place\n", "states", c->states,
                carry_growing(c, session));
    return 0;
}

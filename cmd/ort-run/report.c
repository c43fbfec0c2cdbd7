/* report.c - latency report, digests, phase times, comparison with expected tensors. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

static void print_json_outputs(FILE *out, const ort_session *session, ort_value *const *outputs)
{
    fprintf(out, "  \"outputs\": [");
    for (size_t i = 0; i < ort_session_output_count(session); i++) {
        fprintf(out, "%s\n    {\"name\": ", i > 0 ? "," : "");
        tool_json_string(out, ort_session_output_name(session, i));
        fprintf(out, ", \"dtype\": \"%s\", \"shape\": ", kind_name(outputs[i]));
        print_json_dims(out, outputs[i]);
        fprintf(out, ", \"digest\": \"%016" PRIx64 "\"}", ort_value_digest(outputs[i]));
    }
    fprintf(out, "\n  ]\n");
}

static void print_json(const run_options *o, const ort_env *env, const char *model,
                       const ort_session *session, const timing *t, const latency *l,
                       ort_value *const *outputs, const char *verdicts, FILE *out)
{
    fprintf(out, "{\n  \"schema\": \"ort-run/1\",\n  \"model\": ");
    tool_json_string(out, model);
    fprintf(out, ",\n  \"threads\": %d,\n  \"provider\": ", ort_env_threads(env));
    tool_json_string(out, o->settings.provider != NULL ? o->settings.provider : "cpu");
    for (size_t i = 0; i < o->settings.ops_libs.count; i++) {
        fputs(i ? ", " : ",\n  \"ops_libs\": [", out);
        tool_json_string(out, o->settings.ops_libs.items[i]);
        fputs(i + 1 == o->settings.ops_libs.count ? "]" : "", out);
    }
    fprintf(out, ",\n  \"isa\": \"%s\",\n  \"level\": %d,\n", ort_env_isa(env),
            o->settings.level_number < 0 ? 3 : o->settings.level_number);
    fprintf(out, "  \"load_ms\": %.3f,\n  \"first_ms\": %.3f,\n  \"runs\": %zu,\n", t->load_ms,
            t->first_ms, t->count);
    if (t->count == 0) /* nothing was timed */
        fprintf(out, "  \"latency_ms\": null,\n");
    else
        fprintf(out,
                "  \"latency_ms\": {\"min\": %.4f, \"p50\": %.4f, \"p90\": %.4f, \"p99\": %.4f, "
                "\"mean\": %.4f, \"cv\": %.4f},\n",
                l->min, l->p50, l->p90, l->p99, l->mean, l->cv);
    fprintf(out, "  \"peak_rss_bytes\": %zu,\n", ort_peak_rss_bytes());
    if (verdicts != NULL)
        fprintf(out, "  \"expect\": [%s\n  ],\n", verdicts);
    print_json_outputs(out, session, outputs);
    fprintf(out, "}\n");
}

int report_print(const run_options *o, const ort_env *env, const char *model,
                 const ort_session *session, const timing *t, ort_value *const *outputs,
                 const char *verdicts, FILE *out)
{
    latency l = summarize(t);
    if (o->settings.json) {
        if (out == stdout)
            tool_reported();
        print_json(o, env, model, session, t, &l, outputs, verdicts, out);
        return 0;
    }
    fprintf(out, "model    %s\nthreads  %d, isa %s\nload     %.2f ms\nfirst    %.3f ms\n", model,
            ort_env_threads(env), ort_env_isa(env), t->load_ms, t->first_ms);
    if (t->count > 0)
        fprintf(out,
                "runs     %zu: min %.3f  p50 %.3f  p90 %.3f  p99 %.3f  mean %.3f ms  cv %.1f %%\n",
                t->count, l.min, l.p50, l.p90, l.p99, l.mean, 100 * l.cv);
    fprintf(out, "memory   %.1f MB peak\n", (double)ort_peak_rss_bytes() / 1e6);
    return 0;
}

int report_hash(const sink *s, ort_value *const *outputs, FILE *out)
{
    for (size_t i = 0; i < s->wanted_count; i++) {
        ort_value *value = NULL;
        int status = expression_value(&s->wanted[i], s->session, outputs, &value);
        if (status != 0)
            return status;
        fprintf(out, "%016" PRIx64 "  %s\n", ort_value_digest(ort_value_item(value, 0)),
                s->wanted[i].text);
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

static int load_expected(const char *path, ort_tensors **expected)
{
    struct stat st;
    ort_error err = {0};
    ort_read_options options = {0};
    ort_status status = strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode)
                            ? ort_tensors_load_folder(path, "output", expected, &err)
                            : ort_tensors_load(path, &options, expected, &err);
    return status == ORT_OK ? 0 : tool_fail(&err);
}

static void add_verdict(const char *name, const ort_difference *d, bool first, FILE *list)
{
    fprintf(list, "%s\n    {\"name\": ", first ? "" : ",");
    tool_json_string(list, name);
    fprintf(list, ", \"equal\": %s, \"text\": ", d->equal ? "true" : "false");
    tool_json_string(list, d->text);
    fputc('}', list);
}

int report_expect(const run_options *o, const ort_session *session, ort_value *const *outputs,
                  FILE *text, FILE *list)
{
    ort_tensors *expected = NULL;
    ort_error err = {0};
    ort_compare_options options = {.rtol = o->rtol < 0 ? 1e-3 : o->rtol,
                                   .atol = o->atol < 0 ? 1e-5 : o->atol};
    int status = load_expected(o->expect, &expected);
    if (status != 0)
        return status;
    size_t n = ort_tensors_count(expected), outputs_count = ort_session_output_count(session);
    bool named = false;
    for (size_t k = 0; k < n; k++)
        named = named || find_output(session, ort_tensors_name(expected, k)) >= 0;
    for (size_t k = 0; k < n && (status == 0 || status == EXIT_GATE); k++) {
        const char *name = ort_tensors_name(expected, k);
        int i = find_output(session, name);
        ort_difference d;
        if (i < 0 && !named && k < outputs_count)
            i = (int)k;
        if (i < 0) {
            status = tool_usage("%s: the model has no output '%s'", o->expect, name);
            break;
        }
        if (ort_value_compare(outputs[i], ort_tensors_value(expected, k), &options, &d, &err) !=
            ORT_OK) {
            status = tool_fail(&err);
            break;
        }
        if (text != NULL)
            fprintf(text, "%s  %s: %s\n", d.equal ? "ok  " : "FAIL",
                    ort_session_output_name(session, (size_t)i), d.text);
        add_verdict(ort_session_output_name(session, (size_t)i), &d, k == 0, list);
        if (!d.equal)
            status = EXIT_GATE;
    }
    ort_tensors_free(expected);
    return status;
}

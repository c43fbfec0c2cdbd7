/* text.c - a profile for reading: the machine, the load, latency, tables by operator and by node.
 */
#include <math.h>

#include "common/look.h"
#include "common/table.h"
#include "profile_tool.h"

enum { NODES_SHOWN = 20 };
#define LARGE_SHARE 0.2 /* where to look first */

static json_object *at(json_object *list, size_t index)
{
    return json_object_array_get_idx(list, index);
}

static const char *working_set(size_t bytes)
{
    return text_bytes((double)bytes);
}

void profile_print_peak(const ort_peak *peak, const char *isa, FILE *stream)
{
    fprintf(stream, "machine   isa %s, %d thread%s: peak %.1f GFLOP/s", isa, peak->threads,
            peak->threads > 1 ? "s" : "", peak->gflops);
    if (peak->int8_gops > 0)
        fprintf(stream, ", %.1f GOP/s of bytes", peak->int8_gops);
    if (peak->tile_gflops > 0)
        fprintf(stream, ", %.1f GFLOP/s on tiles", peak->tile_gflops);
    if (peak->ghz > 0)
        fprintf(stream, " at %.2f GHz", peak->ghz);
    fprintf(stream, "\nmemory   ");
    for (int i = 0; i < peak->level_count; i++)
        fprintf(stream, "%s %.1f GB/s in %s", i ? "," : "", peak->levels[i].gb_per_s,
                working_set(peak->levels[i].bytes));
    fputc('\n', stream);
}

static void print_machine(json_object *report, FILE *stream)
{
    json_object *machine = member(report, "machine"), *memory;
    ort_peak peak = {.size = sizeof peak,
                     .threads = (int)number_of(machine, "threads"),
                     .gflops = number_of(machine, "peak_gflops"),
                     .int8_gops = number_of(machine, "peak_int8_gops"),
                     .tile_gflops = number_of(machine, "peak_tile_gflops"),
                     .ghz = number_of(machine, "ghz")};
    if (!machine) {
        fprintf(stream, "machine   isa %s, %.0f thread%s\n", text_of(report, "isa"),
                number_of(report, "threads"), number_of(report, "threads") > 1 ? "s" : "");
        return;
    }
    memory = member(machine, "memory");
    for (size_t i = 0; i < length_of(memory) && i < ORT_PEAK_LEVELS; i++) {
        peak.levels[i].bytes = (size_t)number_of(at(memory, i), "working_set_bytes");
        peak.levels[i].gb_per_s = number_of(at(memory, i), "gb_per_s");
        peak.level_count++;
    }
    profile_print_peak(&peak, text_of(report, "isa"), stream);
}

static void print_spread(json_object *s, FILE *stream)
{
    fprintf(stream, "min %s  p50 %s  p90 %s  p99 %s  mean %s  cv %.1f %%\n",
            text_ms(number_of(s, "min")), text_ms(number_of(s, "p50")),
            text_ms(number_of(s, "p90")), text_ms(number_of(s, "p99")),
            text_ms(number_of(s, "mean")), 100 * number_of(s, "cv"));
}

static void print_head(json_object *report, FILE *stream)
{
    double nodes = number_of(report, "nodes_ms"), overhead = number_of(report, "overhead_ms");
    fprintf(stream, "model     %s\n", text_of(report, "model"));
    print_machine(report, stream);
    fprintf(stream, "load      %s\n", text_ms(number_of(member(report, "load"), "total_ms")));
    fprintf(stream, "first     %s; %.0f warm-up runs, the first among them\n",
            text_ms(number_of(report, "first_ms")), number_of(report, "warmup_runs"));
    fprintf(stream, "runs      %.0f: ", number_of(report, "runs"));
    print_spread(member(report, "latency_ms"), stream);
    fprintf(stream, "wall      nodes %s + overhead %s = %s\n", text_ms(nodes), text_ms(overhead),
            text_ms(nodes + overhead));
    if (has_number(report, "cycles"))
        fprintf(stream, "cycles    %s per run\n", text_count(number_of(report, "cycles")));
    else if (*text_of(report, "cycles_note"))
        fprintf(stream, "cycles    %s\n", text_of(report, "cycles_note"));
}

/* Where a device has nodes: the sums of each provider, and what the others cost. */
static void print_providers(json_object *report, FILE *stream)
{
    json_object *list = member(report, "providers"), *rest = member(report, "fallback");
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *p = at(list, i);
        fprintf(stream, "%s%s: %.0f nodes, %s", i ? "; " : "provider  ", text_of(p, "name"),
                number_of(p, "nodes"), text_ms(number_of(p, "self_ms")));
        if (has_number(p, "kernel_ms"))
            fprintf(stream, " (kernels %s, copies in %s, out %s)",
                    text_ms(number_of(p, "kernel_ms")), text_ms(number_of(p, "copy_in_ms")),
                    text_ms(number_of(p, "copy_out_ms")));
    }
    if (rest)
        fprintf(stream, "\nfallback  %.0f of %.0f nodes fell back to %s, costing %s with copies\n",
                number_of(rest, "nodes"), number_of(rest, "of_nodes"), text_of(rest, "provider"),
                text_ms(number_of(rest, "ms")));
}

/* Passes that changed nothing and took little are one line. */
static void print_load(json_object *load, FILE *stream)
{
    static const char *const heads[] = {"load", ">ms", ">share", ">changes", NULL};
    double total = number_of(load, "total_ms"), rest = 0;
    json_object *phases = member(load, "phases");
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(phases); i++) {
        json_object *phase = at(phases, i);
        bool pass = !strcmp(text_of(phase, "kind"), "pass");
        double ms = number_of(phase, "ms");
        if (pass && number_of(phase, "changes") == 0 && ms < total / 50) {
            rest += ms;
            continue;
        }
        table_cell(t, text_of(phase, "name"));
        table_cellf(t, "%.3f", ms);
        table_cellf(t, "%.1f %%", total > 0 ? 100 * ms / total : 0);
        table_cell(t, pass ? text_count(number_of(phase, "changes")) : "");
    }
    table_cell(t, "passes without a change");
    table_cellf(t, "%.3f", rest);
    table_cellf(t, "%.1f %%", total > 0 ? 100 * rest / total : 0);
    table_cell(t, "");
    fputc('\n', stream);
    table_print(t, stream);
    table_free(t);
}

/* ---- rows */

/* The unit of a table: that of its largest time, so that its rows can be compared. */
static double unit_ms(json_object *rows)
{
    double most = 0;
    for (size_t i = 0; i < length_of(rows); i++) {
        double ms = number_of(at(rows, i), "self_ms");
        most = ms > most ? ms : most;
    }
    return most >= 1 ? 1 : 1e-3;
}

static void figure_cells(table *t, json_object *row, double unit)
{
    json_object *s = member(row, "spread_ms");
    table_cellf(t, "%.3f", number_of(row, "self_ms") / unit);
    table_cellf(t, "%.1f %%", 100 * number_of(row, "share"));
    if (number_of(row, "share") >= LARGE_SHARE)
        table_style(t, STYLE_NEAR);
    table_cellf(t, "%.3f", number_of(s, "p50") / unit);
    table_cellf(t, "%.3f", number_of(s, "p90") / unit);
    table_cellf(t, "%.3f", number_of(s, "p99") / unit);
    table_cellf(t, "%.2f", number_of(row, "gflops_per_s"));
    table_cellf(t, "%.2f", number_of(row, "gb_per_s"));
    if (has_number(row, "of_peak"))
        table_cellf(t, "%.0f %%", 100 * number_of(row, "of_peak"));
    else
        table_cell(t, "");
}

static const char *operator_name(json_object *row, char *text, size_t size)
{
    const char *domain = text_of(row, "domain");
    bool plain = !strcmp(domain, "ai.onnx");
    snprintf(text, size, "%s%s%s", plain ? "" : domain, plain ? "" : ".", text_of(row, "op_type"));
    return text;
}

static void print_operators(json_object *report, size_t top, FILE *stream)
{
    json_object *rows = member(report, "operators");
    double unit = unit_ms(rows);
    const char *const heads[] = {"operator", ">nodes", "~>calls", unit < 1 ? ">us" : ">ms",
                                 ">share", "~>p50", "~>p90", "~>p99", "~>GFLOP/s", "~>GB/s",
                                 ">of peak", NULL};
    char name[200];
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(rows) && i < top; i++) {
        json_object *row = at(rows, i);
        table_cell(t, operator_name(row, name, sizeof name));
        table_cell(t, text_count(number_of(row, "nodes")));
        table_cell(t, text_count(number_of(row, "calls")));
        figure_cells(t, row, unit);
    }
    fputc('\n', stream);
    table_print(t, stream);
    table_free(t);
}

static char *shapes(json_object *list)
{
    char *text = tool_strdup("");
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *value = at(list, i), *dims = member(value, "shape");
        const char *dtype = text_of(value, "dtype");
        if (!dims)
            continue;
        char *longer = tool_printf("%s%s%s%s", text, *text ? " " : "",
                                   strcmp(dtype, "float") ? dtype : "",
                                   length_of(dims) == 0 ? "[]" : strcmp(dtype, "float") ? ":" : "");
        free(text);
        text = longer;
        for (size_t d = 0; d < length_of(dims); d++) {
            longer = tool_printf("%s%s%s", text, d ? "x" : "",
                                 json_object_get_string(at(dims, d)));
            free(text);
            text = longer;
        }
    }
    return text;
}

char *profile_shapes(json_object *row)
{
    char *in = shapes(member(row, "inputs")), *out = shapes(member(row, "outputs"));
    char *both = tool_printf("%s -> %s", in, out);
    free(in);
    free(out);
    return both;
}

static void node_row(table *t, json_object *row, double unit)
{
    const char *name = text_of(row, "name");
    char operator_text[200];
    char *both = profile_shapes(row);
    if (!*name)
        table_cellf(t, "#%.0f", number_of(row, "index"));
    else
        table_cell(t, name);
    table_cell(t, operator_name(row, operator_text, sizeof operator_text));
    figure_cells(t, row, unit);
    if (!strcmp(text_of(row, "multiplies"), "tiles"))
        table_cellf(t, "%s, tiles", text_of(row, "tier"));
    else
        table_cell(t, text_of(row, "tier"));
    table_cell(t, both);
    table_cell(t, text_of(row, "fused_from"));
    free(both);
}

static void print_nodes(json_object *report, size_t top, FILE *stream)
{
    json_object *rows = member(report, "nodes");
    double unit = unit_ms(rows);
    const char *const heads[] = {"node", "operator", unit < 1 ? ">us" : ">ms", ">share", "~>p50",
                                 "~>p90", "~>p99", "~>GFLOP/s", "~>GB/s", ">of peak", "~tier",
                                 "~shapes", "~fused from", NULL};
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(rows) && i < top; i++)
        node_row(t, at(rows, i), unit);
    fputc('\n', stream);
    table_print(t, stream);
    if (length_of(rows) > top)
        fprintf(stream, "(%zu more nodes: --top 0 shows all)\n", length_of(rows) - top);
    table_free(t);
}

int profile_print(const char *json, const profile_options *o, FILE *stream)
{
    json_object *report = look_parse(json, stream);
    size_t top = o->top > 0 ? (size_t)o->top : SIZE_MAX;
    size_t node_top = o->top < 0 && o->by == NULL ? NODES_SHOWN : top;
    if (report == NULL) {
        return tool_error(ORT_ERROR_RUN, "the report can't be read back");
    }
    print_head(report, stream);
    print_providers(report, stream);
    if (o->by == NULL)
        print_load(member(report, "load"), stream);
    if (o->by == NULL || !strcmp(o->by, "op"))
        print_operators(report, top, stream);
    if (o->by == NULL || !strcmp(o->by, "node"))
        print_nodes(report, node_top, stream);
    json_object_put(report);
    return 0;
}

void profile_judge(const char *json, const profile_options *o, gate_list *gates)
{
    static const char *const names[] = {"p50", "p90", "p99"};
    double ms[] = {NAN, NAN, NAN};
    json_object *report = json_tokener_parse(json), *latency = member(report, "latency_ms");
    for (int i = 0; i < 3; i++)
        if (has_number(latency, names[i]))
            ms[i] = number_of(latency, names[i]);
    gates_judge(gates, &o->limits, ms[0], ms[1], ms[2]);
    json_object_put(report);
}

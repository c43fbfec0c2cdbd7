/* text.c - reports for a person, made from their JSON (inspect.h): what --json prints is all there
 * is. */
#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/screen.h"
#include "common/tool.h"
#include "common/table.h"
#include "inspect.h"
#include "common/look.h"

static char *opset_list(json_object *report)
{
    json_object *list = member(report, "opsets");
    char *text = tool_strdup("");
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *o = json_object_array_get_idx(list, i);
        char *longer = tool_printf("%s%s%s %s", text, i ? ", " : "", text_of(o, "domain"),
                                   text_of(o, "version"));
        free(text);
        text = longer;
    }
    return text;
}

/* ---- summary, io, metadata */

/* Weights that are inputs with a default: of more than a few, a summary says the number. */
enum { FEW_DEFAULTS = 4 };

static bool has_default(json_object *port)
{
    return json_object_get_boolean(member(port, "optional"));
}

static size_t count_defaults(json_object *list)
{
    size_t n = 0;
    for (size_t i = 0; i < length_of(list); i++)
        n += has_default(json_object_array_get_idx(list, i));
    return n;
}

static void put_ports(json_object *report, const char *key, bool all, FILE *stream)
{
    json_object *list = member(report, key);
    size_t width = 0, said = 0, defaults = count_defaults(list);
    bool whole = all || defaults <= FEW_DEFAULTS;
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *port = json_object_array_get_idx(list, i);
        size_t n = screen_length(text_of(port, "name"));
        width = (whole || !has_default(port)) && n > width ? n : width;
    }
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *port = json_object_array_get_idx(list, i);
        if (!whole && has_default(port))
            continue;
        const char *name = text_of(port, "name");
        fprintf(stream, "%-10s %s%*s  %s%s\n", said++ ? "" : key, name,
                (int)(width - screen_length(name)), "", text_of(port, "type"),
                has_default(port) ? "  (has a default)" : "");
    }
    if (!whole)
        fprintf(stream, "%-10s and %s that have a default (--io lists them)\n", said ? "" : key,
                text_count((double)defaults));
}

static void put_wrapped(FILE *stream, const char *label, json_object *operators)
{
    int limit = screen_width(stream) > 0 ? screen_width(stream) : 100;
    int column = fprintf(stream, "%-10s", label);
    for (size_t i = 0; i < length_of(operators); i++) {
        json_object *o = json_object_array_get_idx(operators, i);
        const char *domain = text_of(o, "domain");
        bool onnx = !strcmp(domain, "ai.onnx");
        char *item = tool_printf("%s%s%s %s%s", onnx ? "" : domain, onnx ? "" : ".",
                                 text_of(o, "op_type"), text_of(o, "count"),
                                 i + 1 < length_of(operators) ? "," : "");
        if (column + (int)strlen(item) > limit - 2)
            column = fprintf(stream, "\n%-10s", "") - 1;
        column += fprintf(stream, " %s", item);
        free(item);
    }
    fputc('\n', stream);
}

static void put_producer(json_object *r, FILE *stream)
{
    if (*text_of(r, "producer"))
        fprintf(stream, "%-10s %s %s\n", "producer", text_of(r, "producer"),
                text_of(r, "producer_version"));
}

static void put_summary(json_object *r, FILE *stream)
{
    char *opsets = opset_list(r);
    fprintf(stream, "%-10s %s\n", "model", text_of(r, "model"));
    if (*text_of(r, "graph"))
        fprintf(stream, "%-10s %s\n", "graph", text_of(r, "graph"));
    put_producer(r, stream);
    fprintf(stream, "%-10s IR %s, opset %s\n", "version", text_of(r, "ir_version"), opsets);
    fprintf(stream, "%-10s %s", "file", text_bytes(number_of(r, "file_bytes")));
    if (number_of(r, "external_bytes") > 0)
        fprintf(stream, " and %s of external data", text_bytes(number_of(r, "external_bytes")));
    fprintf(stream, "\n%-10s %s", "nodes", text_count(number_of(r, "nodes")));
    if (number_of(r, "constants") > 0)
        fprintf(stream, " (and %s constants)", text_count(number_of(r, "constants")));
    if (number_of(r, "replaced_constants") > 0)
        fprintf(stream, ", without %s constants whose output a later one gives again",
                text_count(number_of(r, "replaced_constants")));
    if (number_of(r, "functions") > 0)
        fprintf(stream, ", %s functions", text_count(number_of(r, "functions")));
    fprintf(stream, "\n%-10s %s parameters, %s, in %s tensors\n", "weights",
            text_count(number_of(r, "parameters")), text_bytes(number_of(r, "weight_bytes")),
            text_count(number_of(r, "tensors")));
    put_ports(r, "inputs", false, stream);
    put_ports(r, "outputs", false, stream);
    put_wrapped(stream, "operators", member(r, "operators"));
    if (number_of(r, "metadata_entries") > 0)
        fprintf(stream, "%-10s %s entries (--metadata)\n", "metadata",
                text_of(r, "metadata_entries"));
    free(opsets);
}

static void put_metadata(json_object *r, FILE *stream)
{
    static const char *const keys[] = {"domain", "doc", "graph_doc"};
    json_object *list = member(r, "metadata");
    put_producer(r, stream);
    fprintf(stream, "%-10s %s\n", "version", text_of(r, "model_version"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (*text_of(r, keys[i]))
            fprintf(stream, "%-10s %s\n", keys[i], text_of(r, keys[i]));
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        fprintf(stream, "%s = %s\n", text_of(entry, "key"), text_of(entry, "value"));
    }
    list = member(r, "properties");
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        fprintf(stream, "%s: %s = %s\n", text_of(entry, "of"), text_of(entry, "key"),
                text_of(entry, "value"));
    }
}

/* ---- lists */

static void put_nodes(json_object *r, const char *grep, FILE *stream)
{
    json_object *list = member(r, "nodes");
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *n = json_object_array_get_idx(list, i), *types = member(n, "output_types");
        if (!wanted(n, grep))
            continue;
        char *in = join(member(n, "inputs"), ", "), *out = join(member(n, "outputs"), ", ");
        char *type = join(types, ", ");
        const char *domain = text_of(n, "domain");
        bool onnx = !strcmp(domain, "ai.onnx");
        fprintf(stream, "#%s %s%s%s", text_of(n, "id"), onnx ? "" : domain, onnx ? "" : ".",
                text_of(n, "op_type"));
        if (*text_of(n, "name"))
            fprintf(stream, " '%s'", text_of(n, "name"));
        if (*text_of(n, "graph"))
            fprintf(stream, "  in %s", text_of(n, "graph"));
        fprintf(stream, "\n    (%s) -> %s : %s\n", in, out, type);
        json_object_object_foreach(member(n, "attributes"), key, value)
            fprintf(stream, "    %s = %s\n", key,
                    json_object_to_json_string_ext(value, JSON_C_TO_STRING_NOSLASHESCAPE));
        free(in);
        free(out);
        free(type);
    }
    if (number_of(r, "replaced_constants") > 0)
        fprintf(stream, "(%s Constant nodes aren't listed: a later one gives their output again)\n",
                text_count(number_of(r, "replaced_constants")));
}

static void put_shapes(json_object *r, const char *grep, FILE *stream)
{
    static const char *const heads[] = {"value", "type", "from", "~graph", NULL};
    json_object *list = member(r, "values");
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *v = json_object_array_get_idx(list, i);
        if (!wanted(v, grep))
            continue;
        table_cell(t, text_of(v, "name"));
        table_cell(t, text_of(v, "type"));
        table_cell(t, text_of(v, "role"));
        table_cell(t, text_of(v, "graph"));
    }
    table_print(t, stream);
    table_free(t);
}

static void number_cell(table *t, json_object *row, const char *key)
{
    if (has_number(row, key))
        table_cellf(t, "%.5g", number_of(row, key));
    else
        table_cell(t, "");
}

static void put_initializers(json_object *r, const char *grep, FILE *stream)
{
    static const char *const heads[] = {"tensor", "type", ">bytes", "~>min", "~>max",
                                        "~>mean", "~>zeros", "notes", NULL};
    json_object *list = member(r, "initializers");
    double denormals = 0, nonfinite = 0;
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *v = json_object_array_get_idx(list, i);
        if (!wanted(v, grep))
            continue;
        bool plain = !strcmp(text_of(v, "kind"), "initializer");
        char *notes = tool_strdup(plain ? "" : text_of(v, "kind"));
        if (number_of(v, "denormals") > 0) {
            char *longer = tool_printf("%s%s%s denormals", notes, *notes ? ", " : "",
                                       text_of(v, "denormals"));
            free(notes);
            notes = longer;
        }
        if (number_of(v, "nonfinite") > 0) {
            char *longer = tool_printf("%s%s%s not finite", notes, *notes ? ", " : "",
                                       text_of(v, "nonfinite"));
            free(notes);
            notes = longer;
        }
        denormals += number_of(v, "denormals") > 0;
        nonfinite += number_of(v, "nonfinite") > 0;
        table_cell(t, text_of(v, "name"));
        table_cell(t, text_of(v, "type"));
        table_cell(t, text_count(number_of(v, "bytes")));
        number_cell(t, v, "min");
        number_cell(t, v, "max");
        number_cell(t, v, "mean");
        table_cell(t, has_number(v, "zeros") ? text_of(v, "zeros") : "");
        table_cell(t, notes);
        free(notes);
    }
    table_print(t, stream);
    table_free(t);
    if (denormals > 0 || nonfinite > 0)
        fprintf(stream, "%.0f tensors hold denormals, %.0f hold values that are not finite\n",
                denormals, nonfinite);
}

static void put_functions(json_object *r, FILE *stream)
{
    json_object *list = member(r, "functions");
    if (length_of(list) == 0)
        fputs("the model has no functions of its own\n", stream);
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *f = json_object_array_get_idx(list, i);
        char *in = join(member(f, "inputs"), ", "), *out = join(member(f, "outputs"), ", ");
        char *attributes = join(member(f, "attributes"), ", "), *opsets = opset_list(f);
        fprintf(stream, "%s.%s%s%s(%s) -> %s\n    %s nodes, opset %s\n", text_of(f, "domain"),
                text_of(f, "name"), *text_of(f, "overload") ? ":" : "", text_of(f, "overload"), in,
                out, text_of(f, "nodes"), opsets);
        if (*attributes)
            fprintf(stream, "    attributes %s\n", attributes);
        json_object_object_foreach(member(f, "defaults"), key, value)
            fprintf(stream, "    attribute %s = %s\n", key,
                    json_object_to_json_string_ext(value, JSON_C_TO_STRING_NOSLASHESCAPE));
        if (*text_of(f, "doc"))
            fprintf(stream, "    %s\n", text_of(f, "doc"));
        free(in);
        free(out);
        free(attributes);
        free(opsets);
    }
}

static const char *who_runs(json_object *o)
{
    bool foreign = json_object_get_boolean(member(o, "foreign"));
    if (json_object_get_boolean(member(o, ort_provider_name(0))))
        return *text_of(o, "library") ? text_of(o, "library") : "yes";
    if (!json_object_get_boolean(member(o, "known")))
        return foreign ? "UNKNOWN DOMAIN" : "UNKNOWN";
    return json_object_get_boolean(member(o, "fits")) ? "no kernel" : "see --check";
}

static void put_ops(json_object *r, FILE *stream)
{
    const char *const heads[] = {"operator", ">opset", ">since", ">nodes", ort_provider_name(0), "",
                                 NULL};
    json_object *list = member(r, "operators");
    bool foreign = false;
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *o = json_object_array_get_idx(list, i);
        bool onnx = !strcmp(text_of(o, "domain"), "ai.onnx");
        char *where = join(member(o, "missing_in"), ", ");
        table_cellf(t, "%s%s%s", onnx ? "" : text_of(o, "domain"), onnx ? "" : ".",
                    text_of(o, "op_type"));
        table_cell(t, text_of(o, "opset"));
        table_cell(t, number_of(o, "since") > 0 ? text_of(o, "since") : "");
        table_cell(t, text_of(o, "count"));
        table_cell(t, who_runs(o));
        table_cellf(t, "%s%s", *where ? "in " : "", where);
        foreign = foreign || json_object_get_boolean(member(o, "foreign"));
        free(where);
    }
    table_print(t, stream);
    table_free(t);
    double gaps = number_of(r, "gaps");
    if (gaps > 0)
        fprintf(stream, "%.0f operator%s can't run\n", gaps, gaps > 1 ? "s" : "");
    if (foreign)
        fputs("operators of domains that this build doesn't know come from an operator library: "
              "--ops-lib LIB.so\n",
              stream);
}

/* ---- costs and memory */

static void count_cell(table *t, json_object *row, const char *key)
{
    table_cell(t, has_number(row, key) ? text_count(number_of(row, key)) : "?");
}

static void put_costs(json_object *r, const char *grep, FILE *stream)
{
    static const char *const heads[] = {"node", "operator", ">parameters", ">MACs", ">other ops",
                                        "~>weight bytes", "~>in bytes", "~>out bytes", NULL};
    json_object *list = member(r, "nodes"), *total = member(r, "total");
    json_object *assumed = member(r, "assumed_one");
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(list); i++) {
        json_object *n = json_object_array_get_idx(list, i);
        if (!wanted(n, grep))
            continue;
        if (*text_of(n, "name"))
            table_cell(t, text_of(n, "name"));
        else
            table_cellf(t, "#%s", text_of(n, "id"));
        table_cell(t, text_of(n, "op_type"));
        count_cell(t, n, "parameters");
        count_cell(t, n, "macs");
        count_cell(t, n, "flops");
        count_cell(t, n, "weight_bytes");
        count_cell(t, n, "input_bytes");
        count_cell(t, n, "output_bytes");
    }
    table_print(t, stream);
    table_free(t);
    fprintf(stream, "total: %s parameters (%s), %s MACs, %s other operations, %s moved\n",
            text_count(number_of(total, "parameters")),
            text_bytes(number_of(total, "weight_bytes")),
            text_count(number_of(total, "macs")), text_count(number_of(total, "flops")),
            text_bytes(number_of(total, "moved_bytes")));
    for (size_t i = 0; i < length_of(assumed); i++) {
        json_object *a = json_object_array_get_idx(assumed, i);
        fprintf(stream, "%s%s[%s] (%s)%s", i ? ", " : "taken as 1: ", text_of(a, "input"),
                text_of(a, "axis"), text_of(a, "dim"), i + 1 == length_of(assumed) ? "\n" : "");
    }
    if (number_of(total, "open_nodes") > 0)
        fprintf(stream, "%s nodes have open shapes or unknown operators and count as nothing\n",
                text_of(total, "open_nodes"));
}

/* Members whose names end in _bytes, in the order of the report, then what is alive at the peak. */
static void put_memory(json_object *r, FILE *stream)
{
    json_object *peak = member(r, "peak"), *alive = member(peak, "alive");
    json_object_object_foreach(r, key, value)
    {
        size_t n = strlen(key);
        if (n > 6 && !strcmp(key + n - 6, "_bytes"))
            fprintf(stream, "%-18.*s %10s  (%s)\n", (int)(n - 6), key,
                    text_bytes(json_object_get_double(value)),
                    text_count(json_object_get_double(value)));
    }
    json_object *assumed = member(r, "assumed_dims");
    if (length_of(assumed))
        fprintf(stream, "%-18s %s\n", "assumed",
                json_object_to_json_string_ext(assumed, JSON_C_TO_STRING_NOSLASHESCAPE));
    fprintf(stream, "%-18s %s\n%-18s %s\n", "steps", text_of(r, "steps"), "dynamic values",
            text_of(r, "dynamic_values"));
    if (!peak)
        return;
    static const char *const heads[] = {"alive at the peak", "type", ">bytes", NULL};
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(alive); i++) {
        json_object *v = json_object_array_get_idx(alive, i);
        table_cell(t, text_of(v, "value"));
        table_cellf(t, "%s %s", text_of(v, "dtype"), text_of(v, "shape"));
        table_cell(t, text_count(number_of(v, "bytes")));
    }
    fprintf(stream, "peak at %s (%s)\n", text_of(peak, "node"), text_of(peak, "op_type"));
    table_print(t, stream);
    table_free(t);
}

/* ---- the pack */

int text_pack(const char *json, FILE *stream)
{
    static const char *const heads[] = {"blocks", ">count", ">bytes", NULL};
    json_object *r = look_parse(json, stream);
    if (!r)
        return text_unreadable();
    json_object *blocks = member(r, "blocks");
    bool fits = json_object_get_boolean(member(r, "fits"));
    fprintf(stream, "%s.pack: %s%s\n", text_of(r, "model"),
            !fits                                                ? "doesn't fit: "
            : json_object_get_boolean(member(r, "verified")) ? "fits, every byte is as written"
                                                                 : "fits",
            fits ? "" : text_of(r, "why"));
    if (member(r, "library"))
        fprintf(stream, "library %s, kernel tier %s, %s\n", text_of(r, "library"),
                text_of(r, "isa"), text_bytes(number_of(r, "file_bytes")));
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(blocks); i++) {
        json_object *b = json_object_array_get_idx(blocks, i);
        table_cell(t, text_of(b, "kind"));
        table_cell(t, text_count(number_of(b, "count")));
        table_cell(t, text_count(number_of(b, "bytes")));
    }
    if (table_rows(t))
        table_print(t, stream);
    table_free(t);
    json_object_put(r);
    return 0;
}

/* ---- one report */

int text_unreadable(void)
{
    ort_error err = {.status = ORT_ERROR_MEMORY,
                     .message = "internal: the report isn't valid JSON"};
    return tool_fail(&err);
}

int text_report(ort_report report, const char *json, const char *grep, FILE *stream)
{
    json_object *r = look_parse(json, stream);
    if (!r)
        return text_unreadable();
    switch (report) {
    case ORT_REPORT_SUMMARY: put_summary(r, stream); break;
    case ORT_REPORT_IO:
        put_ports(r, "inputs", true, stream);
        put_ports(r, "outputs", true, stream);
        break;
    case ORT_REPORT_NODES: put_nodes(r, grep, stream); break;
    case ORT_REPORT_SHAPES: put_shapes(r, grep, stream); break;
    case ORT_REPORT_INITIALIZERS: put_initializers(r, grep, stream); break;
    case ORT_REPORT_METADATA: put_metadata(r, stream); break;
    case ORT_REPORT_FUNCTIONS: put_functions(r, stream); break;
    case ORT_REPORT_OPS: put_ops(r, stream); break;
    case ORT_REPORT_COST: put_costs(r, grep, stream); break;
    case ORT_REPORT_MEMORY: put_memory(r, stream); break;
    case ORT_REPORT_OPERATOR_COST: break; /* ort-optimize's */
    case ORT_REPORT_STORED: break;        /* ort-quantize's */
    }
    json_object_put(r);
    return 0;
}

long report_gaps(const char *json)
{
    json_object *r = json_tokener_parse(json);
    long gaps = r ? (long)number_of(r, "gaps") : 0;
    json_object_put(r);
    return gaps;
}

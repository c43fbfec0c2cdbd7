/* report_supports.c - what this build runs: newest IR and opsets, every operator with its
 * versions, the types it takes, the providers that have it and the library it comes from. */
#include <string.h>

#include "base/error.h"
#include "provider/provider.h"
#include "report/report.h"

static void put_params(ort_json *json, const char *key, const ort_op *op, const ort_param *params,
                       int count)
{
    char types[1024];
    ort_json_key(json, key);
    ort_json_begin_array(json);
    for (int i = 0; i < count; i++) {
        ort_json_begin_object(json);
        ort_report_text(json, "name", params[i].name);
        ort_report_text(json, "types",
                        ort_schema_format_types(op, params[i].type, types, sizeof types));
        if (params[i].optional) {
            ort_json_key(json, "optional");
            ort_json_bool(json, true);
        }
        if (params[i].variadic) {
            ort_json_key(json, "variadic");
            ort_json_bool(json, true);
        }
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

static void put_providers(ort_json *json, const ort_op *op, const ort_provider *const *providers)
{
    ort_json_key(json, "providers");
    ort_json_begin_array(json);
    for (int i = 0; providers[i]; i++)
        if (providers[i]->supports(&ort_provider_functions, op))
            ort_json_string(json, providers[i]->name);
    ort_json_end_array(json);
}

static void put_row(ort_json *json, const ort_op *op, const ort_provider *const *providers)
{
    ort_schema schema;
    ort_json_begin_object(json);
    ort_report_text(json, "domain", ort_report_domain(op->domain));
    ort_report_text(json, "op_type", op->name);
    ort_report_int(json, "since", op->since);
    ort_json_key(json, "deprecated");
    ort_json_bool(json, op->traits & ORT_TRAIT_DEPRECATED);
    ort_json_key(json, providers[0]->name);
    ort_json_bool(json, ort_op_runs(op));
    put_providers(json, op, providers);
    if (ort_op_library(op))
        ort_report_text(json, "library", ort_op_library(op)->name);
    if (ort_schema_parse(op, &schema, NULL) == ORT_OK) {
        put_params(json, "inputs", op, schema.inputs, schema.input_count);
        put_params(json, "outputs", op, schema.outputs, schema.output_count);
        ort_json_key(json, "attributes");
        ort_json_begin_array(json);
        for (int i = 0; i < schema.attr_count; i++)
            ort_json_string(json, schema.attrs[i].name);
        ort_json_end_array(json);
    }
    ort_json_end_object(json);
}

static void put_libraries(ort_json *json, const ort_registry *registry)
{
    ort_json_key(json, "libraries");
    ort_json_begin_array(json);
    for (size_t i = 0; i < ort_registry_count(registry); i++) {
        const ort_ops_library *library = ort_op_library(ort_registry_at(registry, i));
        bool shown = library == NULL;
        for (size_t k = 0; k < i && !shown; k++)
            shown = ort_op_library(ort_registry_at(registry, k)) == library;
        if (shown)
            continue;
        ort_json_begin_object(json);
        ort_report_text(json, "name", library->name);
        ort_report_text(json, "version", library->version ? library->version : "");
        ort_report_int(json, "rows", (int64_t)library->row_count);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

static int by_name_and_version(const void *a, const void *b)
{
    const ort_op *x = *(const ort_op *const *)a, *y = *(const ort_op *const *)b;
    int order = strcmp(x->domain, y->domain);
    if (order == 0)
        order = strcmp(x->name, y->name);
    return order != 0 ? order : x->since - y->since;
}

ort_status ort_report_supports(const ort_registry *registry, const char *isa,
                               const ort_provider *const *providers, ort_strbuf *out,
                               ort_error *err)
{
    ort_json json;
    size_t count = ort_registry_count(registry);
    const ort_op **rows = malloc((count + 1) * sizeof *rows);
    if (rows == NULL)
        return ort_error_memory(err, count * sizeof *rows);
    for (size_t i = 0; i < count; i++)
        rows[i] = ort_registry_at(registry, i);
    qsort(rows, count, sizeof *rows, by_name_and_version);
    ort_report_begin(&json, out, "supports", NULL);
    ort_report_text(&json, "version", ort_version());
    ort_report_text(&json, "isa", isa);
    ort_report_int(&json, "ir_version", ORT_NEWEST_IR);
    ort_json_key(&json, "opsets");
    ort_json_begin_object(&json);
    ort_report_int(&json, "ai.onnx", ORT_NEWEST_OPSET);
    ort_report_int(&json, ML, ORT_NEWEST_ML_OPSET);
    ort_report_int(&json, MS, 1);
    ort_json_end_object(&json);
    ort_json_key(&json, "providers");
    ort_json_begin_array(&json);
    for (int i = 0; providers[i]; i++)
        ort_json_string(&json, providers[i]->name);
    ort_json_end_array(&json);
    put_libraries(&json, registry);
    ort_json_key(&json, "operators");
    ort_json_begin_array(&json);
    for (size_t i = 0; i < count; i++)
        put_row(&json, rows[i], providers);
    free(rows);
    ort_json_end_array(&json);
    ort_json_end_object(&json);
    ort_strbuf_add_char(out, '\n');
    return out->failed ? ort_error_memory(err, out->length) : ORT_OK;
}

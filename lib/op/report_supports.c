/* report_supports.c - what this build runs: newest IR and opsets, every operator with its
 * versions, the types it takes, and whether it has a CPU kernel. */
#include <string.h>

#include "base/error.h"
#include "op/report.h"

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

static void put_row(ort_json *json, const ort_op *op)
{
    ort_schema schema;
    ort_json_begin_object(json);
    ort_report_text(json, "domain", ort_report_domain(op->domain));
    ort_report_text(json, "op_type", op->name);
    ort_report_int(json, "since", op->since);
    ort_json_key(json, "deprecated");
    ort_json_bool(json, op->traits & ORT_TRAIT_DEPRECATED);
    ort_json_key(json, "cpu");
    ort_json_bool(json, op->impl && op->impl->run);
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

ort_status ort_report_supports(const ort_registry *registry, const char *isa, ort_strbuf *out,
                               ort_error *err)
{
    ort_json json;
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
    ort_json_key(&json, "operators");
    ort_json_begin_array(&json);
    for (size_t i = 0; i < ort_registry_count(registry); i++)
        put_row(&json, ort_registry_at(registry, i));
    ort_json_end_array(&json);
    ort_json_end_object(&json);
    ort_strbuf_add_char(out, '\n');
    return out->failed ? ort_error_memory(err, out->length) : ORT_OK;
}

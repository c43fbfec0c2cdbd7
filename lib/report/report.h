/* report.h - what there is to know about a model, as JSON (schema "ort-inspect/1"). Each report is
 * an object with "schema", "report" and "model"; lists are lists of objects, units stand in key
 * names. */
#ifndef ORT_REPORT_REPORT_H
#define ORT_REPORT_REPORT_H

#include "base/json.h"
#include "op/op.h"

/* Any report but ORT_REPORT_MEMORY, which needs a plan (exec). The model is not changed: functions
 * are expanded and types inferred in a copy. */
ort_status ort_report_write(const ort_model *model, ort_report report, ort_strbuf *out,
                            ort_error *err);
/* Every operator of the registry with its versions, types and those of the providers (ended by
 * NULL) that have it; operator libraries. */
struct ort_provider;
ort_status ort_report_supports(const ort_registry *registry, const char *isa,
                               const struct ort_provider *const *providers, ort_strbuf *out,
                               ort_error *err);

/* ---- for the files of this family */

/* report_parts.c: what all reports are made of */
void ort_report_begin(ort_json *json, ort_strbuf *out, const char *name, const ort_model *model);
void ort_report_text(ort_json *json, const char *key, const char *text);
void ort_report_int(ort_json *json, const char *key, int64_t value);
/* "dtype", "shape" (numbers, names, null) and "type" of a value. */
void ort_report_type(ort_json *json, const ort_dim_table *dims, const ort_type *type);
/* Names of values as a list under `key`; absent ones are "". */
void ort_report_values(ort_json *json, const char *key, const ort_graph *graph, const ort_id *ids,
                       int count);
/* Nodes of a graph and its bodies in order; `path` is where: "" or "loop_3/body". */
typedef void ort_report_node_fn(void *arg, const ort_graph *graph, const ort_node *node,
                                const char *path);
void ort_report_each_node(const ort_graph *graph, const char *path, ort_report_node_fn *fn,
                          void *arg);
const char *ort_report_domain(const char *domain); /* "ai.onnx" for "" */

/* report_cost.c: open dimensions of inputs become 1; then the costs, with a list of what was
 * assumed (from `original`). */
void ort_report_assume(ort_model *model);
void ort_report_cost(ort_json *json, const ort_model *original, const ort_model *model,
                     bool by_operator);
/* report_weights.c */
/* looks: statistics of their numbers, all of which are read for it. */
void ort_report_initializers(ort_json *json, const ort_model *model, bool looks);

#endif

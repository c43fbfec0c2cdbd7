/* partition_report.h - the division of a model between providers, and their devices, as JSON. */
#ifndef ORT_REPORT_PARTITION_REPORT_H
#define ORT_REPORT_PARTITION_REPORT_H

#include "base/strbuf.h"
#include "graph/graph.h"

ort_status ort_exec_partition_report(ort_env *env, const ort_model *model,
                                     const ort_session_options *options, ort_strbuf *out,
                                     ort_error *err);
struct ort_provider;
void ort_report_providers(const struct ort_provider *const *table, ort_strbuf *out);

#endif

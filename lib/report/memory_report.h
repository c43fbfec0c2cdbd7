/* memory_report.h - what a run of a model needs: planned arena, peak, what is alive at the peak. */
#ifndef ORT_REPORT_MEMORY_REPORT_H
#define ORT_REPORT_MEMORY_REPORT_H

#include "base/strbuf.h"
#include "ort.h"

/* One JSON object, schema "ort-inspect/1", report "memory": assumed_dims (free dimensions of
 * inputs and the sizes taken for them), constant_bytes, prepared_bytes, input_bytes, output_bytes,
 * arena_bytes, peak_bytes, steps, dynamic_values, and peak {node, op_type, alive [{value, dtype,
 * shape, bytes}]}. The model is not changed. env and options of the session that is planned; NULL:
 * the machine's best, the default ones. */
ort_status ort_exec_memory_report(ort_env *env, ort_model *model,
                                  const ort_session_options *options, ort_strbuf *out,
                                  ort_error *err);

#endif

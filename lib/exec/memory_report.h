/* memory_report.h - what a model needs to run, from its plan: arena, peak, what is alive at the peak. */
#ifndef ORT_EXEC_MEMORY_REPORT_H
#define ORT_EXEC_MEMORY_REPORT_H

#include "base/strbuf.h"
#include "graph/graph.h"

/* JSON (schema "ort-inspect/1") for the shapes that the model declares; ORT_ERROR_USAGE with the inputs
 * whose shapes are open. The model is not changed. */
ort_status ort_exec_memory_report(ort_model *model, ort_strbuf *out, ort_error *err);

#endif

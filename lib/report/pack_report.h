/* pack_report.h - the pack beside a model, described. */
#ifndef ORT_REPORT_PACK_REPORT_H
#define ORT_REPORT_PACK_REPORT_H

#include "base/strbuf.h"
#include "ort.h"

/* One JSON object, schema "ort-inspect/1", report "pack": present, fits, verified, why (when it
 * doesn't fit); of one that was opened and belongs to the model library, isa, file_bytes,
 * graph_bytes, blocks [{kind, count, bytes}]. verify: every byte of pack and model is read. */
ort_status ort_exec_pack_report(ort_env *env, const char *path, const ort_load_options *options,
                                bool verify, bool *fits, ort_strbuf *out, ort_error *err);

#endif

/* inspect.h - the text forms of the library's JSON reports. */
#ifndef INSPECT_INSPECT_H
#define INSPECT_INSPECT_H

#include <stdio.h>

#include "ort.h"

/* Print one report (ort_model_report) for a person. grep: only rows that hold this text; or NULL.
 * Returns an exit status. */
int text_report(ort_report report, const char *json, const char *grep, FILE *stream);
/* picture.c: --partition with --svg or --dot. */
int picture_division(const char *json, bool svg, FILE *stream);
/* partition.c: --partition, --providers. */
int text_division(const char *json, FILE *stream);
/* supports.c: --supports, and as a page in Markdown. */
int text_supports(const char *json, const char *grep, FILE *stream);
int markdown_supports(const char *json, const char *grep, FILE *stream);
/* The pack beside a model (ort_pack_report_with). */
int text_pack(const char *json, FILE *stream);
/* Says that a report isn't valid JSON; the exit status. */
int text_unreadable(void);
/* Number of operators without a kernel in an ORT_REPORT_OPS report. */
long report_gaps(const char *json);

#endif

/* inspect.h - the text forms of the library's JSON reports. */
#ifndef INSPECT_INSPECT_H
#define INSPECT_INSPECT_H

#include <stdio.h>

#include "ort.h"

/* Print one report (ort_model_report) for a person. grep: only rows that hold this text; or NULL.
 * Returns an exit status. */
int text_report(ort_report report, const char *json, const char *grep, FILE *stream);
/* --supports. */
int text_supports(const char *json, const char *grep, FILE *stream);
/* Number of operators without a kernel in an ORT_REPORT_OPS report. */
long report_gaps(const char *json);

#endif

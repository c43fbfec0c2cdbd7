/* findings.h - a list of problems with their places, filled by checks that report everything. */
#ifndef ORT_BASE_FINDINGS_H
#define ORT_BASE_FINDINGS_H

#include "ort.h"

ort_status ort_findings_new(ort_findings **findings, ort_error *err);
/* Appends a formatted finding; drops silently only when memory is exhausted (then
 * ort_findings_errors still counts it). */
void ort_findings_add(ort_findings *findings, ort_severity severity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, unless this very message is there already. */
void ort_findings_add_once(ort_findings *findings, ort_severity severity, const char *message);
/* ORT_OK when there are no errors; else `status` with the first error and the count:
 * "...first finding... (and N more)". All of them are in the message while it has room, one per
 * line after the first. */
ort_status ort_findings_to_error(const ort_findings *findings, ort_status status, ort_error *err);

#endif

/* provider.h - providers inside of libort: the table of those that are built in (ort_provider.h is
 * what one of them is), and the functions that they all may call.
 *
 * One provider, the host, is this process: its nodes are steps that call their operators on the
 * process's memory, and it runs what nobody else takes. The others compute elsewhere. Of these a
 * plan cuts the steps into parts (exec/plan_parts.c).
 */
#ifndef ORT_PROVIDER_PROVIDER_H
#define ORT_PROVIDER_PROVIDER_H

#include "base/log.h"
#include "op/op.h"
#include "ort_provider.h"
#include "pass/pass.h"

/* Rows, first the host; NULL past the end. */
const ort_provider *ort_provider_at(int index);
const ort_provider *const *ort_provider_table(void);
/* Are these rows fit for use: whole, one host, no name twice? ORT_ERROR_USAGE says what isn't. */
ort_status ort_provider_table_check(const ort_provider *const *table, ort_error *err);
/* provider_api.c */
extern const ort_provider_api ort_provider_functions;

#endif

/* options.h - structs of callers that open with their size (ort.h).
 *
 * A caller built with another version of ort.h has fewer members or more. Members are only ever
 * added at the end, and 0 in one means what was done before there was one. So a shorter struct is
 * completed by the defaults, and a longer one is taken where its tail is 0; any other asks for
 * something that this library doesn't know.
 */
#ifndef ORT_BASE_OPTIONS_H
#define ORT_BASE_OPTIONS_H

#include "base/error.h"

/* What the caller asks for: `given` itself where it has the members of `own` (which holds the
 * defaults), else `own`, completed. NULL: refused, err says why. */
const void *ort_options_known(const void *given, void *own, size_t size, const char *function,
                              ort_error *err);
#define ORT_OPTIONS_KNOWN(given, own, err)                                                         \
    ort_options_known((given), (own), sizeof *(own), __func__, (err))

/* Fills a result of the caller's from `own`, as far as it goes; its size stays. */
ort_status ort_result_give(void *result, const void *own, size_t size, const char *function,
                           ort_error *err);
#define ORT_RESULT_GIVE(result, own, err)                                                          \
    ort_result_give((result), (own), sizeof *(own), __func__, (err))
/* Before the work: has the result a size? */
ort_status ort_result_check(const void *result, const char *function, ort_error *err);
#define ORT_RESULT_CHECK(result, err) ort_result_check((result), __func__, (err))

#endif

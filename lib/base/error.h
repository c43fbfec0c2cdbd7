/* error.h - filling the caller-owned ort_error of ort.h.
 *
 * Every function of the library that can fail returns ort_status and takes `ort_error *err` last
 * (NULL is allowed: the status alone is returned). The helpers below format into the fixed buffer,
 * never allocate, and return the status so that `return ort_error_set(err, ...)` reads as one line.
 */
#ifndef ORT_BASE_ERROR_H
#define ORT_BASE_ERROR_H

#include "ort.h"

/* Record `status` and the formatted message (truncated to the buffer). Returns `status`. */
ort_status ort_error_set(ort_error *err, ort_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put formatted context in front of the message already in `err`: "context: message". Returns the
 * status that `err` holds (`status` is returned unchanged when err is NULL). */
ort_status ort_error_wrap(ort_error *err, ort_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same where what failed means something else to the caller: a tensor of a file that doesn't
 * fit is a bad model inside of one, bad data elsewhere. err holds, and the call returns, `status`.
 */
ort_status ort_error_recast(ort_error *err, ort_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The one message for a failed allocation of `bytes`: it names the limit where the budget of this
 * thread refused them (budget.c). */
ort_status ort_error_memory(ort_error *err, size_t bytes);

/* A public function was given NULL where it needs something. */
ort_status ort_error_null(ort_error *err, const char *function);

/* Leave the enclosing function when an expression of type ort_status is not ORT_OK. Only for
 * functions that own nothing that must be released. */
#define ORT_TRY(expression)                                                                        \
    do {                                                                                           \
        ort_status ort_try_status_ = (expression);                                                 \
        if (ort_try_status_ != ORT_OK)                                                             \
            return ort_try_status_;                                                                \
    } while (0)

/* The same for functions with an exit label: stores the status in `status` and jumps. */
#define ORT_TRY_GOTO(status, expression, label)                                                    \
    do {                                                                                           \
        (status) = (expression);                                                                   \
        if ((status) != ORT_OK)                                                                    \
            goto label;                                                                            \
    } while (0)

#endif

/* log.h - the library prints nothing: messages go to the environment's callback, if any. */
#ifndef ORT_BASE_LOG_H
#define ORT_BASE_LOG_H

#include "ort.h"

typedef struct ort_log {
    ort_log_fn *fn; /* may be NULL */
    void *arg;
    ort_log_level level; /* messages above this level are dropped before formatting */
} ort_log;

void ort_log_write(const ort_log *log, ort_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Monotonic time in nanoseconds. */
uint64_t ort_clock_ns(void);

#endif

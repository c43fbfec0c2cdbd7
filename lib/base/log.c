/* log.c - messages to the environment's callback, and the monotonic clock. */
#include "base/log.h"

#include <stdarg.h>
#include <time.h>

void ort_log_write(const ort_log *log, ort_log_level level, const char *format, ...)
{
    if (!log || !log->fn || level > log->level || level == ORT_LOG_QUIET)
        return;
    char text[ORT_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    log->fn(log->arg, level, text);
}

uint64_t ort_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* error.c - status words, exit statuses and the formatting of error messages.
 *
 * Messages live in the caller's fixed buffer: nothing here allocates, so an error about exhausted
 * memory can always be reported. */
#include "base/error.h"

#include <stdarg.h>
#include <string.h>

typedef struct status_row {
    const char *name;
    int exit_status;
} status_row;

static const status_row status_rows[ORT_STATUS_COUNT] = {
    [ORT_OK] = {"ok", 0},
    [ORT_ERROR_GATE] = {"gate", 1},
    [ORT_ERROR_USAGE] = {"usage", 2},
    [ORT_ERROR_MODEL] = {"model", 3},
    [ORT_ERROR_UNSUPPORTED] = {"unsupported", 3},
    [ORT_ERROR_RUN] = {"run", 4},
    [ORT_ERROR_MEMORY] = {"memory", 4},
    [ORT_ERROR_DEVICE] = {"device", 4},
    [ORT_ERROR_CANCELLED] = {"cancelled", 4},
    [ORT_ERROR_TIMEOUT] = {"timeout", 4},
    [ORT_ERROR_DATA] = {"data", 5},
    [ORT_ERROR_IO] = {"io", 5},
};

const char *ort_status_name(ort_status status)
{
    return (unsigned)status < ORT_STATUS_COUNT ? status_rows[status].name : "unknown";
}

int ort_status_exit(ort_status status)
{
    return (unsigned)status < ORT_STATUS_COUNT ? status_rows[status].exit_status : 4;
}

ort_status ort_error_set(ort_error *err, ort_status status, const char *format, ...)
{
    if (!err)
        return status;
    /* Formatted aside first: arguments may point into err->message. */
    char text[ORT_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(err->message, text, sizeof text);
    err->status = status;
    err->count = 1;
    return status;
}

/* "context: message" in err, cut where it doesn't fit. */
static void put_context(ort_error *err, const char *format, va_list args)
{
    char text[ORT_ERROR_TEXT];
    int length = vsnprintf(text, sizeof text, format, args);
    if (length < 0)
        length = 0;
    size_t used = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    size_t left = sizeof text - used;
    if (left > 3) {
        memcpy(text + used, ": ", 2);
        size_t rest = strnlen(err->message, sizeof err->message - 1);
        if (rest > left - 3)
            rest = left - 3;
        memcpy(text + used + 2, err->message, rest);
        used += 2 + rest;
    }
    text[used] = '\0';
    memcpy(err->message, text, used + 1);
    if (err->count == 0)
        err->count = 1;
}

ort_status ort_error_wrap(ort_error *err, ort_status status, const char *format, ...)
{
    if (!err)
        return status;
    va_list args;
    va_start(args, format);
    put_context(err, format, args);
    va_end(args);
    if (err->status == ORT_OK)
        err->status = status;
    return err->status;
}

ort_status ort_error_recast(ort_error *err, ort_status status, const char *format, ...)
{
    if (!err)
        return status;
    va_list args;
    va_start(args, format);
    put_context(err, format, args);
    va_end(args);
    return err->status = status;
}

ort_status ort_error_null(ort_error *err, const char *function)
{
    return ort_error_set(err, ORT_ERROR_USAGE, "%s: an argument that is needed is NULL", function);
}

/* status.c - statuses: how a failure crosses the border.
 *
 * A client gets NULL for success, else an object with a number and a text that it frees. The texts
 * of what the library refuses are the library's own: they name place and remedy. Where clients are
 * known to compare texts, the ABI's words stand in front (explain.c).
 */
#include "abi.h"

#include <stdlib.h>
#include <string.h>

struct OrtStatus {
    enum abi_code code;
    char text[];
};

/* There is always one left to say that memory is exhausted. */
static struct {
    enum abi_code code;
    char text[24];
} exhausted = {ABI_FAIL, "Out of memory"};

OrtStatus *abi_no_memory(void) { return (OrtStatus *)&exhausted; }

OrtStatus *abi_CreateStatus(int code, const char *text)
{
    size_t length = strlen(text ? text : "");
    OrtStatus *status = code == ABI_OK ? NULL : malloc(sizeof *status + length + 1);
    if (code == ABI_OK)
        return NULL;
    if (!status)
        return abi_no_memory();
    status->code = code;
    memcpy(status->text, text ? text : "", length + 1);
    return status;
}

OrtStatus *abi_fail(enum abi_code code, const char *format, ...)
{
    char text[ORT_ERROR_TEXT];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return abi_CreateStatus(code, text);
}

OrtStatus *abi_from_error(const ort_error *err)
{
    static const enum abi_code codes[ORT_STATUS_COUNT] = {
        [ORT_OK] = ABI_FAIL,
        [ORT_ERROR_GATE] = ABI_FAIL,
        [ORT_ERROR_USAGE] = ABI_INVALID_ARGUMENT,
        [ORT_ERROR_MODEL] = ABI_INVALID_GRAPH,
        [ORT_ERROR_UNSUPPORTED] = ABI_NOT_IMPLEMENTED,
        [ORT_ERROR_RUN] = ABI_FAIL,
        [ORT_ERROR_MEMORY] = ABI_RUNTIME_EXCEPTION,
        [ORT_ERROR_DEVICE] = ABI_EP_FAIL,
        [ORT_ERROR_CANCELLED] = ABI_FAIL,
        [ORT_ERROR_TIMEOUT] = ABI_FAIL,
        [ORT_ERROR_DATA] = ABI_INVALID_ARGUMENT,
        [ORT_ERROR_IO] = ABI_NO_SUCH_FILE,
    };
    return abi_CreateStatus(codes[err->status], err->message);
}

OrtStatus *abi_missing(const char *function)
{
    return abi_fail(ABI_NOT_IMPLEMENTED, "%s is not provided by ort-tools", function);
}

int abi_GetErrorCode(const OrtStatus *status) { return status->code; }

const char *abi_GetErrorMessage(const OrtStatus *status) { return status->text; }

void abi_ReleaseStatus(OrtStatus *status)
{
    if (status != abi_no_memory())
        free(status);
}

/* findings.c - problems with their places, in the order found. Texts live in one arena. Errors are
 * counted even when memory for their text is exhausted: a check never passes by accident. */
#include "base/findings.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hashmap.h"
#include "base/vec.h"

typedef struct finding {
    const char *message;
    ort_severity severity;
} finding;

struct ort_findings {
    ort_arena arena;
    ORT_VEC(finding) list;
    size_t errors;
    ort_hashmap told; /* messages of the first `indexed`, once somebody asks */
    size_t indexed;
};

ort_status ort_findings_new(ort_findings **findings, ort_error *err)
{
    *findings = calloc(1, sizeof **findings);
    return *findings ? ORT_OK : ort_error_memory(err, sizeof **findings);
}

void ort_findings_free(ort_findings *findings)
{
    if (!findings)
        return;
    ort_hashmap_release(&findings->told);
    ort_arena_release(&findings->arena);
    ort_vec_release(&findings->list);
    free(findings);
}

void ort_findings_add(ort_findings *findings, ort_severity severity, const char *format, ...)
{
    if (severity == ORT_FINDING_ERROR)
        findings->errors++;
    char text[ORT_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *copy = ort_arena_strdup(&findings->arena, text);
    if (copy)
        (void)ort_vec_push(&findings->list, (finding){copy, severity});
}

void ort_findings_add_once(ort_findings *findings, ort_severity severity, const char *message)
{
    for (; findings->indexed < findings->list.count; findings->indexed++)
        (void)ort_hashmap_put_str(&findings->told, findings->list.data[findings->indexed].message,
                                  findings->indexed);
    if (!ort_hashmap_get_str(&findings->told, message, NULL))
        ort_findings_add(findings, severity, "%s", message);
}

size_t ort_findings_count(const ort_findings *findings)
{
    return findings ? findings->list.count : 0;
}

size_t ort_findings_errors(const ort_findings *findings)
{
    return findings ? findings->errors : 0;
}

const char *ort_findings_message(const ort_findings *findings, size_t index)
{
    return index < ort_findings_count(findings) ? findings->list.data[index].message : "";
}

ort_severity ort_findings_severity(const ort_findings *findings, size_t index)
{
    return index < ort_findings_count(findings) ? findings->list.data[index].severity
                                                : ORT_FINDING_NOTE;
}

/* Room kept at the end of the message for " (and N more)". */
enum { TAIL_ROOM = 32 };

ort_status ort_findings_to_error(const ort_findings *findings, ort_status status, ort_error *err)
{
    size_t errors = ort_findings_errors(findings);
    if (errors == 0)
        return ORT_OK;
    if (!err)
        return status;
    size_t used = 0, shown = 0;
    for (size_t i = 0; i < findings->list.count; i++) {
        if (findings->list.data[i].severity != ORT_FINDING_ERROR)
            continue;
        const char *text = findings->list.data[i].message;
        size_t length = strlen(text), room = sizeof err->message - TAIL_ROOM - used;
        if (length + 2 > room && shown > 0)
            break;
        if (length + 2 > room)
            length = room - 2;
        if (shown++)
            err->message[used++] = '\n';
        memcpy(err->message + used, text, length);
        used += length;
    }
    err->message[used] = '\0';
    if (shown < errors)
        snprintf(err->message + used, sizeof err->message - used, "%s(and %zu more)",
                 shown ? " " : "out of memory for messages ", errors - shown);
    err->status = status;
    err->count = errors > 0x7fffffff ? 0x7fffffff : (int)errors;
    return status;
}

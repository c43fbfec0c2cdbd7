/* note.c - near-misses: what passes say of places where they nearly changed something, that is the
 * condition that failed, or the operator that the model's opset lacks. Passes only note them; the
 * driver reports them at the end of the round.
 */
#include "pass/note.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- near-misses */

/* Passes try several forms at one node: the same condition comes in a row. */
static bool noted(const ort_near_misses *m, const ort_pass *pass, const ort_node *node,
                  const char *condition)
{
    for (size_t i = m->list.count; i-- > 0;) {
        const ort_near_miss *miss = &m->list.data[i];
        if (miss->pass != pass || miss->node != node)
            return false;
        if (!strcmp(miss->condition, condition))
            return true;
    }
    return false;
}

/* Without memory a near-miss is lost: it is talk. */
void ort_pass_note(const ort_pass_context *context, const ort_node *node, const char *format, ...)
{
    ort_near_misses *m = context->near_misses;
    char text[512], label[256];
    va_list args;
    if (!m)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (noted(m, context->pass, node, text))
        return;
    ort_near_miss miss = {context->pass, node,
                          ort_arena_strdup(&m->arena, ort_node_label(node, label, sizeof label)),
                          ort_arena_strdup(&m->arena, text)};
    if (miss.label && miss.condition)
        (void)!ort_vec_push(&m->list, miss);
}

static void tell(const ort_pass_options *o, const ort_near_miss *miss)
{
    if (o->near_miss)
        o->near_miss(o->near_miss_arg, miss->pass, miss->label, miss->condition);
    else
        ort_log_write(o->log, miss->pass->speaks ? ORT_LOG_INFO : ORT_LOG_DEBUG,
                      "pass %s leaves %s alone: %s", miss->pass->name, miss->label,
                      miss->condition);
}

void ort_near_misses_tell(const ort_near_misses *m, const ort_pass_options *options,
                          const ort_pass *pass)
{
    for (size_t i = 0; i < m->list.count; i++)
        if (m->list.data[i].pass == pass)
            tell(options, &m->list.data[i]);
}

void ort_near_misses_drop(ort_near_misses *m)
{
    ort_arena_release(&m->arena);
    ort_vec_release(&m->list);
    *m = (ort_near_misses){0};
}

/* ---- what may be written */

int ort_pass_opset(const ort_pass_context *c, const ort_node *node, const char *domain,
                   const char *op_type, int since)
{
    int have = (int)ort_model_opset(c->graph->model, domain);
    if (c->portable && !strcmp(domain, MS) && !c->contrib) {
        ort_pass_note(c, node, "com.microsoft %s would fit: --contrib allows it", op_type);
        return 0;
    }
    if (have >= since)
        return have;
    if (c->portable && !domain[0]) {
        ort_pass_note(c, node, "%s would fit: it came with opset %d, the model has %d", op_type,
                      since, have);
        return 0;
    }
    return since;
}

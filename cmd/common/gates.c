/* gates.c - judges latency and memory beside their limits. */
#include "common/gates.h"

static void add(gate_list *list, const char *name, const char *unit, double measured,
                double allowed)
{
    if (allowed > 0)
        list->gates[list->count++] = (gate){name, unit, measured, allowed, measured <= allowed};
}

void gates_judge(gate_list *list, const limits *l, double p50_ms, double p90_ms, double p99_ms)
{
    list->count = 0;
    add(list, "max-p50", "ms", p50_ms, l->p50_ms);
    add(list, "max-p90", "ms", p90_ms, l->p90_ms);
    add(list, "max-p99", "ms", p99_ms, l->p99_ms);
    add(list, "max-rss", "bytes", (double)ort_peak_rss_bytes(), (double)l->rss_bytes);
}

int gates_say(const gate_list *list)
{
    int status = 0;
    for (int i = 0; i < list->count; i++) {
        const gate *g = &list->gates[i];
        bool bytes = g->unit[0] == 'b';
        if (!g->passed)
            status = tool_error(ORT_ERROR_GATE, "--%s: measured %.6g %s, allowed %.6g %s", g->name,
                                bytes ? g->measured / 0x1p20 : g->measured, bytes ? "MiB" : "ms",
                                bytes ? g->allowed / 0x1p20 : g->allowed, bytes ? "MiB" : "ms");
    }
    return status;
}

void gates_print_json(const gate_list *list, bool first, FILE *out)
{
    for (int i = 0; i < list->count; i++) {
        const gate *g = &list->gates[i];
        fprintf(out, "%s\n    {\"gate\": \"%s\", \"passed\": %s, \"measured_%s\": %.17g, ",
                first && i == 0 ? "" : ",", g->name, g->passed ? "true" : "false", g->unit,
                g->measured);
        fprintf(out, "\"allowed_%s\": %.17g}", g->unit, g->allowed);
    }
}

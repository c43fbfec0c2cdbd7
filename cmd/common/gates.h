/* gates.h - gates that measure: latency and memory beside the limits that options set, and the list
 * of verdicts in a report.
 *
 * A list "gates" in a JSON report holds every gate that was asked for; when one of them did not
 * pass, the tool ends with EXIT_GATE.
 */
#ifndef COMMON_GATES_H
#define COMMON_GATES_H

#include "common/options.h"

typedef struct limits {
    double p50_ms, p90_ms, p99_ms; /* 0: none */
    size_t rss_bytes;
} limits;

/* Rows for a tool's table whose options struct has a `limits` member. `timed`: the options that
 * time runs, or NULL where runs are always timed; `beside`: what excludes gates, or NULL. */
#define LIMIT_ROWS(type, member, timed, beside)                                                    \
    {0, "max-p50", "TIME", OPTION_TIME, offsetof(type, member.p50_ms),                             \
     .doc = "exit 1 when half of the runs take longer, as 15ms", .needs = timed,                   \
     .excludes = beside, .positive = true, .gate = true},                                          \
    {0, "max-p90", "TIME", OPTION_TIME, offsetof(type, member.p90_ms),                             \
     .doc = "... when one in ten does", .needs = timed, .excludes = beside, .positive = true,      \
     .gate = true},                                                                                \
    {0, "max-p99", "TIME", OPTION_TIME, offsetof(type, member.p99_ms),                             \
     .doc = "... when one in a hundred does", .needs = timed, .excludes = beside,                  \
     .positive = true, .gate = true},                                                              \
    {0, "max-rss", "SIZE", OPTION_SIZE, offsetof(type, member.rss_bytes),                          \
     .doc = "exit 1 when the process takes more memory at its peak, as 512MB",                     \
     .excludes = beside, .positive = true, .gate = true}

typedef struct gate {
    const char *name, *unit; /* "max-p90", "ms" */
    double measured, allowed;
    bool passed;
} gate;

enum { MAX_GATES = 4 };

typedef struct gate_list {
    gate gates[MAX_GATES];
    int count;
} gate_list;

/* What was measured beside the limits that were set; a percentile that is not known (NaN) passes
 * none. */
void gates_judge(gate_list *list, const limits *l, double p50_ms, double p90_ms, double p99_ms);
/* Each gate that said no, with measured and allowed, on stderr. EXIT_GATE when one did, or 0. */
int gates_say(const gate_list *list);
/* Members of a JSON array, with a comma between them; `first`: nothing stands before them. */
void gates_print_json(const gate_list *list, bool first, FILE *out);

#endif

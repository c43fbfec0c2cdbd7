/* profile.h - what a profile holds: sites (a node with one set of input shapes), events (one
 * execution of a site), runs.
 *
 * exec calls the recording functions around a run and around each step; everything else happens
 * when a report is asked for. Times are nanoseconds of ort_clock_ns. A step that runs bodies
 * contains their steps: its self time is what remains without them, so that
 *
 *     sum of self times of a run's steps + the run's overhead = the run's wall time
 *
 * to the nanosecond. A profile belongs to one session and serves one run at a time; it reads the
 * session's graph and must not outlive it.
 */
#ifndef ORT_PROFILE_PROFILE_H
#define ORT_PROFILE_PROFILE_H

#include <stdio.h>

#include "base/json.h"
#include "op/op.h"
#include "profile/peak.h"

typedef struct ort_site_value { /* an input or output of a site */
    const char *name;
    bool present, is_tensor, is_weight;
    ort_dtype dtype;
    ort_shape shape;
} ort_site_value;

typedef struct ort_site ort_site;
struct ort_site {
    const ort_node *node;
    const ort_op *op;
    const char *provider;
    uint32_t id;
    int depth;                /* 0: of the main graph */
    ort_site *other_shapes;   /* of the same node */
    ort_site *follower;       /* the site that came next last time */
    ort_site_value *in, *out; /* counts are the node's */
    int in_count, out_count;
    bool shaped;              /* work and bytes are known: all values are tensors */
    ort_cost work;
    double in_bytes, weight_bytes, out_bytes; /* sizes of the tensors */
    double moved_bytes;       /* what must pass: a gather reads no more than it writes */
    double resident_bytes;    /* the memory that it lies in: less where the output is an input */
    uint64_t calls, self_ns, total_ns, cycles; /* measured runs only */
};

typedef struct ort_event {
    uint32_t site, run;
    uint64_t begin_ns, total_ns, self_ns;
} ort_event;

typedef struct ort_device_event { /* what a device did: a copy, a kernel */
    const char *provider, *kind, *name;
    uint32_t run;
    uint64_t queued_ns, begin_ns, end_ns;
} ort_device_event;

typedef struct ort_profile_share { /* of a provider */
    const char *name;
    int nodes;
    struct {
        uint64_t count;
        double bytes;
    } copies[2]; /* between it and the host, in measured runs: to it, from it */
} ort_profile_share;

enum { ORT_PROFILE_SHARES = 8 };

typedef struct ort_profile_run {
    uint64_t begin_ns, wall_ns, nodes_ns; /* nodes_ns: steps of the main graph, bodies included */
    uint64_t cycles;
    bool measured;
} ort_profile_run;

typedef struct ort_profile_phase {
    const char *name;
    uint64_t ns;
    int changes; /* of a pass; -1 for others */
} ort_profile_phase;

enum { ORT_PROFILE_DEPTH = 64 };

typedef struct ort_profile_open { /* a step that is running */
    uint64_t begin_ns, inner_ns, begin_cycles, inner_cycles;
} ort_profile_open;

struct ort_profile {
    ort_arena memory;
    const char *model, *provider, *isa;
    int threads;
    uint64_t origin_ns; /* when recording may begin */
    size_t max_events, dropped_events;
    int cycle_counter;  /* file descriptor, -1: none */
    char cycle_note[120];
    bool measuring;
    bool failed; /* memory was exhausted */
    bool broken; /* a measured run failed: its steps can't be told from the others */
    int depth;
    ort_profile_open open[ORT_PROFILE_DEPTH];
    ort_site *last;
    ort_hashmap by_node; /* node pointer bytes to the first site's id */
    ORT_VEC(ort_site *) sites;
    ORT_VEC(ort_event) events;
    ORT_VEC(ort_device_event) device_events;
    ort_profile_share shares[ORT_PROFILE_SHARES]; /* the host last; none where it is alone */
    int share_count;
    ORT_VEC(ort_profile_run) runs;
    ORT_VEC(ort_profile_phase) phases;
};

/* record.c */
ort_status ort_profile_create(const char *model, const char *provider, const char *isa, int threads,
                              const ort_profile_options *options, ort_profile **profile,
                              ort_error *err);
void ort_profile_add_phase(ort_profile *p, const char *name, uint64_t ns, int changes);
void ort_profile_begin_run(ort_profile *p);
void ort_profile_end_run(ort_profile *p, bool ok);
void ort_profile_begin_step(ort_profile *p);
/* `graph` is the one that the call's node stands in. */
void ort_profile_end_step(ort_profile *p, const ort_call *call, const ort_op *op,
                          const char *provider, const ort_graph *graph);

/* Within a step. */
void ort_profile_add_device(ort_profile *p, const ort_device_event *event);
/* So many bytes went to a provider's device (in), or came from there. */
void ort_profile_add_copy(ort_profile *p, const char *provider, bool in, size_t bytes);
/* A provider of the session and how many nodes it has. */
void ort_profile_add_share(ort_profile *p, const char *name, int nodes);

/* aggregate.c */
typedef struct ort_spread {
    size_t count;
    double min, p50, p90, p99, mean, cv; /* cv: standard deviation over the mean */
} ort_spread;

/* Sorts `numbers`. Percentiles by nearest rank. */
ort_spread ort_spread_of(double *numbers, size_t count);

typedef struct ort_profile_row { /* a site, or all sites of an operator */
    const ort_site *site;        /* the first of them */
    size_t nodes;
    uint64_t calls, self_ns, total_ns, cycles;
    double macs, flops, bytes;   /* of all calls */
    double bound_ns;             /* what the machine's peaks allow; 0: not known */
    ort_spread spread_ms;        /* self time: of a site per call, of an operator per run */
} ort_profile_row;

typedef struct ort_profile_summary {
    size_t runs, warmup_runs;
    double first_ms;             /* the very first run */
    uint64_t wall_ns, nodes_ns, cycles; /* over measured runs; overhead is the difference */
    ort_spread latency_ms;
    ort_profile_row *nodes, *operators; /* by self time, greatest first */
    size_t node_count, operator_count;
} ort_profile_summary;

/* peak may be NULL. */
ort_status ort_profile_summarize(const ort_profile *p, const ort_peak *peak,
                                 ort_profile_summary *summary, ort_error *err);
void ort_profile_summary_release(ort_profile_summary *summary);

/* report_profile.c: the object "ort-profile/1". */
ort_status ort_profile_write_json(const ort_profile *p, const ort_peak *peak, ort_strbuf *out,
                                  ort_error *err);
/* trace.c: Chrome's trace events, one per line, with the fields of onnxruntime's profiles. */
ort_status ort_profile_write_trace(const ort_profile *p, FILE *stream, ort_error *err);

#endif

/* provider.h - what a provider is: a row of the table in partition.c.
 *
 * A provider opens a device for one session, says of each node whether it runs it and why not, and
 * names the passes that bring its part of the graph into its own form. One of them, the host, is
 * this process: its nodes are steps that call their operators on the process's memory, and it runs
 * what nobody else takes. The others compute elsewhere. Of these a plan cuts the steps into parts:
 * consecutive steps of one provider, for given shapes. Each part is one step of the plan.
 *
 *     host step   host step   [copy_in x, copy_in w; run part 0; copy_out y; sync]   host step ...
 *
 * Who owns what. The session's partition owns the device. A device plan (all parts of one plan) is
 * immutable and serves any number of frames; a frame holds the memory that one run changes, and one
 * run uses it at a time. Values that only this provider reads never come to the host: the provider
 * places them in its own memory. What goes between (the list of copies) is decided by the plan of
 * the session (exec/plan_parts.c), once for each value and device, and is no node of the graph.
 *
 * Shapes. plan() is called for each set of input shapes with the types of all values settled; what
 * has no settled shape before a run (NonZero's result) no provider but the host is asked about.
 *
 * Errors. open: ORT_ERROR_DEVICE leaves the provider out where another may run (a warning), and is
 * the session's error where not. plan, frame, copies and run: ORT_ERROR_DEVICE or
 * ORT_ERROR_MEMORY, the run's error; the frame stays fit for another try.
 *
 * Threads. open, claim, close: one at a time for a device. plan and frame: any, also side by side.
 * copies, run and sync: one thread at a time for a frame.
 */
#ifndef ORT_PROVIDER_PROVIDER_H
#define ORT_PROVIDER_PROVIDER_H

#include "base/log.h"
#include "op/op.h"
#include "pass/pass.h"

/* A device as `ort-inspect --providers` shows it. */
typedef struct ort_device_info {
    const char *name, *vendor, *platform, *driver, *version;
    const char *kind;          /* "cpu", "gpu", "accelerator", "other" */
    uint64_t memory_bytes;     /* 0: not told */
    unsigned units, clock_mhz; /* 0: not told */
    bool half, int8_dot, unified; /* 16-bit arithmetic; dots of bytes; memory is the host's */
} ort_device_info;

typedef void ort_device_fn(void *arg, const ort_device_info *device);

typedef struct ort_provider_option { /* "device=0" behind a colon of the list */
    const char *key, *value;
} ort_provider_option;

#define ORT_PROVIDER_OPTIONS_MAX 16

typedef struct ort_provider_setup { /* what open is told; borrowed for the call */
    ort_provider_option options[ORT_PROVIDER_OPTIONS_MAX]; /* keys are those of the row */
    int option_count;
    int threads;        /* of the session's environment */
    const ort_log *log; /* lives as long as the device */
} ort_provider_setup;

/* A value that goes between host and device for a part. */
typedef struct ort_device_copy {
    ort_id id;
    int index; /* of all copies of the plan into (or out of) the device, in order */
} ort_device_copy;

typedef struct ort_device_part {
    int first, count; /* steps of the request */
    const ort_device_copy *in, *out; /* before and after the part runs */
    int in_count, out_count;
} ort_device_part;

typedef struct ort_device_step {
    const ort_node *node;
    const ort_op *op;
} ort_device_step;

/* What a plan is to be made for. All of it lives as long as the session's plan but for `facts`. */
typedef struct ort_device_request {
    const ort_graph *graph;
    const ort_device_step *steps; /* of all parts, in the order in which they run */
    const ort_device_part *parts;
    int step_count, part_count;
    /* By value id, of every value that a step reads or writes: type and shape are known; `value`:
     * what it is, where that is known now. */
    const ort_fact *facts;
    /* By value id: constants of the session, the same in each of its plans; else NULL. They may
     * have 16 bits where the fact has float, and any alignment. */
    const ort_tensor *const *constants;
} ort_device_request;

typedef struct ort_provider {
    size_t size; /* of this struct as the provider knows it: what lies behind is absent */
    const char *name, *doc;
    /* "device=N\0which one of its devices", ...: keys of `setup`, with what they take; ended by
     * NULL. NULL: none. `cost` is everybody's and isn't listed. */
    const char *const *options;
    bool host; /* this process */
    /* Tells of each device. ORT_ERROR_DEVICE: there is none, or its library is missing. */
    ort_status (*devices)(ort_device_fn *tell, void *arg, ort_error *err);
    /* *device is handed to the other calls. ORT_ERROR_USAGE: an option's value. */
    ort_status (*open)(const ort_provider_setup *setup, void **device, ort_error *err);
    void (*close)(void *device);
    /* Does it run this node? When not, *why is one line (static text): "no kernel", ... */
    bool (*claim)(void *device, const ort_graph *graph, const ort_node *node, const char **why);
    /* Does it have this operator in some form, whatever the device? For reports. */
    bool (*supports)(const ort_op *op);
    /* Rewrites that only make sense inside its part, of level 3, and those of other levels that
     * clean up behind them; in the order of passes.def, ended by NULL. Or NULL. */
    const ort_pass *const *lower;
    /* Estimates by class of device, in seconds: a node of this cost that touches so many bytes;
     * a copy between host and device (NULL for the host). */
    double (*cost)(void *device, const ort_cost *cost, double bytes);
    double (*copy_cost)(void *device, double bytes);

    /* The rest is of those that aren't the host. */
    ort_status (*plan)(void *device, const ort_device_request *request, void **plan,
                       ort_error *err);
    void (*plan_free)(void *plan);
    /* Memory, queue and kernels of one run at a time. *bytes: what it takes of the device. */
    ort_status (*frame)(void *plan, void **frame, size_t *bytes, ort_error *err);
    void (*frame_free)(void *frame);
    /* In order, they needn't wait: `data` stays good until sync has returned. */
    ort_status (*copy_in)(void *frame, int index, const void *data, ort_error *err);
    ort_status (*run)(void *frame, int part, ort_error *err);
    ort_status (*copy_out)(void *frame, int index, void *data, ort_error *err);
    ort_status (*sync)(void *frame, ort_error *err);
} ort_provider;

/* Rows, first the host; NULL past the end. */
const ort_provider *ort_provider_at(int index);
const ort_provider *const *ort_provider_table(void);
/* Are these rows fit for use: whole, one host, no name twice? ORT_ERROR_USAGE says what isn't. */
ort_status ort_provider_table_check(const ort_provider *const *table, ort_error *err);

#endif

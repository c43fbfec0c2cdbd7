/* ort_provider.h - what a provider is: for authors of providers, inside of libort and outside.
 *
 * Programs that run models need ort.h alone. A provider runs nodes of a model on a device: it opens
 * one for a session, says of each node whether it runs it and why not, and computes the parts of
 * the graph that it was given. libort's own providers are rows of this kind. One from elsewhere is
 * a shared object that exports one const table named ort_provider_entry; the tools load it with
 * --provider-lib LIB.so, or find it in the folders of ORT_PROVIDER_PATH as ort-provider-NAME.so, a
 * program with ort_env_add_provider_library. It needs this header and no symbol of libort: what it
 * asks of the runtime goes through a table of functions, `api`, which open, supports and plan are
 * handed. plugins/example in the sources of libort is a whole one in under 300 lines.
 *
 * How a run goes. A plan is made for given shapes. In it the steps of one provider stand in parts:
 * stretches of nodes without a node of anybody else between them.
 *
 *     host step   host step   [copy_in x, copy_in w; run part 0; copy_out y; sync]   host step ...
 *
 * Which values are copied the runtime decides, once for each value and device; what only this
 * provider reads never comes to the host, also from part to part. Constants are no copies: a plan
 * reads them when it is made.
 *
 * Who owns what. The session owns the device. A plan (all parts of one set of shapes) is immutable
 * and serves any number of frames; a frame holds the memory that one run changes, and one run uses
 * it at a time. Values that only this provider reads it places in its own memory.
 *
 * Shapes. plan is called for each set of input shapes with the types of all values settled; what
 * has no settled shape before a run (NonZero's result) only the host is asked about, and so are
 * nodes with bodies.
 *
 * Errors. A callback that fails returns what it says in err, which is never NULL (api->fail fills
 * it). What a status means:
 *
 *     ORT_ERROR_DEVICE   the device, its driver or its compiler can't go on. devices, open: there
 *                        is none, or it can't be used. In a run the session goes on on the host,
 *                        where its list of providers names the host.
 *     ORT_ERROR_MEMORY   the same, for want of memory.
 *     ORT_ERROR_USAGE    open alone: a value of an option is wrong; the user's error, whoever else
 *                        could run the model.
 *     ORT_ERROR_DATA     copies, run, sync: what the caller gave is wrong for every provider (an
 *                        index out of range). It is the run's error: nobody tries again, and the
 *                        device is as good as before.
 *
 * In a run any other status counts as ORT_ERROR_DEVICE, and so does one without a message. open:
 * DEVICE and MEMORY leave the provider out where another may run (a warning), and are the
 * session's error where not. plan, frame: the error of the run that needs them, or none where they
 * were made ahead of a session's first run, which makes them again. After an error of copies, run
 * or sync the frame stays fit for another try.
 *
 * Values of callers. A provider with memory of its own may keep inputs and outputs of runs on the
 * device (the last members of the row): what one session gives, the next takes where it lies.
 *
 * Threads. open, claim, close: one at a time for a device. plan and frame: any, also side by side.
 * copies, run and sync: one thread at a time for a frame.
 *
 * Versions. ORT_PROVIDER_ABI is raised when members are added, always at the end of a struct. A
 * struct says its size: what lies behind is absent, for either side.
 */
#ifndef ORT_PROVIDER_H
#define ORT_PROVIDER_H

#include "ort.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define ORT_PROVIDER_ABI 2

typedef uint32_t ort_id; /* of a value of a graph */
#define ORT_ID_NONE UINT32_MAX

/* What only api looks into. */
typedef struct ort_graph ort_graph;
typedef struct ort_node ort_node;
typedef struct ort_op ort_op;
typedef struct ort_log ort_log;
typedef struct ort_fact ort_fact;

/* ---------------------------------------------------------------------------------- devices -- */

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

typedef struct ort_provider_api ort_provider_api;

typedef struct ort_provider_setup { /* what open is told; borrowed for the call */
    ort_provider_option options[ORT_PROVIDER_OPTIONS_MAX]; /* keys are those of the row */
    int option_count;
    int threads;        /* of the session's environment */
    const ort_log *log; /* lives as long as the device */
    const ort_provider_api *api; /* lives as long as the library is loaded */
    /* From api->abi 2 on: a device of the provider whose memory (below) must serve this one, too;
     * it is closed later. NULL: none. */
    void *beside;
} ort_provider_setup;

/* ------------------------------------------------------------------------------------ plans -- */

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
    /* By value id, of every value that a step reads or writes: type and shape are known, and the
     * value where that is known now (api->settled). */
    const ort_fact *facts;
    /* By value id: constants of the session, the same in each of its plans; else NULL (api->settled
     * says whether, api->constant reads). They may have 16 bits where the fact has float, and any
     * alignment. */
    const ort_tensor *const *constants;
    const ort_provider_api *api;
} ort_device_request;

/* A value as claims and plans see it. */
typedef struct ort_device_value {
    ort_dtype dtype;   /* UNDEFINED: not known, or no tensor */
    int rank;          /* -1: not known */
    int64_t dims[16];  /* -1: open (in claims) */
    int64_t count;     /* elements; -1: not known */
    bool constant;     /* the same in every run: read with api->read or api->constant */
    const char *name;
} ort_device_value;

/* A part as an ONNX model, for those who compile parts as a whole. */
typedef struct ort_part_model {
    const void *bytes; /* a ModelProto: constants are initializers, all shapes are numbers */
    size_t count;
    /* Values that it takes: copies into the part, and what earlier parts left on the device. */
    const ort_id *inputs;
    /* Values that it gives: copies out of the part, and what later parts read. The names of inputs
     * and outputs are "v" and the number. */
    const ort_id *outputs;
    int input_count, output_count;
    void *owned;
} ort_part_model;

/* What a provider may ask of the runtime. */
struct ort_provider_api {
    uint32_t abi;  /* ORT_PROVIDER_ABI of the runtime */
    uint32_t size; /* of this struct */
    const char *(*version)(void); /* of the runtime, as "0.1.0" */

    /* An operator's row: domain ("" is ONNX's own), name, first version that it is for. */
    const char *(*op_domain)(const ort_op *op);
    const char *(*op_name)(const ort_op *op);
    int (*op_since)(const ort_op *op);

    /* A node: what it is called ("" if nothing), its operator, the version of its domain that
     * holds for it; the values in its slots, ORT_ID_NONE where left out and past the end. */
    const char *(*node_name)(const ort_node *node);
    const char *(*node_domain)(const ort_node *node);
    const char *(*node_type)(const ort_node *node);
    int (*node_opset)(const ort_node *node);
    int (*model_opset)(const ort_graph *graph, const char *domain); /* 0: not imported */
    int (*input_count)(const ort_node *node);
    int (*output_count)(const ort_node *node);
    ort_id (*input)(const ort_node *node, int slot);
    ort_id (*output)(const ort_node *node, int slot);
    /* Attributes by name; `otherwise` where the node has none of the name and type. Lists: NULL and
     * 0 then. */
    bool (*attr_given)(const ort_node *node, const char *name);
    int64_t (*attr_int)(const ort_node *node, const char *name, int64_t otherwise);
    float (*attr_float)(const ort_node *node, const char *name, float otherwise);
    const char *(*attr_string)(const ort_node *node, const char *name, const char *otherwise);
    const int64_t *(*attr_ints)(const ort_node *node, const char *name, size_t *count);
    const float *(*attr_floats)(const ort_node *node, const char *name, size_t *count);

    /* Values of a graph are numbered from 0. */
    size_t (*value_count)(const ort_graph *graph);
    /* In claims: what is known of a value before a run. */
    void (*value)(const ort_graph *graph, ort_id id, ort_device_value *value);
    /* The elements of one that is constant, in its element type; false where it isn't, or has not
     * this many bytes. */
    bool (*read)(const ort_graph *graph, ort_id id, void *to, size_t bytes);

    /* In plan: all types are settled. */
    void (*settled)(const ort_device_request *request, ort_id id, ort_device_value *value);
    bool (*constant)(const ort_device_request *request, ort_id id, void *to, size_t bytes);
    /* The part as a model of its own, until it is freed. */
    ort_status (*part_model)(const ort_device_request *request, int part, ort_part_model *model,
                             ort_error *err);
    void (*part_model_free)(ort_part_model *model);

    /* A line of the log; at its level or below, it is shown. */
    void (*say)(const ort_log *log, ort_log_level level, const char *text);
    /* Fills err and returns `status`: `return api->fail(err, ORT_ERROR_DEVICE, "...", ...)`. */
    ort_status (*fail)(ort_error *err, ort_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
};

/* ---------------------------------------------------------------------------- the provider -- */

typedef struct ort_device_time { /* something that a device did */
    const char *kind; /* "copy in", "kernel", "copy out" */
    const char *name; /* of the kernel; "" */
    uint64_t queued_ns, begin_ns, end_ns; /* of CLOCK_MONOTONIC */
} ort_device_time;

typedef void ort_device_time_fn(void *arg, const ort_device_time *time);

typedef struct ort_node_work { /* what costs are estimated from */
    double macs;   /* multiply-accumulates */
    double flops;  /* other arithmetic */
    double bytes;  /* that it touches */
    bool of_bytes; /* macs are those of integers of 8 bits */
} ort_node_work;

struct ort_pass; /* of libort's own providers */

typedef struct ort_provider {
    size_t size; /* of this struct as the provider knows it: what lies behind is absent */
    const char *name, *doc; /* the name has none of "," ":" "=" and blanks */
    /* "device=N\0which one of its devices", ...: keys of `setup`, with what they take; ended by
     * NULL. NULL: none. `cost` is everybody's and isn't listed. */
    const char *const *options;
    bool host; /* this process; false but in libort's own */
    /* Tells of each device. ORT_ERROR_DEVICE: there is none, or its library is missing. */
    ort_status (*devices)(ort_device_fn *tell, void *arg, ort_error *err);
    /* *device is handed to the other calls. ORT_ERROR_USAGE: an option's value. */
    ort_status (*open)(const ort_provider_setup *setup, void **device, ort_error *err);
    void (*close)(void *device);
    /* Does it run this node? When not, *why is one line (static text): "no kernel", ... */
    bool (*claim)(void *device, const ort_graph *graph, const ort_node *node, const char **why);
    /* Does it have this operator in some form, whatever the device? For reports. */
    bool (*supports)(const ort_provider_api *api, const ort_op *op);
    /* NULL but in libort's own: rewrites that only make sense inside its part, of level 3, and
     * those of other levels that clean up behind them; in the order of passes.def, ended by
     * NULL. */
    const struct ort_pass *const *lower;
    /* Estimates by class of device, in seconds: a node of this work; a copy between host and device
     * (NULL for the host). */
    double (*cost)(void *device, const ort_node_work *work);
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

    /* What follows may be absent. For profiles: the frame keeps times from now on, or no longer;
     * each thing done since the last call, after sync. Absent: the calls themselves are timed. */
    ort_status (*watch)(void *frame, bool on, ort_error *err);
    ort_status (*times)(void *frame, ort_device_time_fn *tell, void *arg, ort_error *err);

    /* All of these or none: memory of a device for values of callers, which outlives runs and
     * sessions. The runtime opens a device for it alone, `beside` which those of sessions are
     * opened; the calls come from any thread, also side by side. Does memory of `device` serve a
     * device that is opened so? */
    bool (*shares)(void *device, const ort_provider_setup *setup);
    ort_status (*memory)(void *device, size_t bytes, void **memory, ort_error *err);
    void (*memory_free)(void *memory);
    /* `offset` is a multiple of what memory_alignment says. The part is freed first. */
    ort_status (*memory_part)(void *memory, size_t offset, size_t bytes, void **part,
                              ort_error *err);
    size_t (*memory_alignment)(void *device);
    ort_status (*memory_write)(void *memory, const void *data, size_t bytes, ort_error *err);
    ort_status (*memory_read)(void *memory, void *data, size_t bytes, ort_error *err);
    /* From now on the value of copy `index` lies in this memory, which has its bytes: the frame's
     * parts read it there, or write it there, and copy_in or copy_out of it isn't called. NULL: in
     * the frame's own again. What is written overlaps nothing else that the frame uses. */
    ort_status (*use_in)(void *frame, int index, void *memory, ort_error *err);
    ort_status (*use_out)(void *frame, int index, void *memory, ort_error *err);

    /* May be absent, whatever else is there. Before a part runs: where copy_out of `index` is going
     * to copy, which is called with the same `data` or not at all. A device that reaches the host's
     * memory may write there at once. */
    ort_status (*place_out)(void *frame, int index, void *data, ort_error *err);
} ort_provider;

typedef struct ort_provider_library {
    uint32_t abi;  /* lowest ORT_PROVIDER_ABI that has all it uses of setup and api: 1 or 2 */
    uint32_t size; /* of this struct */
    const char *name, *version; /* for messages and reports; version may be NULL */
    const ort_provider *const *providers; /* ended by NULL */
} ort_provider_library;

/* What a library of providers defines (libort does not). */
extern const ort_provider_library ort_provider_entry;

/* As ort_env_add_provider_library (ort.h), for a table that is linked in. */
ORT_WARN_UNUSED ort_status ort_env_add_providers(ort_env *env, const ort_provider_library *library,
                                                 ort_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif

/* onednn.h - oneDNN (2.x) as a provider: one primitive for each node, on plain float tensors and on
 * the layouts that its convolutions like best.
 *
 * A plan holds buffers and operations: a primitive and which buffer stands for each argument. A
 * value lies in one buffer in the layout that its producer chose; whoever needs it plain asks for a
 * reorder, which is made once. A frame has the memory of one run, and a memory object for each
 * argument. The library computes in float throughout: its own mode for faster products stays off.
 */
#ifndef PLUGINS_ONEDNN_ONEDNN_H
#define PLUGINS_ONEDNN_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <ort_provider.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ARGS 8
#define MOST_AXES 6

typedef struct device {
    const ort_provider_api *api;
    dnnl_engine_t engine;
    int threads;
} device;

typedef struct buffer {
    size_t bytes, offset; /* in a frame's memory */
    void *data;           /* of a constant; else NULL */
} buffer;

typedef struct argument {
    int name, buffer; /* DNNL_ARG_... */
    dnnl_memory_desc_t md;
} argument;

typedef struct operation {
    dnnl_primitive_t primitive;
    argument args[MOST_ARGS + 64]; /* a concatenation has many */
    int count;
} operation;

typedef struct place { /* where a value lies; buffer -1: nowhere yet */
    int buffer, plain;
    dnnl_memory_desc_t md, plain_md;
} place;

typedef struct copy {
    int buffer;
    size_t bytes;
} copy;

typedef struct plan {
    device *d;
    buffer *buffers;
    int buffer_count;
    operation **operations;
    int operation_count;
    int *ends; /* by part */
    int part_count;
    copy *in, *out;
    size_t frame_bytes;
    /* while it is made: */
    const ort_device_request *r;
    place *places; /* by value id */
    dnnl_status_t status;
    bool failed; /* memory was short */
} plan;

typedef struct task { /* a node to be planned */
    plan *p;
    const ort_node *node;
    const struct row *row;
} task;

struct row {
    const char *domain, *op;
    /* Of a node with float tensors of at most MOST_AXES axes. */
    bool (*claim)(const ort_provider_api *api, const ort_graph *graph, const ort_node *node,
                  const char **why);
    void (*emit)(task *t);
    int algorithm;
};

/* onednn_rows.c */
const struct row *onednn_find(const char *domain, const char *op);
extern const struct row onednn_net_rows[], onednn_math_rows[];

/* onednn_plan.c: what rows are made of. Failures are noted in the plan. */
ort_status onednn_plan(void *device, const ort_device_request *request, void **plan,
                       ort_error *err);
void onednn_plan_free(void *plan);
bool onednn_check(plan *p, dnnl_status_t status);
/* A row-major tensor, of one axis where it has none. */
dnnl_memory_desc_t onednn_plain(const ort_device_value *value);
dnnl_memory_desc_t onednn_dims(int rank, const int64_t *dims);
ort_device_value onednn_in(const task *t, int slot);
ort_device_value onednn_out(const task *t, int slot);
bool onednn_has(const task *t, int slot);
/* An input as it lies, and as a plain tensor. */
int onednn_read(task *t, int slot, dnnl_memory_desc_t *md);
int onednn_read_plain(task *t, int slot, dnnl_memory_desc_t *md);
/* A new buffer that is the output from now on; the output in a buffer that is there. */
int onednn_write(task *t, int slot, const dnnl_memory_desc_t *md);
void onednn_set(task *t, int slot, int buffer, const dnnl_memory_desc_t *md);
int onednn_scratch(plan *p, const dnnl_memory_desc_t *md);
/* A buffer of `count` floats that are all `value`. */
int onednn_filled(plan *p, int64_t count, float value);
/* The buffer itself, or a reorder of it into `wanted`. */
int onednn_reorder(plan *p, int buffer, const dnnl_memory_desc_t *md,
                   const dnnl_memory_desc_t *wanted);
/* A primitive of this descriptor; its arguments follow by onednn_arg. NULL: failed. */
operation *onednn_add(plan *p, const_dnnl_op_desc_t desc, const_dnnl_primitive_attr_t attr,
                      dnnl_primitive_desc_t *chosen);
operation *onednn_add_chosen(plan *p, dnnl_primitive_desc_t chosen);
void onednn_arg(operation *o, int name, int buffer, const dnnl_memory_desc_t *md);

/* onednn_frame.c */
ort_status onednn_frame(void *plan, void **frame, size_t *bytes, ort_error *err);
void onednn_frame_free(void *frame);
ort_status onednn_copy_in(void *frame, int index, const void *data, ort_error *err);
ort_status onednn_copy_out(void *frame, int index, void *data, ort_error *err);
ort_status onednn_run(void *frame, int part, ort_error *err);
ort_status onednn_sync(void *frame, ort_error *err);

#endif

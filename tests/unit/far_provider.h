/* far_provider.h - a provider for tests: a device of memory that isn't the host's. It claims nodes
 * whose names begin with 'd', computes each by the plain interpreter, and refuses to read what was
 * never brought to it or computed there. Any of its calls can be made to fail. */
#ifndef TESTS_UNIT_FAR_PROVIDER_H
#define TESTS_UNIT_FAR_PROVIDER_H

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/kernel.h"
#include "op/eval.h"
#include "provider/partition.h"

typedef struct far_counts {
    int calls, fail_at; /* the call of this number fails; 0: none */
    int copied, ran;    /* values in either direction; nodes */
    int open;           /* plans and frames that weren't freed */
} far_counts;

static far_counts far;

static ort_status far_call(ort_error *err)
{
    return ++far.calls == far.fail_at
               ? ort_error_set(err, ORT_ERROR_DEVICE, "the device fell over at call %d", far.calls)
               : ORT_OK;
}

typedef struct far_value {
    ort_tensor type;
    const ort_tensor *constant;
} far_value;

typedef struct far_plan {
    ort_device_step *steps;
    ort_device_part *parts;
    ort_id *in, *out;
    far_value *values;
    int step_count, part_count, value_count;
} far_plan;

typedef struct far_frame {
    far_plan *plan;
    void **data; /* by value id */
    bool *written;
} far_frame;

static ort_status far_devices(ort_device_fn *tell, void *arg, ort_error *err)
{
    const ort_device_info info = {.name = "far", .kind = "other"};
    tell(arg, &info);
    return ORT_OK;
}

static ort_status far_open(const ort_provider_setup *setup, void **device, ort_error *err)
{
    *device = NULL;
    return far_call(err);
}

static void far_close(void *device)
{
}

static bool far_claim(void *device, const ort_graph *graph, const ort_node *node, const char **why)
{
    *why = "its name doesn't begin with d";
    return node->name[0] == 'd';
}

static bool far_supports(const ort_provider_api *api, const ort_op *op)
{
    return true;
}

/* Cheaper than the host's 0.5 microseconds a node; a copy is worth two of them and more. */
static double far_cost(void *device, const ort_node_work *work)
{
    return 0.1e-6;
}

static double far_copy_cost(void *device, double bytes)
{
    return 1e-6;
}

static void far_plan_free(void *plan)
{
    far_plan *p = plan;
    far.open--;
    free(p->steps);
    free(p->parts);
    free(p->in);
    free(p->out);
    free(p->values);
    free(p);
}

static ort_status far_plan_new(void *device, const ort_device_request *r, void **plan,
                               ort_error *err)
{
    ORT_TRY(far_call(err));
    far_plan *p = calloc(1, sizeof *p);
    size_t values = r->graph->values.count, in = 0, out = 0;
    far.open++;
    p->step_count = r->step_count;
    p->part_count = r->part_count;
    p->value_count = (int)values;
    p->steps = malloc(sizeof *p->steps * (size_t)r->step_count);
    p->parts = malloc(sizeof *p->parts * (size_t)r->part_count);
    p->in = calloc(values * 2, sizeof *p->in);
    p->out = calloc(values * 2, sizeof *p->out);
    p->values = calloc(values, sizeof *p->values);
    memcpy(p->steps, r->steps, sizeof *p->steps * (size_t)r->step_count);
    memcpy(p->parts, r->parts, sizeof *p->parts * (size_t)r->part_count);
    for (int i = 0; i < r->part_count; i++) {
        for (int k = 0; k < r->parts[i].in_count; k++)
            p->in[in++] = r->parts[i].in[k].id;
        for (int k = 0; k < r->parts[i].out_count; k++)
            p->out[out++] = r->parts[i].out[k].id;
    }
    for (size_t id = 0; id < values; id++) {
        p->values[id].type.dtype = r->facts[id].type.dtype;
        (void)ort_type_concrete(&r->facts[id].type, &p->values[id].type.shape);
        p->values[id].constant = r->constants[id] ? r->constants[id] : r->facts[id].value;
    }
    *plan = p;
    return ORT_OK;
}

static void far_frame_free(void *frame)
{
    far_frame *f = frame;
    far.open--;
    for (int i = 0; i < f->plan->value_count; i++)
        free(f->data[i]);
    free(f->data);
    free(f->written);
    free(f);
}

static ort_status far_frame_new(void *plan, void **frame, size_t *bytes, ort_error *err)
{
    ORT_TRY(far_call(err));
    far_frame *f = calloc(1, sizeof *f);
    far.open++;
    f->plan = plan;
    f->data = calloc((size_t)f->plan->value_count + 1, sizeof *f->data);
    f->written = calloc((size_t)f->plan->value_count + 1, sizeof *f->written);
    *frame = f;
    return ORT_OK;
}

static size_t far_reserve(far_frame *f, ort_id id)
{
    size_t bytes = ort_tensor_bytes(&f->plan->values[id].type);
    if (!f->data[id])
        f->data[id] = malloc(bytes + 1);
    return bytes;
}

static ort_status far_copy_in(void *frame, int index, const void *data, ort_error *err)
{
    far_frame *f = frame;
    ORT_TRY(far_call(err));
    ort_id id = f->plan->in[index];
    size_t bytes = far_reserve(f, id);
    memcpy(f->data[id], data, bytes);
    f->written[id] = true;
    far.copied++;
    return ORT_OK;
}

static ort_status far_copy_out(void *frame, int index, void *data, ort_error *err)
{
    far_frame *f = frame;
    ORT_TRY(far_call(err));
    ort_id id = f->plan->out[index];
    if (!f->written[id])
        return ort_error_set(err, ORT_ERROR_RUN, "value %u comes back and was never there", id);
    size_t bytes = far_reserve(f, id);
    memcpy(data, f->data[id], bytes);
    far.copied++;
    return ORT_OK;
}

static ort_status far_step(far_frame *f, const ort_device_step *step, ort_error *err)
{
    const ort_node *node = step->node;
    ort_value *in[8] = {0}, *out[8] = {0};
    ort_fact facts[8];
    const ort_fact *list[8] = {0};
    ort_status status = ORT_OK;
    for (int i = 0; i < node->input_count && status == ORT_OK; i++) {
        ort_id id = node->inputs[i];
        if (id == ORT_ID_NONE)
            continue;
        ort_tensor view = f->plan->values[id].type;
        if (!f->plan->values[id].constant && !f->written[id])
            return ort_error_set(err, ORT_ERROR_RUN, "value %u is read and was never there", id);
        view.data = f->plan->values[id].constant ? f->plan->values[id].constant->data : f->data[id];
        status = ort_value_new_view(&view, &in[i], err);
        facts[i] = ort_fact_of_value(in[i]);
        list[i] = &facts[i];
    }
    if (status == ORT_OK)
        status = ort_node_eval(node, list, ort_kernels_get("scalar"), NULL, in, node->input_count,
                               out, node->output_count, err);
    for (int i = 0; i < node->output_count && status == ORT_OK; i++) {
        ort_id id = node->outputs[i];
        if (id == ORT_ID_NONE)
            continue;
        size_t bytes = far_reserve(f, id);
        memcpy(f->data[id], out[i]->tensor.data, bytes);
        f->written[id] = true;
    }
    for (int i = 0; i < 8; i++) {
        ort_value_free(in[i]);
        ort_value_free(out[i]);
    }
    far.ran++;
    return status;
}

static ort_status far_run(void *frame, int part, ort_error *err)
{
    far_frame *f = frame;
    const ort_device_part *p = &f->plan->parts[part];
    ORT_TRY(far_call(err));
    for (int i = 0; i < p->count; i++)
        ORT_TRY(far_step(f, &f->plan->steps[p->first + i], err));
    return ORT_OK;
}

static ort_status far_sync(void *frame, ort_error *err)
{
    return far_call(err);
}

static const ort_provider far_provider = {
    .size = sizeof(ort_provider), .name = "far", .doc = "a test", .devices = far_devices,
    .open = far_open, .close = far_close, .claim = far_claim, .supports = far_supports,
    .cost = far_cost, .copy_cost = far_copy_cost, .plan = far_plan_new,
    .plan_free = far_plan_free, .frame = far_frame_new, .frame_free = far_frame_free,
    .copy_in = far_copy_in, .run = far_run, .copy_out = far_copy_out, .sync = far_sync};

#endif

/* opencl_ahead.c - what the steps behind a step mean for it: launches and copies that needn't be.
 *
 * An activation that alone reads what a convolution or a product writes is applied by that one's
 * kernels. What a Concat joins, where its parts lie one behind the other, is written to its place
 * in the result by whoever makes it. Products of one value with weights of one shape, as queries,
 * keys and values are made, are one launch. A norm that alone reads a product's rows is made by the
 * product's items (opencl_norm.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "provider/opencl/opencl_parts.h"

/* ---- readers */

static void count_uses(ort_cl_plan *p)
{
    const ort_device_request *r = p->request;
    for (int i = 0; i < r->step_count; i++)
        for (int k = 0; k < r->steps[i].node->input_count; k++) {
            ort_id id = r->steps[i].node->inputs[k];
            if (id == ORT_ID_NONE)
                continue;
            p->ahead[id].uses++;
            p->ahead[id].reader = &r->steps[i];
        }
    for (int i = 0; i < r->part_count; i++) {
        const ort_device_part *part = &r->parts[i];
        for (int k = 0; k < part->out_count; k++) {
            p->ahead[part->out[k].id].uses++;
            p->ahead[part->out[k].id].copied = true;
        }
        for (int k = 0; k < part->in_count; k++)
            p->ahead[part->in[k].id].copied = true;
    }
}

/* ---- activations */

const ort_device_step *ort_cl_next(const ort_cl_plan *p, const ort_cl_step *s)
{
    ort_cl_activation activation;
    if (!s->row->activates || p->device->chain == 1)
        return NULL;
    const ort_cl_ahead *ahead = &p->ahead[s->node->outputs[0]];
    bool own = ort_cl_find_activation(s->node, &activation) && activation.kind;
    return !own && ahead->uses == 1 && ahead->reader &&
                   ort_cl_next_activation(p, ahead->reader, &activation)
               ? ahead->reader
               : NULL;
}

/* ---- what else may ride with a step */

ort_cl_step ort_cl_step_of(const ort_cl_step *s, const ort_device_step *step)
{
    ort_cl_step other = {s->plan, step->node, step->op, s->plan->device->row_of(step->op), NULL,
                         s->half, s->tiles, NULL};
    other.next = ort_cl_next(s->plan, &other);
    return other;
}

void ort_cl_set_made(const ort_cl_step *s)
{
    const ort_node *all[] = {s->node, s->next ? s->next->node : NULL, s->sum ? s->sum->node : NULL};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]) {
            s->plan->ahead[all[i]->outputs[0]].made = true;
            ort_cl_set_past(s->plan, all[i]);
        }
}

void ort_cl_set_past(ort_cl_plan *p, const ort_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            p->ahead[node->outputs[i]].past = true;
}

const ort_device_step *ort_cl_only_reader(const ort_cl_step *s)
{
    const ort_cl_plan *p = s->plan;
    const ort_cl_ahead *ahead = &p->ahead[ort_cl_last_node(s)->outputs[0]];
    const ort_device_part *part = &p->request->parts[p->ends.count];
    const ort_device_step *first = p->request->steps + part->first, *step = ahead->reader;
    bool alone = ahead->uses == 1 && !ahead->copied && ahead->joined == ORT_ID_NONE;
    return alone && step && step >= first && step < first + part->count && p->device->chain != 1
               ? step
               : NULL;
}

const ort_device_step *ort_cl_steps_behind(const ort_cl_step *s, const ort_device_step **end)
{
    const ort_cl_plan *p = s->plan;
    const ort_device_part *part = &p->request->parts[p->ends.count];
    const ort_device_step *step = p->request->steps + part->first;
    *end = step + part->count;
    while (step < *end && step->node != s->node)
        step++;
    return step < *end ? step + 1 : step;
}

bool ort_cl_is_there(const ort_cl_step *s, ort_id id)
{
    const ort_cl_plan *p = s->plan;
    bool has_place = p->buffer_of[id] >= 0 || p->half_of[id] >= 0 || p->view_of[id].whole >= 0;
    return p->request->facts[id].value || (p->ahead[id].past && has_place);
}

/* ---- products of one value */

/* Is the step a plain product with a weight of the session, whose result stays on the device? */
static bool is_plain_product(const ort_cl_plan *p, const ort_device_step *step)
{
    const ort_node *node = step->node;
    const ort_cl_step s = {.plan = (ort_cl_plan *)p, .node = node, .op = step->op,
                           .row = p->device->row_of(step->op)};
    const ort_cl_ahead *ahead = &p->ahead[node->outputs[0]];
    return !strcmp(step->op->name, "MatMul") && p->request->constants[node->inputs[1]] &&
           p->request->facts[node->inputs[1]].type.rank == 2 && !ahead->made && !ahead->copied &&
           ahead->joined == ORT_ID_NONE && !ort_cl_next(p, &s);
}

static bool is_sibling(const ort_cl_plan *p, const ort_device_step *a, const ort_device_step *b)
{
    const ort_type *x = &p->request->facts[a->node->inputs[1]].type;
    const ort_type *y = &p->request->facts[b->node->inputs[1]].type;
    return is_plain_product(p, b) && a->node->inputs[0] == b->node->inputs[0] &&
           x->dim[0].size == y->dim[0].size && x->dim[1].size == y->dim[1].size;
}

int ort_cl_siblings(const ort_cl_step *s, const ort_node **list)
{
    const ort_cl_plan *p = s->plan;
    const ort_device_part *part = &p->request->parts[p->ends.count];
    const ort_device_step *step = p->request->steps + part->first, *end = step + part->count;
    int count = 0;
    while (step < end && step->node != s->node)
        step++;
    if (step == end || !is_plain_product(p, step))
        return 0;
    for (const ort_device_step *other = step; other < end && count < ORT_CL_SIBLINGS; other++)
        if (other == step || is_sibling(p, step, other))
            list[count++] = other->node;
    return count;
}

/* ---- Concat */

static int times_read(const ort_node *node, ort_id id)
{
    int times = 0;
    for (int i = 0; i < node->input_count; i++)
        times += node->inputs[i] == id;
    return times;
}

static void join(ort_cl_plan *p, const ort_device_step *step)
{
    const ort_node *node = step->node;
    const ort_fact *facts = p->request->facts, *y = &facts[node->outputs[0]];
    int64_t axis = ort_node_int(node, "axis", 1), at = 0;
    axis += axis < 0 ? y->type.rank : 0;
    for (int d = 0; d < axis; d++)
        if (ort_cl_dim(y, d) != 1)
            return;
    for (int i = 0; i < node->input_count; i++) {
        ort_id id = node->inputs[i];
        ort_cl_ahead *ahead = &p->ahead[id];
        if (!facts[id].value && !ahead->copied && ahead->joined == ORT_ID_NONE &&
            times_read(node, id) == 1) {
            ahead->joined = node->outputs[0];
            ahead->at = at;
        }
        at += ort_cl_count(&facts[id]);
    }
}

ort_status ort_cl_look_ahead(ort_cl_plan *p, ort_error *err)
{
    size_t values = p->request->graph->values.count;
    p->ahead = calloc(values + 1, sizeof *p->ahead);
    if (!p->ahead)
        return ort_error_memory(err, values * sizeof *p->ahead);
    for (size_t i = 0; i < values; i++)
        p->ahead[i].joined = ORT_ID_NONE;
    count_uses(p);
    for (int i = 0; i < p->request->step_count; i++)
        if (!strcmp(p->request->steps[i].op->name, "Concat"))
            join(p, &p->request->steps[i]);
    return ORT_OK;
}

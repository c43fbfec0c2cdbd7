/* record.c - what happens while a run is profiled: two looks at the clock per step, a look-up that
 * nearly always hits the site that followed last time, one event. A site's shapes, work and bytes
 * are found once, when it is first met.
 */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "profile/cycles.h"
#include "profile/profile.h"

#define DEFAULT_EVENTS 1000000

ort_status ort_profile_create(const char *model, const char *provider, const char *isa, int threads,
                              const ort_profile_options *options, ort_profile **profile,
                              ort_error *err)
{
    ort_profile *p = calloc(1, sizeof *p);
    *profile = NULL;
    if (!p)
        return ort_error_memory(err, sizeof *p);
    p->model = ort_arena_strdup(&p->memory, model ? model : "");
    p->provider = ort_arena_strdup(&p->memory, provider);
    p->isa = isa;
    p->threads = threads;
    p->max_events = options && options->max_events ? options->max_events : DEFAULT_EVENTS;
    p->cycle_counter = -1;
    if (options && options->cycles)
        p->cycle_counter = ort_cycles_open(p->cycle_note, sizeof p->cycle_note);
    p->failed = !p->model || !p->provider;
    p->origin_ns = ort_clock_ns();
    *profile = p;
    return ORT_OK;
}

void ort_profile_free(ort_profile *p)
{
    if (!p)
        return;
    ort_cycles_close(p->cycle_counter);
    ort_hashmap_release(&p->by_node);
    ort_vec_release(&p->sites);
    ort_vec_release(&p->events);
    ort_vec_release(&p->device_events);
    ort_vec_release(&p->runs);
    ort_vec_release(&p->phases);
    ort_arena_release(&p->memory);
    free(p);
}

void ort_profile_add_phase(ort_profile *p, const char *name, uint64_t ns, int changes)
{
    ort_profile_phase phase = {ort_arena_strdup(&p->memory, name), ns, changes};
    if (!phase.name || !ort_vec_push(&p->phases, phase))
        p->failed = true;
}

void ort_profile_add_share(ort_profile *p, const char *name, int nodes)
{
    if (p->share_count == ORT_PROFILE_SHARES)
        return;
    p->shares[p->share_count] = (ort_profile_share){.name = ort_arena_strdup(&p->memory, name),
                                                    .nodes = nodes};
    p->failed = p->failed || !p->shares[p->share_count].name;
    p->share_count++;
}

void ort_profile_add_device(ort_profile *p, const ort_device_event *event)
{
    ort_device_event own = *event;
    if (p->device_events.count >= p->max_events) {
        p->dropped_events++;
        return;
    }
    own.run = (uint32_t)(p->runs.count - 1);
    own.kind = ort_arena_strdup(&p->memory, event->kind);
    own.name = ort_arena_strdup(&p->memory, event->name);
    if (!own.kind || !own.name || !ort_vec_push(&p->device_events, own))
        p->failed = true;
}

void ort_profile_add_copy(ort_profile *p, const char *provider, bool in, size_t bytes)
{
    for (int i = 0; i < p->share_count && p->measuring; i++) {
        if (strcmp(p->shares[i].name, provider))
            continue;
        p->shares[i].copies[!in].count++;
        p->shares[i].copies[!in].bytes += (double)bytes;
    }
}

void ort_profile_start(ort_profile *p)
{
    if (!p)
        return;
    p->measuring = true;
}

/* ---- runs */

void ort_profile_begin_run(ort_profile *p)
{
    ort_profile_run run = {.measured = p->measuring};
    p->depth = 0;
    if (!ort_vec_push(&p->runs, run)) {
        p->failed = true;
        return;
    }
    ort_profile_run *r = &p->runs.data[p->runs.count - 1];
    r->cycles = ort_cycles_read(p->cycle_counter);
    r->begin_ns = ort_clock_ns();
}

void ort_profile_end_run(ort_profile *p, bool ok)
{
    uint64_t now = ort_clock_ns();
    if (p->runs.count == 0)
        return;
    ort_profile_run *r = &p->runs.data[p->runs.count - 1];
    r->wall_ns = now - r->begin_ns;
    r->cycles = ort_cycles_read(p->cycle_counter) - r->cycles;
    if (!ok && r->measured)
        p->broken = true;
}

/* ---- sites */

static bool same_value(const ort_site_value *seen, const ort_value *value)
{
    if (!value || value->kind == ORT_KIND_NONE)
        return !seen->present;
    if (!seen->present || seen->is_tensor != (value->kind == ORT_KIND_TENSOR))
        return false;
    return !seen->is_tensor || (seen->dtype == value->tensor.dtype &&
                                ort_shape_equal(&seen->shape, &value->tensor.shape));
}

static bool same_call(const ort_site *site, const ort_call *call)
{
    if (site->node != call->node)
        return false;
    for (int i = 0; i < site->in_count; i++)
        if (!same_value(&site->in[i], call->in[i]))
            return false;
    for (int i = 0; i < site->out_count; i++)
        if (!same_value(&site->out[i], call->out[i]))
            return false;
    return true;
}

static ort_site_value *describe(ort_profile *p, const ort_graph *graph, const ort_id *ids,
                                ort_value *const *values, int count)
{
    ort_site_value *list = ort_arena_array(&p->memory, (size_t)count + 1, sizeof *list);
    for (int i = 0; list && i < count; i++) {
        const ort_value *v = values[i];
        list[i].name = ids[i] == ORT_ID_NONE ? "" : graph->values.data[ids[i]]->name;
        list[i].present = v && v->kind != ORT_KIND_NONE;
        list[i].is_tensor = v && v->kind == ORT_KIND_TENSOR;
        if (!list[i].is_tensor)
            continue;
        list[i].dtype = v->tensor.dtype;
        list[i].shape = v->tensor.shape;
        list[i].is_weight = ids[i] != ORT_ID_NONE && ort_graph_is_weight(graph, ids[i]);
    }
    return list;
}

static double value_bytes(const ort_site_value *v)
{
    ort_tensor tensor = {.dtype = v->dtype, .shape = v->shape};
    return v->is_tensor ? (double)ort_tensor_bytes(&tensor) : 0;
}

static bool all_tensors(const ort_site_value *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i].present && !list[i].is_tensor)
            return false;
    return true;
}

static ort_fact fact_of(const ort_site_value *v)
{
    ort_tensor tensor = {.dtype = v->dtype, .shape = v->shape};
    ort_fact fact = {.type = ort_type_of_tensor(&tensor)};
    return fact;
}

static bool find_work(ort_profile *p, ort_site *site, const ort_call *call,
                      const ort_graph *graph)
{
    size_t count = (size_t)(site->in_count + site->out_count) + 1;
    ort_fact *facts = ort_arena_array(&p->memory, count, sizeof *facts);
    const ort_fact **in = ort_arena_array(&p->memory, count, sizeof *in);
    if (!facts || !in)
        return false;
    for (int i = 0; i < site->in_count; i++) {
        if (!site->in[i].present)
            continue;
        facts[i] = fact_of(&site->in[i]);
        in[i] = &facts[i];
    }
    for (int i = 0; i < site->out_count; i++)
        if (site->out[i].present)
            facts[site->in_count + i] = fact_of(&site->out[i]);
    ort_infer x = {.node = site->node, .op = site->op, .opset = site->node->opset,
                   .in_count = site->in_count, .out_count = site->out_count, .in = in,
                   .out = facts + site->in_count, .graph = graph, .state = call->state,
                   .plan_state = call->plan_state};
    ort_cost_of(&x, &site->work);
    return true;
}

/* Operators that touch a part of their first input only. */
static bool selects(const ort_op *op)
{
    static const char *const names[] = {"Gather", "GatherElements", "GatherND", "Slice",
                                        "GatherBlockQuantized", "Split", "CropAndResize"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(op->name, names[i]))
            return true;
    return false;
}

static void find_bytes(ort_site *site)
{
    double first = 0;
    for (int i = 0; i < site->in_count; i++) {
        double bytes = value_bytes(&site->in[i]);
        if (site->in[i].is_weight)
            site->weight_bytes += bytes;
        else
            site->in_bytes += bytes;
        if (i == 0)
            first = bytes;
    }
    for (int i = 0; i < site->out_count; i++)
        site->out_bytes += value_bytes(&site->out[i]);
    site->moved_bytes = site->in_bytes + site->weight_bytes + site->out_bytes;
    if (site->op->traits & (ORT_TRAIT_ALIAS | ORT_TRAIT_SHAPE_ONLY | ORT_TRAIT_CONTROL))
        site->moved_bytes = 0;
    else if (selects(site->op) && first > site->out_bytes)
        site->moved_bytes -= first - site->out_bytes;
}

/* Whether an output lies in the memory of an input. */
static bool in_place(const ort_call *call)
{
    for (int o = 0; o < call->out_count; o++)
        for (int i = 0; i < call->in_count; i++)
            if (call->out[o] && call->in[i] && call->out[o]->tensor.data &&
                call->out[o]->tensor.data == call->in[i]->tensor.data)
                return true;
    return false;
}

/* Adds the site behind those of the same node. */
static bool link_site(ort_profile *p, ort_site *site)
{
    uint64_t first;
    if (ort_hashmap_get(&p->by_node, (const char *)&site->node, sizeof site->node, &first)) {
        site->other_shapes = p->sites.data[first]->other_shapes;
        p->sites.data[first]->other_shapes = site;
    } else if (!ort_hashmap_put(&p->by_node, (const char *)&site->node, sizeof site->node,
                                site->id)) {
        return false;
    }
    return ort_vec_push(&p->sites, site);
}

static ort_site *new_site(ort_profile *p, const ort_call *call, const ort_op *op,
                          const ort_graph *graph)
{
    ort_site *site = ort_arena_alloc(&p->memory, sizeof *site);
    if (!site)
        return NULL;
    site->node = call->node;
    site->op = op;
    site->id = (uint32_t)p->sites.count;
    site->depth = p->depth;
    site->in_count = call->in_count;
    site->out_count = call->out_count;
    site->in = describe(p, graph, call->node->inputs, call->in, call->in_count);
    site->out = describe(p, graph, call->node->outputs, call->out, call->out_count);
    if (!site->in || !site->out)
        return NULL;
    site->shaped = all_tensors(site->in, site->in_count) &&
                   all_tensors(site->out, site->out_count);
    if (site->shaped && !find_work(p, site, call, graph))
        return NULL;
    find_bytes(site);
    site->resident_bytes = site->moved_bytes - (in_place(call) ? site->out_bytes : 0);
    return link_site(p, site) ? site : NULL;
}

static ort_site *find_site(ort_profile *p, const ort_call *call, const ort_op *op,
                           const ort_graph *graph)
{
    ort_site *site = p->last ? p->last->follower : NULL;
    uint64_t first;
    if (!site || !same_call(site, call)) {
        site = NULL;
        if (ort_hashmap_get(&p->by_node, (const char *)&call->node, sizeof call->node, &first))
            site = p->sites.data[first];
        while (site && !same_call(site, call))
            site = site->other_shapes;
        if (!site)
            site = new_site(p, call, op, graph);
        if (p->last)
            p->last->follower = site;
    }
    p->last = site;
    return site;
}

/* ---- steps */

void ort_profile_begin_step(ort_profile *p)
{
    int depth = p->depth++;
    if (depth >= ORT_PROFILE_DEPTH)
        return;
    p->open[depth] = (ort_profile_open){.begin_cycles = ort_cycles_read(p->cycle_counter)};
    p->open[depth].begin_ns = ort_clock_ns();
}

void ort_profile_end_step(ort_profile *p, const ort_call *call, const ort_op *op,
                          const char *provider, const ort_graph *graph)
{
    uint64_t now = ort_clock_ns(), cycles = ort_cycles_read(p->cycle_counter);
    int depth = --p->depth;
    if (depth >= ORT_PROFILE_DEPTH || p->failed) /* deeper steps count as their caller's own */
        return;
    const ort_profile_open *open = &p->open[depth];
    ort_profile_run *run = &p->runs.data[p->runs.count - 1];
    ort_site *site = find_site(p, call, op, graph);
    ort_event event = {.run = (uint32_t)(p->runs.count - 1),
                       .begin_ns = open->begin_ns,
                       .total_ns = now - open->begin_ns,
                       .self_ns = now - open->begin_ns - open->inner_ns};
    if (!site) {
        p->failed = true;
        return;
    }
    cycles -= open->begin_cycles;
    event.site = site->id;
    site->provider = provider;
    if (run->measured) {
        site->calls++;
        site->self_ns += event.self_ns;
        site->total_ns += event.total_ns;
        site->cycles += cycles - open->inner_cycles;
    }
    if (depth == 0) {
        run->nodes_ns += event.total_ns;
    } else {
        p->open[depth - 1].inner_ns += event.total_ns;
        p->open[depth - 1].inner_cycles += cycles;
    }
    if (p->events.count >= p->max_events)
        p->dropped_events++;
    else if (!ort_vec_push(&p->events, event))
        p->failed = true;
}

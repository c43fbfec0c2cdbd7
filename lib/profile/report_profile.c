/* report_profile.c - a profile as the object "ort-profile/1": the load by phase and pass, latency,
 * the machine's peaks, rows by operator and by node. Times of rows are means per measured run, so
 * that those of all nodes and overhead_ms add up to the mean latency. */
#include <string.h>

#include "base/error.h"
#include "profile/profile.h"

static void put(ort_json *json, const char *key, double value)
{
    ort_json_key(json, key);
    ort_json_double(json, value);
}

static void put_text(ort_json *json, const char *key, const char *text)
{
    ort_json_key(json, key);
    ort_json_string(json, text);
}

static void put_count(ort_json *json, const char *key, uint64_t value)
{
    ort_json_key(json, key);
    ort_json_uint(json, value);
}

static void put_null(ort_json *json, const char *key)
{
    ort_json_key(json, key);
    ort_json_null(json);
}

static void put_spread(ort_json *json, const char *key, const ort_spread *s)
{
    ort_json_key(json, key);
    if (s->count == 0) {
        ort_json_null(json);
        return;
    }
    ort_json_begin_object(json);
    put(json, "min", s->min);
    put(json, "p50", s->p50);
    put(json, "p90", s->p90);
    put(json, "p99", s->p99);
    put(json, "mean", s->mean);
    put(json, "cv", s->cv);
    ort_json_end_object(json);
}

static void put_load(ort_json *json, const ort_profile *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->phases.count; i++)
        sum += p->phases.data[i].ns;
    ort_json_key(json, "load");
    ort_json_begin_object(json);
    put(json, "total_ms", (double)sum / 1e6);
    ort_json_key(json, "phases");
    ort_json_begin_array(json);
    for (size_t i = 0; i < p->phases.count; i++) {
        const ort_profile_phase *phase = &p->phases.data[i];
        ort_json_begin_object(json);
        put_text(json, "name", phase->name);
        put_text(json, "kind", phase->changes < 0 ? "phase" : "pass");
        put(json, "ms", (double)phase->ns / 1e6);
        if (phase->changes >= 0)
            put_count(json, "changes", (uint64_t)phase->changes);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
    ort_json_end_object(json);
}

static void put_machine(ort_json *json, const ort_peak *peak)
{
    ort_json_key(json, "machine");
    if (!peak) {
        ort_json_null(json);
        return;
    }
    ort_json_begin_object(json);
    put_count(json, "threads", (uint64_t)peak->threads);
    put(json, "peak_gflops", peak->gflops);
    if (peak->int8_gops > 0)
        put(json, "peak_int8_gops", peak->int8_gops);
    else
        put_null(json, "peak_int8_gops");
    if (peak->tile_gflops > 0)
        put(json, "peak_tile_gflops", peak->tile_gflops);
    else
        put_null(json, "peak_tile_gflops");
    if (peak->ghz > 0)
        put(json, "ghz", peak->ghz);
    else
        put_null(json, "ghz");
    ort_json_key(json, "memory");
    ort_json_begin_array(json);
    for (int i = 0; i < peak->level_count; i++) {
        ort_json_begin_object(json);
        put_count(json, "working_set_bytes", peak->levels[i].bytes);
        put(json, "gb_per_s", peak->levels[i].gb_per_s);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
    ort_json_end_object(json);
}

/* What every row has: time, share, rates. */
static void put_figures(ort_json *json, const ort_profile *p, const ort_profile_summary *s,
                        const ort_profile_row *row)
{
    double ns = (double)row->self_ns, flops = 2 * row->macs + row->flops;
    put_count(json, "calls", row->calls);
    put(json, "self_ms", s->runs ? ns / 1e6 / (double)s->runs : 0);
    put(json, "total_ms", s->runs ? (double)row->total_ns / 1e6 / (double)s->runs : 0);
    put(json, "share", s->wall_ns ? ns / (double)s->wall_ns : 0);
    put_spread(json, "spread_ms", &row->spread_ms);
    put(json, "gflops_per_s", ns > 0 ? flops / ns : 0);
    put(json, "gb_per_s", ns > 0 ? row->bytes / ns : 0);
    if (row->bound_ns > 0 && ns > 0)
        put(json, "of_peak", row->bound_ns / ns);
    else
        put_null(json, "of_peak");
    if (p->cycle_counter >= 0 && s->runs)
        put(json, "cycles", (double)row->cycles / (double)s->runs);
}

static void put_operator(ort_json *json, const ort_profile *p, const ort_profile_summary *s,
                         const ort_profile_row *row)
{
    ort_json_begin_object(json);
    put_text(json, "op_type", row->site->op->name);
    put_text(json, "domain", *row->site->op->domain ? row->site->op->domain : "ai.onnx");
    put_count(json, "nodes", row->nodes);
    put_figures(json, p, s, row);
    ort_json_end_object(json);
}

static void put_values(ort_json *json, const char *key, const ort_site_value *list, int count)
{
    ort_json_key(json, key);
    ort_json_begin_array(json);
    for (int i = 0; i < count; i++) {
        ort_json_begin_object(json);
        put_text(json, "name", list[i].name);
        if (list[i].is_tensor) {
            put_text(json, "dtype", ort_dtype_name(list[i].dtype));
            ort_json_key(json, "shape");
            ort_json_begin_array(json);
            for (int d = 0; d < list[i].shape.rank; d++)
                ort_json_int(json, list[i].shape.dim[d]);
            ort_json_end_array(json);
            ort_json_key(json, "weight");
            ort_json_bool(json, list[i].is_weight);
        }
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

static void put_node(ort_json *json, const ort_profile *p, const ort_profile_summary *s,
                     const ort_profile_row *row)
{
    const ort_site *site = row->site;
    ort_json_begin_object(json);
    put_text(json, "name", site->node->name);
    put_text(json, "op_type", site->op->name);
    put_text(json, "domain", *site->op->domain ? site->op->domain : "ai.onnx");
    if (site->node->origin)
        put_text(json, "fused_from", site->node->origin);
    put_count(json, "index", site->id);
    put_count(json, "depth", (uint64_t)site->depth);
    put_text(json, "provider", site->provider);
    put_text(json, "tier", p->isa);
    put_text(json, "multiplies",
             site->work.of_bytes ? "bytes" : site->work.on_tiles ? "tiles" : "floats");
    put_figures(json, p, s, row);
    put(json, "macs", site->work.macs);
    put(json, "flops", site->work.flops);
    if (site->work.done_macs > 0)
        put(json, "done_macs", site->work.done_macs);
    put(json, "input_bytes", site->in_bytes);
    put(json, "weight_bytes", site->weight_bytes);
    put(json, "output_bytes", site->out_bytes);
    put_values(json, "inputs", site->in, site->in_count);
    put_values(json, "outputs", site->out, site->out_count);
    ort_json_end_object(json);
}

static void put_cycles(ort_json *json, const ort_profile *p, const ort_profile_summary *s)
{
    if (p->cycle_counter >= 0 && s->runs)
        put(json, "cycles", (double)s->cycles / (double)s->runs);
    else
        put_null(json, "cycles");
    if (*p->cycle_note)
        put_text(json, "cycles_note", p->cycle_note);
}

typedef struct device_sums { /* over measured runs */
    double copy_in, kernel, copy_out, queued;
} device_sums;

static void sum_device(const ort_profile *p, const char *provider, device_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    for (size_t i = 0; i < p->device_events.count; i++) {
        const ort_device_event *e = &p->device_events.data[i];
        double ns = (double)(e->end_ns - e->begin_ns);
        if (strcmp(e->provider, provider) || !p->runs.data[e->run].measured)
            continue;
        if (!strcmp(e->kind, "copy in"))
            sums->copy_in += ns;
        else if (!strcmp(e->kind, "copy out"))
            sums->copy_out += ns;
        else
            sums->kernel += ns;
        sums->queued += (double)(e->begin_ns - e->queued_ns);
    }
}

static double self_ns_of(const ort_profile *p, const char *provider)
{
    double ns = 0;
    for (size_t i = 0; i < p->sites.count; i++)
        if (!strcmp(p->sites.data[i]->provider, provider))
            ns += (double)p->sites.data[i]->self_ns;
    return ns;
}

/* By provider; what those nodes cost that no device runs, with all copies. */
static void put_providers(ort_json *json, const ort_profile *p, double runs)
{
    double per_ms = 1e6 * runs, copies = 0;
    int all = 0;
    ort_json_key(json, "providers");
    ort_json_begin_array(json);
    for (int i = 0; i < p->share_count; i++) {
        const ort_profile_share *share = &p->shares[i];
        device_sums sums;
        sum_device(p, share->name, &sums);
        all += share->nodes;
        copies += sums.copy_in + sums.copy_out;
        ort_json_begin_object(json);
        put_text(json, "name", share->name);
        put_count(json, "nodes", (uint64_t)share->nodes);
        put(json, "self_ms", self_ns_of(p, share->name) / per_ms);
        if (i < p->share_count - 1) {
            put(json, "kernel_ms", sums.kernel / per_ms);
            put(json, "copy_in_ms", sums.copy_in / per_ms);
            put(json, "copy_out_ms", sums.copy_out / per_ms);
            put(json, "queued_ms", sums.queued / per_ms);
            put(json, "copies_in", (double)share->copies[0].count / runs);
            put(json, "copy_in_bytes", share->copies[0].bytes / runs);
            put(json, "copies_out", (double)share->copies[1].count / runs);
            put(json, "copy_out_bytes", share->copies[1].bytes / runs);
        }
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
    if (!p->share_count)
        return;
    const ort_profile_share *host = &p->shares[p->share_count - 1];
    ort_json_key(json, "fallback");
    ort_json_begin_object(json);
    put_text(json, "provider", host->name);
    put_count(json, "nodes", (uint64_t)host->nodes);
    put_count(json, "of_nodes", (uint64_t)all);
    put(json, "copies_ms", copies / per_ms);
    put(json, "ms", (self_ns_of(p, host->name) + copies) / per_ms);
    ort_json_end_object(json);
}

ort_status ort_profile_write_json(const ort_profile *p, const ort_peak *peak, ort_strbuf *out,
                                  ort_error *err)
{
    ort_profile_summary s;
    ort_json json;
    ORT_TRY(ort_profile_summarize(p, peak, &s, err));
    double runs = s.runs ? (double)s.runs : 1;
    ort_json_init(&json, out, 1);
    ort_json_begin_object(&json);
    put_text(&json, "schema", "ort-profile/1");
    put_text(&json, "model", p->model);
    put_count(&json, "threads", (uint64_t)p->threads);
    put_text(&json, "provider", p->provider);
    put_text(&json, "isa", p->isa);
    put_machine(&json, peak);
    put_load(&json, p);
    put(&json, "first_ms", s.first_ms);
    put_count(&json, "warmup_runs", s.warmup_runs);
    put_count(&json, "runs", s.runs);
    put_spread(&json, "latency_ms", &s.latency_ms);
    put(&json, "nodes_ms", (double)s.nodes_ns / 1e6 / runs);
    put(&json, "overhead_ms", (double)(s.wall_ns - s.nodes_ns) / 1e6 / runs);
    put_cycles(&json, p, &s);
    put_count(&json, "dropped_events", p->dropped_events);
    put_providers(&json, p, runs);
    ort_json_key(&json, "operators");
    ort_json_begin_array(&json);
    for (size_t i = 0; i < s.operator_count; i++)
        put_operator(&json, p, &s, &s.operators[i]);
    ort_json_end_array(&json);
    ort_json_key(&json, "nodes");
    ort_json_begin_array(&json);
    for (size_t i = 0; i < s.node_count; i++)
        put_node(&json, p, &s, &s.nodes[i]);
    ort_json_end_array(&json);
    ort_json_end_object(&json);
    ort_profile_summary_release(&s);
    return out->failed ? ort_error_memory(err, out->length) : ORT_OK;
}

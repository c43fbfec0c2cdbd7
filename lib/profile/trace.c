/* trace.c - Chrome's trace-event form with the fields of onnxruntime's profiles: an array of
 * complete events, one per line, so that what reads those reads ours. Times are microseconds; the
 * load comes first, phase after phase, then the runs. Ends are rounded like begins, so that a step
 * lies inside its caller in the picture too. Our own arguments: fused_from, run, tier, macs, flops,
 * dur_ns. What devices did has lanes of its own, on the same axis.
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "profile/profile.h"

typedef struct tracer {
    const ort_profile *p;
    FILE *stream;
    ort_strbuf line;
    ort_json json;
    bool first;
    int lane; /* of the events of a device; 0: of the caller's thread */
} tracer;

static void put_text(ort_json *json, const char *key, const char *text)
{
    ort_json_key(json, key);
    ort_json_string(json, text);
}

/* onnxruntime writes numbers among the arguments as strings. */
static void put_number(ort_json *json, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.0f", value);
    put_text(json, key, text);
}

static void begin_event(tracer *t, const char *category, uint64_t begin_ns, uint64_t end_ns,
                        const char *name)
{
    ort_strbuf_clear(&t->line);
    ort_json_init(&t->json, &t->line, 0);
    ort_json_begin_object(&t->json);
    put_text(&t->json, "cat", category);
    ort_json_key(&t->json, "pid");
    ort_json_int(&t->json, getpid());
    ort_json_key(&t->json, "tid");
    ort_json_int(&t->json, getpid() + t->lane);
    ort_json_key(&t->json, "dur");
    ort_json_uint(&t->json, end_ns / 1000 - begin_ns / 1000);
    ort_json_key(&t->json, "ts");
    ort_json_uint(&t->json, begin_ns / 1000);
    put_text(&t->json, "ph", "X");
    put_text(&t->json, "name", name);
    ort_json_key(&t->json, "args");
    ort_json_begin_object(&t->json);
}

static void end_event(tracer *t)
{
    ort_json_end_object(&t->json);
    ort_json_end_object(&t->json);
    fputs(t->first ? "[\n" : ",\n", t->stream);
    fputs(ort_strbuf_text(&t->line), t->stream);
    t->first = false;
}

static void plain_event(tracer *t, uint64_t begin_ns, uint64_t end_ns, const char *name)
{
    begin_event(t, "Session", begin_ns, end_ns, name);
    end_event(t);
}

/* [{"float":[1,3,32,32]}, ...]; what is no tensor is left out, as there. */
static void put_types(ort_json *json, const char *key, const ort_site_value *list, int count)
{
    ort_json_key(json, key);
    ort_json_begin_array(json);
    for (int i = 0; i < count; i++) {
        if (!list[i].is_tensor)
            continue;
        ort_json_begin_object(json);
        ort_json_key(json, ort_dtype_name(list[i].dtype));
        ort_json_begin_array(json);
        for (int d = 0; d < list[i].shape.rank; d++)
            ort_json_int(json, list[i].shape.dim[d]);
        ort_json_end_array(json);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
}

static void node_event(tracer *t, const ort_event *e, uint64_t begin_ns)
{
    const ort_site *site = t->p->sites.data[e->site];
    ort_strbuf name = {0};
    if (*site->node->name)
        ort_strbuf_addf(&name, "%s_kernel_time", site->node->name);
    else
        ort_strbuf_addf(&name, "%s_%" PRIu32 "_kernel_time", site->op->name, site->id);
    begin_event(t, "Node", begin_ns, begin_ns + e->total_ns, ort_strbuf_text(&name));
    ort_strbuf_release(&name);
    put_text(&t->json, "op_name", site->op->name);
    bool host = !t->p->share_count ||
                !strcmp(site->provider, t->p->shares[t->p->share_count - 1].name);
    put_text(&t->json, "provider", host ? "CPUExecutionProvider" : site->provider);
    put_number(&t->json, "node_index", site->id);
    put_number(&t->json, "activation_size", site->in_bytes);
    put_number(&t->json, "parameter_size", site->weight_bytes);
    put_number(&t->json, "output_size", site->out_bytes);
    put_types(&t->json, "input_type_shape", site->in, site->in_count);
    put_types(&t->json, "output_type_shape", site->out, site->out_count);
    if (site->node->origin)
        put_text(&t->json, "fused_from", site->node->origin);
    put_number(&t->json, "run", e->run);
    put_text(&t->json, "tier", t->p->isa);
    put_number(&t->json, "macs", site->work.macs);
    put_number(&t->json, "flops", site->work.flops);
    put_number(&t->json, "dur_ns", (double)e->total_ns);
    end_event(t);
}

/* Returns the end of the load. */
static uint64_t load_events(tracer *t)
{
    const ort_profile *p = t->p;
    bool has_load = p->phases.count && !strcmp(p->phases.data[0].name, "load");
    uint64_t at = has_load ? p->phases.data[0].ns : 0, end = 0;
    for (size_t i = 0; i < p->phases.count; i++)
        end += p->phases.data[i].ns;
    plain_event(t, 0, at, "model_loading_uri");
    plain_event(t, at, end, "session_initialization");
    for (size_t i = has_load; i < p->phases.count; at += p->phases.data[i++].ns)
        plain_event(t, at, at + p->phases.data[i].ns, p->phases.data[i].name);
    return end;
}

/* In a lane of their own for each provider, on the same axis. */
static void device_event(tracer *t, const ort_device_event *e, uint64_t shift)
{
    char name[200];
    uint64_t begin = shift + e->begin_ns - t->p->origin_ns;
    for (int i = 0; i < t->p->share_count; i++)
        if (!strcmp(t->p->shares[i].name, e->provider))
            t->lane = i + 1;
    snprintf(name, sizeof name, "%s%s%s", e->kind, *e->name ? " " : "", e->name);
    begin_event(t, "Device", begin, begin + (e->end_ns - e->begin_ns), name);
    put_text(&t->json, "provider", e->provider);
    put_number(&t->json, "run", e->run);
    put_number(&t->json, "queued_ns", (double)(e->begin_ns - e->queued_ns));
    put_number(&t->json, "dur_ns", (double)(e->end_ns - e->begin_ns));
    end_event(t);
    t->lane = 0;
}

static void run_events(tracer *t, uint64_t shift)
{
    const ort_profile *p = t->p;
    size_t next = 0, device = 0;
    for (size_t r = 0; r < p->runs.count; r++) {
        const ort_profile_run *run = &p->runs.data[r];
        uint64_t begin = shift + run->begin_ns - p->origin_ns, end = begin + run->wall_ns;
        begin_event(t, "Session", begin, end, "model_run");
        put_number(&t->json, "run", (double)r);
        put_text(&t->json, "phase", run->measured ? "measured" : r ? "warm-up" : "first");
        end_event(t);
        plain_event(t, begin, end, "SequentialExecutor::Execute");
        for (; next < p->events.count && p->events.data[next].run == r; next++)
            node_event(t, &p->events.data[next],
                       shift + p->events.data[next].begin_ns - p->origin_ns);
        for (; device < p->device_events.count && p->device_events.data[device].run == r; device++)
            device_event(t, &p->device_events.data[device], shift);
    }
}

ort_status ort_profile_write_trace(const ort_profile *p, FILE *stream, ort_error *err)
{
    tracer t = {.p = p, .stream = stream, .first = true};
    if (p->failed)
        return ort_error_memory(err, p->events.count * sizeof *p->events.data);
    run_events(&t, load_events(&t));
    fputs("\n]\n", stream);
    bool failed = t.line.failed;
    ort_strbuf_release(&t.line);
    if (failed)
        return ort_error_memory(err, 1024);
    if (fflush(stream) != 0 || ferror(stream))
        return ort_error_set(err, ORT_ERROR_IO, "the trace can't be written");
    return ORT_OK;
}

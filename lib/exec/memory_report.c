/* memory_report.c - what a model needs to run (memory_report.h): a session and a plan are made for the
 * declared shapes, nothing is run. */
#include "exec/memory_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "exec/plan.h"
#include "exec/session.h"

static void put_text(ort_json *json, const char *key, const char *text)
{
    ort_json_key(json, key);
    ort_json_string(json, text);
}

static void put_int(ort_json *json, const char *key, int64_t value)
{
    ort_json_key(json, key);
    ort_json_int(json, value);
}

/* ---- the shapes to plan for */

static bool fix_given(const ort_port *port, ort_given *given)
{
    given->kind = ORT_KIND_TENSOR;
    if (port->default_value) {
        given->absent = true;
        return true;
    }
    if (port->type.kind == ORT_TYPE_SEQUENCE || port->type.kind == ORT_TYPE_MAP) {
        given->kind = port->type.kind == ORT_TYPE_MAP ? ORT_KIND_MAP : ORT_KIND_SEQUENCE;
        return true;
    }
    if (port->type.kind != ORT_TYPE_TENSOR || port->type.rank < 0)
        return false;
    given->dtype = port->type.dtype;
    given->shape.rank = port->type.rank;
    for (int i = 0; i < port->type.rank; i++) {
        if (!ort_dim_known(port->type.dim[i]))
            return false;
        given->shape.dim[i] = port->type.dim[i].size;
    }
    return true;
}

static ort_status fix_all(const ort_session *session, ort_given *given, ort_error *err)
{
    ort_strbuf open = {0};
    for (int i = 0; i < session->input_count; i++)
        if (!fix_given(&session->inputs[i], &given[i]))
            ort_strbuf_addf(&open, "%s%s (%s)", open.length ? ", " : "", session->inputs[i].name,
                            session->inputs[i].type_text);
    ort_status status = ORT_OK;
    if (open.length)
        status = ort_error_set(err, ORT_ERROR_USAGE,
                               "planned memory needs fixed shapes; open: %s (fix them with --dim "
                               "NAME=N or --shape NAME:DIMS)",
                               ort_strbuf_text(&open));
    ort_strbuf_release(&open);
    return status;
}

/* ---- the report */

static const char *storage_name(const ort_plan *plan, const ort_storage *s)
{
    return s->value == ORT_ID_NONE ? "(workspace)" : plan->program->graph->values.data[s->value]->name;
}

static int larger_first(const void *a, const void *b)
{
    const ort_storage *x = *(const ort_storage *const *)a, *y = *(const ort_storage *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x < y ? -1 : x > y;
}

static ort_status put_alive(ort_json *json, const ort_plan *plan, ort_error *err)
{
    const ort_storage **alive = calloc((size_t)plan->storage_count + 1, sizeof *alive);
    size_t count = 0;
    if (!alive)
        return ort_error_memory(err, sizeof *alive * (size_t)plan->storage_count);
    for (int i = 0; i < plan->storage_count; i++) {
        const ort_storage *s = &plan->storages[i];
        if (s->output < 0 && s->bytes && s->first <= plan->peak_position &&
            plan->peak_position <= s->last)
            alive[count++] = s;
    }
    qsort(alive, count, sizeof *alive, larger_first);
    ort_json_key(json, "alive_at_peak");
    ort_json_begin_array(json);
    for (size_t i = 0; i < count; i++) {
        ort_json_begin_object(json);
        put_text(json, "value", storage_name(plan, alive[i]));
        put_int(json, "bytes", (int64_t)alive[i]->bytes);
        put_int(json, "offset_bytes", (int64_t)alive[i]->offset);
        put_int(json, "first_step", alive[i]->first);
        put_int(json, "last_step", alive[i]->last);
        ort_json_end_object(json);
    }
    ort_json_end_array(json);
    free(alive);
    return ORT_OK;
}

static size_t output_bytes(const ort_plan *plan)
{
    size_t total = 0;
    for (int i = 0; i < plan->storage_count; i++)
        if (plan->storages[i].output >= 0)
            total += plan->storages[i].bytes;
    return total;
}

static ort_status put_plan(const ort_session *session, const ort_plan *plan, const char *path,
                           ort_strbuf *out, ort_error *err)
{
    ort_json json;
    char label[256] = "";
    for (int i = 0; i < plan->step_count; i++)
        if (plan->steps[i].position == plan->peak_position)
            ort_node_label(plan->steps[i].step->node, label, sizeof label);
    ort_json_init(&json, out, 1);
    ort_json_begin_object(&json);
    put_text(&json, "schema", "ort-inspect/1");
    put_text(&json, "report", "memory");
    put_text(&json, "model", path);
    put_int(&json, "arena_bytes", (int64_t)plan->arena_bytes);
    put_int(&json, "peak_bytes", (int64_t)plan->peak_bytes);
    put_int(&json, "output_bytes", (int64_t)output_bytes(plan));
    put_int(&json, "prepared_bytes", (int64_t)session->memory.used_bytes);
    put_int(&json, "weight_file_bytes",
            (int64_t)(session->model->file_bytes + session->model->external_bytes));
    put_int(&json, "threads", session->env->threads);
    put_int(&json, "steps", plan->step_count);
    put_int(&json, "dynamic_values", plan->dynamic_count);
    put_int(&json, "peak_step", plan->peak_position);
    put_text(&json, "peak_node", label);
    ort_status status = put_alive(&json, plan, err);
    ort_json_end_object(&json);
    ort_strbuf_add_char(out, '\n');
    return status;
}

static ort_status plan_and_report(const ort_session *session, const char *path, ort_strbuf *out,
                                  ort_error *err)
{
    ort_plan *plan = NULL;
    size_t count = (size_t)(session->program->input_count + session->program->capture_count);
    ort_given *given = calloc(count + 1, sizeof *given);
    if (!given)
        return ort_error_memory(err, count * sizeof *given);
    ort_status status = fix_all(session, given, err);
    if (status == ORT_OK)
        status = ort_plan_new(session->program, given, &plan, err);
    if (status == ORT_OK)
        status = put_plan(session, plan, path, out, err);
    if (plan)
        ort_plan_drop(plan);
    free(given);
    return status;
}

ort_status ort_exec_memory_report(ort_model *model, ort_strbuf *out, ort_error *err)
{
    ort_env *env = NULL;
    ort_session *session = NULL;
    ort_status status = ort_env_new(NULL, &env, err);
    if (status == ORT_OK)
        status = ort_session_new(env, model, NULL, &session, err);
    if (status == ORT_OK)
        status = plan_and_report(session, model->path, out, err);
    ort_session_free(session);
    ort_env_free(env);
    return status;
}

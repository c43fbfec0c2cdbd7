/* memory_report.c - a plan is made as for a run, and described. Nothing is computed but what
 * planning itself evaluates. */
#include "report/memory_report.h"

#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "made_up/made_up.h"
#include "report/report.h"

static void write_assumed(const ort_session *session, const ort_shape *shapes, ort_json *json)
{
    char text[128];
    ort_json_key(json, "assumed_dims");
    ort_json_begin_array(json);
    for (int i = 0; i < session->input_count; i++) {
        const ort_type *type = &session->inputs[i].type;
        for (int axis = 0; type->kind == ORT_TYPE_TENSOR && axis < type->rank; axis++) {
            if (ort_dim_known(type->dim[axis]))
                continue;
            ort_json_begin_object(json);
            ort_json_key(json, "input");
            ort_json_string(json, session->inputs[i].name);
            ort_json_key(json, "axis");
            ort_json_int(json, axis);
            ort_json_key(json, "dim");
            ort_json_string(json, ort_dim_format(session->model->dims, type->dim[axis], text,
                                                 sizeof text));
            ort_json_key(json, "size");
            ort_json_int(json, shapes[i].dim[axis]);
            ort_json_end_object(json);
        }
    }
    ort_json_end_array(json);
}

/* The same tensor as the input of the Cast that makes it (op/half_weight.h)? */
static bool is_passed_on(const ort_program *program, int id)
{
    const ort_graph *graph = program->graph;
    ort_id producer = graph->producers.data[id];
    const ort_node *node = producer == ORT_ID_NONE ? NULL : graph->nodes.data[producer];
    return node && node->input_count == 1 && node->inputs[0] != ORT_ID_NONE &&
           program->constants[node->inputs[0]] == program->constants[id];
}

static size_t constant_bytes(const ort_program *program)
{
    size_t bytes = 0;
    for (int id = 0; id < program->value_count; id++)
        if (program->constants[id] && program->constants[id]->dtype != ORT_DTYPE_UNDEFINED &&
            !is_passed_on(program, id))
            bytes += ort_tensor_bytes(program->constants[id]);
    return bytes;
}

static int by_bytes(const void *a, const void *b)
{
    const ort_storage *x = *(const ort_storage *const *)a, *y = *(const ort_storage *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y;
}

static void write_storage(const ort_plan *plan, const ort_storage *storage, ort_json *json)
{
    char text[256];
    ort_json_begin_object(json);
    ort_json_key(json, "value");
    if (storage->value == ORT_ID_NONE) {
        ort_json_string(json, "(scratch)");
    } else {
        const ort_tensor *tensor = &plan->slots[storage->value].tensor;
        ort_json_string(json, plan->program->graph->values.data[storage->value]->name);
        ort_json_key(json, "dtype");
        ort_json_string(json, ort_dtype_name(tensor->dtype));
        ort_json_key(json, "shape");
        ort_json_string(json, ort_shape_format(&tensor->shape, text, sizeof text));
    }
    ort_json_key(json, "bytes");
    ort_json_uint(json, storage->bytes);
    ort_json_end_object(json);
}

static ort_status write_peak(const ort_plan *plan, ort_json *json, ort_error *err)
{
    int count = 0;
    const ort_storage **alive = calloc((size_t)plan->storage_count + 1, sizeof *alive);
    if (!alive)
        return ort_error_memory(err, sizeof *alive * (size_t)plan->storage_count);
    ort_json_key(json, "peak");
    ort_json_begin_object(json);
    for (int i = 0; i < plan->step_count; i++) {
        const ort_node *node = plan->steps[i].step->node;
        if (plan->steps[i].position != plan->peak_position)
            continue;
        ort_json_key(json, "node");
        ort_json_string(json, node->name);
        ort_json_key(json, "op_type");
        ort_json_string(json, node->op_type);
    }
    for (int i = 0; i < plan->storage_count; i++) {
        const ort_storage *s = &plan->storages[i];
        if (s->output < 0 && s->within < 0 && s->bytes && s->first <= plan->peak_position &&
            s->last >= plan->peak_position)
            alive[count++] = s;
    }
    qsort(alive, (size_t)count, sizeof *alive, by_bytes);
    ort_json_key(json, "alive");
    ort_json_begin_array(json);
    for (int i = 0; i < count; i++)
        write_storage(plan, alive[i], json);
    ort_json_end_array(json);
    ort_json_end_object(json);
    free(alive);
    return ORT_OK;
}

static void write_sums(const ort_session *session, const ort_plan *plan, ort_json *json)
{
    size_t inputs = 0, outputs = 0;
    for (int i = 0; i < session->input_count; i++)
        if (plan->slots[session->inputs[i].id].place == ORT_PLACE_GIVEN)
            inputs += ort_tensor_bytes(&plan->slots[session->inputs[i].id].tensor);
    for (int i = 0; i < session->output_count; i++)
        if (plan->slots[session->outputs[i].id].fixed)
            outputs += ort_tensor_bytes(&plan->slots[session->outputs[i].id].tensor);
    ort_json_key(json, "constant_bytes");
    ort_json_uint(json, constant_bytes(session->program));
    ort_json_key(json, "prepared_bytes");
    ort_json_uint(json, session->memory.used_bytes + session->prepared_bytes);
    ort_json_key(json, "input_bytes");
    ort_json_uint(json, inputs);
    ort_json_key(json, "output_bytes");
    ort_json_uint(json, outputs);
    ort_json_key(json, "arena_bytes");
    ort_json_uint(json, plan->arena_bytes);
    ort_json_key(json, "peak_bytes");
    ort_json_uint(json, plan->peak_bytes);
    ort_json_key(json, "steps");
    ort_json_int(json, plan->step_count);
    ort_json_key(json, "dynamic_values");
    ort_json_int(json, plan->dynamic_count);
}

static ort_status describe(const ort_session *session, ort_json *json, ort_error *err)
{
    size_t count = (size_t)session->input_count + 1;
    ort_shape *shapes = calloc(count, sizeof *shapes);
    ort_plan *plan = NULL;
    if (!shapes)
        return ort_error_memory(err, count * sizeof *shapes);
    ort_exec_choose_shapes(session, shapes);
    ort_status status = ort_sizes_plan(session, shapes, &plan, err);
    if (status != ORT_OK) {
        status = ort_error_wrap(err, status, "with assumed input shapes");
        goto done;
    }
    write_assumed(session, shapes, json);
    write_sums(session, plan, json);
    status = write_peak(plan, json, err);
done:
    ort_plan_drop(plan);
    free(shapes);
    return status;
}

ort_status ort_exec_memory_report(ort_env *given, ort_model *model,
                                  const ort_session_options *options, ort_strbuf *out,
                                  ort_error *err)
{
    ort_json json;
    ort_env own = {.registry = (ort_registry *)(uintptr_t)model->registry,
                   .k = ort_kernels_get(NULL),
                   .limits = model->limits,
                   .threads = ort_cpu_count_usable()};
    ort_env *env = given ? given : &own;
    ort_model *copy = NULL;
    ort_session *session = NULL;
    if (model->skeleton)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "memory is planned from a model with its weights; this one was loaded "
                             "without them");
    ORT_TRY(ort_model_clone(model, &copy, err));
    const ort_session_parts parts = {.env = env, .model = copy, .options = options};
    ORT_TRY(ort_exec_session_make(&parts, &session, err));
    ort_report_begin(&json, out, "memory", model);
    ort_status status = describe(session, &json, err);
    ort_json_end_object(&json);
    ort_exec_session_release(session);
    return status;
}

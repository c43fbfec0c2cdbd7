/* op_run.c - one operator on values: a graph of one node in memory, and the interpreter. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/env.h"
#include "op/eval.h"

typedef struct single {
    ort_model *model;
    ort_node *node;
    ort_fact *facts;
    const ort_fact **fact_list;
} single;

static ort_status set_attribute(single *s, const ort_attribute_spec *spec, ort_error *err)
{
    ort_attr attr = {.name = spec->name};
    switch (spec->kind) {
    case 'i':
        attr.type = ORT_ATTR_INT;
        attr.i = spec->i;
        break;
    case 'f':
        attr.type = ORT_ATTR_FLOAT;
        attr.f = spec->f;
        break;
    case 's':
        attr.type = ORT_ATTR_STRING;
        attr.s = (ort_string){spec->s ? spec->s : "", spec->s ? strlen(spec->s) : 0};
        break;
    case 'I':
        attr.type = ORT_ATTR_INTS;
        attr.ints = spec->ints;
        attr.count = spec->count;
        break;
    case 'F':
        attr.type = ORT_ATTR_FLOATS;
        attr.floats = spec->floats;
        attr.count = spec->count;
        break;
    default:
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "attribute '%s' is of kind '%c'; known are i, f, s, I, F", spec->name,
                             spec->kind);
    }
    return ort_node_set_attr(s->model->graph, s->node, &attr, err);
}

static int64_t newest(const char *domain)
{
    return !strcmp(domain, ONNX) ? ORT_NEWEST_OPSET : !strcmp(domain, ML) ? ORT_NEWEST_ML_OPSET : 1;
}

static ort_status add_node(single *s, const char *domain, const char *op_type,
                           ort_value *const *inputs, size_t in, size_t out, ort_error *err)
{
    ort_graph *graph = s->model->graph;
    ort_id *ids = calloc(in + out + 1, sizeof *ids);
    bool ok = ids != NULL;
    for (size_t i = 0; ok && i < in + out; i++) {
        ids[i] = i < in && !inputs[i] ? ORT_ID_NONE : ort_graph_add_value(graph, "");
        ok = ids[i] != ORT_ID_NONE || (i < in && !inputs[i]);
    }
    if (ok)
        s->node = ort_graph_add_node(graph, domain, op_type, "", ids, (int)in, ids + in, (int)out);
    free(ids);
    return s->node ? ORT_OK : ort_error_memory(err, sizeof *s->node);
}

static ort_status build(single *s, ort_env *env, const char *domain, const char *op_type, int opset,
                        ort_value *const *inputs, size_t in, size_t out, ort_error *err)
{
    ort_opset import = {.domain = domain, .version = opset ? opset : newest(domain)};
    const ort_op *op = ort_registry_find(env->registry, domain, op_type, import.version);
    if (!op)
        return ort_error_set(err, ORT_ERROR_UNSUPPORTED,
                             "operator %s%s%s of opset %lld is unknown", domain,
                             domain[0] ? "." : "", op_type, (long long)import.version);
    s->model = ort_model_new();
    if (!s->model || !ort_vec_push(&s->model->opsets, import))
        return ort_error_memory(err, sizeof *s->model);
    s->model->registry = env->registry;
    s->model->graph = ort_graph_new(s->model, NULL, ORT_ID_NONE);
    if (!s->model->graph)
        return ort_error_memory(err, sizeof *s->model->graph);
    ORT_TRY(add_node(s, domain, op_type, inputs, in, out, err));
    s->node->op = op;
    s->node->opset = (int)import.version;
    s->facts = calloc(in + 1, sizeof *s->facts);
    s->fact_list = calloc(in + 1, sizeof *s->fact_list);
    if (!s->facts || !s->fact_list)
        return ort_error_memory(err, sizeof *s->facts);
    for (size_t i = 0; i < in; i++)
        if (inputs[i]) {
            s->facts[i] = ort_fact_of_value(inputs[i]);
            s->fact_list[i] = &s->facts[i];
        }
    return ORT_OK;
}

ort_status ort_op_run(ort_env *env, const char *domain, const char *op_type, int opset,
                      const ort_attribute_spec *attributes, size_t attribute_count,
                      ort_value *const *inputs, size_t input_count, ort_value **outputs,
                      size_t output_count, ort_error *err)
{
    single s = {0};
    ort_status status;
    if (!strcmp(domain, "ai.onnx"))
        domain = ONNX;
    for (size_t i = 0; i < output_count; i++)
        outputs[i] = NULL;
    status = build(&s, env, domain, op_type, opset, inputs, input_count, output_count, err);
    for (size_t i = 0; i < attribute_count && !status; i++)
        status = set_attribute(&s, &attributes[i], err);
    if (!status)
        status = ort_node_eval(s.node, s.fact_list, env->k, env->pool, inputs, (int)input_count,
                               outputs, (int)output_count, err);
    free(s.facts);
    free(s.fact_list);
    ort_model_free(s.model);
    return status;
}

/* op_run.c - running one operator on values: a graph of one node is made in memory and interpreted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/findings.h"
#include "exec/env.h"
#include "op/check/check.h"
#include "op/eval.h"

enum { MOST_SLOTS = 65536 };

typedef struct single {
    ort_model *model;
    ort_node *node;
    ort_fact *facts;
    const ort_fact **fact_list;
} single;

/* Those of a given length are copied: attributes end with a NUL as well. */
static bool set_text(single *s, const char *text, const size_t *length, ort_string *string)
{
    *string = (ort_string){text ? text : "", text ? length ? *length : strlen(text) : 0};
    if (length && string->length)
        string->ptr = ort_arena_strndup(&s->model->arena, text, string->length);
    return string->ptr != NULL;
}

static ort_status set_strings(single *s, const ort_attribute_spec *spec, ort_attr *attr,
                              ort_error *err)
{
    ort_string *list = ort_arena_array(&s->model->arena, spec->count + 1, sizeof *list);
    if (!list)
        return ort_error_memory(err, sizeof *list * spec->count);
    for (size_t i = 0; i < spec->count; i++)
        if (!set_text(s, spec->strings[i], spec->lengths ? &spec->lengths[i] : NULL, &list[i]))
            return ort_error_memory(err, list[i].length);
    attr->strings = list;
    return ORT_OK;
}

static ort_status not_a_tensor(const ort_attribute_spec *spec, ort_error *err)
{
    return ort_error_set(err, ORT_ERROR_USAGE, "attribute '%s': a value given is no tensor",
                         spec->name);
}

static bool is_tensor(const ort_value *value)
{
    return value && value->kind == ORT_KIND_TENSOR;
}

static ort_status set_tensors(single *s, const ort_attribute_spec *spec, ort_attr *attr,
                              ort_error *err)
{
    ort_tensor *list = ort_arena_array(&s->model->arena, spec->count + 1, sizeof *list);
    if (!list)
        return ort_error_memory(err, sizeof *list * spec->count);
    for (size_t i = 0; i < spec->count; i++) {
        if (!is_tensor(spec->tensors[i]))
            return not_a_tensor(spec, err);
        list[i] = spec->tensors[i]->tensor;
    }
    attr->tensors = list;
    return ORT_OK;
}

/* Is there a list of as many elements as it says? */
static bool has_list(const ort_attribute_spec *spec)
{
    const void *list = spec->kind == 'I'   ? (const void *)spec->ints
                       : spec->kind == 'F' ? (const void *)spec->floats
                       : spec->kind == 'S' ? (const void *)spec->strings
                                           : (const void *)spec->tensors;
    return list || !spec->count;
}

static ort_status fill_attribute(single *s, const ort_attribute_spec *spec, ort_attr *attr,
                                 ort_error *err)
{
    switch (spec->kind) {
    case 'i':
        attr->type = ORT_ATTR_INT;
        attr->i = spec->i;
        return ORT_OK;
    case 'f':
        attr->type = ORT_ATTR_FLOAT;
        attr->f = spec->f;
        return ORT_OK;
    case 's':
        attr->type = ORT_ATTR_STRING;
        if (!set_text(s, spec->s, spec->lengths, &attr->s))
            return ort_error_memory(err, attr->s.length);
        return ORT_OK;
    case 't':
        if (!is_tensor(spec->t))
            return not_a_tensor(spec, err);
        attr->type = ORT_ATTR_TENSOR;
        attr->t = &spec->t->tensor;
        return ORT_OK;
    case 'I':
        attr->type = ORT_ATTR_INTS;
        attr->ints = spec->ints;
        return ORT_OK;
    case 'F':
        attr->type = ORT_ATTR_FLOATS;
        attr->floats = spec->floats;
        return ORT_OK;
    case 'S':
        attr->type = ORT_ATTR_STRINGS;
        return set_strings(s, spec, attr, err);
    case 'T':
        attr->type = ORT_ATTR_TENSORS;
        return set_tensors(s, spec, attr, err);
    default:
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "attribute '%s' is of kind '%c'; known are i, f, s, t, I, F, S, T",
                             spec->name, spec->kind);
    }
}

static ort_status set_attribute(single *s, const ort_attribute_spec *spec, ort_error *err)
{
    ort_attr attr = {.name = spec->name};
    bool list = spec->kind == 'I' || spec->kind == 'F' || spec->kind == 'S' || spec->kind == 'T';
    if (!spec->name || (list && !has_list(spec)))
        return ort_error_null(err, "ort_op_run");
    ORT_TRY(fill_attribute(s, spec, &attr, err));
    attr.count = list ? spec->count : 0;
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
    return ORT_OK;
}

static ort_status check_node(single *s, ort_error *err)
{
    ort_findings *findings = NULL;
    ORT_TRY(ort_findings_new(&findings, err));
    ort_check_node(s->model->graph, s->node, s->node->op, findings);
    ort_status status = ort_findings_to_error(findings, ORT_ERROR_DATA, err);
    ort_findings_free(findings);
    return status;
}

/* Types of the inputs are facts of the graph, as a model's declarations are; what the check of a
 * model refuses is refused here, before inference looks at data. */
static ort_status check(single *s, ort_value *const *inputs, size_t in, ort_error *err)
{
    ort_graph *graph = s->model->graph;
    s->facts = calloc(in + 1, sizeof *s->facts);
    s->fact_list = calloc(in + 1, sizeof *s->fact_list);
    if (!s->facts || !s->fact_list)
        return ort_error_memory(err, sizeof *s->facts * in);
    for (size_t i = 0; i < in; i++) {
        if (!inputs[i])
            continue;
        s->facts[i] = ort_fact_of_value(inputs[i]);
        s->fact_list[i] = &s->facts[i];
        graph->values.data[s->node->inputs[i]]->fact = s->facts[i];
        graph->values.data[s->node->inputs[i]]->is_input = true;
    }
    ORT_TRY(check_node(s, err));
    ORT_TRY(ort_node_infer(s->model->graph, s->node, err));
    return check_node(s, err); /* an attribute may name a type that no output has */
}

ort_status ort_op_run(ort_env *env, const char *domain, const char *op_type, int opset,
                      const ort_attribute_spec *attributes, size_t attribute_count,
                      ort_value *const *inputs, size_t input_count, ort_value **outputs,
                      size_t output_count, ort_error *err)
{
    single s = {0};
    ort_status status;
    if (!env || !domain || !op_type || (attribute_count && !attributes) ||
        (input_count && !inputs) || (output_count && !outputs))
        return ort_error_null(err, __func__);
    for (size_t i = 0; i < output_count; i++)
        outputs[i] = NULL;
    if (input_count > MOST_SLOTS || output_count > MOST_SLOTS || opset < 0)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "%zu inputs, %zu outputs of opset %d: at most %d of each, and no "
                             "negative opset",
                             input_count, output_count, opset, MOST_SLOTS);
    if (!strcmp(domain, "ai.onnx"))
        domain = ONNX;
    status = build(&s, env, domain, op_type, opset, inputs, input_count, output_count, err);
    for (size_t i = 0; i < attribute_count && status == ORT_OK; i++)
        status = set_attribute(&s, &attributes[i], err);
    if (status == ORT_OK)
        status = check(&s, inputs, input_count, err);
    if (status == ORT_OK)
        status = ort_node_eval(s.node, s.fact_list, env->k, env->pool, inputs, (int)input_count,
                               outputs, (int)output_count, err);
    free(s.facts);
    free(s.fact_list);
    ort_model_free(s.model);
    return status;
}

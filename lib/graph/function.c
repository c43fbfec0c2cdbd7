/* function.c - model-local functions as they are, without expanding them: who calls one, the
 * operators in one, and the versions that it imports. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/build.h"

/* By domain, name, overload (NULL: any). */
static int compare(const ort_function *f, const char *domain, const char *name,
                   const char *overload)
{
    int order = strcmp(f->domain, domain);
    order = order ? order : strcmp(f->name, name);
    return order || !overload ? order : strcmp(f->overload, overload);
}

/* Of equals the first of the file comes first. */
static int compare_functions(const void *a, const void *b)
{
    const ort_function *x = *(const ort_function *const *)a, *y = *(const ort_function *const *)b;
    int order = compare(x, y->domain, y->name, y->overload);
    return order ? order : (x > y) - (x < y);
}

ort_status ort_functions_index(const ort_model *model, ort_function_index *index, ort_error *err)
{
    size_t count = model->functions.count;
    *index = (ort_function_index){.model = model, .count = count,
                                  .sorted = malloc((count + 1) * sizeof *index->sorted)};
    if (!index->sorted)
        return ort_error_memory(err, count * sizeof *index->sorted);
    for (size_t i = 0; i < count; i++)
        index->sorted[i] = &model->functions.data[i];
    qsort(index->sorted, count, sizeof *index->sorted, compare_functions);
    return ORT_OK;
}

void ort_functions_index_release(ort_function_index *index)
{
    free(index->sorted);
    *index = (ort_function_index){0};
}

const ort_function *ort_functions_find(const ort_function_index *index, const char *domain,
                                       const char *name, const char *overload)
{
    assert(index->count == index->model->functions.count); /* none came or went */
    size_t low = 0, high = index->count; /* those below `low` come before what is looked for */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(index->sorted[middle], domain, name, overload) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const ort_function *f = low < index->count ? index->sorted[low] : NULL;
    return f && compare(f, domain, name, overload) == 0 ? f : NULL;
}

bool ort_graph_each_operator(const ort_graph *graph, ort_function_visit *visit, void *arg)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        if (!visit(arg, node->domain, node->op_type))
            return false;
        for (int b = 0; b < node->body_count; b++)
            if (!ort_graph_each_operator(node->bodies[b], visit, arg))
                return false;
    }
    return true;
}

static bool is_no_function(void *arg, const char *domain, const char *op_type)
{
    return !ort_functions_find(arg, domain, op_type, NULL);
}

bool ort_graph_calls_functions(const ort_graph *graph)
{
    ort_function_index index;
    if (!graph->model->functions.count)
        return false;
    if (ort_functions_index(graph->model, &index, NULL) != ORT_OK)
        return true; /* they are kept */
    bool any = !ort_graph_each_operator(graph, is_no_function, &index);
    ort_functions_index_release(&index);
    return any;
}

static bool visit_nodes(Onnx__NodeProto *const *nodes, size_t count, ort_function_visit *visit,
                        void *arg)
{
    for (size_t i = 0; i < count; i++) {
        const Onnx__NodeProto *node = nodes[i];
        if (!visit(arg, ort_build_domain(node->domain), ort_build_text(node->op_type)))
            return false;
        for (size_t a = 0; a < node->n_attribute; a++) {
            const Onnx__AttributeProto *attr = node->attribute[a];
            if (attr->g && !visit_nodes(attr->g->node, attr->g->n_node, visit, arg))
                return false;
            for (size_t g = 0; g < attr->n_graphs; g++)
                if (!visit_nodes(attr->graphs[g]->node, attr->graphs[g]->n_node, visit, arg))
                    return false;
        }
    }
    return true;
}

typedef struct calls_seen {
    ort_function_index index;
    bool *called; /* by function */
} calls_seen;

/* False at the second call of a function. */
static bool first_call(void *arg, const char *domain, const char *op_type)
{
    calls_seen *seen = arg;
    const ort_function *f = ort_functions_find(&seen->index, domain, op_type, NULL);
    if (!f)
        return true;
    assert(f >= seen->index.model->functions.data);
    bool *called = &seen->called[f - seen->index.model->functions.data];
    bool first = !*called;
    *called = true;
    return first;
}

bool ort_model_repeats_functions(const ort_model *model)
{
    if (!model)
        return false;
    calls_seen seen = {.called = calloc(model->functions.count + 1, sizeof(bool))};
    if (!seen.called || ort_functions_index(model, &seen.index, NULL) != ORT_OK) {
        free(seen.called);
        return false;
    }
    bool once = ort_graph_each_operator(model->graph, first_call, &seen);
    for (size_t i = 0; once && i < model->functions.count; i++)
        once = ort_function_each_operator(&model->functions.data[i], first_call, &seen);
    ort_functions_index_release(&seen.index);
    free(seen.called);
    return !once;
}

bool ort_function_each_operator(const ort_function *function, ort_function_visit *visit, void *arg)
{
    const Onnx__FunctionProto *proto = function->proto;
    return visit_nodes(proto->node, proto->n_node, visit, arg);
}

ort_status ort_function_set_opset(ort_model *model, ort_function *function, const char *domain,
                                  int64_t version, ort_error *err)
{
    assert(function->opset_count >= 0);
    size_t count = (size_t)function->opset_count;
    ort_opset *opsets = ort_arena_array(&model->arena, count, sizeof *opsets);
    if (!opsets)
        return ort_error_memory(err, count * sizeof *opsets);
    for (size_t i = 0; i < count; i++) {
        opsets[i] = function->opsets[i];
        if (!strcmp(opsets[i].domain, domain))
            opsets[i].version = version;
    }
    function->opsets = opsets;
    function->opsets_changed = model->changed = true;
    return ORT_OK;
}

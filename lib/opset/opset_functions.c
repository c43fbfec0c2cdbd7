/* opset_functions.c - functions that are kept when a model goes to another opset (opset.h): their
 * bodies are not rewritten, so that each operator in one must mean the same in both versions, for
 * all element types it is called with. */
#include <string.h>

#include "base/error.h"
#include "base/findings.h"
#include "opset/opset.h"

/* ---- operators that mean the same */

static bool same_attrs(const ort_schema *a, const ort_schema *b)
{
    for (int i = 0; i < a->attr_count && a->attr_count == b->attr_count; i++) {
        const ort_attr_spec *x = &a->attrs[i], *y = NULL;
        for (int k = 0; k < b->attr_count; k++)
            if (!strcmp(b->attrs[k].name, x->name))
                y = &b->attrs[k];
        if (!y || y->type != x->type || y->required != x->required ||
            strcmp(x->fallback, y->fallback))
            return false;
    }
    return a->attr_count == b->attr_count;
}

static bool same_slots(const ort_param *a, int a_count, const ort_param *b, int b_count)
{
    for (int i = 0; i < a_count && a_count == b_count; i++)
        if (a[i].optional != b[i].optional || a[i].variadic != b[i].variadic)
            return false;
    return a_count == b_count;
}

static bool same_but_types(const ort_op *a, const ort_op *b)
{
    ort_schema x, y;
    return ort_schema_parse(a, &x, NULL) == ORT_OK && ort_schema_parse(b, &y, NULL) == ORT_OK &&
           same_attrs(&x, &y) &&
           same_slots(x.inputs, x.input_count, y.inputs, y.input_count) &&
           same_slots(x.outputs, x.output_count, y.outputs, y.output_count);
}

/* The border that the operator doesn't cross as it is, 0 when there is none. */
static int border_of(const ort_registry *registry, const char *op_type, int from, int to)
{
    bool up = to > from;
    const ort_op *row = ort_registry_find(registry, ONNX, op_type, from);
    for (int v = from; v != to; v += up ? 1 : -1) {
        int border = up ? v + 1 : v;
        const ort_op *next = ort_registry_find(registry, ONNX, op_type, up ? v + 1 : v - 1);
        if (next == row)
            continue;
        if (!row || !next || ort_opset_has_rule(op_type, border, up) ||
            !same_but_types(row, next))
            return border;
        row = next;
    }
    return 0;
}

/* ---- functions */

typedef struct survey {
    const ort_registry *registry;
    ort_findings *blockers;
    const ort_function *function;
    int from, to;
} survey;

static bool visit(void *arg, const char *domain, const char *op_type)
{
    survey *s = arg;
    int border = *domain ? 0 : border_of(s->registry, op_type, s->from, s->to);
    if (border)
        ort_findings_add(s->blockers, ORT_FINDING_ERROR,
                         "function '%s' is kept as it is, and operator %s in it changes with "
                         "opset %d; expanded it can be rewritten", s->function->name, op_type,
                         border);
    return true;
}

static int version_of(const ort_function *function)
{
    for (int i = 0; i < function->opset_count; i++)
        if (!strcmp(function->opsets[i].domain, ONNX))
            return (int)function->opsets[i].version;
    return 0;
}

bool ort_opset_functions_stay(const ort_model *model, const ort_registry *registry, int opset,
                              ort_findings *blockers)
{
    size_t before = ort_findings_count(blockers);
    for (size_t i = 0; i < model->functions.count; i++) {
        const ort_function *function = &model->functions.data[i];
        survey s = {registry, blockers, function, version_of(function), opset};
        if (s.from)
            ort_function_each_operator(function, visit, &s);
    }
    return ort_findings_count(blockers) == before;
}

ort_status ort_opset_restamp_functions(ort_model *model, int opset, ort_error *err)
{
    for (size_t i = 0; i < model->functions.count; i++) {
        ort_function *function = &model->functions.data[i];
        if (version_of(function))
            ORT_TRY(ort_function_set_opset(model, function, ONNX, opset, err));
    }
    return ORT_OK;
}

/* check_node.c - a node against its operator's row: arity, attributes, element types, and what to
 * say when there is no row. Every finding names the node and the slot. */
#include <stdio.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/nearest.h"
#include "op/check/check.h"

typedef struct node_check {
    const ort_graph *graph;
    const ort_node *node;
    const ort_op *op;
    const ort_schema *schema;
    ort_findings *findings;
    char label[256];
} node_check;

#define FAIL(c, ...) ort_findings_add((c)->findings, ORT_FINDING_ERROR, __VA_ARGS__)

/* ---- arity */

static void check_arity(const node_check *c)
{
    const ort_schema *s = c->schema;
    int in = c->node->input_count, out = c->node->output_count, listed = in;
    if (s->max_inputs >= 0 && in > s->max_inputs)
        FAIL(c, "%s: has %d inputs, %s-%d takes at most %d", c->label, in, c->op->name,
             c->op->since, s->max_inputs);
    /* Absent optional slots at the end don't count. */
    while (in > 0 && c->node->inputs[in - 1] == ORT_ID_NONE)
        in--;
    while (out > 0 && c->node->outputs[out - 1] == ORT_ID_NONE)
        out--;
    if (in < s->min_inputs && s->input_count > 0) {
        int slot = in < s->input_count ? in : s->input_count - 1;
        FAIL(c, "%s: has %d inputs, %s-%d needs at least %d (input %d, %s, is missing)", c->label,
             in, c->op->name, c->op->since, s->min_inputs, in, s->inputs[slot].name);
    }
    if (s->max_outputs >= 0 && out > s->max_outputs)
        FAIL(c, "%s: has %d outputs, %s-%d gives at most %d", c->label, out, c->op->name,
             c->op->since, s->max_outputs);
    if (out < s->min_outputs && out == 0)
        FAIL(c, "%s: has no outputs, %s-%d gives at least %d", c->label, c->op->name, c->op->since,
             s->min_outputs);
    for (int i = 0; i < in && i < s->input_count; i++)
        if (c->node->inputs[i] == ORT_ID_NONE && !s->inputs[i].optional && !s->inputs[i].variadic)
            FAIL(c, "%s: input %d (%s) is required, but left out", c->label, i, s->inputs[i].name);
    for (int i = 0; i < out && i < s->output_count; i++)
        if (c->node->outputs[i] == ORT_ID_NONE && !s->outputs[i].optional &&
            !s->outputs[i].variadic)
            FAIL(c, "%s: output %d (%s) is required, but left out", c->label, i,
                 s->outputs[i].name);
    const ort_param *last = s->input_count ? &s->inputs[s->input_count - 1] : NULL;
    for (int i = s->input_count - 1; last && last->variadic && !last->mixed && i < listed; i++)
        if (i >= 0 && c->node->inputs[i] == ORT_ID_NONE)
            FAIL(c, "%s: input %d (%s) is left out: a list has no holes", c->label, i, last->name);
}

/* ---- attributes */

const char *ort_check_type_name(ort_attr_type type)
{
    static const char *const names[] = {"undefined", "float", "int", "string", "tensor", "graph",
                                        "floats", "ints", "strings", "tensors", "graphs",
                                        "sparse_tensor", "sparse_tensors", "type_proto",
                                        "type_protos"};
    return (unsigned)type < sizeof names / sizeof *names ? names[type] : "undefined";
}

static const ort_attr_spec *find_spec(const ort_schema *schema, const char *name)
{
    for (int i = 0; i < schema->attr_count; i++)
        if (!strcmp(schema->attrs[i].name, name))
            return &schema->attrs[i];
    return NULL;
}

/* An empty list may be stored as any list; exporters write such. */
static bool attr_type_fits(const ort_attr_spec *spec, const ort_attr *attr)
{
    bool lists = attr->type >= ORT_ATTR_FLOATS && attr->type <= ORT_ATTR_STRINGS &&
                 spec->type >= ORT_ATTR_FLOATS && spec->type <= ORT_ATTR_STRINGS;
    return spec->type == attr->type || (lists && attr->count == 0);
}

/* A node has few attributes, unless somebody means ill: from here on by a map. */
enum { FEW_ATTRIBUTES = 32, LISTED_ATTRIBUTES = 8 };

static bool is_repeated(const node_check *c, ort_hashmap *seen, int index)
{
    const char *name = c->node->attrs[index].name;
    if (c->node->attr_count > FEW_ATTRIBUTES) {
        if (ort_hashmap_get_str(seen, name, NULL))
            return true;
        (void)ort_hashmap_put_str(seen, name, 1);
        return false;
    }
    for (int i = 0; i < index; i++)
        if (!strcmp(c->node->attrs[i].name, name))
            return true;
    return false;
}

static void list_attributes(const ort_schema *schema, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < schema->attr_count && used < size; i++) {
        int n = snprintf(text + used, size - used, "%s%s", i ? ", " : "", schema->attrs[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
    if (!schema->attr_count)
        snprintf(text, size, "none");
}

/* onnxruntime's quantizer writes axis of version 13 into files of opsets 10 to 12, and then refuses
 * them, as onnx does. It can mean nothing else, and is read so here. */
static bool is_early_axis(const node_check *c, const ort_attr *attr)
{
    return !strcmp(attr->name, "axis") && attr->type == ORT_ATTR_INT && !c->op->domain[0] &&
           (!strcmp(c->op->name, "QuantizeLinear") || !strcmp(c->op->name, "DequantizeLinear"));
}

/* The first few have a finding each. */
static void unknown_attribute(const node_check *c, const char *name, int count)
{
    char known[512];
    if (count > LISTED_ATTRIBUTES)
        return;
    list_attributes(c->schema, known, sizeof known);
    FAIL(c, "%s: %s-%d has no attribute '%s' (it has: %s)", c->label, c->op->name, c->op->since,
         name, known);
}

static void repeated_attribute(const node_check *c, const char *name, int count)
{
    if (count <= LISTED_ATTRIBUTES)
        FAIL(c, "%s: attribute '%s' is given twice", c->label, name);
}

static void check_attributes(const node_check *c)
{
    ort_hashmap seen = {0};
    int unknown = 0, repeated = 0;
    for (int i = 0; i < c->node->attr_count; i++) {
        const ort_attr *attr = &c->node->attrs[i];
        const ort_attr_spec *spec = find_spec(c->schema, attr->name);
        if (is_repeated(c, &seen, i))
            repeated_attribute(c, attr->name, ++repeated);
        if (!spec && (c->op->traits & ORT_TRAIT_ANY_ATTRIBUTES)) {
            continue;
        } else if (!spec && is_early_axis(c, attr)) {
            ort_findings_add(c->findings, ORT_FINDING_WARNING,
                             "%s: attribute 'axis' came with %s-13 (opset %d here): read as there, "
                             "which other runtimes refuse", c->label, c->op->name, c->node->opset);
        } else if (!spec) {
            unknown_attribute(c, attr->name, ++unknown);
        } else if (attr->reference) {
            FAIL(c, "%s: attribute '%s' refers to '%s' outside of a function", c->label, attr->name,
                 attr->reference);
        } else if (!attr_type_fits(spec, attr)) {
            FAIL(c, "%s: attribute '%s' has type %s, needs %s", c->label, attr->name,
                 ort_check_type_name(attr->type), ort_check_type_name(spec->type));
        }
    }
    ort_hashmap_release(&seen);
    if (unknown > LISTED_ATTRIBUTES)
        FAIL(c, "%s: and %d more attributes that %s-%d doesn't have", c->label,
             unknown - LISTED_ATTRIBUTES, c->op->name, c->op->since);
    if (repeated > LISTED_ATTRIBUTES)
        FAIL(c, "%s: and %d more attributes are given twice", c->label,
             repeated - LISTED_ATTRIBUTES);
    for (int i = 0; i < c->schema->attr_count; i++)
        if (c->schema->attrs[i].required && !ort_node_has(c->node, c->schema->attrs[i].name))
            FAIL(c, "%s: attribute '%s' is required, but missing", c->label,
                 c->schema->attrs[i].name);
}

/* ---- types */

typedef struct binding { /* a type variable and the value that fixed it */
    const char *variable;
    const ort_type *type;
    const char *value;
} binding;

typedef struct bindings {
    binding list[2 * ORT_SCHEMA_MAX];
    int count;
} bindings;

static bool same_type(const ort_type *a, const ort_type *b, int depth)
{
    if (!a || !b || depth > 20 || a->kind == ORT_TYPE_UNKNOWN || b->kind == ORT_TYPE_UNKNOWN)
        return true;
    return a->kind == b->kind && (!a->dtype || !b->dtype || a->dtype == b->dtype) &&
           same_type(a->element, b->element, depth + 1);
}

/* All slots of one variable have one type. */
static void check_binding(const node_check *c, bindings *b, const ort_param *param,
                          const ort_graph_value *value)
{
    char one[256], other[256];
    if (param->mixed || !ort_schema_is_variable(c->op, param->type) || value->fact.type.kind == 0 ||
        (value->fact.type.kind == ORT_TYPE_TENSOR && !value->fact.type.dtype))
        return;
    for (int i = 0; i < b->count; i++) {
        if (strcmp(b->list[i].variable, param->type))
            continue;
        if (!same_type(b->list[i].type, &value->fact.type, 0))
            FAIL(c, "%s: '%s' is %s and '%s' is %s, but both must have the type %s of %s-%d",
                 c->label, b->list[i].value,
                 ort_type_format(c->graph->model->dims, b->list[i].type, one, sizeof one),
                 value->name,
                 ort_type_format(c->graph->model->dims, &value->fact.type, other, sizeof other),
                 param->type, c->op->name, c->op->since);
        return;
    }
    if (b->count < (int)(sizeof b->list / sizeof *b->list))
        b->list[b->count++] = (binding){param->type, &value->fact.type, value->name};
}

static void check_slots(const node_check *c, bindings *b, bool inputs)
{
    const ort_node *node = c->node;
    const ort_schema *s = c->schema;
    int count = inputs ? node->input_count : node->output_count;
    for (int i = 0; i < count; i++) {
        ort_id id = inputs ? node->inputs[i] : node->outputs[i];
        const ort_param *param = inputs ? ort_schema_param(s->inputs, s->input_count, i)
                                        : ort_schema_param(s->outputs, s->output_count, i);
        const ort_graph_value *value = ort_graph_value_at(c->graph, id);
        char type[256], allowed[512];
        if (!value || !param)
            continue;
        if (!ort_schema_allows(c->op, param->type, &value->fact.type))
            FAIL(c, "%s: %s %d (%s) is %s, %s-%d takes %s", c->label, inputs ? "input" : "output",
                 i, param->name,
                 ort_type_format(c->graph->model->dims, &value->fact.type, type, sizeof type),
                 c->op->name, c->op->since,
                 ort_schema_format_types(c->op, param->type, allowed, sizeof allowed));
        else
            check_binding(c, b, param, value);
    }
}

/* A Constant is data, not an operation: old models hold types that its first versions lack. In a
 * function of another opset than the model's nobody else takes them. */
static void check_constant(const node_check *c)
{
    const char *type = c->schema->outputs[0].type;
    const ort_graph_value *value =
        c->node->output_count ? ort_graph_value_at(c->graph, c->node->outputs[0]) : NULL;
    bool foreign = c->node->opset && c->node->opset != ort_model_opset(c->graph->model, "");
    if (value && !ort_schema_allows(c->op, type, &value->fact.type))
        ort_findings_add(c->findings, foreign ? ORT_FINDING_ERROR : ORT_FINDING_WARNING,
                         "%s: its element type came after Constant-%d: not every runtime takes it",
                         c->label, c->op->since);
    if (c->graph->parent && !c->node->attr_count) /* said by inference in the main graph */
        FAIL(c, "%s: exactly one readable value attribute is needed", c->label);
}

static const char *domain_name(const char *domain)
{
    return *domain ? domain : "ai.onnx";
}

/* ONNX hasn't it; onnxruntime runs it, trials up to opset 9. onnx.checker lets trials pass. */
static void check_extension(const node_check *c)
{
    bool over = (c->op->traits & ORT_TRAIT_TRIAL) && c->node->opset > 9;
    ort_findings_add(c->findings, over ? ORT_FINDING_ERROR : ORT_FINDING_WARNING,
                     "%s: %s is no operator of opset %lld of '%s' (a trial that is over, or an "
                     "early form): %s runtime runs it",
                     c->label, c->op->name, (long long)c->node->opset, domain_name(c->op->domain),
                     over ? "no other" : "not every");
}

void ort_check_node(const ort_graph *graph, const ort_node *node, const ort_op *op,
                    ort_findings *findings)
{
    ort_schema schema;
    ort_error err = {0};
    node_check c = {.graph = graph, .node = node, .op = op, .schema = &schema,
                    .findings = findings};
    ort_node_label(node, c.label, sizeof c.label);
    if (ort_schema_parse(op, &schema, &err) != ORT_OK) {
        FAIL(&c, "%s: %s", c.label, err.message);
        return;
    }
    bindings b = {.count = 0};
    check_arity(&c);
    check_attributes(&c);
    if (op->traits & ORT_TRAIT_EXTENSION)
        check_extension(&c);
    if (ort_node_is_constant(node)) {
        check_constant(&c);
        return;
    }
    check_slots(&c, &b, true);
    check_slots(&c, &b, false);
}

/* ---- nobody has it */

/* An operator of that name, of the domain if it has one: a wrong domain is a common mistake. */
static const ort_op *op_named(const ort_registry *registry, const char *domain, const char *name)
{
    const ort_op *found = NULL;
    for (size_t i = 0; i < ort_registry_count(registry); i++) {
        const ort_op *op = ort_registry_at(registry, i);
        if (!strcmp(op->name, name) && (!found || !strcmp(op->domain, domain)))
            found = op;
    }
    return found;
}

/* The known operator whose name is nearest; of equals one of this domain. */
static const ort_op *nearest(const ort_registry *registry, const char *domain, const char *name)
{
    ort_nearest near;
    ort_nearest_begin(&near, name);
    for (int own = 1; own >= 0; own--) /* those of the domain first */
        for (size_t i = 0; i < ort_registry_count(registry); i++) {
            const ort_op *op = ort_registry_at(registry, i);
            if ((!strcmp(op->domain, domain)) == own)
                ort_nearest_try(&near, op->name);
        }
    return near.count ? op_named(registry, domain, near.name[0]) : NULL;
}

/* Each hint compares a name with those of all operators: a model full of nonsense gets so many. */
enum { HINTED_ERRORS = 100 };

void ort_check_unknown(const ort_graph *graph, const ort_node *node, const ort_registry *registry,
                       ort_findings *findings)
{
    char label[256];
    const char *domain = domain_name(node->domain);
    ort_node_label(node, label, sizeof label);
    int64_t version = node->opset ? node->opset : ort_model_opset(graph->model, node->domain);
    int oldest = ort_registry_oldest(registry, node->domain, node->op_type);
    if (version == 0) {
        ort_findings_add(findings, ORT_FINDING_ERROR,
                         "%s: the model imports no opset of domain '%s'", label, domain);
    } else if (oldest && version < oldest) {
        ort_findings_add(findings, ORT_FINDING_ERROR,
                         "%s: operator %s came with opset %d of '%s', the model imports %lld",
                         label, node->op_type, oldest, domain, (long long)version);
    } else if (oldest) {
        ort_findings_add(findings, ORT_FINDING_ERROR,
                         "%s: operator %s is not part of opset %lld of '%s' any more (it was since "
                         "opset %d)",
                         label, node->op_type, (long long)version, domain, oldest);
    } else {
        if (!*node->op_type) {
            ort_findings_add(findings, ORT_FINDING_ERROR,
                             "%s: has no operator: its op_type is empty", label);
            return;
        }
        const ort_op *near = ort_findings_errors(findings) < HINTED_ERRORS
                                 ? nearest(registry, node->domain, node->op_type)
                                 : NULL;
        char hint[160] = "";
        if (near)
            snprintf(hint, sizeof hint, " (did you mean %s of '%s'?)", near->name,
                     domain_name(near->domain));
        ort_findings_add(findings, ORT_FINDING_ERROR, "%s: unknown operator %s of domain '%s'%s%s",
                         label, node->op_type, domain, hint,
                         ort_registry_hint(registry, node->domain));
    }
}

/* opset_fit.c - what the rows of two versions of an operator say of the way between them (opset.h):
 * attributes and defaults, numbers of inputs and outputs, element types. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "opset/opset.h"

static const ort_attr_spec *find_spec(const ort_schema *schema, const char *name)
{
    for (int i = 0; i < schema->attr_count; i++)
        if (!strcmp(schema->attrs[i].name, name))
            return &schema->attrs[i];
    return NULL;
}

/* ---- attributes */

static bool is_default(const ort_attr *attr, const ort_attr_spec *spec)
{
    if (!spec || !*spec->fallback || attr->reference)
        return false;
    switch (attr->type) {
    case ORT_ATTR_INT: return attr->i == strtoll(spec->fallback, NULL, 10);
    case ORT_ATTR_FLOAT: return attr->f == (float)ort_parse_double(spec->fallback, NULL);
    case ORT_ATTR_STRING: return !strcmp(attr->s.ptr, spec->fallback);
    default: return false;
    }
}

/* A default that the other version doesn't share is written out. */
static void spell_default(ort_opset_step *s, const ort_attr_spec *was, const ort_attr_spec *is)
{
    ort_attr attr = {.name = was->name, .type = was->type};
    if (!*was->fallback || !is || is->type != was->type || !strcmp(was->fallback, is->fallback) ||
        ort_node_has(s->node, was->name))
        return;
    if (was->type == ORT_ATTR_INT)
        attr.i = strtoll(was->fallback, NULL, 10);
    else if (was->type == ORT_ATTR_FLOAT)
        attr.f = (float)ort_parse_double(was->fallback, NULL);
    else if (was->type == ORT_ATTR_STRING)
        attr.s = (ort_string){was->fallback, strlen(was->fallback)};
    else
        return;
    ort_opset_set(s, &attr);
}

static void refuse_attr(ort_opset_step *s, const ort_attr *attr)
{
    const char *has = s->up ? "isn't there any more" : "isn't there before";
    if (attr->type == ORT_ATTR_INT)
        ort_opset_block(s, "attribute '%s' is %lld, which %s", attr->name, (long long)attr->i, has);
    else if (attr->type == ORT_ATTR_FLOAT)
        ort_opset_block(s, "attribute '%s' is %g, which %s", attr->name, (double)attr->f, has);
    else if (attr->type == ORT_ATTR_STRING)
        ort_opset_block(s, "attribute '%s' is '%s', which %s", attr->name, attr->s.ptr, has);
    else
        ort_opset_block(s, "attribute '%s' %s", attr->name, has);
}

static void fit_attrs(ort_opset_step *s, const ort_schema *from, const ort_schema *to)
{
    for (int i = 0; i < from->attr_count; i++)
        spell_default(s, &from->attrs[i], find_spec(to, from->attrs[i].name));
    for (int i = 0; i < s->node->attr_count;) {
        const ort_attr attr = s->node->attrs[i];
        const ort_attr_spec *spec = find_spec(to, attr.name);
        if (spec && (spec->type == attr.type || attr.reference)) {
            i++;
        } else if (!spec && is_default(&attr, find_spec(from, attr.name)) &&
                   s->g.status == ORT_OK) {
            ort_opset_drop(s, attr.name);
        } else {
            refuse_attr(s, &attr);
            i++;
        }
    }
    for (int i = 0; i < to->attr_count; i++)
        if (to->attrs[i].required && !ort_node_has(s->node, to->attrs[i].name))
            ort_opset_block(s, "attribute '%s' is missing, opset %d must have it",
                            to->attrs[i].name, s->g.opset);
}

/* ---- slots */

static int trimmed(const ort_id *ids, int count)
{
    while (count > 0 && ids[count - 1] == ORT_ID_NONE)
        count--;
    return count;
}

static void refuse_slot(ort_opset_step *s, const char *what, const ort_param *param, int slot)
{
    if (param)
        ort_opset_block(s, "%s '%s' isn't there %s opset %d", what, param->name,
                        s->up ? "in" : "before", s->up ? s->g.opset : s->version);
    else
        ort_opset_block(s, "%s %d isn't there %s opset %d", what, slot, s->up ? "in" : "before",
                        s->up ? s->g.opset : s->version);
}

static void fit_slots(ort_opset_step *s, const ort_schema *from, const ort_schema *to)
{
    const ort_node *node = s->node;
    int in = trimmed(node->inputs, node->input_count);
    int out = trimmed(node->outputs, node->output_count);
    for (int i = to->max_inputs; to->max_inputs >= 0 && i < in; i++)
        if (node->inputs[i] != ORT_ID_NONE)
            refuse_slot(s, "input", ort_schema_param(from->inputs, from->input_count, i), i);
    for (int i = to->max_outputs; to->max_outputs >= 0 && i < out; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            refuse_slot(s, "output", ort_schema_param(from->outputs, from->output_count, i), i);
    for (int i = 0; i < to->min_inputs && i < to->input_count; i++)
        if (!to->inputs[i].optional && !to->inputs[i].variadic &&
            (i >= in || node->inputs[i] == ORT_ID_NONE))
            ort_opset_block(s, "input '%s' is left out, opset %d must have it", to->inputs[i].name,
                            s->g.opset);
    if (in < node->input_count || out < node->output_count) {
        s->node->input_count = in;
        s->node->output_count = out;
        ort_graph_touch(s->g.graph, s->node);
    }
}

/* ---- element types */

static void refuse_type(ort_opset_step *s, const ort_node *node, const char *side,
                        const ort_param *param, const ort_op *row, const ort_type *type)
{
    char text[300], allowed[200];
    if (type->kind == ORT_TYPE_TENSOR)
        snprintf(text, sizeof text, "%s", ort_dtype_name(type->dtype));
    else
        ort_type_format(s->g.graph->model->dims, type, text, sizeof text);
    ort_schema_format_types(row, param->type, allowed, sizeof allowed);
    ort_opset_block(s, "%s '%s'%s%s is %s, %s-%d has %s", side, param->name,
                    node == s->node ? "" : " of its ", node == s->node ? "" : node->op_type, text,
                    row->name, row->since, allowed);
}

/* Slots of one type variable must agree: rows that had two may have one now. */
static bool contradicts(const ort_op *row, const ort_param *param, const ort_type *type,
                        const ort_schema *schema, const ort_graph *graph, const ort_node *node)
{
    if (param->mixed || type->kind != ORT_TYPE_TENSOR || !type->dtype ||
        !ort_schema_is_variable(row, param->type))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        const ort_param *p = ort_schema_param(schema->inputs, schema->input_count, i);
        const ort_graph_value *v = ort_graph_value_at(graph, node->inputs[i]);
        if (p && v && !p->mixed && !strcmp(p->type, param->type) &&
            v->fact.type.kind == ORT_TYPE_TENSOR && v->fact.type.dtype)
            return v->fact.type.dtype != type->dtype;
    }
    return false;
}

static void check_side(ort_opset_step *s, const ort_node *node, const ort_op *row,
                       const ort_schema *schema, bool outputs)
{
    const ort_param *params = outputs ? schema->outputs : schema->inputs;
    int count = outputs ? node->output_count : node->input_count;
    int param_count = outputs ? schema->output_count : schema->input_count;
    for (int i = 0; i < count; i++) {
        const ort_graph_value *v = ort_graph_value_at(s->g.graph, (outputs ? node->outputs
                                                                           : node->inputs)[i]);
        const ort_param *p = ort_schema_param(params, param_count, i);
        if (v && p && (!ort_schema_allows(row, p->type, &v->fact.type) ||
                       contradicts(row, p, &v->fact.type, schema, s->g.graph, node)))
            refuse_type(s, node, outputs ? "output" : "input", p, row, &v->fact.type);
    }
}

void ort_opset_check_types(ort_opset_step *s, const ort_node *node, const ort_op *row)
{
    ort_schema schema;
    int before = s->blocked;
    if (!row || s->g.status != ORT_OK || (s->g.status = ort_schema_parse(row, &schema, s->g.err)))
        return;
    check_side(s, node, row, &schema, false);
    if (s->blocked == before) /* what is wrong there is mostly so here */
        check_side(s, node, row, &schema, true);
}

/* ---- all of it */

void ort_opset_fit(ort_opset_step *s)
{
    ort_schema from, to;
    if (!s->to) {
        ort_opset_block(s, s->up ? "the operator isn't there from opset %d on"
                                 : "the operator isn't there before opset %d", s->version);
        return;
    }
    if (s->g.status == ORT_OK)
        s->g.status = ort_schema_parse(s->from ? s->from : s->to, &from, s->g.err);
    if (s->g.status == ORT_OK)
        s->g.status = ort_schema_parse(s->to, &to, s->g.err);
    if (s->g.status != ORT_OK)
        return;
    fit_slots(s, &from, &to);
    fit_attrs(s, &from, &to);
    ort_opset_check_types(s, s->node, s->to);
}

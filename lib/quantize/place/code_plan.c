/* code_plan.c - rules applied to nodes and values, and forms made of what they say. */
#include "quantize/place/code_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"
#include "quantize/code_types.h"
#include "quantize/node_names.h"

/* ---- options */

static ort_status check_type(ort_dtype dtype, const char *what, ort_error *err)
{
    return ort_codes_opset(dtype)
               ? ORT_OK
               : ort_error_set(err, ORT_ERROR_USAGE, "%s can't be codes of %s; allowed: "
                               ORT_CODE_TYPES, what, ort_dtype_name(dtype));
}

static bool is_byte(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_INT8 || dtype == ORT_DTYPE_UINT8;
}

static ort_status check_qoperator(const ort_quantize_options *o, ort_error *err)
{
    if (!is_byte(o->activations) || !is_byte(o->weights))
        return ort_error_set(err, ORT_ERROR_USAGE, "operators on codes are of int8 and uint8: "
                             "%s activations and %s weights need QuantizeLinear and "
                             "DequantizeLinear around float operators (the other form)",
                             ort_dtype_name(o->activations), ort_dtype_name(o->weights));
    if (o->activations == ORT_DTYPE_INT8 && o->weights == ORT_DTYPE_UINT8)
        return ort_error_set(err, ORT_ERROR_USAGE, "operators on codes multiply int8 activations "
                             "with int8 weights alone; allowed: uint8 with int8 or uint8, int8 "
                             "with int8");
    return ORT_OK;
}

ort_status ort_code_plan_check(const ort_quantize_options *o, ort_error *err)
{
    ORT_TRY(check_type(o->activations, "what is computed", err));
    ORT_TRY(check_type(o->weights, "weights", err));
    if (o->asymmetric_weights && ort_codes_are_floats(o->weights))
        return ort_error_set(err, ORT_ERROR_USAGE, "%s has no zero point: weights of it are "
                             "symmetric", ort_dtype_name(o->weights));
    if (o->qoperator)
        ORT_TRY(check_qoperator(o, err));
    if (o->reduce_range && !is_byte(o->activations) && !is_byte(o->weights))
        return ort_error_set(err, ORT_ERROR_USAGE, "a reduced range is one of int8 or uint8: other "
                             "types have no sums that saturate");
    if (o->full_range && o->weights != ORT_DTYPE_INT8)
        return ort_error_set(err, ORT_ERROR_USAGE, "a full range is one of int8 weights: those of "
                             "other types have it always");
    return ORT_OK;
}

static ort_code_spec spec_of(const ort_quantize_options *o)
{
    return (ort_code_spec){.type = o->activations,
                           .weights = o->weights,
                           .symmetric = o->symmetric,
                           .symmetric_weights = !o->asymmetric_weights,
                           .per_channel = !o->per_tensor,
                           .reduce_range = o->reduce_range,
                           .observer = (signed char)o->observer,
                           .percentile = o->percentile};
}

static ort_codes_range range_of(ort_dtype dtype, bool symmetric, bool reduced)
{
    ort_codes_range range = {0};
    bool is_float = ort_codes_are_floats(dtype);
    ort_codes_range_of(dtype, symmetric || is_float, reduced && is_byte(dtype), &range);
    return range;
}

int ort_code_plan_opset(const ort_quantize_options *o, const ort_code_rules *rules)
{
    int most = ort_codes_opset(o->activations), opset = ort_codes_opset(o->weights);
    most = opset > most ? opset : most;
    for (size_t i = 0; i < rules->list.count; i++) {
        const ort_code_spec *s = &rules->list.data[i].spec;
        opset = ort_codes_opset(s->type);
        most = opset > most ? opset : most;
        opset = ort_codes_opset(s->weights);
        most = opset > most ? opset : most;
    }
    return most;
}

int ort_code_plan_ir(const ort_quantize_options *o, const ort_code_rules *rules)
{
    int most = ort_codes_ir(o->activations), ir = ort_codes_ir(o->weights);
    most = ir > most ? ir : most;
    for (size_t i = 0; i < rules->list.count; i++) {
        const ort_code_spec *s = &rules->list.data[i].spec;
        ir = ort_codes_ir(s->type);
        most = ir > most ? ir : most;
        ir = ort_codes_ir(s->weights);
        most = ir > most ? ir : most;
    }
    return most;
}

/* ---- rules */

static size_t apply_rule(ort_code_plan *plan, const ort_code_rule *rule)
{
    size_t met = 0;
    ort_node *node;
    if (rule->of == ORT_RULE_VALUE) {
        for (size_t i = 0; i < plan->value_count; i++)
            if (ort_name_matches(rule->pattern, plan->graph->values.data[i]->name)) {
                ort_code_spec_join(&plan->values[i], &rule->spec);
                met++;
            }
        return met;
    }
    ORT_EACH_NODE(plan->graph, node)
    {
        if (ort_code_rule_meets(rule, node)) {
            ort_code_spec_join(&plan->nodes[node->id], &rule->spec);
            met++;
        }
    }
    return met;
}

ort_status ort_code_plan_make(ort_code_plan *plan, const ort_graph *graph,
                              const ort_quantize_options *options, const ort_code_rules *rules,
                              size_t *met, ort_error *err)
{
    size_t nodes = graph->nodes.count, values = graph->values.count;
    plan->graph = graph;
    plan->base = spec_of(options);
    plan->fit = !options->plain_weights;
    plan->full_range = options->full_range;
    plan->node_count = nodes;
    plan->value_count = values;
    plan->nodes = calloc(nodes + 1, sizeof *plan->nodes);
    plan->values = calloc(values + 1, sizeof *plan->values);
    plan->first = calloc(nodes + 1, sizeof *plan->first);
    if (!plan->nodes || !plan->values || !plan->first)
        return ort_error_memory(err, (nodes + values) * sizeof *plan->nodes);
    for (size_t i = 0; i < nodes; i++)
        plan->nodes[i] = ORT_CODE_SPEC_NONE;
    for (size_t i = 0; i < values; i++)
        plan->values[i] = ORT_CODE_SPEC_NONE;
    for (size_t i = 0; i < rules->list.count; i++)
        met[i] += apply_rule(plan, &rules->list.data[i]);
    return ORT_OK;
}

void ort_code_plan_release(ort_code_plan *plan)
{
    free(plan->nodes);
    free(plan->values);
    free(plan->first);
    free(plan->reads);
    ort_vec_release(&plan->forms);
}

bool ort_code_plan_half(const ort_code_plan *plan, const ort_node *node)
{
    return node->id < plan->node_count && plan->nodes[node->id].type == ORT_DTYPE_FLOAT16;
}

const char *ort_code_plan_float(const ort_code_plan *plan, const ort_node *node)
{
    if (plan->nodes[node->id].type == ORT_DTYPE_FLOAT)
        return "an override: it stays float";
    if (ort_code_plan_half(plan, node))
        return "an override: it computes in float16";
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ORT_ID_NONE &&
            plan->values[node->inputs[i]].type == ORT_DTYPE_FLOAT)
            return "an override: a value that it reads stays float";
    return NULL;
}

/* ---- forms */

static bool same_form(const ort_code_form *a, const ort_code_form *b)
{
    if (!ort_codes_same(&a->codes, &b->codes) || a->has_range != b->has_range)
        return false;
    if (a->has_range)
        return !(a->least < b->least || a->least > b->least || a->most < b->most ||
                 a->most > b->most);
    return a->observer == b->observer &&
           !(a->percentile < b->percentile || a->percentile > b->percentile);
}

/* Its index among those that there are; -1: no memory. */
static int index_of(ort_code_plan *plan, const ort_code_spec *s)
{
    ort_code_form form = {.codes = range_of(s->type, s->symmetric > 0, s->reduce_range > 0),
                          .observer = (ort_observer)s->observer,
                          .percentile = s->percentile,
                          .has_range = s->has_range,
                          .least = s->least,
                          .most = s->most};
    if (ort_codes_are_floats(form.codes.dtype))
        form.observer = ORT_OBSERVE_MIN_MAX; /* its steps grow with the numbers: nothing to cut */
    for (size_t i = 0; i < plan->forms.count; i++)
        if (same_form(&plan->forms.data[i], &form))
            return (int)i;
    return ort_vec_push(&plan->forms, form) ? (int)plan->forms.count - 1 : -1;
}

/* What others than nodes say: options, and rules of the value. */
static int form_of(ort_code_plan *plan, const ort_node *node, ort_id value)
{
    ort_code_spec s = plan->base;
    if (node)
        ort_code_spec_join(&s, &plan->nodes[node->id]);
    ort_code_spec_join(&s, &plan->values[value]);
    if (!ort_codes_opset(s.type))
        s.type = plan->base.type;
    return index_of(plan, &s);
}

static bool has_rules(const ort_code_spec *s)
{
    const ort_code_spec none = ORT_CODE_SPEC_NONE;
    return s->type != none.type || s->symmetric >= 0 || s->reduce_range >= 0 || s->observer >= 0 ||
           s->percentile > 0 || s->has_range;
}

static bool on_codes(const ort_placement *place, ort_id node)
{
    return node != ORT_ID_NONE && place->nodes[node].part != ORT_PART_FLOAT;
}

/* The form that all readers of what the node gives want; -1: they differ, or there are none. */
static int wanted_of(const short *wants, const ort_node *node)
{
    int form = -1;
    for (int o = 0; o < node->output_count; o++) {
        ort_id id = node->outputs[o];
        if (id == ORT_ID_NONE || wants[id] == -1)
            continue;
        if (wants[id] == -2 || (form >= 0 && form != wants[id]))
            return -1;
        form = wants[id];
    }
    return form;
}

static void want(short *wants, ort_id id, int form)
{
    wants[id] = (short)(wants[id] == -1 || wants[id] == form ? form : -2);
}

/* From the last node to the first, so that a move knows its readers. wants: by value, -1 nothing
 * so far, -2 different forms. */
static ort_status settle(ort_code_plan *plan, const ort_placement *place, short *wants,
                         ort_error *err)
{
    const ort_graph *graph = plan->graph;
    for (size_t k = graph->order.count; k-- > 0;) {
        const ort_node *node = graph->nodes.data[graph->order.data[k]];
        if (node->removed || !on_codes(place, node->id))
            continue;
        int wanted = place->nodes[node->id].part == ORT_PART_MOVE &&
                             !has_rules(&plan->nodes[node->id])
                         ? wanted_of(wants, node) : -1;
        for (int i = 0; i < node->input_count; i++) {
            ort_id id = node->inputs[i];
            if (!ort_place_reads(graph, node, i))
                continue;
            int form = wanted >= 0 && !has_rules(&plan->values[id]) ? wanted
                                                                   : form_of(plan, node, id);
            if (form < 0)
                return ort_error_memory(err, sizeof *plan->forms.data);
            plan->reads[plan->first[node->id] + (size_t)i] = (short)form;
            want(wants, id, form);
        }
    }
    return ORT_OK;
}

ort_status ort_code_plan_settle(ort_code_plan *plan, const ort_placement *place, ort_error *err)
{
    const ort_graph *graph = plan->graph;
    size_t inputs = 0;
    ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        plan->first[node->id] = inputs;
        inputs += (size_t)node->input_count;
    }
    free(plan->reads);
    plan->reads = calloc(inputs + 1, sizeof *plan->reads);
    short *wants = malloc((plan->value_count + 1) * sizeof *wants);
    for (size_t i = 0; wants && i < plan->value_count; i++)
        wants[i] = -1;
    ort_vec_clear(&plan->forms);
    ort_status status = plan->reads && wants && index_of(plan, &plan->base) == 0
                            ? settle(plan, place, wants, err)
                            : ort_error_memory(err, inputs * sizeof *wants);
    free(wants);
    return status;
}

int ort_code_plan_form(const ort_code_plan *plan, const ort_node *node, int slot)
{
    return plan->reads[plan->first[node->id] + (size_t)slot];
}

ort_weight_form ort_code_plan_weights(const ort_code_plan *plan, const ort_node *node)
{
    ort_code_spec s = plan->base;
    ort_code_spec_join(&s, &plan->nodes[node->id]);
    return (ort_weight_form){.codes = range_of(s.weights, s.symmetric_weights > 0,
                                               s.reduce_range > 0),
                             .per_tensor = !s.per_channel,
                             .fit = plan->fit,
                             .in_pairs = s.weights == ORT_DTYPE_INT8 && s.symmetric_weights > 0 &&
                                         s.reduce_range <= 0 && !plan->full_range};
}

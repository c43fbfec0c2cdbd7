/* computed.c - what of a quantized file computes on integers here. The file says what is meant to;
 * the steps of a run say what does: a profile of one run lists them with the types that they read.
 */
#include <stdio.h>
#include <string.h>

#include "common/look.h"
#include "evaluation.h"

bool step_multiplies(json_object *step) { return number_of(step, "macs") > 0; }

static bool is_code(const char *dtype)
{
    static const char *const codes[] = {"int8",  "uint8", "int16", "uint16", "int4",
                                        "uint4", "int2",  "uint2"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(dtype, codes[i]))
            return true;
    return false;
}

/* Its weights are codes, or all that it reads beside weights: MatMulNBits widens codes as it reads
 * them, and DynamicQuantizeMatMul makes codes of its floats. */
bool step_is_integer(json_object *step)
{
    json_object *inputs = member(step, "inputs");
    size_t codes = 0;
    for (size_t i = 0; i < length_of(inputs); i++) {
        json_object *input = json_object_array_get_idx(inputs, i);
        codes += is_code(text_of(input, "dtype"));
    }
    return codes > 0;
}

/* Nodes of files that were quantized elsewhere may have no names. */
const char *step_name(json_object *step)
{
    json_object *outputs = member(step, "outputs");
    const char *name = text_of(step, "name");
    return name[0] != '\0' || length_of(outputs) == 0
               ? name : text_of(json_object_array_get_idx(outputs, 0), "name");
}

bool step_is_pair(json_object *step)
{
    const char *op = text_of(step, "op_type");
    return !strcmp(op, "QuantizeLinear") || !strcmp(op, "DequantizeLinear");
}

computed computed_sum(const evaluation *e)
{
    computed sum = {0};
    for (size_t i = 0; i < length_of(e->steps); i++) {
        json_object *step = json_object_array_get_idx(e->steps, i);
        double ms = number_of(step, "self_ms"), macs = number_of(step, "macs");
        sum.all_ms += ms;
        if (step_is_pair(step)) {
            sum.pairs_left++;
            sum.pairs_ms += ms;
        }
        if (!step_multiplies(step))
            continue;
        sum.products++;
        sum.macs += macs;
        sum.integer_products += step_is_integer(step);
        sum.integer_macs += step_is_integer(step) ? macs : 0;
    }
    return sum;
}

/* The node of the file that a step was made of. */
static json_object *node_named(const evaluation *e, const char *name)
{
    for (size_t i = 0; i < length_of(e->nodes) && name[0] != '\0'; i++) {
        json_object *node = json_object_array_get_idx(e->nodes, i);
        if (!strcmp(text_of(node, "name"), name))
            return node;
    }
    return NULL;
}

/* Does a DequantizeLinear give this value? */
static bool is_dequantized(const evaluation *e, const char *name)
{
    for (size_t i = 0; i < length_of(e->nodes); i++) {
        json_object *node = json_object_array_get_idx(e->nodes, i);
        json_object *outputs = member(node, "outputs");
        if (!strcmp(text_of(node, "op_type"), "DequantizeLinear") && length_of(outputs) > 0 &&
            !strcmp(json_object_get_string(json_object_array_get_idx(outputs, 0)), name))
            return true;
    }
    return false;
}

const char *step_why_float(const evaluation *e, json_object *step, char *text, size_t room)
{
    json_object *node = node_named(e, text_of(step, "name"));
    json_object *inputs = member(node, "inputs");
    int coded = 0;
    snprintf(text, room, "nothing in the file makes codes of what it reads");
    for (size_t i = 0; i < length_of(inputs) && i < 2; i++)
        coded += is_dequantized(e, json_object_get_string(json_object_array_get_idx(inputs, i)));
    for (size_t i = 0; i < length_of(inputs) && i < 2 && coded == 1; i++) {
        const char *input = json_object_get_string(json_object_array_get_idx(inputs, i));
        if (!is_dequantized(e, input))
            snprintf(text, room, "it reads '%s', which has no codes in the file", input);
    }
    if (coded == 2)
        snprintf(text, room, "its inputs have codes in the file, but it has no integer form here");
    return text;
}

ort_status computed_take(evaluation *e, ort_error *err)
{
    side *s = &e->sides[INTEGER_SIDE];
    ort_run_options options = ORT_RUN_OPTIONS_INIT;
    ort_profile *profile = NULL;
    char *text = NULL;
    ort_value **out = tool_alloc((s->outputs + 1) * sizeof *out);
    memset(out, 0, (s->outputs + 1) * sizeof *out);
    ort_status status = ort_profile_new(s->session, NULL, &profile, err);
    if (status == ORT_OK) {
        ort_profile_start(profile);
        options.profile = profile;
        status = ort_session_run(s->session, NULL, s->in, s->inputs, NULL, out, s->outputs,
                                 &options, err);
    }
    if (status == ORT_OK)
        status = ort_profile_report(profile, NULL, &text, err);
    if (status == ORT_OK) {
        json_object *all = json_tokener_parse(text);
        e->steps = json_object_get(member(all, "nodes"));
        json_object_put(all);
    }
    for (size_t i = 0; i < s->outputs; i++)
        ort_value_free(out[i]);
    free(out);
    ort_text_free(text);
    ort_profile_free(profile);
    return status;
}

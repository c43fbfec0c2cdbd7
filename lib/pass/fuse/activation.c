/* activation.c - a FusedConv as rows write it (activation.h). */
#include "pass/fuse/activation.h"

#include <float.h>
#include <math.h>

#include "base/error.h"
#include "pass/facts/facts.h"

const char *ort_fused_conv_unless(const ort_pass_context *c, ort_match *m)
{
    const ort_node *a = ort_match_node(m, "a");
    if (ort_match_type(m, "n")->dtype != ORT_DTYPE_FLOAT)
        return "FusedConv is for float";
    if (!ort_edit_is(a, ONNX, "Clip"))
        return NULL;
    if (!ort_match_has(m, "p"))
        ort_match_let(m, "p", -(double)FLT_MAX);
    if (!ort_match_has(m, "q"))
        ort_match_let(m, "q", (double)FLT_MAX);
    return isnan(ort_match_number(m, "p")) || isnan(ort_match_number(m, "q"))
               ? "its bounds are NaN"
               : NULL;
}

/* Does the attribute say what holds without it? */
static bool is_default(const ort_node *conv, const ort_attr *a)
{
    if (!strcmp(a->name, "group"))
        return a->type == ORT_ATTR_INT && a->i == 1;
    if (!strcmp(a->name, "dilations") || !strcmp(a->name, "strides"))
        return ort_fact_ints_are(conv, a->name, 1);
    return !strcmp(a->name, "pads") && ort_fact_ints_are(conv, a->name, 0);
}

ort_status ort_fused_conv_prepare(ort_pass_context *c, ort_match *m, ort_error *err)
{
    ort_node *conv = ort_match_node(m, "n");
    ort_attr *kept = ort_arena_array(&c->graph->model->arena, (size_t)conv->attr_count + 1,
                                     sizeof *kept);
    int count = 0;
    if (!kept)
        return ort_error_memory(err, sizeof *kept);
    for (int i = 0; i < conv->attr_count; i++)
        if (!is_default(conv, &conv->attrs[i]))
            kept[count++] = conv->attrs[i];
    conv->attrs = kept; /* it goes */
    conv->attr_count = count;
    return ORT_OK;
}

/* harm.c - work by numbers that went in, as shapes of samples may differ; noise by histograms. */
#include "quantize/static/harm.h"

#include "op/edit.h"
#include "quantize/static/seen_range.h"

typedef struct weighing {
    const ort_site *site;
    const ort_node *node;
    ort_harm_seen *seen;
    void *arg;
} weighing;

static double numbers_of(const weighing *w, int slot)
{
    const ort_observed *o = w->seen(w->arg, w->node->inputs[slot]);
    return o ? (double)o->histogram.count : 0;
}

/* Of a dimension that is known, else 1. */
static double size_of(const weighing *w, int slot, int axis)
{
    const ort_type *type = &w->site->graph->values.data[w->node->inputs[slot]]->fact.type;
    const int rank = ort_type_rank(type), at = axis < 0 ? rank + axis : axis;
    return at >= 0 && at < rank && type->dim[at].expr == ORT_DIM_KNOWN &&
                   type->dim[at].size > 0
               ? (double)type->dim[at].size : 1;
}

static double strides_of(const ort_node *node)
{
    size_t count = 0;
    const int64_t *strides = ort_node_ints(node, "strides", &count);
    double all = 1;
    for (size_t i = 0; strides && i < count; i++)
        all *= (double)strides[i];
    return ort_edit_is(node, ONNX, "Conv") ? all : 1;
}

/* Each pixel that is read, and not stepped over, meets each number of the weight once; each number
 * of a matrix as many as the other has columns. */
static double product_work(const weighing *w)
{
    const ort_graph *graph = w->site->graph;
    if (!ort_edit_is_any(w->node, "Conv|ConvTranspose"))
        return numbers_of(w, 0) * size_of(w, 1, ort_node_int(w->node, "transB", 0) ? 0 : -1);
    double weights = 1;
    for (int axis = 0; axis < ort_type_rank(&graph->values.data[w->node->inputs[1]]->fact.type);
         axis++)
        weights *= size_of(w, 1, axis);
    return numbers_of(w, 0) / size_of(w, 0, 1) / strides_of(w->node) * weights;
}

static double noise_of(const weighing *w, int slot)
{
    const ort_observed *o = w->seen(w->arg, w->node->inputs[slot]);
    const int at = ort_code_plan_form(&w->site->plan, w->node, slot);
    if (!o || at < 0 || w->site->plan.forms.data[at].has_range)
        return 0;
    const ort_code_form *form = &w->site->plan.forms.data[at];
    return ort_seen_noise(w->site, ort_place_root(&w->site->place, w->node->inputs[slot]), o, form);
}

ort_harm ort_harm_of(const ort_site *site, const ort_node *node, ort_harm_seen *seen, void *arg)
{
    const weighing w = {site, node, seen, arg};
    const ort_part part = site->place.nodes[node->id].part;
    ort_harm harm = {0, 0};
    if (part != ORT_PART_PRODUCT && part != ORT_PART_STEP)
        return harm;
    for (int slot = 0; slot < node->input_count; slot++)
        if (ort_place_reads(site->graph, node, slot) &&
            !site->graph->values.data[node->inputs[slot]]->fact.value) {
            harm.noise += noise_of(&w, slot);
            harm.work += part == ORT_PART_STEP ? numbers_of(&w, slot) : 0;
        }
    if (part == ORT_PART_PRODUCT)
        harm.work = product_work(&w);
    return harm;
}

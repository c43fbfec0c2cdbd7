/* uneven.c - found once ranges are known. Another scale for each part would need another product
 * for each; floats cost less than that, and nobody loses the small part in silence.
 */
#include "quantize/static/uneven.h"

#include "base/error.h"
#include "graph/uses.h"
#include "op/edit.h"

typedef struct search {
    ort_design *design;
    ort_site *site;
    ort_uneven_reach *reach;
    void *arg;
    bool found;
} search;

/* Of the smallest and the largest input; constants have scales of their own. */
static bool is_uneven(const search *s, const ort_node *node, double *least, double *most)
{
    const ort_graph *graph = s->site->graph;
    const ort_code_plan *plan = &s->site->plan;
    *least = *most = 0;
    for (int i = 0; i < node->input_count; i++) {
        ort_id id = node->inputs[i];
        const ort_code_form *form = &plan->forms.data[ort_code_plan_form(plan, node, i)];
        if (graph->values.data[id]->fact.value || form->codes.most - form->codes.least > 255)
            continue;
        double reach = s->reach(s->arg, s->site, id, form);
        if (!(reach > 0))
            continue;
        *least = *least > 0 && *least < reach ? *least : reach;
        *most = *most > reach ? *most : reach;
    }
    return *least > 0 && *most > ORT_UNEVEN * *least;
}

/* What multiplies the value, moves alone in between. */
static void keep_products(search *s, ort_id value, int depth)
{
    enum { DEEPEST = 32 };
    const ort_placement *place = &s->site->place;
    ort_readers readers = ort_readers_of(s->site->graph, value);
    ort_node *node;
    while (depth < DEEPEST && (node = ort_readers_next(&readers))) {
        ort_part part = place->nodes[node->id].part;
        if (part == ORT_PART_PRODUCT)
            s->site->stays[node->id] = "it reads a Concat of ranges too different for one scale";
        for (int o = 0; part == ORT_PART_MOVE && o < node->output_count; o++)
            if (node->outputs[o] != ORT_ID_NONE)
                keep_products(s, node->outputs[o], depth + 1);
    }
}

static ort_status look_at(search *s, const ort_node *node, ort_error *err)
{
    double least, most;
    ort_arena *arena = &s->design->model->arena;
    if (!is_uneven(s, node, &least, &most))
        return ORT_OK;
    const char *why = ort_arena_printf(arena, "it joins values that reach %.3g and %.3g: one scale "
                                       "would leave the smaller %d codes", least, most,
                                       (int)(255 * least / most));
    if (!why)
        return ort_error_memory(err, 1);
    s->site->stays[node->id] = why;
    keep_products(s, node->outputs[0], 0);
    s->found = true;
    return ORT_OK;
}

ort_status ort_uneven_part(ort_design *design, ort_uneven_reach *reach, void *arg, ort_error *err)
{
    search s = {design, NULL, reach, arg, false};
    const ort_node *node;
    for (size_t k = 0; k < design->sites.count; k++) {
        s.site = &design->sites.data[k];
        ORT_EACH_NODE(s.site->graph, node)
        {
            if (s.site->place.nodes[node->id].part == ORT_PART_STEP &&
                ort_edit_is(node, ONNX, "Concat"))
                ORT_TRY(look_at(&s, node, err));
        }
    }
    return s.found ? ort_design_place(design, err) : ORT_OK;
}

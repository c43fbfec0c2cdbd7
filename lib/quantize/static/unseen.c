/* unseen.c - found once ranges are known (unseen.h). */
#include "quantize/static/unseen.h"

static bool reads_unseen(const ort_site *site, const ort_node *node, ort_seen_fn *seen, void *arg)
{
    const ort_code_plan *plan = &site->plan;
    for (int i = 0; i < node->input_count; i++) {
        if (!ort_place_reads(site->graph, node, i) ||
            site->graph->values.data[node->inputs[i]]->fact.value ||
            !site->place.values[node->inputs[i]].coded)
            continue;
        const ort_code_form *form = &plan->forms.data[ort_code_plan_form(plan, node, i)];
        if (!seen(arg, site, node->inputs[i], form))
            return true;
    }
    return false;
}

ort_status ort_unseen_part(ort_design *design, ort_seen_fn *seen, void *arg, size_t *count,
                           ort_error *err)
{
    *count = 0;
    for (size_t k = 0; k < design->sites.count; k++) {
        ort_site *site = &design->sites.data[k];
        const ort_node *node;
        ORT_EACH_NODE(site->graph, node)
        {
            if (site->place.nodes[node->id].part == ORT_PART_FLOAT ||
                !reads_unseen(site, node, seen, arg))
                continue;
            site->stays[node->id] = "samples held nothing but 0 of what it reads, or nothing: its "
                                    "range isn't known";
            ++*count;
        }
    }
    return *count ? ort_design_place(design, err) : ORT_OK;
}

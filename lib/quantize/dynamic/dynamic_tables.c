/* dynamic_tables.c - tables that others read as floats stay so (results.h). */
#include "base/error.h"
#include "quantize/dynamic/dynamic_parts.h"
#include "quantize/results.h"

static bool on_codes(void *arg, const ort_graph *graph, const ort_node *node)
{
    const ort_dynamic *d = arg;
    for (size_t k = 0; k < d->units.count; k++)
        if (d->units.data[k].graph == graph && d->units.data[k].node == node)
            return true;
    return false;
}

static bool stays(ort_dynamic *d, const ort_dynamic_unit *u)
{
    if (!ort_edit_is(u->node, ONNX, "Gather"))
        return false;
    const ort_dynamic_weight *w = &d->weights.data[u->weights[0]];
    return ort_quantize_has_float_reader(w->graph, w->id, on_codes, d);
}

ort_status ort_dynamic_keep_tables(ort_dynamic *d, ort_error *err)
{
    size_t left = 0;
    for (size_t k = 0; k < d->units.count; k++)
        d->units.data[k].floats = stays(d, &d->units.data[k]);
    for (size_t k = 0; k < d->units.count; k++) {
        const ort_dynamic_unit *u = &d->units.data[k];
        if (!u->floats)
            d->units.data[left++] = *u;
        else if (!ort_quantize_notes_stays(d->notes, u->note, ort_quantize_table_stays))
            return ort_error_memory(err, sizeof *u);
    }
    d->units.count = left;
    return ORT_OK;
}

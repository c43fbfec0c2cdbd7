/* defaults.c - hides the default values of inputs, and restores them (defaults.h). */
#include "graph/defaults.h"

#include <assert.h>

#include "base/error.h"

ort_status ort_defaults_hide(ort_graph *graph, ort_hidden_defaults *hidden, ort_error *err)
{
    for (size_t i = 0; i < graph->inputs.count; i++) {
        ort_fact *fact = &graph->values.data[graph->inputs.data[i]]->fact;
        ort_hidden_default hide = {graph->inputs.data[i], fact->value};
        assert(graph->values.data[hide.value]->is_input); /* it is restored to such only */
        if (!fact->value)
            continue;
        if (!ort_vec_push(&hidden->list, hide))
            return ort_error_memory(err, sizeof hide);
        fact->value = NULL;
    }
    return ORT_OK;
}

void ort_defaults_restore(ort_graph *graph, ort_hidden_defaults *hidden)
{
    for (size_t i = 0; i < hidden->list.count; i++) {
        ort_graph_value *value = graph->values.data[hidden->list.data[i].value];
        assert(!value->is_input || !value->fact.value);
        if (value->is_input)
            value->fact.value = hidden->list.data[i].tensor;
    }
    ort_vec_release(&hidden->list);
}

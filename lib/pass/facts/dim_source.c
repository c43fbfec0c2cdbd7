/* dim_source.c - finds where a symbolic dimension can be read (dim_source.h). */
#include "pass/facts/dim_source.h"

#include "pass/facts/facts.h"

bool ort_dim_source(const ort_pass_context *c, ort_dim dim, ort_id *id, int64_t *axis)
{
    const ort_graph *graph = c->graph;
    for (size_t i = 0; i < graph->inputs.count; i++) {
        const ort_type *type = ort_fact_type(graph, graph->inputs.data[i]);
        for (int d = 0; d < ort_type_rank(type); d++)
            if (ort_dim_equal(type->dim[d], dim)) {
                *id = graph->inputs.data[i];
                *axis = d;
                return true;
            }
    }
    return false;
}

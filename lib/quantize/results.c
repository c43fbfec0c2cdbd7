/* results.c - weights that a model gives as results, too: a caller wants their numbers, not what
 * codes stand for. So they lie in the file as floats, and codes beside them would only make it
 * larger than the float model's.
 */
#include "quantize/results.h"

#include <string.h>

#include "graph/uses.h"

const char ort_quantize_result_stays[] =
    "its weight is an output of the model and keeps its numbers: codes would lie beside them";

static bool hands_on(const ort_node *node)
{
    return node->output_count == 1 &&
           (!strcmp(node->op_type, "Identity") || !strcmp(node->op_type, "Transpose"));
}

bool ort_quantize_is_result(const ort_graph *graph, ort_id id)
{
    const ort_node *reader;
    if (graph->values.data[id]->is_output)
        return true;
    ort_readers readers = ort_readers_of(graph, id);
    while ((reader = ort_readers_next(&readers)))
        if (hands_on(reader) && ort_quantize_is_result(graph, reader->outputs[0]))
            return true;
    return false;
}

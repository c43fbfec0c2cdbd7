/* results.c - weights that a model gives as results, too, or that nodes in float read: these want
 * their numbers, not what codes stand for. So they lie in the file as floats, and codes beside them
 * would only make it larger than the float model's.
 */
#include "quantize/results.h"

#include <string.h>

#include "graph/uses.h"

const char ort_quantize_result_stays[] =
    "its weight is an output of the model and keeps its numbers: codes would lie beside them";

const char ort_quantize_table_stays[] =
    "others read its table as floats: codes would be a second copy";

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

/* By a body that captures the value. */
static bool body_reads_floats(const ort_node *node, ort_id id, ort_quantize_on_codes *on_codes,
                              void *arg)
{
    for (int b = 0; b < node->body_count; b++) {
        const ort_graph *body = node->bodies[b];
        for (size_t i = 0; i < body->values.count; i++)
            if (body->values.data[i]->outer == id &&
                ort_quantize_has_float_reader(body, (ort_id)i, on_codes, arg))
                return true;
    }
    return false;
}

bool ort_quantize_has_float_reader(const ort_graph *graph, ort_id id,
                                   ort_quantize_on_codes *on_codes, void *arg)
{
    const ort_node *reader;
    ort_readers readers = ort_readers_of(graph, id);
    while ((reader = ort_readers_next(&readers))) {
        if (on_codes(arg, graph, reader))
            continue;
        if (hands_on(reader)
                ? ort_quantize_has_float_reader(graph, reader->outputs[0], on_codes, arg)
                : !reader->body_count || body_reads_floats(reader, id, on_codes, arg))
            return true;
    }
    return false;
}

/* place_join.c - what each value is a function of, from the first node to the last; then which
 * values have readers of the same function alone.
 */
#include "quantize/place/place_join.h"

#include "base/error.h"
#include "graph/uses.h"
#include "op/edit.h"

/* By elements, whatever else they read being one number. */
static const char by_elements[] = "Add|Sub|Mul|Relu|Clip|LeakyRelu|PRelu|Sigmoid|HardSigmoid|"
                                  "HardSwish|Tanh|Elu|Softplus";

static const ort_tensor *constant(const ort_graph *graph, ort_id id)
{
    return graph->values.data[id]->fact.value;
}

/* The one value that all inputs are functions of, constants of one number aside. */
static ort_id common_root(const ort_graph *graph, const ort_node *node, const ort_id *roots)
{
    ort_id root = ORT_ID_NONE;
    for (int i = 0; i < node->input_count; i++) {
        ort_id id = node->inputs[i];
        const ort_tensor *c = id == ORT_ID_NONE ? NULL : constant(graph, id);
        if (id == ORT_ID_NONE || (c && ort_tensor_count(c) == 1))
            continue;
        if (c || (root != ORT_ID_NONE && roots[id] != root))
            return ORT_ID_NONE;
        root = roots[id];
    }
    return root;
}

/* Of what the node computes; what is folded into a node that is no such step goes where that
 * goes. */
static ort_id root_of(const ort_graph *graph, const ort_placement *place, const ort_node *node,
                      const ort_id *roots)
{
    const ort_part part = place->nodes[node->id].part;
    if ((part != ORT_PART_STEP && part != ORT_PART_FOLDED) ||
        !ort_edit_is_any(node, by_elements))
        return ORT_ID_NONE;
    if (part == ORT_PART_FOLDED && roots[node->inputs[0]] == node->inputs[0])
        return ORT_ID_NONE;
    return common_root(graph, node, roots);
}

static bool is_inside(const ort_graph *graph, ort_id id, const ort_id *roots)
{
    ort_readers readers = ort_readers_of(graph, id);
    const ort_node *reader;
    bool any = false;
    if (graph->values.data[id]->is_output)
        return false;
    for (; (reader = ort_readers_next(&readers)); any = true)
        if (reader->output_count != 1 || roots[reader->outputs[0]] != roots[id])
            return false;
    return any;
}

static void mark(const ort_graph *graph, ort_placement *place, const ort_id *roots)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        ort_id id = node->output_count == 1 ? node->outputs[0] : ORT_ID_NONE;
        if (id == ORT_ID_NONE || roots[id] == id || !is_inside(graph, id, roots))
            continue;
        ort_readers readers = ort_readers_of(graph, id);
        const ort_node *reader;
        place->values[id].inside = true;
        place->nodes[node->id].joined = true;
        while ((reader = ort_readers_next(&readers)))
            place->nodes[reader->id].joined = true;
    }
}

ort_status ort_place_join(ort_graph *graph, ort_placement *place, ort_error *err)
{
    const size_t values = graph->values.count;
    ort_id *roots = ort_arena_array(&graph->model->arena, values + 1, sizeof *roots);
    const ort_node *node;
    if (!roots)
        return ort_error_memory(err, values * sizeof *roots);
    for (size_t i = 0; i < values; i++)
        roots[i] = (ort_id)i;
    ORT_EACH_NODE(graph, node)
    {
        ort_id root = root_of(graph, place, node, roots);
        if (root != ORT_ID_NONE)
            roots[node->outputs[0]] = root;
    }
    mark(graph, place, roots);
    return ORT_OK;
}

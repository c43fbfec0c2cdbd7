/* place_tables.c - who reads the numbers of a table (place_tables.h). */
#include "quantize/place/place_tables.h"

#include "op/edit.h"
#include "quantize/results.h"

typedef struct asking {
    const ort_graph *graph;
    const ort_placement *place;
    ort_id table;
} asking;

/* Bodies are placed by themselves, and aren't asked. */
static bool on_codes(void *arg, const ort_graph *graph, const ort_node *node)
{
    const asking *a = arg;
    ort_place_weight weight;
    if (graph != a->graph || node->body_count)
        return true;
    const ort_place_node *n = &a->place->nodes[node->id];
    if (n->part == ORT_PART_TABLE || n->weights)
        return true;
    return n->part == ORT_PART_PRODUCT && ort_place_weight_of(graph, node, &weight) &&
           weight.id == a->table;
}

void ort_place_tables(const ort_graph *graph, ort_placement *place)
{
    const ort_node *node;
    ORT_EACH_NODE(graph, node)
    {
        ort_place_node *n = &place->nodes[node->id];
        asking a = {graph, place, n->part == ORT_PART_TABLE ? node->inputs[0] : ORT_ID_NONE};
        if (n->part == ORT_PART_TABLE &&
            ort_quantize_has_float_reader(graph, a.table, on_codes, &a))
            *n = (ort_place_node){.part = ORT_PART_FLOAT, .why = ort_quantize_table_stays};
    }
}

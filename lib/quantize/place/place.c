/* place.c - parts by operator, and corridors of codes by taking out of all nodes that could compute
 * on codes the ones that read or feed others, until none is left to take.
 */
#include "quantize/place/place.h"

#include <string.h>

#include "base/error.h"
#include "op/spacer.h"
#include "quantize/folded.h"
#include "quantize/place/place_join.h"
#include "quantize/place/place_tables.h"
#include "quantize/place/place_why.h"
#include "quantize/results.h"
#include "quantize/strips.h"

typedef struct row {
    const char *op_type;
    ort_part part;
    int inputs; /* the first so many are read in codes; 0: all */
} row;

static const row rows[] = {
    {"Conv", ORT_PART_PRODUCT, 2},
    {"ConvTranspose", ORT_PART_PRODUCT, 2},
    {"Gemm", ORT_PART_PRODUCT, 2},
    {"MatMul", ORT_PART_PRODUCT, 2},
    {"Add", ORT_PART_STEP, 2},
    {"Sub", ORT_PART_STEP, 2},
    {"Mul", ORT_PART_STEP, 2},
    {"Concat", ORT_PART_STEP, 0},
    {"Relu", ORT_PART_STEP, 1},
    {"Clip", ORT_PART_STEP, 1},
    {"LeakyRelu", ORT_PART_STEP, 1},
    {"PRelu", ORT_PART_STEP, 1},
    {"Sigmoid", ORT_PART_STEP, 1},
    {"HardSigmoid", ORT_PART_STEP, 1},
    {"HardSwish", ORT_PART_STEP, 1},
    {"Tanh", ORT_PART_STEP, 1},
    {"Elu", ORT_PART_STEP, 1},
    {"Softplus", ORT_PART_STEP, 1},
    {"AveragePool", ORT_PART_STEP, 1},
    {"GlobalAveragePool", ORT_PART_STEP, 1},
    {"ReduceMean", ORT_PART_STEP, 1},
    {"Resize", ORT_PART_STEP, 1},
    {"Reshape", ORT_PART_MOVE, 1},
    {"Transpose", ORT_PART_MOVE, 1},
    {"Flatten", ORT_PART_MOVE, 1},
    {"Squeeze", ORT_PART_MOVE, 1},
    {"Unsqueeze", ORT_PART_MOVE, 1},
    {"MaxPool", ORT_PART_MOVE, 1},
    {"Slice", ORT_PART_MOVE, 1},
    {"Split", ORT_PART_MOVE, 1},
    {"Gather", ORT_PART_MOVE, 1},
    {"DepthToSpace", ORT_PART_MOVE, 1},
    {"SpaceToDepth", ORT_PART_MOVE, 1},
    {"Identity", ORT_PART_MOVE, 1},
    {"Expand", ORT_PART_MOVE, 1},
    {"Tile", ORT_PART_MOVE, 1},
};

static const row *row_of(const ort_node *node)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (ort_edit_is(node, ONNX, rows[i].op_type))
            return &rows[i];
    return NULL;
}

static const ort_type *type_of(const ort_graph *graph, ort_id id)
{
    return &graph->values.data[id]->fact.type;
}

static bool is_float(const ort_graph *graph, ort_id id)
{
    return id != ORT_ID_NONE && type_of(graph, id)->kind == ORT_TYPE_TENSOR &&
           type_of(graph, id)->dtype == ORT_DTYPE_FLOAT;
}

static const ort_tensor *constant(const ort_graph *graph, ort_id id)
{
    return id == ORT_ID_NONE ? NULL : graph->values.data[id]->fact.value;
}

bool ort_place_reads(const ort_graph *graph, const ort_node *node, int slot)
{
    const row *r = row_of(node);
    return r && (r->inputs == 0 || slot < r->inputs) && slot < node->input_count &&
           is_float(graph, node->inputs[slot]);
}

const char *ort_part_word(const ort_place_node *node)
{
    static const char *const words[] = {"float", "product", "folded", "step", "move", "table"};
    return node->weights ? "weights" : words[node->part];
}

/* ---- what a node could be */

typedef struct placing {
    ort_graph *graph;
    ort_placement *place;
    ort_place_node *nodes;
    ort_place_finite *finite; /* [values] */
} placing;

static ort_part part_of(const placing *p, ort_id node)
{
    return node == ORT_ID_NONE ? ORT_PART_FLOAT : p->nodes[node].part;
}

static bool has_activation(const ort_graph *graph, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (ort_place_reads(graph, node, i) && !constant(graph, node->inputs[i]))
            return true;
    return false;
}

/* What isn't stored counts as finite. */
static bool is_finite(const placing *p, ort_id id)
{
    const ort_tensor *t = constant(p->graph, id);
    if (!t || !t->data)
        return true;
    if (p->finite[id] == ORT_PLACE_UNKNOWN)
        p->finite[id] = ort_strips_finite(p->graph->model, t) ? ORT_PLACE_FINITE
                                                              : ORT_PLACE_INFINITE;
    return p->finite[id] == ORT_PLACE_FINITE;
}

/* Constants that a step reads become codes of one grid; infinite ones have none. */
static bool constants_fit(const placing *p, const ort_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (ort_place_reads(p->graph, node, i) && !is_finite(p, node->inputs[i]))
            return false;
    return true;
}

static bool resizes_by_lines(const ort_node *node)
{
    return strcmp(ort_node_string(node, "mode", "nearest"), "cubic") &&
           !ort_node_int(node, "antialias", 0);
}

/* A Gather of rows of a constant of two dimensions. */
static const ort_tensor *table_of(const ort_graph *graph, const ort_node *node)
{
    const ort_tensor *t = ort_edit_is(node, ONNX, "Gather") && is_float(graph, node->inputs[0])
                              ? constant(graph, node->inputs[0]) : NULL;
    return t && t->shape.rank == 2 && ort_node_int(node, "axis", 0) == 0 ? t : NULL;
}

static const char *objection_to_table(const placing *p, const ort_node *node)
{
    enum { SMALL = 4096 };
    const ort_tensor *t = table_of(p->graph, node);
    if (constant(p->graph, node->inputs[1]))
        return "everything that it reads is constant";
    if (!is_finite(p, node->inputs[0]))
        return "a number of its table isn't finite";
    if (ort_quantize_is_result(p->graph, node->inputs[0]))
        return ort_quantize_result_stays;
    return ort_tensor_count(t) < SMALL ? "its table is small" : NULL;
}

static ort_part part_by_row(const ort_graph *graph, const ort_node *node, const row *r)
{
    return table_of(graph, node) ? ORT_PART_TABLE : r->part;
}

static const char *objection_to_product(const ort_graph *graph, const ort_node *node)
{
    ort_place_weight weight;
    if (constant(graph, node->inputs[0]))
        return "its first input is constant";
    if (ort_edit_is(node, ONNX, "Gemm") && ort_node_int(node, "transA", 0))
        return "its first matrix is transposed";
    if (node->input_count > 1 && ort_quantize_is_computed(graph, node->inputs[1]))
        return "constants make its weight, which passes would compute beforehand";
    return ort_place_weight_of(graph, node, &weight) && ort_quantize_is_result(graph, weight.id)
               ? ort_quantize_result_stays : NULL;
}

static const char *other_type(const ort_type *type)
{
    const bool tensor = type->kind == ORT_TYPE_TENSOR;
    if (tensor && (type->dtype == ORT_DTYPE_FLOAT16 || type->dtype == ORT_DTYPE_BFLOAT16))
        return "its result has 16 bits: codes are made of float alone, so quantize the float model "
               "that this one was made of";
    return tensor && type->dtype == ORT_DTYPE_DOUBLE
               ? "its result is double: codes are made of float alone"
               : "its result isn't float";
}

static const char *first_objection(const placing *p, const ort_node *node, const row *r)
{
    const ort_graph *graph = p->graph;
    const char *already = r ? ort_place_already(graph, node) : NULL;
    if (!r)
        return ort_place_foreign(node);
    if (already)
        return already;
    if (table_of(graph, node))
        return objection_to_table(p, node);
    for (int o = 0; o < node->output_count; o++)
        if (node->outputs[o] != ORT_ID_NONE && !is_float(graph, node->outputs[o]))
            return other_type(type_of(graph, node->outputs[o]));
    if (!has_activation(graph, node))
        return "everything that it reads is constant";
    if (!constants_fit(p, node))
        return "a constant that it reads isn't finite";
    if (ort_edit_is(node, ONNX, "Resize") && !resizes_by_lines(node))
        return "cubic or antialiased";
    return r->part == ORT_PART_PRODUCT ? objection_to_product(graph, node) : NULL;
}

/* What it reads and its state stay float. */
static bool has_recurrent_weights(const ort_graph *graph, const ort_node *node)
{
    enum { SMALL = 4096 };
    int64_t numbers = 0;
    if (!ort_edit_is_any(node, "LSTM|GRU|RNN") || ort_place_already(graph, node))
        return false;
    for (int slot = ORT_RECURRENT_WEIGHT; slot < ORT_RECURRENT_WEIGHT + 2; slot++) {
        const ort_tensor *t = constant(graph, ort_edit_input(node, slot));
        if (!t || t->dtype != ORT_DTYPE_FLOAT || t->shape.rank != 3 ||
            ort_quantize_is_result(graph, node->inputs[slot]))
            return false;
        numbers += ort_tensor_count(t);
    }
    return numbers >= SMALL;
}

static void begin(placing *p, ort_place_stays *stays, void *arg)
{
    ort_node *node;
    ORT_EACH_NODE(p->graph, node)
    {
        ort_place_node *n = &p->nodes[node->id];
        const row *r = row_of(node);
        n->why = first_objection(p, node, r);
        if (!n->why)
            n->why = stays(arg, node);
        n->part = n->why ? ORT_PART_FLOAT : part_by_row(p->graph, node, r);
        if (has_recurrent_weights(p->graph, node)) {
            const char *kept = stays(arg, node);
            n->weights = !kept;
            n->why = kept ? kept : n->why;
        }
    }
}

/* ---- what belongs to the node before it */

static bool only_reader_is(const ort_graph *graph, ort_id id, const ort_node *node)
{
    return ort_edit_only_reader(graph, id) == node;
}

/* A Relu or Clip behind a product or a sum; an Add of a constant of one dimension, or none, behind
 * a product without a bias of its own. */
static bool belongs(const placing *p, const ort_node *node)
{
    bool sum = ort_edit_is(node, ONNX, "Add");
    if (!sum && !ort_edit_is(node, ONNX, "Relu") && !ort_edit_is(node, ONNX, "Clip"))
        return false;
    int slot = sum && constant(p->graph, node->inputs[0]) ? 1 : 0;
    const ort_tensor *other = sum ? constant(p->graph, node->inputs[1 - slot]) : NULL;
    ort_node *before = ort_edit_producer(p->graph, node->inputs[slot]);
    if (!before || !only_reader_is(p->graph, node->inputs[slot], node))
        return false;
    ort_part part = part_of(p, before->id);
    if (sum)
        return other && other->shape.rank <= 1 && ort_edit_is(before, ONNX, "MatMul") &&
               part == ORT_PART_PRODUCT;
    return part == ORT_PART_PRODUCT || part == ORT_PART_FOLDED ||
           (part == ORT_PART_STEP && ort_edit_is_any(before, "Add|Sub|Mul"));
}

static void fold(placing *p)
{
    ort_node *node;
    ORT_EACH_NODE(p->graph, node)
    {
        if (part_of(p, node->id) == ORT_PART_STEP && belongs(p, node))
            p->nodes[node->id].part = ORT_PART_FOLDED;
    }
}

/* ---- corridors */

/* A value is the other's result in codes where its producer computes on codes; what the graph is
 * given becomes codes too. */
static bool reads_codes(const placing *p, const ort_node *node)
{
    bool any = false;
    for (int i = 0; i < node->input_count; i++) {
        ort_id id = node->inputs[i];
        if (!ort_place_reads(p->graph, node, i) || constant(p->graph, id))
            continue;
        if (part_of(p, ort_graph_producer(p->graph, id)) == ORT_PART_FLOAT)
            return false;
        any = true;
    }
    return any;
}

/* The last of the nodes that belong to this one. */
static const ort_node *last_of(const placing *p, const ort_node *node)
{
    const ort_node *reader = ort_edit_only_reader(p->graph, node->outputs[0]);
    while (reader && part_of(p, reader->id) == ORT_PART_FOLDED) {
        node = reader;
        reader = ort_edit_only_reader(p->graph, node->outputs[0]);
    }
    return node;
}

/* Is every output read, and in codes alone? readers: by value, how often it is. */
static bool feeds_codes(const placing *p, const ort_node *node, const int *readers)
{
    bool any = false;
    for (int o = 0; o < node->output_count; o++) {
        ort_id id = node->outputs[o];
        if (id == ORT_ID_NONE)
            continue;
        const ort_graph_value *v = p->graph->values.data[id];
        if (v->is_output || v->use_count != readers[id])
            return false;
        any = any || readers[id] > 0;
    }
    return any;
}

static void count_readers(const placing *p, int *readers)
{
    ort_node *node;
    memset(readers, 0, p->graph->values.count * sizeof *readers);
    ORT_EACH_NODE(p->graph, node)
    {
        for (int i = 0; i < node->input_count; i++)
            if (part_of(p, node->id) != ORT_PART_FLOAT && ort_place_reads(p->graph, node, i))
                readers[node->inputs[i]]++;
    }
}

static bool leave(placing *p, const ort_node *node, const char *why)
{
    p->nodes[node->id] = (ort_place_node){.part = ORT_PART_FLOAT, .why = why};
    return true;
}

/* One round; false: nothing changed. What is folded goes where the node before it goes. */
static bool shrink(placing *p, int *readers)
{
    bool changed = false;
    ort_node *node;
    count_readers(p, readers);
    ORT_EACH_NODE(p->graph, node)
    {
        ort_part part = part_of(p, node->id);
        if (part == ORT_PART_FOLDED && !reads_codes(p, node))
            changed = leave(p, node, "what it belongs to stays float");
        if (part != ORT_PART_STEP && part != ORT_PART_MOVE)
            continue;
        if (!reads_codes(p, node))
            changed = leave(p, node, "it reads what is computed in float");
        else if (!feeds_codes(p, last_of(p, node), readers))
            changed = leave(p, node, "its result is read as float");
    }
    return changed;
}

/* ---- values */

ort_id ort_place_root(const ort_placement *place, ort_id id)
{
    while (place->values[id].grid != id)
        id = place->values[id].grid;
    return id;
}

/* Is the value rounded to codes? Not what a folded node takes on, nor what was codes before. */
static bool becomes_codes(const placing *p, ort_id id)
{
    const ort_node *from = ort_spacer_producer(p->graph, id);
    if (from && ort_edit_is(from, ONNX, "DequantizeLinear"))
        return false;
    const ort_node *reader = ort_edit_only_reader(p->graph, id);
    return !(reader && part_of(p, reader->id) == ORT_PART_FOLDED &&
             part_of(p, ort_graph_producer(p->graph, id)) != ORT_PART_FLOAT);
}

static bool keeps_constants(const placing *p, const ort_node *node)
{
    return part_of(p, node->id) == ORT_PART_FOLDED || p->nodes[node->id].joined;
}

static void place_inputs(placing *p, const ort_node *node)
{
    ort_place_product product = {-1, -1, -1};
    ort_place_weight weight;
    bool multiplies = ort_place_is_product(p->graph, node, &product) &&
                      ort_place_weight_of(p->graph, node, &weight);
    if (multiplies)
        p->place->values[weight.id].weight = true;
    if (part_of(p, node->id) == ORT_PART_TABLE) {
        p->place->values[node->inputs[0]].weight = true;
        return;
    }
    for (int i = 0; i < node->input_count; i++) {
        ort_id id = node->inputs[i];
        if (!ort_place_reads(p->graph, node, i) || p->place->values[id].inside ||
            (constant(p->graph, id) && keeps_constants(p, node)))
            continue;
        if (!(multiplies && i == product.weight) && becomes_codes(p, id))
            p->place->values[id].coded = true;
    }
}

/* Moves keep codes: outputs have the grid of what they come from. */
static void share_grids(placing *p, const ort_node *node)
{
    ort_id from = ort_place_root(p->place, node->inputs[0]);
    for (int o = 0; o < node->output_count; o++)
        if (node->outputs[o] != ORT_ID_NONE)
            p->place->values[node->outputs[o]].grid = from;
}

static ort_status begin_place(ort_graph *graph, ort_placement *place, ort_error *err)
{
    ort_arena *arena = &graph->model->arena;
    size_t values = graph->values.count, nodes = graph->nodes.count;
    place->nodes = ort_arena_array(arena, nodes + 1, sizeof *place->nodes);
    place->values = ort_arena_array(arena, values + 1, sizeof *place->values);
    if (!place->nodes || !place->values)
        return ort_error_memory(err, values * sizeof *place->values);
    memset(place->nodes, 0, nodes * sizeof *place->nodes);
    for (size_t i = 0; i < values; i++)
        place->values[i] = (ort_place_value){.grid = (ort_id)i};
    return ORT_OK;
}

ort_status ort_place_graph(ort_graph *graph, ort_place_stays *stays, void *arg, bool apart,
                           ort_place_finite *finite, ort_placement *place, ort_error *err)
{
    size_t values = graph->values.count;
    ORT_TRY(begin_place(graph, place, err));
    int *readers = ort_arena_array(&graph->model->arena, values + 1, sizeof *readers);
    if (!readers)
        return ort_error_memory(err, values * sizeof *readers);
    placing p = {graph, place, place->nodes, finite};
    ort_node *node;
    begin(&p, stays, arg);
    fold(&p);
    while (shrink(&p, readers)) {
    }
    ort_place_tables(graph, place);
    if (!apart)
        ORT_TRY(ort_place_join(graph, place, err));
    ORT_EACH_NODE(graph, node)
    {
        if (part_of(&p, node->id) != ORT_PART_FLOAT)
            place_inputs(&p, node);
        if (part_of(&p, node->id) == ORT_PART_MOVE)
            share_grids(&p, node);
    }
    return ORT_OK;
}

ort_status ort_place_alone(ort_graph *graph, const ort_placement *from, const ort_node *node,
                           ort_placement *place, ort_error *err)
{
    ORT_TRY(begin_place(graph, place, err));
    for (size_t i = 0; i < graph->nodes.count; i++)
        place->nodes[i].why = "another node is looked at alone";
    place->nodes[node->id] = from->nodes[node->id];
    for (size_t i = 0; i < graph->values.count; i++)
        place->values[i].inside = from->values[i].inside;
    placing p = {.graph = graph, .place = place, .nodes = place->nodes};
    place_inputs(&p, node);
    return ORT_OK;
}

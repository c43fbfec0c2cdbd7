/* place.h - which nodes of a float graph compute on codes, and which values become codes for that.
 *
 * Products (Conv, ConvTranspose, Gemm, MatMul) are what integers are for: their inputs become
 * codes. Nodes between products that stand in a corridor of codes (everything they read comes from
 * nodes on codes, everything they give goes to such) do so too, if a step on codes costs little
 * accuracy. The rest stays float, and says why. An activation or a bias right behind a product, or
 * behind a sum, belongs to it: what lies between isn't rounded to codes.
 */
#ifndef ORT_QUANTIZE_PLACE_H
#define ORT_QUANTIZE_PLACE_H

#include "graph/graph.h"

typedef enum ort_part {
    ORT_PART_FLOAT,   /* stays */
    ORT_PART_PRODUCT, /* multiplies codes */
    ORT_PART_FOLDED,  /* belongs to the node that computes its input */
    ORT_PART_STEP,    /* from codes to codes of another grid */
    ORT_PART_MOVE,    /* codes stay what they are: one grid for inputs and outputs */
    ORT_PART_TABLE,   /* looks up rows of codes, and gives floats */
} ort_part;

typedef struct ort_place_node {
    ort_part part;
    const char *why; /* of ORT_PART_FLOAT */
    bool weights;    /* of ORT_PART_FLOAT, recurrent: its weights are codes all the same */
    bool joined;     /* with steps beside it one function (place_join.h); constants stay floats */
} ort_place_node;

typedef struct ort_place_value {
    bool coded;  /* becomes codes when it is computed */
    bool inside; /* such a function: not rounded */
    bool weight; /* a constant that a product or a table reads in codes, with an axis of its own */
    ort_id grid; /* the value whose grid it shares; itself where none */
} ort_place_value;

typedef struct ort_placement {
    ort_place_node *nodes;   /* [nodes of the graph] */
    ort_place_value *values; /* [values of the graph] */
} ort_placement;

/* By value: are a constant's numbers finite? Looking reads all of a weight, and a graph is placed
 * many times while codes are searched. */
typedef enum ort_place_finite {
    ORT_PLACE_UNKNOWN, /* nobody has looked */
    ORT_PLACE_FINITE,
    ORT_PLACE_INFINITE,
} ort_place_finite;

/* Of a graph whose types are inferred; bodies of nodes are graphs of their own. stays(arg, node): a
 * reason why the node is to stay float, or NULL. apart: each step has
 * codes of its own. finite: [values of the graph], what is known of them, and what is found out.
 * In the arena of the model. */
typedef const char *ort_place_stays(void *arg, const ort_node *node);
ort_status ort_place_graph(ort_graph *graph, ort_place_stays *stays, void *arg, bool apart,
                           ort_place_finite *finite, ort_placement *place, ort_error *err);

/* One node of a placement as it is there, all others float: not even what it would need beside it
 * computes on codes. */
ort_status ort_place_alone(ort_graph *graph, const ort_placement *from, const ort_node *node,
                           ort_placement *place, ort_error *err);

/* The value whose grid it has. */
ort_id ort_place_root(const ort_placement *place, ort_id id);
/* What a part reads in codes: input `slot` of it, a weight or bias not. */
bool ort_place_reads(const ort_graph *graph, const ort_node *node, int slot);
/* The slots of a product: its weight, the weight's axis of output channels (-1: none), its bias
 * (-1: none). False: no product. */
typedef struct ort_place_product {
    int weight, axis, bias;
} ort_place_product;
bool ort_place_is_product(const ort_graph *graph, const ort_node *node,
                          ort_place_product *product);
/* The constant that a product multiplies with, which a Transpose may turn first: as linear layers
 * share it with tables. False: it is computed. */
typedef struct ort_place_weight {
    ort_id id;
    int axis;                  /* of output channels in the constant; -1: none */
    const ort_node *transpose; /* between it and the product, or NULL */
} ort_place_weight;
bool ort_place_weight_of(const ort_graph *graph, const ort_node *node, ort_place_weight *weight);
/* Its weights, for input and state, are slots 1 and 2; of each, axis 1 has the outputs of gates. */
enum { ORT_RECURRENT_WEIGHT = 1, ORT_RECURRENT_AXIS = 1 };
/* One word for a report: "float", "product", "folded", "step", "move", "table", "weights". */
const char *ort_part_word(const ort_place_node *node);

#endif

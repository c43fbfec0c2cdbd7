/* draw.h - pictures of a graph: DOT for tools that lay it out, SVG with a layout of our own.
 *
 * The picture is for a person: weights and Constant nodes are left out, a linear run of small
 * operators shares the box of the operator before it, colours stand for classes of operators, each
 * box says what shape leaves it. Values run from top to bottom.
 */
#ifndef ORT_GRAPH_DRAW_H
#define ORT_GRAPH_DRAW_H

#include "base/strbuf.h"
#include "graph/graph.h"

ort_status ort_graph_draw_dot(const ort_model *model, ort_strbuf *out, ort_error *err);
ort_status ort_graph_draw_svg(const ort_model *model, ort_strbuf *out, ort_error *err);

/* ---- parts */

typedef enum ort_draw_class {
    ORT_DRAW_OTHER,
    ORT_DRAW_PORT, /* a graph input or output */
    ORT_DRAW_CONV,
    ORT_DRAW_MATMUL,
    ORT_DRAW_RECURRENT,
    ORT_DRAW_ACTIVATION,
    ORT_DRAW_NORM,
    ORT_DRAW_POOL,
    ORT_DRAW_ELEMENTWISE,
    ORT_DRAW_REDUCE,
    ORT_DRAW_MOVE,
    ORT_DRAW_QUANT,
    ORT_DRAW_CONTROL,
    ORT_DRAW_ML,
    ORT_DRAW_CLASS_COUNT
} ort_draw_class;

typedef struct ort_draw_style {
    const char *name, *fill, *edge; /* what the legend says; colours */
} ort_draw_style;

/* draw_label.c */
ort_draw_class ort_draw_class_of(const ort_node *node);
const ort_draw_style *ort_draw_style_of(ort_draw_class class_);
/* "Conv 3×3 /2 → 64": the operator with what matters about it. */
void ort_draw_label(const ort_graph *graph, const ort_node *node, ort_strbuf *out);
/* "1×64×56×56" or "" when nothing is known. */
void ort_draw_shape(const ort_graph *graph, ort_id value, ort_strbuf *out);
/* Constant nodes and what only they feed aren't drawn. */
bool ort_draw_is_constant(const ort_graph *graph, ort_id value);

typedef struct ort_draw_row {
    char *text;
    const ort_node *node; /* NULL for a port */
    ort_draw_class class_;
} ort_draw_row;

typedef struct ort_draw_box {
    ort_draw_row *rows;
    int row_count;
    char *shape;            /* of what leaves it; may be "" */
    double width, height;
    double x, y;            /* centre, top */
    int layer;
} ort_draw_box;

typedef struct ort_draw_edge {
    uint32_t from, to;      /* boxes */
    uint32_t first_bend, bend_count; /* into ort_drawing.bends */
} ort_draw_edge;

typedef struct ort_draw_point {
    double x, y;
} ort_draw_point;

typedef struct ort_drawing {
    ort_arena arena;
    ORT_VEC(ort_draw_box) boxes;
    ORT_VEC(ort_draw_edge) edges;
    ORT_VEC(ort_draw_point) bends;
    double width, height;
} ort_drawing;

/* draw_boxes.c: boxes and edges of one graph (not its bodies). */
ort_status ort_drawing_build(const ort_graph *graph, ort_drawing *drawing, ort_error *err);
/* draw_layout.c: layers, order, coordinates, bends. */
ort_status ort_drawing_layout(ort_drawing *drawing, ort_error *err);
void ort_drawing_release(ort_drawing *drawing);

#endif

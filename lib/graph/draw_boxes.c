/* draw_boxes.c - from nodes to boxes and edges (draw.h). A small operator joins the box of the
 * operator that feeds it when that is its only computed input and it is the only reader: Conv,
 * BatchNormalization and Relu become one box of three rows. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/draw.h"

enum { MAX_ROWS = 5, NO_BOX = -1 };

static const double row_height = 18, character_width = 6.7, padding = 16, smallest_width = 56;

typedef struct boxer {
    const ort_graph *graph;
    ort_drawing *drawing;
    int32_t *box_of; /* by value id */
    ort_id (*users)[2]; /* by value id: its first two readers */
    ort_error *err;
} boxer;

static size_t visible_length(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static ort_status add_row(boxer *b, ort_draw_box *box, const ort_node *node, const char *text,
                          ort_draw_class class_)
{
    assert(box->row_count < MAX_ROWS);
    ort_draw_row *row = &box->rows[box->row_count];
    row->text = ort_arena_strdup(&b->drawing->arena, text);
    row->node = node;
    row->class_ = class_;
    if (!row->text)
        return ort_error_memory(b->err, 1);
    box->row_count++;
    double width = (double)visible_length(text) * character_width + padding;
    box->width = width > box->width ? width : box->width;
    box->height += row_height;
    return ORT_OK;
}

static ort_status add_box(boxer *b, const ort_node *node, const char *text, ort_draw_class class_,
                          int32_t *index)
{
    ort_draw_box box = {.width = smallest_width, .shape = (char *)(uintptr_t)""};
    box.rows = ort_arena_array(&b->drawing->arena, MAX_ROWS, sizeof *box.rows);
    if (!box.rows)
        return ort_error_memory(b->err, MAX_ROWS * sizeof *box.rows);
    ORT_TRY(add_row(b, &box, node, text, class_));
    *index = (int32_t)b->drawing->boxes.count;
    return ort_vec_push(&b->drawing->boxes, box) ? ORT_OK : ort_error_memory(b->err, sizeof box);
}

/* The one computed input of a node, ORT_ID_NONE when there are none or several. */
static ort_id single_input(const ort_graph *graph, const ort_node *node)
{
    ort_id found = ORT_ID_NONE;
    if (node->implicit_count || node->body_count)
        return ORT_ID_NONE;
    for (int i = 0; i < node->input_count; i++) {
        ort_id id = node->inputs[i];
        if (id == ORT_ID_NONE || ort_draw_is_constant(graph, id))
            continue;
        if (found != ORT_ID_NONE && found != id)
            return ORT_ID_NONE;
        found = id;
    }
    return found;
}

static bool is_small(ort_draw_class class_)
{
    return class_ == ORT_DRAW_ACTIVATION || class_ == ORT_DRAW_NORM ||
           class_ == ORT_DRAW_ELEMENTWISE || class_ == ORT_DRAW_MOVE || class_ == ORT_DRAW_QUANT;
}

/* x * Sigmoid(x): the Mul of a Sigmoid, or the Sigmoid of a Mul; NULL when `node` is neither. */
static const ort_node *swish_partner(const boxer *b, const ort_node *node, ort_id x)
{
    ort_id other = b->users[x][0] == node->id ? b->users[x][1] : b->users[x][0];
    if (b->graph->values.data[x]->use_count != 2 || other == ORT_ID_NONE || node->id == other)
        return NULL;
    const ort_node *partner = b->graph->nodes.data[other];
    bool gates = !strcmp(node->op_type, "Sigmoid") || !strcmp(node->op_type, "HardSigmoid");
    const ort_node *gate = gates ? node : partner, *product = gates ? partner : node;
    if (strcmp(product->op_type, "Mul") || product->input_count != 2 || gate->output_count != 1 ||
        (strcmp(gate->op_type, "Sigmoid") && strcmp(gate->op_type, "HardSigmoid")))
        return NULL;
    ort_id y = gate->outputs[0];
    bool wired = (product->inputs[0] == x && product->inputs[1] == y) ||
                 (product->inputs[0] == y && product->inputs[1] == x);
    return wired && b->graph->values.data[y]->use_count == 1 ? partner : NULL;
}

/* The same for the two values that a product reads: NO_BOX unless both come from one box that ends
 * with the Sigmoid. */
static int32_t joins_swish(const boxer *b, const ort_node *node)
{
    for (int i = 0; i < 2 && node->input_count == 2; i++) {
        ort_id x = node->inputs[i], y = node->inputs[1 - i];
        if (x == ORT_ID_NONE || y == ORT_ID_NONE || b->box_of[x] == NO_BOX ||
            b->box_of[x] != b->box_of[y] || !swish_partner(b, node, x))
            continue;
        const ort_draw_box *box = &b->drawing->boxes.data[b->box_of[x]];
        const ort_node *last = box->rows[box->row_count - 1].node;
        if (last && last->id == b->graph->producers.data[y] && box->row_count < MAX_ROWS)
            return b->box_of[x];
    }
    return NO_BOX;
}

/* The box that `node` may join, or NO_BOX. */
static int32_t joins(const boxer *b, const ort_node *node, ort_draw_class class_)
{
    ort_id id = single_input(b->graph, node);
    if (!strcmp(node->op_type, "Mul") && id == ORT_ID_NONE)
        return joins_swish(b, node);
    if (id == ORT_ID_NONE || !is_small(class_) || b->box_of[id] == NO_BOX)
        return NO_BOX;
    const ort_graph_value *v = b->graph->values.data[id];
    const ort_draw_box *box = &b->drawing->boxes.data[b->box_of[id]];
    const ort_draw_row *last = &box->rows[box->row_count - 1];
    bool sole = v->use_count == 1 || (swish_partner(b, node, id) && box->row_count + 2 <= MAX_ROWS);
    ort_id producer = b->graph->producers.data[id];
    if (!sole || v->is_output || producer == ORT_ID_NONE || box->row_count == MAX_ROWS)
        return NO_BOX;
    if (!last->node || last->node->id != producer || last->node->output_count != 1)
        return NO_BOX;
    return b->box_of[id];
}

static ort_status place_node(boxer *b, const ort_node *node)
{
    ort_draw_class class_ = ort_draw_class_of(node);
    ort_strbuf label = {0};
    ort_draw_label(b->graph, node, &label);
    int32_t index = joins(b, node, class_);
    ort_status status =
        index == NO_BOX
            ? add_box(b, node, ort_strbuf_text(&label), class_, &index)
            : add_row(b, &b->drawing->boxes.data[index], node, ort_strbuf_text(&label), class_);
    ort_strbuf_release(&label);
    if (status != ORT_OK)
        return status;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ORT_ID_NONE)
            b->box_of[node->outputs[i]] = index;
    if (node->output_count && node->outputs[0] != ORT_ID_NONE) {
        ort_strbuf shape = {0};
        ort_draw_shape(b->graph, node->outputs[0], &shape);
        char *copy = ort_arena_strdup(&b->drawing->arena, ort_strbuf_text(&shape));
        ort_strbuf_release(&shape);
        if (!copy)
            return ort_error_memory(b->err, 1);
        b->drawing->boxes.data[index].shape = copy;
    }
    return ORT_OK;
}

static ort_status place_port(boxer *b, ort_id id, bool is_input, int32_t *index)
{
    char name[64], type[512];
    const ort_graph_value *v = b->graph->values.data[id];
    snprintf(name, sizeof name, "%.60s", v->name);
    ort_status status = add_box(b, NULL, name, ORT_DRAW_PORT, index);
    ort_type_format(b->graph->model->dims, &v->fact.type, type, sizeof type);
    if (status == ORT_OK && v->fact.type.kind != ORT_TYPE_UNKNOWN)
        status = add_row(b, &b->drawing->boxes.data[*index], NULL, type, ORT_DRAW_PORT);
    if (is_input)
        b->box_of[id] = *index;
    return status;
}

static ort_status connect(boxer *b, ort_id value, int32_t to)
{
    assert(to >= 0 && (size_t)to < b->drawing->boxes.count);
    int32_t from = value == ORT_ID_NONE ? NO_BOX : b->box_of[value];
    if (from == NO_BOX || from == to)
        return ORT_OK;
    /* The newest edges are those of `to`: a second edge between the same boxes says nothing. */
    const ort_draw_edge *edges = b->drawing->edges.data;
    for (size_t i = b->drawing->edges.count; i-- > 0 && (int32_t)edges[i].to == to;)
        if ((int32_t)edges[i].from == from)
            return ORT_OK;
    return ort_vec_push(&b->drawing->edges,
                        (ort_draw_edge){.from = (uint32_t)from, .to = (uint32_t)to})
               ? ORT_OK
               : ort_error_memory(b->err, sizeof(ort_draw_edge));
}

static ort_status connect_nodes(boxer *b)
{
    const ort_node *node;
    ORT_EACH_NODE(b->graph, node)
    {
        if (ort_node_is_constant(node) || !node->output_count)
            continue;
        int32_t to = NO_BOX;
        for (int i = 0; i < node->output_count && to == NO_BOX; i++)
            if (node->outputs[i] != ORT_ID_NONE)
                to = b->box_of[node->outputs[i]];
        if (to == NO_BOX)
            continue;
        for (int i = 0; i < node->input_count; i++)
            ORT_TRY(connect(b, node->inputs[i], to));
        for (int i = 0; i < node->implicit_count; i++)
            ORT_TRY(connect(b, node->implicit[i], to));
    }
    return ORT_OK;
}

static ort_status build(boxer *b)
{
    const ort_graph *graph = b->graph;
    const ort_node *node;
    int32_t index;
    for (size_t i = 0; i < graph->values.count; i++) {
        b->box_of[i] = NO_BOX;
        b->users[i][0] = b->users[i][1] = ORT_ID_NONE;
    }
    ORT_EACH_NODE(graph, node)
    {
        for (int i = 0; i < node->input_count; i++) {
            ort_id id = node->inputs[i];
            if (id != ORT_ID_NONE)
                b->users[id][b->users[id][0] != ORT_ID_NONE] = node->id;
        }
    }
    for (size_t i = 0; i < graph->inputs.count; i++)
        if (!ort_draw_is_constant(graph, graph->inputs.data[i]))
            ORT_TRY(place_port(b, graph->inputs.data[i], true, &index));
    /* Captured values enter a body like inputs. */
    for (size_t i = 0; i < graph->values.count; i++)
        if (graph->values.data[i]->outer != ORT_ID_NONE && graph->values.data[i]->use_count &&
            !ort_draw_is_constant(graph, (ort_id)i))
            ORT_TRY(place_port(b, (ort_id)i, true, &index));
    ORT_EACH_NODE(graph, node)
    {
        if (!ort_node_is_constant(node))
            ORT_TRY(place_node(b, node));
    }
    ORT_TRY(connect_nodes(b));
    for (size_t i = 0; i < graph->outputs.count; i++) {
        ORT_TRY(place_port(b, graph->outputs.data[i], false, &index));
        ORT_TRY(connect(b, graph->outputs.data[i], index));
    }
    return ORT_OK;
}

ort_status ort_drawing_build(const ort_graph *graph, ort_drawing *drawing, ort_error *err)
{
    boxer b = {.graph = graph, .drawing = drawing, .err = err};
    *drawing = (ort_drawing){0};
    b.box_of = calloc(graph->values.count + 1, sizeof *b.box_of);
    b.users = calloc(graph->values.count + 1, sizeof *b.users);
    ort_status status =
        b.box_of && b.users ? build(&b) : ort_error_memory(err, graph->values.count * 4);
    free(b.box_of);
    free(b.users);
    return status;
}

void ort_drawing_release(ort_drawing *drawing)
{
    ort_arena_release(&drawing->arena);
    ort_vec_release(&drawing->boxes);
    ort_vec_release(&drawing->edges);
    ort_vec_release(&drawing->bends);
}

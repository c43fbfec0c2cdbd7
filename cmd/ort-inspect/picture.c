/* picture.c - --partition as a picture, by --dot or --svg: a colour for each provider, and what
 * goes from one to another in red.
 *
 * The SVG has a lane for each provider, and the nodes from top to bottom in the order in which they
 * run: where the lane changes, a turn of another provider begins.
 */
#include "common/look.h"
#include "inspect.h"

enum { TOP = 56, ROW = 30, BOX_WIDTH = 230, BOX_HEIGHT = 22, LANE = 300, LEFT = 40 };

static const char *const colours[] = {"#ffd8a8", "#a5d8ff", "#b2f2bb", "#eebefa", "#ffec99",
                                      "#ffc9c9", "#99e9f2", "#dee2e6"};
enum { COLOURS = sizeof colours / sizeof *colours };

static json_object *at(json_object *list, size_t index)
{
    return json_object_array_get_idx(list, index);
}

/* A provider's place in the list; past it: nobody. */
static size_t lane_of(json_object *report, json_object *node)
{
    json_object *list = member(report, "providers");
    size_t lane = 0;
    while (lane < length_of(list) &&
           strcmp(text_of(at(list, lane), "name"), text_of(node, "provider")))
        lane++;
    return lane;
}

static void put_escaped(const char *text, FILE *stream)
{
    for (; *text; text++) {
        if (*text == '&' || *text == '<' || *text == '>' || *text == '"')
            fprintf(stream, "&#%d;", *text);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, stream);
    }
}

/* "FusedConv conv1", cut to what a box holds; the caller frees it. */
static char *label_of(json_object *node)
{
    const char *within = text_of(node, "within");
    char *text = tool_printf("%s %s%s%s", text_of(node, "op_type"), within, *within ? "/" : "",
                             text_of(node, "name"));
    if (strlen(text) > 34)
        memcpy(text + 31, "...", 4);
    return text;
}

/* The node that gives this value; -1: none. */
static long producer_of(json_object *nodes, const char *value, size_t before)
{
    for (size_t k = before; k-- > 0;) {
        json_object *outputs = member(at(nodes, k), "outputs");
        for (size_t o = 0; o < length_of(outputs); o++)
            if (!strcmp(json_object_get_string(at(outputs, o)), value))
                return (long)k;
    }
    return -1;
}

typedef void edge_fn(json_object *report, size_t from, size_t to, bool border, FILE *stream);

static void each_edge(json_object *report, edge_fn *put, FILE *stream)
{
    json_object *nodes = member(report, "nodes");
    for (size_t i = 0; i < length_of(nodes); i++) {
        json_object *inputs = member(at(nodes, i), "inputs");
        for (size_t k = 0; k < length_of(inputs); k++) {
            long from = producer_of(nodes, json_object_get_string(at(inputs, k)), i);
            if (from >= 0)
                put(report, (size_t)from, i,
                    lane_of(report, at(nodes, (size_t)from)) != lane_of(report, at(nodes, i)),
                    stream);
        }
    }
}

/* ---- SVG */

static size_t left_of(json_object *report, size_t node)
{
    return LEFT + lane_of(report, at(member(report, "nodes"), node)) * LANE;
}

/* An edge that passes other rows of its lane bends around them. */
static void svg_edge(json_object *report, size_t from, size_t to, bool border, FILE *stream)
{
    size_t x0 = left_of(report, from) + BOX_WIDTH / 2, x1 = left_of(report, to) + BOX_WIDTH / 2;
    size_t y0 = TOP + from * ROW + BOX_HEIGHT, y1 = TOP + to * ROW;
    size_t bend = !border && to - from > 1 ? BOX_WIDTH / 2 + 12 + (to - from > 20 ? 20 : to - from)
                                           : 0;
    fprintf(stream, "<path d=\"M%zu %zu C%zu %zu %zu %zu %zu %zu\" fill=\"none\" stroke=\"%s\"/>\n",
            x0, y0, x0 + bend, y0 + 8, x1 + bend, y1 - 8, x1, y1, border ? "#e03131" : "#868e96");
}

static void svg_node(json_object *report, size_t i, FILE *stream)
{
    json_object *node = at(member(report, "nodes"), i);
    size_t lane = lane_of(report, node), x = left_of(report, i), y = TOP + i * ROW;
    bool idle = !json_object_get_boolean(member(node, "computed_by_runs"));
    char *label = label_of(node);
    fprintf(stream, "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" "
            "stroke=\"#495057\"%s/>\n<text x=\"%zu\" y=\"%zu\">", x, y, BOX_WIDTH, BOX_HEIGHT,
            colours[lane % COLOURS], idle ? " stroke-dasharray=\"3 2\"" : "", x + 8, y + 15);
    put_escaped(label, stream);
    fputs("</text>\n", stream);
    free(label);
}

static void put_svg(json_object *report, FILE *stream)
{
    json_object *providers = member(report, "providers"), *nodes = member(report, "nodes");
    size_t width = LEFT + length_of(providers) * LANE, height = TOP + length_of(nodes) * ROW + 20;
    fprintf(stream, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
            "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"white\"/>\n<text x=\"%d\" y=\"18\">", width, height, LEFT);
    put_escaped(text_of(report, "line"), stream);
    fputs("</text>\n", stream);
    for (size_t p = 0; p < length_of(providers); p++) {
        fprintf(stream, "<text x=\"%zu\" y=\"42\" font-size=\"14\" font-weight=\"bold\">",
                LEFT + p * LANE);
        put_escaped(text_of(at(providers, p), "name"), stream);
        fputs("</text>\n", stream);
    }
    each_edge(report, svg_edge, stream);
    for (size_t i = 0; i < length_of(nodes); i++)
        svg_node(report, i, stream);
    fputs("</svg>\n", stream);
}

/* ---- DOT */

static void dot_edge(json_object *report, size_t from, size_t to, bool border, FILE *stream)
{
    fprintf(stream, "  n%zu -> n%zu%s;\n", from, to,
            border ? " [color=\"#e03131\", penwidth=2]" : "");
}

static void put_dot(json_object *report, FILE *stream)
{
    json_object *nodes = member(report, "nodes");
    fputs("digraph partition {\n  node [shape=box, style=\"rounded,filled\", fontname=sans];\n  "
          "label=\"", stream);
    put_escaped(text_of(report, "line"), stream);
    fputs("\";\n", stream);
    for (size_t i = 0; i < length_of(nodes); i++) {
        json_object *node = at(nodes, i);
        char *label = label_of(node);
        for (char *c = label; *c; c++) /* what DOT takes for itself */
            *c = *c == '"' || *c == '\\' ? '\'' : *c;
        fprintf(stream, "  n%zu [label=\"%s\\n%s\", fillcolor=\"%s\"];\n", i, label,
                text_of(node, "provider"), colours[lane_of(report, node) % COLOURS]);
        free(label);
    }
    each_edge(report, dot_edge, stream);
    fputs("}\n", stream);
}

int picture_division(const char *json, bool svg, FILE *stream)
{
    json_object *report = look_parse(json, stream);
    if (report == NULL)
        return text_unreadable();
    (svg ? put_svg : put_dot)(report, stream);
    json_object_put(report);
    return 0;
}

/* draw_dot.c - the graph in the DOT language (draw.h), a node per operator, bodies as clusters. */
#include <string.h>

#include "base/error.h"
#include "graph/draw.h"

typedef struct dot {
    ort_strbuf *out;
    unsigned next_graph;
} dot;

static void add_quoted(ort_strbuf *out, const char *text)
{
    ort_strbuf_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\' || *text == '\n')
            ort_strbuf_add_char(out, '\\');
        ort_strbuf_add_char(out, *text == '\n' ? 'n' : (unsigned char)*text < 0x20 ? ' ' : *text);
    }
    ort_strbuf_add_char(out, '"');
}

static void put_port(dot *d, unsigned own, const ort_graph *graph, ort_id id, const char *prefix)
{
    char type[512];
    ort_strbuf label = {0};
    const ort_graph_value *v = graph->values.data[id];
    ort_strbuf_addf(&label, "%s\n%s", v->name,
                    ort_type_format(graph->model->dims, &v->fact.type, type, sizeof type));
    ort_strbuf_addf(d->out,
                    "  %s%u_%u [shape=box, style=\"rounded,filled\", fillcolor=white, label=",
                    prefix, own, id);
    add_quoted(d->out, ort_strbuf_text(&label));
    ort_strbuf_add(d->out, "];\n");
    ort_strbuf_release(&label);
}

static void put_edge(dot *d, unsigned own, const ort_graph *graph, ort_id value, const char *to)
{
    ort_id producer = graph->producers.data[value];
    ort_strbuf shape = {0};
    if (ort_draw_is_constant(graph, value))
        return;
    if (producer == ORT_ID_NONE)
        ort_strbuf_addf(d->out, "  i%u_%u -> %s", own, value, to);
    else
        ort_strbuf_addf(d->out, "  n%u_%u -> %s", own, producer, to);
    ort_draw_shape(graph, value, &shape);
    ort_strbuf_add(d->out, " [label=");
    add_quoted(d->out, ort_strbuf_text(&shape));
    ort_strbuf_add(d->out, "];\n");
    ort_strbuf_release(&shape);
}

static void put_graph(dot *d, const ort_graph *graph)
{
    unsigned own = d->next_graph++;
    const ort_node *node;
    char target[64];
    for (size_t i = 0; i < graph->values.count; i++) {
        const ort_graph_value *v = graph->values.data[i];
        bool enters = v->is_input || (v->outer != ORT_ID_NONE && v->use_count);
        if (enters && !ort_draw_is_constant(graph, (ort_id)i))
            put_port(d, own, graph, (ort_id)i, "i");
    }
    ORT_EACH_NODE(graph, node)
    {
        if (ort_node_is_constant(node))
            continue;
        const ort_draw_style *style = ort_draw_style_of(ort_draw_class_of(node));
        ort_strbuf label = {0};
        ort_draw_label(graph, node, &label);
        ort_strbuf_addf(d->out, "  n%u_%u [fillcolor=\"%s\", color=\"%s\", label=", own, node->id,
                        style->fill, style->edge);
        add_quoted(d->out, ort_strbuf_text(&label));
        ort_strbuf_add(d->out, ", tooltip=");
        add_quoted(d->out, node->name);
        ort_strbuf_add(d->out, "];\n");
        ort_strbuf_release(&label);
        snprintf(target, sizeof target, "n%u_%u", own, node->id);
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != ORT_ID_NONE)
                put_edge(d, own, graph, node->inputs[i], target);
        for (int b = 0; b < node->body_count; b++) {
            ort_strbuf_addf(d->out, "  subgraph cluster_%u { label=", d->next_graph);
            add_quoted(d->out, *node->name ? node->name : node->op_type);
            ort_strbuf_add(d->out, ";\n");
            put_graph(d, node->bodies[b]);
            ort_strbuf_add(d->out, "  }\n");
        }
    }
    for (size_t i = 0; i < graph->outputs.count; i++) {
        put_port(d, own, graph, graph->outputs.data[i], "o");
        snprintf(target, sizeof target, "o%u_%u", own, graph->outputs.data[i]);
        put_edge(d, own, graph, graph->outputs.data[i], target);
    }
}

ort_status ort_graph_draw_dot(const ort_model *model, ort_strbuf *out, ort_error *err)
{
    dot d = {.out = out};
    ort_strbuf_add(out, "digraph ");
    add_quoted(out, *model->graph->name ? model->graph->name : "graph");
    ort_strbuf_add(out, " {\n  node [shape=box, style=filled, fontname=\"DejaVu Sans\", "
                        "fontsize=11];\n  edge [fontname=\"DejaVu Sans\", fontsize=9, "
                        "color=\"#8a8f98\"];\n");
    put_graph(&d, model->graph);
    ort_strbuf_add(out, "}\n");
    return out->failed ? ort_error_memory(err, out->length) : ORT_OK;
}

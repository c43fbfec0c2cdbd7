/* draw_svg.c - the drawing as SVG (draw.h): the main graph, then a panel per body, one below the
 * other. Numbers have at most one decimal, so the same model gives the same bytes everywhere. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/draw.h"

static const double row_height = 18, head_height = 64, panel_gap = 40;
static const double legend_row = 18, least_width = 320;
static const double arrow_room = 1; /* between the point of an arrow and its box */

typedef struct panel {
    ort_drawing drawing;
    char *title;
    double y;
} panel;

typedef struct svg {
    ort_strbuf *out;
    ORT_VEC(panel) panels;
    bool used[ORT_DRAW_CLASS_COUNT];
    ort_arena arena;
    ort_error *err;
} svg;

static void add_escaped(ort_strbuf *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&': ort_strbuf_add(out, "&amp;"); break;
        case '<': ort_strbuf_add(out, "&lt;"); break;
        case '>': ort_strbuf_add(out, "&gt;"); break;
        case '"': ort_strbuf_add(out, "&quot;"); break;
        default:
            ort_strbuf_add_char(out, (unsigned char)*text < 0x20 ? ' ' : *text);
            break;
        }
    }
}

/* ---- panels */

static ort_status add_panels(svg *s, const ort_graph *graph, const char *title, int depth)
{
    const ort_node *node;
    panel p = {.title = ort_arena_strdup(&s->arena, title)};
    ort_status status = ort_drawing_build(graph, &p.drawing, s->err);
    if (status == ORT_OK)
        status = ort_drawing_layout(&p.drawing, s->err);
    if (status != ORT_OK || !p.title || !ort_vec_push(&s->panels, p)) {
        ort_drawing_release(&p.drawing);
        return status != ORT_OK ? status : ort_error_memory(s->err, sizeof p);
    }
    ORT_EACH_NODE(graph, node)
    for (int b = 0; b < node->body_count; b++) {
        char label[256], inner[400];
        snprintf(inner, sizeof inner, "body %d of %s", b,
                 ort_node_label(node, label, sizeof label));
        ORT_TRY(add_panels(s, node->bodies[b], inner, depth + 1));
    }
    return ORT_OK;
}

/* ---- shapes */

static void put_edge(svg *s, const ort_drawing *d, const ort_draw_edge *e)
{
    assert(e->from < d->boxes.count && e->to < d->boxes.count);
    assert(!e->bend_count || e->first_bend + e->bend_count <= d->bends.count);
    const ort_draw_box *from = &d->boxes.data[e->from], *to = &d->boxes.data[e->to];
    ort_draw_point at = {from->x, from->y + from->height};
    ort_strbuf_addf(s->out, "<path d=\"M%.1f %.1f", at.x, at.y);
    for (uint32_t i = 0; i <= e->bend_count; i++) {
        ort_draw_point next = i < e->bend_count ? d->bends.data[e->first_bend + i]
                                                : (ort_draw_point){to->x, to->y - arrow_room};
        double bow = (next.y - at.y) / 2;
        /* Inside of a layer (bends come in pairs) the line is straight. */
        if (i % 2 == 1)
            ort_strbuf_addf(s->out, "V%.1f", next.y);
        else
            ort_strbuf_addf(s->out, "C%.1f %.1f %.1f %.1f %.1f %.1f", at.x, at.y + bow, next.x,
                            next.y - bow, next.x, next.y);
        at = next;
    }
    ort_strbuf_add(s->out, "\" marker-end=\"url(#a)\"/>\n");
}

static void put_title(svg *s, const ort_node *node)
{
    char label[512];
    ort_strbuf_add(s->out, "<title>");
    add_escaped(s->out, ort_node_label(node, label, sizeof label));
    ort_strbuf_add(s->out, "</title>");
}

static void put_box(svg *s, const ort_draw_box *box)
{
    double left = box->x - box->width / 2;
    assert(box->row_count > 0);
    bool port = box->rows[0].class_ == ORT_DRAW_PORT;
    for (int i = 0; i < box->row_count; i++) {
        const ort_draw_row *row = &box->rows[i];
        const ort_draw_style *style = ort_draw_style_of(row->class_);
        double y = box->y + i * row_height;
        ort_strbuf_add(s->out, "<g>");
        if (row->node)
            put_title(s, row->node);
        if (!port)
            ort_strbuf_addf(s->out,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                            "fill=\"%s\"/>",
                            left, y, box->width, row_height, style->fill);
        else if (i == 0)
            ort_strbuf_addf(s->out,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"9\" "
                            "fill=\"%s\" stroke=\"%s\" stroke-width=\"1.4\"/>",
                            left, box->y, box->width, box->height, style->fill, style->edge);
        ort_strbuf_addf(s->out, "<text x=\"%.1f\" y=\"%.1f\"%s>", box->x, y + 13,
                        port && i == 0 ? " font-weight=\"bold\"" : "");
        add_escaped(s->out, row->text);
        ort_strbuf_add(s->out, "</text></g>\n");
    }
    if (!port)
        ort_strbuf_addf(s->out,
                        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"3\" "
                        "fill=\"none\" stroke=\"%s\"/>\n",
                        left, box->y, box->width, box->height,
                        ort_draw_style_of(box->rows[0].class_)->edge);
    if (*box->shape) {
        ort_strbuf_addf(s->out, "<text class=\"s\" x=\"%.1f\" y=\"%.1f\">", box->x + 5,
                        box->y + box->height + 12);
        add_escaped(s->out, box->shape);
        ort_strbuf_add(s->out, "</text>\n");
    }
}

static void put_panel(svg *s, const panel *p, bool titled)
{
    const ort_drawing *d = &p->drawing;
    ort_strbuf_addf(s->out, "<g transform=\"translate(0 %.1f)\">\n", p->y);
    if (titled) {
        ort_strbuf_add(s->out, "<text class=\"h\" x=\"24\" y=\"8\">");
        add_escaped(s->out, p->title);
        ort_strbuf_add(s->out, "</text>\n");
    }
    ort_strbuf_add(s->out, "<g class=\"e\">\n");
    for (size_t i = 0; i < d->edges.count; i++)
        put_edge(s, d, &d->edges.data[i]);
    ort_strbuf_add(s->out, "</g>\n");
    for (size_t i = 0; i < d->boxes.count; i++)
        put_box(s, &d->boxes.data[i]);
    ort_strbuf_add(s->out, "</g>\n");
}

static void find_classes(svg *s)
{
    for (size_t i = 0; i < s->panels.count; i++)
        for (size_t b = 0; b < s->panels.data[i].drawing.boxes.count; b++) {
            const ort_draw_box *box = &s->panels.data[i].drawing.boxes.data[b];
            for (int r = 0; r < box->row_count; r++)
                s->used[box->rows[r].class_] = true;
        }
}

static double swatch_width(const ort_draw_style *style)
{
    return 36 + 6.4 * (double)strlen(style->name);
}

/* A swatch and a word per class that occurs, in rows of the sheet's width; returns the height of
 * rows after the first. NULL measures. */
static double put_legend(const svg *s, double width, ort_strbuf *out)
{
    double x = 24, y = 0;
    for (int i = 0; i < ORT_DRAW_CLASS_COUNT; i++) {
        const ort_draw_style *style = ort_draw_style_of((ort_draw_class)i);
        if (!s->used[i])
            continue;
        if (x > 24 && x + swatch_width(style) > width) {
            x = 24;
            y += legend_row;
        }
        if (out)
            ort_strbuf_addf(out,
                            "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\" "
                            "fill=\"%s\" stroke=\"%s\"/><text class=\"l\" x=\"%.1f\" y=\"%.1f\">"
                            "%s</text>\n",
                            x, 40 + y, style->fill, style->edge, x + 17, 50 + y, style->name);
        x += swatch_width(style);
    }
    return y;
}

static void put_document(svg *s, const ort_model *model)
{
    double width = least_width;
    size_t nodes = 0;
    const ort_node *node;
    ORT_EACH_NODE(model->graph, node)
    nodes += !ort_node_is_constant(node);
    for (size_t i = 0; i < s->panels.count; i++)
        width = fmax(width, s->panels.data[i].drawing.width);
    double height = head_height + put_legend(s, width, NULL);
    for (size_t i = 0; i < s->panels.count; i++) {
        panel *p = &s->panels.data[i];
        p->y = height;
        height += p->drawing.height + panel_gap;
    }
    ort_strbuf_addf(s->out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                    "viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans, Verdana, sans-serif\" "
                    "font-size=\"11\" text-anchor=\"middle\">\n"
                    "<style>.e path{fill:none;stroke:#8a8f98;stroke-width:1.2}"
                    ".s{font-size:9.5px;fill:#5b6472;text-anchor:start}"
                    ".l{text-anchor:start;fill:#444}"
                    ".h{font-size:14px;font-weight:bold;text-anchor:start;fill:#222}</style>\n"
                    "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
                    "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
                    "<path d=\"M0 0.8 8 4 0 7.2z\" fill=\"#8a8f98\"/></marker></defs>\n"
                    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
                    "<text class=\"h\" x=\"24\" y=\"24\">",
                    width, height, width, height);
    const char *slash = strrchr(model->path, '/');
    add_escaped(s->out, *model->graph->name ? model->graph->name : slash ? slash + 1 : model->path);
    ort_strbuf_addf(s->out, " \xc2\xb7 %zu nodes</text>\n", nodes);
    put_legend(s, width, s->out);
    for (size_t i = 0; i < s->panels.count; i++)
        put_panel(s, &s->panels.data[i], i > 0);
    ort_strbuf_add(s->out, "</svg>\n");
}

ort_status ort_graph_draw_svg(const ort_model *model, ort_strbuf *out, ort_error *err)
{
    svg s = {.out = out, .err = err};
    ort_status status = add_panels(&s, model->graph, "", 0);
    if (status == ORT_OK) {
        find_classes(&s);
        put_document(&s, model);
    }
    for (size_t i = 0; i < s.panels.count; i++)
        ort_drawing_release(&s.panels.data[i].drawing);
    ort_vec_release(&s.panels);
    ort_arena_release(&s.arena);
    if (status == ORT_OK && out->failed)
        status = ort_error_memory(err, out->length);
    return status;
}

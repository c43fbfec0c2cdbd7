/* frontier_plot.c - points of a search drawn: as characters for the terminal, as SVG for a file.
 *
 * Cost goes to the right, signal to noise up. The line joins what nothing tried is better than in
 * both.
 */
#include <math.h>
#include <string.h>

#include "common/nearness.h"
#include "common/table.h"
#include "common/whole_file.h"
#include "frontier.h"

enum { COLUMNS = 56, LINES = 12 };
enum { WIDTH = 720, HEIGHT = 440, LEFT = 64, RIGHT = 24, TOP = 44, BOTTOM = 56, TICKS = 6 };

/* ---- places */

typedef struct span {
    double low, high;
} span;

typedef struct plane {
    const frontier *f;
    span cost, db;
    double exact; /* where models without any noise stand: above the others */
} plane;

static double cost_of(const frontier *f, const point *p)
{
    return f->by_size ? p->bytes : p->ms;
}

static double height_of(const plane *p, const point *at)
{
    return isfinite(at->near.sqnr_db) ? at->near.sqnr_db
           : at->near.sqnr_db > 0     ? p->exact
                                      : p->db.low;
}

static void widen(span *s, double x)
{
    s->low = fmin(s->low, x);
    s->high = fmax(s->high, x);
}

static plane plane_of(const frontier *f)
{
    plane p = {f, {INFINITY, -INFINITY}, {INFINITY, -INFINITY}, 0};
    for (size_t i = 0; i < f->count; i++) {
        widen(&p.cost, cost_of(f, &f->points[i]));
        if (isfinite(f->points[i].near.sqnr_db))
            widen(&p.db, f->points[i].near.sqnr_db);
    }
    if (p.db.low > p.db.high)
        p.db = (span){0, 0};
    if (f->gate_db >= 0)
        widen(&p.db, f->gate_db);
    p.exact = p.db.high + 10;
    for (size_t i = 0; i < f->count; i++)
        if (isinf(f->points[i].near.sqnr_db))
            widen(&p.db, height_of(&p, &f->points[i]));
    return p;
}

/* In [0, 1]. */
static double share(span s, double x)
{
    return s.high > s.low ? (x - s.low) / (s.high - s.low) : 0.5;
}

char frontier_mark(const frontier *f, size_t i)
{
    return (int)i == f->chosen ? '*' : f->points[i].holds ? '+' : 'o';
}

static const char *cost_text(const frontier *f, double cost)
{
    return f->by_size ? text_bytes(cost) : text_ms(cost);
}

/* ---- characters */

void frontier_characters(const frontier *f, FILE *out)
{
    char grid[LINES][COLUMNS + 1];
    const plane p = plane_of(f);
    memset(grid, ' ', sizeof grid);
    for (size_t i = 0; i < f->count; i++) {
        double x = share(p.cost, cost_of(f, &f->points[i]));
        double y = share(p.db, height_of(&p, &f->points[i]));
        char *at = &grid[LINES - 1 - (int)lround(y * (LINES - 1))][(int)lround(x * (COLUMNS - 1))];
        *at = *at == '*' ? '*' : frontier_mark(f, i);
    }
    fprintf(out, "\n     dB\n");
    for (int line = 0; line < LINES; line++) {
        double db = p.db.high - (p.db.high - p.db.low) * line / (LINES - 1);
        if (line == 0 || line == LINES - 1 || line == LINES / 2)
            fprintf(out, "%7.1f |%.*s\n", db, COLUMNS, grid[line]);
        else
            fprintf(out, "        |%.*s\n", COLUMNS, grid[line]);
    }
    fprintf(out, "        +");
    for (int i = 0; i < COLUMNS; i++)
        fputc('-', out);
    fprintf(out, " %s\n         %s", f->by_size ? "size" : "time", cost_text(f, p.cost.low));
    fprintf(out, "%*s\n* chosen  + holds the gates  o does not\n",
            COLUMNS - (int)strlen(cost_text(f, p.cost.low)), cost_text(f, p.cost.high));
}

/* ---- SVG */

static double x_at(const plane *p, double cost)
{
    return LEFT + 12 + share(p->cost, cost) * (WIDTH - LEFT - RIGHT - 24);
}

static double y_at(const plane *p, double db)
{
    return HEIGHT - BOTTOM - 12 - share(p->db, db) * (HEIGHT - TOP - BOTTOM - 24);
}

/* 1, 2 or 5 times a power of ten, so that a few of them fill the span. */
static double step_of(span s)
{
    double rough = fmax(s.high - s.low, 1e-9) / TICKS, power = pow(10, floor(log10(rough)));
    double digit = rough / power;
    return (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10) * power;
}

static void draw_axes(const plane *p, FILE *out)
{
    double step = step_of(p->db);
    for (double db = ceil(p->db.low / step) * step; db <= p->db.high + step / 1e3; db += step)
        fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>"
                     "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, y_at(p, db), WIDTH - RIGHT, LEFT - 8, y_at(p, db) + 4, db);
    step = step_of(p->cost);
    for (double c = ceil(p->cost.low / step) * step; c <= p->cost.high + step / 1e3; c += step)
        fprintf(out, "<path d=\"M%.1f %dv5\" stroke=\"#000\"/>"
                     "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                x_at(p, c), HEIGHT - BOTTOM, x_at(p, c), HEIGHT - BOTTOM + 20,
                cost_text(p->f, c));
    fprintf(out, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#000\"/>\n", LEFT, TOP,
            HEIGHT - BOTTOM, WIDTH - RIGHT);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n"
                 "<text x=\"%d\" y=\"%d\">SQNR, dB</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14,
            p->f->by_size ? "size of the file" : "latency here, the best of its runs", 8, TOP - 12);
}

static void draw_gate(const plane *p, FILE *out)
{
    double db = p->f->gate_db;
    if (db >= 0)
        fprintf(out, "<path d=\"M%d %.1fH%d\" stroke=\"#c22\" stroke-dasharray=\"5 4\"/>"
                     "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"#c22\">--min-sqnr %g"
                     "</text>\n",
                LEFT, y_at(p, db), WIDTH - RIGHT, WIDTH - RIGHT - 4, y_at(p, db) - 5, db);
}

/* Points are ordered by cost. */
static void draw_line(const plane *p, FILE *out)
{
    double best = -INFINITY;
    fprintf(out, "<polyline fill=\"none\" stroke=\"#47a\" points=\"");
    for (size_t i = 0; i < p->f->count; i++) {
        const point *at = &p->f->points[i];
        if (!(height_of(p, at) > best))
            continue;
        best = height_of(p, at);
        fprintf(out, "%.1f,%.1f ", x_at(p, cost_of(p->f, at)), y_at(p, best));
    }
    fprintf(out, "\"/>\n");
}

static const char *colour_of(const frontier *f, size_t i)
{
    char mark = frontier_mark(f, i);
    return mark == '*' ? "#c22" : mark == '+' ? "#2a2" : "#888";
}

static void draw_point(const plane *p, size_t i, FILE *out)
{
    const point *at = &p->f->points[i];
    char text[24];
    double x = x_at(p, cost_of(p->f, at)), y = y_at(p, height_of(p, at));
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"><title>%s: %s dB, ", x, y,
            (int)i == p->f->chosen ? 7 : 5, colour_of(p->f, i), at->what,
            nearness_sqnr(at->near.sqnr_db, text, sizeof text));
    fprintf(out, "%s, %s</title></circle>\n", text_ms(at->ms), text_bytes(at->bytes));
    if (isinf(at->near.sqnr_db))
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", x, y - 9,
                at->near.sqnr_db > 0 ? "exact" : "not finite");
}

/* The chosen one over all others. */
static void draw_points(const plane *p, FILE *out)
{
    for (size_t i = 0; i < p->f->count; i++)
        if ((int)i != p->f->chosen)
            draw_point(p, i, out);
    if (p->f->chosen >= 0)
        draw_point(p, (size_t)p->f->chosen, out);
}

static void draw_legend(const frontier *f, FILE *out)
{
    static const char *const words[] = {"chosen", "holds the gates", "does not"};
    static const char *const colours[] = {"#c22", "#2a2", "#888"};
    int x = LEFT + 120;
    for (int i = 0; i < 3; i++, x += 130)
        fprintf(out, "<circle cx=\"%d\" cy=\"%d\" r=\"5\" fill=\"%s\"/>"
                     "<text x=\"%d\" y=\"%d\">%s</text>\n", x, TOP - 16, colours[i], x + 10,
                TOP - 12, words[i]);
    if (f->chosen >= 0)
        fprintf(out, "<title>%s</title>\n", f->points[f->chosen].what);
}

int frontier_plot(const frontier *f, const char *path)
{
    ort_out_file *file = NULL;
    const plane p = plane_of(f);
    int status = whole_file_open(&file, path);
    if (status != 0)
        return status;
    FILE *out = ort_out_file_stream(file);
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                 "font-family=\"sans-serif\" font-size=\"12\">\n"
                 "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, HEIGHT, WIDTH,
            HEIGHT);
    draw_axes(&p, out);
    draw_gate(&p, out);
    draw_line(&p, out);
    draw_points(&p, out);
    draw_legend(f, out);
    fprintf(out, "</svg>\n");
    return whole_file_close(file, 0);
}

/* judged.c - the gates of ort-quantize. What was not measured passes none. */
#include <math.h>

#include "evaluation.h"

static gate_verdict *add(evaluation *e, const char *name, const char *unit, double allowed)
{
    gate_verdict *g = &e->gates[e->gate_count++];
    *g = (gate_verdict){.name = name, .unit = unit, .measured = NAN, .allowed = allowed};
    return g;
}

/* A number of every output that is compared by it; NaN of one is the least. */
typedef double measure_fn(const measured_output *m);

static double sqnr_of(const measured_output *m) { return ort_distance_sqnr_db(&m->distance); }
static double cosine_of(const measured_output *m) { return ort_distance_cosine(&m->distance); }

/* Of its worst part, or of the whole where all of it is of one size. */
static double part_sqnr_of(const measured_output *m)
{
    worst_part worst;
    const double whole = sqnr_of(m);
    return parts_worst(&m->parts, &worst) && worst.sqnr_db < whole ? worst.sqnr_db : whole;
}

static void judge_least(const evaluation *e, gate_verdict *g, measure_fn *measure)
{
    for (size_t i = 0; i < e->count; i++) {
        const measured_output *m = &e->measured[i];
        bool empty = m->distance.count == 0 && m->distance.odd_unlike == 0;
        double value = m->misfit ? NAN : measure(m);
        if (!m->misfit && (m->why || m->classes > 0 || empty))
            continue;
        if (g->place == NULL || (!isnan(g->measured) && !(value >= g->measured))) {
            g->measured = value;
            g->place = m->name;
        }
    }
    g->passed = g->measured >= g->allowed;
}

/* With --margin, of the rows alone that are clear by it. */
static void judge_top1(const evaluation *e, gate_verdict *g)
{
    bool clear = e->q->options.margin >= 0;
    for (size_t i = 0; i < e->count; i++) {
        const measured_output *m = &e->measured[i];
        double share = clear ? ort_distance_clear_top1(&m->distance)
                             : ort_distance_top1(&m->distance);
        if (m->classes > 0)
            share = (double)m->alike / (double)m->classes;
        if (m->misfit)
            share = 0;
        if (!m->misfit && (m->why || isnan(share)))
            continue;
        if (g->place == NULL || share < g->measured) {
            g->measured = share;
            g->place = m->name;
        }
    }
    g->passed = g->measured >= g->allowed;
}

static void judge_drop(const evaluation *e, gate_verdict *g)
{
    if (e->labelled > 0)
        g->measured = (double)(e->sides[FLOAT_SIDE].correct - e->sides[INTEGER_SIDE].correct) /
                      (double)e->labelled;
    g->passed = g->measured <= g->allowed;
}

bool gates_asked(const quantize_options *o)
{
    return o->min_sqnr >= 0 || o->min_part_sqnr >= 0 || o->min_cosine >= 0 || o->min_top1 >= 0 ||
           o->max_drop >= 0 || o->require_speedup > 0 || o->max_size > 0;
}

void gates_of_evaluation(evaluation *e)
{
    const quantize_options *o = &e->q->options;
    const side *f = &e->sides[FLOAT_SIDE], *s = &e->sides[INTEGER_SIDE];
    gate_verdict *g;
    if (o->min_sqnr >= 0)
        judge_least(e, add(e, "min-sqnr", "_db", o->min_sqnr), sqnr_of);
    if (o->min_part_sqnr >= 0)
        judge_least(e, add(e, "min-part-sqnr", "_db", o->min_part_sqnr), part_sqnr_of);
    if (o->min_cosine >= 0)
        judge_least(e, add(e, "min-cosine", "", o->min_cosine), cosine_of);
    if (o->min_top1 >= 0)
        judge_top1(e, add(e, "min-top1", "", o->min_top1));
    if (o->max_drop >= 0)
        judge_drop(e, add(e, "max-drop", "", o->max_drop));
    if (o->require_speedup > 0) {
        g = add(e, "require-speedup", "", o->require_speedup);
        g->measured = e->timed > 0 ? f->median_ms / s->median_ms : NAN;
        g->passed = g->measured >= g->allowed;
    }
    if (o->max_size > 0) {
        g = add(e, "max-size", "_bytes", (double)o->max_size);
        g->measured = s->bytes > 0 ? s->bytes : NAN;
        g->passed = g->measured <= g->allowed;
    }
}

int gates_tell(const evaluation *e)
{
    int status = 0;
    for (int i = 0; i < e->gate_count; i++) {
        const gate_verdict *g = &e->gates[i];
        if (g->passed)
            continue;
        if (isnan(g->measured))
            status = tool_error(ORT_ERROR_GATE, "--%s: nothing was measured%s%s%s", g->name,
                                g->place ? " in '" : "", g->place ? g->place : "",
                                g->place ? "'" : "");
        else
            status = tool_error(ORT_ERROR_GATE, "--%s: measured %.6g%s%s%s, allowed %.6g", g->name,
                                g->measured, g->place ? " in '" : "", g->place ? g->place : "",
                                g->place ? "'" : "", g->allowed);
    }
    return status;
}

/* report_text.c - what an evaluation found, for people. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/look.h"
#include "common/nearness.h"
#include "common/table.h"
#include "evaluation.h"

enum { ROWS_SHOWN = 8, FEW_SHOWN = 4, PAIRS_SHOWN = 4 };

static void print_samples(const evaluation *e, FILE *out)
{
    const char *seed = e->q->options.random;
    fprintf(out, "%zu sample%s", e->samples, e->samples == 1 ? "" : "s");
    if (e->made_up)
        fprintf(out, ", made up (--random %s): real ones may differ more or less", seed);
    fprintf(out, "\n");
}

static void add_share(table *t, int64_t part, int64_t whole)
{
    if (whole > 0)
        table_cellf(t, "%.2f %% of %" PRId64, 100 * (double)part / (double)whole, whole);
    else
        table_cell(t, "");
}

static void add_output(table *t, const measured_output *m)
{
    char text[24];
    const ort_distance *d = &m->distance;
    double cosine = ort_distance_cosine(d);
    bool names = m->classes > 0 && d->samples == 0; /* strings: equal or not */
    table_cell(t, m->name);
    if (m->why) {
        table_cellf(t, "not compared: %s", m->why);
        for (int i = 0; i < 4; i++)
            table_cell(t, "");
        return;
    }
    table_cell(t, names ? "" : nearness_sqnr(ort_distance_sqnr_db(d), text, sizeof text));
    if (isnan(cosine))
        table_cell(t, names ? "" : "none");
    else
        table_cellf(t, "%.6f", cosine);
    if (names)
        table_cell(t, "");
    else
        table_cellf(t, "%.4g", d->worst);
    if (m->classes > 0)
        add_share(t, m->alike, m->classes);
    else
        add_share(t, d->agreeing, d->rows);
    add_share(t, d->clear_agreeing, d->clear_rows);
}

/* What the ratio of the whole doesn't show. */
static void print_part(const measured_output *m, FILE *out)
{
    char text[200];
    worst_part worst;
    if (!m->why && parts_worst(&m->parts, &worst) &&
        worst.sqnr_db < ort_distance_sqnr_db(&m->distance))
        screen_printf(out, "%s: %s\n", m->name, part_text(&worst, text, sizeof text));
}

static void print_outputs(const evaluation *e, FILE *out)
{
    char clear[48];
    double margin = e->q->options.margin >= 0 ? e->q->options.margin : 0.1;
    snprintf(clear, sizeof clear, ">top-1 clear by %g", margin);
    const char *const heads[] = {"output", ">SQNR dB", ">cosine", ">worst", ">top-1", clear, NULL};
    table *t = table_new(heads);
    for (size_t i = 0; i < e->count; i++)
        add_output(t, &e->measured[i]);
    table_print(t, out);
    table_free(t);
    for (size_t i = 0; i < e->count; i++)
        print_part(&e->measured[i], out);
    for (size_t i = 0; i < e->count; i++)
        if (e->measured[i].distance.odd_unlike > 0)
            screen_printf(out, "%s: %" PRId64 " numbers are not finite in one model alone\n",
                          e->measured[i].name, e->measured[i].distance.odd_unlike);
}

static void print_accuracy(const evaluation *e, FILE *out)
{
    const side *f = &e->sides[FLOAT_SIDE], *s = &e->sides[INTEGER_SIDE];
    if (e->labelled == 0)
        return;
    double rows = (double)e->labelled;
    fprintf(out, "accuracy  %.4f, float %.4f: %" PRId64 " of %" PRId64 " answers lost\n",
            (double)s->correct / rows, (double)f->correct / rows, f->correct - s->correct,
            e->labelled);
}

static void print_sizes(const evaluation *e, FILE *out)
{
    const side *f = &e->sides[FLOAT_SIDE], *s = &e->sides[INTEGER_SIDE];
    fprintf(out, "size      %s, float %s: %.3f of it (weights %s of %s)\n", text_bytes(s->bytes),
            text_bytes(f->bytes), f->bytes > 0 ? s->bytes / f->bytes : 0,
            text_bytes(s->weight_bytes), text_bytes(f->weight_bytes));
}

static void print_copies(const evaluation *e, FILE *out)
{
    enum { COPIES_SHOWN = 4 };
    weight_copies *copies;
    const size_t count = copies_find(e, &copies);
    const char *verb = e->q->options.verb;
    const bool each = (!strcmp(verb, "static") || !strcmp(verb, "dynamic")) &&
                      !e->q->options.per_tensor;
    for (size_t i = 0; i < count && i < COPIES_SHOWN; i++) {
        const weight_copies *c = &copies[i];
        if (c->floats)
            screen_printf(out, "copies    '%s' lies there in floats and in codes, %s: some of its "
                          "readers stay float\n", c->name, text_bytes(c->bytes));
        else
            screen_printf(out, "copies    '%s' lies there %zu times in codes, %s: its readers have "
                          "scales along other axes%s\n", c->name, c->codes, text_bytes(c->bytes),
                          each ? " (--per-tensor: once, further from float)" : "");
    }
    if (count > COPIES_SHOWN)
        fprintf(out, "  and of %zu more weights (--json lists all)\n", count - COPIES_SHOWN);
    free(copies);
}

static void print_latency(const evaluation *e, FILE *out)
{
    const side *f = &e->sides[FLOAT_SIDE], *s = &e->sides[INTEGER_SIDE];
    fprintf(out, "latency   %s, float %s: %.2f times as fast (median of %d runs of each in turns, "
            "%d thread%s, %s)\n",
            text_ms(s->median_ms), text_ms(f->median_ms), f->median_ms / s->median_ms, e->timed,
            ort_env_threads(e->q->env), ort_env_threads(e->q->env) == 1 ? "" : "s",
            ort_env_isa(e->q->env));
}

static void print_float_products(const evaluation *e, FILE *out)
{
    char why[300];
    int shown = 0, left = 0;
    for (size_t i = 0; i < length_of(e->steps); i++) {
        json_object *step = json_object_array_get_idx(e->steps, i);
        if (!step_multiplies(step) || step_is_integer(step))
            continue;
        if (++shown > ROWS_SHOWN) {
            left++;
            continue;
        }
        screen_printf(out, "  float: %s (%s): %s\n", step_name(step),
                      text_of(step, "op_type"), step_why_float(e, step, why, sizeof why));
    }
    if (left > 0)
        fprintf(out, "  float: %d more (--json lists all)\n", left);
}

/* QuantizeLinear and DequantizeLinear that a run still does. */
static void print_pairs(const evaluation *e, FILE *out)
{
    int shown = 0, left = 0;
    for (size_t i = 0; i < length_of(e->steps); i++) {
        json_object *step = json_object_array_get_idx(e->steps, i);
        if (!step_is_pair(step))
            continue;
        if (++shown <= PAIRS_SHOWN)
            screen_printf(out, "%s%s", shown == 1 ? "  Q/DQ: " : ", ", step_name(step));
        else
            left++;
    }
    if (left > 0)
        fprintf(out, " and %d more (--json lists all)", left);
    if (shown > 0)
        fputs("\n", out);
}

static void print_computed(const evaluation *e, FILE *out)
{
    computed c = computed_sum(e);
    fprintf(out, "products  %d of %d on integers here (%.1f %% of multiply-adds); %d Q/DQ left, "
            "%.1f %% of the time\n",
            c.integer_products, c.products, c.macs > 0 ? 100 * c.integer_macs / c.macs : 0.0,
            c.pairs_left, c.all_ms > 0 ? 100 * c.pairs_ms / c.all_ms : 0.0);
    print_pairs(e, out);
    print_float_products(e, out);
}

/* Which, -v tells. */
static void print_kept(const evaluation *e, FILE *out)
{
    json_object *kept = e->q->kept_float;
    const size_t count = length_of(member(kept, "nodes"));
    const size_t tables = length_of(member(kept, "tables_float16"));
    if (count > 0)
        fprintf(out, "kept      %zu node%s in float, %.1f %% of multiply-adds: their codes cost "
                "too much (--keep-sensitive 0: none)\n", count, count == 1 ? "" : "s",
                100 * number_of(kept, "share_of_products"));
    if (tables > 0)
        fprintf(out, "kept      %zu table%s of rows in float16: codes of rows cost too much "
                "(--keep-sensitive 4: none)\n", tables, tables == 1 ? "" : "s");
}

/* Other runtimes on other processors; never here. */
static void print_saturation(const evaluation *e, FILE *out)
{
    int products = 0, old = 0;
    double most = 0;
    const char *name = "";
    for (size_t i = 0; i < length_of(e->nodes); i++) {
        json_object *node = json_object_array_get_idx(e->nodes, i);
        double share = saturation_share(e, node);
        products += share > 0;
        old += share > 0 && saturation_is_old(e, node);
        if (share > most) {
            most = share;
            name = text_of(node, "name");
        }
    }
    if (products > 0)
        screen_printf(out, "elsewhere %d product%s sums that processors without VNNI may "
                      "saturate in other runtimes, most of all '%s' (%.2g %% of its pairs of "
                      "weights); %s\n", products, products == 1 ? " has" : "s have", name,
                      100 * most, old < products ? "--reduce-range avoids it"
                                                 : "the model had these codes before");
}

static void print_weights(const evaluation *e, FILE *out)
{
    static const char *const heads[] = {"initializer", "type", ">bytes", NULL};
    json_object *rows = e->sides[INTEGER_SIDE].weights;
    const size_t most = e->q->options.settings.verbose ? ROWS_SHOWN : FEW_SHOWN;
    table *t = table_new(heads);
    for (size_t i = 0; i < length_of(rows) && i < most; i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        table_cell(t, text_of(row, "name"));
        table_cell(t, text_of(row, "type"));
        table_cell(t, text_count(number_of(row, "bytes")));
    }
    table_print(t, out);
    table_free(t);
    if (length_of(rows) > most)
        fprintf(out, "  and %zu smaller ones\n", length_of(rows) - most);
}

static void print_gates(const evaluation *e, FILE *out)
{
    for (int i = 0; i < e->gate_count; i++) {
        const gate_verdict *g = &e->gates[i];
        screen_verdict(out, g->passed);
        if (isnan(g->measured))
            fprintf(out, "--%s: nothing was measured\n", g->name);
        else
            fprintf(out, "--%s: measured %.6g, allowed %.6g\n", g->name, g->measured, g->allowed);
    }
}

void evaluation_text(const evaluation *e, FILE *out)
{
    screen_printf(out, "%s beside %s\n", e->sides[INTEGER_SIDE].path, e->sides[FLOAT_SIDE].path);
    print_samples(e, out);
    print_outputs(e, out);
    print_accuracy(e, out);
    print_sizes(e, out);
    print_copies(e, out);
    print_latency(e, out);
    print_computed(e, out);
    print_kept(e, out);
    print_saturation(e, out);
    print_weights(e, out);
    print_gates(e, out);
}

/* report_json.c - what an evaluation found, for programs: schema "ort-quantize/1". */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/look.h"
#include "common/nearness.h"
#include "evaluation.h"

static void add_text(json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, json_object_new_string(text));
}

/* JSON has no NaN and no infinity. */
static void add_number(json_object *object, const char *key, double value)
{
    json_object_object_add(object, key, isfinite(value) ? json_object_new_double(value) : NULL);
}

static void add_count(json_object *object, const char *key, int64_t count)
{
    json_object_object_add(object, key, json_object_new_int64(count));
}

static json_object *add_object(json_object *object, const char *key)
{
    json_object *made = json_object_new_object();
    json_object_object_add(object, key, made);
    return made;
}

static json_object *add_row(json_object *array)
{
    json_object *made = json_object_new_object();
    json_object_array_add(array, made);
    return made;
}

static json_object *add_array(json_object *object, const char *key)
{
    json_object *made = json_object_new_array();
    json_object_object_add(object, key, made);
    return made;
}

static void add_output(json_object *array, const measured_output *m)
{
    json_object *o = add_row(array);
    const ort_distance *d = &m->distance;
    add_text(o, "name", m->name);
    if (m->why) {
        add_text(o, "not_compared", m->why);
        return;
    }
    nearness_json(o, d);
    parts_json(o, &m->parts);
    add_number(o, "max_abs", d->worst);
    add_count(o, "worst_sample", d->worst_sample);
    add_count(o, "worst_index", d->worst_index);
    add_number(o, "worst_float", d->worst_reference);
    add_number(o, "worst_quantized", d->worst_other);
    add_count(o, "elements", d->count);
    add_count(o, "not_finite_alike", d->odd_alike);
    add_count(o, "not_finite_unlike", d->odd_unlike);
    add_count(o, "rows", m->classes > 0 ? m->classes : d->rows);
    add_count(o, "agreeing", m->classes > 0 ? m->alike : d->agreeing);
    add_number(o, "top1", m->classes > 0 ? (double)m->alike / (double)m->classes
                                         : ort_distance_top1(d));
    add_number(o, "margin", d->margin);
    add_count(o, "clear_rows", d->clear_rows);
    add_count(o, "clear_agreeing", d->clear_agreeing);
    add_number(o, "clear_top1", ort_distance_clear_top1(d));
}

static void add_accuracy(json_object *report, const evaluation *e)
{
    const side *f = &e->sides[FLOAT_SIDE], *s = &e->sides[INTEGER_SIDE];
    if (e->labelled == 0)
        return;
    json_object *o = add_object(report, "accuracy");
    add_count(o, "labels", e->labelled);
    add_count(o, "float_correct", f->correct);
    add_count(o, "quantized_correct", s->correct);
    add_number(o, "float", (double)f->correct / (double)e->labelled);
    add_number(o, "quantized", (double)s->correct / (double)e->labelled);
}

static void add_sizes(json_object *report, const evaluation *e)
{
    const side *f = &e->sides[FLOAT_SIDE], *s = &e->sides[INTEGER_SIDE];
    json_object *o = add_object(report, "size"), *rows = add_array(report, "initializers");
    add_number(o, "float_bytes", f->bytes);
    add_number(o, "quantized_bytes", s->bytes);
    add_number(o, "ratio", s->bytes / f->bytes);
    add_number(o, "float_weight_bytes", f->weight_bytes);
    add_number(o, "quantized_weight_bytes", s->weight_bytes);
    for (size_t i = 0; i < length_of(s->weights); i++) {
        json_object *from = json_object_array_get_idx(s->weights, i), *row = add_row(rows);
        add_text(row, "name", text_of(from, "name"));
        add_text(row, "type", text_of(from, "type"));
        add_count(row, "bytes", (int64_t)number_of(from, "bytes"));
    }
}

static void add_copies(json_object *report, const evaluation *e)
{
    weight_copies *copies;
    const size_t count = copies_find(e, &copies);
    json_object *rows = add_array(report, "copies");
    for (size_t i = 0; i < count; i++) {
        json_object *row = add_row(rows);
        add_text(row, "name", copies[i].name);
        add_count(row, "codes", (int64_t)copies[i].codes);
        json_object_object_add(row, "floats", json_object_new_boolean(copies[i].floats));
        add_count(row, "bytes", (int64_t)copies[i].bytes);
    }
    free(copies);
}

static void add_latency(json_object *report, const evaluation *e)
{
    const side *f = &e->sides[FLOAT_SIDE], *s = &e->sides[INTEGER_SIDE];
    json_object *o = add_object(report, "latency");
    add_number(o, "float_ms", f->median_ms);
    add_number(o, "quantized_ms", s->median_ms);
    add_number(o, "speedup", f->median_ms / s->median_ms);
    add_count(o, "runs", e->timed);
    add_count(o, "threads", ort_env_threads(e->q->env));
    add_text(o, "isa", ort_env_isa(e->q->env));
}

static void add_computed(json_object *report, const evaluation *e)
{
    char why[300];
    computed c = computed_sum(e);
    json_object *o = add_object(report, "products"), *rows;
    add_count(o, "steps", c.products);
    add_count(o, "integer_steps", c.integer_products);
    add_number(o, "macs", c.macs);
    add_number(o, "integer_macs", c.integer_macs);
    add_count(o, "quantize_dequantize_left", c.pairs_left);
    add_number(o, "quantize_dequantize_ms", c.pairs_ms);
    rows = add_array(o, "nodes");
    for (size_t i = 0; i < length_of(e->steps); i++) {
        json_object *step = json_object_array_get_idx(e->steps, i);
        if (!step_multiplies(step))
            continue;
        json_object *row = add_row(rows);
        add_text(row, "name", step_name(step));
        add_text(row, "op_type", text_of(step, "op_type"));
        add_text(row, "made_of", text_of(step, "fused_from"));
        json_object_object_add(row, "integer", json_object_new_boolean(step_is_integer(step)));
        if (!step_is_integer(step))
            add_text(row, "why", step_why_float(e, step, why, sizeof why));
        add_number(row, "macs", number_of(step, "macs"));
        add_number(row, "self_ms", number_of(step, "self_ms"));
    }
    rows = add_array(o, "left");
    for (size_t i = 0; i < length_of(e->steps); i++) {
        json_object *step = json_object_array_get_idx(e->steps, i);
        if (!step_is_pair(step))
            continue;
        json_object *row = add_row(rows);
        add_text(row, "name", step_name(step));
        add_text(row, "op_type", text_of(step, "op_type"));
        add_number(row, "self_ms", number_of(step, "self_ms"));
    }
}

static void add_saturation(json_object *report, const evaluation *e)
{
    json_object *rows = add_array(report, "may_saturate_elsewhere");
    for (size_t i = 0; i < length_of(e->nodes); i++) {
        json_object *node = json_object_array_get_idx(e->nodes, i);
        double share = saturation_share(e, node);
        if (share == 0)
            continue;
        json_object *row = add_row(rows);
        add_text(row, "name", text_of(node, "name"));
        add_number(row, "share_of_pairs", share);
    }
}

static void add_gates(json_object *report, const evaluation *e)
{
    char key[32];
    if (e->gate_count == 0)
        return;
    json_object *rows = add_array(report, "gates");
    for (int i = 0; i < e->gate_count; i++) {
        const gate_verdict *g = &e->gates[i];
        json_object *row = add_row(rows);
        add_text(row, "gate", g->name);
        json_object_object_add(row, "passed", json_object_new_boolean(g->passed));
        snprintf(key, sizeof key, "measured%s", g->unit);
        add_number(row, key, g->measured);
        snprintf(key, sizeof key, "allowed%s", g->unit);
        add_number(row, key, g->allowed);
        if (g->place)
            add_text(row, "output", g->place);
    }
}

void evaluation_json(const evaluation *e, FILE *out)
{
    json_object *report = json_object_new_object(), *o;
    add_text(report, "schema", "ort-quantize/1");
    add_text(report, "verb", e->q->options.verb);
    add_text(report, "model", e->sides[FLOAT_SIDE].path);
    add_text(report, "quantized", e->sides[INTEGER_SIDE].path);
    o = add_object(report, "samples");
    add_count(o, "count", (int64_t)e->samples);
    add_text(o, "digest", samples_digest(&e->q->samples));
    json_object_object_add(o, "made_up", json_object_new_boolean(e->made_up));
    if (e->made_up)
        add_text(o, "seed", e->q->options.random);
    o = add_array(report, "outputs");
    for (size_t i = 0; i < e->count; i++)
        add_output(o, &e->measured[i]);
    add_accuracy(report, e);
    add_sizes(report, e);
    add_copies(report, e);
    add_latency(report, e);
    add_computed(report, e);
    add_saturation(report, e);
    add_gates(report, e);
    if (e->q->kept_float)
        json_object_object_add(report, "kept_float", json_object_get(e->q->kept_float));
    if (e->q->frontier)
        json_object_object_add(report, "frontier", json_object_get(e->q->frontier));
    fprintf(out, "%s\n",
            json_object_to_json_string_ext(report, JSON_C_TO_STRING_PRETTY |
                                                       JSON_C_TO_STRING_SPACED |
                                                       JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(report);
}

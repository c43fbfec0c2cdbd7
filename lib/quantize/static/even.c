/* even.c - factors by weights, and by samples. */
#include "quantize/static/even.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "op/edit.h"

/* ---- by weights */

/* Largest magnitudes of channels: of the weights before and behind, and of the biases. */
typedef struct reaches {
    const float *before, *behind, *biases;
    size_t count;
} reaches;

static float most_of(const float *x, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

/* Over both products. */
static double passed_on(const reaches *r, size_t c)
{
    return (double)r->before[c] * (double)r->behind[c];
}

/* Training leaves channels whose weights are next to nothing; a factor by these would make of
 * their bias, or of the weights that read them, what all others are small beside. Weights that are
 * small on one side alone, and as large on the other, are those of an outlier, or of all channels
 * beside one: what such a channel passes on is like that of others. */
static void choose(const reaches *r, float *factors)
{
    const float part = 1.0f / 1024;
    const double alike = 1.0 / 16;
    const float before = most_of(r->before, r->count) * part;
    const float behind = most_of(r->behind, r->count) * part;
    const float most = most_of(r->biases, r->count);
    double sum = 0, passed = 0;
    size_t live = 0;
    for (size_t c = 0; c < r->count; c++)
        passed = fmax(passed, passed_on(r, c));
    for (size_t c = 0; c < r->count; c++) {
        const bool lives = (r->before[c] > before && r->behind[c] > behind) ||
                           passed_on(r, c) > passed * alike;
        factors[c] = lives ? ort_channel_factor((double)r->before[c], (double)r->behind[c], 0.5)
                           : 0;
        sum += lives ? log2((double)factors[c]) : 0;
        live += lives;
    }
    const double mean = live ? exp2(sum / (double)live) : 1;
    for (size_t c = 0; c < r->count; c++) {
        const double least = mean * (double)r->biases[c] / (double)(most > 0 ? most : 1);
        if (!(factors[c] > 0))
            factors[c] = ort_channel_factor(mean, 1, 1);
        else if ((double)factors[c] < least)
            factors[c] = ort_channel_factor(least, 1, 1);
    }
}

/* *changed: a factor isn't 1. */
static ort_status equalize_one(ort_channel_move *m, bool *changed, ort_error *err)
{
    const size_t n = (size_t)m->channels;
    float *reach = malloc(4 * n * sizeof *reach), *factors = reach + 3 * n;
    ort_node *mul;
    *changed = false;
    if (!reach)
        return ort_error_memory(err, 4 * n * sizeof *reach);
    ort_channel_reach(m, &m->sources, true, reach);
    ort_channel_reach(m, &m->readers, true, reach + n);
    ort_channel_reach(m, &m->sources, false, reach + 2 * n);
    choose(&(reaches){reach, reach + n, reach + 2 * n, n}, factors);
    for (size_t c = 0; c < n; c++)
        *changed = *changed || factors[c] < 1 || factors[c] > 1;
    ort_status status = *changed ? ort_channel_move_apply(m, factors, &mul, err) : ORT_OK;
    free(reach);
    return status;
}

static ort_status equalize_round(ort_graph *graph, ort_channel_ids *made, size_t *moved,
                                 ort_error *err)
{
    ort_node *node;
    *moved = 0;
    for (size_t i = 0; i < graph->order.count; i++) {
        ort_channel_move m;
        ort_status status = ORT_OK;
        bool changed = false;
        node = graph->nodes.data[graph->order.data[i]];
        if (node->removed || !ort_edit_is_any(node, "Conv|Gemm|MatMul|Add"))
            continue;
        if (ort_channel_move_from(graph, node, made, &m) && m.from_product)
            status = equalize_one(&m, &changed, err);
        ort_channel_move_release(&m);
        ORT_TRY(status);
        *moved += changed;
    }
    return ORT_OK;
}

ort_status ort_equalize(ort_graph *graph, size_t *moved, ort_error *err)
{
    enum { ROUNDS = 16 };
    ort_channel_ids made = {0};
    ort_status status = ORT_OK;
    size_t changed = 1;
    *moved = 0;
    for (int round = 0; round < ROUNDS && changed && status == ORT_OK; round++) {
        status = equalize_round(graph, &made, &changed, err);
        *moved = changed > *moved ? changed : *moved;
    }
    ort_vec_release(&made);
    return status == ORT_OK ? ort_edit_finish(graph, err) : status;
}

/* ---- by samples */

/* What holds the same numbers and is computed: runs don't show what is only another shape of it. */
static const char *shown_name(const ort_graph *graph, ort_id id)
{
    const ort_node *node = ort_edit_producer(graph, id);
    while (node && node->op && (node->op->traits & ORT_TRAIT_ALIAS)) {
        id = node->inputs[0];
        node = ort_edit_producer(graph, id);
    }
    return graph->values.data[id]->name;
}

/* Takes the move, or releases it: a value is smoothed once. */
static ort_status keep(ort_smoothing *s, ort_channel_move *m, ort_error *err)
{
    ort_smoothed one = {.move = *m, .name = shown_name(s->graph, m->value)};
    for (size_t i = 0; i < s->list.count; i++)
        for (size_t k = 0; k < m->readers.count; k++)
            if (s->list.data[i].move.readers.data[0].node == m->readers.data[k].node) {
                ort_channel_move_release(m);
                return ORT_OK;
            }
    one.reach = calloc((size_t)m->channels, sizeof *one.reach);
    if (one.reach && ort_vec_push(&s->list, one))
        return ORT_OK;
    free(one.reach);
    ort_channel_move_release(m);
    return ort_error_memory(err, (size_t)m->channels * sizeof *one.reach);
}

static ort_status find_from(ort_smoothing *s, ort_node *node, ort_error *err)
{
    ort_channel_move m;
    if (ort_channel_move_from(s->graph, node, &s->made, &m) && m.axis == -1 && m.readers.count > 0)
        return keep(s, &m, err);
    ort_channel_move_release(&m);
    return ORT_OK;
}

static ort_status find_before(ort_smoothing *s, const ort_node *node, ort_error *err)
{
    ort_channel_move m;
    if (ort_edit_is_any(node, "Gemm|MatMul") &&
        ort_channel_move_before(s->graph, node->inputs[0], &s->made, &m))
        return keep(s, &m, err);
    if (ort_edit_is_any(node, "Gemm|MatMul"))
        ort_channel_move_release(&m);
    return ORT_OK;
}

ort_status ort_smoothing_find(ort_smoothing *s, ort_graph *graph, ort_error *err)
{
    ort_node *node;
    s->graph = graph;
    ORT_EACH_NODE(graph, node)
        ORT_TRY(find_from(s, node, err));
    ORT_EACH_NODE(graph, node)
        ORT_TRY(find_before(s, node, err));
    return ORT_OK;
}

void ort_smoothing_see(ort_smoothing *s, const char *name, const ort_tensor *t)
{
    for (size_t i = 0; i < s->list.count; i++) {
        ort_smoothed *one = &s->list.data[i];
        const int64_t count = t->dtype == ORT_DTYPE_FLOAT ? ort_tensor_count(t) : 0;
        if (strcmp(one->name, name) || count % one->move.channels)
            continue;
        for (int64_t at = 0; at < count; at += one->move.channels)
            for (int64_t c = 0; c < one->move.channels; c++) {
                const float x = fabsf(((const float *)t->data)[at + c]);
                one->reach[c] = x > one->reach[c] ? x : one->reach[c];
            }
    }
}

static bool stands_out(const ort_smoothed *one)
{
    double sum = 0, most = 0;
    for (int64_t c = 0; c < one->move.channels; c++) {
        sum += (double)one->reach[c];
        most = (double)one->reach[c] > most ? (double)one->reach[c] : most;
    }
    return most * (double)one->move.channels > ORT_SMOOTH_OUTLIER * sum;
}

static ort_status smooth_one(ort_smoothed *one, double alpha, ort_node **mul, ort_error *err)
{
    const size_t n = (size_t)one->move.channels;
    float *reach = malloc(2 * n * sizeof *reach), *factors = reach + n;
    if (!reach)
        return ort_error_memory(err, 2 * n * sizeof *reach);
    ort_channel_reach(&one->move, &one->move.readers, true, reach);
    for (size_t c = 0; c < n; c++)
        factors[c] = ort_channel_factor((double)one->reach[c], (double)reach[c], alpha);
    ort_status status = ort_channel_move_apply(&one->move, factors, mul, err);
    free(reach);
    return status;
}

ort_status ort_smoothing_apply(ort_smoothing *s, double alpha, ort_channel_ids *muls,
                               ort_error *err)
{
    for (size_t i = 0; i < s->list.count; i++) {
        ort_smoothed *one = &s->list.data[i];
        ort_node *mul = NULL;
        if (!one->move.foldable && !stands_out(one))
            continue;
        ORT_TRY(smooth_one(one, alpha, &mul, err));
        if (mul && !ort_vec_push(muls, mul->id))
            return ort_error_memory(err, sizeof mul->id);
    }
    return ort_edit_finish(s->graph, err);
}

void ort_smoothing_release(ort_smoothing *s)
{
    for (size_t i = 0; i < s->list.count; i++) {
        ort_channel_move_release(&s->list.data[i].move);
        free(s->list.data[i].reach);
    }
    ort_vec_release(&s->list);
    ort_vec_release(&s->made);
    *s = (ort_smoothing){0};
}

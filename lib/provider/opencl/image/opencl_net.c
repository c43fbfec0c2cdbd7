/* opencl_net.c - convolutions.
 *
 * What rides with a convolution, in one launch: an addition behind it, of an operand that is there;
 * another one of the same field, or of one that is there; on a CPU, what makes its field by windows
 * of one filter a channel, and then another two of that kind. Steps that ride are made early, by
 * the first of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "provider/opencl/image/opencl_window.h"

/* ---- convolutions */

static bool claim_conv(const ort_graph *graph, const ort_node *node, const char **why)
{
    ort_cl_activation activation;
    if (!ort_cl_fits_window(graph, node, why))
        return false;
    *why = "the activation has no kernel";
    return ort_cl_floats(graph, node) && ort_cl_find_activation(node, &activation);
}

typedef struct field { /* what windows are read from: the input, or what `spread` makes of it */
    int buffer;
    int64_t size[3], phases[3]; /* one plane for each of the phases */
    int64_t channel_step;
    bool slack; /* a strip may be read from any of its elements on */
} field;

static int64_t product(const int64_t *three)
{
    return three[0] * three[1] * three[2];
}

/* Rows that one item copies: a group of one item has its price, and all units want work. */
static int64_t rows_at_once(const ort_cl_step *s, int64_t rows, int64_t planes)
{
    const ort_cl_device *d = s->plan->device;
    int64_t groups = planes ? 8 * (d->units ? (int64_t)d->units : 1) / planes + 1 : 1;
    return d->lanes ? (rows + groups - 1) / groups : 1;
}

static bool is_plain(const ort_window *w)
{
    for (int d = 0; d < 3; d++)
        if (w->stride[d] != 1 || w->begin[d] || w->end[d])
            return false;
    return true;
}

/* A window at each element. */
static bool is_dense(const ort_window *w)
{
    for (int d = 0; d < 3; d++)
        if (w->stride[d] != 1 || w->in[d] != w->out[d])
            return false;
    return true;
}

/* Windows without stride and padding are read from the input itself. */
static field input_field(ort_cl_step *s, const ort_window *w, bool slack, int lanes)
{
    field f = {.buffer = ort_cl_read(s, 0), .phases = {1, 1, 1}};
    bool plain = !slack && is_plain(w);
    for (int d = 0; d < 3; d++) {
        int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1;
        f.size[d] = w->in[d];
        f.phases[d] = w->stride[d] < reach ? w->stride[d] : reach;
    }
    for (int d = 0; d < 3; d++) {
        if (plain)
            f.phases[d] = 1;
        else
            f.size[d] = w->out[d] + (w->kernel[d] - 1) * w->dilation[d] / w->stride[d];
    }
    f.channel_step = product(f.phases) * product(f.size);
    if (plain)
        return f;
    int64_t planes = ort_cl_dim(ort_cl_in(s, 0), 0) * ort_cl_dim(ort_cl_in(s, 0), 1);
    int to = ort_cl_scratch(s, planes * f.channel_step + 2 * lanes);
    int64_t rows = f.size[0] * f.size[1], out_planes = planes * product(f.phases);
    int64_t lines = rows_at_once(s, rows, out_planes);
    const int64_t grid[3] = {ort_cl_along(s, f.size[2]), lines ? (rows + lines - 1) / lines : 0,
                             out_planes};
    ort_cl_launch_grid(s, "conv", "spread", grid, NULL, "bb|iiiiiiiiiiiiiiii", f.buffer, to,
                       w->in[0], w->in[1], w->in[2], f.size[0], f.size[1], f.size[2], f.phases[0],
                       f.phases[1], f.phases[2], w->stride[0], w->stride[1], w->stride[2],
                       w->begin[0], w->begin[1], w->begin[2], lines);
    f.buffer = to;
    f.slack = true;
    return f;
}

/* Where each tap of a window lies, from the window's first element. */
static int tap_table(ort_cl_step *s, const field *f, const ort_window *w, ort_error *err)
{
    int64_t count = product(w->kernel), *taps = malloc((size_t)count * sizeof *taps + 1);
    if (!taps) {
        s->plan->status = ort_error_memory(err, (size_t)count * sizeof *taps);
        return 0;
    }
    for (int64_t t = 0; t < count; t++) {
        const int64_t at[3] = {t / w->kernel[2] / w->kernel[1], t / w->kernel[2] % w->kernel[1],
                               t % w->kernel[2]};
        int64_t phase = 0, place = 0;
        for (int d = 0; d < 3; d++) {
            phase = phase * f->phases[d] + at[d] * w->dilation[d] % w->stride[d];
            place = place * f->size[d] + at[d] * w->dilation[d] / w->stride[d];
        }
        taps[t] = phase * product(f->size) + place;
    }
    int table = ort_cl_table(s, taps, count);
    free(taps);
    return table;
}

enum { SUBS = 2 }; /* common.cl */

typedef struct work { /* of a convolution */
    int64_t items[3], rows;
    size_t local[3];
} work;

typedef struct columns { /* of the matrix, conv.cl */
    int64_t count, span, most;
} columns;

/* Between rows of small planes lies so little that it is cheaper to compute it than to leave it
 * out. */
static columns conv_columns(const ort_cl_step *s, const field *f, const ort_window *w)
{
    int64_t strip = 2 * ort_cl_tile_of(s)->lanes, plane = product(w->out);
    int64_t span = ((w->out[0] - 1) * f->size[1] + w->out[1] - 1) * f->size[2] + w->out[2];
    if (!strip || !plane || (span + strip - 1) / strip * 8 > (plane + strip - 1) / strip * 9)
        return (columns){plane, 0, plane - 1};
    return (columns){span, 1, f->slack ? span + strip : span - 1};
}

static work depthwise_work(const ort_cl_step *s, int64_t images, int64_t outs, int64_t plane)
{
    int lanes = s->plan->device->lanes;
    return (work){{ort_cl_along(s, plane), images * outs, 1}, 1, {lanes ? 1 : 0, 1, 1}};
}

/* rows: that an item makes; 0: the usual number. */
static work conv_work(const ort_cl_step *s, int64_t images, int64_t outs, int64_t places,
                      int64_t rows)
{
    const ort_cl_tile *t = ort_cl_tile_of(s);
    int64_t width = t->lanes ? 2 * SUBS * t->lanes : t->tile, wide = (places + width - 1) / width;
    if (!rows)
        rows = t->lanes ? ort_cl_rows_of_item(s, outs, wide * images) : t->tile;
    int64_t high = (outs + rows - 1) / rows, side = t->lanes ? 1 : t->side;
    return (work){{wide * side, high * side, images}, rows, {(size_t)side, (size_t)side, 1}};
}

typedef struct conv { /* a convolution, as its launches are made of it */
    ort_window w;
    ort_cl_activation act;
    int64_t groups, ins, outs, images, plane, taps;
    bool single; /* one channel a filter */
    int to;
    int64_t start;  /* in that, of the result */
    int sum;        /* a buffer that is added; below 0: none */
    bool late;      /* behind the activation */
    ort_cl_step *own_step; /* what makes the field that is read, of one tap; NULL: it is there */
    const struct conv *own;
    ort_cl_step *other_step; /* another one, of the same field or one that is there; NULL: none */
    const struct conv *other;
} conv;

enum { OWN_FLOATS = 4096, OWN_ROWS = 16, MOST_TAPS = 25 }; /* conv.cl */

/* Windows of two axes with one filter a channel are read from the input itself, by items that have
 * room for the rows of a window; where items are pixels, by all. length: of such a row. */
static bool takes_rows(const ort_cl_step *s, const conv *v, int64_t *length)
{
    const ort_window *w = &v->w;
    int lanes = s->plan->device->lanes;
    int64_t last = lanes ? (w->out[2] + lanes - 1) / lanes * lanes : 1;
    *length = last * w->stride[2] + (w->kernel[2] - 1) * w->dilation[2];
    return v->single && w->in[0] == 1 && w->kernel[0] == 1 && w->out[0] == 1 &&
           (!lanes || (w->kernel[1] <= OWN_ROWS &&
                       ((w->kernel[1] - 1) * w->dilation[1] + 1) * *length <= OWN_FLOATS));
}

static void convolve_rows(ort_cl_step *s, const conv *v, int64_t length)
{
    const ort_window *w = &v->w;
    bool bias = ort_cl_has(s->node, 2), sum = v->sum >= 0;
    int x = ort_cl_read(s, 0), filter = ort_cl_read(s, 1);
    int64_t planes = v->images * v->outs, lines = rows_at_once(s, w->out[1], planes);
    bool alone = s->plan->device->lanes;
    const int64_t items[3] = {alone ? (w->out[1] + lines - 1) / lines : v->plane, planes, 1};
    const size_t local[3] = {1, 1, 1};
    ort_cl_launch_grid(s, "conv", "depthwise_rows", items, alone ? local : NULL,
                       "bbbbb|iiiiiiiiiiiiiiiiiffii", x, filter, bias ? ort_cl_read(s, 2) : filter,
                       sum ? v->sum : x, v->to, (int64_t)bias, (int64_t)sum,
                       v->groups * v->outs, v->outs, w->in[1], w->in[2], w->out[1], w->out[2],
                       w->kernel[1], w->kernel[2], w->stride[1], w->stride[2], w->begin[1],
                       w->begin[2], w->dilation[1], w->dilation[2], v->act.kind, v->act.a, v->act.b,
                       length, lines);
}

/* Filters in strips of so many; 0: as they are. */
static int filters(ort_cl_step *s, const conv *v, int64_t strip)
{
    int64_t k = v->ins * v->taps;
    const ort_cl_strips strips = {.batch_step = v->outs * k, .outer_step = k, .k_step = 1,
                                  .batch = v->groups, .outer = v->outs, .k = k, .strip = strip};
    return strip ? ort_cl_read_strips(s, 1, &strips) : ort_cl_read(s, 1);
}

/* Where an item computes the field: it makes all rows, so that nobody computes it twice. */
static int64_t rows_of_own(const ort_cl_step *s, const conv *v)
{
    int64_t tile = ort_cl_tile_of(s)->rows;
    return (v->outs + tile - 1) / tile * tile;
}

static field own_field(ort_cl_step *s, const conv *v)
{
    field f = {.buffer = ort_cl_read(v->own_step, 0), .phases = {1, 1, 1}};
    for (int d = 0; d < 3; d++)
        f.size[d] = v->w.in[d];
    f.channel_step = product(f.size);
    return f;
}

/* rows: that an item makes; 0: the usual number. */
static void convolve(ort_cl_step *s, const conv *v, int64_t rows, ort_error *err)
{
    static const conv none;
    const conv *own = v->own ? v->own : &none, *other = v->other ? v->other : v;
    ort_cl_step *second = v->other ? v->other_step : s, *first = v->own ? v->own_step : s;
    ort_cl_step *first2 = other->own ? other->own_step : first;
    bool bias = ort_cl_has(s->node, 2), own_bias = v->own && ort_cl_has(first->node, 2);
    int64_t pair = v->other ? 2 : 1, outs = v->outs > other->outs ? v->outs : other->outs;
    const ort_cl_tile *t = ort_cl_tile_of(s);
    int tiles = s->tiles;
    s->tiles = s->plan->device->own;
    const field f = v->own ? own_field(s, v) : input_field(s, &v->w, v->single, t->lanes);
    s->tiles = tiles;
    const columns c = conv_columns(s, &f, &v->w);
    const work g = v->single ? depthwise_work(s, v->images, v->outs, v->plane)
                             : conv_work(s, v->images * pair, outs, c.count,
                                         v->own ? rows_of_own(s, v) : rows);
    int64_t strip = v->single ? 0 : t->rows, planes = v->images * v->ins;
    int filter = filters(s, v, strip), filter2 = v->other ? filters(second, other, strip) : filter;
    int shift = bias ? ort_cl_read(s, 2) : filter, shift2 = bias ? ort_cl_read(second, 2) : filter;
    int own_filter = v->own ? ort_cl_read(first, 1) : filter;
    int own_shift = own_bias ? ort_cl_read(first, 2) : filter;
    int own_filter2 = v->own ? ort_cl_read(first2, 1) : filter;
    int own_shift2 = own_bias ? ort_cl_read(first2, 2) : filter;
    int x2 = v->own                                            ? ort_cl_read(first2, 0)
             : second->node->inputs[0] != s->node->inputs[0] ? ort_cl_read(second, 0)
                                                             : f.buffer;
    ort_cl_launch_grid(s, "conv", v->single ? "depthwise" : "conv", g.items,
                       g.local[0] ? g.local : NULL,
                       "bbbbbbbbbbbbbb|iiiiiiiiiiiiiffiiiiiiiiiiiiiiffiiiiiii", f.buffer, filter,
                       shift, v->sum >= 0 ? v->sum : f.buffer, v->to, tap_table(s, &f, &v->w, err),
                       filter2, shift2, other->to, own_filter, own_shift, x2, own_filter2,
                       own_shift2, (int64_t)bias,
                       (int64_t)(v->sum < 0 ? 0 : v->late ? 2 : 1), v->groups, v->ins, v->outs,
                       v->taps, f.channel_step, f.size[1] * f.size[2], f.size[2], v->w.out[1],
                       v->w.out[2], v->plane, v->act.kind, v->act.a, v->act.b, g.rows, c.count,
                       c.span, c.most, pair, other->outs, own->w.kernel[1], own->w.kernel[2],
                       own->w.begin[1], own->w.begin[2], own->w.dilation[1], own->w.dilation[2],
                       (int64_t)own_bias, own->act.kind, own->act.a, own->act.b,
                       planes * own->w.in[1] * own->w.in[2], v->start, other->start, own->w.in[1],
                       own->w.in[2], own->w.stride[1], own->w.stride[2]);
}

static void describe(const conv *v, bool half, char *text, size_t size)
{
    const ort_window *w = &v->w;
    snprintf(text, size, "conv %lldx%lldx%lldx%lld, %lld of %lldx%lldx%lld, group %lld of %lld, "
             "to %lldx%lldx%lld%s", (long long)v->ins, (long long)w->in[0], (long long)w->in[1],
             (long long)w->in[2], (long long)v->outs, (long long)w->kernel[0],
             (long long)w->kernel[1], (long long)w->kernel[2], (long long)v->groups,
             (long long)v->images, (long long)w->out[0], (long long)w->out[1],
             (long long)w->out[2], half ? ", halves" : "");
}

static ort_status emit_conv(ort_cl_step *s, ort_error *err);

static ort_status read_conv(ort_cl_step *s, conv *v, ort_error *err)
{
    const ort_fact *x = ort_cl_in(s, 0), *y = ort_cl_out(s, 0);
    int64_t kernel[ORT_WINDOW_MAX], groups = ort_node_int(s->node, "group", 1);
    *v = (conv){.groups = groups, .ins = ort_cl_dim(x, 1) / groups,
                .outs = ort_cl_dim(y, 1) / groups, .images = ort_cl_dim(x, 0) * groups, .sum = -1};
    ort_cl_spatial(ort_cl_in(s, 1), kernel);
    ORT_TRY(ort_cl_window_of(s, kernel, &v->w, err));
    v->act = ort_cl_activation_of(s);
    v->single = v->ins == 1;
    v->plane = product(v->w.out);
    v->taps = product(v->w.kernel);
    return ORT_OK;
}

/* Its own sum, or an addition that alone reads the result, of an operand that is there. */
static void find_sum(ort_cl_step *s, conv *v)
{
    const ort_device_step *step = ort_cl_only_reader(s);
    ort_id id = ort_cl_last_node(s)->outputs[0];
    if (ort_cl_has(s->node, 3)) {
        v->sum = ort_cl_read(s, 3);
        return;
    }
    if (v->single || !step || step->node->input_count != 2 || strcmp(step->op->name, "Add"))
        return;
    ort_id term = step->node->inputs[step->node->inputs[0] == id];
    const ort_fact *facts = s->plan->request->facts;
    int64_t count = ort_cl_count(&facts[id]);
    if (ort_cl_count(&facts[term]) != count || !ort_cl_is_there(s, term) ||
        ort_cl_count(&facts[step->node->outputs[0]]) != count)
        return;
    v->sum = ort_cl_read_value(s->plan, term, s->half);
    v->late = true;
    s->sum = step;
}

/* What else the step reads is there, or is a weight of the session? */
static bool has_weights(const ort_cl_step *s)
{
    const ort_fact *facts = s->plan->request->facts;
    return facts[s->node->inputs[1]].value &&
           (!ort_cl_has(s->node, 2) || facts[s->node->inputs[2]].value) &&
           (!ort_cl_has(s->node, 3) || ort_cl_is_there(s, s->node->inputs[3]));
}

static bool is_conv(const ort_cl_step *s)
{
    return s->row->emit == emit_conv && !s->plan->ahead[s->node->outputs[0]].made && has_weights(s);
}

/* Have they windows, numbers of channels, activations of one kind? */
static bool is_alike(const ort_cl_step *s, const conv *v, const ort_cl_step *other, const conv *o)
{
    return !memcmp(&o->w, &v->w, sizeof o->w) && o->groups == v->groups && o->ins == v->ins &&
           o->images == v->images && o->act.kind == v->act.kind && o->act.a == v->act.a &&
           o->act.b == v->act.b && !ort_cl_has(other->node, 3) &&
           ort_cl_has(other->node, 2) == ort_cl_has(s->node, 2);
}

static bool may_pair(const ort_cl_step *s, const conv *v)
{
    const ort_cl_device *d = s->plan->device;
    return v->sum < 0 && !d->measuring && d->chain != 1 && has_weights(s);
}

/* Another convolution of as wide a window and the same activation: of the same field, or of one
 * that is there and is read as it lies. */
static bool find_other(const ort_cl_step *s, const conv *v, ort_cl_step *other, conv *o)
{
    const ort_device_step *end, *step = ort_cl_steps_behind(s, &end);
    for (; step < end && v->groups == 1 && may_pair(s, v); step++) {
        ort_error ignored;
        *other = ort_cl_step_of(s, step);
        if (is_conv(other) &&
            (step->node->inputs[0] == s->node->inputs[0] ||
             (is_plain(&v->w) && ort_cl_is_there(s, step->node->inputs[0]))) &&
            read_conv(other, o, &ignored) == ORT_OK && is_alike(s, v, other, o))
            return true;
    }
    return false;
}

/* The convolution of one tap that alone reads what windows of one filter a channel make: its items
 * make that themselves, if each pixel has one. */
static bool find_behind(ort_cl_step *s, const conv *v, ort_cl_step *behind, conv *o)
{
    const ort_cl_device *d = s->plan->device;
    const ort_device_step *step = ort_cl_only_reader(s);
    int64_t units = d->units ? d->units : 1, width = 4 * d->lanes;
    ort_error ignored;
    if (!step || !d->lanes || d->measuring || !v->single || v->outs != 1 || v->sum >= 0 ||
        !has_weights(s) || v->w.in[0] != 1 || v->w.kernel[0] != 1 || v->taps > MOST_TAPS)
        return false;
    *behind = ort_cl_step_of(s, step);
    if (!is_conv(behind) || step->node->inputs[0] != ort_cl_last_node(s)->outputs[0] ||
        read_conv(behind, o, &ignored) != ORT_OK || o->groups != 1)
        return false;
    if (!is_dense(&v->w) && (v->w.stride[1] != 2 || v->w.stride[2] != 2))
        return false;
    for (int i = 0; i < 3; i++)
        if (o->w.kernel[i] != 1)
            return false;
    return o->outs <= ORT_CL_MOST_ROWS / d->tiles[d->own].rows * d->tiles[d->own].rows &&
           is_plain(&o->w) && (o->plane + width - 1) / width * o->images >= 2 * units;
}

typedef struct riding { /* a convolution of one tap and what makes its field */
    conv v, o;
    ort_cl_step first, behind;
} riding;

/* Another two of this kind, of a field that is there. */
static bool find_two(const riding *r, riding *other)
{
    const ort_cl_step *s = &r->first;
    const ort_device_step *end, *step = ort_cl_steps_behind(s, &end);
    for (; step < end && may_pair(&r->behind, &r->o); step++) {
        ort_error ignored;
        other->first = ort_cl_step_of(s, step);
        if (is_conv(&other->first) && ort_cl_is_there(s, step->node->inputs[0]) &&
            read_conv(&other->first, &other->v, &ignored) == ORT_OK &&
            is_alike(s, &r->v, &other->first, &other->v) &&
            find_behind(&other->first, &other->v, &other->behind, &other->o) &&
            is_alike(&r->behind, &r->o, &other->behind, &other->o))
            return true;
    }
    return false;
}

static void place(riding *r)
{
    r->o.own = &r->v;
    r->o.own_step = &r->first;
    r->o.to = ort_cl_write_at(&r->behind, &r->o.start);
}

static void convolve_choices(ort_cl_step *s, conv *v, ort_error *err)
{
    ort_cl_choices choices;
    char shape[ORT_CL_SHAPE];
    describe(v, s->half, shape, sizeof shape);
    ort_cl_choices_of(s, shape, v->outs,
                      (double)v->images * (double)(v->outs * v->plane) * (double)(v->ins * v->taps),
                      &choices);
    for (int i = 0; i < choices.count; i++) {
        ort_cl_choice own = {s->plan->device->own, 0};
        int first = ort_cl_choose(s, v->own ? &own : &choices.list[i]);
        convolve(s, v, choices.list[i].rows, err);
        ort_cl_chosen(s, &choices, i, first);
    }
}

static void convolve_two(riding *r, ort_error *err)
{
    riding other;
    find_sum(&r->behind, &r->o);
    place(r);
    if (find_two(r, &other)) {
        place(&other);
        r->o.other = &other.o;
        r->o.other_step = &other.behind;
        ort_cl_set_made(&other.first);
        ort_cl_set_made(&other.behind);
    }
    convolve_choices(&r->behind, &r->o, err);
    ort_cl_set_made(&r->behind);
}

static ort_status emit_conv(ort_cl_step *s, ort_error *err)
{
    riding r = {.first = *s};
    conv *v = &r.v, o;
    ort_cl_step other;
    int64_t length;
    ORT_TRY(read_conv(s, v, err));
    if (!ort_cl_count(ort_cl_out(s, 0))) {
        ort_cl_write(s, 0);
        return ORT_OK;
    }
    find_sum(s, v);
    if (find_behind(s, v, &r.behind, &r.o)) {
        convolve_two(&r, err);
        return ORT_OK;
    }
    if (v->single) {
        v->to = ort_cl_write(s, 0);
        if (takes_rows(s, v, &length))
            convolve_rows(s, v, length);
        else
            convolve(s, v, 0, err);
        return ORT_OK;
    }
    v->to = ort_cl_write_at(s, &v->start);
    if (find_other(s, v, &other, &o)) {
        o.to = ort_cl_write_at(&other, &o.start);
        v->other = &o;
        v->other_step = &other;
        ort_cl_set_made(&other);
    }
    convolve_choices(s, v, err);
    if (s->sum)
        ort_cl_set_made(s);
    return ORT_OK;
}

const ort_cl_row ort_cl_net_rows[] = {
    {ONNX, "Conv", claim_conv, emit_conv, .half = true, .activates = true},
    {MS, "FusedConv", claim_conv, emit_conv, .half = true, .activates = true},
    {0},
};

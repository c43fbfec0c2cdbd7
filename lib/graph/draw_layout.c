/* draw_layout.c - a layered layout (draw.h), after Sugiyama: layers by longest path, edges that
 * skip layers get a bend in each, the order within a layer follows the mean position of
 * neighbours, and x-coordinates are least-squares fits to the neighbours that keep the order (pool
 * adjacent violators). The path with the most rows stands straight, as a spine. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/draw.h"

enum { ORDER_SWEEPS = 12, PLACE_SWEEPS = 24, MAX_BENDS = 60000, SPINE_WEIGHT = 1000000 };

static const double column_gap = 26, bend_gap = 12, layer_gap = 38, margin = 24;

typedef struct place { /* a box or a bend: what stands in a layer */
    int32_t box;       /* -1: a bend */
    int32_t layer;
    double width, x, wish;
    uint32_t up, up_count, down, down_count; /* neighbours, into `links` */
    uint32_t position;
    bool spine;
} place;

typedef struct layout {
    ort_drawing *d;
    ORT_VEC(place) places;
    ORT_VEC(uint32_t) ends;  /* pairs of places: upper, lower */
    uint32_t *links;
    uint32_t **layers;       /* places of a layer, in order */
    uint32_t *layer_count;
    uint32_t *layer_places;
    int32_t layers_total;
    ort_arena arena;
    ort_error *err;
} layout;

static ort_status no_memory(layout *l)
{
    return ort_error_memory(l->err, l->places.count * sizeof(place));
}

/* ---- layers */

/* Edges go from lower to higher box numbers (boxes are made in topological order), but for outputs
 * of a joined box; so layers settle in a few passes. */
static void set_layers(layout *l)
{
    ort_drawing *d = l->d;
    bool moved = true;
    for (size_t pass = 0; moved && pass <= d->boxes.count; pass++) {
        moved = false;
        for (size_t i = 0; i < d->edges.count; i++) {
            const ort_draw_box *from = &d->boxes.data[d->edges.data[i].from];
            ort_draw_box *to = &d->boxes.data[d->edges.data[i].to];
            if (to->layer <= from->layer && from->layer < (int)d->boxes.count) {
                to->layer = from->layer + 1;
                moved = true;
            }
        }
    }
}

/* What nothing feeds moves down to just above its first reader. */
static ort_status pull_sources(layout *l)
{
    ort_drawing *d = l->d;
    int *lowest = ort_arena_array(&l->arena, d->boxes.count, sizeof *lowest);
    bool *fed = ort_arena_array(&l->arena, d->boxes.count, sizeof *fed);
    if (!lowest || !fed)
        return no_memory(l);
    for (size_t i = 0; i < d->edges.count; i++) {
        const ort_draw_edge *e = &d->edges.data[i];
        assert(e->from < d->boxes.count && e->to < d->boxes.count && e->from != e->to);
        int layer = d->boxes.data[e->to].layer;
        fed[e->to] = true;
        if (!lowest[e->from] || layer < lowest[e->from])
            lowest[e->from] = layer;
    }
    for (size_t i = 0; i < d->boxes.count; i++) {
        ort_draw_box *box = &d->boxes.data[i];
        if (!fed[i] && lowest[i] > 0)
            box->layer = lowest[i] - 1;
        if (box->layer + 1 > l->layers_total)
            l->layers_total = box->layer + 1;
    }
    return ORT_OK;
}

/* ---- places and links */

static ort_status add_bends(layout *l)
{
    ort_drawing *d = l->d;
    size_t total = 0;
    for (size_t i = 0; i < d->boxes.count; i++)
        if (!ort_vec_push(&l->places, (place){.box = (int32_t)i, .layer = d->boxes.data[i].layer,
                                              .width = d->boxes.data[i].width}))
            return no_memory(l);
    for (size_t i = 0; i < d->edges.count; i++) {
        ort_draw_edge *e = &d->edges.data[i];
        int from = d->boxes.data[e->from].layer, to = d->boxes.data[e->to].layer;
        uint32_t above = e->from;
        bool bends = total < MAX_BENDS && to - from > 1;
        e->first_bend = (uint32_t)l->places.count;
        e->bend_count = bends ? (uint32_t)(to - from - 1) : 0;
        total += e->bend_count;
        for (int layer = from + 1; bends && layer < to; layer++) {
            uint32_t own = (uint32_t)l->places.count;
            if (!ort_vec_push(&l->places, (place){.box = -1, .layer = layer, .width = 4}) ||
                !ort_vec_push(&l->ends, above) || !ort_vec_push(&l->ends, own))
                return no_memory(l);
            above = own;
        }
        if (!ort_vec_push(&l->ends, above) || !ort_vec_push(&l->ends, e->to))
            return no_memory(l);
    }
    return ORT_OK;
}

static ort_status link_places(layout *l)
{
    size_t count = l->places.count;
    l->links = ort_arena_array(&l->arena, l->ends.count + 1, sizeof *l->links);
    l->layers = ort_arena_array(&l->arena, (size_t)l->layers_total + 1, sizeof *l->layers);
    l->layer_count = ort_arena_array(&l->arena, (size_t)l->layers_total + 1, sizeof(uint32_t));
    l->layer_places = ort_arena_array(&l->arena, count + 1, sizeof(uint32_t));
    if (!l->links || !l->layers || !l->layer_count || !l->layer_places)
        return no_memory(l);
    for (size_t i = 0; i + 1 < l->ends.count; i += 2) {
        l->places.data[l->ends.data[i]].down_count++;
        l->places.data[l->ends.data[i + 1]].up_count++;
    }
    uint32_t at = 0;
    for (size_t i = 0; i < count; i++) {
        place *p = &l->places.data[i];
        p->up = at, at += p->up_count;
        p->down = at, at += p->down_count;
        p->up_count = p->down_count = 0;
        assert(p->layer >= 0 && p->layer < l->layers_total);
        l->layer_count[p->layer]++;
    }
    assert(at == l->ends.count); /* every end has its link */
    for (size_t i = 0; i + 1 < l->ends.count; i += 2) {
        place *a = &l->places.data[l->ends.data[i]], *b = &l->places.data[l->ends.data[i + 1]];
        l->links[a->down + a->down_count++] = l->ends.data[i + 1];
        l->links[b->up + b->up_count++] = l->ends.data[i];
    }
    at = 0;
    for (int32_t k = 0; k < l->layers_total; k++) {
        l->layers[k] = l->layer_places + at;
        at += l->layer_count[k];
        l->layer_count[k] = 0;
    }
    assert(at == count);
    for (size_t i = 0; i < count; i++) {
        place *p = &l->places.data[i];
        p->position = l->layer_count[p->layer];
        l->layers[p->layer][l->layer_count[p->layer]++] = (uint32_t)i;
    }
    return ORT_OK;
}

/* ---- order within layers */

static double mean_position(const layout *l, const place *p, bool of_upper)
{
    uint32_t first = of_upper ? p->up : p->down, count = of_upper ? p->up_count : p->down_count;
    double sum = 0;
    if (!count)
        return p->position;
    for (uint32_t i = 0; i < count; i++) {
        const place *other = &l->places.data[l->links[first + i]];
        sum += (other->position + 0.5) / l->layer_count[other->layer];
    }
    return sum / count * l->layer_count[p->layer] - 0.5;
}

/* Insertion sort: stable, and layers are nearly sorted after the first sweep. */
static void sort_layer(layout *l, int32_t layer)
{
    uint32_t *list = l->layers[layer], count = l->layer_count[layer];
    for (uint32_t i = 1; i < count; i++) {
        uint32_t own = list[i], k = i;
        double wish = l->places.data[own].wish;
        for (; k > 0 && l->places.data[list[k - 1]].wish > wish; k--)
            list[k] = list[k - 1];
        list[k] = own;
    }
    for (uint32_t i = 0; i < count; i++)
        l->places.data[list[i]].position = i;
}

static void order_layers(layout *l)
{
    for (int sweep = 0; sweep < ORDER_SWEEPS; sweep++) {
        bool down = sweep % 2 == 0;
        for (int32_t k = 0; k < l->layers_total; k++) {
            int32_t layer = down ? k : l->layers_total - 1 - k;
            for (uint32_t i = 0; i < l->layer_count[layer]; i++) {
                place *p = &l->places.data[l->layers[layer][i]];
                p->wish = mean_position(l, p, down);
            }
            sort_layer(l, layer);
        }
    }
}

/* ---- the spine */

/* From the lower neighbour with the most rows below it, layer by layer; the first among equals. */
static ort_status find_spine(layout *l)
{
    size_t count = l->places.count;
    uint32_t *rows = ort_arena_array(&l->arena, count + 1, sizeof *rows);
    uint32_t *next = ort_arena_array(&l->arena, count + 1, sizeof *next);
    uint32_t top = 0;
    if (!rows || !next)
        return no_memory(l);
    for (int32_t k = l->layers_total - 1; k >= 0; k--)
        for (uint32_t i = 0; i < l->layer_count[k]; i++) {
            uint32_t own = l->layers[k][i];
            const place *p = &l->places.data[own];
            next[own] = own;
            for (uint32_t d = 0; d < p->down_count; d++) {
                uint32_t below = l->links[p->down + d];
                if (next[own] == own || rows[below] > rows[next[own]])
                    next[own] = below;
            }
            rows[own] = next[own] == own ? 0 : rows[next[own]];
            rows[own] += p->box < 0 ? 0 : (uint32_t)l->d->boxes.data[p->box].row_count;
            if (rows[own] > rows[top])
                top = own;
        }
    for (uint32_t at = top; at < count; at = next[at]) {
        l->places.data[at].spine = true;
        if (next[at] == at)
            break;
    }
    return ORT_OK;
}

/* ---- x */

static double wished_x(const layout *l, const place *p)
{
    double sum = 0, weight = 0;
    for (int side = 0; side < 2; side++) {
        uint32_t first = side ? p->down : p->up, count = side ? p->down_count : p->up_count;
        for (uint32_t i = 0; i < count; i++) {
            const place *other = &l->places.data[l->links[first + i]];
            /* Bends pull each other straight; so does the only link of a chain. */
            double w = p->box < 0 && other->box < 0 ? 8 : count == 1 ? 2 : 1;
            sum += w * other->x;
            weight += w;
        }
    }
    return weight > 0 ? sum / weight : p->x;
}

static double gap_between(const place *a, const place *b)
{
    return (a->width + b->width) / 2 + (a->box < 0 || b->box < 0 ? bend_gap : column_gap);
}

typedef struct block {
    double sum, weight;
    uint32_t count;
} block;

/* Nearest positions to the wishes that keep order and distances. */
static void place_layer(layout *l, int32_t layer, block *blocks, double *offsets)
{
    uint32_t count = l->layer_count[layer], used = 0;
    const uint32_t *list = l->layers[layer];
    double offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        place *p = &l->places.data[list[i]];
        if (i)
            offset += gap_between(&l->places.data[list[i - 1]], p);
        offsets[i] = offset;
        double weight = p->spine ? SPINE_WEIGHT : p->box < 0 ? 2 : 1;
        blocks[used++] = (block){(p->wish - offset) * weight, weight, 1};
        while (used > 1 && blocks[used - 2].sum / blocks[used - 2].weight >
                               blocks[used - 1].sum / blocks[used - 1].weight) {
            blocks[used - 2].sum += blocks[used - 1].sum;
            blocks[used - 2].weight += blocks[used - 1].weight;
            blocks[used - 2].count += blocks[used - 1].count;
            used--;
        }
    }
    uint32_t i = 0;
    for (uint32_t b = 0; b < used; b++)
        for (uint32_t k = 0; k < blocks[b].count; k++, i++)
            l->places.data[list[i]].x = blocks[b].sum / blocks[b].weight + offsets[i];
    assert(i == count); /* the blocks are made of all */
}

static ort_status place_layers(layout *l)
{
    uint32_t widest = 1;
    for (int32_t k = 0; k < l->layers_total; k++)
        widest = l->layer_count[k] > widest ? l->layer_count[k] : widest;
    block *blocks = ort_arena_array(&l->arena, widest, sizeof *blocks);
    double *offsets = ort_arena_array(&l->arena, widest, sizeof *offsets);
    if (!blocks || !offsets)
        return no_memory(l);
    for (int sweep = 0; sweep <= PLACE_SWEEPS; sweep++)
        for (int32_t k = 0; k < l->layers_total; k++) {
            int32_t layer = sweep % 2 ? l->layers_total - 1 - k : k;
            for (uint32_t i = 0; i < l->layer_count[layer]; i++) {
                place *p = &l->places.data[l->layers[layer][i]];
                p->wish = sweep && !p->spine ? wished_x(l, p) : 0;
            }
            place_layer(l, layer, blocks, offsets);
        }
    return ORT_OK;
}

/* ---- into the drawing */

static ort_status finish(layout *l)
{
    ort_drawing *d = l->d;
    double left = INFINITY, right = -INFINITY, y = margin;
    double *tops = ort_arena_array(&l->arena, (size_t)l->layers_total + 1, sizeof *tops);
    double *heights = ort_arena_array(&l->arena, (size_t)l->layers_total + 1, sizeof *heights);
    if (!tops || !heights)
        return no_memory(l);
    for (size_t i = 0; i < d->boxes.count; i++) {
        const place *p = &l->places.data[i];
        double h = d->boxes.data[i].height;
        heights[p->layer] = h > heights[p->layer] ? h : heights[p->layer];
    }
    for (int32_t k = 0; k < l->layers_total; k++) {
        tops[k] = y;
        y += heights[k] + layer_gap;
    }
    for (size_t i = 0; i < l->places.count; i++) {
        const place *p = &l->places.data[i];
        left = fmin(left, p->x - p->width / 2);
        right = fmax(right, p->x + p->width / 2);
    }
    double shift = d->boxes.count ? margin - left : 0;
    for (size_t i = 0; i < d->boxes.count; i++) {
        d->boxes.data[i].x = l->places.data[i].x + shift;
        d->boxes.data[i].y = tops[d->boxes.data[i].layer];
    }
    for (size_t i = 0; i < d->edges.count; i++) {
        ort_draw_edge *e = &d->edges.data[i];
        uint32_t first = e->first_bend;
        e->first_bend = (uint32_t)d->bends.count;
        assert(!e->bend_count || first + e->bend_count <= l->places.count);
        for (uint32_t k = 0; k < 2 * e->bend_count; k++) {
            const place *p = &l->places.data[first + k / 2];
            ort_draw_point point = {p->x + shift, tops[p->layer] + (k % 2 ? heights[p->layer] : 0)};
            if (!ort_vec_push(&d->bends, point))
                return no_memory(l);
        }
        e->bend_count *= 2;
    }
    d->width = d->boxes.count ? right - left + 2 * margin : 2 * margin;
    d->height = y - layer_gap + margin;
    return ORT_OK;
}

static ort_status run(layout *l)
{
    set_layers(l);
    ORT_TRY(pull_sources(l));
    ORT_TRY(add_bends(l));
    ORT_TRY(link_places(l));
    order_layers(l);
    ORT_TRY(find_spine(l));
    ORT_TRY(place_layers(l));
    return finish(l);
}

ort_status ort_drawing_layout(ort_drawing *drawing, ort_error *err)
{
    layout l = {.d = drawing, .err = err};
    ort_status status = run(&l);
    ort_vec_release(&l.places);
    ort_vec_release(&l.ends);
    ort_arena_release(&l.arena);
    return status;
}

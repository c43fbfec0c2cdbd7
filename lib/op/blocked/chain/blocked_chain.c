/* blocked_chain.c - convolutions of the blocked layout that follow each other, run by bands of
 * rows: what one gives the next stays in the second-level cache.
 *
 *     x -> stage 0 -> rows of its output -> stage 1 -> rows -> ... -> last stage (+ z) -> y
 *
 * Inputs: X, then filter and bias of each convolution, then Z where the last stage adds one. Stage
 * 0 may read plain rows; the others are 1x1 of stride 1, depthwise, or maxima of windows. A task is
 * some output rows of one image: it asks the last stage for a few rows at a time, and each stage
 * asks the one before for the rows under its window that aren't there yet. Buffers are rings of
 * rows. Elements are those that each operator alone gives, wherever bands are cut.
 */
#include "op/blocked/chain/blocked_chain.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "op/blocked/blocked_op.h"

enum {
    BUFFER_BYTES = 512 << 10, /* of all stages of a task */
    BATCH_ROWS = 8,           /* of the output, at most */
    PIECE_PIXELS = 48,        /* of a 1x1 stage: what it reads stays in the nearest cache, */
    NEAR_BYTES = 16 << 10,    /* and what an activation of a depthwise stage finds there */
    BAND_ROWS = 8,            /* of a task at least, when there are several threads */
    FEW_ROWS = 4,             /* ... or for each thread */
    BANDS = 3,                /* for each of them */
};

typedef struct chain_state {
    int count;
    bool adds; /* Z is there */
    const ort_blocked_state *stage[ORT_CHAIN_STAGES];
} chain_state;

typedef struct stage_plan {
    ort_window w;
    int64_t blocks;           /* of the output */
    int64_t ring, offset;     /* of its buffer: rows, floats from the start of scratch */
} stage_plan;

typedef struct chain_plan {
    int64_t images, x_image, y_image; /* floats of one image */
    int64_t batch;                    /* output rows at a time */
    stage_plan stage[ORT_CHAIN_STAGES];
    ort_blocked_rows_plan plain; /* stage 0 */
    int64_t plain_offset;
} chain_plan;

/* ---- stages as nodes */

static ort_attr ints_attr(const char *name, const int64_t *ints, size_t count)
{
    return (ort_attr){.name = name, .type = ORT_ATTR_INTS, .ints = ints, .count = count};
}

static ort_attr float_attr(const char *name, float number)
{
    return (ort_attr){.name = name, .type = ORT_ATTR_FLOAT, .f = number};
}

/* The slopes of a stage's PRelu, out of those of all stages; false: there are fewer. */
static bool slopes_of(const ort_node *chain, int stage, ort_floats *slopes)
{
    size_t all = 0, stages = 0;
    const float *slope = ort_node_floats(chain, "slopes", &all);
    const int64_t *counts = ort_node_ints(chain, "slope_counts", &stages);
    for (int i = 0; i <= stage; i++) {
        size_t count = (size_t)i < stages && counts[i] > 0 ? (size_t)counts[i] : 0;
        if (count > all)
            return false;
        *slopes = (ort_floats){slope, count};
        slope += count;
        all -= count;
    }
    return true;
}

/* The node of one stage alone: a BlockedConv or BlockedMaxPool without inputs, over attributes that
 * lie in `attrs` (CHAIN_ATTRS of them). False: the lists don't hold it. */
enum { CHAIN_ATTRS = 11 };
static bool chain_stage(const ort_node *chain, int i, ort_attr *attrs, ort_node *node)
{
    size_t windows = 0, names = 0, params = 0, counts = 0, scales = 0, shifts = 0;
    const int64_t *window = ort_node_ints(chain, "windows", &windows);
    const ort_string *name = ort_node_strings(chain, "activations", &names);
    const float *param = ort_node_floats(chain, "activation_params", &params);
    const int64_t *given = ort_node_ints(chain, "param_counts", &counts);
    const float *scale = ort_node_floats(chain, "scales", &scales);
    const float *shift = ort_node_floats(chain, "shifts", &shifts);
    ort_floats slope = {0};
    const size_t at = (size_t)i;
    if (i < 0 || i >= ORT_CHAIN_STAGES || windows < (at + 1) * ORT_CHAIN_WINDOW || names <= at ||
        params < (at + 1) * ORT_CHAIN_PARAMS || counts <= at || scales <= at || shifts <= at ||
        given[i] < 0 || given[i] > ORT_CHAIN_PARAMS || !slopes_of(chain, i, &slope))
        return false;
    window += i * ORT_CHAIN_WINDOW;
    int count = 0;
    attrs[count++] = (ort_attr){
        .name = "block", .type = ORT_ATTR_INT, .i = ort_node_attr_int(chain, "block")};
    attrs[count++] = (ort_attr){.name = "group", .type = ORT_ATTR_INT, .i = window[0]};
    attrs[count++] = ints_attr("kernel_shape", window + 1, 2);
    attrs[count++] = ints_attr("strides", window + 3, 2);
    attrs[count++] = ints_attr("dilations", window + 5, 2);
    attrs[count++] = ints_attr("pads", window + 7, 4);
    attrs[count++] = float_attr("scale", scale[i]);
    attrs[count++] = float_attr("shift", shift[i]);
    attrs[count++] = (ort_attr){.name = "activation", .type = ORT_ATTR_STRING, .s = name[i]};
    if (given[i])
        attrs[count++] = (ort_attr){.name = "activation_params",
                                    .type = ORT_ATTR_FLOATS,
                                    .floats = param + i * ORT_CHAIN_PARAMS,
                                    .count = (size_t)given[i]};
    if (slope.count)
        attrs[count++] = (ort_attr){.name = "slopes", .type = ORT_ATTR_FLOATS,
                                    .floats = slope.ptr, .count = slope.count};
    *node = *chain;
    node->attrs = attrs;
    node->attr_count = count;
    node->op = window[0] ? &ort_ops_blocked_conv[0] : &ort_ops_blocked_pool[0];
    node->op_type = node->op->name;
    return true;
}

/* Has stage i a filter and a bias? */
static bool is_conv(const ort_node *chain, int i)
{
    size_t windows = 0;
    const int64_t *window = ort_node_ints(chain, "windows", &windows);
    return windows < (size_t)(i + 1) * ORT_CHAIN_WINDOW || window[i * ORT_CHAIN_WINDOW] != 0;
}

/* Where the filter of stage i is among the inputs, or would be. */
static int filter_of(const ort_node *chain, int i)
{
    int input = 1;
    for (int before = 0; before < i; before++)
        input += is_conv(chain, before) ? 2 : 0;
    return input;
}

/* ---- infer */

static int stage_count(const ort_node *node)
{
    size_t count = 0;
    ort_node_strings(node, "activations", &count);
    return (int)count;
}

/* Dims of each stage's output, [N, blocks, H, W, B]; false: a shape isn't known so far. */
static ort_status stage_dims(const ort_infer *x, int stages, ort_dim dims[][5], bool *known,
                             ort_error *err)
{
    int64_t block = ort_node_attr_int(x->node, "block");
    *known = false;
    if (!ort_infer_in_ranked(x, 0) || block < 1)
        return ORT_OK;
    const ort_type *t = &x->in[0]->type;
    ort_dim plane[2] = {t->dim[2], t->dim[3]};
    for (int i = 0; i < stages; i++) {
        ort_attr attrs[CHAIN_ATTRS];
        ort_node node;
        ort_window_spec spec;
        const bool conv = is_conv(x->node, i);
        const int filter = filter_of(x->node, i);
        if (conv && (!ort_infer_in_ranked(x, filter) || x->in[filter]->type.rank != 4 ||
                     !ort_dim_known(x->in[filter]->type.dim[0])))
            return ORT_OK;
        const ort_type *w = conv ? &x->in[filter]->type : NULL;
        if ((!conv && i == 0) || !chain_stage(x->node, i, attrs, &node))
            return ort_infer_fail(x, err, "stage %d isn't told by the attributes", i);
        ORT_TRY(ort_window_read(&node, &spec, err));
        dims[i][0] = t->dim[0];
        dims[i][1] = conv ? ort_dim_of((w->dim[0].size + block - 1) / block) : dims[i - 1][1];
        ORT_TRY(ort_window_infer(x, &spec, 2, plane, conv ? w->dim + 2 : NULL, dims[i] + 2, err));
        dims[i][4] = ort_dim_of(block);
        plane[0] = dims[i][2];
        plane[1] = dims[i][3];
    }
    *known = true;
    return ORT_OK;
}

static ort_status chain_infer(ort_infer *x, ort_error *err)
{
    ort_dim dims[ORT_CHAIN_STAGES][5];
    int stages = stage_count(x->node);
    bool known;
    if (stages < 1 || stages > ORT_CHAIN_STAGES ||
        x->node->input_count < filter_of(x->node, stages))
        return ort_infer_fail(x, err, "%d inputs don't fit %d stages", x->node->input_count,
                              stages);
    ORT_TRY(stage_dims(x, stages, dims, &known, err));
    if (known)
        ort_infer_set_shape(x, 0, 5, dims[stages - 1]);
    return ORT_OK;
}

static void chain_cost(const ort_infer *x, ort_cost *cost)
{
    ort_dim dims[ORT_CHAIN_STAGES][5];
    int stages = stage_count(x->node);
    bool known = false;
    if (stages > ORT_CHAIN_STAGES || stage_dims(x, stages, dims, &known, NULL) || !known)
        return;
    for (int i = 0; i < stages; i++) {
        double macs = 1;
        for (int d = 0; d < 4 && is_conv(x->node, i); d++)
            macs *= (double)x->in[filter_of(x->node, i)]->type.dim[d].size;
        if (!is_conv(x->node, i))
            continue;
        for (int d = 2; d < 4; d++)
            macs *= ort_dim_known(dims[i][d]) ? (double)dims[i][d].size : 0;
        cost->macs += macs * (ort_dim_known(dims[i][0]) ? (double)dims[i][0].size : 0);
    }
}

/* ---- prepare: each stage as the convolution that it is */

typedef struct stage_packs { /* the node's packed constants, told apart by stage */
    const ort_pack_services *all;
    int stage, filter;
} stage_packs;

static const char *stage_kind(const stage_packs *s, const char *kind, char *text, size_t size)
{
    snprintf(text, size, "%.10s%d", kind, s->stage);
    return text;
}

/* A stage's input 1 is the node's `filter`. */
static const void *find_packed(void *arg, const char *kind, unsigned of, size_t *bytes)
{
    const stage_packs *s = arg;
    char text[16];
    return s->all->find(s->all->arg, stage_kind(s, kind, text, sizeof text), of << (s->filter - 1),
                        bytes);
}

static bool made_packed(void *arg, const char *kind, unsigned of, const void *packed, size_t bytes)
{
    const stage_packs *s = arg;
    char text[16];
    return s->all->made(s->all->arg, stage_kind(s, kind, text, sizeof text), of << (s->filter - 1),
                        packed, bytes);
}

static void absorbed_input(void *arg, int input)
{
    const stage_packs *s = arg;
    s->all->absorbed(s->all->arg, input - 1 + s->filter);
}

bool ort_chain_reads_ring(const int64_t *kernel, const ort_window_spec *spec)
{
    return kernel[0] <= ORT_BLOCKED_MAX_ROWS && kernel[1] % 2 == 1 && kernel[1] >= 3 &&
           kernel[1] <= 7 && spec->stride[1] <= 2 && spec->dilation[1] == 1 &&
           spec->begin[1] >= 0 && spec->begin[1] < kernel[1] && spec->end[1] < kernel[1];
}

static ort_status prepare_stage(ort_prep *p, int i, chain_state *s, ort_error *err)
{
    ort_attr attrs[CHAIN_ATTRS];
    ort_node node;
    const bool conv = is_conv(p->node, i);
    const int filter = filter_of(p->node, i);
    const ort_fact *in[3] = {i ? p->out[0] : p->in[0], conv ? p->in[filter] : NULL,
                             conv ? p->in[filter + 1] : NULL};
    stage_packs packs = {p->packs, i, filter};
    ort_pack_services services = {
        .find = find_packed, .made = made_packed, .absorbed = absorbed_input, .arg = &packs};
    ort_prep stage = *p;
    if (!chain_stage(p->node, i, attrs, &node))
        return ort_prep_fail(p, err, "stage %d isn't told by the attributes", i);
    if (p->packs) {
        services.reads = p->packs->reads;
        services.clean = p->packs->clean;
        stage.packs = &services;
    }
    stage.node = &node;
    stage.op = node.op;
    stage.in = in;
    stage.in_count = conv ? 3 : 1;
    stage.math_strict = true; /* direct sums: rows come one after the other */
    ORT_TRY(ort_op_prepare(&stage, err));
    s->stage[i] = stage.state;
    const ort_blocked_state *c = s->stage[i];
    bool pointwise = c->group == 1 && c->kernel[0] * c->kernel[1] == 1 &&
                     c->spec.stride[0] * c->spec.stride[1] == 1 && c->sum_channels >= c->channels;
    if (c->maximum && i > 0 &&
        (c->spec.kernel[1] - 1) * c->spec.dilation[1] < ORT_BLOCKED_MAX_REACH)
        return ORT_OK;
    if (c->plain ? i > 0 : !c->depthwise && !pointwise)
        return ort_prep_fail(p, err, "stage %d isn't 1x1, depthwise or a maximum", i);
    if (c->depthwise && (!ort_chain_reads_ring(c->kernel, &c->spec) ||
                         (s->adds && i == s->count - 1)))
        return ort_prep_fail(p, err, "stage %d has a window that can't read a ring of rows", i);
    return ORT_OK;
}

static ort_status chain_prepare(ort_prep *p, ort_error *err)
{
    chain_state *s = p->state;
    s->count = stage_count(p->node);
    s->adds = p->in_count > filter_of(p->node, s->count);
    if (s->adds && !is_conv(p->node, s->count - 1))
        return ort_prep_fail(p, err, "a maximum adds nothing");
    for (int i = 0; i < s->count; i++)
        ORT_TRY(prepare_stage(p, i, s, err));
    return ORT_OK;
}

/* ---- shape */

/* Buffers for the rows that `batch` output rows ask of each stage; the floats of all. */
static int64_t place_buffers(chain_plan *p, const chain_state *s, int64_t batch)
{
    int64_t rows = batch, floats = 0;
    p->batch = batch;
    p->stage[s->count - 1].ring = p->stage[s->count - 1].w.out[0];
    for (int i = s->count - 1; i > 0; i--) {
        const ort_window *w = &p->stage[i].w;
        stage_plan *before = &p->stage[i - 1];
        rows = (rows - 1) * w->stride[0] + (w->kernel[0] - 1) * w->dilation[0] + 1;
        before->ring = ort_min_i64(rows, w->in[0]);
        before->offset = floats;
        floats += before->blocks * before->ring * w->in[1] * s->stage[i]->block;
    }
    if (!s->stage[0]->plain)
        return floats;
    p->plain_offset = floats;
    return floats + ort_blocked_rows_floats(&p->stage[0].w, p->stage[0].ring,
                                            s->stage[0]->channels, &p->plain);
}

static ort_status plan_stage(chain_plan *p, const chain_state *s, int i, ort_blocked_dims *dims,
                             ort_error *err)
{
    const ort_blocked_state *c = s->stage[i];
    stage_plan *stage = &p->stage[i];
    if (!c->plain && !c->maximum &&
        dims->blocks != (c->group * c->channels + c->block - 1) / c->block)
        return ort_error_set(err, ORT_ERROR_MODEL, "the input of stage %d doesn't fit its filter",
                             i);
    ORT_TRY(ort_blocked_resolve(&c->spec, dims, c->maximum ? NULL : c->kernel, &stage->w, err));
    if (!c->maximum)
        dims->blocks = (c->maps + c->block - 1) / c->block;
    stage->blocks = dims->blocks;
    for (int axis = 0; axis < 2; axis++)
        dims->in[axis] = stage->w.out[axis];
    dims->plane = dims->in[0] * dims->in[1];
    return ORT_OK;
}

static ort_status chain_shape(ort_shaping *sh, ort_error *err)
{
    const chain_state *s = sh->state;
    const ort_shape *x = &sh->in[0]->shape, *y = &sh->out[0]->shape;
    const ort_blocked_state *first = s->stage[0];
    ort_blocked_dims dims = {.n = x->dim[0], .rank = 2, .in = {x->dim[2], x->dim[3]}};
    chain_plan *p = ort_arena_alloc(sh->arena, sizeof *p);
    if (!p)
        return ort_error_memory(err, sizeof *p);
    *p = (chain_plan){.images = x->dim[0]};
    sh->plan_state = p;
    dims.plane = dims.in[0] * dims.in[1];
    if (first->plain ? x->dim[1] != first->channels : !ort_blocked_read(first, x, &dims))
        return ort_error_set(err, ORT_ERROR_MODEL, "the input doesn't fit the first filter");
    p->x_image = first->plain ? x->dim[1] * dims.plane : dims.blocks * dims.plane * first->block;
    for (int i = 0; i < s->count; i++)
        ORT_TRY(plan_stage(p, s, i, &dims, err));
    p->y_image = dims.blocks * dims.plane * first->block;
    const ort_tensor *z = s->adds ? sh->in[sh->in_count - 1] : NULL;
    if ((z && !ort_shape_equal(&z->shape, y)) || dims.n * p->y_image != ort_shape_count(y))
        return ort_error_set(err, ORT_ERROR_MODEL, "Z and the output don't fit the last filter");
    if (dims.n * dims.plane == 0)
        return ORT_OK;
    int64_t batch = ort_min_i64(BATCH_ROWS, dims.in[0]), floats;
    while ((floats = place_buffers(p, s, batch)) * (int64_t)sizeof(float) > BUFFER_BYTES &&
           batch > 1)
        batch--;
    sh->thread_bytes = (size_t)floats * sizeof(float);
    return first->plain ? ort_blocked_rows_offsets(sh->arena, &p->stage[0].w, first->channels,
                                                   &p->plain, err)
                        : ORT_OK;
}

/* ---- run */

typedef struct surface { /* rows of a tensor that are there, row r at place r % ring */
    float *base;         /* place 0 of block 0 */
    int64_t width, ring, last; /* last: the row after those made so far */
} surface;

typedef struct band { /* of one task */
    ort_call *call;
    const chain_state *s;
    const chain_plan *p;
    const float *z; /* of the image; NULL: none */
    float *plain;
    surface x, of[ORT_CHAIN_STAGES];
} band;

static int64_t place_of(const surface *s, int64_t block, int64_t row)
{
    return (block * s->ring + row % s->ring) * s->width;
}

/* Rows from `row` on that lie side by side, at most `rows`. */
static int64_t rows_together(const surface *s, int64_t row, int64_t rows)
{
    return ort_min_i64(rows, s->ring - row % s->ring);
}

static const surface *input_of(const band *t, int i)
{
    return i ? &t->of[i - 1] : &t->x;
}

/* A stretch of pixels from the start of a row on, in the output of stage i. */
static ort_blocked_out out_of(const band *t, int i, int64_t block, int64_t row, int64_t pixel,
                              int64_t count)
{
    const ort_blocked_state *c = t->s->stage[i];
    const surface *to = &t->of[i];
    int64_t at = (place_of(to, block, row) + pixel) * c->block;
    return (ort_blocked_out){.y = to->base + at,
                             .y_block = to->ring * to->width * c->block,
                             .z = t->z && i == t->s->count - 1 ? t->z + at : NULL,
                             .bias = c->bias ? c->bias + block * c->block : NULL,
                             .slope = c->slope ? c->slope + block * c->block : NULL,
                             .lo = c->epilogue.lo,
                             .hi = c->epilogue.hi,
                             .count = count};
}

static void pointwise_rows(const band *t, int i, int64_t row, int64_t rows)
{
    const ort_blocked_state *c = t->s->stage[i];
    const surface *from = input_of(t, i);
    const int64_t pixels = rows * from->width, blocks = t->p->stage[i].blocks;
    const int64_t pieces = ort_max_i64(1, pixels / PIECE_PIXELS);
    const int64_t piece = (pixels + pieces - 1) / pieces;
    const float *x = from->base + place_of(from, 0, row) * c->block;
    for (int64_t pixel = 0; pixel < pixels; pixel += piece) {
        int64_t count = ort_min_i64(piece, pixels - pixel);
        ort_blocked_conv conv = {.window = {.x = x + pixel * c->block, .width = count, .rows = 1,
                                            .columns = 1, .stride = 1, .dilation = 1},
                                 .out = out_of(t, i, 0, row, pixel, count),
                                 .x_block = from->ring * from->width * c->block,
                                 .channels = c->channels,
                                 .w = c->w,
                                 .w_rows = 1,
                                 .finite = c->finite,
                                 .vectors = blocks * c->block / c->k->vector};
        ort_blocked_conv_product(c, &conv);
        ort_blocked_activate(t->call, c, &conv.out, blocks);
    }
}

static void depthwise_rows(const band *t, int i, int64_t row, int64_t rows)
{
    const ort_blocked_state *c = t->s->stage[i];
    const surface *from = input_of(t, i);
    const int64_t taps = c->kernel[0] * c->kernel[1], end = row + rows;
    const int64_t row_floats = from->width * c->block;
    ort_blocked_band d;
    ort_blocked_band_of(&t->p->stage[i].w, c->block, &d);
    d.ring = from->ring;
    int64_t near = NEAR_BYTES / (t->of[i].width * c->block * (int64_t)sizeof(float));
    int64_t step = ort_blocked_activates(c) ? ort_max_i64(1, near) : rows;
    for (int64_t b = 0; b < t->p->stage[i].blocks; b++) {
        d.x = from->base + b * from->ring * row_floats;
        d.w = c->w + b * taps * c->block;
        for (d.first_row = row; d.first_row < end; d.first_row += d.rows) {
            d.rows = ort_min_i64(step, end - d.first_row);
            d.out = out_of(t, i, b, d.first_row, 0, t->of[i].width);
            c->k->depthwise(&d);
            d.out.count *= d.rows;
            ort_blocked_activate(t->call, c, &d.out, 1);
        }
    }
}

static void maximum_rows(const band *t, int i, int64_t row, int64_t rows)
{
    const ort_blocked_state *c = t->s->stage[i];
    const surface *from = input_of(t, i);
    ort_blocked_band d;
    ort_blocked_band_of(&t->p->stage[i].w, c->block, &d);
    d.ring = from->ring;
    d.first_row = row;
    d.rows = rows;
    for (int64_t b = 0; b < t->p->stage[i].blocks; b++) {
        d.x = from->base + b * from->ring * from->width * c->block;
        d.out = out_of(t, i, b, row, 0, t->of[i].width);
        c->k->max_pool(&d);
    }
}

static void plain_rows(const band *t, int64_t row, int64_t rows)
{
    const ort_blocked_state *c = t->s->stage[0];
    const ort_window *w = &t->p->stage[0].w;
    const ort_blocked_rows_plan *plan = &t->p->plain;
    ort_blocked_plain conv = {.offset = plan->offset,
                              .taps = c->channels * c->kernel[0] * c->kernel[1],
                              .stride = w->stride[1],
                              .w = c->w,
                              .vectors = t->p->stage[0].blocks * c->block / c->k->vector};
    ort_blocked_copy_rows(w, plan, t->x.base, c->channels, row, row + rows, t->plain);
    for (int64_t r = 0; r < rows; r++) {
        conv.x = t->plain + r * w->stride[0] * plan->row;
        conv.out = out_of(t, 0, 0, row + r, 0, w->out[1]);
        c->k->conv_plain(&conv);
        ort_blocked_activate(t->call, c, &conv.out, t->p->stage[0].blocks);
    }
}

/* Make rows [first, last) of stage i, after the rows before it that are under their windows. */
static void make_rows(band *t, int i, int64_t first, int64_t last)
{
    const ort_blocked_state *c = t->s->stage[i];
    const ort_window *w = &t->p->stage[i].w;
    int64_t top = ort_max_i64(0, first * w->stride[0] - w->begin[0]), rows;
    int64_t end = (last - 1) * w->stride[0] - w->begin[0] + (w->kernel[0] - 1) * w->dilation[0] + 1;
    end = ort_min_i64(end, w->in[0]);
    if (i && end > t->of[i - 1].last && end > top) {
        make_rows(t, i - 1, ort_max_i64(t->of[i - 1].last, top), end);
        t->of[i - 1].last = end;
    }
    for (; first < last; first += rows) {
        rows = rows_together(&t->of[i], first, last - first);
        if (c->plain) {
            plain_rows(t, first, rows);
        } else if (c->maximum) {
            maximum_rows(t, i, first, rows);
        } else if (c->depthwise) {
            depthwise_rows(t, i, first, rows);
        } else {
            rows = rows_together(input_of(t, i), first, rows);
            pointwise_rows(t, i, first, rows);
        }
    }
}

typedef struct chain_job {
    ort_call *call;
    const chain_state *s;
    const chain_plan *p;
    const float *x, *z;
    float *y;
    int64_t bands;
} chain_job;

static void task_band(void *arg, size_t task, int thread)
{
    const chain_job *j = arg;
    const chain_plan *p = j->p;
    int64_t image = (int64_t)task / j->bands, number = (int64_t)task % j->bands;
    int64_t rows = p->stage[j->s->count - 1].w.out[0];
    int64_t first = rows * number / j->bands, last = rows * (number + 1) / j->bands;
    float *scratch = ort_call_scratch(j->call, thread);
    const ort_window *w = &p->stage[0].w;
    band t = {.call = j->call, .s = j->s, .p = p, .plain = scratch + p->plain_offset};
    t.z = j->z ? j->z + image * p->y_image : NULL;
    t.x = (surface){(float *)(uintptr_t)(j->x + image * p->x_image), w->in[1], w->in[0], 0};
    for (int i = 0; i < j->s->count; i++) {
        const stage_plan *stage = &p->stage[i];
        t.of[i] = (surface){scratch + stage->offset, stage->w.out[1], stage->ring, 0};
    }
    t.of[j->s->count - 1].base = j->y + image * p->y_image;
    for (int64_t row = first; row < last; row += p->batch)
        make_rows(&t, j->s->count - 1, row, ort_min_i64(row + p->batch, last));
}

/* As many for each thread. Each band makes the rows at its ends that its neighbours make as well: a
 * short one is worth that only where a thread would have none. */
static int64_t bands_for(int64_t rows, int64_t threads)
{
    int64_t bands = ort_min_i64(BANDS * threads, rows / BAND_ROWS) / threads * threads;
    return ort_max_i64(ort_max_i64(bands, ort_min_i64(threads, rows / FEW_ROWS)), 1);
}

static ort_status chain_run(ort_call *call, ort_error *err)
{
    const chain_state *s = call->state;
    const chain_plan *p = call->plan_state;
    const ort_tensor *z = s->adds ? ort_call_in(call, call->in_count - 1) : NULL;
    chain_job j = {call, s, p, ort_call_in(call, 0)->data, z ? z->data : NULL,
                   ort_call_out(call, 0)->data, 1};
    int threads = ort_call_width(call);
    if (p->images * p->y_image == 0)
        return ORT_OK;
    if (threads > 1) /* elements are the same however rows are cut */
        j.bands = bands_for(p->stage[s->count - 1].w.out[0], threads);
    ort_call_parallel(call, (size_t)(p->images * j.bands), task_band, &j);
    return ORT_OK;
}

static const ort_op_impl chain_impl = {
    .state = sizeof(chain_state), .infer = chain_infer, .prepare = chain_prepare,
    .shape = chain_shape, .run = chain_run, .cost = chain_cost,
};

const ort_op ort_ops_blocked_chain[] = {
    {ORT_INTERNAL, "BlockedConvChain", 1, "inputs*:T -> Y:T", "T:f32",
     "activation_params:fs activations:ss! block:i! param_counts:is scales:fs shifts:fs "
     "slope_counts:is slopes:fs windows:is!",
     0, &chain_impl},
    {0},
};

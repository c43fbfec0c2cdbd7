/* weights.c - one weight after the other: columns by threads, codes into the model. */
#include "quantize/weights/weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/findings.h"
#include "base/strbuf.h"
#include "op/edit.h"
#include "opset/opset.h"
#include "quantize/weights/awq.h"
#include "quantize/weights/gptq.h"
#include "quantize/folded.h"
#include "quantize/node_names.h"
#include "quantize/stamp.h"
#include "quantize/strips.h"

static ort_status watch(ort_weights *w, ort_error *err);

/* ---- making one */

static ort_status check_options(const ort_weights_options *o, ort_error *err)
{
    const int64_t block = o->block_size;
    if (o->bits != 2 && o->bits != 4 && o->bits != 8)
        return ort_error_set(err, ORT_ERROR_USAGE, "weights take 2, 4 or 8 bits, not %d", o->bits);
    if (block && (block < 16 || block > 256 || (block & (block - 1))))
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "blocks are of 16, 32, 64, 128 or 256 weights, or 0 for whole "
                             "columns, not of %lld", (long long)block);
    if (!block && o->form == ORT_WEIGHTS_NBITS)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             "MatMulNBits has blocks of at most 256 weights: whole columns need "
                             "the form of DequantizeLinear");
    if (o->accuracy_level < 0 || o->accuracy_level > 4)
        return ort_error_set(err, ORT_ERROR_USAGE, "accuracy_level is 0 to 4, not %d",
                             o->accuracy_level);
    if ((unsigned)o->method > ORT_WEIGHTS_AWQ || (unsigned)o->form > ORT_WEIGHTS_QDQ)
        return ort_error_set(err, ORT_ERROR_USAGE, "no such method or form of weights");
    return o->damping > 0 && o->damping <= 100
               ? ORT_OK
               : ort_error_set(err, ORT_ERROR_USAGE, "damping is above 0 and at most 100, not %g",
                               o->damping);
}

/* DequantizeLinear by blocks came with opset 21, integers of 2 bits with 25. */
static ort_status raise_opset(ort_weights *w, ort_error *err)
{
    const int needs = w->options.form != ORT_WEIGHTS_QDQ ? 0 : w->options.bits == 2 ? 25 : 21;
    ort_findings *found = NULL;
    int reach = 0;
    if (ort_model_opset(w->model, "") >= needs)
        return ORT_OK;
    ORT_TRY(ort_findings_new(&found, err));
    ort_status status = ort_model_convert_opset(w->model, w->env->registry, needs, false, found,
                                                &reach, err);
    ort_findings_free(found);
    return status;
}

/* A copy with the functions' nodes in the graph, each of a name. */
static ort_status take(ort_weights *w, const ort_model *model, ort_error *err)
{
    ort_model_free(w->model);
    w->model = NULL;
    ORT_TRY(ort_model_clone(model, &w->model, err));
    ORT_TRY(ort_model_spool(w->model, w->options.folder, err));
    if (ort_graph_calls_functions(w->model->graph))
        ORT_TRY(ort_model_inline_functions(w->model, err));
    return ort_quantize_name_nodes(w->model, err);
}

/* What was computed so that it could become codes may be larger than what makes it: where nothing
 * does, the model is as it came. Readers are names then, weights numbers: for reports. */
static ort_status take_back(ort_weights *w, const ort_model *model, ort_error *err)
{
    for (size_t i = 0; i < w->readers.count; i++)
        if (!w->readers.data[i].why)
            return ORT_OK;
    for (size_t i = 0; i < w->readers.count; i++) {
        w->readers.data[i].graph = NULL;
        w->readers.data[i].node = NULL;
    }
    for (size_t i = 0; i < w->weights.count; i++) {
        w->weights.data[i].graph = NULL;
        w->weights.data[i].shape.from = NULL;
    }
    return take(w, model, err);
}

ort_status ort_low_bits_make(ort_env *env, const ort_model *model,
                            const ort_weights_options *options, ort_weights **weights,
                            ort_error *err)
{
    ORT_TRY(check_options(options, err));
    ort_weights *w = calloc(1, sizeof *w);
    if (!w)
        return ort_error_memory(err, sizeof *w);
    w->env = env;
    w->options = *options;
    w->shares = (ort_shares){options->on_share, options->share_arg};
    ort_status status = take(w, model, err);
    if (status == ORT_OK)
        status = ort_nodes_check_lists(w->model->graph, options->include, options->exclude, err);
    if (status == ORT_OK)
        status = ort_quantize_fold_weights(w->model, env->registry, &env->log, err);
    if (status == ORT_OK)
        status = raise_opset(w, err);
    if (status == ORT_OK)
        status = ort_graph_infer(w->model->graph, env->registry, NULL, err);
    if (status == ORT_OK)
        status = ort_low_bits_find(w, err);
    if (status == ORT_OK)
        status = take_back(w, model, err);
    if (status == ORT_OK && ort_low_bits_sampled(w))
        status = watch(w, err);
    if (status == ORT_OK)
        *weights = w;
    else
        ort_low_bits_release(w);
    return status;
}

void ort_low_bits_release(ort_weights *w)
{
    if (!w)
        return;
    ort_moments_release(&w->moments);
    ort_vec_release(&w->weights);
    ort_vec_release(&w->readers);
    ort_arena_release(&w->arena);
    ort_model_free(w->model);
    free(w);
}

/* ---- samples */

/* Of products in the main graph: runs show no values of bodies. */
static ort_status watch(ort_weights *w, ort_error *err)
{
    ORT_TRY(ort_moments_open(&w->moments, w->options.folder, w->weights.count, err));
    for (size_t i = 0; i < w->weights.count; i++) {
        ort_weight *weight = &w->weights.data[i];
        if (weight->graph == w->model->graph && weight->has_product)
            ORT_TRY(ort_moments_add(&w->moments, weight->graph->values.data[weight->input]->name,
                                    weight->shape.k, &weight->moments, err));
    }
    return ORT_OK;
}

ort_status ort_low_bits_observe(ort_weights *w, ort_value *const *inputs, size_t count,
                                ort_error *err)
{
    if (!ort_low_bits_sampled(w) || !w->model)
        return ort_error_set(err, ORT_ERROR_USAGE,
                             w->model ? "this method takes no samples: GPTQ and AWQ do"
                                      : "ort_weights_apply was called before");
    ORT_TRY(ort_moments_env(&w->moments, w->options.threads, err));
    return ort_moments_observe(&w->moments, w->model, inputs, count, err);
}

/* ---- codes */

typedef struct filling {
    ort_weights *w;
    ort_block_store *codes;
    const ort_moment *moment; /* of GPTQ, factored; or NULL */
    ort_block_matrix matrix; /* of the present strip */
    int64_t first;           /* column of the matrix that its first one is */
    int64_t stride;
    const float *importance; /* of the weight */
    bool refine;
    bool failed, infinite; /* set by any task */
} filling;

static void fill_lanes(filling *f, int64_t n, float *x, uint8_t *codes)
{
    const ort_block_matrix *s = &f->matrix;
    const ort_block_form *form = &f->codes->form;
    const ort_grid_kernels *grids = &f->w->env->k->grids;
    if (!ort_block_columns(s, n, x)) {
        __atomic_store_n(&f->infinite, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t b = 0; b < s->blocks; b++) {
        const float *at = x + b * s->block * ORT_BLOCK_LANES;
        const int64_t left = s->k - b * s->block, count = left < s->block ? left : s->block;
        ort_block_grid grid;
        grids->fit(form, at, f->importance ? f->importance + b * s->block : NULL, count, &grid);
        if (f->refine)
            grids->refine(form, at, count, &grid);
        grids->codes(form, &grid, at, count, codes);
        ort_block_store_put(f->codes, f->first + n, b, &grid, codes);
    }
}

static void fill_task(void *arg, size_t task, int thread)
{
    filling *f = arg;
    const ort_block_matrix *s = &f->matrix;
    const int64_t first = (int64_t)task * f->stride, end = first + f->stride;
    float *x = malloc((size_t)(s->k * ORT_BLOCK_LANES) * sizeof *x);
    uint8_t *codes = malloc((size_t)(s->block * ORT_BLOCK_LANES));
    (void)thread;
    if (!x || !codes)
        __atomic_store_n(&f->failed, true, __ATOMIC_RELAXED);
    for (int64_t n = first; x && codes && n < end && n < s->n; n += ORT_BLOCK_LANES)
        fill_lanes(f, n, x, codes);
    free(x);
    free(codes);
}

static ort_status fill_plainly(filling *f, ort_error *err)
{
    const size_t tasks = (size_t)((f->matrix.n + f->stride - 1) / f->stride);
    ort_pool_run(f->w->env->pool, tasks, fill_task, f);
    return f->failed ? ort_error_memory(err, (size_t)f->matrix.k * sizeof(float)) : ORT_OK;
}

/* Products of two numbers that a column takes, about: of its own, and what rows owe each other. */
static double column_work(const ort_block_matrix *m, const ort_moment *moment)
{
    const double k = (double)m->k;
    return k * (moment ? 256 + k / 2 : 256);
}

static double factor_work(const ort_moment *moment)
{
    const double k = (double)moment->k;
    return moment->factored ? 0 : k * k * k / 3;
}

/* Its columns as a matrix of their own. */
static ort_status fill_strip(void *arg, const ort_strip *strip, ort_error *err)
{
    filling *f = arg;
    const ort_block_matrix *whole = &f->codes->matrix;
    const int64_t dims[2] = {whole->turned ? strip->of.count : whole->k,
                             whole->turned ? whole->k : strip->of.count};
    const ort_tensor part = {.dtype = whole->from->dtype, .shape = ort_shape_make(2, dims),
                             .data = (void *)(uintptr_t)strip->data};
    f->matrix = ort_block_matrix_of(&part, whole->turned, whole->block);
    f->first = strip->first;
    ORT_TRY(f->moment ? ort_gptq_quantize(f->w->moments.env, &f->w->env->k->grids, f->moment,
                                          &f->matrix, f->first, f->codes, &f->infinite, err)
                      : fill_plainly(f, err));
    ort_shares_add(&f->w->shares, column_work(whole, f->moment) * (double)strip->of.count);
    return ORT_OK;
}

static ort_status fill(ort_weights *w, const ort_weight *weight, const ort_moment *moment,
                       ort_block_store *codes, bool *infinite, ort_error *err)
{
    const ort_block_matrix *m = &codes->matrix;
    const ort_channels columns = ort_channels_of(m->from, !m->turned);
    filling f = {.w = w, .codes = codes, .moment = moment,
                 .stride = ort_block_store_stride(codes), .importance = weight->importance,
                 .refine = w->options.method == ORT_WEIGHTS_HQQ};
    ORT_TRY(ort_strips_each(w->model, m->from, &columns, fill_strip, &f, err));
    *infinite = f.infinite;
    return ORT_OK;
}

/* ---- constants */

static ort_status keep(ort_weights *w, const ort_weight *weight, const char *what,
                       ort_dtype dtype, const ort_shape *shape, const void *data, ort_id *id,
                       ort_error *err)
{
    char name[512];
    ort_tensor t;
    snprintf(name, sizeof name, "%.480s_%s", weight->graph->values.data[weight->id]->name, what);
    ORT_TRY(ort_edit_new_constant(weight->graph, name, dtype, shape, &t, id, err));
    memcpy(t.data, data, ort_tensor_bytes(&t));
    ort_model_forget(w->model, t.data, ort_tensor_bytes(&t));
    return ORT_OK;
}

static ort_dtype code_type(const ort_weights *w)
{
    const bool is_signed = !w->options.asymmetric;
    if (w->options.form == ORT_WEIGHTS_NBITS)
        return ORT_DTYPE_UINT8;
    return w->options.bits == 2   ? is_signed ? ORT_DTYPE_INT2 : ORT_DTYPE_UINT2
           : w->options.bits == 4 ? is_signed ? ORT_DTYPE_INT4 : ORT_DTYPE_UINT4
           : is_signed            ? ORT_DTYPE_INT8 : ORT_DTYPE_UINT8;
}

static ort_status keep_all(ort_weights *w, ort_weight *weight, const ort_block_store *c,
                           ort_error *err)
{
    const ort_block_matrix *s = &c->matrix;
    const int bits = w->options.bits;
    const bool rows = c->by_columns || s->turned;
    ort_shape codes = s->from->shape, scales, zeros;
    scales = ort_shape_make(2, (const int64_t[]){rows ? s->n : s->blocks,
                                                 rows ? s->blocks : s->n});
    zeros = scales;
    if (c->by_columns) {
        const int64_t blob = s->block * bits / 8;
        codes = weight->has_product
                    ? ort_shape_make(3, (const int64_t[]){s->n, s->blocks, blob})
                    : ort_shape_make(2, (const int64_t[]){s->n, s->blocks * blob});
        zeros.dim[1] = (s->blocks * bits + 7) / 8;
    }
    ORT_TRY(keep(w, weight, "codes", code_type(w), &codes, c->codes, &weight->codes, err));
    ORT_TRY(keep(w, weight, "scales", c->form.scale, &scales, c->scales, &weight->scales, err));
    if (c->zeros)
        ORT_TRY(keep(w, weight, "zeros", code_type(w), &zeros, c->zeros, &weight->zeros, err));
    weight->made_bytes = c->code_bytes + c->scale_bytes + c->zero_bytes;
    weight->done = true;
    return ORT_OK;
}

static ort_block_store codes_of(const ort_weights *w, const ort_weight *weight)
{
    const ort_block_form form = {.bits = w->options.bits, .symmetric = !w->options.asymmetric,
                                 .scale = weight->shape.from->dtype};
    return ort_block_store_of(&weight->shape, &form, w->options.form == ORT_WEIGHTS_NBITS);
}

static bool is_wanted(const ort_weights *w, size_t weight)
{
    for (size_t i = 0; i < w->readers.count; i++)
        if (w->readers.data[i].weight == weight && !w->readers.data[i].why)
            return true;
    return false;
}

static void leave(ort_weights *w, size_t weight, const char *why)
{
    for (size_t i = 0; i < w->readers.count; i++)
        if (w->readers.data[i].weight == weight && !w->readers.data[i].why)
            w->readers.data[i].why = why;
}

/* Moments that samples gave for GPTQ; NULL: none. */
static ort_moment *moment_of(ort_weights *w, const ort_weight *weight)
{
    if (weight->moments == SIZE_MAX || w->options.method != ORT_WEIGHTS_GPTQ)
        return NULL;
    ort_moment *moment = &w->moments.list.data[weight->moments];
    return *moment->rows > 0 ? moment : NULL;
}

/* ... as their factor. */
static ort_status factor(ort_weights *w, ort_moment *moment, ort_error *err)
{
    if (!moment || moment->factored)
        return ORT_OK;
    const double work = factor_work(moment);
    ORT_TRY(ort_gptq_factor(w->moments.env, moment, w->options.damping, w->options.ordered, err));
    ort_shares_add(&w->shares, work);
    return ORT_OK;
}

static ort_status quantize(ort_weights *w, size_t at, ort_error *err)
{
    ort_weight *weight = &w->weights.data[at];
    ort_block_store codes = codes_of(w, weight);
    bool infinite = false;
    ort_moment *moment = moment_of(w, weight);
    ORT_TRY(factor(w, moment, err));
    ORT_TRY(ort_block_store_alloc(&codes, err));
    ort_status status = fill(w, weight, moment, &codes, &infinite, err);
    if (moment)
        ort_moment_forget(moment);
    ort_model_forget(w->model, weight->shape.from->data, ort_tensor_bytes(weight->shape.from));
    if (status == ORT_OK && infinite)
        leave(w, at, "its weights aren't all finite numbers");
    else if (status == ORT_OK)
        status = keep_all(w, weight, &codes, err);
    ort_block_store_release(&codes);
    return status;
}

/* What differs from the defaults, as ort-quantize names it. */
static ort_status stamp(const ort_weights *w, ort_error *err)
{
    static const char *const methods[] = {"", " --method hqq", " --method gptq",
                                          " --method awq"};
    const ort_weights_options *o = &w->options;
    char block[32] = "", samples[64], level[32] = "", damping[32] = "";
    ort_strbuf text = {0};
    const bool sampled = ort_low_bits_sampled(w);
    if (o->block_size != 32)
        snprintf(block, sizeof block, o->block_size ? " --block-size %d" : " --block-size column",
                 (int)o->block_size);
    if (o->accuracy_level)
        snprintf(level, sizeof level, " --accuracy-level %d", o->accuracy_level);
    if (o->method == ORT_WEIGHTS_GPTQ && o->damping != 0.01)
        snprintf(damping, sizeof damping, " --damping %g", o->damping);
    snprintf(samples, sizeof samples, "%lld samples",
             sampled ? (long long)ort_moments_samples(&w->moments) : 0);
    ort_strbuf_addf(&text, "--bits %d%s%s%s%s%s%s%s%s", o->bits, block, level, damping,
                    o->asymmetric ? " --asymmetric-weights" : "", methods[o->method],
                    o->form == ORT_WEIGHTS_QDQ ? " --form qdq" : "", o->tables ? " --tables" : "",
                    o->method == ORT_WEIGHTS_GPTQ && o->ordered ? " --ordered" : "");
    if (o->include || o->exclude)
        ort_strbuf_addf(&text, " %s", o->choice ? o->choice : "nodes left out");
    const ort_quantize_stamp how = {.verb = "weights", .options = ort_strbuf_text(&text),
                                    .samples = sampled ? samples : NULL,
                                    .tier = sampled ? w->moments.env->k->isa : NULL};
    ort_status status = text.failed ? ort_error_memory(err, text.length)
                                    : ort_quantize_stamp_model(w->model, &how, err);
    ort_strbuf_release(&text);
    return status;
}

/* A moment that several weights share is factored once. */
static double work_of(ort_weights *w)
{
    double work = 0;
    for (size_t i = 0; i < w->weights.count; i++) {
        const ort_weight *weight = &w->weights.data[i];
        const ort_moment *moment = is_wanted(w, i) ? moment_of(w, weight) : NULL;
        bool first = moment != NULL;
        for (size_t k = 0; k < i && first; k++)
            first = w->weights.data[k].moments != weight->moments || !is_wanted(w, k);
        if (is_wanted(w, i))
            work += column_work(&weight->shape, moment) * (double)weight->shape.n;
        if (first)
            work += factor_work(moment);
    }
    return work;
}

ort_status ort_low_bits_write(ort_weights *w, ort_model **model, ort_error *err)
{
    if (!w->model)
        return ort_error_set(err, ORT_ERROR_USAGE, "ort_weights_apply was called before");
    if (ort_low_bits_sampled(w) && ort_moments_samples(&w->moments) == 0)
        return ort_error_set(err, ORT_ERROR_USAGE, "%s takes samples, and saw none",
                             w->options.method == ORT_WEIGHTS_AWQ ? "AWQ" : "GPTQ");
    ort_moments_close_session(&w->moments);
    if (ort_low_bits_sampled(w))
        ORT_TRY(ort_moments_env(&w->moments, w->options.threads, err));
    if (w->options.method == ORT_WEIGHTS_AWQ)
        ORT_TRY(ort_awq_scale(w, err));
    ort_shares_begin(&w->shares, "quantizing", work_of(w));
    for (size_t i = 0; i < w->weights.count; i++)
        if (is_wanted(w, i))
            ORT_TRY(quantize(w, i, err));
    ORT_TRY(ort_low_bits_edit(w, err));
    ORT_TRY(stamp(w, err));
    *model = w->model;
    w->model = NULL;
    return ORT_OK;
}

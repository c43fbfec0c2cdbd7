/* refine.c - layers are refined in groups whose sums fit the memory that is meant for them; all
 * samples run through a float session for each group.
 */
#include "quantize/effort/refine.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "exec/session.h"
#include "quantize/effort/adaptive_rounding.h"
#include "quantize/effort/bias_correction.h"

/* ---- layers */

static const size_t group_bytes = (size_t)256 << 20;
static const double work = 1.5e10; /* products of two numbers that a layer may take */

typedef struct pass {
    const ort_refining *refining;
    ort_layer *layers;
    bool *few;  /* [count] of rows: nothing will be chosen by them */
    bool alike; /* samples give as many rows each */
    int at;     /* which sample */
    size_t count;
    ort_status status;
    ort_error *err;
} pass;

/* Rows of one sample. */
static int64_t rows_of(const pass *p, const ort_layer *l)
{
    double each = (double)l->groups * (double)l->length * (double)l->width / 2;
    double rows = work / each / p->refining->samples->count;
    return rows < 8 ? 8 : rows > 512 ? 512 : (int64_t)rows;
}

static bool has_few(const pass *p, ort_layer *l, const ort_tensor *x)
{
    const int64_t rows = ort_layer_rows(l, x), most = rows_of(p, l);
    return (rows < most ? rows : most) * p->refining->samples->count < ort_rounding_rows(l);
}

static void see(void *arg, const char *name, const ort_value *value)
{
    pass *p = arg;
    if (value->kind != ORT_KIND_TENSOR || value->tensor.dtype != ORT_DTYPE_FLOAT)
        return;
    for (size_t i = 0; i < p->count && p->status == ORT_OK; i++) {
        ort_layer *l = &p->layers[i];
        if (strcmp(l->input, name))
            continue;
        if (p->alike && p->at == 0)
            p->few[i] = has_few(p, l, &value->tensor);
        if (!p->few[i])
            p->status = ort_layer_read(l, &value->tensor, rows_of(p, l), p->refining->env->pool,
                                       p->err);
    }
}

static ort_status read_samples(pass *p, ort_error *err)
{
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    ort_session *session = NULL;
    const char **watched = calloc(p->count + 1, sizeof *watched);
    p->few = calloc(p->count + 1, sizeof *p->few);
    if (!watched || !p->few) {
        free(watched);
        return ort_error_memory(err, p->count * sizeof *watched);
    }
    for (size_t i = 0; i < p->count; i++)
        watched[i] = p->layers[i].input;
    options.watched = watched;
    ort_status status = ort_exec_session_new(p->refining->env, p->refining->floats, &options,
                                             &session, err);
    const ort_kept_samples *samples = p->refining->samples;
    p->alike = ort_kept_alike(samples);
    for (p->at = 0; p->at < samples->count && status == ORT_OK && p->status == ORT_OK; p->at++)
        status = ort_kept_run(samples, p->at, session, see, p, err);
    ort_exec_session_release(session);
    free(watched);
    return status == ORT_OK ? p->status : status;
}

/* Its node before there were codes. */
static const ort_node *was_of(const ort_refining *r, const ort_layer *l)
{
    return r->floats->graph->nodes.data[l->node->id];
}

static ort_status refine_group(pass *p, ort_error *err)
{
    const ort_refining *r = p->refining;
    ort_status status = ORT_OK;
    for (size_t i = 0; i < p->count && status == ORT_OK; i++)
        status = ort_layer_begin(&p->layers[i], err);
    if (status == ORT_OK)
        status = read_samples(p, err);
    for (size_t i = 0; i < p->count && status == ORT_OK; i++) {
        ort_layer *l = &p->layers[i];
        const bool bias_is_ours = ort_bias_takes(l->graph, l->node, l->bias) &&
                                  !ort_bias_takes(r->floats->graph, was_of(r, l), l->bias);
        status = ort_adapt_rounding(l, r->correct && bias_is_ours, r->full_range, r->env->pool,
                                    err);
        ort_shares_add(r->shares, 1);
    }
    for (size_t i = 0; i < p->count; i++)
        ort_layer_end(&p->layers[i]);
    free(p->few);
    return status;
}

static ort_status adapt(const ort_refining *r, ort_model *codes, ort_error *err)
{
    ort_graph *floats = r->floats->graph;
    ort_layer *layers = calloc(floats->nodes.count + 1, sizeof *layers);
    ort_status status = layers ? ORT_OK : ort_error_memory(err, sizeof *layers);
    size_t count = 0;
    for (size_t i = 0; i < floats->nodes.count && status == ORT_OK; i++)
        count += ort_layer_of(floats, codes->graph, (ort_id)i, &layers[count]);
    ort_shares_begin(r->shares, "rounding layers", (double)count);
    for (size_t from = 0, to; from < count && status == ORT_OK; from = to) {
        size_t bytes = 0;
        for (to = from; to < count && (to == from || bytes < group_bytes); to++)
            bytes += ort_layer_bytes(&layers[to]);
        pass p = {.refining = r, .layers = layers + from, .count = to - from, .err = err};
        status = refine_group(&p, err);
    }
    free(layers);
    return status;
}

ort_status ort_refine(const ort_refining *r, ort_model *codes, ort_error *err)
{
    if (r->round)
        ORT_TRY(adapt(r, codes, err));
    return r->correct ? ort_correct_biases(r, codes, err) : ORT_OK;
}

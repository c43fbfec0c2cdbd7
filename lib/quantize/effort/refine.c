/* refine.c - layers are refined in groups whose sums fit the memory that is meant for them; all
 * samples run through a float session for each group.
 */
#include "quantize/effort/refine.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "exec/session.h"
#include "quantize/effort/adaptive_rounding.h"
#include "quantize/effort/bias_correction.h"

/* ---- samples */

static uint64_t digest_of(ort_value *const *inputs, size_t count)
{
    uint64_t words[2] = {0};
    for (size_t i = 0; i < count; i++) {
        const ort_value *v = inputs[i];
        words[0] = ort_digest(words, sizeof words);
        words[1] = v && v->kind == ORT_KIND_TENSOR && v->tensor.dtype != ORT_DTYPE_STRING
                       ? ort_digest(v->tensor.data, ort_tensor_bytes(&v->tensor))
                       : i;
    }
    return ort_digest(words, sizeof words);
}

static void drop(ort_kept_sample *s, int inputs)
{
    for (int i = 0; i < inputs && s->inputs; i++)
        ort_value_free(s->inputs[i]);
    free(s->inputs);
    s->inputs = NULL;
}

void ort_kept_release(ort_kept_samples *kept)
{
    for (int k = 0; k < kept->count; k++)
        drop(&kept->samples[k], kept->inputs);
    kept->count = 0;
}

static ort_status copy_inputs(ort_value *const *inputs, size_t count, ort_value ***copy,
                              ort_error *err)
{
    ort_status status = ORT_OK;
    ort_value **made = calloc(count + 1, sizeof *made);
    if (!made)
        return ort_error_memory(err, count * sizeof *made);
    for (size_t i = 0; i < count && status == ORT_OK; i++)
        if (inputs[i])
            status = ort_value_clone(inputs[i], &made[i], err);
    if (status == ORT_OK)
        *copy = made;
    else
        drop(&(ort_kept_sample){.inputs = made}, (int)count);
    return status;
}

ort_status ort_keep_sample(ort_kept_samples *kept, ort_value *const *inputs, size_t count,
                           ort_error *err)
{
    ort_kept_sample s = {.digest = digest_of(inputs, count)};
    int at = 0;
    while (at < kept->count && kept->samples[at].digest < s.digest)
        at++;
    if (at == ORT_KEPT_SAMPLES || (at < kept->count && kept->samples[at].digest == s.digest))
        return ORT_OK;
    ORT_TRY(copy_inputs(inputs, count, &s.inputs, err));
    kept->inputs = (int)count;
    if (kept->count == ORT_KEPT_SAMPLES)
        drop(&kept->samples[--kept->count], kept->inputs);
    memmove(&kept->samples[at + 1], &kept->samples[at],
            (size_t)(kept->count - at) * sizeof kept->samples[0]);
    kept->samples[at] = s;
    kept->count++;
    return ORT_OK;
}

/* ---- layers */

static const size_t group_bytes = (size_t)256 << 20;
static const double work = 1.5e10; /* products of two numbers that a layer may take */

typedef struct pass {
    const ort_refining *refining;
    ort_layer *layers;
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

static void see(void *arg, const char *name, const ort_value *value)
{
    pass *p = arg;
    if (value->kind != ORT_KIND_TENSOR || value->tensor.dtype != ORT_DTYPE_FLOAT)
        return;
    for (size_t i = 0; i < p->count && p->status == ORT_OK; i++)
        if (!strcmp(p->layers[i].input, name))
            p->status = ort_layer_read(&p->layers[i], &value->tensor,
                                       rows_of(p, &p->layers[i]), p->refining->env->pool,
                                       p->err);
}

static ort_status run_sample(pass *p, ort_session *session, const ort_kept_sample *s,
                             ort_error *err)
{
    const size_t inputs = (size_t)session->input_count, outputs = (size_t)session->output_count;
    ort_run_options run = ORT_RUN_OPTIONS_INIT;
    const char **names = calloc(inputs + outputs + 1, sizeof *names);
    ort_value **results = calloc(outputs + 1, sizeof *results);
    ort_status status = names && results ? ORT_OK : ort_error_memory(err, sizeof *names);
    run.on_value = see;
    run.callback_arg = p;
    for (size_t i = 0; i < inputs && status == ORT_OK; i++) {
        names[i] = session->inputs[i].name;
        if (s->inputs[i])
            see(p, names[i], s->inputs[i]);
    }
    for (size_t i = 0; i < outputs && status == ORT_OK; i++)
        names[inputs + i] = session->outputs[i].name;
    if (status == ORT_OK)
        status = ort_session_run(session, names, s->inputs, inputs, names + inputs, results,
                                 outputs, &run, err);
    for (size_t i = 0; i < outputs && results; i++)
        ort_value_free(results[i]);
    free(names);
    free(results);
    return status == ORT_OK ? p->status : status;
}

static ort_status read_samples(pass *p, ort_error *err)
{
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    ort_session *session = NULL;
    const char **watched = calloc(p->count + 1, sizeof *watched);
    if (!watched)
        return ort_error_memory(err, p->count * sizeof *watched);
    for (size_t i = 0; i < p->count; i++)
        watched[i] = p->layers[i].input;
    options.watched = watched;
    ort_status status = ort_exec_session_new(p->refining->env, p->refining->floats, &options,
                                             &session, err);
    const ort_kept_samples *samples = p->refining->samples;
    for (int k = 0; k < samples->count && status == ORT_OK; k++)
        status = run_sample(p, session, &samples->samples[k], err);
    ort_exec_session_release(session);
    free(watched);
    return status;
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
        if (r->round)
            status = ort_adapt_rounding(l, r->correct && ort_bias_takes(l), r->env->pool, err);
        if (r->correct)
            ort_correct_bias(l);
    }
    for (size_t i = 0; i < p->count; i++)
        ort_layer_end(&p->layers[i]);
    return status;
}

ort_status ort_refine(const ort_refining *r, ort_model *codes, ort_error *err)
{
    ort_graph *floats = r->floats->graph;
    ort_layer *layers = calloc(floats->nodes.count + 1, sizeof *layers);
    ort_status status = layers ? ORT_OK : ort_error_memory(err, sizeof *layers);
    size_t count = 0;
    for (size_t i = 0; i < floats->nodes.count && status == ORT_OK; i++)
        count += ort_layer_of(floats, codes->graph, (ort_id)i, &layers[count]);
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

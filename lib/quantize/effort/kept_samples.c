/* kept_samples.c - copies of inputs in the order of their digests. */
#include "quantize/effort/kept_samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"

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

/* A batch stands for so many samples. */
static int64_t rows_of(const ort_value *v)
{
    const bool has = v && v->kind == ORT_KIND_TENSOR && v->tensor.shape.rank > 0;
    return has ? v->tensor.shape.dim[0] : 1;
}

int ort_kept_within(const ort_kept_samples *kept, size_t bytes, int least)
{
    size_t held = 0;
    int64_t rows = 0;
    int count = 0;
    while (count < kept->count) {
        const ort_kept_sample *s = &kept->samples[count];
        for (int i = 0; i < kept->inputs; i++)
            held += s->inputs[i] ? ort_value_bytes(s->inputs[i]) : 0;
        if (held > bytes && rows >= least && count >= 2)
            break;
        rows += kept->inputs > 0 ? rows_of(s->inputs[0]) : 1;
        count++;
    }
    return count;
}

static bool is_alike(const ort_value *a, const ort_value *b)
{
    if (!a || !b)
        return a == b;
    return a->kind == ORT_KIND_TENSOR && b->kind == ORT_KIND_TENSOR &&
           ort_shape_equal(&a->tensor.shape, &b->tensor.shape);
}

bool ort_kept_alike(const ort_kept_samples *kept)
{
    for (int k = 1; k < kept->count; k++)
        for (int i = 0; i < kept->inputs; i++)
            if (!is_alike(kept->samples[0].inputs[i], kept->samples[k].inputs[i]))
                return false;
    return true;
}

ort_status ort_kept_run(const ort_kept_samples *kept, int at, ort_session *session,
                        ort_kept_see *see, void *arg, ort_error *err)
{
    const ort_kept_sample *s = &kept->samples[at];
    const size_t inputs = (size_t)session->input_count, outputs = (size_t)session->output_count;
    ort_run_options run = ORT_RUN_OPTIONS_INIT;
    const char **names = calloc(inputs + outputs + 1, sizeof *names);
    ort_value **results = calloc(outputs + 1, sizeof *results);
    ort_status status = names && results ? ORT_OK : ort_error_memory(err, sizeof *names);
    run.on_value = see;
    run.callback_arg = arg;
    for (size_t i = 0; i < inputs && status == ORT_OK; i++) {
        names[i] = session->inputs[i].name;
        if (s->inputs[i])
            see(arg, names[i], s->inputs[i]);
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
    return status;
}

ort_status ort_kept_outputs(const ort_kept_samples *kept, int at, ort_session *session,
                            const char *const *outputs, size_t count, ort_kept_see *see, void *arg,
                            ort_error *err)
{
    const size_t inputs = (size_t)session->input_count;
    const char **names = calloc(inputs + 1, sizeof *names);
    ort_value **results = calloc(count + 1, sizeof *results);
    ort_status status = names && results ? ORT_OK : ort_error_memory(err, sizeof *names);
    for (size_t i = 0; i < inputs && status == ORT_OK; i++)
        names[i] = session->inputs[i].name;
    if (status == ORT_OK)
        status = ort_session_run(session, names, kept->samples[at].inputs, inputs, outputs,
                                 results, count, NULL, err);
    for (size_t i = 0; i < count && status == ORT_OK; i++)
        see(arg, outputs[i], results[i]);
    for (size_t i = 0; i < count && results; i++)
        ort_value_free(results[i]);
    free(names);
    free(results);
    return status;
}

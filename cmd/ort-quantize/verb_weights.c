/* verb_weights.c - ort-quantize weights: matrices and tables in 2, 4 or 8 bits by blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "chosen.h"
#include "common/apart.h"
#include "quantize.h"

static bool is(const char *given, const char *word)
{
    return given && !strcmp(given, word);
}

static bool takes_samples(const quantize_options *o)
{
    return is(o->method, "gptq") || is(o->method, "awq");
}

static void weights_options(quantizing *q, const chosen *c, ort_weights_options *options)
{
    const quantize_options *o = &q->options;
    ort_weights_options_init(options);
    if (o->bits)
        options->bits = (int)o->bits;
    if (o->block_size) /* "column": 0 */
        options->block_size = strtol(o->block_size, NULL, 10);
    options->asymmetric = o->asymmetric_weights;
    options->method = is(o->method, "gptq")  ? ORT_WEIGHTS_GPTQ
                      : is(o->method, "awq") ? ORT_WEIGHTS_AWQ
                      : is(o->method, "hqq") ? ORT_WEIGHTS_HQQ
                                             : ORT_WEIGHTS_NEAREST;
    options->form = is(o->form, "qdq") ? ORT_WEIGHTS_QDQ : ORT_WEIGHTS_NBITS;
    options->accuracy_level = (int)o->accuracy_level;
    options->tables = o->tables;
    options->include = c->include.items;
    options->exclude = c->exclude.items;
    options->folder = q->folder;
    options->choice = q->choice;
    if (o->damping > 0)
        options->damping = o->damping;
    options->ordered = o->ordered;
    options->threads = o->settings.thread_count;
    options->on_share = progress_stage;
    options->share_arg = &q->progress;
}

static ort_status observe_one(void *arg, ort_value *const *inputs, size_t count, ort_error *err)
{
    return ort_weights_observe(arg, inputs, count, err);
}

/* With -v each node that reads matrices or tables and stays as it is; without, how many have codes
 * already. */
static void tell(const quantizing *q, const ort_weights *w)
{
    const quantize_options *o = &q->options;
    const bool asked = o->exclude.count || o->exclude_from;
    size_t coded = 0, taken = 0;
    for (size_t i = 0; i < ort_weights_node_count(w); i++) {
        ort_weights_node node = {.size = sizeof node};
        if (ort_weights_node_at(w, i, &node, NULL) != ORT_OK)
            continue;
        taken += !node.why;
        if (!node.why)
            continue;
        coded += strstr(node.why, "quantized already") != NULL;
        if (o->settings.verbose)
            fprintf(stderr, "%s '%s' stays: %s\n", node.op_type, node.name, node.why);
    }
    if (coded && !o->settings.json && !o->settings.quiet && !is(o->output, "-"))
        printf("left as they are: %zu nodes whose weights are quantized already\n", coded);
    if (taken == 0 && coded == 0 && !asked)
        tool_warn("%s: nothing in it was quantized; -v says why each node stays", q->path);
}

/* OpenVINO asks for whole blocks. */
static void warn_of_shapes(const quantizing *q, int64_t block)
{
    ort_types *types = NULL;
    ort_error err = {0};
    const char *cut = NULL;
    if (!q->options.settings.verbose || block == 0 || !is(q->options.form, "qdq") ||
        ort_model_types(q->made, ORT_TYPES_INITIALIZERS, &types, &err) != ORT_OK)
        return;
    for (size_t i = 0; i < ort_types_count(types); i++) {
        const ort_type_info *t = ort_types_info(types, i);
        if (t->rank == 2 && ort_dtype_bits(t->dtype) <= 8 && t->dims[0] % block != 0 &&
            t->dims[1] % block != 0)
            cut = ort_types_name(types, i);
    }
    if (cut)
        tool_warn("%s: '%s' has no whole number of blocks, which OpenVINO asks for", q->path, cut);
    ort_types_free(types);
}

typedef struct seeing {
    quantizing *q;
    ort_weights *weights;
} seeing;

/* In a process of its own, which ends with the memory of its runs; what samples showed lies in a
 * file of the object (ort_weights_observe). */
static int see(void *arg, FILE *result)
{
    const seeing *s = arg;
    int status = settings_new_env(&s->q->options.settings, &s->q->env);
    if (status == 0)
        status = each_sample(s->q, "calibrating", observe_one, s->weights);
    if (status == 0)
        samples_write(&s->q->samples, result);
    return status;
}

static int see_samples(quantizing *q, ort_weights *w)
{
    FILE *result = NULL;
    int status = prepare_samples(q);
    if (status == 0)
        status = apart("calibration", see, &(seeing){q, w}, &result);
    if (status == 0 && !samples_read(&q->samples, result))
        status = tool_error(ORT_ERROR_RUN, "calibration handed over nothing");
    q->samples.random = q->options.random != NULL;
    if (result != NULL)
        fclose(result);
    return status;
}

static int apply(quantizing *q, ort_weights *w)
{
    ort_error err = {0};
    progress_wait(&q->progress, "quantizing", is_quiet(q));
    ort_status status = ort_weights_apply(w, &q->made, &err);
    progress_end(&q->progress);
    return status == ORT_OK ? 0 : tool_fail_in(q->path, &err);
}

static int quantize(quantizing *q, const chosen *c)
{
    ort_weights_options options;
    ort_weights *w = NULL;
    ort_error err = {0};
    weights_options(q, c, &options);
    if (ort_weights_new(q->env, q->original, &options, &w, &err) != ORT_OK)
        return tool_fail_in(q->path, &err);
    int status = takes_samples(&q->options) ? see_samples(q, w) : 0;
    status = status == 0 ? apply(q, w) : status;
    if (status == 0) {
        tell(q, w);
        warn_of_shapes(q, options.block_size);
    }
    ort_weights_free(w);
    return status;
}

static int check(const quantize_options *o)
{
    if (is(o->form, "qoperator"))
        return tool_usage("weights has the forms nbits and qdq; qoperator is one of static");
    if (is(o->block_size, "column") && !is(o->form, "qdq"))
        return tool_usage("--block-size column needs --form qdq: MatMulNBits has blocks of at most "
                          "256 weights");
    if (takes_samples(o) && o->inputs.count == 0 && !o->random)
        return tool_usage("--method %s takes samples: -i FILE, or --random SEED for made-up ones",
                          o->method);
    return 0;
}

int verb_weights(quantizing *q)
{
    chosen c = {0};
    int status = check(&q->options);
    if (status == 0)
        status = chosen_read(&c, q);
    if (status == 0)
        status = load_original(q, LOAD_AS_STORED);
    if (status == 0)
        status = quantize(q, &c);
    chosen_release(&c);
    return status == 0 ? closing_save(q) : status;
}

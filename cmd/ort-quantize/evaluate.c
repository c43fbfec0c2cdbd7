/* evaluate.c - the verb of that name, and what every other verb ends with: the float model and the
 * quantized one run on the same samples, in turns, and their outputs are added up as they come, so
 * that memory doesn't depend on the number of samples.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/look.h"
#include "evaluation.h"

/* ---- the two models */

static double bytes_at(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) ? (double)info.st_size : 0;
}

/* With NAME.data; what came by a pipe, or has its data elsewhere, as large as it would be written.
 */
static double file_bytes(const char *path, const ort_model *model)
{
    size_t written = 0;
    char *data = tool_printf("%s.data", path);
    double bytes = bytes_at(path), beside = bytes_at(data);
    free(data);
    if (ort_model_written_bytes(model, &written, NULL) != ORT_OK)
        written = 0;
    return bytes + beside >= (double)written * 0.9 ? bytes + beside : (double)written;
}

static int by_bytes(const void *a, const void *b)
{
    json_object *const *x = a, *const *y = b;
    double difference = number_of(*y, "bytes") - number_of(*x, "bytes");
    return difference < 0 ? -1 : difference > 0 ? 1 : strcmp(text_of(*x, "name"),
                                                             text_of(*y, "name"));
}

static int read_report(side *s, ort_report which, const char *key, json_object **list)
{
    ort_error err = {0};
    char *text = NULL;
    if (ort_model_report(s->model, which, &text, &err) != ORT_OK)
        return tool_fail_in(s->path, &err);
    json_object *report = json_tokener_parse(text);
    *list = json_object_get(member(report, key));
    json_object_put(report);
    ort_text_free(text);
    return 0;
}

static int open_session(const evaluation *e, side *s)
{
    ort_session_options options;
    ort_error err = {0};
    settings_session_options(&e->q->options.settings, &options);
    if (ort_session_new(e->q->env, s->model, &options, &s->session, &err) != ORT_OK)
        return tool_fail_in(s->path, &err);
    for (size_t i = 0; i < ort_session_input_count(s->session); i++)
        string_list_add(&s->input_names, ort_session_input_name(s->session, i));
    for (size_t i = 0; i < ort_session_output_count(s->session); i++)
        string_list_add(&s->output_names, ort_session_output_name(s->session, i));
    return 0;
}

/* The float side has the names of its reference. */
static void take_names(side *s, const reference *r)
{
    for (size_t i = 0; i < r->inputs.count; i++)
        string_list_add(&s->input_names, r->inputs.items[i]);
    for (size_t i = 0; i < r->outputs.count; i++)
        string_list_add(&s->output_names, r->outputs.items[i]);
}

static int open_side(side *s, const char *place)
{
    s->inputs = s->input_names.count;
    s->outputs = s->output_names.count;
    s->in = tool_alloc((s->inputs + 1) * sizeof *s->in);
    s->out = tool_alloc((s->outputs + 1) * sizeof *s->out);
    memset(s->in, 0, s->inputs * sizeof *s->in);
    memset(s->out, 0, s->outputs * sizeof *s->out);
    s->bytes = file_bytes(place, s->model);
    int status = read_report(s, ORT_REPORT_STORED, "initializers", &s->weights);
    if (status != 0)
        return status;
    json_object_array_sort(s->weights, by_bytes);
    for (size_t i = 0; i < length_of(s->weights); i++)
        s->weight_bytes += number_of(json_object_array_get_idx(s->weights, i), "bytes");
    return 0;
}

static void close_side(side *s)
{
    json_object_put(s->weights);
    ort_session_free(s->session);
    string_list_release(&s->input_names);
    string_list_release(&s->output_names);
    free(s->in);
    free(s->out);
}

/* The place of a name among those of the quantized model; else its own where none is shared. */
static int place_of(const char *const *names, size_t count, const char *name, size_t own)
{
    bool shared = false;
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(names[i], name))
            return (int)i;
        shared = shared || names[i][0] != '\0';
    }
    return shared && own >= count ? -1 : (int)own;
}

static int match_outputs(evaluation *e)
{
    side *f = &e->sides[FLOAT_SIDE], *i = &e->sides[INTEGER_SIDE];
    int status = 0;
    e->count = f->outputs;
    e->measured = tool_alloc((e->count + 1) * sizeof *e->measured);
    for (size_t k = 0; k < e->count && status == 0; k++) {
        const char *name = f->output_names.items[k];
        int place = place_of(i->output_names.items, i->outputs, name, k);
        e->measured[k] = (measured_output){.name = name, .place = (size_t)place,
                                           .distance = ORT_DISTANCE_INIT};
        if (e->q->options.margin >= 0)
            e->measured[k].distance.margin = e->q->options.margin;
        if (place < 0)
            status = tool_error(ORT_ERROR_USAGE, "%s: has no output '%s', which %s has", i->path,
                                name, f->path);
    }
    return status;
}

/* ---- runs */

static void drop_results(side *s)
{
    for (size_t i = 0; i < s->outputs; i++) {
        ort_value_free(s->out[i]);
        s->out[i] = NULL;
    }
}

/* Of the two models, this one. */
static ort_status say_which(const side *s, ort_status status, ort_error *err)
{
    char said[ORT_ERROR_TEXT];
    if (status == ORT_OK || err->message[0] == '\0')
        return status;
    memcpy(said, err->message, sizeof said);
    snprintf(err->message, sizeof err->message, "%.400s: %.1500s", s->path, said);
    return status;
}

static ort_status run_side(side *s, double *ms, ort_error *err)
{
    drop_results(s);
    double begin = tool_now_ms();
    ort_status status = ort_session_run(s->session, NULL, s->in, s->inputs, NULL, s->out,
                                        s->outputs, NULL, err);
    *ms = tool_now_ms() - begin;
    return say_which(s, status, err);
}

static void take_inputs(evaluation *e, ort_value *const *inputs)
{
    side *f = &e->sides[FLOAT_SIDE], *s = &e->sides[INTEGER_SIDE];
    for (size_t k = 0; k < f->inputs; k++)
        f->in[k] = inputs[k];
    for (size_t k = 0; k < s->inputs; k++) {
        s->in[k] = k < f->inputs ? f->in[k] : NULL;
        for (size_t j = 0; j < f->inputs; j++)
            if (!strcmp(s->input_names.items[k], f->input_names.items[j]))
                s->in[k] = f->in[j];
    }
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

enum { LEAST = 7, MOST_MS = 2000 }; /* runs, time for them */

/* Of the time that time_both may take, or of its runs. */
static double timed_share(const evaluation *e, double ms)
{
    const double by_time = ms / MOST_MS, by_least = (double)e->timed / LEAST;
    const double share = by_time < by_least ? by_time : by_least;
    const double by_count = (double)e->timed / TIMED_RUNS;
    return share > by_count ? share : by_count;
}

/* In turns, so that what the machine does meanwhile meets both alike. */
static ort_status time_both(evaluation *e, ort_error *err)
{
    side *f = &e->sides[FLOAT_SIDE], *s = &e->sides[INTEGER_SIDE];
    double begin = tool_now_ms();
    progress p;
    ort_status status = ORT_OK;
    progress_wait(&p, "timing", is_quiet(e->q));
    while (status == ORT_OK && timed_share(e, tool_now_ms() - begin) < 1) {
        status = say_which(f, reference_time(&e->reference, &f->ms[e->timed], err), err);
        if (status == ORT_OK)
            status = run_side(s, &s->ms[e->timed], err);
        e->timed += status == ORT_OK;
        progress_share(&p, (uint64_t)e->timed, timed_share(e, tool_now_ms() - begin));
    }
    progress_end(&p);
    if (status != ORT_OK)
        return status;
    for (int k = 0; k < SIDES; k++) {
        qsort(e->sides[k].ms, (size_t)e->timed, sizeof(double), by_number);
        e->sides[k].median_ms = e->sides[k].ms[e->timed / 2];
    }
    return ORT_OK;
}

/* Numbers or names of classes. */
static bool is_class(const ort_value *v)
{
    ort_dtype dtype = ort_value_dtype(v);
    return dtype == ORT_DTYPE_INT64 || dtype == ORT_DTYPE_INT32 || dtype == ORT_DTYPE_STRING;
}

static bool same_class(const ort_value *a, const ort_value *b, int64_t i)
{
    size_t la = 0, lb = 0;
    if (ort_value_dtype(a) != ORT_DTYPE_STRING)
        return ort_value_get_double(a, i) == ort_value_get_double(b, i);
    const char *x = ort_value_string(a, i, &la), *y = ort_value_string(b, i, &lb);
    return la == lb && (la == 0 || !memcmp(x, y, la));
}

static void add_classes(measured_output *m, const ort_value *floats, const ort_value *other)
{
    m->distance.margin = NAN;
    m->classes += ort_value_count(floats);
    for (int64_t i = 0; i < ort_value_count(floats); i++)
        m->alike += same_class(floats, other, i);
}

static void add_tensors(measured_output *m, const ort_value *floats, const ort_value *other)
{
    bool alike = ort_value_dtype(floats) == ort_value_dtype(other) &&
                 ort_value_count(floats) == ort_value_count(other);
    if (is_class(floats) && alike)
        add_classes(m, floats, other);
    if (ort_value_dtype(floats) == ORT_DTYPE_STRING && alike)
        return;
    if (ort_distance_add(&m->distance, floats, other, NULL) == ORT_OK) {
        parts_add(&m->parts, floats, other);
        return;
    }
    m->why = "the two models give other shapes";
    m->misfit = true;
}

/* Of maps the numbers, which stand in the order of their keys in both models; of sequences each
 * item. */
static void add_output(measured_output *m, const ort_value *floats, const ort_value *other)
{
    ort_value_kind kind = ort_value_get_kind(floats);
    if (kind != ort_value_get_kind(other) || ort_value_count(floats) != ort_value_count(other)) {
        m->why = "the two models give other shapes";
        m->misfit = true;
    } else if (kind == ORT_VALUE_TENSOR) {
        add_tensors(m, floats, other);
    } else if (kind == ORT_VALUE_MAP) {
        add_tensors(m, ort_value_item(floats, 1), ort_value_item(other, 1));
    } else {
        for (int64_t i = 0; kind == ORT_VALUE_SEQUENCE && i < ort_value_count(floats); i++)
            add_output(m, ort_value_item(floats, (size_t)i), ort_value_item(other, (size_t)i));
    }
}

static ort_status judge_sample(void *arg, ort_value *const *inputs, size_t count, ort_error *err)
{
    evaluation *e = arg;
    double ms;
    (void)count;
    side *f = &e->sides[FLOAT_SIDE];
    take_inputs(e, inputs);
    ort_status status = say_which(f, reference_next(&e->reference, f->out, err), err);
    if (status == ORT_OK)
        status = run_side(&e->sides[INTEGER_SIDE], &ms, err);
    if (status != ORT_OK)
        return status;
    for (size_t i = 0; i < e->count; i++)
        add_output(&e->measured[i], e->sides[FLOAT_SIDE].out[i],
                   e->sides[INTEGER_SIDE].out[e->measured[i].place]);
    status = labels_judge(e, err);
    if (status == ORT_OK && e->samples++ == 0) {
        status = time_both(e, err);
        if (status == ORT_OK)
            status = computed_take(e, err);
    }
    for (int k = 0; k < SIDES; k++)
        drop_results(&e->sides[k]);
    return status;
}

/* ---- the whole */

static int report(evaluation *e)
{
    const quantize_options *o = &e->q->options;
    bool taken = takes_stdout(o);
    bool tells = (!o->settings.quiet || o->settings.json) && (!taken || o->settings.verbose);
    gates_of_evaluation(e);
    if (!tells)
        return gates_tell(e);
    tool_reported();
    if (o->settings.json)
        evaluation_json(e, stdout);
    else
        evaluation_text(e, taken ? stderr : stdout);
    if (fflush(stdout) != 0 || ferror(stdout)) /* this process ends here, before tool_finish */
        return tool_error(ORT_ERROR_IO, "standard output: %s", strerror(errno));
    return gates_tell(e);
}

static int open_all(evaluation *e, const char *path)
{
    side *f = &e->sides[FLOAT_SIDE], *s = &e->sides[INTEGER_SIDE];
    ort_error err = {0};
    f->model = e->q->original;
    const settings *own = &e->q->options.settings;
    /* The reference's process begins with what is in memory then: as little as can be. */
    const ort_load_options load = {.size = sizeof load, .as_stored = true, .in_pieces = true};
    int status = 0;
    if (path == s->path)
        status = settings_load_model(own, e->q->env, path, LOAD_AS_STORED, &s->model);
    else if (ort_model_load(e->q->env, path, &load, &s->model, &err) != ORT_OK)
        status = tool_fail_in(s->path, &err);
    progress_wait(&e->q->progress, "preparing", is_quiet(e->q));
    if (status == 0)
        status = reference_open(&e->reference, e->q);
    if (status == 0)
        status = open_session(e, s);
    progress_end(&e->q->progress);
    take_names(f, &e->reference);
    if (status == 0)
        status = open_side(f, f->path);
    if (status == 0)
        status = open_side(s, path);
    if (status == 0)
        status = read_report(s, ORT_REPORT_NODES, "nodes", &e->nodes);
    if (status == 0)
        status = match_outputs(e);
    return status != 0 ? status : labels_open(e);
}

int evaluate_file(quantizing *q, const char *path, const char *name)
{
    evaluation e = {.q = q, .reference = {.partner = {.line = -1}}};
    e.sides[FLOAT_SIDE].path = q->path;
    e.sides[INTEGER_SIDE].path = name;
    e.made_up = q->options.inputs.count == 0;
    if (e.made_up && q->options.random == NULL)
        q->options.random = "1";
    int status = prepare_samples(q);
    if (status == 0)
        status = open_all(&e, path);
    if (status == 0)
        status = each_sample(q, "comparing", judge_sample, &e);
    if (status == 0)
        status = labels_finish(&e);
    if (status == 0)
        status = report(&e);
    reference_close(&e.reference);
    for (int k = 0; k < SIDES; k++)
        close_side(&e.sides[k]);
    ort_model_free(e.sides[INTEGER_SIDE].model);
    for (size_t i = 0; i < e.count; i++)
        parts_release(&e.measured[i].parts);
    ort_tensors_free(e.labels);
    json_object_put(e.steps);
    json_object_put(e.nodes);
    free(e.measured);
    return status;
}

int verb_evaluate(quantizing *q)
{
    int status = settings_load_model(&q->options.settings, q->env, q->path, LOAD_AS_STORED,
                                     &q->original);
    return status != 0 ? status : evaluate_file(q, q->files.items[1], q->files.items[1]);
}

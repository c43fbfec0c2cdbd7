/* worker.c - the process in which one runtime runs one model: it loads, says when it is ready, then
 * obeys commands from its standard input, one answer line each ("ok NUMBER" or "error REASON").
 *
 *   first       bind the inputs, run once: milliseconds of the run
 *   round       warm up, then at least MIN_RUNS runs: their median in milliseconds
 *   beside MS   run for that many milliseconds: the mean of a run
 *   peak        VmHWM of the process in MB
 *   flop        what a run computes (runtime.h), 1e9 operations; `weights`: MB that it reads
 *   save PATH   run once and write the outputs that are tensors of numbers as .npz
 */
#include "../harness.h"
#include "bench.h"
#include "runtime.h"

enum { MIN_RUNS = 7, MAX_RUNS = 4000, WARM_UP = 2 };
static const double round_ms = 100;

typedef struct worker {
    runtime runtime;
    harness_values values;
    ort_tensors *archive;
    ort_value *inputs[RUNTIME_NAMES];
    ort_error err;
} worker;

static const runtime_class *const classes[] = {&runtime_ours, &runtime_onnxruntime,
                                               &runtime_openvino, &runtime_tract};

static const runtime_class *find_class(const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (!strcmp(classes[i]->name, name))
            return classes[i];
    return NULL;
}

/* The array of an archive with this name, or NULL. */
static ort_value *find_array(const ort_tensors *archive, const char *name)
{
    for (size_t k = 0; k < ort_tensors_count(archive); k++)
        if (!strcmp(ort_tensors_name(archive, k), name))
            return ort_tensors_value(archive, k);
    return NULL;
}

/* The values of inputs.npz by name, or of test_data_set_0 by position. */
static bool read_inputs(worker *w, const char *folder)
{
    char path[PATH_MAX];
    runtime *r = &w->runtime;
    snprintf(path, sizeof path, "%s/inputs.npz", folder);
    if (access(path, F_OK) == 0) {
        if (ort_tensors_load(path, NULL, &w->archive, &w->err))
            return runtime_fail(r, "%s", w->err.message);
        for (size_t i = 0; i < r->input_count; i++)
            w->inputs[i] = find_array(w->archive, r->input_names[i]);
    } else {
        snprintf(path, sizeof path, "%s/test_data_set_0", folder);
        if (harness_load_values(path, "input", &w->values, &w->err))
            return runtime_fail(r, "%s", w->err.message);
        for (size_t i = 0; i < r->input_count && i < w->values.count; i++)
            w->inputs[i] = w->values.value[i];
    }
    for (size_t i = 0; i < r->input_count; i++)
        if (!w->inputs[i])
            return runtime_fail(r, "input '%s' is not a tensor on file", r->input_names[i]);
    return true;
}

static bool timed_run(worker *w, double *ms)
{
    double begin = harness_now_ms();
    bool ok = w->runtime.class->run(&w->runtime);
    *ms = harness_now_ms() - begin;
    return ok;
}

static void release(worker *w)
{
    w->runtime.class->release(&w->runtime);
}

static bool first_run(worker *w, const char *folder, double *ms)
{
    bool ok = (w->inputs[0] || read_inputs(w, folder)) &&
              w->runtime.class->bind(&w->runtime, w->inputs) && timed_run(w, ms);
    if (ok)
        release(w);
    return ok;
}

static bool measured_round(worker *w, double *median)
{
    static double samples[MAX_RUNS];
    size_t count = 0;
    for (int k = 0; k < WARM_UP; k++) {
        if (!timed_run(w, median))
            return false;
        release(w);
    }
    double begin = harness_now_ms();
    while (count < MIN_RUNS || (count < MAX_RUNS && harness_now_ms() - begin < round_ms)) {
        if (!timed_run(w, &samples[count++]))
            return false;
        release(w);
    }
    *median = harness_median(samples, count);
    return true;
}

/* The mean, not the median: what a run costs that has to wait for a processor counts. */
static bool beside(worker *w, double for_ms, double *mean)
{
    double begin = harness_now_ms(), ignored, now = begin;
    size_t count = 0;
    while (count == 0 || now - begin < for_ms) {
        if (!timed_run(w, &ignored))
            return false;
        release(w);
        count++;
        now = harness_now_ms();
    }
    *mean = (now - begin) / (double)count;
    return true;
}

static bool add_output(worker *w, ort_tensors *tensors, size_t k)
{
    char name[32];
    ort_value *value = NULL;
    if (!w->runtime.class->view(&w->runtime, k, &value))
        return false;
    snprintf(name, sizeof name, "output_%zu", k);
    bool ok = !value || !ort_tensors_add(tensors, name, value, &w->err) ||
              runtime_fail(&w->runtime, "%s", w->err.message);
    ort_value_free(value);
    return ok;
}

static bool save_outputs(worker *w, const char *path)
{
    double ms;
    ort_tensors *tensors = NULL;
    const ort_write_options options = {.size = sizeof options, .format = ORT_FORMAT_NPZ};
    bool ok = timed_run(w, &ms) && !ort_tensors_new(&tensors, &w->err);
    for (size_t k = 0; ok && k < w->runtime.output_count; k++)
        ok = add_output(w, tensors, k);
    ok = ok && (!ort_tensors_save(tensors, path, &options, &w->err) ||
                runtime_fail(&w->runtime, "%s", w->err.message));
    ort_tensors_free(tensors);
    if (ok)
        release(w);
    return ok;
}

static bool measured_work(worker *w, double *gflop, double *weight_mb)
{
    runtime *r = &w->runtime;
    bool ok = r->class->work ? r->class->work(r, gflop, weight_mb) : runtime_fail(r, "unknown");
    if (ok)
        release(w);
    return ok;
}

static bool obey(worker *w, const char *folder, char *line)
{
    double number = 0, other;
    bool ok = true;
    line[strcspn(line, "\n")] = '\0';
    if (!strcmp(line, "first"))
        ok = first_run(w, folder, &number);
    else if (!strcmp(line, "round"))
        ok = measured_round(w, &number);
    else if (!strncmp(line, "beside ", 7))
        ok = beside(w, strtod(line + 7, NULL), &number);
    else if (!strcmp(line, "peak"))
        number = (double)ort_peak_rss_bytes() / 1e6;
    else if (!strcmp(line, "flop"))
        ok = measured_work(w, &number, &other);
    else if (!strcmp(line, "weights"))
        ok = measured_work(w, &other, &number);
    else if (!strncmp(line, "save ", 5))
        ok = save_outputs(w, line + 5);
    if (ok)
        printf("ok %.6f\n", number);
    else
        printf("error %s\n", w->runtime.message);
    fflush(stdout);
    return ok;
}

int worker_main(char **argv)
{
    static worker w;
    char model[PATH_MAX], line[PATH_MAX + 16];
    const char *folder = argv[2];
    runtime *r = &w.runtime;
    r->class = find_class(argv[0]);
    r->exact = argv[5] && !strcmp(argv[5], "integer") && runtime_saturates();
    snprintf(model, sizeof model, "%s/model.onnx", folder);
    bool ok = r->class->open(r, argv[1], model, atoi(argv[3]));
    if (ok && r->class->fit)
        ok = read_inputs(&w, folder) && r->class->fit(r, w.inputs);
    double ready = harness_now_ms() - strtod(argv[4], NULL) - r->lost_ms;
    if (ok)
        printf("ok %.6f %s\n", ready, r->note);
    else
        printf("error %s\n", r->message);
    fflush(stdout);
    while (ok && fgets(line, sizeof line, stdin))
        ok = obey(&w, folder, line);
    fflush(stdout);
    _exit(0); /* no runtime's tear-down is measured */
}

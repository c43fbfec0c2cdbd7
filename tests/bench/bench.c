/* bench.c - this library beside the pinned onnxruntime, model by model, in one run.
 *
 * usage: bench [--only GLOB] [--threads LIST] [--rounds N] [--launches N] [--peer LIB.so] DIR...
 *
 * DIR/NAME holds model.onnx and inputs.npz or test_data_set_0. Each runtime runs in processes of
 * its own (this program executed again with --worker), which load the model, then obey commands
 * from their standard input. Session ready is the time from before fork to a session that may run,
 * first run the first run after it (medians over the launches); both are alternated between the
 * runtimes. Then rounds of at least 7 runs are interleaved between the last two processes, one of
 * which waits while the other runs; a runtime's figure is its best round's median. Peak memory is
 * VmHWM after a round. Outputs are compared before the rounds that count. A ratio is ours / theirs:
 * below 1 we are ahead.
 */
#include <fcntl.h>
#include <fnmatch.h>
#include <getopt.h>
#include <signal.h>
#include <sys/wait.h>

#include "../harness.h"
#include "peer.h"

enum { MAX_LAUNCHES = 15, MIN_RUNS = 7, MAX_RUNS = 2000 };
static const double round_ms = 120;

typedef struct settings {
    const char *program, *peer, *only, *scratch;
    int threads[8], thread_count, rounds, launches;
} settings;

/* --------------------------------------------------------------------------- worker side -- */

typedef struct worker { /* one runtime with one model and its inputs */
    bool theirs;
    peer peer;
    ort_env *env;
    ort_session *session;
    size_t input_count;
    const char *input_names[HARNESS_VALUES];
    harness_values values;
    ort_tensors *archive;
    ort_value *inputs[HARNESS_VALUES];
    void *peer_inputs[HARNESS_VALUES];
    ort_value *outputs[HARNESS_VALUES];
    void *peer_outputs[HARNESS_VALUES];
    ort_error err;
} worker;

static const char *worker_message(const worker *w)
{
    return w->peer.message[0] ? w->peer.message : w->err.message;
}

static bool worker_open(worker *w, const char *library, const char *model, int threads)
{
    if (w->theirs)
        return peer_open(&w->peer, library, model, threads);
    ort_env_options options;
    ort_env_options_init(&options);
    options.threads = threads;
    return !ort_env_new(&options, &w->env, &w->err) &&
           !ort_session_load(w->env, model, NULL, &w->session, &w->err);
}

static void worker_list_inputs(worker *w)
{
    if (w->theirs) {
        for (size_t i = 0; i < w->peer.input_count; i++)
            w->input_names[w->input_count++] = w->peer.input_names[i];
        return;
    }
    for (size_t i = 0; i < ort_session_input_count(w->session) && i < HARNESS_VALUES; i++)
        if (!ort_session_input_optional(w->session, i))
            w->input_names[w->input_count++] = ort_session_input_name(w->session, i);
}

static ort_value *find_array(const ort_tensors *archive, const char *name)
{
    for (size_t k = 0; k < ort_tensors_count(archive); k++)
        if (strcmp(ort_tensors_name(archive, k), name) == 0)
            return ort_tensors_value(archive, k);
    return NULL;
}

/* The values of inputs.npz by name, or of test_data_set_0 by position. */
static bool worker_read_inputs(worker *w, const char *folder, ort_value **list)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/inputs.npz", folder);
    if (access(path, F_OK) == 0) {
        if (ort_tensors_load(path, NULL, &w->archive, &w->err))
            return false;
        for (size_t i = 0; i < w->input_count; i++)
            list[i] = find_array(w->archive, w->input_names[i]);
    } else {
        snprintf(path, sizeof path, "%s/test_data_set_0", folder);
        if (harness_load_values(path, "input", &w->values, &w->err))
            return false;
        for (size_t i = 0; i < w->input_count && i < w->values.count; i++)
            list[i] = w->values.value[i];
    }
    for (size_t i = 0; i < w->input_count; i++) {
        if (!list[i]) {
            (void)HARNESS_FAIL(&w->err, ORT_ERROR_DATA, "input '%s' is not a tensor on file",
                               w->input_names[i]);
            return false;
        }
    }
    return true;
}

static bool worker_bind(worker *w, const char *folder)
{
    ort_value *list[HARNESS_VALUES] = {NULL};
    worker_list_inputs(w);
    if (!worker_read_inputs(w, folder, list))
        return false;
    size_t k = 0;
    if (w->theirs) {
        for (; k < w->input_count; k++)
            if (!peer_make_input(&w->peer, list[k], &w->peer_inputs[k]))
                return false;
        return true;
    }
    for (size_t i = 0; i < ort_session_input_count(w->session) && i < HARNESS_VALUES; i++)
        w->inputs[i] = ort_session_input_optional(w->session, i) ? NULL : list[k++];
    return true;
}

static void worker_release(worker *w)
{
    if (w->theirs)
        peer_release(&w->peer, w->peer_outputs);
    else
        harness_free_outputs(w->outputs, HARNESS_VALUES);
}

/* One run; *ms is its time. The outputs stay until worker_release. */
static bool worker_run(worker *w, double *ms)
{
    double begin = harness_now_ms();
    bool ok = w->theirs ? peer_run(&w->peer, w->peer_inputs, w->peer_outputs)
                        : !ort_session_run(w->session, w->inputs, w->outputs, NULL, &w->err);
    *ms = harness_now_ms() - begin;
    return ok;
}

static bool worker_round(worker *w, double *median)
{
    static double samples[MAX_RUNS];
    size_t count = 0;
    double begin = harness_now_ms();
    while (count < MIN_RUNS || (count < MAX_RUNS && harness_now_ms() - begin < round_ms)) {
        if (!worker_run(w, &samples[count++]))
            return false;
        worker_release(w);
    }
    *median = harness_median(samples, count);
    return true;
}

/* Run once and write the tensors among the outputs (not strings) to an .npz. */
static bool worker_save(worker *w, const char *path)
{
    double ms;
    ort_tensors *tensors = NULL;
    bool ok = worker_run(w, &ms) && !ort_tensors_new(&tensors, &w->err);
    size_t count = w->theirs ? w->peer.output_count : ort_session_output_count(w->session);
    for (size_t k = 0; ok && k < count; k++) {
        ort_value *value = w->outputs[k];
        char name[32];
        snprintf(name, sizeof name, "output_%zu", k);
        if (w->theirs)
            ok = peer_view_output(&w->peer, w->peer_outputs[k], &value, &w->err);
        if (ok && value && ort_value_get_kind(value) == ORT_VALUE_TENSOR &&
            ort_value_dtype(value) != ORT_DTYPE_STRING)
            ok = !ort_tensors_add(tensors, name, value, &w->err);
        if (w->theirs)
            ort_value_free(value);
    }
    const ort_write_options options = {.format = ORT_FORMAT_NPZ};
    ok = ok && !ort_tensors_save(tensors, path, &options, &w->err);
    ort_tensors_free(tensors);
    worker_release(w);
    return ok;
}

static bool worker_obey(worker *w, const char *folder, char *line)
{
    double ms = 0;
    bool ok = true;
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "first") == 0) {
        ok = worker_bind(w, folder) && worker_run(w, &ms);
        worker_release(w);
    } else if (strcmp(line, "round") == 0) {
        ok = worker_round(w, &ms);
    } else if (strcmp(line, "peak") == 0) {
        ms = (double)ort_peak_rss_bytes() / 1e6;
    } else if (strncmp(line, "save ", 5) == 0) {
        ok = worker_save(w, line + 5);
    }
    if (ok)
        printf("ok %.6f\n", ms);
    else
        printf("error %s\n", worker_message(w));
    fflush(stdout);
    return ok;
}

/* argv: --worker ours|theirs LIBRARY FOLDER THREADS START_MS */
static int worker_main(char **argv)
{
    static worker w;
    char model[PATH_MAX], line[PATH_MAX + 16];
    w.theirs = strcmp(argv[2], "theirs") == 0;
    snprintf(model, sizeof model, "%s/model.onnx", argv[4]);
    bool ok = worker_open(&w, argv[3], model, atoi(argv[5]));
    double ready = harness_now_ms() - strtod(argv[6], NULL);
    if (ok)
        printf("ok %.6f\n", ready);
    else
        printf("error %s\n", worker_message(&w));
    fflush(stdout);
    while (ok && fgets(line, sizeof line, stdin))
        ok = worker_obey(&w, argv[4], line);
    fflush(stdout);
    _exit(0); /* neither runtime's tear-down is measured */
}

/* --------------------------------------------------------------------------- parent side -- */

typedef struct child {
    pid_t pid;
    FILE *to, *from;
} child;

typedef struct measure {
    double ready, first, median, peak;
    bool differs; /* in the outputs: nothing was timed */
} measure;

static bool spawn(const settings *set, bool theirs, const char *folder, int threads, child *c)
{
    int in[2], out[2];
    char thread_text[16], start[40];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return false;
    snprintf(thread_text, sizeof thread_text, "%d", threads);
    fflush(stdout);
    snprintf(start, sizeof start, "%.6f", harness_now_ms());
    c->pid = fork();
    if (c->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execl(set->program, set->program, "--worker", theirs ? "theirs" : "ours", set->peer,
              folder, thread_text, start, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    c->to = fdopen(in[1], "w");
    c->from = fdopen(out[0], "r");
    return c->pid > 0 && c->to && c->from;
}

/* Read the answer to a command; false with the worker's message in `message`. */
static bool answer(child *c, double *number, char *message, size_t size)
{
    char line[1000];
    if (!fgets(line, sizeof line, c->from)) {
        snprintf(message, size, "the process died");
        return false;
    }
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "ok ", 3) != 0) {
        snprintf(message, size, "%s", line + (strncmp(line, "error ", 6) == 0 ? 6 : 0));
        return false;
    }
    *number = strtod(line + 3, NULL);
    return true;
}

static bool ask(child *c, const char *command, double *number, char *message, size_t size)
{
    fprintf(c->to, "%s\n", command);
    fflush(c->to);
    return answer(c, number, message, size);
}

static void finish(child *c)
{
    if (c->to)
        fclose(c->to);
    if (c->from)
        fclose(c->from);
    if (c->pid > 0)
        waitpid(c->pid, NULL, 0);
    *c = (child){0};
}

static double largest(const ort_value *value)
{
    double most = 0;
    for (int64_t k = 0; k < ort_value_count(value); k++)
        most = fmax(most, fabs(ort_value_get_double(value, k)));
    return most;
}

/* Compare what both wrote: names and types equal, numbers near. False says why in `message`.
 * `loose`: quantized with weights that mean nothing, where one rounding that falls the other way
 * spreads through all layers: a tenth of the largest value is allowed. */
static bool same_outputs(char paths[2][PATH_MAX], const harness_meta *meta, bool loose,
                         char *message, size_t size)
{
    ort_tensors *sides[2] = {NULL, NULL};
    ort_error err = {0};
    /* Two runtimes may each be off by the tolerance. */
    ort_compare_options options = {.rtol = 2 * meta->rtol, .atol = 2 * meta->atol};
    bool ok = true;
    for (int i = 0; ok && i < 2; i++)
        ok = !ort_tensors_load(paths[i], NULL, &sides[i], &err);
    if (!ok)
        snprintf(message, size, "%.500s", err.message);
    for (size_t k = 0; ok && k < ort_tensors_count(sides[1]); k++) {
        const char *name = ort_tensors_name(sides[1], k);
        ort_value *mine = find_array(sides[0], name);
        ort_difference diff = {0};
        if (loose)
            options.atol = 0.1 * largest(ort_tensors_value(sides[1], k));
        ok = mine && !ort_value_compare(mine, ort_tensors_value(sides[1], k), &options, &diff,
                                        &err) && diff.equal;
        if (!ok)
            snprintf(message, size, "%s differs: %.400s", name, mine ? diff.text : "missing");
    }
    ort_tensors_free(sides[0]);
    ort_tensors_free(sides[1]);
    return ok;
}

/* When the two differ: is it the peer that is off the expected values of the set? */
static bool ours_as_expected(const char *folder, const char *path, const harness_meta *meta)
{
    char set[PATH_MAX];
    harness_values expected = {0};
    ort_tensors *mine = NULL;
    ort_error err = {0};
    ort_compare_options options = {.rtol = meta->rtol, .atol = meta->atol};
    snprintf(set, sizeof set, "%s/test_data_set_0", folder);
    bool ok = access(set, F_OK) == 0 && !harness_load_values(set, "output", &expected, &err) &&
              expected.count > 0 && !ort_tensors_load(path, NULL, &mine, &err);
    for (size_t k = 0; ok && k < expected.count; k++) {
        char name[32];
        ort_difference diff = {0};
        snprintf(name, sizeof name, "output_%zu", k);
        ort_value *value = find_array(mine, name);
        if (value && expected.value[k])
            ok = !ort_value_compare(value, expected.value[k], &options, &diff, &err) && diff.equal;
    }
    ort_tensors_free(mine);
    harness_values_free(&expected);
    return ok;
}

static bool is_float(const char *name)
{
    return !strstr(name, "int8") && !strstr(name, "int4") && !strstr(name, "fp16") &&
           !strstr(name, "qlstm");
}

/* Launch both runtimes `launches` times, alternating; the last two stay in `children`. */
static bool launch(const settings *set, const char *folder, int threads, child *children,
                   measure *m, char *message, size_t size)
{
    double ready[2][MAX_LAUNCHES], first[2][MAX_LAUNCHES];
    for (int k = 0; k < set->launches; k++) {
        for (int side = 0; side < 2; side++) {
            finish(&children[side]);
            if (!spawn(set, side == 1, folder, threads, &children[side]) ||
                !answer(&children[side], &ready[side][k], message, size) ||
                !ask(&children[side], "first", &first[side][k], message, size))
                return false;
            if (k + 1 < set->launches)
                finish(&children[side]);
        }
    }
    for (int side = 0; side < 2; side++) {
        m[side].ready = harness_median(ready[side], (size_t)set->launches);
        m[side].first = harness_median(first[side], (size_t)set->launches);
    }
    return true;
}

static bool measure_model(const settings *set, const char *folder, int threads, measure *m,
                          char *message, size_t size)
{
    child children[2] = {{0}, {0}};
    char paths[2][PATH_MAX];
    harness_meta meta;
    double ignored, median;
    bool given = harness_read_meta(folder, &meta);
    if (!given)
        meta = (harness_meta){.rtol = 1e-2, .atol = 1e-3};
    bool ok = launch(set, folder, threads, children, m, message, size);
    for (int side = 0; ok && side < 2; side++) { /* before saving, which needs memory of its own */
        m[side].median = INFINITY;
        ok = ask(&children[side], "round", &median, message, size) &&
             ask(&children[side], "peak", &m[side].peak, message, size);
    }
    for (int side = 0; ok && side < 2; side++) {
        char command[PATH_MAX + 8];
        snprintf(paths[side], PATH_MAX, "%s/outputs_%d.npz", set->scratch, side);
        snprintf(command, sizeof command, "save %s", paths[side]);
        ok = ask(&children[side], command, &ignored, message, size);
    }
    if (ok && !same_outputs(paths, &meta, !given && !is_float(folder), message, size)) {
        ok = ours_as_expected(folder, paths[0], &meta);
        m[0].differs = !ok;
        if (ok)
            printf("%s: the peer's outputs are off the expected values, ours are not\n", folder);
    }
    for (int round = 0; ok && round < set->rounds; round++) {
        for (int k = 0; ok && k < 2; k++) {
            int side = (round + k) % 2; /* neither is always first */
            ok = ask(&children[side], "round", &median, message, size);
            m[side].median = fmin(m[side].median, median);
        }
    }
    finish(&children[0]);
    finish(&children[1]);
    return ok;
}

/* ------------------------------------------------------------------------------- machine -- */

/* Of one core. */
static ort_peak machine_peak(void)
{
    ort_env_options options;
    ort_env *env = NULL;
    ort_peak peak = {0};
    ort_env_options_init(&options);
    options.threads = 1;
    if (ort_env_new(&options, &env, NULL) || ort_env_measure_peak(env, &peak, NULL))
        peak = (ort_peak){0};
    ort_env_free(env);
    return peak;
}

static void print_machine(const settings *set)
{
    char load[100] = "unknown\n";
    FILE *file = fopen("/proc/loadavg", "r");
    if (file && !fgets(load, sizeof load, file))
        load[0] = '\0';
    if (file)
        fclose(file);
    printf("processors %ld, load %.14s, peak of one core %.1f GFLOP/s (multiply-add loop)\n",
           sysconf(_SC_NPROCESSORS_ONLN), load, machine_peak().gflops);
    printf("peer %s; ratios are ours / theirs, below 1 we are ahead\n\n", set->peer);
}

/* ------------------------------------------------------------------------------- summary -- */

typedef struct tally {
    double log_ratio[4];
    int count, ready_ahead, conv, conv_within;
} tally;

/* Whether the file names the operator Conv (field 4 of a node, length 4). */
static bool has_conv(const char *path)
{
    FILE *file = fopen(path, "rb");
    static char block[1 << 16];
    size_t kept = 0, n;
    bool found = false;
    while (file && !found && (n = fread(block + kept, 1, sizeof block - kept, file)) > 0) {
        found = memmem(block, kept + n, "\x22\x04" "Conv", 6) != NULL;
        size_t keep = kept + n < 5 ? kept + n : 5;
        memmove(block, block + kept + n - keep, keep);
        kept = keep;
    }
    if (file)
        fclose(file);
    return found;
}

static void print_row(const char *name, int threads, const measure *m)
{
    printf("%-37s %d %8.2f %8.2f %5.2f %8.2f %8.2f %5.2f %9.3f %9.3f %5.2f %7.1f %7.1f %5.2f\n",
           name, threads, m[0].ready, m[1].ready, m[0].ready / m[1].ready, m[0].first,
           m[1].first, m[0].first / m[1].first, m[0].median, m[1].median,
           m[0].median / m[1].median, m[0].peak, m[1].peak, m[0].peak / m[1].peak);
    fflush(stdout);
}

static void add(tally *t, const measure *m, bool conv)
{
    t->log_ratio[0] += log(m[0].ready / m[1].ready);
    t->log_ratio[1] += log(m[0].first / m[1].first);
    t->log_ratio[2] += log(m[0].median / m[1].median);
    t->log_ratio[3] += log(m[0].peak / m[1].peak);
    t->count++;
    t->ready_ahead += m[0].ready < m[1].ready;
    t->conv += conv;
    t->conv_within += conv && m[0].median <= 2 * m[1].median;
}

static void print_tally(const char *what, int threads, const tally *t)
{
    if (t->count == 0)
        return;
    double g[4];
    for (int k = 0; k < 4; k++)
        g[k] = exp(t->log_ratio[k] / t->count);
    printf("%s, %d threads: %d models, geometric means: session ready %.2f, first run %.2f, "
           "median %.2f, peak memory %.2f; ahead in session ready on %d",
           what, threads, t->count, g[0], g[1], g[2], g[3], t->ready_ahead);
    if (t->conv)
        printf("; within 2x of the median on %d of %d convolutional models", t->conv_within,
               t->conv);
    printf("\n");
}

static void bench_folder(const settings *set, const char *dir, int threads, tally *floats,
                         tally *others, int *different)
{
    static char **names; /* of the folder at hand */
    int count = harness_list_folders(dir, &names);
    if (count < 0)
        printf("%s: no such folder, skipped\n", dir);
    for (int i = 0; i < count; i++) {
        char folder[PATH_MAX], model[PATH_MAX], message[600] = "";
        measure m[2] = {{.ready = 0}, {.ready = 0}};
        if (set->only && fnmatch(set->only, names[i], 0) != 0)
            continue;
        snprintf(folder, sizeof folder, "%s/%s", dir, names[i]);
        snprintf(model, sizeof model, "%s/model.onnx", folder);
        if (!measure_model(set, folder, threads, m, message, sizeof message)) {
            printf("%-37s %d not compared: %s\n", names[i], threads, message);
            *different += m[0].differs;
            continue;
        }
        print_row(names[i], threads, m);
        bool is_plain = is_float(names[i]);
        add(is_plain ? floats : others, m, is_plain && has_conv(model));
    }
}

static bool parse_threads(settings *set, char *list)
{
    set->thread_count = 0;
    for (char *part; (part = strsep(&list, ","));) {
        if (atoi(part) <= 0 || set->thread_count == 8)
            return false;
        set->threads[set->thread_count++] = atoi(part);
    }
    return set->thread_count > 0;
}

static bool parse(int argc, char **argv, settings *set)
{
    static const struct option options[] = {
        {"only", required_argument, NULL, 'o'},   {"threads", required_argument, NULL, 't'},
        {"rounds", required_argument, NULL, 'r'}, {"launches", required_argument, NULL, 'l'},
        {"peer", required_argument, NULL, 'p'},   {"scratch", required_argument, NULL, 's'},
        {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'o': set->only = optarg; break;
        case 't':
            if (!parse_threads(set, optarg))
                return false;
            break;
        case 'r': set->rounds = atoi(optarg); break;
        case 'l': set->launches = atoi(optarg); break;
        case 'p': set->peer = optarg; break;
        case 's': set->scratch = optarg; break;
        default: return false;
        }
    }
    return optind < argc && set->rounds > 0 && set->launches > 0 && set->launches <= MAX_LAUNCHES;
}

int main(int argc, char **argv)
{
    settings set = {.program = "/proc/self/exe", .scratch = "build",
                    .peer = "build/venv/lib/python3.11/site-packages/onnxruntime/capi/"
                            "libonnxruntime.so.1.31.1",
                    .threads = {1, 2}, .thread_count = 2, .rounds = 3, .launches = 5};
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    if (argc == 7 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argv);
    if (!parse(argc, argv, &set)) {
        fprintf(stderr, "usage: bench [--only GLOB] [--threads 1,2] [--rounds N] [--launches N] "
                        "[--peer LIB.so] [--scratch DIR] DIR...\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    print_machine(&set);
    int different = 0;
    for (int t = 0; t < set.thread_count; t++) {
        tally floats = {0}, others = {0};
        printf("%-37s %s %23s %23s %25s %21s\n", "model", "T", "session ready ms", "first run ms",
               "median ms", "peak MB");
        for (int d = optind; d < argc; d++)
            bench_folder(&set, argv[d], set.threads[t], &floats, &others, &different);
        print_tally("float", set.threads[t], &floats);
        print_tally("integer and half precision", set.threads[t], &others);
        printf("\n");
    }
    if (different)
        printf("%d rows have different outputs\n", different);
    return different != 0;
}

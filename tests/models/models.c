/* models.c - runs every model of a folder against the expected tensors beside it.
 *
 * usage: models [--only GLOB] [--isa NAME] [--level N] [--quick | --parity] DIR
 *
 * DIR/NAME holds model.onnx, meta.json (rtol, atol) and test_data_set_N. Each model runs in its own
 * child process, so that peak memory is its own and a crash ends only that model. The figures of
 * the table come from the environment's default tier and threads; then every set runs again on each
 * kernel tier of this machine with 1, 2, 3 and 8 threads (--quick: not), where the values must stay
 * within the tolerance and the bits of a tier must not depend on the number of threads.
 *
 * Values recorded on a processor whose byte kernels saturate are wrong beyond any tolerance. Where
 * tests/models/exact has values with exact sums (tests/tools/exact_int8.py proves the one and
 * computes the other), those count instead, at a tolerance of 1e-5, and the row says so.
 *
 * --parity: the folders of tests/tools/make_parity.py. Each set runs once, without figures of time;
 * a row of refused.txt, which onnxruntime's tools could not make, is listed with their message and
 * counts as skipped, and the sums of every kind follow the rows.
 */
#include <fnmatch.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "../harness.h"
#include "../unit/workers.h"
#include "parity.h"

enum { MAX_SETS = 8, MIN_RUNS = 7, MAX_RUNS = 200, CHILD_SECONDS = 600 };
static const int thread_counts[] = {1, 2, 3, 8};

typedef struct settings {
    const char *dir, *only, *isa;
    int level;
    bool quick, parity;
} settings;

typedef struct result { /* what a child sends through its pipe */
    bool passed, exact; /* exact: compared with values of tests/models/exact */
    bool moved;         /* agreement took parity_allow */
    double load_ms, first_ms, median_ms, peak_mb;
    harness_worst worst;
    char message[1500];
} result;

typedef struct test_set {
    harness_values given, expected;
    ort_value *inputs[HARNESS_VALUES];
} test_set;

typedef struct subject { /* one model with its data, in the child */
    char path[PATH_MAX];
    const char *name;
    harness_meta meta;
    test_set sets[MAX_SETS];
    int set_count, level;
} subject;

typedef struct bench {
    ort_env *env;
    ort_session *session;
} bench;

static void close_bench(bench *b)
{
    ort_session_free(b->session);
    ort_env_free(b->env);
    *b = (bench){0};
}

static ort_status open_bench(const subject *s, const char *isa, int threads, bench *b,
                             ort_error *err)
{
    ort_env_options options;
    ort_session_options session_options;
    ort_env_options_init(&options);
    ort_session_options_init(&session_options);
    options.isa = isa;
    options.threads = threads;
    options.own_threads = &workers_at_once;
    session_options.level = s->level;
    *b = (bench){0};
    ort_status status = ort_env_new(&options, &b->env, err);
    if (status == ORT_OK)
        status = ort_session_load(b->env, s->path, &session_options, &b->session, err);
    if (status != ORT_OK)
        close_bench(b);
    return status;
}

static ort_status load_sets(subject *s, const char *folder, const ort_session *session,
                            ort_error *err)
{
    for (s->set_count = 0; s->set_count < MAX_SETS; s->set_count++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/test_data_set_%d", folder, s->set_count);
        if (access(path, F_OK) != 0)
            break;
        test_set *set = &s->sets[s->set_count];
        ort_status status = harness_load_values(path, "input", &set->given, err);
        if (status == ORT_OK)
            status = harness_load_values(path, "output", &set->expected, err);
        if (status == ORT_OK)
            status = harness_bind(session, &set->given, set->inputs, err);
        if (status != ORT_OK)
            return status;
    }
    if (s->set_count == 0)
        return HARNESS_FAIL(err, ORT_ERROR_DATA, "no test_data_set_0");
    return ORT_OK;
}

/* Runs one set and compares; *digest (may be NULL) takes the bits of all outputs into account. */
static ort_status run_set(const subject *s, int index, const ort_session *session,
                          uint64_t *digest, harness_worst *worst,
                          ort_error *err)
{
    ort_value *outputs[HARNESS_VALUES] = {NULL};
    ort_status status = run_whole(session, s->sets[index].inputs, outputs, NULL, err);
    if (status == ORT_OK)
        status = harness_check(session, outputs, &s->sets[index].expected, &s->meta, worst, err);
    for (size_t k = 0; status == ORT_OK && digest && k < ort_session_output_count(session); k++)
        *digest = *digest * 0x9e3779b97f4a7c15u + ort_value_digest(outputs[k]);
    harness_free_outputs(outputs, HARNESS_VALUES);
    return status;
}

/* Replace the expected values of a set by those with exact sums, where there are any. */
static bool take_exact(subject *s, int index)
{
    char path[PATH_MAX];
    harness_values exact;
    ort_error err = {0};
    snprintf(path, sizeof path, "tests/models/exact/%s/test_data_set_%d", s->name, index);
    if (access(path, F_OK) != 0 || harness_load_values(path, "output", &exact, &err))
        return false;
    harness_values_free(&s->sets[index].expected);
    s->sets[index].expected = exact;
    s->meta.rtol = s->meta.atol = 1e-5;
    return true;
}

static ort_status time_runs(const subject *s, const ort_session *session, double *median,
                            ort_error *err)
{
    double samples[MAX_RUNS], begin = harness_now_ms();
    size_t count = 0;
    while (count < MIN_RUNS || (count < MAX_RUNS && harness_now_ms() - begin < 300)) {
        ort_value *outputs[HARNESS_VALUES] = {NULL};
        double start = harness_now_ms();
        ort_status status = run_whole(session, s->sets[0].inputs, outputs, NULL, err);
        samples[count++] = harness_now_ms() - start;
        harness_free_outputs(outputs, HARNESS_VALUES);
        if (status != ORT_OK)
            return status;
    }
    *median = harness_median(samples, count);
    return ORT_OK;
}

static ort_status measure(subject *s, const char *folder, const settings *set, result *r,
                          ort_error *err)
{
    bench b;
    double begin = harness_now_ms();
    ort_status status = open_bench(s, set->isa, 0, &b, err);
    r->load_ms = harness_now_ms() - begin;
    if (status == ORT_OK)
        status = load_sets(s, folder, b.session, err);
    if (status == ORT_OK && !set->parity) {
        ort_value *outputs[HARNESS_VALUES] = {NULL};
        begin = harness_now_ms();
        status = run_whole(b.session, s->sets[0].inputs, outputs, NULL, err);
        r->first_ms = harness_now_ms() - begin;
        harness_free_outputs(outputs, HARNESS_VALUES);
    }
    for (int i = 0; status == ORT_OK && i < s->set_count; i++) {
        status = run_set(s, i, b.session, NULL, &r->worst, err);
        if (status == ORT_ERROR_GATE && take_exact(s, i)) {
            r->exact = true;
            r->worst = (harness_worst){0};
            status = run_set(s, i, b.session, NULL, &r->worst, err);
        }
        if (status == ORT_ERROR_GATE && set->parity && !r->moved && parity_allow(&s->meta)) {
            r->moved = true;
            status = run_set(s, i, b.session, NULL, NULL, err);
        }
    }
    if (status == ORT_OK && !set->parity)
        status = time_runs(s, b.session, &r->median_ms, err);
    r->peak_mb = (double)ort_peak_rss_bytes() / 1e6;
    close_bench(&b);
    return status;
}

/* Every set on one tier with each number of threads. */
static ort_status check_tier(const subject *s, const char *isa, harness_worst *worst,
                             ort_error *err)
{
    uint64_t first_digest = 0;
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
        bench b;
        uint64_t digest = 0;
        ort_error inner = {0};
        ort_status status = open_bench(s, isa, thread_counts[t], &b, &inner);
        for (int i = 0; status == ORT_OK && i < s->set_count; i++)
            status = run_set(s, i, b.session, &digest, worst, &inner);
        close_bench(&b);
        if (status != ORT_OK)
            return HARNESS_FAIL(err, status, "%s, %d threads: %.1800s", isa, thread_counts[t],
                                inner.message);
        if (t == 0)
            first_digest = digest;
        else if (digest != first_digest)
            return HARNESS_FAIL(err, ORT_ERROR_GATE,
                                "%s: the bits with %d threads differ from those with 1", isa,
                                thread_counts[t]);
    }
    return ORT_OK;
}

static void run_model(const settings *set, const char *name, result *r)
{
    static subject s; /* large; the child runs one model */
    ort_error err = {0};
    char folder[PATH_MAX];
    const char *tiers[16];
    int tier_count = set->quick ? 0 : ort_isa_list(tiers, 16);
    snprintf(folder, sizeof folder, "%s/%s", set->dir, name);
    snprintf(s.path, sizeof s.path, "%s/model.onnx", folder);
    s.name = name;
    s.level = set->level;
    ort_status status = ORT_OK;
    if (!harness_read_meta(folder, &s.meta))
        status = HARNESS_FAIL(&err, ORT_ERROR_DATA, "%s/meta.json is missing or not JSON", folder);
    if (status == ORT_OK)
        status = measure(&s, folder, set, r, &err);
    for (int i = 0; status == ORT_OK && i < tier_count; i++)
        if (!set->isa || !strcmp(set->isa, tiers[i]))
            status = check_tier(&s, tiers[i], &r->worst, &err);
    for (int i = 0; i < s.set_count; i++) {
        harness_values_free(&s.sets[i].given);
        harness_values_free(&s.sets[i].expected);
    }
    r->passed = status == ORT_OK;
    snprintf(r->message, sizeof r->message, "%.1400s", status != ORT_OK ? err.message : "");
    harness_first_line(r->message);
}

static void run_child_process(const settings *set, const char *name, result *r)
{
    int fds[2], status = 0;
    *r = (result){0};
    if (pipe(fds) != 0) {
        perror("models: pipe");
        exit(2);
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        run_model(set, name, r);
        exit(write(fds[1], r, sizeof *r) == (ssize_t)sizeof *r ? 0 : 2);
    }
    close(fds[1]);
    struct pollfd wait_for = {.fd = fds[0], .events = POLLIN};
    bool late = poll(&wait_for, 1, CHILD_SECONDS * 1000) == 0;
    if (late && pid > 0)
        kill(pid, SIGKILL);
    bool whole = !late && read(fds[0], r, sizeof *r) == (ssize_t)sizeof *r;
    close(fds[0]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    if (late)
        snprintf(r->message, sizeof r->message, "took longer than %d s", CHILD_SECONDS);
    else if (WIFSIGNALED(status))
        snprintf(r->message, sizeof r->message, "crashed: %s", strsignal(WTERMSIG(status)));
    else if (!whole || WEXITSTATUS(status) != 0)
        snprintf(r->message, sizeof r->message, "the child ended with status %d",
                 WEXITSTATUS(status));
    if (late || !whole || status != 0)
        r->passed = false;
}

static int without_models(const char *dir)
{
    bool strict = getenv("CI") && !strcmp(getenv("CI"), "true");
    printf("models: %s: no such folder%s\n", dir,
           strict ? ", and with CI=true that is a failure" : ", skipped");
    printf("0 passed, %d failed, %d skipped\n", strict, !strict);
    return strict;
}

static bool parse(int argc, char **argv, settings *set)
{
    static const struct option options[] = {{"only", required_argument, NULL, 'o'},
                                            {"isa", required_argument, NULL, 'i'},
                                            {"level", required_argument, NULL, 'l'},
                                            {"quick", no_argument, NULL, 'q'},
                                            {"parity", no_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'o': set->only = optarg; break;
        case 'i': set->isa = optarg; break;
        case 'l': set->level = atoi(optarg); break;
        case 'q': set->quick = true; break;
        case 'p': set->parity = set->quick = true; break;
        default: return false;
        }
    }
    set->dir = optind + 1 == argc ? argv[optind] : NULL;
    return set->dir != NULL;
}

static void print_head(const settings *set)
{
    const char *tiers[16];
    int tier_count = ort_isa_list(tiers, 16);
    printf("tiers:");
    for (int i = 0; i < tier_count; i++)
        printf(" %s", tiers[i]);
    printf("%s\n", set->quick ? " (not tried: the default alone)"
                              : "; threads: 1 2 3 8, bits compared");
    if (set->parity)
        parity_print_head();
    else
        printf("%-38s %5s %9s %9s %9s %8s %9s\n", "model", "nodes", "load ms", "first ms",
               "median ms", "peak MB", "worst err");
}

/* Run one folder, print its row, and count it in `counts`. */
static void run_row(const settings *set, const char *name, parity_counts *counts,
                    parity_table *table)
{
    harness_meta meta;
    result r = {0};
    char folder[PATH_MAX], refusal[400];
    snprintf(folder, sizeof folder, "%s/%s", set->dir, name);
    harness_read_meta(folder, &meta);
    bool refused = set->parity && parity_refused(folder, refusal, sizeof refusal);
    if (!refused)
        run_child_process(set, name, &r);
    parity_count(counts, refused, r.passed, r.moved, &r.worst);
    if (set->parity) {
        parity_count(parity_kind(table, meta.kind), refused, r.passed, r.moved, &r.worst);
        parity_print_row(name, &meta, refused ? refusal : NULL, &r.worst,
                         r.passed ? NULL : r.message, r.moved);
        return;
    }
    printf("%-38s %5d %9.2f %9.2f %9.3f %8.1f %9.2g %s%s\n", name, meta.nodes, r.load_ms,
           r.first_ms, r.median_ms, r.peak_mb, r.worst.abs,
           !r.passed ? "FAILED: "
           : r.exact ? "ok (exact sums: the values beside the model are of a saturating kernel)"
                     : "ok",
           r.message);
}

int main(int argc, char **argv)
{
    settings set = {.level = -1, .isa = getenv("ORT_ISA")};
    static char **names; /* lives as long as the process */
    static parity_table table;
    parity_counts all = {0};
    if (!parse(argc, argv, &set)) {
        fprintf(stderr, "usage: models [--only GLOB] [--isa NAME] [--level N] [--quick | --parity] "
                        "DIR\n");
        return 2;
    }
    int count = harness_list_folders(set.dir, &names);
    if (count < 0)
        return without_models(set.dir);
    print_head(&set);
    for (int i = 0; i < count; i++)
        if (!set.only || fnmatch(set.only, names[i], 0) == 0)
            run_row(&set, names[i], &all, &table);
    if (set.parity)
        parity_print_kinds(&table);
    printf("%d passed, %d failed, %d skipped\n", all.passed, all.failed, all.refused);
    return all.failed != 0;
}

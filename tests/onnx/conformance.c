/* conformance.c - runs ONNX's backend tests (folders made by tests/tools/make_conformance.py).
 *
 * usage: conformance [options] DIR
 *   --filter GLOB      only tests whose name matches
 *   --list-failures    a line per failed test: name and message
 *   --print-ignore     a line per failed test in the form of the ignore list
 *   --ignore FILE      tests that are not expected to pass (default tests/onnx/ignore.txt)
 *   --isa NAME         kernel tier (or ORT_ISA); "all": every one that the machine has, in turn
 *   --threads N        threads (default 1)
 *   --optimize LEVEL   rewrite each model for a file first (ort_model_optimize), run it at level 0
 *   --contrib          that file may hold com.microsoft operators
 *   --opset N[,M]      convert each model to this opset instead (and then to opset M); one that is
 *                      blocked is skipped, --list-failures prints the reasons
 *   --written DIR      where those files go (must exist); needed with --optimize and --opset
 *   --provider LIST    run with these providers at level 0, and print lines for each operator:
 *                      "first DOMAIN OP R of N, A": in R of its N tests a node of it was the first
 *                      provider's, in A any node; "type DOMAIN OP TYPE R": in R of them one whose
 *                      first operand has this element type
 *   --provider-lib LIB one that isn't built in
 *   --operators LIST   only tests of these, with commas
 *   --of-largest X     floats may differ by this share of the largest of their output
 *   --timeout SECONDS  for one test (default 60)
 *
 * Tests run in a child process that reports one fixed-size record per test through a pipe; when the
 * child dies or a test takes too long, that test has failed and a new child goes on behind it. A
 * line of the ignore list is "test_name  reason"; its test counts as skipped, and as a failure when
 * it passes, or when no such test exists.
 */
#include <fnmatch.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "../harness.h"
#include "../unit/workers.h"

typedef enum outcome { PASSED, FAILED, UNSUPPORTED, SKIPPED, BLOCKED, OUTCOMES } outcome;

enum { LINE_BYTES = 900 };

typedef struct record { /* smaller than PIPE_BUF, so that a write is whole */
    int index;
    outcome outcome;
    /* With --provider: the first of them had a node; one of the test's operator, whose first
     * operand is of this element type. */
    bool any, placed;
    char type[16];
    char message[1000];
} record;

typedef struct test_case {
    const char *name;
    harness_meta meta;
    bool selected, ignored, any, placed;
    char type[16];
    outcome outcome;
    char *message;
} test_case;

typedef struct settings {
    const char *dir, *filter, *isa, *ignore;
    const char *written, *opset, *provider, *provider_lib, *operators;
    int threads, timeout, optimize; /* optimize 0 and opset NULL: sessions as they are */
    bool list_failures, print_ignore, contrib;
    double of_largest;
} settings;

/* ------------------------------------------------------------------------------ one test -- */

static ort_status run_set(ort_session *session, const char *folder, const harness_meta *meta,
                          ort_error *err)
{
    harness_values given, expected = {0};
    ort_value *inputs[HARNESS_VALUES], *outputs[HARNESS_VALUES] = {NULL};
    ort_status status = harness_load_values(folder, "input", &given, err);
    if (status == ORT_OK)
        status = harness_load_values(folder, "output", &expected, err);
    if (status == ORT_OK)
        status = harness_bind(session, &given, inputs, err);
    if (status == ORT_OK)
        status = run_whole(session, inputs, outputs, &meta->how, err);
    if (status == ORT_OK)
        status = harness_check(session, outputs, &expected, meta, NULL, err);
    harness_free_outputs(outputs, HARNESS_VALUES);
    harness_values_free(&given);
    harness_values_free(&expected);
    return status;
}

static ort_status rewrite(ort_env *env, const settings *set, ort_model *model, bool *blocked,
                          ort_error *err)
{
    ort_optimize_options options;
    ort_findings *blockers = NULL;
    ort_optimize_options_init(&options);
    options.level = set->optimize;
    options.contrib = set->contrib;
    if (!set->opset)
        return ort_model_optimize(env, model, &options, err);
    const char *then = strchr(set->opset, ',');
    ort_status status = ort_model_set_opset(env, model, atoi(set->opset), false, &blockers, NULL,
                                            err);
    *blocked = ort_findings_count(blockers) > 0;
    ort_findings_free(blockers);
    if (status == ORT_OK && then)
        status = ort_model_set_opset(env, model, atoi(then + 1), false, NULL, NULL, err);
    return status;
}

/* The model as ort-optimize writes it. */
static ort_status load_written(ort_env *env, const settings *set, const char *name,
                               const char *path, ort_session **session, bool *blocked,
                               ort_error *err)
{
    char written[PATH_MAX];
    ort_model *model = NULL;
    ort_session_options plain;
    ort_session_options_init(&plain);
    plain.level = 0;
    snprintf(written, sizeof written, "%s/%s.onnx", set->written, name);
    ort_status status = ort_model_load(env, path, NULL, &model, err);
    if (status == ORT_OK)
        status = rewrite(env, set, model, blocked, err);
    if (status == ORT_OK)
        status = ort_model_save(model, written, NULL, err);
    ort_model_free(model);
    return status != ORT_OK ? status : ort_session_load(env, written, &plain, session, err);
}

static const char *text_of(json_object *object, const char *key)
{
    const char *text = json_object_get_string(json_object_object_get(object, key));
    return text ? text : "";
}

/* Which nodes the provider runs. */
static void find_placed(const char *report, const char *provider, const char *op, record *r)
{
    json_object *whole = json_tokener_parse(report), *nodes = NULL;
    json_object_object_get_ex(whole, "nodes", &nodes);
    for (size_t i = 0; nodes && i < json_object_array_length(nodes); i++) {
        json_object *node = json_object_array_get_idx(nodes, i);
        if (strcmp(provider, text_of(node, "provider")) ||
            !json_object_get_boolean(json_object_object_get(node, "computed_by_runs")))
            continue;
        r->any = true;
        if (r->placed || strcmp(op, text_of(node, "op_type")))
            continue;
        r->placed = true;
        snprintf(r->type, sizeof r->type, "%s", text_of(node, "element_type"));
    }
    json_object_put(whole);
}

/* A session of the listed providers, and what the first of them runs of it. */
static ort_status load_provided(ort_env *env, const settings *how, const test_case *test,
                                const char *path, ort_session **session, record *r,
                                ort_error *err)
{
    char first[40];
    char *report = NULL;
    ort_model *model = NULL;
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = 0;
    options.providers = how->provider;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(how->provider, ":,"), how->provider);
    ort_status status = ort_session_load(env, path, &options, session, err);
    if (status == ORT_OK)
        status = ort_model_load(env, path, NULL, &model, err);
    if (status == ORT_OK)
        status = ort_partition_report(env, model, &options, &report, err);
    if (status == ORT_OK)
        find_placed(report, first, test->meta.op, r);
    free(report);
    ort_model_free(model);
    return status;
}

/* A device that failed leaves the session to the host, whose results are right: that is a failure
 * here. Keeps the first such line of the log. */
static void note_failure(void *arg, ort_log_level level, const char *message)
{
    char *kept = arg;
    if (level <= ORT_LOG_WARNING && !*kept && strstr(message, "goes on on"))
        snprintf(kept, LINE_BYTES, "%s", message);
}

static ort_status run_test(ort_env *env, const settings *how, const test_case *test, record *r,
                           bool *blocked, ort_error *err)
{
    char path[PATH_MAX];
    ort_session *session = NULL;
    snprintf(path, sizeof path, "%s/%s/model.onnx", how->dir, test->name);
    ort_status status =
        how->provider  ? load_provided(env, how, test, path, &session, r, err)
        : how->written ? load_written(env, how, test->name, path, &session, blocked, err)
                       : ort_session_load(env, path, NULL, &session, err);
    for (int set = 0; status == ORT_OK; set++) {
        snprintf(path, sizeof path, "%s/%s/test_data_set_%d", how->dir, test->name, set);
        if (access(path, F_OK) != 0)
            break;
        status = run_set(session, path, &test->meta, err);
    }
    ort_session_free(session);
    return status;
}

static void run_child(const settings *set, const test_case *tests, int count, int first, int fd)
{
    ort_error err = {0};
    ort_env *env = NULL;
    char left[LINE_BYTES];
    ort_env_options options;
    ort_env_options_init(&options);
    options.threads = set->threads;
    options.own_threads = &workers_at_once;
    options.isa = set->isa;
    options.log = note_failure;
    options.log_arg = left;
    options.log_level = ORT_LOG_WARNING;
    if (ort_env_new(&options, &env, &err) ||
        (set->provider_lib && ort_env_add_provider_library(env, set->provider_lib, &err))) {
        fprintf(stderr, "conformance: %s\n", err.message);
        _exit(2);
    }
    for (int i = first; i < count; i++) {
        if (!tests[i].selected)
            continue;
        record r = {.index = i};
        err = (ort_error){0};
        bool blocked = false;
        left[0] = '\0';
        ort_status status = run_test(env, set, &tests[i], &r, &blocked, &err);
        if (status == ORT_OK && *left) {
            status = ORT_ERROR_DEVICE;
            snprintf(err.message, sizeof err.message, "%s", left);
        }
        r.outcome = status == ORT_OK                            ? PASSED
                    : blocked                          ? BLOCKED
                    : status == ORT_ERROR_UNSUPPORTED ? UNSUPPORTED
                                                                : FAILED;
        snprintf(r.message, sizeof r.message, "%.900s", status != ORT_OK ? err.message : "");
        harness_first_line(r.message);
        if (write(fd, &r, sizeof r) != (ssize_t)sizeof r)
            _exit(2);
    }
    ort_env_free(env);
    exit(0);
}

/* ---------------------------------------------------------------------------- the parent -- */

static void take(test_case *test, outcome result, const char *message)
{
    bool stranger = test->ignored && result == PASSED;
    test->outcome = stranger ? FAILED : test->ignored ? SKIPPED : result;
    test->message =
        strdup(stranger ? "passes, but stands on the ignore list: remove its line" : message);
}

static int next_selected(const test_case *tests, int count, int i)
{
    while (i < count && !tests[i].selected)
        i++;
    return i;
}

/* Runs the tests from `first` on in one child; returns the index at which the next must start. */
static int run_batch(const settings *set, test_case *tests, int count, int first)
{
    int fds[2];
    if (pipe(fds) != 0) {
        perror("conformance: pipe");
        exit(2);
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        run_child(set, tests, count, first, fds[1]);
    }
    close(fds[1]);
    int current = first, last = first;
    bool late = false;
    while (pid > 0 && current < count) {
        struct pollfd wait_for = {.fd = fds[0], .events = POLLIN};
        int ready = poll(&wait_for, 1, set->timeout * 1000);
        if (ready < 0 && errno == EINTR)
            continue;
        late = ready == 0;
        record r;
        if (ready <= 0 || read(fds[0], &r, sizeof r) != (ssize_t)sizeof r)
            break;
        take(&tests[r.index], r.outcome, r.message);
        tests[r.index].any = r.any;
        tests[r.index].placed = r.placed;
        memcpy(tests[r.index].type, r.type, sizeof r.type);
        last = r.index;
        current = next_selected(tests, count, r.index + 1);
    }
    close(fds[0]);
    int status = 0;
    if (pid > 0) {
        if (late)
            kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        exit(2);
    if (current < count) {
        char message[100];
        if (late)
            snprintf(message, sizeof message, "took longer than %d s", set->timeout);
        else if (WIFSIGNALED(status))
            snprintf(message, sizeof message, "crashed: %s", strsignal(WTERMSIG(status)));
        else
            snprintf(message, sizeof message, "ended with status %d", WEXITSTATUS(status));
        take(&tests[current], FAILED, message);
        current = next_selected(tests, count, current + 1);
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        /* All tests have answered: what a sanitizer found on the way out counts for the last. */
        printf("the tests ended with status %d: leaks?\n", WEXITSTATUS(status));
        tests[last].outcome = FAILED;
        tests[last].message = strdup("the process did not end well after it");
    }
    return current;
}

static int by_name(const void *key, const void *element)
{
    return strcmp(key, ((const test_case *)element)->name);
}

/* Returns the number of lines that name no test. */
static int read_ignore(const char *path, test_case *tests, int count)
{
    FILE *file = fopen(path, "r");
    char line[2000], name[500];
    int strangers = 0;
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#' || sscanf(line, "%499s", name) != 1)
            continue;
        test_case *test = bsearch(name, tests, (size_t)count, sizeof *tests, by_name);
        if (test)
            test->ignored = true;
        else if (++strangers)
            printf("%s: no test is called '%s': remove its line\n", path, name);
    }
    fclose(file);
    return strangers;
}

/* ------------------------------------------------------------------------------- reports -- */

typedef struct tally {
    int of[OUTCOMES];
} tally;

static int total(const tally *t)
{
    return t->of[PASSED] + t->of[FAILED] + t->of[UNSUPPORTED] + t->of[SKIPPED] + t->of[BLOCKED];
}

static int by_folder(const void *a, const void *b)
{
    const test_case *x = *(test_case *const *)a, *y = *(test_case *const *)b;
    return strcmp(x->meta.folder, y->meta.folder);
}

/* One line over the folders of the package: "tier avx2: 1884 of 1884 in node, ...". */
static void print_folders(const char *tier, test_case **order, int count)
{
    printf("tier %s:", tier);
    qsort(order, (size_t)count, sizeof *order, by_folder);
    for (int i = 0; i < count;) {
        tally t = {{0}};
        int j = i;
        for (; j < count && by_folder(&order[i], &order[j]) == 0; j++)
            t.of[order[j]->outcome]++;
        printf("%s %d of %d%s%s", i ? "," : "", t.of[PASSED], total(&t),
               *order[i]->meta.folder ? " in " : "", order[i]->meta.folder);
        i = j;
    }
    printf("\n");
}

static int by_operator(const void *a, const void *b)
{
    const test_case *x = *(test_case *const *)a, *y = *(test_case *const *)b;
    int order = strcmp(x->meta.domain, y->meta.domain);
    return order ? order : strcmp(x->meta.op, y->meta.op);
}

static void print_table(test_case **order, int count)
{
    printf("%-34s %7s %7s %12s %8s\n", "operator", "passed", "failed", "unsupported", "skipped");
    for (int i = 0; i < count;) {
        tally t = {{0}};
        int j = i;
        for (; j < count && by_operator(&order[i], &order[j]) == 0; j++)
            t.of[order[j]->outcome]++;
        bool plain = !strcmp(order[i]->meta.domain, "ai.onnx");
        char name[140];
        snprintf(name, sizeof name, "%s%s%s", plain ? "" : order[i]->meta.domain,
                 plain ? "" : ".", order[i]->meta.op);
        printf("%-34s %7d %7d %12d %8d\n", name, t.of[PASSED], t.of[FAILED], t.of[UNSUPPORTED],
               t.of[SKIPPED]);
        i = j;
    }
}

static int by_type(const void *a, const void *b)
{
    return strcmp((*(test_case *const *)a)->type, (*(test_case *const *)b)->type);
}

/* Of the tests of one operator, by element type: how often a node of it was the first
 * provider's. */
static void print_types(test_case **order, int count)
{
    qsort(order, (size_t)count, sizeof *order, by_type);
    for (int i = 0, j; i < count; i = j) {
        for (j = i; j < count && by_type(&order[i], &order[j]) == 0; j++)
            ;
        if (order[i]->placed)
            printf("type %s %s %s %d\n", order[i]->meta.domain, order[i]->meta.op, order[i]->type,
                   j - i);
    }
}

/* For each operator: in how many of its tests the first provider had a node of it, or any. */
static void print_placed(test_case **order, int count)
{
    for (int i = 0; i < count;) {
        int j = i, placed = 0, any = 0;
        for (; j < count && by_operator(&order[i], &order[j]) == 0; j++) {
            placed += order[j]->placed;
            any += order[j]->any;
        }
        printf("first %s %s %d of %d, %d\n", order[i]->meta.domain, order[i]->meta.op, placed,
               j - i, any);
        print_types(order + i, j - i);
        i = j;
    }
}

static bool parse(int argc, char **argv, settings *set)
{
    static const struct option options[] = {
        {"filter", required_argument, NULL, 'f'},  {"list-failures", no_argument, NULL, 'l'},
        {"print-ignore", no_argument, NULL, 'p'},  {"ignore", required_argument, NULL, 'g'},
        {"isa", required_argument, NULL, 'i'},     {"threads", required_argument, NULL, 't'},
        {"timeout", required_argument, NULL, 'o'}, {"optimize", required_argument, NULL, 'O'},
        {"written", required_argument, NULL, 'w'}, {"opset", required_argument, NULL, 'N'},
        {"contrib", no_argument, NULL, 'c'},       {"provider", required_argument, NULL, 'P'},
        {"operators", required_argument, NULL, 'o' + 256},
        {"provider-lib", required_argument, NULL, 'p' + 256},
        {"of-largest", required_argument, NULL, 'l' + 256},
        {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'f': set->filter = optarg; break;
        case 'l': set->list_failures = true; break;
        case 'p': set->print_ignore = true; break;
        case 'g': set->ignore = optarg; break;
        case 'i': set->isa = optarg; break;
        case 't': set->threads = atoi(optarg); break;
        case 'o': set->timeout = atoi(optarg); break;
        case 'O': set->optimize = atoi(optarg); break;
        case 'w': set->written = optarg; break;
        case 'N': set->opset = optarg; break;
        case 'c': set->contrib = true; break;
        case 'P': set->provider = optarg; break;
        case 'p' + 256: set->provider_lib = optarg; break;
        case 'o' + 256: set->operators = optarg; break;
        case 'l' + 256: set->of_largest = atof(optarg); break;
        default: return false;
        }
    }
    set->dir = optind + 1 == argc ? argv[optind] : NULL;
    return set->dir != NULL && (!set->optimize && !set->opset) == !set->written;
}

static void print_details(const settings *set, const test_case *test)
{
    if (test->outcome != FAILED && test->outcome != UNSUPPORTED && test->outcome != BLOCKED)
        return;
    if (set->print_ignore)
        printf("%s  %s\n", test->name, test->message);
    else if (set->list_failures)
        printf("%s %s: %s\n",
               test->outcome == FAILED    ? "FAIL"
               : test->outcome == BLOCKED ? "BLOCKED"
                                          : "UNSUPPORTED",
               test->name, test->message);
}

/* All selected tests on one tier; their outcomes go to `sum`. The table only when asked for. */
static void run_tier(const settings *set, bool table, test_case *tests, int count,
                     test_case **order, int selected, tally *sum)
{
    for (int i = 0; i < count; i++) {
        free(tests[i].message);
        tests[i].message = NULL;
    }
    for (int i = next_selected(tests, count, 0); i < count;)
        i = run_batch(set, tests, count, i);
    for (int i = 0; i < selected; i++) {
        print_details(set, order[i]);
        sum->of[order[i]->outcome]++;
    }
    if (set->print_ignore)
        return;
    qsort(order, (size_t)selected, sizeof *order, by_operator);
    if (set->provider)
        print_placed(order, selected);
    else if (table)
        print_table(order, selected);
    print_folders(set->isa ? set->isa : "best", order, selected);
}

static void run_tiers(settings *set, test_case *tests, int count, test_case **order, int selected,
                      tally *sum)
{
    const char *names[16];
    int tiers = ort_isa_list(names, 16);
    bool all = set->isa && !strcmp(set->isa, "all");
    for (int i = 0; i < (all ? tiers : 1); i++) {
        if (all)
            set->isa = names[i];
        run_tier(set, i == 0, tests, count, order, selected, sum);
    }
}

static bool lists(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    return false;
}

/* The folders of set->dir as tests. False after a message when there are none or one is damaged. */
static bool list_tests(const settings *set, test_case **tests, int *count)
{
    static char **names; /* static: the lists live as long as the process */
    *count = harness_list_folders(set->dir, &names);
    *tests = *count > 0 ? calloc((size_t)*count, sizeof **tests) : NULL;
    if (!*tests) {
        fprintf(stderr, "conformance: %s holds no tests\n", set->dir);
        return false;
    }
    for (int i = 0; i < *count; i++) {
        test_case *t = &(*tests)[i];
        char path[PATH_MAX];
        t->name = names[i];
        t->selected = !set->filter || fnmatch(set->filter, names[i], 0) == 0;
        snprintf(path, sizeof path, "%s/%s", set->dir, names[i]);
        if (t->selected && !harness_read_meta(path, &t->meta)) {
            fprintf(stderr, "conformance: %s has no meta.json\n", path);
            return false;
        }
        t->selected = t->selected && (!set->operators || lists(set->operators, t->meta.op));
        t->meta.bfloat16_rtol = 1.0 / 64; /* as in onnx's own test runner: two last places */
        t->meta.of_largest = set->of_largest;
    }
    return true;
}

int main(int argc, char **argv)
{
    settings set = {.ignore = "tests/onnx/ignore.txt", .isa = getenv("ORT_ISA"), .threads = 1,
                    .timeout = 60};
    if (!parse(argc, argv, &set)) {
        fprintf(stderr, "usage: conformance [--filter GLOB] [--list-failures] [--print-ignore] "
                        "[--ignore FILE] [--isa NAME|all] [--threads N] [--timeout S] DIR\n");
        return 2;
    }
    static test_case *tests, **order;
    tally sum = {{0}};
    int count, selected = 0;
    if (!list_tests(&set, &tests, &count))
        return 2;
    order = calloc((size_t)count, sizeof *order);
    if (!order)
        return 2;
    for (int i = 0; i < count; i++)
        if (tests[i].selected)
            order[selected++] = &tests[i];
    int strangers = read_ignore(set.ignore, tests, count);
    run_tiers(&set, tests, count, order, selected, &sum);
    int failed = sum.of[FAILED] + sum.of[UNSUPPORTED] + strangers;
    fprintf(set.print_ignore ? stderr : stdout,
            "%d of the failed are unsupported\n%d passed, %d failed, %d skipped\n",
            sum.of[UNSUPPORTED], sum.of[PASSED], failed, sum.of[SKIPPED] + sum.of[BLOCKED]);
    return failed != 0;
}

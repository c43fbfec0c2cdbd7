/* bench.c - this library beside pinned peers, model by model, interleaved in one run.
 *
 * usage: bench [--only GLOB] [--threads LIST] [--rounds N] [--launches N] [--scratch DIR]
 *              [--families FILE] [--onnxruntime LIB.so] [--openvino LIB.so] [--tract LIB.so]
 *              [--python PYTHON] [--python-worker FILE] [--patience SECONDS] DIR...
 *        bench --creation LIB.so MODEL       onnxruntime's creation of a session at level extended
 *        bench --launch COMMAND [ARG...]     a process from start to end
 *
 * DIR/NAME holds model.onnx and inputs.npz or test_data_set_0. Each runtime runs in processes of
 * its own (this program executed again with --worker NAME ..., or PYTHON with the other worker).
 * Of one model there are N rounds, and more, for as long as patience lasts, while the interval of
 * the ratio over the best peer is wider than 0.1. Figures go to standard error as they come
 * and to standard output as tables and gates, one set for each number of threads. Exit status 1
 * when an output of ours differs.
 */
#include <fnmatch.h>
#include <getopt.h>
#include <signal.h>

#include "../harness.h"
#include "bench.h"
#include "runtime.h"

enum { MAX_MODELS = 500, PEER = 1000 };

const char *const side_names[SIDES] = {"ours",   "onnxruntime", "openvino", "tract",
                                       "litert", "ctranslate2", "lleaves"};

static ort_peak machine_peak(void) /* of one core */
{
    ort_env_options options;
    ort_env *env = NULL;
    ort_peak peak = ORT_PEAK_INIT;
    ort_env_options_init(&options);
    options.threads = 1;
    if (ort_env_new(&options, &env, NULL) || ort_env_measure_peak(env, &peak, NULL))
        peak = (ort_peak)ORT_PEAK_INIT;
    ort_env_free(env);
    return peak;
}

/* One-minute load average, and milliseconds that the host took from this machine since boot. */
static void print_load(const char *when)
{
    char load[100] = "unknown\n";
    long long t[8] = {0};
    FILE *file = fopen("/proc/loadavg", "r");
    if (file && !fgets(load, sizeof load, file))
        load[0] = '\0';
    if (file)
        fclose(file);
    file = fopen("/proc/stat", "r");
    if (file && fscanf(file, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &t[0], &t[1], &t[2],
                       &t[3], &t[4], &t[5], &t[6], &t[7]) != 8)
        t[7] = 0;
    if (file)
        fclose(file);
    printf("load %s: %.14s; stolen by the host since boot: %lld ms\n", when, load,
           t[7] * 1000 / sysconf(_SC_CLK_TCK));
}

static void print_machine(const settings *set)
{
    printf("processors %ld, peak of one core %.1f GFLOP/s (multiply-add loop)\n",
           sysconf(_SC_NPROCESSORS_ONLN), machine_peak().gflops);
    print_load("before");
    printf("%d rounds, %d launches; peers:", set->rounds, set->launches);
    for (int i = 1; i < LITERT; i++) {
        const runtime_class *class = i == ONNXRUNTIME ? &runtime_onnxruntime
                                     : i == OPENVINO  ? &runtime_openvino
                                                      : &runtime_tract;
        if (set->library[i])
            printf(" %s %s", class->name, class->version);
    }
    printf("%s\n", set->library[LITERT] ? " and those of peers/, of requirements-bench.txt" : "");
    fflush(stdout);
}

static void find_family(const settings *set, measure *m)
{
    char name[100], family[32], line[200];
    FILE *file = fopen(set->families, "r");
    snprintf(m->family, sizeof m->family, "other");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%99s %31s", name, family) == 2 && !strcmp(name, m->name))
            snprintf(m->family, sizeof m->family, "%s", family);
    if (file)
        fclose(file);
}

static void print_progress(int threads, const measure *m)
{
    fprintf(stderr, "%-38s %d %-13s", m->name, threads, m->family);
    for (int i = 0; i < SIDES; i++) {
        const side *s = &m->side[i];
        if (s->state == SIDE_FINE || s->state == SIDE_WRONG)
            fprintf(stderr, " %9.4f%s", s->best, s->state == SIDE_WRONG ? "x" : " ");
        else
            fprintf(stderr, " %9s ", "-");
    }
    fprintf(stderr, "%s\n", m->differs ? " OURS DIFFERS" : "");
}

static size_t measure_folder(const settings *set, const char *dir, int threads, measure *list,
                             size_t count)
{
    static char **names; /* of the folder at hand */
    int found = harness_list_folders(dir, &names);
    if (found < 0)
        printf("%s: no such folder, skipped\n", dir);
    for (int i = 0; i < found && count < MAX_MODELS; i++) {
        char folder[PATH_MAX];
        if (set->only && fnmatch(set->only, names[i], FNM_EXTMATCH) != 0)
            continue;
        measure *m = &list[count++];
        *m = (measure){.differs = false};
        snprintf(m->name, sizeof m->name, "%s", names[i]);
        snprintf(folder, sizeof folder, "%s/%s", dir, names[i]);
        find_family(set, m);
        measure_model(set, folder, threads, m);
        print_progress(threads, m);
    }
    return count;
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
        {"only", required_argument, NULL, 'o'},
        {"threads", required_argument, NULL, 't'},
        {"rounds", required_argument, NULL, 'r'},
        {"launches", required_argument, NULL, 'l'},
        {"scratch", required_argument, NULL, 's'},
        {"families", required_argument, NULL, 'f'},
        {"onnxruntime", required_argument, NULL, PEER + ONNXRUNTIME},
        {"openvino", required_argument, NULL, PEER + OPENVINO},
        {"tract", required_argument, NULL, PEER + TRACT},
        {"python", required_argument, NULL, 'y'},
        {"python-worker", required_argument, NULL, 'w'},
        {"patience", required_argument, NULL, 'p'},
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
        case 's': set->scratch = optarg; break;
        case 'f': set->families = optarg; break;
        case 'w': set->worker = optarg; break;
        case 'p': set->patience_s = atof(optarg); break;
        case 'y':
            for (int i = LITERT; i < SIDES; i++)
                set->library[i] = optarg;
            break;
        case PEER + ONNXRUNTIME:
        case PEER + OPENVINO:
        case PEER + TRACT: set->library[c - PEER] = optarg; break;
        default: return false;
        }
    }
    return optind < argc && set->rounds > 0 && set->rounds <= MAX_ROUNDS && set->launches > 0 &&
           set->launches <= MAX_LAUNCHES;
}

int main(int argc, char **argv)
{
    static measure list[MAX_MODELS];
    settings set = {.library = {[OURS] = ""}, .scratch = "build",
                    .families = "tests/bench/families.txt", .worker = "tests/bench/peers/worker.py",
                    .threads = {1, 2}, .thread_count = 2, .rounds = 7, .launches = 5,
                    .patience_s = 20};
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    if (argc == 7 && !strcmp(argv[1], "--worker"))
        return worker_main(argv + 2);
    if (argc == 4 && !strcmp(argv[1], "--creation"))
        return creation_main(argv + 2);
    if (argc > 2 && !strcmp(argv[1], "--launch"))
        return launch_main(argv + 2);
    if (!parse(argc, argv, &set)) {
        fprintf(stderr, "usage: bench [--only GLOB] [--threads 1,2] [--rounds N] [--launches N] "
                        "[--scratch DIR] [--families FILE] [--onnxruntime LIB.so] "
                        "[--openvino LIB.so] [--tract LIB.so] [--python PYTHON] "
                        "[--python-worker WORKER.py] [--patience SECONDS] DIR...\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    print_machine(&set);
    int different = 0;
    for (int t = 0; t < set.thread_count; t++) {
        size_t count = 0;
        for (int d = optind; d < argc; d++)
            count = measure_folder(&set, argv[d], set.threads[t], list, count);
        print_tables(set.threads[t], list, count);
        for (size_t k = 0; k < count; k++)
            different += list[k].differs;
    }
    print_load("after");
    if (different)
        printf("%d rows have different outputs\n", different);
    return different != 0;
}

/* bench.c - this library beside pinned peers, model by model, interleaved in one run.
 *
 * usage: bench [--only GLOB] [--threads LIST] [--rounds N] [--launches N] [--scratch DIR]
 *              [--families FILE] [--peer NAME=VERSION=PATH]... [--python-worker FILE]
 *              [--patience SECONDS] [--limit SECONDS] DIR...
 *        bench --creation LIB.so MODEL       onnxruntime's creation of a session at level extended
 *        bench --launch COMMAND [ARG...]     a process from start to end
 *
 * DIR/NAME holds model.onnx and inputs.npz or test_data_set_0; GLOB may be "@(A*|B)". A peer is a
 * library, or a Python that has its package. Each runtime runs in processes of its own (this
 * program executed again with --worker NAME ..., or PYTHON with the other worker). Of one model
 * there are N rounds, and more, for as long as patience lasts, while the interval of the ratio
 * over the best peer is wider than 0.1. A peer that doesn't answer within the limit is out for
 * this model, and the notes say so. Figures go to standard error as they come and to standard
 * output as tables and gates, one set for each number of threads. Exit status 1 when an output of
 * ours differs.
 */
#include <fnmatch.h>
#include <getopt.h>
#include <signal.h>

#include "../harness.h"
#include "bench.h"
#include "runtime.h"

enum { MAX_MODELS = 500 };

const char *const side_names[SIDES] = {"ours",   "onnxruntime", "openvino", "tract",
                                       "litert", "ctranslate2", "lleaves",  "llamacpp"};

static void print_head(const settings *set)
{
    print_processors();
    printf("%d rounds, %d launches, at most %d s for an answer; threads:", set->rounds,
           set->launches, set->limit_s);
    for (int k = 0; k < set->thread_count; k++)
        printf(" %d", set->threads[k]);
    printf("; peers:");
    for (int i = 1; i < SIDES; i++)
        if (set->library[i])
            printf(" %s %s%s", side_names[i], set->version[i],
                   i != ONNXRUNTIME      ? ""
                   : runtime_saturates() ? " (integer models: " RUNTIME_EXACT "=1)"
                                         : " (exact on integer models by VNNI)");
    printf("\n");
    for (int i = 1; i < SIDES; i++)
        if (!set->library[i])
            printf("WITHOUT %s, which isn't here: ratios are over the other peers\n",
                   side_names[i]);
    fflush(stdout);
}

static void find_family(const settings *set, measure *m)
{
    char name[100], family[32], twin[100], line[300];
    FILE *file = fopen(set->families, "r");
    snprintf(m->family, sizeof m->family, "other");
    while (file && fgets(line, sizeof line, file)) {
        int words = sscanf(line, "%99s %31s %99s", name, family, twin);
        if (words < 2 || strcmp(name, m->name))
            continue;
        snprintf(m->family, sizeof m->family, "%s", family);
        snprintf(m->twin, sizeof m->twin, "%s", words > 2 ? twin : "");
    }
    if (file)
        fclose(file);
}

/* The folders of DIR... whose names the pattern takes; their number. */
static size_t list_models(const settings *set, char **dirs, int count, char (*folders)[PATH_MAX])
{
    static char **names; /* of the folder at hand */
    size_t listed = 0;
    for (int d = 0; d < count; d++) {
        int found = harness_list_folders(dirs[d], &names);
        if (found < 0)
            printf("%s: no such folder, skipped\n", dirs[d]);
        for (int i = 0; i < found && listed < MAX_MODELS; i++)
            if (!set->only || !fnmatch(set->only, names[i], FNM_EXTMATCH))
                snprintf(folders[listed++], PATH_MAX, "%s/%s", dirs[d], names[i]);
    }
    return listed;
}

static void measure_folder(const settings *set, const char *folder, int threads, progress *p,
                           measure *m)
{
    const char *slash = strrchr(folder, '/');
    *m = (measure){.differs = false};
    snprintf(m->name, sizeof m->name, "%s", slash + 1);
    find_family(set, m);
    progress_next(p, m->name, threads);
    measure_model(set, folder, threads, m);
    progress_done(p, m, threads);
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

/* "NAME=VERSION=PATH": a library, or a Python that has the peer. */
static bool parse_peer(settings *set, char *text)
{
    const char *name = strsep(&text, "="), *version = strsep(&text, "=");
    for (int i = 1; text && *text && i < SIDES; i++) {
        if (strcmp(name, side_names[i]))
            continue;
        set->version[i] = version;
        set->library[i] = text;
        return true;
    }
    return false;
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
        {"peer", required_argument, NULL, 'y'},
        {"limit", required_argument, NULL, 'i'},
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
        case 'i': set->limit_s = atoi(optarg); break;
        case 'y':
            if (!parse_peer(set, optarg))
                return false;
            break;
        default: return false;
        }
    }
    return optind < argc && set->rounds > 0 && set->rounds <= MAX_ROUNDS && set->launches > 0 &&
           set->launches <= MAX_LAUNCHES && set->limit_s > 0;
}

/* All models with each number of threads; how many rows have different outputs, -1: no models. */
static int measure_all(const settings *set, char **dirs, int dir_count)
{
    static measure list[MAX_MODELS];
    static char folders[MAX_MODELS][PATH_MAX];
    size_t count = list_models(set, dirs, dir_count, folders);
    progress p = {.total = count * (size_t)set->thread_count, .begin_ms = harness_now_ms()};
    int different = 0;
    if (count == 0)
        fprintf(stderr, "bench: no folder with a model here, or none that fits --only\n");
    for (int t = 0; t < set->thread_count && count > 0; t++) {
        machine_times before = print_load(set->threads[t]);
        ort_peak peak = machine_peak(set->threads[t]);
        for (size_t k = 0; k < count; k++)
            measure_folder(set, folders[k], set->threads[t], &p, &list[k]);
        peak = better_peak(peak, machine_peak(set->threads[t]));
        print_tables(set->threads[t], &peak, list, count);
        print_load_since(set->threads[t], before);
        for (size_t k = 0; k < count; k++)
            different += list[k].differs;
    }
    return count ? different : -1;
}

int main(int argc, char **argv)
{
    settings set = {.library = {[OURS] = ""}, .scratch = "build",
                    .families = "tests/bench/families.txt", .worker = "tests/bench/peers/worker.py",
                    .threads = {1, 2}, .thread_count = 2, .rounds = 7, .launches = 5,
                    .patience_s = 20, .limit_s = 60};
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    if ((argc == 7 || argc == 8) && !strcmp(argv[1], "--worker"))
        return worker_main(argv + 2);
    if (argc == 4 && !strcmp(argv[1], "--creation"))
        return creation_main(argv + 2);
    if (argc > 2 && !strcmp(argv[1], "--launch"))
        return launch_main(argv + 2);
    if (!parse(argc, argv, &set)) {
        fprintf(stderr, "usage: bench [--only GLOB] [--threads 1,2] [--rounds N] [--launches N] "
                        "[--scratch DIR] [--families FILE] [--peer NAME=VERSION=PATH]... "
                        "[--python-worker WORKER.py] [--patience SECONDS] [--limit SECONDS] "
                        "DIR...\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    print_head(&set);
    int different = measure_all(&set, argv + optind, argc - optind);
    if (different > 0)
        printf("%d rows have different outputs\n", different);
    return different != 0;
}

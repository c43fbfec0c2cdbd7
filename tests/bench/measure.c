/* measure.c - one model on every runtime: launches, comparison of outputs, interleaved rounds.
 *
 * Session ready is the time from before fork to a session that may run, first run the first run
 * after it; launches alternate between this library and onnxruntime, whose start-up is compared,
 * and figures are medians. The processes of the last launch stay; the other peers join them. Peak
 * memory is read after a round. Then outputs are compared, and rounds interleaved over all, each
 * beginning with another one, while the other processes wait.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "../harness.h"
#include "bench.h"

typedef struct child {
    pid_t pid;
    FILE *to, *from;
} child;

static bool spawn(const settings *set, int which, const char *folder, int threads, child *c)
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
        if (which > ONNXRUNTIME) /* some write notes there; what matters is in their answers */
            dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        execl("/proc/self/exe", "bench", "--worker", side_names[which], set->library[which], folder,
              thread_text, start, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    c->to = fdopen(in[1], "w");
    c->from = fdopen(out[0], "r");
    return c->pid > 0 && c->to && c->from;
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

/* Some peers take minutes to analyse a model, or never come to an end. */
enum { PATIENCE_MS = 60000 };

/* Read the answer to a command; a side that fails says why and is out. */
static bool answer(child *c, side *s, double *number)
{
    char line[1000] = "error the process died";
    struct pollfd ready = {.fd = fileno(c->from), .events = POLLIN};
    if (poll(&ready, 1, PATIENCE_MS) == 0) {
        snprintf(line, sizeof line, "error no answer in %d s", PATIENCE_MS / 1000);
        kill(c->pid, SIGKILL);
    } else if (fgets(line, sizeof line, c->from)) {
        line[strcspn(line, "\n")] = '\0';
    }
    if (!strncmp(line, "ok ", 3)) {
        *number = strtod(line + 3, NULL);
        return true;
    }
    s->state = SIDE_FAILED;
    snprintf(s->why, sizeof s->why, "%.280s", line + (!strncmp(line, "error ", 6) ? 6 : 0));
    finish(c);
    return false;
}

static bool ask(child *c, side *s, const char *command, double *number)
{
    fprintf(c->to, "%s\n", command);
    fflush(c->to);
    return answer(c, s, number);
}

static bool start(const settings *set, int which, const char *folder, int threads, child *c,
                  side *s, double *ready, double *first)
{
    if (!spawn(set, which, folder, threads, c)) {
        s->state = SIDE_FAILED;
        snprintf(s->why, sizeof s->why, "can't start a process: %s", strerror(errno));
        return false;
    }
    return answer(c, s, ready) && ask(c, s, "first", first);
}

static void launch(const settings *set, const char *folder, int threads, child *children,
                   measure *m)
{
    double ready[SIDES][MAX_LAUNCHES], first[SIDES][MAX_LAUNCHES];
    for (int k = 0; k < set->launches; k++) {
        for (int i = 0; i < SIDES; i++) {
            bool once = i > ONNXRUNTIME;
            if (m->side[i].state != SIDE_FINE || (once && k > 0))
                continue;
            finish(&children[i]);
            if (start(set, i, folder, threads, &children[i], &m->side[i], &ready[i][k],
                      &first[i][k]) && !once && k + 1 < set->launches)
                finish(&children[i]);
        }
    }
    for (int i = 0; i < SIDES; i++) {
        size_t count = i > ONNXRUNTIME ? 1 : (size_t)set->launches;
        if (m->side[i].state != SIDE_FINE)
            continue;
        m->side[i].ready = harness_median(ready[i], count);
        m->side[i].first = harness_median(first[i], count);
    }
}

/* -------------------------------------------------------------------------------- outputs -- */

static ort_value *find_array(const ort_tensors *archive, const char *name)
{
    for (size_t k = 0; k < ort_tensors_count(archive); k++)
        if (!strcmp(ort_tensors_name(archive, k), name))
            return ort_tensors_value(archive, k);
    return NULL;
}

static double largest(const ort_value *value)
{
    double most = 0;
    for (int64_t k = 0; k < ort_value_count(value); k++)
        most = fmax(most, fabs(ort_value_get_double(value, k)));
    return most;
}

/* Compare the archives that two runtimes wrote. False says why in `why`. `loose`: quantized with
 * weights that mean nothing, where one rounding that falls the other way spreads through all
 * layers: a tenth of the largest value is allowed. */
static bool same_outputs(const char *ours, const char *theirs, const harness_meta *meta,
                         bool loose, char *why, size_t size)
{
    ort_tensors *mine = NULL, *other = NULL;
    ort_error err = {0};
    /* Two runtimes may each be off by the tolerance. */
    ort_compare_options options = {.size = sizeof options,
                                   .rtol = 2 * meta->rtol,
                                   .atol = 2 * meta->atol};
    bool ok = !ort_tensors_load(ours, NULL, &mine, &err) &&
              !ort_tensors_load(theirs, NULL, &other, &err);
    if (!ok)
        snprintf(why, size, "%.250s", err.message);
    for (size_t k = 0; ok && k < ort_tensors_count(mine); k++) {
        const char *name = ort_tensors_name(mine, k);
        ort_value *a = ort_tensors_value(mine, k), *b = find_array(other, name);
        ort_difference diff = ORT_DIFFERENCE_INIT;
        if (b && loose)
            options.atol = 0.1 * largest(b);
        ok = b && !ort_value_compare(a, b, &options, &diff, &err) && diff.equal;
        if (!ok)
            snprintf(why, size, "%s differs: %.220s", name, b ? diff.text : "missing");
    }
    ort_tensors_free(mine);
    ort_tensors_free(other);
    return ok;
}

/* Whether the file on disk of a runtime is near the expected values of the set. */
static bool as_expected(const char *folder, const char *path, const harness_meta *meta)
{
    char set[PATH_MAX];
    harness_values expected = {0};
    ort_tensors *mine = NULL;
    ort_error err = {0};
    ort_compare_options options = {.size = sizeof options, .rtol = meta->rtol, .atol = meta->atol};
    snprintf(set, sizeof set, "%s/test_data_set_0", folder);
    bool ok = access(set, F_OK) == 0 && !harness_load_values(set, "output", &expected, &err) &&
              expected.count > 0 && !ort_tensors_load(path, NULL, &mine, &err);
    for (size_t k = 0; ok && k < expected.count; k++) {
        char name[32];
        ort_difference diff = ORT_DIFFERENCE_INIT;
        snprintf(name, sizeof name, "output_%zu", k);
        ort_value *value = find_array(mine, name);
        if (value && expected.value[k])
            ok = !ort_value_compare(value, expected.value[k], &options, &diff, &err) && diff.equal;
    }
    ort_tensors_free(mine);
    harness_values_free(&expected);
    return ok;
}

/* A peer whose outputs differ from ours is wrong when ours are near the expected values; without
 * expected values (filled topologies) onnxruntime decides. */
static void compare(const settings *set, const char *folder, child *children, measure *m)
{
    char paths[SIDES][PATH_MAX], command[PATH_MAX + 8];
    harness_meta meta;
    double ignored;
    bool given = harness_read_meta(folder, &meta), loose = false, ours_good;
    if (!given) {
        meta = (harness_meta){.rtol = 1e-2, .atol = 1e-3};
        loose = strstr(m->family, "integer") != NULL;
    }
    for (int i = 0; i < SIDES; i++) {
        snprintf(paths[i], PATH_MAX, "%s/outputs_%d.npz", set->scratch, i);
        snprintf(command, sizeof command, "save %s", paths[i]);
        if (m->side[i].state == SIDE_FINE)
            (void)ask(&children[i], &m->side[i], command, &ignored);
    }
    ours_good = as_expected(folder, paths[OURS], &meta);
    for (int i = 1; i < SIDES && m->side[OURS].state == SIDE_FINE; i++) {
        side *s = &m->side[i];
        if (s->state != SIDE_FINE ||
            same_outputs(paths[OURS], paths[i], &meta, loose, s->why, sizeof s->why))
            continue;
        if (i == ONNXRUNTIME && !ours_good) {
            m->differs = true;
            return;
        }
        s->state = SIDE_WRONG;
    }
}

/* --------------------------------------------------------------------------------- rounds -- */

static bool timed(const side *s)
{
    return s->state == SIDE_FINE || s->state == SIDE_WRONG;
}

void measure_model(const settings *set, const char *folder, int threads, measure *m)
{
    child children[SIDES] = {{0}};
    double ignored;
    for (int i = 0; i < SIDES; i++)
        m->side[i].state = set->library[i] ? SIDE_FINE : SIDE_ABSENT;
    launch(set, folder, threads, children, m);
    for (int i = 0; i < SIDES; i++) /* before saving, which needs memory of its own */
        if (m->side[i].state == SIDE_FINE && ask(&children[i], &m->side[i], "round", &ignored))
            (void)ask(&children[i], &m->side[i], "peak", &m->side[i].peak);
    compare(set, folder, children, m);
    for (int round = 0; round < set->rounds && !m->differs; round++) {
        for (int k = 0; k < SIDES; k++) {
            int i = (round + k) % SIDES; /* none is always first */
            side *s = &m->side[i];
            if (timed(s) && ask(&children[i], s, "round", &s->round[round]))
                s->best = round == 0 ? s->round[0] : fmin(s->best, s->round[round]);
        }
    }
    for (int i = 0; i < SIDES; i++)
        finish(&children[i]);
}

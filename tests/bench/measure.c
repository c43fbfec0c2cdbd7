/* measure.c - one model on every runtime: launches, comparison of outputs, interleaved rounds.
 *
 * Session ready is the time from before fork to a session that may run, first run the first run
 * after it; launches alternate between this library and onnxruntime, whose start-up is compared,
 * each first in half of the models, and figures are medians. The processes of the last launch stay;
 * the other peers join them. Peak memory is read after a round. Then outputs are compared, and
 * rounds interleaved over all, each beginning with another one, while the other processes wait.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "../harness.h"
#include "bench.h"

enum { END_MS = 5000 }; /* for a process to end by itself */

typedef struct child {
    pid_t pid;
    FILE *to, *from;
    int limit_s; /* of an answer */
} child;

static bool spawn(const settings *set, int which, const char *folder, int threads,
                  const char *family, child *c)
{
    int in[2], out[2];
    char thread_text[16], start[40];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return false;
    snprintf(thread_text, sizeof thread_text, "%d", threads);
    fflush(stdout);
    snprintf(start, sizeof start, "%.6f", harness_now_ms());
    c->limit_s = set->limit_s;
    c->pid = fork();
    if (c->pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        if (which > ONNXRUNTIME) /* some write notes there; what matters is in their answers */
            dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        if (which >= LITERT) /* a Python finds its packages by the name it was called by */
            execl(set->library[which], set->library[which], set->worker, side_names[which],
                  folder, thread_text, start, family, (char *)NULL);
        else
            execl("/proc/self/exe", "bench", "--worker", side_names[which], set->library[which],
                  folder, thread_text, start, family, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    c->to = fdopen(in[1], "w");
    c->from = fdopen(out[0], "r");
    return c->pid > 0 && c->to && c->from;
}

/* It has nothing left to do; a runtime whose threads keep it from ending is killed. */
static void reap(pid_t pid)
{
    double begin = harness_now_ms();
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (harness_now_ms() - begin > END_MS)
            kill(pid, SIGKILL);
        usleep(1000);
    }
}

static void finish(child *c)
{
    if (c->to)
        fclose(c->to);
    if (c->from)
        fclose(c->from);
    if (c->pid > 0)
        reap(c->pid);
    *c = (child){0};
}

/* Read the answer to a command; a side that fails says why and is out. */
static bool answer(child *c, side *s, double *number)
{
    char line[1000] = "error the process died";
    struct pollfd ready = {.fd = fileno(c->from), .events = POLLIN};
    if (poll(&ready, 1, c->limit_s * 1000) == 0) {
        snprintf(line, sizeof line, "error no answer within %d s", c->limit_s);
        kill(c->pid, SIGKILL);
    } else if (fgets(line, sizeof line, c->from)) {
        line[strcspn(line, "\n")] = '\0';
    }
    if (!strncmp(line, "ok ", 3)) {
        char *rest;
        *number = strtod(line + 3, &rest);
        rest += strspn(rest, " ");
        if (*rest)
            snprintf(s->note, sizeof s->note, "%.190s", rest);
        return true;
    }
    if (!strncmp(line, "absent ", 7)) {
        s->state = SIDE_ABSENT;
    } else {
        s->state = SIDE_FAILED;
        snprintf(s->why, sizeof s->why, "%.280s", line + (!strncmp(line, "error ", 6) ? 6 : 0));
    }
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
                  measure *m, double *ready, double *first)
{
    side *s = &m->side[which];
    if (!spawn(set, which, folder, threads, m->family, c)) {
        s->state = SIDE_FAILED;
        snprintf(s->why, sizeof s->why, "can't start a process: %s", strerror(errno));
        return false;
    }
    return answer(c, s, ready) && ask(c, s, "first", first);
}

/* Read what lies in the folder: start-up is that of files in the page cache, whoever is first. */
static void warm_files(const char *folder)
{
    static char buffer[1 << 20];
    char path[PATH_MAX];
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && read(fd, buffer, sizeof buffer) > 0)
            continue;
        if (fd >= 0)
            close(fd);
    }
    if (listing)
        closedir(listing);
}

static void launch(const settings *set, const char *folder, int threads, child *children,
                   measure *m)
{
    static int models; /* who is first with one launch, or once more with an odd number of them,
                          takes turns, too */
    double ready[SIDES][MAX_LAUNCHES], first[SIDES][MAX_LAUNCHES];
    const int turn = models++;
    warm_files(folder);
    for (int k = 0; k < set->launches; k++) {
        for (int order = 0; order < SIDES; order++) {
            /* Ours and onnxruntime's first by turns: memory that a process has given back is
             * faster to have. */
            int i = order <= ONNXRUNTIME && (k + turn) % 2 ? ONNXRUNTIME - order : order;
            bool once = i > ONNXRUNTIME;
            if (m->side[i].state != SIDE_FINE || (once && k > 0))
                continue;
            finish(&children[i]);
            if (start(set, i, folder, threads, &children[i], m, &ready[i][k],
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

/* --------------------------------------------------------------------------------- rounds -- */

static bool timed(const side *s)
{
    return s->state == SIDE_FINE || s->state == SIDE_WRONG;
}

static void save_outputs(const settings *set, child *children, measure *m)
{
    char path[PATH_MAX], command[PATH_MAX + 8];
    double ignored;
    for (int i = 0; i < SIDES; i++) {
        outputs_path(set, i, path);
        snprintf(command, sizeof command, "save %s", path);
        if (m->side[i].state == SIDE_FINE)
            (void)ask(&children[i], &m->side[i], command, &ignored);
    }
}

/* onnxruntime adds scattered rows without order when it has several threads, so its results vary
 * from run to run there: with one thread it decides whether ours are off. */
static void compare_with_one_thread(const settings *set, const char *folder, measure *m)
{
    child one = {0};
    side judge = {.state = SIDE_FINE};
    char path[PATH_MAX], command[PATH_MAX + 8];
    double ignored;
    outputs_path(set, ONNXRUNTIME, path);
    snprintf(command, sizeof command, "save %s", path);
    bool saved = spawn(set, ONNXRUNTIME, folder, 1, m->family, &one) &&
                 answer(&one, &judge, &ignored) && ask(&one, &judge, "first", &ignored) &&
                 ask(&one, &judge, command, &ignored);
    finish(&one);
    if (!saved)
        return;
    m->differs = false;
    compare_outputs(set, folder, m);
    if (m->differs)
        return;
    side *s = &m->side[ONNXRUNTIME];
    s->state = SIDE_WRONG;
    snprintf(s->why, sizeof s->why, "other outputs than with one thread");
}

static void one_round(child *children, measure *m)
{
    for (int k = 0; k < SIDES; k++) {
        int i = (m->rounds + k) % SIDES; /* none is always first */
        side *s = &m->side[i];
        if (timed(s) && ask(&children[i], s, "round", &s->round[m->rounds]))
            s->best = m->rounds == 0 ? s->round[0] : fmin(s->best, s->round[m->rounds]);
    }
    m->rounds++;
}

/* As many rounds as asked for, and then until the interval is narrow or patience ends. */
static bool wants_round(const settings *set, const measure *m, double since_ms)
{
    const side *best = best_peer(m);
    if (m->rounds < set->rounds)
        return true;
    return m->rounds < MAX_ROUNDS && best && m->side[OURS].state == SIDE_FINE &&
           harness_now_ms() - since_ms < set->patience_s * 1000 &&
           !is_narrow(ratio_interval(m, best));
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
    if (m->side[OURS].state == SIDE_FINE && ask(&children[OURS], &m->side[OURS], "flop", &m->gflop))
        (void)ask(&children[OURS], &m->side[OURS], "weights", &m->weight_mb);
    save_outputs(set, children, m);
    compare_outputs(set, folder, m);
    if (m->differs && threads > 1)
        compare_with_one_thread(set, folder, m);
    for (double since = harness_now_ms(); !m->differs && wants_round(set, m, since);)
        one_round(children, m);
    for (int i = 0; i < SIDES; i++)
        finish(&children[i]);
}

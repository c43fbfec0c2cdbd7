/* server.c - runs a tool's own main in a fork for each line on stdin: a case costs no exec, and no
 * sanitizer's start.
 *
 * A line is OUT FOLDER ARGUMENT..., separated by the byte 31; the answer is one line: exit status
 * (-1: none), signal, processor milliseconds, peak kilobytes, and "ok", "hang" or "memory" when a
 * bound (usage: server SECONDS MEGABYTES) ended it. What the tool says goes to OUT.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int tool_main(int argc, char **argv); /* the tool's main, renamed when it is linked */

enum { SEPARATOR = 31, ARGUMENTS = 250, LINE = 1 << 16 };

typedef struct bounds {
    double seconds;
    long kilobytes;
} bounds;

static double seconds_of(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

static int split(char *line, char **part)
{
    int n = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; at && n < ARGUMENTS; n++) {
        part[n] = at;
        at = strchr(at, SEPARATOR);
        if (at)
            *at++ = '\0';
    }
    part[n] = NULL;
    return n;
}

static void child(int count, char **part, const bounds *b)
{
    struct rlimit none = {0, 0}, file = {(rlim_t)1 << 30, (rlim_t)1 << 30};
    struct rlimit cpu = {(rlim_t)b->seconds + 1, (rlim_t)b->seconds + 2};
    int in = open("/dev/null", O_RDONLY);
    int out = open(part[0], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_FSIZE, &file);
    setrlimit(RLIMIT_CPU, &cpu);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
        chdir(part[1]) != 0)
        _exit(99);
    exit(tool_main(count - 2, part + 2));
}

static long resident(pid_t pid)
{
    char path[64];
    long all = 0, pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%ld %ld", &all, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void answer(pid_t pid, const bounds *b)
{
    int status = 0;
    struct rusage usage = {0};
    const char *kind = "ok";
    const struct timespec pause = {0, 5 * 1000 * 1000};
    double waited = 0;
    while (wait4(pid, &status, WNOHANG, &usage) == 0) {
        bool late = waited > 6 * b->seconds, large = resident(pid) > b->kilobytes;
        if (late || large) {
            kind = late ? "hang" : "memory";
            kill(pid, SIGKILL);
            wait4(pid, &status, 0, &usage);
            break;
        }
        nanosleep(&pause, NULL);
        waited += 0.005;
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        kind = "hang";
    printf("%d %d %.0f %ld %s\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           WIFSIGNALED(status) ? WTERMSIG(status) : 0, seconds_of(&usage) * 1e3, usage.ru_maxrss,
           kind);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static char line[LINE];
    char *part[ARGUMENTS + 1];
    bounds b = {argc > 1 ? atof(argv[1]) : 10, (argc > 2 ? atol(argv[2]) : 2000) * 1024};
    while (fgets(line, sizeof line, stdin)) {
        int count = split(line, part);
        pid_t pid = count > 2 ? fork() : -1;
        if (pid == 0)
            child(count, part, &b);
        if (pid < 0)
            return 1;
        answer(pid, &b);
    }
    return 0;
}

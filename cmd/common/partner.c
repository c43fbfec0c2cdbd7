/* partner.c - fork and a pair of sockets (partner.h). */
#define _GNU_SOURCE 1
#include "common/partner.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/tool.h"

/* Of a caller that is gone an answer is no use, and its unfinished files aren't ours to remove. */
static void run_child(partner_fn *fn, void *arg, int line)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    FILE *questions = fdopen(line, "r"), *answers = fdopen(dup(line), "w");
    if (questions != NULL && answers != NULL)
        fn(arg, questions, answers);
    if (answers != NULL)
        fflush(answers);
    _exit(0);
}

int partner_start(partner *p, const char *what, partner_fn *fn, void *arg)
{
    int ends[2];
    *p = (partner){.what = what, .line = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return tool_error(ORT_ERROR_IO, "can't speak with a process: %s", strerror(errno));
    fflush(NULL);
    malloc_trim(0); /* what the caller freed counts for the child, too */
    p->pid = fork();
    if (p->pid == 0) {
        close(ends[0]);
        run_child(fn, arg, ends[1]);
    }
    close(ends[1]);
    p->line = ends[0];
    p->answers = p->pid > 0 ? fdopen(ends[0], "r") : NULL;
    if (p->answers != NULL)
        return 0;
    partner_end(p);
    return tool_error(ORT_ERROR_MEMORY, "can't start a process: %s", strerror(errno));
}

void partner_ask(const partner *p, char question)
{
    while (send(p->line, &question, 1, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

/* How it ended. */
static int await(partner *p)
{
    int how = 0;
    while (p->pid > 0 && waitpid(p->pid, &how, 0) < 0 && errno == EINTR)
        ;
    p->pid = 0;
    return how;
}

ort_status partner_lost(partner *p, ort_error *err)
{
    const int how = await(p);
    err->status = ORT_ERROR_RUN;
    err->count = 1;
    if (WIFSIGNALED(how))
        snprintf(err->message, sizeof err->message, "%s was ended by a signal (%s)%s", p->what,
                 strsignal(WTERMSIG(how)),
                 WTERMSIG(how) == SIGKILL ? ": not enough memory?" : "");
    else
        snprintf(err->message, sizeof err->message, "%s ended early", p->what);
    return err->status;
}

void partner_end(partner *p)
{
    if (p->answers != NULL)
        fclose(p->answers);
    else if (p->line >= 0)
        close(p->line);
    await(p);
    *p = (partner){.line = -1};
}

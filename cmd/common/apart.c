/* apart.c - fork, wait, and take over what the child said (apart.h). */
#define _GNU_SOURCE 1
#include "common/apart.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/tool.h"

static void run_child(apart_fn *fn, void *arg, FILE *result, FILE *state)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* nobody waits for it then */
    int status = fn(arg, result);
    tool_save_state(state);
    if (fflush(NULL) != 0 && status == 0)
        status = EXIT_DATA;
    _exit(status);
}

/* The child's exit status, or what its signal means. */
static int await(const char *what, pid_t child)
{
    int how = 0;
    while (waitpid(child, &how, 0) < 0)
        if (errno != EINTR)
            return tool_error(ORT_ERROR_RUN, "%s: can't wait for it: %s", what, strerror(errno));
    if (WIFEXITED(how))
        return WEXITSTATUS(how);
    if (WTERMSIG(how) == SIGPIPE) /* who read our standard output left: that ends us alike */
        raise(SIGPIPE);
    return tool_error(ORT_ERROR_RUN, "%s was ended by a signal (%s)%s", what,
                      strsignal(WTERMSIG(how)),
                      WTERMSIG(how) == SIGKILL ? ": not enough memory?" : "");
}

int apart(const char *what, apart_fn *fn, void *arg, FILE **result)
{
    FILE *found = tmpfile(), *state = tmpfile();
    int status = 0;
    if (found == NULL || state == NULL)
        status = tool_error(ORT_ERROR_IO, "can't make a temporary file: %s", strerror(errno));
    fflush(NULL);
    malloc_trim(0); /* what the caller freed counts for the child, too */
    pid_t child = status == 0 ? fork() : -1;
    if (child == 0)
        run_child(fn, arg, found, state);
    if (child < 0 && status == 0)
        status = tool_error(ORT_ERROR_MEMORY, "can't start a process: %s", strerror(errno));
    if (child > 0) {
        status = await(what, child);
        tool_take_state(state);
    }
    if (state != NULL)
        fclose(state);
    if (found != NULL)
        rewind(found);
    if (result != NULL)
        *result = found;
    else if (found != NULL)
        fclose(found);
    return status;
}

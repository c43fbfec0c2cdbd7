/* apart.h - work in a process of its own: its memory is gone when it is done, and so is the harm
 * when it is killed for want of memory.
 */
#ifndef COMMON_APART_H
#define COMMON_APART_H

#include <stdio.h>

/* Returns 0 or an exit status; what the caller is to read goes to `result`. Threads of the caller
 * aren't there: whoever runs a model makes an environment of its own. */
typedef int apart_fn(void *arg, FILE *result);
/* What fn returned, its messages said. *result (NULL: nobody reads it) is at its beginning; the
 * caller closes it. A process that a signal ends is EXIT_RUN, which names `what`; SIGPIPE ends the
 * caller, too. */
int apart(const char *what, apart_fn *fn, void *arg, FILE **result);

#endif

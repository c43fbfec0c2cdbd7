/* partner.h - a process beside the tool that does one kind of work when it is asked to: what it
 * holds is its own, and so is the harm when it is killed for want of memory.
 */
#ifndef COMMON_PARTNER_H
#define COMMON_PARTNER_H

#include <stdio.h>
#include <sys/types.h>

#include "ort.h"

typedef struct partner {
    const char *what; /* it does, for messages */
    pid_t pid;        /* 0: there is none */
    FILE *answers;    /* what it writes */
    int line;         /* where it reads questions */
} partner;

/* Runs in the process: bytes of `questions` until they end. Threads of the caller aren't there, and
 * nothing that it says reaches the user but through `answers`. */
typedef void partner_fn(void *arg, FILE *questions, FILE *answers);

/* 0 or an exit status. */
int partner_start(partner *p, const char *what, partner_fn *fn, void *arg);
/* One byte that it reads next. A partner that is gone is found out by whoever reads its answer. */
void partner_ask(const partner *p, char question);
/* Its answer broke off: why, as far as that can be told. */
ort_status partner_lost(partner *p, ort_error *err);
/* There are no more questions. */
void partner_end(partner *p);

#endif

/* progress.c - one line, rewritten in place, that goes away when the work is done. */
#include "common/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the terminal, and of all below */
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static progress *current; /* the one on the terminal */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* The thread that ticks is the parent's. */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    current = NULL;
}

static void prepare_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool shows(bool off)
{
    const char *term = getenv("TERM");
    return !off && isatty(STDERR_FILENO) && (term == NULL || strcmp(term, "dumb"));
}

/* Under the lock. */
static void hide(void)
{
    if (current != NULL && current->visible)
        fputs("\r\033[K", stderr);
    if (current != NULL)
        current->visible = false;
}

void progress_begin(progress *p, const char *what, bool off)
{
    memset(p, 0, sizeof *p);
    p->what = what;
    p->begin_ns = now_ns();
    p->enabled = shows(off);
    pthread_mutex_lock(&lock);
    p->outer = current;
    hide();
    current = p->enabled ? p : current;
    pthread_mutex_unlock(&lock);
}

/* The whole that the work is a part of, or NULL. */
static const progress *head_of(const progress *p)
{
    const progress *head = p->outer;
    while (head != NULL && !head->heads)
        head = head->outer;
    return head;
}

/* After a second, and at most ten times in each. */
static bool due(progress *p)
{
    const progress *head = head_of(p);
    uint64_t begin = head != NULL ? head->begin_ns : p->begin_ns;
    uint64_t t = p->enabled ? now_ns() : 0;
    if (!p->enabled || t - begin < 1000000000u || t - p->shown_ns < 100000000u)
        return false;
    p->shown_ns = t;
    p->visible = true;
    return true;
}

/* What the rest takes if it goes on as so far; nothing while that would be a guess. */
static void say_time(const progress *p, double share)
{
    const char *most = p->heads ? "up to " : "";
    double left = share > 0.01 ? (double)(now_ns() - p->begin_ns) / 1e9 * (1 / share - 1) : 0;
    if (left >= 3600)
        fprintf(stderr, ", %s%.1f h left", most, left / 3600);
    else if (left >= 90)
        fprintf(stderr, ", %s%.0f min left", most, left / 60);
    else if (left >= 1)
        fprintf(stderr, ", %s%.0f s left", most, left);
}

/* The line up to what the work itself says. */
static void begin_line(const progress *p)
{
    const progress *head = head_of(p);
    fputs("\r", stderr);
    if (head == NULL)
        return;
    fprintf(stderr, "%s %3.0f %%", head->what, 100 * head->share);
    say_time(head, head->share);
    fputs(": ", stderr);
}

static void end_line(const progress *p, double share)
{
    if (head_of(p) == NULL)
        say_time(p, share);
    fputs(" \033[K", stderr);
    fflush(stderr);
}

void progress_step(progress *p, uint64_t done, uint64_t total)
{
    pthread_mutex_lock(&lock);
    if (due(p)) {
        begin_line(p);
        fputs(p->what, stderr);
        if (total > 0)
            fprintf(stderr, " %3.0f %% (%" PRIu64 " of %" PRIu64 ")",
                    100.0 * (double)done / (double)total, done, total);
        else
            fprintf(stderr, " %" PRIu64, done);
        end_line(p, total > 0 ? (double)done / (double)total : 0);
    }
    pthread_mutex_unlock(&lock);
}

void progress_share(progress *p, uint64_t done, double share)
{
    pthread_mutex_lock(&lock);
    share = share < 1 ? share : 1;
    if (due(p)) {
        begin_line(p);
        fprintf(stderr, "%s %3.0f %% (%" PRIu64 ")", p->what, 100 * share, done);
        end_line(p, share);
    }
    pthread_mutex_unlock(&lock);
}

void progress_stage(void *arg, const char *what, double share)
{
    progress *p = arg;
    pthread_mutex_lock(&lock);
    const bool shown = p == current;
    if (shown && strcmp(p->what, what)) {
        p->what = what;
        p->begin_ns = now_ns();
        p->shown_ns = 0;
    }
    if (shown && due(p)) {
        begin_line(p);
        fprintf(stderr, "%s %3.0f %%", p->what, 100 * share);
        end_line(p, share);
    }
    pthread_mutex_unlock(&lock);
}

void progress_whole(progress *p, const char *what, bool off)
{
    progress_begin(p, what, off);
    p->heads = true;
}

void progress_part(progress *p, double share)
{
    pthread_mutex_lock(&lock);
    p->share = share < 1 ? share : 1;
    if (p == current && due(p)) {
        fprintf(stderr, "\r%s %3.0f %%", p->what, 100 * p->share);
        end_line(p, p->share);
    }
    pthread_mutex_unlock(&lock);
}

static void *tick(void *arg)
{
    progress *p = arg;
    pthread_mutex_lock(&lock);
    for (uint64_t seconds = 1; !p->done; seconds++) {
        uint64_t at = p->begin_ns + seconds * 1000000000u;
        struct timespec when = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
        while (!p->done && now_ns() < at)
            pthread_cond_timedwait(&p->ended, &lock, &when);
        if (p->done || p != current || p->shown_ns != 0)
            continue;
        p->visible = true;
        begin_line(p);
        fprintf(stderr, "%s %" PRIu64 " s \033[K", p->what, seconds);
        fflush(stderr);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void progress_wait(progress *p, const char *what, bool off)
{
    pthread_condattr_t steady;
    progress_begin(p, what, off);
    if (!p->enabled)
        return;
    pthread_once(&prepared, prepare_forks);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&p->ended, &steady);
    pthread_condattr_destroy(&steady);
    p->waiting = pthread_create(&p->thread, NULL, tick, p) == 0;
}

void progress_end(progress *p)
{
    if (p->waiting) {
        pthread_mutex_lock(&lock);
        p->done = true;
        pthread_cond_signal(&p->ended);
        pthread_mutex_unlock(&lock);
        pthread_join(p->thread, NULL);
        p->waiting = false;
    }
    pthread_mutex_lock(&lock);
    hide();
    current = p->outer;
    p->heads = false;
    pthread_mutex_unlock(&lock);
}

void progress_hide(void)
{
    pthread_mutex_lock(&lock);
    hide();
    pthread_mutex_unlock(&lock);
}

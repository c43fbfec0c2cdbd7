/* progress.c - one line, rewritten in place, that goes away when the work is done. */
#include "common/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static progress *current; /* the one on the terminal */

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

void progress_begin(progress *p, const char *what, bool off)
{
    memset(p, 0, sizeof *p);
    p->what = what;
    p->begin_ns = now_ns();
    p->enabled = shows(off);
    p->outer = current;
    progress_hide();
    current = p->enabled ? p : current;
}

/* After a second, and at most ten times in each. */
static bool due(progress *p)
{
    uint64_t t = p->enabled ? now_ns() : 0;
    if (!p->enabled || t - p->begin_ns < 1000000000u || t - p->shown_ns < 100000000u)
        return false;
    p->shown_ns = t;
    p->visible = true;
    return true;
}

/* What the rest takes if it goes on as so far; nothing while that would be a guess. */
static void say_left(const progress *p, double share)
{
    double left = share > 0.01 ? (double)(now_ns() - p->begin_ns) / 1e9 * (1 / share - 1) : 0;
    if (left >= 3600)
        fprintf(stderr, ", %.1f h left", left / 3600);
    else if (left >= 90)
        fprintf(stderr, ", %.0f min left", left / 60);
    else if (left >= 1)
        fprintf(stderr, ", %.0f s left", left);
    fputs(" \033[K", stderr);
}

void progress_step(progress *p, uint64_t done, uint64_t total)
{
    if (!due(p))
        return;
    if (total > 0) {
        fprintf(stderr, "\r%s %3.0f %% (%" PRIu64 " of %" PRIu64 ")", p->what,
                100.0 * (double)done / (double)total, done, total);
        say_left(p, (double)done / (double)total);
    } else {
        fprintf(stderr, "\r%s %" PRIu64 " ", p->what, done);
    }
    fflush(stderr);
}

void progress_share(progress *p, uint64_t done, double share)
{
    if (!due(p))
        return;
    share = share < 1 ? share : 1;
    fprintf(stderr, "\r%s %3.0f %% (%" PRIu64 ")", p->what, 100 * share, done);
    say_left(p, share);
    fflush(stderr);
}

static void *tick(void *arg)
{
    progress *p = arg;
    pthread_mutex_lock(&p->lock);
    for (uint64_t seconds = 1; !p->done; seconds++) {
        uint64_t at = p->begin_ns + seconds * 1000000000u;
        struct timespec when = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
        while (!p->done && now_ns() < at)
            pthread_cond_timedwait(&p->ended, &p->lock, &when);
        if (p->done)
            break;
        p->visible = true;
        fprintf(stderr, "\r%s %" PRIu64 " s ", p->what, seconds);
        fflush(stderr);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void progress_wait(progress *p, const char *what, bool off)
{
    pthread_condattr_t steady;
    progress_begin(p, what, off);
    if (!p->enabled)
        return;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->ended, &steady);
    pthread_condattr_destroy(&steady);
    p->waiting = pthread_create(&p->thread, NULL, tick, p) == 0;
}

void progress_end(progress *p)
{
    if (p->waiting) {
        pthread_mutex_lock(&p->lock);
        p->done = true;
        pthread_cond_signal(&p->ended);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
        p->waiting = false;
    }
    progress_hide();
    current = p->outer;
}

void progress_hide(void)
{
    progress *p = current;
    if (p == NULL)
        return;
    if (p->waiting)
        pthread_mutex_lock(&p->lock);
    if (p->visible)
        fputs("\r\033[K", stderr);
    p->visible = false;
    if (p->waiting)
        pthread_mutex_unlock(&p->lock);
}

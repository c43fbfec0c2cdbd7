/* workers.h - a pool's workers from its first loop on: its own ones come once that is worth what
 * they cost, which loops of a test hardly ever are, and what may go wrong between threads would not
 * be tested. */
#ifndef TESTS_UNIT_WORKERS_H
#define TESTS_UNIT_WORKERS_H

#include <pthread.h>
#include <stdlib.h>

#include "ort.h"

typedef struct test_worker {
    pthread_t handle;
    void (*work)(void *arg);
    void *arg;
} test_worker;

static void *run_test_worker(void *arg)
{
    test_worker *worker = arg;
    worker->work(worker->arg);
    return NULL;
}

static void *start_test_worker(void *arg, void (*work)(void *work_arg), void *work_arg)
{
    test_worker *worker = malloc(sizeof *worker);
    if (!worker)
        return NULL;
    *worker = (test_worker){.work = work, .arg = work_arg};
    if (!pthread_create(&worker->handle, NULL, run_test_worker, worker))
        return worker;
    free(worker);
    return NULL;
}

static void join_test_worker(void *arg, void *thread)
{
    pthread_join(((test_worker *)thread)->handle, NULL);
    free(thread);
}

static const ort_threads workers_at_once = {start_test_worker, join_test_worker, NULL};

#endif

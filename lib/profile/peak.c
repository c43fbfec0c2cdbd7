/* peak.c - measuring the machine (peak.h). Best of several rounds; each thread has memory of its
 * own, so that a level is measured at what all threads get together. */
#include "profile/peak.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/log.h"

enum { ROUNDS = 5, SPIN_US = 200 };
#define FMA_ROUNDS 200000
#define BYTES_PER_ROUND ((size_t)32 << 20) /* through the caches, per thread */
#define MEMORY_LIMIT ((size_t)192 << 20)   /* of all threads together */

typedef struct probe {
    const ort_kernels *k;
    float *memory;    /* of all threads */
    size_t floats;    /* of one thread */
    size_t repeats;
    bool adds;        /* a + b -> c; else reading alone */
    double *work;     /* per task: operations or bytes */
    float *sink;
} probe;

static void compute(void *arg, size_t task, int thread)
{
    probe *p = arg;
    (void)thread;
    p->work[task] = p->k->gemm.multiply_adds(FMA_ROUNDS, &p->sink[task]);
}

/* Three streams of a third each, or one. */
static void stream(void *arg, size_t task, int thread)
{
    probe *p = arg;
    float *a = p->memory + task * p->floats;
    size_t third = p->floats / 3;
    (void)thread;
    for (size_t r = 0; r < p->repeats; r++) {
        if (p->adds)
            p->k->math.binary[ORT_BINARY_ADD](a, a + third, a + 2 * third, third, ORT_FORM_VV);
        else
            p->sink[task] += (float)p->k->math.reduce[ORT_ACCUM_MAX](a, p->floats);
    }
    p->work[task] = (double)(p->adds ? 3 * third : p->floats) * 4 * (double)p->repeats;
}

/* Work per nanosecond of all tasks together, the best of some rounds. */
static double best_rate(probe *p, ort_pool *pool, size_t tasks, ort_task_fn *fn)
{
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin = ort_clock_ns();
        double work = 0;
        ort_pool_run(pool, tasks, fn, p);
        double ns = (double)(ort_clock_ns() - begin);
        for (size_t t = 0; t < tasks; t++)
            work += p->work[t];
        if (ns > 0 && work / ns > best)
            best = work / ns;
    }
    return best;
}

static double measure_level(probe *p, ort_pool *pool, size_t tasks, size_t bytes)
{
    double reads, adds;
    p->floats = bytes / 4;
    p->repeats = BYTES_PER_ROUND > bytes ? BYTES_PER_ROUND / bytes : 1;
    p->adds = false;
    reads = best_rate(p, pool, tasks, stream);
    p->adds = true;
    adds = best_rate(p, pool, tasks, stream);
    return reads > adds ? reads : adds;
}

/* Half of each cache that a core has to itself, a part of the shared one, and twice that one. */
static size_t choose_levels(size_t tasks, ort_peak *peak)
{
    const ort_cpu *cpu = ort_cpu_get();
    size_t memory = 2 * cpu->l3_bytes / tasks, least = 4 * cpu->l2_bytes;
    memory = memory < MEMORY_LIMIT / tasks ? memory : MEMORY_LIMIT / tasks;
    memory = memory > least ? memory : least;
    const size_t bytes[ORT_PEAK_LEVELS] = {cpu->l1d_bytes / 2, cpu->l2_bytes / 2,
                                           2 * cpu->l2_bytes, memory};
    const size_t serves[ORT_PEAK_LEVELS] = {tasks * cpu->l1d_bytes, tasks * cpu->l2_bytes,
                                            cpu->l3_bytes / 2, SIZE_MAX};
    peak->level_count = ORT_PEAK_LEVELS;
    for (int i = 0; i < ORT_PEAK_LEVELS; i++) {
        peak->levels[i].bytes = tasks * bytes[i];
        peak->levels[i].serves_bytes = serves[i];
    }
    return memory;
}

ort_status ort_peak_measure(ort_pool *pool, ort_peak *peak, ort_error *err)
{
    size_t tasks = pool ? (size_t)ort_pool_threads(pool) : 1;
    probe p = {.k = ort_kernels_get(NULL)};
    *peak = (ort_peak){.threads = (int)tasks};
    size_t most = choose_levels(tasks, peak);
    p.work = calloc(tasks, sizeof *p.work);
    p.sink = calloc(tasks, sizeof *p.sink);
    p.memory = calloc(tasks, most);
    if (!p.work || !p.sink || !p.memory) {
        free(p.work);
        free(p.sink);
        free(p.memory);
        return ort_error_memory(err, tasks * most);
    }
    memset(p.memory, 1, tasks * most); /* pages of its own, not the zero page */
    unsigned control = ort_cpu_set_flush(true);
    ort_pool_enter(pool, SPIN_US);
    peak->gflops = best_rate(&p, pool, tasks, compute);
    for (int i = 0; i < peak->level_count; i++)
        peak->levels[i].gb_per_s = measure_level(&p, pool, tasks, peak->levels[i].bytes / tasks);
    ort_pool_leave(pool);
    ort_cpu_restore_fp(control);
    free(p.work);
    free(p.sink);
    free(p.memory);
    return ORT_OK;
}

double ort_peak_bound_ns(const ort_peak *peak, double flops, double bytes)
{
    int level = 0;
    if (peak->level_count == 0 || peak->gflops <= 0)
        return 0;
    while (level + 1 < peak->level_count && bytes > (double)peak->levels[level].serves_bytes)
        level++;
    double compute_ns = flops / peak->gflops;
    double stream_ns = bytes / peak->levels[level].gb_per_s;
    return compute_ns > stream_ns ? compute_ns : stream_ns;
}

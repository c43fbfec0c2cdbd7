/* peak.c - measuring the machine (peak.h). Best of several rounds; each thread has memory of its
 * own, so that a level is measured at what all threads get together. */
#include "profile/peak.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/log.h"

/* Many short rounds: on a machine that others share, some of them are not interrupted. */
enum { ROUNDS = 24, SPIN_US = 200, CHAIN = 20000, CHAIN_CYCLES = 3 };
#define HUGE_PAGE ((size_t)2 << 20)
#define ROUNDS_NS 40000000 /* and no more of them after so long */
#define FMA_ROUNDS 40000
#define BYTES_PER_ROUND ((size_t)4 << 20) /* through the caches, per thread */
#define MEMORY_LIMIT ((size_t)192 << 20)   /* of all threads together */

typedef struct probe {
    const ort_kernels *k;
    float *memory;    /* of all threads */
    size_t floats;    /* of one thread */
    size_t repeats;
    enum { READ_MAX, READ_SUM, ADD, STREAMS } how; /* two ways of reading; a + b -> c */
    double *work;     /* per task: operations or bytes */
    float *sink;
} probe;

static void compute(void *arg, size_t task, int thread)
{
    probe *p = arg;
    p->work[task] = p->k->gemm.multiply_adds(FMA_ROUNDS, &p->sink[task]);
}

static void compute_bytes(void *arg, size_t task, int thread)
{
    probe *p = arg;
    p->work[task] = p->k->gemm.byte_multiply_adds(FMA_ROUNDS, &p->sink[task]);
}

static void compute_tiles(void *arg, size_t task, int thread)
{
    probe *p = arg;
    p->work[task] = p->k->gemm.tile_multiply_adds(FMA_ROUNDS, &p->sink[task]);
}

/* Three streams of a third each, or one. */
static void stream(void *arg, size_t task, int thread)
{
    probe *p = arg;
    float *a = p->memory + task * p->floats;
    size_t third = p->floats / 3;
    for (size_t r = 0; r < p->repeats; r++) {
        if (p->how == ADD)
            p->k->math.binary[ORT_BINARY_ADD](a, a + third, a + 2 * third, third, ORT_FORM_VV);
        else
            p->sink[task] += (float)p->k->math.reduce[p->how == READ_MAX ? ORT_ACCUM_MAX
                                                                         : ORT_ACCUM_SUM](
                a, p->floats);
    }
    p->work[task] = (double)(p->how == ADD ? 3 * third : p->floats) * 4 * (double)p->repeats;
}

/* Work per nanosecond of all tasks together, the best of some rounds. */
static double best_rate(probe *p, ort_pool *pool, size_t tasks, ort_task_fn *fn)
{
    double best = 0;
    uint64_t start = ort_clock_ns();
    for (int round = 0; round < ROUNDS && ort_clock_ns() - start < ROUNDS_NS; round++) {
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

/* A chain of multiplications, each of which waits for the one before: three cycles on every x86-64
 * core since 2008 (Fog, "Instruction tables"). */
static double measure_clock(void)
{
    double best = 0;
#if defined(__x86_64__)
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t x = 3, begin = ort_clock_ns();
        for (int i = 0; i < CHAIN; i++) {
            x *= 0x9e3779b97f4a7c15u;
            __asm__ volatile("" : "+r"(x));
        }
        double ns = (double)(ort_clock_ns() - begin);
        if (ns > 0 && CHAIN * CHAIN_CYCLES / ns > best)
            best = CHAIN * CHAIN_CYCLES / ns;
    }
#endif
    return best;
}

static double measure_level(probe *p, ort_pool *pool, size_t tasks, size_t bytes)
{
    double best = 0;
    p->floats = bytes / 4;
    p->repeats = BYTES_PER_ROUND > bytes ? BYTES_PER_ROUND / bytes : 1;
    for (p->how = READ_MAX; p->how < STREAMS; p->how++) {
        double rate = best_rate(p, pool, tasks, stream);
        best = rate > best ? rate : best;
    }
    return best;
}

/* Half of each cache that a core has to itself, a part of the shared one, and twice that one. */
static size_t choose_levels(size_t tasks, ort_peak *peak)
{
    ort_cpu_caches cpu = ort_cpu_find_caches();
    size_t memory = 2 * cpu.l3_bytes / tasks, least = 4 * cpu.l2_bytes;
    memory = memory < MEMORY_LIMIT / tasks ? memory : MEMORY_LIMIT / tasks;
    memory = memory > least ? memory : least;
    const size_t bytes[ORT_PEAK_LEVELS] = {cpu.l1d_bytes / 2, cpu.l2_bytes / 2,
                                           2 * cpu.l2_bytes, memory};
    const size_t serves[ORT_PEAK_LEVELS] = {tasks * cpu.l1d_bytes, tasks * cpu.l2_bytes,
                                            cpu.l3_bytes / 2, SIZE_MAX};
    peak->level_count = ORT_PEAK_LEVELS;
    for (int i = 0; i < ORT_PEAK_LEVELS; i++) {
        peak->levels[i].bytes = tasks * bytes[i];
        peak->levels[i].serves_bytes = serves[i];
    }
    return memory;
}

ort_status ort_peak_measure(const ort_kernels *kernels, ort_pool *pool, ort_peak *peak,
                            ort_error *err)
{
    size_t tasks = pool ? (size_t)ort_pool_threads(pool) : 1;
    probe p = {.k = kernels};
    *peak = (ort_peak){.size = sizeof *peak, .threads = (int)tasks};
    size_t most = choose_levels(tasks, peak);
    p.work = calloc(tasks, sizeof *p.work);
    p.sink = calloc(tasks, sizeof *p.sink);
    p.memory = aligned_alloc(HUGE_PAGE, (tasks * most + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    if (!p.work || !p.sink || !p.memory) {
        free(p.work);
        free(p.sink);
        free(p.memory);
        return ort_error_memory(err, tasks * most);
    }
#ifdef MADV_HUGEPAGE /* as a session's memory */
    (void)madvise(p.memory, tasks * most, MADV_HUGEPAGE);
#endif
    memset(p.memory, 1, tasks * most); /* pages of its own, not the zero page */
    unsigned control = ort_cpu_set_flush(true);
    ort_pool_enter(pool, SPIN_US, NULL);
    peak->ghz = measure_clock();
    peak->gflops = best_rate(&p, pool, tasks, compute);
    peak->int8_gops = best_rate(&p, pool, tasks, compute_bytes);
    if (kernels->gemm.tile_multiply_adds)
        peak->tile_gflops = best_rate(&p, pool, tasks, compute_tiles);
    double later = measure_clock();
    peak->ghz = later > peak->ghz ? later : peak->ghz;
    for (int i = 0; i < peak->level_count; i++)
        peak->levels[i].gb_per_s = measure_level(&p, pool, tasks, peak->levels[i].bytes / tasks);
    ort_pool_leave(pool, NULL);
    ort_cpu_restore_fp(control);
    free(p.work);
    free(p.sink);
    free(p.memory);
    return ORT_OK;
}

/* What a level can hold may come from it at its rate, the rest from beyond. */
static double stream_ns(const ort_peak *peak, double bytes)
{
    double ns = 0, nearer = 0;
    for (int i = 0; i < peak->level_count && bytes > 0; i++) {
        double room = (double)peak->levels[i].serves_bytes - nearer;
        double part = i + 1 == peak->level_count || bytes < room ? bytes : room;
        ns += part > 0 ? part / peak->levels[i].gb_per_s : 0;
        bytes -= part > 0 ? part : 0;
        nearer = (double)peak->levels[i].serves_bytes;
    }
    return ns;
}

double ort_peak_bound_ns(const ort_peak *peak, double flops, double bytes, double resident)
{
    if (peak->level_count == 0 || peak->gflops <= 0)
        return 0;
    double compute_ns = flops / peak->gflops, memory_ns = 0;
    if (resident > 0)
        memory_ns = stream_ns(peak, resident) * bytes / resident;
    return compute_ns > memory_ns ? compute_ns : memory_ns;
}

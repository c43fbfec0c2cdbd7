/* read_share.c - how near a model of one product comes to a loop that only reads as many bytes, on
 * the same core and by turns.
 *
 * usage: read_share MODEL BYTES ISA ROUNDS
 *
 * BYTES is what a run of MODEL has to read, more than the last-level cache holds, so that neither a
 * run nor a loop finds anything there of the one before. The loop adds up 32 or 64 bytes at a time
 * into eight sums, whichever is faster. Its memory comes in pages of 4 KiB, as the weights of a
 * session do where huge pages are slow to come (lib/base/huge.h); where they aren't,
 * ORT_READ_HUGE=1 asks for huge ones here, too.
 * Prints the medians of GB/s of runs and of reads, and of the share that a run had of the read next
 * to it, with the first and third quartile of that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "ort.h"

enum { ROUNDS_MOST = 1000, HUGE_PAGE = 2 << 20 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- reading */

#define READ(name, attributes, width)                                                              \
    typedef uint64_t name##_vector __attribute__((vector_size(width), may_alias));                 \
    attributes static uint64_t name(const char *from, size_t bytes)                                \
    {                                                                                              \
        name##_vector a = {0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;                    \
        const name##_vector *p = (const name##_vector *)(const void *)from;                        \
        for (size_t i = 0; i + 8 <= bytes / width; i += 8, p += 8) {                               \
            a += p[0], b += p[1], c += p[2], d += p[3];                                            \
            e += p[4], f += p[5], g += p[6], h += p[7];                                            \
        }                                                                                          \
        a += b + c + d + e + f + g + h;                                                            \
        return a[0] + a[1];                                                                        \
    }
READ(read_16, , 16)
#if defined(__x86_64__)
READ(read_32, __attribute__((target("avx2"))), 32)
READ(read_64, __attribute__((target("avx512f"))), 64)
#define HAS(isa) __builtin_cpu_supports(isa)
#else
#define read_32 read_16
#define read_64 read_16
#define HAS(isa) false
#endif

static uint64_t read_narrow(const char *from, size_t bytes)
{
    return HAS("avx2") ? read_32(from, bytes) : read_16(from, bytes);
}

static uint64_t read_wide(const char *from, size_t bytes)
{
    return HAS("avx512f") ? read_64(from, bytes) : read_narrow(from, bytes);
}

static volatile uint64_t sink;

static double read_ns(const char *from, size_t bytes, bool wide)
{
    const double begin = now_ns();
    sink = wide ? read_wide(from, bytes) : read_narrow(from, bytes);
    return now_ns() - begin;
}

/* ---- runs */

typedef struct product {
    ort_env *env;
    ort_model *model;
    ort_session *session;
    ort_binding *binding;
    ort_value *x;
} product;

static bool open_product(product *p, const char *path, const char *isa, ort_error *err)
{
    ort_env_options env;
    ort_env_options_init(&env);
    env.threads = 1;
    env.isa = *isa ? isa : NULL;
    return ort_env_new(&env, &p->env, err) == ORT_OK &&
           ort_model_load(p->env, path, NULL, &p->model, err) == ORT_OK &&
           ort_session_new(p->env, p->model, NULL, &p->session, err) == ORT_OK &&
           ort_session_random_inputs(p->session, 1, &p->x, 1, err) == ORT_OK &&
           ort_binding_new(p->session, &p->binding, err) == ORT_OK &&
           ort_binding_set_input(p->binding, ort_session_input_name(p->session, 0), p->x, err) ==
               ORT_OK &&
           ort_binding_run(p->binding, NULL, err) == ORT_OK;
}

static double run_ns(product *p, bool *fails, ort_error *err)
{
    const double begin = now_ns();
    *fails |= ort_binding_run(p->binding, NULL, err) != ORT_OK;
    return now_ns() - begin;
}

static void close_product(product *p)
{
    ort_binding_free(p->binding);
    ort_value_free(p->x);
    ort_session_free(p->session);
    ort_model_free(p->model);
    ort_env_free(p->env);
}

/* ---- rounds */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(product *p, const char *memory, size_t bytes, int rounds, bool *fails,
                    ort_error *err)
{
    static double runs[ROUNDS_MOST], reads[ROUNDS_MOST], shares[ROUNDS_MOST];
    double narrow = 0, wide = 0;
    for (int i = 0; i < 2; i++) {
        narrow = read_ns(memory, bytes, false);
        wide = read_ns(memory, bytes, true);
    }
    for (int i = 0; i < rounds; i++) {
        const double run = run_ns(p, fails, err), read = read_ns(memory, bytes, wide < narrow);
        runs[i] = (double)bytes / run;
        reads[i] = (double)bytes / read;
        shares[i] = read / run;
    }
    qsort(runs, (size_t)rounds, sizeof *runs, by_size);
    qsort(reads, (size_t)rounds, sizeof *reads, by_size);
    qsort(shares, (size_t)rounds, sizeof *shares, by_size);
    printf("%.3f %.3f %.4f %.4f %.4f %s\n", runs[rounds / 2], reads[rounds / 2], shares[rounds / 2],
           shares[rounds / 4], shares[rounds * 3 / 4], ort_env_isa(p->env));
}

int main(int argc, char **argv)
{
    product p = {0};
    ort_error err = {0};
    const size_t bytes = argc == 5 ? strtoull(argv[2], NULL, 10) : 0;
    const int rounds = argc == 5 ? atoi(argv[4]) : 0;
    if (bytes == 0 || rounds < 1 || rounds > ROUNDS_MOST) {
        fprintf(stderr, "usage: read_share MODEL BYTES ISA ROUNDS\n");
        return 2;
    }
    bool fails = !open_product(&p, argv[1], argv[3], &err);
    const size_t room = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *memory = fails ? NULL : aligned_alloc(HUGE_PAGE, room);
    if (memory) {
#ifdef MADV_HUGEPAGE
        (void)madvise(memory, room, getenv("ORT_READ_HUGE") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
        memset(memory, 1, room);
        measure(&p, memory, bytes, rounds, &fails, &err);
    }
    if (fails || !memory)
        fprintf(stderr, "read_share: %s\n", fails ? err.message : "not enough memory");
    free(memory);
    close_product(&p);
    return fails || !memory;
}

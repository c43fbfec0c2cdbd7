/* bench.h - what the pieces of the benchmark know of each other.
 *
 * bench.c lists models and measures them (measure.c) in processes of their own (worker.c, over
 * runtime.h; peers/worker.py for peers without a C library), compares outputs (compare.c), then
 * prints tables and gates (bench_table.c) (integers.c) over ratios (ratios.c) and
 * bounds (bound.c).
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "ort.h"

/* From LITERT on, processes of peers/worker.py with a form of the model of their own. */
enum { OURS, ONNXRUNTIME, OPENVINO, TRACT, LITERT, CTRANSLATE2, LLEAVES, LLAMACPP, SIDES };
enum { MAX_ROUNDS = 99, MAX_LAUNCHES = 15 };

typedef struct settings {
    const char *library[SIDES]; /* NULL: not measured; from LITERT on, a Python to run them */
    const char *version[SIDES];
    const char *only, *scratch, *families;
    const char *worker; /* peers/worker.py */
    int threads[8], thread_count, rounds, launches;
    double patience_s; /* rounds go on so long until the interval is narrow */
    int limit_s;       /* of each answer of a peer, some of which never come to an end */
} settings;

typedef enum side_state {
    SIDE_ABSENT, /* no library given, or it has no form of the model */
    SIDE_FAILED, /* it can't load or run the model: `why` */
    SIDE_WRONG,  /* its outputs are off: timed, but no peer to beat */
    SIDE_FINE
} side_state;

typedef struct side {
    side_state state;
    double ready, first, peak; /* milliseconds, milliseconds, MB */
    double round[MAX_ROUNDS];  /* median of each, milliseconds */
    double best;               /* the least of them */
    char why[300];  /* it isn't fine */
    char note[200]; /* what a reader of its figures should know */
} side;

typedef struct measure {
    char name[100], family[32];
    char twin[100]; /* the model in float of which it is an integer form, or "" */
    side side[SIDES];
    int rounds;
    double gflop, weight_mb; /* of a run (runtime.h) */
    bool differs; /* it is our outputs that are off; nothing was timed */
} measure;

typedef struct interval {
    double low, high;
} interval;

extern const char *const side_names[SIDES];

/* worker.c. argv: NAME LIBRARY FOLDER THREADS START_MS [FAMILY]. Never returns. */
int worker_main(char **argv);

/* single_times.c: one time in milliseconds on standard output, for scripts. argv: LIBRARY MODEL; a
 * command. Both return the exit status. */
int creation_main(char **argv);
int launch_main(char **argv);

/* Of a set of ratios. */
typedef struct ratio_mean {
    double log_sum;
    int count;
} ratio_mean;

/* ratios.c */
void mean_add(ratio_mean *m, double ratio);
double mean_of(const ratio_mean *m); /* the geometric one; NaN: of none */
/* Whether outputs were compared and ours are right. */
bool compared(const measure *m);
/* The fastest peer whose outputs are right, or NULL. */
const side *best_peer(const measure *m);
/* 95 % interval of the ratio ours / theirs over the rounds, which are measured side by side. */
interval ratio_interval(const measure *m, const side *theirs);
/* Enough to judge by. */
bool is_narrow(interval range);

/* compare.c: judge the outputs that each side wrote to outputs_path. */
void outputs_path(const settings *set, int which, char path[PATH_MAX]);
void compare_outputs(const settings *set, const char *folder, measure *m);

/* measure.c: fill in m->side. */
void measure_model(const settings *set, const char *folder, int threads, measure *m);

/* progress.c: which model of how many is at hand, a line for each that is done. */
typedef struct progress {
    size_t done, total; /* models, each number of threads for itself */
    double begin_ms;
} progress;

void progress_next(const progress *p, const char *name, int threads);
void progress_done(progress *p, const measure *m, int threads);

/* machine.c: the processors, their load, and what the host took of them. */
typedef struct machine_times {
    double at_ms, stolen_ms;
} machine_times;

machine_times print_load(int threads);
void print_load_since(int threads, machine_times before);
void print_processors(void);

/* Measured with so many threads; the better of two measurements in each figure. */
ort_peak machine_peak(int threads);
ort_peak better_peak(ort_peak a, ort_peak b);

/* bound.c: the least time in which a machine of this peak can do a model's products and sums as
 * they are defined, and read its weights once, in milliseconds; 0: not known. */
typedef struct bound {
    double ms;
    bool by_memory; /* not by arithmetic */
} bound;

bound bound_of(const measure *m, const ort_peak *peak);

/* integers.c: integer models beside their twins in float, and which are slower than onnxruntime. */
void print_integers(int threads, const measure *list, size_t count);

/* bench_table.c: the tables and gates of one number of threads. */
void print_tables(int threads, const ort_peak *peak, const measure *list, size_t count);

#endif

/* bench.h - what the pieces of the benchmark know of each other.
 *
 * bench.c lists models and measures them (measure.c) in processes of their own (worker.c, over
 * runtime.h), then prints tables and gates (bench_table.c).
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { OURS, ONNXRUNTIME, OPENVINO, TRACT, SIDES };
enum { MAX_ROUNDS = 99, MAX_LAUNCHES = 15 };

typedef struct settings {
    const char *library[SIDES]; /* NULL: not measured */
    const char *only, *scratch, *families;
    int threads[8], thread_count, rounds, launches;
} settings;

typedef enum side_state {
    SIDE_ABSENT, /* no library given */
    SIDE_FAILED, /* it can't load or run the model: `why` */
    SIDE_WRONG,  /* its outputs are off: timed, but no peer to beat */
    SIDE_FINE
} side_state;

typedef struct side {
    side_state state;
    double ready, first, peak; /* milliseconds, milliseconds, MB */
    double round[MAX_ROUNDS];  /* median of each, milliseconds */
    double best;               /* the least of them */
    char why[300];
} side;

typedef struct measure {
    char name[100], family[32];
    side side[SIDES];
    bool differs; /* it is our outputs that are off; nothing was timed */
} measure;

extern const char *const side_names[SIDES];

/* worker.c. argv: NAME LIBRARY FOLDER THREADS START_MS. Never returns. */
int worker_main(char **argv);

/* single_times.c: one time in milliseconds on standard output, for scripts. argv: LIBRARY MODEL; a
 * command. Both return the exit status. */
int creation_main(char **argv);
int launch_main(char **argv);

/* measure.c: fill in m->side. */
void measure_model(const settings *set, const char *folder, int threads, measure *m);

/* bench_table.c: the tables and gates of one number of threads. */
void print_tables(const settings *set, int threads, const measure *list, size_t count);

#endif

/* integers.c - integer models beside their twins in float, whose file names them (families.txt).
 *
 * Who quantizes a model wants it faster than it was: the ratio is our time of the one over our time
 * of the other. Both are best rounds of one run of the benchmark, which the host may disturb
 * differently; those of peers are measured side by side (ratios.c). Prompts whose weights alone are
 * integers are held to onnxruntime's time.
 */
#include <string.h>

#include "bench.h"
#include "runtime.h"

typedef struct twin_gate {
    const char *family, *title; /* of the twin */
    double limit, limit_without_vnni;
} twin_gate;

static const twin_gate gates[] = {{"convolutional", "convolutional", 0.40, 0.65},
                                  {"encoder", "encoders", 0.55, 0.75}};
enum { GATES = sizeof gates / sizeof *gates };
static const double each_limit = 1.0;

/* NULL: it has none, or that wasn't measured. */
static const measure *twin_of(const measure *m, const measure *list, size_t count)
{
    for (size_t k = 0; m->twin[0] && compared(m) && k < count; k++)
        if (!strcmp(list[k].name, m->twin) && compared(&list[k]))
            return &list[k];
    return NULL;
}

static double over_twin(const measure *m, const measure *twin)
{
    return m->side[OURS].best / twin->side[OURS].best;
}

static void print_gate(const twin_gate *gate, const measure *list, size_t count)
{
    ratio_mean over = {0};
    double limit = runtime_saturates() ? gate->limit_without_vnni : gate->limit;
    for (size_t k = 0; k < count; k++) {
        const measure *twin = twin_of(&list[k], list, count);
        if (twin && !strcmp(twin->family, gate->family))
            mean_add(&over, over_twin(&list[k], twin));
    }
    if (over.count)
        printf("| geometric mean of %d %s, at most %.2f | | | **%.2f** %s |\n", over.count,
               gate->title, limit, mean_of(&over), mean_of(&over) <= limit ? "" : "beyond");
}

static void print_twins(int threads, const measure *list, size_t count)
{
    bool begun = false;
    for (size_t k = 0; k < count; k++) {
        const measure *twin = twin_of(&list[k], list, count);
        if (!twin)
            continue;
        if (!begun)
            printf("\nIntegers over float, %d thread%s: our median of a run in ms\n\n"
                   "| model | integers | float | integers / float |\n"
                   "| --- | --: | --: | --: |\n",
                   threads, threads > 1 ? "s" : "");
        begun = true;
        double ratio = over_twin(&list[k], twin);
        printf("| %s | %.4g | %.4g | %.2f%s |\n", list[k].name, list[k].side[OURS].best,
               twin->side[OURS].best, ratio, ratio > each_limit ? " slower" : "");
    }
    for (int i = 0; begun && i < GATES; i++)
        print_gate(&gates[i], list, count);
}

/* The least that the ratio over onnxruntime may be, of an integer model whose outputs agree. */
static bool over_onnxruntime(const measure *m, double *least)
{
    const side *theirs = &m->side[ONNXRUNTIME];
    if (strcmp(m->family, "integer") || !compared(m) || theirs->state != SIDE_FINE)
        return false;
    *least = ratio_interval(m, theirs).low;
    return true;
}

static void print_slower(const measure *list, size_t count)
{
    int slower = 0, all = 0;
    double least;
    for (size_t k = 0; k < count; k++) {
        bool has = over_onnxruntime(&list[k], &least);
        all += has;
        slower += has && least > each_limit;
    }
    if (all == 0)
        return;
    printf("\n- integer models slower than onnxruntime: %d of %d:", slower, all);
    for (size_t k = 0; k < count; k++)
        if (over_onnxruntime(&list[k], &least) && least > each_limit)
            printf(" %s %.2f", list[k].name, least);
    printf("\n");
}

/* Weights of 4 bits whose sums are floats in both: our time over onnxruntime's. */
static void print_bits(const measure *list, size_t count)
{
    static const double limit = 0.75;
    ratio_mean over = {0};
    for (size_t k = 0; k < count; k++) {
        const side *theirs = &list[k].side[ONNXRUNTIME];
        if (!strcmp(list[k].family, "bits_prompt") && compared(&list[k]) &&
            theirs->state == SIDE_FINE)
            mean_add(&over, list[k].side[OURS].best / theirs->best);
    }
    if (over.count)
        printf("\n- prompts, weights of 4 bits, over onnxruntime: %.2f of at most %.2f%s\n",
               mean_of(&over), limit, mean_of(&over) <= limit ? "" : ", beyond");
}

/* Until a session is ready, and the most memory, over onnxruntime's. */
typedef struct start_gate {
    const char *title;
    double limit, each;
    ratio_mean mean;
    double most;
} start_gate;

static void add_start(start_gate *gate, double ours, double theirs)
{
    if (theirs <= 0)
        return;
    mean_add(&gate->mean, ours / theirs);
    gate->most = ours / theirs > gate->most ? ours / theirs : gate->most;
}

static void print_starts(const measure *list, size_t count)
{
    start_gate ready = {.title = "session ready", .limit = 0.25, .each = 0.5};
    start_gate peak = {.title = "peak memory", .limit = 0.6, .each = 1.0};
    for (size_t k = 0; k < count; k++) {
        const side *ours = &list[k].side[OURS], *theirs = &list[k].side[ONNXRUNTIME];
        if (!strstr(list[k].family, "integer") || !compared(&list[k]) ||
            theirs->state < SIDE_WRONG)
            continue;
        add_start(&ready, ours->ready, theirs->ready);
        add_start(&peak, ours->peak, theirs->peak);
    }
    for (int i = 0; i < 2; i++) {
        const start_gate *gate = i ? &peak : &ready;
        const double mean = mean_of(&gate->mean);
        if (gate->mean.count)
            printf("\n- integer models, %s over onnxruntime: %.2f of at most %.2f in the mean of "
                   "%d, %.2f of at most %.2f the most%s\n",
                   gate->title, mean, gate->limit, gate->mean.count, gate->most, gate->each,
                   mean <= gate->limit && gate->most <= gate->each ? "" : ", beyond");
    }
}

void print_integers(int threads, const measure *list, size_t count)
{
    print_twins(threads, list, count);
    print_slower(list, count);
    print_bits(list, count);
    print_starts(list, count);
}

/* bench_table.c - the tables and gates of the benchmark, as Markdown.
 *
 * A ratio is ours / theirs: below 1 we are ahead. A runtime's time is its best round's median; the
 * best peer of a model is the fastest whose outputs are right. The interval is that of Student's t
 * over the logarithms of the ratios of the rounds, which are measured side by side.
 */
#include <math.h>
#include <string.h>

#include "bench.h"

typedef struct family {
    const char *name, *title;
    double limit; /* of the geometric mean over the best peer; 0: none */
} family;

static const family families[] = {
    {"convolutional", "Convolutional", 0.80},
    {"encoder", "Transformer encoders", 0.94},
    {"recurrent", "Recurrent", 0.60},
    {"decoding", "One-token decoding", 0.60},
    {"tabular", "Tabular", 0.35},
    {"half", "Half precision", 0},
    {"integer", "Integer", 0},
    {"other", "Other", 0},
};
enum { FAMILIES = sizeof families / sizeof *families };

static const double slower_limit = 1.02, ready_limit = 0.25, output_limit = 0.5, peak_limit = 0.6;

typedef struct interval {
    double low, high;
} interval;

static double t_quantile(int freedom) /* of 97.5 % */
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                   2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                   2.110,  2.101, 2.093, 2.086};
    enum { ROWS = sizeof table / sizeof *table };
    return freedom < 1 ? INFINITY : freedom <= ROWS ? table[freedom - 1] : 2.0;
}

static interval paired(const side *a, const side *b, int rounds)
{
    double sum = 0, squares = 0;
    for (int k = 0; k < rounds; k++) {
        double ratio = log(a->round[k] / b->round[k]);
        sum += ratio;
        squares += ratio * ratio;
    }
    double mean = sum / rounds;
    double variance = rounds > 1 ? fmax(0, squares - rounds * mean * mean) / (rounds - 1) : 0;
    double half = t_quantile(rounds - 1) * sqrt(variance / rounds);
    return (interval){exp(mean - half), exp(mean + half)};
}

static const side *best_peer(const measure *m)
{
    const side *best = NULL;
    for (int i = 1; i < SIDES; i++)
        if (m->side[i].state == SIDE_FINE && (!best || m->side[i].best < best->best))
            best = &m->side[i];
    return best;
}

static bool compared(const measure *m)
{
    return m->side[OURS].state == SIDE_FINE && !m->differs;
}

/* Of a set of ratios. */
typedef struct mean {
    double log_sum;
    int count;
} mean;

static void mean_add(mean *m, double ratio)
{
    m->log_sum += log(ratio);
    m->count++;
}

static double mean_of(const mean *m)
{
    return m->count ? exp(m->log_sum / m->count) : NAN;
}

static void print_side(const side *s)
{
    if (s->state == SIDE_FINE)
        printf(" %.4g |", s->best);
    else if (s->state == SIDE_WRONG)
        printf(" %.4g wrong |", s->best);
    else
        printf(" - |");
}

static void print_row(const settings *set, const measure *m, mean *over_best)
{
    const side *ours = &m->side[OURS], *theirs = &m->side[ONNXRUNTIME], *best = best_peer(m);
    printf("| %s |", m->name);
    for (int i = 0; i < SIDES; i++)
        print_side(&m->side[i]);
    if (!compared(m)) {
        printf(" not compared | |\n");
        return;
    }
    if (best) {
        mean_add(over_best, ours->best / best->best);
        printf(" %.2f |", ours->best / best->best);
    } else {
        printf(" |");
    }
    if (theirs->state == SIDE_FINE || theirs->state == SIDE_WRONG) {
        interval range = paired(ours, theirs, set->rounds);
        printf(" %.2f (%.2f to %.2f)%s |\n", ours->best / theirs->best, range.low, range.high,
               range.low > slower_limit ? " slower" : "");
    } else {
        printf(" |\n");
    }
}

/* The rows of one family; its geometric mean over the best peer. */
static mean print_family(const settings *set, int threads, const family *f, const measure *list,
                         size_t count)
{
    mean over_best = {0};
    bool begun = false;
    for (size_t k = 0; k < count; k++) {
        if (strcmp(list[k].family, f->name))
            continue;
        if (!begun)
            printf("\n%s, %d thread%s: median of a run in ms\n\n"
                   "| model | ours | onnxruntime | openvino | tract | ours / best peer | "
                   "ours / onnxruntime (95 %%) |\n"
                   "| --- | --: | --: | --: | --: | --: | --: |\n",
                   f->title, threads, threads > 1 ? "s" : "");
        begun = true;
        print_row(set, &list[k], &over_best);
    }
    if (over_best.count)
        printf("| geometric mean of %d | | | | | **%.2f** | |\n", over_best.count,
               mean_of(&over_best));
    return over_best;
}

/* Start-up and memory beside onnxruntime. */
static void print_start(int threads, const measure *list, size_t count, mean means[3])
{
    printf("\nStart and memory, %d thread%s: ours / onnxruntime\n\n"
           "| model | session ready, ms | | start to first output, ms | | peak memory, MB | |\n"
           "| --- | --: | --: | --: | --: | --: | --: |\n",
           threads, threads > 1 ? "s" : "");
    for (size_t k = 0; k < count; k++) {
        const side *a = &list[k].side[OURS], *b = &list[k].side[ONNXRUNTIME];
        if (!compared(&list[k]) || b->state < SIDE_WRONG)
            continue;
        double ratio[3] = {a->ready / b->ready, (a->ready + a->first) / (b->ready + b->first),
                           a->peak / b->peak};
        printf("| %s | %.2f / %.2f | %.2f | %.2f / %.2f | %.2f | %.1f / %.1f | %.2f |\n",
               list[k].name, a->ready, b->ready, ratio[0], a->ready + a->first,
               b->ready + b->first, ratio[1], a->peak, b->peak, ratio[2]);
        for (int i = 0; i < 3; i++)
            mean_add(&means[i], ratio[i]);
    }
    printf("| geometric mean of %d | | **%.2f** | | **%.2f** | | **%.2f** |\n", means[0].count,
           mean_of(&means[0]), mean_of(&means[1]), mean_of(&means[2]));
}

static void print_gate(const char *what, const mean *figure, double limit)
{
    if (!figure->count)
        return;
    printf("| %s | %d | %.2f |", what, figure->count, mean_of(figure));
    if (limit > 0)
        printf(" %.2f | %s |\n", limit, mean_of(figure) <= limit ? "yes" : "no");
    else
        printf(" | |\n");
}

/* Names of models that are beyond the limit of a gate that holds for each. */
static void print_gate_each(const settings *set, const measure *list, size_t count, int gate)
{
    static const char *const titles[] = {"slower than onnxruntime", "session ready",
                                         "start to first output", "peak memory"};
    static const double *const limits[] = {&slower_limit, &ready_limit, &output_limit,
                                           &peak_limit};
    int beyond = 0, all = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t k = 0; k < count; k++) {
            const side *a = &list[k].side[OURS], *b = &list[k].side[ONNXRUNTIME];
            if (!compared(&list[k]) || b->state < SIDE_WRONG ||
                (gate == 0 && (!strcmp(list[k].family, "integer") ||
                               !strcmp(list[k].family, "half"))))
                continue;
            const double figures[] = {paired(a, b, set->rounds).low, a->ready / b->ready,
                                      (a->ready + a->first) / (b->ready + b->first),
                                      a->peak / b->peak};
            all += pass == 0;
            if (figures[gate] <= *limits[gate])
                continue;
            beyond += pass == 0;
            if (pass == 1)
                printf(" %s %.2f", list[k].name, figures[gate]);
        }
        if (pass == 0)
            printf("- %s, models beyond %.2f: %d of %d:", titles[gate], *limits[gate], beyond,
                   all);
    }
    printf("\n");
}

static void print_notes(const measure *list, size_t count)
{
    printf("\nWhat isn't compared:\n\n");
    for (size_t k = 0; k < count; k++)
        for (int i = 0; i < SIDES; i++)
            if (list[k].side[i].why[0])
                printf("- %s, %s%s: %s\n", list[k].name, side_names[i],
                       list[k].differs && i == ONNXRUNTIME     ? " (ours is off)"
                       : list[k].side[i].state == SIDE_WRONG ? " (wrong)"
                                                             : "",
                       list[k].side[i].why);
}

void print_tables(const settings *set, int threads, const measure *list, size_t count)
{
    mean family_means[FAMILIES], start_means[3] = {{0}};
    for (int f = 0; f < FAMILIES; f++)
        family_means[f] = print_family(set, threads, &families[f], list, count);
    print_start(threads, list, count, start_means);
    printf("\n| ours / theirs, %d thread%s | models | geometric mean | limit | within |\n"
           "| --- | --: | --: | --: | --- |\n",
           threads, threads > 1 ? "s" : "");
    for (int f = 0; f < FAMILIES; f++)
        print_gate(families[f].title, &family_means[f], families[f].limit);
    print_gate("session ready, over onnxruntime", &start_means[0], ready_limit);
    print_gate("start to first output, over onnxruntime", &start_means[1], output_limit);
    print_gate("peak memory, over onnxruntime", &start_means[2], peak_limit);
    printf("\n");
    for (int gate = 0; gate < 4; gate++)
        print_gate_each(set, list, count, gate);
    print_notes(list, count);
    fflush(stdout);
}

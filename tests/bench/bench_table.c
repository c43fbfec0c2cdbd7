/* bench_table.c - the tables and gates of the benchmark, as Markdown.
 *
 * A ratio is ours / theirs: below 1 we are ahead (ratios.c). The best peer of a model is the
 * fastest whose outputs are right.
 */
#include <math.h>
#include <string.h>

#include "bench.h"

typedef struct family {
    const char *name, *title;
    double limit; /* of the geometric mean over the best peer; 0: none */
    bool products; /* its models are products of floats, which bound it */
} family;

static const family families[] = {
    {"convolutional", "Convolutional", 0.70, true},
    {"encoder", "Transformer encoders", 0.85, true},
    {"recurrent", "Recurrent", 0.50, true},
    {"decoding", "One-token decoding", 0.40, true},
    {"prompt", "Prompts of 128 tokens", 0, true},
    {"bits_prompt", "Prompts, weights of 4 bits", 0, true}, /* over onnxruntime: integers.c */
    {"integer_prompt", "Prompts, weights of 4 bits and codes", 0.50, false},
    {"tabular", "Tabular", 0.32, false},
    {"graph", "Graph networks", 0.95, true},
    {"half", "Half precision", 0, true},
    {"integer", "Integer", 0.90, false}, /* with VNNI: elsewhere peers' sums saturate */
    {"other", "Other", 0, false},
};
enum { FAMILIES = sizeof families / sizeof *families };

/* Of geometric means; of each model. */
static const double ready_limit = 0.12, output_limit = 0.5, peak_limit = 0.6;
static const double slower_each = 1.0, ready_each = 0.5, output_each = 0.5, peak_each = 1.0;

static void print_side(const side *s)
{
    if (s->state == SIDE_FINE)
        printf(" %.4g |", s->best);
    else if (s->state == SIDE_WRONG)
        printf(" %.4g wrong |", s->best);
    else
        printf(" - |");
}

/* Those with a form of the model of their own. */
static void print_others(const measure *m)
{
    for (int i = LITERT; i < SIDES; i++) {
        const side *s = &m->side[i];
        if (s->state == SIDE_FINE || s->state == SIDE_WRONG)
            printf(" %s %.4g%s", side_names[i], s->best, s->state == SIDE_WRONG ? " wrong" : "");
    }
    printf(" |");
}

typedef struct family_means {
    ratio_mean over_best; /* of the best peer's time: ours */
    ratio_mean bound;     /* the least that the machine allows */
} family_means;

/* The share of the machine's bound that we reach; the bound over the best peer's time. */
static void print_bound(const measure *m, const family *f, const ort_peak *peak,
                        ratio_mean *over_best)
{
    const side *best = best_peer(m);
    bound least = bound_of(m, peak);
    if (!f->products || least.ms <= 0 || !compared(m)) {
        printf(" |\n");
        return;
    }
    if (best)
        mean_add(over_best, least.ms / best->best);
    printf(" %.0f %%%s |\n", 100 * least.ms / m->side[OURS].best,
           least.by_memory ? " of reads" : "");
}

static void print_row(const measure *m, ratio_mean *over_best)
{
    const side *ours = &m->side[OURS], *best = best_peer(m);
    printf("| %s |", m->name);
    for (int i = 0; i < LITERT; i++)
        print_side(&m->side[i]);
    print_others(m);
    if (!compared(m)) {
        printf(" not compared |");
    } else if (!best) {
        printf(" |");
    } else {
        interval range = ratio_interval(m, best);
        mean_add(over_best, ours->best / best->best);
        printf(" %.2f (%.2f to %.2f)%s |", ours->best / best->best, range.low, range.high,
               range.low > slower_each ? " slower" : is_narrow(range) ? "" : " noisy");
    }
}

/* The rows of one family; its geometric means over the best peer. */
static family_means print_family(int threads, const ort_peak *peak, const family *f,
                                 const measure *list, size_t count)
{
    family_means means = {{0}, {0}};
    bool begun = false;
    for (size_t k = 0; k < count; k++) {
        if (strcmp(list[k].family, f->name))
            continue;
        if (!begun)
            printf("\n%s, %d thread%s: median of a run in ms\n\n"
                   "| model | ours | onnxruntime | openvino | tract | others | "
                   "ours / best peer (95 %%) | of peak |\n"
                   "| --- | --: | --: | --: | --: | --: | --: | --: |\n",
                   f->title, threads, threads > 1 ? "s" : "");
        begun = true;
        print_row(&list[k], &means.over_best);
        print_bound(&list[k], f, peak, &means.bound);
    }
    if (means.over_best.count)
        printf("| geometric mean of %d | | | | | | **%.2f** | |\n", means.over_best.count,
               mean_of(&means.over_best));
    return means;
}

/* Start-up and memory beside onnxruntime. */
static void print_start(int threads, const measure *list, size_t count, ratio_mean means[3])
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

static void print_gate(const char *what, const ratio_mean *figure, double limit,
                       const ratio_mean *least)
{
    if (!figure->count)
        return;
    printf("| %s | %d | %.2f |", what, figure->count, mean_of(figure));
    if (limit > 0)
        printf(" %.2f | %s |", limit, mean_of(figure) <= limit ? "yes" : "no");
    else
        printf(" | |");
    if (least->count)
        printf(" %.2f", mean_of(least));
    printf(" |\n");
}

enum { SLOWER, READY, OUTPUT, PEAK, EACH_GATES };

/* The figure of a gate that holds for each model; false where it has none. */
static bool figure_of(const measure *m, int gate, double *figure)
{
    const side *ours = &m->side[OURS], *theirs = &m->side[ONNXRUNTIME], *best = best_peer(m);
    bool exact = strcmp(m->family, "integer") && strcmp(m->family, "half");
    if (!compared(m))
        return false;
    if (gate == SLOWER)
        *figure = best && exact ? ratio_interval(m, best).low : NAN;
    else if (theirs->state < SIDE_WRONG)
        *figure = NAN;
    else
        *figure = gate == READY    ? ours->ready / theirs->ready
                  : gate == OUTPUT ? (ours->ready + ours->first) / (theirs->ready + theirs->first)
                                   : ours->peak / theirs->peak;
    return !isnan(*figure);
}

/* Names of models that are beyond the limit. */
static void print_gate_each(const measure *list, size_t count, int gate)
{
    static const char *const titles[EACH_GATES] = {"slower than the best peer", "session ready",
                                                   "start to first output", "peak memory"};
    static const double *const limits[EACH_GATES] = {&slower_each, &ready_each, &output_each,
                                                     &peak_each};
    int beyond = 0, all = 0;
    double figure;
    for (size_t k = 0; k < count; k++) {
        bool has = figure_of(&list[k], gate, &figure);
        all += has;
        beyond += has && figure > *limits[gate];
    }
    printf("- %s, models beyond %.2f: %d of %d:", titles[gate], *limits[gate], beyond, all);
    for (size_t k = 0; k < count; k++)
        if (figure_of(&list[k], gate, &figure) && figure > *limits[gate])
            printf(" %s %.2f", list[k].name, figure);
    printf("\n");
}

static void print_noisy(const measure *list, size_t count)
{
    printf("- interval wider than 0.1 after all rounds:");
    for (size_t k = 0; k < count; k++) {
        const side *best = best_peer(&list[k]);
        if (compared(&list[k]) && best && !is_narrow(ratio_interval(&list[k], best)))
            printf(" %s", list[k].name);
    }
    printf("\n");
}

static void print_notes(const measure *list, size_t count)
{
    printf("\nWhat is compared in part:\n\n");
    for (size_t k = 0; k < count; k++)
        for (int i = 0; i < SIDES; i++)
            if (list[k].side[i].note[0])
                printf("- %s, %s: %s\n", list[k].name, side_names[i], list[k].side[i].note);
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

void print_tables(int threads, const ort_peak *peak, const measure *list, size_t count)
{
    family_means of_family[FAMILIES];
    ratio_mean start_means[3] = {{0}}, none = {0};
    for (int f = 0; f < FAMILIES; f++)
        of_family[f] = print_family(threads, peak, &families[f], list, count);
    printf("\nof peak: the least time of a run over ours: of its products and sums, as they are "
           "defined, at %.1f GFLOP/s, or (of reads) of its weights at what memory gives\n",
           peak->gflops);
    print_start(threads, list, count, start_means);
    printf("\n| ours / theirs, %d thread%s | models | geometric mean | limit | within | bound |\n"
           "| --- | --: | --: | --: | --- | --: |\n",
           threads, threads > 1 ? "s" : "");
    for (int f = 0; f < FAMILIES; f++)
        print_gate(families[f].title, &of_family[f].over_best, families[f].limit,
                   &of_family[f].bound);
    print_gate("session ready, over onnxruntime", &start_means[0], ready_limit, &none);
    print_gate("start to first output, over onnxruntime", &start_means[1], output_limit, &none);
    print_gate("peak memory, over onnxruntime", &start_means[2], peak_limit, &none);
    printf("\n");
    for (int gate = 0; gate < EACH_GATES; gate++)
        print_gate_each(list, count, gate);
    print_integers(threads, list, count);
    print_noisy(list, count);
    print_notes(list, count);
    fflush(stdout);
}

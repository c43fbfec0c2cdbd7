/* parity.h - the table of `make parity`: a row per file that onnxruntime's tools wrote, and sums
 * of every kind (saved level, quantizer). Static functions only, as in harness.h.
 */
#ifndef TESTS_MODELS_PARITY_H
#define TESTS_MODELS_PARITY_H

#include "../harness.h"

enum { PARITY_KINDS = 32 };

typedef struct parity_counts {
    int passed, failed, refused; /* refused: onnxruntime's tools could not make or run the file */
    int moved;                   /* of those passed: with parity_allow */
    harness_worst worst;         /* of those that ran to the comparison */
} parity_counts;

typedef struct parity_table {
    char names[PARITY_KINDS][16];
    parity_counts counts[PARITY_KINDS];
    size_t count;
} parity_table;

/* Whether `folder` holds refused.txt; its first line goes to `text`. */
HARNESS_STATIC bool parity_refused(const char *folder, char *text, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/refused.txt", folder);
    FILE *file = fopen(path, "r");
    text[0] = '\0';
    if (file && fgets(text, (int)size, file))
        text[strcspn(text, "\n")] = '\0';
    if (file)
        fclose(file);
    return file != NULL;
}

HARNESS_STATIC void parity_count(parity_counts *counts, bool refused, bool passed, bool moved,
                                 const harness_worst *worst)
{
    counts->moved += !refused && passed && moved;
    counts->refused += refused;
    counts->passed += !refused && passed;
    counts->failed += !refused && !passed;
    counts->worst.abs = fmax(counts->worst.abs, worst->abs);
    counts->worst.tolerances = fmax(counts->worst.tolerances, worst->tolerances);
}

/* The counts of a kind, in the order in which kinds come; the last one takes what has no room. */
HARNESS_STATIC parity_counts *parity_kind(parity_table *table, const char *name)
{
    size_t k = 0;
    while (k < table->count && strcmp(table->names[k], name))
        k++;
    if (k == table->count && k < PARITY_KINDS)
        snprintf(table->names[table->count++], sizeof *table->names, "%s", name);
    return &table->counts[k < PARITY_KINDS ? k : PARITY_KINDS - 1];
}

HARNESS_STATIC void parity_print_head(void)
{
    printf("%-48s %5s %9s %9s\n", "file (model.kind)", "nodes", "worst err", "tolerances");
}

/* Tolerances as wide as what a last bit of constants and inputs, or its own optimizer, moves
 * onnxruntime's values (meta.json's "allow", see tests/tools/make_parity.py). False when the file
 * has no such figure. */
HARNESS_STATIC bool parity_allow(harness_meta *meta)
{
    if (meta->allow <= 1)
        return false;
    meta->rtol *= meta->allow;
    meta->atol *= meta->allow;
    for (size_t k = 0; k < meta->atol_count; k++)
        meta->atols[k] *= meta->allow;
    return true;
}

/* refusal: the message of onnxruntime's tool, or NULL; failure: ours, or NULL when all agrees;
 * moved: agreement took parity_allow. */
HARNESS_STATIC void parity_print_row(const char *name, const harness_meta *meta,
                                     const char *refusal, const harness_worst *worst,
                                     const char *failure, bool moved)
{
    bool noted = !failure && meta->note[0];
    char allowed[80] = "";
    if (moved && !failure)
        snprintf(allowed, sizeof allowed, ": onnxruntime's own values move by %.3g",
                 meta->allow);
    if (refusal)
        printf("%-48s %5s %9s %9s  skipped: onnxruntime: %s\n", name, "-", "-", "-", refusal);
    else
        printf("%-48s %5d %9.2g %9.2g  %s%s%s%s%s\n", name, meta->nodes, worst->abs,
               worst->tolerances, failure ? "FAILED: " : "ok", failure ? failure : "", allowed,
               noted ? ": " : "", noted ? meta->note : "");
    fflush(stdout);
}

HARNESS_STATIC void parity_print_kinds(const parity_table *table)
{
    printf("\n%-12s %6s %6s %7s %6s %8s %9s %10s\n", "kind", "files", "passed", "(moved)", "failed",
           "skipped", "worst err", "tolerances");
    for (size_t k = 0; k < table->count; k++) {
        const parity_counts *c = &table->counts[k];
        printf("%-12s %6d %6d %7d %6d %8d %9.2g %10.2g\n", table->names[k],
               c->passed + c->failed + c->refused, c->passed, c->moved, c->failed, c->refused,
               c->worst.abs, c->worst.tolerances);
    }
}

#endif

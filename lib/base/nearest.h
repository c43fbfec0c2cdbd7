/* nearest.h - which of many names was meant by one that doesn't exist.
 *
 * Distance is Damerau and Levenshtein's (optimal string alignment: insertions, deletions,
 * substitutions, neighbours exchanged), letters without case; a name that the word begins or holds
 * is near, too. The three nearest are kept, earlier ones first among equals.
 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

enum { ORT_NEAREST_KEPT = 3 };

typedef struct ort_nearest {
    const char *word;
    const char *name[ORT_NEAREST_KEPT]; /* borrowed */
    size_t distance[ORT_NEAREST_KEPT];
    size_t count;
} ort_nearest;

void ort_nearest_begin(ort_nearest *n, const char *word);
void ort_nearest_try(ort_nearest *n, const char *name);
/* " (did you mean 'a', 'b' or 'c'?)", or "" where none is near. Returns text. */
const char *ort_nearest_text(const ort_nearest *n, char *text, size_t size);

#endif

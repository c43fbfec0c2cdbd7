/* notes.h - which nodes became integer, and why the others didn't (ort_quantize_notes). */
#ifndef ORT_QUANTIZE_NOTES_H
#define ORT_QUANTIZE_NOTES_H

#include "graph/graph.h"

/* The node's note, its texts copied; *index: its place. False: no memory. */
bool ort_quantize_notes_add(ort_quantize_notes *notes, const ort_graph *graph,
                            const ort_node *node, const char *why, size_t *index);
/* It stays after all. False: no memory. */
bool ort_quantize_notes_stays(ort_quantize_notes *notes, size_t index, const char *why);
/* The node became this operator; one that doesn't multiply codes has no share of sums. */
void ort_quantize_notes_became(ort_quantize_notes *notes, size_t index, const char *operator_,
                               double pairs);

#endif

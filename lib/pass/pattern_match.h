/* pattern_match.h - what a pattern's parser, its matcher and the tables of forms share. */
#ifndef ORT_PASS_PATTERN_MATCH_H
#define ORT_PASS_PATTERN_MATCH_H

#include "pass/pattern.h"

enum { ORT_PATTERN_MISS = 200 };

/* Parses `text`, which has to outlive the pattern; a mistake in it is an assertion. */
void ort_pattern_parse(ort_pattern *pattern, const char *text);

/* Is `c` part of a name, an operator's or an attribute's? */
bool ort_pattern_is_name(char c);

/* Do the names of a term, "A|ms.B", hold this operator? */
bool ort_pattern_names_operator(const char *text, size_t length, const ort_op *op);

/* Does the pattern fit with its root at `node`? Fills `match` in. With `miss`, of ORT_PATTERN_MISS
 * bytes, one condition may fail, and its text lands there. */
bool ort_pattern_match(const ort_pattern *pattern, const ort_graph *graph, ort_node *node,
                       ort_match *match, char *miss);

#endif

/* regex_tree.h - the parsed form of a regular expression (regex_parse.c makes it, regex.c runs
 * it). */
#ifndef ORT_OP_TEXT_REGEX_TREE_H
#define ORT_OP_TEXT_REGEX_TREE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct ort_regex_range {
    uint32_t first, last;
} ort_regex_range;

typedef struct ort_regex_set { /* sorted, disjoint */
    ort_regex_range *ranges;
    size_t count;
} ort_regex_set;

typedef enum ort_regex_assertion {
    ORT_REGEX_TEXT_BEGIN,
    ORT_REGEX_TEXT_END,
    ORT_REGEX_LINE_BEGIN,
    ORT_REGEX_LINE_END,
    ORT_REGEX_WORD,
    ORT_REGEX_NOT_WORD,
} ort_regex_assertion;

typedef enum ort_regex_kind {
    ORT_REGEX_EMPTY,
    ORT_REGEX_SET,
    ORT_REGEX_ASSERT,
    ORT_REGEX_CAT,
    ORT_REGEX_ALT,
    ORT_REGEX_REPEAT,
} ort_regex_kind;

typedef struct ort_regex_node {
    ort_regex_kind kind;
    struct ort_regex_node *left, *right;
    int min, max; /* of a repetition; max -1: unbounded */
    ort_regex_assertion assertion;
    ort_regex_set set;
} ort_regex_node;

ort_status ort_regex_parse(ort_arena *arena, const char *pattern, size_t length,
                           ort_regex_node **root, ort_error *err);

#endif

/* pattern.h - a small graph written as text, found in a model and replaced by one node.
 *
 *     "(Mul (Mul x (Add (Erf (Div x 1.4142135)) 1)) 0.5)"
 *
 *     (Op a b)      output 0 of an ai.onnx node with exactly these inputs (absent ones may trail)
 *     (ms.Op a)     of com.microsoft        (A|B a)   of either operator
 *     (Op a ...)    further inputs don't matter
 *     (Op a k=0,2)  the integer attribute k is present with these numbers
 *     n:(Op a)      the node is called n    +(Op a)   others may read it: it stays in the graph
 *     x             a value; the same name is the same value everywhere
 *     #w            a value that is constant
 *     0.5           a constant whose elements all are this number (to 1e-5, or as its type rounds)
 *     [0 2]         an integer constant of these elements
 *     _  -          any value; an absent input
 *
 * Add, Mul and other commutative operators match in either order. Every node of a match but the
 * root must be read by nodes of the match alone, unless it has a '+'. Text is parsed when the first
 * node comes that may be its root; a mistake in it is a programming error (assert).
 */
#ifndef ORT_PASS_PATTERN_H
#define ORT_PASS_PATTERN_H

#include "op/edit.h"
#include "pass/pass.h"

enum { ORT_PATTERN_TERMS = 72, ORT_PATTERN_NODES = 28, ORT_PATTERN_NAMES = 32 };

typedef struct ort_term {
    char kind;        /* '(' operator, 'x' value, '#' constant, '0' number, '[' list, '_', '-' */
    bool commutative, open, shared; /* '(': inputs in any order, further inputs allowed, '+' */
    bool plain;       /* '(': one operator, of ai.onnx */
    short name;       /* into names, or -1 */
    short first, count, next; /* '(': first child and number of children; sibling */
    const char *text; /* '(': "A|B" (length bytes), '[': "0 2" */
    int length;
    const char *attr; /* '(': "k=0,2" of attrs, or NULL */
    double number;
} ort_term;

typedef struct ort_pattern {
    const char *text;
    ort_term terms[ORT_PATTERN_TERMS];
    int term_count;
    char names[ORT_PATTERN_NAMES][16];
    int name_count;
} ort_pattern;

typedef struct ort_match {
    const ort_pattern *pattern;
    ort_id values[ORT_PATTERN_NAMES];   /* by name; of a named node its output 0 */
    ort_node *named[ORT_PATTERN_NAMES]; /* by name; NULL for plain values */
    ort_node *nodes[ORT_PATTERN_NODES]; /* root first */
    bool shared[ORT_PATTERN_NODES];
    int node_count;
} ort_match;

/* What a name of the pattern stands for; the name must exist. */
ort_id ort_match_value(const ort_match *match, const char *name);
ort_node *ort_match_node(const ort_match *match, const char *name);
const ort_tensor *ort_match_constant(const ort_match *match, const ort_graph *graph,
                                     const char *name);
const ort_type *ort_match_type(const ort_match *match, const ort_graph *graph, const char *name);

/* The matched nodes go (those with '+' stay); then a node with the root's name and outputs, origin
 * set, takes their place. name, outputs, output_count and origin of the spec are filled in. */
ort_status ort_match_replace(ort_pass_context *context, const ort_match *match,
                             ort_node_spec *spec, ort_error *err);
/* The first half of it alone, for replacements of several nodes; returns the joined origin. */
const char *ort_match_remove(ort_pass_context *context, const ort_match *match);

/* ---- tables of forms: how exporters spell the same thing */

typedef struct ort_pattern_form {
    const char *text;
    unsigned flags; /* what the pass must know about this spelling: its own bits */
} ort_pattern_form;

/* Fuse a match of `form`, or leave it alone with a note; counts what it changed. */
typedef ort_status (*ort_pattern_fuse)(ort_pass_context *context, const ort_match *match,
                                    const ort_pattern_form *form, int *changes, ort_error *err);

/* One sweep, from the results of the graph to its inputs, so that of two roots the one that covers
 * more comes first; at a node the first form that matches is handed to `fuse`, and no other. When
 * there is none, the near-miss is noted: a form whose operators are all there, but one constant or
 * attribute is another, or an inner value has another reader. A pass has one table. */
ort_status ort_pattern_forms(ort_pass_context *context, const ort_pattern_form *forms, int count,
                           ort_pattern_fuse fuse, int *changes, ort_error *err);

/* For pass.c: what a pass's forms were parsed to, kept from round to round. */
void ort_pattern_table_free(struct ort_pattern_table *table);

#endif

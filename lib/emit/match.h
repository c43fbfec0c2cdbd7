/* match.h - where a text (notation.h) fits in a graph, and what its names stand for there.
 *
 * Add, Mul and other commutative operators match in either order. A number is a constant whose
 * elements all are it (to 1e-5, or as its type rounds); a list, an int64 constant of these
 * elements; #w, any constant; $n, a constant of one number, or (k=$n) an integer or float attribute
 * that is given or has a default. A list or number fits the attribute that an older version has in
 * place of that input, too. Every node of a match but the root must be read by nodes of the match
 * alone, unless it has a '+'.
 */
#ifndef ORT_EMIT_MATCH_H
#define ORT_EMIT_MATCH_H

#include "emit/notation.h"
#include "op/edit.h"

enum { ORT_MATCH_NODES = 28, ORT_MATCH_NAMES = 32, ORT_MATCH_MISS = 200 };

typedef struct ort_bound {
    ort_id value;    /* of a named node, its output 0; ORT_ID_NONE: none */
    ort_node *node;  /* NULL: no node of the match computes it */
    bool is_number;  /* $n */
    double number;
    const int64_t *list; /* of `count` numbers: ort_match_let_list; else NULL */
    int count;
} ort_bound;

typedef struct ort_match {
    const ort_text *text;
    ort_graph *graph;
    unsigned flags; /* of the row that found it (pass/rewrite.h) */
    ort_bound bound[ORT_MATCH_NAMES]; /* by name of the text, then by `extra` */
    ort_node *nodes[ORT_MATCH_NODES]; /* root first */
    bool shared[ORT_MATCH_NODES]; /* with '+', and read by others, so that it stays */
    int node_count;
    bool turned;
    const char *extra[8]; /* names that aren't in the text (ort_match_let) */
    int extra_count;
} ort_match;

/* The attribute, into `name` of 64 bytes, that this version of an operator has in place of the
 * input `slot` of the newest one: axes of ReduceSum, bounds of Clip. False: it has the input. */
bool ort_text_attribute_of(const ort_registry *registry, const ort_op *op, int slot, char *name);

/* Does the text fit with its root at `node`? Fills `match` in. With `miss`, of ORT_MATCH_MISS
 * bytes, one condition may fail, and its text lands there. Of alternatives the first that fits by
 * itself is taken: it isn't given up for another when something around it fails. turned: operands
 * of commutative nodes are tried in the other order first; false does so, too, when the first order
 * fits but for a reader outside. */
bool ort_text_match(const ort_text *text, ort_graph *graph, ort_node *node, bool turned,
                    ort_match *match, char *miss);

/* What a name stands for; NULL when it isn't bound (its alternative isn't there). */
const ort_bound *ort_match_bound(const ort_match *match, const char *name, int length);
bool ort_match_has(const ort_match *match, const char *name);
ort_id ort_match_value(const ort_match *match, const char *name); /* ORT_ID_NONE: not bound */
ort_node *ort_match_node(const ort_match *match, const char *name);
const ort_type *ort_match_type(const ort_match *match, const char *name); /* of a bound name */
const ort_tensor *ort_match_constant(const ort_match *match, const char *name); /* NULL: none */
double ort_match_number(const ort_match *match, const char *name); /* of a bound $name */

/* Give a name to a number, or to a value, for what is written. */
void ort_match_let(ort_match *match, const char *name, double number);
void ort_match_let_value(ort_match *match, const char *name, ort_id value);

#endif

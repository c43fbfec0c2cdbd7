/* bind.h - the attributes of an operator, tied to members of its state.
 *
 * A family says once which attribute fills which member, and what values it allows:
 *
 *   static const ort_bind lrn_bind[] = {
 *       ORT_BIND(lrn_state, size, ORT_FROM(1)), ORT_BIND(lrn_state, alpha), {0}};
 *   static const ort_op_impl lrn_impl = {.state = sizeof(lrn_state), .bind = lrn_bind, ...};
 *
 * Before prepare each member gets what the node says, else the default in the row; where the row
 * has no such attribute, or no default for it, what ORT_ELSE says, else zero. The kind of the
 * member (the compiler looks) tells the kind of the attribute: integers and flags, floats, lists,
 * strings, tensors; a string becomes a number by a list of words. What several attributes tell
 * together (a window, an activation) has a function of its own. A test compares the tables with all
 * rows.
 */
#ifndef ORT_OP_BIND_H
#define ORT_OP_BIND_H

#include <stddef.h>

#include "graph/graph.h"

/* Lists as they lie in the node; NULL and 0 without one. */
typedef struct ort_ints {
    const int64_t *ptr;
    size_t count;
} ort_ints;
typedef struct ort_floats {
    const float *ptr;
    size_t count;
} ort_floats;
typedef struct ort_strings {
    const ort_string *ptr;
    size_t count;
} ort_strings;

typedef enum ort_bind_kind {
    ORT_BIND_BOOL = 1, /* true: not 0, or not the first word */
    ORT_BIND_INT,
    ORT_BIND_INT64,
    ORT_BIND_FLOAT,
    ORT_BIND_DOUBLE,
    ORT_BIND_STRING, /* a default isn't terminated */
    ORT_BIND_INTS,
    ORT_BIND_FLOATS,
    ORT_BIND_STRINGS,
    ORT_BIND_TENSOR,
    ORT_BIND_GIVEN, /* has the node the attribute at all? */
    ORT_BIND_READ,  /* what `read` makes of it and of its company */
} ort_bind_kind;

typedef struct ort_bind {
    const char *attr; /* NULL ends a table */
    unsigned at;      /* offset of the member */
    ort_bind_kind kind;
    bool optional;
    double otherwise;
    bool ranged;
    int64_t least, most;
    const char *words; /* "zeros border|edge": the member counts words; edge is border */
    ort_status (*read)(const ort_node *node, void *member, ort_error *err);
} ort_bind;

/* Options of a binding. The first two: a row may lack the attribute, or have no default for it. */
#define ORT_MAYBE .optional = true
#define ORT_ELSE(value) ORT_MAYBE, .otherwise = (value)
#define ORT_WITHIN(lowest, highest) .ranged = true, .least = (lowest), .most = (highest)
#define ORT_FROM(lowest) ORT_WITHIN(lowest, INT64_MAX)
#define ORT_WORDS(list) .words = (list)

#define ORT_BIND_KIND(state, member)                                                               \
    _Generic(((state *)0)->member, bool: ORT_BIND_BOOL, int: ORT_BIND_INT, unsigned: ORT_BIND_INT, \
             int64_t: ORT_BIND_INT64, uint64_t: ORT_BIND_INT64, float: ORT_BIND_FLOAT,             \
             double: ORT_BIND_DOUBLE, ort_string: ORT_BIND_STRING, ort_ints: ORT_BIND_INTS,        \
             ort_floats: ORT_BIND_FLOATS, ort_strings: ORT_BIND_STRINGS,                           \
             const ort_tensor *: ORT_BIND_TENSOR)

/* The attribute has the member's name, or another one; then options. Members may be enums. */
#define ORT_BIND(state, member, ...) ORT_BIND_AS(state, member, #member, __VA_ARGS__)
#define ORT_BIND_AS(state, member, name, ...)                                                      \
    {.attr = (name), .at = offsetof(state, member), .kind = ORT_BIND_KIND(state, member),          \
     __VA_ARGS__}
#define ORT_BIND_HAS(state, member, name)                                                          \
    {.attr = (name), .at = offsetof(state, member), .optional = true,                              \
     .kind = _Generic(((state *)0)->member, bool: ORT_BIND_GIVEN)}
#define ORT_BIND_BY(state, member, name, function)                                                 \
    {.attr = (name), .at = offsetof(state, member), .kind = ORT_BIND_READ, .optional = true,       \
     .read = (function)}

/* Kind of the attributes that a binding reads; ORT_ATTR_UNDEFINED: any. */
ort_attr_type ort_bind_type(const ort_bind *bind);
/* Fill a zeroed state: lists that are defaults lie in the arena. */
ort_status ort_bind_attrs(const ort_bind *table, const ort_node *node, ort_arena *arena,
                          void *state, ort_error *err);
/* The number of a word in a list of words; -1. */
int ort_word_find(const char *words, const char *text, size_t length);

#endif

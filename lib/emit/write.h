/* write.h - a text (notation.h) written into a graph: each of its nodes emitted (emit.h), inferred
 * at once, in the version of its operator that the graph may hold.
 *
 * A number has the element type that the operator's signature asks for: that of an input of the
 * same type variable, else that of the first input whose type varies, else that of the first value
 * given. An attribute has the kind that the operator's row says. Names that stand for nothing are
 * absent inputs.
 */
#ifndef ORT_EMIT_WRITE_H
#define ORT_EMIT_WRITE_H

#include "emit/emit.h"
#include "emit/match.h"

/* What a text means besides, for whoever builds models of it: values are called there as the text
 * calls them. */
typedef struct ort_write_source {
    /* A value ('x', '_'), constant ('#') or number ('$') that isn't bound; the name of '_' is NULL.
     * ORT_ID_NONE: an absent input. */
    ort_id (*unbound)(void *arg, const ort_term *term, const ort_text_name *name);
    /* Which of the terms of a named form, which of the operators of "A|ms.B"; 1 leaves an input out
     * that may be absent. NULL: the first, and none. */
    int (*alternative)(void *arg, const ort_term *term, int count);
    /* Attributes that the text doesn't give to a node of this operator, into `set` of `room`; how
     * many. They live as long as the call of ort_write. NULL: none. */
    int (*attributes)(void *arg, const char *op_type, ort_attr *set, int room);
    void *arg;
} ort_write_source;

/* "(CastLike a x)": what is written for it, which may be `a` itself. */
typedef struct ort_word {
    const char *name;
    ort_id (*emit)(ort_emit *e, ort_id value, ort_id like);
} ort_word;

typedef struct ort_writer {
    ort_emit *e;
    const ort_text *text;
    const ort_match *match;          /* what names stand for; or NULL */
    const ort_write_source *source;  /* or NULL */
    const ort_word *words;           /* ended by one without a name; NULL: all are operators */
    /* The node that stands for the whole: */
    const char *name, *origin;
    const ort_id *outputs;           /* NULL: new ones */
    int output_count;
    ort_id *written;                 /* by term; the writer's own */
    ort_id like;                     /* gives numbers their type when nothing nearer does */
} ort_writer;

/* Writes a choice of the text; the value of its last statement, which is the root. Values that
 * statements name are bound in the text alone. Failure sticks in e->status. */
ort_id ort_write(ort_writer *writer, const ort_choice *choice);

/* An attribute of the node whose rule runs, or its default; nothing when it has neither. */
ort_bound ort_emit_attribute(const ort_emit *e, const char *name, int length);

/* Would every node of the choice be written? `opset` as in ort_emit.opset_of: 0 when not. */
bool ort_may_write(const ort_text *text, const ort_choice *choice,
                   int (*opset)(void *arg, const char *domain, const char *op_type, int since),
                   void *arg);

#endif

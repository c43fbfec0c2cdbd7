/* notation.h - a small graph as text: the one notation in which passes say what they find and what
 * they write, rules of differentiation and of opset conversion what they compute, and tests their
 * models.
 *
 *     "x * 0.5 * (Add (Erf (x / 1.41421356)) 1)"
 *
 *     (Op a b)      output 0 of an ai.onnx node with these inputs   (ms.Op a)  of com.microsoft
 *     a + b  a * b  and - and /: Add, Mul, Sub, Div, with the usual precedence; -a: Neg. Inside of
 *                   (Op ...) they stand in parentheses of their own: (Exp (a - b))
 *     n:(Op a)      the value is called n      a,b = (Op x); ...   statements: outputs by name
 *     x             a value (names of values begin with a small letter)
 *     0.5  @3       a number of the type that its place asks for; an int64
 *     [0 2]  -      a list of int64, which may hold named numbers: [0 $n -1]; an absent input
 *     x?  $n?  #w?  an input that may be absent
 *     $n            a number that has a name, or (write.h) a list or an input that has one
 *     #w            a constant
 *     k=1  k=0,2    attributes: an integer, a list of integers (one alone ends in a comma: k=1,);
 *     k=0.5  k=cubic  a float (it has a point), a string;   k=$n    the number called n
 *
 * To find a graph (match.h) there are besides
 *
 *     (A|ms.B a)    either operator            (Op a ...)    further inputs don't matter
 *     +(Op a)       others may read its result: then it stays in the graph
 *     _             any value                  k=1 finds both an integer and a list of one, and
 *                   the operator's default where the node has no k
 *     @half(x, g)   a named form: each of the alternatives that a table of forms gives it,
 *                   "half(x, g): x * 0.5 * g | x * (g * 0.5) | x * g / 2"
 *     a | b         either
 *
 * for models of tests, which a source of values (write.h) makes,
 *
 *     x:2,n  x.i64:  an input of these dims (n: a symbol), of that type; without one float32
 *     #w:3,4  #w.i8:3,4   a constant         #w=0.5  #w.i64=0,2  #w=3,  a number, lists
 *
 * and to write one (write.h), where a list or number becomes the attribute that an older version of
 * the operator has in place of that input, as axes and bounds were,
 *
 *     (Op@13 a)     as it is from opset 13 on; without a number, from its first version on
 *     (Op a &n)     with the attributes of the node called n
 *     n:(Op a)      with the name of the node that was found as n
 *     k=&n  k=$a,$b the operator of that node, as a string; a list of floats. Without an attribute
 *                   all of whose names stand for nothing
 *
 * What rules compute with (ort_emit_formula) may say besides
 *
 *     (_ a &_)      the operator, and the attributes, of the node whose rule runs
 *     a + b         one of them when the other is absent; so are *, (Max a b) and (Min a b)
 *     (CastLike a x)  (ExpandLike a x)  (ReshapeLike a x)
 *                   a with the type or the shape of x: itself when it has it already
 *     (SumTo a x)   summed over what was repeated when x was broadcast to a's shape
 *     (Count a x)   how many elements a has, as a number of x's type
 *     (Dims a)  (Dims a 2 $n)   its shape, or [2, n) of it: constant where that is known
 *     file? a | b   the first whose condition holds (write.h says which there are)
 *
 * Texts are parts of the program: a mistake in one is an assertion.
 */
#ifndef ORT_EMIT_NOTATION_H
#define ORT_EMIT_NOTATION_H

#include "base/vec.h"

#include <stdbool.h>

typedef struct ort_term {
    char kind;        /* '(' node, 'x' value, '$', '#', '0' number, 'i' int64, '[', '_', '-',
                         '@' one of several terms */
    bool commutative, open, shared; /* '(': inputs in any order, '...', '+' */
    bool optional;    /* 'x', '$', '#': '?' */
    bool plain;       /* '(': one operator, of ai.onnx */
    short name;       /* into names, or -1 */
    short first, count;           /* '(' inputs, '@' alternatives: in terms_of */
    short first_attr, attr_count; /* '(' */
    short like;       /* '(': &n, into names; or -1 */
    short since;      /* '(': Op@since, or 0 */
    const char *text; /* '(': "A|ms.B"; '[': "0 2"; '#', 'x': ".i8:3,4" */
    int length;
    double number;    /* '0', 'i' */
} ort_term;

typedef struct ort_text_attr {
    const char *name, *value; /* "k", "0,2" */
    int name_length, value_length;
} ort_text_attr;

typedef struct ort_text_name {
    const char *text;
    int length;
} ort_text_name;

/* "a,b = term" */
typedef struct ort_statement {
    short term;
    short first, count; /* names of outputs, in terms_of (as indices of names) */
} ort_statement;

/* Between two '|' outside of parentheses. */
typedef struct ort_choice {
    const char *condition; /* "file? float?" */
    int condition_length;
    short first, count;    /* statements */
} ort_choice;

typedef struct ort_text {
    ORT_VEC(ort_term) terms;
    ORT_VEC(short) terms_of;
    ORT_VEC(ort_text_attr) attrs;
    ORT_VEC(ort_text_name) names;
    ORT_VEC(ort_statement) statements;
    ORT_VEC(ort_choice) choices;
} ort_text;

/* `text`, and `forms` (NULL-terminated, or NULL), have to outlive the result. False: no memory.
 * Free it with ort_text_release, whatever the result. */
bool ort_text_parse(ort_text *parsed, const char *text, const char *const *forms);
void ort_text_release(ort_text *parsed);

/* Index of a name, or -1. */
int ort_text_find(const ort_text *parsed, const char *name, int length);

static inline const ort_term *ort_text_child(const ort_text *text, const ort_term *t, int i)
{
    return &text->terms.data[text->terms_of.data[t->first + i]];
}

/* Is `c` part of a name, an operator's or an attribute's? */
static inline bool ort_text_is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

#endif

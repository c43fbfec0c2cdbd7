/* carry.h - recurrence: outputs of one run that the next one reads, as --carry says it. */
#ifndef COMMON_CARRY_H
#define COMMON_CARRY_H

#include "common/tool.h"

/* ---- expressions over outputs: "name" or "argmax(name)" */

typedef struct expression {
    bool argmax;
    char *name; /* the output it reads */
    char *text; /* as written */
} expression;

int expression_parse(const char *text, expression *e);
/* A new reference to the value of the expression for these outputs. */
int expression_value(const expression *e, const ort_session *session, ort_value *const *outputs,
                     ort_value **value);
void expression_release(expression *e);
/* Index of an output by name, -1 when there is none. */
int find_output(const ort_session *session, const char *name);

/* ---- carry: outputs of one step become inputs of the next */

typedef struct carry_link {
    expression from;
    int input;
} carry_link;

typedef struct carry {
    ort_binding *binding; /* of all steps; NULL: nothing is carried */
    bool *is_state;       /* [inputs] of the binding: its output is handed on as it is */
    int *source;          /* [inputs] which output that is */
    size_t states;
    bool started;
    carry_link *links;    /* expressions */
    size_t count;
    int *counted;         /* inputs that count up */
    size_t counted_count;
    ort_value **state;    /* [inputs] what the last step left; NULL before the first */
    size_t inputs;
    int64_t position;     /* tokens seen so far */
} carry;

/* carries: "OUT=IN", with a star on both sides or none; counts: inputs that count up. */
int carry_open(carry *c, const string_list *carries, const string_list *counts,
               const ort_session *session);
/* The next step is a first one again. */
int carry_restart(carry *c, const ort_session *session);
/* Put values of expressions, counted positions and growing masks into `inputs`, where they live
 * until the next call, and bind them all. */
int carry_before(carry *c, const ort_session *session, ort_value **inputs);
/* Outputs that carry_reads asks for are read. */
int carry_after(carry *c, const ort_session *session, ort_value *const *outputs);
bool carry_reads(const carry *c, const ort_session *session, size_t output);
/* The output that a state's next value is; -1: the input is no state. */
int carry_source(const carry *c, size_t input);
/* States that grow in place. */
size_t carry_growing(const carry *c, const ort_session *session);
void carry_close(carry *c);

#endif

/* differ.h - what scenarios of the drop-in's test share: the functions of one library, and the
 * transcript that both libraries must agree on.
 */
#ifndef DIFFER_H
#define DIFFER_H

#include "abi.h"

/* The table as its clients know it. */
typedef struct api {
#define STATUS OrtStatus *
#define SLOT(number, since, returns, name, parameters) returns(*name) parameters;
#define GAP(number, since, kind, name) abi_function *name;
#include "slots.def"
#undef SLOT
#undef GAP
#undef STATUS
} api;

/* One library in one scenario. */
typedef struct side {
    const api *api;
    OrtEnv *env;
    OrtAllocator *allocator;
    bool texts;      /* error texts are compared, too */
    FILE *out;       /* the transcript */
    double *numbers; /* results, compared within a tolerance */
    size_t number_count;
} side;

struct row;
typedef void scenario(side *s, const struct row *row);

typedef struct row {
    const char *name;
    scenario *run;
    const char *a, *b; /* a model, a name: what the scenario says */
    long i, k;
    bool texts;        /* texts of errors are the same, too */
    bool models;       /* of ONNX's tests, some of which theirs doesn't run */
    const char *known; /* why both differ, where they do; NULL: they don't */
} row;

typedef struct table {
    const char *name;
    const row *rows;
    size_t count;
} table;
#define TABLE(name)                                                                                \
    {                                                                                              \
#name, name, sizeof name / sizeof *name                                                    \
    }

/* A library of operators says things, too (custom_ops.c). */
#pragma GCC visibility push(default)
__attribute__((format(printf, 2, 3))) void say(side *s, const char *format, ...);
/* Writes what came of a call, frees the status; true: it went well. */
bool good(side *s, const char *call, OrtStatus *status);
#define GOOD(s, function, ...) good(s, #function, (s)->api->function(__VA_ARGS__))

const char *model_path(const char *name); /* of those that the test makes, or of a whole path */
OrtSession *open_model(side *s, const char *name, const OrtSessionOptions *options);
OrtValue *floats(side *s, const float *data, size_t rank, const int64_t *dims);
void say_type(side *s, const OrtTypeInfo *type);
void say_value(side *s, const OrtValue *value);
void say_session(side *s, const OrtSession *session);
#pragma GCC visibility pop
#endif

/* custom_scenarios.c - operators that a client brings, in models that use them (custom_ops.c). */
#include "custom_ops.h"

#include <stdlib.h>
#include <string.h>

static const float numbers[12] = {1, -2, 3, 4, 5.5f, -6, 7, 8, 9, 10, 11, 12};

typedef struct opened {
    OrtSessionOptions *options;
    OrtCustomOpDomain *domain;
    OrtSession *session;
} opened;

static bool open_custom(side *s, const char *model, opened *o)
{
    *o = (opened){.options = NULL};
    if (!GOOD(s, CreateSessionOptions, &o->options))
        return false;
    s->api->SetIntraOpNumThreads(o->options, 2);
    s->api->SetSessionLogSeverityLevel(o->options, 4);
    s->api->AddSessionConfigEntry(o->options, "session.told", "this");
    if (!good(s, "register", custom_register(s->api, o->options, &o->domain)))
        return false;
    o->session = open_model(s, model, o->options);
    return o->session;
}

static void close_custom(side *s, opened *o)
{
    s->api->ReleaseSession(o->session);
    s->api->ReleaseSessionOptions(o->options);
    s->api->ReleaseCustomOpDomain(o->domain);
}

/* x: [2, k] of the element type */
static OrtValue *make_input(side *s, int type, int64_t k)
{
    int64_t dims[] = {2, k};
    OrtValue *value = NULL;
    void *data = NULL;
    if (!GOOD(s, CreateTensorAsOrtValue, s->allocator, dims, 2, type, &value))
        return NULL;
    if (type == 8) {
        static const char *const texts[] = {"ab", "c D", "", "x"};
        GOOD(s, FillStringTensor, value, texts, 4);
        return value;
    }
    GOOD(s, GetTensorMutableData, value, &data);
    for (int64_t i = 0; i < 2 * k; i++) {
        if (type == 1)
            ((float *)data)[i] = numbers[i];
        else if (type == 7)
            ((int64_t *)data)[i] = (int64_t)numbers[i];
        else if (type == 11)
            ((double *)data)[i] = (double)numbers[i];
    }
    return value;
}

static void run_twice(side *s, OrtSession *session, const row *r)
{
    const char *in[] = {"x"}, *out[] = {"y", "z"};
    OrtValue *x = make_input(s, r->i ? (int)r->i : 1, 2);
    const OrtValue *feeds[] = {x};
    size_t outputs = r->k ? (size_t)r->k : 1;
    for (int turn = 0; turn < 2; turn++) {
        OrtValue *y[2] = {NULL, NULL};
        if (GOOD(s, Run, session, NULL, in, feeds, 1, out, outputs, y))
            for (size_t i = 0; i < outputs; i++)
                say_value(s, y[i]);
        s->api->ReleaseValue(y[0]);
        s->api->ReleaseValue(y[1]);
    }
    s->api->ReleaseValue(x);
}

static void custom(side *s, const row *r)
{
    opened o;
    if (open_custom(s, r->a, &o)) {
        say_session(s, o.session);
        run_twice(s, o.session, r);
    }
    close_custom(s, &o);
}

static void told(side *s, const row *r)
{
    custom_witness = s;
    custom(s, r);
    custom_witness = NULL;
}

/* A clone of the options, which are gone, has the operators, too. */
static void cloned(side *s, const row *r)
{
    opened o = {.options = NULL};
    OrtSessionOptions *clone = NULL;
    GOOD(s, CreateSessionOptions, &o.options);
    good(s, "register", custom_register(s->api, o.options, &o.domain));
    GOOD(s, CloneSessionOptions, o.options, &clone);
    s->api->ReleaseSessionOptions(o.options);
    o.options = clone;
    o.session = open_model(s, r->a, clone);
    if (o.session)
        run_twice(s, o.session, r);
    close_custom(s, &o);
}

static void library(side *s, const row *r)
{
    OrtSessionOptions *options = NULL;
    void *handle = NULL;
    GOOD(s, CreateSessionOptions, &options);
    s->api->SetSessionLogSeverityLevel(options, 4);
    const char *path = r->b ? r->b : getenv("CUSTOM_OPS");
    bool ready = r->k == 1   ? GOOD(s, RegisterCustomOpsLibrary, options, path, &handle)
                 : r->k == 2 ? GOOD(s, RegisterCustomOpsUsingFunction, options, r->b)
                             : GOOD(s, RegisterCustomOpsLibrary_V2, options, path);
    OrtSession *session = ready && r->a ? open_model(s, r->a, options) : NULL;
    s->api->ReleaseSessionOptions(options);
    if (session)
        run_twice(s, session, &(row){.i = 1, .k = 1});
    s->api->ReleaseSession(session);
}

static void attributes(side *s, const row *r)
{
    static const int64_t ints[] = {5, -6, 7};
    static const float floats[] = {0.5f, 2};
    static const char *const texts[] = {"one", "", "three"};
    static const struct {
        int type, count;
        const void *data;
    } cases[] = {{1, 1, ints},  {2, 3, ints},  {2, 0, ints},  {3, 1, floats},
                 {4, 2, floats}, {5, 3, "abc"}, {6, 3, texts}, {99, 1, ints}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OrtOpAttr *attr = NULL;
        const char *name = NULL;
        int type = -1;
        if (!GOOD(s, CreateOpAttr, "a", cases[i].data, cases[i].count, cases[i].type, &attr))
            continue;
        char room[64] = "";
        size_t size = 0;
        GOOD(s, OpAttr_GetName, attr, &name);
        GOOD(s, OpAttr_GetType, attr, &type);
        say(s, "'%s' of type %d", name, type);
        GOOD(s, ReadOpAttr, attr, cases[i].type, room, 1, &size);
        say(s, "size %zu", size);
        GOOD(s, ReadOpAttr, attr, cases[i].type, room, sizeof room, &size);
        say(s, "size %zu: %d %d %d %d", size, room[0], room[1], room[2], room[4]);
        GOOD(s, ReadOpAttr, attr, cases[i].type == 1 ? 3 : 1, room, sizeof room, &size);
        OrtValue *tensor = NULL; /* it is none */
        OrtStatus *refused = s->api->OpAttr_GetTensorAttributeAsOrtValue(attr, &tensor);
        say(s, "a tensor: %d", refused == NULL);
        s->api->ReleaseStatus(refused);
        s->api->ReleaseOpAttr(attr);
    }
}

static void empty_domain(side *s, const row *r)
{
    OrtCustomOpDomain *domain = NULL;
    OrtSessionOptions *options = NULL;
    GOOD(s, CreateSessionOptions, &options);
    GOOD(s, CreateCustomOpDomain, "", &domain);
    GOOD(s, AddCustomOpDomain, options, domain);
    GOOD(s, EnableOrtCustomOps, options);
    s->api->ReleaseSessionOptions(options);
    s->api->ReleaseCustomOpDomain(domain);
    s->api->ReleaseCustomOpDomain(NULL);
    s->api->ReleaseKernelInfo(NULL);
    s->api->ReleaseOp(NULL);
    s->api->ReleaseOpAttr(NULL);
}

const row custom_rows[] = {
    {"custom: float", custom, "scale_float"},
    {"custom: int64", custom, "scale_int64", .i = 7},
    {"custom: double", custom, "scale_double", .i = 11},
    {"custom: a type without a kernel", custom, "scale_int32"},
    {"custom: all slots", custom, "maybe_all", .k = 2},
    {"custom: no optional input", custom, "maybe_one"},
    {"custom: optional output alone", custom, "maybe_z"},
    {"custom: variadic", custom, "total"},
    {"custom: variadic, too few", custom, "total_one"},
    {"custom: variadic of mixed types", custom, "sizes"},
    {"custom: any type, float", custom, "same_float"},
    {"custom: any type, int64", custom, "same_int64", .i = 7},
    {"custom: strings", custom, "shout", .i = 8},
    {"custom: shape inference", custom, "widen"},
    {"custom: what a kernel is told", told, "told"},
    {"custom: state", custom, "count"},
    {"custom: threads", custom, "each"},
    {"custom: an operator inside", custom, "twice"},
    {"custom: version 1", custom, "aged_1"},
    {"custom: version 3", custom, "aged_3",
     .known = "there the first of one name serves all versions, here each those that it says"},
    {"custom: in a body", custom, "custom_if"},
    {"custom: kernel refused", custom, "unmade"},
    {"custom: run refused", custom, "broken", .texts = true},
    {"custom: shape refused", custom, "shapeless"},
    {"custom: unknown operator", custom, "unknown_custom", .texts = true},
    {"custom: cloned options", cloned, "scale_float"},
    {"custom: library", library, "scale_float", .k = 1},
    {"custom: library kept", library, "scale_float"},
    {"custom: no library", library, .b = "/nonexistent/library.so", .texts = true},
    {"custom: no operators in it", library, .b = "libm.so.6"},
    {"custom: no such function", library, .b = "no_such_function", .k = 2},
    {"custom: function", library, "scale_float", .b = "RegisterCustomOps", .k = 2},
    {"custom: attributes of one's own", attributes, .texts = true},
    {"custom: empty domain", empty_domain},
};
const size_t custom_row_count = sizeof custom_rows / sizeof *custom_rows;

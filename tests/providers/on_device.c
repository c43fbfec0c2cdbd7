/* on_device.c - values on a device, as a program meets them that knows libort by ort.h alone: what
 * is copied, what isn't, and what is refused. One line for each check that fails; "N checks".
 *
 *     on_device DEVICE FOLDER [LIBRARY]   DEVICE: "opencl:device=0"; FOLDER: of fixtures.py
 *     on_device -t DEVICE FOLDER [LIBRARY] two sessions on the device at once, a thread each
 *     on_device -n ...                     results aren't looked at: the device computes nothing
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ort.h"

enum { COUNT = 6 };

static atomic_int checks, failures;
static int computes = 1;
static const int64_t shape[] = {2, 3}, flat[] = {COUNT}, wrong[] = {3, 3};
static const float numbers[COUNT] = {-1, 2, -3, 4, 5, -6};

/* Of a call that the device's library let fail, which its fault_seen tells the thread that made it:
 * the call, what of this program was running, and whether that said so. */
static const char *(*fault_seen)(void);
static _Atomic(const char *) fault, fault_in;
static atomic_int fault_told;

static void note_fault(int right, const char *text)
{
    if (!fault_seen || !fault_seen() || fault_in)
        return;
    fault = fault_seen();
    fault_in = text;
    fault_told = !right;
}

static void check(int right, int line, const char *text, const ort_error *err)
{
    checks++;
    note_fault(right, text);
    if (right)
        return;
    failures++;
    printf("line %d: not so: %s (%s)\n", line, text, err->message);
}

#define CHECK(condition) check(condition, __LINE__, #condition, &err)
#define OK(call) check((call) == ORT_OK, __LINE__, #call, &err)
#define REFUSED(call, status, part)                                                                \
    do {                                                                                           \
        CHECK((call) == (status));                                                                 \
        check(strstr(err.message, part) != NULL, __LINE__, part, &err);                            \
    } while (0)

typedef struct place { /* where all of it happens */
    const char *name, *folder, *library;
    char list[300];
    ort_env *env;
    ort_device *device;
} place;

static ort_env *new_env(const place *p)
{
    ort_env_options options = ORT_ENV_OPTIONS_INIT;
    ort_error err = ORT_ERROR_INIT;
    ort_env *env = NULL;
    options.threads = 1;
    if (ort_env_new(&options, &env, &err) != ORT_OK ||
        (p->library && ort_env_add_provider_library(env, p->library, &err) != ORT_OK)) {
        fprintf(stderr, "on_device: %s\n", err.message);
        exit(1);
    }
    return env;
}

static ort_session *load(const place *p, ort_env *env, const char *name, const char *list)
{
    ort_session_options options = ORT_SESSION_OPTIONS_INIT;
    ort_error err = ORT_ERROR_INIT;
    ort_session *session = NULL;
    char path[600];
    snprintf(path, sizeof path, "%s/%s.onnx", p->folder, name);
    options.providers = list ? list : p->list;
    OK(ort_session_load(env, path, &options, &session, &err));
    return session; /* calls refuse NULL */
}

static ort_value *host(const float *from)
{
    ort_error err = ORT_ERROR_INIT;
    ort_value *value = NULL;
    OK(ort_value_new_tensor(ORT_DTYPE_FLOAT, 2, shape, &value, &err));
    for (int i = 0; from && i < COUNT; i++)
        ((float *)ort_value_data(value))[i] = from[i];
    return value;
}

static ort_value *away(const place *p, const float *from)
{
    ort_error err = ORT_ERROR_INIT;
    ort_value *value = NULL, *source;
    OK(ort_value_new_on_device(p->device, ORT_DTYPE_FLOAT, 2, shape, &value, &err));
    if (from) {
        source = host(from);
        OK(ort_value_copy(value, source, &err));
        ort_value_free(source);
    }
    return value;
}

/* Does it hold relu(numbers times what the weights of so many models are), or their negative? */
static int holds(const ort_value *value, int times, double last)
{
    ort_error err = ORT_ERROR_INIT;
    ort_value *copy = NULL;
    int same = 1;
    OK(ort_value_to_host(value, &copy, &err));
    for (int i = 0; copy && i < COUNT && (computes || !times); i++) {
        double want = numbers[i];
        for (int k = 0; k < times; k++)
            want *= i == COUNT - 1 && k ? last : i + 1;
        want = times && want < 0 ? 0 : want;
        same = same && fabs(ort_value_get_double(copy, i) - want) <= 1e-6;
    }
    ort_value_free(copy);
    return same;
}

/* Sum of a member of all providers of a profile's report. */
static double of_profile(const ort_profile *profile, const char *member)
{
    ort_error err = ORT_ERROR_INIT;
    char *json = NULL, key[64];
    double sum = 0;
    OK(ort_profile_report(profile, NULL, &json, &err));
    snprintf(key, sizeof key, "\"%s\": ", member);
    for (const char *at = json; at && (at = strstr(at, key)); at += strlen(key))
        sum += atof(at + strlen(key));
    ort_text_free(json);
    return sum;
}

/* Runs the binding; how many bytes went between host and device, in how many copies. */
static double copied(const ort_session *session, ort_binding *binding, double *copies)
{
    ort_run_options options = ORT_RUN_OPTIONS_INIT;
    ort_error err = ORT_ERROR_INIT;
    ort_profile *profile = NULL;
    OK(ort_profile_new(session, NULL, &profile, &err));
    ort_profile_start(profile);
    options.profile = profile;
    OK(ort_binding_run(binding, &options, &err));
    *copies = of_profile(profile, "copies_in") + of_profile(profile, "copies_out");
    double bytes = of_profile(profile, "copy_in_bytes") + of_profile(profile, "copy_out_bytes");
    ort_profile_free(profile);
    return bytes;
}

/* ---- values */

static void values(const place *p)
{
    ort_error err = ORT_ERROR_INIT;
    ort_value *there = away(p, numbers), *here = host(NULL), *part = NULL, *other = NULL;
    size_t step = ort_device_alignment(p->device);
    const int64_t much = (int64_t)(step ? step : 1), one = 1;
    CHECK(ort_value_device(there) == p->device && !ort_value_device(here));
    CHECK(!strcmp(ort_device_name(p->device), p->name));
    CHECK(ort_value_get_kind(there) == ORT_VALUE_TENSOR && ort_value_rank(there) == 2);
    CHECK(ort_value_count(there) == COUNT && ort_value_bytes(there) == sizeof numbers);
    CHECK(!ort_value_data(there) && isnan(ort_value_get_double(there, 0)));
    CHECK(holds(there, 0, 0));
    OK(ort_value_copy(here, there, &err));
    CHECK(((float *)ort_value_data(here))[4] == 5);
    OK(ort_value_new_on_device(p->device, ORT_DTYPE_FLOAT, 1, &much, &other, &err));
    REFUSED(ort_value_copy(other, here, &err), ORT_ERROR_DATA, "6 elements of float");
    REFUSED(ort_value_new_part(other, 1, ORT_DTYPE_FLOAT, 1, &one, &part, &err), ORT_ERROR_USAGE,
            "begin at multiples of");
    REFUSED(ort_value_new_part(other, 4 * step, ORT_DTYPE_FLOAT, 1, &one, &part, &err),
            ORT_ERROR_USAGE, "the value has");
    REFUSED(ort_value_new_part(here, 0, ORT_DTYPE_FLOAT, 1, &one, &part, &err), ORT_ERROR_USAGE,
            "only a tensor on a device");
    OK(ort_value_new_part(other, step, ORT_DTYPE_FLOAT, 2, shape, &part, &err));
    ort_value_free(other); /* the part holds it */
    OK(ort_value_copy(part, there, &err));
    CHECK(holds(part, 0, 0));
    REFUSED(ort_value_new_on_device(p->device, ORT_DTYPE_STRING, 1, &one, &other, &err),
            ORT_ERROR_DATA, "string");
    ort_tensors *file = NULL;
    OK(ort_tensors_new(&file, &err));
    REFUSED(ort_tensors_add(file, "x", there, &err), ORT_ERROR_USAGE, "lies on a device");
    ort_tensors_free(file);
    ort_value_free(part);
    ort_value_free(there);
    ort_value_free(here);
}

static void devices(const place *p)
{
    ort_error err = ORT_ERROR_INIT;
    ort_device *other = NULL;
    OK(ort_device_open(p->env, p->name, &other, &err));
    CHECK(other == p->device); /* as long as somebody holds it, it is the one */
    ort_device_free(other);
    REFUSED(ort_device_open(p->env, "cpu", &other, &err), ORT_ERROR_UNSUPPORTED, "the host");
    REFUSED(ort_device_open(p->env, "tpu", &other, &err), ORT_ERROR_USAGE, "unknown");
    REFUSED(ort_device_open(p->env, p->list, &other, &err), ORT_ERROR_USAGE, "more than one");
}

/* ---- two sessions, one behind the other */

static void bind(ort_binding *binding, ort_value *in, ort_value *out)
{
    ort_error err = ORT_ERROR_INIT;
    OK(ort_binding_set_input(binding, "x", in, &err));
    if (out)
        OK(ort_binding_set_output(binding, "out", out, &err));
}

static void chained(const place *p)
{
    ort_error err = ORT_ERROR_INIT;
    ort_session *first = load(p, p->env, "scaled", NULL);
    ort_session *second = load(p, p->env, "rescaled", NULL);
    ort_binding *a = NULL, *b = NULL;
    ort_value *x = away(p, numbers), *whole = NULL, *middle = NULL, *y = NULL, *again = NULL;
    const int64_t much = (int64_t)ort_device_alignment(p->device) + COUNT;
    double copies;
    OK(ort_value_new_on_device(p->device, ORT_DTYPE_FLOAT, 1, &much, &whole, &err));
    OK(ort_value_new_part(whole, ort_device_alignment(p->device), ORT_DTYPE_FLOAT, 2, shape,
                          &middle, &err));
    OK(ort_binding_new(first, &a, &err));
    OK(ort_binding_new(second, &b, &err));
    bind(a, x, middle);
    bind(b, middle, NULL);
    OK(ort_binding_set_output_device(b, "out", p->device, &err));
    for (int i = 0; i < 3; i++) {
        CHECK(copied(first, a, &copies) == 0 && copies == 0);
        CHECK(copied(second, b, &copies) == 0 && copies == 0);
        y = ort_binding_output(b, 0);
        CHECK(ort_value_device(y) == p->device && (!again || again == y)); /* kept */
        again = y;
        CHECK(holds(middle, 1, 0) && holds(y, 2, 7) && holds(x, 0, 0));
    }
    /* From the host, and to it, with the same sessions. */
    ort_value *here = host(numbers);
    bind(a, here, NULL);
    OK(ort_binding_set_output(a, "out", NULL, &err));
    CHECK(copied(first, a, &copies) == 2 * sizeof numbers && copies == 2);
    CHECK(!ort_value_device(ort_binding_output(a, 0)) && holds(ort_binding_output(a, 0), 1, 0));
    bind(a, x, middle);
    CHECK(copied(first, a, &copies) == 0 && holds(middle, 1, 0));
    ort_value_retain(y);
    ort_binding_free(a);
    ort_binding_free(b);
    ort_session_free(first);
    ort_session_free(second);
    CHECK(holds(y, 2, 7)); /* it outlives its session */
    ort_value_free(y);
    ort_value_free(here);
    ort_value_free(x);
    ort_value_free(middle);
    ort_value_free(whole);
}

/* ---- runs by name; in place; what the host reads; what only changes its shape */

static void runs(const place *p)
{
    ort_error err = ORT_ERROR_INIT;
    ort_session *session = load(p, p->env, "scaled", NULL);
    ort_session *flatten = load(p, p->env, "flat", NULL);
    ort_value *x = away(p, numbers), *y = away(p, NULL), *none = NULL, *line = NULL;
    OK(ort_session_run(session, NULL, &x, 1, NULL, &y, 1, NULL, &err));
    CHECK(holds(y, 1, 0));
    OK(ort_session_run(session, NULL, &x, 1, NULL, &none, 1, NULL, &err));
    CHECK(!ort_value_device(none) && holds(none, 1, 0));
    OK(ort_session_run(session, NULL, &x, 1, NULL, &x, 1, NULL, &err));
    CHECK(holds(x, 1, 0));
    OK(ort_value_new_on_device(p->device, ORT_DTYPE_FLOAT, 1, flat, &line, &err));
    OK(ort_session_run(flatten, NULL, &y, 1, NULL, &line, 1, NULL, &err));
    CHECK(holds(line, 1, 0));
    ort_value_free(none);
    ort_value_free(line);
    ort_value_free(x);
    ort_value_free(y);
    ort_session_free(session);
    ort_session_free(flatten);
}

static void shared_with_host(const place *p)
{
    ort_error err = ORT_ERROR_INIT;
    ort_session *session = load(p, p->env, "split_up", NULL);
    ort_value *x = away(p, numbers);
    ort_binding *binding = NULL;
    double copies;
    OK(ort_binding_new(session, &binding, &err));
    OK(ort_binding_set_input(binding, "x", x, &err));
    OK(ort_binding_set_output_device(binding, "out", p->device, &err));
    OK(ort_binding_set_output_device(binding, "most", p->device, &err));
    /* One value comes to the host, one result goes back. */
    CHECK(copied(session, binding, &copies) == 2 * sizeof numbers && copies == 2);
    ort_value *out = NULL, *most = NULL;
    OK(ort_value_to_host(ort_binding_output(binding, 0), &out, &err));
    OK(ort_value_to_host(ort_binding_output(binding, 1), &most, &err));
    for (int i = 0; i < COUNT && computes; i++) {
        CHECK(ort_value_get_double(out, i) == (numbers[i] < 0 ? -numbers[i] : 0));
        CHECK(ort_value_get_double(most, i) == (i == 2 || i == 5));
    }
    ort_value_free(out);
    ort_value_free(most);
    ort_value_free(x);
    ort_binding_free(binding);
    ort_session_free(session);
}

/* ---- refused */

static void refusals(const place *p)
{
    ort_error err = ORT_ERROR_INIT;
    ort_session *session = load(p, p->env, "scaled", NULL);
    ort_session *alone = load(p, p->env, "scaled", "cpu");
    ort_value *x = away(p, numbers), *odd = NULL, *here = host(numbers), *y = NULL;
    ort_binding *binding = NULL;
    OK(ort_value_new_on_device(p->device, ORT_DTYPE_FLOAT, 2, wrong, &odd, &err));
    REFUSED(ort_session_run(alone, NULL, &x, 1, NULL, &y, 1, NULL, &err), ORT_ERROR_USAGE,
            "input 'x' lies on");
    REFUSED(ort_session_run(alone, NULL, &here, 1, NULL, &x, 1, NULL, &err), ORT_ERROR_USAGE,
            "output 'out' lies on");
    REFUSED(ort_session_run(session, NULL, &odd, 1, NULL, &y, 1, NULL, &err), ORT_ERROR_DATA,
            "input 'x' is float[3,3]");
    REFUSED(ort_session_run(session, NULL, &x, 1, NULL, &odd, 1, NULL, &err), ORT_ERROR_DATA,
            "the memory given for it is float[3,3]");
    OK(ort_binding_new(alone, &binding, &err));
    REFUSED(ort_binding_set_input(binding, "x", x, &err), ORT_ERROR_USAGE, "input 'x' lies on");
    REFUSED(ort_binding_set_output_device(binding, "out", p->device, &err), ORT_ERROR_USAGE,
            "isn't a device of this session (its providers: cpu)");
    ort_binding_free(binding);
    binding = NULL;
    /* The same device in another environment is another. */
    ort_env *second = new_env(p);
    ort_session *far = load(p, second, "scaled", NULL);
    REFUSED(ort_session_run(far, NULL, &x, 1, NULL, &y, 1, NULL, &err), ORT_ERROR_USAGE,
            "input 'x' lies on");
    ort_session_free(far);
    ort_env_free(second);
    OK(ort_binding_new(session, &binding, &err));
    REFUSED(ort_binding_set_input(binding, "nope", x, &err), ORT_ERROR_USAGE, "no input 'nope'");
    ort_binding_free(binding);
    ort_value_free(x);
    ort_value_free(odd);
    ort_value_free(here);
    ort_session_free(session);
    ort_session_free(alone);
}

/* ---- two sessions on the device at once */

static void *run_often(void *arg)
{
    const place *p = arg;
    ort_error err = ORT_ERROR_INIT;
    ort_session *session = load(p, p->env, "scaled", NULL);
    ort_value *x = away(p, numbers), *y = NULL;
    ort_status status = ORT_OK;
    for (int i = 0; i < 50 && status == ORT_OK; i++) {
        OK(status = ort_session_run(session, NULL, &x, 1, NULL, &y, 1, NULL, &err));
        ort_value_free(i % 2 ? y : NULL); /* a fresh one, then into what is there */
        y = i % 2 ? NULL : y;
    }
    ort_value_free(x);
    ort_value_free(y);
    ort_session_free(session);
    return NULL;
}

static void at_once(const place *p)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    ort_error err = ORT_ERROR_INIT;
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, run_often, (void *)(size_t)p));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
}

/* The library by which a test lets calls fail, if it is one. */
static void find_faults(const place *p)
{
    const char *path = p->library ? p->library : getenv("ORT_OPENCL_LIB");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *function = library ? dlsym(library, "fault_seen") : NULL;
    memcpy(&fault_seen, &function, sizeof function);
}

int main(int argc, char **argv)
{
    ort_error err = ORT_ERROR_INIT;
    int threads = 0;
    for (; argc > 1 && argv[1][0] == '-'; argv++, argc--) {
        threads = threads || argv[1][1] == 't';
        computes = computes && argv[1][1] != 'n';
    }
    if (argc < 3)
        return 2;
    place p = {.name = argv[1], .folder = argv[2], .library = argc > 3 ? argv[3] : NULL};
    snprintf(p.list, sizeof p.list, "%s:cost=off,cpu", p.name);
    find_faults(&p);
    p.env = new_env(&p);
    if (ort_device_open(p.env, p.name, &p.device, &err) != ORT_OK) {
        printf("%s\n", err.message);
        ort_env_free(p.env);
        return 4;
    }
    if (threads) {
        at_once(&p);
    } else {
        values(&p);
        devices(&p);
        chained(&p);
        runs(&p);
        shared_with_host(&p);
        refusals(&p);
    }
    ort_device_free(p.device);
    ort_env_free(p.env);
    if (fault_in)
        printf("%s failed in %s: %s\n", fault, fault_in,
               fault_told ? "told" : failures ? "told later" : "passed over");
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0;
}

/* differ.c - the drop-in and onnxruntime's own library side by side.
 *
 *     differ OURS THEIRS MODELS [CONFORMANCE] [NAME]
 *
 * Each scenario runs through the table of one library and then of the other, and writes what it
 * saw: codes, names, types, dimensions, symbols, strings, error texts. Both transcripts must be
 * equal, and the numbers that models gave close. A row that is known to differ says why, and fails
 * when it doesn't differ any more.
 *
 * THEIRS may be "-": ours runs alone and nothing is compared, for sanitizers.
 */
#include "differ.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const table tables[];
extern const size_t table_count;
extern const row custom_rows[]; /* custom_scenarios.c */
extern const size_t custom_row_count;
extern const row more_rows[]; /* more_scenarios.c */
extern const size_t more_row_count;
extern const row rest_rows[]; /* rest_scenarios.c */
extern const size_t rest_row_count;
void set_conformance(const char *folder, const table **rows);

static const char *folder;
static int passed, failed, alone;

/* --------------------------------------------------------------------------------- transcripts */

void say(side *s, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vfprintf(s->out, format, list);
    va_end(list);
    fputc('\n', s->out);
}

bool good(side *s, const char *call, OrtStatus *status)
{
    if (status == NULL) {
        say(s, "%s: good", call);
        return true;
    }
    say(s, "%s: code %d%s%s", call, s->api->GetErrorCode(status), s->texts ? ": " : "",
        s->texts ? s->api->GetErrorMessage(status) : "");
    s->api->ReleaseStatus(status);
    return false;
}

static void number(side *s, double x)
{
    if (!(s->number_count & (s->number_count - 1)))
        s->numbers = realloc(s->numbers, (s->number_count ? 2 * s->number_count : 1) * sizeof x);
    s->numbers[s->number_count++] = x;
}

/* ------------------------------------------------------------------------- what scenarios say */

const char *model_path(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, *name == '/' ? "%s%s" : "%2$s/%1$s.onnx", name,
             *name == '/' ? "" : folder);
    return path;
}

OrtSession *open_model(side *s, const char *name, const OrtSessionOptions *options)
{
    OrtSession *session = NULL;
    OrtSessionOptions *own = NULL;
    if (!options && !GOOD(s, CreateSessionOptions, &own))
        return NULL;
    if (own) {
        GOOD(s, SetIntraOpNumThreads, own, 1);
        GOOD(s, SetSessionLogSeverityLevel, own, 4);
    }
    GOOD(s, CreateSession, s->env, model_path(name), options ? options : own, &session);
    s->api->ReleaseSessionOptions(own);
    return session;
}

OrtValue *floats(side *s, const float *data, size_t rank, const int64_t *dims)
{
    OrtMemoryInfo *memory = NULL;
    OrtValue *value = NULL;
    size_t count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    GOOD(s, CreateCpuMemoryInfo, 1, 0, &memory);
    GOOD(s, CreateTensorWithDataAsOrtValue, memory, (void *)data, count * sizeof *data, dims, rank,
         1, &value);
    s->api->ReleaseMemoryInfo(memory);
    return value;
}

static void say_shape(side *s, const OrtTensorTypeAndShapeInfo *info)
{
    int type = -1;
    size_t rank = 0, count = 0;
    int64_t dims[64];
    const char *symbols[64];
    GOOD(s, GetTensorElementType, info, &type);
    GOOD(s, GetDimensionsCount, info, &rank);
    GOOD(s, GetDimensions, info, dims, rank);
    GOOD(s, GetSymbolicDimensions, info, symbols, rank);
    bool known = true;
    for (size_t i = 0; i < rank; i++)
        known &= dims[i] >= 0;
    if (known)
        GOOD(s, GetTensorShapeElementCount, info, &count);
    say(s, "element %d, rank %zu, count %zu", type, rank, count);
    for (size_t i = 0; i < rank; i++)
        say(s, "  dim %lld '%s'", (long long)dims[i], symbols[i]);
}

void say_type(side *s, const OrtTypeInfo *type)
{
    int kind = -1, key = -1;
    OrtTypeInfo *element = NULL;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    const OrtMapTypeInfo *map = NULL;
    const OrtSequenceTypeInfo *sequence = NULL;
    const OrtOptionalTypeInfo *optional = NULL;
    say(s, "type %d", type != NULL);
    if (!type)
        return;
    GOOD(s, GetOnnxTypeFromTypeInfo, type, &kind);
    say(s, "kind %d", kind);
    GOOD(s, CastTypeInfoToTensorInfo, type, &tensor);
    GOOD(s, CastTypeInfoToMapTypeInfo, type, &map);
    GOOD(s, CastTypeInfoToSequenceTypeInfo, type, &sequence);
    GOOD(s, CastTypeInfoToOptionalTypeInfo, type, &optional);
    if (tensor)
        say_shape(s, tensor);
    if (map) {
        GOOD(s, GetMapKeyType, map, &key);
        say(s, "key %d", key);
        GOOD(s, GetMapValueType, map, &element);
    }
    if (sequence)
        GOOD(s, GetSequenceElementType, sequence, &element);
    if (optional)
        GOOD(s, GetOptionalContainedTypeInfo, optional, &element);
    if (element)
        say_type(s, element);
    s->api->ReleaseTypeInfo(element);
}

static void say_strings(side *s, const OrtValue *value, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        char text[4096] = "";
        GOOD(s, GetStringTensorElementLength, value, i, &length);
        GOOD(s, GetStringTensorElement, value, length, i, text);
        say(s, "  '%.*s'", (int)length, text);
    }
}

static float widen(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    float size =
        exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24);
    size = exponent == 31 ? (fraction ? NAN : INFINITY) : size;
    return half & 0x8000 ? -size : size;
}

static double element(int type, const void *data, size_t i)
{
    switch (type) {
    case 1:
        return ((const float *)data)[i];
    case 2:
    case 9:
        return ((const uint8_t *)data)[i];
    case 3:
        return ((const int8_t *)data)[i];
    case 4:
        return ((const uint16_t *)data)[i];
    case 5:
        return ((const int16_t *)data)[i];
    case 6:
        return ((const int32_t *)data)[i];
    case 7:
        return (double)((const int64_t *)data)[i];
    case 10:
        return widen(((const uint16_t *)data)[i]);
    case 11:
        return ((const double *)data)[i];
    case 12:
        return ((const uint32_t *)data)[i];
    case 13:
        return (double)((const uint64_t *)data)[i];
    default:
        return 0;
    }
}

static void say_tensor(side *s, const OrtValue *value)
{
    OrtTensorTypeAndShapeInfo *info = NULL;
    int type = 0;
    size_t count = 0;
    void *data = NULL;
    if (!GOOD(s, GetTensorTypeAndShape, value, &info))
        return;
    say_shape(s, info);
    s->api->GetTensorElementType(info, &type);
    s->api->GetTensorShapeElementCount(info, &count);
    s->api->ReleaseTensorTypeAndShapeInfo(info);
    if (type == ORT_DTYPE_STRING) {
        say_strings(s, value, count);
        return;
    }
    GOOD(s, GetTensorMutableData, (OrtValue *)value, &data);
    for (size_t i = 0; i < count; i++)
        number(s, element(type, data, i));
}

void say_value(side *s, const OrtValue *value)
{
    int kind = -1, has = -1;
    size_t count = 0;
    GOOD(s, HasValue, value, &has);
    say(s, "has value %d", has);
    if (!has)
        return;
    GOOD(s, GetValueType, value, &kind);
    say(s, "value of kind %d", kind);
    if (kind == ABI_TENSOR)
        say_tensor(s, value);
    if (kind != ABI_SEQUENCE && kind != ABI_MAP)
        return;
    GOOD(s, GetValueCount, value, &count);
    say(s, "%zu items", count);
    for (size_t i = 0; i < count; i++) {
        OrtValue *item = NULL;
        if (GOOD(s, GetValue, value, (int)i, s->allocator, &item))
            say_value(s, item);
        s->api->ReleaseValue(item);
    }
}

static void say_text(side *s, const char *what, char *text)
{
    say(s, "%s '%s'", what, text ? text : "(null)");
    if (text)
        GOOD(s, AllocatorFree, s->allocator, text);
}

static void say_metadata(side *s, const OrtSession *session)
{
    OrtModelMetadata *m = NULL;
    char *text = NULL, **keys = NULL;
    int64_t version = -1, count = -1;
    if (!GOOD(s, SessionGetModelMetadata, session, &m))
        return;
#define TEXT(function)                                                                             \
    if (GOOD(s, function, m, s->allocator, &text))                                                 \
        say_text(s, #function, text);
    TEXT(ModelMetadataGetProducerName)
    TEXT(ModelMetadataGetGraphName)
    TEXT(ModelMetadataGetDomain)
    TEXT(ModelMetadataGetDescription)
    TEXT(ModelMetadataGetGraphDescription)
    GOOD(s, ModelMetadataGetVersion, m, &version);
    say(s, "version %lld", (long long)version);
    GOOD(s, ModelMetadataGetCustomMetadataMapKeys, m, s->allocator, &keys, &count);
    say(s, "%lld keys", (long long)count);
    for (int64_t i = 0; i < count; i++)
        say_text(s, "key", keys[i]); /* its order isn't promised: the test's models have one */
    if (keys)
        s->api->AllocatorFree(s->allocator, keys);
    GOOD(s, ModelMetadataLookupCustomMetadataMap, m, s->allocator, "author", &text);
    say_text(s, "author", text);
    GOOD(s, ModelMetadataLookupCustomMetadataMap, m, s->allocator, "none such", &text);
    say_text(s, "none", text);
    s->api->ReleaseModelMetadata(m);
}

typedef OrtStatus *name_fn(const OrtSession *, size_t, OrtAllocator *, char **);
typedef OrtStatus *type_fn(const OrtSession *, size_t, OrtTypeInfo **);

static void say_side(side *s, const OrtSession *session, size_t count, name_fn *name, type_fn *type)
{
    say(s, "%zu of them", count);
    for (size_t i = 0; i <= count; i++) {
        char *text = NULL;
        OrtTypeInfo *info = NULL;
        if (good(s, "name", name(session, i, s->allocator, &text)))
            say_text(s, "name", text);
        if (good(s, "type", type(session, i, &info)))
            say_type(s, info);
        s->api->ReleaseTypeInfo(info);
    }
}

void say_session(side *s, const OrtSession *session)
{
    size_t count = 0;
    GOOD(s, SessionGetInputCount, session, &count);
    say_side(s, session, count, s->api->SessionGetInputName, s->api->SessionGetInputTypeInfo);
    GOOD(s, SessionGetOutputCount, session, &count);
    say_side(s, session, count, s->api->SessionGetOutputName, s->api->SessionGetOutputTypeInfo);
    GOOD(s, SessionGetOverridableInitializerCount, session, &count);
    say_side(s, session, count, s->api->SessionGetOverridableInitializerName,
             s->api->SessionGetOverridableInitializerTypeInfo);
    say_metadata(s, session);
}

/* ------------------------------------------------------------------------------------ the runs */

static const api *open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    struct base {
        const api *(*get_api)(uint32_t);
    };
    union {
        void *object;
        const struct base *(*function)(void);
    } entry = {dlsym(library, "OrtGetApiBase")};
    return entry.function()->get_api(ABI_VERSION);
}

static char *play(const api *library, const row *r, side *s)
{
    char *text = NULL;
    size_t size;
    *s = (side){.api = library,
                .texts = r->texts || getenv("DIFFER_TEXTS"),
                .out = open_memstream(&text, &size)};
    if (GOOD(s, CreateEnv, ABI_FATAL, "differ", &s->env) &&
        GOOD(s, GetAllocatorWithDefaultOptions, &s->allocator))
        r->run(s, r);
    s->api->ReleaseEnv(s->env);
    fclose(s->out);
    return text;
}

/* The first line in which both differ. */
static bool same_text(const char *ours, const char *theirs, char *why, size_t size)
{
    const char *a = ours, *b = theirs;
    while (*a && *a == *b)
        a++, b++;
    if (!*a && !*b)
        return true;
    while (a > ours && a[-1] != '\n')
        a--, b--;
    snprintf(why, size, "ours:   %.*s\n    theirs: %.*s", (int)strcspn(a, "\n"), a,
             (int)strcspn(b, "\n"), b);
    return false;
}

/* Within rounding of each number, and of the largest: sums cancel. */
static bool same_numbers(const side *a, const side *b, char *why, size_t size)
{
    double largest = 0;
    for (size_t i = 0; i < b->number_count; i++)
        if (isfinite(b->numbers[i]) && fabs(b->numbers[i]) > largest)
            largest = fabs(b->numbers[i]);
    for (size_t i = 0; i < a->number_count && i < b->number_count; i++) {
        double x = a->numbers[i], y = b->numbers[i];
        if (x == y || (isnan(x) && isnan(y)) ||
            fabs(x - y) <= 1e-4 + 1e-3 * fabs(y) + 1e-5 * largest)
            continue;
        snprintf(why, size, "number %zu: ours %.9g, theirs %.9g", i, x, y);
        return false;
    }
    return a->number_count == b->number_count;
}

static void run_alone(const api *ours, const row *r)
{
    side a;
    free(play(ours, r, &a));
    free(a.numbers);
    passed++;
}

static void compare(const api *ours, const api *theirs, const row *r)
{
    side a, b;
    char why[8192] = "";
    if (!theirs) {
        run_alone(ours, r);
        return;
    }
    char *x = play(ours, r, &a), *y = play(theirs, r, &b);
    if (r->models && !strstr(x, "CreateSession: code") && strstr(y, "CreateSession: code")) {
        alone++; /* theirs doesn't run the model */
        goto done;
    }
    bool refused =
        r->models && strstr(x, "CreateSession: code") && strstr(y, "CreateSession: code");
    bool same =
        refused || (same_text(x, y, why, sizeof why) && same_numbers(&a, &b, why, sizeof why));
    if (getenv("DIFFER_SHOW"))
        printf("--- %s\n%s", r->name, x);
    if (same != !!r->known) {
        passed++;
    } else {
        failed++;
        printf("FAIL %s%s%s\n    %s\n", r->name, r->known ? ": differs no more: " : "",
               r->known ? r->known : "", why);
    }
done:
    free(x);
    free(y);
    free(a.numbers);
    free(b.numbers);
}

static void compare_all(const api *ours, const api *theirs, const table *t, const char *only)
{
    for (size_t i = 0; i < t->count; i++)
        if (!only || strstr(t->rows[i].name, only))
            compare(ours, theirs, &t->rows[i]);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: differ OURS THEIRS MODELS [CONFORMANCE [NAME]]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    const api *ours = open_library(argv[1]);
    const api *theirs = strcmp(argv[2], "-") ? open_library(argv[2]) : NULL;
    const char *only = argc > 5 ? argv[5] : NULL;
    const table *found = NULL;
    folder = argv[3];
    for (size_t i = 0; i < table_count; i++)
        compare_all(ours, theirs, &tables[i], only);
    compare_all(ours, theirs, &(table){"custom", custom_rows, custom_row_count}, only);
    compare_all(ours, theirs, &(table){"more", more_rows, more_row_count}, only);
    compare_all(ours, theirs, &(table){"rest", rest_rows, rest_row_count}, only);
    if (argc > 4) {
        set_conformance(argv[4], &found);
        compare_all(ours, theirs, found, only);
    }
    if (alone)
        printf("%d models run here alone\n", alone);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}

/* mutate.c - hostile models: damages real ones at random and puts each through the library.
 *
 * usage: mutate [--seed N] [--count N] [--only N] [--timeout SECONDS] [--max-file BYTES]
 *               [--isa NAME] [--threads N] [--keep DIR] FILE_OR_DIR...
 *
 * Every variant is a function of the seed, its number and the sorted list of models, so `--only N`
 * repeats one. Half of them are damaged as bytes (flips, cuts, splices), half as fields: the file
 * is taken apart into the tree of protobuf fields, a few fields are changed, removed, doubled or
 * exchanged, and the lengths around them are made right again. Each variant is loaded, checked,
 * reported on, drawn, compared, saved, and run with made-up inputs, in a child process. It has
 * passed when the child comes back in time, within its memory, whatever it said about the model;
 * a signal, a sanitizer's report, a hang or a leak is a failure and leaves the model in DIR.
 * Build with CFLAGS and LDFLAGS of -fsanitize=address,undefined to find what does not crash.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../run_whole.h"
#include "../unit/workers.h"
#include "ort.h"

#define LIMIT_BYTES ((size_t)3 << 30) /* resident memory of a child */
#define RUN_BYTES ((size_t)256 << 20) /* working memory of a run */
#define INPUTS_MAX 1e7                /* elements of all inputs of a run */
#define EXIT_LEAK 77
#define DEPTH_MAX 12
#define FIELDS_MAX 60000

#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);
int __lsan_do_recoverable_leak_check(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=2000:detect_leaks=1:"
           "detect_stack_use_after_return=0:quarantine_size_mb=64";
}
#endif

typedef struct bytes {
    unsigned char *data;
    size_t count, room;
} bytes;

typedef struct settings {
    uint64_t seed;
    long count, only;
    double timeout_s;
    size_t max_file;
    const char *isa, *keep;
    int threads;
} settings;

typedef struct corpus {
    char **path;
    size_t count, room;
} corpus;

static void *must(void *memory)
{
    if (!memory) {
        fprintf(stderr, "mutate: out of memory\n");
        exit(2);
    }
    return memory;
}

/* ---- numbers */

static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static size_t below(uint64_t *state, size_t bound)
{
    return bound ? (size_t)(draw(state) % bound) : 0;
}

static int64_t odd_number(uint64_t *state)
{
    static const int64_t numbers[] = {
        0, 1, -1, 2, -2, 3, 4, 5, 7, 8, 10, 11, 13, 16, 17, 21, 26, 27, 63, 64, 100, 127, 128, 255,
        256, 1000, 32767, 32768, 65535, 65536, 1 << 20, INT32_MAX, (int64_t)INT32_MAX + 1,
        INT32_MIN, UINT32_MAX, (int64_t)1 << 40, (int64_t)1 << 61, (int64_t)1 << 62, INT64_MAX,
        INT64_MAX - 1, INT64_MIN, INT64_MIN + 1};
    return numbers[below(state, sizeof numbers / sizeof *numbers)];
}

/* ---- byte strings */

static void reserve(bytes *b, size_t count)
{
    if (count <= b->room)
        return;
    b->room = count + count / 2 + 64;
    b->data = must(realloc(b->data, b->room));
}

static void append(bytes *b, const void *data, size_t count)
{
    reserve(b, b->count + count);
    if (count)
        memcpy(b->data + b->count, data, count);
    b->count += count;
}

static void append_varint(bytes *b, uint64_t value)
{
    unsigned char text[10];
    size_t n = 0;
    do {
        text[n++] = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value);
    append(b, text, n);
}

static bool read_file(const char *path, bytes *b)
{
    FILE *file = fopen(path, "rb");
    unsigned char block[65536];
    size_t n;
    b->count = 0;
    if (!file)
        return false;
    while ((n = fread(block, 1, sizeof block, file)) > 0)
        append(b, block, n);
    fclose(file);
    return true;
}

/* ---- the tree of fields */

typedef struct field {
    uint32_t number, wire; /* wire types 0, 1, 2, 5 */
    uint64_t varint;
    size_t at, length; /* of a leaf's payload, in the file */
    int64_t child, next; /* indices of fields, or -1 */
    bool removed, doubled, tree;
    bytes payload; /* takes the place of a leaf's payload */
} field;

typedef struct tree {
    field *fields;
    size_t count;
    const unsigned char *data;
} tree;

static bool take_varint(const unsigned char *data, size_t *at, size_t end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 70 && *at < end; shift += 7) {
        unsigned char c = data[(*at)++];
        if (shift < 64)
            *value |= (uint64_t)(c & 127) << shift;
        if (!(c & 128))
            return true;
    }
    return false;
}

static bool take_apart(tree *t, size_t at, size_t end, int depth, int64_t *first);

/* Text and weights also parse now and then; then they are damaged as messages, which is as good. */
static bool take_field(tree *t, size_t *at, size_t end, int depth)
{
    uint64_t tag, length = 0;
    field f = {.child = -1, .next = -1};
    if (t->count == FIELDS_MAX || !take_varint(t->data, at, end, &tag) || tag >> 3 == 0 ||
        tag >> 3 > 100)
        return false;
    f.number = (uint32_t)(tag >> 3);
    f.wire = (uint32_t)(tag & 7);
    f.at = *at;
    if (f.wire == 0 && !take_varint(t->data, at, end, &f.varint))
        return false;
    if (f.wire == 2 && !take_varint(t->data, at, end, &length))
        return false;
    if (f.wire != 0 && f.wire != 1 && f.wire != 2 && f.wire != 5)
        return false;
    length = f.wire == 1 ? 8 : f.wire == 5 ? 4 : length;
    if (length > end - *at)
        return false;
    if (f.wire) {
        f.at = *at;
        f.length = (size_t)length;
        *at += (size_t)length;
    }
    size_t self = t->count++;
    t->fields[self] = f;
    if (f.wire == 2 && length > 1 && depth < DEPTH_MAX) {
        size_t mark = t->count;
        int64_t child;
        if (take_apart(t, f.at, f.at + f.length, depth + 1, &child)) {
            t->fields[self].child = child;
            t->fields[self].tree = true;
        } else {
            t->count = mark;
        }
    }
    return true;
}

static bool take_apart(tree *t, size_t at, size_t end, int depth, int64_t *first)
{
    int64_t previous = -1;
    *first = -1;
    while (at < end) {
        int64_t self = (int64_t)t->count;
        if (!take_field(t, &at, end, depth))
            return false;
        if (previous < 0)
            *first = self;
        else
            t->fields[previous].next = self;
        previous = self;
    }
    return true;
}

static void put_together(const tree *t, int64_t first, int depth, bytes *out)
{
    for (int64_t i = first; i >= 0; i = t->fields[i].next) {
        const field *f = &t->fields[i];
        for (int copy = f->removed ? 2 : f->doubled ? 0 : 1; copy < 2; copy++) {
            append_varint(out, (uint64_t)f->number << 3 | f->wire);
            if (f->wire == 0) {
                append_varint(out, f->varint);
            } else if (f->wire != 2) {
                append(out, f->payload.data ? f->payload.data : t->data + f->at, f->length);
            } else if (f->tree && depth < 40) {
                bytes inner = {0};
                put_together(t, f->child, depth + 1, &inner);
                append_varint(out, inner.count);
                append(out, inner.data, inner.count);
                free(inner.data);
            } else {
                size_t length = f->payload.data ? f->payload.count : f->length;
                append_varint(out, length);
                append(out, f->payload.data ? f->payload.data : t->data + f->at, length);
            }
        }
    }
}

static void own_payload(const tree *t, field *f)
{
    if (!f->payload.data) {
        reserve(&f->payload, f->length + 1);
        append(&f->payload, t->data + f->at, f->length);
    }
}

static void damage_leaf(const tree *t, field *f, uint64_t *state)
{
    own_payload(t, f);
    bytes *p = &f->payload;
    size_t how = below(state, 5);
    int64_t number = odd_number(state);
    if (how == 0 && p->count >= 8) { /* an int64 of raw_data */
        memcpy(p->data + below(state, p->count / 8) * 8, &number, 8);
    } else if (how == 1 && f->wire == 2) {
        p->count = below(state, p->count + 1);
    } else if (how == 2 && f->wire == 2) {
        append(p, t->data + f->at, f->length);
    } else if (how == 3 && f->wire == 2) {
        const field *other = &t->fields[below(state, t->count)];
        p->count = 0;
        if (other->wire == 2)
            append(p, t->data + other->at, other->length);
    } else if (p->count) {
        p->data[below(state, p->count)] ^= (unsigned char)(1 << below(state, 8));
    }
}

static void damage_field(tree *t, uint64_t *state)
{
    field *f = &t->fields[below(state, t->count)];
    field *other = &t->fields[below(state, t->count)];
    switch (below(state, 8)) {
    case 0: f->removed = true; break;
    case 1: f->doubled = true; break;
    case 2: f->number = 1 + (uint32_t)below(state, 30); break;
    case 3: /* the children of another message of the same number */
        for (int tries = 0; tries < 50 && (!f->tree || !other->tree || f->number != other->number);
             tries++) {
            f = &t->fields[below(state, t->count)];
            other = &t->fields[below(state, t->count)];
        }
        if (f->tree && other->tree && f->number == other->number && other < f) {
            int64_t child = f->child;
            f->child = -1; /* no cycle: `other` may hold `f` */
            bytes copy = {0};
            put_together(t, other->child, 0, &copy);
            f->child = child;
            f->tree = false;
            free(f->payload.data);
            f->payload = copy;
        }
        break;
    default:
        for (int tries = 0; tries < 50 && f->tree; tries++)
            f = &t->fields[below(state, t->count)];
        if (f->wire == 0)
            f->varint = below(state, 3) ? (uint64_t)odd_number(state)
                                        : f->varint + below(state, 5) - 2;
        else if (!f->tree)
            damage_leaf(t, f, state);
    }
}

static bool damage_fields(const bytes *original, uint64_t *state, bytes *out)
{
    tree t = {must(malloc(FIELDS_MAX * sizeof(field))), 0, original->data};
    int64_t first;
    bool whole = take_apart(&t, 0, original->count, 0, &first) && t.count;
    if (whole) {
        for (size_t n = 1 + below(state, 4); n > 0; n--)
            damage_field(&t, state);
        put_together(&t, first, 0, out);
    }
    for (size_t i = 0; i < t.count; i++)
        free(t.fields[i].payload.data);
    free(t.fields);
    return whole;
}

/* ---- bytes */

static void damage_bytes(const bytes *original, const bytes *donor, uint64_t *state, bytes *out)
{
    append(out, original->data, original->count);
    size_t how = below(state, 6), n = 1 + below(state, 8);
    if (how == 0) {
        out->count = below(state, out->count);
    } else if (how == 1 && donor->count) { /* head of one, tail of the other */
        size_t from = below(state, donor->count);
        out->count = below(state, out->count);
        append(out, donor->data + from, donor->count - from);
    } else if (how == 2 && donor->count) { /* a piece over another place */
        size_t length = 1 + below(state, donor->count < 4096 ? donor->count : 4096);
        size_t from = below(state, donor->count - length + 1), to = below(state, out->count);
        length = length < out->count - to ? length : out->count - to;
        memcpy(out->data + to, donor->data + from, length);
    } else {
        for (; n > 0 && out->count; n--) {
            /* Names and structure are often at one of the ends, weights between them. */
            size_t window = below(state, 2) && out->count > 4096 ? 2048 : out->count;
            size_t at = below(state, window);
            at = below(state, 2) ? out->count - 1 - at : at;
            out->data[at] = how == 3 ? (unsigned char)draw(state)
                                     : out->data[at] ^ (unsigned char)(1 << below(state, 8));
        }
    }
}

static void make_variant(const settings *s, const corpus *c, long index, bytes *out,
                         const char **path)
{
    uint64_t state = s->seed * 0x2545f4914f6cdd1du + (uint64_t)index * 0x9e3779b97f4a7c15u;
    bytes original = {0}, donor = {0};
    *path = c->path[below(&state, c->count)];
    const char *other = c->path[below(&state, c->count)];
    out->count = 0;
    if (!read_file(*path, &original) || !read_file(other, &donor))
        fprintf(stderr, "mutate: %s or %s can't be read\n", *path, other);
    else if (below(&state, 2) || !damage_fields(&original, &state, out))
        damage_bytes(&original, &donor, &state, out);
    free(original.data);
    free(donor.data);
}

/* ---- what is done with one variant */

static void look_at(ort_model *model, FILE *sink)
{
    ort_findings *findings = NULL;
    char *text = NULL;
    bool equal;
    if (!ort_model_check(model, &findings, NULL))
        for (size_t i = 0; i < ort_findings_count(findings); i++)
            fputs(ort_findings_message(findings, i), sink);
    ort_findings_free(findings);
    for (int report = ORT_REPORT_SUMMARY; report <= ORT_REPORT_MEMORY; report++)
        if (!ort_model_report(model, (ort_report)report, &text, NULL)) {
            fputs(text, sink);
            ort_text_free(text);
        }
    for (int svg = 0; svg < 2; svg++)
        if (!ort_model_draw(model, svg, &text, NULL)) {
            fputs(text, sink);
            ort_text_free(text);
        }
    if (!ort_model_diff(model, model, &equal, &text, NULL))
        ort_text_free(text);
    if (ort_model_write(model, sink, NULL))
        return;
}

/* Whether the model itself asks for inputs that take longer to make up than to run. */
static bool wants_much(const ort_session *session)
{
    int64_t dims[64];
    double count = 0;
    for (size_t i = 0; i < ort_session_input_count(session); i++) {
        int rank = ort_session_input_dims(session, i, dims, 64);
        double part = 1;
        for (int d = 0; d < rank && d < 64; d++)
            part *= dims[d] < 0 ? 8 : (double)dims[d];
        count += part;
    }
    return count > INPUTS_MAX;
}

static void run_session(ort_env *env, ort_model *model, double timeout_s, FILE *sink)
{
    ort_session *session = NULL;
    ort_error err = {0};
    if (ort_session_new(env, model, NULL, &session, &err)) {
        fputs(err.message, sink);
        return;
    }
    size_t in = ort_session_input_count(session), out = ort_session_output_count(session);
    ort_value **inputs = must(calloc(in + 1, sizeof *inputs));
    ort_value **outputs = must(calloc(out + 1, sizeof *outputs));
    ort_run_options options = {.size = sizeof options, .timeout_s = timeout_s / 2};
    if (!wants_much(session) &&
        !ort_session_random_inputs(session, 1, inputs, ort_session_input_count(session), &err) &&
        !run_whole(session, inputs, outputs, &options, &err))
        for (size_t i = 0; i < out; i++)
            fprintf(sink, "%d", outputs[i] ? ort_value_rank(outputs[i]) : -1);
    for (size_t i = 0; i < in; i++)
        ort_value_free(inputs[i]);
    for (size_t i = 0; i < out; i++)
        ort_value_free(outputs[i]);
    free(inputs);
    free(outputs);
    ort_session_free(session);
}

static int try_variant(const settings *s, const bytes *variant)
{
    ort_env_options options;
    ort_env *env = NULL;
    ort_model *model = NULL;
    ort_error err = {0};
    FILE *sink = fopen("/dev/null", "w");
    ort_env_options_init(&options);
    options.threads = s->threads;
    options.own_threads = &workers_at_once;
    options.isa = s->isa;
    options.max_memory_bytes = RUN_BYTES;
    if (!sink || ort_env_new(&options, &env, &err)) {
        fprintf(stderr, "mutate: %s\n", err.message);
        return 2;
    }
    if (!ort_model_load_memory(env, variant->data, variant->count, NULL, &model, &err)) {
        look_at(model, sink);
        run_session(env, model, s->timeout_s, sink);
    }
    ort_model_free(model);
    ort_env_free(env);
    fclose(sink);
#ifdef __SANITIZE_ADDRESS__
    if (__lsan_do_recoverable_leak_check())
        return EXIT_LEAK;
#endif
    return 0;
}

/* ---- children */

static size_t resident_bytes(pid_t pid)
{
    char path[64];
    unsigned long size = 0, resident = 0;
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Empty when the child came back well, else why not. */
static void watch(const settings *s, pid_t pid, char *why, size_t room)
{
    double end = now_s() + s->timeout_s;
    size_t inherited = resident_bytes(pid);
    useconds_t pause = 200;
    int status;
    why[0] = '\0';
    while (waitpid(pid, &status, WNOHANG) == 0) {
        usleep(pause);
        pause = pause < 20000 ? pause * 2 : pause;
        if (now_s() > end)
            snprintf(why, room, "not done after %g s", s->timeout_s);
        else if (resident_bytes(pid) > inherited + LIMIT_BYTES)
            snprintf(why, room, "takes more than %zu MiB", LIMIT_BYTES >> 20);
        if (why[0]) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return;
        }
    }
    if (WIFSIGNALED(status))
        snprintf(why, room, "died of signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) == EXIT_LEAK)
        snprintf(why, room, "leaks");
    else if (WEXITSTATUS(status))
        snprintf(why, room, "exit status %d", WEXITSTATUS(status));
}

static bool run_variant(const settings *s, const corpus *c, long index)
{
    bytes variant = {0};
    const char *path;
    char why[200];
    make_variant(s, c, index, &variant, &path);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
#ifndef __SANITIZE_ADDRESS__
        setrlimit(RLIMIT_AS, &(struct rlimit){2 * LIMIT_BYTES, 2 * LIMIT_BYTES});
#endif
        _exit(try_variant(s, &variant));
    }
    if (pid < 0) {
        perror("mutate: fork");
        exit(2);
    }
    watch(s, pid, why, sizeof why);
    if (why[0]) {
        char file[4096];
        mkdir(s->keep, 0777);
        snprintf(file, sizeof file, "%s/%llu-%ld.onnx", s->keep, (unsigned long long)s->seed,
                 index);
        FILE *out = fopen(file, "wb");
        if (out) {
            fwrite(variant.data, 1, variant.count, out);
            fclose(out);
        }
        printf("not ok %ld (from %s): %s; kept as %s\n", index, path, why, file);
    }
    free(variant.data);
    return !why[0];
}

/* ---- the models to start from */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void collect(corpus *c, const char *path, size_t max_file, int depth)
{
    struct stat st;
    size_t length = strlen(path);
    if (stat(path, &st))
        return;
    if (S_ISREG(st.st_mode)) {
        if (length < 5 || strcmp(path + length - 5, ".onnx") || (size_t)st.st_size > max_file ||
            st.st_size == 0)
            return;
        if (c->count == c->room) {
            c->room = c->room * 2 + 64;
            c->path = must(realloc(c->path, c->room * sizeof *c->path));
        }
        c->path[c->count++] = must(strdup(path));
    } else if (S_ISDIR(st.st_mode) && depth < 4) {
        DIR *dir = opendir(path);
        struct dirent *entry;
        while (dir && (entry = readdir(dir))) {
            char inner[4096];
            if (entry->d_name[0] == '.')
                continue;
            snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
            collect(c, inner, max_file, depth + 1);
        }
        if (dir)
            closedir(dir);
    }
}

static bool parse(int argc, char **argv, settings *s)
{
    static const struct option table[] = {
        {"seed", 1, NULL, 's'},     {"count", 1, NULL, 'n'}, {"only", 1, NULL, 'o'},
        {"timeout", 1, NULL, 't'},  {"max-file", 1, NULL, 'm'}, {"isa", 1, NULL, 'i'},
        {"threads", 1, NULL, 'j'},  {"keep", 1, NULL, 'k'}, {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (option) {
        case 's': s->seed = strtoull(optarg, NULL, 10); break;
        case 'n': s->count = atol(optarg); break;
        case 'o': s->only = atol(optarg); break;
        case 't': s->timeout_s = atof(optarg); break;
        case 'm': s->max_file = strtoull(optarg, NULL, 10); break;
        case 'i': s->isa = optarg; break;
        case 'j': s->threads = atoi(optarg); break;
        case 'k': s->keep = optarg; break;
        default: return false;
        }
    }
    return optind < argc;
}

int main(int argc, char **argv)
{
    settings s = {.seed = 1, .count = 1000, .only = -1, .timeout_s = 10, .max_file = 300000,
                  .keep = "build/fuzz", .threads = 1};
    corpus c = {0};
    long passed = 0, failed = 0;
    if (!parse(argc, argv, &s)) {
        fprintf(stderr, "usage: mutate [--seed N] [--count N] [--only N] FILE_OR_DIR...\n");
        return 2;
    }
    for (int i = optind; i < argc; i++)
        collect(&c, argv[i], s.max_file, 0);
    if (!c.count) {
        printf("mutate: no models to start from\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    qsort(c.path, c.count, sizeof *c.path, by_name);
    printf("mutate: seed %llu, %zu models\n", (unsigned long long)s.seed, c.count);
    for (long i = s.only >= 0 ? s.only : 0; i < (s.only >= 0 ? s.only + 1 : s.count); i++) {
        if (run_variant(&s, &c, i))
            passed++;
        else
            failed++;
    }
    printf("%ld passed, %ld failed, 0 skipped\n", passed, failed);
    for (size_t i = 0; i < c.count; i++)
        free(c.path[i]);
    free(c.path);
    return failed != 0;
}

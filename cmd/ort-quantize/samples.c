/* samples.c - samples as runs take their inputs (common/feed.h), cut where one value holds several
 * (rows.h), or made up. Of each pass the next one is read as late as possible, so that many samples
 * need no more memory than few.
 */
#include "samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/misfit.h"
#include "common/value_stream.h"

/* -i NAME=FILE gives one input; every other is where samples come from. */
static void sort_inputs(samples *s)
{
    const string_list *given = s->options.from.inputs;
    for (size_t i = 0; i < given->count; i++) {
        struct stat st;
        const char *item = given->items[i], *equals = strchr(item, '=');
        bool named = equals != NULL && equals != item && stat(item, &st) != 0;
        string_list_add(named ? &s->named : &s->files, item);
    }
}

/* Does -i NAME=... give this input? */
static bool is_named(const samples *s, const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < s->named.count; i++)
        if (!strncmp(s->named.items[i], name, length) && s->named.items[i][length] == '=')
            return true;
    return false;
}

/* The model's inputs alone, handed on as outputs: a session of it knows names and types, and holds
 * no weights. Inputs that have defaults keep these, unless someone gives them. */
static ort_status describe(samples *s, ort_env *env, ort_model *model, ort_error *err)
{
    ort_types *inputs = NULL, *constants = NULL;
    ort_model *alone = NULL;
    ort_session_options options;
    ort_session_options_init(&options);
    options.level = 0;
    ort_status status = ort_model_types(model, ORT_TYPES_INPUTS, &inputs, err);
    if (status == ORT_OK)
        status = ort_model_types(model, ORT_TYPES_INITIALIZERS, &constants, err);
    s->given_count = status == ORT_OK ? ort_types_count(inputs) : 0;
    s->at_model = tool_alloc((s->given_count + 1) * sizeof *s->at_model);
    const char **names = tool_alloc((s->given_count + 1) * sizeof *names);
    for (size_t i = 0; i < s->given_count; i++) {
        const char *name = ort_types_name(inputs, i);
        if (ort_types_find(constants, name) != NULL && !is_named(s, name)) {
            string_list_add(&s->defaults, name);
            continue;
        }
        s->at_model[s->count] = i;
        names[s->count++] = name;
    }
    if (status == ORT_OK && s->count > 0)
        status = ort_model_extract(model, names, s->count, names, s->count, &alone, err);
    if (status == ORT_OK)
        status = ort_session_new(env, alone != NULL ? alone : model, &options, &s->session, err);
    free(names);
    ort_model_free(alone);
    ort_types_free(inputs);
    ort_types_free(constants);
    return status;
}

int samples_open(samples *s, const sample_options *o, ort_env *env, ort_model *model,
                 const char *path)
{
    ort_error err = {0};
    *s = (samples){.options = *o, .known = -1};
    if (o->from.operations != NULL)
        o->from.operations->env = env;
    s->random = o->from.random != NULL;
    sort_inputs(s);
    if (describe(s, env, model, &err) != ORT_OK)
        return tool_fail_in(path, &err);
    s->inputs = tool_alloc((s->count + 1) * sizeof *s->inputs);
    s->whole = tool_alloc((s->count + 1) * sizeof *s->whole);
    s->made = tool_alloc((s->given_count + 1) * sizeof *s->made);
    s->given = tool_alloc((s->given_count + 1) * sizeof *s->given);
    memset(s->made, 0, (s->given_count + 1) * sizeof *s->made);
    memset(s->given, 0, (s->given_count + 1) * sizeof *s->given);
    rows_open(&s->rows, s->count);
    s->from = o->from;
    s->from.inputs = &s->named;
    s->from.samples = true;
    return 0;
}

static void drop_made(samples *s)
{
    for (size_t i = 0; s->made != NULL && i < s->given_count; i++) {
        ort_value_free(s->made[i]);
        s->made[i] = NULL;
    }
}

/* By a description of its own: other processes read the file, too. */
static int open_kept(samples *s)
{
    char *path = tool_printf("/proc/self/fd/%d", fileno(s->options.kept));
    s->kept = fopen(path, "rb");
    int status = s->kept != NULL ? 0
                                 : tool_error(ORT_ERROR_IO, "samples that were kept can't be read: "
                                              "%s", strerror(errno));
    free(path);
    return status;
}

static int begin(samples *s)
{
    s->at = 0;
    s->passed = 0;
    s->hash = 0;
    s->open = true;
    s->ended = false;
    s->rows.count = s->rows.at = 0;
    return s->options.kept ? open_kept(s) : feed_open(&s->feed, &s->from, s->session, &s->files);
}

static void end_pass(samples *s)
{
    if (s->open && s->options.kept == NULL)
        feed_close(&s->feed);
    if (s->kept != NULL)
        fclose(s->kept);
    s->kept = NULL;
    memset(&s->feed, 0, sizeof s->feed);
    drop_made(s);
    s->open = false;
}

static void set_place(samples *s, char *place)
{
    free(s->place);
    s->place = place;
}

/* Its place stands before its values, with its zero. */
static char *read_place(FILE *f)
{
    size_t length = 0;
    char *text = tool_alloc(4096);
    for (int c; (c = fgetc(f)) > 0;)
        if (length < 4095)
            text[length++] = (char)c;
    text[length] = '\0';
    return text;
}

static int take_kept(samples *s, bool *end)
{
    ort_error err = {0};
    drop_made(s);
    s->fresh = true;
    *end = s->at == s->options.kept_count;
    if (*end)
        return 0;
    set_place(s, read_place(s->kept));
    for (size_t i = 0; i < s->given_count; i++) {
        if (value_read(s->kept, &s->made[i], &err) != ORT_OK)
            return tool_fail_in(s->place, &err);
        s->given[i] = s->made[i];
    }
    for (size_t i = 0; i < s->count; i++)
        s->inputs[i] = s->given[s->at_model[i]];
    return 0;
}

bool samples_keep(FILE *file, const char *place, ort_value *const *values, size_t count)
{
    bool ok = fwrite(place, 1, strlen(place) + 1, file) == strlen(place) + 1;
    for (size_t i = 0; i < count && ok; i++)
        ok = value_write(file, values[i]);
    return ok;
}

/* What is told once, also where a process made of this one goes through the samples again. */
enum { TOLD_ODD = 1, TOLD_STRANGERS = 2, TOLD_FEW = 4, TOLD_ALL = 7 };
static unsigned told;

static bool is_news(unsigned what)
{
    const bool news = (told & what) == 0;
    told |= what;
    return news;
}

/* -i NAME=TABLE, where nothing else says what the samples are. */
static bool names_table(const samples *s)
{
    for (size_t i = 0; i < s->named.count && s->feed.files.count == 0; i++)
        if (ort_format_traits(ort_format_of_path(s->named.items[i]), NULL) & ORT_FORMAT_ROWS)
            return true;
    return false;
}

/* What a file, or a record of a stream, holds: one sample or many. */
static int next_record(samples *s, bool *end)
{
    int status = feed_next(&s->feed, s->whole, end);
    if (status != 0 || *end)
        return status;
    int64_t rows = s->options.rows;
    if (rows == 0 && (feed_is_table(&s->feed) || names_table(s)))
        rows = 1;
    ort_value *const *shared = s->feed.files.count > 0 ? s->feed.fixed : NULL;
    for (size_t i = 0; i < s->count; i++)
        if (s->whole[i] == NULL && !s->options.partial &&
            !ort_session_input_optional(s->session, i))
            return strangers_lack(s, i);
    if (s->known < 0 && (told & TOLD_STRANGERS) == 0 && strangers_tell(s))
        told |= TOLD_STRANGERS;
    return rows_plan(&s->rows, s->session, s->whole, shared, rows,
                     feed_place(&s->feed));
}

/* The next sample, of whichever part. */
static int take_any(samples *s, bool *end)
{
    const bool record = s->rows.at >= s->rows.count;
    int status = record ? next_record(s, end) : 0;
    s->fresh = record && (s->feed.stream == NULL || s->feed.in_stream <= 1);
    if (status == 0 && !*end)
        status = rows_next(&s->rows, s->whole, s->inputs);
    s->passed += status == 0 && !*end;
    return status;
}

static int take(samples *s, bool *end)
{
    const int64_t parts = s->options.parts > 0 ? s->options.parts : 1;
    if (s->options.most > 0 && s->at == (size_t)s->options.most) {
        *end = true;
        return 0;
    }
    int status = take_any(s, end);
    while (status == 0 && !*end && parts > 1 && (s->passed - s->options.part) % parts != 0)
        status = take_any(s, end);
    if (status != 0 || *end)
        return status;
    const char *from = feed_place(&s->feed);
    set_place(s, s->rows.count > 1 ? tool_printf("%s, sample %lld", from,
                                                 (long long)s->rows.at)
                                   : tool_strdup(from));
    for (size_t i = 0; i < s->count; i++)
        s->given[s->at_model[i]] = s->inputs[i];
    return status;
}

/* Without a branch a number: zero times what is none, or infinite, is none. */
static bool any_odd(const float *data, int64_t count)
{
    float sums[4] = {0};
    for (int64_t i = 0; i < count; i++)
        sums[i % 4] += 0 * data[i];
    return isnan(sums[0] + sums[1] + sums[2] + sums[3]);
}

/* Is any number of it none, or infinite? */
static bool is_odd(const ort_value *v)
{
    if (v == NULL || ort_value_get_kind(v) != ORT_VALUE_TENSOR ||
        !dtype_is_float(ort_value_dtype(v)))
        return false;
    if (ort_value_dtype(v) == ORT_DTYPE_FLOAT)
        return any_odd(ort_value_data((ort_value *)v), ort_value_count(v));
    for (int64_t i = 0; i < ort_value_count(v); i++)
        if (!isfinite(ort_value_get_double(v, i)))
            return true;
    return false;
}

static void look_at(samples *s)
{
    for (size_t i = 0; i < s->given_count; i++) {
        uint64_t digest = s->given[i] != NULL ? ort_value_digest(s->given[i]) : 0;
        s->hash = (s->hash ^ digest) * 0x100000001b3u + (s->hash >> 32); /* order counts */
    }
    if (s->known >= 0)
        return;
    for (size_t i = 0; i < s->count; i++)
        if (is_odd(s->inputs[i])) {
            if (s->odd++ == 0)
                s->odd_place = tool_printf("%s, input '%s'", s->place,
                                           ort_session_input_name(s->session, i));
            return;
        }
}

static void warn_of_odd(const samples *s)
{
    if (s->odd == 0 || !is_news(TOLD_ODD))
        return;
    tool_warn("%zu of %zu samples hold NaN or infinity, the first is %s", s->odd, s->at,
              s->odd_place);
}

/* Someone counts on more. */
static void warn_of_few(const samples *s)
{
    if (s->options.kept != NULL || (int64_t)s->at >= s->options.most || !is_news(TOLD_FEW))
        return;
    const char *verb = s->at == 1 ? "is" : "are";
    tool_warn("--samples %lld: there %s %zu%s, which %s taken", (long long)s->options.most, verb,
              s->at, s->options.parts > 0 ? " in this --shard" : "", verb);
}

void samples_mute(void) { told = TOLD_ALL; }

void samples_write(const samples *s, FILE *file)
{
    fprintf(file, "%zu %u %s\n", s->at, told, s->digest);
}

bool samples_read(samples *s, FILE *file)
{
    unsigned before;
    if (fscanf(file, "%zu %u %16[0-9a-f]", &s->at, &before, s->digest) != 3)
        return false;
    told |= before;
    return true;
}

static const char *place_of(const char *file)
{
    return strcmp(file, "-") ? file : "standard input";
}

/* Behind the last sample. */
static int conclude(samples *s)
{
    if (s->at == 0)
        return tool_error(ORT_ERROR_DATA, "%s: holds no sample%s",
                          s->files.count > 0 ? place_of(s->files.items[0]) : "-i",
                          s->passed > 0 ? " of this part of --shard" : "");
    warn_of_odd(s);
    warn_of_few(s);
    s->known = (long)s->at;
    snprintf(s->digest, sizeof s->digest, "%016llx", (unsigned long long)s->hash);
    return 0;
}

int samples_next(samples *s, bool *end)
{
    int status = s->open ? 0 : begin(s);
    *end = false;
    if (status == 0)
        status = s->options.kept ? take_kept(s, end) : take(s, end);
    if (*end && status == 0)
        status = conclude(s);
    if (!*end && status == 0)
        look_at(s);
    s->at += !*end && status == 0;
    if (*end || status != 0)
        end_pass(s);
    return status;
}

/* How many a pass has; -1 where that isn't known before one has ended. */
static long samples_count(const samples *s)
{
    return s->known >= 0 || s->options.kept == NULL ? s->known : (long)s->options.kept_count;
}

double samples_share(const samples *s)
{
    long count = samples_count(s);
    if (count > 0)
        return (double)s->at / (double)count;
    double rest = s->rows.count > 0 ? 1 - (double)s->rows.at / (double)s->rows.count : 0;
    double share = feed_share(&s->feed);
    if (s->feed.files.count > 0)
        share -= rest / (double)s->feed.files.count;
    double most = s->options.most > 0 ? (double)s->at / (double)s->options.most : 0;
    return share > most ? share : most;
}

const char *samples_digest(const samples *s) { return s->digest[0] != '\0' ? s->digest : NULL; }

/* The remedies are those of a pipe; this tool has the same options. */
static void leave_out(char *text, const char *words)
{
    size_t length = strlen(words);
    for (char *at = strstr(text, words); at != NULL; at = strstr(at, words))
        memmove(at, at + length, strlen(at + length) + 1);
}

int samples_fail(const samples *s, const char *path, ort_error *err)
{
    char *place = tool_printf("%s: %s", place_of(path), s->place);
    char *said = tool_printf("%s: ", path);
    misfit_explain(s->session, s->inputs, err);
    leave_out(err->message, "ort-tensor ");
    leave_out(err->message, said); /* a run begins with it, too */
    if (s->random && err->status == ORT_ERROR_RUN) {
        const size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used,
                 "; made-up values don't suit every model: -i gives samples");
    }
    int status = tool_fail_in(place, err);
    free(place);
    free(said);
    return status;
}

void samples_close(samples *s)
{
    end_pass(s);
    if (s->options.from.operations != NULL) /* not ours */
        s->options.from.operations->env = NULL;
    rows_close(&s->rows);
    ort_session_free(s->session);
    string_list_release(&s->named);
    string_list_release(&s->files);
    string_list_release(&s->defaults);
    free(s->inputs);
    free(s->whole);
    free(s->made);
    free(s->given);
    free(s->at_model);
    free(s->place);
    free(s->odd_place);
    *s = (samples){0};
}

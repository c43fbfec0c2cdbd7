/* expect.c - the gate --expect: the outputs of every record beside those that were expected.
 *
 * Expected records come from sets and files in the order given, one per record of inputs. None is
 * left over and none is missing, or it ends with EXIT_DATA: what was not compared never passes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/screen.h"
#include "run.h"

/* ---- expected records, one ahead */

static bool is_folder(const char *path)
{
    struct stat st;
    return strcmp(path, "-") && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int open_file(expectation *x, const char *path)
{
    bool from_stdin = !strcmp(path, "-");
    x->label = from_stdin ? "standard input" : path;
    x->stream = from_stdin ? stdin : fopen(path, "rbe");
    x->from_stream = 0;
    return x->stream != NULL ? 0
                             : tool_error(ORT_ERROR_IO, "%s: can't open: %s", path,
                                          strerror(errno));
}

static void close_file(expectation *x)
{
    if (x->stream != NULL && x->stream != stdin)
        fclose(x->stream);
    x->stream = NULL;
}

static ort_purpose *output_purposes(const ort_session *session)
{
    size_t count = ort_session_output_count(session);
    ort_purpose *list = tool_alloc((count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (ort_purpose){ort_session_output_name(session, i),
                                ort_session_output_type(session, i)};
    return list;
}

static int load_set(expectation *x, const char *path)
{
    ort_error err = {0};
    x->label = path;
    ort_purpose *purposes = output_purposes(x->session);
    ort_read_options options = {.size = sizeof options, .purposes = purposes,
                                .purpose_count = ort_session_output_count(x->session)};
    ort_status status = ort_tensors_load_set(path, "output", &options, &x->ahead, &err);
    free(purposes);
    return status == ORT_OK ? 0 : tool_fail(&err);
}

/* The next record of the open file; none: the file is closed. */
static int read_record(expectation *x)
{
    ort_error err = {0};
    ort_read_options options = {.size = sizeof options, .label = x->label};
    if (ort_tensors_read(x->stream, &options, &x->ahead, &err) != ORT_OK)
        return tool_fail(&err);
    x->from_stream += x->ahead != NULL;
    if (x->ahead == NULL)
        close_file(x);
    return x->ahead == NULL && x->from_stream == 0
               ? tool_error(ORT_ERROR_DATA, "%s: is empty: nothing can be compared with it",
                            x->label)
               : 0;
}

static int look_ahead(expectation *x)
{
    const string_list *paths = &x->options->expect;
    int status = 0;
    while (status == 0 && x->ahead == NULL && (x->stream != NULL || x->next_path < paths->count)) {
        const char *path = x->stream == NULL ? paths->items[x->next_path++] : NULL;
        if (path != NULL && is_folder(path))
            status = load_set(x, path);
        else if (path != NULL)
            status = open_file(x, path);
        if (status == 0 && x->stream != NULL)
            status = read_record(x);
    }
    if (status == 0 && x->ahead != NULL && ort_tensors_count(x->ahead) == 0)
        status = tool_error(ORT_ERROR_DATA, "%s: holds no expected output: nothing was compared%s",
                            x->label, is_folder(x->label) ? " (output_0.pb, ...)" : "");
    return status;
}

/* ---- which output an expected value is of */

/* Among those that were asked for, then of the session's others. */
static int find_wanted(const expectation *x, const char *name)
{
    for (size_t i = 0; i < x->sink->wanted_count; i++)
        if (!strcmp(x->sink->wanted[i].text, name))
            return (int)i;
    return -1;
}

static bool any_named(const expectation *x)
{
    for (size_t k = 0; k < ort_tensors_count(x->ahead); k++) {
        const char *name = ort_tensors_name(x->ahead, k);
        if (find_wanted(x, name) >= 0 || find_output(x->session, name) >= 0)
            return true;
    }
    return false;
}

typedef struct pairing {
    const char *name;
    int wanted;       /* index in the sink's list, -1: another output of the session */
    ort_value *value; /* of this run */
    ort_value *held;  /* what keeps it alive, or NULL */
} pairing;

static int pair(const expectation *x, size_t k, bool named, ort_value *const *outputs, pairing *p)
{
    const char *name = ort_tensors_name(x->ahead, k);
    int i = find_output(x->session, name);
    memset(p, 0, sizeof *p);
    p->wanted = find_wanted(x, name);
    if (p->wanted < 0 && !named && k < x->sink->wanted_count)
        p->wanted = (int)k;
    if (p->wanted < 0 && i < 0)
        return tool_usage("%s: the model has no output '%s'", x->label, name);
    if (p->wanted < 0) {
        p->name = ort_session_output_name(x->session, (size_t)i);
        p->value = outputs[i];
        return 0;
    }
    p->name = x->sink->wanted[p->wanted].text;
    int status = expression_value(&x->sink->wanted[p->wanted], x->session, outputs, &p->held);
    p->value = status == 0 ? ort_value_item(p->held, 0) : NULL;
    return status;
}

/* ---- verdicts */

static void print_place(const run_place *at, FILE *text)
{
    if (at->many && at->path != NULL)
        screen_printf(text, "%s: ", at->path);
    else if (at->many)
        fprintf(text, "record %zu: ", at->record);
    if (at->step > 0)
        fprintf(text, "step %lld: ", (long long)at->step);
}

static void add_place(const run_place *at, FILE *list)
{
    if (at->many)
        fprintf(list, ", \"record\": %zu", at->record);
    if (at->step > 0)
        fprintf(list, ", \"step\": %lld", (long long)at->step);
}

static void tell(expectation *x, const run_place *at, const pairing *p, const ort_difference *d,
                 FILE *text)
{
    if (text != NULL) {
        screen_verdict(text, d->equal);
        print_place(at, text);
        screen_printf(text, "%s: %s\n", p->name, d->text);
    }
    fprintf(x->list, "%s\n    {\"name\": ", x->compared > 1 ? "," : "");
    tool_json_string(x->list, p->name);
    add_place(at, x->list);
    fprintf(x->list, ", \"equal\": %s, \"text\": ", d->equal ? "true" : "false");
    tool_json_string(x->list, d->text);
    fputc('}', x->list);
}

/* Of bfloat16 two last places, as ONNX's own test runner allows
 * (onnx/backend/test/runner/__init__.py: max(rtol, 2**-6)); 1e-3 is less than one. */
static double default_rtol(const ort_value *value)
{
    while (ort_value_get_kind(value) == ORT_VALUE_SEQUENCE && ort_value_count(value) > 0)
        value = ort_value_item(value, 0);
    bool brief = ort_value_get_kind(value) == ORT_VALUE_TENSOR &&
                 ort_value_dtype(value) == ORT_DTYPE_BFLOAT16;
    return brief ? 0x1p-6 : 1e-3;
}

static int judge_value(expectation *x, const run_place *at, size_t k, const pairing *p, FILE *text)
{
    const run_options *o = x->options;
    const ort_value *expected = ort_tensors_value(x->ahead, k);
    ort_compare_options tolerance = {.size = sizeof tolerance,
                                     .rtol = o->rtol < 0 ? default_rtol(expected) : o->rtol,
                                     .atol = o->atol < 0 ? 1e-5 : o->atol};
    ort_difference d = ORT_DIFFERENCE_INIT;
    ort_error err = {0};
    if (ort_value_compare(p->value, expected, &tolerance, &d, &err) != ORT_OK)
        return tool_fail(&err);
    x->compared++;
    x->differing += !d.equal;
    tell(x, at, p, &d, text);
    return 0;
}

/* Said of the first record that lacks some; the report lists those of each. */
static void tell_left_out(expectation *x, const run_place *at, const bool *seen)
{
    char names[600] = "";
    size_t missing = 0, wanted = x->sink->wanted_count;
    for (size_t i = 0; i < wanted; i++) {
        const char *name = x->sink->wanted[i].text;
        if (seen[i])
            continue;
        fprintf(x->left_out, "%s\n    {\"name\": ", x->not_compared++ > 0 ? "," : "");
        tool_json_string(x->left_out, name);
        add_place(at, x->left_out);
        fputc('}', x->left_out);
        if (strlen(names) < sizeof names - 200)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s'%.150s'",
                     missing > 0 ? ", " : "", name);
        else if (strcmp(names + strlen(names) - 3, "..."))
            snprintf(names + strlen(names), sizeof names - strlen(names), ", ...");
        missing++;
    }
    if (missing > 0 && !x->warned)
        tool_warn("%s: expects %zu of %zu outputs; not compared: %s", x->label, wanted - missing,
                  wanted, names);
    x->warned = x->warned || missing > 0;
}

static int judge(expectation *x, const run_place *at, ort_value *const *outputs, FILE *text)
{
    bool named = any_named(x), *seen = tool_alloc(x->sink->wanted_count + 1);
    int status = 0;
    for (size_t k = 0; k < ort_tensors_count(x->ahead) && status == 0; k++) {
        pairing p;
        status = pair(x, k, named, outputs, &p);
        if (status == 0)
            status = judge_value(x, at, k, &p, text);
        if (status == 0 && p.wanted >= 0)
            seen[p.wanted] = true;
        ort_value_free(p.held);
    }
    if (status == 0)
        tell_left_out(x, at, seen);
    free(seen);
    return status;
}

/* ---- the gate */

int expect_open(expectation *x, const run_options *o, const ort_session *session, const sink *s)
{
    memset(x, 0, sizeof *x);
    x->options = o;
    x->session = session;
    x->sink = s;
    if (o->expect.count == 0)
        return 0;
    x->list = open_memstream(&x->verdicts, &x->verdict_bytes);
    x->left_out = open_memstream(&x->omissions, &x->omission_bytes);
    if (x->list == NULL || x->left_out == NULL)
        return tool_error(ORT_ERROR_MEMORY, "out of memory");
    return look_ahead(x);
}

/* One expected record is of the last step, several are one per step: known from the second on. */
static int choose_steps(expectation *x)
{
    ort_tensors *first = x->ahead;
    const char *label = x->label;
    x->ahead = NULL;
    int status = look_ahead(x);
    x->second = x->ahead;
    x->second_label = x->label;
    x->ahead = first;
    x->label = label;
    x->by_step = x->second != NULL;
    x->steps_known = true;
    return status;
}

int expect_steps(expectation *x, bool *by_step)
{
    int status = x->options->expect.count > 0 && x->options->steps > 1 && !x->steps_known
                     ? choose_steps(x)
                     : 0;
    *by_step = x->by_step;
    return status;
}

int expect_judge(expectation *x, const run_place *at, ort_value *const *outputs, FILE *text)
{
    if (x->options->expect.count == 0)
        return 0;
    if (x->ahead == NULL)
        return tool_error(ORT_ERROR_DATA, "--expect holds %zu records, there are more %s",
                          x->records, at->step > 0 ? "steps" : "inputs");
    int status = judge(x, at, outputs, text);
    if (status != 0)
        return status;
    x->records++;
    ort_tensors_free(x->ahead);
    x->ahead = x->second;
    if (x->second != NULL)
        x->label = x->second_label;
    x->second = NULL;
    return x->ahead == NULL ? look_ahead(x) : 0;
}

int expect_finish(expectation *x)
{
    if (x->options->expect.count == 0)
        return 0;
    fflush(x->list);
    fflush(x->left_out);
    if (x->ahead != NULL)
        return tool_error(ORT_ERROR_DATA, "%s: more is expected than the %zu record%s that ran",
                          x->label, x->records, x->records == 1 ? "" : "s");
    return x->differing > 0 ? EXIT_GATE : 0;
}

void expect_close(expectation *x)
{
    close_file(x);
    ort_tensors_free(x->ahead);
    ort_tensors_free(x->second);
    if (x->list != NULL)
        fclose(x->list);
    if (x->left_out != NULL)
        fclose(x->left_out);
    free(x->verdicts);
    free(x->omissions);
}

/* tool.c - names, messages and exit statuses of the tools. */
#include "common/tool.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/progress.h"
#include "common/text.h"

static const char *name = "ort";
static bool quiet, strict;
static struct {
    bool wanted, reported, warned;
    ort_status status;
    char message[ORT_ERROR_TEXT + 2400]; /* a place before it; or a list of options */
} said;

static void (*volatile on_signal)(void);

void tool_on_signal(void (*discard)(void)) { on_signal = discard; }

/* What the user or the pipe ends leaves no half-written file, and ends as without a handler. */
static void end_by_signal(int number)
{
    ort_out_file_discard_all();
    if (on_signal != NULL)
        on_signal();
    raise(number); /* delivered, by default action, once this handler returns */
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE};
    struct sigaction action = {.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        bool ignored = sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN;
        if (!ignored || numbers[i] == SIGPIPE) /* nohup stays in force */
            sigaction(numbers[i], &action, NULL);
    }
}

void tool_init(const char *tool)
{
    name = tool;
    catch_signals();
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails, and is cleaned up after */
}

const char *tool_name(void) { return name; }
void tool_set_quiet(bool value) { quiet = value; }
void tool_set_strict(bool value) { strict = value; }
void tool_set_warned(void) { said.warned = true; }
int tool_strict_status(void) { return strict && said.warned ? EXIT_GATE : 0; }
void tool_set_json(bool value) { said.wanted = value; }
void tool_reported(void) { said.reported = true; }

void tool_save_state(FILE *file) { fwrite(&said, sizeof said, 1, file); }

void tool_take_state(FILE *file)
{
    char bytes[sizeof said];
    rewind(file);
    if (fread(bytes, sizeof bytes, 1, file) == 1)
        memcpy(&said, bytes, sizeof said);
}

/* "tool: message" on stderr, kept for the report: the last one is why a tool ends. */
static void say(ort_status status, const char *format, va_list args)
{
    vsnprintf(said.message, sizeof said.message, format, args);
    text_tame(said.message);
    said.status = status;
    progress_hide();
    fprintf(stderr, "%s: %s\n", name, said.message);
}

int tool_error(ort_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(status, format, args);
    va_end(args);
    return ort_status_exit(status);
}

int tool_fail(const ort_error *err)
{
    return tool_error(err->status, "%s",
                      err->message[0] != '\0' ? err->message : ort_status_name(err->status));
}

int tool_fail_in(const char *place, const ort_error *err)
{
    place = !strcmp(place, "-") ? "standard input" : place;
    if (!strncmp(err->message, place, strlen(place)))
        return tool_fail(err);
    return tool_error(err->status, "%s: %s", place,
                      err->message[0] != '\0' ? err->message : ort_status_name(err->status));
}

int tool_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(ORT_ERROR_USAGE, format, args);
    va_end(args);
    fprintf(stderr, "Try '%s --help'.\n", name);
    return EXIT_USAGE;
}

int tool_unknown_name(const char *kind, const char *given, const char *const *names, size_t count)
{
    char list[1500] = "", meant[300];
    for (size_t i = 0; i < count && strlen(list) < sizeof list - 200; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s'%s'", i > 0 ? ", " : "",
                 names[i]);
    return tool_usage("the model has no %s '%s'%s; its %ss are %s", kind, given,
                      ort_did_you_mean(given, names, count, meant, sizeof meant), kind,
                      count > 0 ? list : "none");
}

void tool_warn(const char *format, ...)
{
    va_list args;
    said.warned = true;
    if (quiet && !strict)
        return;
    va_start(args, format);
    say(strict ? ORT_ERROR_GATE : ORT_OK, format, args);
    va_end(args);
}

void tool_json_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (size_t length; *text != '\0'; text += length > 0 ? length : 1) {
        unsigned char c = (unsigned char)*text;
        length = text_character(text);
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 32)
            fprintf(out, "\\u%04x", c);
        else if (length == 0)
            fputs("\xef\xbf\xbd", out);
        else
            fwrite(text, 1, length, out);
    }
    fputc('"', out);
}

/* Files refused by tool_warn have no status of their own: the exit status says its kind. */
static void report_error(int exit_status)
{
    static const ort_status kinds[] = {ORT_OK, ORT_ERROR_GATE, ORT_ERROR_USAGE, ORT_ERROR_MODEL,
                                       ORT_ERROR_RUN, ORT_ERROR_IO};
    ort_status status = said.status;
    if (ort_status_exit(status) != exit_status)
        status = kinds[exit_status];
    printf("{\"schema\": \"%s/1\", \"error\": {\"code\": \"%s\", \"exit_status\": %d, "
           "\"message\": ", name, ort_status_name(status), exit_status);
    tool_json_string(stdout, said.message);
    printf("}}\n");
}

int tool_finish(int status)
{
    status = status != 0 ? status : tool_strict_status();
    if (status > 0 && status <= EXIT_DATA && said.wanted && !said.reported)
        report_error(status);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status != EXIT_DATA) { /* or it is said */
        fprintf(stderr, "%s: standard output: %s\n", name, strerror(errno));
        return EXIT_DATA;
    }
    return status;
}

bool tool_may_write_binary(FILE *stream, bool force)
{
    if (force || !isatty(fileno(stream)))
        return true;
    tool_error(ORT_ERROR_USAGE,
               "binary data is not written to a terminal; use -o FILE, a pipe, or --force");
    return false;
}

bool dtype_is_float(ort_dtype dtype)
{
    return dtype == ORT_DTYPE_FLOAT || dtype == ORT_DTYPE_DOUBLE || dtype == ORT_DTYPE_FLOAT16 ||
           dtype == ORT_DTYPE_BFLOAT16;
}

double tool_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void *tool_alloc(size_t bytes)
{
    void *p = calloc(1, bytes > 0 ? bytes : 1);
    if (p == NULL) {
        fprintf(stderr, "%s: out of memory\n", name);
        exit(EXIT_RUN);
    }
    return p;
}

char *tool_strndup(const char *text, size_t length)
{
    char *copy = tool_alloc(length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *tool_strdup(const char *text) { return tool_strndup(text, strlen(text)); }

char *tool_vprintf(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = tool_alloc((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *tool_printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = tool_vprintf(format, args);
    va_end(args);
    return text;
}

static void add_owned(string_list *list, char *item)
{
    if (list->count + 2 > list->capacity) {
        list->capacity = list->capacity * 2 + 8;
        list->items = realloc(list->items, list->capacity * sizeof *list->items);
        if (list->items == NULL)
            tool_alloc(SIZE_MAX / 2);
    }
    list->items[list->count++] = item;
    list->items[list->count] = NULL;
}

void string_list_add(string_list *list, const char *item)
{
    add_owned(list, tool_strdup(item));
}

void string_list_add_split(string_list *list, const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        if (length > 0)
            add_owned(list, tool_strndup(text, length));
        text += length + (text[length] == ',');
    }
}

void string_list_release(string_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free((char *)(uintptr_t)list->items[i]);
    free(list->items);
    memset(list, 0, sizeof *list);
}

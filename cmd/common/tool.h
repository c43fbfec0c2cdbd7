/* tool.h - what every tool shares: its name, messages on stderr, exit statuses.
 *
 * Exit statuses (product-wide): 0 done, 1 a gate said no, 2 usage, 3 model unreadable, invalid or
 * unsupported, 4 run failed, 5 tensor data or file I/O.
 */
#ifndef COMMON_TOOL_H
#define COMMON_TOOL_H

#include <stdarg.h>

#include "ort.h"

enum { EXIT_GATE = 1, EXIT_USAGE = 2, EXIT_MODEL = 3, EXIT_RUN = 4, EXIT_DATA = 5 };

/* First call of main: remembers the name, fixes the C locale for numbers, lets SIGPIPE end the tool
 * quietly, and every signal that ends it take unfinished files along; a file beyond the size limit
 * is an error of writing, not a signal. */
void tool_init(const char *name);
const char *tool_name(void);
/* One more thing that a signal's handler does before the tool ends: only what is safe there. */
void tool_on_signal(void (*discard)(void));

/* "tool: message" on stderr; returns the exit status of the error. */
int tool_error(ort_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
int tool_fail(const ort_error *err);
/* "tool: place: message", for errors of a model that don't name its file. */
int tool_fail_in(const char *place, const ort_error *err);
/* "tool: message", a hint to --help, and EXIT_USAGE. */
int tool_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A usage error: the model has no `kind` ("input") of that name, which lists those it has. */
int tool_unknown_name(const char *kind, const char *given, const char *const *names, size_t count);
/* "tool: message" on stderr, whatever the verbosity except -q; with --strict even then. */
void tool_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tool_set_quiet(bool quiet);
/* With --strict, a warning makes the tool end with EXIT_GATE. tool_strict_status says so early,
 * where something would be made all the same: EXIT_GATE, or 0. */
void tool_set_strict(bool strict);
void tool_set_warned(void); /* of a warning that is said elsewhere */
int tool_strict_status(void);

/* With --json, where stdout is for reports: a tool that fails before its report prints
 * {"schema", "error": {"code", "exit_status", "message"}} there when it finishes. Call
 * tool_reported where a report begins. */
void tool_set_json(bool wanted);
void tool_reported(void);
/* What was said and reported so far, for a process that goes on behind this one. A file without it
 * changes nothing. */
void tool_save_state(FILE *file);
void tool_take_state(FILE *file);
/* In quotes, escaped; what isn't UTF-8 becomes U+FFFD, so that every reader takes it. */
void tool_json_string(FILE *out, const char *text);

/* Flush stdout and tell whether all of it arrived; EXIT_DATA with a message when not. `status` is
 * returned unchanged on success. Call it last in main. */
int tool_finish(int status);

/* True when binary data may be written to this stream; complains on a terminal unless forced. */
bool tool_may_write_binary(FILE *stream, bool force);

/* A growing list of strings, which it owns; `items` is NULL-terminated for the library. */
typedef struct string_list {
    const char **items;
    size_t count, capacity;
} string_list;
void string_list_add(string_list *list, const char *item); /* a copy */
/* The pieces between commas; empty ones are left out. */
void string_list_add_split(string_list *list, const char *text);
void string_list_release(string_list *list);

/* Float, double, float16 or bfloat16: what scores, pixels of 0 to 1 and probabilities come in. */
bool dtype_is_float(ort_dtype dtype);

/* A steady clock, in milliseconds since some moment. */
double tool_now_ms(void);

/* malloc and strdup that end the tool with status 4 when memory is exhausted. */
void *tool_alloc(size_t bytes);
char *tool_strdup(const char *text);
char *tool_strndup(const char *text, size_t length);
char *tool_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *tool_vprintf(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

#endif

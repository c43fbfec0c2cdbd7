/* options.h - one table per tool feeds parsing, --help, and the man page check.
 *
 * A row says where its value goes: an offset into the tool's options struct, or a setter. Setters
 * run in command-line order (ort-tensor's operations depend on it).
 */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/tool.h"

typedef enum option_kind {
    OPTION_FLAG,   /* bool = true */
    OPTION_COUNT,  /* int++ */
    OPTION_STRING, /* const char * */
    OPTION_INT,    /* int64_t; optional suffix k, M, G (binary) where the row says SIZE */
    OPTION_SIZE,   /* size_t bytes */
    OPTION_DOUBLE, /* finite, 0 or more */
    OPTION_LIST,   /* string_list, one item per use */
    OPTION_SPLIT,  /* string_list, split at commas; some name at least */
    OPTION_CALL,   /* setter */
    OPTION_GROUP,  /* a heading in --help; nothing is parsed */
} option_kind;

typedef struct option_row option_row;
/* Returns 0, or an exit status after saying why. value is NULL for options without an argument. */
typedef int option_setter(void *target, const option_row *row, const char *value);

struct option_row {
    char letter; /* 0: none */
    const char *name;
    const char *argument; /* "FILE", "[=FILE]" when it may be left out (value ""), or NULL */
    option_kind kind;
    size_t offset; /* into the target struct */
    const char *doc;
    option_setter *set; /* OPTION_CALL */
};

typedef struct option_table {
    const char *synopsis; /* "MODEL [INPUT...]" */
    const char *summary;  /* one line: what the tool does */
    /* tables ended by a row whose name is NULL; list ended by NULL */
    const option_row *const *groups;
    const char *epilogue; /* examples, or NULL */
} option_table;

/* Parse argv into `target`. Positional arguments are collected in order into `rest`. Handles --help
 * and --version (prints, returns -1: the caller exits 0). Returns 0, -1, or an exit status. */
int options_parse(const option_table *table, int argc, char **argv, void *target,
                  string_list *rest);
/* What parsing put into the lists of `target`, and `rest`. */
void options_release(const option_table *table, void *target, string_list *rest);

/* Parse helpers that complain with the option's name. Return 0 or EXIT_USAGE. */
int option_parse_int(const char *option, const char *text, int64_t minimum, int64_t maximum,
                     int64_t *out);
int option_parse_double(const char *option, const char *text, double *out);
int option_parse_size(const char *option, const char *text, size_t *out);
/* "1x3x224x224" or "[1,3,224,224]" ('?' and -1: any); returns the rank or -1 after complaining. */
int option_parse_dims(const char *option, const char *text, int64_t *dims, int capacity);

#endif

/* options.h - one table per tool feeds parsing, --help, and the man page check.
 *
 * A row says where its value goes: a member of the tool's options struct, or a setter. Setters
 * run in command-line order (ort-tensor's operations depend on it). It also says what holds of
 * every use: range, words allowed, what it needs and excludes, what twice means. options_parse
 * refuses the rest, so that no tool checks these by hand; `--help=table` prints them for programs.
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
    OPTION_INT,    /* int64_t, 0 or more */
    OPTION_SIZE,   /* size_t bytes, with a suffix k, M or G (binary) */
    OPTION_DOUBLE, /* finite, 0 or more */
    OPTION_TIME,   /* double milliseconds, with a unit us, ms or s */
    OPTION_LIST,   /* string_list, one item per use */
    OPTION_SPLIT,  /* string_list, split at commas; no piece is empty */
    OPTION_CALL,   /* setter */
    OPTION_GROUP,  /* a heading in --help; nothing is parsed */
} option_kind;

/* Given again with another value. By kind: lists and setters take each; of the others one would be
 * lost, which is refused. */
typedef enum option_again { AGAIN_BY_KIND, AGAIN_LAST_HOLDS, AGAIN_REFUSED } option_again;

/* Words that a table of the library has, so that no tool lists them. */
typedef struct option_words {
    void (*list)(char *text, size_t room); /* appends "a|b|c": for help, completions and refusals */
    bool (*knows)(const char *word);       /* those listed, and spellings that aren't */
} option_words;

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
    /* What holds of every use; names are those of rows of the same tool, without dashes. */
    const char *choices;  /* "strict|fast": all the words it takes */
    const option_words *words; /* or where they are told */
    /* Of these two a word may say a value: "level=0" is --level 0, "output!-" any -o but "-". */
    const char *needs;    /* "repeat|seconds": it would do nothing without one of these */
    const char *excludes; /* "stream|stack": none of these beside it; one of a pair says so */
    const char *one_of;   /* "report": of the rows that say the same, one at a time */
    double max;           /* of a number; 0: as large as its type allows */
    bool positive;        /* a number above 0 */
    char key;             /* '=' of NAME=FILE: a list names nothing twice; '\0': it may */
    option_again again;
    bool gate; /* what it measures or compares may end the tool with EXIT_GATE */
    const char *verbs;     /* "static|calibrate": those it belongs to; NULL: all */
    const char *variable;  /* of the environment, whose value it takes when it isn't given */
    const char *otherwise; /* what holds then, as --settings prints it; NULL: "no" or "none" */
};

/* A tool's own options stand in its options.def, which is read twice: where the struct of their
 * values is declared, each line is a member of it; where the table is, each line is a row. So an
 * option is one line there.
 *     GROUP("Checks")
 *     OPTION(DOUBLE, seconds, 0, "seconds", "S", .doc = "time runs for S seconds")
 *     ROWS(rows without a member of their own, as rows of common/) */
#define OPTION_MEMBER(kind, member, ...) OPTION_TYPE_##kind member;
#define OPTION_NO_MEMBER(...)
#define OPTION_ROW(kind, member, letter, name, argument, ...)                                      \
    {letter, name, argument, OPTION_##kind, offsetof(OPTION_TARGET, member), __VA_ARGS__},
#define OPTION_HEADING(text) {0, "", NULL, OPTION_GROUP, 0, .doc = text},
#define OPTION_ROWS(...) __VA_ARGS__,
#define OPTION_TYPE_FLAG bool
#define OPTION_TYPE_COUNT int
#define OPTION_TYPE_STRING const char *
#define OPTION_TYPE_INT int64_t
#define OPTION_TYPE_SIZE size_t
#define OPTION_TYPE_DOUBLE double
#define OPTION_TYPE_TIME double
#define OPTION_TYPE_LIST string_list
#define OPTION_TYPE_SPLIT string_list

/* What a tool of several does; its first word that is no option. */
typedef struct option_verb {
    const char *name, *doc;
} option_verb;

typedef struct option_table {
    const char *synopsis; /* "MODEL [INPUT...]" */
    const char *summary;  /* one line: what the tool does */
    /* tables ended by a row whose name is NULL; list ended by NULL */
    const option_row *const *groups;
    const char *epilogue; /* examples, or NULL */
    const char *common;   /* "input|output": what -h shows, on a screen of 24 lines */
    const option_verb *verbs; /* ended by a row whose name is NULL; or NULL */
    size_t verb; /* offset into the target of a const char *: the verb given, or NULL */
} option_table;

/* Parse argv into `target`. Positional arguments are collected in order into `rest`. Handles --help
 * (all of them; -h: the commonest) and --version (prints, returns -1: the caller exits 0).
 * `--help=table` prints a line per option: its columns are the fields of option_row, separated by
 * tabs ('-': none), under a line of their names. Of a tool with verbs, `rest` begins behind the
 * verb, options of other verbs are refused, and `TOOL VERB --help` lists those that it takes.
 * Returns 0, -1, or an exit status. */
int options_parse(const option_table *table, int argc, char **argv, void *target,
                  string_list *rest);
/* What parsing put into the lists of `target`, and `rest`. */
void options_release(const option_table *table, void *target, string_list *rest);

/* Is the value of a row's variable one of its words? 0 or EXIT_USAGE after saying why. */
int option_check_variable(const option_row *row, const char *value);

/* Parse helpers that complain with the option's name. Return 0 or EXIT_USAGE. */
int option_parse_int(const char *option, const char *text, int64_t minimum, int64_t maximum,
                     int64_t *out);
int option_parse_double(const char *option, const char *text, double *out);
int option_parse_size(const char *option, const char *text, size_t *out);
/* "K/N": part K of N parts, K from 1. */
int option_parse_shard(const char *option, const char *text, int64_t *part, int64_t *parts);
/* "1x3x224x224" or "[1,3,224,224]" ('?' and -1: any); returns the rank or -1 after complaining. */
int option_parse_dims(const char *option, const char *text, int64_t *dims, int capacity);

#endif

/* options.c - parses a tool's option table with getopt_long and prints its help. */
#include "common/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 128, LONG_BASE = 1000 };

typedef struct parser {
    const option_row *rows[MAX_OPTIONS];
    struct option longs[MAX_OPTIONS + 3];
    char shorts[2 * MAX_OPTIONS + 8];
    int count;
} parser;

static bool optional(const option_row *row)
{
    return row->argument != NULL && !strncmp(row->argument, "[=", 2);
}

static void build(parser *p, const option_table *table)
{
    size_t used = 0;
    int n = 0;
    memset(p, 0, sizeof *p);
    p->shorts[used++] = ':'; /* tell a missing argument from an unknown option */
    for (const option_row *const *group = table->groups; *group != NULL; group++) {
        for (const option_row *row = *group; row->name != NULL; row++) {
            if (row->kind == OPTION_GROUP || n == MAX_OPTIONS)
                continue;
            p->rows[n] = row;
            p->longs[n] = (struct option){
                row->name,
                optional(row)           ? optional_argument
                : row->argument != NULL ? required_argument
                                        : no_argument,
                NULL, LONG_BASE + n};
            if (row->letter != 0) {
                p->shorts[used++] = row->letter;
                if (row->argument != NULL)
                    p->shorts[used++] = ':';
            }
            n++;
        }
    }
    p->count = n;
    p->longs[n] = (struct option){"help", no_argument, NULL, 'h'};
    p->longs[n + 1] = (struct option){"version", no_argument, NULL, 'V'};
    p->shorts[used++] = 'h';
}

/* ---- help */

static void print_row(const option_row *row)
{
    char left[80];
    if (row->kind == OPTION_GROUP) {
        printf("\n%s\n", row->doc);
        return;
    }
    int n = row->letter != 0 ? snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name)
                             : snprintf(left, sizeof left, "      --%s", row->name);
    if (row->argument != NULL)
        snprintf(left + n, sizeof left - (size_t)n, "%s%s", optional(row) ? "" : " ",
                 row->argument);
    printf(strlen(left) > 31 ? "%s\n%32s%s\n" : "%-32s%.0s%s\n", left, "", row->doc);
}

static void print_help(const option_table *table)
{
    printf("usage: %s [OPTION...] %s\n%s\n", tool_name(), table->synopsis, table->summary);
    for (const option_row *const *group = table->groups; *group != NULL; group++)
        for (const option_row *row = *group; row->name != NULL; row++)
            print_row(row);
    printf("  -h, --help                    show this help\n"
           "      --version                 show the version\n");
    if (table->epilogue != NULL)
        printf("\n%s", table->epilogue);
    printf("\nExit status: 0 done, 1 a gate said no, 2 usage, 3 model unreadable, invalid or\n"
           "unsupported, 4 run failed, 5 tensor data or file I/O.\n");
}

/* ---- values */

int option_parse_int(const char *option, const char *text, int64_t minimum, int64_t maximum,
                     int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || v < minimum || v > maximum)
        return tool_usage("%s: '%s' is not a whole number from %lld to %lld", option, text,
                          (long long)minimum, (long long)maximum);
    *out = v;
    return 0;
}

int option_parse_double(const char *option, const char *text, double *out)
{
    char *end;
    double v = strtod(text, &end); /* the C locale: tools never call setlocale for numbers */
    if (end == text || *end != '\0')
        return tool_usage("%s: '%s' is not a number", option, text);
    *out = v;
    return 0;
}

int option_parse_size(const char *option, const char *text, size_t *out)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    int shift = 0;
    if (*end == 'k' || *end == 'K')
        shift = 10;
    else if (*end == 'M')
        shift = 20;
    else if (*end == 'G')
        shift = 30;
    if (shift > 0)
        end++;
    if (*end == 'B')
        end++;
    if (end == text || *end != '\0' || errno != 0 || text[0] == '-' || v > (SIZE_MAX >> shift))
        return tool_usage("%s: '%s' is not a size such as 512M or 2G", option, text);
    *out = (size_t)v << shift;
    return 0;
}

int option_parse_dims(const char *option, const char *text, int64_t *dims, int capacity)
{
    int rank = 0;
    const char *p = text;
    if (*p == '[')
        p++;
    while (*p != '\0' && *p != ']') {
        char *end;
        int64_t v = -1;
        if (*p == '?') {
            end = (char *)p + 1;
        } else {
            v = strtoll(p, &end, 10);
            if (end == p || v < -1)
                goto bad;
        }
        if (rank == capacity)
            goto bad;
        dims[rank++] = v;
        p = end;
        if (*p == 'x' || *p == ',')
            p++;
        else if (*p != '\0' && *p != ']')
            goto bad;
    }
    return rank;
bad:
    tool_usage("%s: '%s' is not a shape such as 1x3x224x224 or [1,3,224,224]", option, text);
    return -1;
}

static int store_double(const char *option, const char *text, double *out)
{
    int status = option_parse_double(option, text, out);
    if (status == 0 && (!isfinite(*out) || *out < 0))
        status = tool_usage("%s: '%s' is not a number of 0 or more", option, text);
    return status;
}

static int store(const option_row *row, void *target, const char *value)
{
    char *field = (char *)target + row->offset;
    char option[80];
    int64_t number;
    snprintf(option, sizeof option, "--%s", row->name);
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_COUNT:
        ++*(int *)field;
        return 0;
    case OPTION_STRING:
        *(const char **)field = value != NULL ? value : ""; /* an optional one left out */
        return 0;
    case OPTION_INT:
        if (option_parse_int(option, value, INT64_MIN, INT64_MAX, &number) != 0)
            return EXIT_USAGE;
        *(int64_t *)field = number;
        return 0;
    case OPTION_SIZE:
        return option_parse_size(option, value, (size_t *)field);
    case OPTION_DOUBLE:
        return store_double(option, value, (double *)field);
    case OPTION_LIST:
        string_list_add((string_list *)field, value);
        return 0;
    case OPTION_SPLIT:
        if (value[strspn(value, ",")] == '\0')
            return tool_usage("%s: '%s' names nothing", option, value);
        string_list_add_split((string_list *)field, value);
        return 0;
    case OPTION_CALL:
        return row->set(target, row, value);
    case OPTION_GROUP:
        break;
    }
    return 0;
}

static const option_row *find_short(const parser *p, int letter)
{
    for (int i = 0; i < p->count; i++)
        if (p->rows[i]->letter == letter)
            return p->rows[i];
    return NULL;
}

static int unknown(const parser *p, const char *word)
{
    char list[4000];
    size_t used = 0;
    list[0] = '\0';
    for (int i = 0; i < p->count && used + 40 < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, " --%s", p->rows[i]->name);
    return tool_error(ORT_ERROR_USAGE, "unknown option '%s'; known are:%s --help --version", word,
                      list);
}

/* Known before parsing: what is wrong with options is reported as JSON, too. */
static void look_for_json(int argc, char **argv)
{
    bool wanted = false, taken = false; /* stdout, by a model or tensors */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        wanted = wanted || strcmp(argv[i], "--json") == 0;
        taken = taken || strcmp(argv[i], "-o-") == 0 || strcmp(argv[i], "--output=-") == 0;
        if (strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0)
            taken = taken || (i + 1 < argc && strcmp(argv[i + 1], "-") == 0);
    }
    tool_set_json(wanted && !taken);
}

int options_parse(const option_table *table, int argc, char **argv, void *target,
                  string_list *rest)
{
    parser p;
    int c, status;
    build(&p, table);
    look_for_json(argc, argv);
    opterr = 0;
    for (;;) {
        /* '-' first would reorder; "+"-less GNU permutation is wanted: MODEL may come anywhere. */
        c = getopt_long(argc, argv, p.shorts, p.longs, NULL);
        if (c == -1)
            break;
        if (c == 'h') {
            print_help(table);
            return -1;
        }
        if (c == 'V') {
            printf("%s %s\n", tool_name(), ort_version());
            return -1;
        }
        if (c == ':')
            return tool_usage("option '%s' needs an argument", argv[optind - 1]);
        if (c == '?')
            return unknown(&p, argv[optind - 1]);
        const option_row *row = c >= LONG_BASE ? p.rows[c - LONG_BASE] : find_short(&p, c);
        status = store(row, target, optarg);
        if (status != 0)
            return status;
    }
    for (; optind < argc; optind++)
        string_list_add(rest, argv[optind]);
    return 0;
}

void options_release(const option_table *table, void *target, string_list *rest)
{
    for (const option_row *const *group = table->groups; *group != NULL; group++)
        for (const option_row *row = *group; row->name != NULL; row++)
            if (row->kind == OPTION_LIST || row->kind == OPTION_SPLIT)
                string_list_release((string_list *)((char *)target + row->offset));
    string_list_release(rest);
}

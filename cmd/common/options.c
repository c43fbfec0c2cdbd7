/* options.c - parses a tool's option table with getopt_long and prints its help. */
#include "common/option_rules.h"
#include "common/screen.h"

#include <errno.h>
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG_BASE = 1000, LONG_HELP = LONG_BASE - 1, DOC_COLUMN = 32, LEAST_ROOM = 20 };

typedef struct parser {
    option_uses uses;
    struct option longs[MAX_OPTIONS + 3];
    char shorts[2 * MAX_OPTIONS + 8];
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
            p->uses.rows[n] = row;
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
    p->uses.count = n;
    p->longs[n] = (struct option){"help", optional_argument, NULL, LONG_HELP};
    p->longs[n + 1] = (struct option){"version", no_argument, NULL, 'V'};
    p->shorts[used++] = 'h';
}

/* ---- help */

/* What the row says, and the words that only a table has. */
static char *whole_doc(const option_row *row)
{
    char words[CHOICES_ROOM];
    if (row->words == NULL)
        return tool_strdup(row->doc);
    char *doc = tool_printf("%s: %s", row->doc, option_choices(row, words));
    for (char *at = doc + strlen(row->doc); *at != '\0'; at++)
        if (*at == '|')
            *at = ' ';
    return doc;
}

/* Words to the end of a terminal's line, and on below; to the end of the text elsewhere. */
static void print_doc(const char *doc)
{
    int width = screen_width(stdout), room = width - DOC_COLUMN - 1;
    if (width == 0 || room < LEAST_ROOM) {
        puts(doc);
        return;
    }
    while ((int)strlen(doc) > room) {
        int cut = room;
        while (cut > 0 && doc[cut] != ' ')
            cut--;
        if (cut == 0)
            cut = (int)strcspn(doc, " ");
        printf("%.*s\n%*s", cut, doc, DOC_COLUMN, "");
        doc += cut + (doc[cut] == ' ');
    }
    puts(doc);
}

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
    printf(strlen(left) > DOC_COLUMN - 1 ? "%s\n%*s" : "%-32s%.*s", left,
           strlen(left) > DOC_COLUMN - 1 ? DOC_COLUMN : 0, "");
    char *doc = whole_doc(row);
    print_doc(doc);
    free(doc);
}

static void print_verbs(const option_table *table)
{
    for (const option_verb *v = table->verbs; v != NULL && v->name != NULL; v++)
        printf("%s  %-30s%s\n", v == table->verbs ? "\n" : "", v->name, v->doc);
}

/* A group's heading stands where one of its options does. */
static void print_rows(const option_row *rows, const char *verb)
{
    const option_row *heading = NULL;
    for (const option_row *row = rows; row->name != NULL; row++) {
        bool head = row->kind == OPTION_GROUP;
        if (!head && verb != NULL && !option_list_holds(row->verbs, verb))
            continue;
        if (!head && heading != NULL)
            print_row(heading);
        heading = head ? row : NULL;
        if (!head)
            print_row(row);
    }
}

static void print_help(const option_table *table, const char *verb)
{
    const char *before = verb != NULL ? verb : table->verbs != NULL ? "[VERB]" : "";
    printf("usage: %s%s%s [OPTION...] %s\n%s\n", tool_name(), *before != '\0' ? " " : "", before,
           table->synopsis, table->summary);
    if (verb == NULL)
        print_verbs(table);
    for (const option_row *const *group = table->groups; *group != NULL; group++)
        print_rows(*group, verb);
    printf("  -h                            show the commonest options\n"
           "      --help                    show this help\n"
           "      --version                 show the version\n");
    if (table->epilogue != NULL)
        printf("\n%s", table->epilogue);
    printf("\nExit status: 0 done, 1 a gate said no, 2 usage, 3 model unreadable, invalid or\n"
           "unsupported, 4 run failed, 5 tensor data or file I/O.\n");
}

/* The usage and the options of every day, in the order of the table's list. */
static void print_short_help(const option_table *table, const parser *p)
{
    printf("usage: %s%s [OPTION...] %s\n%s\n", tool_name(), table->verbs ? " [VERB]" : "",
           table->synopsis, table->summary);
    print_verbs(table);
    putchar('\n');
    for (const char *name = table->common; *name != '\0';) {
        size_t length = strcspn(name, "|");
        for (int i = 0; i < p->uses.count; i++)
            if (strlen(p->uses.rows[i]->name) == length &&
                !strncmp(p->uses.rows[i]->name, name, length))
                print_row(p->uses.rows[i]);
        name += length + (name[length] == '|');
    }
    printf("\n'%s --help' shows all %d options, 'man %s' the manual.\n", tool_name(),
           p->uses.count + 2, tool_name());
}

static const char *verb_of(const option_table *table, const char *word)
{
    for (const option_verb *v = table->verbs; v != NULL && v->name != NULL; v++)
        if (!strcmp(v->name, word))
            return v->name;
    return NULL;
}

/* A first word that is neither verb nor file, before others. */
static int unknown_verb(const option_table *table, const char *word)
{
    const char *names[16];
    size_t count = 0;
    char meant[300], list[300] = "";
    for (; table->verbs[count].name != NULL && count < 16; count++) {
        names[count] = table->verbs[count].name;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", count > 0 ? ", " : "",
                 names[count]);
    }
    return tool_usage("'%s' is no verb%s; there are %s", word,
                      ort_did_you_mean(word, names, count, meant, sizeof meant), list);
}

/* The verb at the head of the other words, taken out of them. */
static int take_verb(const option_table *table, const parser *p, void *target, string_list *rest)
{
    const char *verb = rest->count > 0 ? verb_of(table, rest->items[0]) : NULL;
    if (verb == NULL && rest->count > 1 && access(rest->items[0], F_OK) != 0)
        return unknown_verb(table, rest->items[0]);
    if (verb != NULL) {
        free((char *)(uintptr_t)rest->items[0]);
        memmove(rest->items, rest->items + 1, rest->count * sizeof *rest->items);
        rest->count--;
    }
    *(const char **)((char *)target + table->verb) = verb;
    return option_check_verb(&p->uses, verb);
}

/* ---- values */

int option_parse_int(const char *option, const char *text, int64_t minimum, int64_t maximum,
                     int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || v < minimum || v > maximum)
        return maximum == INT64_MAX
                   ? tool_usage("%s: '%s' is not a whole number of %lld or more", option, text,
                                (long long)minimum)
                   : tool_usage("%s: '%s' is not a whole number from %lld to %lld", option, text,
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
    if (end == text || *end != '\0' || errno != 0 || strchr(text, '-') != NULL ||
        v > (SIZE_MAX >> shift))
        return tool_usage("%s: '%s' is not a size such as 512M or 2G", option, text);
    *out = (size_t)v << shift;
    return 0;
}

/* "15ms", "200us", "1.5s" as milliseconds; the unit is never guessed. */
static int parse_time(const char *option, const char *text, double *ms)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"us", 1e-3}, {"ms", 1}, {"s", 1e3}};
    char *end;
    double v = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units && end != text; i++)
        if (!strcmp(end, units[i].unit) && v > 0 && v <= DBL_MAX / 1e3) {
            *ms = v * units[i].ms;
            return 0;
        }
    return tool_usage("%s: '%s' is not a time above 0 such as 15ms, 200us or 1.5s", option, text);
}

int option_parse_shard(const char *option, const char *text, int64_t *part, int64_t *parts)
{
    char *end;
    errno = 0;
    *part = strtoll(text, &end, 10);
    bool number = end != text && *end == '/' && errno == 0;
    const char *second = end + 1;
    *parts = number ? strtoll(second, &end, 10) : 0;
    if (!number || end == second || *end != '\0' || errno != 0)
        return tool_usage("%s: '%s' is not K/N, such as 1/4: the first of four parts", option,
                          text);
    if (*parts < 1)
        return tool_usage("%s: '%s': there is at least one part", option, text);
    if (*part < 1 || *part > *parts)
        return tool_usage("%s: '%s': parts count from 1/%lld to %lld/%lld", option, text,
                          (long long)*parts, (long long)*parts, (long long)*parts);
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
            errno = 0;
            v = strtoll(p, &end, 10);
            if (end == p || v < -1 || errno != 0)
                goto bad;
        }
        if (rank == capacity)
            goto bad;
        dims[rank++] = v;
        p = end;
        bool more = *p == 'x' || *p == ',';
        p += more;
        if (more ? *p == '\0' || *p == ']' : *p != '\0' && *p != ']')
            goto bad;
    }
    if ((*text == '[') != (*p == ']') || (*p == ']' && p[1] != '\0'))
        goto bad;
    return rank;
bad:
    tool_usage("%s: '%s' is not a shape such as 1x3x224x224 or [1,3,224,224]", option, text);
    return -1;
}

static int store_double(const option_row *row, const char *option, const char *text, double *out)
{
    double number = 0;
    int status = option_parse_double(option, text, &number);
    double most = row->max > 0 ? row->max : DBL_MAX;
    if (status != 0)
        return status;
    if (!(number >= 0 && number <= most) || (row->positive && number == 0)) {
        if (row->max > 0)
            return tool_usage("%s: '%s' is not a number from 0 to %g", option, text, row->max);
        return tool_usage("%s: '%s' is not a number %s", option, text,
                          row->positive ? "above 0" : "of 0 or more");
    }
    *out = number;
    return 0;
}

static int store_size(const option_row *row, const char *option, const char *text, size_t *out)
{
    int status = option_parse_size(option, text, out);
    if (status == 0 && row->positive && *out == 0)
        status = tool_usage("%s: '%s' is not a size above 0", option, text);
    return status;
}

static int store_split(const char *option, const char *text, string_list *out)
{
    size_t length = strlen(text);
    if (text[strspn(text, ",")] == '\0')
        return tool_usage("%s: '%s' names nothing", option, text);
    if (text[0] == ',' || text[length - 1] == ',' || strstr(text, ",,") != NULL)
        return tool_usage("%s: '%s' has an empty name between its commas", option, text);
    string_list_add_split(out, text);
    return 0;
}

static int store(const option_row *row, void *target, const char *value)
{
    char *field = (char *)target + row->offset;
    char option[80];
    snprintf(option, sizeof option, "--%s", row->name);
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_COUNT:
        ++*(int *)field;
        return 0;
    case OPTION_STRING:
        *(const char **)field = value;
        return 0;
    case OPTION_INT:
        return option_parse_int(option, value, row->positive ? 1 : 0,
                                row->max > 0 ? (int64_t)row->max : INT64_MAX, (int64_t *)field);
    case OPTION_SIZE:
        return store_size(row, option, value, (size_t *)field);
    case OPTION_DOUBLE:
        return store_double(row, option, value, (double *)field);
    case OPTION_TIME:
        return parse_time(option, value, (double *)field);
    case OPTION_LIST:
        string_list_add((string_list *)field, value);
        return 0;
    case OPTION_SPLIT:
        return store_split(option, value, (string_list *)field);
    case OPTION_CALL:
        return row->set(target, row, value);
    case OPTION_GROUP:
        break;
    }
    return 0;
}

static int find(const parser *p, int c)
{
    for (int i = 0; i < p->uses.count && c < LONG_BASE; i++)
        if (p->uses.rows[i]->letter == c)
            return i;
    return c - LONG_BASE;
}

/* What getopt_long refused: a value for a flag, a letter, the beginning of several names. */
static int misused(const parser *p, const char *word)
{
    char list[300] = "";
    size_t length = strcspn(word, "="), matches = 0;
    bool is_long = !strncmp(word, "--", 2);
    if (optopt != 0 && !is_long)
        return tool_usage("unknown option '-%c'", optopt);
    if (optopt != 0)
        return tool_usage("option '%.*s' takes no value", (int)length, word);
    for (size_t i = 0; is_long && length > 2 && p->longs[i].name != NULL; i++) {
        if (strncmp(p->longs[i].name, word + 2, length - 2))
            continue;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s--%s", matches++ > 0 ? ", " : "",
                 p->longs[i].name);
    }
    return matches > 1 ? tool_usage("option '%.*s' is the beginning of %s", (int)length, word, list)
                       : 0;
}

static int unknown(const parser *p, const char *word)
{
    if (misused(p, word) != 0)
        return EXIT_USAGE;
    const char *names[MAX_OPTIONS + 2];
    char meant[300], dashes[300];
    size_t count = 0, used = 0, length = strcspn(word, "=");
    for (; p->longs[count].name != NULL; count++)
        names[count] = p->longs[count].name;
    char *name = tool_strndup(word, length); /* what follows '=' is no part of it */
    ort_did_you_mean(name + strspn(name, "-"), names, count, meant, sizeof meant);
    free(name);
    for (const char *c = meant; *c != '\0' && used + 3 < sizeof dashes; c++) {
        if (*c == '\'' && c[1] >= 'a' && c[1] <= 'z') {
            dashes[used++] = '-';
            dashes[used++] = '-';
        } else if (*c != '\'') {
            dashes[used++] = *c;
        }
    }
    dashes[used] = '\0';
    return tool_usage("unknown option '%s'%s", word, dashes);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && !strcmp(text + length - tail, end);
}

/* Known before parsing: what is wrong with options is reported as JSON, too. */
static void look_for_json(int argc, char **argv)
{
    bool wanted = false, taken = false; /* stdout, by a model or tensors */
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        wanted = wanted || !strcmp(argv[i], "--json");
        taken = taken || !strcmp(argv[i], "-o-") || !strcmp(argv[i], "--output=-");
        if (i + 1 < argc && (!strcmp(argv[i], "-o") || !strcmp(argv[i], "--output")))
            taken = taken || !strcmp(argv[i + 1], "-") || ends_with(argv[i + 1], "=-");
    }
    tool_set_json(wanted && !taken);
}

static int take(parser *p, int c, void *target)
{
    int i = find(p, c);
    const option_row *row = p->uses.rows[i];
    const char *value = row->argument != NULL && optarg == NULL ? "" : optarg; /* left out */
    int status = option_check_use(&p->uses, i, value);
    return status != 0 ? status : store(row, target, value);
}

/* What is printed instead of work; -1, or why that can't be. */
static int tell(const parser *p, const option_table *table, int c, const char *first)
{
    if (c == 'V')
        printf("%s %s\n", tool_name(), ort_version());
    else if (c == 'h' && table->common != NULL)
        print_short_help(table, p);
    else if (optarg == NULL)
        print_help(table, first ? verb_of(table, first) : NULL);
    else if (!strcmp(optarg, "table"))
        option_print_table(table, stdout);
    else
        return tool_usage("--help: '%s' is none of table", optarg);
    return -1;
}

static int take_all(parser *p, const option_table *table, int argc, char **argv, void *target)
{
    int c, status;
    opterr = 0;
    /* '-' first would reorder; "+"-less GNU permutation is wanted: MODEL may come anywhere. */
    while ((c = getopt_long(argc, argv, p->shorts, p->longs, NULL)) != -1) {
        if (c == 'h' || c == LONG_HELP || c == 'V')
            return tell(p, table, c, argc > 1 ? argv[1] : NULL);
        if (c == ':')
            return tool_usage("option '%s' needs an argument", argv[optind - 1]);
        if (c == '?')
            return unknown(p, argv[optind - 1]);
        if ((status = take(p, c, target)) != 0)
            return status;
    }
    return option_check_company(&p->uses);
}

int options_parse(const option_table *table, int argc, char **argv, void *target,
                  string_list *rest)
{
    parser p;
    build(&p, table);
    look_for_json(argc, argv);
    int status = take_all(&p, table, argc, argv, target);
    for (; status == 0 && optind < argc; optind++)
        string_list_add(rest, argv[optind]);
    if (status == 0 && table->verbs != NULL)
        status = take_verb(table, &p, target, rest);
    option_uses_release(&p.uses);
    return status;
}

void options_release(const option_table *table, void *target, string_list *rest)
{
    for (const option_row *const *group = table->groups; *group != NULL; group++)
        for (const option_row *row = *group; row->name != NULL; row++)
            if (row->kind == OPTION_LIST || row->kind == OPTION_SPLIT)
                string_list_release((string_list *)((char *)target + row->offset));
    string_list_release(rest);
}

/* option_rules.c - holds what option rows say of every use: choices, company, given twice. */
#include "common/option_rules.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_ROOM = 80, MAX_CHOICES = 32 };

/* As people type it: "-o", "--strict". */
static const char *short_name(const option_row *row, char name[NAME_ROOM])
{
    if (row->letter != 0)
        snprintf(name, NAME_ROOM, "-%c", row->letter);
    else
        snprintf(name, NAME_ROOM, "--%s", row->name);
    return name;
}

/* ---- lists of words, "a|b|c" */

/* The next word: its length, 0 behind the last; *at is moved behind it. */
static size_t next_word(const char **at, const char **word)
{
    *word = *at;
    size_t length = strcspn(*at, "|");
    *at += length + ((*at)[length] == '|');
    return length;
}

static bool is_word(const char *word, size_t length, const char *text)
{
    return strlen(text) == length && !strncmp(word, text, length);
}

const char *option_choices(const option_row *row, char text[CHOICES_ROOM])
{
    text[0] = '\0';
    if (row->words != NULL)
        row->words->list(text, CHOICES_ROOM);
    return row->choices != NULL ? row->choices : text;
}

static bool is_choice(const option_row *row, const char *value, size_t length)
{
    const char *at = row->choices, *word;
    if (row->words != NULL)
        return row->words->knows(value);
    for (size_t n; (n = next_word(&at, &word)) > 0;)
        if (n == length && !strncmp(word, value, n))
            return true;
    return false;
}

/* Of a list "cpu,foo", the first word that isn't known; else the whole. */
static char *wrong_word(const option_row *row, const char *value, size_t length)
{
    for (const char *at = value, *end = value + length; row->words != NULL && at < end; at++) {
        char *word = tool_strndup(at, (size_t)strcspn(at, ","));
        if (!row->words->knows(word))
            return word;
        at += strlen(word);
        free(word);
    }
    return tool_strndup(value, length);
}

static int refuse_choice(const option_row *row, const char *blamed, const char *value,
                         size_t length)
{
    char words[CHOICES_ROOM], list[CHOICES_ROOM] = "", meant[300];
    const char *at = option_choices(row, words), *word, *names[MAX_CHOICES];
    size_t count = 0;
    for (size_t n; (n = next_word(&at, &word)) > 0;) {
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%.*s", *list ? ", " : "",
                 (int)n, word);
        if (count < MAX_CHOICES)
            names[count++] = tool_strndup(word, n);
    }
    char *given = tool_strndup(value, length), *wrong = wrong_word(row, value, length);
    bool part = strlen(wrong) < length;
    ort_did_you_mean(wrong, names, count, meant, sizeof meant);
    int status = tool_usage("%s: '%s'%s%s%s is none of %s%s", blamed, wrong, part ? " in '" : "",
                            part ? given : "", part ? "'" : "", list, meant);
    while (count > 0)
        free((char *)(uintptr_t)names[--count]);
    free(wrong);
    free(given);
    return status;
}

static int check_choice(const option_row *row, const char *value, size_t length)
{
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "--%s", row->name);
    return is_choice(row, value, length) ? 0 : refuse_choice(row, name, value, length);
}

int option_check_variable(const option_row *row, const char *value)
{
    size_t length = strlen(value);
    if ((row->choices == NULL && row->words == NULL) || is_choice(row, value, length))
        return 0;
    return refuse_choice(row, row->variable, value, length);
}

static int check_choices(const option_row *row, const char *value)
{
    if (row->kind != OPTION_SPLIT)
        return check_choice(row, value, strlen(value));
    int status = 0;
    for (size_t n; *value != '\0' && status == 0; value += n + (value[n] == ',')) {
        n = strcspn(value, ",");
        status = n > 0 ? check_choice(row, value, n) : 0;
    }
    return status;
}

/* ---- given twice */

static bool takes_each(const option_row *row)
{
    return row->kind == OPTION_FLAG || row->kind == OPTION_COUNT || row->kind == OPTION_LIST ||
           row->kind == OPTION_SPLIT || row->kind == OPTION_CALL;
}

/* An earlier item of the list that gives the same name something else, or NULL. */
static const char *earlier(const option_uses *uses, int i, const char *value, size_t name)
{
    const string_list *items = &uses->items[i];
    for (size_t k = 0; k < items->count; k++)
        if (!strncmp(items->items[k], value, name + 1) && strcmp(items->items[k], value))
            return items->items[k];
    return NULL;
}

/* NAME=FILE; a file whose own name holds the character is no such item. */
static int check_key(option_uses *uses, int i, const char *value)
{
    const option_row *row = uses->rows[i];
    const char *end = row->key == ':' ? strrchr(value, row->key) : strchr(value, row->key);
    if (end == NULL || access(value, F_OK) == 0)
        return 0;
    const char *other = earlier(uses, i, value, (size_t)(end - value));
    if (other != NULL)
        return tool_usage("--%s: '%.*s' is given twice, as %s and as %s", row->name,
                          (int)(end - value), value, other + (end - value) + 1, end + 1);
    string_list_add(&uses->items[i], value);
    return 0;
}

int option_check_use(option_uses *uses, int i, const char *value)
{
    const option_row *row = uses->rows[i];
    int status = row->choices != NULL || row->words != NULL ? check_choices(row, value) : 0;
    bool one = row->again == AGAIN_REFUSED || (row->again == AGAIN_BY_KIND && !takes_each(row));
    if (status == 0 && one && uses->given[i] && value != NULL &&
        strcmp(value, uses->value[i]))
        status = tool_usage("--%s is given twice, as '%s' and as '%s'", row->name, uses->value[i],
                            value);
    if (status == 0 && row->key != 0)
        status = check_key(uses, i, value);
    uses->given[i] = true;
    uses->value[i] = value;
    return status;
}

/* ---- company */

/* A word of `needs` or `excludes`: a row, and perhaps a value that is meant, or isn't. */
typedef struct company {
    int row; /* -1: this tool has none of that name */
    char sign; /* '=', '!' or '\0' */
    const char *value;
    size_t length;
} company;

static company parse_company(const option_uses *uses, const char *word, size_t length)
{
    size_t name = strcspn(word, "=!|");
    company c = {-1, name < length ? word[name] : '\0', word + name + 1, length - name - 1};
    for (int i = 0; i < uses->count && c.row < 0; i++)
        if (is_word(word, name < length ? name : length, uses->rows[i]->name))
            c.row = i;
    return c;
}

static bool is_there(const option_uses *uses, const company *c)
{
    if (c->row < 0 || !uses->given[c->row])
        return false;
    const char *value = uses->value[c->row];
    return c->sign == '\0' || is_word(c->value, c->length, value != NULL ? value : "") ==
                                  (c->sign == '=');
}

/* "-o FILE", "--level 0", "--strict". */
static void add_company(const option_uses *uses, const company *c, bool argument, char *text,
                        size_t room)
{
    char name[NAME_ROOM];
    const option_row *row = uses->rows[c->row];
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s", short_name(row, name));
    used = strlen(text);
    if (c->sign == '=')
        snprintf(text + used, room - used, " %.*s", (int)c->length, c->value);
    else if (argument && row->argument != NULL)
        snprintf(text + used, room - used, " %.*s",
                 (int)(c->sign == '!' ? strcspn(row->argument, "|") : strlen(row->argument)),
                 row->argument);
}

static int check_needs(const option_uses *uses, const option_row *row)
{
    const char *at = row->needs, *word;
    char list[600] = "";
    for (size_t n; (n = next_word(&at, &word)) > 0;) {
        const company c = parse_company(uses, word, n);
        if (c.row < 0)
            continue;
        if (is_there(uses, &c))
            return 0;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s",
                 !*list     ? ""
                 : *at != 0 ? ", "
                            : " or ");
        add_company(uses, &c, true, list, sizeof list);
    }
    return tool_usage("--%s needs %s", row->name, list);
}

static int check_excludes(const option_uses *uses, const option_row *row)
{
    const char *at = row->excludes, *word;
    for (size_t n; (n = next_word(&at, &word)) > 0;) {
        const company c = parse_company(uses, word, n);
        char name[NAME_ROOM], other[200] = "";
        if (!is_there(uses, &c))
            continue;
        add_company(uses, &c, false, other, sizeof other);
        return tool_usage("%s and %s exclude each other", short_name(row, name), other);
    }
    return 0;
}

static int check_one(const option_uses *uses, int i)
{
    const option_row *row = uses->rows[i];
    for (int k = 0; k < i; k++) {
        const char *same = uses->rows[k]->one_of;
        char name[NAME_ROOM], other[NAME_ROOM];
        if (uses->given[k] && same != NULL && !strcmp(same, row->one_of))
            return tool_usage("one %s at a time: %s or %s", same, short_name(uses->rows[k], name),
                              short_name(row, other));
    }
    return 0;
}

int option_check_company(const option_uses *uses)
{
    int status = 0;
    for (int i = 0; i < uses->count && status == 0; i++)
        if (uses->given[i] && uses->rows[i]->one_of != NULL)
            status = check_one(uses, i);
    for (int i = 0; i < uses->count && status == 0; i++)
        if (uses->given[i] && uses->rows[i]->excludes != NULL)
            status = check_excludes(uses, uses->rows[i]);
    for (int i = 0; i < uses->count && status == 0; i++)
        if (uses->given[i] && uses->rows[i]->needs != NULL)
            status = check_needs(uses, uses->rows[i]);
    return status;
}

bool option_list_holds(const char *list, const char *word)
{
    const char *at = list, *item;
    for (size_t n; list != NULL && (n = next_word(&at, &item)) > 0;)
        if (is_word(item, n, word))
            return true;
    return list == NULL;
}

/* "static, dynamic or weights" of "static|dynamic|weights" */
static const char *spell_list(const char *at, char *text, size_t room)
{
    const char *word;
    text[0] = '\0';
    for (size_t n; (n = next_word(&at, &word)) > 0;)
        snprintf(text + strlen(text), room - strlen(text), "%s'%.*s'",
                 !*text ? "" : *at != '\0' ? ", " : " or ", (int)n, word);
    return text;
}

int option_check_verb(const option_uses *uses, const char *verb)
{
    char name[NAME_ROOM], list[200];
    for (int i = 0; i < uses->count; i++) {
        const option_row *row = uses->rows[i];
        if (!uses->given[i] || row->verbs == NULL || (verb && option_list_holds(row->verbs, verb)))
            continue;
        short_name(row, name);
        spell_list(row->verbs, list, sizeof list);
        return verb ? tool_usage("%s belongs to %s, not to '%s'", name, list, verb)
                    : tool_usage("%s needs a verb before MODEL: %s", name, list);
    }
    return 0;
}

void option_uses_release(option_uses *uses)
{
    for (int i = 0; i < uses->count; i++)
        string_list_release(&uses->items[i]);
}

/* ---- the table, for other programs */

static const char *again_name(const option_row *row)
{
    return row->again == AGAIN_LAST_HOLDS                     ? "last"
           : row->again == AGAIN_REFUSED || !takes_each(row) ? "refused"
                                                             : "each";
}

static void print_facts(const option_row *row, FILE *out)
{
    static const char *const kinds[] = {"flag", "count", "string", "int",  "size", "double",
                                        "time", "list",  "split",  "call", "group"};
    char choices[CHOICES_ROOM];
    option_choices(row, choices);
    const char *const words[] = {row->argument, kinds[row->kind],
                                 row->choices || !*choices ? row->choices : choices, row->needs,
                                 row->excludes};
    fprintf(out, "%s\t%c", row->name, row->letter != 0 ? row->letter : '-');
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        fprintf(out, "\t%s", words[i] != NULL ? words[i] : "-");
    fprintf(out, "\t%g\t%s\t%c\t%s\t%s\t%s\t%s\n", row->max,
            row->positive ? "positive" : "-", row->key != 0 ? row->key : '-', again_name(row),
            row->gate ? "gate" : "-", row->verbs ? row->verbs : "-", row->doc);
}

void option_print_table(const option_table *table, FILE *out)
{
    fputs("name\tletter\targument\tkind\tchoices\tneeds\texcludes\tmax\tpositive\tkey\tagain\tgate"
          "\tverbs\tdoc\n", out);
    for (const option_row *const *group = table->groups; *group != NULL; group++)
        for (const option_row *row = *group; row->name != NULL; row++)
            if (row->kind != OPTION_GROUP)
                print_facts(row, out);
}

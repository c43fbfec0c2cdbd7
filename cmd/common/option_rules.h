/* option_rules.h - what the rows of an option table say of every use, held while it is parsed. */
#ifndef COMMON_OPTION_RULES_H
#define COMMON_OPTION_RULES_H

#include "common/options.h"

enum { MAX_OPTIONS = 128, CHOICES_ROOM = 400 };

/* All the words that a row takes, "a|b|c", from itself or a table; "" when any will do. */
const char *option_choices(const option_row *row, char text[CHOICES_ROOM]);

typedef struct option_uses {
    const option_row *rows[MAX_OPTIONS]; /* of all groups, without headings */
    bool given[MAX_OPTIONS];
    const char *value[MAX_OPTIONS]; /* the last one */
    string_list items[MAX_OPTIONS]; /* of rows with a key: what was given */
    int count;
} option_uses;

/* Before the value of row `i` is stored: is it one of the row's choices, and not another one than
 * was given before? 0 or EXIT_USAGE. */
int option_check_use(option_uses *uses, int i, const char *value);
/* Behind the last option: what it needs stands there, and what it excludes doesn't. */
int option_check_company(const option_uses *uses);
/* Does every option that was given belong to this verb (NULL: none was said)? 0 or EXIT_USAGE. */
int option_check_verb(const option_uses *uses, const char *verb);
/* Is it one of the words of a list "a|b|c"? NULL holds every word. */
bool option_list_holds(const char *list, const char *word);
void option_uses_release(option_uses *uses);
/* A line per option, tabs between its facts; the first line names them. */
void option_print_table(const option_table *table, FILE *out);

#endif

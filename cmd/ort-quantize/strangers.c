/* strangers.c - arrays of samples whose names no input of the model has. Where all of a file are
 * such, position decides (common/feed.c), else they are left out. A misspelled name looks like one
 * or the other, so the first file that has some is told.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/folder.h"
#include "samples.h"

enum { LIST = 400 };

static bool is_input(const samples *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(ort_session_input_name(s->session, i), name))
            return true;
    return false;
}

/* arr_0, arr_1 and so on are what numpy calls arrays that have no names. */
static bool is_named(const char *name)
{
    const bool numbered = !strncmp(name, "arr_", 4) && isdigit((unsigned char)name[4]);
    return name[0] != '\0' && !numbered;
}

static void add_name(char *list, const char *name)
{
    const size_t used = strlen(list);
    snprintf(list + used, LIST - used, "%s'%s'", used > 0 ? ", " : "", name);
}

/* Columns of tables and files of test data sets have places of their own, and a file that -i names
 * is meant whatever it calls its array. */
static const ort_tensors *record_of(const samples *s)
{
    const bool by_name = s->feed.target < 0 && !feed_is_table(&s->feed) &&
                         !folder_is(feed_place(&s->feed));
    return by_name ? s->feed.record : NULL;
}

/* How many, with their names as a list; *known: how many others are inputs. */
static size_t find(const samples *s, char *list, size_t *known)
{
    const ort_tensors *record = record_of(s);
    size_t count = 0;
    *known = 0;
    list[0] = '\0';
    for (size_t i = 0; record != NULL && i < ort_tensors_count(record); i++) {
        const char *name = ort_tensors_name(record, i);
        *known += is_input(s, name);
        if (is_input(s, name) || !is_named(name))
            continue;
        add_name(list, name);
        count++;
    }
    return count;
}

/* The inputs that position gave the values of this record to. */
static void list_taken(const samples *s, char *list)
{
    list[0] = '\0';
    for (size_t i = 0; i < s->count; i++)
        if (s->whole[i] != NULL && s->whole[i] != s->feed.fixed[i])
            add_name(list, ort_session_input_name(s->session, i));
}

static bool is_default(const samples *s, const char *list)
{
    for (size_t i = 0; i < s->defaults.count; i++) {
        char one[LIST] = "";
        add_name(one, s->defaults.items[i]);
        if (!strcmp(one, list))
            return true;
    }
    return false;
}

bool strangers_tell(const samples *s)
{
    char list[LIST], taken[LIST];
    size_t known, count = find(s, list, &known);
    const char *place = feed_place(&s->feed);
    if (count == 0 || (known == 0 && count == 1 && !s->options.verbose))
        return false;
    if (known > 0) {
        tool_warn("%s: holds %s, %s", place, list,
                  is_default(s, list) ? "which keeps its default; -i NAME=FILE gives it a value"
                  : count > 1 ? "which are no inputs of the model: they are left out"
                              : "which is no input of the model: it is left out");
        return true;
    }
    list_taken(s, taken);
    if (count > 1)
        tool_warn("%s: %s are no inputs of the model: they are taken for %s, in this order", place,
                  list, taken);
    else
        fprintf(stderr, "%s: %s is no input of the model: it is taken for %s\n", place, list,
                taken);
    return true;
}

int strangers_lack(const samples *s, size_t input)
{
    char list[LIST];
    size_t known, count = find(s, list, &known);
    return tool_error(ORT_ERROR_DATA, "%s: holds no value for input '%s'%s%s%s, "
                      "-i NAME=FILE gives one for all samples", feed_place(&s->feed),
                      ort_session_input_name(s->session, input), count > 0 ? " (" : "", list,
                      count > 1 ? " are no inputs)" : count > 0 ? " is no input)" : "");
}

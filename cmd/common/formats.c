/* formats.c - the words of --from and --format, out of the library's table (formats.h). */
#include "common/formats.h"

#include <stdio.h>
#include <string.h>

static void add(const char *words, char *text, size_t room)
{
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s", used > 0 ? "|" : "", words);
    for (char *at = text + used; *at != '\0'; at++)
        if (*at == ' ')
            *at = '|';
}

static void list_names(unsigned without, char *text, size_t room)
{
    ort_format format;
    for (int i = 0; (format = ort_format_at(i)) != ORT_FORMAT_COUNT; i++)
        if ((ort_format_traits(format, NULL) & without) == 0)
            add(ort_format_name(format), text, room);
}

static void list_read(char *text, size_t room) { list_names(0, text, room); }

static void list_typed(char *text, size_t room) { list_names(ORT_FORMAT_UNTYPED, text, room); }

static void list_written(char *text, size_t room)
{
    ort_format format;
    for (int i = 0; (format = ort_format_at(i)) != ORT_FORMAT_COUNT; i++)
        add(ort_format_words(format), text, room);
}

static bool is_format(const char *word)
{
    ort_format format = ort_format_parse(word);
    return format != ORT_FORMAT_COUNT && format != ORT_FORMAT_AUTO;
}

static bool is_typed(const char *word)
{
    return is_format(word) &&
           (ort_format_traits(ort_format_parse(word), NULL) & ORT_FORMAT_UNTYPED) == 0;
}

const option_words formats_read = {list_read, is_format};
const option_words formats_typed = {list_typed, is_typed};
const option_words formats_written = {list_written, is_format};

void formats_choose(const char *word, ort_write_options *options)
{
    options->as = word;
    if (word != NULL)
        options->format = ort_format_parse(word);
}

bool formats_any(const char *word, const string_list *files, unsigned traits)
{
    if (word != NULL)
        return (ort_format_traits(ort_format_parse(word), word) & traits) != 0;
    for (size_t i = 0; i < files->count; i++)
        if ((ort_format_traits(ort_format_of_path(files->items[i]), files->items[i]) & traits) != 0)
            return true;
    return false;
}

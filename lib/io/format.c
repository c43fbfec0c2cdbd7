/* format.c - the table of tensor formats (formats.def), and what is asked of it by name, path and
 * content. */
#include "io/format.h"

#include <string.h>
#include <strings.h>

#define X(name) extern const ort_format_row ort_format_row_##name;
#include "io/formats.def"
#undef X

static const ort_format_row *const rows[] = {
#define X(name) &ort_format_row_##name,
#include "io/formats.def"
#undef X
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

/* Those that ort.h doesn't name follow behind those that it does. */
ort_format ort_format_at(int index)
{
    if (index < 0 || index >= ROW_COUNT)
        return ORT_FORMAT_COUNT;
    return rows[index]->format ? rows[index]->format : (ort_format)(ORT_FORMAT_COUNT + 1 + index);
}

const ort_format_row *ort_format_get(ort_format format)
{
    for (int i = 0; i < ROW_COUNT; i++)
        if (ort_format_at(i) == format)
            return rows[i];
    return NULL;
}

const ort_format_row *ort_format_detect(const unsigned char *bytes, size_t count)
{
    for (int i = 0; i < ROW_COUNT; i++)
        if (rows[i]->matches && rows[i]->matches(bytes, count))
            return rows[i];
    return NULL;
}

ort_status ort_format_claimed(const ort_format_guess *guess, const ort_format_row **row,
                              ort_error *err)
{
    bool mine = false;
    *row = NULL;
    for (int i = 0; i < ROW_COUNT && !mine; i++) {
        if (rows[i]->claims)
            ORT_TRY(rows[i]->claims(guess, &mine, err));
        *row = mine ? rows[i] : NULL;
    }
    return ORT_OK;
}

const char *ort_format_name(ort_format format)
{
    const ort_format_row *row = ort_format_get(format);
    return row ? row->name : "auto";
}

const char *ort_format_words(ort_format format)
{
    const ort_format_row *row = ort_format_get(format);
    return !row ? "" : row->words ? row->words : row->name;
}

const char *ort_path_extension(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return dot ? dot + 1 : "";
}

bool ort_format_has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    while (*words && length > 0) {
        size_t span = strcspn(words, " ");
        if (span == length && !strncasecmp(words, word, length))
            return true;
        words += span + strspn(words + span, " ");
    }
    return false;
}

static ort_format of_ending(const char *ending)
{
    for (int i = 0; i < ROW_COUNT; i++)
        if (ort_format_has_word(rows[i]->endings, ending))
            return ort_format_at(i);
    return ORT_FORMAT_AUTO;
}

ort_format ort_format_of_path(const char *path)
{
    return path ? of_ending(ort_path_extension(path)) : ORT_FORMAT_AUTO;
}

ort_format ort_format_parse(const char *name)
{
    if (!name)
        return ORT_FORMAT_COUNT;
    if (!strcasecmp(name, "auto"))
        return ORT_FORMAT_AUTO;
    for (int i = 0; i < ROW_COUNT; i++)
        if (!strcasecmp(rows[i]->name, name))
            return ort_format_at(i);
    ort_format by_ending = of_ending(name);
    return by_ending == ORT_FORMAT_AUTO ? ORT_FORMAT_COUNT : by_ending;
}

unsigned ort_format_traits(ort_format format, const char *path)
{
    const ort_format_row *row = ort_format_get(format);
    if (!row)
        return 0;
    const char *ending = path ? ort_path_extension(path) : "";
    if (path && !*ending)
        ending = path;
    return row->traits | (row->traits_of ? row->traits_of(ending) : 0);
}

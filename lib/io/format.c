/* format.c - the table of tensor formats (formats.def), and what is asked of it by name, path and
 * content; which formats there are and which can hold what, in words made of their rows: what a
 * writer says of values that its format has no room for. */
#include "io/format.h"

#include <stdio.h>
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

/* ----------------------------------------------------------------------------------- lists -- */

enum { LIST_ROOM = 300 };

/* Words with commas between; a list that is full leaves out the rest. */
typedef struct list {
    char *text;
    size_t room, length, last; /* last: where the comma before the last word stands */
    int count;
} list;

static void add(list *l, const char *before, const char *word)
{
    int n = snprintf(l->text + l->length, l->room - l->length, "%s%s%.*s", l->count ? ", " : "",
                     before, (int)strcspn(word, " "), word);
    if (n < 0 || (size_t)n >= l->room - l->length) {
        l->text[l->length] = '\0';
        return;
    }
    l->last = l->length;
    l->length += (size_t)n;
    l->count++;
}

/* "a, b and c" */
static const char *with_and(list *l)
{
    static const char word[] = " and ";
    size_t size = sizeof word - 1;
    if (l->count > 1 && l->length - 2 + size < l->room) {
        char *at = l->text + l->last;
        memmove(at + size, at + 2, l->length - l->last - 2 + 1);
        memcpy(at, word, size);
    }
    return l->text;
}

const char *ort_format_list(unsigned traits, char *text, size_t size)
{
    if (!text || !size)
        return "";
    list l = {.text = text, .room = size};
    text[0] = '\0';
    for (int i = 0; i < ROW_COUNT; i++)
        if ((rows[i]->traits & traits) == traits)
            add(&l, ".", rows[i]->endings);
    return with_and(&l);
}

const char *ort_format_names(char *text, size_t size)
{
    list l = {.text = text, .room = size};
    for (int i = 0; i < ROW_COUNT; i++)
        add(&l, "", rows[i]->name);
    return text;
}

const char *ort_format_endings(char *text, size_t size)
{
    list l = {.text = text, .room = size};
    for (int i = 0; i < ROW_COUNT; i++)
        for (const char *word = ort_format_words(ort_format_at(i)); *word;) {
            add(&l, ".", word);
            word += strcspn(word, " ");
            word += *word == ' ';
        }
    return text;
}

ort_status ort_format_tensors_only(ort_error *err, const char *format)
{
    char others[LIST_ROOM];
    return ort_error_set(err, ORT_ERROR_DATA, "%s holds tensors only; %s hold sequences and maps",
                         format, ort_format_list(ORT_FORMAT_NESTED, others, sizeof others));
}

ort_status ort_format_single(const ort_tensors *tensors, const char *format,
                             const ort_tensor **tensor, ort_error *err)
{
    char others[LIST_ROOM];
    if (tensors->list.count != 1)
        return ort_error_set(err, ORT_ERROR_DATA, "%s holds one %s, there are %zu; %s hold many",
                             format, tensor ? "tensor" : "value", tensors->list.count,
                             ort_format_list(ORT_FORMAT_MANY, others, sizeof others));
    const ort_value *value = tensors->list.data[0].value;
    if (tensor && (!value || value->kind != ORT_KIND_TENSOR))
        return ort_format_tensors_only(err, format);
    if (tensor)
        *tensor = &value->tensor;
    return ORT_OK;
}

bool ort_format_any_dtype(ort_dtype dtype)
{
    return dtype != ORT_DTYPE_UNDEFINED;
}

ort_status ort_format_lacks(ort_error *err, const char *format, ort_dtype dtype)
{
    char others[LIST_ROOM] = "";
    list l = {.text = others, .room = sizeof others};
    for (int i = 0; i < ROW_COUNT; i++)
        if (rows[i]->has_dtype && rows[i]->has_dtype(dtype))
            add(&l, ".", rows[i]->endings);
    return ort_error_set(err, ORT_ERROR_DATA, "%s has no element type %s; %s have it", format,
                         ort_dtype_name(dtype), with_and(&l));
}

/* format_limits.c - which formats there are and which can hold what, in words made of their rows:
 * what a writer says of values that its format has no room for. */
#include <stdio.h>
#include <string.h>

#include "io/format.h"

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

static const ort_format_row *row_at(int index)
{
    return ort_format_get(ort_format_at(index));
}

const char *ort_format_list(unsigned traits, char *text, size_t size)
{
    if (!text || !size)
        return "";
    list l = {.text = text, .room = size};
    text[0] = '\0';
    for (int i = 0; row_at(i); i++)
        if ((row_at(i)->traits & traits) == traits)
            add(&l, ".", row_at(i)->endings);
    return with_and(&l);
}

const char *ort_format_names(char *text, size_t size)
{
    list l = {.text = text, .room = size};
    for (int i = 0; row_at(i); i++)
        add(&l, "", row_at(i)->name);
    return text;
}

const char *ort_format_endings(char *text, size_t size)
{
    list l = {.text = text, .room = size};
    for (int i = 0; row_at(i); i++)
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

ort_status ort_format_lacks(ort_error *err, const char *format, ort_dtype dtype)
{
    char others[LIST_ROOM] = "";
    list l = {.text = others, .room = sizeof others};
    for (int i = 0; row_at(i); i++)
        if (row_at(i)->has_dtype && row_at(i)->has_dtype(dtype))
            add(&l, ".", row_at(i)->endings);
    return ort_error_set(err, ORT_ERROR_DATA, "%s has no element type %s; %s have it", format,
                         ort_dtype_name(dtype), with_and(&l));
}

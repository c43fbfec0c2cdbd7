/* tensors.c - named values in order: a list that whatever reads and writes them fills and walks. */
#include "io/tensors.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ort_status ort_tensors_new(ort_tensors **tensors, ort_error *err)
{
    if (!tensors)
        return ort_error_null(err, __func__);
    *tensors = calloc(1, sizeof **tensors);
    return *tensors ? ORT_OK : ort_error_memory(err, sizeof **tensors);
}

void ort_tensors_free(ort_tensors *tensors)
{
    if (!tensors)
        return;
    for (size_t i = 0; i < tensors->list.count; i++)
        ort_value_free(tensors->list.data[i].value);
    for (size_t i = 0; i < tensors->columns.count; i++)
        ort_value_free(tensors->columns.data[i].value);
    ort_vec_release(&tensors->list);
    ort_vec_release(&tensors->columns);
    ort_vec_release(&tensors->sources);
    ort_hashmap_release(&tensors->index);
    ort_arena_release(&tensors->names);
    free(tensors);
}

size_t ort_tensors_count(const ort_tensors *tensors)
{
    return tensors ? tensors->list.count : 0;
}

const char *ort_tensors_name(const ort_tensors *tensors, size_t index)
{
    return index < ort_tensors_count(tensors) ? tensors->list.data[index].name : "";
}

ort_value *ort_tensors_value(const ort_tensors *tensors, size_t index)
{
    return index < ort_tensors_count(tensors) ? tensors->list.data[index].value : NULL;
}

const char *ort_tensors_full_name(const ort_tensors *tensors, size_t index, char text[32])
{
    assert(index < tensors->list.count);
    snprintf(text, 32, "arr_%zu", index);
    return tensors->list.data[index].name[0] ? tensors->list.data[index].name : text;
}

/* A file may name hundreds of thousands; a few are found faster without an index. */
enum { FEW = 16 };

/* The entry of this name or NULL; *ok false: no memory. */
static ort_tensors_entry *find_entry(ort_tensors *tensors, const char *name, bool *ok)
{
    ort_tensors_entry *list = tensors->list.data;
    size_t count = tensors->list.count;
    uint64_t at;
    *ok = true;
    for (size_t i = 0; count <= FEW && i < count; i++)
        if (!strcmp(list[i].name, name))
            return &list[i];
    if (count <= FEW)
        return NULL;
    for (; *ok && tensors->indexed < count; tensors->indexed++)
        *ok = ort_hashmap_put_str(&tensors->index, list[tensors->indexed].name, tensors->indexed);
    if (!*ok || !ort_hashmap_get_str(&tensors->index, name, &at))
        return NULL;
    assert(at < count && !strcmp(list[at].name, name)); /* the index is of this list */
    return &list[at];
}

/* Adds to the values or the columns. */
static ort_status add_entry(ort_tensors *tensors, bool column, const char *name, ort_value *value,
                            ort_error *err)
{
    ort_tensors_entry entry = {ort_arena_strdup(&tensors->names, name), value};
    if (entry.name && (column ? ort_vec_push(&tensors->columns, entry)
                              : ort_vec_push(&tensors->list, entry)))
        return ORT_OK;
    ort_value_free(value);
    return ort_error_memory(err, sizeof entry);
}

ort_status ort_tensors_add_take(ort_tensors *tensors, const char *name, ort_value *value,
                                ort_error *err)
{
    bool ok = true;
    ort_tensors_entry *entry = name && name[0] ? find_entry(tensors, name, &ok) : NULL;
    if (!ok) {
        ort_value_free(value);
        return ort_error_memory(err, sizeof(ort_tensors_entry));
    }
    if (entry) {
        ort_value_free(entry->value);
        entry->value = value;
        return ORT_OK;
    }
    return add_entry(tensors, false, name ? name : "", value, err);
}

ort_value *ort_tensors_take_at(ort_tensors *tensors, size_t at)
{
    assert(at < tensors->list.count);
    ort_tensors_entry *entry = &tensors->list.data[at];
    ort_value *value = entry->value;
    memmove(entry, entry + 1, (--tensors->list.count - at) * sizeof *entry);
    ort_hashmap_release(&tensors->index); /* those behind it have other places now */
    tensors->indexed = 0;
    return value;
}

ort_status ort_tensors_add(ort_tensors *tensors, const char *name, ort_value *value, ort_error *err)
{
    if (!tensors || !name || !value)
        return ort_error_null(err, __func__);
    ORT_TRY(ort_value_check_host(value, err));
    return ort_tensors_add_take(tensors, name, ort_value_retain(value), err);
}

ort_status ort_tensors_add_source(ort_tensors *tensors, const char *name, ort_error *err)
{
    if (!tensors || !name)
        return ort_error_null(err, __func__);
    const char *copy = ort_arena_strdup(&tensors->names, name);
    return copy && ort_vec_push(&tensors->sources, copy) ? ORT_OK
                                                         : ort_error_memory(err, strlen(name));
}

ort_status ort_tensors_add_column_take(ort_tensors *tensors, const char *name, ort_value *value,
                                       ort_error *err)
{
    return add_entry(tensors, true, name, value, err);
}

ort_status ort_tensors_add_column(ort_tensors *tensors, const char *name, ort_value *value,
                                  ort_error *err)
{
    if (!tensors || !name || !value)
        return ort_error_null(err, __func__);
    ORT_TRY(ort_value_check_host(value, err));
    return ort_tensors_add_column_take(tensors, name, ort_value_retain(value), err);
}

size_t ort_tensors_column_count(const ort_tensors *tensors)
{
    return tensors ? tensors->columns.count : 0;
}

const char *ort_tensors_column_name(const ort_tensors *tensors, size_t index)
{
    return index < ort_tensors_column_count(tensors) ? tensors->columns.data[index].name : "";
}

ort_value *ort_tensors_column(const ort_tensors *tensors, size_t index)
{
    return index < ort_tensors_column_count(tensors) ? tensors->columns.data[index].value : NULL;
}

int ort_tensors_sample_rate(const ort_tensors *tensors)
{
    return tensors ? tensors->sample_rate : 0;
}

size_t ort_tensors_source_count(const ort_tensors *tensors)
{
    return tensors ? tensors->sources.count : 0;
}

const char *ort_tensors_source(const ort_tensors *tensors, size_t index)
{
    return index < ort_tensors_source_count(tensors) ? tensors->sources.data[index] : "";
}

/* spares.c - kept memory of results, oldest first; the newest that fits is taken. In front of each
 * block lies its size. */
#include "exec/spares.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exec/buffers.h"

enum { KEPT = 64, FRONT = 64 };

static const size_t most_bytes = (size_t)64 << 20;

struct ort_spares {
    pthread_mutex_t lock;
    size_t references; /* of the session, and of each block that is out */
    bool closed;
    size_t limit, bytes; /* that are kept: at most, now */
    int count;
    void *kept[KEPT];
};

static size_t size_of(const void *memory)
{
    size_t bytes;
    memcpy(&bytes, (const char *)memory - FRONT, sizeof bytes);
    return bytes;
}

static void free_memory(void *memory)
{
    free((char *)memory - FRONT);
}

ort_spares *ort_spares_new(void)
{
    ort_spares *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    s->references = 1;
    return s;
}

/* Unlocks; the last one frees it. */
static void drop_reference(ort_spares *s)
{
    assert(s->references > 0);
    bool last = --s->references == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void *remove_at(ort_spares *s, int i)
{
    void *memory = s->kept[i];
    assert(i >= 0 && i < s->count);
    s->bytes -= size_of(memory);
    s->count--;
    memmove(s->kept + i, s->kept + i + 1, sizeof *s->kept * (size_t)(s->count - i));
    return memory;
}

/* The oldest ones go. */
static void keep_at_most(ort_spares *s, int count, size_t bytes)
{
    while (s->count > count || s->bytes > bytes)
        free_memory(remove_at(s, 0));
}

void ort_spares_close(ort_spares *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    keep_at_most(s, 0, 0);
    s->closed = true;
    drop_reference(s);
}

static void *make(size_t bytes)
{
    char *whole = bytes <= SIZE_MAX - FRONT ? ort_memory_new(bytes + FRONT) : NULL;
    if (!whole)
        return NULL;
    memcpy(whole, &bytes, sizeof bytes);
    return whole + FRONT;
}

/* A cache grows by a row with every run: sizes step by eighths, so that a block serves several. */
static size_t rounded(size_t bytes)
{
    size_t step = (size_t)1 << (60 - __builtin_clzll((unsigned long long)(bytes | 64)));
    return bytes <= SIZE_MAX - step ? (bytes + step - 1) / step * step : bytes;
}

void *ort_spares_take(ort_spares *s, size_t bytes, size_t *taken)
{
    void *memory = NULL;
    const size_t wanted = rounded(bytes);
    pthread_mutex_lock(&s->lock);
    assert(!s->closed);
    for (int i = s->count - 1; i >= 0 && !memory; i--)
        if (size_of(s->kept[i]) == wanted)
            memory = remove_at(s, i);
    if (!memory)
        memory = make(wanted);
    if (memory) {
        s->references++;
        *taken += wanted;
        if (*taken == wanted || s->limit < *taken)
            s->limit = *taken < most_bytes ? *taken : most_bytes;
    }
    pthread_mutex_unlock(&s->lock);
    return memory;
}

void ort_spares_give(void *arg, void *memory)
{
    ort_spares *s = arg;
    pthread_mutex_lock(&s->lock);
    if (s->closed || size_of(memory) > s->limit) {
        free_memory(memory);
    } else {
        keep_at_most(s, KEPT - 1, s->limit - size_of(memory));
        s->kept[s->count++] = memory;
        s->bytes += size_of(memory);
    }
    drop_reference(s);
}

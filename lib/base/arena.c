/* arena.c - bump allocation in geometrically growing blocks.
 *
 * A block is one malloc with its header in front; the newest block is the head of a singly linked
 * list and the only one that is bumped. Requests larger than a block get a block of their own. */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/checked.h"
#include "base/huge.h"

struct ort_arena_block {
    ort_arena_block *next; /* older block */
    size_t capacity, used; /* bytes after the header */
    size_t touched;        /* bytes from the block's start whose pages are there; 0: each comes when
                              it is used */
    bool huge;             /* they are huge ones */
    bool large;            /* it was made for such */
};

enum {
    FIRST_BLOCK = 4096,
    LARGEST_BLOCK = 1 << 20,
    NATURAL_ALIGNMENT = 16,
    SLAB_CHUNK = 32 << 10,
    TOUCH_CHUNK = 64 << 10, /* bytes: what a call costs is a few pages' faults */
    FIRST_HUGE_BLOCK = 2 << 20,
    LARGEST_HUGE_BLOCK = 64 << 20,
};

static char *payload(ort_arena_block *block)
{
    return (char *)(block + 1);
}

/* A block in huge pages where these are cheap (huge.h). */
static ort_arena_block *add_huge_block(ort_arena *arena, size_t wanted)
{
    size_t total, usual = 2 * arena->used_bytes / ORT_HUGE_PAGE * ORT_HUGE_PAGE;
    void *memory;
    if (usual < FIRST_HUGE_BLOCK)
        usual = FIRST_HUGE_BLOCK;
    if (usual > LARGEST_HUGE_BLOCK)
        usual = LARGEST_HUGE_BLOCK;
    if (wanted < usual - sizeof(ort_arena_block))
        wanted = usual - sizeof(ort_arena_block);
    if (!ort_add_size(wanted, sizeof(ort_arena_block), &total) ||
        !ort_account_charge(arena->account, total))
        return NULL;
    if (posix_memalign(&memory, ORT_HUGE_PAGE, total)) {
        ort_account_refund(arena->account, total);
        return NULL;
    }
    bool huge = ort_huge_ask(memory, total) && ort_huge_touch(memory, total);
    ort_arena_block *block = memory;
    *block = (ort_arena_block){.next = arena->head, .capacity = wanted, .huge = huge, .large = true,
                               .touched = huge ? ORT_HUGE_PAGE : sizeof *block};
    arena->head = block;
    return block;
}

/* In small pages: whole pieces of them, as far as the block goes. */
static void touch_small(ort_arena_block *block, size_t end)
{
    const size_t total = sizeof *block + block->capacity;
    const uintptr_t start = (uintptr_t)block;
    size_t to = ort_round_up(start + end, TOUCH_CHUNK) - start;
    to = to < total ? to : total;
    ort_pages_touch((char *)block + block->touched, to - block->touched);
    block->touched = to;
}

/* Pages up to `end`, counted from the block's start: none of them is in use before. left: small
 * ones are left to the caller, who is told so; or NULL. */
static void touch_block(ort_arena_block *block, size_t end, bool *left)
{
    size_t total = sizeof *block + block->capacity;
    while (block->huge && block->touched < end) {
        assert(sizeof *block + block->used <= block->touched && end <= total);
        block->huge = ort_huge_touch((char *)block + block->touched, total - block->touched);
        block->touched += ORT_HUGE_PAGE;
    }
    if (!block->touched || block->touched >= end)
        return;
    if (left) {
        *left = true;
        block->touched = end;
    } else {
        touch_small(block, end);
    }
}

static void join_account(ort_arena *arena)
{
    ort_account_release(arena->account);
    arena->account = ort_account_of_work();
}

void ort_huge_begin(ort_arena *arena)
{
    if (arena->head || !arena->huge_pages)
        return;
    join_account(arena);
    (void)add_huge_block(arena, 1); /* or the first block is an ordinary one */
}

static ort_arena_block *add_block(ort_arena *arena, size_t wanted)
{
    size_t capacity = FIRST_BLOCK;
    if (!arena->head)
        join_account(arena);
    if (arena->huge_pages && ((arena->head && arena->head->large) || wanted > ORT_HUGE_FROM ||
                              arena->used_bytes > ORT_HUGE_FROM)) {
        ort_arena_block *huge = add_huge_block(arena, wanted);
        if (huge)
            return huge;
    }
    if (arena->head) {
        capacity = arena->head->capacity * 2;
        if (capacity > LARGEST_BLOCK)
            capacity = LARGEST_BLOCK;
    }
    if (capacity < wanted)
        capacity = wanted;
    size_t total;
    if (!ort_add_size(capacity, sizeof(ort_arena_block), &total))
        return NULL;
    if (!ort_account_charge(arena->account, total))
        return NULL;
    ort_arena_block *block = malloc(total);
    if (!block) {
        ort_account_refund(arena->account, total);
        return NULL;
    }
    *block = (ort_arena_block){.next = arena->head, .capacity = capacity};
    if (arena->huge_pages && total >= 2 * TOUCH_CHUNK)
        block->touched = sizeof *block;
    arena->head = block;
    return block;
}

/* Offset of the next aligned address in `block`. */
static size_t aligned_offset(ort_arena_block *block, size_t alignment)
{
    uintptr_t base = (uintptr_t)payload(block);
    uintptr_t at = (base + block->used + alignment - 1) & ~(uintptr_t)(alignment - 1);
    return (size_t)(at - base);
}

static void *take(ort_arena *arena, size_t bytes, size_t alignment, bool *left)
{
    assert(alignment > 0 && alignment <= 4096 && (alignment & (alignment - 1)) == 0);
    if (bytes == 0)
        bytes = 1;
    size_t needed;
    if (!ort_add_size(bytes, alignment, &needed))
        return NULL;
    ort_arena_block *block = arena->head;
    size_t offset = block ? aligned_offset(block, alignment) : 0;
    if (!block || offset > block->capacity || block->capacity - offset < bytes) {
        block = add_block(arena, needed);
        if (!block)
            return NULL;
        offset = aligned_offset(block, alignment);
    }
    touch_block(block, sizeof *block + offset + bytes, left);
    arena->used_bytes += offset - block->used + bytes;
    block->used = offset + bytes;
    return payload(block) + offset;
}

void *ort_arena_alloc_aligned(ort_arena *arena, size_t bytes, size_t alignment, int zero)
{
    void *p = take(arena, bytes, alignment, NULL);
    return p && zero ? memset(p, 0, bytes ? bytes : 1) : p;
}

void *ort_arena_alloc_untouched(ort_arena *arena, size_t bytes, size_t alignment, bool *touch)
{
    *touch = false;
    return take(arena, bytes, alignment, touch);
}

void *ort_arena_alloc(ort_arena *arena, size_t bytes)
{
    return ort_arena_alloc_aligned(arena, bytes, NATURAL_ALIGNMENT, 1);
}

void *ort_arena_array(ort_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    return ort_mul_size(count, size, &bytes) ? ort_arena_alloc(arena, bytes) : NULL;
}

void *ort_slab_alloc(ort_arena *arena, ort_slab *slab, size_t bytes)
{
    if (bytes > slab->left || !slab->next) {
        size_t chunk = slab->chunk < SLAB_CHUNK ? slab->chunk * 2 : slab->chunk;
        if (bytes > SIZE_MAX / 8)
            return NULL;
        if (chunk < 8 * bytes)
            chunk = 8 * bytes;
        char *memory = ort_arena_alloc(arena, chunk);
        if (!memory)
            return NULL;
        *slab = (ort_slab){memory, chunk, chunk};
    }
    void *taken = slab->next;
    slab->next += bytes;
    slab->left -= bytes;
    return taken;
}

char *ort_arena_strndup(ort_arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        return NULL;
    char *copy = ort_arena_alloc_aligned(arena, length + 1, 1, 0);
    if (!copy)
        return NULL;
    if (length)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *ort_arena_strdup(ort_arena *arena, const char *text)
{
    return ort_arena_strndup(arena, text, strlen(text));
}

char *ort_arena_join(ort_arena *arena, const char *a, const char *b, const char *c)
{
    const size_t first = strlen(a), second = strlen(b), third = strlen(c);
    char *text = ort_arena_alloc_aligned(arena, first + second + third + 1, 1, 0);
    if (!text)
        return NULL;
    memcpy(text, a, first);
    memcpy(text + first, b, second);
    memcpy(text + first + second, c, third + 1);
    return text;
}

char *ort_arena_printf(ort_arena *arena, const char *format, ...)
{
    va_list args, again;
    char brief[256];
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(brief, sizeof brief, format, args);
    va_end(args);
    char *text = NULL;
    if (length >= 0)
        text = ort_arena_alloc_aligned(arena, (size_t)length + 1, 1, 0);
    if (text && (size_t)length < sizeof brief)
        memcpy(text, brief, (size_t)length + 1);
    else if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void ort_arena_release(ort_arena *arena)
{
    ort_arena_block *block = arena->head;
    while (block) {
        ort_arena_block *next = block->next;
        ort_account_refund(arena->account, block->capacity + sizeof *block);
        free(block);
        block = next;
    }
    ort_account_release(arena->account);
    arena->account = NULL;
    arena->head = NULL;
    arena->used_bytes = 0;
}

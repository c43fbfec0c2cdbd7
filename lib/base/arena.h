/* arena.h - bump allocation for things that die together (a model's names and nodes, a session's
 * states). Blocks grow geometrically; nothing is freed singly. Not thread-safe: one owner. */
#ifndef ORT_BASE_ARENA_H
#define ORT_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ort_arena_block ort_arena_block;
typedef struct ort_arena {
    ort_arena_block *head; /* newest block */
    size_t used_bytes;     /* sum handed out, padding included */
    struct ort_account *account; /* charged for the blocks: of the budget that was current when the
                                    first was made (budget.h); NULL: none */
    bool huge_pages;       /* set by the owner of megabytes: beyond the first few, blocks are large
                              and ask for huge pages; before, small pages come many at a time.
                              Memory that nobody touched costs nothing */
} ort_arena; /* all zero is a valid empty arena */

/* `bytes` zeroed bytes aligned to 16, or NULL when memory is exhausted or the account's
 * limit reached. 0 bytes gives a unique non-NULL pointer. */
void *ort_arena_alloc(ort_arena *arena, size_t bytes);
/* The same with an alignment (power of two, up to 4096); not zeroed when `zero` is 0. */
void *ort_arena_alloc_aligned(ort_arena *arena, size_t bytes, size_t alignment, int zero);
/* The same, not zeroed; *touch: its pages aren't there yet, as they are else where huge_pages is
 * set. The caller has them made (ort_pages_touch, huge.h), by several threads where it has them. */
void *ort_arena_alloc_untouched(ort_arena *arena, size_t bytes, size_t alignment, bool *touch);
/* count * size with an overflow check (NULL on overflow). */
void *ort_arena_array(ort_arena *arena, size_t count, size_t size);

/* Things of one kind that stand beside each other, whatever else the arena hands out between them:
 * a walk over them then reads memory from end to end. All zero is a valid empty slab. */
typedef struct ort_slab {
    char *next;
    size_t left, chunk; /* bytes */
} ort_slab;
/* `bytes` zeroed bytes, or NULL when memory is exhausted; aligned to 16 or to the largest power of
 * two that divides all sizes asked for so far, whichever is less. */
void *ort_slab_alloc(ort_arena *arena, ort_slab *slab, size_t bytes);

char *ort_arena_strdup(ort_arena *arena, const char *text);
/* The three texts as one. */
char *ort_arena_join(ort_arena *arena, const char *a, const char *b, const char *c);
/* A NUL-terminated copy of `length` bytes. */
char *ort_arena_strndup(ort_arena *arena, const char *text, size_t length);
char *ort_arena_printf(ort_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Give everything back; the arena is empty and usable again. */
void ort_arena_release(ort_arena *arena);

#endif

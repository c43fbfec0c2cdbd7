/* regex.c - a small regular expression engine without backtracking.
 *
 * The pattern becomes a tree (regex_parse.c), the tree a program of five instructions, and matching
 * runs all its threads side by side, one code point at a time: time is text length times program
 * length, whatever the pattern. Counted repetitions are unrolled; MAX_PROGRAM bounds the result.
 */
#include "op/text/regex.h"

#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/vec.h"
#include "op/text/regex_tree.h"
#include "op/text/unicode.h"

#define MAX_PROGRAM 100000

typedef enum op_code { OP_SET, OP_SPLIT, OP_JUMP, OP_ASSERT, OP_MATCH } op_code;

typedef struct instruction {
    op_code code;
    uint32_t a, b;             /* targets of SPLIT and JUMP; the assertion */
    const ort_regex_set *set;
} instruction;

struct ort_regex {
    instruction *code;
    uint32_t count;
};

/* ---- tree to program */

typedef struct emitter {
    ORT_VEC(instruction) code;
    bool full, no_memory;
} emitter;

static uint32_t emit(emitter *e, instruction in)
{
    if (e->code.count >= MAX_PROGRAM)
        e->full = true;
    else if (!ort_vec_push(&e->code, in))
        e->no_memory = true;
    return (uint32_t)e->code.count - 1;
}

static void emit_node(emitter *e, const ort_regex_node *node);

/* child? : SPLIT child, end */
static void emit_optional(emitter *e, const ort_regex_node *child, uint64_t times)
{
    size_t first = e->code.count;
    for (uint64_t i = 0; i < times && !e->full && !e->no_memory; i++) {
        uint32_t split = emit(e, (instruction){.code = OP_SPLIT, .b = UINT32_MAX});
        if (e->full || e->no_memory)
            return;
        e->code.data[split].a = split + 1;
        emit_node(e, child);
    }
    for (size_t i = first; i < e->code.count; i++)
        if (e->code.data[i].code == OP_SPLIT && e->code.data[i].b == UINT32_MAX)
            e->code.data[i].b = (uint32_t)e->code.count;
}

static void emit_repeat(emitter *e, const ort_regex_node *node)
{
    for (int i = 0; i < node->min && !e->full && !e->no_memory; i++)
        emit_node(e, node->left);
    if (node->max >= 0) {
        emit_optional(e, node->left, (uint64_t)(node->max - node->min));
        return;
    }
    uint32_t split = emit(e, (instruction){.code = OP_SPLIT});
    emit_node(e, node->left);
    emit(e, (instruction){.code = OP_JUMP, .a = split});
    if (e->full || e->no_memory)
        return;
    e->code.data[split].a = split + 1;
    e->code.data[split].b = (uint32_t)e->code.count;
}

/* a | b | c: each SPLIT leads to its own part or the next SPLIT, each part jumps to the end. */
static void emit_alternative(emitter *e, const ort_regex_node *node)
{
    size_t first = e->code.count;
    while (node->kind == ORT_REGEX_ALT) {
        uint32_t split = emit(e, (instruction){.code = OP_SPLIT});
        emit_node(e, node->left);
        uint32_t jump = emit(e, (instruction){.code = OP_JUMP, .a = UINT32_MAX});
        if (e->full || e->no_memory)
            return;
        e->code.data[split].a = split + 1;
        e->code.data[split].b = jump + 1;
        node = node->right;
    }
    emit_node(e, node);
    for (size_t i = first; i < e->code.count; i++)
        if (e->code.data[i].code == OP_JUMP && e->code.data[i].a == UINT32_MAX)
            e->code.data[i].a = (uint32_t)e->code.count;
}

static void emit_node(emitter *e, const ort_regex_node *node)
{
    if (e->full || e->no_memory)
        return;
    switch (node->kind) {
    case ORT_REGEX_EMPTY:
        return;
    case ORT_REGEX_SET:
        emit(e, (instruction){.code = OP_SET, .set = &node->set});
        return;
    case ORT_REGEX_ASSERT:
        emit(e, (instruction){.code = OP_ASSERT, .a = (uint32_t)node->assertion});
        return;
    case ORT_REGEX_CAT:
        for (; node->kind == ORT_REGEX_CAT; node = node->right)
            emit_node(e, node->left);
        emit_node(e, node);
        return;
    case ORT_REGEX_ALT:
        emit_alternative(e, node);
        return;
    case ORT_REGEX_REPEAT:
        emit_repeat(e, node);
        return;
    }
}

/* A byte that is no part of a code point is decoded as U+FFFD by itself. */
static ort_status need_utf8(const char *text, size_t length, ort_error *err)
{
    size_t used;
    for (size_t at = 0; at < length; at += used)
        if (ort_utf8_decode(text + at, length - at, &used) == 0xfffd && used == 1)
            return ort_error_set(err, ORT_ERROR_MODEL,
                                 "the regular expression isn't UTF-8 at byte %zu", at);
    return ORT_OK;
}

ort_status ort_regex_compile(ort_arena *arena, const char *pattern, size_t length,
                             ort_regex **regex, ort_error *err)
{
    ort_regex_node *root = NULL;
    emitter e = {0};
    ORT_TRY(need_utf8(pattern, length, err));
    ORT_TRY(ort_regex_parse(arena, pattern, length, &root, err));
    emit_node(&e, root);
    emit(&e, (instruction){.code = OP_MATCH});
    ort_regex *r = ort_arena_alloc(arena, sizeof *r);
    instruction *code = ort_arena_array(arena, e.code.count + 1, sizeof *code);
    ort_status status = ORT_OK;
    if (e.full)
        status = ort_error_set(err, ORT_ERROR_UNSUPPORTED, "the regular expression unrolls to more "
                               "than %d instructions; use smaller counts", MAX_PROGRAM);
    else if (e.no_memory || !r || !code)
        status = ort_error_memory(err, e.code.count * sizeof *code);
    if (status == ORT_OK) {
        memcpy(code, e.code.data, e.code.count * sizeof *code);
        r->code = code;
        r->count = (uint32_t)e.code.count;
        *regex = r;
    }
    ort_vec_release(&e.code);
    return status;
}

/* ---- matching */

/* A set of program positions that empties in constant time: dense[0..count) are the members, and
 * p is one when dense[sparse[p]] == p. */
typedef struct thread_set {
    uint32_t *dense, *sparse, count;
    size_t *start; /* of each member: where its match began; they ascend */
} thread_set;

typedef struct matcher {
    const ort_regex *regex;
    thread_set now, next;
    uint32_t *stack;
    bool matched; /* MATCH was reached at the present position */
    ort_pace pace;
} matcher;

size_t ort_regex_scratch_bytes(const ort_regex *regex)
{
    return (size_t)regex->count * (2 * sizeof(size_t) + 6 * sizeof(uint32_t)) + 64;
}

static bool is_word(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* before and after: the neighbouring code points, UINT32_MAX at the ends of the text. */
static bool holds(uint32_t assertion, uint32_t before, uint32_t after)
{
    bool boundary = is_word(before) != is_word(after);
    switch ((ort_regex_assertion)assertion) {
    case ORT_REGEX_TEXT_BEGIN:
        return before == UINT32_MAX;
    case ORT_REGEX_TEXT_END:
        return after == UINT32_MAX;
    case ORT_REGEX_LINE_BEGIN:
        return before == UINT32_MAX || before == '\n';
    case ORT_REGEX_LINE_END:
        return after == UINT32_MAX || after == '\n';
    case ORT_REGEX_WORD:
        return boundary;
    case ORT_REGEX_NOT_WORD:
        return !boundary;
    }
    return false;
}

static matcher begin_match(const ort_regex *regex, void *scratch)
{
    size_t n = regex->count, *starts = scratch;
    uint32_t *words = (uint32_t *)(void *)(starts + 2 * n);
    memset(scratch, 0, ort_regex_scratch_bytes(regex));
    return (matcher){.regex = regex,
                     .now = {words, words + n, 0, starts},
                     .next = {words + 2 * n, words + 3 * n, 0, starts + n},
                     .stack = words + 4 * n};
}

/* Add position `p` and all it leads to without reading, for a match that began at `start`. Each
 * position is pushed at most twice; one that is a member already stays, with its earlier start. */
static void add_thread(matcher *m, thread_set *set, uint32_t p, size_t start, uint32_t before,
                       uint32_t after)
{
    uint32_t depth = 0;
    m->stack[depth++] = p;
    while (depth > 0) {
        p = m->stack[--depth];
        uint32_t s = set->sparse[p];
        if (s < set->count && set->dense[s] == p)
            continue;
        set->sparse[p] = set->count;
        set->start[set->count] = start;
        set->dense[set->count++] = p;
        const instruction *in = &m->regex->code[p];
        if (in->code == OP_SPLIT) {
            m->stack[depth++] = in->b;
            m->stack[depth++] = in->a;
        } else if (in->code == OP_JUMP) {
            m->stack[depth++] = in->a;
        } else if (in->code == OP_ASSERT && holds(in->a, before, after)) {
            m->stack[depth++] = p + 1;
        } else if (in->code == OP_MATCH) {
            m->matched = true;
        }
    }
}

static bool set_has(const ort_regex_set *set, uint32_t c)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (set->ranges[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set->count && set->ranges[low].first <= c;
}

/* All threads of `now` that read c, for matches that began up to `last`, go on in `next`; then the
 * sets change places. */
static void step(matcher *m, uint32_t c, uint32_t after, size_t last)
{
    m->next.count = 0;
    m->matched = false;
    for (uint32_t i = 0; i < m->now.count && m->now.start[i] <= last; i++) {
        const instruction *in = &m->regex->code[m->now.dense[i]];
        if (in->code == OP_SET && set_has(in->set, c))
            add_thread(m, &m->next, m->now.dense[i] + 1, m->now.start[i], c, after);
    }
    thread_set swap = m->now;
    m->now = m->next;
    m->next = swap;
}

static uint32_t decode(const char *text, size_t length, size_t at, size_t *used)
{
    return at < length ? ort_utf8_decode(text + at, length - at, used) : UINT32_MAX;
}

bool ort_regex_full_match(const ort_regex *regex, const char *text, size_t length, void *scratch)
{
    matcher m = begin_match(regex, scratch);
    size_t at = 0, used = 0;
    uint32_t c = decode(text, length, 0, &used);
    add_thread(&m, &m.now, 0, 0, UINT32_MAX, c);
    while (c != UINT32_MAX && m.now.count > 0 && !ort_pace_over(&m.pace, 10 * m.now.count)) {
        at += used;
        uint32_t after = decode(text, length, at, &used);
        step(&m, c, after, SIZE_MAX);
        c = after;
    }
    return c == UINT32_MAX && m.now.count > 0 && m.matched;
}

/* ---- searching */

/* The code point that ends at byte `at`. */
static uint32_t code_before(const char *text, size_t at)
{
    size_t first = at, used;
    if (at == 0)
        return UINT32_MAX;
    do
        first--;
    while (first > 0 && at - first < 4 && ((unsigned char)text[first] & 0xc0) == 0x80);
    return ort_utf8_decode(text + first, at - first, &used);
}

/* The earliest start of a match that ends here. */
static bool earliest_match(const matcher *m, size_t *start)
{
    for (uint32_t i = 0; m->matched && i < m->now.count; i++)
        if (m->regex->code[m->now.dense[i]].code == OP_MATCH) {
            *start = m->now.start[i];
            return true;
        }
    return false;
}

bool ort_regex_search(const ort_regex *regex, const char *text, size_t length, size_t from,
                      size_t *begin, size_t *end, void *scratch)
{
    matcher m = begin_match(regex, scratch);
    size_t at = from, used = 0, start;
    uint32_t before = code_before(text, from), c = decode(text, length, from, &used);
    bool found = false;
    for (;;) {
        if (!found) /* a match may begin here; it comes behind all that began earlier */
            add_thread(&m, &m.now, 0, at, before, c);
        if (earliest_match(&m, &start) && (!found || start <= *begin)) {
            *begin = start;
            *end = at;
            found = true;
        }
        if (c == UINT32_MAX || (found && m.now.count == 0) ||
            ort_pace_over(&m.pace, 10 * m.now.count))
            return found;
        at += used;
        before = c;
        uint32_t after = decode(text, length, at, &used);
        step(&m, before, after, found ? *begin : SIZE_MAX);
        c = after;
    }
}

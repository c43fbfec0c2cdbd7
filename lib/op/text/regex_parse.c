/* regex_parse.c - RE2 syntax to a tree; recursive descent over code points.
 *
 * Flags (i m s U) are part of the parser's state and end with their group. Case folding is done
 * here: under `i` every set gains the other case of its members. Concatenation and alternation are
 * built as right-leaning chains; MAX_DEPTH bounds nesting, MAX_NODES the size.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "op/text/regex_tree.h"
#include "op/text/unicode.h"

#define MAX_DEPTH 200
#define MAX_NODES 20000
#define MAX_REPEAT 1000
#define LAST_CODE 0x10ffffu

typedef ORT_VEC(ort_regex_range) range_list;

typedef struct parser {
    ort_arena *arena;
    const char *text;
    size_t length, at;
    bool fold, multi, dot_all, literal; /* flags i, m, s; inside \Q...\E */
    int depth, nodes;
    ort_error *err;
    ort_status status;
} parser;

static ort_regex_node *fail(parser *p, const char *what)
{
    if (p->status == ORT_OK)
        p->status = ort_error_set(p->err, ORT_ERROR_MODEL,
                                  "regular expression '%.*s', byte %zu: %s",
                                  (int)(p->length < 200 ? p->length : 200), p->text, p->at, what);
    return NULL;
}

static ort_regex_node *refuse(parser *p, const char *what)
{
    fail(p, what);
    p->status = ORT_ERROR_UNSUPPORTED;
    if (p->err)
        p->err->status = p->status;
    return NULL;
}

static ort_regex_node *new_node(parser *p, ort_regex_kind kind)
{
    if (++p->nodes > MAX_NODES)
        return refuse(p, "it is too large");
    ort_regex_node *node = ort_arena_alloc(p->arena, sizeof *node);
    if (!node) {
        p->status = ort_error_memory(p->err, sizeof *node);
        return NULL;
    }
    node->kind = kind;
    return node;
}

static bool more(const parser *p)
{
    return p->at < p->length;
}

static bool take(parser *p, const char *word)
{
    size_t n = strlen(word);
    if (p->length - p->at < n || memcmp(p->text + p->at, word, n))
        return false;
    p->at += n;
    return true;
}

static uint32_t next_code(parser *p)
{
    size_t used;
    uint32_t c = ort_utf8_decode(p->text + p->at, p->length - p->at, &used);
    p->at += used;
    return c;
}

/* ---- sets */

static void add_range(parser *p, range_list *list, uint32_t first, uint32_t last)
{
    ort_regex_range range = {first, last};
    if (!ort_vec_push(list, range) && p->status == ORT_OK)
        p->status = ort_error_memory(p->err, sizeof range);
}

static int by_first(const void *a, const void *b)
{
    const ort_regex_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static void normalize(range_list *list)
{
    size_t kept = 0;
    if (list->count == 0)
        return;
    qsort(list->data, list->count, sizeof *list->data, by_first);
    for (size_t i = 1; i < list->count; i++) {
        ort_regex_range *last = &list->data[kept];
        if (list->data[i].first <= last->last + 1) {
            if (list->data[i].last > last->last)
                last->last = list->data[i].last;
        } else {
            list->data[++kept] = list->data[i];
        }
    }
    list->count = kept + 1;
}

static void negate(parser *p, range_list *list)
{
    range_list out = {0};
    uint32_t next = 0;
    normalize(list);
    for (size_t i = 0; i < list->count; i++) {
        if (list->data[i].first > next)
            add_range(p, &out, next, list->data[i].first - 1);
        next = list->data[i].last + 1;
    }
    if (next <= LAST_CODE)
        add_range(p, &out, next, LAST_CODE);
    ort_vec_release(list);
    *list = out;
}

static void add_folded(parser *p, range_list *list)
{
    size_t given = list->count;
    for (size_t i = 0; i < given; i++) {
        ort_regex_range r = list->data[i];
        for (uint32_t c = r.first; c <= r.last && c < 0x1e944; c++) {
            uint32_t lower = ort_unicode_lower(c), upper = ort_unicode_upper(c);
            if (lower < r.first || lower > r.last)
                add_range(p, list, lower, lower);
            if (upper < r.first || upper > r.last)
                add_range(p, list, upper, upper);
        }
    }
}

/* Consumes the list. */
static ort_regex_node *set_node(parser *p, range_list *list, bool negated)
{
    if (p->fold)
        add_folded(p, list);
    normalize(list);
    if (negated)
        negate(p, list);
    ort_regex_node *node = p->status == ORT_OK ? new_node(p, ORT_REGEX_SET) : NULL;
    if (node) {
        node->set.count = list->count;
        node->set.ranges = ort_arena_array(p->arena, list->count + 1, sizeof *list->data);
        if (!node->set.ranges)
            p->status = ort_error_memory(p->err, list->count * sizeof *list->data);
        else if (list->count > 0)
            memcpy(node->set.ranges, list->data, list->count * sizeof *list->data);
    }
    ort_vec_release(list);
    return p->status == ORT_OK ? node : NULL;
}

static ort_regex_node *code_node(parser *p, uint32_t c)
{
    range_list list = {0};
    add_range(p, &list, c, c);
    return set_node(p, &list, false);
}

static void merge_class(parser *p, range_list *into, range_list *from, bool negated)
{
    if (negated)
        negate(p, from);
    for (size_t i = 0; i < from->count; i++)
        add_range(p, into, from->data[i].first, from->data[i].last);
    ort_vec_release(from);
}

static const struct named_class {
    const char *name;
    ort_regex_range ranges[4];
    int count;
} posix_classes[] = {
    {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}, 2},
    {"ascii", {{0, 0x7f}}, 1},
    {"blank", {{'\t', '\t'}, {' ', ' '}}, 2},
    {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}, 2},
    {"digit", {{'0', '9'}}, 1},
    {"graph", {{'!', '~'}}, 1},
    {"lower", {{'a', 'z'}}, 1},
    {"print", {{' ', '~'}}, 1},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
    {"space", {{'\t', '\r'}, {' ', ' '}}, 2},
    {"upper", {{'A', 'Z'}}, 1},
    {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
};

/* \d \s \w and their negations at the present position ("\\" already taken). */
static bool perl_class(parser *p, range_list *list)
{
    range_list own = {0};
    char c = more(p) ? p->text[p->at] : 0;
    switch (c | 32) {
    case 'd':
        add_range(p, &own, '0', '9');
        break;
    case 's':
        add_range(p, &own, '\t', '\n');
        add_range(p, &own, '\f', '\r');
        add_range(p, &own, ' ', ' ');
        break;
    case 'w':
        add_range(p, &own, '0', '9');
        add_range(p, &own, 'A', 'Z');
        add_range(p, &own, '_', '_');
        add_range(p, &own, 'a', 'z');
        break;
    default:
        return false;
    }
    p->at++;
    merge_class(p, list, &own, c < 'a');
    return true;
}

static bool posix_class(parser *p, range_list *list)
{
    size_t start = p->at;
    if (!take(p, "[:"))
        return false;
    bool negated = take(p, "^");
    for (size_t i = 0; i < sizeof posix_classes / sizeof *posix_classes; i++) {
        const struct named_class *named = &posix_classes[i];
        size_t back = p->at;
        if (take(p, named->name) && take(p, ":]")) {
            range_list own = {0};
            for (int k = 0; k < named->count; k++)
                add_range(p, &own, named->ranges[k].first, named->ranges[k].last);
            merge_class(p, list, &own, negated);
            return true;
        }
        p->at = back;
    }
    p->at = start;
    return false;
}

/* ---- escapes */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static bool hex_escape(parser *p, uint32_t *out)
{
    uint32_t c = 0;
    int digits = 0;
    bool braces = take(p, "{");
    while (more(p) && hex_digit(p->text[p->at]) >= 0 && digits < (braces ? 8 : 2)) {
        c = c * 16 + (uint32_t)hex_digit(p->text[p->at++]);
        digits++;
    }
    if (digits == 0 || (braces ? !take(p, "}") : digits != 2) || c > LAST_CODE) {
        fail(p, "bad \\x escape");
        return false;
    }
    *out = c;
    return true;
}

/* A one-character escape after "\\"; false when it failed. */
static bool escape_code(parser *p, uint32_t *out)
{
    if (!more(p)) {
        fail(p, "trailing backslash");
        return false;
    }
    unsigned char c = (unsigned char)p->text[p->at];
    static const char names[] = "aftnrv", codes[] = "\a\f\t\n\r\v";
    const char *found = c < 0x80 ? strchr(names, c) : NULL;
    if (c == 'x') {
        p->at++;
        return hex_escape(p, out);
    }
    if (found && *found) {
        p->at++;
        *out = (uint32_t)codes[found - names];
        return true;
    }
    bool octal = c == '0' || (c >= '1' && c <= '7' && p->at + 1 < p->length &&
                              p->text[p->at + 1] >= '0' && p->text[p->at + 1] <= '7');
    if (octal) {
        *out = 0;
        for (int i = 0; i < 3 && more(p) && p->text[p->at] >= '0' && p->text[p->at] <= '7'; i++)
            *out = *out * 8 + (uint32_t)(p->text[p->at++] - '0');
        return true;
    }
    if (c >= '0' && c <= '9') {
        refuse(p, "back-references can't be matched in linear time");
        return false;
    }
    if (c == 'p' || c == 'P' || c == 'C' || c == 'X') {
        refuse(p, "\\p, \\P, \\X and \\C aren't supported; write the ranges of code points");
        return false;
    }
    if ((c | 32) >= 'a' && (c | 32) <= 'z') {
        fail(p, "unknown escape");
        return false;
    }
    *out = next_code(p);
    return true;
}

/* ---- grammar */

static ort_regex_node *parse_alternatives(parser *p);

static bool class_code(parser *p, uint32_t *out)
{
    if (take(p, "\\"))
        return escape_code(p, out);
    *out = next_code(p);
    return true;
}

static ort_regex_node *parse_class(parser *p)
{
    range_list list = {0};
    bool negated = take(p, "^"), first = true;
    while (more(p) && (first || p->text[p->at] != ']')) {
        uint32_t low, high;
        first = false;
        if (posix_class(p, &list))
            continue;
        if (p->text[p->at] == '\\') {
            p->at++;
            if (perl_class(p, &list))
                continue;
            p->at--;
        }
        if (!class_code(p, &low))
            break;
        high = low;
        if (p->length - p->at >= 2 && p->text[p->at] == '-' && p->text[p->at + 1] != ']') {
            p->at++;
            if (!class_code(p, &high))
                break;
        }
        if (high < low) {
            fail(p, "a range of a class ends before it begins");
            break;
        }
        add_range(p, &list, low, high);
    }
    if (p->status == ORT_OK && !take(p, "]"))
        fail(p, "missing ]");
    if (p->status != ORT_OK) {
        ort_vec_release(&list);
        return NULL;
    }
    return set_node(p, &list, negated);
}

static ort_regex_node *assertion_node(parser *p, ort_regex_assertion assertion)
{
    ort_regex_node *node = new_node(p, ORT_REGEX_ASSERT);
    if (node)
        node->assertion = assertion;
    return node;
}

/* "(?flags)" or "(?flags:"; *group tells which. */
static bool parse_flags(parser *p, bool *group)
{
    bool on = true;
    while (more(p)) {
        char c = p->text[p->at++];
        switch (c) {
        case 'i':
            p->fold = on;
            break;
        case 'm':
            p->multi = on;
            break;
        case 's':
            p->dot_all = on;
            break;
        case 'U': /* swaps lazy and greedy: no difference to a full match */
            break;
        case '-':
            if (!on)
                return fail(p, "two - in flags") != NULL;
            on = false;
            continue;
        case ':':
        case ')':
            *group = c == ':';
            return true;
        default:
            if (c == '=' || c == '!' || c == '<')
                return refuse(p, "look-around can't be matched in linear time") != NULL;
            return fail(p, "unknown group flag") != NULL;
        }
    }
    return fail(p, "missing )") != NULL;
}

static bool skip_name(parser *p)
{
    size_t start = p->at;
    while (more(p) && p->text[p->at] != '>')
        p->at++;
    if (p->at == start || !take(p, ">"))
        return fail(p, "bad group name") != NULL;
    return true;
}

static ort_regex_node *parse_group(parser *p)
{
    bool fold = p->fold, multi = p->multi, dot_all = p->dot_all, group = true;
    bool named = take(p, "?P<");
    if (!named && p->length - p->at > 2 && p->text[p->at + 2] != '=' && p->text[p->at + 2] != '!')
        named = take(p, "?<");
    if (named) {
        if (!skip_name(p))
            return NULL;
    } else if (take(p, "?")) {
        if (!parse_flags(p, &group))
            return NULL;
        if (!group) /* flags hold to the end of the enclosing group */
            return new_node(p, ORT_REGEX_EMPTY);
    }
    if (++p->depth > MAX_DEPTH)
        return refuse(p, "groups are nested too deeply");
    ort_regex_node *node = parse_alternatives(p);
    p->depth--;
    if (node && !take(p, ")"))
        return fail(p, "missing )");
    p->fold = fold;
    p->multi = multi;
    p->dot_all = dot_all;
    return node;
}

static ort_regex_node *parse_escape(parser *p)
{
    range_list list = {0};
    uint32_t c = 0;
    if (perl_class(p, &list)) {
        bool fold = p->fold;
        p->fold = false; /* closed under case already */
        ort_regex_node *node = set_node(p, &list, false);
        p->fold = fold;
        return node;
    }
    if (take(p, "A"))
        return assertion_node(p, ORT_REGEX_TEXT_BEGIN);
    if (take(p, "z"))
        return assertion_node(p, ORT_REGEX_TEXT_END);
    if (take(p, "b"))
        return assertion_node(p, ORT_REGEX_WORD);
    if (take(p, "B"))
        return assertion_node(p, ORT_REGEX_NOT_WORD);
    if (take(p, "Q")) {
        p->literal = !take(p, "\\E");
        return new_node(p, ORT_REGEX_EMPTY);
    }
    if (take(p, "E"))
        return new_node(p, ORT_REGEX_EMPTY);
    return escape_code(p, &c) ? code_node(p, c) : NULL;
}

static ort_regex_node *any_node(parser *p)
{
    range_list list = {0};
    bool fold = p->fold;
    if (p->dot_all) {
        add_range(p, &list, 0, LAST_CODE);
    } else {
        add_range(p, &list, 0, '\n' - 1);
        add_range(p, &list, '\n' + 1, LAST_CODE);
    }
    p->fold = false;
    ort_regex_node *node = set_node(p, &list, false);
    p->fold = fold;
    return node;
}

static ort_regex_node *parse_atom(parser *p)
{
    if (p->literal)
        return code_node(p, next_code(p));
    char c = p->text[p->at];
    switch (c) {
    case '(':
        p->at++;
        return parse_group(p);
    case '[':
        p->at++;
        return parse_class(p);
    case '.':
        p->at++;
        return any_node(p);
    case '^':
        p->at++;
        return assertion_node(p, p->multi ? ORT_REGEX_LINE_BEGIN : ORT_REGEX_TEXT_BEGIN);
    case '$':
        p->at++;
        return assertion_node(p, p->multi ? ORT_REGEX_LINE_END : ORT_REGEX_TEXT_END);
    case '\\':
        p->at++;
        return parse_escape(p);
    case '*':
    case '+':
    case '?':
        return fail(p, "a repetition of nothing");
    default:
        return code_node(p, next_code(p));
    }
}

static bool read_number(parser *p, int *out)
{
    int n = 0, digits = 0;
    while (more(p) && p->text[p->at] >= '0' && p->text[p->at] <= '9' && digits < 9) {
        n = n * 10 + (p->text[p->at++] - '0');
        digits++;
    }
    *out = n;
    return digits > 0;
}

/* "{n}", "{n,}" or "{n,m}" at the present position; anything else in braces is literal text. */
static bool counted(parser *p, int *min, int *max)
{
    size_t start = p->at;
    if (take(p, "{") && read_number(p, min)) {
        *max = *min;
        if (take(p, ",") && !read_number(p, max))
            *max = -1;
        if (take(p, "}"))
            return true;
    }
    p->at = start;
    return false;
}

static ort_regex_node *parse_repeat(parser *p)
{
    ort_regex_node *node = parse_atom(p);
    bool repeated = false;
    if (p->literal && take(p, "\\E"))
        p->literal = false;
    while (node && more(p) && !p->literal) {
        int min = 0, max = -1;
        if (take(p, "+"))
            min = 1;
        else if (take(p, "?"))
            max = 1;
        else if (!take(p, "*") && !counted(p, &min, &max))
            break;
        if (repeated)
            return fail(p, "two repetitions in a row; group the first");
        if (min > MAX_REPEAT || max > MAX_REPEAT || (max >= 0 && max < min))
            return fail(p, "bad repetition count (at most 1000)");
        take(p, "?"); /* lazy: no difference to a full match */
        ort_regex_node *repeat = new_node(p, ORT_REGEX_REPEAT);
        if (!repeat)
            return NULL;
        repeat->left = node;
        repeat->min = min;
        repeat->max = max;
        node = repeat;
        repeated = true;
    }
    return node;
}

/* Put `item` at the end of the right-leaning chain *root of `kind`; *tail is where it grows. */
static bool chain(parser *p, ort_regex_kind kind, ort_regex_node **root, ort_regex_node ***tail,
                  ort_regex_node *item)
{
    if (!item)
        return false;
    if (!*root) {
        *root = item;
        *tail = root;
        return true;
    }
    ort_regex_node *node = new_node(p, kind);
    if (!node)
        return false;
    node->left = **tail;
    node->right = item;
    **tail = node;
    *tail = &node->right;
    return true;
}

static ort_regex_node *parse_sequence(parser *p)
{
    ort_regex_node *root = NULL, **tail = NULL;
    while (more(p)) {
        if (!p->literal && (p->text[p->at] == '|' || p->text[p->at] == ')'))
            break;
        if (!chain(p, ORT_REGEX_CAT, &root, &tail, parse_repeat(p)))
            return NULL;
    }
    return root ? root : new_node(p, ORT_REGEX_EMPTY);
}

static ort_regex_node *parse_alternatives(parser *p)
{
    ort_regex_node *root = NULL, **tail = NULL;
    do {
        if (!chain(p, ORT_REGEX_ALT, &root, &tail, parse_sequence(p)))
            return NULL;
    } while (take(p, "|"));
    return root;
}

ort_status ort_regex_parse(ort_arena *arena, const char *pattern, size_t length,
                           ort_regex_node **root, ort_error *err)
{
    parser p = {.arena = arena, .text = pattern, .length = length, .err = err};
    *root = parse_alternatives(&p);
    if (p.status == ORT_OK && more(&p))
        fail(&p, "unmatched )");
    return p.status;
}

/* nearest.c - names that a mistyped word may have meant (nearest.h). */
#include "base/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ort.h"

/* Longer names are no slips of the finger: they are compared by what they hold alone. */
enum { LONGEST_WORD = 63, TOO_FAR = 1000 };

void ort_nearest_begin(ort_nearest *n, const char *word) { *n = (ort_nearest){.word = word}; }

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static int folded(char c) { return tolower((unsigned char)c); }

/* Three rows of the table of distances of beginnings. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][LONGEST_WORD + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t other = folded(a[i - 1]) != folded(b[j - 1]);
            now[j] = least(least(before[j] + 1, now[j - 1] + 1), before[j - 1] + other);
            if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
                folded(a[i - 2]) == folded(b[j - 1]))
                now[j] = least(now[j], earlier[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

/* One slip for every three letters, two of short words at most. */
static size_t judged(const char *word, const char *name)
{
    size_t n = strlen(word), m = strlen(name);
    bool holds = n >= 3 && m > n && strcasestr(name, word) != NULL;
    if (n == 0 || n > LONGEST_WORD || m > LONGEST_WORD)
        return holds ? LONGEST_WORD : TOO_FAR;
    size_t d = distance(word, n, name, m);
    size_t reach = n <= 3 ? 1 : n <= 6 ? 2 : n / 3;
    if (d <= reach && d < (n > m ? n : m))
        return d;
    return holds ? reach + 1 + (m - n) / 8 : TOO_FAR;
}

void ort_nearest_try(ort_nearest *n, const char *name)
{
    size_t d = judged(n->word, name), at = n->count;
    for (size_t i = 0; i < n->count; i++)
        if (!strcmp(n->name[i], name))
            return;
    while (at > 0 && n->distance[at - 1] > d)
        at--;
    if (d >= TOO_FAR || at == ORT_NEAREST_KEPT)
        return;
    if (n->count < ORT_NEAREST_KEPT)
        n->count++;
    for (size_t i = n->count - 1; i > at; i--) {
        n->name[i] = n->name[i - 1];
        n->distance[i] = n->distance[i - 1];
    }
    n->name[at] = name;
    n->distance[at] = d;
}

const char *ort_nearest_text(const ort_nearest *n, char *text, size_t size)
{
    size_t used = 0;
    if (size > 0)
        text[0] = '\0';
    for (size_t i = 0; i < n->count && used < size; i++) {
        int more = snprintf(text + used, size - used, "%s'%.80s'%s",
                            i == 0              ? " (did you mean "
                            : i + 1 < n->count ? ", "
                                                : " or ",
                            n->name[i], i + 1 == n->count ? "?)" : "");
        used += (size_t)more;
    }
    return text;
}

const char *ort_did_you_mean(const char *word, const char *const *names, size_t count, char *text,
                             size_t size)
{
    ort_nearest n;
    if (!text || !size)
        return "";
    if (!word || !names)
        count = 0;
    ort_nearest_begin(&n, word ? word : "");
    for (size_t i = 0; i < count; i++)
        ort_nearest_try(&n, names[i]);
    return ort_nearest_text(&n, text, size);
}

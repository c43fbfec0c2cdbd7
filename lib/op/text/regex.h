/* regex.h - regular expressions of RE2's syntax that match in time linear in the text.
 *
 * Supported: literals, '.', classes with ranges, negation, \d \D \s \S \w \W and POSIX names,
 * groups (also named and non-capturing), alternation, * + ? {n,m} and their lazy forms, ^ $ \A \z
 * \b \B, escapes (\a \f \t \n \r \v, octal, \xHH, \x{H...}, \Q...\E), flags i m s U. Code points
 * are those of UTF-8. Refused with a message: \p classes, \C, back-references, look-around (RE2
 * has neither of the last two).
 */
#ifndef ORT_OP_TEXT_REGEX_H
#define ORT_OP_TEXT_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct ort_regex ort_regex;

/* The program and all it needs live in `arena`. */
ort_status ort_regex_compile(ort_arena *arena, const char *pattern, size_t length,
                             ort_regex **regex, ort_error *err);
/* Bytes of scratch memory (aligned as malloc's) that one match or search needs. */
size_t ort_regex_scratch_bytes(const ort_regex *regex);
/* Does the whole text match? */
bool ort_regex_full_match(const ort_regex *regex, const char *text, size_t length, void *scratch);
/* The first match that begins at byte `from` or behind it, and of those that begin there the
 * longest: bytes [*begin, *end). Assertions see the text before `from`. */
bool ort_regex_search(const ort_regex *regex, const char *text, size_t length, size_t from,
                      size_t *begin, size_t *end, void *scratch);

#endif

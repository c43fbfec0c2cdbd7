/* test_text.c - regular expressions and Unicode as the string operators use them. */
#include <stdlib.h>

#include "base/arena.h"
#include "op/text/regex.h"
#include "op/text/unicode.h"
#include "test.h"

/* 1: full match, 0: none, -1: refused. */
static int match(const char *pattern, const char *text)
{
    ort_arena arena = {0};
    ort_regex *regex = NULL;
    int result = -1;
    if (ort_regex_compile(&arena, pattern, strlen(pattern), &regex, NULL) == ORT_OK) {
        void *scratch = malloc(ort_regex_scratch_bytes(regex));
        result = scratch && ort_regex_full_match(regex, text, strlen(text), scratch);
        free(scratch);
    }
    ort_arena_release(&arena);
    return result;
}

static void whole_text_must_match(test_state *test)
{
    CHECK(match("a|b|cd", "cd") == 1 && match("a|b|cd", "ab") == 0);
    CHECK(match("(a|b)*abb", "aababb") == 1 && match("(a|b)*abb", "aabab") == 0);
    CHECK(match("", "") == 1 && match("", "a") == 0 && match("a||b", "") == 1);
    CHECK(match("(ab|a)(bc|c)?", "abc") == 1 && match("(a*)*b", "aaab") == 1);
}

static void repetitions(test_state *test)
{
    CHECK(match("a{2,4}b?", "aaab") == 1 && match("a{2,4}b?", "a") == 0);
    CHECK(match("a{2,}", "aaaaaa") == 1 && match("a{3}", "aa") == 0 && match("x{0}y", "y") == 1);
    CHECK(match("a{,2}", "a{,2}") == 1 && match("a+?b*?", "ab") == 1);
    CHECK(match("a{1001}", "") == -1 && match("((a{1000}){1000}){9}", "") == -1);
    CHECK(match("a**", "") == -1 && match("*a", "") == -1);
}

static void classes(test_state *test)
{
    CHECK(match("[^a-c]+", "xyz") == 1 && match("[^a-c]+", "xbz") == 0);
    CHECK(match("[]a]+", "]a") == 1 && match("[\\d\\-x]+", "1-x") == 1);
    CHECK(match("[[:alpha:]]+[[:^digit:]]", "ab!") == 1 && match("\\W\\S\\D", " ab") == 1);
    CHECK(match("[b-a]", "") == -1 && match("[a", "") == -1);
}

static void escapes_and_anchors(test_state *test)
{
    CHECK(match("\\x41\\x{42}\\103\\t", "ABC\t") == 1 && match("\\Qa.b*\\E+", "a.b**") == 1);
    CHECK(match("^\\w+@\\w+\\.(com|org)$", "me@x.org") == 1 && match("\\Aab\\z", "ab") == 1);
    CHECK(match("\\bfoo\\b.*", "foo bar") == 1 && match("\\bfoo\\b.*", "foobar") == 0);
    CHECK(match("a\n^b$", "a\nb") == 0 && match("(?m)a\n^b$", "a\nb") == 1);
    CHECK(match("\\p{L}", "") == -1 && match("(?=a)", "") == -1 && match("(a)\\1", "aa") == -1);
}

static void flags_and_code_points(test_state *test)
{
    CHECK(match("a(?i)b(c)", "aBC") == 1 && match("a(?i)b(c)", "ABC") == 0);
    CHECK(match("(?i:stra\u00dfe)\\d*", "STRA\u00dfE12") == 1);
    CHECK(match(".", "\u00e9") == 1 && match(".", "\n") == 0 && match("(?s).", "\n") == 1);
    CHECK(match("[\u00e0-\u00fc]{2}", "\u00e9\u00ea") == 1);
    CHECK(match("(?P<n>\u0416)+", "\u0416\u0416") == 1);
}

static void time_is_linear(test_state *test)
{
    char text[5001], pattern[200];
    size_t n = 0;
    memset(text, 'a', 5000);
    text[5000] = '\0';
    for (int i = 0; i < 30; i++, n += 6)
        memcpy(pattern + n, "a?a?a*", 6);
    memcpy(pattern + n, "b", 2);
    CHECK(match(pattern, text) == 0); /* backtracking would never end */
}

static void utf8_round_trip(test_state *test)
{
    for (uint32_t c = 0; c < 0x110000; c += c < 0x11000 ? 1 : 257) {
        char bytes[4];
        size_t used, n = ort_utf8_encode(c, bytes);
        if (c >= 0xd800 && c < 0xe000)
            continue;
        CHECK(ort_utf8_decode(bytes, n, &used) == c && used == n);
    }
    size_t used;
    CHECK(ort_utf8_decode("\xc0\x80", 2, &used) == 0xfffd && used == 1);
    CHECK(ort_utf8_decode("\xe2\x82", 2, &used) == 0xfffd && used == 1);
    CHECK(ort_utf8_decode("\xed\xa0\x80", 3, &used) == 0xfffd && used == 1);
}

static void case_mapping(test_state *test)
{
    CHECK(ort_unicode_upper('q') == 'Q' && ort_unicode_lower('Q') == 'q');
    CHECK(ort_unicode_upper(0xe9) == 0xc9 && ort_unicode_lower(0x416) == 0x436);
    CHECK(ort_unicode_upper(0x3b1) == 0x391 && ort_unicode_lower(0x100) == 0x101);
    CHECK(ort_unicode_upper(0xdf) == 0xdf && ort_unicode_lower(0x130) == 'i');
    CHECK(ort_unicode_lower(0x10400) == 0x10428 && ort_unicode_upper(0x10ffff) == 0x10ffff);
}

int main(void)
{
    test_state test = {.failures = 0};
    RUN(&test, whole_text_must_match);
    RUN(&test, repetitions);
    RUN(&test, classes);
    RUN(&test, escapes_and_anchors);
    RUN(&test, flags_and_code_points);
    RUN(&test, time_is_linear);
    RUN(&test, utf8_round_trip);
    RUN(&test, case_mapping);
    return test.failures != 0;
}

/* mt19937.c - see mt19937.h. The order in which words are used up is the contract: every function
 * takes as many as numpy's does, also where a number could be had for less. */
#include "base/mt19937.h"

#include <math.h>

enum { WORDS = ORT_MT19937_WORDS, MIDDLE = 397 };

static void seed_word(ort_mt19937 *mt, uint32_t seed)
{
    mt->word[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++)
        mt->word[i] = 1812433253u * (mt->word[i - 1] ^ (mt->word[i - 1] >> 30)) + i;
    mt->next = WORDS;
    mt->has_spare = false;
    mt->spare = 0;
}

void ort_mt19937_seed_words(ort_mt19937 *mt, const uint32_t *key, size_t count)
{
    uint32_t *s = mt->word, i = 1;
    size_t rounds = count > WORDS ? count : WORDS;
    seed_word(mt, 19650218u);
    for (size_t k = 0; k < rounds; k++) {
        size_t j = k % count;
        s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1664525u)) + key[j] + (uint32_t)j;
        if (++i == WORDS) {
            s[0] = s[WORDS - 1];
            i = 1;
        }
    }
    for (size_t k = 1; k < WORDS; k++) {
        s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1566083941u)) - i;
        if (++i == WORDS) {
            s[0] = s[WORDS - 1];
            i = 1;
        }
    }
    s[0] = 0x80000000u;
}

void ort_mt19937_seed(ort_mt19937 *mt, uint64_t seed)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    if (key[1])
        ort_mt19937_seed_words(mt, key, 2);
    else
        seed_word(mt, key[0]);
}

static uint32_t twist(uint32_t upper, uint32_t lower)
{
    uint32_t y = (upper & 0x80000000u) | (lower & 0x7fffffffu);
    return (y >> 1) ^ (lower & 1 ? 0x9908b0dfu : 0);
}

static void next_block(ort_mt19937 *mt)
{
    uint32_t *s = mt->word;
    for (int i = 0; i < WORDS - MIDDLE; i++)
        s[i] = s[i + MIDDLE] ^ twist(s[i], s[i + 1]);
    for (int i = WORDS - MIDDLE; i < WORDS - 1; i++)
        s[i] = s[i + MIDDLE - WORDS] ^ twist(s[i], s[i + 1]);
    s[WORDS - 1] = s[MIDDLE - 1] ^ twist(s[WORDS - 1], s[0]);
    mt->next = 0;
}

uint32_t ort_mt19937_word(ort_mt19937 *mt)
{
    if (mt->next == WORDS)
        next_block(mt);
    uint32_t y = mt->word[mt->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

double ort_mt19937_uniform(ort_mt19937 *mt)
{
    uint32_t high = ort_mt19937_word(mt) >> 5, low = ort_mt19937_word(mt) >> 6;
    return ((double)high * 0x1p26 + (double)low) * 0x1p-53;
}

double ort_mt19937_normal(ort_mt19937 *mt)
{
    double x, y, square;
    if (mt->has_spare) {
        mt->has_spare = false;
        return mt->spare;
    }
    do {
        x = 2 * ort_mt19937_uniform(mt) - 1;
        y = 2 * ort_mt19937_uniform(mt) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    double factor = sqrt(-2 * log(square) / square);
    mt->spare = factor * x;
    mt->has_spare = true;
    return factor * y;
}

/* p of at most a half. The chance of no success is formed by exp and log, as numpy has it for n
 * trials, and may miss 1 - p by a rounding; a number beyond both outcomes is drawn again. */
static bool invert(ort_mt19937 *mt, double p)
{
    double q = 1 - p, none = exp(log(q)), one = p * none / q, u;
    do {
        u = ort_mt19937_uniform(mt);
        if (u <= none)
            return false;
    } while (u - none > one);
    return true;
}

bool ort_mt19937_bernoulli(ort_mt19937 *mt, double p)
{
    return p <= 0.5 ? invert(mt, p) : !invert(mt, 1 - p);
}

void ort_mt19937_skip(ort_mt19937 *mt, uint64_t count)
{
    while (count-- > 0)
        ort_mt19937_uniform(mt);
}

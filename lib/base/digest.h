/* digest.h - a 64-bit digest of large blocks, at the speed of memory: finds damage, not malice.
 *
 * Four lanes of 128-bit products (as in wyhash, github.com/wangyi-fudan/wyhash) over little-endian
 * words: the same on all machines. Damage goes unnoticed with a chance of about 2^-63.
 */
#ifndef ORT_BASE_DIGEST_H
#define ORT_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

uint64_t ort_digest(const void *bytes, size_t count);

#endif

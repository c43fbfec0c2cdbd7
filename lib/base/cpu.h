/* cpu.h - what this machine has: instruction sets (CPUID and XGETBV), caches, usable processors. */
#ifndef ORT_BASE_CPU_H
#define ORT_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ort_cpu {
    bool avx2;        /* AVX2, FMA and F16C, enabled by the system */
    bool avx512;      /* AVX-512 F, BW, DQ, VL, enabled by the system */
    bool avx512_vnni;
    bool avx512_vbmi;
    bool avx_vnni;
    bool avx512_bf16;
    bool avx512_fp16;
    bool avx512_shares_units; /* all work on 512 bits is done in the two units of products
                                 (Intel's processors), not beside them */
    bool avx512_by_halves;    /* 512 bits take twice the time of 256 (Zen 4) */
    bool adds_apart;          /* floats are added in units of their own, beside multiply-adds (AMD's
                                 processors with AVX-512) */
    bool amx_int8;
    bool amx_bf16;
    size_t l2_bytes;  /* of one core, as the C library says; 512 KiB where it can't */
} ort_cpu;

typedef struct ort_cpu_caches { /* guesses when unknown */
    size_t l1d_bytes, l2_bytes, l3_bytes; /* per core, per core, shared */
} ort_cpu_caches;

/* Linux saves tile registers (amx_*) only for processes that ask: true where it does now. Threads
 * share it, those that run already too. */
bool ort_cpu_permit_tiles(void);

const ort_cpu *ort_cpu_get(void); /* detected once; thread-safe */
/* Read from sysfs at each call: most processes never ask. */
ort_cpu_caches ort_cpu_find_caches(void);

/* Processors this process may use: the affinity mask, cut by the cgroup v1/v2 CPU quota (rounded
 * up), at least 1. */
int ort_cpu_count_usable(void);

/* Processors of the machine when this process may use them all (affinity mask, quota), else 0. */
int ort_cpu_count_whole(void);
/* Threads of the whole machine that run or are ready to, this one included; 0 when unknown. Takes
 * some microseconds, allocates nothing. */
int ort_cpu_count_running(void);

/* What the processor calls itself, and the bytes of the machine's memory: for reports. Returns
 * `text`. */
char *ort_cpu_name(char *text, size_t size);
uint64_t ort_cpu_memory(void);

/* Set flush-to-zero and denormals-are-zero for this thread (`flush`) or clear both; returns the
 * previous control word for ort_cpu_restore_fp. */
unsigned ort_cpu_set_flush(bool flush);
void ort_cpu_restore_fp(unsigned control);
/* The control word of this thread, for ort_cpu_restore_fp on another. */
unsigned ort_cpu_get_fp(void);

#endif

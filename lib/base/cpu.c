/* cpu.c - what this machine has, asked once: CPUID and XGETBV for instruction sets, sysfs for
 * caches, the affinity mask and the cgroup quota for processors.
 *
 * A feature counts only when the operating system saves its registers (XCR0). */
#define _GNU_SOURCE 1
#include "base/cpu.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static ort_cpu cpu;
static pthread_once_t cpu_once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
enum {
    XCR0_AVX = 0x6,      /* xmm, ymm */
    XCR0_AVX512 = 0xe6,  /* and opmask, upper halves, zmm16-31 */
    XCR0_AMX = 0x60000,  /* tile configuration and data */
};

static uint64_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool bit(unsigned word, int index)
{
    return (word >> index & 1u) != 0;
}

static void detect_features(ort_cpu *c)
{
    unsigned a, b, cx, d;
    unsigned maker = 0;
    unsigned most = __get_cpuid_max(0, &maker); /* CPUID is slow in a virtual machine: ask little */
    if (most < 7)
        return;
    __cpuid(1, a, b, cx, d);
    const unsigned family = (a >> 8 & 0xf) + (a >> 20 & 0xff);
    if (!bit(cx, 27)) /* OSXSAVE */
        return;
    bool fma = bit(cx, 12), f16c = bit(cx, 29), avx = bit(cx, 28);
    uint64_t xcr0 = read_xcr0();
    bool ymm = (xcr0 & XCR0_AVX) == XCR0_AVX;
    bool zmm = (xcr0 & XCR0_AVX512) == XCR0_AVX512;
    bool tiles = (xcr0 & XCR0_AMX) == XCR0_AMX;
    __cpuid_count(7, 0, a, b, cx, d);
    unsigned leaves = a;
    c->avx2 = ymm && avx && fma && f16c && bit(b, 5);
    c->avx512 = c->avx2 && zmm && bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31);
    c->avx512_shares_units = c->avx512 && maker == signature_INTEL_ebx;
    c->adds_apart = c->avx512 && maker == signature_AMD_ebx;
    c->avx512_by_halves = c->adds_apart && family == 0x19;
    c->avx512_vnni = c->avx512 && bit(cx, 11);
    c->avx512_vbmi = c->avx512 && bit(cx, 1);
    c->avx512_fp16 = c->avx512 && bit(d, 23);
    c->amx_bf16 = tiles && bit(d, 22) && bit(d, 24);
    c->amx_int8 = tiles && bit(d, 25) && bit(d, 24);
    if (leaves >= 1) {
        __cpuid_count(7, 1, a, b, cx, d);
        c->avx_vnni = c->avx2 && bit(a, 4);
        c->avx512_bf16 = c->avx512 && bit(a, 5);
    }
}
#else
static void detect_features(ort_cpu *c)
{
}
#endif

#if defined(__x86_64__) && defined(__linux__) && defined(SYS_arch_prctl)
bool ort_cpu_permit_tiles(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, of Linux 5.16 */
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}
#else
bool ort_cpu_permit_tiles(void)
{
    return false;
}
#endif

/* First line of a small file without its newline; false when it can't be read. */
static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool ok = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok;
}

static size_t parse_cache_size(const char *text)
{
    char *end;
    unsigned long long size = strtoull(text, &end, 10);
    if (*end == 'K')
        size <<= 10;
    else if (*end == 'M')
        size <<= 20;
    return (size_t)size;
}

ort_cpu_caches ort_cpu_find_caches(void)
{
    ort_cpu_caches c = {.l1d_bytes = 32u << 10, .l2_bytes = 512u << 10, .l3_bytes = 8u << 20};
    for (int i = 0; i < 8; i++) {
        char path[96], level[16], type[32], size[32];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
        if (!read_line(path, level, sizeof level))
            break;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", i);
        if (!read_line(path, type, sizeof type) || !strcmp(type, "Instruction"))
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        size_t bytes = read_line(path, size, sizeof size) ? parse_cache_size(size) : 0;
        if (bytes == 0)
            continue;
        if (level[0] == '1')
            c.l1d_bytes = bytes;
        else if (level[0] == '2')
            c.l2_bytes = bytes;
        else if (level[0] == '3')
            c.l3_bytes = bytes;
    }
    return c;
}

static size_t find_l2(void)
{
#ifdef _SC_LEVEL2_CACHE_SIZE
    long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (bytes > 0)
        return (size_t)bytes;
#endif
    return 512u << 10;
}

static void detect(void)
{
    detect_features(&cpu);
    cpu.l2_bytes = find_l2();
}

const ort_cpu *ort_cpu_get(void)
{
    pthread_once(&cpu_once, detect);
    return &cpu;
}

/* Quota over period, rounded up; 0 when unlimited. */
static int quota_count(long long quota, long long period)
{
    return quota <= 0 || period <= 0 ? 0 : (int)((quota + period - 1) / period);
}

static int read_quota_v2(const char *folder)
{
    char path[1024], line[64];
    long long quota, period;
    if (snprintf(path, sizeof path, "%s/cpu.max", folder) >= (int)sizeof path ||
        !read_line(path, line, sizeof line) || sscanf(line, "%lld %lld", &quota, &period) != 2)
        return 0; /* "max 100000" has no number in front */
    return quota_count(quota, period);
}

static int read_quota_v1(const char *folder)
{
    char path[1024], quota[32], period[32];
    if (snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder) >= (int)sizeof path ||
        !read_line(path, quota, sizeof quota) ||
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder) >= (int)sizeof path ||
        !read_line(path, period, sizeof period))
        return 0;
    return quota_count(atoll(quota), atoll(period));
}

/* The smallest quota of a group and all its parents: each level can limit. Inside a container the
 * group's path may not be mounted; then only the root level is found. */
static int smallest_quota(const char *root, const char *group, int (*read_quota)(const char *))
{
    char folder[900];
    if (snprintf(folder, sizeof folder, "%s%s", root, group) >= (int)sizeof folder)
        return 0;
    size_t root_length = strlen(root);
    int smallest = 0;
    for (;;) {
        int count = read_quota(folder);
        if (count > 0 && (smallest == 0 || count < smallest))
            smallest = count;
        char *slash = strrchr(folder + root_length, '/');
        if (!slash)
            return smallest;
        *slash = '\0';
    }
}

/* One line of /proc/self/cgroup: "0::/group" (v2) or "4:cpu,cpuacct:/group" (v1). */
static int quota_of_line(char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return 0;
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (*controllers == '\0')
        return smallest_quota("/sys/fs/cgroup", group, read_quota_v2);
    bool is_cpu = !strcmp(controllers, "cpu") || !strncmp(controllers, "cpu,", 4) ||
                  strstr(controllers, ",cpu,") != NULL;
    size_t length = strlen(controllers);
    if (!is_cpu && (length < 4 || strcmp(controllers + length - 4, ",cpu")))
        return 0;
    return smallest_quota("/sys/fs/cgroup/cpu", group, read_quota_v1);
}

static int cgroup_count(void)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return 0;
    char line[900];
    int smallest = 0;
    while (fgets(line, sizeof line, file)) {
        int count = quota_of_line(line);
        if (count > 0 && (smallest == 0 || count < smallest))
            smallest = count;
    }
    fclose(file);
    return smallest;
}

static int affinity_count(void)
{
    /* The kernel refuses a mask that is too small for the machine: grow until it fits. */
    for (int cpus = 1024; cpus <= 1 << 18; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set)
            return 1;
        size_t bytes = CPU_ALLOC_SIZE(cpus);
        int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

int ort_cpu_count_usable(void)
{
    int count = affinity_count(), quota = cgroup_count();
    return quota > 0 && quota < count ? quota : count;
}

int ort_cpu_count_whole(void)
{
    int online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return ort_cpu_count_usable() == online ? online : 0;
}

/* "0.20 0.18 0.12 3/80 11206": the fourth field counts at this moment, unlike the averages. */
int ort_cpu_count_running(void)
{
    char line[64];
    int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, line, sizeof line - 1);
    close(file);
    line[length > 0 ? length : 0] = '\0';
    const char *at = line;
    for (int field = 0; field < 3 && at; field++)
        at = (at = strchr(at, ' ')) ? at + 1 : NULL;
    return at ? atoi(at) : 0;
}

#if defined(__x86_64__)
enum { MXCSR_FLUSH = 0x8040 }; /* FTZ and DAZ */

unsigned ort_cpu_get_fp(void)
{
    return _mm_getcsr();
}

void ort_cpu_restore_fp(unsigned control)
{
    _mm_setcsr(control);
}

unsigned ort_cpu_set_flush(bool flush)
{
    unsigned before = _mm_getcsr();
    _mm_setcsr(flush ? before | MXCSR_FLUSH : before & ~(unsigned)MXCSR_FLUSH);
    return before;
}
#elif defined(__aarch64__)
enum { FPCR_FLUSH = 1 << 24 };

unsigned ort_cpu_get_fp(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (unsigned)control;
}

void ort_cpu_restore_fp(unsigned control)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)control));
}

unsigned ort_cpu_set_flush(bool flush)
{
    unsigned before = ort_cpu_get_fp();
    ort_cpu_restore_fp(flush ? before | FPCR_FLUSH : before & ~(unsigned)FPCR_FLUSH);
    return before;
}
#else
unsigned ort_cpu_get_fp(void)
{
    return 0;
}

void ort_cpu_restore_fp(unsigned control)
{
}

unsigned ort_cpu_set_flush(bool flush)
{
    return 0;
}
#endif

/* ---- for reports */

char *ort_cpu_name(char *text, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    snprintf(text, size, "processor");
    while (file && fgets(line, sizeof line, file)) {
        const char *name = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !name)
            continue;
        name += 1 + strspn(name + 1, " ");
        snprintf(text, size, "%.*s", (int)strcspn(name, "\n"), name);
        break;
    }
    if (file)
        fclose(file);
    return text;
}

uint64_t ort_cpu_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : 0;
}

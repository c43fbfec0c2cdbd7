/* machine.c - what the figures of the benchmark were measured on: processors, load, stolen time.
 */
#include "../harness.h"
#include "bench.h"

ort_peak machine_peak(int threads)
{
    ort_env_options options;
    ort_env *env = NULL;
    ort_peak peak = ORT_PEAK_INIT;
    ort_env_options_init(&options);
    options.threads = threads;
    if (ort_env_new(&options, &env, NULL) || ort_env_measure_peak(env, &peak, NULL))
        peak = (ort_peak)ORT_PEAK_INIT;
    ort_env_free(env);
    return peak;
}

ort_peak better_peak(ort_peak a, ort_peak b)
{
    a.gflops = fmax(a.gflops, b.gflops);
    for (int i = 0; i < a.level_count && i < b.level_count; i++)
        a.levels[i].gb_per_s = fmax(a.levels[i].gb_per_s, b.levels[i].gb_per_s);
    return a;
}

void print_processors(void)
{
    printf("processors %ld, peak of one core %.1f GFLOP/s (multiply-add loop)\n",
           sysconf(_SC_NPROCESSORS_ONLN), machine_peak(1).gflops);
}

/* Milliseconds that the host took from this machine since boot, of all processors together. */
static double stolen_ms(void)
{
    long long t[8] = {0};
    FILE *file = fopen("/proc/stat", "r");
    if (file && fscanf(file, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &t[0], &t[1], &t[2],
                       &t[3], &t[4], &t[5], &t[6], &t[7]) != 8)
        t[7] = 0;
    if (file)
        fclose(file);
    return (double)t[7] * 1000 / (double)sysconf(_SC_CLK_TCK);
}

/* Averages of one, five and fifteen minutes. */
static void print_averages(const char *when, int threads)
{
    char load[100] = "unknown";
    FILE *file = fopen("/proc/loadavg", "r");
    if (file && !fgets(load, sizeof load, file))
        load[0] = '\0';
    if (file)
        fclose(file);
    printf("\nload %s, threads %d: %.14s", when, threads, load);
}

machine_times print_load(int threads)
{
    print_averages("before", threads);
    printf("\n");
    fflush(stdout);
    return (machine_times){.at_ms = harness_now_ms(), .stolen_ms = stolen_ms()};
}

void print_load_since(int threads, machine_times before)
{
    double passed = harness_now_ms() - before.at_ms, stolen = stolen_ms() - before.stolen_ms;
    print_averages("after", threads);
    printf("; the host took %.0f ms of the %.0f s that this lasted, %.2f %% of the processors\n",
           stolen, passed / 1000,
           100 * stolen / (passed * (double)sysconf(_SC_NPROCESSORS_ONLN)));
    fflush(stdout);
}

/* single_times.c - one time each, printed in milliseconds: what onnxruntime takes to create a
 * session at level extended with one thread (library and environment are there before the clock
 * starts), and a command from its start to its end.
 */
#include <spawn.h>
#include <sys/wait.h>

#include "../harness.h"
#include "bench.h"
#include "runtime.h"

enum { LEVEL_EXTENDED = 2 };

extern char **environ;

int creation_main(char **argv)
{
    static runtime r = {.class = &runtime_onnxruntime, .level = LEVEL_EXTENDED};
    if (!r.class->open(&r, argv[0], argv[1], 1)) {
        fprintf(stderr, "bench: %s: %s\n", argv[1], r.message);
        return 1;
    }
    printf("%.3f\n", r.session_ms);
    fflush(stdout);
    _exit(0); /* its tear-down is nobody's time */
}

int launch_main(char **argv)
{
    pid_t pid;
    int status = 0;
    double begin = harness_now_ms();
    int failed = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (failed || waitpid(pid, &status, 0) != pid || status != 0) {
        fprintf(stderr, "bench: %s: %s\n", argv[0], failed ? strerror(failed) : "failed");
        return 1;
    }
    printf("%.3f\n", harness_now_ms() - begin);
    return 0;
}

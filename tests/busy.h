/* busy.h: whether a bound on times says nothing here: others keep the machine busy, or a sanitizer
 * was built in. Tests of times try again and again first; where that does not help, they say so and
 * are skipped. Include after cmocka.h. */
#ifndef NORI_TESTS_BUSY_H
#define NORI_TESTS_BUSY_H

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static inline bool times_say_nothing(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#endif
    double load[1];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return getloadavg(load, 1) == 1 && load[0] > 2.0 * (double)(cpus > 0 ? cpus : 1);
}

/* Fails, or skips where times say nothing. */
#define ASSERT_TIMES(within_bounds)                                                            \
    do {                                                                                       \
        if (!(within_bounds) && times_say_nothing()) {                                         \
            print_message("busy or sanitized: times are not tested (" #within_bounds ")\n");   \
            skip();                                                                            \
        }                                                                                      \
        assert_true(within_bounds);                                                            \
    } while (0)

#endif

/* busy.h: whether others keep the machine so busy that a bound on times says nothing. Tests of
 * times try again and again first; where that does not help and the machine is busy, they say so
 * and are skipped. Include after cmocka.h. */
#ifndef NORI_TESTS_BUSY_H
#define NORI_TESTS_BUSY_H

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

static inline bool machine_is_busy(void)
{
    double load[1];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return getloadavg(load, 1) == 1 && load[0] > 2.0 * (double)(cpus > 0 ? cpus : 1);
}

/* Fails, or skips where the machine is busy. */
#define ASSERT_TIMES(within_bounds)                                                            \
    do {                                                                                       \
        if (!(within_bounds) && machine_is_busy()) {                                           \
            print_message("the machine is busy: times are not tested (" #within_bounds ")\n"); \
            skip();                                                                            \
        }                                                                                      \
        assert_true(within_bounds);                                                            \
    } while (0)

#endif

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

/* took is within bound where NORI_TEST_TIMES is set (a machine that does nothing else: make bench
 * sets it), and anywhere within half as much again: what a neighbour adds is no fault, a step
 * grown quadratic or a kernel lost is. Skips where times say nothing. */
#define ASSERT_TIMES(took, bound)                                                              \
    do {                                                                                       \
        double took_ = (double)(took), bound_ = (double)(bound);                               \
        if (took_ > bound_ && times_say_nothing()) {                                           \
            print_message("busy or sanitized: times are not tested (" #took " %.3g, bound "    \
                          "%.3g)\n",                                                           \
                          took_, bound_);                                                      \
            skip();                                                                            \
        }                                                                                      \
        if (took_ > bound_ && took_ <= 1.5 * bound_ && !getenv("NORI_TEST_TIMES")) {           \
            print_message(#took " %.3g, wanted %.3g: not judged unless NORI_TEST_TIMES is "    \
                          "set\n",                                                             \
                          took_, bound_);                                                      \
        } else if (took_ > bound_) {                                                           \
            fail_msg(#took " %.3g, wanted %.3g", took_, bound_);                               \
        }                                                                                      \
    } while (0)

#endif

/* some_cases.h: fewer cases of a long list where each takes long: NORI_TEST_EVERY=N runs each Nth alone.
 * tools/check_ports.sh sets it for its emulators; everywhere else all are run. */
#ifndef NORI_TESTS_SOME_CASES_H
#define NORI_TESTS_SOME_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static inline bool case_left_out(size_t index)
{
    const char *every = getenv("NORI_TEST_EVERY");
    unsigned long n = every ? strtoul(every, NULL, 10) : 1;
    return n > 1 && index % n != 0;
}

#endif

/* record.h: what operators a test exercised: lines "op DOMAIN NAME VERSION", separated by tabs, behind
 * what the file NORI_OPERATORS names holds (test_coverage.py reads it). Without it: nothing. */
#ifndef NORI_TESTS_RECORD_H
#define NORI_TESTS_RECORD_H

#include <stdio.h>
#include <stdlib.h>

static inline void record_operator(const char *domain, const char *name, int version)
{
    const char *path = getenv("NORI_OPERATORS");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (f) {
        fprintf(f, "op\t%s\t%s\t%d\n", domain, name, version);
        fclose(f);
    }
}

#endif

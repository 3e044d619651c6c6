/* failing_malloc.h: malloc and its kin for a whole test program, counted, and failing when told to: also
 * for what libraries allocate on threads of their own. For glibc, and not under a sanitizer. */
#ifndef NORI_FAILING_MALLOC_H
#define NORI_FAILING_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* What this thread allocates never fails (a test's own client). */
void failing_spare_thread(void);
/* Nor what code of this shared library asks for; its name is a part of its path. NULL: of none. */
void failing_spare_library(const char *name);
/* From now on the nth allocation fails; again: and each nth after it. */
void failing_arm(long nth, bool again);
/* None fails any more; how many did since. */
long failing_disarm(void);
/* Blocks that are taken and not given back. */
long failing_live(void);

#endif

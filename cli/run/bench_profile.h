/* bench_profile.h: where the time of runs went, for `nori bench --profile` and --trace. */
#ifndef NORI_CLI_BENCH_PROFILE_H
#define NORI_CLI_BENCH_PROFILE_H

#include "cli.h"

/* Times of nodes or operators over all runs. */
typedef struct profile_row {
    char name[384];
    const char *op, *provider;
    uint64_t ns, calls;
    uint64_t macs, bytes; /* of all calls together */
    bool known;           /* macs and bytes are */
} profile_row;

typedef struct profile {
    profile_row *nodes, *ops; /* slowest first */
    size_t n_nodes, n_ops;
    uint64_t all_ns;
    uint64_t runs;
} profile;

/* The session was made to profile; costs: for the inputs it ran on. 0 or an exit code. */
int cli_profile_read(const cli_args *args, const nori_session *session, const nori_costs *costs,
                     uint64_t runs, profile *p);
void cli_profile_print(const profile *p);
void cli_profile_json(const profile *p, cli_json *j);
void cli_profile_free(profile *p);
/* The last run as Chrome's trace events; the file appears whole or not at all. */
int cli_trace_write(const cli_args *args, const nori_session *session, const nori_costs *costs,
                    const char *path);

#endif

/* phases.h: where the time before the second run went, as `bench` and `run --timing` say it. */
#ifndef NORI_CLI_PHASES_H
#define NORI_CLI_PHASES_H

#include "cli.h"

typedef struct cli_phases {
    uint64_t load_ns, create_ns, first_ns;
} cli_phases;

void cli_phases_print(FILE *to, const cli_phases *p, const nori_session *session);
/* Keys load_ms, create_ms, phases_ms and first_ms of the object that is open. */
void cli_phases_json(cli_json *j, const cli_phases *p, const nori_session *session);

#endif

/* inspect_providers.h: `nori inspect --providers`. */
#ifndef NORI_CLI_INSPECT_PROVIDERS_H
#define NORI_CLI_INSPECT_PROVIDERS_H

#include "cli.h"

/* Prints how the model would be split over a list of providers; runs nothing. */
int cli_inspect_providers(const cli_args *args, const nori_model *model, const char *providers);

#endif

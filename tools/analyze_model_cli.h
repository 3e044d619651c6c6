/* analyze_model_cli.h: the same as analyze_model.h for the command: what fails never gives EXIT_YES. */
#ifndef NORI_ANALYZE_MODEL_CLI_H
#define NORI_ANALYZE_MODEL_CLI_H

#include "cli.h"

static inline int cli__failed(int code)
{
    return code != 0 ? code : EXIT_USAGE;
}

#define cli_usage(...) cli__failed(cli_usage(__VA_ARGS__))
#define cli_fail(...) cli__failed(cli_fail(__VA_ARGS__))
#define cli_fail_text(...) cli__failed(cli_fail_text(__VA_ARGS__))

#endif

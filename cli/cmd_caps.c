/* cmd_caps.c: operators by version and type, as built. */
#include <string.h>

#include "cli.h"

static const cli_option options[] = {
    {"--op", "NAME", "only this operator"},
    {"--missing", NULL, "only what nothing runs"},
    CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static int run(cli_args *args)
{
    nori_capability c = {.size = sizeof(c)};
    const char *only = cli_value(args, "--op");
    bool missing = cli_has(args, "--missing");
    int shown = 0, have = 0, all = 0;
    cli_json j;
    if (args->count > 0) {
        return cli_usage(args, "no arguments were expected; --op NAME asks for one operator");
    }
    if (args->json) {
        cli_json_begin_array(&j, stdout);
    } else {
        printf("%-24s %-36s %5s  %-10s %s\n", "domain", "operator", "since", "kernel", "types");
    }
    for (size_t i = 0; nori_capability_at(i, &c); i++) {
        all++;
        have += c.kernel[0] != 0;
        if ((only && strcmp(only, c.op) != 0) || (missing && c.kernel[0])) {
            continue;
        }
        if (args->json) {
            cli_json_object(&j, NULL);
            cli_json_string(&j, "domain", c.domain);
            cli_json_string(&j, "op", c.op);
            cli_json_int(&j, "since", c.since);
            cli_json_string(&j, "family", c.family);
            cli_json_string(&j, "kernel", c.kernel);
            cli_json_string(&j, "types", c.types);
            cli_json_end(&j);
        } else {
            printf("%-24s %-36s %5d  %-10s %s\n", c.domain[0] ? c.domain : "ai.onnx", c.op,
                   c.since, c.kernel[0] ? c.kernel : "-", c.types);
        }
        shown++;
    }
    if (args->json) {
        cli_json_finish(&j);
    } else if (!args->quiet) {
        printf("\n%d of %d (operator, version) pairs have a kernel\n", have, all);
    }
    if (only && shown == 0) {
        fprintf(stderr, "nori caps: no operator is named \"%s\"\n", only);
        return EXIT_NO;
    }
    return EXIT_YES;
}

const cli_verb cli_caps = {"caps", "look", "[--op NAME] [--missing]",
                           "operators, versions and types this build runs", options, run,
                           "  nori caps --op Conv\n"};

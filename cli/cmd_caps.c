/* cmd_caps.c: operators by version and type, as built. */
#include <string.h>

#include "cli.h"

static const cli_option options[] = {
    {"--op", "NAME", "only this operator"},
    {"--missing", NULL, "only what nothing runs"},
    {NULL, NULL, NULL},
};

static int run(cli_args *args)
{
    nori_capability c = {.size = sizeof(c)};
    const char *only = cli_value(args, "--op");
    bool missing = cli_has(args, "--missing");
    int shown = 0, have = 0, all = 0;
    if (args->json) {
        printf("[");
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
            printf("%s\n{\"domain\": \"%s\", \"op\": \"%s\", \"since\": %d, \"family\": \"%s\", "
                   "\"kernel\": \"%s\", \"types\": \"%s\"}",
                   shown ? "," : "", c.domain, c.op, c.since, c.family, c.kernel, c.types);
        } else {
            printf("%-24s %-36s %5d  %-10s %s\n", c.domain[0] ? c.domain : "ai.onnx", c.op,
                   c.since, c.kernel[0] ? c.kernel : "-", c.types);
        }
        shown++;
    }
    if (args->json) {
        printf("\n]\n");
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

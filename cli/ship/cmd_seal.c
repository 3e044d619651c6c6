/* cmd_seal.c: a model that only a key opens. */
#include <string.h>

#include "key_file.h"

static const cli_option options[] = {
    {"--key", "FILE", "the key to seal with"},
    {"--output", "FILE", "the sealed model"},
    {"--make-key", "FILE", "no model: make a key"},
    CLI_LIMIT_OPTION, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

static int run(cli_args *args)
{
    unsigned char key[NORI_SEAL_KEY_BYTES];
    nori_error err = {0};
    const char *make = cli_value(args, "--make-key"), *from = cli_value(args, "--key");
    const char *output = cli_value(args, "--output");
    if (make ? args->count > 0 || from || output : args->count != 1 || !from || !output) {
        return cli_usage(args, "a model, --key FILE and --output FILE were expected, or --make-key FILE");
    }
    int code = cli_set_limits(args, NULL);
    if (code != EXIT_YES) {
        return code;
    }
    nori_status s = NORI_OK;
    if (make) {
        s = nori_seal_key(key, &err);
        s = s == NORI_OK ? cli_key_write(make, CLI_SEAL_KEY, key, &err) : s;
    } else {
        s = cli_key_read(from, CLI_SEAL_KEY, key, &err) == 0 ? NORI_OK : err.status;
        s = s == NORI_OK ? nori_model_seal(NULL, args->positional[0], key, output, &err) : s;
    }
    memset(key, 0, sizeof(key));
    if (s != NORI_OK) {
        return cli_fail(args, &err);
    }
    if (args->json) {
        cli_json j;
        cli_json_begin(&j, stdout);
        cli_json_string(&j, make ? "key" : "sealed", make ? make : output);
        cli_json_finish(&j);
    } else if (!args->quiet) {
        printf("%s %s\n", make ? make : output,
               make ? "opens what is sealed with it: keep it to yourself"
                    : "was written; verbs open it with --seal-key");
    }
    return EXIT_YES;
}

const cli_verb cli_seal = {"seal", "ship", "MODEL --key FILE --output FILE",
                           "make a model that only a key opens", options, run,
                           "  nori seal --make-key device.seal\n"
                           "  nori seal model.onnx --key device.seal --output model.sealed\n"
                           "  nori run model.sealed --seal-key device.seal\n"};

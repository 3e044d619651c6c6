/* cmd_sign.c: who made a model, and whether it still is that. */
#include <stdlib.h>
#include <string.h>

#include "key_file.h"

static const cli_option sign_options[] = {
    {"--key", "FILE", "the secret key to sign with"},
    {"--output", "FILE", "the signature (default: the model's name with .sig)"},
    {"--make-keys", "NAME", "no model: make a pair of keys, NAME.key (secret) and NAME.pub"},
    CLI_LIMIT_OPTION, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};
static const cli_option verify_options[] = {
    {"--key", "FILE", "the public key of whom it should be from"},
    {"--signature", "FILE", "the signature (default: the model's name with .sig)"},
    CLI_LIMIT_OPTION, CLI_QUIET_OPTION, CLI_COMMON_OPTIONS,
};

/* A path with an ending behind it; NULL and a message: too long. */
static const char *with_ending(const cli_args *args, const char *path, const char *ending, char *out,
                               size_t room)
{
    int n = snprintf(out, room, "%s%s", path, ending);
    if (n < 0 || (size_t)n >= room) {
        cli_usage(args, "the name is too long");
        return NULL;
    }
    return out;
}

static int make_keys(const cli_args *args, const char *name)
{
    unsigned char public_key[NORI_PUBLIC_KEY_BYTES], secret_key[NORI_SECRET_KEY_BYTES];
    char secret_path[4096], public_path[4096];
    nori_error err = {0};
    if (args->count > 0 || cli_has(args, "--key") || cli_has(args, "--output")) {
        return cli_usage(args, "--make-keys NAME stands alone");
    }
    if (!with_ending(args, name, ".key", secret_path, sizeof(secret_path)) ||
        !with_ending(args, name, ".pub", public_path, sizeof(public_path))) {
        return EXIT_USAGE;
    }
    nori_status s = nori_sign_keys(public_key, secret_key, &err);
    s = s == NORI_OK ? cli_key_write(secret_path, CLI_SECRET_KEY, secret_key, &err) : s;
    memset(secret_key, 0, sizeof(secret_key));
    s = s == NORI_OK ? cli_key_write(public_path, CLI_PUBLIC_KEY, public_key, &err) : s;
    if (s != NORI_OK) {
        return cli_fail(args, &err);
    }
    if (args->json) {
        cli_json j;
        cli_json_begin(&j, stdout);
        cli_json_string(&j, "secret", secret_path);
        cli_json_string(&j, "public", public_path);
        cli_json_finish(&j);
    } else if (!args->quiet) {
        printf("%s signs: keep it to yourself; %s is for those who verify\n", secret_path, public_path);
    }
    return EXIT_YES;
}

static void said(const cli_args *args, const char *model, const char *signature, const char *what)
{
    if (args->json) {
        cli_json j;
        cli_json_begin(&j, stdout);
        cli_json_string(&j, "model", model);
        cli_json_string(&j, "signature", signature);
        cli_json_finish(&j);
    } else if (!args->quiet) {
        printf("%s: %s\n", model, what);
    }
}

static int run_sign(cli_args *args)
{
    unsigned char key[NORI_SECRET_KEY_BYTES];
    char path[4096];
    nori_error err = {0};
    const char *name = cli_value(args, "--make-keys"), *from = cli_value(args, "--key");
    if (name) {
        return make_keys(args, name);
    }
    if (args->count != 1 || !from) {
        return cli_usage(args, "a model and --key FILE were expected, or --make-keys NAME");
    }
    const char *model = args->positional[0], *output = cli_value(args, "--output");
    output = output ? output : with_ending(args, model, ".sig", path, sizeof(path));
    if (!output) {
        return EXIT_USAGE;
    }
    int code = cli_set_limits(args, NULL);
    if (code != EXIT_YES) {
        return code;
    }
    if (cli_key_read(from, CLI_SECRET_KEY, key, &err) != 0) {
        return cli_fail(args, &err);
    }
    nori_status s = nori_model_sign(NULL, model, key, output, &err);
    memset(key, 0, sizeof(key));
    if (s != NORI_OK) {
        return cli_fail(args, &err);
    }
    said(args, model, output, "signed, with the files of weights it names");
    return EXIT_YES;
}

static int run_verify(cli_args *args)
{
    unsigned char key[NORI_PUBLIC_KEY_BYTES];
    char path[4096];
    nori_error err = {0};
    const char *from = cli_value(args, "--key"), *signature = cli_value(args, "--signature");
    if (args->count != 1 || !from) {
        return cli_usage(args, "a model and --key FILE were expected");
    }
    const char *model = args->positional[0];
    signature = signature ? signature : with_ending(args, model, ".sig", path, sizeof(path));
    int code = signature ? cli_set_limits(args, NULL) : EXIT_USAGE;
    if (code != EXIT_YES) {
        return code;
    }
    if (cli_key_read(from, CLI_PUBLIC_KEY, key, &err) != 0) {
        return cli_fail(args, &err);
    }
    nori_status s = nori_model_verify(NULL, model, key, signature, &err);
    if (s != NORI_OK) {
        code = cli_fail(args, &err);
        return s == NORI_ERROR_DATA ? EXIT_NO : code;
    }
    said(args, model, signature, "is what was signed with this key");
    return EXIT_YES;
}

const cli_verb cli_sign = {"sign", "ship", "MODEL --key FILE", "sign a model and its files of weights",
                           sign_options, run_sign,
                           "  nori sign --make-keys mine\n"
                           "  nori sign model.onnx --key mine.key\n"};
const cli_verb cli_verify = {"verify", "ship", "MODEL --key FILE",
                             "whether a model is what somebody signed", verify_options, run_verify,
                             "  nori verify model.onnx --key mine.pub\n"};

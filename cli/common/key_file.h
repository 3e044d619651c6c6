/* key_file.h: keys as files, and models that need one. */
#ifndef NORI_CLI_KEY_FILE_H
#define NORI_CLI_KEY_FILE_H

#include "cli.h"
#include "nori/sign.h"

typedef enum cli_key { CLI_PUBLIC_KEY, CLI_SECRET_KEY, CLI_SEAL_KEY } cli_key;
/* 0, or -1 and why. */
int cli_key_read(const char *path, cli_key kind, unsigned char *key, nori_error *err);
/* Never over a file that is there; secret ones for their owner alone. */
nori_status cli_key_write(const char *path, cli_key kind, const unsigned char *key, nori_error *err);
/* A model file, or with --seal-key a sealed one. */
nori_status cli_open_model(const cli_args *args, nori_env *env, const char *path,
                           const nori_load_options *o, nori_model **model, nori_error *err);

#endif

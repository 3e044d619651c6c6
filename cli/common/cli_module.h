/* cli_module.h: parts of the command that need a library of others and are loaded when they are used. */
#ifndef NORI_CLI_MODULE_H
#define NORI_CLI_MODULE_H

#include "cli.h"

/* Opens a module (nori-x.so) by full path: in the folder NORI_MODULES names, else beside the command and
 * where it was installed. NULL: a message was given and *code is the exit code; lacking says what to do
 * where there is none. global: what it loads sees its symbols. */
void *cli_module_open(const cli_args *args, const char *file, bool global, const char *lacking, int *code);
/* A symbol of it as data; functions are copied out of it, as ISO C has no cast. NULL as above. */
void *cli_module_symbol(const cli_args *args, void *module, const char *name, int *code);

#endif

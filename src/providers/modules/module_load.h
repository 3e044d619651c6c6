/* module_load.h: where operator modules come from. */
#ifndef NORI_PROVIDERS_MODULES_MODULE_LOAD_H
#define NORI_PROVIDERS_MODULES_MODULE_LOAD_H

#include "base/base.h"
#include "providers/modules/module.h"

/* The module of a name ("png"), loaded on first use and kept until the process ends. UNAVAILABLE
 * where there is none: what was looked for and where, and which package brings it. */
nori_status nori__module_get(const char *name, const nori__module **module, nori_error *err);

#endif

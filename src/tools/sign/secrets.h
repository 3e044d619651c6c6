/* secrets.h: what the files of signing and sealing share. */
#ifndef NORI_TOOLS_SIGN_SECRETS_H
#define NORI_TOOLS_SIGN_SECRETS_H

#include "nori/sign.h"
#include "providers/modules/module_load.h"

/* The module's functions, or UNAVAILABLE. */
static inline nori_status nori__secrets_get(const nori__secrets **secrets, nori_error *err)
{
    const nori__module *module = NULL;
    NORI__TRY(nori__module_get("sodium", &module, err));
    *secrets = module->secrets;
    return *secrets ? NORI_OK
                    : nori__fail(err, NORI_ERROR_UNAVAILABLE, "the module nori-sodium.so is another");
}

#endif

/* lacking_provider.c: a provider that needs a symbol nothing has, as one built against a driver that
 * is not installed: loading it must say which. */
#include "nori/provider.h"

int nori_no_driver_has_this(void);

NORI_API const nori_provider *nori_provider_entry(int abi);
const nori_provider *nori_provider_entry(int abi)
{
    return abi == nori_no_driver_has_this() ? 0 : (const nori_provider *)0;
}

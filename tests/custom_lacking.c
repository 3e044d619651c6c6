/* custom_lacking.c: a library of operators that calls a function nori does not have: for tests of
 * what loading it says. */
#include <nori/provider.h>

nori_status nori_function_of_a_later_version(nori_env *env, nori_error *error);
NORI_API nori_status nori_register_ops(nori_env *env, nori_error *error);

nori_status nori_register_ops(nori_env *env, nori_error *error)
{
    return nori_function_of_a_later_version(env, error);
}

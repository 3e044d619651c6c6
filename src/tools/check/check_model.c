/* check_model.c: the public entrances: a loaded model, or a file that may not even load. */
#include "run/run.h"
#include "tools/check/check_internal.h"

nori_status nori_check(const nori_model *model, const nori_check_options *options,
                       nori_findings **findings, nori_error *err)
{
    if (!model || !findings) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "model and findings must not be NULL");
    }
    NORI__TRY(nori__check_ir(nori__model_ir(model), options, findings, err));
    return NORI_OK;
}

/* A list of one: what kept the model from loading. */
static nori_status load_failure(const nori_error *problem, nori_findings **findings,
                                nori_error *err)
{
    nori_findings *f = nori__findings_open(&nori__malloc, false);
    if (!f) {
        return nori__no_memory(err);
    }
    if (problem->has_offset) {
        nori__found(f, NORI_SEVERITY_ERROR, "load", problem->where, problem->hint,
                    "%s (at byte %llu)", problem->message, (unsigned long long)problem->offset);
    } else {
        nori__found(f, NORI_SEVERITY_ERROR, "load", problem->where, problem->hint, "%s",
                    problem->message);
    }
    nori_status status = nori__findings_close(f, err);
    if (status != NORI_OK) {
        nori_findings_free(f);
        return status;
    }
    *findings = f;
    return NORI_OK;
}

/* Whether the model file itself can be read: then an IO error is about what it names. */
static bool readable(const char *path)
{
    nori__map_file file = {0};
    nori_error ignored = {0};
    if (nori__map_open(path, &file, &ignored) != NORI_OK) {
        return false;
    }
    nori__map_close(&file);
    return true;
}

nori_status nori_check_file(nori_env *env, const char *path, const nori_load_options *load_options,
                            const nori_check_options *options, nori_findings **findings,
                            nori_error *err)
{
    if (!path || !findings) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "path and findings must not be NULL");
    }
    *findings = NULL;
    nori_error problem = {0};
    nori_model *model = NULL;
    nori_status status = nori_model_load(env, path, load_options, &model, &problem);
    if (status == NORI_OK) {
        status = nori_check(model, options, findings, err);
        nori_model_free(model);
        return status;
    }
    if (status == NORI_ERROR_MEMORY || status == NORI_ERROR_ARGUMENT ||
        (status == NORI_ERROR_IO && !readable(path))) {
        if (err && err->status == NORI_OK) {
            *err = problem;
        }
        return status;
    }
    return load_failure(&problem, findings, err);
}

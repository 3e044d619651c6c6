/* remote_none.c: what a build without libcurl or jansson says of servers. */
#include "remote.h"

#if !defined(NORI_WITH_CURL) || !defined(NORI_WITH_JANSSON)
struct remote {
    int none;
};

int remote_open(const cli_args *args, const char *model, remote **r)
{
    (void)model;
    *r = NULL;
    return cli_fail_text(args, NORI_ERROR_UNAVAILABLE,
                         "this nori was built without libcurl or jansson: it cannot call a server");
}

void remote_free(remote *r)
{
    (void)r;
}

const char *remote_url(const remote *r)
{
    (void)r;
    return "";
}

const char *remote_model(const remote *r)
{
    (void)r;
    return "";
}

double remote_timeout(const remote *r)
{
    (void)r;
    return 0;
}

static nori_status none(nori_error *err)
{
    return remote_fail(err, NORI_ERROR_UNAVAILABLE, "this nori was built without libcurl or jansson");
}

nori_status remote_get(remote *r, const char *path, char **body, remote_times *times,
                       const remote_stop *stop, nori_error *err)
{
    (void)r, (void)path, (void)body, (void)times, (void)stop;
    return none(err);
}

nori_status remote_infer(remote *r, const remote_call *call, nori_tensor **outs, remote_times *times,
                         nori_error *err)
{
    (void)r, (void)call, (void)outs, (void)times;
    return none(err);
}

nori_status remote_statistics(remote *r, remote_stats *stats, nori_error *err)
{
    (void)r, (void)stats;
    return none(err);
}
#endif

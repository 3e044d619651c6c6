/* remote_open.c: which server is called, as what, and what is shown to it and asked of it. */
#include "remote.h"

#if defined(NORI_WITH_CURL) && defined(NORI_WITH_JANSSON)
#include <stdlib.h>
#include <string.h>

#include "nori/place.h"
#include "remote_curl.h"

const char *remote_url(const remote *r)
{
    return r->url;
}

const char *remote_model(const remote *r)
{
    return r->model;
}

double remote_timeout(const remote *r)
{
    return r->timeout;
}

void remote_free(remote *r)
{
    if (r) {
        for (int i = 0; i < r->n_idle; i++) {
            remote_curl_functions.easy_cleanup(r->idle[i]);
        }
        pthread_mutex_destroy(&r->lock);
        free(r->url);
        free(r->model);
        free(r->ca);
        free(r->authorization);
        free(r);
    }
}

/* The first line of the file, behind "Authorization: Bearer ". */
static int read_token(const cli_args *args, const char *path, char **header)
{
    static const char before[] = "Authorization: Bearer ";
    char line[4096];
    nori_error err = {0};
    FILE *f = cli_open(path, true, &err);
    if (!f) {
        return cli_fail(args, &err);
    }
    bool got = fgets(line, sizeof(line), f) != NULL;
    fclose(f);
    line[got ? strcspn(line, "\r\n") : 0] = 0;
    if (!line[0]) {
        return cli_fail_text(args, NORI_ERROR_DATA, "%s: a token was expected on its first line", path);
    }
    size_t size = sizeof(before) + strlen(line);
    *header = malloc(size);
    if (!*header) {
        return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    snprintf(*header, size, "%s%s", before, line);
    return EXIT_YES;
}

static char *copy_of(const char *text, size_t n)
{
    char *copy = malloc(n + 1);
    if (copy) {
        memcpy(copy, text, n);
        copy[n] = 0;
    }
    return copy;
}

/* "models/digits.onnx" is digits there, unless the URL or --cloud-model says otherwise. */
static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return copy_of(name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

static int set_up(const cli_args *args, const char *url, const char *model, remote *r)
{
    const char *at = strstr(url, "/v2/models/"), *given = cli_value(args, "--cloud-model");
    const char *token = cli_value(args, "--token-file"), *ca = cli_value(args, "--ca");
    const char *timeout = cli_value(args, "--timeout");
    nori_error err = {0};
    size_t n = at ? (size_t)(at - url) : strlen(url);
    while (n > 0 && url[n - 1] == '/') {
        n--;
    }
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        return cli_usage(args, "--cloud \"%s\": http://host:port or https://host:port was expected", url);
    }
    r->timeout = 10;
    if (timeout && (nori_quantity_parse(timeout, NORI_QUANTITY_TIME, &r->timeout, &err) != NORI_OK ||
                    r->timeout <= 0)) {
        return cli_usage(args, "--timeout \"%s\": a time above 0 was expected, as 10s", timeout);
    }
    FILE *f = ca ? cli_open(ca, true, &err) : NULL;
    if (ca && !f) {
        return cli_fail(args, &err);
    }
    if (f) {
        fclose(f);
    }
    r->url = copy_of(url, n);
    r->ca = ca ? copy_of(ca, strlen(ca)) : NULL;
    const char *there = at ? at + strlen("/v2/models/") : NULL;
    r->model = given ? copy_of(given, strlen(given))
               : there ? copy_of(there, strcspn(there, "/"))
                       : name_of(model);
    if (!r->url || !r->model || (ca && !r->ca)) {
        return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    for (const char *p = r->model; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || strchr("._-~", *p);
        if (!plain) {
            return cli_usage(args, "the model is called \"%s\" there: letters, digits and ._-~ were "
                             "expected; --cloud-model NAME says another", r->model);
        }
    }
    return token ? read_token(args, token, &r->authorization) : EXIT_YES;
}

int remote_open(const cli_args *args, const char *model, remote **out)
{
    const char *url = cli_value(args, "--cloud");
    int code = remote_curl_load(args);
    if (code != EXIT_YES) {
        return code;
    }
    remote *r = calloc(1, sizeof(*r));
    if (!r || remote_curl_functions.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        pthread_mutex_init(&r->lock, NULL) != 0) {
        free(r);
        return cli_fail_text(args, NORI_ERROR_MEMORY, "out of memory");
    }
    code = set_up(args, url, model, r);
    if (code != EXIT_YES) {
        remote_free(r);
        return code;
    }
    *out = r;
    return EXIT_YES;
}

#endif

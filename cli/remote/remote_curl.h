/* remote_curl.h: the functions of libcurl, which is loaded when a server is called: it brings
 * dozens of other libraries, which every start would wait for. */
#ifndef NORI_CLI_REMOTE_CURL_H
#define NORI_CLI_REMOTE_CURL_H

#include <curl/curl.h>
#include <pthread.h>

#include "remote.h"

/* Its functions, by name. */
typedef struct remote_curl {
    CURLcode (*global_init)(long flags);
    CURL *(*easy_init)(void);
    CURLcode (*easy_setopt)(CURL *c, CURLoption option, ...);
    CURLcode (*easy_getinfo)(CURL *c, CURLINFO what, ...);
    CURLcode (*easy_perform)(CURL *c);
    void (*easy_reset)(CURL *c);
    void (*easy_cleanup)(CURL *c);
    const char *(*easy_strerror)(CURLcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free_all)(struct curl_slist *list);
} remote_curl;
extern remote_curl remote_curl_functions;

#define IDLE_MOST 64

/* A server; connections that are kept between calls. */
struct remote {
    char *url, *model, *ca;
    char *authorization; /* "Authorization: Bearer ...", or NULL */
    double timeout;
    pthread_mutex_t lock;
    CURL *idle[IDLE_MOST];
    int n_idle;
};

/* 0 or an exit code. */
int remote_curl_load(const cli_args *args);

#endif

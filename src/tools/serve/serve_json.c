/* serve_json.c: bytes of a body as JSON. When memory runs out in its middle, jansson says that the text is
 * wrong; so that the caller is not blamed, its allocations are watched while there is a server. */
#include <pthread.h>

#include "serve_elements.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t watchers;
static json_malloc_t take_before;
static json_free_t give_before;
static _Thread_local bool lacked;

static void *take(size_t size)
{
    void *memory = take_before(size);
    lacked = lacked || !memory;
    return memory;
}

void nori__serve_json_watch(void)
{
    pthread_mutex_lock(&lock);
    if (watchers++ == 0) {
        json_get_alloc_funcs(&take_before, &give_before);
        json_set_alloc_funcs(take, give_before);
    }
    pthread_mutex_unlock(&lock);
}

void nori__serve_json_unwatch(void)
{
    json_malloc_t now_take;
    json_free_t now_give;
    pthread_mutex_lock(&lock);
    if (--watchers == 0) {
        json_get_alloc_funcs(&now_take, &now_give);
        if (now_take == take) { /* else the program has set its own meanwhile */
            json_set_alloc_funcs(take_before, now_give);
        }
    }
    pthread_mutex_unlock(&lock);
}

json_t *nori__serve_json(const void *body, size_t size, size_t flags, nori_error *err)
{
    json_error_t where;
    lacked = false;
    json_t *root = json_loadb(size > 0 ? body : "", size, flags | JSON_REJECT_DUPLICATES, &where);
    if (lacked) { /* what came out may lack a part, then */
        json_decref(root);
        root = NULL;
        nori__serve_oom(err);
    } else if (!root) {
        nori__serve_fail(err, NORI_ERROR_ARGUMENT, "the request is not JSON: byte %d, line %d: %s",
                         where.position, where.line, where.text);
    }
    return root;
}

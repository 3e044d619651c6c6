/* open_provider.c: from the name a user writes to a provider that is ready, or an error that says
 * what is missing. */
#include <stdio.h>

#include "base/built.h"
#include "providers/providers.h"

static nori_status unknown_provider(const char *name, nori_error *err)
{
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; nori_provider_at(i) && used + 1 < sizeof(list); i++) {
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
                                 nori_provider_at(i)->name);
    }
    nori_status s = nori__fail(err, NORI_ERROR_UNAVAILABLE,
                               "there is no provider \"%s\"; there are: %s", name, list);
    nori__hint(err, "`nori doctor` shows the state of each; a shared object is named by a path "
                    "with a '/'; --fallback goes on without it");
    return s;
}

/* ---- shared objects ---- */

typedef const nori_provider *(*entry_fn)(int abi);

static nori_status load_object(const char *path, nori__opened *o, nori_error *err)
{
    if (!NORI__BUILT(parts)) {
        nori_status s = nori__fail(err, NORI_ERROR_UNAVAILABLE,
                                   "this reduced build takes no provider from a file, found \"%s\"", path);
        nori__hint(err, "a build whose NORI_PROVIDERS names one that takes parts of models takes it");
        return s;
    }
    o->library = nori__library_open(path, err);
    if (!o->library) {
        nori__hint(err, "`ldd -r %s` lists what it needs; --fallback goes on without it", path);
        return NORI_ERROR_UNAVAILABLE;
    }
    nori_error why = {0};
    void *symbol = nori__library_symbol(o->library, "nori_provider_entry", &why);
    if (!symbol) {
        nori__fail(err, NORI_ERROR_UNAVAILABLE,
                   "library %s lacks symbol nori_provider_entry: it is not a provider of nori", path);
        nori__hint(err, "docs/add_provider.md shows what a provider exports");
        return NORI_ERROR_UNAVAILABLE;
    }
    entry_fn entry;
    memcpy(&entry, &symbol, sizeof(entry)); /* C has no cast from data to code */
    const nori_provider *p = entry(NORI_PROVIDER_ABI);
    if (!p) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "provider %s does not serve version %d of the provider interface", path,
                          NORI_PROVIDER_ABI);
    }
    if (p->size < offsetof(nori_provider, describe) || p->size > sizeof(*p) || !p->name) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "provider %s was built for another nori: its struct has %zu bytes, at "
                          "most %zu were expected",
                          path, p->size, sizeof(*p));
    }
    o->provider = p;
    return NORI_OK;
}

/* Fields a provider of an older version does not have read as NULL. */
static nori_status complete(nori__arena *arena, nori__opened *o, nori_error *err)
{
    if (o->provider->size < sizeof(nori_provider)) {
        nori_provider *whole = nori__arena_alloc(arena, sizeof(*whole));
        if (!whole) {
            return nori__no_memory(err);
        }
        memcpy(whole, o->provider, o->provider->size);
        o->provider = whole;
    }
    const nori_provider *p = o->provider;
    if ((p->claim || p->claim_model) && !(p->compile && p->run)) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "provider %s claims nodes but has no compile or no run", p->name);
    }
    return NORI_OK;
}

/* ---- opening ---- */

static void report_nobody(void *user, const nori_progress *progress)
{
    (void)user;
    (void)progress;
}

nori_status nori__provider_open(const char *spec, const nori_provider_open *how, nori__arena *arena,
                                nori__opened *o, nori_error *err)
{
    memset(o, 0, sizeof(*o));
    const char *colon = strchr(spec, ':');
    char *name = nori__arena_copy(arena, spec, colon ? (size_t)(colon - spec) : strlen(spec));
    if (!name) {
        return nori__no_memory(err);
    }
    if (!*name) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "provider \"%s\": a name was expected", spec);
    }
    nori__opened opened = {0};
    nori_status status = NORI_OK;
    if (strchr(name, '/')) {
        status = load_object(name, &opened, err);
    } else {
        opened.builtin = nori__builtin_find(name);
        status = opened.builtin ? NORI_OK : unknown_provider(name, err);
        opened.provider = opened.builtin ? opened.builtin->provider : NULL;
    }
    status = status == NORI_OK ? complete(arena, &opened, err) : status;
    if (status != NORI_OK) {
        nori__library_close(opened.library);
        return status;
    }
    nori_provider_open this = *how;
    this.size = sizeof(this);
    this.options = colon ? colon + 1 : "";
    this.report = how->report ? how->report : report_nobody;
    if (opened.provider->open) {
        status = opened.provider->open(&this, &opened.self, err);
        if (status != NORI_OK) {
            nori__fail(err, status, "provider %s could not be opened", name);
            nori__library_close(opened.library);
            return status;
        }
    } else if (colon) {
        nori__library_close(opened.library);
        return nori__fail(err, NORI_ERROR_ARGUMENT, "provider %s takes no options, found \"%s\"",
                          name, colon + 1);
    }
    opened.info.size = sizeof(opened.info);
    if (opened.provider->describe) {
        status = opened.provider->describe(opened.self, &opened.info, err);
    }
    opened.info.label[sizeof(opened.info.label) - 1] = 0;
    opened.label = nori__arena_text(arena, opened.info.label[0] ? opened.info.label
                                                                : opened.provider->name);
    *o = opened;
    status = status == NORI_OK && !o->label ? nori__no_memory(err) : status;
    if (status != NORI_OK) {
        nori__provider_close(o);
    }
    return status;
}

/* The library stays: outputs that wrap a provider's memory, and threads of its own, may outlive the
 * session and need its code. */
void nori__provider_close(nori__opened *o)
{
    if (o->provider && o->provider->close) {
        o->provider->close(o->self);
    }
    memset(o, 0, sizeof(*o));
}

/* "a=1" but not "ort:a=1": an option of the entry before. */
static bool is_option(const char *text)
{
    size_t n = strcspn(text, ":,=");
    return text[n] == '=';
}

char *nori__provider_next(char **list)
{
    char *entry = *list;
    if (!entry) {
        return NULL;
    }
    entry += strspn(entry, " ");
    char *comma = strchr(entry, ',');
    while (comma && is_option(comma + 1)) {
        comma = strchr(comma + 1, ',');
    }
    *list = comma ? comma + 1 : NULL;
    char *end = comma ? comma : entry + strlen(entry);
    while (end > entry && end[-1] == ' ') {
        end--;
    }
    *end = 0;
    return entry;
}

/* serve_http.h: what the daemon of libmicrohttpd calls. */
#ifndef NORI_SERVE_HTTP_H
#define NORI_SERVE_HTTP_H

#include "serve_exchange.h"

/* An answer made beforehand: 503, for when there is no memory to make one. NULL: not even now. */
struct MHD_Response *nori__serve_no_memory(void);
/* When the first line of a request was read: the request's exchange. */
void *nori__serve_on_uri(void *user, const char *uri, struct MHD_Connection *connection);
/* When its headers were, with every piece of its body, at its end, and when it was woken. */
enum MHD_Result nori__serve_handle(void *user, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *bytes,
                                   size_t *size, void **context);
void nori__serve_on_completed(void *user, struct MHD_Connection *connection, void **context,
                              enum MHD_RequestTerminationCode how);

#endif

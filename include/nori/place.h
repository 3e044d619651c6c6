/* place.h: edge, cloud or split, decided by numbers.
 *
 * A call runs on the device (edge), on a server (cloud), or its first part on the one and the rest
 * on the other (split). On the mean the edge wins when
 *     t_edge - t_cloud < D_up / B_up + D_down / B_down + t_queue + RTT
 * what the cloud computes faster being less than what the way there costs. Times differ from call
 * to call, so every term is a distribution and totals are too. Times are in seconds, sizes in bytes,
 * rates in bytes or calls a second. Functions are as nori.h says: no state, any thread. */
#ifndef NORI_PLACE_H
#define NORI_PLACE_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- quantities ------------------------------------------------------------------------- */

typedef enum nori_quantity {
    NORI_QUANTITY_TIME,   /* ns us ms s min h                                      to seconds */
    NORI_QUANTITY_BYTES,  /* B kB MB GB TB (1000), KiB MiB GiB TiB (1024)            to bytes */
    NORI_QUANTITY_SPEED,  /* bytes as above a second, or bit/s kbit/s Mbit/s Gbit/s: to bytes/s */
    NORI_QUANTITY_RATE,   /* /s /min /h                                      to calls a second */
    NORI_QUANTITY_ENERGY  /* uJ mJ J                                                 to joules */
} nori_quantity;
/* "12.5ms", "5 MB/s". The unit is never guessed: without one, and where it could be taken for bits as
 * well as bytes ("Mb/s", "Mbps"), the text is refused with what was expected (ARGUMENT). At least 0. */
NORI_API nori_status nori_quantity_parse(const char *text, nori_quantity kind, double *value,
                                         nori_error *error);

/* ---- distributions ---------------------------------------------------------------------- */

/* Times of a term or a total: 256 numbers of equal share, rising. Two independent ones add up to the
 * 65536 sums of a number of each, of which every 256th is kept. Deterministic. */
#define NORI_TIMES_POINTS 256
typedef struct nori_times {
    double at[NORI_TIMES_POINTS];
} nori_times;
NORI_API void nori_times_constant(nori_times *times, double value);
NORI_API void nori_times_exponential(nori_times *times, double mean);
/* From what was measured: any number of samples, in any order. ARGUMENT: none, negative, not finite. */
NORI_API nori_status nori_times_samples(nori_times *times, const double *samples, size_t count,
                                        nori_error *error);
/* From percentiles, p in [0, 1] and values, both rising; straight lines between them, flat outside. */
NORI_API nori_status nori_times_percentiles(nori_times *times, const double *p,
                                            const double *values, size_t count, nori_error *error);
NORI_API double nori_times_mean(const nori_times *times);
/* Variance over the square of the mean: 0 for constant times, 1 for exponential ones. */
NORI_API double nori_times_cv2(const nori_times *times);
NORI_API double nori_times_quantile(const nori_times *times, double p);
NORI_API double nori_times_within(const nori_times *times, double limit); /* share at most that */
NORI_API void nori_times_add(nori_times *sum, const nori_times *a, const nori_times *b);

/* ---- queues ----------------------------------------------------------------------------- */

/* Waiting before `servers` equal servers, calls arriving at random (Poisson) at `rate`. Exact for
 * exponential service (M/M/c, Erlang's formula C) and for one server of any service (M/G/1,
 * Pollaczek and Khinchine); else Allen's and Cunneen's approximation, the wait of M/M/c times
 * (1 + cv2) / 2. The waits of those who wait are taken as exponential. load is rate * mean service /
 * servers; at 1 or more the queue has no end, and the answer is 0. */
NORI_API int nori_queue_wait(const nori_times *service, int servers, double rate, nori_times *wait,
                             double *load);

/* ---- deciding --------------------------------------------------------------------------- */

typedef enum nori_place {
    NORI_PLACE_NONE, /* nothing is left by the rules */
    NORI_PLACE_EDGE,
    NORI_PLACE_CLOUD,
    NORI_PLACE_SPLIT
} nori_place;

/* One side. */
typedef struct nori_place_side {
    int there;           /* 0: there is no such side */
    nori_times service;  /* of one call, with nobody else calling */
    int servers;         /* calls it works on at once; 0: 1 */
    int has_queue;       /* 1: queue is what was measured; 0: computed where a rate is given */
    nori_times queue;
    double memory;       /* bytes it has; 0: not known */
    double energy;       /* of the device, joules a call: computing, or sending and waiting; 0 */
    double price;        /* a call; 0 */
    int disagrees;       /* 1: its results were validated and do not agree */
} nori_place_side;

typedef struct nori_place_question {
    size_t size;         /* sizeof, set by _default */
    nori_place_side edge, cloud;
    double up_bytes, down_bytes, up_speed, down_speed; /* speed 0: the bytes cost nothing */
    nori_times up, down; /* added to the above: what was measured, or all there is */
    nori_times rtt;
    int offline;         /* 1: there is no network */
    /* A split: the first part on the device, features of feature_bytes sent, the rest on the server. */
    int can_split;
    nori_times split_edge, split_cloud;
    double feature_bytes;
    double margin;       /* share a split must win over the better end; default 0.1 */
    double rate;         /* calls a second from this device, for its queue; 0: no queue computed */
    double cloud_rate;   /* all that the servers get; 0: rate */
    /* Hard rules; what they remove is named. */
    int raw_stays;       /* 1: the input may not leave the device */
    int features_stay;   /* 1: nothing computed from it may either */
    double model_bytes, activation_bytes; /* against each side's memory */
    double deadline;     /* seconds; 0: none */
    double percentile;   /* of calls that must keep it; default 0.99 */
    double most_energy, most_price; /* a call; 0: no limit */
} nori_place_question;
NORI_API void nori_place_question_default(nori_place_question *question);

typedef struct nori_place_option {
    nori_place place;
    int possible;
    char reason[200];    /* not possible: which rule removed it */
    double compute, up, down, queue, rtt; /* means of its terms */
    double mean, p50, p95, p99, within;   /* of the total; within: share that keeps the deadline */
    double load;         /* of the busier queue; 0: none computed */
    const char *dominant; /* the term that is largest: compute up down queue rtt */
    nori_times total;
} nori_place_option;

typedef struct nori_place_flip {
    const char *what; /* bandwidth, payload, round trip, rate */
    int flips;        /* 0: no value of it changes the answer */
    double now, at;   /* bytes/s up, bytes up, seconds, calls a second */
} nori_place_flip;

typedef struct nori_place_answer {
    size_t size;          /* sizeof, set by the caller */
    nori_place place;
    nori_place_option option[3]; /* edge, cloud, split */
    double gain;          /* t_edge - t_cloud: what the cloud computes faster */
    double penalty;       /* what the way there costs */
    double saved;         /* mean seconds a call against the next best that is possible; 0: none */
    nori_place_flip flip[4]; /* between edge and cloud on the mean, all else unchanged */
    double inversion;     /* calls a second from which the edge's own queue makes it lose; 0: none */
    char words[600];      /* the decision with its reasons */
} nori_place_answer;
/* Rules first; then, with a deadline, those whose percentile keeps it; then the least mean.
 * Nothing keeps it: the largest share that does. ARGUMENT: numbers that are negative or not finite. */
NORI_API nori_status nori_place_decide(const nori_place_question *question,
                                       nori_place_answer *answer, nori_error *error);

#ifdef __cplusplus
}
#endif
#endif

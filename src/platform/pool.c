/* pool.c: the thread pool. One job at a time; workers take ranges from an atomic counter and sleep
 * between jobs, after spinning for a few microseconds at most. A caller that finds the pool busy
 * (another thread's job, or its own from within a body) runs its body alone. After fork the child
 * has no workers: there too the caller works alone. */
#include "platform/env.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define SPIN_NS 20000u

struct nori__pool {
    const nori_allocator *allocator;
    int threads; /* caller included */
    int started;
    pid_t pid;
    pthread_t ids[NORI__MAX_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t wake; /* workers: a new job or the end */
    pthread_cond_t done; /* caller: the last worker left the job */
    atomic_flag busy;
    bool ending;
    atomic_uint_fast64_t job; /* number of the current job; changes under lock */
    int wanted;               /* workers that may still join it */
    atomic_int inside;        /* workers in it */
    int joined;               /* ids handed out for it */
    /* the job */
    nori__body body;
    void *user;
    int64_t count, grain;
    atomic_int_fast64_t next; /* first range not taken, in units of grain */
};

static void work(nori__pool *p, int thread)
{
    int64_t ranges = p->count / p->grain + (p->count % p->grain != 0);
    for (;;) {
        int64_t r = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (r >= ranges) {
            return;
        }
        int64_t begin = r * p->grain;
        int64_t end = p->count - begin < p->grain ? p->count : begin + p->grain;
        p->body(p->user, begin, end, thread);
    }
}

/* Counts turns of a waiting loop; false once it has gone on for SPIN_NS. */
static bool spin(unsigned *turns, uint64_t *until)
{
    NORI__RELAX();
    if ((*turns)++ % 64 == 0) { /* the clock costs more than a turn */
        uint64_t now = nori__now_ns();
        *until = *until ? *until : now + SPIN_NS;
        return now < *until;
    }
    return true;
}

static void *worker(void *user)
{
    nori__pool *p = user;
    uint_fast64_t seen = 0;
    for (;;) {
        unsigned turns = 0;
        uint64_t until = 0;
        while (atomic_load_explicit(&p->job, memory_order_acquire) == seen &&
               spin(&turns, &until)) {
        }
        pthread_mutex_lock(&p->lock);
        while (!p->ending && (atomic_load(&p->job) == seen || p->wanted == 0)) {
            seen = atomic_load(&p->job); /* a job that has all the workers it wants */
            pthread_cond_wait(&p->wake, &p->lock);
        }
        if (p->ending) {
            pthread_mutex_unlock(&p->lock);
            return NULL;
        }
        seen = atomic_load(&p->job);
        p->wanted--;
        int thread = ++p->joined;
        atomic_fetch_add(&p->inside, 1);
        pthread_mutex_unlock(&p->lock);
        work(p, thread);
        pthread_mutex_lock(&p->lock);
        if (atomic_fetch_sub(&p->inside, 1) == 1) {
            pthread_cond_signal(&p->done);
        }
        pthread_mutex_unlock(&p->lock);
    }
}

/* Workers take no signals: handlers of the application run on its own threads. */
static void start_workers(nori__pool *p, int count)
{
    sigset_t all, old;
    sigfillset(&all);
    bool masked = pthread_sigmask(SIG_SETMASK, &all, &old) == 0;
    while (p->started < count &&
           pthread_create(&p->ids[p->started], NULL, worker, p) == 0) {
        p->started++; /* fewer threads than asked for is not an error */
    }
    if (masked) {
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
}

nori_status nori__pool_create(const nori_allocator *a, int threads, nori__pool **pool,
                              nori_error *err)
{
    *pool = NULL;
    threads = threads < 1 ? 1 : threads > NORI__MAX_THREADS ? NORI__MAX_THREADS : threads;
    nori__pool *p = nori__alloc_zero(a, sizeof(*p));
    if (!p) {
        return nori__no_memory(err);
    }
    p->allocator = a;
    p->pid = getpid();
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    atomic_flag_clear(&p->busy);
    start_workers(p, threads - 1);
    p->threads = p->started + 1;
    *pool = p;
    return NORI_OK;
}

void nori__pool_free(nori__pool *p)
{
    if (!p) {
        return;
    }
    if (p->pid == getpid()) {
        pthread_mutex_lock(&p->lock);
        p->ending = true;
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->lock);
        for (int i = 0; i < p->started; i++) {
            pthread_join(p->ids[i], NULL);
        }
        pthread_cond_destroy(&p->wake);
        pthread_cond_destroy(&p->done);
        pthread_mutex_destroy(&p->lock);
    }
    nori__release(p->allocator, p, sizeof(*p));
}

int nori__pool_threads(const nori__pool *p)
{
    return p ? p->threads : 1;
}

void nori__parallel_for(nori__pool *p, int max_threads, int64_t count, int64_t grain,
                        nori__body body, void *user)
{
    if (count <= 0) {
        return;
    }
    grain = grain < 1 ? 1 : grain;
    int64_t ranges = count / grain + (count % grain != 0);
    int threads = p ? p->threads : 1;
    if (max_threads > 0 && max_threads < threads) {
        threads = max_threads;
    }
    if ((int64_t)threads > ranges) {
        threads = (int)ranges;
    }
    if (threads <= 1 || p->pid != getpid() || atomic_flag_test_and_set(&p->busy)) {
        body(user, 0, count, 0);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->body = body;
    p->user = user;
    p->count = count;
    p->grain = grain;
    atomic_store(&p->next, 0);
    p->wanted = threads - 1;
    p->joined = 0;
    atomic_fetch_add(&p->job, 1);
    if (p->wanted == p->started) {
        pthread_cond_broadcast(&p->wake);
    } else {
        for (int i = 0; i < p->wanted; i++) {
            pthread_cond_signal(&p->wake);
        }
    }
    pthread_mutex_unlock(&p->lock);
    work(p, 0);
    pthread_mutex_lock(&p->lock);
    p->wanted = 0; /* who has not joined by now finds nothing to do */
    pthread_mutex_unlock(&p->lock);
    unsigned turns = 0;
    uint64_t until = 0;
    while (atomic_load_explicit(&p->inside, memory_order_acquire) > 0 && spin(&turns, &until)) {
    }
    if (atomic_load_explicit(&p->inside, memory_order_acquire) > 0) {
        pthread_mutex_lock(&p->lock);
        while (atomic_load(&p->inside) > 0) {
            pthread_cond_wait(&p->done, &p->lock);
        }
        pthread_mutex_unlock(&p->lock);
    }
    atomic_flag_clear(&p->busy);
}

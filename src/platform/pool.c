/* pool.c: the thread pool. One job at a time, split into as many parts as threads take part; a thread
 * takes ranges of its own part first, then what is left of the others. A caller that finds the pool
 * busy (another thread's job, or its own from within a body) runs its body alone. After fork the
 * child has no workers: there too the caller works alone.
 *
 * A hand-over costs no system call while workers are awake: they wait for the next job by looking at
 * one word (gate) for some microseconds, longer while a run is under way, since its next step is near;
 * then they sleep. Where there are more threads than CPUs nobody waits awake for long: the thread
 * that is waited for may need this very CPU. */
#include "platform/env.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define SPIN_NS 20000u      /* between runs */
#define RUN_SPIN_NS 200000u /* within a run */
#define CROWDED_SPIN_NS 2000u

/* gate: number of the job, workers in it, workers that may still join it. */
#define WANTED ((uint_fast64_t)0xfff)
#define ONE_INSIDE ((uint_fast64_t)0x1000)
#define INSIDE (WANTED * ONE_INSIDE)
#define ONE_JOB ((uint_fast64_t)0x1000000)

/* Ranges of a part not taken yet; on a cache line of its own. */
typedef struct part {
    atomic_int_fast64_t next;
    int64_t end;
    char apart[64 - 2 * sizeof(int64_t)];
} part;

struct nori__pool {
    const nori_allocator *allocator;
    int threads; /* caller included */
    int started;
    bool crowded; /* more threads than CPUs */
    pid_t pid;
    pthread_t ids[NORI__MAX_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t wake; /* workers: a new job or the end */
    pthread_cond_t done; /* caller: the last worker left the job */
    atomic_flag busy;
    atomic_bool ending;
    atomic_int runs;     /* under way */
    atomic_int sleepers; /* workers asleep, or about to be */
    atomic_bool waiting; /* the caller sleeps until the last worker leaves */
    /* the job: written by the caller while nobody is inside */
    nori__body body;
    void *user;
    int64_t count, grain;
    int parts;
    part part[NORI__MAX_THREADS];
    char apart[64];
    atomic_uint_fast64_t gate;
};

static void work(nori__pool *p, int thread)
{
    for (int i = 0; i < p->parts; i++) {
        part *own = &p->part[thread + i < p->parts ? thread + i : thread + i - p->parts];
        while (atomic_load_explicit(&own->next, memory_order_relaxed) < own->end) {
            int64_t r = atomic_fetch_add_explicit(&own->next, 1, memory_order_relaxed);
            if (r >= own->end) {
                break;
            }
            int64_t begin = r * p->grain;
            int64_t end = p->count - begin < p->grain ? p->count : begin + p->grain;
            p->body(p->user, begin, end, thread);
        }
    }
}

/* Counts turns of a waiting loop; false once it has gone on for long enough. */
typedef struct waiting {
    unsigned turns;
    uint64_t since;
} waiting;

static bool wait_on(const nori__pool *p, waiting *w)
{
    NORI__RELAX();
    if (w->turns++ % 32 == 0) { /* the clock costs more than a turn */
        uint64_t now = nori__now_ns();
        w->since = w->since ? w->since : now;
        uint64_t limit = p->crowded ? CROWDED_SPIN_NS
                         : atomic_load_explicit(&p->runs, memory_order_relaxed) > 0 ? RUN_SPIN_NS
                                                                                    : SPIN_NS;
        return now - w->since < limit;
    }
    return true;
}

/* ---- workers ---- */

/* Whether there is a job this worker has not seen that wants more workers. */
static bool wanted(const nori__pool *p, uint_fast64_t seen, uint_fast64_t *gate)
{
    *gate = atomic_load(&p->gate);
    return *gate / ONE_JOB != seen && (*gate & WANTED) > 0;
}

/* Waits for such a job; false: the pool ends. */
static bool next_job(nori__pool *p, uint_fast64_t seen, uint_fast64_t *gate)
{
    waiting w = {0};
    do {
        if (wanted(p, seen, gate)) {
            return true;
        }
    } while (!atomic_load_explicit(&p->ending, memory_order_relaxed) && wait_on(p, &w));
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1); /* before the gate is looked at: who opens it sees this */
    while (!atomic_load(&p->ending) && !wanted(p, seen, gate)) {
        pthread_cond_wait(&p->wake, &p->lock);
    }
    atomic_fetch_sub(&p->sleepers, 1);
    bool ending = atomic_load(&p->ending);
    pthread_mutex_unlock(&p->lock);
    return !ending;
}

static void *worker(void *user)
{
    nori__pool *p = user;
    uint_fast64_t seen = 0, gate;
    while (next_job(p, seen, &gate)) {
        if (!atomic_compare_exchange_strong(&p->gate, &gate, gate - 1 + ONE_INSIDE)) {
            continue; /* another worker was faster, or the job is over */
        }
        seen = gate / ONE_JOB;
        work(p, p->parts - (int)(gate & WANTED));
        gate = atomic_fetch_sub(&p->gate, ONE_INSIDE);
        if ((gate & INSIDE) == ONE_INSIDE && atomic_load(&p->waiting)) {
            pthread_mutex_lock(&p->lock); /* the caller is asleep, or sees that nobody is inside */
            pthread_mutex_unlock(&p->lock);
            pthread_cond_signal(&p->done);
        }
    }
    return NULL;
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
    p->crowded = threads > nori__usable_cpus(NULL, NULL, 0);
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
        atomic_store(&p->ending, true);
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

void nori__pool_begin_run(nori__pool *p)
{
    if (p) {
        atomic_fetch_add_explicit(&p->runs, 1, memory_order_relaxed);
    }
}

void nori__pool_end_run(nori__pool *p)
{
    if (p) {
        atomic_fetch_sub_explicit(&p->runs, 1, memory_order_relaxed);
    }
}

/* ---- callers ---- */

/* Offers the job to count workers. */
static void open_gate(nori__pool *p, int count)
{
    uint_fast64_t job = atomic_load_explicit(&p->gate, memory_order_relaxed) / ONE_JOB + 1;
    atomic_store(&p->gate, job * ONE_JOB + (uint_fast64_t)count);
    if (atomic_load(&p->sleepers) == 0) {
        return;
    }
    pthread_mutex_lock(&p->lock); /* who is about to sleep sleeps, or sees the job */
    pthread_mutex_unlock(&p->lock);
    if (count == p->started) {
        pthread_cond_broadcast(&p->wake);
    }
    for (int i = 0; count < p->started && i < count; i++) {
        pthread_cond_signal(&p->wake);
    }
}

/* Nobody joins any more; waits for those inside. */
static void close_gate(nori__pool *p)
{
    atomic_fetch_and(&p->gate, ~WANTED);
    waiting w = {0};
    while (atomic_load_explicit(&p->gate, memory_order_acquire) & INSIDE) {
        if (wait_on(p, &w)) {
            continue;
        }
        pthread_mutex_lock(&p->lock);
        atomic_store(&p->waiting, true);
        while (atomic_load(&p->gate) & INSIDE) {
            pthread_cond_wait(&p->done, &p->lock);
        }
        atomic_store(&p->waiting, false);
        pthread_mutex_unlock(&p->lock);
    }
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
    p->body = body;
    p->user = user;
    p->count = count;
    p->grain = grain;
    p->parts = threads;
    for (int i = 0; i < threads; i++) { /* without a product that could overflow */
        int64_t each = ranges / threads, more = ranges % threads;
        int64_t begin = each * i + (i < more ? i : more);
        atomic_store_explicit(&p->part[i].next, begin, memory_order_relaxed);
        p->part[i].end = begin + each + (i < more);
    }
    open_gate(p, threads - 1);
    work(p, 0);
    close_gate(p);
    atomic_flag_clear(&p->busy);
}

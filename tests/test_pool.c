/* The thread pool: every range once, thread numbers, several callers, fork, rest when idle. The
 * tsan preset runs this too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "platform/platform.h"
#include "test_alloc.h"

enum { MOST = 5000, THREADS = 4 };

typedef struct job {
    int64_t count, grain;
    unsigned char seen[MOST]; /* not atomic: TSan would see two bodies at one index */
    atomic_int running[THREADS];
    atomic_int calls, faults, highest;
    int pause_us;
} job;

static void body(void *user, int64_t begin, int64_t end, int thread)
{
    job *j = user;
    atomic_fetch_add(&j->calls, 1);
    if (thread < 0 || thread >= THREADS || begin < 0 || begin >= end || end > j->count ||
        begin % j->grain != 0 || (end % j->grain != 0 && end != j->count)) {
        atomic_fetch_add(&j->faults, 1);
        return;
    }
    if (atomic_fetch_add(&j->running[thread], 1) != 0) { /* the number is another's too */
        atomic_fetch_add(&j->faults, 1);
    }
    int high = atomic_load(&j->highest);
    while (thread > high && !atomic_compare_exchange_weak(&j->highest, &high, thread)) {
    }
    for (int64_t i = begin; i < end; i++) {
        j->seen[i]++;
    }
    if (j->pause_us) {
        nanosleep(&(struct timespec){0, j->pause_us * 1000}, NULL);
    }
    atomic_fetch_sub(&j->running[thread], 1);
}

/* Runs a job; the number of faults it showed. */
static int run(job *j, nori__pool *pool, int max_threads, int64_t count, int64_t grain, int pause)
{
    memset(j, 0, sizeof(*j));
    j->count = count;
    j->grain = grain;
    j->pause_us = pause;
    nori__parallel_for(pool, max_threads, count, grain, body, j);
    int faults = atomic_load(&j->faults);
    for (int64_t i = 0; i < MOST; i++) {
        faults += j->seen[i] != (i < count);
    }
    return faults;
}

static nori__pool *make(int threads)
{
    nori__pool *pool;
    nori_error err = {0};
    assert_int_equal(nori__pool_create(&nori__malloc, threads, &pool, &err), NORI_OK);
    assert_int_equal(nori__pool_threads(pool), threads);
    return pool;
}

static void every_range_once(void **state)
{
    (void)state;
    static job j;
    for (int threads = 1; threads <= THREADS; threads++) {
        nori__pool *pool = make(threads);
        static const int64_t counts[] = {0, 1, 2, 63, 64, 65, 1000, MOST};
        static const int64_t grains[] = {1, 7, 64, 100000};
        for (size_t c = 0; c < NORI__COUNT(counts); c++) {
            for (size_t g = 0; g < NORI__COUNT(grains); g++) {
                for (int most = 0; most <= 3; most++) {
                    assert_int_equal(run(&j, pool, most, counts[c], grains[g], 0), 0);
                    assert_true(counts[c] > 0 || atomic_load(&j.calls) == 0);
                    assert_true(most == 0 || atomic_load(&j.highest) < most);
                }
            }
        }
        nori__pool_free(pool);
    }
    assert_int_equal(run(&j, NULL, 0, 100, 8, 0), 0);
    assert_int_equal(nori__pool_threads(NULL), 1);
    nori__pool_free(NULL);
}

static void many_short_jobs(void **state)
{
    (void)state;
    static job j;
    nori__pool *pool = make(THREADS);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(run(&j, pool, i % 4, 1 + i % 40, 1, 0), 0);
    }
    nori__pool_free(pool);
}

static void workers_take_part(void **state)
{
    (void)state;
    static job j;
    nori__pool *pool = make(THREADS);
    nanosleep(&(struct timespec){0, 50000000}, NULL); /* asleep by now */
    assert_int_equal(run(&j, pool, 0, 40, 1, 5000), 0);
    assert_int_equal(atomic_load(&j.highest), THREADS - 1);
    assert_int_equal(run(&j, pool, 2, 20, 1, 5000), 0);
    assert_int_equal(atomic_load(&j.highest), 1);
    nori__pool_free(pool);
}

typedef struct caller {
    nori__pool *pool;
    int faults;
    job j;
} caller;

static void *call_often(void *user)
{
    caller *c = user;
    for (int i = 0; i < 300; i++) {
        c->faults += run(&c->j, c->pool, 0, 50, 1 + i % 5, 0);
    }
    return NULL;
}

static void several_callers(void **state)
{
    (void)state;
    static caller callers[4];
    pthread_t ids[4];
    nori__pool *pool = make(3);
    for (int i = 0; i < 4; i++) {
        callers[i].pool = pool;
        assert_int_equal(pthread_create(&ids[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(ids[i], NULL);
        assert_int_equal(callers[i].faults, 0);
    }
    nori__pool_free(pool);
}

static void after_fork_the_caller_works_alone(void **state)
{
    (void)state;
    static job j;
    nori__pool *pool = make(3);
    assert_int_equal(run(&j, pool, 0, 100, 1, 0), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        int faults = run(&j, pool, 0, 100, 1, 0) + (atomic_load(&j.highest) != 0);
        nori__pool_free(pool);
        _exit(faults ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(run(&j, pool, 0, 100, 1, 0), 0); /* the parent's goes on */
    nori__pool_free(pool);
}

static void idle_workers_rest(void **state)
{
    (void)state;
    static job j;
    nori__pool *pool = make(THREADS);
    assert_int_equal(run(&j, pool, 0, 100, 1, 0), 0);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    uint64_t before = nori__cpu_ns();
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    assert_true(nori__cpu_ns() - before < 20000000); /* a spinning worker would take 200 ms */
    nori__pool_free(pool);
}

/* Between runs workers sleep at once; within one they wait awake, but not for long. */
static void workers_rest_within_a_run(void **state)
{
    (void)state;
    static job j;
    nori__pool *pool = make(THREADS);
    nori__pool_begin_run(pool);
    assert_int_equal(run(&j, pool, 0, 100, 1, 0), 0);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    uint64_t before = nori__cpu_ns();
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    assert_true(nori__cpu_ns() - before < 20000000);
    assert_int_equal(run(&j, pool, 0, 40, 1, 1000), 0); /* and come back */
    nori__pool_end_run(pool);
    nori__pool_free(pool);
    nori__pool_begin_run(NULL);
    nori__pool_end_run(NULL);
}

enum { ORDERED = 400 };

typedef struct order {
    atomic_int next[THREADS];
    int64_t ranges[THREADS][ORDERED];
} order;

static void note_order(void *user, int64_t begin, int64_t end, int thread)
{
    order *o = user;
    (void)end;
    o->ranges[thread][atomic_fetch_add(&o->next[thread], 1)] = begin;
    for (uint64_t until = nori__now_ns() + 20000; nori__now_ns() < until;) {
    }
}

/* A thread takes its own part first, in order: neighbours meet the same thread from step to step. */
static void own_part_first(void **state)
{
    (void)state;
    static order o;
    nori__pool *pool = make(THREADS);
    for (int turn = 0; turn < 20; turn++) {
        memset(&o, 0, sizeof(o));
        nori__parallel_for(pool, 0, ORDERED, 1, note_order, &o);
        int taken = 0;
        for (int t = 0; t < THREADS; t++) {
            int64_t low = ORDERED / THREADS * t, high = low + ORDERED / THREADS, last = -1;
            bool left = false;
            for (int i = 0; i < atomic_load(&o.next[t]); i++, taken++) {
                int64_t r = o.ranges[t][i];
                bool own = r >= low && r < high;
                assert_false(own && left);
                assert_true(!own || r > last);
                left = left || !own;
                last = r;
            }
        }
        assert_int_equal(taken, ORDERED);
    }
    nori__pool_free(pool);
}

static void pools_without_memory(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 1);
    nori__pool *pool;
    nori_error err = {0};
    assert_int_equal(nori__pool_create(&t.allocator, 2, &pool, &err), NORI_ERROR_MEMORY);
    assert_null(pool);
    test_alloc_init(&t, 0);
    for (int threads = -1; threads <= 1; threads++) {
        assert_int_equal(nori__pool_create(&t.allocator, threads, &pool, &err), NORI_OK);
        assert_int_equal(nori__pool_threads(pool), 1);
        nori__pool_free(pool);
    }
    assert_int_equal(t.live, 0);
    assert_false(t.wrong_size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_range_once),
        cmocka_unit_test(many_short_jobs),
        cmocka_unit_test(workers_take_part),
        cmocka_unit_test(several_callers),
        cmocka_unit_test(after_fork_the_caller_works_alone),
        cmocka_unit_test(idle_workers_rest),
        cmocka_unit_test(workers_rest_within_a_run),
        cmocka_unit_test(own_part_first),
        cmocka_unit_test(pools_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Platform: clock, files that appear whole, libraries, what the CPU and the control groups allow,
 * and environments. The thread pool has a test of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__) && defined(__x86_64__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "platform/env.h"
#include "platform/platform.h"
#include "test_alloc.h"

static char folder[64];

/* A path under the test's folder; four may be in use at once. */
static const char *at(const char *name)
{
    static char paths[4][512];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof(paths[0]), "%s/%s", folder, name);
    return p;
}

static void put(const char *name, const char *content)
{
    char path[512];
    snprintf(path, sizeof(path), "%s", at(name));
    for (char *p = path + strlen(folder) + 1; *p; p++) {
        if (*p == '/') {
            *p = 0;
            mkdir(path, 0777);
            *p = '/';
        }
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(content, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void assert_holds(const char *name, const char *content)
{
    nori__map_file file;
    assert_int_equal(nori__map_open(at(name), &file, NULL), NORI_OK);
    assert_int_equal(file.size, strlen(content));
    if (file.size > 0) {
        assert_memory_equal(file.data, content, file.size);
    }
    nori__map_close(&file);
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/nori_test_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

/* ---- clock ---- */

static void clocks(void **state)
{
    (void)state;
    uint64_t wall = nori__now_ns(), cpu = nori__cpu_ns();
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    uint64_t slept = nori__now_ns() - wall;
    assert_true(slept >= 20000000 && slept < UINT64_C(20000000000));
    assert_true(nori__cpu_ns() >= cpu);
    assert_true(nori__cpu_ns() - cpu < slept);
    assert_true(nori__peak_bytes() > 100000);
}

/* ---- files ---- */

static void mappings(void **state)
{
    (void)state;
    nori__map_file file;
    nori_error err = {0};
    assert_int_equal(nori__map_open(at("absent"), &file, &err), NORI_ERROR_IO);
    assert_non_null(strstr(err.message, at("absent")));
    assert_non_null(strstr(err.message, "No such file"));
    assert_null(file.data);
    err = (nori_error){0};
    assert_int_equal(nori__map_open(folder, &file, &err), NORI_ERROR_IO);
    assert_non_null(strstr(err.message, "folder"));
    put("empty", "");
    assert_int_equal(nori__map_open(at("empty"), &file, NULL), NORI_OK);
    assert_null(file.data);
    assert_int_equal(file.size, 0);
    nori__map_close(&file);
    put("five", "12345");
    assert_holds("five", "12345");
    nori__map_close(&file);
    /* A pipe nobody writes to: an error, and no waiting for a writer. */
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    err = (nori_error){0};
    assert_int_equal(nori__map_open(at("pipe"), &file, &err), NORI_ERROR_IO);
    assert_non_null(strstr(err.message, "regular"));
    assert_int_equal(nori__map_open("/dev/null", &file, NULL), NORI_ERROR_IO);
}

static int count_files(void)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    int n = 0;
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n;
}

static nori_status write_file(const char *name, const char *content, nori_error *err)
{
    nori__out_file *out;
    NORI__TRY(nori__out_open(&nori__malloc, at(name), &out, err));
    nori_status s = nori__out_write(out, content, strlen(content), err);
    nori_status c = nori__out_commit(out, err);
    return s ? s : c;
}

static void files_appear_whole(void **state)
{
    (void)state;
    int before = count_files();
    nori__out_file *out;
    test_alloc t;
    test_alloc_init(&t, 0);
    assert_int_equal(nori__out_open(&t.allocator, at("new"), &out, NULL), NORI_OK);
    assert_int_equal(nori__out_write(out, "one ", 4, NULL), NORI_OK);
    assert_int_equal(nori__out_write(out, "two", 3, NULL), NORI_OK);
    assert_int_equal(nori__out_write(out, NULL, 0, NULL), NORI_OK);
    assert_int_not_equal(access(at("new"), F_OK), 0); /* not there yet */
    assert_int_equal(nori__out_commit(out, NULL), NORI_OK);
    assert_holds("new", "one two");
    assert_int_equal(count_files(), before + 1);
    assert_int_equal(nori__out_open(&t.allocator, at("new"), &out, NULL), NORI_OK);
    assert_int_equal(nori__out_write(out, "half", 4, NULL), NORI_OK);
    nori__out_abort(out);
    nori__out_abort(NULL);
    assert_holds("new", "one two");
    assert_int_equal(count_files(), before + 1);
    assert_int_equal(t.live, 0);
    assert_false(t.wrong_size);
    for (size_t fail = 1; fail <= 3; fail++) {
        test_alloc_init(&t, fail);
        nori_error err = {0};
        assert_int_equal(nori__out_open(&t.allocator, at("new"), &out, &err), NORI_ERROR_MEMORY);
        assert_null(out);
        assert_int_equal(t.live, 0);
    }
    assert_int_equal(count_files(), before + 1);
}

static void files_keep_their_mode(void **state)
{
    (void)state;
    mode_t old = umask(027);
    nori_status fresh = write_file("mode", "1", NULL);
    umask(old);
    assert_int_equal(fresh, NORI_OK);
    struct stat st;
    assert_int_equal(stat(at("mode"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(chmod(at("mode"), 0600), 0);
    assert_int_equal(write_file("mode", "2", NULL), NORI_OK);
    assert_int_equal(stat(at("mode"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    /* The name may be as long as names can be. */
    char name[256];
    memset(name, 'n', 255);
    name[255] = 0;
    assert_int_equal(write_file(name, "3", NULL), NORI_OK);
}

static void targets_not_to_replace(void **state)
{
    (void)state;
    nori_error err = {0};
    assert_int_equal(write_file("", "x", &err), NORI_ERROR_IO);
    assert_non_null(strstr(err.message, "folder"));
    assert_int_equal(mkfifo(at("out_pipe"), 0600), 0);
    assert_int_equal(write_file("out_pipe", "x", NULL), NORI_ERROR_IO);
    struct stat st;
    assert_int_equal(stat(at("out_pipe"), &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    nori__out_file *out;
    assert_int_equal(nori__out_open(&nori__malloc, "/dev/null", &out, NULL), NORI_ERROR_IO);
    err = (nori_error){0};
    assert_int_equal(write_file("no/folder", "x", &err), NORI_ERROR_IO);
    assert_non_null(strstr(err.message, at("no/folder")));
    assert_non_null(strstr(err.message, "No such file"));
    /* A link stays a link; its target is written. */
    put("elsewhere/target", "old");
    assert_int_equal(symlink("elsewhere/target", at("link")), 0);
    assert_int_equal(write_file("link", "fresh", NULL), NORI_OK);
    assert_int_equal(lstat(at("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_holds("elsewhere/target", "fresh");
    assert_int_equal(symlink("nothing", at("dangling")), 0);
    err = (nori_error){0};
    assert_int_equal(write_file("dangling", "x", &err), NORI_ERROR_IO);
    assert_non_null(strstr(err.message, "link"));
}

/* In a child, so that the limit on file sizes binds nobody else. */
static void failed_writes_change_nothing(void **state)
{
    (void)state;
    assert_int_equal(write_file("kept", "old", NULL), NORI_OK);
    int before = count_files();
    pid_t child = fork();
    if (child == 0) {
        static char big[100000];
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit limit = {4096, 4096};
        nori__out_file *out;
        nori_error err = {0};
        int ok = setrlimit(RLIMIT_FSIZE, &limit) == 0 &&
                 nori__out_open(&nori__malloc, at("kept"), &out, NULL) == NORI_OK &&
                 nori__out_write(out, big, sizeof(big), &err) == NORI_ERROR_IO &&
                 strstr(err.message, at("kept")) != NULL &&
                 nori__out_write(out, "x", 1, NULL) == NORI_ERROR_IO &&
                 nori__out_commit(out, NULL) == NORI_ERROR_IO;
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_holds("kept", "old");
    assert_int_equal(count_files(), before);
}

/* ---- libraries ---- */

static void libraries(void **state)
{
    (void)state;
    nori_error err = {0};
    assert_null(nori__library_open("/nowhere/libabsent.so", &err));
    assert_int_equal(err.status, NORI_ERROR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "/nowhere/libabsent.so"));
#ifdef __linux__
    void *library = nori__library_open("libm.so.6", NULL);
    assert_non_null(library);
    assert_non_null(nori__library_symbol(library, "cos", NULL));
    err = (nori_error){0};
    assert_null(nori__library_symbol(library, "no_such_symbol_here", &err));
    assert_int_equal(err.status, NORI_ERROR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "no_such_symbol_here"));
    nori__library_close(library);
#endif
    nori__library_close(NULL);
}

/* ---- CPU ---- */

/* The level a process has that starts with NORI_CPU=mask. Must run before this process asks. */
static int level_with(const char *mask)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("NORI_CPU", mask, 1);
        _exit((int)nori__cpu_level_get());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The level where the system refuses tiles; -1: it cannot be made to. */
static int level_refused(void)
{
#if defined(__linux__) && defined(__x86_64__)
    pid_t child = fork();
    if (child == 0) {
        struct sock_filter rules[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof(rules) / sizeof(*rules), rules};
        unsetenv("NORI_CPU");
        bool set = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
        _exit(set ? (int)nori__cpu_level_get() : 99);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 99 ? -1 : WEXITSTATUS(status);
#else
    return -1;
#endif
}

static void cpu_levels(void **state)
{
    (void)state;
    int refused = level_refused();
    int best = level_with("anything"), base = level_with("base");
    int avx2 = level_with("avx2"), avx512 = level_with("avx512");
    assert_in_range(best, 0, NORI__CPU_LEVELS - 1);
    assert_int_equal(base, NORI__CPU_BASE);
    assert_int_equal(avx2, best < NORI__CPU_AVX2 ? best : NORI__CPU_AVX2);
    assert_int_equal(avx512, best < NORI__CPU_AVX512 ? best : NORI__CPU_AVX512);
    assert_int_equal(level_with("amx"), best);
    assert_int_equal(refused, refused < 0 ? -1 : best < NORI__CPU_AVX512 ? best : avx512);
#if defined(__GNUC__) && defined(__x86_64__)
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool has_avx512 = __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    /* Whether tiles are there is the system's word, too. */
    int below = best == NORI__CPU_AMX ? NORI__CPU_AVX512 : best;
    assert_int_equal(below, has_avx512 ? NORI__CPU_AVX512 : has_avx2 ? NORI__CPU_AVX2
                                                                     : NORI__CPU_BASE);
#endif
    assert_string_equal(nori__cpu_level_name(NORI__CPU_AVX2), "avx2");
    assert_string_equal(nori__cpu_level_name(NORI__CPU_LEVELS), "?");
    assert_true(nori__cpu_name()[0] != ' ');
    assert_non_null(nori__cpu_features());
}

static void control_groups(void **state)
{
    (void)state;
    char reason[128];
    const char *mask = "Name:\tx\nCpus_allowed:\t%s\nCpus_allowed_list:\t0-7\n";
    char status[128];
    snprintf(status, sizeof(status), mask, "ff");
    put("a/proc/self/status", status);
    assert_int_equal(nori__usable_cpus(at("a"), reason, sizeof(reason)), 8);
    assert_string_equal(reason, "8: affinity mask of 8 CPUs");
    /* Version 2: the tightest of the group and its parents, rounded up. */
    put("a/proc/self/cgroup", "0::/one/two\n");
    put("a/sys/fs/cgroup/one/two/cpu.max", "max 100000\n");
    assert_int_equal(nori__usable_cpus(at("a"), NULL, 0), 8);
    put("a/sys/fs/cgroup/one/cpu.max", "250000 100000\n");
    assert_int_equal(nori__usable_cpus(at("a"), reason, sizeof(reason)), 3);
    assert_string_equal(reason, "3: cgroup quota of 2.50 CPUs");
    put("a/sys/fs/cgroup/cpu.max", "1000 100000\n");
    assert_int_equal(nori__usable_cpus(at("a"), NULL, 0), 1);
    put("a/sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_int_equal(nori__usable_cpus(at("a"), NULL, 0), 2);
    put("a/sys/fs/cgroup/one/cpu.max", "9900000000000 100000\n");
    put("a/sys/fs/cgroup/cpu.max", "1600000 100000\n");
    assert_int_equal(nori__usable_cpus(at("a"), reason, sizeof(reason)), 8);
    assert_string_equal(reason, "8: affinity mask of 8 CPUs");
    /* Version 1, its controllers mounted together; other groups' paths must not matter. */
    snprintf(status, sizeof(status), mask, "f0000000,00000003");
    put("b/proc/self/status", status);
    put("b/proc/self/cgroup", "9:cpuset:/set\n4:cpuacct,cpu:/host/path\n0::/\n");
    put("b/sys/fs/cgroup/cpu/set/cpu.cfs_quota_us", "100000\n");
    put("b/sys/fs/cgroup/cpu/set/cpu.cfs_period_us", "100000\n");
    put("b/sys/fs/cgroup/cpuacct,cpu/cpu.cfs_quota_us", "-1\n");
    put("b/sys/fs/cgroup/cpuacct,cpu/cpu.cfs_period_us", "50000\n");
    assert_int_equal(nori__usable_cpus(at("b"), NULL, 0), 6);
    put("b/sys/fs/cgroup/cpuacct,cpu/cpu.cfs_quota_us", "200000\n");
    assert_int_equal(nori__usable_cpus(at("b"), NULL, 0), 4);
    put("b/sys/fs/cgroup/cpu/host/path/cpu.cfs_quota_us", "25000\n");
    put("b/sys/fs/cgroup/cpu/host/path/cpu.cfs_period_us", "50000\n");
    assert_int_equal(nori__usable_cpus(at("b"), NULL, 0), 1);
    /* Here. */
    int here = nori__usable_cpus(NULL, reason, sizeof(reason));
    assert_true(here >= 1 && here <= sysconf(_SC_NPROCESSORS_CONF));
    assert_int_equal(atoi(reason), here);
}

/* As `taskset -c N` starts a program: the pool has as many threads as the mask has CPUs, and its
 * threads stay within the mask. In a child of its own: the mask is inherited by what it starts. */
static void affinity_mask(void **state)
{
    (void)state;
#ifdef __linux__
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    for (int most = 1; most <= 2 && most <= CPU_COUNT(&all); most++) {
        cpu_set_t few;
        CPU_ZERO(&few);
        for (int c = CPU_SETSIZE - 1; c >= 0 && CPU_COUNT(&few) < most; c--) { /* the last ones */
            if (CPU_ISSET(c, &all)) {
                CPU_SET(c, &few);
            }
        }
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char reason[64], want[64];
            nori_env *env = NULL;
            snprintf(want, sizeof(want), "%d: affinity mask of %d CPU%s", most, most,
                     most == 1 ? "" : "s");
            bool ok = sched_setaffinity(0, sizeof(few), &few) == 0;
            int n = nori__usable_cpus(NULL, reason, sizeof(reason));
            /* A quota of the machine the test runs on may be tighter still. */
            ok = ok && (n == most ? strcmp(reason, want) == 0 || strstr(reason, "quota") : n < most);
            ok = ok && nori_env_create(NULL, &env, NULL) == NORI_OK && nori_env_threads(env) == n;
            nori_env_free(env);
            _exit(ok ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
#endif
}

/* ---- environments ---- */

static int lines;
static void count_line(void *user, nori_log_level level, const char *line)
{
    lines += user == &lines && level == NORI_LOG_INFO && strcmp(line, "n=3") == 0;
}

static void environments(void **state)
{
    (void)state;
    test_alloc t;
    test_alloc_init(&t, 0);
    nori_env_options o;
    nori_env_options_default(&o);
    assert_int_equal(o.size, sizeof(o));
    o.allocator = t.allocator;
    o.threads = 3;
    o.log = count_line;
    o.log_user = &lines;
    nori_env *env;
    assert_int_equal(nori_env_create(&o, &env, NULL), NORI_OK);
    assert_int_equal(nori_env_threads(env), 3);
    assert_ptr_equal(nori__env_allocator(env)->user, &t);
    nori__env_log(env, NORI_LOG_INFO, "n=%d", 3);
    nori__env_log(NULL, NORI_LOG_INFO, "n=%d", 3);
    assert_int_equal(lines, 1);
    nori__pool *pool = nori__env_pool(env);
    assert_non_null(pool);
    assert_ptr_equal(nori__env_pool(env), pool);
    nori_env_free(env);
    nori_env_free(NULL);
    assert_int_equal(t.live, 0);
    assert_false(t.wrong_size);
    nori_error err = {0};
    o.threads = -1;
    assert_int_equal(nori_env_create(&o, &env, &err), NORI_ERROR_ARGUMENT);
    assert_null(env);
    o.threads = 0;
    o.allocator.release = NULL;
    assert_int_equal(nori_env_create(&o, &env, NULL), NORI_ERROR_ARGUMENT);
    o.allocator = t.allocator;
    t.fail_at = t.calls + 1;
    assert_int_equal(nori_env_create(&o, &env, NULL), NORI_ERROR_MEMORY);
    assert_ptr_equal(nori__env_allocator(NULL), &nori__malloc);
    assert_int_equal(nori_env_threads(NULL), nori__usable_cpus(NULL, NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_levels), /* first: it forks before the level is read */
        cmocka_unit_test(clocks),
        cmocka_unit_test(mappings),
        cmocka_unit_test(files_appear_whole),
        cmocka_unit_test(files_keep_their_mode),
        cmocka_unit_test(targets_not_to_replace),
        cmocka_unit_test(failed_writes_change_nothing),
        cmocka_unit_test(libraries),
        cmocka_unit_test(control_groups),
        cmocka_unit_test(affinity_mask),
        cmocka_unit_test(environments),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* short_io.c: reads and writes that do less than they were asked for, preloaded into the command: every other
 * call is interrupted before it did anything, the others do at most PIECE bytes. NORI_SHORT_IO names a file
 * that says at exit how often that happened. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIECE = 1000 };

#define SEEN __attribute__((visibility("default")))

static atomic_long calls, cut;

/* How many bytes this call does; 0: it is interrupted. */
static size_t share(size_t size)
{
    if (atomic_fetch_add(&calls, 1) % 2 == 1) {
        atomic_fetch_add(&cut, 1);
        errno = EINTR;
        return 0;
    }
    if (size > PIECE) {
        atomic_fetch_add(&cut, 1);
    }
    return size < PIECE ? size : PIECE;
}

/* With the offsets of 64 bits that the tree is built with, pread is pread64. */
SEEN ssize_t write(int fd, const void *data, size_t size);
SEEN ssize_t read(int fd, void *data, size_t size);
SEEN ssize_t pread(int fd, void *data, size_t size, off_t at);

ssize_t write(int fd, const void *data, size_t size)
{
    size_t n = size > 0 ? share(size) : 0;
    return size > 0 && n == 0 ? -1 : syscall(SYS_write, fd, data, n);
}

ssize_t read(int fd, void *data, size_t size)
{
    size_t n = size > 0 ? share(size) : 0;
    return size > 0 && n == 0 ? -1 : syscall(SYS_read, fd, data, n);
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
    size_t n = size > 0 ? share(size) : 0;
    return size > 0 && n == 0 ? -1 : syscall(SYS_pread64, fd, data, n, at);
}

__attribute__((destructor)) static void say(void)
{
    const char *path = getenv("NORI_SHORT_IO");
    char text[32];
    int n = snprintf(text, sizeof(text), "%ld\n", atomic_load(&cut));
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        syscall(SYS_write, fd, text, (size_t)n);
        close(fd);
    }
}

/*
 * Pipes: a byte stream between a writer and a reader.
 *
 * A pipe is one object, constructed once for all its uses: its mutex, its
 * condition variables and its two ends, which are open files, each referred to
 * by any number of handles. The first write allocates a second object, a buffer
 * of PIPE_SIZE bytes used as a ring. Both are freed when both ends are closed.
 *
 *     write end ──> put ──> | … pipe_first ── pipe_bytes ──> … | ──> take ──>
 *                           └────────── pipe_buffer ───────────┘    read end
 *
 * Readers wait on pipe_readable; a reader that leaves bytes wakes the next. Of
 * the writers without enough room, one waits on pipe_writable after recording
 * in pipe_need how much it needs, and the others wait on pipe_turn. So no
 * writer is overtaken for ever by smaller writes, and none is woken without
 * need. A task that is woken and killed passes the wake-up on.
 */
#include "kernel/abi/errno.h"
#include "kernel/fs/file.h"
#include "kernel/lib/printf.h"
#include "kernel/vm/user.h"
#include "kernel/task/cache.h"
#include "mm/kmem.h"

struct pipe {
    struct list pipe_link; /* in the list of all constructed pipes, used or
                              not */
    bool pipe_cached;      /* from the cache, or from kmem_alloc */
    /* Constructed once: */
    struct file pipe_read_end;
    struct file pipe_write_end;
    struct mutex pipe_mutex;
    struct cond pipe_readable;
    struct cond pipe_writable;
    struct cond pipe_turn;
    /* Guarded by pipe_mutex; between uses all 0 except pipe_total. */
    uint32_t pipe_readers; /* open ends: 0 or 1 */
    uint32_t pipe_writers;
    uint32_t pipe_first; /* index of the oldest byte */
    uint32_t pipe_bytes;
    uint32_t pipe_limit; /* most pipe_bytes; PIPE_SIZE, or 0: no buffer or no
                            reader */
    uint32_t pipe_need;  /* room that a writer waits for, or 0 */
    uint64_t pipe_total;
    uint8_t *pipe_buffer;
};

bool pipe_caching = true;

static struct kmem_cache *buffer_cache;

static struct spinlock list_lock = SPINLOCK_INIT("pipes", LOCK_RANK_PIPES);
static struct list pipes = LIST_INIT(pipes);
static size_t pipe_count; /* pipes in that list */

static struct kmem_cache *pipe_cache;

/* ---- construction ------------------------------------------------------- */

static const struct file_ops pipe_ops;

static void construct_end(struct file *f, uint32_t flags, struct pipe *p)
{
    f->file_object.object_type = &file_type;
    f->file_ops = &pipe_ops;
    f->file_flags = flags;
    f->file_data = p;
}

static void construct(void *obj, size_t size UNUSED)
{
    struct pipe *p = obj;

    *p = (struct pipe){.pipe_cached = true};
    construct_end(&p->pipe_read_end, O_RDONLY, p);
    construct_end(&p->pipe_write_end, O_WRONLY, p);
    mutex_init(&p->pipe_mutex, "pipe", MUTEX_RANK_PIPE);
    cond_init(&p->pipe_readable, "pipe-empty");
    cond_init(&p->pipe_writable, "pipe-full");
    cond_init(&p->pipe_turn, "pipe-turn");
    spin_lock(&list_lock);
    list_insert_before(&pipes, &p->pipe_link);
    pipe_count++;
    spin_unlock(&list_lock);
}

static void destruct(void *obj, size_t size UNUSED)
{
    struct pipe *p = obj;

    spin_lock(&list_lock);
    list_remove(&p->pipe_link);
    pipe_count--;
    spin_unlock(&list_lock);
}

void pipe_init(void)
{
    pipe_cache =
        cache_create("pipe", sizeof(struct pipe), 0, construct, destruct);
    buffer_cache = cache_create("pipe_buffer", PIPE_SIZE, 0, NULL, NULL);
}

static inline struct pipe *alloc_cached(void)
{
    return kmem_cache_alloc(pipe_cache, KM_NOSLEEP);
}

static inline void free_cached(struct pipe *p)
{
    kmem_cache_free(pipe_cache, p);
}

/* Allocates and constructs a pipe if objects are not cached. */
static struct pipe *alloc_uncached(void)
{
    struct pipe *p = kmem_alloc(sizeof(*p), KM_NOSLEEP);

    if (p == NULL)
        return NULL;
    construct(p, sizeof(*p));
    p->pipe_cached = false;
    return p;
}

static void pipe_discard(struct pipe *p)
{
    if (p->pipe_buffer != NULL) {
        kmem_cache_free(buffer_cache, p->pipe_buffer);
        p->pipe_buffer = NULL;
    }
    p->pipe_first = 0;
    p->pipe_bytes = 0;
    p->pipe_limit = 0;
    if (likely(p->pipe_cached)) {
        free_cached(p);
        return;
    }
    destruct(p, sizeof(*p));
    kmem_free(p, sizeof(*p));
}

/* ---- moving bytes ------------------------------------------------------- */

/* The caller of these holds pipe_mutex. Both move `n` bytes, at least 1 and at
 * most what is there or fits. After -EFAULT the pipe is unchanged. */

static ssize_t pipe_take(struct pipe *p, uint8_t *buf, size_t n)
{
    size_t run = MIN(n, PIPE_SIZE - p->pipe_first);
    int error;

    mutex_assert_held(&p->pipe_mutex);
    error = user_copy(buf, p->pipe_buffer + p->pipe_first, run);
    if (unlikely(run < n) && error == 0)
        error = user_copy(buf + run, p->pipe_buffer, n - run);
    if (unlikely(error != 0))
        return error;
    p->pipe_first = (p->pipe_first + n) % PIPE_SIZE;
    p->pipe_bytes -= n;
    return (ssize_t)n;
}

static inline __attribute__((always_inline)) ssize_t
pipe_put(struct pipe *p, const uint8_t *buf, size_t n)
{
    uint32_t at = (p->pipe_first + p->pipe_bytes) % PIPE_SIZE;
    size_t run = MIN(n, PIPE_SIZE - at);
    int error;

    mutex_assert_held(&p->pipe_mutex);
    error = user_copy(p->pipe_buffer + at, buf, run);
    if (unlikely(run < n) && error == 0)
        error = user_copy(p->pipe_buffer, buf + run, n - run);
    if (unlikely(error != 0))
        return error;
    p->pipe_bytes += n;
    p->pipe_total += n;
    return (ssize_t)n;
}

static inline uint32_t pipe_room(const struct pipe *p)
{
    return p->pipe_limit - p->pipe_bytes;
}

/* 1: there are bytes; 0: end of file; or -EINTR. */
static int wait_for_bytes(struct pipe *p)
{
    while (p->pipe_bytes == 0) {
        if (p->pipe_writers == 0)
            return 0;
        if (cond_wait(&p->pipe_readable, &p->pipe_mutex) != 0) {
            if (p->pipe_bytes > 0)
                cond_signal(&p->pipe_readable);
            return -EINTR;
        }
    }
    return 1;
}

static ssize_t pipe_read(struct file *f, void *buf, size_t n)
{
    struct pipe *p = f->file_data;
    ssize_t result;

    if (n == 0)
        return 0;
    mutex_lock(&p->pipe_mutex);
    result = p->pipe_bytes > 0 ? 1 : wait_for_bytes(p);
    if (likely(result > 0)) {
        result = pipe_take(p, buf, MIN(n, p->pipe_bytes));
        if (unlikely(p->pipe_bytes > 0))
            cond_signal(&p->pipe_readable);
        if (unlikely(p->pipe_need > 0) && pipe_room(p) >= p->pipe_need)
            cond_signal(&p->pipe_writable);
    }
    mutex_unlock(&p->pipe_mutex);
    return result;
}

/* Waits until it is the caller's turn to write. */
static int wait_for_turn(struct pipe *p)
{
    while (p->pipe_need > 0)
        if (cond_wait(&p->pipe_turn, &p->pipe_mutex) != 0) {
            if (p->pipe_need == 0)
                cond_signal(&p->pipe_turn);
            return -EINTR;
        }
    return 0;
}

/* Allocates the buffer at the first write. */
static int alloc_buffer(struct pipe *p)
{
    p->pipe_buffer = kmem_cache_alloc(buffer_cache, KM_NOSLEEP);
    if (p->pipe_buffer == NULL)
        return -ENOMEM;
    p->pipe_limit = PIPE_SIZE;
    return 0;
}

/* 0: there is room for `need` bytes; or -EPIPE, -EINTR, -ENOMEM. */
static int get_room(struct pipe *p, uint32_t need)
{
    int error = 0;

    if (p->pipe_readers == 0)
        return -EPIPE;
    if (p->pipe_buffer == NULL)
        return alloc_buffer(p);
    error = wait_for_turn(p);
    if (error != 0)
        return error;
    p->pipe_need = need;
    while (error == 0 && p->pipe_readers > 0 && pipe_room(p) < need)
        error = cond_wait(&p->pipe_writable, &p->pipe_mutex);
    p->pipe_need = 0;
    cond_signal(&p->pipe_turn);
    return p->pipe_readers == 0 ? -EPIPE : error;
}

/* Writes one piece, at least `need` bytes: bytes, or an error. */
static inline ssize_t write_piece(struct pipe *p, const uint8_t *buf, size_t n,
                                  uint32_t need)
{
    ssize_t result = 0;

    mutex_lock(&p->pipe_mutex);
    if (unlikely(pipe_room(p) < need || p->pipe_need > 0))
        result = get_room(p, need);
    if (likely(result == 0)) {
        result = pipe_put(p, buf, need == n ? n : MIN(n, pipe_room(p)));
        cond_signal(&p->pipe_readable);
    }
    mutex_unlock(&p->pipe_mutex);
    return result;
}

static __attribute__((noinline)) ssize_t
write_long(struct pipe *p, const uint8_t *buf, size_t n)
{
    ssize_t result = 0;
    size_t done = 0;

    while (done < n && result >= 0) {
        result = write_piece(p, buf + done, n - done, 1);
        if (result > 0)
            done += (size_t)result;
    }
    return done > 0 ? (ssize_t)done : result;
}

/* A write of at most PIPE_SIZE bytes is one piece, a longer one several. */
static ssize_t pipe_write(struct file *f, const void *buf, size_t n)
{
    if (unlikely(n > PIPE_SIZE))
        return write_long(f->file_data, buf, n);
    return write_piece(f->file_data, buf, n, n);
}

/* ---- ends --------------------------------------------------------------- */

/* One end is closed: wakes the tasks that wait at the other. */
static void pipe_release(struct file *f)
{
    struct pipe *p = f->file_data;
    bool last;

    mutex_lock(&p->pipe_mutex);
    if ((f->file_flags & O_ACCMODE) == O_RDONLY) {
        p->pipe_readers = 0;
        p->pipe_bytes = 0;
        p->pipe_limit = 0;
        cond_broadcast(&p->pipe_writable);
    } else {
        p->pipe_writers = 0;
        cond_broadcast(&p->pipe_readable);
    }
    last = (p->pipe_readers | p->pipe_writers) == 0;
    mutex_unlock(&p->pipe_mutex);
    if (last)
        pipe_discard(p);
}

static void pipe_stat_file(struct file *f, struct stat *out)
{
    const struct pipe *p = f->file_data;

    out->st_type = FILE_PIPE;
    out->st_size = p->pipe_bytes;
}

static const struct file_ops pipe_ops = {
    .file_read = pipe_read,
    .file_write = pipe_write,
    .file_release = pipe_release,
    .file_stat = pipe_stat_file,
};

int pipe_create(struct file **read_end, struct file **write_end)
{
    struct pipe *p = likely(pipe_caching) ? alloc_cached() : alloc_uncached();

    if (unlikely(p == NULL))
        return -ENOMEM;
    p->pipe_total = 0;
    p->pipe_readers = 1;
    p->pipe_writers = 1;
    p->pipe_read_end.file_object.object_refs = 1;
    p->pipe_write_end.file_object.object_refs = 1;
    *read_end = &p->pipe_read_end;
    *write_end = &p->pipe_write_end;
    return 0;
}

/* ---- snapshots and checks ----------------------------------------------- */

bool pipe_next(struct pipe_stat *st)
{
    const struct pipe *next = NULL;

    spin_lock(&list_lock);
    list_for_each (l, &pipes) {
        const struct pipe *p = list_entry(l, struct pipe, pipe_link);

        if ((p->pipe_readers | p->pipe_writers) != 0 &&
            (const void *)p > st->stat_pipe && (next == NULL || p < next))
            next = p;
    }
    if (next != NULL)
        *st = (struct pipe_stat){next, next->pipe_readers, next->pipe_writers,
                                 next->pipe_bytes, next->pipe_total};
    spin_unlock(&list_lock);
    return next != NULL;
}

static bool nobody_waits(const struct wait_queue *q)
{
    return list_empty(&q->wait_tasks);
}

/* Empty, and no task waits on it. */
static bool unused(const struct pipe *p)
{
    return p->pipe_bytes == 0 && p->pipe_first == 0 && p->pipe_limit == 0 &&
           p->pipe_need == 0 && p->pipe_buffer == NULL &&
           nobody_waits(&p->pipe_readable.cond_waiters) &&
           nobody_waits(&p->pipe_writable.cond_waiters) &&
           nobody_waits(&p->pipe_turn.cond_waiters) &&
           nobody_waits(&p->pipe_mutex.mutex_waiters);
}

/* Invariants of a pipe whose mutex is free. */
static const char *verify_pipe(const struct pipe *p)
{
    if (p->pipe_readers > 1 || p->pipe_writers > 1)
        return "a pipe has several readers or writers";
    if (p->pipe_bytes > p->pipe_limit || p->pipe_first >= PIPE_SIZE)
        return "a pipe's bytes are outside its buffer";
    if (p->pipe_need > PIPE_SIZE)
        return "a pipe's writer waits for more room than a pipe has";
    if (p->pipe_need == 0 && !nobody_waits(&p->pipe_writable.cond_waiters))
        return "a writer waits for room and pipe_need is 0";
    if ((p->pipe_readers | p->pipe_writers) == 0 && !unused(p))
        return "a pipe without ends is not in its constructed state";
    return NULL;
}

const char *pipe_verify(const char **where)
{
    static char place[24];
    const char *wrong = NULL;
    size_t n = 0;

    *where = "the list of pipes";
    spin_lock(&list_lock);
    list_for_each (l, &pipes) {
        const struct pipe *p = list_entry(l, struct pipe, pipe_link);

        if (n++ > pipe_count)
            break;
        if (p->pipe_mutex.mutex_owner == NULL)
            wrong = verify_pipe(p);
        if (wrong != NULL) {
            snprintf(place, sizeof(place), "pipe %p", (const void *)p);
            *where = place;
            break;
        }
    }
    if (wrong == NULL && n != pipe_count)
        wrong = "the number of pipes is wrong";
    spin_unlock(&list_lock);
    return wrong;
}

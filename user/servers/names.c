/*
 * names: the name server. Programs register ports under names and look them up
 * (user/lib/ipc.h: enum names_label); the kernel knows only the server's own
 * port.
 *
 * A name belongs to its port while the port has a receiver. Then it is free, so
 * a restarted server can register again. The session that registered it owns
 * it: only this one, or a server, which is outside every session, removes it. A
 * server's registration replaces a session's of the same name. Each session has
 * few names, and all together leave handles for the servers'.
 *
 * The names of the manifest's servers are reserved: no session registers one,
 * also before its server has started and between its death and its restart.
 * Clients of a driver therefore find the driver or nothing.
 */
#include "user/lib/err.h"
#include "user/lib/ipc.h"
#include "user/lib/stdio.h"
#include "user/lib/stdlib.h"
#include "user/lib/string.h"

#define LIST_MAX     4096 /* bytes of all names for NAMES_LIST */
#define SESSION_MAX  16   /* names of one session */
#define SESSIONS_MAX 128  /* of all: half of the handles */

struct entry {
    struct entry *entry_next; /* by name */
    int entry_port;
    uint32_t entry_session; /* its owner; 0: a server */
    bool entry_for_servers; /* sessions cannot look it up */
    char entry_name[PORT_NAME_MAX + 1];
};

struct reserved {
    struct reserved *reserved_next;
    char reserved_name[PORT_NAME_MAX + 1];
};

static struct entry *entries;
static struct reserved *reserved;

/* ---- reserved names ----------------------------------------------------- */

static void reserve(const char *name)
{
    struct reserved *r = malloc(sizeof(*r));

    if (r == NULL)
        err(1, "%s", name);
    strlcpy(r->reserved_name, name, sizeof(r->reserved_name));
    r->reserved_next = reserved;
    reserved = r;
}

/* Reads the first word of each line of /proc/servers, which shows the manifest
 * as the kernel read it at boot. It never changes. The lines of one server
 * follow each other. */
static void read_reserved(void)
{
    FILE *f = fopen("/proc/servers", "r");
    char row[512];

    if (f == NULL)
        err(1, "/proc/servers");
    fgets(row, sizeof(row), f); /* the heading */
    while (fgets(row, sizeof(row), f) != NULL) {
        row[strcspn(row, " \n")] = '\0';
        if (reserved == NULL || strcmp(row, reserved->reserved_name) != 0)
            reserve(row);
    }
    if (ferror(f))
        errx(1, "cannot read /proc/servers");
    fclose(f);
}

static bool is_reserved(const char *name)
{
    const struct reserved *r = reserved;

    while (r != NULL && strcmp(r->reserved_name, name) != 0)
        r = r->reserved_next;
    return r != NULL;
}

/* ---- the table ---------------------------------------------------------- */

/* Whether a port has a receiver: notifies no bits, which fails if the port is
 * dead. */
static bool is_alive(int port)
{
    return notify(port, 0) == 0;
}

static void drop(struct entry **at)
{
    struct entry *e = *at;

    *at = e->entry_next;
    close(e->entry_port);
    free(e);
}

/* Drops dead entries; then finds the name, or its place in the order. */
static struct entry **find(const char *name, bool *found)
{
    struct entry **at = &entries;
    int order = -1;

    while (*at != NULL) {
        if (!is_alive((*at)->entry_port)) {
            drop(at);
            continue;
        }
        order = strcmp((*at)->entry_name, name);
        if (order >= 0)
            break;
        at = &(*at)->entry_next;
    }
    *found = *at != NULL && order == 0;
    return at;
}

static void drop_dead(void)
{
    bool found;

    find("\xff", &found); /* after all names */
}

/* ---- requests ----------------------------------------------------------- */

/* Whether a session may have another name. */
static bool has_room(uint32_t session)
{
    unsigned own = 0, all = 0;

    for (const struct entry *e = entries; e != NULL; e = e->entry_next) {
        own += e->entry_session == session;
        all += e->entry_session != 0;
    }
    return session == 0 || (own < SESSION_MAX && all < SESSIONS_MAX);
}

/* 0, or the error for a session that may not register a name. */
static int check_add(const char *name, const struct entry *old,
                     uint32_t session, uint32_t flags)
{
    if ((flags & ~NAMES_FOR_SERVERS) != 0)
        return EINVAL;
    if (session != 0 && (flags != 0 || is_reserved(name)))
        return EPERM;
    if (old != NULL && (session != 0 || old->entry_session == 0))
        return EEXIST;
    return has_room(session) ? 0 : ENOSPC;
}

/* Takes over the handle on success. */
static int add(const char *name, int port, uint32_t session, uint32_t flags)
{
    struct entry **at;
    struct entry *e;
    bool found;
    int error;

    if (port < 0)
        return EINVAL;
    if (!is_alive(port))
        return errno;
    drop_dead();
    at = find(name, &found);
    error = check_add(name, found ? *at : NULL, session, flags);
    if (error != 0)
        return error;
    e = malloc(sizeof(*e));
    if (e == NULL)
        return ENOMEM;
    if (found)
        drop(at);
    e->entry_port = port;
    e->entry_session = session;
    e->entry_for_servers = flags != 0;
    strlcpy(e->entry_name, name, sizeof(e->entry_name));
    e->entry_next = *at;
    *at = e;
    return 0;
}

/* Stores all names in `out`; returns the bytes. */
static size_t list(char *out)
{
    size_t used = 0;

    drop_dead();
    for (const struct entry *e = entries; e != NULL; e = e->entry_next) {
        size_t n = strlen(e->entry_name) + 1;

        if (used + n > LIST_MAX)
            break;
        memcpy(out + used, e->entry_name, n);
        used += n;
    }
    return used;
}

/* LOOKUP or REMOVE of an entry: 0 or the error. */
static int check_use(const struct entry *e, uint32_t label, uint32_t session)
{
    if (label == NAMES_LOOKUP)
        return e->entry_for_servers && session != 0 ? EPERM : 0;
    if (label == NAMES_REMOVE)
        return session != 0 && e->entry_session != session ? EPERM : 0;
    return EINVAL;
}

/* Executes a request about `name` and builds the reply; closes a received
 * handle unless it is kept. */
static void execute(struct message *m, const char *name, char *text)
{
    struct ipc_buffer *b = m->msg_buffer;
    int port = b->ipc_received_handle;
    uint32_t label = IPC_LABEL(m->msg_tag);
    int error = 0;
    bool found;
    struct entry **at;

    m->msg_tag = 0;
    if (label == NAMES_LIST) {
        b->ipc_send_size = (uint32_t)list(text);
        m->msg_tag = IPC_DATA;
    } else if (name[0] == 0) {
        error = EINVAL;
    } else if (label == NAMES_REGISTER) {
        error = add(name, port, b->ipc_session, m->msg_word[0]);
        port = error == 0 ? -1 : port;
    } else {
        at = find(name, &found);
        error = found ? check_use(*at, label, b->ipc_session) : ENOENT;
        if (error == 0 && label == NAMES_LOOKUP) {
            b->ipc_send_handle = (*at)->entry_port;
            m->msg_word[1] = (*at)->entry_session;
            m->msg_tag = IPC_HANDLE;
        } else if (error == 0) {
            drop(at);
        }
    }
    m->msg_word[0] = (uint32_t)error;
    if (port >= 0)
        close(port);
}

int main(void)
{
    static char name[PORT_NAME_MAX + 1];
    static char text[LIST_MAX];
    struct ipc_buffer b = {
        .ipc_send = text,
        .ipc_receive = name,
        .ipc_receive_max = PORT_NAME_MAX,
    };
    struct message m = {.msg_buffer = &b};
    int port = port_create();
    int result;

    read_reserved();
    if (port < 0 || name_server(NAME_SERVER_SET, port) < 0)
        err(1, "cannot register as the name server");
    result = ipc_receive(port, &m);
    for (;;) {
        if (result == 0 && m.msg_client != 0) {
            name[b.ipc_received] = 0;
            execute(&m, name, text);
            result = ipc_reply_receive(port, &m);
        } else {
            /* a client that did not receive its reply, or a notification */
            result = ipc_receive(port, &m);
        }
    }
}

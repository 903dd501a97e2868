/*
 * Shared by the tests of grants: rights, and the tasks that get them. The tasks
 * are actors (ipc_actor.h); a grant's program is the root directory's inode,
 * which is as good as any.
 */
#pragma once

#include "kernel/fs/inode.h"
#include "kernel/fs/path.h"
#include "kernel/object/grant.h"
#include "kernel/ipc/tests/ipc_cast.h"

#define HOLE    0xe0000u /* a page where no machine has RAM to manage */
#define DMA_MAX 4

static const struct manifest_server rights_a = {
    .server_name = "test-a",
    .server_command = "/a one two",
    .server_ports = 2,
    .server_port = {{0x300, 0x307}, {0x318, 0x318}},
    .server_irqs = 1u << 5,
    .server_memories = 1,
    .server_memory = {{HOLE, HOLE + 2 * PAGE_SIZE - 1}},
    .server_dma = DMA_MAX,
};
/* Some of the ports are the same. */
static const struct manifest_server rights_b = {
    .server_name = "test-b",
    .server_command = "/b",
    .server_ports = 1,
    .server_port = {{0x305, 0x400}},
};
static const struct manifest_server rights_none = {
    .server_name = "test-none",
    .server_command = "/none",
};

static inline struct grant *make(const struct manifest_server *rights)
{
    inode_seal(path_root()); /* which cannot be written anyway */
    return actor_grant(rights, path_root());
}

static inline void give(struct grant *grant, const struct actor *a)
{
    KT_EQ(grant_take(grant, a->actor_task), 0);
    KT_TRUE(grant_exec(a->actor_task, path_root()));
}

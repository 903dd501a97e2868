/*
 * All families of tests, in the order in which they run: basic ones first.
 */
#include "user/tests/usertests/test.h"

const struct family families[] = {
    {"task", task_tests},
    {"exec", exec_tests},
    {"memory", memory_tests},
    {"commit", commit_tests},
    {"protect", protect_tests},
    {"trap", trap_tests},
    {"pointer", pointer_tests},
    {"handle", handle_tests},
    {"pipe", pipe_tests},
    {"file", file_tests},
    {"tree", tree_tests},
    {"device", device_tests},
    {"ipc", ipc_tests},
    {"grant", grant_tests},
    {"session", session_tests},
    {"death", death_tests},
    {"mount", mount_tests},
    {"liar", liar_tests},
    {"dead_server", dead_server_tests},
    {"silent", silent_tests},
    {NULL, NULL},
};

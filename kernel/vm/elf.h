/*
 * Loading a program: a static ELF executable for the i386 (Tool Interface
 * Standard, ELF 1.2, book I chapters 1 and 2).
 */
#pragma once

#include "kernel/abi/types.h"
#include "kernel/vm/space.h"

/* Reads n bytes at a file offset; returns the number read, or an error. */
typedef ssize_t elf_read_t(void *arg, uint32_t offset, void *buf, size_t n);

/*
 * Fills an empty space with the program, its heap and the top page of its
 * stack; *entry gets its first instruction. 0; -ENOEXEC: not a valid
 * executable; -ENOMEM; or an error of `read`. After an error the space holds
 * what was loaded so far. May sleep.
 */
int elf_load(struct space *s, elf_read_t *read, void *arg, uaddr_t *entry);

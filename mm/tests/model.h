/*
 * The shadow model: the state that a cache must have after a sequence of
 * operations, computed in the simplest way from the rules (S-23, S-32, S-34 to
 * S-38, S-43). It has the slabs of a cache in an array, in list order; it finds
 * the next slab and buffer by a search through all of them. A test carries out
 * each operation on the cache and on the model, and compares.
 */
#pragma once

#include "mm/tests/kmem_test.h"

#define MODEL_SLABS  TEST_MANY(48, 256)
#define MODEL_CHUNKS TEST_MANY(128, 512)

struct model_slab {
    uintptr_t model_base;
    size_t model_colour;
    size_t model_free;     /* free buffers: entries in the stack */
    uint16_t *model_stack; /* their numbers, the next one last */
};

struct model {
    struct kmem_cache *model_cache;
    struct test_geometry model_geometry;
    size_t model_align;
    struct test_supply *model_supply; /* or NULL */
    size_t model_slabs;
    struct model_slab model_slab[MODEL_SLABS]; /* in list order */
    uint16_t model_stacks[MODEL_SLABS][MODEL_CHUNKS];
    size_t model_next_colour;
    size_t model_creates;
    size_t model_destroys;
    size_t model_allocs;
    size_t model_frees;
    size_t model_fails;
    size_t model_max_slabs;
    size_t model_min;   /* m */
    size_t model_limit; /* L */
    size_t model_hash;  /* buckets, 0 if small */
};

/* Starts from a cache without slabs. */
void model_init(struct model *m, struct kmem_cache *cp,
                struct test_supply *supply);

/* Allocates an object, KM_NOSLEEP. Fails the case if the address, or the
 * success, is not what the rules predict. */
void *model_alloc(struct model *m);

void model_free(struct model *m, void *obj);

/* The end of an interval; kmem_update is the caller's. */
void model_update(struct model *m);

/* Reaps the cache and checks the result. */
void model_reap(struct model *m, enum kmem_reap_mode mode);

/* The effect of kmem_reap(mode) on this cache. */
void model_reaped(struct model *m, enum kmem_reap_mode mode);

/* Every slab, in order, and every count; false, and the case fails, at the
 * first difference. */
bool model_compare(const struct model *m);

size_t model_inuse(const struct model *m);

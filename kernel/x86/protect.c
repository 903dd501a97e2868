/*
 * Switching on what newer processors refuse.
 */
#include "kernel/x86/protect.h"
#include <cpuid.h>
#include "kernel/lib/string.h"
#include "kernel/x86/cpu.h"

#define SITE_BYTES 3

/* The addresses of the instructions stac and clac in trap.asm and copy.asm. */
extern uint8_t *const __start_smap_sites[], *const __stop_smap_sites[];

/* lea esi, [esi + 0]: three bytes without an effect, on every processor. */
static const uint8_t nothing[SITE_BYTES] = {0x8D, 0x76, 0x00};

/* Leaf 7 of CPUID: EBX, and ECX for UMIP (Intel SDM volume 2). */
static uint32_t offered(void)
{
    uint32_t eax, ebx, ecx, edx;

    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        return 0;
    return (ebx & 1u << 7 ? PROTECT_SMEP : 0) |
           (ebx & 1u << 20 ? PROTECT_SMAP : 0) |
           (ecx & 1u << 2 ? PROTECT_UMIP : 0);
}

void protect_init(void)
{
    uint32_t on = offered();

    if (on != 0)
        write_cr4(read_cr4() | on);
    for (uint8_t *const *site = __start_smap_sites;
         (on & PROTECT_SMAP) == 0 && site < __stop_smap_sites; site++)
        memcpy(*site, nothing, SITE_BYTES);
}

uint32_t protect_on(void)
{
    return read_cr4() & (PROTECT_SMEP | PROTECT_SMAP | PROTECT_UMIP);
}

const char *protect_verify(void)
{
    bool smap = (protect_on() & PROTECT_SMAP) != 0;

    if (protect_on() != offered())
        return "a protection that the processor has is off";
    if (smap && (read_eflags() & EFLAGS_AC) != 0)
        return "ring 0 may use the pages of programs here";
    for (uint8_t *const *site = __start_smap_sites; site < __stop_smap_sites;
         site++)
        if ((memcmp(*site, nothing, SITE_BYTES) != 0) != smap)
            return "stac or clac does not fit the processor";
    return NULL;
}

/*
 * Parses the data of IDENTIFY DEVICE: 256 words that describe a drive.
 */
#include "drivers/servers/ata/channel.h"
#include "kernel/lib/string.h"

/* Text is in words, the first character in the high byte, padded with blanks.
 * Unprintable characters become '?'. */
static void copy_text(char *out, const uint16_t *words, unsigned n)
{
    unsigned length = 0;

    for (unsigned i = 0; i < 2 * n; i++) {
        char c = (char)(i % 2 == 0 ? words[i / 2] >> 8 : words[i / 2] & 0xff);

        out[i] = c >= ' ' && c <= '~' ? c : '?';
        if (out[i] != ' ')
            length = i + 1;
    }
    out[length] = 0;
}

/* If a drive supplies a checksum, one byte makes the sum of all 0. */
static bool checksum_fits(const uint16_t words[ATA_ID_WORDS])
{
    uint8_t sum = 0;

    if ((words[ATA_ID_INTEGRITY] & 0xff) != 0xa5)
        return true;
    for (unsigned i = 0; i < ATA_ID_WORDS; i++)
        sum = (uint8_t)(sum + (words[i] & 0xff) + (words[i] >> 8));
    return sum == 0;
}

enum ata_verdict ata_identify(const uint16_t words[ATA_ID_WORDS],
                              struct ata_identity *out)
{
    uint32_t sectors =
        words[ATA_ID_SECTORS] | (uint32_t)words[ATA_ID_SECTORS + 1] << 16;

    *out = (struct ata_identity){0};
    if (!checksum_fits(words))
        return ATA_ID_GARBLED;
    if ((words[ATA_ID_GENERAL] & 0x8000) != 0 ||
        (words[ATA_ID_ABILITIES] & 0x200) == 0 || sectors == 0)
        return ATA_ID_NO_DISK;
    copy_text(out->id_serial, words + ATA_ID_SERIAL, 10);
    copy_text(out->id_model, words + ATA_ID_MODEL, 20);
    out->id_sectors = MIN(sectors, ATA_LBA_END);
    out->id_multiple = words[ATA_ID_MULTIPLE] & 0xff;
    return ATA_ID_DISK;
}

bool ata_same_drive(const struct ata_identity *a, const struct ata_identity *b)
{
    return a->id_sectors == b->id_sectors &&
           strcmp(a->id_model, b->id_model) == 0 &&
           strcmp(a->id_serial, b->id_serial) == 0;
}

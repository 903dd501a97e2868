/*
 * The registers of an ATA channel: nine, of which each of the two drives has a
 * set. The drive selected by the device register responds; both receive what is
 * written (ATA/ATAPI-6, clause 7, "Interface register definitions").
 *
 *     port        read                 written
 *     base + 0    data (16 bits)       data
 *     base + 1    error                features
 *     base + 2 …  sector count, LBA low, LBA mid, LBA high
 *     base + 6    device: 1 L 1 D and LBA 27:24
 *     base + 7    status; INTRQ ends   command
 *     control     alternate status     device control
 *
 * The order in which they are used is in channel.c.
 */
#pragma once

enum ata_register {
    ATA_DATA,
    ATA_ERROR,
    ATA_COUNT,
    ATA_LBA_LOW,
    ATA_LBA_MID,
    ATA_LBA_HIGH,
    ATA_DEVICE,
    ATA_STATUS,  /* reading it clears the interrupt */
    ATA_CONTROL, /* read: the status, without side effects */
};

#define ATA_COMMAND ATA_STATUS

/* Status. While BSY is set no other bit means anything. */
#define ATA_BSY  0x80
#define ATA_DRDY 0x40
#define ATA_DF   0x20 /* device fault */
#define ATA_DRQ  0x08 /* a block of data is ready to be read or written */
#define ATA_ERR  0x01

#define ATA_FLOATING 0xff /* reads on a bus without a device */
#define ATA_NOBODY   0x00 /* device 0's status for an absent device 1 */

/* Error. */
#define ATA_ABRT 0x04 /* command not supported */
#define ATA_UNC  0x40 /* the sector cannot be read */

/* Device. Bits 7 and 5 were 1 in old standards and are still written so. */
#define ATA_DEVICE_BITS 0xa0
#define ATA_LBA         0x40
#define ATA_DEVICE_1    0x10

/* Device control. */
#define ATA_SRST 0x04 /* software reset, both drives, while it is set */
#define ATA_NIEN 0x02 /* no interrupts */

/* Commands (clause 8). */
#define ATA_READ_SECTORS   0x20
#define ATA_WRITE_SECTORS  0x30
#define ATA_READ_MULTIPLE  0xc4
#define ATA_WRITE_MULTIPLE 0xc5
#define ATA_SET_MULTIPLE   0xc6
#define ATA_FLUSH_CACHE    0xe7
#define ATA_IDENTIFY       0xec

/* IDENTIFY DEVICE: meaning of the words (clause 8, "IDENTIFY DEVICE"). */
#define ATA_ID_GENERAL   0  /* bit 15: not an ATA disk */
#define ATA_ID_SERIAL    10 /* … 19, two characters in each, high byte first */
#define ATA_ID_MODEL     27  /* … 46 */
#define ATA_ID_MULTIPLE  47  /* bits 7:0: sectors in a block at most */
#define ATA_ID_ABILITIES 49  /* bit 9: LBA */
#define ATA_ID_SECTORS   60  /* and 61, high half */
#define ATA_ID_INTEGRITY 255 /* low byte 0xa5: high byte makes the sum 0 */
#define ATA_ID_WORDS     256

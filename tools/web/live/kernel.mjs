/*
 * Which kernel an ELF file holds. layouts.json describes one kernel alone, so
 * the page compares its hash with that of the kernel that it boots.
 */

const PT_LOAD = 1;

/* Continues a CRC-32, as zlib.crc32 in Python. */
function crc32(bytes, crc) {
    crc = ~crc;
    for (const byte of bytes) {
        crc ^= byte;
        for (let bit = 0; bit < 8; bit++)
            crc = crc >>> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
    }
    return ~crc >>> 0;
}

/* The hash of an ELF file's loaded bytes: kernel_hash in tools/web/layouts.py.
 * Debug information is not loaded. */
export function kernelHash(elf) {
    const view = new DataView(elf.buffer, elf.byteOffset, elf.byteLength);
    const word = at => view.getUint32(at, true);
    const headers = word(28);
    const size = view.getUint16(42, true), count = view.getUint16(44, true);
    let crc = 0;

    for (let i = 0; i < count; i++) {
        const header = headers + i * size;
        const start = word(header + 4), bytes = word(header + 16);

        if (word(header) === PT_LOAD)
            crc = crc32(elf.subarray(start, start + bytes), crc);
    }
    return crc.toString(16).padStart(8, "0");
}

/*
 * The heap of the guest, drawn as it changes.
 */

/* Draws the heap of a machine in `section`, until it is mounted anew. */
export function mountHeap(section, machine, layouts) {
}

"""What Slate's tools and tests share: starting QEMU, talking to what runs in
it, and reading the events that the kernel reports. Standard library only."""

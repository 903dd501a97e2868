/*
 * The machine's clock: it stands while the machine is paused, and goes back
 * when the machine does. In slow motion it goes slower.
 *
 * v86 takes its time from performance.now as that is when v86 is loaded. So
 * this module, which is imported before v86, puts its own clock there, and
 * release() puts the browser's back.
 */
const browser = performance.now.bind(performance);
let time = 0, since = browser(), factor = 0;

export const clock = {
    /* Milliseconds of the machine. */
    now() {
        return time + (browser() - since) * factor;
    },

    /* It goes on from here, so many times as fast as the browser's. */
    go(times) {
        clock.set(clock.now());
        factor = times;
    },

    set(ms) {
        time = ms;
        since = browser();
    },

    release() {
        delete performance.now;
    },
};

performance.now = () => clock.now();

/*
 * Lets a machine of v86 execute at pace.speed times the speed that it has; the
 * clock goes accordingly. With a speed of Infinity the time for which the
 * processor is halted is skipped.
 *
 * v86 executes for about a millisecond, then gives the browser a turn: yield()
 * says for how long the machine has nothing to do. An interrupt ends that: v86
 * then calls yield() again, with 0.
 */
export function setPace(machine, pace) {
    const tick = machine.do_tick.bind(machine);
    const wait = machine.yield.bind(machine);
    let began = browser();

    machine.do_tick = () => {
        began = browser();
        clock.go(1);
        tick();
        if (!machine.running)
            clock.go(0);
    };
    machine.yield = (ms, number) => {
        const { speed } = pace;
        const spent = Math.max(browser() - began, 0);

        began = Infinity; // what ends a wait has executed nothing
        if (ms < 1) { // it is busy
            clock.go(0);
            wait(speed < 1 ? spent * (1 / speed - 1) : 0, number);
        } else if (speed === Infinity) {
            clock.set(clock.now() + ms);
            wait(0, number);
        } else {
            clock.go(speed);
            wait(ms / speed, number);
        }
    };
}

"""Finds the reference to an object that was not counted, or dropped too often.

A step of a count is (delta, task, places): +1 or -1, the task that changed the
count, and the places in memory (not on stacks) that point to the object: before
+1, and for -1 before the operation that drops the reference began. A place is a
reference, and there may be more in registers; so the count is never less than
the number of places, until a reference is not counted. From then on it is one
less:

    +1 ─> parent's place   child's place, not counted   -1 by the parent: freed
    count 0 ──────> 1 ───────────────── 1 ────────────────────── 0
    places 0 ─────> 1 ───────────────── 2 ────────────────────── 1

references.py collects the steps from a recorded run.
"""


def _paired(steps, last):
    """The numbers of the steps that remain without pairs. A pair is +1 and then
    -1 by one task, with the same places before the +1 and after the -1."""
    left = list(range(len(steps)))
    at = 0
    while at + 1 < len(left):
        i, j = left[at], left[at + 1]
        after = steps[j + 1][2] if j + 1 < len(steps) else last
        if (steps[i][0], steps[j][0]) == (1, -1) and \
                steps[i][1] == steps[j][1] and steps[i][2] == after:
            del left[at:at + 2]
            at = max(at - 1, 0)
        else:
            at += 1
    return left


def unbalanced(steps, last):
    """(number of the step, places): the places were filled after that step, and
    the last filled was not counted; if there are none, the step itself dropped
    a reference too many. Step -1: before the first. `last` is the places after
    the end. None: the steps do not show it."""
    if steps and last & steps[0][2]:  # of an earlier object at this address
        return -1, sorted(last & steps[0][2])
    left, count, slack = _paired(steps, last), 0, []
    for i in left:
        slack.append(count - len(steps[i][2]))
        count += steps[i][0]
    more = [n for n, value in enumerate(slack) if value > count - len(last)]
    if not last or not more:
        return None
    at = more[-1]
    after = steps[left[at + 1]][2] if at + 1 < len(left) else last
    filled = sorted(after - steps[left[at]][2])
    if steps[left[at]][0] == 1 and not filled:
        return None
    return left[at], filled

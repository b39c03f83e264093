"""What the soak prints: a table for each direction, the promises, the faults."""

import collections

from accountant import BROKEN, COUNTED_DOWN, COUNTED_PAGES, COUNTED_UP
from plan import WIRES

# Findings of a kind that are shown; all of them are in the file.
SHOWN = 3
DIRECTIONS = {"up": COUNTED_UP, "down": COUNTED_DOWN, "pages": COUNTED_PAGES}


def promises(result, others=()):
    """[(sentence, [broken by])]; `others` are those that are not about messages."""
    found = collections.defaultdict(list)
    for finding in result.findings:
        found[finding.wire, finding.direction, finding.kind].append(finding)
    return [
        ("%s, %s: none %s" % (wire, direction, kind), found[wire, direction, kind])
        for wire in WIRES for direction in DIRECTIONS for kind in BROKEN
    ] + list(others)


def table(result, direction):
    columns = list(WIRES)
    rows = [(kind, [result.tallies[wire, direction][kind] for wire in columns]) for kind in DIRECTIONS[direction]]
    rows += [(kind, [result.tallies[wire, direction][kind] for wire in columns]) for kind in BROKEN]
    if direction == "down":
        rows.append(("(other order)", [result.tallies[wire, direction]["other order"] for wire in columns]))
    lines = ["%-14s" % direction + "".join("%10s" % name for name in columns)]
    lines += ["%-14s" % kind + "".join("%10d" % count for count in counts) for kind, counts in rows]
    return "\n".join(lines)


def print_tables(result):
    for direction in DIRECTIONS:
        print("\n" + table(result, direction))


def print_broken(kept):
    """Prints the broken promises, and returns them."""
    broken = [promise for promise in kept if promise[1]]
    for sentence, by in broken:
        print("\nBROKEN: %s (%d)" % (sentence, len(by)))
        for finding in by[:SHOWN]:
            print("    " + (finding if isinstance(finding, str) else "%s in %s: %s" % (
                finding.who, finding.room, finding.what)))
        if len(by) > SHOWN:
            print("    … %d more" % (len(by) - SHOWN))
    return broken


def show(result, soak):
    """Prints everything; the broken promises."""
    for note in dict.fromkeys(soak.notes):
        print("note: " + note)
    print("\nseed %d, %d s, %d faults" % (soak.chosen.seed, soak.chosen.seconds, sum(soak.ran.values())))
    counts = sorted(soak.ran.items())
    half = (len(counts) + 1) // 2
    for left, right in zip(counts[:half], counts[half:] + [None] * (2 * half - len(counts))):
        print("  " + "".join("%4d  %-22s" % (count, kind) for kind, count in filter(None, (left, right))).rstrip())
    for name, count in sorted(soak.scripts.items()):
        print("  %4d  together: %s" % (count, name))
    if soak.jumps:
        print("        clock jumps of %s s" % ", ".join("%+d" % jump for jump in soak.jumps[:12]))
    print_tables(result)
    for line in [*soak.memory.told(), *soak.mirrors.told(), *soak.people.told()]:
        print("\n" + line, end="")
    print()
    kept = promises(result, soak.memory.promises() + soak.mirrors.promises() + soak.people.promises() + [
        ("no process ended by itself", ["%s: %s" % item for item in soak.own_ends().items()])])
    broken = print_broken(kept)
    print("\n%d of %d promises hold, in %.0f s" % (
        len(kept) - len(broken), len(kept), soak.elapsed()), flush=True)
    return broken


def write_details(result, soak):
    """All findings, and what happened when, for whoever looks for the reason."""
    with open(soak.path("findings.txt"), "w", encoding="utf-8") as file:
        for finding in result.findings:
            file.write("%s\t%s\t%s\t%s\t%s\t%s\n" % finding)
    with open(soak.path("faults.txt"), "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in soak.happened)

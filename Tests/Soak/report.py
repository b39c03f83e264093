"""What the soak prints: a table for each direction, the promises, the faults."""

import collections

from accountant import BROKEN, COUNTED_DOWN, COUNTED_UP
from plan import WIRES

# Findings of a kind that are shown; all of them are in the file.
SHOWN = 3
DIRECTIONS = {"up": COUNTED_UP, "down": COUNTED_DOWN}


def promises(result, own_ends):
    """[(sentence, [broken by])]."""
    found = collections.defaultdict(list)
    for finding in result.findings:
        found[finding.wire, finding.direction, finding.kind].append(finding)
    out = [
        ("%s, %s: none %s" % (wire, direction, kind), found[wire, direction, kind])
        for wire in WIRES for direction in DIRECTIONS for kind in BROKEN
    ]
    out.append(("no process ended by itself", ["%s: %s" % item for item in own_ends.items()]))
    return out


def table(result, direction):
    columns = list(WIRES)
    rows = [(kind, [result.tallies[wire, direction][kind] for wire in columns]) for kind in DIRECTIONS[direction]]
    rows += [(kind, [result.tallies[wire, direction][kind] for wire in columns]) for kind in BROKEN]
    if direction == "down":
        rows.append(("(other order)", [result.tallies[wire, direction]["other order"] for wire in columns]))
    lines = ["%-16s" % direction + "".join("%12s" % name for name in columns)]
    lines += ["%-16s" % kind + "".join("%12d" % count for count in counts) for kind, counts in rows]
    return "\n".join(lines)


def show(result, soak):
    """Prints everything; the broken promises."""
    for note in dict.fromkeys(soak.notes):
        print("note: " + note)
    print("\nseed %d, %d s, %d faults" % (soak.chosen.seed, soak.chosen.seconds, sum(soak.ran.values())))
    for kind, count in sorted(soak.ran.items()):
        print("  %4d  %s" % (count, kind))
    if soak.phases:
        print("        clock jumps of %s s" % ", ".join("%+d" % (phase[2] // 1000) for phase in soak.phases[:12]))
    for direction in DIRECTIONS:
        print("\n" + table(result, direction))
    kept = promises(result, soak.own_ends())
    broken = [promise for promise in kept if promise[1]]
    for sentence, by in broken:
        print("\nBROKEN: %s (%d)" % (sentence, len(by)))
        for finding in by[:SHOWN]:
            print("    " + (finding if isinstance(finding, str) else "%s: %s" % (finding.who, finding.what)))
        if len(by) > SHOWN:
            print("    … %d more" % (len(by) - SHOWN))
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

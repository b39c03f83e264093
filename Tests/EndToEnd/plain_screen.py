"""A person at a terminal: what telnet or nc sends, and what the person sees.

    Screen     a small terminal: rows of cells, a cursor, what scrolled away
    Terminal   telnet in character or line mode, or nc, with a screen; `send_bytes` is whose connection it is
    Seat       a terminal with a connection of its own
    sit        a Seat whose person has given a name and a room and is in
"""

import codecs
import re
import time
import unicodedata

from peer import MODERN, PATIENCE, _Link

IAC, DONT, DO, WONT, WILL, SB, IP, AYT, NOP, SE = 255, 254, 253, 252, 251, 250, 244, 246, 241, 240
ECHO, SGA, TTYPE, NAWS, LINEMODE = 1, 3, 24, 31, 34

ASKS_NAME = r"(?i)\b(nick)?name\b|\bwho are you|\bcall(ed)? you|\bnick\b"
ASKS_ROOM = r"(?i)\brooms?\b|\bchannel\b"
ASKS_PASSWORD = r"(?i)password"
KINDS = ("character", "line", "nc")


def row(nick, text):
    """The pattern of a message's row, whole."""
    return r"^\d\d:\d\d <%s> %s$" % (re.escape(nick), re.escape(text))


def width_of(char):
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf") or 0x1F3FB <= ord(char) <= 0x1F3FF:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


PLAIN = re.compile("[ -~]+")


class Screen:
    """Understands what a plain session may send to any terminal, and fails at anything else."""

    def __init__(self, width=100, height=24, onlcr=False):
        self.width, self.height, self.onlcr = width, height, onlcr
        self.cells = [[" "] * width for _ in range(height)]
        # Rows that go on in the next one because the terminal wrapped, and not because of a line's end.
        self.wrapped = [False] * height
        self.gone = []
        self.x = self.y = 0
        self.full = False
        self.cursor_shown = True
        self.bells = 0
        # Parameters of each SGR that sets something, and all that was printed without controls, but for CR and LF.
        self.colours = []
        self.pieces = []
        self.pending = ""
        self.joins = False

    @property
    def printed(self):
        self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def feed(self, text):
        text, self.pending = self.pending + text, ""
        at = 0
        while at < len(text):
            char = text[at]
            if char == "\x1b":
                found = re.match(r"\x1b(?:\[([0-9;?]*)([@-~])|([78]))", text[at:])
                if not found:
                    if re.fullmatch(r"\x1b(\[[0-9;?]*)?", text[at:]):
                        self.pending = text[at:]
                        return
                    raise AssertionError("no sequence for any terminal: %r" % text[at : at + 20])
                self._sequence(found.group(1) or "", found.group(2) or found.group(3))
                at += found.end()
                continue
            run = PLAIN.match(text, at)
            if run and not self.joins:
                self._print_run(run.group())
                at = run.end()
                continue
            at += 1
            self._char(char)

    def _print_run(self, text):
        """Letters of one column each."""
        self.pieces.append(text)
        while text:
            if self.full:
                self.wrapped[self.y] = True
                self.x, self.full = 0, False
                self._down()
            part, text = text[: self.width - self.x], text[self.width - self.x :]
            cells, end = self.cells[self.y], self.x + len(part)
            self._split(cells, self.x)
            self._split(cells, end - 1)
            cells[self.x : end] = part
            self.x = end
            if self.x >= self.width:
                self.x, self.full = self.width - 1, True

    def _char(self, char):
        if char == "\r":
            self.x, self.full = 0, False
            self.pieces.append("\r")
        elif char == "\n":
            if self.onlcr:
                self.x = 0
            self.full = False
            self.pieces.append("\n")
            self._down()
        elif char == "\b":
            self.x, self.full = max(self.x - 1, 0), False
        elif char == "\a":
            self.bells += 1
        elif char == "\t":
            self.x = min(self.x // 8 * 8 + 8, self.width - 1)
        elif unicodedata.category(char) == "Cc":
            raise AssertionError("a control on the screen: %r after %r" % (char, self.printed[-40:]))
        else:
            self._print(char)

    def _print(self, char):
        self.pieces.append(char)
        width = width_of(char)
        if width == 0 or self.joins:
            # The cell before takes what has no width, and what a joiner ties to it.
            cells, at = self.cells[self.y], self.x if self.full else self.x - 1
            if at > 0 and cells[at] == "":
                at -= 1
            if at >= 0:
                cells[at] += char
            self.joins = char == "\u200d"
            return
        if self.full or self.x + width > self.width:
            self.wrapped[self.y] = True
            self.x, self.full = 0, False
            self._down()
        cells = self.cells[self.y]
        for column in range(self.x, self.x + width):
            self._split(cells, column)
        cells[self.x] = char
        if width == 2:
            cells[self.x + 1] = ""
        self.x += width
        if self.x >= self.width:
            self.x, self.full = self.width - 1, True

    @staticmethod
    def _split(cells, column):
        """Half of a wide character that is overwritten takes the other half along."""
        if cells[column] == "" and column > 0:
            cells[column - 1] = " "
        if column + 1 < len(cells) and cells[column + 1] == "":
            cells[column + 1] = " "

    def _down(self):
        if self.y + 1 < self.height:
            self.y += 1
            return
        self.gone.append((self.cells.pop(0), self.wrapped.pop(0)))
        self.cells.append([" "] * self.width)
        self.wrapped.append(False)

    def _sequence(self, parameters, final):
        first = parameters.split(";")[0]
        count = int(first) if first.isdigit() else 0
        some, cells = max(count, 1), self.cells[self.y]
        if final == "m":
            if parameters not in ("", "0"):
                self.colours.append(parameters)
            return
        if final in "hl" and parameters in ("?25", "?7", "?2004"):
            if parameters == "?25":
                self.cursor_shown = final == "h"
            return
        if final not in "KABCDGJ@P" or "?" in parameters:
            raise AssertionError("no sequence for any terminal: ESC [ %s %s" % (parameters, final))
        if final == "K":
            begin, end = {0: (self.x, self.width), 1: (0, self.x + 1), 2: (0, self.width)}[count]
            if begin < self.width and cells[begin] == "":
                cells[begin - 1] = " "
            cells[begin:end] = [" "] * (end - begin)
            if count != 1:
                self.wrapped[self.y] = False
        elif final == "J":
            assert count == 0, "the screen is not the session's own to clear"
            cells[self.x :] = [" "] * (self.width - self.x)
            self.wrapped[self.y] = False
            for below in range(self.y + 1, self.height):
                self.cells[below] = [" "] * self.width
                self.wrapped[below] = False
        elif final == "@":
            cells[self.x :] = ([" "] * some + cells[self.x :])[: self.width - self.x]
        elif final == "P":
            del cells[self.x : self.x + some]
            cells += [" "] * (self.width - len(cells))
        elif final == "A":
            self.y = max(self.y - some, 0)
        elif final == "B":
            self.y = min(self.y + some, self.height - 1)
        elif final == "C":
            self.x = min(self.x + some, self.width - 1)
        elif final == "D":
            self.x = max(self.x - some, 0)
        elif final == "G":
            self.x = min(some, self.width) - 1
        self.full = False

    def resize(self, width, height):
        """As terminals without reflow do it: rows are cut or padded, the cursor's stays on the screen."""
        while len(self.cells) > height:
            self.gone.append((self.cells.pop(0), self.wrapped.pop(0)))
            self.y -= 1
        self.cells = [(cells + [" "] * width)[:width] for cells in self.cells]
        while len(self.cells) < height:
            self.cells.append([" "] * width)
            self.wrapped.append(False)
        self.width, self.height = width, height
        self.x, self.y, self.full = min(self.x, width - 1), max(self.y, 0), False

    def rows(self):
        """What is in sight."""
        return ["".join(cells).rstrip() for cells in self.cells]

    def input_row(self):
        """The row of the cursor, with those that it continues."""
        first = last = self.y
        while first > 0 and self.wrapped[first - 1]:
            first -= 1
        while last + 1 < self.height and self.wrapped[last]:
            last += 1
        return "".join("".join(cells) for cells in self.cells[first : last + 1]).rstrip()

    def before_cursor(self):
        return "".join(self.cells[self.y][: self.x + (1 if self.full else 0)])

    def lines(self):
        """All that is and was in sight, where the terminal wrapped as one line."""
        out, line = [], ""
        for cells, wrapped in self.gone + list(zip(self.cells, self.wrapped)):
            line += "".join(cells)
            if not wrapped:
                out.append(line.rstrip())
                line = ""
        while out and not out[-1]:
            out.pop()
        return out

    def text(self):
        return "\n".join(self.lines())


KEYS = {
    "backspace": b"\x7f", "ctrl-h": b"\x08", "up": b"\x1b[A", "down": b"\x1b[B", "right": b"\x1b[C", "left": b"\x1b[D",
    "home": b"\x1b[H", "end": b"\x1b[F", "delete": b"\x1b[3~", "tab": b"\t", "ctrl-a": b"\x01", "ctrl-c": b"\x03",
    "ctrl-d": b"\x04", "ctrl-e": b"\x05", "ctrl-k": b"\x0b", "ctrl-u": b"\x15", "ctrl-w": b"\x17", "ctrl-l": b"\x0c",
}


class Terminal:
    """`kind`:
        character   telnet that agrees to the server's echo and sends every key at once
        line        telnet whose person said `mode line`: it echoes and edits by itself
        nc          no telnet: a terminal in front of a socket
    """

    def __init__(
        self, kind="character", width=100, height=24, ttype="xterm-256color", naws=True, initiates=True, answers=True,
    ):
        self.kind = kind
        # Whether it answers telnet's commands.
        self.answers = answers and kind != "nc"
        self.nick = None
        self.ttype, self.naws = ttype, naws
        self.screen = Screen(width, height, onlcr=kind == "nc")
        self.raw = bytearray()
        # Commands of the server, in order, and what stands of a command or subnegotiation that is not whole.
        self.commands = []
        self.rest = b""
        self.after_cr = False
        self.decoder = codecs.getincrementaldecoder("utf-8")("strict")
        self.us, self.him = set(), set()
        self.asked = set()
        self.refused = set()
        self.buffer = ""
        self.began = time.monotonic()
        if kind != "nc" and initiates:
            self.offer()

    def send_bytes(self, data):
        raise NotImplementedError

    # -- Telnet

    def offer(self):
        """What telnet says at its own port: terminal type, size, and that both may speak at once."""
        self.us |= {TTYPE} if self.ttype else set()
        self.us |= {NAWS} if self.naws else set()
        self.asked |= {(WILL, option) for option in self.us}
        data = b"".join(bytes([IAC, WILL, option]) for option in sorted(self.us))
        if self.kind == "character":
            self.asked.add((DO, SGA))
            data += bytes([IAC, DO, SGA])
        self.send_bytes(data or bytes([IAC, NOP]))

    @property
    def remote_echo(self):
        return ECHO in self.him

    def _command(self, verb, option):
        self.commands.append((verb, option))
        assert len(self.commands) < 2000, "negotiation without end: %r" % self.commands[-4:]
        if not self.answers:
            return
        if verb == WILL:
            self._asked_of_him(option)
        elif verb == WONT:
            if option in self.him:
                self.him.discard(option)
                self.send_bytes(bytes([IAC, DONT, option]))
        elif verb == DO:
            wanted = {TTYPE: bool(self.ttype), NAWS: self.naws, SGA: True}.get(option, False)
            # An answer to what was offered is no request.
            if (WILL, option) in self.asked:
                self.asked.discard((WILL, option))
            elif wanted and option not in self.us:
                self.us.add(option)
                self.send_bytes(bytes([IAC, WILL, option]))
            elif not wanted:
                self.send_bytes(bytes([IAC, WONT, option]))
            if wanted and option == NAWS:
                self.send_size()
        elif verb == DONT and option in self.us:
            self.us.discard(option)
            self.asked.discard((WILL, option))
            self.send_bytes(bytes([IAC, WONT, option]))

    def _asked_of_him(self, option):
        if option in self.him:
            return
        wanted = option in (ECHO, SGA)
        if self.kind == "line" and (option == SGA or option not in self.refused):
            wanted = False
        if (DO, option) in self.asked:
            self.asked.discard((DO, option))
            self.him.add(option)
        elif wanted:
            self.him.add(option)
            self.send_bytes(bytes([IAC, DO, option]))
        else:
            self.refused.add(option)
            self.send_bytes(bytes([IAC, DONT, option]))

    def send_size(self, width=None, height=None):
        width, height = width or self.screen.width, height or self.screen.height
        size = bytes([width >> 8, width & 255, height >> 8, height & 255]).replace(b"\xff", b"\xff\xff")
        self.send_bytes(bytes([IAC, SB, NAWS]) + size + bytes([IAC, SE]))

    def resize(self, width, height):
        self.screen.resize(width, height)
        self.send_size()

    def _subnegotiation(self, data):
        if self.answers and data[:2] == bytes([TTYPE, 1]) and self.ttype:
            self.send_bytes(bytes([IAC, SB, TTYPE, 0]) + self.ttype.encode() + bytes([IAC, SE]))

    def _feed(self, data):
        """Takes commands out and gives the rest to the screen."""
        data, self.rest = self.rest + data, b""
        at, text = 0, bytearray()
        while at < len(data):
            byte = data[at]
            if byte != IAC:
                # CR NUL is telnet's CR.
                if not (byte == 0 and self.after_cr and self.kind != "nc"):
                    text.append(byte)
                self.after_cr = byte == 13
                at += 1
                continue
            verb = data[at + 1] if at + 1 < len(data) else None
            if verb is None or (verb >= WILL and verb != IAC and at + 2 >= len(data)):
                self.rest = data[at:]
                break
            if verb == SB:
                end = data.find(bytes([IAC, SE]), at)
                if end < 0:
                    self.rest = data[at:]
                    break
                self._show(text)
                self._subnegotiation(data[at + 2 : end])
                at = end + 2
            elif verb == IAC:
                text.append(IAC)
                at += 2
            elif verb >= WILL:
                self._show(text)
                self._command(verb, data[at + 2])
                at += 3
            else:
                self.commands.append((verb, None))
                at += 2
        self._show(text)

    def _show(self, text):
        if text:
            self.screen.feed(self.decoder.decode(bytes(text)))
            text.clear()

    # -- The keyboard

    def type(self, text):
        if self.kind == "character":
            for char in text:
                self.send_bytes(char.encode())
            return
        self.buffer += text
        if not self.remote_echo:
            self.screen.feed(text)

    def enter(self):
        if self.kind == "character":
            self.send_bytes(b"\r\0")
            return
        # Without echo not even the line's end is seen.
        if not self.remote_echo:
            self.screen.feed("\r\n")
        line, self.buffer = self.buffer, ""
        self.send_bytes(line.encode() + (b"\n" if self.kind == "nc" else b"\r\n"))

    def line(self, text):
        self.type(text)
        self.enter()

    def key(self, *names):
        assert self.kind == "character", "keys are the terminal's own there"
        for name in names:
            self.send_bytes(KEYS[name])

    def paste(self, text):
        """All at once, as terminals do it: with CR for the lines' ends."""
        ends = {"character": "\r", "line": "\r\n", "nc": "\n"}[self.kind]
        self.send_bytes(text.replace("\n", ends).encode())


class Seat(_Link, Terminal):
    def __init__(self, port, kind="character", **options):
        _Link.__init__(self, "127.0.0.1", port)
        Terminal.__init__(self, kind, **options)

    def send_bytes(self, data):
        self.sock.settimeout(PATIENCE)
        self.sock.sendall(data)

    def pump(self, seconds=0.0):
        data = self._read(seconds)
        self.raw += data
        self._feed(data)
        return bool(data)

    def enter(self):
        if self.kind != "character":
            self.drain()
        Terminal.enter(self)

    # -- The eyes

    def expect(self, what, condition, patience=None):
        """Reads until `condition()` gives something, and gives that."""
        end = time.monotonic() + (patience or PATIENCE)
        while True:
            self.drain()
            found = condition()
            if found:
                return found
            if self.closed or time.monotonic() > end:
                raise AssertionError(
                    "%s never saw %s%s; the screen:\n%s"
                    % (
                        self.nick or self.kind, what() if callable(what) else what,
                        " (connection closed)" if self.closed else "", self.screen.text()[-1500:],
                    ))
            self.pump(0.02)

    def see(self, pattern, patience=None, what=None):
        return self.expect(
            what or "/%s/" % pattern, lambda: re.search(pattern, self.screen.text(), re.M), patience)

    def see_message(self, nick, text, patience=None):
        return self.see(row(nick, text), patience, "the message of %s: %r" % (nick, text[:80]))

    def see_once(self, nick, text):
        self.see_message(nick, text)
        count = len(re.findall(row(nick, text), self.screen.text(), re.M))
        assert count == 1, "%r is %d times on the screen:\n%s" % (text, count, self.screen.text())

    def see_now(self, pattern, patience=None):
        """In sight, not only what scrolled away."""
        return self.expect(
            "/%s/ in sight" % pattern, lambda: re.search(pattern, "\n".join(self.screen.rows()), re.M), patience)

    def see_gone(self, pattern, patience=None):
        return self.expect(
            "/%s/ vanish" % pattern, lambda: not re.search(pattern, "\n".join(self.screen.rows()), re.M), patience)

    def see_typed(self, text, cursor_behind=None, patience=None):
        """The line being typed is whole, and the cursor is behind what `cursor_behind` says, by default all of it."""
        behind = text if cursor_behind is None else cursor_behind
        return self.expect(
            lambda: "%r on the line being typed, the cursor behind %r (it is %r and %r)"
            % (text, behind, self.screen.input_row(), self.screen.before_cursor()),
            lambda: self.screen.input_row().endswith(text.rstrip()) and self.screen.before_cursor().endswith(behind), patience)

    def see_nothing_typed(self, text):
        self.expect("the line being typed without %r" % text, lambda: not self.screen.input_row().endswith(text))

    def mark(self):
        """Where `hear` begins."""
        self.drain()
        return len(self.screen.printed)

    def hear(self, pattern, since=0, patience=None):
        """Printed since the mark, wherever it is now."""
        return self.expect(
            "/%s/" % pattern, lambda: re.search(pattern, self.screen.printed[since:].replace("\r\n", "\n"), re.M), patience)

    def messages(self, nick=None):
        """Texts of the rows of messages, in order."""
        self.drain()
        who = re.escape(nick) if nick else r"[^>]+"
        return [found.group(1) for found in re.finditer(r"^\d\d:\d\d <%s> (.*)$" % who, self.screen.text(), re.M)]

    def wait_closed(self, patience=None):
        end = time.monotonic() + (patience or PATIENCE)
        while not self.closed:
            assert time.monotonic() < end, "%s is still connected; the screen:\n%s" % (self.nick, self.screen.text()[-800:])
            self.pump(0.05)

    def hang_up(self):
        self.close()


def not_irc(person):
    """What no client for IRC would understand is no sight for people."""
    assert not re.search(r"^(:\S+|ERROR|PING) ", person.screen.text(), re.M), "IRC on the screen:\n" + person.screen.text()


def seat(world, kind="character", port=None, **options):
    """Somebody who has connected, and done nothing else."""
    found = Seat(port or world.bridge.port, kind, **options)
    world.stack.callback(found.close)
    return found


def open_session(person):
    """Until it asks for a name: telnet says that it is one, others press Enter."""
    if person.kind == "nc":
        person.enter()
    person.hear(ASKS_NAME)
    if person.kind == "character":
        person.expect("character mode", lambda: {ECHO, SGA} <= person.him)
    return person


def give_name(person, nick):
    since = person.mark()
    person.nick = nick
    person.line(nick)
    return since


def watcher(world):
    """An IRC client in the room, by whom others' comings are known."""
    found = getattr(world, "watch", None)
    if found is None:
        found = world.watch = world.irc("watch", None, MODERN)
    return found


def watch_room(world, channel):
    watch = watcher(world)
    rooms = getattr(watch, "rooms", None)
    if rooms is None:
        rooms = watch.rooms = set()
    if channel not in rooms:
        rooms.add(channel)
        watch.join(channel)
    return watch


def sit(world, nick="ann", room="#lobby", kind="character", password=None, **options):
    """In the room, with an empty line to type on."""
    watch = watch_room(world, room)
    person = open_session(seat(world, kind, **options))
    since = give_name(person, nick)
    if password is not None:
        person.hear(ASKS_PASSWORD, since)
        since = person.mark()
        person.line(password)
    person.hear(ASKS_ROOM, since)
    person.line(room)
    watch.expect("JOIN", lambda line: line.source.startswith(nick + "!") and line.params[0] == room)
    person.expect("the room", lambda: len(person.screen.printed) > since)
    return person

#!/usr/bin/env python3
"""Takes the project's pictures: the page with both sides, light and dark, a short animation of it, the screen of telnet, and the page of
the status.

    CHATBRIDGE=path python3 Tests/Studio/pictures.py DIRECTORY

The animation is an APNG: pictures one after the other in one file that every browser shows.
Source: W3C Portable Network Graphics, third edition, §4.9 and §11.3.6.
"""
import asyncio
import pathlib
import struct
import sys
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import screens  # noqa: E402
from browser import Browser  # noqa: E402
from test_page import IS_OPEN, Program, Writer, shown  # noqa: E402

SIZE = (1180, 720)


def now():
    """As the dialect writes times: seconds since 2001."""
    return time.time() - 978307200


def chunks(data):
    place = 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place:place + 4])
        yield data[place + 4:place + 8], data[place + 8:place + 8 + length]
        place += 12 + length


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def animation(frames):
    """One APNG of pictures of one size, each with the seconds for which it stands; shown again and again."""
    out, number = bytearray(b"\x89PNG\r\n\x1a\n"), 0
    for index, (picture, seconds) in enumerate(frames):
        parts = list(chunks(picture))
        head = next(data for kind, data in parts if kind == b"IHDR")
        width, height = struct.unpack(">II", head[:8])
        if index == 0:
            out += chunk(b"IHDR", head) + chunk(b"acTL", struct.pack(">II", len(frames), 0))
        out += chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, 0, 0, round(seconds * 1000), 1000, 0, 0))
        number += 1
        for kind, data in parts:
            if kind == b"IDAT" and index == 0:
                out += chunk(b"IDAT", data)
            elif kind == b"IDAT":
                out += chunk(b"fdAT", struct.pack(">I", number) + data)
                number += 1
    return bytes(out + chunk(b"IEND", b""))


async def take(directory):
    directory.mkdir(parents=True, exist_ok=True)
    async with Program("demo", "--listen", "irc://127.0.0.1:0") as program, Browser() as browser:
        tab = await browser.tab("%s?name=Ada%%20Lovelace&nick=colette&room=lobby" % program.page)
        await tab.until(IS_OPEN)
        await tab.until("irc.state === 'open' && irc.current.members.size", "IRC is there")
        await tab.focus()
        await tab.size(*SIZE)
        await tab.theme("light")
        frames = []

        async def to_the_end():
            """Of both wires, where what has just happened stands."""
            await tab.evaluate("for (const list of [$('json'), $('lines')]) list.scrollTop = list.scrollHeight")

        async def frame(seconds):
            path = directory / "frame.png"
            await to_the_end()
            await tab.picture(path)
            frames.append((path.read_bytes(), seconds))
            path.unlink()

        async def type_in(field, text, step):
            for start in range(0, len(text), step):
                await tab.type(field, text[start:start + step])
                await asyncio.sleep(0.12)
                await frame(0.14)

        async with Writer(program, name="Grace Hopper") as grace:
            await grace.send("chat.presence", userId="id-Grace Hopper", userName="Grace Hopper", state="joined")
            await grace.say("Is anybody from the kitchen here?", sentAt=now())
            await tab.until(shown("kitchen here"))
            await asyncio.sleep(1)
            await frame(1)
            await type_in("#text", "The soup is ready 🍲", 5)
            await tab.key("Enter")
            await tab.until("[...active.entries].some(m => m.isOwn && m.readers.size)", "it is read")
            await asyncio.sleep(0.3)
            await frame(1.2)
            await type_in("#irc-text", "on my way, says IRC", 6)
            await tab.key("Enter")
            await tab.until(shown("on my way"))
            await grace.send("chat.typing", active=True)
            await tab.until("document.querySelector('#typing').textContent.includes('Grace')")
            await frame(1.2)
            await grace.say("Save me a bowl", sentAt=now())
            await tab.until(shown("Save me"))
            await asyncio.sleep(0.5)
            await frame(2)
            for theme in ("light", "dark"):
                await tab.theme(theme)
                await asyncio.sleep(0.2)
                await to_the_end()
                await tab.picture(directory / ("both-sides-%s.png" % theme))
        (directory / "both-sides.apng").write_bytes(animation(frames))
    await screens.telnet(directory)
    async with Browser() as browser:
        await screens.status(directory, browser)
    for path in sorted(directory.iterdir()):
        print("%s: %d KiB" % (path, path.stat().st_size // 1024))


if __name__ == "__main__":
    asyncio.run(take(pathlib.Path(sys.argv[1])))

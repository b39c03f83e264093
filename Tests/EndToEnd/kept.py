"""Files from IRC where the backend takes none: the bridge stores them and sends a link that opens."""

import base64
import http.client
import os
import re
import time

from backends import on_wires
from dialects import PNG
from fulldisk import empty_disk, fill_disk
from media import PUBLIC, basic, get, safe, start, upload
from peer import wait_until

TAKES_NONE = on_wires(lambda wire: wire.name not in ("jwt-rooms", "directus"))


def kept(setting, data, **options):
    """An upload that the bridge keeps; answers its link."""
    answer = upload(setting, data, **options)
    assert answer.status == 201, "%r of %d bytes: %r" % (answer.status, len(data), answer.body[:200])
    link = answer.headers["Location"]
    assert link.startswith(PUBLIC + "/media/"), "not the bridge's own link: " + link
    return link


def sent(setting, link):
    """The frame with which the backend got the link, in whatever form its wire has for it."""
    return wait_until(
        lambda: next((f for f in setting.backend.frames() if f["kind"] == "message" and link in str(f["raw"]) + str(f)), None),
        lambda: "the backend gets the link; it got %r" % setting.backend.frames()[-3:])


@TAKES_NONE
def a_file_is_kept_and_sent_as_a_link(setting):
    """"Files from IRC on a backend that takes none (five of seven dialects answer 403): with `[media]` on they are kept by the
    bridge and sent as a link." Clients are told where to upload, as on other backends."""
    start(setting)
    ann, bob = setting.irc("ann"), setting.irc("bob")
    for token in ("soju.im/FILEHOST", "draft/FILEHOST"):
        assert any("%s=%s/media/upload" % (token, PUBLIC) in line.params for line in ann.lines if line.command == "005"), token
    data = base64.b64decode(PNG)
    link = kept(setting, data)
    ann.say("#lobby", link)
    bob.expect("PRIVMSG", lambda line: link in line.params[-1])
    sent(setting, link)
    opened = safe(get(setting, link))
    assert opened.status == 200 and opened.body == data, opened.status
    assert opened.headers["Content-Type"] == "image/png", opened.headers
    assert "my-cat.png" in link or "my cat.png" in (opened.headers["Content-Disposition"] or ""), (link, opened.headers)


@TAKES_NONE
def words_around_the_link(setting):
    """The link with words before and behind it is what people upstream read."""
    start(setting)
    ann, bob = setting.irc("ann"), setting.irc("bob")
    link = kept(setting, b"a recipe", name="soup.txt", mime="text/plain")
    ann.say("#lobby", "look %s, it is good" % link)
    bob.expect_text("look %s, it is good" % link)
    frame = sent(setting, link)
    assert "look " in frame["text"] and "it is good" in frame["text"], frame
    opened = safe(get(setting, link))
    assert opened.body == b"a recipe" and "attachment" in opened.headers["Content-Disposition"], opened.headers


@TAKES_NONE
def a_link_opens_after_a_restart(setting):
    """Also after `kill -9` right behind the answer: 201 says that it is kept."""
    start(setting)
    data = os.urandom(300_000)
    link = kept(setting, data, name="noise.bin", mime="application/octet-stream")
    setting.bridge.process.kill()
    setting.bridge.process.wait()
    start(setting)
    assert get(setting, link).body == data
    ann = setting.irc("ann")
    ann.say("#lobby", link)
    sent(setting, link)


@TAKES_NONE
def what_could_run_is_only_to_be_saved(setting):
    """BACKENDS.md: "Pictures, films and sound of the usual types are shown by browsers; everything else, SVG, HTML and playlists
    too, is offered for download only and cannot execute"."""
    start(setting)
    for name, mime in (("a.svg", "image/svg+xml"), ("b.html", "text/html"), ("c.png", "text/html"), ("d", "image/svg+xml")):
        link = kept(setting, b"<svg onload='x()'><script>x()</script>", name=name, mime=mime)
        opened = safe(get(setting, link))
        assert opened.headers["Content-Type"] == "application/octet-stream", (name, opened.headers)
        assert opened.headers["Content-Disposition"].startswith("attachment"), (name, opened.headers)


@TAKES_NONE
def what_is_refused_elsewhere_is_refused_here(setting):
    """Without a login, with a wrong one, too large, empty, for a room that there is not."""
    start(setting, 'max_upload = "64KiB"\n')
    assert upload(setting, b"x", credentials={}).status == 401
    assert upload(setting, b"x", credentials=basic(password="wrong")).status == 401
    assert upload(setting, b"x" * 65537).status == 413
    assert upload(setting, b"").status == 400
    assert upload(setting, b"x", query="?room=nowhere").status == 403
    link = kept(setting, b"x" * 65536, query="?room=lobby", name="just.bin", mime="application/octet-stream")
    assert get(setting, link).body == b"x" * 65536
    forged = re.sub(r"just", "else", link)
    assert forged == link or get(setting, forged).status == 404, "a link that was changed opens"


@TAKES_NONE
def the_oldest_make_room(setting):
    """`retention` and `max_bytes` bound what is kept, as they do for files within messages."""
    start(setting, 'max_bytes = "1MiB"\n')
    folder, links = os.path.join(setting.directory, "state", "media"), []
    for number in range(4):
        links.append(kept(setting, bytes([number]) * 400_000, name="n%d.bin" % number, mime="application/octet-stream"))
        wait_until(lambda: get(setting, links[-1]).status == 200, "the file is kept")
        # Times of files are compared by the second.
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            os.utime(path, (os.stat(path).st_mtime - 60,) * 2)
    assert [get(setting, link).status for link in links] == [404, 404, 200, 200]


@on_wires(lambda wire: wire.name in ("envelope", "plainjson"))
def an_upload_on_a_full_disk(setting):
    """What cannot be kept is refused aloud, and no link is given that does not open; with room it is taken."""
    start(setting, log='level = "info"')
    setting.irc("ann")
    fill_disk(setting.bridge.process.pid)
    answer = upload(setting, os.urandom(200_000), name="big.bin", mime="application/octet-stream")
    assert answer.status >= 500, (answer.status, answer.headers["Location"])
    empty_disk(setting.bridge.process.pid)
    data = os.urandom(200_000)
    assert get(setting, kept(setting, data, name="big.bin", mime="application/octet-stream")).body == data


@on_wires(lambda wire: wire.name in ("envelope", "swiftchat"))
def an_upload_that_is_cut_off_leaves_nothing(setting):
    """A connection that dies in the middle of an upload is no file, and takes no room."""
    start(setting)
    for _ in range(3):
        connection = http.client.HTTPConnection("127.0.0.1", setting.http, timeout=15)
        connection.putrequest("POST", "/media/upload", skip_host=True)
        for name, value in {"Host": "files.test", "Content-Length": "500000", "Content-Type": "image/png", **basic()}.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(b"x" * 100_000)
        connection.close()
    folder = os.path.join(setting.directory, "state", "media")
    data = os.urandom(5000)
    # One upload of an account at a time is looked at (429).
    answer = wait_until(lambda: next((a for a in [upload(setting, data)] if a.status != 429), None), "the others are given up")
    assert answer.status == 201, (answer.status, answer.body)
    assert get(setting, answer.headers["Location"]).body == data

    def taken():
        return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))

    wait_until(lambda: taken() < 20_000, lambda: "nothing is left of them: %d bytes" % taken())


@on_wires(lambda wire: wire.name in ("envelope", "plainjson"))
def a_link_that_is_said_while_the_backend_is_away(setting):
    """The upload needs no backend, and the link waits as every message does."""
    start(setting)
    ann = setting.irc("ann")
    setting.backend.set(refuse=-1)
    setting.backend.control("drop", abort=True)
    ann.expect("NOTICE", lambda line: "was lost" in line.params[-1])
    link = kept(setting, base64.b64decode(PNG))
    ann.say("#lobby", link)
    ann.barrier()
    setting.backend.set(refuse=0)
    sent(setting, link)
    assert get(setting, link).status == 200


@on_wires(lambda wire: wire.name in ("jwt-rooms", "directus"))
def a_backend_that_takes_files_still_does(setting):
    """Nothing changes there: the file is the backend's."""
    start(setting)
    data = os.urandom(1000) + str(time.time()).encode()
    answer = upload(setting, data)
    assert answer.status == 201, answer.body
    folder = os.path.join(setting.directory, "state", "media")
    assert not os.path.isdir(folder) or not os.listdir(folder), os.listdir(folder)

"""Files over HTTP: uploads that go to the backend, links of the bridge's own, and files that came within messages."""

import base64
import http.client
import os
import shutil
import subprocess
import time
import urllib.parse

from accounts import account
from backends import on
from dialects import PNG
from peer import wait_until

PUBLIC = "http://files.test"
ACCOUNT = account("chef", "secret")


def tables(media="", http='trusted_proxies = ["127.0.0.1"]', public=PUBLIC):
    return '\n%s\n[[http]]\nbind = "http://127.0.0.1:0"\nserve = ["health", "media"]\n%s\n[media]\npublic_url = "%s"\n%s' % (
        ACCOUNT, http, public, media)


def start(setting, media="", more="", **options):
    setting.start(more=tables(media) + "\n" + more, **options)
    setting.http = int(setting.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
    return setting


def basic(name="chef", password="secret"):
    return {"Authorization": "Basic " + base64.b64encode(("%s:%s" % (name, password)).encode()).decode()}


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        try:
            self.body = response.read()
        except http.client.IncompleteRead as cut:
            self.body, self.status = cut.partial, "cut off"


def ask(setting, method, path, body=None, headers=None, host="files.test"):
    connection = http.client.HTTPConnection("127.0.0.1", setting.http, timeout=15)
    try:
        connection.request(method, path, body, {"Host": host, **(headers or {})})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def get(setting, link, method="GET", **headers):
    assert link.startswith(PUBLIC + "/media/"), link
    return ask(setting, method, link[len(PUBLIC) :], headers=headers)


def upload(setting, data, name="my cat.png", mime="image/png", query="", credentials=None):
    headers = {"Content-Type": mime, "Content-Disposition": 'attachment; filename="%s"' % name}
    return ask(
        setting, "POST", "/media/upload" + query, data, {**headers, **(basic() if credentials is None else credentials)})


def safe(answer):
    assert answer.headers["X-Content-Type-Options"] == "nosniff", answer.headers
    assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'", answer.headers
    return answer


# MARK: - Uploading


@on("jwt-rooms", "directus")
def an_upload_is_said_as_the_backends_attachment(setting):
    start(setting)
    ann, bob = setting.irc("ann"), setting.irc("bob")
    for token in ("soju.im/FILEHOST", "draft/FILEHOST"):
        assert any("%s=%s/media/upload" % (token, PUBLIC) in line.params for line in ann.lines if line.command == "005")
    options = ask(setting, "OPTIONS", "/media/upload", headers={"Origin": "https://chat.example"})
    assert options.status == 204 and "POST" in options.headers["Allow"], options.headers
    assert options.headers["Access-Control-Allow-Origin"] == "*"
    data = base64.b64decode(PNG)
    answer = upload(setting, data)
    assert answer.status == 201, (answer.status, answer.body)
    link = answer.headers["Location"]
    assert answer.headers["Access-Control-Expose-Headers"] == "Location"
    ann.say("#lobby", link)
    bob.expect_text(link)
    frame = setting.backend.expect("the message", kind="message")
    assert link not in frame["text"], frame
    if setting.wire.name == "jwt-rooms":
        # Open to everybody there: the file's own address.
        assert link.startswith(setting.backend.origin + "/api/files/"), link
        attachment = frame["raw"]["attachment"]
        assert attachment["type"] == "image" and attachment["mime_type"] == "image/png", attachment
        assert link.endswith(attachment["url"]) and attachment["size"] == len(data), attachment
    else:
        assert link.startswith(PUBLIC + "/media/f/lobby/") and link.endswith("/-/my-cat.png"), link
        assert frame["raw"]["data"]["file"] in link, (frame, link)
        opened = safe(get(setting, link))
        assert opened.status == 200 and opened.body == data
        assert opened.headers["Content-Type"] == "image/png"
    assert "secret" not in setting.bridge.log()


@on("jwt-rooms", "directus")
def curl_uploads_and_opens(setting):
    assert shutil.which("curl"), "curl is not installed"
    start(setting)
    data = os.urandom(3 * 1024 * 1024)
    path = os.path.join(setting.directory, "big file.bin")
    with open(path, "wb") as file:
        file.write(data)

    def curl(*arguments):
        done = subprocess.run(
            ["curl", "-sS", "--resolve", "files.test:80:127.0.0.1", "--connect-to",
             "files.test:80:127.0.0.1:%d" % setting.http, *arguments], capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    url = PUBLIC + "/media/upload"
    post = ["-X", "POST", "-T", path, "-H", 'Content-Disposition: attachment; filename="big file.bin"', url]
    assert curl("-o", "/dev/null", "-w", "%{http_code}", *post) == b"401"
    assert curl("-u", "chef:wrong", "-o", "/dev/null", "-w", "%{http_code}", *post) == b"401"
    link = curl("-u", "chef:secret", *post).decode().strip()
    assert curl(link) == data
    head = curl("-I", link).decode()
    assert " 200 " in head.splitlines()[0], head
    if setting.wire.name == "directus":
        assert "content-disposition: attachment" in head.lower(), head


@on("envelope", "typed", "plainjson", "swiftchat", "custom")
def where_the_backend_takes_no_files_the_bridge_keeps_them(setting):
    start(setting, 'max_upload = "64KiB"\nmax_bytes = "1MiB"\n')
    ann, bob = setting.irc("ann"), setting.irc("bob")
    assert any("soju.im/FILEHOST=%s/media/upload" % PUBLIC in line.params for line in ann.lines if line.command == "005")
    data = base64.b64decode(PNG)
    answer = upload(setting, data)
    assert answer.status == 201, (answer.status, answer.body)
    link = answer.headers["Location"]
    assert link.startswith(PUBLIC + "/media/d/lobby/") and link.endswith(".png/-/my-cat.png"), link
    ann.say("#lobby", "look " + link)
    bob.expect_text("look " + link)
    frame = setting.backend.expect("the message", kind="message")
    assert link in frame["text"], frame
    opened = safe(get(setting, link))
    assert opened.status == 200 and opened.body == data and opened.headers["Content-Type"] == "image/png"
    # Before it has come; and any kind of file, though only to be saved.
    assert upload(setting, b"x" * 65537).status == 413
    page = upload(setting, b"<script>", name="page.html", mime="text/html")
    opened = safe(get(setting, page.headers["Location"]))
    assert opened.headers["Content-Type"] == "application/octet-stream", opened.headers
    assert upload(setting, b"x", query="?room=nowhere").status == 403


@on("envelope")
def kept_uploads_give_way_to_newer_ones(setting):
    start(setting, 'max_upload = "600KiB"\nmax_bytes = "1MiB"\n')
    links = []
    for number in range(3):
        answer = upload(setting, bytes([number]) * 500_000)
        assert answer.status == 201, (answer.status, answer.body)
        links.append(answer.headers["Location"])
    assert [get(setting, link).status for link in links] == [404, 200, 200]


@on("envelope")
def an_upload_that_finds_no_room_is_refused(setting):
    start(setting, 'max_upload = "2MiB"\nmax_bytes = "1MiB"\n')
    refused = upload(setting, b"x" * 1_500_000)
    assert refused.status == 507, (refused.status, refused.body)
    assert setting.bridge.log_entries("file-not-kept")
    assert upload(setting, b"x" * 1000).status == 201


@on("jwt-rooms")
def uploads_are_refused_with_reasons(setting):
    start(setting, 'max_upload = "64KiB"\n')
    assert upload(setting, b"x", credentials={}).status == 401
    assert "Basic" in upload(setting, b"x", credentials={}).headers["WWW-Authenticate"]
    assert upload(setting, b"x", credentials=basic("nobody")).status == 401
    assert upload(setting, b"x" * 65537).status == 413
    assert upload(setting, b"").status == 400
    assert upload(setting, b"--b\r\n", mime="multipart/form-data; boundary=b").status == 415
    assert upload(setting, b"x", query="?room=nowhere").status == 403
    assert upload(setting, b"x", query="?room=%23lobby").status == 201
    assert ask(setting, "GET", "/media/upload").status == 405
    assert ask(setting, "POST", "/media/upload", b"x", basic(), host="evil.example").status == 421
    setting.backend.set(max_upload=10)
    refused = upload(setting, b"x" * 11)
    assert refused.status == 502 and b"400" in refused.body, refused.body


@on("jwt-rooms")
def guessing_passwords_takes_longer_and_longer(setting):
    start(setting)
    began = time.monotonic()
    for _ in range(3):
        assert upload(setting, b"x", credentials=basic(password="wrong")).status == 401
    assert time.monotonic() - began > 2.9, "1 s and 2 s after the second and the third"
    slow = http.client.HTTPConnection("127.0.0.1", setting.http, timeout=15)
    slow.request("POST", "/media/upload", b"x", {"Host": "files.test", **basic(password="wrong")})
    # What came before it is read before it is answered.
    assert ask(setting, "GET", "/healthz", host="localhost").status == 200
    assert upload(setting, b"x", credentials=basic(password="wrong")).status == 429, "others have to wait"
    assert slow.getresponse().status == 401
    slow.close()
    assert upload(setting, b"x").status == 201


@on("directus")
def what_is_larger_than_any_queue_is_uploaded(setting):
    start(setting, 'max_upload = "40MiB"\n')
    data = os.urandom(35 * 1024 * 1024)
    answer = upload(setting, data, name="film.mp4", mime="video/mp4")
    assert answer.status == 201, (answer.status, answer.body)
    opened = get(setting, answer.headers["Location"])
    assert opened.headers["Content-Type"] == "video/mp4" and opened.body == data


# MARK: - Links


@on("directus")
def files_behind_a_token_open_through_the_bridge(setting):
    start(setting)
    ann = setting.irc("ann")
    setting.backend.do("upload", "Remy", filename="cat.png", mime="image/png", data_b64=PNG, text="look")
    line = ann.expect("PRIVMSG", lambda line: "/media/" in line.params[-1])
    link = line.params[-1].split()[-1]
    opened = safe(get(setting, link))
    assert opened.status == 200 and opened.body == base64.b64decode(PNG)
    assert opened.headers["Content-Disposition"] == 'inline; filename="cat.png"'
    head = get(setting, link, "HEAD")
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == str(len(opened.body))
    part = safe(get(setting, link, Range="bytes=10-19"))
    assert part.status == 206 and part.body == opened.body[10:20], part.status
    assert part.headers["Content-Range"] == "bytes 10-19/%d" % len(opened.body)
    assert get(setting, link, Range="bytes=999999-").status == 416
    # Changed by a byte, it is nobody's.
    assert get(setting, link.replace("/lobby/", "/lobbz/")).status == 404
    assert get(setting, link.replace("cat.png", "dog.png")).status == 404
    assert get(setting, PUBLIC + "/media/f/lobby/x.y/assets/1/-/a").status == 404
    # The token ended in between: it is renewed, and whoever asked hears nothing of it.
    setting.backend.control("expire_tokens")
    again = get(setting, link)
    assert again.status == 200 and again.body == opened.body
    # History has links as well.
    bob = setting.irc("bob", more=("draft/chathistory",))
    bob.send("CHATHISTORY LATEST #lobby * 10")
    bob.expect("PRIVMSG", lambda line: link in line.params[-1])


@on("directus")
def what_could_run_in_a_browser_is_only_to_be_saved(setting):
    start(setting)
    ann = setting.irc("ann")
    for name, mime in (("a.svg", "image/svg+xml"), ("b.html", "text/html"), ("c.pdf", "application/pdf")):
        setting.backend.do("upload", "Remy", filename=name, mime=mime, data_b64=PNG, text="")
        line = ann.expect("PRIVMSG", lambda line: "/-/" + name in line.params[-1])
        opened = safe(get(setting, line.params[-1].split()[-1]))
        assert opened.headers["Content-Type"] == "application/octet-stream", opened.headers
        assert opened.headers["Content-Disposition"] == 'attachment; filename="%s"' % name


@on("directus")
def a_large_file_comes_whole_to_a_slow_reader(setting):
    start(setting)
    ann = setting.irc("ann")
    data = os.urandom(9 * 1024 * 1024)
    setting.backend.do(
        "upload", "Remy", filename="big.bin", mime="application/zip", data_b64=base64.b64encode(data).decode(), text="")
    line = ann.expect("PRIVMSG", lambda line: "/-/big.bin" in line.params[-1])
    path = line.params[-1].split()[-1][len(PUBLIC) :]
    connection = http.client.HTTPConnection("127.0.0.1", setting.http, timeout=15)
    connection.request("GET", path, headers={"Host": "files.test"})
    response, got = connection.getresponse(), b""
    while True:
        part = response.read(300_000)
        if not part:
            break
        got += part
        # Others are served meanwhile.
        assert ask(setting, "GET", "/healthz", host="localhost").status == 200
    connection.close()
    assert got == data
    # Somebody leaves in the middle; the next one gets it all the same.
    for _ in range(8):
        connection = http.client.HTTPConnection("127.0.0.1", setting.http, timeout=15)
        connection.request("GET", path, headers={"Host": "files.test"})
        connection.getresponse().read(1000)
        connection.close()
    assert ask(setting, "GET", path).body == data


# MARK: - Files within messages


@on("typed")
def what_lets_its_bearer_in_is_no_link(setting):
    """Neither a name of the bridge's own for a file that it keeps, nor a token, wherever it leads."""
    start(setting)
    ann = setting.irc("ann")
    for url in ("media:AAAAAAAAAAAAAAAAAAAAAA.png", "https://cdn.example/cat.png?token=0123456789abcdef0123456789abcdef"):
        setting.backend.do("upload", "Remy", url=url, filename="cat.png")
        line = ann.expect("PRIVMSG", lambda line: "cat.png" in line.params[-1])
        assert line.params[-1].endswith(" cat.png, not available through a link"), line.raw


@on("envelope")
def a_file_within_a_message_has_a_link(setting):
    start(setting)
    ann = setting.irc("ann")
    setting.backend.do("upload", "Remy", mime="image/png", data_b64=PNG)
    line = ann.expect("PRIVMSG", lambda line: "/media/d/lobby/" in line.params[-1])
    link = line.params[-1].split()[-1]
    opened = safe(get(setting, link))
    assert opened.status == 200 and opened.body == base64.b64decode(PNG)
    assert opened.headers["Content-Type"] == "image/png"
    assert get(setting, link, "HEAD").headers["Content-Length"] == str(len(opened.body))
    folder = os.path.join(setting.directory, "state", "media")
    for path in [os.path.join(folder, name) for name in os.listdir(folder)] + [
        os.path.join(setting.directory, "state", "media.key")
    ]:
        assert os.stat(path).st_mode & 0o777 == 0o600, path
    # The same link opens after a restart: key and file are kept.
    setting.bridge.stop()
    start(setting)
    assert get(setting, link).body == opened.body
    # What was removed is gone.
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    assert get(setting, link).status == 404


@on("envelope")
def the_oldest_kept_files_make_room(setting):
    start(setting, 'max_bytes = "1MiB"\n')
    ann = setting.irc("ann")
    links = []
    for number in range(4):
        data = base64.b64encode(bytes([number]) * 400_000).decode()
        setting.backend.do("upload", "Remy", mime="image/png", data_b64=data)
        line = ann.expect("PRIVMSG", lambda line: "/media/d/" in line.params[-1])
        links.append(line.params[-1].split()[-1])
        wait_until(lambda: get(setting, links[-1]).status == 200, "the file is kept")
        # Times of files are compared by the second; make each older than the next.
        folder = os.path.join(setting.directory, "state", "media")
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            os.utime(path, (os.stat(path).st_mtime - 60,) * 2)
    assert [get(setting, link).status for link in links] == [404, 404, 200, 200]


@on("envelope")
def without_a_configuration_nothing_is_served(setting):
    setting.start(more='\n%s\n[[http]]\nbind = "http://127.0.0.1:0"\n' % ACCOUNT)
    setting.http = int(setting.bridge.log_entries("listening-http")[0]["address"].rsplit(":", 1)[-1])
    ann = setting.irc("ann")
    assert not any("FILEHOST" in word for line in ann.lines if line.command == "005" for word in line.params)
    assert ask(setting, "POST", "/media/upload", b"x", basic(), host="localhost").status == 404
    assert urllib.parse.urlparse(PUBLIC).hostname not in setting.bridge.log()

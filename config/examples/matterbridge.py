#!/usr/bin/env python3
"""Stands between a mirror of type "json" and the API of matterbridge: docs/MIRRORS.md, "Matrix, XMPP, and others".

    matterbridge.py --listen 127.0.0.1:9700 --api http://127.0.0.1:4242 --hook http://127.0.0.1:9667/hooks/matterbridge

The mirror's secret is in the environment variable MIRROR_SECRET, and the API's token, if it has one, in MATTERBRIDGE_TOKEN.
A room of the mirror is the gateway of that name.
"""

import argparse
import collections
import hashlib
import hmac
import http.server
import itertools
import json
import os
import threading
import time
import urllib.error
import urllib.request

SECRET = os.environ["MIRROR_SECRET"]
TOKEN = os.environ.get("MATTERBRIDGE_TOKEN", "")


def request(url, body=None, token=""):
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + token}
    data = json.dumps(body).encode() if body is not None else None
    return urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=None if body is None else 30)


class Out(http.server.BaseHTTPRequestHandler):
    """What the mirror posts, for matterbridge."""

    # A request that is repeated, because its answer was lost, is not said again.
    taken = collections.OrderedDict()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        stamp = self.headers.get("Chatbridge-Timestamp", "")
        signed = hmac.new(SECRET.encode(), b"v1:%s:%s" % (stamp.encode(), body), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(self.headers.get("Chatbridge-Signature", ""), "v1=" + signed):
            return self.answer(401)
        try:
            for message in json.loads(body)["messages"]:
                self.say(message)
        except OSError:
            # It is tried again later, in this order.
            return self.answer(503)
        return self.answer(200)

    def say(self, message):
        if message["id"] in self.taken or message["kind"] not in ("message", "action", "edit", "notice"):
            return
        text = "* " + message["text"] if message["kind"] == "edit" else message["text"]
        files = [file["url"] for file in message.get("files", []) if file["url"] not in text]
        with request(self.server.api + "/api/message", {
            "text": "\n".join(filter(None, [text, *files])), "username": message["nick"], "gateway": message["room"],
            "event": "user_action" if message["kind"] == "action" else "",
        }, TOKEN):
            self.taken[message["id"]] = True
        if len(self.taken) > 10_000:
            self.taken.popitem(last=False)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def bring(api, hook):
    """What matterbridge says, for the mirror's path; forever."""
    begun, numbers = time.time_ns(), itertools.count()
    while True:
        try:
            with request(api + "/api/stream", token=TOKEN) as stream:
                for line in stream:
                    said = json.loads(line)
                    if said.get("event") in ("", "user_action") and said.get("text"):
                        deliver(hook, {
                            "id": "%d-%d" % (begun, next(numbers)), "nick": said["username"].strip() or "somebody",
                            "text": said["text"], "channel": said["gateway"],
                            "kind": "action" if said["event"] else "message"})
        except (OSError, ValueError):
            pass
        time.sleep(1)


def deliver(hook, message):
    while True:
        try:
            request(hook, message, SECRET).close()
            return
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                return
        except OSError:
            pass
        time.sleep(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--listen", "--api", "--hook"):
        parser.add_argument(name, required=True)
    chosen = parser.parse_args()
    host, _, port = chosen.listen.rpartition(":")
    server = http.server.ThreadingHTTPServer((host, int(port)), Out)
    server.api = chosen.api
    threading.Thread(target=bring, args=(chosen.api, chosen.hook), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()

"""What a backend refuses of what is done to messages: nobody is told that it was done."""

from backends import on
from history import ask, refused, texts


@on("directus")
def directus_that_lets_nobody_delete(setting):
    """A message is taken back when the server has done it: refused, it stands for everybody, and its author hears why."""
    setting.serve(deletes=False)
    setting.start()
    ann = setting.irc("ann", more=["draft/message-redaction"])
    bob = setting.irc("bob", more=["draft/message-redaction"])
    ann.say("#lobby", "said once")
    msgid = ann.expect_text("said once").tags["msgid"]
    bob.expect_text("said once")
    assert refused(ann, "REDACT #lobby %s" % msgid) == "REDACT_FORBIDDEN"
    bob.barrier()
    assert not [line for line in bob.lines if line.command == "REDACT"]
    assert texts(ask(bob, "CHATHISTORY LATEST #lobby * 10")) == ["said once"]
    setting.backend.set(deletes=True)
    ann.send("@label=again REDACT #lobby %s" % msgid)
    line = ann.expect("REDACT", lambda line: line.tags.get("label") == "again")
    assert line.params[:2] == ["#lobby", msgid], line
    assert bob.expect("REDACT").params == ["#lobby", msgid]
    assert "said once" not in texts(ask(bob, "CHATHISTORY LATEST #lobby * 10"))

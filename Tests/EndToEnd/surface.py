"""Features of IRC servers besides messages, over sockets: monitors, moderation, operators, relayed names."""

from accounts import account, client, log_in, start
from world import scenario


@scenario
def somebody_who_is_monitored_comes_and_goes(world):
    world.start()
    ann = world.plain("ann", join=())
    ann.send("MONITOR + bob,Remy")
    ann.expect("731", lambda line: line.params[-1] == "bob,Remy")
    bob = world.plain("bob")
    ann.expect("730", lambda line: line.params[-1].startswith("bob!"))
    world.person("Remy").say("hello")
    ann.expect("730", lambda line: line.params[-1].startswith("Remy!"))
    bob.send("QUIT")
    ann.expect("731", lambda line: line.params[-1] == "bob")


@scenario
def an_operator_kicks_and_bans(world):
    world.start()
    ann, bob = world.plain("ann"), world.plain("bob")
    remy = world.person("Remy")
    ann.send("KICK #lobby bob :enough", "MODE #lobby +b bob")
    bob.expect("KICK", lambda line: line.params == ["#lobby", "bob", "enough"])
    ann.expect("MODE", lambda line: line.params == ["#lobby", "+b", "bob!*@*"])
    bob.send("JOIN #lobby")
    bob.expect("474")
    bob.say("#lobby", "let me in")
    bob.expect("404")
    ann.say("#lobby", "quiet now")
    remy.expect_message("quiet now")
    assert "let me in" not in remy.bodies()


@scenario
def an_administrator_ends_a_connection(world):
    start(world, account("chef", "secret", "admin = true"))
    ann, bob = world.plain("ann"), world.plain("bob")
    ann.send("OPER chef wrong")
    ann.expect("464")
    ann.send("OPER chef secret")
    ann.expect("381")
    ann.send("KILL bob :enough")
    bob.expect("ERROR")
    bob.wait_closed()
    assert "secret" not in world.bridge.log()


@scenario
def a_mirror_speaks_under_others_names(world):
    start(world, account("mirror", "secret", "relaymsg = true"))
    ann, remy = world.plain("ann"), world.person("Remy")
    link = log_in(world, "mirror", "secret")
    link.expect("903")
    link.send("CAP END")
    link.expect("001")
    link.join("#lobby")
    link.send("RELAYMSG #lobby linguini/libera :hello from afar")
    assert remy.expect_message("hello from afar")["sender_name"] == "linguini/libera"
    ann.expect("PRIVMSG", lambda line: line.params == ["#lobby", "hello from afar"])
    assert ann.texts("linguini/libera") == ["hello from afar"]
    ann.send("NICK linguini/libera")
    ann.expect("432")


@scenario
def the_configured_icon_is_told_before_registration(world):
    world.start(server_extra='icon = "https://chat.example/icon.png"\n')
    link = client(world)
    link.send("CAP LS 302", "CAP REQ :batch draft/extended-isupport", "ISUPPORT")
    link.expect("BATCH", lambda line: line.params[1:] == ["draft/isupport"])
    link.expect("005", lambda line: "draft/ICON=https://chat.example/icon.png" in line.params)

"""Features of IRC servers besides messages, over sockets: monitors, moderation, operators, relayed names."""

from accounts import account, client, log_in, start
from restarts import log_in_as
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
def an_administrator_is_exempt_from_a_rooms_modes(world):
    """From a ban, `+i` and `+m`, also without being an operator of the room; others are not."""
    start(world, account("chef", "secret", "admin = true"), account("alice", "secret"))
    ann, remy = world.plain("ann"), world.person("Remy")
    alice, chef = log_in_as(world, "alice", "secret", "alice"), log_in_as(world, "chef", "secret", "chef")
    for mode, refusal in (("b *!*@*", "474"), ("i", "473"), ("m", "404")):
        ann.send("MODE #lobby +" + mode)
        ann.barrier()
        alice.send("JOIN #lobby", "PRIVMSG #lobby :not heard")
        alice.expect(refusal)
        chef.join("#lobby")
        ann.send("MODE #lobby -o chef")
        chef.expect("MODE", lambda line: line.params == ["#lobby", "-o", "chef"])
        chef.say("#lobby", "in spite of +" + mode)
        remy.expect_message("in spite of +" + mode)
        chef.send("PART #lobby")
        ann.send("MODE #lobby -" + mode)
    assert "not heard" not in remy.bodies()


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

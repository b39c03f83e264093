import Accounts
import BridgeTestSupport
import ChatModel
import Testing

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

@Suite("What people chose, over the end of the process")
struct ChoicesTests {
    /// What the service says to that.
    private func ask(_ stage: PrivateStage, _ client: UInt64, _ words: String) -> [String] {
        stage.send(client, "PRIVMSG *bridge :" + words).compactMap { line in
            line.firstMatch(of: #/:\*bridge!\S+ PRIVMSG \S+ :(.*)$/#).map { String($0.1) }
        }
    }

    private func choose(_ stage: PrivateStage) {
        stage.enter(1, "ann", as: "ann", caps: "")
        stage.enter(2, "bobby", as: "bob", caps: "")
        stage.enter(3, "guest", caps: "")
        stage.harness.sendFrame(
            0, #"{"kind":"message","id":"1","at":1,"sender":{"id":"r","name":"remy"},"text":"hi"}"#)
        for words in ["mute bobby", "mute guest", "mute remy", "receipts off", "notices on"] {
            _ = ask(stage, 1, words)
        }
    }

    @Test("with a store it is there before the account's first client is welcomed")
    func kept() throws {
        let stage = try PrivateStage(true)
        choose(stage)
        stage.restart()
        let bridge = stage.harness.bridge
        #expect(bridge.irc.choices.mutes(of: .account("ann")).map(\.nick) == ["bobby", "guest", "remy"])
        stage.enter(1, "ann", as: "ann", caps: "")
        #expect(ask(stage, 1, "mute") == ["You do not hear bobby, guest, remy."])
        #expect(ask(stage, 1, "receipts") == ["In all rooms: others hear nothing of your reading (off)."])
        #expect(ask(stage, 1, "notices") == ["You are told at once who got and read what you said."])
        // It is who they are that is not heard, whatever their nick.
        stage.enter(2, "robert", as: "bob", caps: "")
        stage.enter(3, "guest", caps: "")
        for client in [2, 3] as [UInt64] {
            stage.send(client, "PRIVMSG ann :can you hear me")
            #expect(stage.heard(1) == [])
        }
        stage.enter(4, "other", caps: "")
        stage.send(4, "PRIVMSG ann :three")
        #expect(stage.heard(1) == [":other!~u@bridge PRIVMSG ann :three"])
        // What is taken back stays so.
        for words in ["unmute robert", "unmute guest", "unmute remy", "receipts default", "notices off"] {
            _ = ask(stage, 1, words)
        }
        #expect(stage.harness.store.disk.choices == [])
        stage.restart()
        stage.enter(1, "ann", as: "ann", caps: "")
        #expect(ask(stage, 1, "mute") == ["You have muted nobody."])
    }

    @Test("somebody upstream stays muted in the next process, in rooms too")
    func keptUpstream() throws {
        let stage = try PrivateStage(true)
        choose(stage)
        stage.restart()
        stage.enter(1, "ann", as: "ann", caps: "")
        stage.send(1, "JOIN #lobby")
        for (id, sender) in [("2", "remy"), ("3", "linguini")] {
            stage.harness.sendFrame(
                0,
                #"{"kind":"message","id":"\#(id)","at":1,"sender":{"id":"\#(sender.prefix(1))","name":"\#(sender)"},"text":"from \#(sender)"}"#
            )
        }
        let heard = stage.heard(1).filter { $0.contains("PRIVMSG") }
        #expect(heard.count == 1 && heard.first?.hasSuffix("from linguini") == true)
    }

    @Test("it is the account's, however the configuration writes the names today")
    func spelling() throws {
        let stage = try PrivateStage(true)
        // As an earlier program kept it under the names as they were written then.
        let mute = StoredMute(target: .account("BOB"), nick: "bobby")
        let file = StoredMute(target: .account("cleo"), nick: "cleo")
        for (kept, words) in [
            ([StoredChoices(account: "Ann", receipts: "off", mutes: [mute])], "You do not hear bobby."),
            (
                [
                    StoredChoices(account: "Ann", receipts: "off", wantsNotices: true, mutes: [mute]),
                    StoredChoices(account: "ann", receipts: "off", mutes: [file]),
                ], "You do not hear cleo."
            ),
        ] {
            var store = StoreStage()
            store.prepare(kept.map { .choices($0) })
            stage.restart(on: store)
            stage.enter(1, "ann", as: "ann", caps: "")
            stage.enter(2, "bobby", as: "bob", caps: "")
            #expect(ask(stage, 1, "mute") == [words])
            #expect(ask(stage, 1, "notices") == ["You are told who got and read what you said when you ask: seen."])
            stage.send(2, "PRIVMSG ann :can you hear me")
            #expect(stage.heard(1).isEmpty == words.contains("bobby"))
            #expect(stage.harness.store.disk.choices.map(\.account) == ["ann"])
            #expect(ask(stage, 1, "receipts default") != [])
            for nick in ["bobby", "cleo"] { _ = ask(stage, 1, "unmute " + nick) }
            stage.restart()
            stage.enter(1, "ann", as: "ann", caps: "")
            #expect(ask(stage, 1, "mute") == ["You have muted nobody."])
            #expect(stage.harness.store.disk.choices == [])
        }
    }

    @Test("whoever makes an account of an old name in another spelling gets nothing of it")
    func otherSpelling() throws {
        let stage = try PrivateStage(true)
        var store = StoreStage()
        store.prepare([.choices(StoredChoices(account: "Dora", receipts: "off", wantsNotices: true))])
        stage.restart(on: store)
        stage.enter(1, "dora", caps: "")
        stage.send(1, "REGISTER * * long-enough")
        #expect(stage.harness.store.disk.choices == [] && stage.harness.store.disk.accounts.map(\.name) == ["dora"])
    }

    @Test("nobody mutes a person who was erased, an account's or upstream")
    func erased() throws {
        let stage = try PrivateStage(true)
        choose(stage)
        for name in ["bob", "r@b"] {
            stage.harness.perform { bridge, now in
                for person in bridge.people(called: name, isAccount: false) { _ = bridge.erase(person, now: now) }
            }
        }
        #expect(ask(stage, 1, "mute") == ["You do not hear guest."])
        stage.restart()
        stage.enter(1, "ann", as: "ann", caps: "")
        #expect(ask(stage, 1, "mute") == ["You do not hear guest."])
    }

    @Test("in memory it ends with the process")
    func forgotten() throws {
        let stage = try PrivateStage(false)
        choose(stage)
        #expect(ask(stage, 1, "mute") == ["You do not hear bobby, guest, remy."])
        stage.restart()
        stage.enter(1, "ann", as: "ann", caps: "")
        #expect(ask(stage, 1, "mute") == ["You have muted nobody."])
    }

    @Test("what a connection chose without an account is kept once that is an account's, and not before")
    func moved() throws {
        let stage = try PrivateStage(true)
        stage.enter(1, "guest", caps: "")
        stage.enter(2, "bobby", as: "bob", caps: "")
        _ = ask(stage, 1, "mute bobby")
        _ = ask(stage, 1, "receipts off")
        #expect(stage.harness.store.disk.choices == [])
        _ = ask(stage, 1, "login ann pw")
        #expect(
            stage.harness.store.disk.choices == [
                StoredChoices(
                    account: "ann", receipts: "off", mutes: [StoredMute(target: .account("bob"), nick: "bobby")])
            ])
        // A login that brings nothing new keeps nothing anew.
        _ = stage.harness.store.takeOrders()
        stage.enter(3, "ann", as: "ann", caps: "")
        let again = stage.harness.store.takeOrders().contains { if case .choices = $0 { true } else { false } }
        #expect(!again)
    }

    @Test("a disk that was full keeps it when there is room again")
    func afterOverflow() throws {
        let stage = try PrivateStage(true)
        stage.enter(1, "ann", as: "ann", caps: "")
        stage.enter(2, "bob", as: "bob", caps: "")
        stage.harness.store.commits = false
        stage.harness.store.room = 1
        _ = ask(stage, 1, "receipts off")
        _ = ask(stage, 1, "mute bob")
        stage.harness.store.room = .max
        stage.harness.store.commits = true
        stage.send(1, "PING x")
        stage.send(1, "PING y")
        #expect(stage.harness.store.disk.choices.first?.mutes.map(\.nick) == ["bob"])
    }
}
